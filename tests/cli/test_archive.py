"""The archive on the command line: counted, listed, found, explained."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.test_queue import bead
from tests.conftest import ProjectFactory

OLD = {"id": "demo-old1", "title": "Put away", "status": "closed", "closed_at": "2026-05-07T05:50:17Z"}


def make(project: ProjectFactory) -> Path:
    """A tracker whose one open bead waits for an archived one; a bead in both files; a broken line."""
    root = project([bead("demo-a1", "demo-old1"), bead("demo-b2", status="closed")])
    rows = [json.dumps(OLD), '{"id":"demo-', json.dumps({**OLD, "id": "demo-b2"})]
    (root / ".ddx" / "beads-archive.jsonl").write_text("\n".join(rows) + "\n")
    return root


def test_the_queue_counts_and_lists_the_archive_and_nothing_becomes_ready(cli: Cli, project: ProjectFactory) -> None:
    root = make(project)
    document = cli("queue", "--json", "-C", root).document
    assert document["ready"] == []
    assert document["source"]["archived"] == 1  # the tracker's row of demo-b2 wins
    archive = document["archive"]
    assert (archive["beads"], archive["closed"], archive["listed"]) == (1, 1, None)
    assert [line["line"] for line in archive["dropped"]] == [2]
    (row,) = cli("queue", "--json", "--archived", "-C", root).document["archive"]["listed"]
    assert (row["id"], row["day"]) == ("demo-old1", "2026-05-07")
    out = cli("queue", "--archived", "--filter", "away", "-C", root).out
    assert "archived 1" in out
    assert "demo-old1  2026-05-07  Put away" in out
    assert "1 more archived (2 closed in all" in out
    assert "line 2 of beads-archive.jsonl cannot be read" in out
    assert "archived 0" in cli("queue", "--archived", "--filter", "nowhere", "-C", root).out


def test_why_of_an_archived_bead_and_of_what_waits_on_it(cli: Cli, project: ProjectFactory) -> None:
    root = make(project)
    out = cli("why", "old1", "-C", root).out
    assert "closed on 2026-05-07 and archived" in out
    assert "helix-tui dep remove demo-a1 demo-old1" in out
    document = cli("why", "demo-old1", "--json", "-C", root).document
    assert (document["archived"], document["dependents"]) == (True, ["demo-a1"])
    assert "helix-tui dep remove demo-a1 demo-old1" in cli("why", "demo-a1", "-C", root).out


def test_status_and_check_count_what_is_closed_in_all(cli: Cli, project: ProjectFactory) -> None:
    root = make(project)
    for command in ("status", "check"):
        assert "1 closed, 1 more archived (2 closed in all)" in cli(command, "-C", root).out, command
    counted = cli("status", "--json", "-C", root).document["tracker"]
    assert (counted["closed"], counted["archived"], counted["closed_in_all"]) == (1, 1, 2)
    assert "archived" not in cli("check", "demo-a1", "-C", root).out.partition("queue:")[2].split("\n")[0]
    decided = cli("check", "--json", "-C", root).document
    assert decided["recommended_command"] == "helix-tui dep remove demo-a1 demo-old1", "the command that its reason has"


def test_status_and_check_name_every_state_that_beads_are_in(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1"), bead("demo-a2", status="proposed"), bead("demo-a3", status="cancelled")])
    for command, word in (("status", "Tracker"), ("check", "queue")):
        out = cli(command, "-C", root).out
        line = next(line for line in out.splitlines() if line.startswith(word))
        assert line.endswith("0 closed · 1 proposed, 1 cancelled"), line


def test_doctor_counts_the_archive_and_says_what_it_cannot_read(cli: Cli, project: ProjectFactory) -> None:
    out = " ".join(cli("doctor", "-C", make(project)).out.split())
    assert "1 more archived" in out
    assert "line 2 of beads-archive.jsonl cannot be read" in out
    assert "1 of them archived" in out


def test_a_change_of_an_archived_bead_is_refused_by_its_name_and_its_attempts_are_found(
    cli: Cli, project: ProjectFactory
) -> None:
    root = make(project)
    for words in (("set", "demo-old1", "title=x"), ("reopen", "old1"), ("dep", "add", "demo-a1", "demo-old1")):
        done = cli(*words, "-C", root)
        assert done.code == 1
        assert "demo-old1 was closed on 2026-05-07 and archived: ddx changes no archived bead" in done.err
    assert "no bead “elsewhere” in the tracker" in cli("close", "elsewhere", "-C", root).err
    assert cli("attempts", "--bead", "old1", "--json", "-C", root).document["attempts"] == []
    assert cli("attempts", "--bead", "elsewhere", "-C", root).code == 1
