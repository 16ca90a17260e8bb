"""What every screen of the console has: pulse, tabs, notices, body, footer; and how news reaches it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.widget import Widget

from helix_tui.core.ground.time import NS
from helix_tui.keymap import BY_ID, bindings, names
from helix_tui.screens import TABS
from helix_tui.screens.dismissal import Dismissal, UnusedSignal, let_widgets_go
from helix_tui.screens.status_bar_model import notice_forms, pulse_facts
from helix_tui.widgets.base.line import Line, SpanLine, fit
from helix_tui.widgets.chrome.empty_state import Failure
from helix_tui.widgets.chrome.footer import KeyLine
from helix_tui.widgets.chrome.header import NoticeLine, StatusBar, Tabs

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Change, Snapshot
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.needs import Need
    from helix_tui.screens.background import ConsoleMonitor
    from helix_tui.screens.editing.change_runner import ChangeRunner
    from helix_tui.screens.loop.controls import LoopControls
    from helix_tui.settings import Layout, ViewBook

let_widgets_go()

POSTURES = ((0, "-tiny"), (32, "-strip"), (40, "-side"), (60, "-stack"), (100, "-split"), (140, "-wide"))
"""Widths from which a posture holds, as Textual's breakpoints."""

AGES_EVERY = 10 * NS
"""How often the ages in what is read are written again; those in lists go on every second."""

TRY_AGAIN = "app.try-again"
"""The key that shows again what failed."""

NARROW = ("-tiny", "-strip", "-side")
"""Postures of a pane beside an agent."""


