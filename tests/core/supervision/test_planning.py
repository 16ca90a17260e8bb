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
from helix_tui.core.editing.plan import PLANNERS, Plan, plan
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
        (op.eligible("a", False), ["bead update a --set execution-eligible=false"]),
        (op.eligible("off", True), ["bead update off --set execution-eligible=true"]),
        (op.eligible("a", True), []),
        (op.supersede("a", "b"), ["bead update a --set superseded-by=b"]),
        (op.depend("a", "taken"), ["bead dep add a taken"]),
        (op.depend("b", "a"), []),
        (op.undepend("b", "a"), ["bead dep remove b a"]),
        (op.undepend("a", "b"), []),
        (op.parent("a", "epic"), ["bead update a --parent epic"]),
        (op.parent("child", None), ["bead update child --parent "]),
        (op.priority("a", 0), ["bead update a --priority 0"]),
        (op.label("labelled", add=["new"]), ["bead update labelled --labels helix, area:x,new"]),
        (op.label("labelled", remove=["area:x"]), ["bead update labelled --labels helix"]),
        (op.label("labelled", remove=["helix", "area:x"]), ["bead update labelled --labels "]),
        (op.label("labelled", add=["area:x"]), []),
        (op.claim("a", "me"), ["bead update a --claim --assignee me"]),
        (op.unclaim("taken"), ["bead update taken --unclaim"]),
        (op.unclaim("a"), []),
        (op.close("a"), ["bead close a"]),
        (op.close("closed"), []),
        (op.reopen("closed", "why", "n"), ["bead reopen closed --reason why --append-notes n"]),
        (op.assign("a", {"notes": "-x"}), ["bead update a --notes=-x"]),
        (op.assign("a", {"type": "bug"}), ["bead update a --set issue_type=bug"]),
        (op.assign("a", {"status": "in_progress"}), ["bead update a --status in_progress"]),
        (op.assign("a", {"foo": "true"}), ["bead update a --set foo=true"]),
        (op.clear("off", ["eligible"]), ["bead update off --unset execution-eligible"]),
        (op.clear("a", ["nothing"]), []),
    ],
)  # fmt: skip
def test_both_vocabularies_say_it_the_same(dialect: Dialect, operation: Operation, expected: list[str]) -> None:
    assert words(operation, dialect=dialect) == expected


