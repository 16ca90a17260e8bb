"""Screens that leave once, and input that is meant for the screen it was given to.

Keys and clicks wait in the queues of widgets. When the first of them closes a sheet, or lays another one on
it, those behind it were meant for a screen that is no longer in view: they are dropped where they are
dispatched (`is_stale`, asked by `helix_tui.barrier`), and a screen that has left cannot be dismissed again.
Keys behind one that goes to another of the screens with a number were meant for that screen, and follow.

What Textual 8.2.8 keeps of widgets that are gone, let go.

Its cache of grounds is one for all widgets and has each widget's painted lines as a key, up to 1,024 of them, and
a text field is held by the screen that it was mounted on: a console that opened lists, panes and prompts grew by
half a megabyte with each round through its screens.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, cast
from weakref import ref

from textual import events, on
from textual._styles_cache import StylesCache
from textual.app import App, ComposeResult
from textual.await_complete import AwaitComplete
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

from helix_tui.widgets.base.row_source import Gesture

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
    setattr(message, _AIM, (ref(app.screen_stack[-1]), app.current_mode))


def _went_elsewhere(app: App[Any], message: Message) -> bool:
    """Whether this was typed, and a key before it went to another of the screens with a number."""
    _, mode = getattr(message, _AIM, (None, app.current_mode))
    return isinstance(message, TYPED) and mode != app.current_mode


def _hand_on(app: App[Any], message: Message) -> None:
    """Give what was typed to the screen in view, ahead of whatever the terminal sends after it."""
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
