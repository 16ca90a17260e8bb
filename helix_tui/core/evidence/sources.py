"""The records of one project's work as sources for Ask: beads with their attempts and reviews, memories, run logs, and
what is said of today. They are rows of the same index as the files, under names of their own (``bead:ddx-1234``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker, TrackerReader, only_archived, read_archive
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.runs.transcript import attached_events
from helix_tui.core.evidence.records import (
    Record,
    bead_records,
    digest_of,
    files_by_bead,
    memory_records,
    run_record,
    today_of,
    today_record,
)
from helix_tui.core.ground.files import is_file, names_in, read_end
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.run_state.run_log import said_lines

if TYPE_CHECKING:
    from helix_tui.core.memory.records import Memory

MAX_RUNS = 20
"""Logs of runs that are read, the newest."""

_LOG_BYTES = 256 << 10


class WorkRecords(Struct, frozen=True):
    """The records of a project's work at one moment."""

    beads: Mapping[str, Bead] = {}
    """The tracker's and the archive's, by id."""
    attempts: Callable[[str], Sequence[Attempt]] = lambda _: ()
    """The attempts of a bead, newest first."""
    memories: Sequence[Memory] = ()
    runs: Sequence[tuple[str, Sequence[str]]] = ()
    """Runs of the loop: the log's name, and the run's own lines."""
    events: Callable[[Bead], Sequence[Mapping[str, Any]]] = lambda _: ()
    """The events of a bead that lie beside its row."""
    today: Sequence[str] = ()
    """What is said of the queue now, a section each."""

    def records(self, commits: Iterable[tuple[str, Sequence[str]]] = ()) -> Iterator[Record]:
        """All of them; ``commits`` are (subject, changed files), which say what belongs to which bead."""
        changed = files_by_bead(commits, self.beads)
        yield from bead_records(self.beads, self.attempts, changed, self.events)
        yield from memory_records(self.memories)
        yield from (run_record(name, lines) for name, lines in self.runs)
        yield from (today_record(self.today),) if self.today else ()


class WorkReader:
    """Reads the records of work from a project's files, and only what has changed. Unreadable parts are left out."""

    def __init__(
        self, project: Project, look: Callable[[Tracker], tuple[Queue, Mapping[str, Hold]]] | None = None
    ) -> None:
        """``look`` returns a tracker's queue and holds; None for neither."""
        self._project = project
        self._look = look

    # kept between questions: reading the same files again took 360 ms of CPU, looking for changes takes 30; made when a
    # question first needs one: most are about files

    @cached_property
    def _tracker(self) -> TrackerReader:
        return TrackerReader(self._project.beads_file)

    @cached_property
    def _attempts(self) -> AttemptIndex:
        """For a bead's account, which has attempts at archived beads too."""
        return AttemptIndex.of(self._project)

    def __call__(self) -> WorkRecords:
        """The current records."""
        project, tracker = self._project, self._tracker.read()
        past = only_archived(read_archive(project.archive_file), tracker.beads)
        beads = dict(tracker.beads) | past
        queue, held = (None, None) if self._look is None else self._look(tracker)
        self._attempts.refresh(beads, holds=held)
        return WorkRecords(
            beads,
            self._attempts.by_bead,
            read_memories(project),
            read_runs(project),
            events=partial(attached_events, project.ddx_dir),
            today=() if queue is None else today_of(queue),
        )


class ArchivedAttempts:
    """The attempts at beads that exist only in ddx's archive, in addition to those of the tracker."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._index: AttemptIndex | None = None

    def of(self, archive: Mapping[str, Bead]) -> Callable[[str], Sequence[Attempt]]:
        """The attempts of each of these beads, newest first, from current records."""
        if not archive:
            return lambda _: ()
        if self._index is None:
            self._index = AttemptIndex.of(self._project)
        self._index.refresh(archive)
        return self._index.by_bead


def read_memories(project: Project) -> Sequence[Memory]:
    """The project's memories that agents are shown; empty without a readable database."""
    # brought in by the first question that is about records: its database is a tenth of a cold question's time
    from helix_tui.core.memory.memory_store import open_memory
    from helix_tui.core.memory.records import MemoryFault
    from helix_tui.core.memory.store.database import database_path

    path = database_path(project)
    if not is_file(path):
        return ()
    try:
        with open_memory(path, read_only=True) as memory:
            return [each for each in memory.list() if each.accepted]
    except MemoryFault:
        return ()


def read_runs(project: Project) -> Sequence[tuple[str, Sequence[str]]]:
    """The own lines of the last runs of the loop, by log name."""
    folder = project.logs_dir
    names = [name for name in reversed(names_in(folder)) if name.endswith(".log")][:MAX_RUNS]
    return [(name, said_lines(read_end(folder / name, _LOG_BYTES))) for name in names]


class RecordRows:
    """The records of one project as rows of an index. An unchanged record is not rendered again."""

    def __init__(self, present: Callable[[], WorkRecords]) -> None:
        """``present`` reads what there is now; it is called once for each refresh."""
        self._present = present
        self._digests: dict[str, tuple[tuple[object, ...], str]] = {}

    def refresh(self, index: RepositoryIndex) -> None:
        """Bring an index up to date with the records."""
        records = {record.path: record for record in self._present().records(index.past())}
        digests: dict[str, tuple[tuple[object, ...], str]] = {}
        for path, record in records.items():
            digest = self._digests.get(path)
            same = digest is not None and _same(digest[0], record.facts)
            digests[path] = (record.facts, digest[1] if digest is not None and same else digest_of(record.render()))
        self._digests = digests
        index.take_records({path: digest for path, (_, digest) in digests.items()}, lambda path: records[path].render())


def _same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    """Whether two records have the same sources: identical objects, or equal plain values."""
    # the tracker's reader gives the very same object for a row whose bytes are the same
    return len(before) == len(now) and all(
        one is other or (not isinstance(one, Bead) and one == other) for one, other in zip(before, now, strict=True)
    )
