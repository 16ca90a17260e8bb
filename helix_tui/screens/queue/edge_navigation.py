"""Going along edges: one neighbour is gone to at once, of several one is chosen; the way back is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from textual.geometry import Size

from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.widgets.base.row_source import Row
from helix_tui.widgets.chrome.prompt import Chooser
from helix_tui.widgets.rows.bead import RowContext, bead_line

Direction = Literal["dependents", "needed"]

_NOTHING: dict[Direction, str] = {"dependents": "nothing waits on it", "needed": "it waits on nothing"}
_CAPTIONS: dict[Direction, str] = {"dependents": "{} wait on {}", "needed": "{} that {} waits on"}
_MOST_STEPS = 200


class EdgeScreen(Protocol):
    """What a screen has on which one goes along edges."""

    list: Any

    @property
    def app(self) -> Any: ...

    @property
    def size(self) -> Size: ...

    @property
    def selected_bead(self) -> str | None: ...

    @property
    def world(self) -> RowContext: ...

    def go_to(self, bead_id: str) -> bool: ...

    def mount(self, *widgets: Any) -> Any: ...


class Along:
    """Steps along edges on a queue screen. A step the other way leads back to where the last one began."""

    def __init__(self, screen: EdgeScreen) -> None:
        self._screen = screen
        self._trail: list[tuple[str, Direction, str]] = []
        """Steps taken: from, which way, to."""
        self._choosing: tuple[str, Direction] | None = None

    async def step(self, direction: Direction) -> None:
        """Go to a neighbour of the bead under the cursor."""
        here = self._screen.selected_bead
        if here is None or self._choosing is not None:
            return
        back = self._way_back(here, direction)
        if back is not None:
            self._trail.pop()
            self._screen.go_to(back)
            return
        ways = neighbours(self._screen.world, here, direction)
        if not ways:
            self._screen.app.notify(_NOTHING[direction], timeout=2)
        elif len(ways) == 1:
            self._go(here, direction, ways[0])
        else:
            await self._offer(here, direction, ways)

    def _way_back(self, here: str, direction: Direction) -> str | None:
        """Where the last step came from, if it led here and was one the other way."""
        if not self._trail or self._trail[-1][2] != here:
            # the cursor was moved otherwise since: the steps no longer lead back from here
            self._trail.clear()
            return None
        came_from, taken, _ = self._trail[-1]
        return came_from if taken != direction and came_from in self._screen.world.queue.beads else None

    def _go(self, here: str, direction: Direction, there: str) -> None:
        if self._screen.go_to(there):
            self._trail = [*self._trail[-_MOST_STEPS:], (here, direction, there)]

    async def _offer(self, here: str, direction: Direction, ways: Sequence[str]) -> None:
        self._choosing = here, direction
        world, width = self._screen.world, max(8, self._screen.size.width - 3)
        rows = [Row(bead_id, tuple(bead_line(world.queue.beads[bead_id], world, width, lead=()))) for bead_id in ways]
        caption = _CAPTIONS[direction].format(len(ways), short_id(clean_line(here, 60)))
        await self._screen.mount(Chooser(caption, rows))

    def look(self, bead_id: str) -> None:
        """Show a way while it is not chosen yet; what a filter or fold hides stays hidden."""
        self._screen.list.select(bead_id)

    async def done(self, chooser: Chooser, chosen: str | None) -> None:
        """Go where somebody chose, or back."""
        choosing, self._choosing = self._choosing, None
        self._screen.list.focus(scroll_visible=False)
        await chooser.remove()
        if choosing is None:
            return
        here, direction = choosing
        if chosen is None:
            self._screen.go_to(here)
        else:
            self._go(here, direction, chosen)


def neighbours(world: RowContext, bead_id: str, direction: Direction) -> list[str]:
    """The beads at the other end of a bead's edges, unfinished ones first."""
    queue = world.queue
    edges = queue.graph.dependents if direction == "dependents" else queue.graph.depends_on
    ids = [other for other in edges.get(bead_id, ()) if other in queue.beads and other != bead_id]
    return sorted(ids, key=lambda other: queue.beads[other].status == "closed")
