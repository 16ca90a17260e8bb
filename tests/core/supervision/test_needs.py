"""What waits on a person, ranked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims, classify
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing import operations as op
from helix_tui.core.editing.kinds.fields import DROPPED
from helix_tui.core.ground.merge_trial import TriedMerge
from helix_tui.core.ground.time import parse_now
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.statements.stuck import find_stuck, mend_words
from helix_tui.core.supervision.decide.need_kinds import KindName
from helix_tui.core.supervision.decide.need_view import (
    NeedContext,
    actions_of,
    need_filter,
    operations_for,
    senseless,
    shared_actions,
)
from helix_tui.core.supervision.decide.needs import Need, needs_of
from helix_tui.core.supervision.run_state.budget import BudgetUse
from helix_tui.core.supervision.signals.drift import Drift
from helix_tui.core.supervision.signals.orphans import Orphan
from helix_tui.core.supervision.signals.questions import OpenQuestion
from helix_tui.core.supervision.signals.tried import Tried
from helix_tui.screens.needs.need_list import NeedRow, NeedRows
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")


def test_needs_are_ranked_by_urgency_then_by_what_waits() -> None:
    rows: list[dict[str, object]] = [
        {"id": "ask", "status": "proposed"},
        {"id": "ask2", "status": "proposed"},
        {"id": "below", "dependencies": [{"depends_on_id": "ask2"}]},
        {"id": "lower", "dependencies": [{"depends_on_id": "below"}]},
        {"id": "starved", "dependencies": [{"depends_on_id": "gone"}]},
        {"id": "unlucky", "updated_at": "2026-08-01T10:00:00Z", "dependencies": [{"depends_on_id": "dropped"}]},
        {"id": "dropped", "status": "cancelled", "updated_at": "2026-08-20T10:00:00Z"},
        {"id": "x", "dependencies": [{"depends_on_id": "y"}]},
        {"id": "y", "dependencies": [{"depends_on_id": "x"}]},
        {"id": "odd", "status": "paused"},
        {"id": "fine"},
        {"id": "done", "status": "closed"},
    ]
    data = "\n".join([*(json.dumps({"title": "t", **row}) for row in rows), "{broken"]).encode()
    tracker = parse_rows(data)
    queue = classify(tracker.beads, now=NOW, claims=Claims(leases={"fine": True}, running=frozenset({"quiet"})))
    runs = (
        Run("fine", verdict="dead", live=False, why="pid 7 is gone"),
        Run("lower", verdict="silent", why="no event for 9m"),
        Run("lower", verdict="silent", why="no event for 7m"),
        Run("below", verdict="alive"),
        Run("done", verdict="dead", live=False, why="left over"),
        Run("archived", verdict="dead", live=False, why="left over by a bead that the tracker lacks"),
        Run(None, verdict="dead", live=False),
    )
    needs = needs_of(queue, runs, tracker)
    assert [(need.kind, need.bead_id, need.waiting) for need in needs] == [
        ("dead_run", "fine", 0),
        ("silent_run", "lower", 0),
        ("proposed", "ask2", 2),
        ("proposed", "ask", 0),
        ("cycle", "x", 1),
        ("missing_dependency", "starved", 0),
        ("cancelled_dependency", "unlucky", 0),
        ("unknown_status", "odd", 0),
        ("unread_lines", "", 0),
    ]
    assert needs[6].since == parse_now("2026-08-20T10:00:00Z"), "it waits in vain since the other was cancelled"
    assert "waits on dropped (t), cancelled" in needs[6].reason, "a title stands beside every id"
    assert len({need.key for need in needs}) == len(needs)
    assert needs[0].reason == "pid 7 is gone"
    assert needs[1].reason == "no event for 9m; no event for 7m", "one row a bead, whoever claimed it"
    assert "line 13" in needs[-1].reason


def test_nothing_waits_on_a_person_in_a_healthy_queue() -> None:
    tracker = parse_rows(b'{"id":"a","title":"t"}')
    assert needs_of(classify(tracker.beads, now=NOW), (), tracker) == ()


def test_drift_and_orphaned_claims_are_needs() -> None:
    tracker = parse_rows(b'{"id":"a"}\n{"id":"b","dependencies":[{"depends_on_id":"a"}]}')
    queue = classify(tracker.beads, now=NOW)
    drift = [Drift("a", "parent", "x", "y"), Drift("a", "spec-id", None, "S")]
    orphan = Orphan("b", 7, "here", "ddx", 0, 9000, ("row",))
    first, second = needs_of(queue, (), tracker, drift=drift, orphans=[orphan])
    assert (first.kind, first.bead_id, first.waiting) == ("orphaned_claim", "b", 0)
    assert (second.kind, second.bead_id, second.waiting) == ("drift", "a", 1)
    assert "parent was “x” and is “y”" in second.reason
    assert "spec-id was absent" in second.reason


@pytest.mark.parametrize(
    ("row", "also", "keys"),
    [
        (
            {"status": "in_progress", "preserved-review-blocked-at": "2026-08-20T10:00:00Z"},
            "preserved_review_blocked",
            6,
        ),
        ({"status": "proposed"}, "proposed", 6),
        ({"status": "blocked", "external-blocker": "a vendor"}, "blocked_external", 4),
    ],
)
def test_a_parked_bead_with_a_stale_claim_is_one_need_with_the_actions_of_both(
    row: dict[str, Any], also: str, keys: int
) -> None:
    kept = _tried("a", 2, "preserved_needs_review", result_rev="c" * 40, preserve_ref="refs/ddx/a/x")
    row = {"id": "a", "title": "t", "schema_version": 1, "preserved-review-blocked-attempt": kept.attempt_id, **row}
    tracker = parse_rows(json.dumps(row).encode())
    queue = classify(tracker.beads, now=NOW, era="head")
    orphan = Orphan("a", 7, "here", "ddx", 0, 9000, ("row",))
    book = AttemptBook([kept] if also != "blocked_external" else [])
    (need,) = needs_of(queue, (), tracker, orphans=[orphan], attempts=book)
    assert (need.kind, need.also, need.record()["also"]) == ("orphaned_claim", also, also)
    offered = {each.id: each for each in actions_of(need)}
    assert {"release", "accept", "reject"} <= set(offered)
    assert len(offered) == keys
    assert "still waits for your decision" in offered["release"].effect
    alone = replace(need, kind=also, also="")
    for action in ("accept", "reject"):
        assert operations_for(action, [need], queue) == operations_for(action, [alone], queue) != []
    assert operations_for("release", [need], queue) == [op.ReleaseBead("a")]
    assert need_filter("kind:stale").passing([need], NeedContext(queue, NOW)) == (need,)
    assert need_filter(f"kind:{also}").passing([need], NeedContext(queue, NOW)) == (need,)


def _tried(bead: str, number: int, status: str, **more: Any) -> Attempt:
    return Attempt(f"2026082{number}T100000-{bead}", bead, status=status, status_source="event", **more)


def test_work_kept_aside_on_an_open_bead_waits_for_a_person() -> None:
    """The latest attempt of an open bead only: what landed since, or was closed, waits for nobody."""
    named = ("kept", "refused", "since", "asked", "loop", "held", "told")
    rows: list[dict[str, Any]] = [
        *[{"id": name} for name in named],
        {"id": "parked", "status": "proposed"},
        {"id": "done", "status": "closed"},
        {"id": "dropped", "status": "cancelled", "updated_at": "2026-08-20T10:00:00Z"},
        {"id": "again"},
        {"id": "gate"},
        {"id": "late"},
        {"id": "late-held", "execution-eligible": False},
        {"id": "late-done", "status": "closed"},
    ]
    ref = "refs/ddx/iterations/kept/x"
    aside = [_tried(str(row["id"]), 1, "land_conflict", preserve_ref=ref) for row in rows]
    mark: dict[str, object] = {"labels": ["kind:escalation"], "helix-trigger-bead": "told"}
    rows.append({"id": "tell", "execution-eligible": False, **mark})
    tracker = parse_rows("\n".join(json.dumps({"title": "t", **row}) for row in rows).encode())
    queue = classify(tracker.beads, now=NOW, claims=Claims(leases={"held": True}))
    book = AttemptBook(
        [
            _tried("kept", 3, "execution_failed", detail="exit status 1"),
            _tried("kept", 2, "land_conflict", preserve_ref=ref),
            _tried("refused", 2, "review_block", detail="pre-land review: BLOCK", candidate_ref="refs/c/0"),
            _tried("since", 2, "success", landed_rev="a" * 40),
            _tried("loop", 2, "land_retry", preserve_ref=ref),
            _tried("again", 2, "review_request_changes", detail="pre-land review: REQUEST_CHANGES", candidate_ref=ref),
            _tried("gate", 2, "ratchet_failed", preserve_ref=ref),
            *[_tried(each, 2, "review_block", landed_rev="b" * 40) for each in ("late", "late-held", "late-done")],
            *aside,
        ]
    )
    question = OpenQuestion("q-1", "conflict", "which?", "k", "asked")
    needs = needs_of(queue, (), tracker, attempts=book, questions=[question])
    assert [(need.kind, need.bead_id) for need in needs] == [
        ("conflict", "asked"),
        ("escalation", "tell"),
        ("proposed", "parked"),
        ("merge_conflict", "kept"),
        ("failing_check", "gate"),
        ("refused", "refused"),
        ("landed_faulted", "late"),
    ]
    assert needs[-4].reason == f"land_conflict; kept at {ref}; attempt 20260822T100000-kept"
    assert needs[-4].attempt_id == "20260822T100000-kept", "an attempt that failed leaves the kept change where it was"
    assert "refs/c/0" in needs[-2].reason
    assert needs[-2].reason.startswith("refused by review: "), "what came of it before any id"
    assert ref not in needs[-1].reason
    assert [each.label for each in actions_of(needs[-1], senseless(needs[-1], book.of_bead("late")[0]))][:2] == [
        "close",
        "retry",
    ]
    assert operations_for("accept", needs[-1:], queue) == [op.CloseBead("late")]


def test_what_the_last_run_tried_and_left_open_is_a_need_once() -> None:
    tracker = parse_rows(
        b'{"id":"a"}\n{"id":"b","dependencies":[{"depends_on_id":"a"}]}\n{"id":"c","status":"proposed"}\n{"id":"d"}'
    )
    queue = classify(tracker.beads, now=NOW, claims=Claims(running=frozenset({"d"})))
    tried = [Tried(bead_id, "execution_failed", "exit status 1") for bead_id in "acd"]
    needs = {(need.kind, need.bead_id): need for need in needs_of(queue, (), tracker, tried=tried)}
    assert needs.keys() == {("tried", "a"), ("proposed", "c")}
    assert "still open: execution_failed: exit status 1" in needs["tried", "a"].reason
    assert needs["tried", "a"].waiting == 1


def test_what_a_bead_has_cost_at_least_is_told_from_what_it_has_cost() -> None:
    tracker = parse_rows(b'{"id":"a","status":"proposed"}\n{"id":"b","status":"proposed"}')
    book = AttemptBook(
        [
            _tried("a", 2, "execution_failed", cost_usd=0.25),
            _tried("a", 1, "execution_failed"),
            _tried("b", 1, "execution_failed", cost_usd=0.5),
        ]
    )
    queue = classify(tracker.beads, now=NOW)
    needs = {need.bead_id: need for need in needs_of(queue, (), tracker, attempts=book)}
    assert (needs["a"].usd, needs["a"].usd_complete) == (0.25, False)
    assert (needs["b"].usd, needs["b"].usd_complete) == (0.5, True)
    found = (needs["a"], needs["b"])
    rows = (NeedRow("group", "proposals", found), *(NeedRow("need", "proposals", (need,)) for need in found))
    source = NeedRows(rows, queue, now=NOW, keymap={}, closed=(), without=lambda need: frozenset())
    painted = ["".join(text for text, _ in source.paint(index, 120)) for index in range(3)]
    assert [[word for word in line.split() if "$" in word] for line in painted] == [["≥$0.75"], ["≥$0.25"], ["$0.50"]]
    # a heading that has no room for a sum leaves it out: a part of it would be another sum
    narrow = ["".join(text for text, _ in source.paint(0, width)) for width in range(16, 40)]
    assert all(("≥$0.75" in line) is ("$" in line) for line in narrow)
    assert {"$" in line for line in narrow} == {True, False}


def test_every_action_of_a_row_stands_beside_it_at_any_width() -> None:
    tracker = parse_rows(b'{"id":"a","status":"proposed","title":"Split it"}')
    queue = classify(tracker.beads, now=NOW)
    rows = (NeedRow("need", "proposals", tuple(needs_of(queue, (), tracker))),)
    source = NeedRows(rows, queue, now=NOW, keymap={}, closed=(), without=lambda need: frozenset())
    (wide,) = source.paint_more(0, 120)
    narrow = source.paint_more(0, 30)
    assert len(narrow) > 1
    assert "".join(text for line in narrow for text, _ in line).split() == "".join(text for text, _ in wide).split()[1:]
    assert all(sum(len(text) for text, _ in line) <= 30 for line in narrow)


def test_reasons_of_all_groups_begin_at_one_column_and_titles_are_cut_at_their_end() -> None:
    long = "attempt-backend: verify that the workspace of a bead is clean before it is used by another"
    lines = [json.dumps({"id": name, "title": title}) for name, title in (("a", long), ("b", "Short"))]
    queue = classify(parse_rows("\n".join(lines).encode()).beads, now=NOW)
    first = NeedRow("need", "stale claims", (Need("orphaned_claim", "a", "no heartbeat", 0, since=0),))
    second = NeedRow("need", "kept aside", (Need("kept_aside", "b", "why " * 60, 0, since=0),))
    source = NeedRows((first, second), queue, now=NOW, keymap={}, closed=(), without=lambda need: frozenset())
    for width in (100, 120, 200):
        painted = ["".join(text for text, _ in source.paint(index, width)) for index in range(2)]
        assert painted[0].index("no heartbeat") == painted[1].index("why")
        assert painted[0][2:30] == long[:28]


def test_the_kind_beside_a_title_takes_no_more_room_than_its_words() -> None:
    tracker = parse_rows(b'{"id":"a","title":"Say which line of a timetable is wrong, and count lines from one"}')
    queue = classify(tracker.beads, now=NOW)
    kinds: tuple[KindName, ...] = ("refused", "preserved_review_blocked")
    rows = tuple(NeedRow("need", "refused by review", (Need(kind, "a", "x" * 90, 0, since=0),)) for kind in kinds)
    source = NeedRows(rows, queue, now=NOW, keymap={}, closed=(), without=lambda need: frozenset())
    painted = ["".join(text for text, _ in source.paint(index, 100)) for index in range(2)]
    assert all(line.startswith("◆ Say which line of a timetable") for line in painted)
    assert "  refused  xxx" in painted[0]
    assert "  review   xxx" in painted[1]


def test_a_budget_that_is_reached_and_a_lesson_to_review_are_needs() -> None:
    tracker = parse_rows(b'{"id":"a"}')
    queue = classify(tracker.beads, now=NOW)
    budgets = [BudgetUse("day", "usd", 20.0, 21.5), BudgetUse("run", "attempts", 10, 9)]
    lesson = Proposal(7, "20260820T100000-aaaaaaaa", "a", "failure", "boom", "retry", "why", at="2026-08-20T10:00:00Z")
    first, second = needs_of(queue, (), tracker, budgets=budgets, lessons=[lesson])
    assert (first.kind, first.key, first.waiting) == ("budget", "budget:day-usd", 1)
    assert "$20" in first.reason
    assert (second.kind, second.key, second.reason) == ("lesson", "lesson:7", "failure: boom → retry")
    assert second.since == parse_now("2026-08-20T10:00:00Z")


@pytest.mark.parametrize(
    ("kind", "summary", "at", "waits"),
    [
        ("triaged", "operator accepted proposed bead", "2026-08-22T12:00:00Z", False),
        ("needs_human_resolved", "action=retry", "2026-08-22T12:00:00Z", False),
        ("needs_human_resolved", "action=defer", "2026-08-22T12:00:00Z", True),
        ("needs_human_resolved", "action=retry", "2026-08-22T09:00:00Z", True),
        ("routing", "provider=x", "2026-08-22T12:00:00Z", True),
    ],
)
def test_a_refused_attempt_waits_until_a_person_gives_its_parked_bead_back(
    kind: str, summary: str, at: str, waits: bool
) -> None:
    """DDx parks the bead, a person decides with ``ddx bead human resolve``: nobody is asked again."""
    refused = _tried("a", 2, "repair-cycle-exhausted", finished_at=parse_now("2026-08-22T10:30:00Z"))
    event = {"kind": kind, "summary": summary, "created_at": at}
    tracker = parse_rows(json.dumps({"id": "a", "title": "t", "events": [event]}).encode())
    needs = needs_of(classify(tracker.beads, now=NOW), (), tracker, attempts=AttemptBook([refused]))
    assert [need.kind for need in needs] == ["refused"] * waits


def test_a_bead_that_ddx_parked_for_its_refused_change_is_listed_for_that_change() -> None:
    kept = _tried("a", 2, "repair-cycle-exhausted", result_rev="c" * 40, preserve_ref="refs/ddx/iterations/a/1")
    row = {"id": "a", "title": "t", "status": "proposed", "needs-human-reason": "both_failed", "schema_version": 1}
    tracker = parse_rows(json.dumps(row).encode())
    queue, book = classify(tracker.beads, now=NOW, era="head"), AttemptBook([kept])
    (need,) = needs_of(queue, (), tracker, attempts=book, lands_kept=True)
    assert (need.kind, need.kept_rev) == ("refused", kept.result_rev)
    assert "the next worker may land it" not in need.reason, "nobody picks it before it is opened"
    assert [each.label for each in actions_of(need, senseless(need, kept))] == ["drop", "land"]
    tracker = parse_rows(json.dumps(row | {DROPPED: kept.attempt_id}).encode())
    dropped = classify(tracker.beads, now=NOW, era="head")
    assert [each.kind for each in needs_of(dropped, (), tracker, attempts=book)] == ["proposed"]


@pytest.mark.parametrize(
    ("below", "first"),
    [
        ("AC2 has no test.\nresult_rev=c0ffee", "AC2 has no test; review or a check found faults"),
        ('cycle_trace=[{"rationale":"x"}]', "review or a check found faults"),
        (
            "rationale: status: open\nreason: the gates are red elsewhere\nAC2 has no test.",
            "review or a check found faults",
        ),
        ("", "review or a check found faults"),
    ],
)
def test_what_a_review_found_comes_first(below: str, first: str) -> None:
    """After that it was refused; a row is cut at its end."""
    said = "pre-land repair: repair-cycle-exhausted"
    refused = _tried("a", 2, "repair-cycle-exhausted", detail=said)
    event = {"kind": "execute-bead", "summary": "repair-cycle-exhausted", "body": f"{said}\n{below}"}
    tracker = parse_rows(json.dumps({"id": "a", "title": "t", "events": [event]}).encode())
    (need,) = needs_of(classify(tracker.beads, now=NOW), (), tracker, attempts=AttemptBook([refused]))
    assert need.reason.startswith(f"refused by review: {first}")


@pytest.mark.parametrize(
    ("below", "first"),
    [
        ("gate_summary=large-deletion gate: x.go deleted 1,325 lines\nresult_rev=c0ffee", "large-deletion gate: x.go"),
        ("AC2 has no test.\nresult_rev=c0ffee", "AC2 has no test; its review is not resolved"),
        ("result_rev=c0ffee", "its review is not resolved"),
    ],
)
def test_what_holds_a_bead_for_its_review_comes_first_too(below: str, first: str) -> None:
    kept = _tried("a", 2, "preserved_needs_review", detail="preserved-needs-review")
    event = {"kind": "execute-bead", "summary": kept.status, "body": f"{kept.detail}\n{below}"}
    row = {"id": "a", "title": "t", "schema_version": 1, "events": [event]}
    row |= {"preserved-review-blocked-at": "2026-08-20T10:00:00Z", "preserved-review-blocked-attempt": kept.attempt_id}
    tracker = parse_rows(json.dumps(row).encode())
    queue = classify(tracker.beads, now=NOW, era="head")
    (need,) = needs_of(queue, (), tracker, attempts=AttemptBook([kept]))
    assert (need.kind, need.attempt_id) == ("preserved_review_blocked", kept.attempt_id)
    assert need.reason.startswith(first)


@pytest.mark.parametrize("conflicts", [("data/north.txt",), ()])
def test_what_is_known_of_a_merge_is_said_and_decides_what_is_offered_first(conflicts: tuple[str, ...]) -> None:
    ref = "refs/ddx/iterations/a/x"
    for status in ("land_conflict", "review_block", "preserved_needs_review", "ratchet_failed"):
        kept = _tried("a", 2, status, preserve_ref=ref, result_rev="c" * 40)
        tracker = parse_rows(json.dumps({"id": "a", "title": "t"}).encode())
        queue, book = classify(tracker.beads, now=NOW), AttemptBook([kept])
        merge = {kept.attempt_id: TriedMerge("main", conflicts=conflicts)}
        (need,) = needs_of(queue, (), tracker, attempts=book, merges=merge)
        (unknown,) = needs_of(queue, (), tracker, attempts=book)
        assert need.mark == unknown.mark, "a snooze does not end because somebody else pushed"
        assert ("conflicts with main in data/north.txt" in need.reason) == bool(conflicts)
        assert need.reason.startswith("refused by review") == (status == "review_block")
        offered = [each.id for each in actions_of(need, senseless(need, kept))]
        assert ("resolve" in offered) == bool(conflicts), "the key that resolves it, whatever kind it is"
        assert (offered[-1] == "land") == bool(conflicts or status == "review_block")
        heading = [action.id for action in shared_actions([need, replace(need, bead_id="b")], lambda _: ())]
        assert ("land" in heading) == (not conflicts and status != "review_block")


def test_a_kept_change_may_be_landed_by_the_next_worker_until_it_is_rejected() -> None:
    kept = _tried("a", 2, "repair-cycle-exhausted", result_rev="c0ffee" + "0" * 34, preserve_ref="refs/ddx/a/x")
    book = AttemptBook([kept])
    for rev, said in ((kept.result_rev, "starts over"), ("b" * 40, "the next worker may land it")):
        event = {"kind": "preserved-result-rejected", "body": f"result_rev={rev}\nreason=x"}
        told = {"kind": "execute-bead", "body": f"done\nresult_rev={kept.result_rev}"}
        tracker = parse_rows(json.dumps({"id": "a", "title": "t", "events": [told, event]}).encode())
        needs = needs_of(classify(tracker.beads, now=NOW), (), tracker, attempts=book, lands_kept=True)
        assert [need.kept_rev for need in needs] == [kept.result_rev]
        assert said in needs[0].reason, "another commit says nothing of this one"
    (silent,) = needs_of(classify(tracker.beads, now=NOW), (), tracker, attempts=book)
    assert "next worker" not in silent.reason, "this ddx keeps it where it is"


def test_a_kept_change_that_was_dropped_waits_for_nobody() -> None:
    kept = _tried("a", 2, "land_conflict", preserve_ref="refs/ddx/iterations/a/x")
    row = {"id": "a", "title": "t", "helix-assigned": "anna"}
    for dropped, expected in ((kept.attempt_id, []), ("20260101T000000-00000000", ["merge_conflict"])):
        tracker = parse_rows(json.dumps({**row, DROPPED: dropped}).encode())
        needs = needs_of(classify(tracker.beads, now=NOW), (), tracker, attempts=AttemptBook([kept]))
        assert [need.kind for need in needs] == expected, "an older drop says nothing of a newer attempt"
        assert all(need.assigned == "anna" and need.attempt_id == kept.attempt_id for need in needs)


def test_two_questions_of_one_kind_about_one_bead_are_two_needs() -> None:
    """A run asks of a bead's outcome and of each acceptance script that still fails."""
    tracker = parse_rows(b'{"id": "a", "title": "t"}')
    asked = [OpenQuestion(f"q-{number}", "ambiguous", "so?", f"k{number}", "a") for number in (1, 2)]
    asked[0] = replace(asked[0], raised_at="2026-08-20T10:00:00Z")
    first, second = needs_of(classify(tracker.beads, now=NOW), (), tracker, questions=asked)
    assert (first.key, second.key) == ("ambiguous:q-1", "ambiguous:q-2")
    assert first.since == parse_now("2026-08-20T10:00:00Z"), "each has the age of its own question"


