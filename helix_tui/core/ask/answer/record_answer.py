"""Answer from the records of the work: a list of beads, memories or commits; the outcome of one bead or attempt.

A list names each record once, with its title, its state and its most relevant sentence. An account starts with the
newest attempt: its outcome and reason, its review, then earlier attempts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ask.answer.answer import Answer, Citation, Section
from helix_tui.core.ask.answer.compaction import Compaction, DroppedSpan, Kept
from helix_tui.core.ask.answer.sentences import sentences_of
from helix_tui.core.ask.records import DayOfWork, RecordPlace, Records, Span, record_place
from helix_tui.core.ask.retrieval.question import terms_in
from helix_tui.core.ask.retrieval.record_question import MONTHS, RecordsAsked, doing
from helix_tui.core.ask.retrieval.search import PoolEntry
from helix_tui.core.ask.tokens import STOP_WORDS, stem
from helix_tui.core.ground.text import clean_line, counted

_ABOUT = re.compile(r"bead \S+ · ")
"""The line of labels below a bead's title, which is skipped."""
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{8}(?=T)")

MAX_SAID_OF = 3
"""Maximum number of dated notes (`_SAID`) to quote since the last attempt."""
MAX_LISTED = 12
MAX_OF_MODEL = 3
MAX_RUNS_TOLD = 3
MAX_RUN_SAID = 6
"""Maximum number of runs of a day to quote, and of last lines from each."""
MAX_NAMED = 60
"""Maximum number of further attempts that are named by id only."""
MAX_SENTENCE = 220
MAX_SAID = 420
LEAST_SHARE = 0.5
"""Minimum share of the subject's words in a listed record, if no record has all of them."""
_OVER = ("closed", "cancelled")
_EXCLUDES = re.compile(r" > (?:non-?scope|non-?goals?|out of scope)$", re.IGNORECASE)
"""Headings of sections on what a bead does not touch."""
_WHERE = {"attempt": ("Attempt ",), "review": ("Review o",)}
_SAID = ("Review on ", "Check failed on ", "Needed a person on ", "Blocked on ", "Unclear on ", "Split on ")
"""Starts of headings of notes about the work, each followed by a day."""


class RecordAnswer(Struct, frozen=True):
    """An answer from records, and whether it is complete."""

    answer: Answer
    complete: bool
    """Whether the records answer: each listed one covers the whole question, or the requested one is described."""

    def compaction(self, entries: Sequence[PoolEntry], policy: str, budget: dict[str, int]) -> Compaction:
        """Keep as evidence only the passages that this answer cites."""
        cited = {one.span.key for one in self.answer.sources}
        kept = tuple(Kept(one, "other", "a record asked about") for one in entries if one.span.key in cited)
        left = [one for one in entries if one.span.key not in cited]
        dropped = tuple(DroppedSpan(one, "other", "the records answer") for one in left)
        return Compaction(kept, dropped, (), policy, budget)


def answer_records(asked: RecordsAsked, spans: Sequence[Span], records: Records | None) -> RecordAnswer | None:
    """Answer a question about records; None if files must answer, or the records cannot."""
    if asked.by_model and spans and records is not None:
        return count_by_model(asked, spans, title=records.title)
    if asked.ended and records is not None:
        day = records.of_day(asked.day) if asked.day else None
        return list_attempts(asked, spans, title=records.title, day=day)
    if asked.day and records is not None:
        return describe_day(records.of_day(asked.day), title=records.title)
    if asked.all_in_state and records is not None and not spans:
        word = asked.state.replace("_", " ")
        said = f"No attempt is recorded that {_ENDS[word]}." if word in _ENDS else f"No bead is {word}."
        return RecordAnswer(Answer((Section("", (said,)),), ()), True)
    if not asked.only_records or not spans:
        return None
    title = records.title if records is not None else lambda _: ""
    state = records.state if records is not None else lambda _: ""
    by_title = asked.one_bead and _words(asked.subject) <= terms_in(title(spans[0].file))
    named = [span for span in spans if span.file == spans[0].file and (by_title or _has_id(spans, asked.ids))]
    if named and asked.shape != "list":
        return describe_record(named, title=title(named[0].file), state=state(named[0].file.partition(":")[2]))
    if asked.ids and asked.shape == "account":
        return None
    every = records.in_state(asked.kinds[0], asked.state)[0] if records is not None and asked.all_in_state else 0
    return list_records(asked, spans, title=title, state=state, every=every)


