"""The error barrier, which keeps an unexpected exception from ending the console.

Textual 8.2.8 ends the app on any exception, and ends the message loop of the widget that raised it: that
widget never handles anything again. Three functions are replaced for that, once, in `install`,
because no hook exists there and Textual's own widgets (Input, OptionList) need it too:

* the dispatch of every message (`helix_tui.textual_inside`): an exception in it does not end the loop, and input that
  came too late for the screen it was meant for is not handled;
* ``call_next``, whose callbacks after one that raises are dropped;
* the timers of ``set_timer``, which never fire if the thread was held up just as they began: a frame or a new size that
  waits for one is never drawn, nor any after it.

Everything else (timers, workers, layout, rendering, idle handlers) comes to ``HelixApp.failed``. Which part of the
console raised it is read from the trace: the innermost widget that a frame of it belongs to. Apps without a `Barrier`
are left as Textual has them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from traceback import format_exception, walk_tb
from typing import Any, cast
from weakref import WeakKeyDictionary, WeakSet, ref

from msgspec import Struct
from textual import events
from textual.app import App
from textual.css.query import NoMatches
from textual.message import Message
from textual.message_pump import CallbackError, MessagePump
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import MountError, Widget
from textual.widgets import Button, Input, OptionList
from textual.worker import WorkerFailed

from helix_tui.core.ground import log as logs
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.keymap import BY_ID, as_typed, shown
from helix_tui.screens.base import TRY_AGAIN, Dismissal, HelixScreen
from helix_tui.textual_inside import OpenedApp, dispatch, dispatch_through
from helix_tui.widgets.base.row_source import Gesture
from helix_tui.widgets.chrome.empty_state import DrawGuard

LIMIT = 3
"""How many failures of one part within `WINDOW_S` replace it until the user tries again."""
WINDOW_S = 60.0
QUIET_S = 10.0
"""Seconds in which the same failure is reported once; the log counts the others."""

RECENT: deque[str] = deque(maxlen=50)
"""The latest logged traces of this process; as text, because an exception keeps alive all that its frames hold.
The test suite checks it: any trace fails a test, unless the test planted it."""

# Textual's own, saved before `install` replaces it
_call_next = MessagePump.call_next
_make_timer = Timer.__init__

_OWNER = {"_dispatch_action": "namespace", "_get_renders": "widget"}
"""The local variable that holds the widget in a frame of Textual; elsewhere it is ``self``."""

_GIVEN: tuple[type[Message], ...] = (events.InputEvent, events.Paste)
"""Messages that come from the terminal."""

_TYPED = (events.Key, events.Paste)
"""Input that, unlike a click, does not depend on what was on screen at the time."""

_CAUSED: tuple[type[Message], ...] = (Gesture, Input.Submitted, OptionList.OptionSelected, Button.Pressed)
"""Messages that widgets make of it and that lead to another screen."""

_AIM = "_helix_aim"


class _Source(Struct, frozen=True):
    """Where an exception came from, as far as its trace shows."""

    screen: Screen[Any] | None
    drawn: Widget | None
    """The widget that could not be drawn, if any."""
    broken: bool
    """Whether the screen could not be composed or laid out, so that it shows nothing."""
    place: str
    """File and line of the innermost frame, to recognise the same failure."""


class GuardedApp(OpenedApp):
    """What the barrier needs from the app that it guards."""

    barrier: Barrier
    keymap: dict[str, str]
    """The user's keymap: key id -> keys."""
    leaving = False
    """Whether it quits."""
    opened: WeakSet[Any]
    """Every screen that has been opened and still exists."""

    def say(self, text: str, severity: Any = "information") -> None:
        """Show a notice."""
        raise NotImplementedError

    def end_by_defect(self, line: str) -> None:
        """Quit with one line on the restored terminal."""
        raise NotImplementedError


