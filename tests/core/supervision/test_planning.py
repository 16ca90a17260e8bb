"""Which commands an operation becomes, in both vocabularies, and when it is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims, classify
from helix_tui.core.ddx.dialect import APRIL, AUGUST, Dialect, RowGate
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.plan import Plan, plan
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder
from tests.core.supervision.conftest import NOW, queue_of, row
from tests.programs import parse_rows

ROWS = [
    row("a"),
    row("b", "a"),
    row("c", "b"),
    row("closed", status="closed", owner="me"),
    row("cancelled", status="cancelled"),
    row("blocked", status="blocked", **{"lifecycle-external-blocker-reason": "upstream"}),
    row("proposed", status="proposed"),
    row("taken", status="in_progress", owner="me"),
    row("epic", issue_type="epic"),
    row("child", parent="epic"),
    row("grandchild", parent="child"),
    row("labelled", labels=["helix", " area:x"]),
    row("ranked", **{"queue-rank": 5}),
    row("held", **{"execution-eligible": False, "helix-focus-suppressed": "epic"}),
    row("off", **{"execution-eligible": False}),
]


def planned(*operations: Operation, dialect: Dialect = AUGUST, **options: Any) -> Plan:
    return plan(operations, queue_of(ROWS, dialect.family), dialect, **options)


def words(*operations: Operation, dialect: Dialect = AUGUST) -> list[str]:
    made = planned(*operations, dialect=dialect)
    assert not made.refusals, made.refusals
    return [" ".join(step.args) for step in made.steps]


@pytest.mark.parametrize("dialect", [APRIL, AUGUST])
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op.SetEligible("a", False), ["bead update a --set execution-eligible=false"]),
        (op.SetEligible("off", True), ["bead update off --set execution-eligible=true"]),
        (op.SetEligible("a", True), []),
        (op.Supersede("a", "b"), ["bead update a --set superseded-by=b"]),
        (op.AddDependency("a", "taken"), ["bead dep add a taken"]),
        (op.AddDependency("b", "a"), []),
        (op.RemoveDependency("b", "a"), ["bead dep remove b a"]),
        (op.RemoveDependency("a", "b"), []),
        (op.SetParent("a", "epic"), ["bead update a --parent epic"]),
        (op.SetParent("child", None), ["bead update child --parent "]),
        (op.SetPriority("a", 0), ["bead update a --priority 0"]),
        (op.ChangeLabels("labelled", add=["new"]), ["bead update labelled --labels helix, area:x,new"]),
        (op.ChangeLabels("labelled", remove=["area:x"]), ["bead update labelled --labels helix"]),
        (op.ChangeLabels("labelled", remove=["helix", "area:x"]), ["bead update labelled --labels "]),
        (op.ChangeLabels("labelled", add=["area:x"]), []),
        (op.ClaimBead("a", "me"), ["bead update a --claim --assignee me"]),
        (op.ReleaseBead("taken"), ["bead update taken --unclaim"]),
        (op.ReleaseBead("a"), []),
        (op.CloseBead("a"), ["bead close a"]),
        (op.CloseBead("closed"), []),
        (op.ReopenBead("closed", "why", "n"), ["bead reopen closed --reason why --append-notes n"]),
        (op.SetFields("a", {"notes": "-x"}), ["bead update a --notes=-x"]),
        (op.SetFields("a", {"type": "bug"}), ["bead update a --set issue_type=bug"]),
        (op.SetFields("a", {"status": "in_progress"}), ["bead update a --status in_progress"]),
        (op.SetFields("a", {"foo": "true"}), ["bead update a --set foo=true"]),
        (op.ClearFields("off", ["eligible"]), ["bead update off --unset execution-eligible"]),
        (op.ClearFields("a", ["nothing"]), []),
    ],
)  # fmt: skip
def test_both_vocabularies_say_it_the_same(dialect: Dialect, operation: Operation, expected: list[str]) -> None:
    assert words(operation, dialect=dialect) == expected


def test_what_only_head_knows() -> None:
    assert words(op.CancelBead("a")) == ["bead update a --status cancelled"]
    assert words(op.CancelBead("taken")) == [
        "bead update taken --unclaim",
        "bead update taken --status cancelled",
    ]
    assert words(op.SetRank("a", top=True)) == ["bead queue top a"]
    assert words(op.SetRank("a", after="b")) == ["bead queue move a --after b"]
    assert words(op.SetRank("ranked")) == ["bead queue clear ranked"]
    assert words(op.SetFields("blocked", {"status": "open"})) == ["bead update blocked --status open"]
    reason = {"status": "blocked", "lifecycle-external-blocker-reason": "up"}
    assert words(op.SetFields("a", reason)) == ["bead update a --status blocked --external-blocker-reason up"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (op.SetEligible("nobody", False), "no bead nobody"),
        (op.SetEligible("closed", False), "reopen it first"),
        (op.SetEligible("held", True), "end the focus first"),
        (op.Supersede("a", "a"), "two different beads"),
        (op.Supersede("a", "nobody"), "no bead nobody"),
        (op.AddDependency("a", "a"), "two different beads"),
        (op.AddDependency("a", "c"), "a → c → b → a"),
        (op.AddDependency("a", "nobody"), "no dependency on a bead that is not"),
        (op.AddDependency("grandchild", "epic"), "above grandchild in the tree"),
        (op.SetParent("epic", "grandchild"), "is under epic already"),
        (op.SetPriority("a", 7), "0 (first) to 4"),
        (op.ChangeLabels("a", add=["x,y"]), "without a comma"),
        (op.ClaimBead("closed"), "only an open bead"),
        (op.ClaimBead("b"), "b waits on a"),
        (op.CloseBead("b"), "close those first"),
        (op.CloseBead("cancelled"), "final, as closed is"),
        (op.ReopenBead("a"), "only a closed bead"),
        (op.ReopenBead("cancelled"), "stays cancelled"),
        (op.CancelBead("closed"), "reopen it first"),
        (op.SetFields("a", {"status": "proposed"}), "only a worker parks"),
        (op.SetFields("a", {"status": "blocked"}), "needs a reason"),
        (op.SetFields("a", {"status": "nonsense"}), "there are open, in_progress"),
        (op.SetFields("blocked", {"status": "in_progress"}), "no in_progress follow"),
        (op.SetFields("a", {"title": "  "}), "has a title"),
        (op.SetFields("a", {"created_at": "x"}), "kept by ddx"),
        (op.SetFields("a", {"claimed-pid": "1"}), "kept by ddx"),
        (op.SetFields("a", {"dependencies": "b"}), "dep add"),
        (op.SetFields("a", {"events": "[]"}), "evidence add"),
        (op.SetFields("a", {"notes": "x\0y"}), "NUL"),
        (op.SetFields("a", {"notes": "\ud800"}), "lone surrogate"),
        (op.SetFields("a", {"notes": "x" * 130_000}), "shorten it"),
        (op.ClearFields("a", ["title"]), "every bead has a title"),
        (op.ClearFields("held", ["helix-focus-suppressed"]), "focus --off"),
        (op.SetRank("a", before="a"), "before or after itself"),
        (op.CreateBead(title="  "), "has a title"),
        (op.CreateBead(title="x", parent="nobody"), "no bead nobody"),
        (op.CreateBead(title="x", priority=9), "0 (first) to 4"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_with_a_sentence(operation: Operation, why: str) -> None:
    made = planned(operation)
    assert made.steps == ()
    assert why in made.refusals[0].why


def test_april_refuses_what_it_does_not_know() -> None:
    for operation, why in (
        (op.CancelBead("a"), "no status cancelled"),
        (op.SetRank("a", top=True), "no order within a priority"),
        (op.SetFields("a", {"status": "paused"}), "open, in_progress and closed"),
    ):
        made = planned(operation, dialect=APRIL)
        assert made.steps == ()
        assert why in made.refusals[0].why
    made = planned(op.CloseBead("b"), dialect=APRIL)
    assert made.lines == ("ddx bead close b",)
    assert "still waits on a" in made.notes[0]


@pytest.mark.parametrize(
    ("ids", "by", "notes"),
    [
        (["a", "other"], "other", []),
        # it cannot wait on itself, nor on what waits for it
        (
            ["a"],
            "waiter",
            ["waiter still waits on a, which no worker picks any more; remove that dependency, or close a"],
        ),
        (
            ["a"],
            "last",
            ["waiter still waits on a, which no worker picks any more; remove that dependency, or close a"],
        ),
    ],
)
def test_what_waits_on_a_replaced_bead_is_told_what_it_can_do(ids: list[str], by: str, notes: list[str]) -> None:
    rows = [*map(row, ids), row("waiter", "a"), row("last", "waiter")]
    made = plan([op.Supersede("a", by)], queue_of(rows), AUGUST)
    assert list(made.notes) == notes


def test_those_that_can_wait_on_the_replacement_are_told_apart() -> None:
    rows = [row("a"), row("new", "a"), row("x", "a"), row("y", "a")]
    made = plan([op.Supersede("a", "new")], queue_of(rows), AUGUST)
    (note,) = made.notes
    assert note.startswith("new still waits on a, which")
    commands = [" ".join(step.args) for step in made.steps]
    assert commands == [
        "bead update a --set superseded-by=new",
        *(f"bead dep {verb} {waiter} {on}" for waiter in "xy" for verb, on in (("add", "new"), ("remove", "a"))),
    ]


def test_a_new_bead_always_says_its_priority() -> None:
    wish = op.CreateBead(title="New", labels=["helix", "x"], parent="epic", depends_on=["a"], spec_id="S-1", notes="n")
    assert words(wish) == [
        "bead create New --type task --priority 2 --labels helix,x --parent epic --set spec-id=S-1 --depends-on a",
        "bead update (new) --notes n",
    ]
    assert words(wish, dialect=APRIL) == [
        "bead create New --type task --priority 2 --labels helix,x --parent epic --set spec-id=S-1",
        "bead dep add (new) a",
        "bead update (new) --notes n",
    ]
    assert words(op.CreateBead(title="-dash")) == ["bead create --type task --priority 2 -- -dash"]


def test_many_are_planned_one_on_top_of_the_other() -> None:
    made = planned(op.AddDependency("a", "taken"), op.AddDependency("taken", "a"), op.CloseBead("a"), op.CloseBead("b"))
    assert made.lines == ("ddx bead dep add a taken",)
    assert ["cycle" in made.refusals[0].why, "waits on" in made.refusals[1].why] == [True, True]
    made = planned(op.CloseBead("a"), op.CloseBead("b"), op.CloseBead("c"))
    assert made.lines == ("ddx bead close a", "ddx bead close b", "ddx bead close c")
    made = planned(op.ChangeLabels("a", add=["x"]), op.ChangeLabels("a", add=["y"]))
    assert made.lines == ("ddx bead update a --labels x", "ddx bead update a --labels x,y")


def test_an_operation_refused_half_way_leaves_no_step() -> None:
    made = planned(op.SetFields("a", {"parent": "epic", "status": "proposed"}), op.SetPriority("a", 0))
    assert made.lines == ("ddx bead update a --priority 0",)
    assert len(made.refusals) == 1


def test_a_fresh_claim_keeps_others_away_and_a_worker_is_not_robbed() -> None:
    rows = [json.dumps(row("a")), json.dumps(row("b"))]
    beads = parse_rows("\n".join(rows).encode()).beads
    queue = classify(beads, now=NOW, claims=Claims(leases={"a": True}, running=frozenset({"a"})))
    assert "claim is fresh" in plan([op.ClaimBead("a")], queue, AUGUST).refusals[0].why
    assert plan([op.ClaimBead("b")], queue, AUGUST).steps
    assert "stop the worker" in plan([op.ReleaseBead("a")], queue, AUGUST, busy={"a"}).refusals[0].why
    assert plan([op.ReleaseBead("a", force=True)], queue, AUGUST, busy={"a"}).steps
    assert plan([op.ReleaseBead("a")], queue, AUGUST).steps


def test_head_tells_what_it_will_close_by_itself() -> None:
    rows = [
        row("epic", issue_type="epic", parent="top"),
        row("top", title="Epic: top"),
        row("last", parent="epic"),
        row("done", parent="epic", status="closed"),
        row("old", **{"superseded-by": "last"}),
        row("kept", labels=["superseded-by:last", "no-auto-close"]),
        row("tried", events=[{"kind": "execute-bead"}], **{"superseded-by": "last"}),
        row("noted", notes="x", **{"superseded-by": "last"}),
        row("needed", **{"superseded-by": "last"}),
        row("waits", "needed"),
        row("waiting", "waits", **{"superseded-by": "last"}),
    ]
    made = plan([op.CloseBead("last")], queue_of(rows), AUGUST)
    assert {bead_id: fields["status"] for bead_id, fields in made.steps[0].ripple.items()} == {
        "old": "closed",
        "epic": "closed",
        "top": "closed",
    }
    assert not plan([op.CloseBead("last")], queue_of(rows, "april"), APRIL).steps[0].ripple


def test_what_has_no_way_back_says_so_beforehand() -> None:
    cancelled = planned(op.CancelBead("a"))
    assert "stays cancelled" in cancelled.back.lost[0]
    assert cancelled.notes[0].startswith("b waits on it and never becomes ready")
    assert "parks a bead again" in planned(op.CloseBead("proposed")).back.lost[0]
    assert "neither delete nor cancel" in planned(op.CreateBead(title="x"), dialect=APRIL).back.lost[0]
    made = planned(op.CreateBead(title="x"))
    assert made.undoable
    assert "stays as a cancelled bead" in made.back.traces[0]
    lost = planned(op.RemoveDependency("d", "gone"), op.RemoveDependency("b", "a"))
    assert "no bead d" in lost.refusals[0].why


def test_recorded_commands_are_what_we_write(shared: Path) -> None:
    """The words we would use stand in the recorded transcripts of both eras with rc 0."""
    for era, dialect in (("april", APRIL), ("head", AUGUST)):
        lines = (shared / "data" / "ddx" / "transcripts" / f"{era}.jsonl").read_text(encoding="utf-8").split("\n")
        recorded = [json.loads(line) for line in lines if line]
        flags = {
            word.partition("=")[0]
            for call in recorded
            if call["argv"][1:2] == ["bead"] and call["rc"] == 0
            for word in (*call["argv"], *call["stdout"].split())
        }
        made = plan(
            [
                op.CreateBead(
                    title="New", labels=["x"], parent="epic", depends_on=["a"], acceptance="x", description="y"
                ),
                op.SetFields("a", {"title": "t", "owner": "me", "notes": "n", "priority": "1"}),
                op.AddDependency("grandchild", "a"),
                op.ClaimBead("off"),
                op.CloseBead("off"),
                op.ReopenBead("closed", "x"),
            ],
            queue_of(ROWS, era),
            dialect,
        )
        assert not made.refusals
        used = {word for step in made.steps for word in step.args if word.startswith("--")}
        assert used - {"--append-notes"} <= flags


COMMA = [row("two", labels=["area:a,b", "c"])]


@pytest.mark.parametrize("dialect", [APRIL, AUGUST])
def test_a_label_with_a_comma_is_not_written_again(dialect: Dialect) -> None:
    queue = queue_of(COMMA, dialect.family)
    made = plan([op.ChangeLabels("two", add=["z"])], queue, dialect)
    assert made.steps == ()
    assert "“area:a,b” of two has a comma" in made.refusals[0].why
    assert plan([op.SetFields("two", {"labels": "c,z"})], queue, dialect).refusals == ()
    assert [step.args for step in plan([op.ChangeLabels("two", remove=["area:a,b"])], queue, dialect).steps] == [
        ("bead", "update", "two", "--labels", "c")
    ]


GATES = (
    RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply"),
    RowGate("status", "lost", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply"),
)


@pytest.mark.parametrize(
    "operation",
    [
        op.ChangeLabels("a", add=["needs_human"]),
        op.SetFields("a", {"labels": "x,needs_human"}),
        op.CreateBead(title="New", labels=["needs_human"]),
    ],
)
def test_what_would_shut_the_tracker_is_refused(operation: Operation) -> None:
    made = planned(operation, dialect=replace(AUGUST, gates=GATES))
    assert made.steps == ()
    assert "needs_human on a bead this ddx refuses every command" in made.refusals[0].why
    assert "`ddx bead migrate --lifecycle --apply`" in made.refusals[0].why
    assert planned(operation, dialect=APRIL).refusals == ()
    assert planned(op.ChangeLabels("a", add=["needs-human"]), dialect=replace(AUGUST, gates=GATES)).steps


class _HalfWay(op.CloseBead, frozen=True, tag="half"):
    def plan(self, writing: PlanBuilder) -> None:
        op.CloseBead.plan(self, writing)
        if self.bead_id == "b":
            raise OperationRefused("not this one")


def test_nothing_is_left_of_an_operation_that_was_refused_half_way() -> None:
    made = planned(_HalfWay("a"), _HalfWay("b"), dialect=APRIL, busy=("a", "b"))
    assert [step.args[2] for step in made.steps] == ["a"]
    assert made.notes == ("a live worker is on a and will continue",)
