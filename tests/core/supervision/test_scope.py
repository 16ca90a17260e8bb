"""Everything is no word that a label can be, and STOP is not said beside ready work."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.readiness import classify
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.statements.stuck import find_stuck
from helix_tui.core.supervision.decide.check import take_status_summary, undecided
from helix_tui.core.supervision.decide.facts import Facts, gather_facts
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.signals.questions import OpenQuestion
from helix_tui.core.supervision.signals.scope import EVERYTHING, Scope, read_scope
from tests.core.supervision.conftest import NOW, WorldFactory, row
from tests.programs import parse_rows

ACCEPTED = {"acceptance": "`make test` passes"}


def sight_of(*rows: dict[str, Any], broken: str = "") -> QueueState:
    lines = [json.dumps(each) for each in rows] + ([broken] if broken else [])
    tracker = parse_rows("\n".join(lines).encode())
    return QueueState(tracker, classify(tracker.beads, now=NOW))


def facts_of(*rows: dict[str, Any], scope: Scope = EVERYTHING, **more: Any) -> Facts:
    return gather_facts(sight_of(*rows), scope=scope, **more)


@pytest.mark.parametrize("label", ["area:repo", "repo", "area:everything", "everything", "area:", "None"])
def test_no_label_narrows_the_default_scope(label: str) -> None:
    rows = [row("a-1", **ACCEPTED), row("a-2", **ACCEPTED), row("z-1", labels=[label], status="closed")]
    facts = facts_of(*rows)
    assert facts.ready == ("a-1", "a-2")
    assert decide(facts).next_action == "BUILD"
    assert decide(facts_of(*rows, scope=read_scope("repo"))).next_action == "BUILD"


@pytest.mark.parametrize("word", ["area:repo", "label:area:repo"])
def test_the_label_repo_can_be_asked_about_and_what_lies_outside_is_said(word: str) -> None:
    rows = [row("a-1", **ACCEPTED), row("z-1", labels=["area:repo"], status="closed")]
    facts = facts_of(*rows, scope=read_scope(word))
    verdict = undecided(decide(facts))
    assert facts.left == ()
    assert verdict.reasons[0].code == "ready_elsewhere"
    assert "a-1" in verdict.reasons[0].detail


STATUSES = ("open", "closed", "in_progress", "blocked", "proposed", "cancelled")
LABELS = ("area:repo", "repo", "helix", "area:ui")


@st.composite
def trackers(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for number in range(draw(st.integers(1, 7))):
        fields: dict[str, Any] = {
            "status": draw(st.sampled_from(STATUSES)),
            "labels": draw(st.lists(st.sampled_from(LABELS), max_size=2, unique=True)),
            "issue_type": draw(st.sampled_from(["task", "epic"])),
            "acceptance": draw(st.sampled_from(["", "done", "`make test` passes"])),
        }
        if number and draw(st.booleans()):
            fields["parent"] = f"h-{draw(st.integers(0, number - 1))}"
        if draw(st.integers(0, 4)) == 0:
            fields["execution-eligible"] = False
        waits = [f"h-{draw(st.integers(0, 9))}"] if draw(st.integers(0, 3)) == 0 else []
        rows.append(row(f"h-{number}", *waits, **fields))
    return rows


@settings(max_examples=150, deadline=None)
@given(trackers(), st.booleans())
@pytest.mark.long
def test_stop_is_never_said_beside_ready_work_or_a_finished_epic(rows: list[dict[str, Any]], asked: bool) -> None:
    questions = [OpenQuestion("q-1", "conflict", "what now?", "conflict:documents", "h-0")] if asked else []
    facts = facts_of(*rows, questions=questions)
    verdict = decide(facts)
    action = verdict.next_action or undecided(verdict).next_action
    if facts.queue.ready or facts.finished_epics or asked:
        assert action != "STOP"
    if asked or facts.finished_epics or facts.hollow:
        assert find_stuck(facts.queue, questions=questions)


def test_an_epic_whose_children_are_closed_is_the_next_thing_to_do() -> None:
    rows = [row("e-1", issue_type="epic"), row("a-1", parent="e-1", status="closed")]
    verdict = decide(facts_of(*rows))
    assert (verdict.next_action, verdict.reasons[0].code) == ("BUILD", "finished_epic")
    assert verdict.recommended_command == "helix-tui run"


@pytest.mark.parametrize(
    ("children", "action", "reason"),
    [
        ((), "POLISH", "epic-empty"),
        (("cancelled",), "POLISH", "epic-empty"),
        (("closed", "cancelled"), "BUILD", "epic-finished"),
    ],
)
def test_what_stands_still_is_named_by_check_and_by_stuck(children: tuple[str, ...], action: str, reason: str) -> None:
    rows = [row("e-1", issue_type="epic", era="april")]
    rows += [row(f"a-{place}", parent="e-1", status=status, era="april") for place, status in enumerate(children)]
    facts = facts_of(*rows)
    assert decide(facts).next_action == action
    (stuck,) = find_stuck(facts.queue)
    assert (stuck.bead_id, stuck.reason) == ("e-1", reason)


def test_a_cycle_is_named_beside_ready_work_too() -> None:
    verdict = decide(facts_of(row("x-1", "y-1"), row("y-1", "x-1"), row("z-1", **ACCEPTED)))
    assert verdict.next_action == "BUILD"
    assert [set(note.refs) for note in verdict.notes if note.code == "cycle"] == [{"x-1", "y-1"}]


def test_a_line_that_is_no_bead_comes_before_everything(world: WorldFactory) -> None:
    facts = gather_facts(sight_of(row("a-1", **ACCEPTED), broken='{"id": "a-2", "sta'))
    verdict = decide(facts)
    assert (verdict.next_action, verdict.reasons[0].code) == ("GUIDANCE", "unreadable_line")
    assert "line 2" in verdict.reasons[0].detail


def test_what_governs_an_alignment_holds_up_nobody(world: WorldFactory) -> None:
    labels = ["helix", "kind:planning", "action:align"]
    claim = {"status": "in_progress", "claimed-pid": "999999", "claimed-at": "2026-08-01T00:00:00Z"}
    ours = {"labels": labels, "execution-eligible": False}
    left = row("g-1", title="align: repo", **ours, **claim)
    parked = row("g-2", title="align: docs", **ours)
    made = world([left, parked, row("a-1", status="closed")])
    queue_state = made.curator.look()
    facts = gather_facts(queue_state)
    assert facts.left == ()
    assert decide(facts).next_action == ""
    assert find_stuck(queue_state.queue) == ()
    assert take_status_summary(queue_state, made.curator.project, AttemptBook()).verdict.next_action == "STOP"