def test_what_is_blocked_from_outside_waits_for_a_person_who_says_that_the_blocker_is_gone() -> None:
    """ddx opens no blocked bead by itself, however long anybody waits."""
    rows: list[dict[str, object]] = [
        {
            "id": "out",
            "title": "Free /tmp",
            "status": "blocked",
            "lifecycle-external-blocker-reason": "no space left on /tmp",
        },
        {"id": "then", "dependencies": [{"depends_on_id": "out"}]},
    ]
    tracker = parse_rows("\n".join(json.dumps({"title": "t", **row}) for row in rows).encode())
    queue = classify(tracker.beads, now=NOW)
    (need,) = needs_of(queue, (), tracker)
    assert (need.kind, need.bead_id, need.reason, need.waiting) == (
        "blocked_external",
        "out",
        "no space left on /tmp",
        1,
    )
    assert [each.label for each in actions_of(need)] == ["reopen", "reject"]
    assert operations_for("accept", [need], queue) == [op.SetFields("out", {"status": "open"})]
    assert operations_for("reject", [need], queue) == [op.CancelBead("out")]
    stuck, waits = find_stuck(queue)
    assert mend_words(stuck, None) == "`helix-tui set out status=open`, once the blocker is gone"
    assert waits.detail == "waits on out “Free /tmp”"
