"""Render records as documents: a bead with its attempts and reviews, a memory, the log of a run.

Each record is one Markdown text with its own path (``bead:ddx-1234``): Ask cuts, ranks and quotes it like any
document, and a section's heading names the attempt or review of a quoted line. A text contains what people wrote and
the outcome of the work, no short-lived state: so its digest, and thus its index entry, stays the same while a worker
merely renews its claim.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.states import STATES
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import format_whole
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ddx.names import event_kind
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_block, clean_line, counted, split_block
from helix_tui.core.ground.time import format_day

if TYPE_CHECKING:  # the room of memories brings its database, which few questions need
    from helix_tui.core.memory.records import Memory

RecordKind = Literal["bead", "memory", "run", "queue"]

MAX_TITLE = 160
MAX_PART = 40_000
"""Maximum characters read of one part of a record."""
MAX_ATTEMPTS = 60
"""Maximum attempts of one bead in its record, newest first; repeats of the same failure count as one."""
MAX_RUN_LINES = 2_000

_PARTS = ("acceptance", "design", "notes")
_HELD = ("needs-human-reason", "lifecycle-external-blocker-reason", "execution-skip-reason", "blocked-reason")


_CAPITALS = re.compile(r"^([A-Z][A-Z /&-]{3,30}[A-Z])(?: WITH FILE:LINE)?:?$", re.MULTILINE)
"""A line of capitals, as ``ROOT CAUSE``: how descriptions of beads name their parts."""

MAX_EVENTS = 30
MAX_EVENT = 4_000

MAX_LISTED = 24
"""Beads of one state that are listed."""


class Record(Struct, frozen=True):
    """One record, rendered on reading."""

    kind: RecordKind
    id: str
    """The bead's id, the memory's name, the log's file name."""
    title: str
    render: Callable[[], str]
    facts: tuple[object, ...] = ()
    """The source objects of the text: the same objects give the same text."""

    @property
    def path(self) -> str:
        """The path under which Ask knows it."""
        return f"{self.kind}:{self.id}"


