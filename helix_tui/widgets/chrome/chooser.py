"""A few ways to go, at the bottom: stepping through them shows each, enter goes, esc goes back.

What an agent does, step by step: calls joined to their outcomes, and the last few of them for a list.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from helix_tui.core.ddx.events import Event
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.chrome.notice_line import Caption
from helix_tui.widgets.gesture import Gesture

MOST_LINES = 8


class Chooser(Vertical):
    """It is mounted when there is more than one way, and removed by whoever mounted it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("J", "step(1)", show=False, id="move.dependent"),
        Binding("K", "step(-1)", show=False, id="move.needed"),
        Binding("escape", "call_off", show=False, id="go.back"),
    ]
    DEFAULT_CSS = """
    Chooser { dock: bottom; height: auto; background: $helix-ground; layer: prompt; }
    Chooser RowList { height: auto; }
    """

    class Looked(Message):
        """The cursor is on another way."""

        def __init__(self, chooser: Chooser, key: str) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    class Done(Gesture):
        """One was chosen; none, where it was called off."""

        def __init__(self, chooser: Chooser, key: str | None) -> None:
            super().__init__()
            self.chooser = chooser
            self.key = key

    def __init__(self, caption: str, ways: Sequence[Row], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._caption = Caption(caption, "enter goes, esc goes back")
        self._list = RowList()
        self._ways = ways

    def compose(self) -> ComposeResult:
        """The caption above, the ways below."""
        yield self._caption
        yield self._list

    def on_mount(self) -> None:
        """The first way is looked at first."""
        self._list.styles.height = min(MOST_LINES, len(self._ways))
        self._list.show(Rows(self._ways))
        self._list.focus(scroll_visible=False)

    def action_step(self, step: int) -> None:
        """The next way, or the one before; round and round."""
        keys = [way.key for way in self._ways]
        self._list.select(keys[(self._list.selected_index + step) % len(keys)])

    def action_call_off(self) -> None:
        """Back to where it began."""
        self.post_message(self.Done(self, None))

    @on(RowList.Selected)
    def _look(self, event: RowList.Selected) -> None:
        event.stop()
        if event.key is not None:
            self.post_message(self.Looked(self, event.key))

    @on(RowList.Opened)
    def _choose(self, event: RowList.Opened) -> None:
        event.stop()
        self.post_message(self.Done(self, event.key))


KEPT = 6


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that an agent did or does: a tool at work, words, thinking."""

    name: str
    """The tool, or ``says``, ``thinking``, ``error``."""
    target: str = ""
    at: int | None = None
    kind: str = "tool"
    ok: bool | None = None
    """None while it goes on, and for what neither succeeds nor fails."""
    duration_ms: int | None = None
    call_id: str = ""

    @property
    def open(self) -> bool:
        """A call without an outcome."""
        return self.kind == "tool" and self.ok is None


class ActionLog:
    """The last few actions of one attempt, kept up to date event by event."""

    def __init__(self) -> None:
        self._kept: deque[Action] = deque(maxlen=KEPT)

    def take(self, events: Iterable[Event]) -> None:
        """Let events add actions, or end those that were open."""
        for event in events:
            if event.kind == "result":
                self._end(event)
            elif (action := _action(event)) is not None:
                if self._kept and self._kept[-1].kind == "thinking":
                    self._kept.pop()
                self._kept.append(action)

    def last(self, most: int) -> tuple[Action, ...]:
        """The newest actions, the oldest of them first."""
        return tuple(self._kept)[-most:] if most > 0 else ()

    def _end(self, result: Event) -> None:
        for place in range(len(self._kept) - 1, -1, -1):
            action = self._kept[place]
            if action.open and answers(result, action.call_id, action.name):
                self._kept[place] = replace(action, ok=result.ok, duration_ms=result.duration_ms)
                return
        if result.type == "progress":  # a service log tells call and outcome in one line
            self._kept.append(
                Action(result.tool, target_of(result), result.at, ok=result.ok, duration_ms=result.duration_ms)
            )


def answers(result: Event, call_id: str, tool: str) -> bool:
    """Whether a result belongs to a call."""
    if result.call_id or call_id:
        return result.call_id == call_id
    return not result.tool or result.tool == tool


def target_of(event: Event) -> str:
    """What a tool's event says it worked on: its line without the tool's name and what came out."""
    said = event.summary.removeprefix(event.tool).strip() if event.tool else event.summary
    return said.partition(" out=")[0] if event.kind == "result" else said


def _action(event: Event) -> Action | None:
    if event.kind == "tool":
        return Action(event.tool, target_of(event), event.at, call_id=event.call_id)
    if event.kind == "text" and event.summary:
        return Action("says", event.summary, event.at, kind="text")
    if event.kind == "thinking":
        return Action("thinking", "…", event.at, kind="thinking")
    if event.kind == "error":
        return Action("error", event.summary, event.at, kind="error", ok=False)
    return None


def outcome(ok: bool | None, duration_ms: int | None) -> list[Span]:
    """``ok 3.2s`` or ``failed 3.2s``; nothing for what goes on."""
    if ok is None:
        return []
    word: Span = ("ok", "success") if ok else ("failed", "error bold")
    time = figures.took(duration_ms)
    return [word, (f" {time}", "muted")] if time else [word]
