"""Telling a person who looks elsewhere: the terminal's bell and notes, and the user's own command."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from helix_tui.core.ground import log as logs
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.decide.notify import (
    NewsWatch,
    Notification,
    claimed,
    forget,
    run_command,
    sequences,
    terminal_ways,
)
from helix_tui.settings import Settings


class NotifierHost(Protocol):
    """What telling asks of the app."""

    def say(self, text: str, severity: Any = "information") -> None: ...

    def run_worker(self, work: Any, *, thread: bool, group: str) -> Any: ...

    def call_from_thread(self, callback: Callable[..., Any], *args: Any) -> Any: ...

    def write_terminal(self, text: str) -> None: ...

    @property
    def status_summary(self) -> StatusSummary | None: ...


class Notifier:
    """Hears every news of one console and tells what is new in it, once."""

    def __init__(self, host: NotifierHost, settings: Settings, *, read_only: bool, clock: Callable[[], int]) -> None:
        self._host, self._settings, self._read_only, self._clock = host, settings, read_only, clock
        self._watch = NewsWatch()
        ways = settings.notify_terminal
        self._ways = terminal_ways(os.environ) if ways is None else ways
        self._held: list[Notification] = []
        """What came up in quiet hours."""
        self._complained = False

    def see(self, snapshot: Snapshot, needs: Sequence[Need]) -> None:
        """There is another state; what is new in it is told in a thread."""
        now, summary = self._clock(), self._host.status_summary
        loop = summary is not None and summary.run.condition == "active"
        found = self._watch.see(needs, snapshot.runs, snapshot.attempts, now=now, loop=loop, beads=snapshot.queue.beads)
        gone = self._watch.gone()
        self._held += found
        for note in found:
            if note.event == "run_ended":
                more = f" · {note.waiting:,} need{'s' * (note.waiting == 1)} you: !" if note.waiting else ""
                self._host.say(f"{note.title[:1].upper()}{note.title[1:]}: {note.body}{more}")
        if self._settings.quiet.hold(now) or not (self._held or gone):
            return
        notes, self._held = self._held, []
        waiting = {need.key for need in needs}
        self._host.run_worker(lambda: self._tell(snapshot, notes, gone, waiting), thread=True, group="notify")

    def tick(self, snapshot: Snapshot, needs: Sequence[Need]) -> None:
        """Time has passed: what came up in quiet hours is told when they are over."""
        if self._held and not self._settings.quiet.hold(self._clock()):
            self.see(snapshot, needs)

    def _tell(self, snapshot: Snapshot, notes: Sequence[Notification], gone: frozenset[str], waiting: set[str]) -> None:
        """In a thread: take what nobody else has told, and tell it."""
        if not self._read_only:
            forget(snapshot.project, gone)
        for note in notes:
            if note.event == "needs" and not waiting.intersection(note.keys):
                continue  # dealt with before anybody was told
            try:
                ours = bool(note.keys) if self._read_only else bool(claimed(snapshot.project, note.keys))
            except OSError as error:
                logs.logger("app").warning("no marker of what was told: %s", error)
                ours = True
            if ours:
                self._say(snapshot, note)

    def _say(self, snapshot: Snapshot, note: Notification) -> None:
        told = replace(note, title=f"{snapshot.project.name}: {note.title}")
        text = sequences(self._ways, told, tmux="TMUX" in os.environ)
        self._host.call_from_thread(self._host.write_terminal, text)
        if not self._settings.notify:
            return
        problem = run_command(
            self._settings.notify, note.document(snapshot.project, self._clock()), snapshot.project.root
        )
        if problem and not self._complained:
            self._complained = True
            self._host.call_from_thread(self._host.say, f"nobody was told: {problem}", "warning")
