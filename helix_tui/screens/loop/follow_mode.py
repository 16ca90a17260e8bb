"""What the agents of all running attempts did last, read from their transcripts look by look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.widgets.chrome.actions import KEPT, Action, ActionLog
from helix_tui.widgets.rows.attempts import RunView

WINDOW = 64 << 10
"""Bytes before the end of a transcript that are looked at when its run is met."""

Seen = Mapping[str, tuple[Action, ...]]


class Follower:
    """Tails of the transcripts of what runs. One thread at a time looks; who asks sees to that."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TranscriptTail, ActionLog]] = {}

    def look(self, runs: Sequence[Run]) -> Seen:
        """The last actions of each run, by the key of its row. This reads files: call it from a worker."""
        seen: dict[str, tuple[Action, ...]] = {}
        for run in runs:
            if not run.folders:
                continue
            key = RunView(run).key
            if key not in self._known:
                self._known[key] = (TranscriptTail(run.folders, window=WINDOW), ActionLog())
            tail, log = self._known[key]
            tail.watch(run.folders)
            log.take(tail.poll())
            seen[key] = log.last(KEPT)
        for key in self._known.keys() - seen.keys():
            del self._known[key]
        return seen
