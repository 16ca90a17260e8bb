"""The grounding gate: each claim of an answer must cite evidence that supports it (docs/formats/ask.md §6).

A claim is a sentence or a bullet. It is grounded if it cites an existing source, every name and number and at least
half of its words are in the cited sources, and it does not reverse the meaning of its supporting sentence. Other parts
of an answer are not claims: headings, the list of sources, what was not found, questions to the user.

Only words are compared, so the gate detects only a name or number missing in the sources, a word denied that the source
affirms or vice versa, and the opposite of a source's word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.answer.quotes import sentences_in
from helix_tui.core.ask.question import Slot, covers, names_in, terms_in
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.tokens import STOP_WORDS, stem

RESTS_ON = 0.6
"""Share of a claim's words that a supporting sentence must have."""
REACH = 5
"""Number of words after a "not" that may be the denied one."""

_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_TICKED = re.compile(r"`([^`\n]{2,120})`")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_LINES = re.compile(r"(?:\blines?\s+|\bL|:)(\d+)(?:\s*(?:-|–|to|and)\s*L?(\d+))?")
_DENIES = re.compile(
    r"^(?:not|never|no|none|nor|neither|nothing|without|cannot|hardly|unable|refus\w*|fail(?:s|ed)?)$|n['’]t$"
)
_NOT_ONLY = frozenset({"only", "just", "merely", "necessarily", "yet"})
_UNITS = "two three four five six seven eight nine ten eleven twelve"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_NUMBERS = {word: str(value) for value, word in enumerate(_UNITS.split(), 2)} | {
    word: str(10 * value) for value, word in enumerate(_TENS.split(), 2)
}
_PAIRS = """
before after / first last / oldest newest / old new / more less / most least / minimum maximum / min max
always never / increase decrease / raise lower / enable disable / allow forbid / allow deny / accept reject
include exclude / open close / start stop / read write / true false / success failure / succeed fail
upper lower / left right / lock unlock / add remove / insert delete / required optional / public private
above below / ascending descending / synchronous asynchronous / mutable immutable / encode decode
encrypt decrypt / local remote / all none / input output / begin end / grow shrink / earlier later
"""
_OPPOSITE: dict[str, set[str]] = {}
for _pair in re.split(r"[/\n]", _PAIRS):
    if _pair.strip():
        _one, _other = map(stem, _pair.split())
        _OPPOSITE.setdefault(_one, set()).add(_other)
        _OPPOSITE.setdefault(_other, set()).add(_one)

WORD_SHARE = 0.5

LEAST_WORDS = 2
"""A line with fewer content words is not a claim."""

_CITED = re.compile(r"\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]")

_NO_CLAIM = re.compile(
    r"^\s*(?:#|not found\b|what would decide\b|it would need\b|“[^”]+” (?:failed|means)|sources?\b"
    r"|searched\b|which do you mean|nearest\b|\[\d+\]\s+\S+:\d+)",
    re.IGNORECASE,
)

