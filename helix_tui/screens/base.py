"""What every screen of the console has: status bar, tabs, notices, body, footer, and how it is updated.

A screen is dismissed once, however often that is requested, and gets only input that is meant for it. The command
palette is one of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast
from weakref import ref

from textual import events, on
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.color import Color
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits
from textual.content import Content
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.signal import Signal
from textual.style import Style
from textual.system_commands import SystemCommandsProvider
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList

from helix_tui.core.ground.time import NS
from helix_tui.keymap import BY_ID, bindings, names
from helix_tui.screens import TABS
from helix_tui.screens.layout import BREAKPOINTS, NARROW
from helix_tui.screens.status_bar_model import notice_forms, pulse_facts
from helix_tui.widgets.base.line import Line, SpanLine, fit
from helix_tui.widgets.base.row_source import Gesture
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

GIVEN: tuple[type[Message], ...] = (events.InputEvent, events.Paste)
"""Messages that come from the terminal."""

TYPED = (events.Key, events.Paste)
"""Input that, unlike a click, does not depend on what was on screen at the time."""

CAUSED: tuple[type[Message], ...] = (Gesture, Input.Submitted, OptionList.OptionSelected, Button.Pressed)
"""Messages that widgets make of it and that lead to another screen."""

_AIM = "_helix_aim"


def is_stale(pump: MessagePump, message: Message) -> bool:
    """Whether a message is input not meant for this pump: for a screen no longer in view, for the next one, or a size
    that the terminal no longer has.

    What was typed ahead for the next screen is passed on to it through the app, in order. Of two sizes that
    wait at a screen, Textual 8.2.8 lays out each and posts it to the screen again, forever.

    Args:
        pump: the app, screen or widget that is about to handle it.
        message: any message.
    """
    if isinstance(message, events.Resize):
        return isinstance(pump, Screen) and message.size != pump.app.size
    given = isinstance(message, GIVEN)
    if not given and not isinstance(message, CAUSED):
        return False
    if pump.app._exit:
        return True  # the console is quitting: a screen opened now would change what Textual is closing
    if isinstance(pump, App):
        return not pump.screen_stack or (given and _is_stale_for_app(pump, message))
    # the terminal has shrunk since: Textual's palette asks which widget is there, and there is none
    if isinstance(message, events.Click) and not pump.app.size.contains(int(message.screen_x), int(message.screen_y)):
        return True
    if not isinstance(pump, Widget) or in_view(pump):
        return False
    if _went_elsewhere(pump.app, message):
        pump.app.post_message(message)
    return True


def _is_stale_for_app(app: App[Any], message: Message) -> bool:
    """Input comes to the app twice: from the terminal, when its screen is noted, and from a widget."""
    if not message.is_forwarded:
        _aim_at(app, message)
        return False
    screen, _ = getattr(message, _AIM, (None, ""))
    if screen is None or screen() is app.screen_stack[-1]:
        return False
    if _went_elsewhere(app, message):
        _hand_on(app, message)
    return True


def _aim_at(app: App[Any], message: Message) -> None:
    # on the message itself, which Textual passes from app to widget; weakly, so that it keeps no closed screen alive
    setattr(message, _AIM, (ref(app.screen_stack[-1]), app.current_mode))


def _went_elsewhere(app: App[Any], message: Message) -> bool:
    """Whether this was typed, and a key before it went to another of the screens with a number."""
    _, mode = getattr(message, _AIM, (None, app.current_mode))
    return isinstance(message, TYPED) and mode != app.current_mode


def _hand_on(app: App[Any], message: Message) -> None:
    """Pass what was typed to the screen in view, ahead of later input from the terminal."""
    # another event, since Textual forwards none a second time
    typed = events.Paste(message.text) if isinstance(message, events.Paste) else _same_key(message)
    _aim_at(app, typed)
    (app.focused or app.screen)._forward_event(typed)


def _same_key(message: Message) -> events.Key:
    key = cast(events.Key, message)
    return events.Key(key.key, key.character)


def in_view(node: Widget) -> bool:
    """Whether a widget belongs to the screen on top."""
    above: MessagePump | None = node
    while above is not None and not isinstance(above, Screen):
        above = above._parent
    return above is None or above.is_active


class Dismissal(Screen[Any]):
    """A screen whose dismissal can be asked for any number of times, from anywhere, and happens once."""

    def _on_screen_resume(self, event: events.ScreenResume) -> None:
        """Keep the styles: they are computed for a widget that is mounted, for a class that changes, and for all
        once the theme has changed (`HelixApp.refresh_css`)."""
        event.refresh_styles = False

    @property
    def has_left(self) -> bool:
        """Whether it is on no stack any more, so that messages for it come too late."""
        return not any(self in stack for stack in self.app._screen_stacks.values())

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, even from under another screen; does nothing if it has left, or is the first of its stack.

        The app waits for it to end; the returned awaitable is already done, so that no handler of the screen can
        wait for the screen, which itself waits for its handlers.
        """
        app = self.app
        if app.screen is self and len(app.screen_stack) > 1:
            super().dismiss(result)
        else:
            for stack in app._screen_stacks.values():
                if self in stack[1:]:
                    self._leave_from_below(stack, result)
        return cast(AwaitComplete, AwaitComplete.nothing())  # type: ignore[no-untyped-call]

    def _leave_from_below(self, stack: list[Screen[Any]], result: Any) -> None:
        """Do for a covered screen what Textual's ``pop_screen`` does for the top one."""
        if self._result_callbacks:
            self._result_callbacks[-1](result)
        stack.remove(self)
        self._pop_result_callback()
        AwaitComplete(self.app._replace_screen(self)).call_next(self.app)


