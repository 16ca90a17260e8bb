"""Keys of the queue: sort its rows, save and open views, follow edges.

With one neighbour an edge is followed at once; with several, one is chosen; a step back is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args

from textual.geometry import Size

from helix_tui.core.beads.query import ORDERS, Query, parse_query, with_order
from helix_tui.core.beads.views import VIEWS, ViewKind
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.screens.editing.choices import Choice, ChoiceSheet
from helix_tui.screens.filter import ViewKeys
from helix_tui.settings.views import SavedView
from helix_tui.widgets.base.row_source import Row
from helix_tui.widgets.chrome.bottom import Chooser
from helix_tui.widgets.rows.bead import RowContext, bead_line

if TYPE_CHECKING:
    pass

SORT_KEYS = "123456789abcdefghijklmn"
"""The key of each order in the sheet of orders."""

_NOTHING: dict[Direction, str] = {"dependents": "nothing waits on it", "needed": "it waits on nothing"}
_CAPTIONS: dict[Direction, str] = {"dependents": "{} wait on {}", "needed": "{} that {} waits on"}
_MAX_STEPS = 200


class SliceKeys(ViewKeys):
    """The keys of a screen whose list can be sorted and saved as a view."""

    kind: ViewKind
    filter: Query

    def __init__(self) -> None:
        super().__init__()
        self.saved: SavedView | None = None
        """The present view: its columns apply until another filter or view is chosen."""

    def show_view(self, kind: ViewKind) -> None:
        """Look at the queue another way."""
        raise NotImplementedError

    def hold_view(self, view: SavedView | None) -> None:
        """Apply a view and its columns; without columns, the chosen ones."""
        self.saved = view
        named = view.columns if view is not None else None
        self.chosen_columns = named if named is not None else self.console.kept.columns(self.NAME)

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Apply columns chosen by hand."""
        self.saved = None
        super().choose_columns(names)

    def action_sort(self) -> None:
        """Choose how the rows are sorted: a term of the filter, so that it can be typed and saved too."""
        now = self.filter.order
        choices = [Choice("o", "o", "default", "no order set", partial(self._sort_by, ""))]
        for place, (name, order) in enumerate(ORDERS.items()):
            turned = f"-{name}" if now == (name,) else name
            said = f"{order.help}; now reversed" if now == (f"-{name}",) else order.help
            key = SORT_KEYS[place]
            choices.append(Choice(key, key, turned, said, partial(self._sort_by, turned)))
        self.app.push_screen(ChoiceSheet("sort by", choices))

    def _sort_by(self, order: str) -> None:
        self.filter_with(with_order(self.filter.text, order))

    # --- saved views --------------------------------------------------------------------------------------

    def show_saved(self, name: str) -> None:
        """Show the queue as a saved view has it."""
        view = self.console.view_book.named(name)
        if view is None:
            self.console.say(f"no view is called {clean_line(name, 60)}", "warning")
            return
        problem = parse_query(view.filter).problem
        if problem:
            self.console.say(f"{clean_line(view.name, 60)}: {problem}", "warning")
        # first: `filter_with` drops the present view if its filter differs
        self.hold_view(view)
        self.filter_with(view.filter)
        self.show_view(cast(ViewKind, view.view) if view.view in get_args(ViewKind) else self.kind)

    def present_view(self, name: str) -> SavedView:
        """The filter, the way to look and the columns chosen now."""
        return SavedView(name, self.filter.text, self.kind if self.kind in VIEWS else "", self.chosen_columns)


Direction = Literal["dependents", "needed"]


class EdgeScreen(Protocol):
    """What a screen needs for following edges."""

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
    """Steps along edges on a queue screen. A step in the other direction leads back to the start of the last one."""

    def __init__(self, screen: EdgeScreen) -> None:
        self._screen = screen
        self._trail: list[tuple[str, Direction, str]] = []
        """Steps taken: from, direction, to."""
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
        """The start of the last step, if it led here in the other direction."""
        if not self._trail or self._trail[-1][2] != here:
            # the cursor has been moved since: the steps no longer lead back from here
            self._trail.clear()
            return None
        came_from, taken, _ = self._trail[-1]
        return came_from if taken != direction and came_from in self._screen.world.queue.beads else None

    def _go(self, here: str, direction: Direction, there: str) -> None:
        if self._screen.go_to(there):
            self._trail = [*self._trail[-_MAX_STEPS:], (here, direction, there)]

    async def _offer(self, here: str, direction: Direction, ways: Sequence[str]) -> None:
        self._choosing = here, direction
        world, width = self._screen.world, max(8, self._screen.size.width - 3)
        rows = [Row(bead_id, tuple(bead_line(world.queue.beads[bead_id], world, width, lead=()))) for bead_id in ways]
        caption = _CAPTIONS[direction].format(len(ways), short_id(clean_line(here, 60)))
        await self._screen.mount(Chooser(caption, rows))

    def look(self, bead_id: str) -> None:
        """Show a neighbour before it is chosen; what a filter or fold hides stays hidden."""
        self._screen.list.select(bead_id)

    async def done(self, chooser: Chooser, chosen: str | None) -> None:
        """Go to the chosen bead, or back."""
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
