"""Changes that only *Needs me* makes: an answer with what it brings about, and a kept change landed by hand."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.plan.planner import PLANNERS, Plan
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.hold import plan_undecided, undecided
from helix_tui.core.supervision.signals.questions import OpenQuestions, deciding, decision
from helix_tui.core.supervision.stages.commit import closing
from helix_tui.core.supervision.stages.landing import MERGE_COMMIT, kept_ref, merge_kept, merge_words
from helix_tui.screens.editing.requests import ChangeRequest

ANSWER = "answer"
"""Kind of a journal entry that holds an answer; its title names the question."""


@dataclass(frozen=True)
class AnswerRequest(ChangeRequest):
    """An answer: written into the bead that it is about, which is given back to workers; then recorded."""

    need: Need
    text: str
    drop: str = ""
    """The attempt whose kept change is dropped by it."""

    @property
    def title(self) -> str:
        about = self.need.question_id or short_id(self.need.bead_id)
        return f"answer {about}: {clean_line(self.text, 120)}"

    @property
    def beads(self) -> tuple[str, ...]:
        return (self.need.bead_id,) if self.need.bead_id else ()

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        return curator.plan_steps(ANSWER, self.title, self._make, queue_state)

    def run(self, curator: Curator, shown: Plan) -> Result:
        questions = OpenQuestions(curator.project, curator.gate)
        asked = self.need.question_id
        if asked and asked not in {each.id for each in questions.open()}:
            raise OperationRefused(f"{asked} has been answered already")
        done = curator.run_steps(ANSWER, self.title, self._make, shown=shown)
        if asked and done.error is None:
            questions.answer(asked, self.text)
        return done

    def _make(self, writing: PlanBuilder, queue_state: QueueState) -> None:
        queue, bead_id = queue_state.queue, self.need.bead_id
        if not self.need.question_id:  # an escalation is a bead of its own
            for operation in deciding(queue, bead_id, self.text):
                PLANNERS[operation.kind](writing, operation)
            return
        if bead_id not in queue.beads:
            return
        fields = dict(decision(queue.beads[bead_id], self.text, queue.as_of).values["fields"])
        PLANNERS["set"](writing, operations.assign(bead_id, fields))
        if self.drop:
            PLANNERS["drop"](writing, operations.drop(bead_id, self.drop, self.need.kept_rev))
        held = undecided(queue)
        if bead_id in held:
            plan_undecided(writing, [each for each in held if each != bead_id])


@dataclass(frozen=True)
class LandRequest(ChangeRequest):
    """Kept changes merged into the branch, one after the other, and their beads closed."""

    needs: tuple[Need, ...]
    attempts: tuple[Attempt, ...]

    @property
    def title(self) -> str:
        one = f"land the kept change of {clean_line(self.needs[0].bead_id, 60)}"
        return one if len(self.needs) == 1 else f"land {len(self.needs):,} kept changes"

    @property
    def beads(self) -> tuple[str, ...]:
        return tuple(need.bead_id for need in self.needs)

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        made = curator.plan([each for bead_id in self.beads for each in closing(bead_id, MERGE_COMMIT)])
        first = [
            f"before that, in the work tree: git {' '.join(merge_words(bead_id, kept_ref(attempt)))}"
            for bead_id, attempt in zip(self.beads, self.attempts, strict=True)
        ]
        after = "a merge that conflicts is aborted and nothing changes; undo reopens the bead, and takes the merge "
        after += "out of the branch as long as nothing else has it"
        return replace(made, kind="land", title=self.title, notes=(*first, *made.notes, after))

    def run(self, curator: Curator, shown: Plan) -> Result | None:
        done: Result | None = None
        for need, attempt in zip(self.needs, self.attempts, strict=True):
            curator.gate.check()
            sha = merge_kept(curator.project.root, need.bead_id, kept_ref(attempt)).sha
            done = close_landed(curator, need, sha)
            if done.error is not None:
                break
        return done


def close_landed(curator: Curator, need: Need, sha: str) -> Result:
    """Close the bead of a change that has just been merged, and answer the question about it."""
    done = curator.run(closing(need.bead_id, sha), title=f"land the kept change of {need.bead_id} as {sha[:12]}")
    if need.question_id and done.error is None:
        OpenQuestions(curator.project, curator.gate).answer(need.question_id, f"landed by hand as {sha[:12]}")
    return done


@dataclass(frozen=True)
class ResolvedRequest(ChangeRequest):
    """The bead of a merge that somebody has resolved, closed with it."""

    need: Need
    sha: str

    @property
    def title(self) -> str:
        return f"close {clean_line(self.need.bead_id, 60)} with {self.sha[:12]}"

    @property
    def beads(self) -> tuple[str, ...]:
        return (self.need.bead_id,)

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        return curator.plan(closing(self.need.bead_id, self.sha), title=self.title)

    def run(self, curator: Curator, shown: Plan) -> Result:
        return close_landed(curator, self.need, self.sha)
