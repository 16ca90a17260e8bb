"""Epic focus: holds back what it must, gives back exactly that, whatever was cut off half-way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.record import FOCUS_ON
from helix_tui.core.ddx.dialect import APRIL, AUGUST, Dialect
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import CommandStep, OperationRefused, PlanBuilder
from helix_tui.core.supervision.signals.focus import (
    PRIOR,
    plan_focus,
    plan_unfocus,
    plan_upkeep,
    read_focus,
)
from tests.core.supervision.conftest import WorldFactory, queue_of, row

pytestmark = pytest.mark.long

MARK = "helix-focus-suppressed"

Rows = dict[str, dict[str, Any]]


def rows_of(*rows: Mapping[str, Any]) -> Rows:
    return {str(each["id"]): dict(each) for each in rows}


def steps_of(rows: Rows, make: Callable[[PlanBuilder], None], dialect: Dialect = AUGUST) -> list[CommandStep]:
    writing = PlanBuilder(Overlay(queue_of(rows.values(), dialect.family)), dialect)
    make(writing)
    return writing.steps


def after(rows: Rows, steps: Iterable[CommandStep]) -> Rows:
    """The rows once steps have run."""
    changed = {bead_id: dict(each) for bead_id, each in rows.items()}
    for step in steps:
        for bead_id, fields in step.edits.items():
            for name, value in fields.items():
                if value is None:
                    changed[bead_id].pop(name, None)
                else:
                    changed[bead_id][name] = value
    return changed


def focused(rows: Rows, epic: str = "e", dialect: Dialect = AUGUST) -> Rows:
    return after(rows, steps_of(rows, lambda writing: plan_focus(writing, epic), dialect))


def unfocused(rows: Rows) -> Rows:
    return after(rows, steps_of(rows, plan_unfocus))


def held(rows: Rows) -> set[str]:
    return {bead_id for bead_id, each in rows.items() if MARK in each}


TREE = rows_of(
    row("e", issue_type="epic"),
    row("child", parent="e"),
    row("grandchild", "needed", parent="child"),
    row("needed", "deep"),
    row("deep"),
    row("other"),
    row("waits", "other"),
    row("true", **{"execution-eligible": True}),
    row("off", **{"execution-eligible": False}),
    row("shut", status="closed"),
    row("gone", status="cancelled"),
    row("working", status="in_progress"),
    row("replaced", **{"superseded-by": "other"}),
    row("f", issue_type="epic"),
    row("cousin", parent="f"),
)


def test_everything_but_the_epic_and_what_it_needs_is_held_back() -> None:
    rows = focused(TREE)
    assert held(rows) == {"other", "waits", "true", "working", "cousin"}
    assert all(rows[bead_id]["execution-eligible"] is False for bead_id in held(rows))
    assert {rows[bead_id][MARK] for bead_id in held(rows)} == {"e"}
    assert (rows["other"][PRIOR], rows["true"][PRIOR]) == ("absent", True)
    assert MARK not in rows["off"]
    assert set(queue_of(rows.values()).ready) == {"child", "deep"}


def test_a_bead_that_is_worked_on_and_a_review_are_left_alone() -> None:
    rows = rows_of(
        row("e", issue_type="epic"),
        row("child", parent="e"),
        row("claimed", status="in_progress", owner="w"),
        row("review", labels=["review-finding", "helix-injected:review-finding"]),
        row("other"),
    )
    writing = PlanBuilder(Overlay(queue_of(rows.values())), AUGUST, claimed={"claimed"})
    plan_focus(writing, "e")
    assert held(after(rows, writing.steps)) == {"other"}


def test_what_workers_pass_by_is_not_held_back_and_what_they_pick_is() -> None:
    rows = rows_of(
        row("e", issue_type="epic"),
        row("child", parent="e"),
        row("childless", issue_type="epic"),
        row("named", title="Epic: by its title"),
        row("under", parent="named"),
    )
    assert held(focused(rows, dialect=AUGUST)) == {"childless", "under"}
    assert held(focused(rows, dialect=APRIL)) == {"named", "under"}


@pytest.mark.parametrize(
    ("value", "held_back", "then"),
    [("no", True, "no"), ("true", True, True), ("false", True, None), (7, False, 7)],
)
def test_a_text_for_a_truth_comes_back_as_what_workers_took_it_for(
    value: object, held_back: bool, then: object
) -> None:
    rows = rows_of(row("e", issue_type="epic"), row("child", parent="e"), row("odd", **{"execution-eligible": value}))
    made = focused(rows)
    assert held(made) == ({"odd"} if held_back else set())
    assert unfocused(made)["odd"].get("execution-eligible") == then


@pytest.mark.parametrize("dialect", [APRIL, AUGUST])
def test_what_was_held_back_comes_back_as_it_was(dialect: Dialect) -> None:
    rows = {bead_id: {k: v for k, v in each.items() if k != "schema_version"} for bead_id, each in TREE.items()}
    assert unfocused(focused(rows, dialect=dialect)) == rows


def test_each_bead_costs_one_command_and_those_that_are_ready_come_first() -> None:
    steps = steps_of(TREE, lambda writing: plan_focus(writing, "e"))
    assert list(steps[0].edits) == ["e"]
    assert len(steps) == 6
    last_ready = max(n for n, step in enumerate(steps) if next(iter(step.edits)) in ("other", "true", "working"))
    assert all(next(iter(step.edits)) in ("waits",) for step in steps[last_ready + 1 :])
    assert "--set execution-eligible=false --set helix-focus-suppressed=e --set helix-focus-prior=absent" in " ".join(
        steps[1].args
    )
    assert steps_of(focused(TREE), lambda writing: plan_focus(writing, "e")) == []


def test_a_needed_epic_keeps_its_children() -> None:
    rows = rows_of(
        row("e", issue_type="epic"),
        row("child", "upper", parent="e"),
        row("upper", issue_type="epic"),
        row("under", "far", parent="upper"),
        row("far"),
        row("else"),
    )
    assert held(focused(rows)) == {"else"}


def test_what_the_epic_waits_on_is_needed_when_something_under_it_waits_on_the_epic() -> None:
    rows = rows_of(row("e", "far", issue_type="epic"), row("child", "e", parent="e"), row("far"), row("else"))
    assert held(focused(rows)) == {"else"}
    rows["child"].pop("dependencies")
    assert held(focused(rows)) == {"else", "far"}


def test_what_supersedes_a_needed_bead_is_needed() -> None:
    rows = rows_of(
        row("e", issue_type="epic"),
        row("child", parent="e", **{"superseded-by": "better"}),
        row("better"),
        row("else"),
    )
    assert held(focused(rows)) == {"else"}


def test_a_plain_bead_above_a_needed_one_is_not_held_back_at_head() -> None:
    """Head closes such a bead unworked when what is under it is done and it is not eligible."""
    rows = rows_of(
        row("e", issue_type="epic"),
        row("child", "under", parent="e"),
        row("above"),
        row("under", parent="above"),
    )
    assert held(focused(rows)) == set()
    assert held(focused(rows, dialect=APRIL)) == {"above"}


def test_a_dependency_of_a_finished_descendant_is_not_needed() -> None:
    rows = rows_of(
        row("e", issue_type="epic"),
        row("todo", parent="e"),
        row("past", "leftover", parent="e", status="closed"),
        row("leftover"),
    )
    assert held(focused(rows)) == {"leftover"}


def test_beads_made_later_are_covered_and_new_needs_are_given_back() -> None:
    rows = focused(TREE)
    rows["late"] = row("late")
    rows["child"]["dependencies"] = [{"issue_id": "child", "depends_on_id": "other", "type": "blocks"}]
    rows = after(rows, steps_of(rows, plan_upkeep))
    assert held(rows) == {"waits", "true", "working", "cousin", "late"}
    assert "execution-eligible" not in rows["other"]


def test_what_somebody_made_eligible_again_keeps_that() -> None:
    rows = focused(TREE)
    rows["other"]["execution-eligible"] = True
    rows = unfocused(rows)
    assert rows["other"]["execution-eligible"] is True
    assert not held(rows)
    assert PRIOR not in rows["other"]


def test_the_focus_moves_from_one_epic_to_another() -> None:
    rows = focused(focused(TREE), "f")
    assert read_focus(Overlay(queue_of(rows.values()))).epic == "f"
    assert FOCUS_ON not in rows["e"]
    assert {rows[bead_id][MARK] for bead_id in held(rows)} == {"f"}
    assert "cousin" not in held(rows)
    assert rows["true"][PRIOR] is True
    assert unfocused(rows) == TREE


def test_a_focus_whose_epic_is_finished_ends() -> None:
    rows = focused(TREE)
    rows["e"]["status"] = "closed"
    ended = after(rows, steps_of(rows, plan_upkeep))
    ended["e"]["status"] = "open"
    assert ended == TREE
    rows = focused(TREE)
    for bead_id in ("child", "grandchild"):
        rows[bead_id]["status"] = "closed"
    writing = PlanBuilder(Overlay(queue_of(rows.values())), AUGUST)
    plan_upkeep(writing)
    assert "has ended" in writing.notes[0]
    assert not held(after(rows, writing.steps))


def test_marks_without_a_focus_are_leftovers() -> None:
    rows = rows_of(row("e"), row("x", **{"execution-eligible": False, MARK: "e", PRIOR: "absent"}))
    focus = read_focus(Overlay(queue_of(rows.values())))
    assert (focus.epic, focus.leftovers) == ("", ("x",))
    assert after(rows, steps_of(rows, plan_upkeep)) == rows_of(row("e"), row("x"))


@pytest.mark.parametrize(
    ("epic", "why"), [("other", "nothing open is under"), ("none", "no bead"), ("shut", "is closed")]
)
def test_a_focus_needs_open_beads_under_it(epic: str, why: str) -> None:
    with pytest.raises(OperationRefused, match=why):
        steps_of(TREE, lambda writing: plan_focus(writing, epic))


IDS = [f"b{number}" for number in range(9)]


@st.composite
def forests(draw: st.DrawFn) -> Rows:
    rows = {}
    for number, bead_id in enumerate(IDS):
        fields: dict[str, Any] = {"status": draw(st.sampled_from(["open", "open", "open", "in_progress", "closed"]))}
        if number and draw(st.booleans()):
            fields["parent"] = draw(st.sampled_from(IDS[:number]))
        if draw(st.integers(0, 3)) == 0:
            fields["execution-eligible"] = draw(st.booleans())
        if draw(st.integers(0, 3)) == 0:
            fields["issue_type"] = "epic"
        if draw(st.integers(0, 4)) == 0:
            fields["superseded-by"] = draw(st.sampled_from(IDS))
        rows[bead_id] = row(bead_id, *draw(st.lists(st.sampled_from(IDS), max_size=2, unique=True)), **fields)
    return rows


def try_focus(rows: Rows, epic: str) -> list[CommandStep]:
    try:
        return steps_of(rows, lambda writing: plan_focus(writing, epic))
    except OperationRefused:
        return []


@settings(max_examples=150, deadline=None)
@given(rows=forests(), epic=st.sampled_from(IDS), other=st.sampled_from(IDS), data=st.data())
def test_a_kill_at_any_step_loses_nothing(rows: Rows, epic: str, other: str, data: st.DataObject) -> None:
    """Focus, focus elsewhere, end: each cut off at any command; then mended, then ended."""
    now = rows
    for target in (epic, other, ""):
        steps = try_focus(now, target) if target else steps_of(now, plan_unfocus)
        now = after(now, steps[: data.draw(st.integers(0, len(steps)))])
        for each in now.values():
            if MARK in each:
                assert each["execution-eligible"] is False
                assert PRIOR in each
    mended = after(now, steps_of(now, plan_upkeep))
    assert steps_of(mended, plan_upkeep) == []
    assert unfocused(mended) == rows
    assert unfocused(now) == rows


@settings(max_examples=150, deadline=None)
@given(rows=forests(), epic=st.sampled_from(IDS))
def test_nothing_outside_is_picked_and_nothing_needed_is_kept_from_it(rows: Rows, epic: str) -> None:
    steps = try_focus(rows, epic)
    now = after(rows, steps)
    if not steps:
        assert now == rows
        return
    back = held(now)
    queue = queue_of(now.values())
    below: set[str] = set()
    frontier = [epic]
    while frontier:
        children = queue.graph.children.get(frontier.pop(), ())
        frontier += [child for child in children if child not in below]
        below.update(children)
    needed: set[str] = set()
    frontier = [bead_id for bead_id in below if rows[bead_id]["status"] not in ("closed", "cancelled")]
    while frontier:
        for target in queue.beads[frontier.pop()].depends_on:
            if target not in needed and rows[target]["status"] != "closed":
                needed.add(target)
                frontier.append(target)
    assert not back & (below | needed | {epic})
    assert all(rows[bead_id].get("execution-eligible") is not False for bead_id in back)


def test_a_focus_goes_through_ddx_and_is_one_change(world: WorldFactory) -> None:
    here = world(list(TREE.values())[:7])
    before = here.settled()
    here.curator.run_steps("focus", "focus on e", lambda writing, _: plan_focus(writing, "e"))
    assert here.curator.look().queue.ready == ("child", "deep")
    done = here.curator.undo()
    assert done is not None
    assert here.settled() == before
    assert here.curator.redo() is not None
    here.curator.run_steps("focus", "end", lambda writing, _: plan_unfocus(writing))
    assert here.settled() == before
