"""Compose the answer without a model: the passages that answer, quoted under their places; and check which of a model's
claims its sources support.

The deterministic fallback is the seed's: definitions, evidence, the tree walk, the sources. A model gets the twenty
best items and reports in the same call which it used, the most useful first; that order counts in the ranking. A claim
that its sources do not support is removed and kept with the reason; if none is left, or existing evidence is denied,
the answer without the model is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ask.answer.compaction import Kept
from helix_tui.core.ask.answer.grounding import AnswerClaim, Grounding, cited_numbers, denies, judge
from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.answer.passages import Passage
from helix_tui.core.ask.answer.quotes import sentences_in
from helix_tui.core.ask.question import Question, Slot, terms_in
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.pool import PoolEntry
from helix_tui.core.ask.retrieval.senses import Ambiguity, Weighed, defines
from helix_tui.core.ground.text import clean_block, clean_line

MOST_LINES = 30
"""Maximum lines of an answer without a model, its places counted: what is read of it."""
MOST_LINE = 240
MOST_DEFINITIONS = 2
_WORD = re.compile(r"[^\W\d_]{2,}")

QUOTED = "    "
"""Prefix of a quoted line, as for code in plain text."""

MAX_MODEL_ITEMS = 20
_USED = re.compile(r"(?im)^\W*USED\b\W*(?P<list>(?:\[?\d{1,3}\]?[\s,;>]*)+)\W*$")
_EMPTY = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s*$\n?")


class Citation(Struct, frozen=True):
    """A cited source: the span, and its quoted lines."""

    number: int
    span: Span
    start: int
    end: int

    @property
    def place(self) -> str:
        """``file:start-end`` of the quoted lines."""
        lines = f"{self.start}" if self.start == self.end else f"{self.start}-{self.end}"
        return f"{self.span.file}:{lines}"


class Section(Struct, frozen=True):
    """A part of an answer; leading parts and quotes have no title."""

    title: str
    lines: tuple[str, ...]
    quote: tuple[str, ...] = ()
    """Quoted lines of the repository, below the last line."""


class Answer(Struct, frozen=True):
    """An answer in parts."""

    sections: tuple[Section, ...]
    sources: tuple[Citation, ...]
    """Every kept span, by number; those that the text cites come first."""

    @property
    def body(self) -> str:
        """The parts as one text, without the list of sources."""
        return self._text(with_quotes=True)

    @property
    def claims(self) -> str:
        """The answer's own claims: its text, with one line for each quote."""
        return self._text(with_quotes=False)

    def _text(self, *, with_quotes: bool) -> str:
        blocks = []
        for section in self.sections:
            bulleted = bool(section.title)
            lines = [f"- {line}" if bulleted else line for line in section.lines]
            title = [f"{section.title}:"] if section.title else []
            quote = [f"{QUOTED}{line}".rstrip() for line in section.quote]
            if section.quote and not with_quotes:
                # a quote is not a claim: one line of it goes through the gate, with the quote's source
                longest = max(section.quote, key=lambda line: len(_WORD.findall(line)))
                lines, quote = [f"{' '.join(_WORD.findall(longest))} {lines[0].rpartition(' ')[2]}"], []
            blocks.append("\n".join([*title, *lines, *quote]))
        return "\n\n".join(blocks)

    @property
    def cited(self) -> tuple[Citation, ...]:
        """The sources that the text cites."""
        numbers = set(cited_numbers(self.claims))
        return tuple(source for source in self.sources if source.number in numbers)

    @property
    def text(self) -> str:
        """The whole answer with its sources."""
        return with_sources(self.body, self.cited)


def with_sources(body: str, cited: Sequence[Citation]) -> str:
    """A text followed by the sources that it cites."""
    lines = [
        f"[{one.number}] {clean_line(one.place, 400)}  {clean_line(one.span.header, 200)}".rstrip() for one in cited
    ]
    return f"{body}\n\nSources:\n" + "\n".join(lines) if lines else body


class _Sources:
    """Numbers of spans, in order of first citation."""

    def __init__(self) -> None:
        self.by_key: dict[tuple[str, int, int], Citation] = {}

    def cite(self, span: Span, start: int, end: int) -> str:
        held = self.by_key.get(span.key)
        if held is None:
            held = Citation(len(self.by_key) + 1, span, start, end)
        self.by_key[span.key] = replace(held, start=min(held.start, start), end=max(held.end, end))
        return f"[{held.number}]"

    def number(self, span: Span) -> None:
        """Give a span the next number unless it has one."""
        if span.key not in self.by_key:
            self.whole(span)

    def whole(self, span: Span) -> str:
        return self.cite(span, span.start, span.end)


