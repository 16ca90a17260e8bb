"""Compose the answer without a model, from sentences of the evidence with their sources; and check which of a model's
claims its sources support.

Sentences come from the kept spans; only a few connecting words are added. The parts are those of docs/formats/ask.md
§1, phase 7: what it is, the evidence, the code, what was not found, the sources.

A model gets the twenty best items and reports in the same call which it used, the most useful first; that order counts
in the ranking. A claim that its sources do not support is removed and kept with the reason; if none is left, or
existing evidence is denied, the answer without the model is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ask.answer.compaction import Kept
from helix_tui.core.ask.answer.grounding import AnswerClaim, Grounding, cited_numbers, denies, judge
from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.answer.passages import Passage
from helix_tui.core.ask.answer.sentences import (
    Sentence,
    definition_line,
    is_comment,
    is_definition,
    is_import,
    sentences_of,
)
from helix_tui.core.ask.corpus.listing import is_declaration
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.question import Question, Slot, covers, terms_in
from helix_tui.core.ask.retrieval.search import PoolEntry
from helix_tui.core.ask.retrieval.senses import Ambiguity, Weighed, defines
from helix_tui.core.ground.text import clean_block, clean_line

MOST_SENTENCES = 5
MOST_ALSO = 3
"""Maximum sentences beside quoted passages."""
MOST_QUOTES = 4
_MOST_QUOTES: dict[str, int] = {"usage": 3}
MOST_QUOTED_LINES = 120
"""Maximum lines of all quotes."""
MOST_LINE = 240
MOST_FURTHER = 8
MOST_CODE = 5
MOST_DOCUMENTS = 5
MOST_USES = 5
ALIKE = 0.7
"""Overlap of words at which a sentence adds nothing new."""
LEAST_WORDS = 4
"""Minimum words of a sentence; shorter texts are parameters or titles."""
SHORT = 6
"""Minimum words of an informative sentence."""
KEEP_SHARE = 0.55
"""Share of the best sentence's score at which another one is included too."""


_WORD = re.compile(r"[^\W\d_]{2,}")


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


QUOTED = "    "
"""Prefix of a quoted line, as for code in plain text."""


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


def compose(
    question: Question,
    kept: Sequence[Kept],
    slots: Sequence[Slot],
    missing: Sequence[Slot],
    queries: Sequence[str],
    passages: Sequence[Passage] = (),
    unsaid: Sequence[str] = (),
) -> Answer:
    """Compose the answer from the evidence alone: whole passages, then sentences and places of the rest.

    ``unsaid`` are words of the question without evidence: the answer says so first.
    """
    sources = _Sources()
    required = [slot for slot in slots if slot.required]
    there = {one.entry.span.key for one in kept}
    # a passage that compaction dropped is not evidence of this answer, so it is not quoted either
    answering = [one for one in passages if one.span.key in there and not one.tests]
    tests = [one for one in passages if one.span.key in there and one.tests]
    quoted = list(_quoted(answering, _MOST_QUOTES.get(question.kind, MOST_QUOTES)))
    rest = [one for one in kept if one.entry.span.key not in {passage.span.key for passage in (*answering, *tests)}]
    sentences = _telling(question, kept, required)
    lead: list[str] = []
    if question.kind == "usage" or (question.kind == "location" and not quoted):
        lead += _places(question, kept, required, sources)
    # leading sentences: one for a definition or below a place, two without quotes or places, none below uses
    first = 0 if lead and question.kind == "usage" else 1 if lead or question.kind == "definition" else 0
    first = first if quoted else max(first, 0 if question.kind == "usage" else 1 if lead else 2)
    lead += [_sentence_line(span, sentence, sources) for span, sentence in sentences[:first]]
    sections = [Section("", (_nothing_of(unsaid),))] if unsaid else []
    sections += [Section("", tuple(lead))] if lead else []
    sections += [_quote(one, sources) for one in quoted]
    if tests:
        sections.append(Section("Tests that name it", tuple(_further(one, sources) for one in tests)))
    shown = "\n".join(one.text for one in quoted)
    more = [
        _sentence_line(span, said, sources)
        for span, said in sentences[first:]
        if not quoted or not _stands_in(said.text, shown)
    ]
    if more:
        sections.append(Section("Also", tuple(more[: MOST_ALSO if quoted else MOST_SENTENCES])))
    further = [_further(one, sources) for one in answering if one not in quoted]
    if further:
        sections.append(Section("See also", tuple(further[:MOST_FURTHER])))
    code = [line for line in _code(rest, required, {said.text for _, said in sentences}, sources) if line not in lead]
    if code:
        sections.append(Section("In the code", tuple(code)))
    docs = [one.entry.span for one in rest if one.entry.is_doc and one.entry.span.key not in sources.by_key]
    if docs:
        places = tuple(f"{_named(span)} in {_file(span)} {sources.whole(span)}" for span in docs[:MOST_DOCUMENTS])
        sections.append(Section("In the documents", places))
    if not sections and kept:
        span = kept[0].entry.span
        sections.append(Section("", (f"The nearest is {_named(span)} in {_file(span)} {sources.whole(span)}",)))
    if missing or unsaid:
        sections.append(Section("Not found", tuple(_not_found(missing, queries))))
    for one in kept:
        # number uncited spans too: a model gets the items by these numbers
        sources.number(one.entry.span)
    return Answer(tuple(sections), tuple(sources.by_key.values()))


