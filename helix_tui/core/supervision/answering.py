"""Questions from what agents report, and what an answer does.

Rules: reference/helix.md §4. An answer about a bead is written into the bead, where the next agent reads
it; one that was a conflict thereby has its decision, and the path that it stopped is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from helix_tui.core.supervision.autonomy import Level
from helix_tui.core.supervision.curation import operations
from helix_tui.core.supervision.curation.curator import Curator, Done
from helix_tui.core.supervision.held import plan_undecided, undecided
from helix_tui.core.supervision.questions import Question, Questions
from helix_tui.core.supervision.stagework import StageOutcome

DECISION = "helix-decision"
"""Field of a bead that holds what a person decided."""

_NONE = frozenset({"", "none", "0", "no", "n/a", "-"})


def answer_question(curator: Curator, questions: Questions, question_id: str, text: str) -> Question:
    """Answer a question; where it is about a bead, the decision is written into it, journalled.

    Raises:
        UnknownQuestion: there is none of this id that waits.
        DdxError, Unreadable, WritesForbidden: the bead cannot be written; the question then still waits.
    """
    asked = next((each for each in questions.open() if each.id == question_id), None)
    if asked is not None and asked.bead_id and asked.kind != "approval":
        queue = curator.look().queue
        if asked.bead_id in queue.beads:
            wish = operations.assign(asked.bead_id, {DECISION: text})
            _done(curator.run([wish], title=f"write down the answer to {question_id}"))
        if asked.bead_id in (held := undecided(queue)):
            rest = [bead_id for bead_id in held if bead_id != asked.bead_id]
            title = f"give back {asked.bead_id}, which waited for the answer"
            _done(curator.run_steps("hold", title, lambda writing, _: plan_undecided(writing, rest)))
    return questions.answer(question_id, text)


def _done(done: Done) -> None:
    if done.error is not None:
        raise done.error


def raise_from(
    curator: Curator, questions: Questions, done: StageOutcome, level: Level
) -> tuple[Question, ...]:
    """The questions that a stage's answer raises: contradictions always, the rest as far as the level
    asks.
    """
    raised = [
        questions.ask(kind, text, key=f"{done.stage.name}:{kind}:{text[:200]}")
        for kind, text in conflicts_in(done.trailers.get("CONFLICTS"))
        if kind == "physics-level" or level != "high"
    ]
    if done.status == "NEEDS_CLARIFICATION":
        text = next((line for line in done.answer.text.split("\n") if line.rstrip().endswith("?")), "")
        wanted = text.strip() or "the request needs to be made clearer"
        raised.append(
            questions.ask("clarification", wanted, key=f"{done.stage.name}:clarification:{wanted[:200]}")
        )
    return tuple(raised)


def conflicts_in(trailer: str) -> Iterable[tuple[str, str]]:
    """(kind, text) of each conflict that a CONFLICTS trailer names; resolvable where it does not say."""
    if trailer.strip().lower() in _NONE:
        return
    for part in re.split(r";\s*", trailer):
        if part.strip().lower() in _NONE:
            continue
        physics = re.search(r"physics[- ]level", part, re.IGNORECASE)
        words = re.sub(r"^\W*(physics[- ]level|resolvable)\W*", "", part.strip(), flags=re.IGNORECASE)
        yield ("physics-level" if physics else "conflict"), words or part.strip()