def _has_id(spans: Sequence[Span], ids: Sequence[str]) -> bool:
    """Whether an id in the question is that of the first record or of one of its attempts; if not, the search found
    other records.
    """
    record = spans[0].file.partition(":")[2]
    headings = "\n".join(span.header for span in spans if span.file == spans[0].file)
    return any(record.startswith(one) or record.endswith(one) or one in headings for one in ids)


class _Cited:
    """Numbered sources, in order of citation."""

    def __init__(self) -> None:
        self.all: list[Citation] = []

    def cite(self, span: Span) -> str:
        for one in self.all:
            if one.span.key == span.key:
                return f"[{one.number}]"
        self.all.append(Citation(len(self.all) + 1, span, span.start, span.end))
        return f"[{len(self.all)}]"


# --- lists ------------------------------------------------------------------------------------------------


class _Listed(Struct, frozen=True):
    """A listed record: its most relevant passage, and the share of the subject that it covers."""

    place: RecordPlace
    span: Span
    title: str
    state: str
    share: float


def list_records(
    asked: RecordsAsked,
    spans: Sequence[Span],
    *,
    title: Callable[[str], str],
    state: Callable[[str], str],
    every: int = 0,
) -> RecordAnswer | None:
    """List the records about a subject, best first; None if there are none.

    Args:
        asked: what was asked.
        spans: passages of records, best first.
        title: the title of a record by its file.
        state: the status of a bead by its id.
        every: the number of records in the requested state, of which ``spans`` are the first; 0 if none is requested.
    """
    wanted = _words(asked.subject)
    listed = list(_candidates(asked, spans, wanted, title, state))
    listed.sort(key=lambda one: -len(wanted & terms_in(one.title)))
    full = [one for one in listed if one.share >= 1]
    chosen = full or [one for one in listed if one.share >= LEAST_SHARE]
    if not chosen:
        return None
    kept = chosen[:MAX_LISTED]
    cited = _Cited()
    some = "" if full else ", none with all of its words"
    about = f" on “{clean_line(asked.subject, 60)}”" if asked.subject else ""
    lines = tuple(f"{_entry(one, wanted)} {cited.cite(one.span)}" for one in kept)
    count = every or len(chosen)
    about = f" {asked.state.replace('_', ' ')}" if every else about
    noun = _noun(asked, kept)
    said = counted(count, noun, "memories" if noun == "memory" else "")
    sections = [Section(f"{said}{about}{some}", lines)]
    if count > len(kept):
        # a line that begins with "searched" is not a claim for the gate: no source could support it
        sections.append(Section("Not listed", (f"searched: {count - len(kept)} more, further down",)))
    return RecordAnswer(Answer(tuple(sections), tuple(cited.all)), bool(full))


def _candidates(
    asked: RecordsAsked,
    spans: Sequence[Span],
    wanted: frozenset[str],
    title: Callable[[str], str],
    state: Callable[[str], str],
) -> Iterator[_Listed]:
    starts = tuple(start for kind in asked.kinds for start in _WHERE.get(kind, ()))
    by_record: dict[str, list[Span]] = {}
    for span in spans:
        place = record_place(span.file, span.header)
        if place is None or (starts and not place.section.startswith(starts)) or _EXCLUDES.search(span.header):
            continue
        by_record.setdefault(span.file if not starts else f"{span.file} {place.section}", []).append(span)
    for group in by_record.values():
        place = record_place(group[0].file, group[0].header)
        assert place is not None
        status = state(place.record) if group[0].file.startswith("bead:") else ""
        if not asked.all_in_state and asked.kinds == ("bead",) and not _is_in(asked.state, status):
            continue
        name = title(group[0].file) or group[0].header.partition(" > ")[0]
        words = terms_in("\n".join([name, *(span.text for span in group)]))
        share = sum(bool(words & {word, stem(doing(word))}) for word in wanted) / len(wanted) if wanted else 1.0
        best = max(group, key=lambda span: len(wanted & terms_in(f"{span.header}\n{span.text}")))
        yield _Listed(place, best, name, status, share)


def _in_words(state: str) -> str:
    return clean_line(state.replace("_", " "), 20)


def _is_in(asked: str, state: str) -> bool:
    """Whether a bead's state is the requested one; words other than open, closed and ready ("past") request none."""
    if asked in ("open", "closed"):
        return (state in _OVER) == (asked == "closed")
    return asked != "ready" or state == asked


