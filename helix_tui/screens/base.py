"""What every screen of the console has: status bar, tabs, notices, body, footer, and how news reaches it.

A screen is dismissed once, however often that is asked for, and gets only the input that is meant for it. The command
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
from helix_tui.screens.layout import BREAKPOINTS
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
"""What comes from the terminal."""

TYPED = (events.Key, events.Paste)
"""What does not depend on the picture that it was typed at, as a click does."""

CAUSED: tuple[type[Message], ...] = (Gesture, Input.Submitted, OptionList.OptionSelected, Button.Pressed)
"""What widgets make of it, where that leads somewhere else."""

_AIM = "_helix_aim"


def is_stale(pump: MessagePump, message: Message) -> bool:
    """Whether a message is input that is not for this pump, for a screen no longer in view or one gone to, or a size
    that the terminal no longer has.

    What was typed ahead of the screen gone to is handed on to it by way of the app, in its order. Of two sizes that
    wait at a screen of Textual 8.2.8 each is laid out and told to the screen once more, for ever.

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
        return True  # the console leaves: a screen opened now would change what Textual is closing
    if isinstance(pump, App):
        return not pump.screen_stack or (given and _is_stale_for_app(pump, message))
    # the terminal has shrunk since: Textual's palette asks which widget lies there, and none does
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
    # on the message itself, which Textual hands on from app to widget; weakly, so that it keeps no screen that has left
    setattr(message, _AIM, (ref(app.screen_stack[-1]), app.current_mode))


def _went_elsewhere(app: App[Any], message: Message) -> bool:
    """Whether this was typed, and a key before it went to another of the screens with a number."""
    _, mode = getattr(message, _AIM, (None, app.current_mode))
    return isinstance(message, TYPED) and mode != app.current_mode


def _hand_on(app: App[Any], message: Message) -> None:
    """Give what was typed to the screen in view, ahead of whatever the terminal sends after it."""
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

    @property
    def has_left(self) -> bool:
        """Whether it lies on no stack any more: what comes for it now comes too late."""
        return not any(self in stack for stack in self.app._screen_stacks.values())

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, also from under another screen; nothing where it has left, or is the first of its stack.

        The app waits for its end; what is returned is there already, so that no handler of the screen can
        wait for the end of the screen, which waits for its handlers.
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
        """What Textual's ``pop_screen`` does for the screen on top, for one that another lies on."""
        if self._result_callbacks:
            self._result_callbacks[-1](result)
        stack.remove(self)
        self._pop_result_callback()
        AwaitComplete(self.app._replace_screen(self)).call_next(self.app)


KEY_AT = 30
"""Cells before the key of a command, in the palette."""


class Commands(SystemCommandsProvider):
    """What the palette offers; a name with brackets in it is no markup."""

    async def discover(self) -> Hits:
        """All commands, before anything is typed."""
        keys = self._keys()
        async for hit in super().discover():
            name = hit.text or ""
            yield replace(cast(DiscoveryHit, hit), display=_with_key(Content(name), keys.get(name, "")))

    def _keys(self) -> dict[str, str]:
        """Per command the key that does it too."""
        found: dict[str, str] = getattr(self.app, "command_keys", lambda screen: {})(self.screen)
        return found

    async def search(self, query: str) -> Hits:
        """Commands that match what is typed, with the letters that do."""
        matcher, keys = self.matcher(query), self._keys()
        for name, help_text, callback, _ in self.app.get_system_commands(self.screen):
            score, offsets = matcher.fuzzy_search.match(query, name)
            if score:
                shown = Content(name)
                for offset in offsets:
                    shown = shown.stylize(matcher.match_style, offset, offset + 1)
                yield Hit(score, _with_key(shown, keys.get(name, "")), callback, text=name, help=help_text)


def _with_key(name: Content, key: str) -> Content:
    """A command, and behind it the key that does it too."""
    blank = " " * max(2, KEY_AT - name.cell_length)
    return name + Content(blank) + Content.styled(key, "bold") if key else name


class _Offers(CommandList):
    """Textual's list of commands; a click on one that is gone since it was drawn chooses nothing."""

    async def _on_click(self, event: events.Click) -> None:
        option = event.style.meta.get("option")
        if option is not None and option >= self.option_count:
            event.prevent_default()


