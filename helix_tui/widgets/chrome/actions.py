"""An agent's actions step by step: calls joined with their results, and the last few of them for a list."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.runs.transcript_events import Event
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Span

KEPT = 6


class Action(Struct, frozen=True):
    """One action of an agent: a tool call, a message, thinking."""

    name: str
    """The tool, or ``says``, ``thinking``, ``error``."""
    target: str = ""
    at: int | None = None
    kind: str = "tool"
    ok: bool | None = None
    """None while it is running, and for actions that neither succeed nor fail."""
    duration_ms: int | None = None
    call_id: str = ""

    @property
    def open(self) -> bool:
        """A call without a result."""
        return self.kind == "tool" and self.ok is None


class ActionLog:
    """The last few actions of one attempt, kept up to date event by event."""

    def __init__(self) -> None:
        self._kept: deque[Action] = deque(maxlen=KEPT)

    def take(self, events: Iterable[Event]) -> None:
        """Add the actions of new events, and end open ones."""
        for event in events:
            if event.kind == "result":
                self._end(event)
            elif (action := _action(event)) is not None:
                # thinking has a line until something follows it
                if self._kept and self._kept[-1].kind == "thinking":
                    self._kept.pop()
                self._kept.append(action)

    def last(self, most: int) -> tuple[Action, ...]:
        """The newest actions, the oldest of them first."""
        return tuple(self._kept)[-most:] if most > 0 else ()

    def _end(self, result: Event) -> None:
        # from the newest on: without ids, a result belongs to the latest open call of its tool
        for place in range(len(self._kept) - 1, -1, -1):
            action = self._kept[place]
            if action.open and answers(result, action.call_id, action.name):
                self._kept[place] = replace(action, ok=result.ok, duration_ms=result.duration_ms)
                return
        if result.type == "progress":  # a service log records call and result in one line
            self._kept.append(
                Action(result.tool, target_of(result), result.at, ok=result.ok, duration_ms=result.duration_ms)
            )


def answers(result: Event, call_id: str, tool: str) -> bool:
    """Whether a result belongs to a call."""
    if result.call_id or call_id:
        return result.call_id == call_id
    return not result.tool or result.tool == tool


def target_of(event: Event) -> str:
    """What a tool worked on: the event's line without the tool's name and result."""
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
    """``ok 3.2s`` or ``failed 3.2s``; empty while it is running."""
    if ok is None:
        return []
    word: Span = ("ok", "success") if ok else ("failed", "error bold")
    time = figures.took(duration_ms)
    return [word, (f" {time}", "muted")] if time else [word]