def _nothing_of(words: Sequence[str]) -> str:
    """State that nothing mentions some words, and introduce the rest of the answer."""
    named = " or ".join(f"“{clean_line(word, 80)}”" for word in words)
    return f"Nothing that was searched mentions {named}. What follows is closest to the rest of the question."


def _quoted(passages: Sequence[Passage], most: int) -> Iterator[Passage]:
    """Yield the passages to quote: the first one, and others that fit in `MOST_QUOTED_LINES`."""
    room = MOST_QUOTED_LINES
    for one in passages[:most]:
        size = one.lines[1] - one.lines[0] + 1
        # the first one is quoted however long it is
        if size <= room or room == MOST_QUOTED_LINES:
            room -= size
            yield one


def _quote(one: Passage, sources: _Sources) -> Section:
    """A passage verbatim, under its place."""
    span = one.span
    # cleaning turns a CR inside a line into a line break; the place above would then be wrong
    lines = [clean_block(line).replace("\n", " ")[:MOST_LINE] for line in one.text.expandtabs(4).split("\n")]
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    named = f" `{clean_line(span.header, 120)}`" if span.header else ""
    first, last = one.lines
    title = f"`{_file(span)}:{first}-{last}`{named} {sources.whole(span)}"
    quote = [line[margin:].rstrip() for line in lines]
    return Section("", (title,), tuple(line for at, line in enumerate(quote) if line or (at and quote[at - 1])))


def _further(one: Passage, sources: _Sources) -> str:
    """The place of another passage, and its most relevant line."""
    span = one.span
    line = clean_line(span.text.split("\n")[one.line - span.start].strip(), 160).replace("`", "'")
    named = f"`{clean_line(span.header, 80)}`: " if span.header else ""
    return f"{_file(span)}:{one.line} {named}`{line}` {sources.whole(span)}"


def _stands_in(sentence: str, shown: str) -> bool:
    """Whether a sentence is in the quoted text, line breaks and comment marks aside."""
    return " ".join(_WORD.findall(sentence)) in " ".join(_WORD.findall(shown))


def _telling(question: Question, kept: Sequence[Kept], slots: Sequence[Slot]) -> list[tuple[Span, Sentence]]:
    """The most relevant sentences, without repetitions; one for each slot if possible."""
    focus = sorted(terms_in(question.focus)) or [term for slot in slots for term in slot.terms]
    scored: list[tuple[float, int, Span, Sentence]] = []
    for rank, one in enumerate(kept):
        span = one.entry.span
        if one.entry.via in ("use", "test") or span.role in ("test", "data", "config"):
            continue
        for sentence in sentences_of(span):
            # for a question about everything, the start of an introduction is best
            score = _score(sentence, span, slots, focus) if slots else 1.0 - 0.05 * sentence.place
            if score > 0 and len(_WORD.findall(sentence.text)) >= LEAST_WORDS:
                scored.append((round(score + 0.4 * one.entry.relevance, 6), rank, span, sentence))
    scored.sort(key=lambda row: (-row[0], row[1], row[3].place))
    chosen: list[tuple[Span, Sentence]] = []
    said: list[frozenset[str]] = []
    best = scored[0][0] if scored else 0.0
    for score, _, span, sentence in scored:
        words = terms_in(sentence.text)
        # a slot that is not covered yet gets its sentence, however weak
        untold = any(
            covers(slot, sentence.text) and not any(covers(slot, known.text) for _, known in chosen) for slot in slots
        )
        wanted = untold or (len(chosen) < MOST_SENTENCES and score >= KEEP_SHARE * best)
        if wanted and words and not any(len(words & other) / len(words) >= ALIKE for other in said):
            chosen.append((span, sentence))
            said.append(words)
    first = chosen[0][0] if chosen else None
    # sentences of one span stay together in its order, and the span of the best one leads
    return sorted(
        chosen, key=lambda pair: (pair[0] is not first, [row[0] for row in chosen].index(pair[0]), pair[1].place)
    )


