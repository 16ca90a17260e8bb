"""A bead whose refused change the next worker would land is kept from workers until a person decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.record import HELD, REFUSED
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.dialect import AUGUST, Dialect
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.editing.execute.gate import QueueState
from helix_tui.core.editing.kinds.eligibility_hold import plan_holds
from helix_tui.core.editing.operations import DropChange, SetFields
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import PlanBuilder
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.signals.kept_changes import refused_changes
from tests.core.supervision.conftest import queue_of, row

LANDS = replace(
    AUGUST, verbs={**AUGUST.verbs, "update": DdxVerb(("bead", "update"), frozenset({"--reject-preserved"}))}
)
MADE = Attempt("20260820T100000-a", "a", status="repair-cycle-exhausted", status_source="event", result_rev="c" * 40)
BOOK = AttemptBook([MADE])
REJECTED = {"kind": "preserved-result-rejected", "body": f"result_rev={'c' * 40}"}


@pytest.mark.parametrize(
    ("dialect", "fields", "refused"),
    [
        (LANDS, {}, True),
        (AUGUST, {}, False),
        (None, {}, False),
        (LANDS, {"status": "proposed"}, False),
        (LANDS, {"status": "closed"}, False),
        (LANDS, {"events": [REJECTED]}, False),
        (LANDS, {"helix-allowed": MADE.attempt_id}, False),
        (LANDS, {"helix-dropped": MADE.attempt_id}, False),
        (LANDS, {"helix-allowed": "20260819T100000-a"}, True),
    ],
)
def test_which_beads_wait_for_a_persons_decision(
    dialect: Dialect | None, fields: dict[str, object], refused: bool
) -> None:
    assert bool(refused_changes(queue_of([row("a", **fields)]), dialect, BOOK)) == refused


@pytest.mark.parametrize(
    ("decision", "prior"),
    [
        (DropChange("a", MADE.attempt_id, MADE.result_rev), {}),
        (SetFields("a", {"helix-allowed": MADE.attempt_id}), {"execution-eligible": True}),
    ],
)
def test_the_hold_ends_exactly_with_the_decision(decision: DropChange | SetFields, prior: dict[str, object]) -> None:
    holding = PlanBuilder(Overlay(queue_of([row("a", **prior), row("b")])), LANDS)
    plan_holds(holding, {"a": REFUSED})
    assert (holding.overlay.value("a", "execution-eligible"), holding.overlay.value("a", HELD)) == (False, REFUSED)
    decided = PlanBuilder(holding.overlay, LANDS)
    decision.plan(decided)
    assert decided.overlay.value("a", "execution-eligible") == prior.get("execution-eligible")
    assert decided.overlay.value("a", HELD) is None


@pytest.mark.parametrize(
    "decision", [DropChange("a", MADE.attempt_id, MADE.result_rev), SetFields("a", {"helix-allowed": MADE.attempt_id})]
)
def test_a_decision_opens_a_bead_that_ddx_parked_for_its_change(decision: DropChange | SetFields) -> None:
    parked = PlanBuilder(Overlay(queue_of([row("a", status="proposed")])), LANDS)
    decision.plan(parked)
    assert parked.overlay.status("a") == "open"


def test_nothing_is_built_while_a_refused_change_would_land() -> None:
    ready = QueueState(Tracker(Path("t")), queue_of([row("a"), row("b")]), (), LANDS)
    verdict = decide(gather_facts(ready, attempts=BOOK))
    assert (verdict.next_action, verdict.recommended_command) == ("GUIDANCE", "helix-tui needs")
    held = row("a", **{"execution-eligible": False, HELD: REFUSED})
    verdict = decide(gather_facts(QueueState(Tracker(Path("t")), queue_of([held, row("b")]), (), LANDS), attempts=BOOK))
    assert verdict.next_action == "BUILD"
    assert "refused_by_review" in {note.code for note in verdict.notes}
    verdict = decide(gather_facts(QueueState(Tracker(Path("t")), queue_of([held]), (), LANDS), attempts=BOOK))
    assert verdict.next_action == "GUIDANCE"
