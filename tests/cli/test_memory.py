"""``helix-tui memory``: the verbs of both seeds, for scripts and for people."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.embedding.weights import find_weights
from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory

FAILURE = ("--trigger", "Circular import when editing src/auth.py", "--resolution", "Move shared types out")
NAME = "circular-import-when-editing-src-auth-py"


@pytest.fixture
def root(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose memory searches by words: these tests are of the command line, not of the encoder."""
    monkeypatch.setenv("HELIX_EMBEDDER", "off")
    row = {
        "id": "demo-1",
        "title": "Break the circular import",
        "issue_type": "bug",
        "status": "open",
        "priority": 2,
        "description": "src/auth.py imports itself",
        "created_at": "2026-06-01T00:00:00Z",
        "updated_at": "2026-06-01T00:00:00Z",
    }
    return project([row], git=True)


def _run(cli: Cli, root: Path, *words: str) -> dict[str, Any]:
    ran = cli("memory", *words, "-C", root)
    assert ran.code == 0, ran.err
    assert ran.document["schema"] == "memory/1"
    return ran.document


def test_json_is_the_default_where_stdout_is_no_terminal(cli: Cli, root: Path) -> None:
    document = _run(cli, root, "store", *FAILURE)
    assert (document["status"], document["name"], document["reason"]) == ("added", NAME, "")