_HEADING = re.compile(r"^[^.!?]{1,60}:?$")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=(?:\[\d)|[A-Z0-9`“\"(])")

_AS_IT_STANDS = re.compile(r"`[^`]*`")
"""Verbatim quotes: a heading such as ``3. Scope. Limits`` does not end a sentence."""

_DENIAL = re.compile(
    r"\b(?:no|not enough|insufficient|lacks?|without)\s+(?:[\w-]+\s+){0,3}"
    r"(?:evidence|information|context|results?|sources?)\b"
    r"|\b(?:could|can|was|were|did|do|does|am|is)(?:\s+not|n['’]t|not)\s+(?:\w+\s+){0,2}"
    r"(?:find|found|locate|confirm|confirmed|able to find|contain|mentioned|provided|answer)\b"
    r"|\b(?:unable|impossible)\s+to\s+(?:find|answer|confirm|determine)\b",
    re.IGNORECASE,
)


def contradiction(claim: str, sources: Sequence[Span]) -> str:
    """How a claim goes beyond its sources or contradicts them; else "".

    ``claim`` is without its citations.
    """
    there = "\n".join(f"{span.file}\n{span.header}\n{span.text}" for span in sources)
    foreign = _foreign(claim, there, sources)
    if foreign:
        return f"{foreign} is not in what it cites"
    rests_on = _rests_on(claim, sources)
    turned = [_turned(claim, sentence) for sentence in rests_on]
    # one sentence that the claim does not reverse suffices to support it
    return turned[0] if turned and all(turned) else ""


def _foreign(claim: str, there: str, sources: Sequence[Span]) -> str:
    """The first name or number of a claim that its sources lack, or ""."""
    claim = _LINES.sub(lambda found: "" if _are_lines(found, sources) else found[0], claim)
    numbers: set[str] = set(re.findall(r"\d+(?:[.,]\d+)*", there))
    folded = there.lower()
    # a name with underscores counts whole and by its parts
    words = {*re.findall(r"\w+", folded), *re.findall(r"[^\W_]+", folded)}
    number = next((number for number in _NUMBER.findall(claim) if number not in numbers), None)
    if number is not None:
        return str(number)
    for word in _WORD.findall(claim.lower()):
        if word in _NUMBERS and word not in words and _NUMBERS[word] not in numbers:
            return str(word)
    for name in names_in(claim):
        if name.lower() not in folded and name.rpartition(".")[2].lower() not in words:
            return name
    for ticked in _TICKED.findall(claim):
        if ticked.strip("()").lower() not in folded and not names_in(ticked) and _bare(ticked) not in _bare(there):
            return str(ticked)
    return next((name for name in _proper(claim) if name.lower() not in words), "")


def _bare(text: str) -> str:
    """A text with normalised blanks and quotes and without a cut end, to compare quoted lines."""
    return " ".join(text.replace("`", "'").lower().split()).removesuffix("…").strip("()")


def _are_lines(found: re.Match[str], sources: Sequence[Span]) -> bool:
    """Whether a claim's line numbers are all lines of the cited spans."""
    numbers = [int(number) for number in found.groups() if number]
    return all(any(span.start <= number <= span.end for span in sources) for number in numbers)


def _proper(claim: str) -> Iterator[str]:
    """Capitalised words inside a sentence: names of people, products, types."""
    for sentence in re.split(r"(?<=[.!?:])\s+|\s[-–—]\s", _TICKED.sub(" ", claim)):
        # the first word of a sentence is always capitalised
        for word in re.findall(r"(?<=[\s(])[A-Z][a-z]{2,}\b", sentence.strip().lstrip("\"'“‘(*-")):
            if word.lower() not in STOP_WORDS:
                yield word


def _rests_on(claim: str, sources: Sequence[Span]) -> list[str]:
    """The source sentences with most of a claim's words."""
    terms = terms_in(claim)
    shares = [
        (len(terms & terms_in(sentence)) / len(terms), sentence)
        for span in sources
        for sentence in _sentences(span)
        if terms
    ]
    best = max((share for share, _ in shares), default=0.0)
    return [sentence for share, sentence in shares if share >= max(RESTS_ON, 0.9 * best)]


def _sentences(span: Span) -> Iterator[str]:
    """Yield the sentences of a span, then its lines: a claim may rest on code too."""
    for said, _ in sentences_in(span.text):
        yield said
    yield from span.text.split("\n")


def _turned(claim: str, sentence: str) -> str:
    """How a claim reverses a sentence, or ""."""
    said, said_not = _terms_denied(claim)
    known, known_not = _terms_denied(sentence)
    for term in sorted(said_not - known_not):
        if term in known:
            return f"it denies “{term}”, which its source affirms"
    for term in sorted(known_not - said_not):
        if term in said:
            return f"it affirms “{term}”, which its source denies"
    for term in sorted(said - known):
        if _OPPOSITE.get(term, set()) & (known - said):
            return f"“{term}” is the opposite of what its source says"
    return ""


def _terms_denied(text: str) -> tuple[set[str], set[str]]:
    """The stems of a text's words, and of those that a "not" before them denies."""
    words = [word.lower() for word in _WORD.findall(text)]
    denied = set()
    for at, word in enumerate(words):
        after = words[at + 1 : at + 1 + REACH]
        if _DENIES.search(word) and not (after and after[0] in _NOT_ONLY):
            denied.update(next(([stem(one)] for one in after if one not in STOP_WORDS), []))
    return {stem(word) for word in words}, denied


Tier = Literal["Grounded", "Bounded inference", "Clarify"]


class AnswerClaim(Struct, frozen=True):
    """One claim of an answer, and whether its sources support it."""

    text: str
    cites: tuple[int, ...]
    grounded: bool
    why: str
    """What is wrong with an unsupported claim; else ""."""


class Grounding(Struct, frozen=True):
    """The result of the gate."""

    claims: tuple[AnswerClaim, ...]
    threshold: float

    @property
    def ratio(self) -> float:
        """Share of the claims that are grounded; 0 for an answer without claims."""
        if not self.claims:
            return 0.0
        return round(sum(claim.grounded for claim in self.claims) / len(self.claims), 4)

    @property
    def passes(self) -> bool:
        """Whether the answer may be called grounded."""
        return bool(self.claims) and self.ratio >= self.threshold

    @property
    def cites_anything(self) -> bool:
        """Whether any claim cites a source."""
        return any(claim.cites for claim in self.claims)


def judge(answer: str, sources: Mapping[int, Span], threshold: float) -> Grounding:
    """Check every claim of an answer against the sources that it cites, by their numbers."""
    return Grounding(tuple(_judge(text, sources) for text in claims_of(answer)), threshold)


def tier_of(grounding: Grounding, *, evidence_ok: bool, coverage_ok: bool, anything_covered: bool, split: bool) -> Tier:
    """The label of an answer, limited by the gate and the coverage."""
    if split or not anything_covered or not grounding.claims:
        return "Clarify"
    if grounding.passes and evidence_ok and coverage_ok:
        return "Grounded"
    return "Bounded inference"


def claims_of(answer: str) -> Iterator[str]:
    """Yield the claims of an answer in order."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)", answer.strip()):
        text = " ".join(block.split())
        text = re.sub(r"^(?:[-*•]|\d+[.)])\s+", "", text)
        if _NO_CLAIM.match(text):
            # no claims follow the list of sources
            if re.match(r"(?i)^\s*#*\s*sources?\b", text):
                return
            continue
        if _HEADING.match(text) and not _CITED.search(text):
            continue
        for sentence in _joined(_pieces(text)):
            words = terms_in(_CITED.sub(" ", sentence))
            if len(words) >= LEAST_WORDS and not sentence.rstrip().endswith("?") and not _NO_CLAIM.match(sentence):
                yield sentence


def _pieces(text: str) -> list[str]:
    """A text split at sentence ends, never inside verbatim quotes."""
    ends = [found.span() for found in _SENTENCE.finditer(_AS_IT_STANDS.sub(lambda one: "`" * len(one[0]), text))]
    begins, stops = [0, *(last for _, last in ends)], [*(first for first, _ in ends), len(text)]
    return [text[begin:stop] for begin, stop in zip(begins, stops, strict=True)]


def _joined(pieces: Sequence[str]) -> Iterator[str]:
    """Sentences with the citations that follow their full stop."""
    held = ""
    for piece in pieces:
        cited = re.match(r"^((?:\[\d[^\]]*\]\s*)+)(.*)$", piece)
        if held and cited:
            yield f"{held} {cited[1]}".strip()
            held = cited[2]
            continue
        if held:
            yield held
        held = piece
    if held:
        yield held


def cited_numbers(text: str) -> tuple[int, ...]:
    """``[1]``, ``[1, 3]`` and ``[2-4]`` as numbers."""
    found: list[int] = []
    for group in _CITED.findall(text):
        for part in re.split(r"[,;]", group):
            ends = [int(number) for number in re.findall(r"\d+", part)]
            # bounded, as a model may write [1-999]
            found += range(ends[0], min(ends[-1], ends[0] + 20) + 1)
    return tuple(dict.fromkeys(found))


def _judge(text: str, sources: Mapping[int, Span]) -> AnswerClaim:
    cites = cited_numbers(text)
    unknown = [number for number in cites if number not in sources]
    if not cites:
        return AnswerClaim(text, cites, grounded=False, why="cites nothing")
    if unknown:
        return AnswerClaim(text, cites, grounded=False, why=f"cites [{unknown[0]}], which is not a source")
    said = _CITED.sub(" ", text)
    cited = [sources[number] for number in cites]
    turned = contradiction(said, cited)
    if turned:
        return AnswerClaim(text, cites, grounded=False, why=turned)
    there = "\n".join(f"{span.file}\n{span.header}\n{span.text}" for span in cited)
    words = terms_in(said)
    share = len(words & terms_in(there)) / len(words) if words else 0.0
    if share < WORD_SHARE:
        return AnswerClaim(text, cites, grounded=False, why=f"{share:.0%} of its words are in what it cites")
    return AnswerClaim(text, cites, grounded=True, why="")


def denies(answer: str, missing: Sequence[Slot]) -> str:
    """The sentence in which an answer denies that there is evidence, or "". Saying that a missing slot was not found is
    not a denial.
    """
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", answer):
        if _DENIAL.search(sentence) and not any(covers(slot, sentence) for slot in missing):
            return sentence.strip()
    return ""
