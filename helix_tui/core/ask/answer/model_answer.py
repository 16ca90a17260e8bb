"""What a model answered: which items it used, which of its claims its sources bear out, and what is left of it.

The model gets the twenty best items and says in the same call what it used, the most useful first; that order counts
in the ranking. A claim that its sources do not bear out is left out and kept with the reason; where none is left, or
evidence is denied that exists, the answer without the model stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from helix_tui.core.ask.answer.answer import Citation
from helix_tui.core.ask.answer.grounding import AnswerClaim, Grounding, cited_numbers, denies, judge
from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.question import Slot
from helix_tui.core.ask.retrieval.search import PoolEntry

MAX_MODEL_ITEMS = 20

_USED = re.compile(r"(?im)^\W*USED\b\W*(?P<list>(?:\[?\d{1,3}\]?[\s,;>]*)+)\W*$")
_EMPTY = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s*$\n?")


class ModelAnswer(Struct, frozen=True):
    """A model's reply as far as it holds."""

    text: str = ""
    """Its answer without the claims that were left out; empty where it is not taken."""
    used: tuple[int, ...] = ()
    """Numbers of the items that it used, in its order."""
    left_out: tuple[AnswerClaim, ...] = ()
    """Its claims that what they cite does not bear out."""
    grounding: Grounding = field(default_factory=lambda: Grounding((), 0.0))
    """What the gate found in all that it said."""
    refused: str = ""
    """Why it is not taken; empty where it is."""


def model_items(cited: Sequence[Citation], entries: Iterable[PoolEntry]) -> tuple[Citation, ...]:
    """The items that the model gets: those of the answer without it under their numbers, then the best others."""
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
    """Put a reply through the gate.

    Args:
        reply: what the model said.
        sources: the items that it was given, by number.
        missing: what was not found; to say so is no denial.
        threshold: the share of claims that must be grounded.
    """
    if reply.error:
        return ModelAnswer(refused=reply.error)
    said = _USED.search(reply.text)
    text = _USED.sub("", reply.text).strip()
    # looked for in all that it said, before anything is left out of it
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
    # a number that it was not given is no item
    used = dict.fromkeys(number for number in (*named, *cited_numbers(kept)) if number in sources)
    return ModelAnswer(kept, tuple(used), left_out, grounding)


def _without(text: str, claims: Iterable[AnswerClaim]) -> str:
    """A text without some of its sentences."""
    for claim in claims:
        # a claim has its blanks made one, the text still has its line breaks
        words = r"\s+".join(map(re.escape, claim.text.split()))
        text = re.sub(words, "", text, count=1)
    text = re.sub(r"[ \t]+$", "", _EMPTY.sub("", text), flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def ranked_by_use(files: Sequence[str], used: Iterable[Span]) -> list[str]:
    """A ranking of files in which those come first that an answer used, in the order of use."""
    known = set(files)
    first = dict.fromkeys(span.file for span in used if span.file in known)
    return [*first, *(file for file in files if file not in first)]