class Console(Protocol):
    """What a screen may ask of the app that it runs in."""

    snapshot: Snapshot
    needs: tuple[Need, ...]
    snoozed: tuple[Need, ...]
    """What waits on a person and was put off."""
    keymap: dict[str, str]
    kept: Layout
    """How the user left the console: columns, splits."""
    view_book: ViewBook
    """Slices of the queue that somebody saved."""
    memory_health: str
    """How the memory is doing, in words for the pulse; empty where there is none."""
    prepare: Callable[[Snapshot], None] | None
    """Called with every snapshot in the feed's thread, before the screen is told."""
    read_only: bool
    ddx_named: str | None
    """The ddx that the call names."""

    def now(self) -> int: ...

    def go_to_bead(self, bead_id: str) -> bool: ...

    def open_bead(self, bead_id: str) -> None: ...

    def open_attempt(self, attempt_id: str, tab: str = "") -> None: ...

    def open_memory(self, name: str) -> None: ...

    def select_below(self, bead_id: str) -> None: ...

    def ask_about(self, text: str) -> None: ...

    def list_unread(self) -> None: ...

    def copy(self, text: str, what: str) -> None: ...

    def say(self, text: str, severity: Any = "information") -> None: ...

    def show_tour(self, screen: Any) -> None: ...

    def push_screen(self, screen: Any) -> Any: ...

    @property
    def status_summary(self) -> StatusSummary | None:
        """Where the work stands and what should come next; None before anybody looked."""

    @property
    def loop_controls(self) -> LoopControls:
        """What can be done to the loop."""

    @property
    def has_looked(self) -> bool:
        """Whether everything that waits on a person was looked for at least once, or nobody looks."""

    monitor: ConsoleMonitor | None
    """Who looks for drift, orphaned claims and an unminded focus."""

    def acknowledge(self, bead_ids: Iterable[str]) -> None: ...

    def refresh_needs(self) -> None: ...

    @property
    def change_runner(self) -> ChangeRunner:
        """What changes the queue; made when it is first asked for."""

    def changed(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change of these beads has been made, and these are new."""


class TooSmall(SpanLine):
    """All there is below 32 × 8."""

    def spans(self, width: int) -> Line:
        """How big it should be, in the words that fit."""
        forms = ("too small: 32 × 8 at least", "too small: 32 × 8", "≥ 32 × 8")
        said = next((form for form in forms if len(form) <= width), forms[-1])
        return fit([(said, "attention")], width)


def posture_of(app: App[Any]) -> str:
    """The posture that an app's screens take at its present width, without its dash."""
    limits = app.HORIZONTAL_BREAKPOINTS or POSTURES
    found = [name for start, name in limits if start <= app.size.width]
    return found[-1].lstrip("-") if found else "split"


class HelixScreen(Dismissal):
    """A screen of the console. Subclasses give the body, and take the news in `show_snapshot`."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("screen")]
    AUTO_FOCUS = "RowList"
    BLANK = True  # widgets cover all of it
    NAME: ClassVar[str] = ""
    """Its name in the registry; empty for a screen that no number key leads to."""
    SCOPE: ClassVar[str] = ""
    """The scope of the keys of a screen that lies on others and has keys of its own."""
    FOOTER: ClassVar[tuple[str, ...]] = ("go.back", "app.help")
    BARE_CLASS: ClassVar[str] = ""
    """The class that it wears while words stand in the place of its list."""
    BARE_FOOTER: ClassVar[tuple[str, ...]] = ("go.to", "app.quit", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.text_selection_started_signal = UnusedSignal(self, "selection_started")
        self.pulse = StatusBar()
        self.tabs = Tabs(TABS, self.NAME)
        self.notices = NoticeLine()
        self.footer = KeyLine(self.FOOTER)
        self._shown: tuple[int, tuple[Need, ...], tuple[Need, ...]] = (-1, (), ())
        self._aged = 0
        self._failure: Failure | None = None
        self._hidden: list[Widget] = []

    @property
    def console(self) -> Console:
        """The app, as far as screens know it."""
        return cast(Console, self.app)

    @property
    def posture(self) -> str:
        """``tiny``, ``strip``, ``side``, ``stack``, ``split`` or ``wide``.

        By width, not by class: a screen that is switched to gets its classes after its first resize.
        """
        return posture_of(self.app)

    def compose(self) -> ComposeResult:
        """The whole, in the posture of the terminal, so that no style is worked out twice."""
        self.take_posture()
        yield self.pulse
        yield self.tabs
        yield self.notices
        yield from self.compose_body()
        yield self.footer
        yield TooSmall()

    def take_posture(self) -> None:
        """Wear the class of the present width, as Textual will on every later resize."""
        breakpoints = self.app.HORIZONTAL_BREAKPOINTS or []
        worn = [name for least, name in breakpoints if self.app.size.width >= least][-1:]
        self.update_classes({name: name in worn for _, name in breakpoints}, update=False)

    def compose_body(self) -> ComposeResult:
        """Everything between the tabs and the footer."""
        raise NotImplementedError

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show a new state; ``change`` says what differs from the last one that was shown."""

    def on_mount(self) -> None:
        """Know the user's keys."""
        self.footer.keymap = dict(self.console.keymap)

    def on_screen_resume(self) -> None:
        """A screen that was away catches up."""
        self.console.prepare = self.prepare_snapshot
        self.catch_up()
        self.console.show_tour(self)

    def prepare_snapshot(self, snapshot: Snapshot) -> None:
        """Work out what takes long. Runs in the feed's thread: it may not touch a widget."""

    def catch_up(self) -> None:
        """Show the present state if it is another than the last one shown."""
        from helix_tui.core.snapshot.snapshot import Change

        self.receive(self.console.snapshot, Change(everything=True))

    def receive(self, snapshot: Snapshot, change: Change) -> None:
        """News from the app, once for every snapshot; of no use before the widgets stand."""
        if not self.is_mounted or self.failed:
            return
        shown = (snapshot.generation, self.console.needs, self.console.snoozed)
        if shown == self._shown:
            self.tick()
        else:
            self._shown = shown
            self.show_pulse()
            self.show_snapshot(snapshot, change)

    # --- failing --------------------------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        """Whether a notice of its failure stands in its place."""
        return self._failure is not None

    @property
    def composed_nothing(self) -> bool:
        """Whether it never had its widgets."""
        return not self.footer.is_attached

    def show_failure(self, log: str, times: int) -> None:
        """Put a notice in the place of everything but the tabs; nothing of this screen is asked any more."""
        if self._failure is not None:
            return
        self._failure = failure = Failure(id="failure")
        self.hide_all_but_failure()
        key = names(self.console.keymap.get(TRY_AGAIN, BY_ID[TRY_AGAIN].keys))[0]
        failure.tell(self.NAME.capitalize() or "The screen", times, log, key)
        self.mount(failure)

    def hide_all_but_failure(self) -> None:
        """Hide every widget but the notice and the tabs, those that came since too."""
        kept = (self._failure, self.tabs)
        for child in self.children:
            if child not in kept and not child.has_class("-textual-system") and child.display:
                child.display = False
                self._hidden.append(child)

    def hide_failure(self) -> None:
        """Show the screen again."""
        failure, self._failure = self._failure, None
        if failure is not None:
            failure.remove()
        for child in self._hidden:
            child.styles.clear_rule("display")
        self._hidden = []
        self._shown = (-1, (), ())
        self.refresh(layout=True)
        self.catch_up()

    def tick(self) -> None:
        """Time has passed: what shows an age shows the new one."""
        self.show_pulse()
        now = self.console.now()
        if now - self._aged >= AGES_EVERY:
            self._aged = now
            self.show_ages()

    def show_ages(self) -> None:
        """Write anew the ages in what is read, as far as it holds any."""

    def show_pulse(self) -> None:
        """Say on the top line how things stand."""
        console = self.console
        facts = pulse_facts(
            console.snapshot,
            console.needs,
            console.now(),
            memory=console.memory_health,
            status_summary=console.status_summary,
        )
        self.pulse.show(facts)
        self.notices.show(notice_forms(console.snapshot))

    def show_keys(self, key_ids: Sequence[str], note: str = "") -> None:
        """Name these keys in the footer; while there is no list, those that lead on."""
        bare = bool(self.BARE_CLASS) and self.has_class(self.BARE_CLASS)
        self.footer.show(self.BARE_FOOTER if bare else key_ids, note)

    def show_pending(self, beads: Collection[str], work: str) -> None:
        """Say that beads are being changed; nothing is, where there are none."""
        self.footer.show_work(work)

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change of these beads has been made, and these are new; the snapshot knows of it later."""

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """What the palette offers on this screen only: name, help, deed."""
        return ()

    def focus_first(self) -> None:
        """Give the focus back to the first pane."""
        for pane in self.panes()[:1]:
            pane.focus(scroll_visible=False)

    def panes(self) -> Sequence[Widget]:
        """What ``tab`` goes through, in order."""
        return [widget for widget in self.focus_chain if widget.size.width]

    def action_next_pane(self) -> None:
        """Focus the next pane."""
        self._focus_pane(1)

    def action_previous_pane(self) -> None:
        """Focus the pane before."""
        self._focus_pane(-1)

    def _focus_pane(self, step: int) -> None:
        panes = [*self.panes(), *(line for line in (self.pulse, self.notices) if line.can_focus)]
        if panes:
            here = panes.index(self.focused) if self.focused in panes else -step
            panes[(here + step) % len(panes)].focus(scroll_visible=False)

    def on_key_line_pressed(self, event: KeyLine.Pressed) -> None:
        """A click on a key of the footer is that key."""
        event.stop()
        if self.focused is None:
            self.focus_first()
        # from the app: a key that a screen sends does not come as far as the screen itself
        self.app.call_later(self.app.simulate_key, event.name)

    async def action_step_back(self) -> None:
        """What esc does first, before it is one step back."""
        await self.action_back()

    async def action_back(self) -> None:
        """One step back: leave a screen that lies on another one; never the last one."""
        self.dismiss()