def _entry(one: _Listed, wanted: frozenset[str]) -> str:
    """One line for a record: its id, title, state and, unless the title suffices, its most relevant sentence."""
    state = f" ({_in_words(one.state)})" if one.state else ""
    part = f", {one.place.section}" if one.place.kind == "attempt" else ""
    head = f"`{clean_line(one.place.record, 80)}` {clean_line(one.title, 160)}{state}{part}"
    if wanted <= terms_in(one.title):
        return head
    said = _best_sentence(one.span, wanted)
    return f"{head}: {said}" if said else head


def _best_sentence(span: Span, wanted: frozenset[str]) -> str:
    best, most = "", 0
    for sentence in sentences_of(span):
        speaks = len(wanted & terms_in(sentence.text))
        if speaks > most and not _ABOUT.match(sentence.text):
            best, most = sentence.text, speaks
    return clean_line(best, MAX_SENTENCE)


def _noun(asked: RecordsAsked, kept: Sequence[_Listed]) -> str:
    if asked.kinds:
        return asked.kinds[0]
    kinds = {one.place.kind for one in kept}
    return next(iter(kinds)) if len(kinds) == 1 else "record"


def _words(subject: str) -> frozenset[str]:
    return terms_in(" ".join(word for word in re.findall(r"\S+", subject) if word.lower() not in STOP_WORDS))


_TOGETHER = re.compile(r"^(\d+) more attempts before it ended the same way", re.MULTILINE)
_WHO = re.compile(r"^It [a-z ]+ on [\d-]+ by ([^:\s]+):", re.MULTILINE)
_SAME: dict[str, tuple[str, ...]] = {
    "merge": ("land", "rebase"),
    "quota": ("rate", "limit", "usage"),
    "network": ("connection", "dial", "unreachable"),
    "timeout": ("deadline", "timed", "time"),
    "money": ("cost", "budget"),
}
"""Words of users, with those of ddx and its agents for the same causes."""
_ENDS = {
    "landed": "landed",
    "kept aside": "went aside",
    "refused": "a review refused",
    "no change": "changed nothing",
    "satisfied": "found its work done",
    "failed": "failed",
    "interrupted": "ended before its time",
}


def list_attempts(
    asked: RecordsAsked, spans: Sequence[Span], *, title: Callable[[str], str], day: DayOfWork | None = None
) -> RecordAnswer:
    """List the attempts with a requested outcome, newest first; with a cause, only those that match it best.

    Args:
        asked: what was asked; it names an outcome.
        spans: the passages of all attempts with that outcome, newest first.
        title: the title of a record by its file.
        day: the records of the day, if only its attempts are wanted.
    """
    causes = [_ways(word) for word in sorted(_words(asked.cause))]
    about = _words(asked.subject)
    rows: list[tuple[float, Span]] = []
    for span in spans:
        # leave out the heading: the attempt's id names no cause
        said = terms_in(span.text.partition("\n")[2])
        if about <= terms_in(f"{title(span.file)}\n{span.text}"):
            rows.append((sum(bool(ways & said) for ways in causes) / len(causes) if causes else 1.0, span))
    best = max((share for share, _ in rows), default=0.0)
    # a cause of one word must be named; of several words, half suffices if no record has all
    kept = [span for share, span in rows if share == best >= (1.0 if len(causes) < 2 else LEAST_SHARE)]
    ends = _ENDS.get(asked.ended[0], "did not land") if len(asked.ended) == 1 else "did not land"
    why = f" for “{clean_line(asked.cause, 60)}”" if asked.cause else ""
    on = f" on “{clean_line(asked.subject, 60)}”" if asked.subject else ""
    # consecutive attempts with the same outcome share one passage
    count = len(kept) if asked.day or asked.month else sum(map(_stands_for, kept))
    if day is not None and not causes and not about:
        count = max(count, sum(number for end, number in day.ends.items() if end in asked.ended))
    some = "" if best == 1 or not kept else ", none with all of its words"
    when = f" on {day.day}" if day is not None else _in_month(asked.month)
    head = f"{counted(count, 'attempt')} that {ends}{when}{why}{on}{some}"
    if not kept:
        none = f"No attempt is recorded that {ends}{when}{why}{on}."
        # an outcome and a day are parsed reliably, a subject may not be
        return RecordAnswer(Answer((Section("", (none,)),), ()), not asked.subject)
    cited = _Cited()
    lines = tuple(f"{_attempt_line(span, title(span.file))} {cited.cite(span)}" for span in kept[:MAX_LISTED])
    sections = [Section(head, lines)]
    if len(kept) > MAX_LISTED:
        more = [f"`{_attempt_id(span)}`" for span in kept[MAX_LISTED : MAX_LISTED + MAX_NAMED]]
        sections.append(Section("Also", (f"searched: {len(kept) - MAX_LISTED} more: {', '.join(more)}",)))
    return RecordAnswer(Answer(tuple(sections), tuple(cited.all)), best == 1)


