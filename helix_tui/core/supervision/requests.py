"""Requested changes as data: a request plans itself on a state of the queue and runs what was shown. A kept change
needs its own confirmation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

from msgspec.structs import replace

from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing import operations
from helix_tui.core.editing.differences import Conflict, Difference
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.kinds.eligibility_hold import held_back, plan_holds
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import Plan, describe, plan
from helix_tui.core.editing.steps import PlanBuilder, called, named
from helix_tui.core.editing.undo import NotUndoable, UndoStep, plan_undo
from helix_tui.core.supervision.signals.focus import (
    plan_focus,
    plan_unfocus,
    plan_upkeep,
    read_focus,
)
from helix_tui.core.supervision.signals.orphans import Orphan, plan_release, release_title
from helix_tui.core.supervision.signals.questions import follow_undo
from helix_tui.core.supervision.stages.landing import follow_landing, merge_of

LOWEST = 4
"""The last priority there is."""

Turn = Literal["eligible", "claim", "raise", "lower"]
"""What a further key asks of a request that is shown."""


def turn_named(name: str) -> Turn | None:
    """The turn of this name; None if there is none."""
    return next((turn for turn in get_args(Turn) if turn == name), None)


class ChangeRequest(ABC):
    """One change that may be made. `plan` and `run` are for worker threads, each with its own curator."""

    follows: ClassVar[bool] = False
    """Its plan depends on the running change: it is planned once that has ended."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The request in one sentence."""

    @property
    def beads(self) -> tuple[str, ...]:
        """Its beads, for the sign on their rows."""
        return ()

    @property
    def already(self) -> str:
        """The reason if nothing is to be done; empty if the title says enough."""
        return ""

    @property
    def draft_file(self) -> str:
        """A file that keeps the typed text until the change is made; empty if there is none."""
        return ""

    def turned(self, turn: Turn) -> ChangeRequest | None:
        """The request that a further key turns this one into; None if it does not apply."""
        del turn
        return None

    @abstractmethod
    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        """The plan; nothing is changed."""

    @abstractmethod
    def run(self, curator: Curator, shown: Plan) -> Result | None:
        """Run what was shown."""


# --- operations -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OperationsRequest(ChangeRequest):
    """Some operations as one change."""

    wanted: tuple[Operation, ...]
    heading: str = ""

    @property
    def title(self) -> str:
        return self.heading or describe(self.wanted)

    @property
    def beads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(each.bead_id for each in self.wanted if each.bead_id))

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        dialect = curator.dialect()
        return plan(self.wanted, queue_state.queue, dialect, busy=queue_state.busy, title=self.heading)

    def run(self, curator: Curator, shown: Plan) -> Result:
        return curator.run(self.wanted, shown=shown, title=self.heading)


def request_for(wanted: Sequence[Operation], title: str = "") -> OperationsRequest:
    """The request for some operations as one change."""
    return OperationsRequest(tuple(wanted), title)


@dataclass(frozen=True)
class EligibilityRequest(OperationsRequest):
    """Eligible or not; its key reverses it."""

    on: bool = True

    def turned(self, turn: Turn) -> ChangeRequest | None:
        return eligibility(self.beads, not self.on) if turn == "eligible" else None


def eligibility(beads: Sequence[str], on: bool) -> EligibilityRequest:
    """Allow or forbid workers to pick some beads."""
    return EligibilityRequest(tuple(operations.SetEligible(bead_id, on) for bead_id in beads), on=on)


@dataclass(frozen=True)
class ClaimRequest(OperationsRequest):
    """A claim or its release; its key reverses it."""

    take: bool = True

    def turned(self, turn: Turn) -> ChangeRequest | None:
        return holding(self.beads, not self.take) if turn == "claim" else None


def holding(beads: Sequence[str], take: bool) -> ClaimRequest:
    """Claim some beads, or release them."""
    one = operations.ClaimBead if take else operations.ReleaseBead
    return ClaimRequest(tuple(one(bead_id) for bead_id in beads), take=take)


@dataclass(frozen=True)
class PriorityRequest(OperationsRequest):
    """Priorities changed by some levels; its two keys change them further."""

    levels: Mapping[str, int] = field(default_factory=dict)
    """Bead -> its priority now."""
    by: int = 0

    @property
    def already(self) -> str:
        if len(levels := {*self.levels.values()}) != 1:
            return ""
        level = f"already P{levels.pop()}"
        return f"all {len(self.levels):,} are {level}" if len(self.levels) > 1 else f"the bead is {level}"

    def turned(self, turn: Turn) -> ChangeRequest | None:
        # from the original levels: a step the other way leads back to them
        return (
            priority_change(self.levels, self.by + (1 if turn == "lower" else -1))
            if turn in ("raise", "lower")
            else None
        )


