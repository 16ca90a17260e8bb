"""A question that follows another: what it refers back to, and the evidence that it keeps.

"And when do they expire?" says nothing by itself: where a question refers back, the words of the one before join it.
Evidence of the run before stays evidence as long as its text is still the same; what has changed is found anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from helix_tui.core.ask.records import Span, record_place, text_hash
from helix_tui.core.ask.retrieval.library import Library
from helix_tui.core.ask.retrieval.question import FOLLOWS, understand
from helix_tui.core.ask.retrieval.search import Via
from helix_tui.core.ground.text import clean_block, clean_line

MAX_KEPT = 8
"""Passages of the run before that are kept, its best first."""
WORTH = 0.45
"""What the best of them is worth: less than a good find of its own, more than a chance one."""
FEW_WORDS = 2
"""Words of content below which a question cannot be asked by itself."""
MAX_HEADER = 400
"""Characters of a passage's heading that are kept."""

_REFERS = re.compile(
    r"^\W*(?:and|but|so|or|then|also|what\s+about|how\s+about|why(?:\s+not)?\W*$|where\W*$|how\W*$|who\W*$|when\W*$)\b"
    r"|\b(?:it|its|they|them|their|that|those|this|these|there|the\s+same|the\s+other|the\s+former|the\s+latter)\b",
    re.IGNORECASE,
)


def with_earlier(text: str, earlier: Mapping[str, Any] | None) -> str:
    """A question with the words of the one before it, where it refers back to that."""
    if earlier is None:
        return text
    before = clean_block(earlier.get("asked_as") or earlier.get("question"), 1_000).strip()
    # a question of its own may begin with "and"; one of a word or none cannot be asked by itself
    alone = len(understand(text).words) + len(understand(text).names) >= FEW_WORDS
    return text if not before or (alone and not _REFERS.search(text)) else f"{text.strip()}{FOLLOWS}{before}"


def kept_evidence(library: Library, earlier: Mapping[str, Any]) -> list[tuple[Span, Via, float]]:
    """The evidence of a run that still holds: passages whose text has the same hash now, its best first."""
    kept: list[tuple[Span, Via, float]] = []
    for one in (earlier.get("evidence") or ())[:MAX_KEPT]:
        span = _present(library, one)
        if span is not None and span.hash == one.get("hash"):
            kept.append((span, "earlier", WORTH * (1 - len(kept) / (2 * MAX_KEPT))))
    return kept


def _present(library: Library, one: Mapping[str, Any]) -> Span | None:
    """The passage as it is now; None where it is gone."""
    file, start, end = str(one.get("file", "")), one.get("start"), one.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    place = record_place(file, str(one.get("header", "")))
    if place is None:
        return library.span_at(file, start, end)
    records = library.records
    said = str(one.get("text", ""))
    if records is None or place.kind == "commit" or not said:
        return None
    # lines of a record move with every attempt above them: its passage is found by what it says
    wanted, lines = said.split("\n"), list(records.lines(file))
    begins = (at for at, line in enumerate(lines) if line == wanted[0])
    at = next((at for at in begins if lines[at : at + len(wanted)] == wanted), None)
    if at is None:
        return None
    header = clean_line(one.get("header"), MAX_HEADER)
    return Span(file, at + 1, at + len(wanted), "section", header, said, text_hash(said), role="record")
