"""Questions from what agents report, and what an answer does.

Rules: docs/formats/helix.md §4. An answer about a bead is written into the bead, where the next agent reads
it; one that was a conflict thereby has its decision, and the path that it stopped is free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.autonomy import Level
from helix_tui.core.supervision.signals.escalations import decision
from helix_tui.core.supervision.signals.hold import plan_undecided, undecided
from helix_tui.core.supervision.signals.questions import OpenQuestion, OpenQuestions
from helix_tui.core.supervision.stages import injection
from helix_tui.core.supervision.stages.stage_run import StageOutcome

_NONE = frozenset({"", "none", "0", "no", "n/a", "-"})
_CLASS = re.compile(r"\W*(physics[- ]level|resolvable|gap)\b\W*", re.IGNORECASE)
_IDS = re.compile(r"[,;\s]+")

_WAITING = {"NEEDS_CLARIFICATION": "clarification", "GUIDANCE_NEEDED": "guidance"}
"""How a stage ended -> the kind of question that it leaves."""

_FILED = {"conflict": ("kind:escalation", "escalation"), "gap": ("kind:speculative", "gap")}
"""Kind of conflict -> the label and the first word of the bead that stands for it at autonomy high."""


def answer_question(curator: Curator, questions: OpenQuestions, question_id: str, text: str) -> OpenQuestion:
    """Answer a question; where it is about a bead, the decision is written into it, journalled.

    Raises:
        UnknownQuestion: there is none of this id that waits.
        DdxError, Unreadable, WritesForbidden: the bead cannot be written; the question then still waits.
    """
    asked = next((each for each in questions.open() if each.id == question_id), None)
    if asked is not None and asked.bead_id and asked.kind != "approval":
        queue = curator.look().queue
        if asked.bead_id in queue.beads:
            wish = decision(queue.beads[asked.bead_id], text, queue.as_of)
            _done(curator.run([wish], title=f"record the answer to {question_id}"))
        if asked.bead_id in (held := undecided(queue)):
            rest = [bead_id for bead_id in held if bead_id != asked.bead_id]
            title = f"release {asked.bead_id}, which waited for the answer"
            _done(curator.run_steps("hold", title, lambda writing, _: plan_undecided(writing, rest)))
    return questions.answer(question_id, text)


def _done(done: Result) -> None:
    if done.error is not None:
        raise done.error


def raise_from(
    curator: Curator, questions: OpenQuestions, done: StageOutcome, level: Level
) -> tuple[OpenQuestion, ...]:
    """The questions that a stage's answer raises: contradictions always, the rest as far as the level
    asks; where it does not, each conflict and gap gets a bead for a person instead.

    Raises:
        DdxError, Unreadable, WritesForbidden: as the curator.
    """
    name = done.stage.name
    raised, passed = [], []
    for kind, text in conflicts_in(done.trailers.get("CONFLICTS")):
        key = f"{name}:{kind}:{text[:200]}"
        if kind == "physics-level" or level != "high":
            raised.append(questions.ask(kind, text, key=key))
        else:
            passed.append((kind, text, key))
    if passed:
        _file(curator, done, passed)
    wanted = _WAITING.get(done.status)
    if wanted:
        text = next((line for line in done.answer.text.split("\n") if line.rstrip().endswith("?")), "")
        text = text.strip(" \t*#>-") or f"{name} needs to know more: read its answer in {done.answer.log}"
        raised.append(questions.ask(wanted, text, key=f"{name}:{wanted}:{text[:200]}"))
    return tuple(raised)


def conflicts_in(trailer: str) -> Iterable[tuple[str, str]]:
    """(kind, text) of each conflict that a CONFLICTS trailer names; resolvable where it does not say."""
    if trailer.strip().lower() in _NONE:
        return
    for part in re.split(r";\s*", trailer):
        if part.strip().lower() in _NONE:
            continue
        said = _CLASS.match(part.strip())
        physics = re.search(r"physics[- ]level", part, re.IGNORECASE)
        gap = said is not None and said.group(1).lower() == "gap"
        words = part.strip()[said.end() :] if said is not None else part.strip()
        yield ("physics-level" if physics else "gap" if gap else "conflict"), words or part.strip()


def _file(curator: Curator, done: StageOutcome, passed: Iterable[tuple[str, str, str]]) -> None:
    """A bead for each conflict and gap, unless the agent has made one, or one stands already."""
    queue = curator.look().queue
    made = [queue.beads[word] for word in _IDS.split(done.trailers.get("BEADS_CREATED")) if word in queue.beads]
    wishes = []
    for kind, text, key in passed:
        label, title = _FILED[kind]
        by_agent = next((bead for bead in made if label in bead.labels), None)
        if by_agent is not None:
            made.remove(by_agent)
        elif not injection.decision_standing(queue, label, key):
            shown = f"{title}: {clean_line(text, 80)}"
            assumed = f"what {done.stage.name} made of it, as its answer says"
            wishes.append(injection.decision_bead(queue, label, shown, text, key=key, assumed=assumed))
    if wishes:
        error = curator.run(wishes, title=f"file what {done.stage.name} left to a person").error
        if error is not None:
            raise error
