"""Every private name of Textual that the console uses, and what it is used for.

Without a name only its fix is missing: each is looked for at start (`missing`), and a method that Textual no longer
calls does nothing. Nothing else in the program touches a private name of Textual (`tests/test_house.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from textual.app import App
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen


class PrivateName(Struct, frozen=True):
    """A name, and why it is used."""

    owner: type
    name: str
    without: str
    """What happens without it."""
    goes: str
    """When it is no longer needed."""

    @property
    def exists(self) -> bool:
        """Whether this Textual has it."""
        return hasattr(self.owner, self.name)


DISPATCH = PrivateName(
    MessagePump,
    "_dispatch_message",
    "an exception in a handler ends the loop of its widget, and keys typed ahead reach a screen that has closed",
    "Textual lets an app handle the errors of its handlers, and drops input for closed screens",
)
FAILING = PrivateName(
    App,
    "_handle_exception",
    "an exception in a timer, a worker or a layout ends the console",
    "Textual has a public method that is called with an unhandled exception",
)
BINDINGS = PrivateName(
    App,
    "_check_bindings",
    "a key that does nothing is not answered, and a letter does not begin a question on Ask",
    "Textual calls a public method for a key without a binding",
)
COVERED = PrivateName(
    App,
    "_background_screens",
    "a covered screen that changes draws the one above it again",
    "Textual draws no screen that an opaque one covers",
)
STYLED = PrivateName(
    App,
    "_css_update_count",
    "the first showing of a screen takes 40 ms more: all styles are computed twice",
    "Textual computes the styles of a new screen once",
)
FRAME = PrivateName(
    Screen,
    "_compositor",
    "no frame can be printed as text",
    "Textual exports a screen as text",
)
NAMES = (DISPATCH, FAILING, BINDINGS, COVERED, STYLED, FRAME)


def missing() -> list[PrivateName]:
    """The names that this Textual has no longer; those of instances only an app can tell."""
    return [name for name in NAMES if name not in (STYLED, FRAME) and not name.exists]


def frame_of(screen: Screen[Any]) -> Any:
    """What a screen shows, as Rich prints it."""
    return screen._compositor.render_update(full=True)


Around = Callable[[MessagePump, Message], Awaitable[None]]

_dispatch: Any = getattr(MessagePump, DISPATCH.name, None)


async def dispatch(pump: MessagePump, message: Message) -> None:
    """Dispatch a message as Textual does."""
    await _dispatch(pump, message)


def dispatch_through(around: Around) -> None:
    """Have every message go through a function, which calls `dispatch`."""
    if DISPATCH.exists:
        MessagePump._dispatch_message = around  # type: ignore[method-assign, assignment]


class OpenedApp(App[int]):
    """An app with methods of its own where Textual has private ones."""

    _is_styled = False
    _styled_at = -1
    """Which state of the stylesheets the screens were last styled with."""

    def failed(self, error: Exception) -> None:
        """An exception that nobody handled."""
        raise error

    async def pressed(self, key: str, bound: Callable[[], Awaitable[bool]]) -> bool:
        """A key without priority; ``bound`` does what it is bound to, and says whether it is."""
        return await bound()

    def styles_are_read(self) -> None:
        """The stylesheets have been read: from now on read them again only if they are out of date."""
        self._is_styled, self._styled_at = True, self._styles

    @property
    def _styles(self) -> int:
        count: int = getattr(self, STYLED.name, 0)
        return count

    def _handle_exception(self, error: Exception) -> None:
        self.failed(error)

    async def _check_bindings(self, key: str, priority: bool = False) -> bool:
        # Textual calls this twice for each key: first for bindings with priority
        if priority:
            return await super()._check_bindings(key, priority)
        return await self.pressed(key, lambda: super(OpenedApp, self)._check_bindings(key))

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        # a screen that is not a sheet covers all
        return super()._background_screens if self.screen.is_modal else []

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the stylesheets again if they are out of date; not at start, when they have just been read.

        Textual calls it twice for each screen that is shown for the first time: its widgets were styled as they were
        mounted.
        """
        if not self._is_styled:
            return
        screen = self.screen
        if self._styled_at == self._styles and getattr(screen, STYLED.name, None) in (-1, self._styles):
            screen._css_update_count = self._styles
            return
        self._styled_at = self._styles
        super().refresh_css(animate=animate)
