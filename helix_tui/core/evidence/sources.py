"""The records of one project as Ask's second index: searched by words, by id, by commit.

A second index, for two reasons: the text of a bead must not change which files are found, and a queue changes more
often than files. It is built when a question first needs it, kept in ``.helix/ask`` and brought up to date in a
fraction of a second; unchanged records are not read again.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.corpus.git import TrackedFile
from helix_tui.core.ask.corpus.listing import Listing, Source
from helix_tui.core.ask.index.database import VERSION
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.records import DayOfWork, PastCommit, Span, text_hash
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.states import State
from helix_tui.core.beads.tracker import Tracker, TrackerReader, only_archived, read_archive
from helix_tui.core.ddx.attempts.attempt import Attempt, Sums, count_outcomes, format_sum
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.claims import Hold
from helix_tui.core.ddx.names import status_of
from helix_tui.core.ddx.runs.transcript import attached_events
from helix_tui.core.evidence.records import Record, bead_records, digest_of, files_by_bead, memory_records, run_record
from helix_tui.core.ground.files import is_file, names_in, read_end
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS, format_day, midnight, now_ns, parse_instant
from helix_tui.core.supervision.run_state.status import said_lines

if TYPE_CHECKING:
    from helix_tui.core.memory.records import Memory

FILE = f"records-{VERSION}.db"
MAX_SECTIONS = 30
"""Sections of one bead that are looked at where attempts or reviews are asked for."""
MAX_SECTION_FILES = 240
"""Beads that are looked through for them: what an attempt says is little beside its bead's own words."""
MAX_SHOWN = 24
"""Of the beads or attempts in one state, how many are looked up to be listed."""
_RECORD_OF = {"attempt": "bead", "review": "bead"}
_SECTION_OF = {"attempt": "Attempt ", "review": "Review o"}


class WorkRecords(Struct, frozen=True):
    """The records of a project's work at one moment."""

    beads: Mapping[str, Bead] = {}
    """The tracker's and the archive's, by id."""
    attempts: Callable[[str], Sequence[Attempt]] = lambda _: ()
    """The attempts of a bead, newest first."""
    every: Callable[[], Sequence[Attempt]] = tuple
    """All attempts that are counted, as the command ``attempts`` lists them."""
    memories: Sequence[Memory] = ()
    runs: Sequence[tuple[str, Sequence[str]]] = ()
    """Runs of the loop: the log's name, and the run's own lines."""
    commits: Sequence[PastCommit] = ()
    events: Callable[[Bead], Sequence[Mapping[str, Any]]] = lambda _: ()
    """The events of a bead that lie beside its row."""
    states: Callable[[], Mapping[State, Sequence[str]]] = dict
    """State -> ids of beads in it, what is ready in pick order: as the queue has it."""

    def records(self) -> Iterator[Record]:
        """All of them."""
        changed = files_by_bead(((one.subject, one.files) for one in self.commits), self.beads)
        yield from bead_records(self.beads, self.attempts, changed, self.events)
        yield from memory_records(self.memories)
        yield from (run_record(name, lines) for name, lines in self.runs)


MAX_RUNS = 20
"""Logs of runs that are read, the newest."""
_LOG_BYTES = 256 << 10


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

    @cached_property
    def _counted(self) -> AttemptIndex:
        """For counts, which have none of them, as ``attempts``."""
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
            partial(self._every, tracker, held),
            read_memories(project),
            read_runs(project),
            events=partial(attached_events, project.ddx_dir),
            states=dict if queue is None else queue.by_state,
        )

    def _every(self, tracker: Tracker, held: Mapping[str, Hold] | None) -> Sequence[Attempt]:
        """The attempts as `attempts` reads them: those known only from events of archived beads are not counted."""
        self._counted.refresh(tracker.beads, holds=held)
        return tuple(AttemptBook(self._counted.attempts))


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
    """The project's memories; empty without a readable database."""
    # brought in by the first question that is about records: its database is a tenth of a cold question's time
    from helix_tui.core.memory.memory_store import open_memory
    from helix_tui.core.memory.records import MemoryFault
    from helix_tui.core.memory.store.database import database_path

    path = database_path(project)
    if not is_file(path):
        return ()
    try:
        with open_memory(path, read_only=True) as memory:
            return memory.list()
    except MemoryFault:
        return ()