def digest_of(text: str) -> str:
    """Forty hex digits over a record's text, as git's ids have."""
    return hashlib.sha1(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


# --- beads ------------------------------------------------------------------------------------------------


def bead_records(
    beads: Mapping[str, Bead],
    attempts: Callable[[str], Sequence[Attempt]],
    files: Mapping[str, Sequence[str]],
    events: Callable[[Bead], Sequence[Mapping[str, Any]]] = lambda _: (),
) -> Iterator[Record]:
    """A record for each bead.

    Args:
        beads: by id.
        attempts: the attempts of a bead, newest first.
        files: bead id -> files that commits naming the bead have changed.
        events: the events of a bead that lie beside its row.
    """
    for bead in beads.values():
        tried, changed = attempts(bead.id), files.get(bead.id, ())
        parent = beads.get(bead.parent)
        yield Record(
            "bead",
            bead.id,
            clean_line(bead.title, 300),
            partial(bead_text, bead, tried, changed, parent, events),
            # of the parent the text has its title only: another change of its row makes no new text
            (bead, tried, tuple(changed), parent and parent.title),
        )


def bead_text(
    bead: Bead,
    attempts: Sequence[Attempt],
    files: Sequence[str],
    parent: Bead | None = None,
    events: Callable[[Bead], Sequence[Mapping[str, Any]]] = lambda _: (),
) -> str:
    """A bead as a document: its own text, then its attempts and their outcomes, newest first."""
    document = bead.document()
    about = [f"bead {bead.id}", bead.issue_type]
    if parent is not None:
        about.append(f"part of “{clean_line(parent.title, 200)}”")
    if bead.labels:
        about.append("labels " + ", ".join(bead.labels))
    parts = [f"# {clean_line(bead.title, 300)}", clean_line(" · ".join(about), 600)]
    for text in _part("Description", document.get("description"))[1:]:
        # its first words stand below the title, to be quoted with it; headings of its own below ours
        own = re.search(r"^#", text, re.MULTILINE)
        first, rest = (text, "") if own is None else (text[: own.start()].strip(), text[own.start() :])
        parts += [*([first] if first else []), *(["## Description", rest] if rest else [])]
    for name in _PARTS:
        parts += _part(name.capitalize(), document.get(name))
    for name in _HELD:
        parts += _part("Held back", document.get(name))
    parts += _attempt_parts(attempts)
    rows = document.get("events")
    parts += _event_parts([*events(bead), *(rows if isinstance(rows, list) else ())])
    if files:
        parts += ["## Changed files", "\n".join(f"- {clean_line(path, 300)}" for path in files)]
    return "\n\n".join(parts) + "\n"


def _part(title: str, value: object) -> list[str]:
    """A section with a person's text, whose own headings and lines in capitals are placed below its heading.

    Memories added to a bead are left out: they are separate sources, not part of the request.
    """
    text = clean_block(value, MAX_PART).strip() if isinstance(value, str) else ""
    text = split_block(text)[0].strip()
    # a heading in somebody's text would else end our section, and pass for an attempt or a review
    text = re.sub(r"^(#{1,4})(?=\s)", r"##\1", text, flags=re.MULTILINE)
    return [f"## {title}", _CAPITALS.sub(r"### \1\n", text)] if text else []


def _attempt_parts(attempts: Sequence[Attempt]) -> Iterator[str]:
    """One section for each attempt; successive attempts with the same end are listed once."""
    for _, alike in groupby(attempts[:MAX_ATTEMPTS], lambda one: (one.verdict.outcome, one.detail, one.error)):
        same = list(alike)
        newest = same[0]
        yield f"## Attempt {newest.attempt_id}"
        yield "\n".join(attempt_lines(newest))
        if len(same) > 1:
            oldest = same[-1].attempt_id
            yield f"{counted(len(same) - 1, 'more attempt')} before it ended the same way, back to {oldest}."
        for one in same:
            if one.review is not None and one.review.rationale:
                yield f"## Review of {one.attempt_id}"
                yield clean_block(f"{one.review.verdict}: {one.review.rationale}", MAX_PART)


def attempt_lines(attempt: Attempt) -> Iterator[str]:
    """The outcome of an attempt and its reason, one sentence per line."""
    when = attempt.at
    at = f" on {format_day(when)}" if when and when > 0 else ""
    who = " by " + "/".join(filter(None, (attempt.harness, attempt.model))) if attempt.harness or attempt.model else ""
    yield clean_line(f"It {OUTCOME_ROWS[attempt.verdict.outcome].verb}{at}{who}: {attempt.verdict.why}.", 600)
    for label, said in (
        ("ddx said", attempt.detail),
        ("Error", attempt.error),
        ("Failure mode", attempt.failure_mode),
        ("Ended by", attempt.stopped),
        ("Reason for no change", attempt.no_changes_rationale),
    ):
        if said:
            yield clean_block(f"{label}: {said}", MAX_PART).strip()
    # while it runs its cost changes, and with it the text
    if attempt.finished and attempt.sums.whole.calls:
        yield f"Cost: {format_whole(attempt.sums)}"


def _event_parts(events: Sequence[Any]) -> Iterator[str]:
    """A section for each event about the work, newest first, without duplicates."""
    seen: set[str] = set()
    rows = [row for row in events if isinstance(row, Mapping) and event_kind(str(row.get("kind"))).heading]
    for row in sorted(rows, key=lambda row: str(row.get("created_at", "")), reverse=True)[:MAX_EVENTS]:
        said = _event_words(row)
        if said and said not in seen:
            seen.add(said)
            yield f"## {event_kind(row['kind']).heading} {clean_line(row.get('created_at'), 40)[:10]}"
            yield said


def _event_words(row: Mapping[str, Any]) -> str:
    """The text of an event: its summary, and its body or the relevant fields of a JSON body."""
    summary, body = row.get("summary"), row.get("body")
    text = body if isinstance(body, str) else ""
    # a body is prose, k=v lines or JSON, by the kind of event and the release (docs/formats/ddx.md)
    if text.startswith("{"):
        fields = decode_json(text) or {}
        said = [fields.get(name) for name in ("detail", "message", "rationale", "reason", "suggested_action")]
        text = "\n".join(one for one in said if isinstance(one, str) and one)
    parts = [clean_line(summary, 300) if isinstance(summary, str) else "", clean_block(text, MAX_EVENT).strip()]
    return "\n".join(part for part in parts if part)


def files_by_bead(commits: Iterable[tuple[str, Sequence[str]]], beads: Mapping[str, Any]) -> dict[str, list[str]]:
    """Bead id -> files, from (message, changed files) of commits whose messages name beads."""
    found: dict[str, dict[str, None]] = {}
    for message, files in commits:
        for word in re.findall(r"[A-Za-z][\w.]*-[0-9A-Za-z][\w.-]*", message):
            # many words have a dash in them; only an id that exists is one
            if word in beads:
                found.setdefault(word, {}).update(dict.fromkeys(files))
    return {bead_id: sorted(files) for bead_id, files in found.items()}


# --- memories and runs ------------------------------------------------------------------------------------


def memory_records(memories: Iterable[Memory]) -> Iterator[Record]:
    """A record for each memory that may be shown."""
    for memory in memories:
        if not memory.withheld:
            # how often it was shown, and its score, are no part of the text: they change while it stays
            facts = (memory.trigger, memory.resolution, memory.type, memory.source)
            yield Record("memory", memory.name, memory.name, lambda memory=memory: memory_text(memory), facts)  # type: ignore[misc]


def memory_text(memory: Memory) -> str:
    """A memory as a document."""
    source = f" · from {memory.source}" if memory.source else ""
    about = clean_line(f"memory {memory.name} · {memory.type}{source}", 600)
    trigger = clean_block(memory.trigger, MAX_PART).strip()
    what = clean_block(memory.resolution, MAX_PART).strip()
    # the title holds a short trigger whole
    told = [trigger] if len(trigger) > MAX_TITLE else []
    return "\n\n".join([f"# {clean_line(trigger, MAX_TITLE) or memory.name}", about, *told, what]) + "\n"


def run_record(name: str, lines: Sequence[str]) -> Record:
    """The record of one run of the loop: its own log lines, without output of programs."""
    said = tuple(lines[-MAX_RUN_LINES:])
    return Record("run", name, f"run log {name}", lambda: run_text(name, said), (said,))


def run_text(name: str, lines: Sequence[str]) -> str:
    """A run's log as a document."""
    return f"# Run {clean_line(name, 100)}\n\n" + "\n".join(clean_line(line, 600) for line in lines) + "\n"


# --- today ------------------------------------------------------------------------------------------------


def today_of(queue: Queue) -> tuple[str, ...]:
    """What there is to say of a queue now, a section each: its beads by state, in pick order where they are ready."""
    sections = []
    for state, ids in queue.by_state().items():
        if state in ("closed", "cancelled") or not ids:
            continue
        listed = [f"- {bead_id}: {clean_line(queue.beads[bead_id].title, 100)}" for bead_id in ids[:MAX_LISTED]]
        more = [f"- {len(ids) - MAX_LISTED:,} more"] if len(ids) > MAX_LISTED else []
        sections.append("\n".join((f"## {STATES[state].sign.word}: {counted(len(ids), 'bead')}", "", *listed, *more)))
    return tuple(sections)


def today_record(sections: Sequence[str]) -> Record:
    """The record of the queue as it is now."""
    said = tuple(sections)
    return Record("queue", "today", "the queue today", lambda: "\n\n".join(("# The queue today", *said)), (said,))
