"""Lines of a tracker that are no beads: the next write of ddx drops them, which is said before and after."""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ground.text import clean_line


def unread_warning(tracker: Tracker, embedded: bool) -> Iterator[str]:
    """What lines that cannot be read mean for whoever wants to write."""
    if not tracker.dropped:
        return
    first = tracker.dropped[0]
    more = f" and {len(tracker.dropped) - 1} more" if len(tracker.dropped) > 1 else ""
    where = f"line {first.line}{more} of {clean_line(tracker.path.name, 60)} cannot be read"
    why = clean_line(first.reason, 120)
    if embedded:
        yield f"{where} ({why}): nothing is written until it is corrected or removed"
    else:
        yield f"{where} ({why}): ddx drops it at this write, and may keep a copy beside the file"


def dropped_since(before: Tracker, after: Tracker) -> tuple[str, ...]:
    """What ddx threw away between two readings; no command brings it back."""
    left = {line.excerpt for line in after.dropped}
    return tuple(
        f"ddx dropped line {line.line}, which is not a bead: {clean_line(line.excerpt, 200)}"
        for line in before.dropped
        if line.excerpt not in left
    )
