"""What every screen of the console has: status bar, tabs, notices, body, footer, and how it is updated.

A screen is dismissed once, however often that is requested.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast
from weakref import WeakSet

from textual import events, on
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.screen import Screen
from textual.signal import Signal
from textual.widget import Widget

from helix_tui.core.ground.time import NS
from helix_tui.keymap import BY_ID, bindings, names
from helix_tui.screens import TABS
from helix_tui.screens.layout import BREAKPOINTS, NARROW
from helix_tui.screens.status_bar_model import notice_forms, pulse_facts
from helix_tui.widgets.base.line import Line, SpanLine, fit
from helix_tui.widgets.chrome.bottom import KeyLine
from helix_tui.widgets.chrome.empty_state import Failure
from helix_tui.widgets.chrome.header import NoticeLine, StatusBar, Tabs
from helix_tui.widgets.chrome.notices import PassingNotice, PassingNotices

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.needs import Need
    from helix_tui.screens.editing.change_runner import ChangeRunner
    from helix_tui.screens.loop.controls import LoopControls
    from helix_tui.screens.watch import ConsoleMonitor
    from helix_tui.settings.layout import Layout
    from helix_tui.settings.views import ViewBook

AGES_EVERY = 30 * NS
"""How often ages in detail panes are refreshed; those in lists are refreshed every second."""

TRY_AGAIN = "app.try-again"
"""The key that retries what failed."""


class Dismissal(Screen[Any]):
    """A screen whose dismissal can be asked for any number of times, from anywhere, and happens once."""

    @on(events.ScreenResume)
    def keep_styles(self, event: events.ScreenResume) -> None:
        """Keep the styles: they are computed for a widget that is mounted, for a class that changes, and for all
        once the theme has changed (`HelixApp.refresh_css`)."""
        event.refresh_styles = False

    has_left = False
    """Whether it is on no stack any more, or as good as, so that messages for it come too late."""

    _left_with: tuple[Any] | None = None
    """The result with which it left while another screen covered it: it goes as soon as it is on top."""

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, even from under another screen; does nothing if it has left, or is the first of its stack.

        The app waits for it to end; the returned awaitable is already done, so that no handler of the screen can
        wait for the screen, which itself waits for its handlers.
        """
        stack = self.app.screen_stack
        if self.has_left or self in stack[:1]:
            pass
        elif stack[-1] is self:
            super().dismiss(result)
        else:
            self.has_left, self._left_with = True, (result,)
        return cast(AwaitComplete, AwaitComplete.nothing())  # type: ignore[no-untyped-call]

    @on(events.ScreenResume)
    def leave_now(self) -> bool:
        """Leave, if that was asked for while it was covered; whether it does."""
        if self._left_with is None:
            return False
        (result,), self._left_with = self._left_with, None
        super().dismiss(result)
        return True


