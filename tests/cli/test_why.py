"""``helix-tui why``."""

from __future__ import annotations

import json
import os
import socket
import subprocess

from helix_tui.core.ground.time import NS, format_instant, now_ns
from tests.cli.conftest import Cli
from tests.cli.test_queue import NOW, ROWS, bead
from tests.conftest import ProjectFactory


def test_ready_bead_has_a_place_and_says_what_it_frees(cli: Cli, project: ProjectFactory) -> None:
    document = cli("why", "demo-a1", "--json", "-C", project(ROWS), "--now", NOW).document
    assert document["schema"] == "why/1"
    assert (document["id"], document["state"], document["position"]) == ("demo-a1", "ready", 1)
    assert document["unblocks"] == ["demo-b2"]
    assert document["reasons"] == []


def test_ids_are_known_by_their_beginning_or_end(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    assert cli("why", "c3", "--json", "-C", root).document["id"] == "demo-c3"
    assert cli("why", "demo-c", "--json", "-C", root).document["id"] == "demo-c3"
    several = cli("why", "demo-", "-C", root)
    assert several.code == 1
    assert "matches 9 beads" in several.err
    none = cli("why", "demo-a2", "-C", root)
    assert none.code == 1
    assert "demo-a1" in none.err


def test_people_read_the_reason_and_the_names(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    ready = cli("why", "a1", "-C", root).out
    assert "picked next" in ready
    assert "demo-b2" in ready
    waiting = cli("why", "d4", "-C", root).out
    assert "not in the tracker" in waiting
    assert "\x1b" not in waiting


def test_a_bead_that_waits_on_a_cancelled_one_is_said_to_wait_in_vain(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1", status="cancelled"), bead("demo-b2", "demo-a1")])
    assert "waits on demo-a1, cancelled and never closed" in cli("why", "b2", "-C", root).out
    assert "waits on demo-a1, cancelled" in cli("queue", "-C", root).out


def test_a_missing_target_is_looked_for_in_git(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1"), bead("demo-b2", "demo-a1")], git=True)
    tracker = root / ".ddx" / "beads.jsonl"
    tracker.write_text(tracker.read_text().split("\n", 1)[1])
    git = ["git", "-C", str(root)]
    subprocess.run([*git, "commit", "-qam", "lose one"], check=True, timeout=30)
    document = cli("why", "b2", "--json", "-C", root).document
    assert document["missing"][0]["id"] == "demo-a1"
    assert document["missing"][0]["last_seen"]["status"] == "open"
    assert "last in git" in cli("why", "b2", "-C", root).out


def test_a_circle_is_said_whole_with_what_breaks_it(cli: Cli, project: ProjectFactory) -> None:
    rows = [
        bead("demo-a", "demo-b"),
        bead("demo-b", "demo-a", "demo-x"),
        bead("demo-x"),
        bead("demo-w", "demo-b"),
    ]
    root = project(rows)
    said = cli("why", "demo-a", "-C", root).out
    assert "demo-a → demo-b → demo-a" in said
    assert "demo-a no longer waits on demo-b: then demo-a is ready\n" in said
    assert "  helix-tui dep remove demo-a demo-b\n" in said
    assert "waits on a dependency cycle" in cli("why", "demo-w", "-C", root).out
    document = cli("why", "demo-a", "--json", "-C", root).document
    assert document["circle"]["ids"] == ["demo-a", "demo-b"]
    assert {"bead": "demo-a", "needs": "demo-b", "frees": True} in document["circle"]["cuts"]
    assert cli("why", "demo-x", "--json", "-C", root).document["circle"] is None


def test_hundreds_of_beads_fold_into_a_count(cli: Cli, project: ProjectFactory) -> None:
    children = [f"demo-k{number:03}" for number in range(300)]
    root = project([*(bead(child) for child in children), bead("demo-all", *children)])
    said = cli("why", "demo-all", "-C", root).out.splitlines()
    assert len(said) < 20
    assert any("291 more: 291 ready" in line for line in said)
    assert len(cli("why", "demo-all", "--json", "-C", root).document["reasons"][0]["refs"]) == 300


def test_a_claim_by_hand_whose_process_is_alive_leaves_the_bead_ready_and_is_said(
    cli: Cli, project: ProjectFactory
) -> None:
    at = format_instant(now_ns() - 14 * 3_600 * NS)
    claim = {"claimed-pid": str(os.getpid()), "claimed-machine": socket.gethostname(), "claimed-at": at, "owner": "sam"}
    root = project([bead("demo-a", status="in_progress", **claim)])
    said = cli("why", "demo-a", "-C", root).out
    assert "ready, picked next" in said
    assert (
        f"claim     claimed by sam, process {os.getpid()}, without a heartbeat: ddx gives it out all the same" in said
    )
    assert "1 ready · 0 running" in cli("status", "-C", root).out
    assert "gone" not in cli("queue", "-C", root).out
    assert cli("needs", "--json", "-C", root).document["needs"] == []


def test_work_that_landed_while_its_bead_stayed_open_is_said_in_the_words_of_attempts(
    cli: Cli, project: ProjectFactory
) -> None:
    root = project([bead("demo-a1"), bead("demo-b2", status="closed"), bead("demo-c3")], git=True)
    for name, status in (("a1", "success"), ("b2", "success"), ("c3", "execution_failed")):
        folder = root / ".ddx" / "executions" / f"20260821T200100-000000{name}"
        folder.mkdir(parents=True)
        row = {"bead_id": f"demo-{name}", "attempt_id": folder.name, "status": status, "landed": status == "success"}
        times = {"started_at": "2026-08-21T20:01:00Z", "finished_at": "2026-08-21T20:02:00Z"}
        (folder / "result.json").write_text(json.dumps(row | times))
    said = "it landed, but its bead is still open: look at the result, then `helix-tui close demo-a1`"
    shown = cli("why", "a1", "-C", root, "--now", NOW).out
    assert "state     ready" in shown
    assert f"ago: {said}" in shown
    document = cli("why", "a1", "--json", "-C", root).document["done_by"]
    (attempt,) = cli("attempts", "--bead", "demo-a1", "--json", "-C", root).document["attempts"]
    assert (document["follow_up"], attempt["follow_up"]) == (said, said)
    assert document["outcome"] == attempt["verdict"]["outcome"] == "landed"
    assert [cli("why", other, "--json", "-C", root).document["done_by"] for other in ("b2", "c3")] == [None, None]
