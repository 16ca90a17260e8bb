"""From changed files to one immutable snapshot, and what changed in it."""

from helix_tui.core.snapshot.feed import Live, take_snapshot
from helix_tui.core.snapshot.snapshot import Change, Condition, Notice, Snapshot, merge_changes

__all__ = ["Change", "Condition", "Live", "Notice", "Snapshot", "merge_changes", "take_snapshot"]
