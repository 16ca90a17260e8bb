"""Lines of the tracker that are no beads: which, why, and how they begin. Nothing is dropped silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helix_tui.screens.overlay import Overlay
from helix_tui.widgets.lists.line import Span
from helix_tui.widgets.lists.rowsource import Row, Rows

if TYPE_CHECKING:
    from helix_tui.core.beads.tracker import Tracker
    from helix_tui.core.live import Change, Snapshot


class UnreadScreen(Overlay):
    """What the pulse counts as unread, line by line; and ids that stand on several lines."""

    TITLE_TEXT = "unread lines"

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Every line, in the order of the file."""
        tracker = snapshot.tracker
        self.caption.show(
            self.TITLE_TEXT, f"{len(tracker.dropped):,} of {tracker.rows:,} in {tracker.path.name}"
        )
        rows = _rows(tracker)
        none = Row("none", (("  every line is read", "muted"),), selectable=False)
        self.list.show(Rows(rows or [none]))


def _rows(tracker: Tracker) -> list[Row]:
    digits = max((len(str(dropped.line)) for dropped in tracker.dropped), default=1)
    rows = []
    for dropped in tracker.dropped:
        number: Span = (f"{dropped.line:>{digits}}  ", "muted")
        rows.append(Row(f"line:{dropped.line}", (number, (dropped.reason, "error"))))
        excerpt = (" " * (digits + 2), "text"), (dropped.excerpt or "(nothing legible)", "muted")
        rows.append(Row(f"line:{dropped.line}/text", excerpt, selectable=False))
    for bead_id, lines in tracker.folded.items():
        said = f"{bead_id} stands on lines {', '.join(map(str, lines[:8]))}; the last one holds, as in DDx"
        rows.append(Row(f"folded:{bead_id}", ((said, "text"),)))
    return rows