def _in_month(month: str) -> str:
    """`` in April 2026`` for ``2026-04``; empty for none."""
    year, _, number = month.rpartition("-")
    return f" in {MONTHS[int(number) - 1]} {year}".rstrip() if month else ""


def count_by_model(asked: RecordsAsked, spans: Sequence[Span], *, title: Callable[[str], str]) -> RecordAnswer:
    """Count each model's attempts with the requested outcomes, highest count first, each with its newest attempts.

    Args:
        asked: what was asked; it names outcomes.
        spans: the passages of all attempts with those outcomes, newest first.
        title: the title of a record by its file.
    """
    by: dict[str, list[Span]] = {}
    for span in spans:
        who = _WHO.search(span.text)
        by.setdefault(who[1] if who else "", []).append(span)
    counts = {who: sum(map(_stands_for, found)) for who, found in by.items()}
    cited = _Cited()
    ends = f" that {_ENDS[asked.ended[0]]}" if len(asked.ended) == 1 else ""
    # a count is part of the heading: no single passage can support it
    sections = [
        Section(
            f"{clean_line(who, 80) or 'no model named'}, {counted(counts[who], 'attempt')}{ends}",
            tuple(f"{_attempt_line(span, title(span.file))} {cited.cite(span)}" for span in by[who][:MAX_OF_MODEL]),
        )
        for who in sorted(by, key=lambda who: (-counts[who], who))[:MAX_LISTED]
    ]
    return RecordAnswer(Answer(tuple(sections), tuple(cited.all)), True)


def _stands_for(span: Span) -> int:
    """The number of attempts in a passage: consecutive ones with the same outcome share one."""
    return 1 + sum(map(int, _TOGETHER.findall(span.text)))


def _ways(word: str) -> frozenset[str]:
    """A word of a cause, and its synonyms."""
    same = next((names for name, names in _SAME.items() if word in terms_in(name)), ())
    return frozenset((word, *terms_in(" ".join(same))))


def _attempt_id(span: Span) -> str:
    return _section_of(span).removeprefix("Attempt ")


def _attempt_line(span: Span, title: str) -> str:
    """One line for an attempt: its id, its bead, and its outcome as recorded."""
    place = record_place(span.file, span.header)
    lines = [line for line in span.text.split("\n")[1:] if not _TOGETHER.match(line) and not line.startswith("Cost: ")]
    said = clean_line(_lowered(" ".join(lines).strip()), MAX_SENTENCE)
    bead = f"`{clean_line(place.record, 80)}` {clean_line(title, 100)}" if place is not None else ""
    return f"`{_attempt_id(span)}` at {bead}: {said}"


# --- a day ------------------------------------------------------------------------------------------------


def describe_day(day: DayOfWork, *, title: Callable[[str], str]) -> RecordAnswer:
    """Describe a day: how its attempts ended, one per line, and the last lines of its runs."""
    cited = _Cited()
    count = sum(day.ends.values())
    if not count and not day.runs:
        # “nothing is recorded” answers the question
        return RecordAnswer(Answer((Section("", (_no_day(day.day),)),), ()), True)
    ends = ", ".join(f"{number} {end}" for end, number in day.ends.items())
    sections = []
    if day.attempts:
        lines = tuple(
            f"{_attempt_line(span, title(span.file))} {cited.cite(span)}" for span in day.attempts[:MAX_LISTED]
        )
        cost = f", cost {day.cost}" if day.cost else ""
        sections.append(Section(f"{day.day}, {counted(count, 'attempt')}: {ends}{cost}", lines))
    left = count - min(len(day.attempts), MAX_LISTED)
    if day.attempts and left > 0:
        sections.append(Section("Not listed", (f"searched: {left} more, further down",)))
    for span in day.runs[-MAX_RUNS_TOLD:]:
        said = [line for line in span.text.split("\n")[1:] if line.strip()][-MAX_RUN_SAID:]
        if said:
            lines = tuple(f"{clean_line(line, MAX_SENTENCE)} {cited.cite(span)}" for line in said)
            sections.append(Section("The end of the run's log", lines))
    return RecordAnswer(Answer(tuple(sections), tuple(cited.all)), True)


def _no_day(day: str) -> str:
    return f"Nothing is recorded for {day}: no attempt ended, no run was logged." if day else "No run is recorded."


