"""Files change -> one immutable snapshot -> what changed."""

from helix_tui.core.live.feed import Live, take_snapshot
from helix_tui.core.live.snapshot import Change, Condition, Notice, Snapshot

__all__ = ["Change", "Condition", "Live", "Notice", "Snapshot", "take_snapshot"]