def priority_change(levels: Mapping[str, int], by: int) -> PriorityRequest:
    """Raise the priority of some beads (``by`` below 0) or lower it, within P0 to P4."""
    by = min(max(by, -LOWEST), LOWEST)
    wanted = [operations.SetPriority(one, min(max(now + by, 0), LOWEST)) for one, now in levels.items()]
    word = "raise" if by < 0 else "lower"
    # one bead's title says from which level to which
    title = f"{word} {len(levels):,} beads by {abs(by)}" if len(levels) > 1 else ""
    return PriorityRequest(tuple(wanted), title, levels, by)


class EditConflict(Conflict):
    """Someone else changed a text while it was being edited: both versions are texts."""


@dataclass(frozen=True)
class TextRequest(OperationsRequest):
    """New texts for a bead, with those that the edit began with."""

    texts: Mapping[str, str] = field(default_factory=dict)
    base: Mapping[str, str] = field(default_factory=dict)
    kept: str = ""

    @property
    def draft_file(self) -> str:
        return self.kept

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        (bead_id,) = self.beads
        bead = queue_state.queue.beads.get(bead_id)
        row = bead.document() if bead is not None else {}
        moved = [
            Difference(bead_id, name, text, row.get(name))
            for name, text in self.texts.items()
            if bead is None or str(row.get(name) or "") != self.base[name]
        ]
        if moved:
            raise EditConflict(moved)
        return super().plan(curator, queue_state)


def text_edit(bead_id: str, base: Mapping[str, str], texts: Mapping[str, str], kept: str = "") -> TextRequest:
    """The request to give a bead other texts.

    Args:
        base: the texts that the edit began with.
        kept: the file that keeps the typed text until the change is made.
    """
    return TextRequest((operations.SetFields(bead_id, dict(texts)),), texts=texts, base=base, kept=kept)


# --- steps that follow from what the queue holds ----------------------------------------------------------


@dataclass(frozen=True)
class StepsRequest(ChangeRequest):
    """Steps that are planned on the queue as it is then."""

    kind: str
    heading: str
    about: tuple[str, ...]
    make: Callable[[PlanBuilder, QueueState], None]
    again: bool = False
    """The steps depend on more than the rows of beads, so that they are planned again before they run."""

    @property
    def title(self) -> str:
        return self.heading

    @property
    def beads(self) -> tuple[str, ...]:
        return self.about

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        return curator.plan_steps(self.kind, self.heading, self.make, queue_state)

    def run(self, curator: Curator, shown: Plan) -> Result:
        return curator.run_steps(self.kind, shown.title, self.make, shown=shown, again=self.again)


def upkeep() -> StepsRequest:
    """The request to bring the focus up to date."""
    return StepsRequest("focus", "keep the focus", (), lambda writing, _: plan_upkeep(writing))


def recovery(orphans: Sequence[Orphan]) -> StepsRequest:
    """The request to release orphaned claims; each is checked again when it runs."""
    beads = tuple(orphan.bead_id for orphan in orphans)
    return StepsRequest("unclaim", release_title(orphans), beads, plan_release(orphans), again=True)


def hold_request(reasons: Mapping[str, str]) -> StepsRequest:
    """The request to keep workers from beads until a person decides, beside those that are held already."""

    def make(writing: PlanBuilder, queue_state: QueueState) -> None:
        plan_holds(writing, {**held_back(queue_state.queue), **reasons})

    return StepsRequest("hold", f"keep {named(sorted(reasons))} from workers", tuple(reasons), make)


@dataclass(frozen=True)
class FocusRequest(ChangeRequest):
    """The focus on a bead, or the end of the present focus."""

    bead: Bead

    @property
    def title(self) -> str:
        return "focus"

    @property
    def beads(self) -> tuple[str, ...]:
        return (self.bead.id,)

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        ended = self._ended(Overlay(queue_state.queue))
        title = f"end the focus on {called(ended)}" if ended else f"focus on {called(self.bead.id)}"
        return curator.plan_steps("focus", title, self._make, queue_state)

    def run(self, curator: Curator, shown: Plan) -> Result:
        return curator.run_steps("focus", shown.title, self._make, shown=shown)

    def _ended(self, overlay: Overlay) -> str:
        """The epic whose focus ends; empty if one begins."""
        epic = read_focus(overlay).epic
        whole = looks_like_epic(self.bead) or bool(overlay.children(self.bead.id))
        return epic if epic and (epic == self.bead.id or not whole) else ""

    def _make(self, writing: PlanBuilder, _: QueueState) -> None:
        if self._ended(writing.overlay):
            plan_unfocus(writing)
        else:
            plan_focus(writing, self.bead.id)


