"""A preview begins with the changed bead, compares the whole order, and what runs is what was shown."""

from __future__ import annotations

import pytest

from helix_tui.core.ddx.dialect import AUGUST
from helix_tui.core.editing import operations
from helix_tui.core.editing.differences import PlanChanged
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import Plan, plan
from helix_tui.core.editing.preview import Consequences, PlannedQueue, foresee, ordinal
from helix_tui.core.supervision.signals.orphans import plan_release
from tests.core.supervision.conftest import WorldFactory, queue_of, row

MANY = [row(f"m-{number:03}", priority=1) for number in range(202)]


def follows(*wanted: operations.Operation) -> Consequences:
    queue = queue_of([*MANY, row("w-1", "m-000"), row("x-1", status="closed")])
    made = plan(wanted, queue, AUGUST)
    assert not made.refusals
    return foresee(queue, made.steps)


def test_a_bead_far_down_says_where_it_goes_though_the_first_ten_stay() -> None:
    found = follows(operations.SetPriority("m-013", 3))
    assert [str(place) for place in found.places] == ["14th → 202nd of 202 ready"]
    assert found
    assert found.next_before == found.next_after
    assert found.order == "the other 201 ready beads keep their order"


def test_of_one_other_ready_bead_is_said_that_it_stays_where_it_does() -> None:
    queue = queue_of([row("a-1"), row("a-2"), row("a-3", "a-1")])

    def order(wish: operations.Operation) -> str:
        return foresee(queue, plan([wish], queue, AUGUST).steps).order

    assert order(operations.RemoveDependency("a-3", "a-1")) == "the other 2 ready beads keep their order"
    assert order(operations.CloseBead("a-1")) == "the other ready bead stays"
    assert order(operations.AddDependency("a-1", "a-2")) == "the other ready bead stays"


def test_a_bead_within_the_first_ten_is_named_itself() -> None:
    found = follows(operations.SetPriority("m-002", 4))
    assert str(found.places[0]) == "3rd → 202nd of 202 ready"


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (operations.CloseBead("m-005"), "6th of 202 ready → closed"),
        (operations.SetEligible("m-005", on=False), "6th of 202 ready → not ready (not eligible)"),
        (operations.SetPriority("w-1", 0), "stays not ready (waits)"),
        (operations.ChangeLabels("m-005", add=["area:ui"]), "stays 6th of 202 ready"),
        (operations.ReopenBead("x-1"), "closed → 203rd of 203 ready"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_every_way_into_the_order_and_out_of_it(wish: operations.Operation, said: str) -> None:
    assert str(follows(wish).places[0]) == said


@pytest.mark.parametrize(
    ("number", "text"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (11, "11th"), (112, "112th"), (1023, "1,023rd")]
)
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text


OTHER = Plan("undo", "something else", ())


def test_undo_redo_and_restore_run_only_what_was_shown(world: WorldFactory) -> None:
    made = world([row("a-1"), row("a-2")])
    entry = made.curator.run([operations.SetPriority("a-1", 0)]).entry
    assert entry is not None
    second = made.curator.run([operations.SetPriority("a-2", 0)]).entry
    assert second is not None
    before = made.rows()
    with pytest.raises(PlanChanged):
        made.curator.undo(second, shown=OTHER)
    with pytest.raises(PlanChanged):
        list(made.curator.restore(entry.id, shown=OTHER))
    assert made.rows() == before
    undo_plan, _ = made.curator.plan_undo(made.curator.history().back_to(entry.id))
    assert len(list(made.curator.restore(entry.id, shown=Plan("undo", "back", undo_plan.steps)))) == 1
    assert made.rows()["a-2"]["priority"] == 2
    with pytest.raises(PlanChanged):
        made.curator.redo(second, shown=OTHER)
    assert made.rows()["a-2"]["priority"] == 2


def test_a_claim_that_is_no_orphan_any_more_is_not_released(world: WorldFactory) -> None:
    from helix_tui.core.supervision.signals.orphans import find_orphans

    claim = {"status": "in_progress", "owner": "sam", "claimed-at": "2026-08-01T00:00:00Z"}
    made = world([row("a-1", **claim, **{"claimed-pid": "999999", "claimed-machine": ""})])
    queue_state = made.curator.look()
    orphans = find_orphans(queue_state.runs, queue_state.queue)
    assert [orphan.bead_id for orphan in orphans] == ["a-1"]
    make = plan_release(orphans)
    steps = made.curator.plan_steps("unclaim", "release", make, queue_state)
    assert steps.steps
    release = plan_release(())
    with pytest.raises(PlanChanged):
        made.curator.run_steps("unclaim", "release", release, shown=steps, again=True)
    assert made.rows()["a-1"]["status"] == "in_progress"


def test_a_planned_queue_knows_places_and_when_it_is_judged_anew() -> None:
    queue = queue_of([row("a-1"), row("a-2"), row("a-3", **{"work-retry-after": "2100-01-01T00:00:00Z"})])
    overlay = Overlay(queue)
    for step in plan([operations.CloseBead("a-1")], queue, AUGUST).steps:
        overlay.apply(step.edits, step.leases)
    then = PlannedQueue(overlay)
    assert then.position == {"a-2": 1}
    until = then.standing("a-3").until
    assert until is not None
    assert [then.expired(until - 1), then.expired(until)] == [False, True]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (operations.SetRank("m-013", top=True), "14th → 1st of 202 ready"),
        (operations.SetRank("m-013", before="m-002"), "14th → 3rd of 202 ready"),
        (operations.SetRank("m-013", after="m-100"), "14th → 101st of 202 ready"),
    ],
    ids=["top", "before", "after"],
)
def test_a_ranked_bead_says_where_it_goes_and_no_other_is_said_to_move(wish: operations.Operation, said: str) -> None:
    found = follows(wish)
    assert [str(place) for place in found.places] == [said]
    assert found.order == "the other 201 ready beads keep their order"
