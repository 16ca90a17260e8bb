"""Readiness of trackers that a release between April and August 2026 wrote: both eras' marks in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.readiness import Claims, Queue, classify
from helix_tui.core.ground.time import parse_now
from tests.programs import parse_rows

NOW = "2026-05-14T12:00:00Z"
LATER = "2026-05-14T18:00:00Z"
JUST_NOW = "2026-05-14T11:59:30Z"


def queue_of(*rows: dict[str, Any], **leases: bool) -> Queue:
    data = b"\n".join(json.dumps({"title": "t", **row}).encode() for row in rows)
    return classify(parse_rows(data).beads, now=parse_now(NOW), claims=Claims(leases=leases))


def test_old_keys_count_as_long_as_no_row_has_the_new_ones() -> None:
    """Before they were renamed, rows had a schema version already (a few days of May)."""
    cooling = {"id": "cooling", "schema_version": 1, "execute-loop-retry-after": LATER}
    held = {"id": "held", "schema_version": 1, "status": "in_progress", "execute-loop-heartbeat-at": JUST_NOW}
    queue = queue_of(cooling, held)
    assert (queue.state("cooling"), queue.state("held")) == ("retry_cooldown", "claimed")
    renamed = {"id": "new", "schema_version": 1, "work-last-status": "no_changes"}
    assert set(queue_of(cooling, held, renamed).ready) == {"cooling", "held", "new"}


@pytest.mark.parametrize(("fresh", "state"), [(True, "claimed"), (False, "ready")])
def test_a_lease_beside_a_claim_in_the_row_decides(fresh: bool, state: str) -> None:
    """The row keeps the heartbeat of the claim's beginning; only the lease is touched after that."""
    stale = "2026-05-14T11:40:00Z"
    head = {"schema_version": 1, "work-heartbeat-at": JUST_NOW if state == "ready" else stale}
    april = {"claimed-at": stale, "execute-loop-heartbeat-at": JUST_NOW if state == "ready" else stale}
    for marks in (head, april):
        queue = queue_of({"id": "a", "status": "in_progress", **marks}, a=fresh)
        assert queue.state("a") == state


def test_new_statuses_beside_old_claims_do_not_change_the_rule() -> None:
    """For a week blocked, proposed and cancelled beads and attachments stood in trackers of April's rule."""
    queue = queue_of(
        {"id": "blocked", "status": "blocked"},
        {"id": "parked", "status": "proposed"},
        {"id": "done", "status": "closed", "events_attachment": "done/events.jsonl", "claimed-at": JUST_NOW},
        {"id": "epic", "issue_type": "epic"},
        {"id": "task"},
    )
    assert queue.default_era == "april"
    assert queue.ready == ("task",)
    assert queue.state("epic") == "epic_container"
    assert (queue.state("blocked"), queue.state("parked")) == ("blocked_external", "proposed")


def test_ranks_order_a_tracker_whose_claims_still_stand_in_the_row() -> None:
    rows: list[dict[str, Any]] = [
        {"id": name, "created_at": "2026-05-10T00:00:00Z", "execute-loop-last-status": "no_changes"} for name in "abc"
    ]
    rows[2]["queue-rank"] = 1
    assert queue_of(*rows).ready == ("c", "a", "b")


def test_rows_that_april_dated_are_april_s_before_and_after_any_attempt() -> None:
    """Its worker's keys come with a claim and go with the close; the schema version came with head."""
    dated: dict[str, Any] = {"created_at": "2026-04-20T10:00:00Z", "status": "open", "title": "t"}
    rows = [{**dated, "id": "e", "issue_type": "epic"}, {**dated, "id": "task"}]
    queue = classify(parse_rows(b"\n".join(json.dumps(row).encode() for row in rows)).beads, now=parse_now(NOW))
    assert {queue.engine(bead).name for bead in queue.beads.values()} == {"april"}
    assert queue.ready == ("task",), "April's loop never picks an epic"
    rows[0]["schema_version"] = 1
    queue = classify(parse_rows(b"\n".join(json.dumps(row).encode() for row in rows)).beads, now=parse_now(NOW))
    assert queue.ready == ("e", "task"), "head picks an epic without children"


@pytest.mark.parametrize("era", ["april", "head"])
def test_every_state_of_a_recorded_tracker_is_judged_by_its_own_era(shared: Path, era: str) -> None:
    for recording in sorted((shared / "data/ddx/loops").glob(f"{era}-*.jsonl")):
        for line in recording.read_text().splitlines():
            step = json.loads(line)
            if step.get("path") == "$P/.ddx/beads.jsonl" and step.get("text"):
                queue = classify(parse_rows(step["text"].encode()).beads, now=parse_now(NOW))
                engines = {queue.engine(bead).name for bead in queue.beads.values()}
                assert engines <= {era}, (recording.name, step["t"])
