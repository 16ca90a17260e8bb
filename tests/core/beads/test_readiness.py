"""ReadyExecution against what DDx's own code answered, and rule by rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from helix_tui.core.beads.counts import count_queue
from helix_tui.core.beads.readiness import Claims, Era, Queue, classify
from helix_tui.core.beads.record import Bead, decode_bead
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ground.time import NS, format_instant, parse_now
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")

GOLDEN: list[tuple[str, str, Era, str]] = [
    ("beads-head.jsonl", "head-headengine", "head", "2026-08-21T22:00:28Z"),
    ("beads-2026-04.jsonl", "april-oldengine", "april", "2026-04-24T13:41:04Z"),
]

KINDS = {
    "dependency": "waiting_dependencies",
    "blocked-status": "blocked_external",
    "operator-attention": "proposed",
    "epic-only": "epic_container",
    "not-execution-eligible": "not_eligible",
    "superseded": "superseded",
    "retry-cooldown": "retry_cooldown",
}


def queue_of(*rows: dict[str, Any], era: Era = "head", claims: Claims | None = None, now: int = NOW) -> Queue:
    data = "\n".join(json.dumps({"title": "t", **row}) for row in rows).encode()
    return classify(parse_rows(data).beads, now=now, era=era, claims=claims or Claims())


def decided(queue: Queue, bead_id: str) -> tuple[str, list[str]]:
    standing = queue.standing(bead_id)
    return standing.state, [reason.kind for reason in standing.reasons]


@pytest.mark.parametrize(("tracker", "golden", "era", "clock"), GOLDEN)
@pytest.mark.parametrize("auto", [False, True])
def test_ready_execution_equals_ddx_in_order(
    shared: Path, tracker: str, golden: str, era: Era, clock: str, auto: bool
) -> None:
    want = json.loads((shared / "data/ddx/golden" / golden / "ready-execution.json").read_text())
    beads = read_tracker(shared / "data/ddx" / tracker).beads
    queue = classify(beads, now=parse_now(clock), era="auto" if auto else era)
    assert list(queue.ready) == [bead["id"] for bead in want]


def test_every_blocker_equals_ddx(shared: Path) -> None:
    golden = json.loads((shared / "data/ddx/golden/head-headengine/blocked-all.json").read_text())
    queue = classify(read_tracker(shared / "data/ddx/beads-head.jsonl").beads, now=NOW, era="head")
    for bead in golden:
        blocker, standing = bead["blocker"], queue.standing(bead["id"])
        assert standing.state == KINDS[blocker["kind"]], bead["id"]
        if blocker["kind"] == "dependency":
            assert list(standing.reasons[0].refs) == blocker["unclosed_dep_ids"]
    listed = {bead["id"] for bead in golden}
    unlisted = {queue.state(bead_id) for bead_id in queue.beads if bead_id not in listed}
    assert unlisted == {"ready", "closed", "cancelled"}


def test_status_counts_equal_ddx(shared: Path) -> None:
    status = json.loads((shared / "data/ddx/golden/head-headengine/status.json").read_text())
    counts = classify(read_tracker(shared / "data/ddx/beads-head.jsonl").beads, now=NOW).counts()
    assert counts["ready"] == status["worker_ready"]
    assert counts["waiting_dependencies"] == status["dependency_waiting"]
    assert counts["proposed"] == status["operator_attention"]
    assert counts["blocked_external"] == status["external_blocked"]


def test_head_takes_the_first_reason_that_holds_and_lists_the_rest() -> None:
    queue = queue_of(
        {"id": "a", "status": "open"},
        {
            "id": "b",
            "dependencies": [{"depends_on_id": "a"}],
            "superseded-by": "c",
            "work-retry-after": "2026-08-22T00:00:00Z",
            "execution-eligible": False,
            "preserved-review-blocked-at": "2026-08-20T00:00:00Z",
            "preserved-review-blocked-attempt": "x",
        },
    )
    assert decided(queue, "b") == (
        "waiting_dependencies",
        ["waiting_dependencies", "superseded", "retry_cooldown", "preserved_review_blocked", "not_eligible"],
    )


def test_april_knows_its_own_keys_only() -> None:
    rows = (
        {"id": "head-cooling", "work-retry-after": "2026-08-22T00:00:00Z"},
        {"id": "april-cooling", "execute-loop-retry-after": "2026-08-22T00:00:00Z"},
        {"id": "epic", "issue_type": "epic"},
        {"id": "parked", "status": "proposed"},
    )
    assert set(queue_of(*rows, era="april").ready) == {"head-cooling"}
    assert set(queue_of(*rows, era="head").ready) == {"april-cooling", "epic"}


@pytest.mark.parametrize(
    ("row", "ready"),
    [
        ({"execution-eligible": "false"}, True),
        ({"execution-eligible": False}, False),
        ({"execution-eligible": 0}, True),
        ({"superseded-by": "  "}, True),
        ({"superseded_by": "x"}, True),
        ({"superseded-by": 7}, True),
        ({"work-retry-after": "tomorrow"}, True),
        ({"work-retry-after": "2026-08-21T22:00:28Z"}, True),
        ({"work-retry-after": "2026-08-21T22:00:28.000000001Z"}, False),
        ({"work-retry-after": "2026-08-22T00:00:00+02:00"}, True),
        ({"work-retry-after": 5}, True),
        ({"title": "Epic: big"}, True),
        ({"status": ""}, True),
        ({"status": "paused"}, False),
        ({"priority": "0"}, True),
        ({"dependencies": [{"depends_on_id": "gone"}]}, False),
        ({"dependencies": [{"depends_on_id": ""}]}, False),
        ({"dependencies": [{}]}, False),
        ({"dependencies": ["done"]}, False),
        ({"dependencies": [{"depends_on_id": 7}]}, False),
        ({"dependencies": [None]}, False),
        ({"dependencies": "a"}, True),
        ({"dependencies": None}, True),
    ],
)
def test_head_reads_fields_as_strictly_as_ddx(row: dict[str, Any], ready: bool) -> None:
    assert (queue_of({"id": "a", **row}).ready == ("a",)) is ready


def test_only_closed_satisfies_a_dependent() -> None:
    queue = queue_of(
        {"id": "done", "status": "closed"},
        {"id": "dropped", "status": "cancelled"},
        {"id": "a", "dependencies": [{"depends_on_id": "done"}]},
        {"id": "b", "dependencies": [{"depends_on_id": "dropped"}]},
        {"id": "c", "dependencies": [{"depends_on_id": name} for name in ("dropped", "a", "gone", "done")]},
    )
    assert queue.ready == ("a",)
    (why,) = queue.standing("b").reasons
    assert (why.refs, why.detail) == (("dropped",), "waits on dropped, cancelled and never closed")
    (why,) = queue.standing("c").reasons
    assert why.refs == ("dropped", "a", "gone")
    assert why.detail == "waits on a; waits on dropped, cancelled and never closed; gone is not in the tracker"


def test_an_epic_is_a_container_only_with_children_in_head() -> None:
    rows = (
        {"id": "e1", "issue_type": " Epic "},
        {"id": "e2", "issue_type": "epic"},
        {"id": "kid", "parent": "e2"},
        {"id": "e3", "title": "epic plan"},
        {"id": "kid3", "parent": "e3", "status": "closed"},
    )
    queue = queue_of(*rows)
    assert queue.state("e1") == "ready"
    assert queue.state("e2") == "epic_container"
    assert queue.state("e3") == "epic_container"


def test_claims_decide_before_anything_else() -> None:
    rows = (
        {"id": "leased", "dependencies": [{"depends_on_id": "gone"}]},
        {"id": "stale", "status": "in_progress", "work-heartbeat-at": "2026-08-21T22:00:00Z"},
        {"id": "beating", "status": "in_progress", "work-heartbeat-at": "2026-08-21T21:59:00Z"},
        {"id": "silent", "status": "in_progress", "work-heartbeat-at": "2026-08-21T21:58:00Z"},
    )
    queue = queue_of(*rows, claims=Claims(leases={"leased": True, "stale": False}))
    assert decided(queue, "leased") == ("claimed", ["claimed", "waiting_dependencies"])
    assert queue.state("beating") == "claimed"
    assert set(queue.ready) == {"stale", "silent"}


def test_april_in_progress_is_ready_again_after_90_seconds() -> None:
    rows = (
        {"id": "fresh", "status": "in_progress", "execute-loop-heartbeat-at": "2026-08-21T21:58:58Z"},
        {"id": "stale", "status": "in_progress", "execute-loop-heartbeat-at": "2026-08-21T21:58:57.9Z"},
        {"id": "none", "status": "in_progress"},
    )
    queue = queue_of(*rows, era="april")
    assert set(queue.ready) == {"stale", "none"}
    assert queue.state("fresh") == "claimed"


def test_a_moved_origin_ends_a_cooldown() -> None:
    row = {"id": "a", "work-retry-after": "2026-08-22T00:00:00Z", "work-cooldown-base-rev": "old"}
    assert queue_of(row).state("a") == "retry_cooldown"
    assert queue_of(row, claims=Claims(origin_head="old")).state("a") == "retry_cooldown"
    assert queue_of(row, claims=Claims(origin_head="new")).state("a") == "ready"


def test_a_review_block_lifts_only_for_its_own_attempt_and_later() -> None:
    blocked = {"preserved-review-blocked-at": "2026-08-20T00:00:00Z", "preserved-review-blocked-attempt": "x"}

    def state(**unblock: str) -> str:
        row = {"id": "a", **blocked, **{f"preserved-review-unblocked-{k}": v for k, v in unblock.items()}}
        return queue_of(row).state("a")

    assert state() == "preserved_review_blocked"
    assert state(at="2026-08-20T00:00:01Z", attempt="x") == "ready"
    assert state(at="2026-08-20T00:00:00Z", attempt="x") == "preserved_review_blocked"
    assert state(at="2026-08-20T00:00:01Z", attempt="y") == "preserved_review_blocked"
    assert state(at="later", attempt="x") == "preserved_review_blocked"


@pytest.mark.parametrize("odd", [2.0, 10**30, -(10**30), True, "1", None, [1]])
def test_a_priority_that_go_takes_for_no_int_counts_as_none_given(odd: Any) -> None:
    queue = queue_of({"id": "b", "priority": 1}, {"id": "a", "priority": odd})
    assert queue.ready == ("a", "b")


@pytest.mark.parametrize("odd", ["--5", "+-3", "٥", "1_0", "", 2.5, 10**30, str(10**30), True, {}])
def test_a_rank_that_go_takes_for_no_int_is_no_rank(odd: Any) -> None:
    queue = queue_of({"id": "a", "queue-rank": odd}, {"id": "b", "queue-rank": " +9 "}, era="head")
    assert queue.ready == ("b", "a")


def test_order_by_priority_rank_creation_and_id() -> None:
    rows = (
        {"id": "e", "priority": 1, "created_at": "2026-01-01T00:00:00.5Z"},
        {"id": "d", "priority": 1, "created_at": "2026-01-01T00:00:00.45Z"},
        {"id": "c", "priority": 1, "queue-rank": 7},
        {"id": "b", "priority": 1, "queue-rank": "3"},
        {"id": "a", "priority": 1, "queue_rank": 3.0, "created_at": "2026-01-01T00:00:00Z"},
        {"id": "z", "priority": 0, "created_at": "2026-01-02T01:00:00+02:00"},
        {"id": "y", "priority": 0, "created_at": "2026-01-01T22:00:00Z"},
        {"id": "x", "priority": 0, "created_at": "whenever"},
    )
    assert queue_of(*rows).ready == ("x", "y", "z", "b", "a", "c", "d", "e")
    assert queue_of(*rows, era="april").ready == ("x", "y", "z", "b", "c", "a", "d", "e")


def test_auto_judges_each_record_by_the_era_it_shows() -> None:
    later = "2026-08-22T00:00:00Z"
    queue = queue_of(
        {"id": "april", "execute-loop-retry-after": later},
        {"id": "head", "work-retry-after": later},
        {"id": "touched", "schema_version": 1, "execute-loop-retry-after": later},
        {"id": "plain", "issue_type": "epic"},
        era="auto",
    )
    assert queue.state("april") == "retry_cooldown"
    assert queue.state("head") == "retry_cooldown"
    assert set(queue.ready) == {"touched", "plain"}


def test_unblocks_tells_what_closing_makes_ready() -> None:
    queue = queue_of(
        {"id": "a"},
        {"id": "b", "priority": 2, "dependencies": [{"depends_on_id": "a"}]},
        {"id": "c", "priority": 1, "dependencies": [{"depends_on_id": "a"}]},
        {"id": "d", "dependencies": [{"depends_on_id": "a"}, {"depends_on_id": "b"}]},
        {"id": "e", "execution-eligible": False, "dependencies": [{"depends_on_id": "a"}]},
    )
    assert queue.unblocks("a") == ("c", "b")
    assert queue.unblocks("d") == ()


def test_what_a_live_worker_is_on_is_running_and_not_ready_whatever_ddx_would_pick() -> None:
    queue = queue_of({"id": "a"}, {"id": "b", "status": "closed"}, claims=Claims(running=frozenset("ab")))
    assert queue.state("a") == "running"
    assert queue.state("b") == "closed"
    assert queue.picked_by_ddx == ("a",)
    assert queue.ready == ()
    assert count_queue(queue).running == 1


_ROWS = st.dictionaries(
    st.sampled_from("abcd"),
    st.fixed_dictionaries(
        {
            "status": st.sampled_from(("open", "in_progress", "closed", "cancelled", "blocked", "proposed")),
            "dependencies": st.lists(st.sampled_from("abcd").map(lambda name: {"depends_on_id": name}), max_size=2),
        }
    ),
)
_STATES = st.tuples(_ROWS, st.frozensets(st.sampled_from("abcd")))


@given(_STATES, _STATES)
def test_restated_beads_are_those_whose_state_differs(
    before: tuple[dict[str, dict[str, Any]], frozenset[str]], after: tuple[dict[str, dict[str, Any]], frozenset[str]]
) -> None:
    old, new = (
        queue_of(*({"id": name, **row} for name, row in rows.items()), claims=Claims(running=running))
        for rows, running in (before, after)
    )
    both = old.beads.keys() & new.beads.keys()
    assert new.restated(old) == {name for name in both if old.state(name) != new.state(name)}


_NAMES = "abcdef"
_ERAS: st.SearchStrategy[Era] = st.sampled_from(("auto", "april", "head"))
_SOON = format_instant(NOW + 40 * NS)
_ROW = st.fixed_dictionaries(
    {"status": st.sampled_from(("open", "open", "open", "in_progress", "closed", "cancelled"))},
    optional={
        "dependencies": st.lists(st.sampled_from(_NAMES).map(lambda name: {"depends_on_id": name}), max_size=2),
        "parent": st.sampled_from(_NAMES),
        "issue_type": st.just("epic"),
        "work-retry-after": st.just(_SOON),
        "work-cooldown-base-rev": st.sampled_from(("abc", "def")),
        "work-heartbeat-at": st.sampled_from((format_instant(NOW), format_instant(NOW - 200 * NS))),
        "execute-loop-heartbeat-at": st.just(format_instant(NOW)),
        "execution-eligible": st.booleans(),
    },
)
_STEP = st.one_of(
    st.tuples(st.just("row"), st.sampled_from(_NAMES), st.none() | _ROW),
    st.tuples(st.just("lease"), st.sampled_from(_NAMES), st.none() | st.booleans()),
    st.tuples(st.just("clock"), st.just(""), st.integers(-60, 100)),
    st.tuples(st.just("origin"), st.just(""), st.sampled_from(("", "abc", "def"))),
)


_OLD_KEY = {"status": "open", "schema_version": 1, "execute-loop-heartbeat-at": format_instant(NOW)}
_NEW_KEY = {"status": "open", "work-heartbeat-at": format_instant(NOW - 200 * NS)}


@settings(max_examples=200)
@example({"a": {"status": "open", "issue_type": "epic"}}, [("row", "b", {"status": "open", "parent": "a"})], "head")
@example(
    {"a": {"status": "open", "work-retry-after": _SOON, "work-cooldown-base-rev": "abc"}},
    [("origin", "", "def"), ("origin", "", "")],
    "head",
)
@example({"a": _OLD_KEY, "b": _NEW_KEY}, [("row", "b", None)], "auto")
@given(st.dictionaries(st.sampled_from(_NAMES), _ROW, min_size=3), st.lists(_STEP, min_size=1, max_size=6), _ERAS)
def test_a_queue_judged_from_the_last_one_equals_one_judged_anew(
    rows: dict[str, dict[str, Any]], steps: list[tuple[str, str, Any]], era: Era
) -> None:
    kept: dict[bytes, Bead] = {}
    leases: dict[str, bool] = {}
    now, origin = NOW, ""
    last: Queue | None = None
    for kind, name, value in [("clock", "", 0), *steps]:
        if kind == "clock":
            now += value * NS
        elif kind == "origin":
            origin = value
        else:
            table: dict[str, Any] = rows if kind == "row" else leases
            table.pop(name, None)
            table.update({} if value is None else {name: value})
        lines = [json.dumps({"id": each, "title": "t", **row}).encode() for each, row in sorted(rows.items())]
        # as the reader does: a row that did not change is the same object
        beads = {bead.id: bead for line in lines for bead in (kept.setdefault(line, decode_bead(line)),)}
        claims = Claims(leases=dict(leases), origin_head=origin)
        fresh = classify(beads, now=now, era=era, claims=claims)
        last = classify(beads, now=now, era=era, claims=claims, last=last)
        assert {each: last.standing(each) for each in beads} == {each: fresh.standing(each) for each in beads}
        assert (last.ready, last.by_state()) == (fresh.ready, fresh.by_state())
        assert last.expired(now + 50 * NS) == fresh.expired(now + 50 * NS)


def test_the_counts_name_what_is_left_out() -> None:
    queue = queue_of(*({"id": name} for name in "abc"), {"id": "d", "dependencies": [{"depends_on_id": "a"}]})
    every = count_queue(queue)
    assert (str(every), every.for_workers, every.split) == ("3 ready", ("a", "b", "c"), "")
    assert (every.total, every.open, every.waiting, every.listed, every.closed) == (4, 4, 1, 3, 0)
    one = count_queue(queue, {"b": "q-1", "d": "q-9"})
    assert str(one) == "3 ready, 2 can run: q-1 waits for you"
    two = count_queue(queue, {"b": "q-1", "c": "q-2"})
    assert str(two) == "3 ready, 1 can run: q-1 and q-2 wait for you"
    assert two.for_workers == ("a",)
    some = count_queue(queue, {"b": "q-1"}, among=("a", "b"))
    assert str(some) == "2 ready, 1 can run: q-1 waits for you"
    assert (some.total, some.waiting) == (2, 0)


def test_the_numbers_of_all_states_add_up_to_all_beads(shared: Path) -> None:
    made = queue_of(
        {"id": "a", "status": "proposed"},
        {"id": "b", "status": "cancelled"},
        {"id": "c", "execution-eligible": False},
        {"id": "d", "dependencies": [{"depends_on_id": "a"}]},
        {"id": "e", "status": "closed"},
        {"id": "f", "status": "of next year"},
        {"id": "g"},
    )
    counts = count_queue(made)
    assert counts.rest == (("proposed", 1), ("unknown_status", 1), ("not_eligible", 1), ("cancelled", 1))
    for tracker, _, era, _ in GOLDEN:
        real = classify(read_tracker(shared / "data/ddx" / tracker).beads, now=NOW, era=era)
        for queue in (made, real):
            counts = count_queue(queue)
            named = len(counts.ready) + counts.running + counts.waiting + counts.outside + counts.closed
            assert named + sum(number for _, number in counts.rest) == counts.total == len(queue.beads)


def test_unknown_statuses_are_shown_and_counted() -> None:
    queue = queue_of({"id": "a", "status": "paused"}, {"id": "b", "status": "paused"})
    assert queue.unknown_statuses() == {"paused": 2}
    assert queue.counts() == {"unknown_status": 2}
    assert "paused" in queue.standing("a").reasons[0].detail


def test_a_bead_held_back_for_an_epic_says_for_which() -> None:
    held = {"execution-eligible": False, "helix-focus-suppressed": "e", "execution-skip-reason": "other"}
    queue = queue_of({"id": "a", **held}, {"id": "b", "helix-focus-suppressed": "e"}, {"id": "e"})
    (reason,) = queue.standing("a").reasons
    assert (reason.kind, reason.detail, reason.refs) == (
        "not_eligible",
        "held back by the focus on e",
        ("e",),
    )
    assert queue.state("b") == "ready"
