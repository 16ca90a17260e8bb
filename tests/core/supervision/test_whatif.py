"""What-if: the same answer as judging everything anew after the change, found without judging everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.readiness import Queue, classify
from helix_tui.core.ddx.dialect import APRIL, AUGUST
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import plan
from helix_tui.core.editing.preview import foresee
from helix_tui.core.editing.steps import CommandStep
from tests.core.supervision.conftest import NOW, queue_of, row

pytestmark = pytest.mark.long

IDS = [f"b{number}" for number in range(8)]
ids = st.sampled_from(IDS)


@st.composite
def trackers(draw: st.DrawFn, era: str) -> list[dict[str, Any]]:
    """Small queues with everything that readiness looks at."""
    rows = []
    statuses = ["open", "open", "open", "in_progress", "closed"]
    if era == "head":
        statuses += ["blocked", "proposed", "cancelled"]
    for bead_id in IDS:
        waits_on = draw(st.lists(st.sampled_from([*IDS, "gone"]), max_size=2, unique=True))
        fields: dict[str, Any] = {
            "status": draw(st.sampled_from(statuses)),
            "priority": draw(st.integers(0, 2)),
            "issue_type": draw(st.sampled_from(["task", "task", "epic"])),
            "created_at": f"2026-08-0{draw(st.integers(1, 3))}T00:00:00Z",
        }
        for name, values in (
            ("parent", IDS),
            ("superseded-by", IDS),
            ("execution-eligible", [True, False]),
            ("owner", ["me"]),
            ("queue-rank", [0, 1, 2, 10]) if era == "head" else ("notes", ["n"]),
            ("work-retry-after", ["2026-08-22T22:00:28Z"]) if era == "head" else ("spec-id", ["S"]),
        ):
            if draw(st.integers(0, 3)) == 0:
                fields[name] = draw(st.sampled_from(values))
        rows.append(row(bead_id, *waits_on, era=era, **fields))
    return rows


operations = st.one_of(
    st.builds(op.SetEligible, ids, st.booleans()),
    st.builds(op.Supersede, ids, ids | st.none()),
    st.builds(op.AddDependency, ids, ids),
    st.builds(op.RemoveDependency, ids, ids),
    st.builds(op.SetParent, ids, ids | st.none()),
    st.builds(op.SetPriority, ids, st.integers(0, 4)),
    st.builds(lambda bead_id, other: op.SetRank(bead_id, before=other), ids, ids),
    st.builds(lambda bead_id: op.SetRank(bead_id, top=True), ids),
    st.builds(lambda bead_id: op.ChangeLabels(bead_id, add=["x"]), ids),
    st.builds(op.ClaimBead, ids),
    st.builds(op.ReleaseBead, ids),
    st.builds(op.CloseBead, ids),
    st.builds(op.ReopenBead, ids),
    st.builds(op.CancelBead, ids),
    st.builds(lambda parent, target: op.CreateBead(title="New", parent=parent, depends_on=[target]), ids, ids),
)


def judged_anew(queue: Queue, overlay: Overlay) -> Queue:
    """Every row as the plan leaves it, judged from nothing."""
    beads = {bead_id: overlay.bead(bead_id) for bead_id in overlay}
    leases = {bead_id: True for bead_id, held in overlay.leases.items() if held}
    claims = queue.claims.__class__(leases=leases)
    return classify(beads, now=NOW, era=queue.era, claims=claims)


@pytest.mark.parametrize("era", ["april", "head"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_what_if_equals_judging_everything_anew(era: str, data: st.DataObject) -> None:
    queue = queue_of(data.draw(trackers(era)), data.draw(st.sampled_from(["auto", era])))
    dialect = APRIL if era == "april" else AUGUST
    made = plan(data.draw(st.lists(operations, min_size=1, max_size=4)), queue, dialect)
    follows = foresee(queue, made.steps)
    overlay = Overlay(queue)
    for step in made.steps:
        overlay.apply(step.edits, step.leases)
        overlay.apply(step.ripple)
    then = judged_anew(queue, overlay)
    assert follows.ready == (len(queue.ready), len(then.ready))
    assert follows.next_after == then.ready[:10]
    assert follows.newly_ready == tuple(bead_id for bead_id in then.ready if bead_id not in queue.position)
    assert all(bead_id in queue.position and bead_id not in then.position for bead_id in follows.newly_blocked)
    moved = {bead_id for bead_id in queue.ready if bead_id not in then.position} - set(follows.newly_blocked)
    assert all(then.state(bead_id) in ("closed", "cancelled", "claimed") for bead_id in moved)
    states = {
        bead_id: (queue.state(bead_id) if bead_id in queue.beads else "", then.state(bead_id)) for bead_id in then.beads
    }
    told = dict(follows.changed)
    for bead_id, held in overlay.leases.items():
        if held:  # a claim at head shows as running, which the leases alone do not tell
            states.pop(bead_id), told.pop(bead_id, None)
    assert told == {bead_id: pair for bead_id, pair in states.items() if pair[0] != pair[1]}


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_new_circles_are_found_though_ddx_would_refuse_them(data: st.DataObject) -> None:
    queue = queue_of(data.draw(trackers("head")))
    overlay = Overlay(queue)
    step_edits: dict[str, Mapping[str, Any]] = {}
    for bead_id, target in data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=3)):
        edges = [*(overlay.value(bead_id, "dependencies") or ()), {"depends_on_id": target}]
        step_edits[bead_id] = {"dependencies": edges}
        overlay.apply({bead_id: {"dependencies": edges}})
    follows = foresee(queue, [CommandStep((), step_edits)])
    after = judged_anew(queue, overlay).graph.cycles
    assert set(after) - set(queue.graph.cycles) <= set(follows.cycles) <= set(after)


def consequences(rows: list[dict[str, Any]], *wishes: Operation):  # type: ignore[no-untyped-def]
    queue = queue_of(rows)
    return foresee(queue, plan(wishes, queue, AUGUST).steps)


def test_closing_frees_and_tells_the_next_ten() -> None:
    rows = [row("a", priority=1), row("b", "a", priority=0), row("c", "a", "gone")]
    follows = consequences(rows, op.CloseBead("a"))
    assert follows.newly_ready == ("b",)
    assert follows.newly_blocked == ()
    assert (follows.next_before, follows.next_after) == (("a",), ("b",))
    assert follows.ready == (1, 1)


def test_who_is_left_waiting_for_ever_is_told() -> None:
    rows = [row("a"), row("b"), row("waits", "a")]
    for wish, why in (
        (op.CancelBead("a"), "cancelled"),
        (op.SetEligible("a", False), "not eligible"),
    ):
        (orphan,) = consequences(rows, wish).orphaned
        assert (orphan.bead_id, orphan.waits_on) == ("waits", "a")
        assert why in orphan.why


def test_what_falls_by_itself_frees_too() -> None:
    rows = [row("epic", issue_type="epic"), row("child", parent="epic"), row("next", "epic")]
    follows = consequences(rows, op.CloseBead("child"))
    assert follows.falls == {"epic": "closed"}
    assert follows.newly_ready == ("next",)


def test_nothing_follows_from_nothing() -> None:
    follows = consequences([row("a")], op.SetEligible("a", True))
    assert not follows
    assert follows.next_after == ("a",)


def test_a_row_that_shows_the_newer_release_changes_the_rule_for_all() -> None:
    rows = [
        row("epic", era="april", issue_type="epic"),
        row("plain", era="april", **{"execute-loop-last-status": "x"}),
    ]
    queue = queue_of(rows)
    assert queue.ready == ("plain",)
    made = plan([op.SetFields("plain", {"queue-rank": "1"})], queue, AUGUST)
    assert foresee(queue, made.steps).newly_ready == ("epic",)