# --- the journal ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UndoRequest(ChangeRequest):
    """The undo or redo of a change; without an entry, of the last one made by a person."""

    follows = True
    word: Literal["undo", "redo"]
    entry: JournalEntry | None = None

    @property
    def title(self) -> str:
        if self.entry is not None:
            return f"{self.word} {self.entry.id}"
        return "undo the last change" if self.word == "undo" else "redo what was undone"

    @property
    def already(self) -> str:
        return "" if self.entry is not None else f"no change made here is left to {self.word}"

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        """The plan.

        Raises:
            Conflict: someone else has changed the same fields since.
            NotUndoable: it cannot be done.
        """
        history = curator.history()
        found = history.to_undo(curator.me) if self.word == "undo" else history.to_redo(curator.me)
        entry = self.entry or next(iter(found), None)
        if entry is None:
            return Plan(self.word, f"nothing to {self.word}")
        dialect = curator.dialect()
        undo_plan = plan_undo([entry], history, queue_state.queue, dialect, queue_state.busy)
        turn = undo_plan.problem
        if turn is not None and turn.differences:
            raise Conflict(turn.differences, entry)
        if turn is not None:
            raise NotUndoable(entry, turn.problem)
        traces = tuple(trace for each in undo_plan.turns for trace in each.traces)
        merge = merge_of(curator.project.root, entry, redo=self.word == "redo")
        traces += (str(merge),) if merge is not None else ()
        title = f"{self.word} {entry.id}: {entry.title}"
        return Plan(self.word, title, undo_plan.steps, notes=traces, of=entry.id)

    def run(self, curator: Curator, shown: Plan) -> Result | None:
        if not shown.of:
            return None
        entry = curator.history().get(shown.of)
        reverse = curator.undo if self.word == "undo" else curator.redo
        done = reverse(entry, shown=shown)
        # effects outside the queue are undone too: an answered question waits again, a merge leaves the branch
        follow_undo(curator, done)
        follow_landing(curator, done)
        return done


@dataclass(frozen=True)
class RestoreRequest(ChangeRequest):
    """The restore of the queue to its state right after an entry."""

    entry: JournalEntry

    @property
    def title(self) -> str:
        return f"restore to just after {self.entry.id}"

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        history, dialect = curator.history(), curator.dialect()
        undo_plan = plan_undo(history.back_to(self.entry.id), history, queue_state.queue, dialect, queue_state.busy)
        turns = [turn for turn in undo_plan.turns if not turn.problem]
        notes = [f"{'undoes' if turn.back else 'redoes'} {turn.entry.id}" for turn in turns]
        notes += [trace for turn in turns for trace in turn.traces]
        if undo_plan.problem is not None:
            notes.append(_where_it_ends(undo_plan.problem))
        return Plan("undo", self.title, undo_plan.steps, notes=tuple(notes))

    def run(self, curator: Curator, shown: Plan) -> Result | None:
        done: tuple[Result, ...] = ()
        problems: tuple[str, ...] = ()
        try:
            for result in curator.restore(self.entry.id, shown=shown):
                done = (*done, result)  # stays done, even if the next one fails
        except (Conflict, NotUndoable) as error:
            # what was already undone stays so, and is reported as one result with the reason for stopping
            if not done:
                raise
            problems = (f"the restore stopped early: {error}",)
        return _as_one(done, shown, problems)


def _where_it_ends(turn: UndoStep) -> str:
    word = "undone" if turn.back else "redone"
    said = "; ".join(map(str, turn.differences[:5]))
    return f"the restore stops at {turn.entry.id}, which cannot be {word}: {turn.problem}{f' ({said})' if said else ''}"


def _as_one(done: Sequence[Result], shown: Plan, problems: tuple[str, ...]) -> Result | None:
    """Several results as one."""
    if not done:
        return None
    return replace(
        done[-1],
        plan=shown,
        newly_ready=tuple(dict.fromkeys(bead_id for each in done for bead_id in each.newly_ready)),
        newly_blocked=tuple(dict.fromkeys(bead_id for each in done for bead_id in each.newly_blocked)),
        problems=(*(problem for each in done for problem in each.problems), *problems),
        warnings=tuple(dict.fromkeys(warning for each in done for warning in each.warnings)),
        ran=sum(each.ran for each in done),
    )