def _score(sentence: Sentence, span: Span, slots: Sequence[Slot], focus: Sequence[str]) -> float:
    """Score a sentence by how much of the question it covers, and whether it defines something."""
    covered = sum(covers(slot, sentence.text) for slot in slots) / len(slots) if slots else 0.0
    head = terms_in(span.header.rpartition(" > ")[2].rpartition(".")[2])
    by_header = sum(head.issuperset(slot.terms) for slot in slots) / len(slots) if slots else 0.0
    score = covered
    # the first sentences below a heading are about what it names, but need not repeat the name
    if by_header > covered and sentence.place < 3:
        score = (covered + by_header) / 2
    if score <= 0:
        return 0.0
    if by_header and sentence.place == 0 and head == frozenset(focus):
        score = 1.4  # the first sentence of the thing itself
    elif focus and defines(sentence.text, focus):
        score += 0.4
    elif by_header and sentence.place == 0:
        score += 0.25
    if len(sentence.text.split()) < SHORT or sentence.text.startswith("$ "):
        # a few words or a command make a poor sentence
        score -= 0.3
    return score


def _sentence_line(span: Span, sentence: Sentence, sources: _Sources) -> str:
    text = clean_line(sentence.text, 500)
    if text[-1] not in ".!?…:;":
        text += "."
    return f"{_whose(span, sentence)}{text} {sources.cite(span, sentence.start, sentence.end)}"


def _whose(span: Span, sentence: Sentence) -> str:
    """The definition that a comment describes, as a prefix; empty if the sentence names it."""
    name = sentence.about or span.header.rpartition(".")[2]
    if span.role == "doc" or span.kind == "section" or not name or name in sentence.text:
        return ""
    if not sentence.about and sentence.start < span.start + definition_line(span, name):
        return ""  # it is above the definition that its span is named after
    of = span.header if span.header.rpartition(".")[2] == name else name
    return f"`{clean_line(of, 120)}`: "


def _places(question: Question, kept: Sequence[Kept], slots: Sequence[Slot], sources: _Sources) -> Iterator[str]:
    """Yield the first lines of an answer to "where" or "who uses": places or uses."""
    if question.kind == "usage":
        yield from _uses(kept, slots, sources)
        return
    found = [one for one in kept if one.part == "definition" and one.entry.is_code] or [
        one for one in kept if one.entry.is_code
    ]
    found.sort(key=lambda one: (-sum(slot.id in one.entry.slots for slot in slots), *one.entry.order))
    for one in found[:2]:
        span = one.entry.span
        where = f"{_file(span)}, lines {span.start} to {span.end} {sources.whole(span)}"
        yield f"{_named(span)} is in {where}" if span.header else where


def _uses(kept: Sequence[Kept], slots: Sequence[Slot], sources: _Sources) -> Iterator[str]:
    """Yield the lines of code that use a name asked about, tests and then imports last."""
    names = [slot for slot in slots if slot.source == "name"]
    code = [one.entry.span for one in kept if not one.entry.is_doc]
    found = [
        (is_import(line), span.role == "test", is_declaration(span.file), not _is_call(line, names), rank, at, span)
        for rank, span in enumerate(code)
        for at, line in enumerate(span.text.split("\n"))
        if any(covers(slot, line) for slot in names) and not is_definition(line, names) and not is_comment(line)
    ]
    seen: set[tuple[str, int]] = set()
    for *_, at, span in sorted(found, key=lambda row: row[:-1]):
        # spans around two nearby uses overlap
        if (span.file, span.start + at) not in seen and len(seen) < MOST_USES:
            seen.add((span.file, span.start + at))
            yield _use_line(span, at, sources)


def _is_call(line: str, names: Sequence[Slot]) -> bool:
    return any(re.search(rf"{re.escape(name.label.rpartition('.')[2])}\s*[(<]", line) for name in names)


