"""What only *Needs me* changes: lessons settled, questions answered with their effects, kept changes landed by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.plan import Plan
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.requests import ChangeRequest, OperationsRequest
from helix_tui.core.supervision.signals.escalation import Kept, answering, deciding
from helix_tui.core.supervision.signals.kept_changes import lands_words, refusal
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.signals.undecided import plan_undecided, undecided
from helix_tui.core.supervision.stages.landing import KeptChange, Landing, kept_ref

if TYPE_CHECKING:
    from helix_tui.core.ground.project import Project
    from helix_tui.core.memory.changes import MemoryChanges
    from helix_tui.core.memory.memory_store import MemoryStore

ANSWER = "answer"
"""Kind of a journal entry that holds an answer; its title names the question."""


@dataclass(frozen=True)
class AnswerRequest(ChangeRequest):
    """Answer a question: write the answer into its bead, release the bead to workers, then record it."""

    need: Need
    text: str
    kept: Kept

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
        # someone else may have answered while the preview was read
        if asked and asked not in {each.id for each in questions.open()}:
            raise OperationRefused(f"{asked} has been answered already")
        done = curator.run_steps(ANSWER, self.title, self._make, shown=shown)
        # recorded last: if the answer cannot be written into the bead, the question still waits
        if asked and done.error is None:
            questions.answer(asked, self.text)
        return done

    def _make(self, writing: PlanBuilder, queue_state: QueueState) -> None:
        queue, bead_id = queue_state.queue, self.need.bead_id
        if not self.need.question_id:  # an escalation is a separate bead
            for operation in deciding(queue, bead_id, self.text, self.kept):
                operation.plan(writing)
            return
        if bead_id not in queue.beads:
            return
        for operation in answering(queue.beads[bead_id], self.text, queue.as_of, self.kept):
            operation.plan(writing)
        held = undecided(queue)
        # the run's hold on this bead ends with the answer; its holds on other beads stay
        if bead_id in held:
            plan_undecided(writing, [each for each in held if each != bead_id])


@dataclass(frozen=True)
class LandRequest(ChangeRequest):
    """Merge kept changes into the branch, one after the other, and close their beads."""

    landing: Landing

    @property
    def title(self) -> str:
        return self.landing.title(len(self.landing.changes))

    @property
    def beads(self) -> tuple[str, ...]:
        return tuple(change.bead_id for change in self.landing.changes)

    @property
    def draft_file(self) -> str:
        resolutions = (change.resolution for change in self.landing.changes)
        return next((os.fspath(resolution.folder) for resolution in resolutions if resolution is not None), "")

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        return self.landing.plan(curator, queue_state)

    def run(self, curator: Curator, shown: Plan) -> Result:
        return self.landing.run(curator, shown)


def kept_change(need: Need, attempt: Attempt) -> KeptChange:
    """The kept change of an attempt, as a person lands it."""
    return KeptChange(need.bead_id, kept_ref(attempt), need.question_id, refusal(attempt))


@dataclass(frozen=True)
class OpenRequest(OperationsRequest):
    """Open parked beads to workers; ddx may land the kept change of some without an agent."""

    kept: tuple[Attempt, ...] = ()

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        made = super().plan(curator, queue_state)
        return replace(made, notes=(*map(lands_words, self.kept), *made.notes))


def settle_lessons(project: Project, needs: Sequence[Need], *, accept: bool, clock: Callable[[], int]) -> str:
    """Accept or decline lessons; returns the result in words. For a worker thread.

    Raises:
        OperationRefused: the memory cannot be changed.
    """
    from helix_tui.core.memory.lessons import waiting_lessons

    wanted = {need.ref for need in needs}
    with _changes(project, clock) as (memory, changes):
        chosen = [lesson for lesson in waiting_lessons(memory) if lesson.ref in wanted]
        done, refused = changes.accept(chosen) if accept else (changes.decline(chosen), [])
    said = f"done: {clean_line(done.title, 200)} · u undoes it" if done is not None else "nothing was changed"
    return "; ".join([said, *(clean_line(why, 200) for why in refused)])


def undo_lessons(project: Project, *, clock: Callable[[], int]) -> str:
    """Undo the last change of the memory; returns the result in words. For a worker thread.

    Raises:
        OperationRefused: the same memory has been changed since.
    """
    with _changes(project, clock) as (_, changes):
        done = changes.undo()
    return f"undone: {clean_line(done.title, 200)}" if done is not None else "there is nothing to undo"


@contextmanager
def _changes(project: Project, clock: Callable[[], int]) -> Iterator[tuple[MemoryStore, MemoryChanges]]:
    """Open the memory; its libraries take half a second to load, so they are loaded only for a change."""
    from helix_tui.core.memory.changes import MemoryChanges
    from helix_tui.core.memory.memory_store import look_into
    from helix_tui.core.memory.records import MemoryFault
    from helix_tui.core.memory.store.database import database_path

    try:
        with look_into(database_path(project), clock=clock, teacher="person") as memory:
            yield memory, MemoryChanges(memory)
    except MemoryFault as fault:
        raise OperationRefused(f"{fault.message}; {fault.advice}") from None