def test_what_only_head_knows() -> None:
    assert words(op.cancel("a")) == ["bead update a --status cancelled"]
    assert words(op.cancel("taken")) == [
        "bead update taken --unclaim",
        "bead update taken --status cancelled",
    ]
    assert words(op.rank("a", top=True)) == ["bead queue top a"]
    assert words(op.rank("a", after="b")) == ["bead queue move a --after b"]
    assert words(op.rank("ranked")) == ["bead queue clear ranked"]
    assert words(op.assign("blocked", {"status": "open"})) == ["bead update blocked --status open"]
    reason = {"status": "blocked", "lifecycle-external-blocker-reason": "up"}
    assert words(op.assign("a", reason)) == ["bead update a --status blocked --external-blocker-reason up"]


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (op.eligible("nobody", False), "no bead nobody"),
        (op.eligible("closed", False), "reopen it first"),
        (op.eligible("held", True), "end the focus first"),
        (op.supersede("a", "a"), "two different beads"),
        (op.supersede("a", "nobody"), "no bead nobody"),
        (op.depend("a", "a"), "two different beads"),
        (op.depend("a", "c"), "a → c → b → a"),
        (op.depend("a", "nobody"), "no dependency on a bead that is not"),
        (op.depend("grandchild", "epic"), "above grandchild in the tree"),
        (op.parent("epic", "grandchild"), "is under epic already"),
        (op.priority("a", 7), "0 (first) to 4"),
        (op.label("a", add=["x,y"]), "without a comma"),
        (op.claim("closed"), "only an open bead"),
        (op.claim("b"), "b waits on a"),
        (op.close("b"), "close those first"),
        (op.close("cancelled"), "final, as closed is"),
        (op.reopen("a"), "only a closed bead"),
        (op.reopen("cancelled"), "stays cancelled"),
        (op.cancel("closed"), "reopen it first"),
        (op.assign("a", {"status": "proposed"}), "only a worker parks"),
        (op.assign("a", {"status": "blocked"}), "needs a reason"),
        (op.assign("a", {"status": "nonsense"}), "there are open, in_progress"),
        (op.assign("blocked", {"status": "in_progress"}), "no in_progress follow"),
        (op.assign("a", {"title": "  "}), "has a title"),
        (op.assign("a", {"created_at": "x"}), "kept by ddx"),
        (op.assign("a", {"claimed-pid": "1"}), "kept by ddx"),
        (op.assign("a", {"dependencies": "b"}), "dep add"),
        (op.assign("a", {"events": "[]"}), "evidence add"),
        (op.assign("a", {"notes": "x\0y"}), "NUL"),
        (op.assign("a", {"notes": "\ud800"}), "lone surrogate"),
        (op.assign("a", {"notes": "x" * 130_000}), "shorten it"),
        (op.clear("a", ["title"]), "every bead has a title"),
        (op.clear("held", ["helix-focus-suppressed"]), "focus --off"),
        (op.rank("a", before="a"), "before or after itself"),
        (op.create("  "), "has a title"),
        (op.create("x", parent="nobody"), "no bead nobody"),
        (op.create("x", priority=9), "0 (first) to 4"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_refused_with_a_sentence(operation: Operation, why: str) -> None:
    made = planned(operation)
    assert made.steps == ()
    assert why in made.refusals[0].why


def test_april_refuses_what_it_does_not_know() -> None:
    for operation, why in (
        (op.cancel("a"), "no status cancelled"),
        (op.rank("a", top=True), "no order within a priority"),
        (op.assign("a", {"status": "paused"}), "open, in_progress and closed"),
    ):
        made = planned(operation, dialect=APRIL)
        assert made.steps == ()
        assert why in made.refusals[0].why
    made = planned(op.close("b"), dialect=APRIL)
    assert made.lines == ("ddx bead close b",)
    assert "still waits on a" in made.notes[0]


@pytest.mark.parametrize(
    ("ids", "by", "notes"),
    [
        (["a", "other"], "other", ["waiter still waits on a; let it wait on other instead"]),
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
    made = plan([op.supersede("a", by)], queue_of(rows), AUGUST)
    assert list(made.notes) == notes


def test_those_that_can_wait_on_the_replacement_are_told_apart() -> None:
    rows = [row("a"), row("new", "a"), row("x", "a"), row("y", "a")]
    made = plan([op.supersede("a", "new")], queue_of(rows), AUGUST)
    assert made.notes[0] == "x, y still wait on a; let them wait on new instead"
    assert made.notes[1].startswith("new still waits on a, which")


def test_a_new_bead_always_says_its_priority() -> None:
    wish = op.create("New", labels=["helix", "x"], parent="epic", depends_on=["a"], spec_id="S-1", notes="n")
    assert words(wish) == [
        "bead create New --type task --priority 2 --labels helix,x --parent epic --set spec-id=S-1 --depends-on a",
        "bead update (new) --notes n",
    ]
    assert words(wish, dialect=APRIL) == [
        "bead create New --type task --priority 2 --labels helix,x --parent epic --set spec-id=S-1",
        "bead dep add (new) a",
        "bead update (new) --notes n",
    ]
    assert words(op.create("-dash")) == ["bead create --type task --priority 2 -- -dash"]


def test_many_are_planned_one_on_top_of_the_other() -> None:
    made = planned(op.depend("a", "taken"), op.depend("taken", "a"), op.close("a"), op.close("b"))
    assert made.lines == ("ddx bead dep add a taken",)
    assert ["cycle" in made.refusals[0].why, "waits on" in made.refusals[1].why] == [True, True]
    made = planned(op.close("a"), op.close("b"), op.close("c"))
    assert made.lines == ("ddx bead close a", "ddx bead close b", "ddx bead close c")
    made = planned(op.label("a", add=["x"]), op.label("a", add=["y"]))
    assert made.lines == ("ddx bead update a --labels x", "ddx bead update a --labels x,y")


def test_an_operation_refused_half_way_leaves_no_step() -> None:
    made = planned(op.assign("a", {"parent": "epic", "status": "proposed"}), op.priority("a", 0))
    assert made.lines == ("ddx bead update a --priority 0",)
    assert len(made.refusals) == 1


def test_a_fresh_claim_keeps_others_away_and_a_worker_is_not_robbed() -> None:
    rows = [json.dumps(row("a")), json.dumps(row("b"))]
    beads = parse_rows("\n".join(rows).encode()).beads
    queue = classify(beads, now=NOW, claims=Claims(leases={"a": True}, running=frozenset({"a"})))
    assert "claim is fresh" in plan([op.claim("a")], queue, AUGUST).refusals[0].why
    assert plan([op.claim("b")], queue, AUGUST).steps
    assert "stop the worker" in plan([op.unclaim("a")], queue, AUGUST, busy={"a"}).refusals[0].why
    assert plan([op.unclaim("a", force=True)], queue, AUGUST, busy={"a"}).steps
    assert plan([op.unclaim("a")], queue, AUGUST).steps


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
    made = plan([op.close("last")], queue_of(rows), AUGUST)
    assert {bead_id: fields["status"] for bead_id, fields in made.steps[0].ripple.items()} == {
        "old": "closed",
        "epic": "closed",
        "top": "closed",
    }
    assert not plan([op.close("last")], queue_of(rows, "april"), APRIL).steps[0].ripple


def test_what_has_no_way_back_says_so_beforehand() -> None:
    cancelled = planned(op.cancel("a"))
    assert "stays cancelled" in cancelled.back.lost[0]
    assert cancelled.notes[0].startswith("b waits on it and never becomes ready")
    assert "parks a bead again" in planned(op.close("proposed")).back.lost[0]
    assert "neither delete nor cancel" in planned(op.create("x"), dialect=APRIL).back.lost[0]
    made = planned(op.create("x"))
    assert made.undoable
    assert "stays as a cancelled bead" in made.back.traces[0]
    lost = planned(op.undepend("d", "gone"), op.undepend("b", "a"))
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
                op.create("New", labels=["x"], parent="epic", depends_on=["a"], acceptance="x", description="y"),
                op.assign("a", {"title": "t", "owner": "me", "notes": "n", "priority": "1"}),
                op.depend("grandchild", "a"),
                op.claim("off"),
                op.close("off"),
                op.reopen("closed", "x"),
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
    made = plan([op.label("two", add=["z"])], queue, dialect)
    assert made.steps == ()
    assert "“area:a,b” of two has a comma" in made.refusals[0].why
    assert plan([op.assign("two", {"labels": "c,z"})], queue, dialect).refusals == ()
    assert [step.args for step in plan([op.label("two", remove=["area:a,b"])], queue, dialect).steps] == [
        ("bead", "update", "two", "--labels", "c")
    ]


GATES = (
    RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply"),
    RowGate("status", "lost", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply"),
)


@pytest.mark.parametrize(
    "operation",
    [
        op.label("a", add=["needs_human"]),
        op.assign("a", {"labels": "x,needs_human"}),
        op.create("New", labels=["needs_human"]),
    ],
)
def test_what_would_shut_the_tracker_is_refused(operation: Operation) -> None:
    made = planned(operation, dialect=replace(AUGUST, gates=GATES))
    assert made.steps == ()
    assert "needs_human on a bead this ddx refuses every command" in made.refusals[0].why
    assert "`ddx bead migrate --lifecycle --apply`" in made.refusals[0].why
    assert planned(operation, dialect=APRIL).refusals == ()
    assert planned(op.label("a", add=["needs-human"]), dialect=replace(AUGUST, gates=GATES)).steps


def test_nothing_is_left_of_an_operation_that_was_refused_half_way(monkeypatch: pytest.MonkeyPatch) -> None:
    closing = PLANNERS["close"]

    def half_way(writing: PlanBuilder, operation: Operation) -> None:
        closing(writing, operation)
        if operation.bead_id == "b":
            raise OperationRefused("not this one")

    monkeypatch.setitem(PLANNERS, "close", half_way)
    made = planned(op.close("a"), op.close("b"), dialect=APRIL, busy=("a", "b"))
    assert [step.args[2] for step in made.steps] == ["a"]
    assert made.notes == ("a live worker is on a and will continue",)