def read_runs(project: Project) -> Sequence[tuple[str, Sequence[str]]]:
    """The own lines of the last runs of the loop, by log name."""
    folder = project.logs_dir
    names = [name for name in reversed(names_in(folder)) if name.endswith(".log")][:MAX_RUNS]
    return [(name, said_lines(read_end(folder / name, _LOG_BYTES))) for name in names]


class RecordSource(Source):
    """Records as a source of texts in place of files. An unchanged record is not rendered again."""

    def __init__(self, root: Path) -> None:
        # the base's own is not called: it would look for a git repository
        self.root, self.git, self.revision = root, None, None
        self._records: dict[str, Record] = {}
        self._digests: dict[str, tuple[tuple[object, ...], str]] = {}

    def close(self) -> None:
        """Do nothing, as nothing is open."""

    def take(self, records: Iterable[Record]) -> bool:
        """Replace the records; return whether any differs."""
        new = {record.path: record for record in records}
        before = {path: digest for path, (_, digest) in self._digests.items()}
        digests: dict[str, tuple[tuple[object, ...], str]] = {}
        for path, record in new.items():
            held = self._digests.get(path)
            same = held is not None and _same(held[0], record.facts)
            digests[path] = (record.facts, held[1] if held is not None and same else digest_of(record.render()))
        self._records, self._digests = new, digests
        return before != {path: digest for path, (_, digest) in digests.items()}

    def list(self) -> Listing:
        """Every record, in order of path."""
        return Listing([TrackedFile(path, self._digests[path][1]) for path in sorted(self._records)], None)

    def read(self, entries: Iterable[TrackedFile], digits: int) -> Iterator[tuple[TrackedFile, str, bytes | int]]:
        """The text of each record."""
        for entry in entries:
            data = self.text(entry.path, entry.oid)
            if data is not None:
                yield entry, entry.oid, data

    def text(self, path: str, oid: str) -> bytes | None:
        """One record's text; None if it is gone or has changed."""
        record = self._records.get(path)
        if record is None or self._digests[path][1] != oid:
            return None
        return record.render().encode("utf-8", "surrogateescape")

    def record(self, path: str) -> Record | None:
        """The record under a path."""
        return self._records.get(path)


def _same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    """Whether two records have the same sources: identical objects, or equal plain values."""
    # the tracker's reader gives the very same object for a row whose bytes are the same
    return len(before) == len(now) and all(
        one is other or (not isinstance(one, Bead) and one == other) for one, other in zip(before, now, strict=True)
    )


