"""A reader that tells something else than the others is found: each mutant makes a contradiction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.cli import loading
from helix_tui.cli.helix.needs import NeedsReader
from helix_tui.cli.show import attempts as evidence
from helix_tui.cli.show import why
from helix_tui.cli.show.queue import weight_document
from helix_tui.core.beads import counts, readiness
from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.readiness import Queue, Standing
from helix_tui.core.beads.states import STATES, Parked
from helix_tui.core.ddx.attempts import verdict
from helix_tui.core.ddx.attempts.attempt import Attempt, Sums, sum_calls
from helix_tui.core.ddx.attempts.from_events import BeadEvents
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ground.time import NS, format_day
from helix_tui.core.insights import cells
from helix_tui.core.insights.cells import Cell
from helix_tui.core.statements import ending, notifications
from helix_tui.core.statements import run as run_status
from helix_tui.core.statements import stuck as blocked
from helix_tui.core.statements.ending import SinceLanding
from helix_tui.core.supervision.agents import learning
from helix_tui.core.supervision.decide import check as status_summary
from helix_tui.core.supervision.decide import facts, needs
from helix_tui.core.supervision.decide import verdict as check_verdict
from helix_tui.core.supervision.decide.need_kinds import KINDS
from helix_tui.screens import status_bar_model as pulse
from helix_tui.widgets.figures import LOOKS
from helix_tui.widgets.rows import attempt_table
from helix_tui.widgets.text import attempt_evidence as comparison
from tests.consistency.scene import Scene
from tests.consistency.surfaces import contradictions

pytestmark = pytest.mark.long

Patch = pytest.MonkeyPatch
MUTANTS: dict[str, Callable[[Patch], None]] = {}


def mutant(apply: Callable[[Patch], None]) -> Callable[[Patch], None]:
    MUTANTS[apply.__name__.strip("_").replace("_", " ")] = apply
    return apply


@mutant
def _a_refused_attempt_counts_as_landed_in_one_property(patch: Patch) -> None:
    patch.setattr(Attempt, "landed", property(lambda self: self.status == "review_block" or self.verdict.landed))


@mutant
def _insights_maps_the_status_by_itself(patch: Patch) -> None:
    def mapped(cell: Cell) -> dict[str, int]:
        landed = sum(each.status in ("success", "review_block") for each in cell.attempts)
        return {"landed": landed, "preserved": 0, "failed": cell.n - landed, "no_changes": 0, "other": 0}

    patch.setattr(Cell, "counts", property(mapped))


@mutant
def _insights_leaves_an_outcome_out(patch: Patch) -> None:
    patch.setattr(Cell, "outcomes", property(lambda cell: {} if cell.n == 1 else {"landed": cell.n}))


@mutant
def _status_counts_beads_that_ddx_would_list(patch: Patch) -> None:
    def listed(queue: Queue, *rest: Any, **more: Any) -> QueueCounts:
        found = counts.count_queue(queue, *rest, **more)
        return replace(found, ready=(*found.ready, "d-5"))

    patch.setattr(run_status, "count_queue", listed)


@mutant
def _check_forgets_the_questions(patch: Patch) -> None:
    patch.setattr(facts, "beads_in_question", lambda questions: {})


@mutant
def _the_pulse_counts_what_is_worked_on(patch: Patch) -> None:
    def counted(queue: Queue, *rest: Any) -> QueueCounts:
        found = counts.count_queue(queue, *rest)
        return replace(found, ready=(*found.ready, "d-7"))

    patch.setattr(pulse, "count_queue", counted)


@mutant
def _next_begins_at_the_other_end(patch: Patch) -> None:
    def load(*given: Any) -> Any:
        present = loaded(*given)
        present.queue.ready = present.queue.ready[::-1]
        return present

    loaded = loading.load
    patch.setattr("helix_tui.cli.helix.status.load", load)


@mutant
def _why_does_not_know_what_runs(patch: Patch) -> None:
    def load(*given: Any, **more: Any) -> Any:
        present, attempts = loaded(*given, **more)
        patch.setattr(present.queue, "standing", lambda bead_id: present.queue._standings[bead_id])
        return present, attempts

    loaded = loading.load_with_attempts
    patch.setattr(why, "load_with_attempts", load)


@mutant
def _check_says_stop_while_beads_are_ready(patch: Patch) -> None:
    decided = check_verdict.decide
    told = "helix_tui.core.supervision.decide.check.decide"
    patch.setattr(told, lambda found: replace(decided(found), next_action="STOP"))


@mutant
def _build_begins_with_another_bead(patch: Patch) -> None:
    patch.setattr(
        QueueCounts,
        "for_workers",
        property(lambda self: self.ready[::-1][: len(self.ready) - len(self.asked)]),
    )


@mutant
def _lessons_take_every_end_for_a_landing(patch: Patch) -> None:
    patch.setattr(learning, "judge", lambda attempt, evidence: learning.Judged("passed", "so it is said"))
    patch.setattr(Attempt, "landed", property(lambda self: True))


@mutant
def _work_that_was_done_already_teaches_a_failure(patch: Patch) -> None:
    patch.setattr(learning, "judge", lambda attempt, evidence: learning.Judged("failed", "so it is said"))


@mutant
def _the_verdict_of_the_loop_screen_is_another(patch: Patch) -> None:
    shown = evidence.as_document

    def told(attempt: Attempt, *rest: Any) -> dict[str, Any]:
        if attempt.status == "review_block":
            attempt = replace(attempt, detail="post-merge review: BLOCK", candidate_ref="")
        return dict(shown(attempt, *rest))

    patch.setattr("helix_tui.cli.show.snapshot.evidence", _Patched(evidence, as_document=told))


@mutant
def _stuck_names_a_bead_that_is_ready(patch: Patch) -> None:
    from helix_tui.core.statements import stuck

    ready = replace(STATES["ready"], parked=Parked("not-eligible", "decide"))
    patch.setattr(stuck, "STATES", {**STATES, "ready": ready})
    by_state = stuck._by_state

    def also_ready(queue: Queue, bead: Any) -> Any:
        reason = Standing("ready", ())
        return by_state(queue, bead) if queue.state(bead.id) != "ready" else _stuck_of(stuck, bead, reason)

    patch.setattr(stuck, "_by_state", also_ready)


@mutant
def _an_event_of_a_review_before_landing_is_not_read(patch: Patch) -> None:
    patch.setattr(verdict, "_by_event", lambda attempt: None)
    patch.setattr(verdict, "_by_ref", lambda attempt: None)
    patch.setattr(verdict, "_REVIEWED_AFTER", frozenset({"review_block"}))
    patch.setattr(Attempt, "of_later_release", property(lambda self: False))


@mutant
def _what_is_kept_aside_is_taken_for_landed_everywhere(patch: Patch) -> None:
    kept = verdict._aside
    patch.setattr(verdict, "_aside", lambda *given: replace(kept(*given), outcome="landed"))


@mutant
def _landed_and_preserved_are_swapped(patch: Patch) -> None:
    patch.setattr(Attempt, "preserved", property(lambda self: self.verdict.landed))


@mutant
def _a_kind_of_event_is_dropped(patch: Patch) -> None:
    patch.setattr(BeadEvents, "of", lambda self, bead_id: ())


def _untested(patch: Patch, test: object) -> None:
    """One test of readiness is left out."""
    left = tuple(each for each in readiness._HEAD_TESTS if each is not test)
    assert len(left) < len(readiness._HEAD_TESTS)
    patch.setattr(readiness, "_HEAD_TESTS", left)


@mutant
def _a_dependency_keeps_nothing_back(patch: Patch) -> None:
    _untested(patch, readiness._waits)


@mutant
def _what_workers_may_not_pick_is_ready(patch: Patch) -> None:
    _untested(patch, readiness._not_eligible)


@mutant
def _a_cooldown_keeps_nothing_back(patch: Patch) -> None:
    _untested(patch, readiness._cooldown)


@mutant
def _what_is_superseded_is_ready(patch: Patch) -> None:
    _untested(patch, readiness._superseded)


@mutant
def _an_epic_is_work_like_any_other(patch: Patch) -> None:
    _untested(patch, readiness._epic_container)


@mutant
def _a_missing_dependency_is_met(patch: Patch) -> None:
    patch.setattr(Graph, "dangling", property(lambda graph: ()))


@mutant
def _check_passes_over_what_waits_on_something_cancelled(patch: Patch) -> None:
    patch.setattr(facts.Facts, "waits_on_cancelled", property(lambda found: ()))


@mutant
def _check_sees_no_cycle(patch: Patch) -> None:
    gathered = facts.Facts
    patch.setattr(facts, "Facts", lambda *given, **more: gathered(*given, **{**more, "cycles": ()}))


@mutant
def _the_queue_sees_no_cycle(patch: Patch) -> None:
    patch.setattr(Graph, "cycles", property(lambda graph: ()))


@mutant
def _the_blocker_report_forgets_one(patch: Patch) -> None:
    found = blocked.find_stuck
    patch.setattr(blocked, "find_stuck", lambda *given, **more: found(*given, **more)[:-1])


@mutant
def _status_passes_an_unreadable_line_over(patch: Patch) -> None:
    made = run_status._tracker
    patch.setattr(run_status, "_tracker", lambda counted, dropped: made(counted, 0))


@mutant
def _one_that_waits_is_not_counted(patch: Patch) -> None:
    def counted(queue: Queue, *rest: Any, **more: Any) -> QueueCounts:
        found = counts.count_queue(queue, *rest, **more)
        return replace(found, waiting=found.waiting - 1)

    for place in ("helix_tui.core.supervision.decide.facts", "helix_tui.core.statements.run"):
        patch.setattr(f"{place}.count_queue", counted)


@mutant
def _what_has_no_result_failed(patch: Patch) -> None:
    rows = {**OUTCOME_ROWS, "interrupted": OUTCOME_ROWS["failed"]}
    patch.setattr(verdict, "OUTCOME_ROWS", rows)


@mutant
def _needs_me_gives_a_need_another_bead(patch: Patch) -> None:
    told = NeedsReader.document
    patch.setattr(NeedsReader, "document", lambda reader, need: {**told(reader, need), "bead_id": "d-3"})


@mutant
def _one_that_is_kept_aside_is_left_out_of_needs_me(patch: Patch) -> None:
    found = needs._unlanded
    patch.setattr(needs, "_unlanded", lambda *given, lands: [*found(*given, lands=lands)][1:])


@mutant
def _what_is_claimed_is_ready_by_the_counts(patch: Patch) -> None:
    def counted(queue: Queue, *rest: Any, **more: Any) -> QueueCounts:
        found = counts.count_queue(queue, *rest, **more)
        held = tuple(bead.id for bead in queue.beads.values() if bead.status == "in_progress")
        return replace(found, ready=(*found.ready, *held))

    patch.setattr("helix_tui.core.statements.counts.count_queue", counted)


@mutant
def _the_last_ready_bead_is_forgotten_by_next(patch: Patch) -> None:
    def load(*given: Any) -> Any:
        present = loaded(*given)
        present.queue.ready = present.queue.ready[:-1]
        return present

    loaded = loading.load
    patch.setattr("helix_tui.cli.helix.status.load", load)


@mutant
def _needs_me_does_not_know_the_questions(patch: Patch) -> None:
    patch.setattr("helix_tui.core.supervision.decide.monitor.read_questions", lambda path: ())


@mutant
def _needs_me_calls_what_was_refused_kept_aside(patch: Patch) -> None:
    found = needs._unlanded

    def kept(*given: Any, lands: bool) -> Any:
        return (("kept_aside", bead, why) for _, bead, why in found(*given, lands=lands))

    patch.setattr(needs, "_unlanded", kept)


@mutant
def _the_sheet_of_the_next_action_decides_by_itself(patch: Patch) -> None:
    decided = check_verdict.decide
    patch.setattr(status_summary, "decide", lambda found: replace(decided(found), next_action="WAIT"))


@mutant
def _a_closed_bead_is_open_to_the_queue(patch: Patch) -> None:
    state = Queue.state
    patch.setattr(
        Queue,
        "state",
        lambda queue, bead_id: "ready" if state(queue, bead_id) == "closed" else state(queue, bead_id),
    )


@mutant
def _status_leaves_the_waiting_beads_out(patch: Patch) -> None:
    def counted(queue: Queue, *rest: Any, **more: Any) -> QueueCounts:
        found = counts.count_queue(queue, *rest, **more)
        return replace(found, total=found.total - found.waiting)

    patch.setattr(run_status, "count_queue", counted)


@mutant
def _line_1_counts_every_need_as_a_stale_claim(patch: Patch) -> None:
    patch.setattr(pulse, "STALE_CLAIMS", KINDS)


@mutant
def _line_1_counts_what_was_spent_on_other_days(patch: Patch) -> None:
    patch.setattr(status_summary, "midnight", lambda now: 0)


@mutant
def _a_notification_says_how_many_are_new(patch: Patch) -> None:
    made = notifications._of_needs
    patch.setattr(notifications, "_of_needs", lambda fresh, waiting, beads: made(fresh, waiting - 1, beads))


@mutant
def _the_end_of_a_run_takes_every_end_for_a_landing(patch: Patch) -> None:
    patch.setattr(ending, "count_outcomes", lambda attempts: {"landed": len(attempts)})


@mutant
def _the_sum_of_a_day_takes_every_end_for_a_landing(patch: Patch) -> None:
    patch.setattr(attempt_table, "count_outcomes", lambda attempts: {"landed": len(attempts)})


@mutant
def _insights_counts_on_the_day_before(patch: Patch) -> None:
    patch.setattr(cells, "format_day", lambda at: format_day((at or 0) - 86_400 * NS))


@mutant
def _a_comparison_takes_every_end_for_a_landing(patch: Patch) -> None:
    patch.setattr(comparison, "look_of", lambda attempt: LOOKS["landed"])


@mutant
def _agents_are_answered_without_the_queue(patch: Patch) -> None:
    patch.setattr("tests.consistency.told._work", lambda *given: None)


@mutant
def _a_changed_document_is_passed_over_by_check(patch: Patch) -> None:
    patch.setattr(check_verdict, "_changed_documents", lambda changes: ())


@mutant
def _why_gives_no_reasons(patch: Patch) -> None:
    patch.setattr(why, "reasons", lambda standing: [])


@mutant
def _why_counts_otherwise_what_a_bead_holds_up(patch: Patch) -> None:
    weighed = weight_document
    patch.setattr(why, "weight_document", lambda queue, bead_id: {**weighed(queue, bead_id), "holds_up": 99})


@mutant
def _the_loop_screen_gives_other_advice_than_attempts(patch: Patch) -> None:
    shown = evidence.as_document

    def told(attempt: Attempt, *rest: Any) -> dict[str, Any]:
        return {**shown(attempt, *rest), "follow_up": "try again"}

    patch.setattr("helix_tui.cli.show.snapshot.evidence", _Patched(evidence, as_document=told))


@mutant
def _what_is_kept_aside_is_in_no_column_of_the_table(patch: Patch) -> None:
    counted = Cell.__dict__["counts"]
    patch.setattr(Cell, "counts", property(lambda cell: {**counted.__get__(cell, Cell), "preserved": 0}))


@mutant
def _one_attempt_since_the_landing_is_left_out(patch: Patch) -> None:
    recorded = SinceLanding.record
    patch.setattr(SinceLanding, "record", lambda last: {**recorded(last), "attempts": len(last.attempts) - 1})


@mutant
def _a_need_waits_since_another_day_by_command(patch: Patch) -> None:
    told = NeedsReader.document
    patch.setattr(NeedsReader, "document", lambda reader, need: {**told(reader, need), "since": "2020-01-01T00:00:00Z"})


@mutant
def _the_sum_of_the_attempts_leaves_a_call_out(patch: Patch) -> None:
    patch.setattr(evidence, "sum_calls", lambda calls, *rest: sum_calls([*calls][1:], *rest))


@mutant
def _line_1_does_not_count_what_waits_for_an_answer(patch: Patch) -> None:
    patch.setattr(pulse, "beads_in_question", lambda questions: {})


@mutant
def _an_attempt_costs_more_than_its_parts(patch: Patch) -> None:
    known = Sums.__dict__["usd"]
    patch.setattr(Sums, "usd", property(lambda sums: (known.__get__(sums, Sums) or 0.0) + 1.0))


@mutant
def _the_work_of_an_attempt_costs_twice_what_it_says(patch: Patch) -> None:
    made = Attempt.__dict__["spent"]

    def doubled(attempt: Attempt) -> Any:
        return tuple(replace(call, usd=call.usd and 2 * call.usd) for call in made.__get__(attempt, Attempt))

    patch.setattr(Attempt, "spent", property(doubled))


@mutant
def _nobody_says_what_is_left_out(patch: Patch) -> None:
    patch.setattr(QueueCounts, "left_out", property(lambda self: ""))


def _stuck_of(stuck: Any, bead: Any, standing: Standing) -> Any:
    return stuck.Stuck(bead.id, bead.title, "not-eligible", standing.state, "decide")


class _Patched:
    """A module with some of its names replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def tear(overlay: Scene) -> None:
    """Leave a line at the end of the tracker that a crash cut off."""
    with (overlay.root / ".ddx" / "beads.jsonl").open("a") as file:
        file.write('{"id": "d-16", "title": "cut o')


def test_the_scene_agrees_before_anything_is_mutated(everything: Scene) -> None:
    assert contradictions(everything) == []
    tear(everything)
    assert contradictions(Scene(everything.root, everything.now)) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_contradicts(name: str, everything: Scene, monkeypatch: Patch) -> None:
    if "unreadable" in name:
        tear(everything)
    MUTANTS[name](monkeypatch)
    assert contradictions(everything, first=True), name


def test_the_list_is_long_enough() -> None:
    assert len(MUTANTS) >= 12