@pytest.mark.parametrize("words", [["store", "--trigger", "Another error", "--resolution", "x" * 20], ["learn"]])
def test_a_dry_run_leaves_every_file_as_it_was(cli: Cli, root: Path, words: list[str]) -> None:
    _run(cli, root, "store", *FAILURE)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    _run(cli, root, *words, "--dry-run")
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_every_recalled_memory_carries_its_terms_and_every_answer_its_mode(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    document = _run(cli, root, "recall", "circular import", "--limit", "3")
    assert document["mode"] == "keyword"
    assert document["detail"]
    hit = document["memories"][0]
    assert {"score", "relevance", "effectiveness", "recency", "helped", "failed"} <= hit.keys()
    expected = 0.5 * hit["relevance"] + 0.3 * hit["effectiveness"] + 0.2 * hit["recency"]
    assert hit["score"] == pytest.approx(expected, abs=2e-4)


def test_asking_where_there_is_no_memory_makes_none(cli: Cli, root: Path) -> None:
    assert _run(cli, root, "recall", "anything")["signal"] == "NO_PRIOR_MEMORY"
    assert _run(cli, root, "health")["status"] == "NEEDS_ATTENTION"
    assert _run(cli, root, "list")["memories"] == []
    assert not (root / ".helix").exists()


def test_a_refused_memory_says_why_and_fails(cli: Cli, root: Path) -> None:
    ran = cli("memory", "store", "-C", root, "--trigger", "short", "--resolution", "x")
    assert ran.code == 1
    assert (ran.document["status"], ran.document["reason"]) == ("rejected", "trigger too short")


def test_feedback_takes_names_as_json(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    document = _run(cli, root, "feedback", "--injected", json.dumps([NAME, "x"]), "--utilized", json.dumps([NAME]))
    assert (document["helped"], document["unhelpful"], document["missing"]) == (1, 0, ["x"])
    assert document["verified"] is False
    document = _run(cli, root, "feedback", "--injected", f'["{NAME}"]', "--utilized", "[]", "--verified", "passed")
    assert (document["unhelpful"], document["verified"]) == (1, True)


@pytest.mark.parametrize("text", ["[", '"', "[true]", "[[1]]"])
def test_feedback_that_is_no_list_of_names_is_a_usage_error(cli: Cli, root: Path, text: str) -> None:
    _run(cli, root, "store", *FAILURE)
    ran = cli("memory", "feedback", "--injected", text, "-C", root)
    assert ran.code == 2
    assert ran.document["error"]["fix"]


def test_both_seeds_names_do_the_same(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    _run(cli, root, "store", "--trigger", "Split the types module", "--resolution", "r", "--type", "pattern")
    ends = ("--from", "2", "--to", NAME, "--type", "solves")
    assert _run(cli, root, "relate", *ends)["status"] == "added"
    assert _run(cli, root, "edge", *ends, "--weight", "0.5")["weight"] == 1.5
    assert len(_run(cli, root, "edges", NAME)["edges"]) == 1
    assert [each["_hop"] for each in _run(cli, root, "connected", NAME)["connected"]] == [1]


def test_inject_writes_into_the_bead_and_the_ledger_and_undo_takes_it_out(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    before = (root / ".ddx/beads.jsonl").read_text()
    dry = _run(cli, root, "inject", "--bead", "demo-1", "--dry-run")
    assert dry["text"].startswith(f"FAILURES TO AVOID:\n- {NAME} [unproven]: Circular import")
    assert (root / ".ddx/beads.jsonl").read_text() == before
    document = _run(cli, root, "inject", "--bead", "demo-1")
    assert document["written"]
    row = json.loads((root / ".ddx/beads.jsonl").read_text())
    assert row["description"].startswith("src/auth.py imports itself\n\n<helix-memory>\nFAILURES TO AVOID:")
    again = _run(cli, root, "inject", "--bead", "demo-1")
    assert again["commands"] == []
    assert json.loads((root / ".ddx/beads.jsonl").read_text())["description"] == row["description"]
    shown = _run(cli, root, "get", NAME)
    assert [each["bead"] for each in shown["injections"]] == ["demo-1", "demo-1"]
    assert cli("undo", "-C", root).code == 0
    assert json.loads((root / ".ddx/beads.jsonl").read_text())["description"] == "src/auth.py imports itself"


def test_what_was_injected_into_a_bead_is_what_its_task_is_credited_for(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    _run(cli, root, "store", "--trigger", "Something never shown", "--resolution", "r")
    _run(cli, root, "inject", "--bead", "demo-1")
    both = json.dumps([NAME, "something-never-shown"])
    words = ("feedback", "--injected", both, "--utilized", both, "--verified", "passed", "--task", "demo-1")
    document = _run(cli, root, *words)
    assert (document["helped_names"], document["outside_ledger"]) == ([NAME], ["something-never-shown"])
    assert _run(cli, root, *words)["duplicate"]


def test_prune_and_decay_can_be_looked_at_first(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    for _ in range(3):
        _run(cli, root, "feedback", "--injected", f'["{NAME}"]')
    assert _run(cli, root, "prune", "--dry-run")["candidates"] == [NAME]
    document = _run(cli, root, "prune")
    assert (document["pruned"], document["remaining"], document["removed"]) == (1, 0, [NAME])
    assert _run(cli, root, "decay")["candidates_for_decay"] == []
    assert _run(cli, root, "undo")["undone"]["kind"] == "prune"
    assert _run(cli, root, "list")["total"] == 1


def test_fading_is_taken_back_too(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    _run(cli, root, "feedback", "--injected", f'["{NAME}"]', "--utilized", f'["{NAME}"]')
    later = ("--now", "2100-01-01T00:00:00Z")
    faded = _run(cli, root, "decay", "--apply", *later)
    assert (faded["decayed"], faded["done"]["kind"]) == (1, "fade")
    assert _run(cli, root, "get", NAME)["helped"] == 0.75
    _run(cli, root, "undo")
    assert _run(cli, root, "get", NAME)["helped"] == 1
    assert _run(cli, root, "prune")["done"] is None


@pytest.mark.parametrize("verb", ["edges", "connected", "suggest-edges"])
def test_an_empty_answer_tells_whether_the_memory_is_there(cli: Cli, root: Path, verb: str) -> None:
    _run(cli, root, "store", *FAILURE)
    assert _run(cli, root, verb, NAME)["missing"] == []
    assert _run(cli, root, verb, "nobody")["missing"] == ["nobody"]


def test_the_rest_of_the_verbs_answer(cli: Cli, root: Path) -> None:
    words = ("--task", "Fix the auth imports", "--approach", "split the module")
    chunk = _run(cli, root, "chunk", *words, "--outcome", "success")
    assert (chunk["status"], chunk["type"]) == ("added", "pattern")
    assert _run(cli, root, "chunk", *words, "--outcome", "Success: done")["status"] == "strengthened"
    assert _run(cli, root, "chunk", *words, "--outcome", "failed")["status"] == "skipped"
    assert _run(cli, root, "consolidate")["status"] == "skipped"
    assert _run(cli, root, "similar-recent", "Task: Fix the auth imports")["similar"][0]["_similarity"] == 1.0
    assert _run(cli, root, "suggest-edges", chunk["name"])["suggestions"] == []
    assert _run(cli, root, "embed")["embedded"] == 0
    advice = [_run(cli, root, "assess", *words)["recommendation"] for _ in range(5)]
    assert advice == ["continue", "continue", "pivot", "pivot", "escalate"]


def test_read_only_reads_and_refuses_to_write(cli: Cli, root: Path) -> None:
    ran = cli("memory", "store", *FAILURE, "--read-only", "-C", root)
    assert ran.code == 1
    assert not (root / ".helix").exists()
    _run(cli, root, "store", *FAILURE)
    assert _run(cli, root, "recall", "circular import", "--read-only")["memories"]
    assert cli("memory", "feedback", "--injected", f'["{NAME}"]', "--read-only", "-C", root).code == 1


def test_as_of_another_instant(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE, "--now", "2026-06-01T00:00:00Z")
    hit = _run(cli, root, "recall", "circular import", "--now", "2026-06-08T00:00:00Z")["memories"][0]
    assert hit["recency"] == pytest.approx(0.5)


@pytest.mark.parametrize("verb", ["get", "connected"])
def test_a_memory_that_is_not_there(cli: Cli, root: Path, verb: str) -> None:
    ran = cli("memory", verb, "nobody", "-C", root)
    assert ran.code == 1
    assert "error" in ran.document


def test_a_damaged_database_is_named_and_left(cli: Cli, root: Path) -> None:
    (root / ".helix").mkdir()
    (root / ".helix/helix.db").write_bytes(b"garbage that is no database")
    ran = cli("memory", "recall", "x", "-C", root)
    assert ran.code == 1
    assert "not an SQLite database" in ran.document["error"]["message"]
    assert (root / ".helix/helix.db").read_bytes() == b"garbage that is no database"


@pytest.mark.long
def test_a_database_without_vectors_gets_them_on_the_way(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_weights(env={"HOME": ""}).weights is None:
        pytest.skip("no package with the weights here")
    for number in range(20):
        _run(cli, root, "store", "--trigger", f"Matter number {number} of the kin{number}", "--resolution", "r")
    monkeypatch.delenv("HELIX_EMBEDDER")
    assert _run(cli, root, "health")["without_vector"] == 20
    document = _run(cli, root, "recall", "what matters")
    assert document["mode"] == "semantic"
    assert all(hit["similarity"] is not None for hit in document["memories"])
    assert _run(cli, root, "health")["without_vector"] == 0


def test_hostile_text_reaches_no_terminal(cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    cli(
        "memory",
        "store",
        "--trigger",
        "\x1b[31mred\x1b]0;title\x07 alarm of doom",
        "--resolution",
        "a\nb\x1b[2J",
        "-C",
        root,
    )
    for words in (
        ["recall", "alarm of doom"],
        ["list"],
        ["get", "1"],
        ["inject", "--objective", "red alarm of doom"],
    ):
        ran = cli("memory", *words, "--no-color", "-C", root)
        assert ran.code == 0
        assert "\x1b" not in ran.out
        assert "{" not in ran.out


def test_the_database_stays_whole(cli: Cli, root: Path) -> None:
    _run(cli, root, "store", *FAILURE)
    _run(cli, root, "inject", "--objective", "circular import in src/auth.py", "--task", "a-1")
    with sqlite3.connect(root / ".helix/helix.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
