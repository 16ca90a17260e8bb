"""Lines of the tracker that are not beads, each with the reason and its beginning: nothing is dropped silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helix_tui.core.snapshot.snapshot import Change
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.screens.status_bar_model import notice_forms
from helix_tui.widgets.base.line import Span, wrap_spans
from helix_tui.widgets.base.row_source import Row, Rows

if TYPE_CHECKING:
    from helix_tui.core.beads.tracker import Tracker
    from helix_tui.core.snapshot import Snapshot


class UnreadScreen(OverlayScreen):
    """The notices in full, the unreadable lines one by one, and ids that occur on several lines."""

    TITLE_TEXT = "notices · unreadable lines"

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show every notice, then every unreadable line in the order of the file."""
        tracker = snapshot.tracker
        self.caption.show(self.TITLE_TEXT, f"{len(tracker.dropped):,} of {tracker.rows:,} in {tracker.path.name}")
        rows = [*self._notices(snapshot), *_rows(tracker)]
        none = Row("none", (("  no notices; every line can be read", "muted"),), selectable=False)
        self.list.show(Rows(rows or [none]))

    def on_resize(self) -> None:
        """Wrap the notices for the new width."""
        self.show_snapshot(self.console.snapshot, Change())

    def _notices(self, snapshot: Snapshot) -> list[Row]:
        rows = []
        for number, forms in enumerate(notice_forms(snapshot)):
            lines = wrap_spans([("! ", "attention bold"), (forms[0], "attention")], self.app.size.width - 4, 2)
            rows += [Row(f"notice:{number}/{at}", line, selectable=not at) for at, line in enumerate(lines)]
        return rows


def _rows(tracker: Tracker) -> list[Row]:
    digits = max((len(str(dropped.line)) for dropped in tracker.dropped), default=1)
    rows = []
    for dropped in tracker.dropped:
        number: Span = (f"{dropped.line:>{digits}}  ", "muted")
        rows.append(Row(f"line:{dropped.line}", (number, (dropped.reason, "error"))))
        excerpt = (" " * (digits + 2), "text"), (dropped.excerpt or "(nothing readable)", "muted")
        rows.append(Row(f"line:{dropped.line}/text", excerpt, selectable=False))
    for bead_id, lines in tracker.folded.items():
        said = f"{bead_id} is on lines {', '.join(map(str, lines[:8]))}; the last one counts, as in DDx"
        rows.append(Row(f"folded:{bead_id}", ((said, "text"),)))
    return rows