class Barrier:
    """Catches exceptions of an app's parts; closes or replaces the part and reports it."""

    def __init__(self, app: GuardedApp) -> None:
        self._app = app
        self._failures: WeakKeyDictionary[Screen[Any], deque[float]] = WeakKeyDictionary()
        self._guards: WeakKeyDictionary[Widget, DrawGuard] = WeakKeyDictionary()
        self._logged_lately: Recent[str, tuple[float, int]] = Recent(200)
        """When each failure was last logged, by its place; after `forget` it is logged in full again."""
        self._without_notice = 0
        """How often even the notice of a failed screen could not be laid out."""
        self.count = 0
        """How many exceptions were caught."""

    def caught(self, error: Exception, pump: MessagePump | None = None, message: Message | None = None) -> None:
        """Handle an exception. Runs in the app's thread; raises nothing.

        Args:
            error: what was raised.
            pump: the handler of the message, if known.
            message: the message.
        """
        # the trace of Textual's wrapper has frames of Textual only
        error = _bare(error)
        source = _source_of(error, pump)
        left = self._app.leaving or (isinstance(source.screen, Dismissal) and source.screen.has_left)
        if left and isinstance(error, MountError | NoMatches):
            return  # the console or the sheet was left between a key and its effect: nothing is lost
        what = _task(message, source)
        quiet = self._log(error, source, what)
        # there is no screen for a notice: print one line on the terminal
        if not self._can_draw():
            if not self._app.leaving:
                self._end(error)
            return
        try:
            replaced = self._contain(source)
            # not even the notice of a failed screen can be laid out: nothing would be visible
            if self._without_notice >= LIMIT:
                self._end(error)
            if not quiet:
                self._app.say(f"{what} ({_name(error)}){replaced}; trace in {logs.shown_file()}", "error")
        except Exception as second:  # noqa: BLE001 - raising here would end the console after all
            logs.logger("barrier").error("the failure itself could not be handled", exc_info=second)

    @contextmanager
    def guard(self, screen: Screen[Any]) -> Iterator[None]:
        """Run one screen's code on behalf of the app, so that a failure does not affect the other screens."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - caught() logs it
            self.caught(error, screen)

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Run code in one of our threads, which must survive a failure."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - caught() logs it
            self.report(error)

    def report(self, error: Exception) -> None:
        """Handle an exception of another thread; while the app is not running it is only logged."""
        try:
            # through its messages, since a callback of the loop has no active app; a closed loop raises RuntimeError
            if self._app.is_running and self._app.call_later(self.caught, error):
                return
        except RuntimeError:
            pass
        logs.logger("barrier").error("a thread failed", exc_info=error)

    def try_again(self) -> None:
        """Forget all failures and show every part again."""
        self._failures.clear()
        self._logged_lately.clear()
        self._without_notice = 0
        for widget, guard in list(self._guards.items()):
            guard.failures = 0
            widget.refresh()
        for screen in list(self._app.opened):
            if isinstance(screen, HelixScreen) and screen.failed and not screen.has_left:
                self._remake(screen) if screen.composed_nothing else screen.hide_failure()

    def watch_threads(self) -> None:
        """Watch for threads that end with an exception, and for failed tasks that are not awaited."""

        def of_thread(args: threading.ExceptHookArgs) -> None:
            if isinstance(args.exc_value, Exception):
                self.report(args.exc_value)

        def of_loop(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, Exception):
                self.report(error)

        self._hook, threading.excepthook = threading.excepthook, of_thread
        asyncio.get_running_loop().set_exception_handler(of_loop)

    def leave_threads(self) -> None:
        """Undo `watch_threads`."""
        threading.excepthook = self._hook

    # for a console that quits before `watch_threads` has been called
    _hook = staticmethod(threading.excepthook)

    # --- reactions ---------------------------------------------------------------------------------------

    def _contain(self, source: _Source) -> str:
        """Close or replace what failed; says so in a few words.

        Requests for a new layout are made later: Textual drops those made while a layout fails.
        """
        screen = source.screen
        if source.drawn is not None and not isinstance(source.drawn, Screen):
            self._guard_drawing(source.drawn)
        # its notice is shown already: what is left beside it cannot be laid out
        if isinstance(screen, HelixScreen) and screen.failed and source.broken:
            self._without_notice += 1
            self._app.call_later(screen.hide_all_but_failure)
            return ""
        # one of Textual's own screens can be closed if it covers another, but has no failure notice
        if screen is None or not isinstance(screen, HelixScreen) or screen.failed:
            if screen is not None and screen in self._app.screen_stack[1:]:
                screen.dismiss()
                return "; closed"
            return ""
        # the screen below still works, and the user can open this one again
        if screen.is_modal or (source.broken and screen in self._app.screen_stack[1:]):
            screen.dismiss()
            return "; closed"
        if source.drawn is not None and not isinstance(source.drawn, Screen):
            self._app.call_later(screen.refresh)
            return ""
        # after one failed handler the screen still works: replace it only if it fails repeatedly
        times = self._failures.setdefault(screen, deque(maxlen=LIMIT))
        times.append(time.monotonic())
        often = len(times) == LIMIT and times[-1] - times[0] <= WINDOW_S
        if often or source.broken:
            self._app.call_later(screen.show_failure, logs.shown_file(), len(times))
            return "; the screen is replaced"
        return ""

    def _guard_drawing(self, widget: Widget) -> None:
        guard = self._guards.get(widget)
        if guard is None:
            key = shown(BY_ID[TRY_AGAIN], self._app.keymap)
            guard = self._guards[widget] = DrawGuard(widget, LIMIT, self._drawing_failed, key)
            # on this widget only: others of its class are drawn as before
            widget.render_lines = guard  # type: ignore[method-assign]
        guard.failures += 1

    def _drawing_failed(self, widget: Widget, error: Exception) -> None:
        """A guarded widget failed again; its guard has drawn a message in its place."""
        self._log(error, _source_of(error, widget), f"could not draw {_title(widget)}")

    def _remake(self, screen: HelixScreen) -> None:
        """Replace a screen whose widgets were never mounted."""
        if self._app.screen is screen and len(self._app.screen_stack) == 1:
            self._app.call_later(self._remake_mode, self._app.current_mode)

    async def _remake_mode(self, mode: str) -> None:
        """Make the first screen of a mode anew, from another mode: Textual replaces no mode that is in view."""
        app, make = self._app, self._app.MODES[mode]
        await app.switch_mode(next(other for other in app.MODES if other != mode))
        await app.remove_mode(mode)
        app.add_mode(mode, cast(Any, make))
        await app.switch_mode(mode)

    def _can_draw(self) -> bool:
        return self._app.is_running and bool(self._app.screen_stack)

    def _end(self, error: Exception) -> None:
        """Nothing can be drawn any more: restore the terminal and print one line."""
        self._app.end_by_defect(f"the console cannot draw: {_name(error)}; trace in {logs.shown_file()}")

    def _log(self, error: Exception, source: _Source, what: str) -> bool:
        """Log it; the same failure in full only from time to time. True if it was reported a moment ago."""
        self.count += 1
        # a failing timer fails each time: the same trace would fill the log and cover the screen with notices
        key = f"{type(error).__name__} {source.place} {type(source.screen).__name__}"
        now = time.monotonic()
        since, left_out = self._logged_lately.get(key, (-QUIET_S, 0))
        quiet = now - since < QUIET_S
        log = logs.logger("barrier")
        if quiet:
            log.debug("%s, once more", what)
            self._logged_lately[key] = (since, left_out + 1)
            return True
        more = f" (and {counted(left_out, 'time')} since it was last logged)" if left_out else ""
        log.error("%s%s", what, more, exc_info=error)
        RECENT.append("".join(format_exception(error)))
        self._logged_lately[key] = (now, 0)
        return False


# --- reading a trace --------------------------------------------------------------------------------------


def _bare(error: Exception) -> Exception:
    """The original exception, unwrapped from Textual's."""
    if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
        return error.error
    if isinstance(error, CallbackError) and isinstance(error.__context__, Exception):
        return error.__context__
    return error