def _code(kept: Sequence[Kept], slots: Sequence[Slot], quoted: Set[str], sources: _Sources) -> Iterator[str]:
    """Yield the lines of the part on code: definitions with their first sentence, uses, tests."""
    required = {slot.id for slot in slots}
    code = [one for one in kept if not one.entry.is_doc and one.entry.span.role != "data"]
    speaking = [one for one in code if one.entry.slots & required]
    led_to = [one for one in code if one not in speaking and one.entry.via in ("alignment", "use", "test")]
    # other code only if none mentions the subject and no document leads to any
    for one in (speaking + led_to or code)[:MOST_CODE]:
        span = one.entry.span
        if one.entry.via == "use":
            lines = span.text.split("\n")
            hits = (at for at, line in enumerate(lines) if any(covers(slot, line) for slot in slots))
            yield _use_line(span, next(hits, min(2, len(lines) - 1)), sources)
        elif span.role == "test":
            yield f"{_named(span)} in {_file(span)} tests it {sources.whole(span)}"
        else:
            name = span.header.rpartition(".")[2]
            said = next((said for said in sentences_of(span) if name and said.about == name), None)
            words = f": {clean_line(said.text, 240)}" if said is not None and said.text not in quoted else ""
            yield f"{_named(span)} in {_file(span)}{words} {sources.whole(span)}"


def _use_line(span: Span, at: int, sources: _Sources) -> str:
    """Describe a use: its place and its line of code."""
    inside = f" in {_named(span)}" if span.header else ""
    line = span.start + at
    said = clean_line(span.text.split("\n")[at].strip(), 120)
    return f"used at {_file(span)}:{line}{inside}: `{said}` {sources.cite(span, line, line)}"


def _file(span: Span) -> str:
    return clean_line(span.file, 400)


def _named(span: Span) -> str:
    """A span's name: its definition or heading, else its lines."""
    return f"`{clean_line(span.header, 120)}`" if span.header else f"lines {span.start} to {span.end}"


def _not_found(missing: Sequence[Slot], queries: Sequence[str]) -> Iterator[str]:
    for slot in missing:
        yield f"“{clean_line(slot.label, 80)}”: it would need {slot.would_satisfy}"
    yield searched(queries)


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
    span, sentence = evidence
    cited = sources.cite(span, sentence.start, sentence.end)
    return f"{number}. {label}: {clean_line(sentence.text, 240)} {cited}"


def best_evidence(one: Weighed) -> tuple[Span, Sentence] | None:
    """The best sentence for a sense: one that defines it, else the first of its best span; None if it has no span."""
    spans = sorted(
        one.spans,
        key=lambda span: (
            not any(span.file == at.file and span.start <= at.end and at.start <= span.end for at in one.sense.anchors)
        ),
    )
    found = [(span, sentence) for span in spans for sentence in sentences_of(span)]
    telling = [pair for pair in found if defines(pair[1].text, sorted(one.sense.terms))]
    if telling or found:
        return (telling or found)[0]
    if spans:
        span = spans[0]
        first = next((line for line in span.text.split("\n") if line.strip()), span.header)
        return span, Sentence(first.strip(), span.start, span.start, 0)
    return None


def say_nothing_found(kept: Sequence[Kept], missing: Sequence[Slot], queries: Sequence[str], empty: str = "") -> Answer:
    """Say that nothing was found, with what was searched, what would suffice, and what came nearest; or ``empty``, why
    there was nothing to search.
    """
    sources = _Sources()
    labels = ", ".join(f"“{clean_line(slot.label, 80)}”" for slot in missing) or "the question"
    near = [f"{_named(one.entry.span)} in {_file(one.entry.span)} {sources.whole(one.entry.span)}" for one in kept[:3]]
    said = empty or f"Nothing that was searched mentions {labels}. Which file or name do you mean?"
    sections = [Section("", (said,))]
    if near:
        sections.append(Section("Nearest", tuple(near)))
    sections.append(Section("Not found", tuple(_not_found(missing, queries))))
    for one in kept:
        sources.number(one.entry.span)
    return Answer(tuple(sections), tuple(sources.by_key.values()))


MAX_MODEL_ITEMS = 20

_USED = re.compile(r"(?im)^\W*USED\b\W*(?P<list>(?:\[?\d{1,3}\]?[\s,;>]*)+)\W*$")
_EMPTY = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s*$\n?")


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
        if not any(_overlap(one.span, span) for one in items):
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
    said = _USED.search(reply.text)
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
    named = tuple(int(number) for number in re.findall(r"\d+", said["list"])) if said is not None else ()
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