class UnusedSignal(Signal[Any]):
    """A signal without subscribers: text is not selected by mouse here, and subscribers would never be released."""

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Forget it."""


class ThreadHost(Protocol):
    """What a deed in a thread needs from the app."""

    def say(self, text: str, severity: Any = "information") -> None: ...

    def run_worker(self, work: Any, *, thread: bool, group: str) -> Any: ...

    def call_from_thread(self, callback: Callable[..., Any], *args: Any) -> Any: ...

    def push_screen(self, screen: Any) -> Any: ...


class Console(ThreadHost, Protocol):
    """What a screen may use of its app."""

    snapshot: Snapshot
    needs: tuple[Need, ...]
    snoozed: tuple[Need, ...]
    """What waits for a person and was snoozed."""
    keymap: dict[str, str]
    kept: Layout
    """The user's saved layout: columns, splits."""
    view_book: ViewBook
    """The saved views of the queue and of *Needs me*."""
    memory_health: str
    """The memory's health, in words for the status bar; empty without a memory."""
    prepare: Callable[[Snapshot], None] | None
    """Called with every snapshot in the feed's thread, before the screen gets it."""
    read_only: bool
    told: tuple[PassingNotice, ...]
    """The notices of the last few seconds."""
    opened: WeakSet[Any]
    """Every screen that has been opened and still exists."""
    is_demo: bool
    """The project is the demo's: what was started from here ends with it."""
    ddx_named: str | None
    """The ddx that the command line names."""

    def now(self) -> int: ...

    def go_to_bead(self, bead_id: str) -> bool: ...

    def open_bead(self, bead_id: str) -> None: ...

    def open_attempt(self, attempt_id: str, tab: str = "") -> None: ...

    def open_memory(self, name: str) -> None: ...

    def select_below(self, bead_id: str) -> None: ...

    def ask_about(self, text: str) -> None: ...

    def list_unread(self) -> None: ...

    def copy(self, text: str, what: str) -> None: ...

    def show_tour(self, screen: Any) -> None: ...

    @property
    def status_summary(self) -> StatusSummary | None:
        """The state of the work and the next action; None before the first look."""

    @property
    def loop_controls(self) -> LoopControls:
        """What can be done to the loop."""

    @property
    def has_looked(self) -> bool:
        """Whether the monitor has looked for all needs at least once, or does not run."""

    monitor: ConsoleMonitor | None
    """The monitor, which looks for drift, orphaned claims and an outdated focus."""

    def acknowledge(self, bead_ids: Iterable[str]) -> None: ...

    def refresh_needs(self) -> None: ...

    @property
    def change_runner(self) -> ChangeRunner:
        """The change runner; created on first use."""

    def changed(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change of these beads has been made, and these are new."""


class TooSmall(SpanLine):
    """The notice shown below 32 × 8."""

    def spans(self, width: int) -> Line:
        """The least size, in words that fit."""
        forms = ("too small: 32 × 8 at least", "too small: 32 × 8", "≥ 32 × 8")
        form = next((form for form in forms if len(form) <= width), forms[-1])
        return fit([(form, "attention")], width)


def breakpoint_of(app: App[Any]) -> str:
    """The layout of an app's screens at its present width, without the dash."""
    limits = app.HORIZONTAL_BREAKPOINTS or BREAKPOINTS
    found = [name for start, name in limits if start <= app.size.width]
    return found[-1].lstrip("-") if found else "split"


class HelixScreen(Dismissal):
    """A screen of the console. Subclasses compose the body and take new states in `show_snapshot`."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("screen")]
    AUTO_FOCUS = "RowList"
    BLANK = True  # widgets cover all of it
    NAME: ClassVar[str] = ""
    """Its name in the registry; empty for a screen that no number key leads to."""
    SCOPE: ClassVar[str] = ""
    """The key scope of a screen that opens over others and has its own keys."""
    FOOTER: ClassVar[tuple[str, ...]] = ("go.back", "app.help")
    BARE_FOOTER: ClassVar[tuple[str, ...]] = ("go.to", "app.quit", "app.help")

    def __init__(self) -> None:
        super().__init__()
        self.text_selection_started_signal = UnusedSignal(self, "selection_started")
        self.pulse = StatusBar()
        self.tabs = Tabs(TABS, self.NAME)
        self.notices = NoticeLine()
        self.told = PassingNotices()
        self.footer = KeyLine(self.FOOTER)
        self.is_bare = False
        """Whether words are shown instead of its list."""
        # no snapshot has this generation, so the first one is shown whatever it is
        self._shown: tuple[int, tuple[Need, ...], tuple[Need, ...]] = (-1, (), ())
        self._aged = 0
        self._failure: Failure | None = None
        self._hidden: list[Widget] = []

    @property
    def console(self) -> Console:
        """The app, as screens see it."""
        return cast(Console, self.app)

    @property
    def breakpoint(self) -> str:
        """``tiny``, ``strip``, ``side``, ``stack``, ``split`` or ``wide``.

        By width, not by class: a screen that is switched to gets its classes after its first resize.
        """
        return breakpoint_of(self.app)

    @property
    def is_narrow(self) -> bool:
        """Whether there is room for one pane only."""
        return f"-{self.breakpoint}" in NARROW

    def compose(self) -> ComposeResult:
        """Compose everything in the present layout, so that no style is computed twice."""
        self.console.opened.add(self)
        self.take_breakpoint()
        yield self.pulse
        yield self.tabs
        yield self.notices
        yield from self.compose_body()
        yield self.footer
        yield self.told
        yield TooSmall()

    def take_breakpoint(self) -> None:
        """Take the classes of the present size, as Textual does on every later resize."""
        (width, height), app = self.app.size, self.app
        for length, limits in ((width, app.HORIZONTAL_BREAKPOINTS or []), (height, app.VERTICAL_BREAKPOINTS or [])):
            worn = [name for least, name in limits if length >= least][-1:]
            self.update_classes({name: name in worn for _, name in limits}, update=False)

    def on_resize(self) -> None:
        """Show the card of the tour if there is room for it now."""
        self.console.show_tour(self)

    def compose_body(self) -> ComposeResult:
        """Everything between the tabs and the footer."""
        raise NotImplementedError

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show a new state; ``change`` says what differs from the last one that was shown."""

    def on_mount(self) -> None:
        """Apply the user's keys."""
        self.footer.keymap = dict(self.console.keymap)
        self.show_notices(self.console.told)

    def on_screen_resume(self) -> None:
        """Bring a screen up to date that was not in view."""
        self.console.prepare = self.prepare_snapshot
        self.catch_up()
        self.console.show_tour(self)

    def prepare_snapshot(self, snapshot: Snapshot) -> None:
        """Do expensive work. Runs in the feed's thread: it must not touch a widget."""

    def catch_up(self) -> None:
        """Show the present state if it differs from the last one shown."""
        from helix_tui.core.snapshot.snapshot import Change

        self.receive(self.console.snapshot, Change(everything=True))

    def receive(self, snapshot: Snapshot, change: Change) -> None:
        """Take an update from the app, once per snapshot; ignored before the widgets are mounted."""
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
        """Whether a failure notice is shown instead of it."""
        return self._failure is not None

    @property
    def composed_nothing(self) -> bool:
        """Whether its widgets were never mounted."""
        return not self.footer.is_attached

    def show_failure(self, log: str, times: int) -> None:
        """Show a notice instead of everything but the tabs; nothing else of this screen is used any more."""
        if self._failure is not None:
            return
        self._failure = failure = Failure(id="failure")
        self.hide_all_but_failure()
        key = names(self.console.keymap.get(TRY_AGAIN, BY_ID[TRY_AGAIN].keys))[0]
        failure.tell(self.NAME.capitalize() or "The screen", times, log, key)
        self.mount(failure)

    def hide_all_but_failure(self) -> None:
        """Hide every widget but the notice and the tabs, including those added since."""
        kept = (self._failure, self.tabs)
        for child in self.children:
            # Textual's own are toasts, tooltips and scrollbars; only what showed is noted, so that `hide_failure` shows
            # no more
            if child not in kept and not child.has_class("-textual-system") and child.display:
                child.display = False
                self._hidden.append(child)

    def hide_failure(self) -> None:
        """Show the screen again."""
        failure, self._failure = self._failure, None
        if failure is not None:
            failure.remove()
        for child in self._hidden:
            # the stylesheet decides again: at this width some may have to stay hidden
            child.styles.clear_rule("display")
        self._hidden = []
        self._shown = (-1, (), ())
        self.refresh(layout=True)
        self.catch_up()

    def tick(self) -> None:
        """Time has passed: refresh what shows an age."""
        self.show_pulse()
        now = self.console.now()
        if now - self._aged >= AGES_EVERY:
            self._aged = now
            self.show_ages()

    def show_ages(self) -> None:
        """Refresh the ages in the detail panes."""

    def show_pulse(self) -> None:
        """Update the top line."""
        console = self.console
        # an attempt's result may wait for a person too, and attempts are read after the queue
        looked = console.has_looked or console.status_summary is not None
        whole = looked and console.snapshot.attempts_read
        facts = pulse_facts(
            console.snapshot,
            console.needs if whole else None,
            console.now(),
            memory=console.memory_health,
            status_summary=console.status_summary,
        )
        self.pulse.show(facts)
        self.notices.show(notice_forms(console.snapshot))

    @on(events.ScreenResume)
    def show_present_notices(self) -> None:
        """Show what is said now; while out of view it was not told."""
        self.show_notices(self.console.told)

    def show_notices(self, told: Sequence[PassingNotice]) -> None:
        """Show these notices, and no others."""
        self.told.show(told)

    def show_keys(self, key_ids: Sequence[str], note: str = "") -> None:
        """Show these keys in the footer; without a list, the keys that lead elsewhere."""
        self.footer.key_ids, self.footer.note = tuple(self.BARE_FOOTER if self.is_bare else key_ids), note

    def show_pending(self, beads: Collection[str], work: str) -> None:
        """Mark these beads as being changed; none if empty."""
        self.footer.work = work

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change of these beads has been made, and these are new; the snapshot knows of it later."""

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """The palette's commands for this screen: name, help, action."""
        return ()

    def focus_first(self) -> None:
        """Give the focus back to the first pane."""
        for pane in self.panes()[:1]:
            pane.focus(scroll_visible=False)

    def panes(self) -> Sequence[Widget]:
        """The panes that ``tab`` visits, in order."""
        return [widget for widget in self.focus_chain if widget.size.width]

    def action_next_pane(self) -> None:
        """Focus the next pane."""
        self._focus_pane(1)

    def action_previous_pane(self) -> None:
        """Focus the previous pane."""
        self._focus_pane(-1)

    def _focus_pane(self, step: int) -> None:
        panes = [*self.panes(), *(line for line in (self.pulse, self.notices) if line.can_focus)]
        if panes:
            # without a focused pane, a step either way leads to the first one
            here = panes.index(self.focused) if self.focused in panes else -step
            panes[(here + step) % len(panes)].focus(scroll_visible=False)

    def on_key_line_pressed(self, event: KeyLine.Pressed) -> None:
        """Press the key of the footer that was clicked."""
        event.stop()
        if self.focused is None:
            self.focus_first()
        # through the app: a key that a screen sends does not reach the screen itself
        self.app.call_later(self.app.simulate_key, event.name)

    async def take_letter(self, letter: str, does: str, act: Callable[[], Awaitable[object]]) -> bool:
        """Take a pressed key as the beginning of a text, as Ask does, or leave it a key.

        Args:
            letter: the key as people write it.
            does: the id of the key here; empty if it is not a key.
            act: presses that key.
        """
        del letter, does, act
        return False

    async def action_step_back(self) -> None:
        """What esc does before it goes one step back."""
        await self.action_back()

    async def action_back(self) -> None:
        """Go one step back: close a screen that covers another one; never the last one."""
        self.dismiss()