def _source_of(error: Exception, pump: MessagePump | None) -> _Source:
    part: Widget | None = pump if isinstance(pump, Widget) else None
    drawn: Widget | None = None
    broken, place = False, ""
    # the outermost frame comes first, so the last match is the innermost
    for frame, line in walk_tb(error.__traceback__):
        name = frame.f_code.co_name
        place = f"{frame.f_code.co_filename}:{line}"
        owner = frame.f_locals.get(_OWNER.get(name, "self"))
        if isinstance(owner, Widget):
            part = owner
            if name in ("render_lines", "_get_renders"):
                drawn = owner
        broken = broken or (name in ("_compose", "_refresh_layout") and isinstance(owner, Screen))
    return _Source(_screen_of(drawn or part), drawn, broken and drawn is None, place)


def _screen_of(widget: Widget | None) -> Screen[Any] | None:
    return next((above for above in widget.ancestors_with_self if isinstance(above, Screen)), None) if widget else None


def _task(message: Message | None, source: _Source) -> str:
    """What could not be done, in the user's words."""
    where = f" on {_title(source.screen)}" if source.screen is not None else ""
    if source.drawn is not None:
        return f"could not draw {_title(source.drawn)}{where}"
    if source.broken:
        return f"could not show {_title(source.screen)}"
    if isinstance(message, events.Key):
        return f"could not handle the key {clean_line(as_typed(message.key), 20)}{where}"
    if isinstance(message, events.MouseEvent):
        return f"could not handle the mouse{where}"
    if isinstance(message, events.Compose | events.Mount):
        return f"could not open {_title(source.screen)}"
    if message is None or isinstance(message, events.Callback | events.Timer):
        return f"could not update{where or ' the console'}"
    return f"could not handle {type(message).__name__}{where}"


def _title(widget: Widget | None) -> str:
    if isinstance(widget, HelixScreen) and widget.NAME:
        return widget.NAME.capitalize()
    if widget is None:
        return "the console"
    if isinstance(widget, Screen):
        return type(widget).__name__.removesuffix("Screen").removesuffix("Sheet") or "the screen"
    return clean_line(widget.id or type(widget).__name__, 40)


def _name(error: Exception) -> str:
    from helix_tui.core.ground.log import scrubbed

    return clean_line(scrubbed(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__), 80)


# --- installation ----------------------------------------------------------------------------------------


