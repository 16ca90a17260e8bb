"""``helix-tui ask``: every field of docs/formats/cli.md, exit codes, and nothing on stdout but the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from tests.core.ask.sessions.solar import QUESTIONS, write

FIELDS = """
answer tier_selected citations evidence controller_steps retrieval_iterations retrieval_stop_reason items
compaction_applied compaction_dropped compaction_kept compaction_policy compaction_budget
ambiguity_candidates ambiguity_scores ambiguity_selected ambiguity_reason code_alignment_applied
symbols_extracted symbols_resolved code_spans_added grounded_claim_ratio grounded_claim_threshold tree_walk
clarify ranked_files timings_ms model_calls schema
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write(tmp_path / "solar")


def test_the_document_has_every_field_and_nothing_of_the_machine(
    repository: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    trace = repository / "out" / "trace.jsonl"
    words = ["-C", str(repository), "ask", QUESTIONS[0], "--no-model", "--json", "--trace-out", str(trace)]
    assert main(words) == 0
    out = capsysbinary.readouterr().out
    found = json.loads(out)
    assert set(FIELDS.split()) <= found.keys()
    assert found["schema"] == "ask/1"
    span = {"file", "start", "end", "kind", "header", "hash", "score", "channels"}
    assert span <= found["evidence"][0].keys()
    assert {"type", "path", "hash"} <= found["items"][0].keys()
    assert str(repository).encode() not in out
    assert json.loads(trace.read_text().splitlines()[-1])["verdict"] == "PASS"
    assert len(list((repository / ".helix" / "ask" / "history").iterdir())) == 1


def test_a_dry_run_writes_no_trace(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = repository / "trace.jsonl"
    words = ["-C", str(repository), "ask", QUESTIONS[0], "--no-model", "--dry-run", "--trace-out", str(trace)]
    assert main(words) == 0
    assert f"{trace} is not written (--dry-run)" in capsys.readouterr().err
    assert not trace.exists()


def test_people_get_the_answer_with_sources(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "-C", str(repository), "--no-model", *QUESTIONS[0].split()]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sources · ")
    assert "returns panels to full output" in out
    assert "`docs/solar-restoration.md:1-3` `Solar restoration` [1]\n    # Solar restoration\n" in out
    assert "\nSources\n" not in out, "each place stands above its quote"
    assert not any(word in out for word in ("slot", "span", "coverage_ok"))
    assert "\nTree walk\n" in out, "of a tree that the repository keeps itself"
    assert main(["ask", "-C", str(repository), "--no-model", "--steps", *QUESTIONS[0].split()]) == 0
    out = capsys.readouterr().out
    assert "grounded · 1 of 1 slot · coverage_ok" in out
    assert "tree walk" in out


def test_an_answer_in_the_place_of_a_denial_shows_the_tree_walk(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    denies = "echo There is no evidence in the repository."
    assert main(["ask", "-C", str(repository), "--model-command", denies, *QUESTIONS[0].split()]) == 0
    out = capsys.readouterr().out
    assert "not used: it denies evidence that exists" in out
    assert out.index("`docs/solar-restoration.md:1-3`") < out.index("\nTree walk\n") < out.index("model ")
    assert "  docs/solar-restoration.md:1-4\n" in out.partition("\nTree walk\n")[2]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["what?", "--budget", "max_iter=2"], 2, "did you mean max_iters"),
        (["  "], 2, "no question"),
        (["what?", "--revision", "nowhere"], 1, "nowhere"),
        (["what?", "--model-command", "'"], 2, "cannot be parsed"),
    ],
)
def test_what_cannot_be_asked_is_said(
    repository: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert main(["ask", "-C", str(repository), *words]) == code
    assert said in capsys.readouterr().err


def test_read_only_leaves_nothing_behind(repository: Path) -> None:
    assert main(["ask", "-C", str(repository), "--no-model", "--read-only", "--json", QUESTIONS[0]]) == 0
    assert not (repository / ".helix").exists()


def test_a_question_without_an_answer_says_what_was_searched(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "What does the frobnicator do?"
    assert main(["ask", "-C", str(repository), "--no-model", asked]) == 0
    out = capsys.readouterr().out
    assert out.startswith("nothing found · ")
    decide = out.partition("What would decide\n")[2]
    assert "- it would need a span that speaks of “frobnicator”" in decide
    assert f"- searched: “{asked}”" in decide


def test_a_repository_of_nothing_is_answered_with_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.dat").write_bytes(b"\0\0")
    main(["ask", "-C", str(tmp_path), "--no-model", "how is a lease renewed"])
    out = capsys.readouterr().out
    assert out.startswith("nothing found · ")
    assert "Nothing is indexed: no searchable text in 1 file (1 binary)." in out
    assert "- it would need text files in this folder, or another folder: `helix-tui ask -C DIR …`\n" in out
    assert "names a file" not in out
    assert "speaks of" not in out
