"""A project's data, read once for the commands that print it, and the parsing of bead ids and times.

`core.snapshot.take_snapshot` reads more than a queue needs, and start-up time counts here. A bead may be named
by the beginning or the end of its id; ``--since`` means attempts that began at or after an instant.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.core.beads.readiness import Era, Queue, classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker, describe, only_archived, read_archive
from helix_tui.core.ddx.dialect import Dialect, rule_for
from helix_tui.core.ddx.probe import at_hand
from helix_tui.core.ddx.remarks import Shut, remarks, shut
from helix_tui.core.ddx.runs.running import QueueReader, QueueReading, Run
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_now

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.ddx.attempts.book import AttemptBook
    from helix_tui.core.ddx.attempts.index import AttemptIndex
    from helix_tui.core.ddx.claims import Edits

NO_TRACKER = "`ddx init` creates one here; -C DIR names another project; `helix-tui demo` shows a throw-away one."

ASKED = {"april": "DDx of April, as requested", "head": "DDx since May, as requested"}
"""The rules that ``--era`` asks for, in words."""

_SPAN = re.compile(r"(\d+)([smhdw])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class UnknownBead(CliError):
    """No bead of the tracker has that name; ``named`` is the text that was given."""

    def __init__(self, named: str, advice: str) -> None:
        super().__init__(f"no bead “{clean_line(named, 60)}” in the tracker", advice)
        self.named = named


class Present(Struct, frozen=True):
    """One project's tracker and its queue."""

    project: Project
    tracker: Tracker
    queue: Queue
    runs: tuple[Run, ...]
    """What any file reports as running, dead claims included."""
    dialect: Dialect | None = None
    """The capabilities of the installed ddx, whose rule judged the queue if proven; None without a ddx."""

    @property
    def judged_by(self) -> str:
        """Whose rule decides what is ready; that of ``--era`` if it was given."""
        if self.queue.era == "auto":
            return "the DDx that wrote it"
        asked = ASKED.get(self.queue.era) if isinstance(self.queue.era, str) else None
        return asked or "the installed ddx"

    @property
    def shut(self) -> Shut | None:
        """What the installed ddx would refuse here, and why; or None."""
        return shut(self.tracker.beads, self.dialect)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about the installed ddx that affect the queue."""
        return tuple(remark.text for remark in remarks(self.tracker.beads, self.dialect))


def load(call: Call, *, era: Era = "auto", digest: bool = False) -> Present:
    """Read and judge the tracker of this call's project.

    Raises:
        CliError: there is none, or it cannot be read.
    """
    return _load(call, era, digest=digest)


def load_with_attempts(call: Call, era: Era = "auto", about: str = "") -> tuple[Present, AttemptBook]:
    """As `load`, and every attempt that left evidence by that moment, newest first; with ``about`` only those on beads
    with this in their id.

    Raises:
        CliError: there is no tracker, or it cannot be read.
    """
    from helix_tui.core.ddx.attempts.index import AttemptIndex

    index = AttemptIndex.of(locate(call), about)
    return _load(call, era, records=index), index.book


def _load(call: Call, era: Era = "auto", *, records: AttemptIndex | None = None, digest: bool = False) -> Present:
    project = locate(call)
    reading = _reader(project).read(call.now, records=records, digest=digest)
    tracker, path = reading.tracker, clean_line(str(project.beads_file))
    if tracker.missing and not project.ddx_dir.is_dir():
        raise CliError(project.no_queue, NO_TRACKER)
    if tracker.problem:
        raise CliError(tracker.problem, f"Check {path}: DDx itself needs to read it too.")
    present = _judged(call, project, reading, call.now, era)
    for remark in present.remarks:
        call.note(remark)
    return present


def read_attempts(project: Project, now: int) -> tuple[Tracker, tuple[Attempt, ...]]:
    """The rows, and every attempt that left evidence by then, newest first."""
    from helix_tui.core.ddx.attempts.index import AttemptIndex

    index = AttemptIndex.of(project)
    return _reader(project).read(now, records=index).tracker, tuple(index.book)


def judge(call: Call, project: Project, tracker: Tracker, *, now: int | None = None) -> Present:
    """Runs and queue of rows that were read already, as of the call's instant or of another one."""
    now = call.now if now is None else now
    return _judged(call, project, _reader(project).around(tracker, now), now)


