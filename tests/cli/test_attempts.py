"""``helix-tui attempts``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_queue import bead
from tests.conftest import ProjectFactory

NOW = "2026-08-02T00:00:00Z"
FIRST, SECOND = "20260801T100000-aaaaaaaa", "20260801T120000-bbbbbbbb"


def leave_bundle(root: Path, attempt_id: str, **result: Any) -> None:
    """An evidence folder as DDx leaves it."""
    folder = root / ".ddx" / "executions" / attempt_id
    folder.mkdir(parents=True)
    whole = {"attempt_id": attempt_id, "outcome": "task_succeeded", "status": "success", **result}
    (folder / "result.json").write_text(json.dumps(whole))


@pytest.fixture
def root(project: ProjectFactory) -> Path:
    """Two beads with an attempt each."""
    root = project([bead("demo-a1"), bead("demo-b2")])
    leave_bundle(
        root,
        FIRST,
        bead_id="demo-a1",
        model="sonnet",
        harness="claude",
        cost_usd=1.25,
        duration_ms=61_000,
        started_at="2026-08-01T10:00:00Z",
        finished_at="2026-08-01T10:01:01Z",
    )
    leave_bundle(root, SECOND, bead_id="demo-b2", status="no_changes", outcome="task_no_changes",
                 started_at="2026-08-01T12:00:00Z")  # fmt: skip
    return root


def test_document_carries_what_is_known_and_null_where_nothing_is(cli: Cli, root: Path) -> None:
    document = cli("attempts", "--json", "-C", root, "--now", NOW).document
    assert document["schema"] == "attempts/1"
    assert [attempt["attempt_id"] for attempt in document["attempts"]] == [SECOND, FIRST]
    second, first = document["attempts"]
    assert {
        "attempt_id", "bead_id", "status", "outcome", "harness", "model", "provider", "started_at",
        "duration_ms", "tokens", "cost_usd", "base_rev", "result_rev", "preserve_ref",
        "session_id", "interpretation",
    } <= first.keys()  # fmt: skip
    assert (first["cost_usd"], first["duration_ms"], first["started_at"]) == (
        1.25,
        61_000,
        "2026-08-01T10:00:00Z",
    )
    assert second["cost_usd"] is None
    assert second["tokens"]["total"] is None
    assert document["counts"]["no_changes"] == 1
    assert (first["interpretation"], second["interpretation"]) == (None, "resolvable")
    assert first["follow_up"]
    assert second["follow_up"]


def test_filters_by_bead_and_by_time(cli: Cli, root: Path) -> None:
    of_bead = cli("attempts", "--bead", "a1", "--json", "-C", root).document
    assert [attempt["attempt_id"] for attempt in of_bead["attempts"]] == [FIRST]
    for since in ("13h", "2026-08-01T11:00:00Z"):
        recent = cli("attempts", "--since", since, "--json", "-C", root, "--now", NOW).document
        assert [attempt["attempt_id"] for attempt in recent["attempts"]] == [SECOND]
    assert cli("attempts", "--since", "lately", "-C", root).code == 2
    assert cli("attempts", "--bead", "nobody", "-C", root).code == 1


def test_people_read_na_for_an_unknown_cost(cli: Cli, root: Path) -> None:
    lines = cli("attempts", "-C", root, "--now", NOW).out.splitlines()
    assert "n/a" in lines[0]
    assert "$1.25" in lines[1]
    assert "Title of demo-a1" in lines[1]
    assert "2 attempts" in lines[-1]
    assert "$0.00" not in "\n".join(lines)


def test_no_evidence_is_no_error(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("attempts", "-C", project([bead("demo-a1")]))
    assert (ran.code, ran.out) == (0, "no attempts yet\n")


def test_a_check_that_no_attempt_followed_is_in_the_sum(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1"), bead("demo-b2")])
    sessions = root / ".ddx" / "agent-logs" / "sessions" / "sessions-2026-08.jsonl"
    sessions.parent.mkdir(parents=True)
    call = {"id": "as-1", "harness": "claude", "beadID": "demo-a1", "cost": 0.0421, "costPresent": True}
    call |= {"startedAt": "2026-08-01T10:00:00Z", "endedAt": "2026-08-01T10:00:01Z", "tokens": 3000, "exitCode": 0}
    sessions.write_text(json.dumps(call) + "\n")
    assert cli("attempts", "-C", root, "--now", NOW).out == "no attempts yet · $0.04 (checks)\n"
    assert cli("attempts", "--bead", "demo-b2", "-C", root, "--now", NOW).out == "no attempts that match\n"


def test_ends_that_ddx_recorded_without_an_id_are_counted(cli: Cli, project: ProjectFactory) -> None:
    at = "2026-08-01T{:02}:00:00Z".format
    ends = [
        {"kind": "execute-bead", "summary": "execution_failed", "body": "staging tracker", "created_at": at(hour)}
        for hour in (8, 9)
    ]
    root = project([{**bead("demo-a1"), "events": ends}, bead("demo-b2")])
    document = cli("attempts", "--json", "-C", root, "--now", NOW).document
    assert (document["attempts"], document["without_id"]) == ([], {"execution_failed": 2})
    shown = cli("attempts", "--bead", "demo-a1", "-C", root, "--now", NOW).out
    assert "2 ends that ddx recorded without an attempt id: 2 execution_failed" in shown
    assert "not listed" not in cli("attempts", "--bead", "demo-b2", "-C", root, "--now", NOW).out
    late = cli("attempts", "--since", at(9), "--json", "-C", root, "--now", NOW).document
    assert late["without_id"] == {"execution_failed": 1}
    assert "2 ends that ddx recorded without an attempt id" in cli("insights", "-C", root, "--now", NOW).out


def test_a_line_that_cannot_be_read_is_said_beside_the_attempts(cli: Cli, root: Path) -> None:
    with (root / ".ddx" / "beads.jsonl").open("a") as file:
        file.write('{"id": "demo-c3", "title": "cut o')
    for words in (("attempts",), ("insights",)):
        assert "line 3 of beads.jsonl cannot be read" in cli(*words, "-C", root, "--now", NOW).err
