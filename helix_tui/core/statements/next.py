"""NEXT_ACTION in words: who decided it, what to run, until when it holds, and its reason in brief."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.decide.verdict import NextVerdict

ROLES: Mapping[str, str] = {
    "BUILD": "success",
    "WAIT": "waiting",
    "GUIDANCE": "attention",
    "BACKFILL": "waiting",
    "STOP": "muted",
}
"""The role of the ink of an answer; planning ones have none."""

WHO: Mapping[str, str] = {
    "facts": "Decided from the queue, no model asked",
    "prompt": "Decided by an agent that checked the documents",
    "none": "Undecided: nothing is ready, and no agent has checked the documents",
}

_CODES = {
    "not_looked": "documents not checked",
    "dangling_dependency": "a dependency is missing",
    "cancelled_dependency": "a dependency is cancelled",
    "vague_acceptance": "acceptance too vague",
    "only_epics": "only epics are open",
    "dead_claim": "stale claims",
    "orphan": "stale claims",
    "tried": "attempted, still open",
}
"""The words for reasons whose code is not clear by itself."""


def captions(verdict: NextVerdict) -> Iterator[tuple[str, str]]:
    """What to do about an answer: the command, until when the answer holds, when the first cooldown ends."""
    if verdict.recommended_command:
        yield "run", clean_line(verdict.recommended_command, 300)
    if verdict.would_change_if:
        yield "until", clean_line(verdict.would_change_if, 400)
    if verdict.next_eligible:
        yield "also", f"the first cooldown ends at {clean_line(verdict.next_eligible, 40)}"


def action_now(verdict: NextVerdict, counts: QueueCounts) -> str:
    """The answer beside newer counts: no STOP is said while work is ready, and ready work means BUILD."""
    if verdict.next_action and not (verdict.next_action == "STOP" and counts.ready):
        return verdict.next_action
    return "BUILD" if counts.ready else ""


def in_brief(verdict: NextVerdict, counts: QueueCounts) -> str:
    """The reason in a few words, where the number of ready beads stands beside it."""
    if action_now(verdict, counts) == "BUILD":
        drift = sum(note.code == "drift" for note in verdict.notes)
        return ", ".join(filter(None, (counts.split, f"{drift:,} drifted" if drift else "")))
    return code_words(verdict.reasons[0].code) if verdict.reasons else ""


def code_words(code: str) -> str:
    """The code of a reason in words."""
    return _CODES.get(code) or clean_line(code.replace("_", " "), 40)