class ProjectRecords:
    """The searchable records of a project, for use from threads. The index is built by the first question that needs
    it.
    """

    def __init__(self, project: Project, present: Callable[[], WorkRecords], *, in_memory: bool = False) -> None:
        """``present`` reads what there is now; it is called at most once for each question."""
        self._project = project
        self._present = present
        self._in_memory = in_memory
        self._source = RecordSource(project.root)
        self._index: RepositoryIndex | None = None
        self._lock = threading.Lock()
        self.work = WorkRecords()
        """The records at the last refresh."""
        self._stand: Mapping[State, Sequence[str]] | None = None
        """The states of its beads, once one was asked for."""

    @property
    def digests(self) -> Mapping[str, str]:
        """The digest of every record's text, by its path."""
        return {entry.path: entry.oid for entry in self._source.list().entries}

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None

    def refresh(self, commits: Sequence[PastCommit] = ()) -> None:
        """Refresh the records."""
        with self._lock:
            self.work, self._stand = replace(self._present(), commits=commits), None
            changed = self._source.take(self.work.records())
            # made by the first question about records, not at start: most questions are about files
            if self._index is None:
                path = None if self._in_memory else self._project.helix_dir / "ask" / FILE
                self._index = RepositoryIndex(self._project.root, path, with_meaning=False)
                self._index.source = self._source
                # the file may be of an earlier process, and of other records than those of now
                changed = True
            if changed:
                self._index.refresh()

    # --- asking -------------------------------------------------------------------------------------------

    def search(self, text: str, *, spans: int = 24, kinds: Sequence[str] = ()) -> list[Span]:
        """The passages of records most relevant to a text, only of the given kinds, if any."""
        index = self._index
        if index is None:
            return []
        within = {_RECORD_OF.get(kind, kind) for kind in kinds}
        files = [one.file for one in index.rank_files(text) if not within or one.file.partition("/")[0] in within]
        sections = tuple(_SECTION_OF[kind] for kind in kinds if kind in _SECTION_OF)
        # sections of one kind are picked out only after the search, so many more are fetched than are wanted
        per_file, most = (MAX_SECTIONS, MAX_SECTION_FILES) if sections else (3, spans)
        found = index.search(text, most * per_file // 3, per_file=per_file, files=files[:most]) if files else []
        kept = [one for one in found if not sections or one.header.rpartition(" > ")[2].startswith(sections)]
        return [_as_record(span) for span in kept[:spans]]

    def named(self, word: str) -> list[Span]:
        """Every passage of the bead or memory of an id, or of the bead whose attempt has it; else empty. A unique
        prefix or suffix of an id suffices.
        """
        path = self._path_of(word)
        return [] if path is None else self._passages(path)

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]:
        """Lines of a record, counted from 1, both ends included; empty if there are none.

        Args:
            file: as a passage names it: ``bead:ddx-1234``; the beginning or the end of the id will do.
            start: the first line.
            end: the last line; None for the record's last.
        """
        path: str | None = _path(file)
        if self._source.record(_path(file)) is None:
            path = self._path_of(file.partition(":")[2])
        return [] if path is None or self._index is None else self._index.lines(path, start, end)

    def _passages(self, path: str) -> list[Span]:
        """Every passage of the record under a path."""
        index = self._index
        if index is None:
            return []
        sections = index.headings(path)
        lines = index.lines(path)
        starts = [one.start for one in sections] or [1]
        ends = [*(start - 1 for start in starts[1:]), len(lines)]
        titles = [one.path for one in sections] or [""]
        return [
            _as_record(_section(path, start, end, title, lines))
            for start, end, title in zip(starts, ends, titles, strict=True)
        ]

    def in_state(self, kind: str, state: str) -> tuple[int, Sequence[Span]]:
        """The number of beads in a state of the queue, or of attempts with an outcome, and passages of the first of
        them.
        """
        if kind == "bead":
            ids = next((ids for name, ids in self._states().items() if name == state), ())
            return len(ids), [span for bead_id in ids[:MAX_SHOWN] for span in self.named(bead_id)[:1]]
        every = self.work.every()
        found = sorted((one for one in every if one.verdict.outcome == state), key=lambda one: one.attempt_id)[::-1]
        shown = (self._section_of(one) for one in found[:MAX_SHOWN])
        return len(found), [span for span in shown if span is not None]

    def _section_of(self, attempt: Attempt) -> Span | None:
        """The passage on an attempt; None if it is listed under a later one with the same end."""
        title = f"Attempt {attempt.attempt_id}"
        passages = self.named(attempt.bead_id)
        return next((span for span in passages if span.header.rpartition(" > ")[2] == title), None)

    def ended(self, ends: Sequence[str]) -> list[Span]:
        """The passages of all attempts with one of some ends, newest first; attempts with the same end share one."""
        wanted = {
            f"Attempt {one.attempt_id}": bead_id
            for bead_id in self.work.beads
            for one in self.work.attempts(bead_id)
            if {OUTCOME_WORDS[one.verdict.outcome], _review_of(one)} & set(ends)
        }
        sections = [span for bead_id in sorted(set(wanted.values())) for span in self.named(bead_id)]
        found = [span for span in sections if wanted.get(section := _last(span)) == span.file[5:] and section]
        return sorted(found, key=_last, reverse=True)

    def of_day(self, day: str) -> DayOfWork:
        """The records of a local day: its attempts, counted as ``attempts`` does, and its runs' logs."""
        # the day under which the Loop and Insights have an attempt
        attempts = [(format_day(one.at), one) for one in self.work.every()]
        runs = {name: found for name, _ in self.work.runs if (found := _day_of_log(name))}
        wanted = _day_named(day, {*runs.values(), *(on for on, _ in attempts if on)}, max(runs.values(), default=""))
        ended = sorted((one for on, one in attempts if on == wanted), key=lambda one: one.attempt_id)
        ends = sorted(count_outcomes(ended).items(), key=lambda end: -end[1])
        spans = (self._section_of(one) for one in ended)
        logs = [span for name in sorted(runs) if runs[name] == wanted for span in self._passages(f"run/{name}.md")]
        return DayOfWork(
            wanted,
            {OUTCOME_WORDS[outcome]: n for outcome, n in ends},
            [span for span in spans if span is not None],
            logs,
            format_sum(sum((one.sums for one in ended), Sums())) if ended else "",
        )

    def _path_of(self, word: str) -> str | None:
        beads = self.work.beads
        if word in beads:
            return f"bead/{word}.md"
        if any(memory.name == word for memory in self.work.memories):
            return f"memory/{word}.md"
        fits = [bead_id for bead_id in beads if bead_id.startswith(word) or bead_id.endswith(word)]
        if len(fits) == 1:
            return f"bead/{fits[0]}.md"
        tried = (bead_id for bead_id in beads for one in self.work.attempts(bead_id) if one.attempt_id == word)
        # an attempt's id begins with its day: no other word is worth a look through all attempts
        owner = next(tried, None) if word[:8].isdigit() else None
        return None if owner is None else f"bead/{owner}.md"

    def title(self, file: str) -> str:
        """The title of the record that a passage comes from; empty if it is not from a record."""
        record = self._source.record(_path(file))
        return "" if record is None else record.title

    def state(self, bead_id: str) -> str:
        """A bead's state in the queue, else the status in its row; else ""."""
        bead = self.work.beads.get(bead_id)
        found = next((state for state, ids in self._states().items() if bead_id in ids), "")
        return found or ("" if bead is None else bead.status)

    def _states(self) -> Mapping[State, Sequence[str]]:
        if self._stand is None:
            self._stand = self.work.states()
        return self._stand