def _barrier_of(pump: MessagePump) -> Barrier | None:
    """The barrier of the app that a pump belongs to."""
    try:
        app = pump.app
    except RuntimeError:  # it belongs to none
        return None
    return app.barrier if isinstance(app, GuardedApp) else None


async def dispatch_message(pump: MessagePump, message: Message) -> None:
    """Dispatch a message, unless it is input for a screen that is no longer in view; survive its handlers."""
    # before looking for a barrier: even without one, input for a closed screen must do nothing
    if await _is_stale(pump, message):
        return
    barrier = _barrier_of(pump)
    if barrier is None:
        await dispatch(pump, message)
        return
    try:
        with _not_cancelled():
            await dispatch(pump, message)
    except Exception as error:  # noqa: BLE001 - caught() logs it
        barrier.caught(error, pump, message)


class WaitCancelled(Exception):
    """What a handler awaited was cancelled; the handler itself was not."""


@contextmanager
def _not_cancelled() -> Iterator[None]:
    """Turn a cancelled await into an ordinary exception: otherwise it would end the waiting message loop."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        # the task itself is being cancelled: what it awaited has not failed
        if task is None or task.cancelling():
            raise
        raise WaitCancelled(str(error) or "what it waited for was cancelled") from error


def call_next(pump: MessagePump, callback: Callable[..., Any], *given: Any, **options: Any) -> None:
    """Call a function at the end of the present message, whatever others do that wait for it too."""
    _call_next(pump, partial(_survive, pump, callback), *given, **options)


async def _survive(pump: MessagePump, callback: Callable[..., Any], *given: Any, **options: Any) -> None:
    barrier = _barrier_of(pump)
    try:
        with _not_cancelled():
            done = callback(*given, **options)
            if isawaitable(done):
                await done
    except Exception as error:
        if barrier is None:
            raise
        barrier.caught(error, pump)


def make_timer(timer: Timer, *given: Any, repeat: int | None = None, skip: bool = True, **options: Any) -> None:
    """Make a timer; one that fires once does so however late: Textual skips what a timer has missed."""
    _make_timer(timer, *given, repeat=repeat, skip=skip and repeat != 0, **options)


def install() -> None:
    """Install the barrier."""
    dispatch_through(dispatch_message)
    MessagePump.call_next = call_next  # type: ignore[method-assign, assignment]
    Timer.__init__ = make_timer  # type: ignore[method-assign, assignment]


# --- input that came too late ----------------------------------------------------------------------------------


async def _is_stale(pump: MessagePump, message: Message) -> bool:
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
    given = isinstance(message, _GIVEN)
    if not given and not isinstance(message, _CAUSED):
        return False
    if getattr(pump.app, "leaving", False):
        return True  # the console is quitting: a screen opened now would change what Textual is closing
    if isinstance(pump, App):
        return not pump.screen_stack or (given and await _is_stale_for_app(pump, message))
    # the terminal has shrunk since: there is no widget where it was clicked
    if isinstance(message, events.Click) and not pump.app.size.contains(int(message.screen_x), int(message.screen_y)):
        return True
    if not isinstance(pump, Widget) or _in_view(pump):
        return False
    if _went_elsewhere(pump.app, message):
        pump.app.post_message(message)
    return True


async def _is_stale_for_app(app: App[Any], message: Message) -> bool:
    """Input comes to the app twice: from the terminal, when its screen is noted, and from a widget."""
    if not message.is_forwarded:
        _aim_at(app, message)
        return False
    screen, _ = getattr(message, _AIM, (None, ""))
    if screen is None or screen() is app.screen_stack[-1]:
        return False
    if _went_elsewhere(app, message):
        await _hand_on(app, message)
    return True


def _aim_at(app: App[Any], message: Message) -> None:
    # on the message itself, which Textual passes from app to widget; weakly, so that it keeps no closed screen alive
    setattr(message, _AIM, (ref(app.screen_stack[-1]), app.current_mode))


def _went_elsewhere(app: App[Any], message: Message) -> bool:
    """Whether this was typed, and a key before it went to another of the screens with a number."""
    _, mode = getattr(message, _AIM, (None, app.current_mode))
    return isinstance(message, _TYPED) and mode != app.current_mode


async def _hand_on(app: App[Any], message: Message) -> None:
    """Pass what was typed to the screen in view, ahead of later input from the terminal."""
    # another event, since Textual forwards none a second time
    typed = events.Paste(message.text) if isinstance(message, events.Paste) else _same_key(message)
    _aim_at(app, typed)
    await app.on_event(typed)


def _same_key(message: Message) -> events.Key:
    key = cast(events.Key, message)
    return events.Key(key.key, key.character)


def _in_view(node: Widget) -> bool:
    """Whether a widget belongs to the screen on top."""
    screen = _screen_of(node)
    return screen is None or screen.is_active
