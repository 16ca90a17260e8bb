"""An attempt's evidence, its diff and what HELIX reads into it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims, Queue, classify
from helix_tui.core.ddx.attempts.attempt import Attempt, Review
from helix_tui.core.ddx.attempts.evidence import PROMPT_CAP, read_diff, read_evidence
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ground.time import NS, parse_instant
from tests.programs import parse_rows

NOW = parse_instant("2026-08-01T12:00:00Z") or 0


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "base")
    return tmp_path


def commit(root: Path, text: str, subject: str = "change") -> str:
    (root / "a.txt").write_text(text)
    git(root, "commit", "-q", "-am", subject)
    return git(root, "rev-parse", "HEAD")


def test_a_diff_is_plain_whatever_the_configuration_says(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    for key, value in (("color.ui", "always"), ("diff.external", "false"), ("core.pager", "false")):
        git(repository, "config", key, value)
    result = commit(repository, "one\ntwo \x1b[31m\n")
    diff = read_diff(repository, Attempt("a", base_rev=base, result_rev=result))
    assert "+two" in diff.text
    assert "\x1b" not in diff.text
    assert (diff.error, diff.merges, diff.warning) == ("", (), "")


def test_a_preserved_attempt_shows_what_is_preserved(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    kept = commit(repository, "kept\n")
    git(repository, "update-ref", "refs/ddx/iterations/b-1/x", kept)
    git(repository, "reset", "-q", "--hard", base)
    attempt = Attempt("a", base_rev=base, result_rev=base, preserve_ref="refs/ddx/iterations/b-1/x")
    assert "+kept" in read_diff(repository, attempt).text


def test_a_merge_that_preferred_its_side_is_named(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    git(repository, "checkout", "-q", "-b", "side")
    commit(repository, "agent\n")
    git(repository, "checkout", "-q", "main")
    commit(repository, "person\n")
    git(repository, "merge", "-q", "-X", "ours", "-m", "Merge preserved iteration (ort -X ours)", "side")
    diff = read_diff(repository, Attempt("a", base_rev=base, result_rev=git(repository, "rev-parse", "HEAD")))
    assert len(diff.merges) == 1
    assert "may be lost" in diff.warning


@pytest.mark.parametrize(
    ("base", "result", "told"),
    [
        ("", "", "left no result"),
        ("head", "head", "changed nothing"),
        ("head", "0" * 40, "not in this repository"),
        ("--output=/x", "head", "is not a commit"),
        ("head", "refs/heads/../../x", "is not a commit"),
        ("HEAD;ls", "head", "is not a commit"),
    ],
)
def test_why_there_is_no_diff(repository: Path, base: str, result: str, told: str) -> None:
    head = git(repository, "rev-parse", "HEAD")
    attempt = Attempt("a", base_rev=base.replace("head", head), result_rev=result.replace("head", head))
    if result == "refs/heads/../../x":
        attempt = replace(attempt, result_rev=result)
    diff = read_diff(repository, attempt)
    assert told in diff.error
    assert diff.text == ""


def test_a_diff_outside_a_repository_says_so(tmp_path: Path) -> None:
    diff = read_diff(tmp_path, Attempt("a", base_rev="a" * 40, result_rev="b" * 40))
    assert "not a git repository" in diff.error


def test_a_huge_diff_is_cut(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    result = commit(repository, "".join(f"line {n}\n" for n in range(20_000)))
    diff = read_diff(repository, Attempt("a", base_rev=base, result_rev=result), cap=10_000)
    assert diff.truncated
    assert len(diff.text) <= 10_000


def test_evidence_of_both_eras_is_read(tmp_path: Path) -> None:
    bundle = tmp_path / "x"
    (bundle / "checks").mkdir(parents=True)
    (bundle / "result.json").write_text('{"status": "success"}')
    (bundle / "prompt.md").write_text("do \x1b[2Jit\n")
    (bundle / "no_changes_rationale.txt").write_text("status: already_satisfied\n")
    gates = {"results": [{"definition_id": "build", "required": True, "exit_code": 2, "status": "fail"}, 7]}
    (bundle / "checks.json").write_text(json.dumps(gates))
    (bundle / "checks" / "dead.json").write_text('{"status": "pass", "message": "fine"}')
    (bundle / "checks" / "bad.json").write_text("{")
    (bundle / "ac-check.json").write_text('{"items": [{"ac": 1, "result": "needs_judgment", "evidence": "prose"}]}')
    evidence = read_evidence(Attempt("x", bundle=bundle))
    assert [(c.name, c.status, c.outcome) for c in evidence.checks] == [
        ("build", "fail", "failed"),
        ("dead", "pass", "passed"),
        ("acceptance 1", "needs_judgment", "open"),
    ]
    assert (evidence.checks[0].required, evidence.checks[0].message) == (True, "exit code 2")
    assert (evidence.prompt, evidence.rationale) == ("do it\n", "status: already_satisfied\n")
    assert {file.name for file in evidence.files} >= {"checks/dead.json", "prompt.md"}
    assert len(evidence.problems) == 1


def test_a_ratchet_tells_why_it_failed_and_not_only_the_number_that_was_measured(tmp_path: Path) -> None:
    ratchet = {"metric_id": "MET-1", "reason": "fail: observed 310 ms > ratchet 250 ms"}
    gate = {"definition_id": "EX-1", "required": True, "status": "fail", "stdout": "310", "ratchet": ratchet}
    (tmp_path / "checks.json").write_text(json.dumps({"results": [gate]}))
    (check,) = read_evidence(Attempt("x", bundle=tmp_path)).checks
    assert (check.outcome, check.message) == ("failed", "fail: observed 310 ms > ratchet 250 ms")


def test_missing_evidence_says_where_it_was_looked_for() -> None:
    assert "another machine" in read_evidence(Attempt("x")).missing
    assert read_evidence(Attempt("x", review=Review("BLOCK"))).files == ()


def test_without_a_bundle_the_bead_tells_why_it_ended() -> None:
    """DDx prunes bundles; what it wrote below the first line of the event stays in the tracker."""
    told = [
        ("2026-08-01T08:00:00Z", "no_changes\nrationale: status: blocked\nreason: the gate is red\nresult_rev=aa"),
        ("2026-08-01T10:00:00Z", "no_changes\nreason: done before\n\n- see c0ffee\nbase_rev=bb\nnot told"),
        ("2026-08-01T11:00:00Z", "exit status 1\ndecision_audit={}"),
    ]
    events = [{"kind": "execute-bead", "summary": "x", "body": body, "created_at": at} for at, body in told]
    bead = parse_rows(json.dumps({"id": "b", "title": "t", "events": events}).encode()).beads["b"]
    ends = [parse_instant(at) for at, _ in told]
    first, second = (Attempt("x", "b", detail="no_changes", recorded_at=at) for at in ends[:2])
    assert read_evidence(first, bead).told == "rationale: status: blocked\nreason: the gate is red"
    assert read_evidence(second, bead).told == "reason: done before\n\n- see c0ffee"
    assert read_evidence(Attempt("x", "b", detail="exit status 1", recorded_at=ends[2]), bead).told == ""
    assert read_evidence(Attempt("x", "b", detail="never said"), bead).told == ""
    assert read_evidence(replace(first, review=Review("BLOCK", "no test")), bead).told == ""


@pytest.mark.parametrize(
    ("attempt", "interpretation", "follow_up"),
    [
        (Attempt("a"), None, "no result"),
        (Attempt("a", status="success"), None, "landed"),
        (Attempt("a", status="success", detail="auto-recovered: merged"), None, "nothing was lost"),
        (Attempt("a", status="review_block"), None, "the change has landed: read it"),
        (Attempt("a", status="push_failed", merged=True), None, "push by hand"),
        (Attempt("a", status="already_satisfied"), None, "nothing to do"),
        (Attempt("a", status="success", status_source="result", held=True), None, "not been seen"),
        (Attempt("a", status="success", preserve_ref="refs/x"), "resolvable", "refs/x"),
        (
            Attempt("a", status="land_conflict", preserve_ref="refs/x"),
            "resolvable",
            "resolve its conflicts",
        ),
        (Attempt("a", status="no_changes", retry_after=NOW + 18720 * NS), "resolvable", "retry in 5h 12m"),
        (Attempt("a", status="no_changes", retry_after=NOW - NS), "resolvable", "acceptance"),
        (Attempt("a", status="execution_failed", failure_mode="context_overflow"), "resolvable", "split"),
        (Attempt("a", status="execution_failed"), "resolvable", "stronger model"),
        (
            Attempt("a", status="execution_failed", detail="context canceled"),
            "resolvable",
            "can be tried again",
        ),
        (
            Attempt(
                "a",
                status="execution_failed",
                failure_mode="blocked_by_passthrough_constraint",
                detail="ResolveRoute: no viable routing candidate for pins min_power=7: 5 rejected",
            ),
            "resolvable",
            "HELIX_AGENT",
        ),
        (Attempt("a", status="execution_failed", failure_mode="auth_error"), "resolvable", "sign in"),
        (
            Attempt(
                "a",
                status="execution_failed",
                failure_mode="auth_error",
                detail="cancelled: auth/rate-limit detected (\\b429\\b)",
            ),
            "resolvable",
            "limit is over",
        ),
        (Attempt("a", status="brand_new"), "resolvable", "does not know"),
        (
            Attempt("a", status="no_changes", no_changes_rationale="AC 1 and AC 2 contradict each other"),
            "physics-level",
            "a person must decide",
        ),
        (
            Attempt("a", status="post_run_check_failed", no_changes_rationale="contradicts"),
            "resolvable",
            "check failed",
        ),
        (Attempt("a", status="execution_failed", no_changes_rationale="contradicts"), "resolvable", "model"),
    ],
)
def test_what_helix_reads_into_an_outcome(attempt: Attempt, interpretation: str | None, follow_up: str) -> None:
    reading = interpret(attempt, NOW)
    assert reading.interpretation == interpretation
    waits = _queue({"id": "x", "status": "proposed"})
    parked = interpret(replace(attempt, bead_id="x"), NOW, waits).interpretation
    expected = {"resolvable": "parked", "physics-level": "physics-level"}
    assert interpretation is None or parked == expected[interpretation]
    assert parked is None or not attempt.landed
    assert follow_up in reading.follow_up


LANDED = Attempt("a", "x", status="success", landed_rev="a" * 40)
KEPT = Attempt("a", "x", status="land_conflict", preserve_ref="refs/ddx/iterations/x/a")
SATISFIED = Attempt("a", "x", status="already_satisfied")
FAULTED = Attempt("a", "x", status="review_block", landed_rev="a" * 40)


@pytest.mark.parametrize(
    ("attempt", "row", "follow_up"),
    [
        (LANDED, {}, "it landed, but its bead is still open: look at the result, then `helix-tui close x`"),
        (LANDED, {"status": "closed"}, "nothing to do: it landed"),
        (SATISFIED, {}, "the work was done before, but its bead is still open: look at the result"),
        (SATISFIED, {"status": "closed"}, "nothing to do"),
        (KEPT, {}, "resolve its conflicts with the branch"),
        (KEPT, {"status": "closed"}, "nothing to do: its bead is closed"),
        (Attempt("a", "x", status="execution_failed"), {"status": "cancelled"}, "nothing to do: its bead is cancelled"),
        (FAULTED, {"status": "closed"}, "the change has landed: read it"),
        (Attempt("a", "x"), {}, "it left no result: read its transcript"),
        (Attempt("", "x"), {}, "release its claim: `helix-tui unclaim x`"),
    ],
)
def test_what_is_to_be_done_after_an_attempt_depends_on_its_bead(
    attempt: Attempt, row: dict[str, str], follow_up: str
) -> None:
    """`why` calls a bead ready while an attempt on it says that nothing is to be done."""
    assert follow_up in interpret(attempt, NOW, _queue({"id": "x", **row})).follow_up


def test_a_bead_that_is_worked_on_again_is_not_to_be_closed() -> None:
    queue = classify(
        _queue({"id": "x", "status": "in_progress"}).beads, now=NOW, claims=Claims(running=frozenset({"x"}))
    )
    assert interpret(LANDED, NOW, queue).follow_up == "it landed, and its bead is being worked on again"


def _queue(row: dict[str, str]) -> Queue:
    return classify(parse_rows(json.dumps({"title": "t", **row}).encode()).beads, now=NOW)


def test_real_bundles_are_read_without_harm(shared: Path) -> None:
    folders = sorted((shared / "data" / "ddx" / "executions").iterdir())
    for folder in folders:
        evidence = read_evidence(Attempt(folder.name, bundle=folder))
        assert evidence.files
        assert not evidence.problems
        assert "\x1b" not in evidence.prompt + evidence.result + evidence.review


def test_the_diff_of_an_attempt_leaves_out_its_own_record(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD")
    for name in (".ddx/executions/a/manifest.json", ".ddx/executions/b/manifest.json", "work.txt"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("one\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "work and its record")
    diff = read_diff(repository, Attempt("a", base_rev=base, result_rev=git(repository, "rev-parse", "HEAD")))
    assert "work.txt" in diff.text
    assert ".ddx/executions/b/" in diff.text
    assert ".ddx/executions/a/" not in diff.text


@pytest.mark.parametrize(
    ("written", "shown", "beyond"),
    [
        (b"x" * 900_000, "x" * PROMPT_CAP, "\n\u2026 700,000 more bytes"),
        ("x" * (PROMPT_CAP - 1) + "\u00e9y", "x" * (PROMPT_CAP - 1), "\n\u2026 3 more bytes"),
        ("\u00e9" * (PROMPT_CAP // 2), "\u00e9" * (PROMPT_CAP // 2), ""),
        (b"half \xc3", "half \ufffd", ""),
    ],
    ids=["ascii", "character cut", "just as long", "broken"],
)
def test_a_long_text_says_how_much_of_it_is_left_out(
    tmp_path: Path, written: bytes | str, shown: str, beyond: str
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "prompt.md").write_bytes(written if isinstance(written, bytes) else written.encode())
    prompt = read_evidence(Attempt("a", bundle=bundle)).prompt
    assert prompt == shown + beyond
