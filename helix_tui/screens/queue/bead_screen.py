"""One bead full screen, and the facts for its detail.

If there is no room beside the list, a bead opens on its own screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from textual import on

from helix_tui.core.ddx.git_state import BeadHistory
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.core.statements.why import held_by
from helix_tui.core.supervision.signals.questions import beads_in_question
from helix_tui.screens.editing.keys import BeadKeys
from helix_tui.screens.sheet import OverlayScreen
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.rows.bead import RowContext, runs_by_bead
from helix_tui.widgets.text.bead import ArchivedFacts, DetailFacts, DetailView, MissingFacts

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.screens.base import Console, HelixScreen

_KEPT = 64


def row_context(console: Console) -> RowContext:
    """What the rows of beads need besides their beads, now."""
    snapshot, summary = console.snapshot, console.status_summary
    asked = beads_in_question(summary.questions) if summary is not None else {}
    return RowContext(snapshot.queue, runs_by_bead(snapshot.runs), console.now(), asked)


class BeadDetails:
    """Facts for the detail of one screen. Facts that have to be read first are added later."""

    def __init__(self, screen: HelixScreen, tell: Callable[[str], None]) -> None:
        """Gather facts for a screen; ``tell`` is called with a bead's id when more of it is known."""
        self._screen = screen
        self._tell = tell
        self._events: dict[str, tuple[Bead, tuple[Mapping[str, Any], ...]]] = {}
        self._last_seen: Recent[str, str] = Recent(_KEPT)

    def facts(self, bead_id: str, world: RowContext) -> DetailFacts | ArchivedFacts | MissingFacts:
        """Everything that is known of a bead now."""
        bead = world.queue.beads.get(bead_id)
        away = self._screen.console.snapshot.archive.get(bead_id) if bead is None else None
        if away is not None:
            attempts = self._screen.console.snapshot.attempts.of_bead(bead_id)
            return ArchivedFacts(away, world, attempts, self._attached(away))
        if bead is None:
            return MissingFacts(bead_id, world, self._last_seen_words(bead_id))
        attempts = self._screen.console.snapshot.attempts.of_bead(bead_id)
        status_summary = self._screen.console.status_summary
        asked = status_summary.questions if status_summary is not None else ()
        refused = status_summary.refused.get(bead_id) if status_summary is not None else None
        book, parts = self._screen.console.snapshot.attempts, world.queue.graph.descendants(bead_id)
        of_parts = tuple(attempt for part in parts for attempt in book.of_bead(part))
        return DetailFacts(bead, world, attempts, self._attached(bead), held_by(bead, asked, refused), of_parts)

    def _attached(self, bead: Bead) -> tuple[Mapping[str, Any], ...]:
        if not bead.events_attachment:
            return ()
        event = self._events.get(bead.id)
        # a changed record: its events are read again, and the previous ones are shown meanwhile
        if event is None or event[0] is not bead:
            self._remember(bead, event[1] if event is not None else ())
            from helix_tui.core.ddx.runs.transcript import attached_events

            folder = self._screen.console.snapshot.project.ddx_dir
            self._start(bead.id, lambda: tuple(attached_events(folder, bead)), partial(self._remember, bead))
        return self._events[bead.id][1]

    def _remember(self, bead: Bead, events: tuple[Mapping[str, Any], ...]) -> None:
        if len(self._events) >= _KEPT:
            self._events.clear()
        self._events[bead.id] = bead, events

    def _last_seen_words(self, bead_id: str) -> str:
        if bead_id not in self._last_seen:
            # requested once: git may take seconds, and the detail is drawn again meanwhile
            self._last_seen[bead_id] = ""

            console = self._screen.console
            project, now = console.snapshot.project, console.now()
            self._start(
                bead_id, lambda: last_seen_words(project, bead_id, now), partial(self._last_seen.__setitem__, bead_id)
            )
        return self._last_seen[bead_id]

    def _start(self, bead_id: str, read: Callable[[], Any], keep: Callable[[Any], None]) -> None:
        """Read in a thread, keep the result, and notify the screen on its own thread."""

        def arrived(found: Any) -> None:
            keep(found)
            self._tell(bead_id)

        def work() -> None:
            self._screen.app.call_from_thread(arrived, read())

        self._screen.run_worker(work, group="around", thread=True)


class BeadScreen(BeadKeys, OverlayScreen):
    """The detail, full screen. It follows its bead through every reload."""

    TITLE_TEXT = "bead"
    FOOTER = ("go.back", "change.actions", "change.eligible", "change.depend", "go.open", "app.help")

    def __init__(self, bead_id: str) -> None:
        super().__init__()
        self.bead_id = bead_id
        self.around = BeadDetails(self, lambda _: self.catch_up())

    def make_list(self) -> RowList:
        """The detail is a list of lines."""
        return DetailView(id="detail")

    def bead_ids(self) -> tuple[str, ...]:
        """The bead of this screen."""
        return (self.bead_id,)

    def show_bead(self, bead_id: str) -> None:
        """Show another bead here."""
        self.bead_id = bead_id
        super().show_bead(bead_id)
        self.catch_up()

    def action_copy_id(self) -> None:
        """Copy the id."""
        self.console.copy(clean_line(self.bead_id), clean_line(self.bead_id, 60))

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show the bead as it is now; if it is gone, its last state."""
        self._show(snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        bead = snapshot.queue.beads.get(self.bead_id)
        away = bead is None and self.bead_id in snapshot.archive
        self.caption.show(
            "bead" if bead is not None else "bead, archived" if away else "bead, no longer in the tracker"
        )
        if (bead is not None or away) and isinstance(self.list, DetailView):
            world = row_context(self.console)
            self.list.show_bead(self.around.facts(self.bead_id, world))

    def show_ages(self) -> None:
        """Refresh those of the bead."""
        self._show(self.console.snapshot)

    @on(DetailView.BeadChosen)
    def follow(self, event: DetailView.BeadChosen) -> None:
        """Show another bead here."""
        snapshot = self.console.snapshot
        if event.bead_id in snapshot.queue.beads or event.bead_id in snapshot.archive:
            self.show_bead(event.bead_id)
        else:
            self.app.notify(f"{event.bead_id} is not in the tracker", markup=False)

    @on(DetailView.AttemptChosen)
    def open_attempt(self, event: DetailView.AttemptChosen) -> None:
        """Open the attempt on its own screen."""
        self.console.open_attempt(event.attempt_id)

    def catch_up(self) -> None:
        """Show the bead again, even if the snapshot is the same."""
        self._shown = (-1, (), ())
        super().catch_up()


@lru_cache(maxsize=4)
def _history(project: Project) -> BeadHistory:
    return BeadHistory(project)


def last_seen_words(project: Project, bead_id: str, now: int) -> str:
    """Where it was last seen, in one sentence. This may run git: call it from a worker."""
    seen = _history(project).last_seen(bead_id)
    if seen is None:
        return "neither the archive nor the git history knows it"
    age = f", {format_age((now - seen.when) / NS)} ago" if seen.when is not None else ""
    where = "in the archive" if seen.where == "archive" else f"in git before {seen.rev[:8]}"
    return f"{where} as {clean_line(seen.status, 30)}{age}: {clean_line(seen.title, 200)}"
