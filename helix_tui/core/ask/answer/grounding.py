"""The gate that an answer passes: each claim must cite evidence that bears it out (docs/formats/ask.md §1,
phase 8).

A claim is a sentence or a bullet. It is grounded where it cites a source that exists, every name and number
in it stands in the sources that it cites, at least half of its words do, and it does not turn the sense of
the sentence that it rests on. The rest of an answer is no
claim: headings, the list of sources, what was not found, questions to the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from helix_tui.core.ask.answer.contradiction import contradiction
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.slots import Slot, covers, terms_in

Tier = Literal["Grounded", "Bounded inference", "Clarify"]

WORD_SHARE = 0.5
LEAST_WORDS = 2
"""A line with fewer words of content claims nothing."""

_CITED = re.compile(r"\[(\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*)\]")
_NO_CLAIM = re.compile(
    r"^\s*(?:#|not found\b|what would decide\b|it would need\b|“[^”]+” (?:failed|means)|sources?\b"
    r"|searched\b|which do you mean|nearest\b|\[\d+\]\s+\S+:\d+)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^[^.!?]{1,60}:?$")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=(?:\[\d)|[A-Z0-9`“\"(])")
_DENIAL = re.compile(
    r"\b(?:no|not enough|insufficient|lacks?|without)\s+(?:[\w-]+\s+){0,3}"
    r"(?:evidence|information|context|results?|sources?)\b"
    r"|\b(?:could|can|was|were|did|do|does|am|is)(?:\s+not|n['’]t|not)\s+(?:\w+\s+){0,2}"
    r"(?:find|found|locate|confirm|confirmed|able to find|contain|mentioned|provided|answer)\b"
    r"|\b(?:unable|impossible)\s+to\s+(?:find|answer|confirm|determine)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """One claim of an answer and whether its sources bear it out."""

    text: str
    cites: tuple[int, ...]
    grounded: bool
    why: str
    """What is wrong with one that is not; empty otherwise."""


@dataclass(frozen=True, slots=True)
class Grounding:
    """What the gate found."""

    claims: tuple[AnswerClaim, ...]
    threshold: float

    @property
    def ratio(self) -> float:
        """Share of the claims that are grounded; an answer that claims nothing has 0."""
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
    """The label of an answer: no claim is better than the gate and the coverage allow."""
    if split or not anything_covered or not grounding.claims:
        return "Clarify"
    if grounding.passes and evidence_ok and coverage_ok:
        return "Grounded"
    return "Bounded inference"


def claims_of(answer: str) -> Iterator[str]:
    """The claims of an answer, one after the other."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*•]|\d+[.)])\s)", answer.strip()):
        text = " ".join(block.split())
        text = re.sub(r"^(?:[-*•]|\d+[.)])\s+", "", text)
        if _NO_CLAIM.match(text):
            if re.match(r"(?i)^\s*#*\s*sources?\b", text):
                return
            continue
        if _HEADING.match(text) and not _CITED.search(text):
            continue
        for sentence in _joined(_SENTENCE.split(text)):
            words = terms_in(_CITED.sub(" ", sentence))
            if len(words) >= LEAST_WORDS and not sentence.rstrip().endswith("?") and not _NO_CLAIM.match(sentence):
                yield sentence


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
    """The sentence in which an answer says that there is no evidence; empty where none does.

    To say of a slot that was really not found that it was not found is honest, and no denial.
    """
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", answer):
        if _DENIAL.search(sentence) and not any(covers(slot, sentence) for slot in missing):
            return sentence.strip()
    return ""