def compose(question: Question, kept: Sequence[Kept], passages: Sequence[Passage], missing: Sequence[Slot]) -> Answer:
    """Compose the answer from the evidence alone: the best passages, as many as are read; for a question what something
    is, before them the sentences that define it.
    """
    sources = _Sources()
    there = {one.entry.span.key for one in kept}
    # a passage that compaction dropped is not evidence of this answer, so it is not quoted either
    quoted = [passage for passage in passages if passage.found.key in there]
    sections: list[Section] = []
    defining = [(one, *definition) for one in quoted for definition in _definitions(one.span, question)[:1]][
        :MOST_DEFINITIONS
    ]
    if defining:
        lines = (
            f"{clean_line(said, 400)} {sources.cite(one.found, one.span.start + at, one.span.start + at)}"
            for one, said, at in defining
        )
        sections.append(Section("Definition", tuple(lines)))
    room = MOST_LINES - 2 * bool(missing) - sum(2 + len(section.lines) for section in sections)
    for one in quoted:
        # a place and two lines at least
        if room < 3 and sections:
            break
        sections.append(_quote(one, sources, room - 1))
        room -= 2 + len(sections[-1].quote)
    if not sections:
        span = kept[0].entry.span
        sections.append(Section("", (f"The nearest is {_named(span)} in {_file(span)} {sources.whole(span)}",)))
    if missing:
        labels = ", ".join(f"“{clean_line(slot.label, 80)}”" for slot in missing)
        sections.append(Section("", (f"Not found: {labels}.",)))
    for held in kept:
        # number uncited spans too: a model gets the items by these numbers
        sources.number(held.entry.span)
    return Answer(tuple(sections), tuple(sources.by_key.values()))


def _definitions(span: Span, question: Question) -> list[tuple[str, int]]:
    """The sentences of prose that define what the question asks the meaning of, each with its line from 0."""
    # a line of code with a colon defines something else
    focus = sorted(terms_in(question.focus)) if span.role in ("doc", "record") else []
    return [(said, at) for said, at in sentences_in(span.text) if focus and defines(said, focus)]


def _quote(one: Passage, sources: _Sources, most: int) -> Section:
    """A passage verbatim, under its place, at most some lines of it."""
    span = one.span
    # cleaning turns a CR inside a line into a line break; the place above would then be wrong
    whole = [clean_block(line).replace("\n", " ") for line in span.text.expandtabs(4).split("\n")]
    lines = [line if len(line) <= MOST_LINE else f"{line[:MOST_LINE]}…" for line in whole]
    lines = lines[: max(1, most)]
    while len(lines) > 1 and not lines[-1].strip():
        lines.pop()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    named = f" `{clean_line(span.header, 120)}`" if span.header else ""
    last = span.start + len(lines) - 1
    title = f"`{_file(span)}:{span.start}-{last}`{named} {sources.cite(one.found, span.start, last)}"
    return Section("", (title,), tuple(line[margin:].rstrip() for line in lines))


def _file(span: Span) -> str:
    return clean_line(span.file, 400)


def _named(span: Span) -> str:
    """A span's name: its definition or heading, else its lines."""
    return f"`{clean_line(span.header, 120)}`" if span.header else f"lines {span.start} to {span.end}"


def searched(queries: Sequence[str]) -> str:
    """The queries that were searched, in one line; at most six."""
    return "searched: " + "; ".join(f"“{clean_line(query, 80)}”" for query in queries[:6])


# --- when the evidence does not decide --------------------------------------------------------------------


def ask_which(ambiguity: Ambiguity, threshold: float, queries: Sequence[str]) -> Answer:
    """Ask the user to choose: two options with their evidence, what was searched, and what would decide."""
    sources = _Sources()
    lines = [f"“{clean_line(ambiguity.term, 80)}” means more than one thing here, and the evidence does not decide."]
    options = [_option(number, one, sources) for number, one in enumerate(ambiguity.weighed[:2], 1)]
    first, second = ambiguity.weighed[:2]
    why = (
        f"“{clean_line(ambiguity.term, 80)}” failed dominance: {first.score:.2f} against {second.score:.2f},"
        f" a lead of {ambiguity.gap:.2f} where {threshold:.2f} is needed",
        f"it would need {would_decide(ambiguity)}",
        searched([*queries, *(one.query for one in ambiguity.weighed)]),
    )
    return Answer(
        (Section("", (*lines, *options, "Which do you mean?")), Section("What would decide", why)),
        tuple(sources.by_key.values()),
    )


def would_decide(ambiguity: Ambiguity) -> str:
    """The evidence that would decide which sense is meant."""
    labels = " or ".join(f"“{clean_line(one.sense.label, 80)}”" for one in ambiguity.weighed[:2])
    alone = clean_line(ambiguity.term, 60)
    return f"a question that names {labels}, or a document that says what “{alone}” alone means"


def _option(number: int, one: Weighed, sources: _Sources) -> str:
    evidence = best_evidence(one)
    label = clean_line(one.sense.label, 100)
    if evidence is None:
        at = one.sense.anchors[0] if one.sense.anchors else None
        return f"{number}. {label}" + (f" ({clean_line(at.file, 400)})" if at is not None else "")
    span, said, line = evidence
    return f"{number}. {label}: {clean_line(said, 240)} {sources.cite(span, line, line)}"


