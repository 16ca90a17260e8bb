"""What waits on a person, ranked."""

from __future__ import annotations

import json

from helix_tui.core.beads.readiness import Claims, classify
from helix_tui.core.beads.tracker import parse_rows
from helix_tui.core.clock import parse_now
from helix_tui.core.ddx.workers.running import Run
from helix_tui.core.supervision.drift import Drift
from helix_tui.core.supervision.needs import needs_of
from helix_tui.core.supervision.orphans import Orphan

NOW = parse_now("2026-08-21T22:00:28Z")


def test_needs_are_ranked_by_urgency_then_by_what_waits() -> None:
    rows: list[dict[str, object]] = [
        {"id": "ask", "status": "proposed"},
        {"id": "ask2", "status": "proposed"},
        {"id": "below", "dependencies": [{"depends_on_id": "ask2"}]},
        {"id": "lower", "dependencies": [{"depends_on_id": "below"}]},
        {"id": "starved", "dependencies": [{"depends_on_id": "gone"}]},
        {"id": "unlucky", "dependencies": [{"depends_on_id": "dropped"}]},
        {"id": "dropped", "status": "cancelled"},
        {"id": "x", "dependencies": [{"depends_on_id": "y"}]},
        {"id": "y", "dependencies": [{"depends_on_id": "x"}]},
        {"id": "odd", "status": "paused"},
        {"id": "fine"},
        {"id": "done", "status": "closed"},
    ]
    data = "\n".join([*(json.dumps({"title": "t", **row}) for row in rows), "{broken"]).encode()
    tracker = parse_rows(data)
    queue = classify(tracker.beads, now=NOW, claims=Claims(running=frozenset({"quiet"})))
    runs = (
        Run("fine", verdict="dead", live=False, why="pid 7 is gone"),
        Run("lower", verdict="silent", why="no event for 9m"),
        Run("below", verdict="alive"),
        Run("done", verdict="dead", live=False, why="left over"),
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
    assert len({need.key for need in needs}) == len(needs)
    assert needs[0].reason == "pid 7 is gone"
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
