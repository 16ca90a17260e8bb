"""How an attempt's outcome looks, wherever one is shown: one glyph, one ink and one word for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ground.text import clean_line


@dataclass(frozen=True, slots=True)
class Look:
    """How an outcome looks: glyph, ink and word."""

    glyph: str
    ink: str
    word: str


LOOKS: Mapping[Outcome, Look] = {
    "landed": Look("✓", "success", "landed"),
    "kept_aside": Look("◆", "attention", "kept aside"),
    "refused": Look("◆", "attention bold", "refused"),
    "no_change": Look("○", "muted", "no change"),
    "satisfied": Look("✓", "muted", "satisfied"),
    "failed": Look("✗", "error", "failed"),
    "interrupted": Look("✗", "muted", "interrupted"),
    "unknown": Look("?", "attention bold", "unknown"),
    "unfinished": Look("…", "waiting", "no result"),
}
"""One look an outcome; the order is that of summaries."""

_LANDING = Look("…", "waiting", "landing")
_NOT_SEEN = Look("?", "attention bold", "not seen")


def look_of(attempt: Attempt) -> Look:
    """The look of an attempt's outcome. A status that nobody knows is shown as it is."""
    outcome = attempt.verdict.outcome
    if outcome == "unfinished" and attempt.status:
        return _LANDING
    if outcome == "unknown":
        known = attempt.status in ("success", "no_changes")
        return _NOT_SEEN if known else Look("?", "attention bold", clean_line(attempt.status, 40))
    return LOOKS[outcome]
