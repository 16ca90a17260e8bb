"""The way back leads every row to what it was, or says beforehand that it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import APRIL, AUGUST
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import plan, values_before, way_back
from helix_tui.core.editing.steps import PlanBuilder
from helix_tui.core.editing.values import same
from tests.core.supervision.conftest import queue_of, row
from tests.core.supervision.test_whatif import IDS, operations, trackers

pytestmark = pytest.mark.long

texts = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12)

wishes = operations | st.builds(
    op.SetFields,
    st.sampled_from(IDS),
    st.dictionaries(
        st.sampled_from(["title", "notes", "acceptance", "description", "owner", "spec-id", "foo", "type"]),
        texts,
        min_size=1,
        max_size=3,
    ),
)


def applied(overlay: Overlay, steps: Any) -> Overlay:
    for step in steps:
        overlay.apply(step.edits, step.leases)
        overlay.apply(step.ripple)
    return overlay


@pytest.mark.parametrize("era", ["april", "head"])
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_there_and_back_is_nowhere(era: str, data: st.DataObject) -> None:
    queue = queue_of(data.draw(trackers(era)))
    dialect = APRIL if era == "april" else AUGUST
    made = plan(data.draw(st.lists(wishes, min_size=1, max_size=4)), queue, dialect)
    if made.back.lost:
        return
    overlay = applied(Overlay(queue), made.steps)
    back = way_back(PlanBuilder(overlay, dialect), values_before(made.steps, queue))
    assert not back.lost
    assert [step.args for step in back.steps] == [step.args for step in made.back.steps]
    start = Overlay(queue)
    for bead_id in overlay:
        if bead_id not in start:
            assert overlay.status(bead_id) == "cancelled"
            continue
        was, now = start.row(bead_id), overlay.row(bead_id)
        for name in was.keys() | now.keys():
            assert same(name, now.get(name), was.get(name)), (bead_id, name)


def lost(rows: list[dict[str, Any]], wish: op.Operation, dialect: Any = AUGUST) -> str:
    return "; ".join(plan([wish], queue_of(rows, dialect.family), dialect).back.lost)


def test_what_no_command_gives_back_is_told() -> None:
    assert "ddx takes no such edge" in lost([row("a", "gone")], op.RemoveDependency("a", "gone"))
    assert "no command sets foo back" in lost([row("a", foo={"deep": 1})], op.ClearFields("a", ["foo"]))
    assert "no command sets foo back" in lost([row("a", foo="true")], op.ClearFields("a", ["foo"]))
    assert "no command sets foo back" in lost([row("a", foo=5)], op.SetFields("a", {"foo": "6"}))
    assert not lost([row("a", **{"queue-rank": 5})], op.SetRank("a"))
    assert "queue-rank" in lost([row("a", **{"queue-rank": 5})], op.ClearFields("a", ["queue-rank"]), APRIL)


def test_an_undo_closes_nothing_else_on_the_way() -> None:
    rows = [row("epic", issue_type="epic"), row("child", parent="epic", status="closed")]
    assert "would also close epic" in lost(rows, op.ReopenBead("child"))
    assert not lost(rows, op.ReopenBead("child"), APRIL)


def test_an_edge_of_another_type_comes_back_as_blocks() -> None:
    rows = [row("a"), row("b", "a")]
    rows[1]["dependencies"][0]["type"] = "depends_on"
    made = plan([op.RemoveDependency("b", "a")], queue_of(rows), AUGUST)
    assert made.undoable
    assert "“blocks” now" in made.back.traces[0]


def test_april_takes_a_claim_back_with_all_its_fields() -> None:
    claim = {"claimed-at": "2026-04-24T12:40:14Z", "claimed-pid": "7", "claimed-machine": "m"}
    rows = [row("a", era="april", status="in_progress", owner="me", **claim)]
    made = plan([op.ReleaseBead("a")], queue_of(rows, "april"), APRIL)
    (step,) = made.back.steps
    assert step.edits["a"] == {"owner": "me", "status": "in_progress", **claim}


def test_a_rank_that_ddx_stores_as_text_comes_back_as_text_and_that_is_said() -> None:
    may = replace(AUGUST, rank_is_number=False)
    back = plan([op.ClearFields("a", ["queue-rank"])], queue_of([row("a", **{"queue-rank": 5})]), may).back
    assert [step.args[-1] for step in back.steps] == ["queue-rank=5"]
    assert "kept as text" in back.traces[0]


def test_an_edge_that_comes_back_is_the_last_and_new_which_is_said() -> None:
    made = plan([op.RemoveDependency("c", "a")], queue_of([row("a"), row("b"), row("c", "a", "b")]), AUGUST)
    assert "the edge from c to a is restored as the last one, with a new date" in made.back.traces


def test_a_dropped_change_is_rejected_where_ddx_would_land_it_and_that_stays() -> None:
    queue = queue_of([row("a")])
    verbs = {**AUGUST.verbs, "update": DdxVerb(("bead", "update"), frozenset({"--set", "--reject-preserved"}))}
    for dialect, flags in ((replace(AUGUST, verbs=verbs), ("--reject-preserved", "c0ffee")), (APRIL, ())):
        made = plan([op.DropChange("a", "20260821T100000-aaaaaaaa", "c0ffee")], queue, dialect)
        words = ("bead", "update", "a", *flags, "--set", "helix-dropped=20260821T100000-aaaaaaaa")
        assert [step.args for step in made.steps] == [words]
        assert [step.args for step in made.back.steps] == [("bead", "update", "a", "--unset", "helix-dropped")]
        assert bool(made.back.traces) == bool(flags), "what ddx was told it is not made to forget"
    unknown = plan([op.DropChange("a", "20260821T100000-aaaaaaaa")], queue, replace(AUGUST, verbs=verbs))
    assert "--reject-preserved" not in unknown.steps[0].args, "no commit is known"
