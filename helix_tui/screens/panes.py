"""How a screen's space is divided: zooming a pane, moving the split, choosing the list's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.geometry import Size
from textual.timer import Timer
from textual.widget import Widget

from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import bindings
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Column
from helix_tui.widgets.chrome.empty_state import EmptyState
from helix_tui.widgets.text.page import Page

if TYPE_CHECKING:
    from helix_tui.widgets.chrome.bottom import Prompt

STEP = 10
"""Percent by which a key moves the split."""

SAID = "-said"
"""The class of an empty state while it is shown."""

MIN_SHARE, MAX_SHARE = 20, 80
"""The list's smallest and largest share, in percent."""


DETAIL_DELAY = 0.06
"""Seconds that the cursor rests before the detail of its row is shown: holding a key down reads nothing."""


class PanedScreen(HelixScreen):
    """A screen with a list and the detail of its row, side by side or one above the other."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("panes")]
    PANES: ClassVar[str] = ""
    """The container whose two children are the list and the detail."""
    COLUMNS: ClassVar[Sequence[Column]] = ()
    """The list's columns, if they can be chosen."""
    list: RowList
    """The list whose row is shown in detail."""

    def __init__(self) -> None:
        super().__init__()
        self.prompt: Prompt | None = None
        """Where the user types a filter or a question, while it is open."""
        self.empty_state = EmptyState()
        """Shown in place of the two; the screen composes it after them."""
        self._rest: Timer | None = None
        self._sizes: list[Size] = []

    def show_instead(self, paragraphs: Sequence[Line] | None) -> None:
        """Show paragraphs in place of the two, or with None the two.

        A class of the screen's own would have the styles of every widget computed again.
        """
        bare = paragraphs is not None
        if paragraphs is not None:
            self.empty_state.show(paragraphs)
        if bare != self.is_bare:
            self.is_bare = bare
            self.empty_state.set_class(bare, SAID)
            styles = self._container().styles
            if bare:
                styles.display = "none"
            else:
                styles.clear_rule("display")
                self.refresh(layout=True)

    def on_mount(self) -> None:
        """Restore the saved split, and fill the detail whenever it gets another size."""
        super().on_mount()
        self.place_split()
        if self.PANES:
            self.screen_layout_refresh_signal.subscribe(self, partial(self._laid_out, self._container()))

    def _laid_out(self, panes: Widget, _: object) -> None:
        """Fill the detail once it has room: a screen that is gone to is resized before its layout applies."""
        sizes = [child.size for child in panes.children]
        if sizes != self._sizes and panes.is_attached:
            self._sizes = sizes
            self.detail_laid_out()

    def detail_laid_out(self) -> None:
        """Fill the detail for its new size."""
        self.show_detail_soon()

    # --- the detail ---------------------------------------------------------------------------------------

    def show_detail(self) -> None:
        """Show the row under the cursor in detail."""

    def show_detail_soon(self) -> None:
        """Show it when the cursor rests."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(DETAIL_DELAY, self.show_detail)

    @on(RowList.Selected)
    def follow_with_detail(self, event: RowList.Selected) -> None:
        """Show the detail of another row when the cursor rests there."""
        if self.PANES and event.rows is self.list:
            self.show_detail_soon()

    # --- zooming ------------------------------------------------------------------------------------------

    @property
    def zoomed(self) -> bool:
        """Whether a pane is zoomed."""
        return bool(self.PANES) and self._container().has_class("-zoomed")

    def _container(self) -> Widget:
        return self.query_one(self.PANES)

    def action_zoom(self) -> None:
        """Zoom the focused pane, or show all panes again."""
        if not self.PANES or self.unzoom():
            return
        panes = self._container()
        focused = self.focused
        # the focus is on a widget deep inside one of the two panes
        mine = next((child for child in panes.children if focused in (child, *child.query("*"))), None)
        if mine is None or sum(bool(child.size.width) for child in panes.children) < 2:
            self.console.say("nothing to zoom: only one pane is shown")
            return
        panes.add_class("-zoomed")
        mine.add_class("-zoom")

    def unzoom(self) -> bool:
        """Show all panes again; False if no pane is zoomed."""
        if not self.zoomed:
            return False
        panes = self._container()
        panes.remove_class("-zoomed")
        for child in panes.children:
            child.remove_class("-zoom")
        return True

    async def action_step_back(self) -> None:
        """Show all panes if one is zoomed; else go one step back."""
        if not self.unzoom():
            await self.action_back()

    def _focus_pane(self, step: int) -> None:
        # while one pane is zoomed, the other has no size: focus it once both show
        if len(self.panes()) < 2 and self.unzoom():
            self.call_after_refresh(super()._focus_pane, step)
        else:
            super()._focus_pane(step)

    # --- the split ----------------------------------------------------------------------------------------

    def action_split(self, step: int) -> None:
        """Give the list more or less room, as far as that goes."""
        if not self.PANES:
            return
        first, second = self._container().children[:2]
        if not (first.size.width and second.size.width):
            self.console.say("nothing to move: only one pane is shown")
            return
        share = self._share(first, second) + step * STEP
        if not MIN_SHARE <= share <= MAX_SHARE:
            self.console.say(
                f"the list has {share - step * STEP} % of the room: that is the {'most' if step > 0 else 'least'}"
            )
            return
        self.console.kept.move_split(self.NAME, share)
        keep(self, self.console.kept.write)
        self.place_split()

    def _share(self, first: Widget, second: Widget) -> int:
        """The first pane's present share, rounded to ten percent."""
        one, other = first.outer_size, second.outer_size
        if self._one_over_the_other():
            return round(one.height / max(1, one.height + other.height) * 10) * STEP
        return round(one.width / max(1, one.width + other.width) * 10) * STEP

    def _one_over_the_other(self) -> bool:
        layout = self._container().styles.layout
        return layout is not None and layout.name == "vertical"

    def place_split(self) -> None:
        """Apply the saved split, or the stylesheet's."""
        share = self.console.kept.split(self.NAME) if self.PANES else None
        if share is None:
            return
        along, across = ("height", "width") if self._one_over_the_other() else ("width", "height")
        for child, part in zip(self._container().children, (share, 100 - share), strict=False):
            # both, because the share for the other layout is still set
            setattr(child.styles, along, f"{part}fr")
            setattr(child.styles, across, "1fr")

    def on_resize(self) -> None:
        """Place the split again: panes that were side by side may be one above the other now."""
        self.call_after_refresh(self.place_split)

    # --- columns ------------------------------------------------------------------------------------------

    @cached_property
    def chosen_columns(self) -> tuple[str, ...] | None:
        """Names of the chosen columns; None if the width decides."""
        return self.console.kept.columns(self.NAME)

    def columns_changed(self) -> None:
        """Show the list with the chosen columns."""

    def action_columns(self) -> None:
        """Choose the columns of the list."""
        if self.COLUMNS:
            self.app.push_screen(ColumnSheet(self.NAME, self.COLUMNS, self.chosen_columns, self.choose_columns))

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Show these columns; None lets the width decide."""
        self.console.kept.choose_columns(self.NAME, names)
        keep(self, self.console.kept.write)
        self.chosen_columns = None if names is None else tuple(names)
        self.columns_changed()


class ReadingScreen(PanedScreen):
    """A paned screen where a narrow detail covers the list while it is read."""

    READING_FOOTER: ClassVar[tuple[str, ...]] = ()
    """The keys in the footer while the detail has the focus."""

    def detail_laid_out(self) -> None:
        """Fill the detail at once: while it is read, nothing else is shown."""
        self.show_detail()

    def detail_panes(self) -> Sequence[RowList]:
        """The panes of the detail; opening the detail gives the focus to the first."""
        raise NotImplementedError

    def panes(self) -> Sequence[Widget]:
        """The list and the detail, where they show."""
        return [pane for pane in (self.list, *self.detail_panes()) if pane.size.width]

    @property
    def in_list(self) -> bool:
        """Whether the list has the focus."""
        return self.focused is None or self.focused is self.list

    def open_detail(self) -> None:
        """Go to the detail; it covers the list if there is no room beside it."""
        if self.is_narrow:
            self.add_class("-reading")
            self.call_after_refresh(self.show_and_focus)
        else:
            self.show_and_focus()

    def show_and_focus(self) -> None:
        """Show the detail and give it the focus."""
        self.show_detail()
        self.detail_panes()[0].focus(scroll_visible=False)

    def back_to_list(self) -> bool:
        """Go from the detail to the list; False if the list has the focus already."""
        if self.has_class("-reading"):
            self.remove_class("-reading")
            self.call_after_refresh(self.list.focus, scroll_visible=False)
        elif self.in_list:
            return False
        else:
            self.list.focus(scroll_visible=False)
        return True

    async def action_back(self) -> None:
        """Go from the detail to the list."""
        self.back_to_list()

    async def action_fold(self) -> None:
        """Go from the detail to the list."""
        self.back_to_list()

    def action_unfold(self) -> None:
        """Go to the detail of the row."""
        self.list.action_open()

    def action_turn_part(self, step: int) -> None:
        """Go to the next or previous section of the detail."""
        self.detail_panes()[0].turn_part(step)

    def on_resize(self) -> None:
        """Keep the detail in view for a reader when list and detail no longer fit side by side."""
        if self.is_narrow:
            self.set_class(self.focused in self.detail_panes(), "-reading")
        else:  # only after the new layout applies: a pane that is hidden for a moment loses the focus
            self.call_after_refresh(self.remove_class, "-reading")

    def on_descendant_focus(self) -> None:
        """Show the keys of the focused pane."""
        self.say_keys()

    def say_keys(self) -> None:
        """Show the keys of the focused pane in the footer."""
        if self.prompt is None:
            self.show_keys(self.FOOTER if self.in_list else self.READING_FOOTER)


def keep(screen: HelixScreen, write: Callable[[], None]) -> None:
    """Save the layout for the next start, in a thread."""
    app = screen.app

    def work() -> None:
        try:
            write()
        except OSError as error:
            said = f"not saved for the next start: {clean_line(str(error), 200)}"
            app.call_from_thread(screen.console.say, said, "warning")

    # the app's worker, because a closing screen cancels its own
    app.run_worker(work, group="layout", thread=True)


class ColumnSheet(Sheet):
    """All columns of a list, those shown first; the list underneath follows each key."""

    SCOPE = "columns"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("columns")]
    FOOTER = ("change.mark=show", "columns.earlier", "columns.later", "columns.automatic", "go.back")

    def __init__(
        self,
        of: str,
        columns: Sequence[Column],
        chosen: Sequence[str] | None,
        choose: Callable[[Sequence[str] | None], None],
    ) -> None:
        """Make a sheet.

        Args:
            of: the list whose columns they are.
            columns: all there are.
            chosen: names of those shown, in order; None if the width decides.
            choose: called on every change.
        """
        super().__init__(f"columns of the {of}")
        self._columns = {column.name: column for column in columns}
        self._chosen = None if chosen is None else [name for name in chosen if name in self._columns]
        self._choose = choose

    def write(self, page: Page) -> None:
        """A line per column: whether it is shown, its name, its meaning."""
        said = "If there is not room for all, the first ones stay: + moves one up."
        if self._chosen is None:
            said = "Columns adapt to the width. Space picks your own."
        page.paragraph([(said, "muted")])
        shown = self._wanted()
        for name in [*shown, *(name for name in self._columns if name not in shown)]:
            column = self._columns[name]
            box = ("■ ", "running") if name in shown else ("  ", "muted")
            page.choice([box, (f"{name:<12}", "text")], (column.help, "muted"), key=name)

    def _wanted(self) -> list[str]:
        if self._chosen is not None:
            return self._chosen
        return [name for name, column in self._columns.items() if not column.asked]

    def _change(self, names: list[str] | None) -> None:
        self._chosen = names
        self._choose(names)
        self.rewrite()

    def action_mark(self) -> None:
        """Show or hide the column under the cursor."""
        name, shown = self.list.selected_key or "", self._wanted()
        if name in shown:
            self._change([other for other in shown if other != name])
        elif name in self._columns:
            self._change([*shown, name])

    @on(RowList.Opened)
    def open_row(self, event: RowList.Opened) -> None:
        """Do the same as space."""
        event.stop()
        self.action_mark()

    def action_move_column(self, step: int) -> None:
        """Swap the column under the cursor with the next or previous one."""
        name, shown = self.list.selected_key or "", list(self._wanted())
        if name not in shown:
            return
        at = shown.index(name)
        to = min(max(at + step, 0), len(shown) - 1)
        shown.insert(to, shown.pop(at))
        self._change(shown)

    def action_automatic(self) -> None:
        """Let the width decide again."""
        self._change(None)