class HelixPalette(CommandPalette, Dismissal):
    """Textual's command palette, closed once; nothing looks for its widgets after that."""

    def compose(self) -> ComposeResult:
        """Textual's own widgets, with our list in place of its."""
        for widget in super().compose():
            yield _Offers() if isinstance(widget, CommandList) else widget

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave, and stop what gathers commands and what waits to say that there are none."""
        self._cancel_gather_commands()
        self._stop_no_matches_countdown()
        return super().dismiss(result)

    @on(Input.Changed)
    def ignore_when_left(self, event: Input.Changed) -> None:
        """Typed before it left, told after: nothing is gathered any more."""
        if self.has_left:
            event.prevent_default()

    def on_mount(self, event: events.Mount) -> None:
        """Closed before it stood: there is nothing to gather."""
        if self.has_left:
            event.prevent_default()

    def _action_command_list(self, action: str) -> None:
        """Move in the list once it is laid out: Textual 8.2.8 pages through lines not made yet."""
        if self.query_one(OptionList).scrollable_content_region:
            super()._action_command_list(action)


_MOST_GROUNDS = 1_024
"""Pairs of colours that are kept, as many as in Textual."""


@lru_cache(_MOST_GROUNDS)
def _grounds(behind: Color, own: Color) -> tuple[Style, Style]:
    return Style(background=behind + own), Style(background=behind)


def inner_and_outer(_: StylesCache, behind: Color, own: Color) -> tuple[Style, Style]:
    """Grounds inside and outside a border, whichever widget asks."""
    return _grounds(behind, own)


class UnusedSignal(Signal[Any]):
    """A signal that keeps no subscriber: no text is selected by mouse here, and a subscriber would never be let go."""

    def subscribe(self, *_: Any, **__: Any) -> None:
        """Forget it."""


def let_widgets_go() -> None:
    """Have Textual keep nothing of widgets that are gone, from now on."""
    StylesCache.get_inner_outer = inner_and_outer  # type: ignore[method-assign, assignment]


let_widgets_go()

AGES_EVERY = 10 * NS
"""How often the ages in what is read are written again; those in lists go on every second."""

TRY_AGAIN = "app.try-again"
"""The key that shows again what failed."""


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
    is_demo: bool
    """The project is the demo's: what was started from here ends with it."""
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


def breakpoint_of(app: App[Any]) -> str:
    """The layout that an app's screens take at its present width, without its dash."""
    limits = app.HORIZONTAL_BREAKPOINTS or BREAKPOINTS
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
        # no snapshot has this generation, so the first one is shown whatever it is
        self._shown: tuple[int, tuple[Need, ...], tuple[Need, ...]] = (-1, (), ())
        self._aged = 0
        self._failure: Failure | None = None
        self._hidden: list[Widget] = []

    @property
    def console(self) -> Console:
        """The app, as far as screens know it."""
        return cast(Console, self.app)

    @property
    def breakpoint(self) -> str:
        """``tiny``, ``strip``, ``side``, ``stack``, ``split`` or ``wide``.

        By width, not by class: a screen that is switched to gets its classes after its first resize.
        """
        return breakpoint_of(self.app)

    def compose(self) -> ComposeResult:
        """The whole, in the layout of the terminal, so that no style is worked out twice."""
        self.take_breakpoint()
        yield self.pulse
        yield self.tabs
        yield self.notices
        yield from self.compose_body()
        yield self.footer
        yield TooSmall()

    def take_breakpoint(self) -> None:
        """Take the class of the present width, as Textual does on every later resize."""
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
            # the stylesheet decides again: at this width some of them may have to stay hidden
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
        # what an attempt left waits for somebody too, and attempts are read after the queue
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
        """Name these keys in the footer; while there is no list, those that lead on."""
        bare = bool(self.BARE_CLASS) and self.has_class(self.BARE_CLASS)
        self.footer.key_ids, self.footer.note = tuple(self.BARE_FOOTER if bare else key_ids), note

    def show_pending(self, beads: Collection[str], work: str) -> None:
        """Say that beads are being changed; nothing is, where there are none."""
        self.footer.work = work

    def after_change(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change of these beads has been made, and these are new; the snapshot knows of it later."""

    def commands(self) -> Iterable[tuple[str, str, Callable[[], object]]]:
        """What the palette offers on this screen only: name, help, what it does."""
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
            # from no pane a step either way leads to the first one
            here = panes.index(self.focused) if self.focused in panes else -step
            panes[(here + step) % len(panes)].focus(scroll_visible=False)

    def on_key_line_pressed(self, event: KeyLine.Pressed) -> None:
        """A click on a key of the footer is that key."""
        event.stop()
        if self.focused is None:
            self.focus_first()
        # from the app: a key that a screen sends does not come as far as the screen itself
        self.app.call_later(self.app.simulate_key, event.name)

    async def take_letter(self, letter: str, does: str, act: Callable[[], Awaitable[object]]) -> bool:
        """Take a pressed key as the begin of a text, as Ask does, or leave it a key.

        Args:
            letter: the key as people write it.
            does: the id of the key that it is here; empty where it is none.
            act: presses that key.
        """
        del letter, does, act
        return False

    async def action_step_back(self) -> None:
        """What esc does first, before it is one step back."""
        await self.action_back()

    async def action_back(self) -> None:
        """One step back: leave a screen that lies on another one; never the last one."""
        self.dismiss()
