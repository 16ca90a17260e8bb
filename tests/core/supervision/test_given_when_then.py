"""Given, when, then: the rulings on focus, drift, injection, validation and claims, each by its own words."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from msgspec import to_builtins

from helix_tui.core.ddx.claims import ClaimReader
from helix_tui.core.ddx.dialect import AUGUST
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.authoring import deterministic, judge
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import plan
from helix_tui.core.supervision.signals.drift import Drift, DriftWatch
from helix_tui.core.supervision.signals.focus import plan_focus, plan_unfocus, plan_upkeep, read_focus
from helix_tui.core.supervision.signals.orphans import Orphan, find_orphans, recover, supervisory
from helix_tui.core.supervision.stages.injection import (
    Trigger,
    acceptance_bead,
    alignment_bead,
    review_bead,
    standing,
)
from tests.core.supervision.conftest import World, WorldFactory, queue_of, row

pytestmark = pytest.mark.long

# --- focus: docs/decisions/0009 -------------------------------------------------------------------------


@pytest.fixture
def here(world: WorldFactory) -> World:
    rows = [
        row("e", issue_type="epic"),
        row("child", "dep", parent="e"),
        row("dep", "far"),
        row("far"),
        row("out"),
        row("was-true", execution__eligible=True),
        row("was-false", execution__eligible=False),
        row("was-closed", status="closed"),
    ]
    return world(rows)


def focus(here: World) -> None:
    done = here.curator.run_steps("focus", "on", lambda writing, _: plan_focus(writing, "e"))
    assert (done.error, done.problems) == (None, ())


def unfocus(here: World) -> None:
    here.curator.run_steps("focus", "off", lambda writing, _: plan_unfocus(writing))


def test_given_a_focus_then_only_what_the_epic_needs_is_picked(here: World) -> None:
    focus(here)
    assert here.curator.look().queue.ready == ("far",)


def test_given_a_focus_then_no_dependency_of_an_open_descendant_is_held_back(here: World) -> None:
    focus(here)
    held = {bead_id for bead_id, each in here.rows().items() if each.get("execution-eligible") is False}
    assert held == {"out", "was-true", "was-false"}


def test_given_a_bead_that_was_not_eligible_when_focused_then_it_carries_no_mark(here: World) -> None:
    focus(here)
    assert "helix-focus-suppressed" not in here.rows()["was-false"]


def test_given_a_focus_when_it_ends_then_absent_true_and_false_are_what_they_were(here: World) -> None:
    before = here.settled()
    focus(here)
    unfocus(here)
    assert here.settled() == before


def test_given_a_focus_when_a_bead_is_made_then_it_is_held_back_at_the_next_look(here: World) -> None:
    focus(here)
    here.write([*here.rows().values(), row("late")])
    here.curator.run_steps("focus", "mend", lambda writing, _: plan_upkeep(writing))
    assert here.rows()["late"]["helix-focus-suppressed"] == "e"
    unfocus(here)
    assert "execution-eligible" not in here.rows()["late"]


def test_given_a_focus_when_a_child_comes_to_wait_on_a_held_bead_then_that_is_given_back(here: World) -> None:
    focus(here)
    here.curator.run([op.AddDependency("child", "out")])
    here.curator.run_steps("focus", "mend", lambda writing, _: plan_upkeep(writing))
    assert here.curator.look().queue.state("out") == "ready"


def test_given_a_focus_when_all_under_the_epic_is_closed_then_it_ends_by_itself(here: World) -> None:
    before = here.settled()
    focus(here)
    for bead_id in ("far", "dep", "child"):
        here.rewrite(bead_id, status="closed")
    here.curator.run_steps("focus", "mend", lambda writing, _: plan_upkeep(writing))
    assert read_focus(Overlay(here.curator.look().queue)).epic == ""
    assert {i: r for i, r in here.settled().items() if i.startswith(("out", "was"))} == {
        i: r for i, r in before.items() if i.startswith(("out", "was"))
    }


def test_given_a_focus_when_a_person_makes_a_held_bead_eligible_then_that_is_refused_with_the_reason(
    here: World,
) -> None:
    focus(here)
    (refusal,) = here.curator.plan([op.SetEligible("out", True)]).refusals
    assert "focus on e" in refusal.why


# --- drift: docs/decisions/0008 -------------------------------------------------------------------------


def drift_of(here: World) -> list[Drift]:
    watch = DriftWatch(here.curator.project, here.curator.gate)
    return list(watch.settle(here.curator.look().queue.beads, here.curator.history()))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("spec-id", "S-2"),
        ("parent", "out"),
        ("superseded-by", "out"),
        ("replaces", "old"),
        ("dependencies", None),
        ("execution-eligible", False),
    ],
)
def test_given_a_snapshot_when_a_field_of_it_changes_then_that_is_drift(here: World, field: str, value: Any) -> None:
    drift_of(here)
    here.rewrite("child", **{field.replace("-", "__"): value})
    assert [(each.bead_id, each.field) for each in drift_of(here)] == [("child", field)]


@pytest.mark.parametrize(("field", "value"), [("title", "other"), ("priority", 0), ("labels", ["x"]), ("notes", "n")])
def test_given_a_snapshot_when_another_field_changes_then_that_is_none(here: World, field: str, value: Any) -> None:
    drift_of(here)
    here.rewrite("child", **{field: value})
    assert drift_of(here) == []


def test_given_a_new_bead_then_its_first_sighting_is_its_baseline(here: World) -> None:
    drift_of(here)
    here.write([*here.rows().values(), row("late", parent="e")])
    assert drift_of(here) == []
    here.rewrite("late", parent=None)
    assert [each.bead_id for each in drift_of(here)] == ["late"]


def test_given_our_own_focus_then_nothing_of_it_is_drift(here: World) -> None:
    drift_of(here)
    focus(here)
    assert drift_of(here) == []
    unfocus(here)
    assert drift_of(here) == []


def test_given_drift_when_it_is_acknowledged_then_it_is_none_until_the_next_change(here: World) -> None:
    drift_of(here)
    here.rewrite("child", parent="out")
    watch = DriftWatch(here.curator.project, here.curator.gate)
    watch.acknowledge(here.curator.look().queue.beads, here.curator.history(), ["child"])
    assert drift_of(here) == []
    here.rewrite("child", parent="e")
    assert len(drift_of(here)) == 1


def test_given_drift_then_no_bead_is_reopened_or_changed(here: World) -> None:
    drift_of(here)
    here.rewrite("child", superseded__by="out", status="closed")
    before = here.rows()
    assert drift_of(here) == []
    assert here.rows() == before


# --- injection: docs/decisions/0007 ---------------------------------------------------------------------

TRIGGER = Trigger("post-cycle-review", 3, "a", "verify-governance-diff")


@pytest.mark.parametrize("spec", [None, "S-1"])
def test_given_an_injected_bead_then_our_own_hook_would_take_it(spec: str | None) -> None:
    queue = queue_of([row("a", labels=["helix", "phase:build", "area:x"], **({"spec__id": spec} if spec else {}))])
    for made in (
        review_bead(queue, TRIGGER, scope="commit:abc"),
        alignment_bead(queue, TRIGGER),
        acceptance_bead(queue, TRIGGER, script="scripts/check.sh", output="no"),
    ):
        bead = {**to_builtins(made), "spec-id": made.spec_id or made.fields.get("spec-id")}
        assert judge(bead, strict=True).findings == (), made.title
        assert deterministic(made.acceptance)


def test_given_an_area_that_no_command_takes_then_the_review_is_made_without_it() -> None:
    queue = queue_of([row("a", labels=["area:x", "area:two, three"])])
    made = plan([review_bead(queue, TRIGGER, scope="commit:abc")], queue, AUGUST)
    assert made.refusals == ()
    assert "area:x" in made.lines[0]


def test_given_an_open_injected_bead_then_the_same_trigger_makes_no_second_one() -> None:
    first = queue_of([row("a")])
    made = to_builtins(review_bead(first, TRIGGER, scope="commit:abc"))
    fields = {**made["fields"], "labels": list(made["labels"])}
    queue = queue_of([row("a"), row("r") | fields])
    assert standing(queue, "review-finding", "a") == "r"
    assert standing(queue, "review-finding", "b") == ""
    assert supervisory(queue.beads["r"])
    done = queue_of([row("a"), row("r", status="closed") | fields | {"status": "closed"}])
    assert standing(done, "review-finding", "a") == ""


def test_given_the_contracts_own_two_acceptance_texts_then_they_do_not_pass() -> None:
    assert not deterministic("Agent finds 0 new drift violations")
    assert not deterministic("No governance drift detected")


def test_given_a_hostile_title_then_it_is_one_word_of_one_command() -> None:
    title = "x; rm -rf / $(touch /tmp/x) `id` \x1b[31m --status=closed"
    made = plan([op.CreateBead(title=title, labels=["helix"])], queue_of([row("a")]), AUGUST)
    assert made.steps[0].args[:3] == ("bead", "create", title)
    dashed = plan([op.SetFields("a", {"title": "--status=closed"})], queue_of([row("a")]), AUGUST)
    assert "--title=--status=closed" in dashed.steps[0].args


# --- claims: docs/decisions/0005 ------------------------------------------------------------------------


def claim(here: World, pid: int, since: str, machine: str = "") -> None:
    here.rewrite(
        "far",
        status="in_progress",
        owner="bot",
        claimed__at=since,
        claimed__pid=str(pid),
        claimed__machine=machine or ClaimReader(here.curator.project).here,
    )


@pytest.fixture
def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


OLD, NEW = "2026-08-01T00:00:00Z", "2099-01-01T00:00:00Z"


def _orphans(here: World) -> tuple[Orphan, ...]:
    queue_state = here.curator.look()
    return find_orphans(queue_state.runs, queue_state.queue)


def test_given_a_dead_process_and_an_old_claim_then_it_is_an_orphan(here: World, dead_pid: int) -> None:
    claim(here, dead_pid, OLD)
    assert [orphan.bead_id for orphan in _orphans(here)] == ["far"]


@pytest.mark.parametrize("why", ["young", "alive", "elsewhere"])
def test_given_a_young_a_living_or_a_foreign_claim_then_it_is_none(here: World, dead_pid: int, why: str) -> None:
    pid = os.getpid() if why == "alive" else dead_pid
    claim(here, pid, NEW if why == "young" else OLD, "another" if why == "elsewhere" else "")
    assert _orphans(here) == ()


def test_given_another_threshold_then_it_is_asked(here: World, dead_pid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(here, dead_pid, OLD)
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", str(10**10))
    assert _orphans(here) == ()


def test_given_an_orphan_when_nobody_asks_then_it_stays_claimed(here: World, dead_pid: int) -> None:
    claim(here, dead_pid, OLD)
    _orphans(here)
    assert here.rows()["far"]["status"] == "in_progress"


def test_given_an_orphan_when_it_is_recovered_then_only_the_claim_goes(here: World, dead_pid: int) -> None:
    before = here.settled()
    claim(here, dead_pid, OLD)
    recover(here.curator, _orphans(here))
    assert here.settled() == before


def test_given_an_orphan_that_was_taken_meanwhile_when_it_is_recovered_then_it_is_left_alone(
    here: World, dead_pid: int
) -> None:
    claim(here, dead_pid, OLD)
    found = _orphans(here)
    claim(here, os.getpid(), OLD)
    before = here.rows()
    assert recover(here.curator, found).entry is None
    assert here.rows() == before