# --- accounts ---------------------------------------------------------------------------------------------


def describe_record(spans: Sequence[Span], *, title: str, state: str) -> RecordAnswer | None:
    """Describe a bead's outcome: its newest attempt first, then earlier ones; None if it has no passage.

    Args:
        spans: all passages of the record, in the order of its text.
        title: its title.
        state: its status.
    """
    if not spans:
        return None
    cited = _Cited()
    first = record_place(spans[0].file, spans[0].header)
    assert first is not None
    is_state = f", which is {_in_words(state)}" if state else ""
    lead = [f"`{clean_line(first.record, 80)}` is “{clean_line(title, 160)}”{is_state}. {cited.cite(spans[0])}"]
    attempts = [span for span in spans if _section_of(span).startswith("Attempt ")]
    reviews = {
        _section_of(span).removeprefix("Review of "): span for span in spans if "Review of " in _section_of(span)
    }
    said = [span for span in spans if _section_of(span).startswith(_SAID)]
    held = next((span for span in spans if _section_of(span) == "Held back"), None)
    lead += [f"It is held back: {_said(held)} {cited.cite(held)}"] if held is not None else []
    if not attempts:
        lead += [_dated(span, cited) for span in said[:MAX_SAID_OF]] or ["No attempt at it is recorded."]
        return RecordAnswer(Answer((Section("", tuple(lead)),), tuple(cited.all)), bool(held or said))
    newest, *older = attempts
    lead += _account("The last attempt", newest, reviews, cited)
    day = _day_of(newest)
    # notes from before the last attempt are about an earlier one
    lead += [_dated(span, cited) for span in said[:MAX_SAID_OF] if _day_of(span) >= day]
    sections = [Section("", tuple(lead))]
    # if the bead has landed, what went wrong was before that
    failed = next((one for one in older if not _landed(one)), None) if _landed(newest) else None
    if failed is not None:
        older.remove(failed)
        lines = tuple(_account("The last attempt that did not land", failed, reviews, cited))
        sections.append(Section("What went wrong before", lines))
    if older:
        sections.append(
            Section("Before that", tuple(line for one in older[:4] for line in _brief(one, reviews, cited)))
        )
    return RecordAnswer(Answer(tuple(sections), tuple(cited.all)), True)


def _dated(span: Span, cited: _Cited) -> str:
    """One line for a dated note: ``Review on 2026-08-02: BLOCK …``."""
    return f"{_section_of(span)}: {_said(span)} {cited.cite(span)}"


def _day_of(span: Span) -> str:
    """The day in a section's heading or in its attempt's id, as ``YYYYMMDD``; empty if there is none."""
    found = _DAY.search(_section_of(span))
    return found[0].replace("-", "") if found is not None else ""


def _landed(span: Span) -> bool:
    return "\nIt landed " in span.text


def _account(head: str, span: Span, reviews: dict[str, Span], cited: _Cited) -> Iterator[str]:
    """Yield the first lines of an attempt's section, seven at most, and its review."""
    attempt = _section_of(span).removeprefix("Attempt ")
    lines = [line for line in span.text.split("\n")[1:] if line.strip()]
    if lines:
        yield f"{head} ({attempt}): {clean_line(_lowered(lines[0]), MAX_SAID)} {cited.cite(span)}"
    for line in lines[1:7]:
        yield f"{_ended(clean_line(line, MAX_SAID))} {cited.cite(span)}"
    review = reviews.get(attempt)
    if review is not None:
        yield f"Its review: {_said(review)} {cited.cite(review)}"


def _brief(span: Span, reviews: dict[str, Span], cited: _Cited) -> Iterator[str]:
    attempt = _section_of(span).removeprefix("Attempt ")
    lines = [line for line in span.text.split("\n")[1:] if line.strip()]
    yield f"{attempt}: {clean_line(lines[0] if lines else 'nothing was recorded', MAX_SENTENCE)} {cited.cite(span)}"
    review = reviews.get(attempt)
    if review is not None:
        yield f"its review: {_said(review)} {cited.cite(review)}"


def _said(span: Span) -> str:
    return clean_line(" ".join(span.text.split("\n")[1:]), MAX_SAID)


def _section_of(span: Span) -> str:
    place = record_place(span.file, span.header)
    return place.section if place is not None else ""


def _ended(text: str) -> str:
    """End a line as a sentence; else the gate would join it with the next one into one claim."""
    return text if text.endswith((".", "!", "?", "…", ":")) else f"{text}."


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:] if text.startswith("It ") else text