_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)(?:-(\d\d)(\d\d)(\d\d))?(?!\d)")


def _day_of_log(name: str) -> str:
    """The local day in the name of a run's log, which has UTC: ``helix-20261030-231500.log``; empty for none."""
    found = _STAMP.search(name)
    if found is None:
        return ""
    day = "-".join(found.group(1, 2, 3))
    began = parse_instant(f"{day}T{':'.join(found.group(4, 5, 6))}Z") if found[4] else None
    return day if began is None else format_day(began)


def _day_named(day: str, known: Iterable[str], last_run: str) -> str:
    """The requested day, as ``2026-10-30``; the request itself if it names none."""
    days = sorted(known)
    if day == "last":
        return last_run or (days[-1] if days else "")
    if day == "today":
        return format_day(now_ns())
    if day == "yesterday":
        return format_day(midnight(now_ns()) - NS)
    # a day without its year is the newest one that is recorded
    return max((one for one in days if one.endswith(day)), default=day)


def _review_of(attempt: Attempt) -> str:
    """``refused`` where a review found fault with an attempt, even one that had landed before it."""
    return "refused" if status_of(attempt.status).outcome == "refused" else ""


def _last(span: Span) -> str:
    return span.header.rpartition(" > ")[2]


def _section(path: str, start: int, end: int, title: str, lines: Sequence[str]) -> Span:
    # blank lines at its end are none of its lines: what is opened by these numbers has the same hash
    while end > start and not lines[end - 1]:
        end -= 1
    text = "\n".join(lines[start - 1 : end])
    return Span(path, start, end, "section", title, text, text_hash(text))


def _as_record(span: Span) -> Span:
    """A passage of the record index under its citable name: ``bead:ddx-1234``."""
    kind, _, rest = span.file.partition("/")
    return replace(span, file=f"{kind}:{rest.removesuffix('.md')}", role="record")


def _path(file: str) -> str:
    """The record's path in the index: ``bead:ddx-1234`` -> ``bead/ddx-1234.md``."""
    kind, _, ident = file.partition(":")
    return f"{kind}/{ident}.md"


__all__ = ["ProjectRecords", "RecordSource", "WorkRecords"]
