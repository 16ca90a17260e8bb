"""How beads come, change, are claimed, end and come back, in both releases."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from helix_ddx.store.events import capped
from helix_ddx.store.places import lease_folder
from tests.helix_ddx.bead.conftest import MakeDesk

REJECTED = "bead: lifecycle transition {} -> {} rejected: {}"


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("open", "in_progress", ""),
        ("open", "cancelled", ""),
        ("open", "open", ""),
        ("in_progress", "open", ""),
        ("in_progress", "closed", ""),
        ("proposed", "open", ""),
        ("blocked", "open", ""),
        ("blocked", "cancelled", ""),
        ("open", "closed", "transition_unsupported: open -> closed"),
        ("in_progress", "cancelled", "transition_unsupported: in_progress -> cancelled"),
        ("blocked", "closed", "transition_unsupported: blocked -> closed"),
        ("open", "proposed", "transition_requires_operator: open -> proposed"),
        ("open", "blocked", "transition_requires_external_blocker: open -> blocked"),
        ("closed", "open", "transition_from_terminal: closed -> open"),
        ("cancelled", "open", "transition_from_terminal: cancelled -> open"),
        ("open", "doing", 'invalid_status: "doing"'),
    ],
)
def test_head_lets_a_status_follow_only_some(before: str, after: str, why: str, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "status": before, "work-consecutive-wedges": {"count": 2}})
    answer = bench("update", "demo-1", "--status", after)
    assert (answer.rc, answer.error) == ((1, REJECTED.format(before, after, why)) if why else (0, ""))
    row = bench.rows()["demo-1"]
    assert row["status"] == (before if why else after)
    freed = not why and after == "open" and before in ("proposed", "blocked")
    assert ("work-consecutive-wedges" in row) != freed


def test_blocked_needs_and_loses_its_reason(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2"})
    bench.must("update", "demo-1", "--status", "blocked", "--external-blocker-reason", " vendor ")
    assert bench.rows()["demo-1"]["lifecycle-external-blocker-reason"] == "vendor"
    assert bench.must("blocked") == "demo-1  P2  bead demo-1  blocked-status: vendor"
    assert bench("blocked", "--json").json[0]["blocker"] == {"kind": "blocked-status", "reason": "vendor"}
    bench.must("update", "demo-1", "--status", "open")
    assert "lifecycle-external-blocker-reason" not in bench.rows()["demo-1"]
    bench.must("update", "demo-2", "--status", "blocked", "--blocked-by-ref", "other#o-1")
    assert bench.rows()["demo-2"]["lifecycle-cross-repo-blocker-ref"] == {"bead": "o-1", "repo": "other"}
    assert bench("update", "demo-1", "--blocked-by-ref", "other").rc == 1


def test_what_set_reaches_and_what_it_loses(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "owner": "me"})
    pairs = ("parent=p", "notes=n", "issue_type=bug", "a=true", "b=false", "c=1.5", "queue-rank=7", "d=x=y")
    lost = ("status=closed", "priority=0", "title=t", "labels=l", "owner=o", "id=other", "created_at=now")
    bench.must("update", "demo-1", *(word for pair in pairs + lost for word in ("--set", pair)))
    row = bench.rows()["demo-1"]
    assert row["queue-rank"] == 7
    wanted = {"parent": "p", "notes": "n", "issue_type": "bug", "a": True, "b": False, "c": "1.5", "d": "x=y"}
    assert {name: row[name] for name in wanted} == wanted
    assert (row["status"], row["priority"], row["title"], row["owner"]) == ("open", 2, "bead demo-1", "me")
    assert "labels" not in row
    bench.must("update", "demo-1", "--unset", "a", "--unset", "nothing", "--unset", "title", "--notes", "")
    row = bench.rows()["demo-1"]
    assert "a" not in row
    assert "notes" not in row
    assert row["title"] == "bead demo-1"


def test_claim_and_unclaim(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "kept": "x"})
    before = bench.rows()["demo-1"]
    bench.must("update", "demo-1", "--claim", "--priority", "0")
    row = bench.rows()["demo-1"]
    assert (row["status"], row["owner"], row["priority"]) == ("in_progress", "tester", 2)
    lease = lease_folder(bench.root) / "demo-1.json"
    held = json.loads(lease.read_text())
    assert (held["bead_id"], held["owner"], held["machine"], held["pid"]) == (
        "demo-1",
        "tester",
        "vm",
        os.getpid(),
    )
    assert "claimed-at" not in row
    again = bench("update", "demo-1", "--claim", "--assignee", "other")
    assert again.error == "bead: cannot claim demo-1 from status in_progress"
    shown = bench("show", "demo-1", "--json").json
    assert (shown["owner"], shown["claimed-machine"]) == ("tester", "vm")
    assert isinstance(shown["claimed-pid"], int)
    bench.must("update", "demo-1", "--unclaim")
    after = bench.rows()["demo-1"]
    assert not lease.exists()
    assert {name: after[name] for name in before if name != "updated_at"} == {
        name: before[name] for name in before if name != "updated_at"
    }
    assert after.keys() == before.keys()


def test_a_stale_claim_is_taken_over(desk: MakeDesk) -> None:
    beat = "work-heartbeat-at"
    bench = desk({"id": "demo-1", "status": "in_progress", "owner": "gone", beat: "2026-01-01T00:00:00Z"})
    bench.must("update", "demo-1", "--claim")
    assert bench.rows()["demo-1"]["owner"] == "tester"


@pytest.mark.parametrize("status", ["closed", "cancelled", "blocked", "proposed"])
def test_only_what_is_open_can_be_claimed(status: str, desk: MakeDesk) -> None:
    answer = desk({"id": "demo-1", "status": status})("update", "demo-1", "--claim")
    assert answer.error == f"bead: cannot claim demo-1 from status {status}"


def test_closing_moves_events_out_and_reopening_brings_them_back(desk: MakeDesk) -> None:
    odd = {"kind": "odd", "n": 1.5, "created_at": "2026-04-01T00:00:00Z", "summary": "a <b>"}
    bench = desk({"id": "demo-1", "events": [odd]})
    attached = bench.root / ".ddx" / "attachments" / "demo-1" / "events.jsonl"
    bench.must("close", "demo-1")
    row = bench.rows()["demo-1"]
    assert (row["status"], row["events_attachment"]) == ("closed", "demo-1/events.jsonl")
    assert "events" not in row
    assert "a <b>" in attached.read_text()
    bench.must("evidence", "add", "demo-1", "--kind", "late", "--summary", "s")
    assert [event["kind"] for event in bench("evidence", "list", "demo-1", "--json").json] == ["odd", "late"]
    assert [event["kind"] for event in bench("show", "demo-1", "--json").json["events"]] == ["odd", "late"]
    exported = json.loads(bench.must("export", "--stdout"))
    assert [event["kind"] for event in exported["events"]] == ["odd", "late"]
    bench.must("reopen", "demo-1", "--reason", "again", "--append-notes", "more")
    row = bench.rows()["demo-1"]
    assert [event["kind"] for event in row["events"]] == ["odd", "late", "reopen"]
    assert row["events"][0] == odd
    assert (row["status"], row["notes"], row["events"][2]["summary"]) == ("open", "more", "again")
    assert not attached.exists()


def test_a_verdict_that_a_person_contradicts_is_noted(desk: MakeDesk) -> None:
    def review(verdict: str) -> list[dict[str, str]]:
        return [{"kind": "review", "summary": verdict, "body": "because", "created_at": "2026-04-01T00:00:00Z"}]

    bench = desk({"id": "demo-1", "events": review("BLOCK")}, {"id": "demo-2", "events": review("APPROVE")})
    bench.must("close", "demo-1")
    assert [event["kind"] for event in bench("evidence", "list", "demo-1", "--json").json] == [
        "review",
        "review-accuracy-override",
    ]
    bench.must("close", "demo-2")
    bench.must("reopen", "demo-2", "--reason", "no")
    kinds = [event["kind"] for event in bench.rows()["demo-2"]["events"]]
    assert kinds == ["review", "reopen", "review-accuracy-override"]


def test_closing_with_evidence_asks_for_some(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2", "events": [{"kind": "note"}]})
    bench.must("close", "demo-1", "--session", "s-1")
    row = bench.rows()["demo-1"]
    assert (row["status"], row["session_id"]) == ("open", "s-1")
    assert "closure rejected: closure gate: insufficient evidence: no execution evidence" in row["notes"]
    bench.must("close", "demo-2", "--session", "s-2")
    assert bench.rows()["demo-2"]["status"] == "closed"


# --- what ends along with it ----------------------------------------------------------------------------


def test_the_last_part_closes_the_epic_and_the_epic_above_it(desk: MakeDesk) -> None:
    bench = desk(
        {"id": "demo-1", "issue_type": "epic"},
        {"id": "demo-2", "title": "Epic: inner", "parent": "demo-1", "events": [{"kind": "note"}]},
        {"id": "demo-3", "parent": "demo-2"},
        {"id": "demo-4", "parent": "demo-2", "status": "cancelled"},
    )
    bench.must("close", "demo-3")
    rows = bench.rows()
    assert [rows[f"demo-{number}"]["status"] for number in (1, 2, 3)] == ["closed"] * 3
    kinds = [event["kind"] for event in bench("evidence", "list", "demo-2", "--json").json]
    assert kinds == ["note", "epic_auto_close"]
    assert rows["demo-1"]["events"][0]["summary"] == "auto-closed: all children reached terminal state"


def test_an_epic_with_an_open_part_stays_and_so_does_a_plain_parent(desk: MakeDesk) -> None:
    bench = desk(
        {"id": "demo-1", "issue_type": "epic"},
        {"id": "demo-2", "parent": "demo-1"},
        {"id": "demo-3", "parent": "demo-1"},
        {"id": "demo-4"},
        {"id": "demo-5", "parent": "demo-4"},
    )
    bench.must("close", "demo-2")
    bench.must("close", "demo-5")
    assert [bench.rows()[f"demo-{number}"]["status"] for number in (1, 4)] == ["open", "open"]


def test_a_parent_that_was_never_to_be_executed_ends_with_its_parts(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "execution-eligible": False}, {"id": "demo-2", "parent": "demo-1"})
    bench.must("close", "demo-2")
    row = bench.rows()["demo-1"]
    assert (row["status"], row["events"][0]["kind"]) == ("closed", "dead_intermediate_close")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, "closed"),
        ({"superseded-by": "", "labels": ["superseded-by:demo-1"]}, "closed"),
        ({"labels": ["no-auto-close"]}, "open"),
        ({"notes": "a person looked"}, "open"),
        ({"events": [{"kind": "execute-bead"}]}, "open"),
        ({"dependencies": [{"depends_on_id": "demo-3"}]}, "open"),
        ({"status": "in_progress"}, "in_progress"),
    ],
)
def test_what_was_superseded_closes_along(more: dict[str, object], status: str, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, {"id": "demo-2", "superseded-by": "demo-1", **more}, {"id": "demo-3"})
    bench.must("close", "demo-1")
    assert bench.rows()["demo-2"]["status"] == status


def test_reap_closes_epics_whose_parts_have_ended(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1", "issue_type": "epic"}, {"id": "demo-2", "parent": "demo-1", "status": "closed"})
    assert "demo-1  bead demo-1" in bench.must("reap")
    assert bench.rows()["demo-1"]["status"] == "open"
    assert bench.must("reap", "--apply") == "closed demo-1  bead demo-1"
    assert bench.must("reap") == "no epics with all-terminal children found"


# --- hooks and commits ----------------------------------------------------------------------------------


def _hook(root: Path, name: str, script: str) -> None:
    path = root / ".ddx" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout


@pytest.mark.parametrize(
    ("script", "rc", "told"),
    [
        ("exit 0", 0, ""),
        ("echo no spec >&2; exit 1", 1, "bead: hook validate-bead-update: no spec"),
        ("exit 1", 1, "bead: hook validate-bead-update: validation failed"),
        ("echo hm >&2; exit 2", 0, "bead: hook validate-bead-update warning: hm"),
        ("echo bad >&2; exit 7", 1, "bead: hook validate-bead-update exit 7: bad"),
        ("kill -9 $$", 1, "bead: hook validate-bead-update exit -1: validation failed"),
    ],
)
def test_a_hook_has_a_say(script: str, rc: int, told: str, desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"})
    _hook(bench.root, "validate-bead-update", f"cat > seen; {script}")
    before = bench.tracker.read_bytes()
    for words in (
        ("update", "demo-1", "--set", "a=<b>"),
        ("update", "demo-1", "--claim"),
        ("evidence", "add", "demo-1"),
    ):
        answer = bench(*words)
        assert answer.rc == rc
        assert told in answer.err
    assert (bench.tracker.read_bytes() == before) == (rc == 1)
    assert json.loads((bench.root / "seen").read_text())["id"] == "demo-1"


def test_a_hook_that_cannot_be_executed_is_no_hook(desk: MakeDesk) -> None:
    bench = desk()
    _hook(bench.root, "validate-bead-create", "exit 1")
    (bench.root / ".ddx" / "hooks" / "validate-bead-create").chmod(0o644)
    bench.must("create", "x")


def test_every_write_is_committed_where_the_settings_want_it(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"}, git=True)
    (bench.root / ".ddx" / "config.yaml").write_text("git:\n    auto_commit: always\n    commit_prefix: chore\n")
    (bench.root / "staged").write_text("mine")
    _git(bench.root, "add", "staged")
    bench.must("update", "demo-1", "--priority", "1")
    bench.must("close", "demo-1")
    log = _git(bench.root, "log", "--format=%s", "-n", "2", "--name-only").split("\n")
    assert [line for line in log if line] == [
        "chore(beads): close demo-1 [ddx: doc-stamp]",
        ".ddx/beads.jsonl",
        "chore(beads): update demo-1 [ddx: doc-stamp]",
        ".ddx/beads.jsonl",
    ]
    assert _git(bench.root, "status", "--porcelain", "staged") == "A  staged\n"


def test_a_long_event_loses_its_middle() -> None:
    text = capped("é" * 60_000)
    assert len(text.encode()) <= 65_535
    assert "…[truncated, 120000 bytes]" in text
    assert capped("short") == "short"


def test_a_lease_is_told_only_of_a_record_with_fields_of_somebody_elses(desk: MakeDesk) -> None:
    at = desk({"id": "demo-1"}, {"id": "demo-2", "spec-id": "FEAT-1"})
    for bead_id, claimed in (("demo-1", False), ("demo-2", True)):
        at.must("update", bead_id, "--claim")
        told = at.must("show", bead_id)
        assert ("Owner:    tester" in told, "Claimed:" in told) == (True, claimed)


def test_an_event_keeps_its_zone_and_one_without_a_time_has_gos_zero_time(desk: MakeDesk) -> None:
    events = [{"kind": "a", "created_at": "2026-01-01T10:00:00.50+02:00"}, {"kind": "b"}]
    at = desk({"id": "demo-1", "events": events})
    shown = at("evidence", "list", "demo-1", "--json").json
    assert [event["created_at"] for event in shown] == ["2026-01-01T10:00:00.5+02:00", "0001-01-01T00:00:00Z"]