def best_evidence(one: Weighed) -> tuple[Span, str, int] | None:
    """The best sentence for a sense, with its span and line: one that defines it, else the first of its best span; None
    if it has no span.
    """
    spans = sorted(
        one.spans,
        key=lambda span: (
            not any(span.file == at.file and span.start <= at.end and at.start <= span.end for at in one.sense.anchors)
        ),
    )
    found = [(span, said, span.start + at) for span in spans for said, at in sentences_in(span.text)]
    telling = [each for each in found if defines(each[1], sorted(one.sense.terms))]
    return next(iter(telling or found), None)


def say_nothing_found(kept: Sequence[Kept], missing: Sequence[Slot], queries: Sequence[str], empty: str = "") -> Answer:
    """Say that nothing was found, with what was searched, what would suffice, and what came nearest; or ``empty``, why
    there was nothing to search.
    """
    sources = _Sources()
    labels = ", ".join(f"“{clean_line(slot.label, 80)}”" for slot in missing)
    what = f"Nothing that was searched mentions {labels}." if labels else "What was found is about something else."
    near = [f"{_named(one.entry.span)} in {_file(one.entry.span)} {sources.whole(one.entry.span)}" for one in kept[:3]]
    said = empty or f"{what} Which file or name do you mean?"
    sections = [Section("", (said,))]
    if near:
        sections.append(Section("Nearest", tuple(near)))
    needed = (f"“{clean_line(slot.label, 80)}”: it would need {slot.would_satisfy}" for slot in missing)
    sections.append(Section("Not found", (*needed, searched(queries))))
    for one in kept:
        sources.number(one.entry.span)
    return Answer(tuple(sections), tuple(sources.by_key.values()))


class ModelAnswer(Struct, frozen=True):
    """A model's reply, as far as it is supported."""

    text: str = ""
    """Its answer without unsupported claims; empty if rejected."""
    used: tuple[int, ...] = ()
    """Numbers of the items that it used, in its order."""
    left_out: tuple[AnswerClaim, ...] = ()
    """Its claims that their citations do not support."""
    grounding: Grounding = field(default_factory=lambda: Grounding((), 0.0))
    """The gate's result on the whole reply."""
    refused: str = ""
    """Why it was rejected, or ""."""


def model_items(cited: Sequence[Citation], entries: Iterable[PoolEntry]) -> tuple[Citation, ...]:
    """The items for the model: those of the answer without it, with their numbers, then the best others."""
    items = [*cited[:MAX_MODEL_ITEMS]]
    for entry in entries:
        if len(items) >= MAX_MODEL_ITEMS:
            break
        span = entry.span
        if not any(_overlap(item.span, span) for item in items):
            items.append(Citation(len(items) + 1, span, span.start, span.end))
    return tuple(items)


def _overlap(one: Span, other: Span) -> bool:
    return one.file == other.file and one.start <= other.end and other.start <= one.end


def read_answer(
    reply: ModelReply, sources: Mapping[int, Span], missing: Sequence[Slot], threshold: float
) -> ModelAnswer:
    """Check a model's reply with the gate.

    Args:
        reply: the model's reply.
        sources: the items that it was given, by number.
        missing: what was not found; saying so is not a denial.
        threshold: the share of claims that must be grounded.
    """
    if reply.error:
        return ModelAnswer(refused=reply.error)
    match = _USED.search(reply.text)
    text = _USED.sub("", reply.text).strip()
    # checked in the whole text, before claims are removed
    denial = denies(text, missing)
    if denial:
        return ModelAnswer(refused=f"it denies evidence that exists: “{denial[:120]}”")
    grounding = judge(text, sources, threshold)
    if not grounding.cites_anything:
        return ModelAnswer(refused="it cites nothing", grounding=grounding)
    if grounding.ratio == 0:
        return ModelAnswer(refused="none of its claims are in what it cites", grounding=grounding)
    left_out = tuple(claim for claim in grounding.claims if not claim.grounded)
    kept = _without(text, left_out)
    named = tuple(int(number) for number in re.findall(r"\d+", match["list"])) if match is not None else ()
    # a number that the model was not given is not an item
    used = dict.fromkeys(number for number in (*named, *cited_numbers(kept)) if number in sources)
    return ModelAnswer(kept, tuple(used), left_out, grounding)


def _without(text: str, claims: Iterable[AnswerClaim]) -> str:
    """Remove some of a text's sentences."""
    for claim in claims:
        # blanks are collapsed in a claim; the text still has its line breaks
        words = r"\s+".join(map(re.escape, claim.text.split()))
        text = re.sub(words, "", text, count=1)
    text = re.sub(r"[ \t]+$", "", _EMPTY.sub("", text), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def ranked_by_use(files: Sequence[str], used: Iterable[Span]) -> list[str]:
    """A ranking of files with those used in an answer first, in order of use."""
    known = set(files)
    first = dict.fromkeys(span.file for span in used if span.file in known)
    return [*first, *(file for file in files if file not in first)]
