"""What somebody is about to do: how it is planned on a state of the queue, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator, Done, Sight
from helix_tui.core.editing.journal import Entry
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.plan.planner import Plan, describe, plan
from helix_tui.core.editing.steps import Writing, named
from helix_tui.core.editing.undo.conflicts import Conflict, Difference, NotUndoable
from helix_tui.core.editing.undo.undo_plan import Turn, foretell
from helix_tui.core.supervision.signals.focus import plan_upkeep
from helix_tui.core.supervision.signals.hold import drifted, plan_drifted
from helix_tui.core.supervision.signals.orphans import Orphan, letting_go


@dataclass(frozen=True, slots=True)
class Wish:
    """One change that may be made. Both calls are for worker threads, each with a curator of its own."""

    title: str
    beads: tuple[str, ...]
    """The beads that it is about, for the mark on their rows."""
    plan: Callable[[Curator, Sight], Plan]
    """What it would run; touches nothing."""
    run: Callable[[Curator, Plan], Done | None]
    """Do what was shown."""
    kept: str = ""
    """A file in which what was typed lies until it is done; empty where none does."""


def wish_for(operations: Sequence[Operation], title: str = "") -> Wish:
    """The wish to do some operations as one change."""
    wanted = list(operations)

    def planned(curator: Curator, sight: Sight) -> Plan:
        return plan(wanted, sight.queue, curator.dialect(sight.queue), busy=sight.busy, title=title)

    def run(curator: Curator, shown: Plan) -> Done:
        return curator.run(wanted, shown=shown, title=title)

    beads = tuple(dict.fromkeys(operation.bead_id for operation in wanted if operation.bead_id))
    return Wish(title or describe(wanted), beads, planned, run)


def wish_for_steps(
    kind: str, title: str, beads: Sequence[str], make: Callable[[Writing, Sight], None]
) -> Wish:
    """The wish to run steps that are planned on what the queue then holds."""

    def planned(curator: Curator, sight: Sight) -> Plan:
        return curator.plan_steps(kind, title, make, sight)

    def run(curator: Curator, shown: Plan) -> Done:
        return curator.run_steps(kind, title, make, shown=shown)

    return Wish(title, tuple(beads), planned, run)


class EditConflict(Conflict):
    """Somebody changed a text while it was being edited: both versions are texts."""


def edit_wish(bead_id: str, base: Mapping[str, str], texts: Mapping[str, str], kept: str = "") -> Wish:
    """The wish to give a bead other texts than those that somebody began with."""
    wish = wish_for([operations.assign(bead_id, texts)])

    def planned(curator: Curator, sight: Sight) -> Plan:
        bead = sight.queue.beads.get(bead_id)
        row = bead.document() if bead is not None else {}
        moved = [
            Difference(bead_id, name, texts[name], row.get(name))
            for name in texts
            if bead is None or str(row.get(name) or "") != base[name]
        ]
        if moved:
            raise EditConflict(moved)
        return wish.plan(curator, sight)

    return Wish(wish.title, wish.beads, planned, wish.run, kept)


def recovery_wish(orphans: Sequence[Orphan]) -> Wish:
    """The wish to release orphaned claims; whether they still are orphaned is checked again as it runs."""
    beads = tuple(orphan.bead_id for orphan in orphans)
    title = f"release the stale claim on {named(beads)}"

    def planned(curator: Curator, sight: Sight) -> Plan:
        return curator.plan_steps("unclaim", title, letting_go(orphans, curator.project), sight)

    def run(curator: Curator, shown: Plan) -> Done:
        make = letting_go(orphans, curator.project)
        return curator.run_steps("unclaim", title, make, shown=shown, again=True)

    return Wish(title, beads, planned, run)


def drift_wish(beads: Sequence[str]) -> Wish:
    """The wish to keep workers from beads whose parent or document changed, beside those that are kept."""

    def make(writing: Writing, sight: Sight) -> None:
        plan_drifted(writing, {*drifted(sight.queue), *beads})

    return wish_for_steps("hold", f"keep {named(beads)} from workers", beads, make)


def upkeep_wish() -> Wish:
    """The wish to bring the focus up to date."""
    return wish_for_steps("focus", "keep the focus", (), lambda writing, _: plan_upkeep(writing))


def undo_wish(entry: Entry | None = None) -> Wish:
    """The wish to take back a change, or the last one of people."""
    chosen: list[Entry | None] = [entry]

    def planned(curator: Curator, sight: Sight) -> Plan:
        if entry is None:
            chosen[0] = next(iter(curator.history().to_undo(curator.me)), None)
        return _plan_turn("undo", "undo", chosen[0], curator, sight)

    title = f"undo {entry.id}" if entry is not None else "undo the last change"
    return Wish(title, (), planned, lambda curator, shown: curator.undo(chosen[0], shown=shown))


def redo_wish(entry: Entry | None = None) -> Wish:
    """The wish to do again a change that was taken back, or what was taken back last."""
    chosen: list[Entry | None] = [entry]

    def planned(curator: Curator, sight: Sight) -> Plan:
        if entry is None:
            chosen[0] = next(iter(curator.history().to_redo(curator.me)), None)
        return _plan_turn("redo", "redo", chosen[0], curator, sight)

    title = f"redo {entry.id}" if entry is not None else "redo what was undone"
    return Wish(title, (), planned, lambda curator, shown: curator.redo(chosen[0], shown=shown))


def restore_wish(entry: Entry) -> Wish:
    """The wish to lead back to how things stood right after an entry."""

    def planned(curator: Curator, sight: Sight) -> Plan:
        history, dialect = curator.history(), curator.dialect(sight.queue)
        retreat = foretell(history.back_to(entry.id), history, sight.queue, dialect, sight.busy)
        turns = [turn for turn in retreat.turns if not turn.problem]
        notes = [f"{'undoes' if turn.back else 'redoes'} {turn.entry.id}" for turn in turns]
        notes += [trace for turn in turns for trace in turn.traces]
        if retreat.problem is not None:
            notes.append(_where_it_ends(retreat.problem))
        return Plan("undo", f"restore to just after {entry.id}", retreat.steps, notes=tuple(notes))

    def run(curator: Curator, shown: Plan) -> Done | None:
        done: tuple[Done, ...] = ()
        problems: tuple[str, ...] = ()
        try:
            for result in curator.restore(entry.id, shown=shown):
                done = (*done, result)  # stays done, also where the next one cannot be
        except (Conflict, NotUndoable) as error:
            if not done:
                raise
            problems = (f"it ended before its goal: {error}",)
        return _as_one(done, shown, problems)

    return Wish(f"restore to just after {entry.id}", (), planned, run)


def _where_it_ends(turn: Turn) -> str:
    word = "undone" if turn.back else "redone"
    said = "; ".join(map(str, turn.differences[:5]))
    return f"it ends at {turn.entry.id}, which cannot be {word}: {turn.problem}{f' ({said})' if said else ''}"


def _as_one(done: Sequence[Done], shown: Plan, problems: tuple[str, ...]) -> Done | None:
    """Several changes as one answer."""
    if not done:
        return None
    return replace(
        done[-1],
        plan=shown,
        newly_ready=tuple(dict.fromkeys(bead_id for each in done for bead_id in each.newly_ready)),
        newly_blocked=tuple(dict.fromkeys(bead_id for each in done for bead_id in each.newly_blocked)),
        problems=(*(problem for each in done for problem in each.problems), *problems),
        ran=sum(each.ran for each in done),
    )


def _plan_turn(kind: str, word: str, entry: Entry | None, curator: Curator, sight: Sight) -> Plan:
    """What taking back or doing again would run.

    Raises:
        Conflict: somebody changed since what it would touch.
        NotUndoable: it cannot be done.
    """
    if entry is None:
        return Plan(kind, f"there is nothing to {word}")
    dialect = curator.dialect(sight.queue)
    retreat = foretell([entry], curator.history(), sight.queue, dialect, sight.busy)
    turn = retreat.problem
    if turn is not None and turn.differences:
        raise Conflict(turn.differences, entry)
    if turn is not None:
        raise NotUndoable(entry, turn.problem)
    traces = tuple(trace for each in retreat.turns for trace in each.traces)
    return Plan(kind, f"{word} {entry.id}: {entry.title}", retreat.steps, notes=traces)