KEY_AT = 30
"""Cells before the key of a command, in the palette."""


class Commands(SystemCommandsProvider):
    """The palette's commands; brackets in a name are not markup."""

    async def discover(self) -> Hits:
        """All commands, shown before anything is typed."""
        keys = self._keys()
        async for hit in super().discover():
            name = hit.text or ""
            yield replace(cast(DiscoveryHit, hit), display=_with_key(Content(name), keys.get(name, "")))

    def _keys(self) -> dict[str, str]:
        """Command -> the key that does the same."""
        found: dict[str, str] = getattr(self.app, "command_keys", lambda screen: {})(self.screen)
        return found

    async def search(self, query: str) -> Hits:
        """Commands that match the typed text, with the matching letters."""
        matcher, keys = self.matcher(query), self._keys()
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            score, offsets = matcher.fuzzy_search.match(query, name)
            if score:
                shown = Content(name)
                for offset in offsets:
                    shown = shown.stylize(matcher.match_style, offset, offset + 1)
                yield Hit(score, _with_key(shown, keys.get(name, "")), callback, text=name, help=help_text)


def _with_key(name: Content, key: str) -> Content:
    """A command, followed by its key."""
    blank = " " * max(2, KEY_AT - name.cell_length)
    return name + Content(blank) + Content.styled(key, "bold") if key else name


class _Offers(CommandList):
    """Textual's list of commands; a click on one that has disappeared since it was drawn chooses nothing."""

    async def _on_click(self, event: events.Click) -> None:
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class HelixPalette(CommandPalette, Dismissal):
    """Textual's command palette, closed only once; nothing looks for its widgets after that."""

    def compose(self) -> ComposeResult:
        """Textual's own widgets, with this list instead of its own."""
        for widget in super().compose():
            yield _Offers() if isinstance(widget, CommandList) else widget

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, and stop gathering commands and the timer for "no matches"."""
        self._cancel_gather_commands()
        self._stop_no_matches_countdown()
        return super().dismiss(result)

    @on(Input.Changed)
    def ignore_when_left(self, event: Input.Changed) -> None:
        """Gather nothing for text that was typed before it closed but delivered after."""
        if self.has_left:
            event.prevent_default()

    def on_mount(self, event: events.Mount) -> None:
        """Closed before it was mounted: gather nothing."""
        if self.has_left:
            event.prevent_default()

    def _action_command_list(self, action: str) -> None:
        """Move in the list once it is laid out: Textual 8.2.8 pages through lines not made yet."""
        if self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)


_MAX_GROUNDS = 1_024
"""How many colour pairs are cached, as many as in Textual."""


@lru_cache(_MAX_GROUNDS)
def _grounds(behind: Color, own: Color) -> tuple[Style, Style]:
    return Style(background=behind + own), Style(background=behind)


def inner_and_outer(_: StylesCache, behind: Color, own: Color) -> tuple[Style, Style]:
    """Background colours inside and outside a border, whichever widget asks."""
    return _grounds(behind, own)


class UnusedSignal(Signal[Any]):
    """A signal without subscribers: text is not selected by mouse here, and subscribers would never be released."""

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Forget it."""


# else Textual keeps references to removed widgets
StylesCache.get_inner_outer = inner_and_outer  # type: ignore[method-assign, assignment]

AGES_EVERY = 10 * NS
"""How often ages in detail panes are refreshed; those in lists are refreshed every second."""

TRY_AGAIN = "app.try-again"
"""The key that retries what failed."""


class Console(Protocol):
    """What a screen may use of its app."""

    snapshot: Snapshot
    needs: tuple[Need, ...]
    snoozed: tuple[Need, ...]
    """What waits for a person and was snoozed."""
    keymap: dict[str, str]
    kept: Layout
    """The user's saved layout: columns, splits."""
    view_book: ViewBook
    """The saved views of the queue."""
    memory_health: str
    """The memory's health, in words for the status bar; empty without a memory."""
    prepare: Callable[[Snapshot], None] | None
    """Called with every snapshot in the feed's thread, before the screen gets it."""
    read_only: bool
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

    def say(self, text: str, severity: Any = "information") -> None: ...

    def show_tour(self, screen: Any) -> None: ...

    def push_screen(self, screen: Any) -> Any: ...

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
        said = next((form for form in forms if len(form) <= width), forms[-1])
        return fit([(said, "attention")], width)


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
        self.footer = KeyLine(self.FOOTER)
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
        self.take_breakpoint()
        yield self.pulse
        yield self.tabs
        yield self.notices
        yield from self.compose_body()
        yield self.footer
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

    def show_keys(self, key_ids: Sequence[str], note: str = "") -> None:
        """Show these keys in the footer; without a list, the keys that lead elsewhere."""
        self.footer.key_ids, self.footer.note = tuple(self.BARE_FOOTER if self.is_bare else key_ids), note

    @property
    def is_bare(self) -> bool:
        """Whether words are shown instead of its list."""
        return False

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