def _judged(call: Call, project: Project, reading: QueueReading, now: int, era: Era = "auto") -> Present:
    dialect = at_hand(call.ddx, project.root) if era == "auto" else None
    queue = classify(reading.tracker.beads, now=now, era=rule_for(dialect, era), claims=reading.claims)
    return Present(project, reading.tracker, queue, reading.runs, dialect)


def _reader(project: Project) -> QueueReader:
    return QueueReader(project, edits=partial(_edits, project))


def _edits(project: Project, tracker: Tracker) -> Edits:
    """helix-tui's own writes to beads, read only if one of them may explain a row in progress."""
    if not any(bead.status == "in_progress" for bead in tracker.beads.values()):
        return {}
    from helix_tui.core.editing.journal import Journal, edits_of

    return edits_of(Journal.of(project).look())


def note_unread(call: Call, tracker: Tracker) -> None:
    """Say on stderr which lines of the tracker could not be read: the queue leaves them out."""
    if tracker.unread:
        call.note(f"{clean_line(tracker.unread, 300)}; `helix-tui doctor` says what to do")


def find_bead(queue: Queue, text: str) -> str:
    """The id that a text means: the id itself, or the beginning or end of exactly one.

    Raises:
        UnknownBead: no id fits.
        CliError: several do.
    """
    found = _meant(text, queue.beads, "beads")
    if found is not None:
        return found
    from difflib import get_close_matches

    # its running time grows with the square of the length
    near = get_close_matches(text[:80], queue.beads, n=3)
    hint = f"Similar: {', '.join(clean_line(bead_id, 60) for bead_id in near)}." if near else ""
    raise UnknownBead(text, hint or "`helix-tui queue` lists the ids.")


def archived_bead(project: Project, held: Collection[str], text: str) -> Bead | None:
    """The archived bead that a text means: its id, or a part that no bead of the tracker has.

    Raises:
        CliError: several fit.
    """
    if text in held:
        return None
    away = only_archived(read_archive(project.archive_file), held)
    # a part of an id means a bead of the tracker first
    if text not in away and _fitting(text, held):
        return None
    found = _meant(text, away, "archived beads")
    return None if found is None else away[found]


def _meant(text: str, ids: Collection[str], what: str) -> str | None:
    """The id among these that a text means: the id itself, or the beginning or end of exactly one.

    Raises:
        CliError: several match.
    """
    if text in ids:
        return text
    fits = _fitting(text, ids)
    if len(fits) < 2:
        return fits[0] if fits else None
    some = ", ".join(clean_line(bead_id, 60) for bead_id in fits[:6])
    more = f" and {len(fits) - 6} more" if len(fits) > 6 else ""
    raise CliError(f"“{clean_line(text, 60)}” matches {len(fits)} {what}: {some}{more}", "Type more of the id.")


def _fitting(text: str, ids: Iterable[str]) -> list[str]:
    return [bead_id for bead_id in ids if text and (bead_id.startswith(text) or bead_id.endswith(text))]


def known_as(error: UnknownBead, project: Project, held: Collection[str]) -> CliError:
    """The error for a change to a bead that is not in the tracker: it may be archived."""
    gone = archived_bead(project, held, error.named)
    if gone is None:
        return error
    said = f"{clean_line(gone.id, 60)} was {describe(gone).words}: ddx changes no archived bead"
    return CliError(said, f"`helix-tui why {clean_line(gone.id, 60)}` shows it; a new bead can continue it.")


def add_since(parser: argparse.ArgumentParser) -> None:
    """Add the ``--since`` option."""
    parser.add_argument("--since", metavar="D", help="started since then: 90m, 12h, 3d, or an ISO 8601 time")


def since_of(call: Call) -> int | None:
    """The instant that was asked for, or None.

    Raises:
        CliError: it is neither a duration nor a time.
    """
    text = call.options.since
    if not text:
        return None
    span = _SPAN.match(text)
    if span:
        return call.now - int(span.group(1)) * _SECONDS[span.group(2)] * NS
    try:
        return parse_now(text)
    except ValueError:
        raise CliError(
            f"--since {clean_line(text, 40)!r} is neither a duration nor a time", "Write 90m, 12h, 3d or 2026-08-21.", 2
        ) from None


def began_since(attempt: Attempt, since: int | None) -> bool:
    """Whether an attempt began at or after ``since``; without a known time it counts as old."""
    return since is None or (attempt.started_at or attempt.finished_at or 0) >= since
