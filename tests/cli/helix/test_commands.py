"""Every HELIX command on a scripted ddx: what it prints, what it exits with, what it leaves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.commands import ROWS
from helix_tui.core.ground.time import format_instant, now_ns
from tests.cli.conftest import Cli
from tests.cli.helix.conftest import BUILDABLE
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = pytest.mark.long

# --- the surface -------------------------------------------------------------------------------------------


def test_help_shows_the_command_surface_and_key_options(cli: Cli) -> None:
    ran = cli("help")
    assert ran.code == 0
    surface = "run status build check align backfill evolve design polish next review experiment triage commit tracker"
    for name in (*surface.split(), "frame", "input", "stuck", "start", "stop", "help", "implement", "plan"):
        assert f"\n  {name} " in ran.out
    for heading in ("first-class", "compatibility", "deprecation candidates"):
        assert heading in ran.out
    assert "--max-cycles" in ran.out
    assert "--autonomy" in ran.out


def test_execution_surfaces_are_classified(cli: Cli) -> None:
    groups = {group: [row["name"] for row in rows] for group, rows in cli("help", "--json").document["groups"].items()}
    assert {"input", "check", "align", "review", "design", "polish", "backfill"} <= set(groups["first-class"])
    assert {"tracker", "start", "stop", "plan"} <= set(groups["compatibility"])
    assert set(groups["deprecation"]) == {"run", "build", "implement"}


def test_help_prefers_input_and_ddx_own_loop(cli: Cli) -> None:
    out = cli("help").out
    assert "Prefer `input` and ddx's own loop" in out
    assert "own neither claims nor landing, closing or retries" in out


@pytest.mark.parametrize("name", sorted(ROWS))
def test_every_command_has_a_help_of_its_own(cli: Cli, name: str) -> None:
    ran = cli(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"usage: helix-tui {name}")


# --- check -------------------------------------------------------------------------------------------------


def test_check_decides_build_from_facts_without_asking(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    document = helix(world, "check", "--json").document
    assert (document["next_action"], document["decided_by"]) == ("BUILD", "facts")
    assert document["recommended_command"] == "ddx work"
    assert document["queue_health"]["ready_execution"] == 1
    assert document["would_change_if"]
    assert not world.calls


def test_check_answers_where_nothing_can_be_written_and_says_so(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    (world.root / ".helix" / "curation.lock").mkdir(parents=True)
    ran = helix(world, "check", "--no-model")
    assert ran.code == 0
    assert ran.out.startswith("NEXT_ACTION: BUILD")
    assert "what was seen cannot be kept" in ran.err


def test_check_asks_an_agent_where_facts_do_not_decide(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers("Some talk.\n**NEXT_ACTION:** `ALIGN`\nScope: docs\n\n## Stop Or Escalation Condition\nno gaps left")
    document = helix(world, "check", "--json").document
    assert (document["next_action"], document["decided_by"]) == ("ALIGN", "prompt")
    assert document["would_change_if"] == "no gaps left"
    assert "run --json --prompt" in world.calls[0]
    assert "--permissions safe" in world.calls[0]


def test_check_that_names_no_code_fails(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers("I cannot say.")
    ran = helix(world, "check")
    assert ran.code == 1
    assert "unable to determine NEXT_ACTION" in ran.err


def test_cooldown_alone_is_wait_with_the_next_time(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **{"work-retry-after": "2099-01-02T03:04:05Z"}), row("a-2", "a-1")])
    document = helix(world, "check", "--json").document
    assert (document["next_action"], document["next_eligible"]) == ("WAIT", "2099-01-02T03:04:05Z")
    assert not world.calls


def test_dangling_dependencies_are_polish(helix: Any, stage: StageFactory) -> None:
    document = helix(stage([row("a-1", "gone-1")]), "check", "--json").document
    assert document["next_action"] == "POLISH"
    assert document["dangling"] == [{"bead_id": "a-1", "missing": "gone-1"}]
    assert document["waits_on_cancelled"] == []


def test_a_cancelled_dependency_is_not_called_missing(helix: Any, stage: StageFactory) -> None:
    proposed = row("d-1", "b-1", status="proposed")
    world = stage([row("a-1", "b-1"), row("b-1", status="cancelled"), row("c-1"), proposed])
    document = helix(world, "check", "--json").document
    waits = [{"bead_id": name, "cancelled": "b-1"} for name in ("a-1", "d-1")]  # whatever else holds it
    assert (document["dangling"], document["waits_on_cancelled"]) == ([], waits)
    (reason,) = [each for each in document["reasons"] if each["refs"] == ["a-1", "b-1"]]
    assert reason["code"] == "cancelled_dependency"
    assert reason["detail"].endswith("waits on b-1 (cancelled)")


def test_vague_acceptance_of_all_that_is_ready_is_polish(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", acceptance="it works correctly")])
    assert helix(world, "check", "--json").document["vague"] == ["a-1"]
    world.rewrite("a-1", acceptance="`pytest -q` passes")
    assert helix(world, "check", "--json").document["next_action"] == "BUILD"


def test_missing_authority_is_design(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **{**BUILDABLE, "spec-id": "FEAT-009"})])
    docs = world.root / "docs"
    docs.mkdir()
    (docs / "FEAT-001-x.md").write_text("---\nddx:\n  id: FEAT-001\n---\n")
    document = helix(world, "check", "--json").document
    assert (document["next_action"], document["missing_authority"]) == ("DESIGN", ["a-1"])
    (docs / "FEAT-009-y.md").write_text("---\nddx:\n  id: FEAT-009\n---\n")
    assert helix(world, "check", "--json").document["next_action"] == "BUILD"


def test_drift_is_found_at_check_and_stays_until_it_is_acknowledged(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE), row("e-1", issue_type="epic")])
    assert helix(world, "check", "--json").document["drift"] == []
    world.rewrite("a-1", parent="e-1")
    document = helix(world, "check", "--json").document
    assert document["next_action"] == "POLISH"
    assert [each["field"] for each in document["drift"]] == ["parent"]
    assert "execution-eligible" not in world.rows()["a-1"]
    helix(world, "check", "--acknowledge", "--json")
    assert helix(world, "check", "--json").document["drift"] == []


def test_proposed_beads_alone_are_guidance(helix: Any, stage: StageFactory) -> None:
    assert helix(stage([row("a-1", status="proposed")]), "check", "--json").document["next_action"] == "GUIDANCE"


def files_of(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_dry_run_prints_the_exact_command(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    before = files_of(world.root)
    verb = {"april": "ddx agent execute-loop --once --json --local", "head": "ddx work --once --json"}["head"]
    assert helix(world, "run", "--dry-run").out == f"{verb}\n"
    asks = {"april": "ddx agent run --json --prompt", "head": "ddx run --json --prompt"}["head"]
    for name in ("check", "design", "plan", "polish", "review", "backfill", "frame", "experiment"):
        assert helix(world, name, "--dry-run").out.startswith(asks), name
    assert helix(world, "evolve", "--dry-run", "x").out.startswith(asks)
    assert helix(world, "input", "--dry-run", "x").out.startswith(asks)
    one = {"april": "ddx agent execute-bead a-1 --json", "head": "ddx try a-1"}["head"]
    assert helix(world, "build", "--dry-run").out == f"{one}\n"
    align = helix(world, "align", "--dry-run").out.split("\nddx ")
    assert align[0].startswith("ddx bead create 'align: repo'")
    assert "Scope areas: ui, api, data, infra, cli" in align[0]
    assert f"ddx {align[1]}".startswith(asks)
    close = helix(world, "experiment", "--close", "--dry-run")
    assert close.out.startswith(asks)
    assert "CLOSE SESSION" in close.err
    assert not world.calls
    assert list(world.rows()) == ["a-1"]
    assert files_of(world.root) == before


def test_a_stage_is_told_the_context_of_now_and_not_of_the_last_run(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    old = world.root / ".helix" / "context.md"
    old.parent.mkdir(exist_ok=True)
    old.write_text("# HELIX Execution Context\n\nIssue counts: ready=77\n")
    told = helix(world, "design", "--dry-run").err
    assert "Issue counts: ready=2, open=2" in told
    assert "ready=77" not in told
    assert "Authority order" in told
    assert "not in its acceptance" not in told, "a rule of executing a bead"
    assert "Issue counts" not in helix(world, "check", "--ask", "--dry-run").err


# --- planning stages ---------------------------------------------------------------------------------------


def test_align_first_acquires_a_governing_bead(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.answers({"output": "ALIGN_STATUS: COMPLETE\nGAPS_FOUND: 2"})
    document = helix(world, "align", "--json").document
    governing = world.rows()[document["governing_bead"]]
    assert {"kind:planning", "action:align"} <= set(governing["labels"])
    assert governing["title"] == "align: repo"
    assert document["governing_bead"] in world.prompt("align")
    assert document["trailers"]["GAPS_FOUND"] == "2"


def test_align_refuses_a_second_one_while_it_is_worked_on(helix: Any, stage: StageFactory) -> None:
    from helix_tui.core.ground.time import format_instant, now_ns

    labels = ["helix", "kind:planning", "action:align"]
    claim = {"claimed-pid": str(os.getpid()), "claimed-at": format_instant(now_ns()), "owner": "sam"}
    world = stage([row("a-1", title="align: repo", labels=labels, status="in_progress", **claim)])
    ran = helix(world, "align")
    assert ran.code == 1
    assert "refusing duplicate dispatch" in ran.err
    assert not world.calls


def test_backfill_enforces_trailers_and_report(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    whole = "BACKFILL_STATUS: COMPLETE\nBACKFILL_REPORT: docs/report.md\nRESEARCH_EPIC: none"
    world.answers(
        "BACKFILL_REPORT: docs/report.md\nRESEARCH_EPIC: none",
        "BACKFILL_STATUS: COMPLETE\nRESEARCH_EPIC: none",
        "BACKFILL_STATUS: COMPLETE\nBACKFILL_REPORT: docs/report.md",
        whole,
        {"output": whole, "files": {"docs/report.md": "# Report\n"}},
        {"output": whole.replace("COMPLETE", "BLOCKED")},
    )
    runs = [helix(world, "backfill", "docs") for _ in range(6)]
    assert [ran.code for ran in runs] == [1, 1, 1, 1, 0, 1]
    assert "backfill output missing BACKFILL_STATUS trailer" in runs[0].err
    assert "missing BACKFILL_REPORT trailer" in runs[1].err
    assert "missing RESEARCH_EPIC trailer" in runs[2].err
    assert "declared backfill report does not exist: docs/report.md" in runs[3].err
    assert "backfill report=docs/report.md" in runs[4].err


def test_a_report_outside_the_repository_does_not_count(helix: Any, stage: StageFactory, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("x")
    world = stage([row("a-1")])
    world.answers("BACKFILL_STATUS: COMPLETE\nBACKFILL_REPORT: ../elsewhere.md\nRESEARCH_EPIC: none")
    assert helix(world, "backfill").code == 1


def test_review_exits_ten_on_findings(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.answers(
        "REVIEW_STATUS: CLEAN",
        "REVIEW_STATUS: ISSUES_FOUND\nISSUES_COUNT: 3\nFINDINGS_FILED: 2",
        "REVIEW_STATUS: ISSUES_FOUND",
        "no trailers",
    )
    runs = [helix(world, "review") for _ in range(4)]
    assert [ran.code for ran in runs] == [0, 10, 1, 1]
    assert "review reported 3 issue(s), 2 filed as tracker issues" in runs[1].err


@pytest.mark.parametrize("name", ["review", "polish", "align"])
def test_a_bead_that_does_not_exist_costs_no_call(name: str, helix: Any, stage: StageFactory) -> None:
    world = stage([row("demo-1"), row("demo-2", labels=["area:demo-web"])])
    for more in ([], ["--dry-run"]):
        ran = helix(world, name, "demo-nothere", *more)
        assert ran.code != 0
        assert "the tracker has no such bead" in ran.err
    assert not world.calls
    assert list(world.rows()) == ["demo-1", "demo-2"]
    (world.root / "demo-docs").mkdir()
    for word in ("demo-web", "demo-docs", "demo-2", "repo", "ui"):
        assert helix(world, name, word, "--dry-run").code == 0, word


@pytest.mark.parametrize("name", ["review", "polish", "align"])
def test_a_scope_that_names_nothing_costs_no_call(name: str, helix: Any, stage: StageFactory) -> None:
    world = stage([row("demo-1", title="Take payments", labels=["area:billing"])], git=True)
    (world.root / "docs").mkdir()
    (world.root / "docs" / "ledger.md").write_text("---\nddx:\n  id: FEAT-007\n---\n# Rounding of sums\n")
    (world.root / ".ddx" / "beads-archive.jsonl").write_text(json.dumps(row("demo-9", status="closed")) + "\n")
    git = ("git", "-C", str(world.root), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("add", "docs"), ("commit", "-qm", "docs")):
        subprocess.run([*git, *words], check=True)
    for word, near in (("biling", "billing"), ("ledgre.md", "ledger.md"), ("FEAT-070", "FEAT-007")):
        for more in ([], ["--dry-run"]):
            ran = helix(world, name, word, *more)
            assert ran.code != 0, word
            assert f"cannot {name} {word}: no bead" in ran.err
            assert near in ran.err
    assert not world.calls
    assert list(world.rows()) == ["demo-1"]
    there = ("billing", "docs/ledger.md", "docs/*.md", "feat-007", "rounding", "payments", "demo-9", "HEAD", "area:ui")
    for word in (*there, "the parser of dates"):
        assert helix(world, name, word, "--dry-run").code == 0, word


def test_a_repository_overrides_a_prompt(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    own = world.root / ".helix" / "prompts" / "polish.md"
    own.parent.mkdir(parents=True)
    own.write_text("Ours: $scope for $$5\n\n$trailers\n")
    world.answers("POLISH_STATUS: COMPLETE")
    assert helix(world, "polish", "e-7").code == 0
    assert "\nOurs: e-7 for $5\n\nPOLISH_STATUS: CONVERGED |" in world.prompt("polish")


def test_stance_of_each_stage_stands_in_its_prompt(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    stances = {"review": "adversarial", "align": "drift-seeking", "design": "exploratory"}
    world.answers("REVIEW_STATUS: CLEAN", "ALIGN_STATUS: COMPLETE", "PLAN_STATUS: CONVERGED")
    for name, stance in stances.items():
        helix(world, name)
        assert stance in world.prompt(name)


def test_evolve_wants_a_requirement(helix: Any, stage: StageFactory) -> None:
    ran = helix(stage([row("a-1")]), "evolve")
    assert ran.code == 1
    assert "evolve requires a requirement description" in ran.err


# --- build, next, triage, commit, tracker ------------------------------------------------------------------


def test_build_executes_one_chosen_bead(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", labels=["area:x"])])
    document = helix(world, "build", "area:x", "--json").document
    assert document["bead_id"] == "a-2"
    assert world.executed == ["a-2 success"]
    assert (document["status"], document["closed"]) == ("success", True)


def test_april_build_says_what_it_leaves_undone(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", era="april")], "april")
    world.turns({"close": False})
    ran = helix(world, "implement")
    assert "neither claims nor closes" in ran.err
    assert "helix-tui close a-1" in ran.out


def test_build_without_a_match_dispatches_nothing(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    ran = helix(world, "build", "a-1")
    assert ran.code == 1
    assert "no execution-ready bead matched the build selector" in ran.err
    assert not world.calls


def test_next_prints_the_first_ready_id(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", "a-2"), row("a-2")])
    assert helix(world, "next").out == "a-2\n"
    assert helix(world, "next", "--json").document["siblings"] == []
    world.rewrite("a-2", status="blocked")
    assert helix(world, "next").out == "no ready issues\n"


def test_next_says_that_the_bead_waits_for_an_answer(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.store.ask("ambiguous", "which of both?", key="k", bead_id="a-1")
    ran = helix(world, "next")
    assert (ran.out, "waits for your answer to q-1: which of both?" in ran.err) == ("a-1\n", True)
    causes = [helix(world, *words, "--json").document["causes"] for words in (("next",), ("why", "a-1"))]
    assert causes == [["waits for your answer to q-1: which of both?"]] * 2
    assert "  q-1  " in helix(world, "needs").out, "the command that answers wants it"


def test_a_cut_off_line_is_told_of_by_what_judges_a_bead(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    with open(world.root / ".ddx" / "beads.jsonl", "a") as tracker:
        tracker.write('{"id": "a-2", "sta\n')
    for words in (("next",), ("why", "a-1"), ("stuck",), ("status",)):
        assert "line 2 of beads.jsonl cannot be read" in helix(world, *words).err, words


def test_triage_makes_only_valid_beads(helix: Any, stage: StageFactory) -> None:
    world = stage()
    base = ("triage", "Parse it", "--labels", "helix,phase:build,kind:build", "--spec-id", "FEAT-1")
    vague = helix(world, *base, "--acceptance", "it works")
    assert vague.code == 1
    assert "no machine can check" in vague.err
    missing = helix(world, "triage", "Parse it", "--acceptance", "`pytest` passes")
    assert missing.code == 1
    assert not world.rows()
    document = helix(world, *base, "--acceptance", "`pytest -q` passes", "--json").document
    made = world.rows()[document["created"][0]]
    assert (made["spec-id"], made["execution-eligible"]) == ("FEAT-1", True)
    assert (world.root / ".helix" / "journal.jsonl").read_text().count("Parse it") > 0


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


def test_commit_stages_commits_and_closes(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", title="Do the thing")], git=True)
    (world.root / "f.txt").write_text("one\n")
    _git(world.root, "add", "f.txt")
    _git(world.root, "commit", "-q", "-m", "f")
    (world.root / "f.txt").write_text("two\n")
    ran = helix(world, "commit", "a-1")
    assert ran.code == 0
    assert "no staged changes — staging all modified files" in ran.err
    # the work, then the tracker: nothing of it is left uncommitted (case 68)
    assert _git(world.root, "log", "-2", "--format=%s").split("\n")[:2] == [
        "a-1 close tracker bead",
        "a-1 Do the thing",
    ]
    assert "Verification: ddx bead show a-1 --json" in _git(world.root, "log", "-1", "--format=%b")
    assert _git(world.root, "status", "--porcelain", "--untracked-files=no") == ""
    work = _git(world.root, "rev-parse", "HEAD~1").strip()
    assert (world.rows()["a-1"]["status"], world.rows()["a-1"]["closing_commit_sha"]) == ("closed", work)


def test_commit_without_an_id_names_the_files(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / "f.txt").write_text("one\n")
    _git(world.root, "add", "f.txt")
    assert helix(world, "commit").code == 0
    assert _git(world.root, "log", "-1", "--format=%s").strip() == "update f.txt"


def test_commit_fails_where_nothing_changed(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    ran = helix(world, "commit", "a-1")
    assert ran.code == 1
    assert "nothing to commit" in ran.err
    assert world.rows()["a-1"]["status"] == "open"


def test_commit_takes_no_record_of_ddx_for_work(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    world.rewrite("a-1", title="changed")
    before = _git(world.root, "rev-parse", "HEAD")
    for words in (("commit", "a-1"), ("commit", "a-1", "--dry-run")):
        ran = helix(world, *words)
        assert (ran.code, "only ddx's own records" in ran.err) == (1, True)
    _git(world.root, "add", "-A")
    assert helix(world, "commit", "a-1").code == 1
    assert (_git(world.root, "rev-parse", "HEAD"), world.rows()["a-1"]["status"]) == (before, "open")
    (world.root / "work.txt").write_text("done")
    _git(world.root, "add", "work.txt")
    ran = helix(world, "commit", "a-1")
    assert ran.code == 0, ran.err
    assert "left out of the commit" in ran.err
    assert _git(world.root, "show", "--name-only", "--format=", "HEAD~1").strip() == "work.txt"
    assert _git(world.root, "show", "--name-only", "--format=", "HEAD").strip() == ".ddx/beads.jsonl"


def test_commit_looks_at_dependencies_before_it_commits(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", "a-2"), row("a-2")], git=True)
    (world.root / "work.txt").write_text("done")
    _git(world.root, "add", "work.txt")
    before = _git(world.root, "rev-parse", "HEAD")
    for words in (("commit", "a-1"), ("commit", "a-1", "--dry-run")):
        ran = helix(world, *words)
        assert (ran.code, "nothing was committed: a-1 waits on a-2" in ran.err) == (1, True)
    assert _git(world.root, "rev-parse", "HEAD") == before
    assert world.rows()["a-1"]["status"] == "open"


def test_commit_fails_where_the_build_gate_fails(
    helix: Any, stage: StageFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stage([row("a-1")], git=True)
    npm = tmp_path / "tools" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}{os.pathsep}{os.environ['PATH']}")
    (world.root / "package.json").write_text("{}")
    _git(world.root, "add", "package.json")
    assert helix(world, "trust", "--yes").code == 0
    ran = helix(world, "commit", "a-1")
    assert ran.code == 1
    assert "BUILD GATE FAILED" in ran.err
    assert "package.json" in _git(world.root, "diff", "--cached", "--name-only")
    assert world.rows()["a-1"]["status"] == "open"


def test_commit_takes_the_gate_that_is_there(
    helix: Any, stage: StageFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stage([row("a-1")], git=True)
    cargo = tmp_path / "tools" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text("#!/bin/sh\nexit 1\n")
    cargo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{cargo.parent}{os.pathsep}{os.environ['PATH']}")
    # lefthook is not installed here
    (world.root / "lefthook.yml").write_text("pre-commit:\n")
    (world.root / "Cargo.toml").write_text("[workspace]\n")
    _git(world.root, "add", "lefthook.yml", "Cargo.toml")
    assert helix(world, "trust", "--yes").code == 0
    ran = helix(world, "commit", "a-1")
    assert (ran.code, "`cargo check --workspace` ended with 1" in ran.err) == (1, True), ran.err
    ran = helix(world, "commit", "a-1", "--no-gate")
    assert (ran.code, "without the build gate, as asked" in ran.err) == (0, True)


def test_commit_says_that_there_is_no_gate(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / "work.txt").write_text("done")
    _git(world.root, "add", "work.txt")
    ran = helix(world, "commit", "a-1")
    assert (ran.code, "no build gate here" in ran.err) == (0, True)


def test_commit_that_cannot_push_says_so_and_leaves_the_bead_open(
    helix: Any, stage: StageFactory, tmp_path: Path
) -> None:
    world = stage([row("a-1")], git=True)
    _git(world.root, "clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    _git(world.root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    _git(world.root, "push", "-q", "-u", "origin", "main")
    (tmp_path / "remote.git").rename(tmp_path / "gone.git")
    (world.root / "f.txt").write_text("one\n")
    _git(world.root, "add", "f.txt")
    ran = helix(world, "commit", "a-1")
    assert ran.code == 1
    assert "stays open" in ran.err
    assert f"'{tmp_path / 'remote.git'}' does not appear to be a git repository" in ran.err
    assert world.rows()["a-1"]["status"] == "open"


def test_tracker_hands_words_on_and_journals_changes(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    assert json.loads(helix(world, "tracker", "show", "a-1", "--json").out)["id"] == "a-1"
    assert helix(world, "tracker", "update", "a-1", "--claim").code == 0
    assert world.rows()["a-1"]["status"] == "in_progress"
    assert helix(world, "tracker", "update", "a-1", "--unclaim").code == 0
    assert world.rows()["a-1"]["status"] == "open"
    assert helix(world, "tracker", "dep", "add", "a-2", "a-1").code == 0
    made = helix(world, "tracker", "create", "New one", "--priority", "3").out.strip()
    assert made in world.rows()
    assert helix(world, "tracker", "close", "a-1").code == 0
    journal = (world.root / ".helix" / "journal.jsonl").read_text()
    assert journal.count('"kind":"tracker"') >= 5
    entries = journal.count('"record":"intent"')
    for words in (["close", "--help"], ["dep", "tree", "a-2"], ["create", "--help"], ["update", "a-2"]):
        ran = helix(world, "tracker", *words)
        assert (ran.code, bool(ran.out) or words == ["update", "a-2"]) == (0, True), words
    assert helix(world, "tracker", "--read-only", "dep", "tree", "a-2").code == 0
    assert helix(world, "tracker", "--read-only", "close", "a-2").code == 1
    refused = helix(world, "tracker", "show", "none-9")
    assert (refused.code, "not found" in refused.err) == (1, True), "ddx's own words and exit code"
    journal = (world.root / ".helix" / "journal.jsonl").read_text()
    assert journal.count('"record":"intent"') == entries, "what changed nothing is not journalled"
    assert helix(world, "undo").code == 0
    assert world.rows()["a-1"]["status"] == "open"
    assert helix(world, "tracker", "migrate", "--dry-run", "x").code == 1
    assert helix(world, "tracker", "--dry-run", "migrate", "x").out == "ddx bead migrate x\n"


# --- input, questions --------------------------------------------------------------------------------------


def test_input_wants_exactly_one_request(helix: Any, stage: StageFactory) -> None:
    assert helix(stage([row("a-1")]), "input").code == 1


def test_a_physics_level_conflict_in_an_answer_stops_and_can_be_answered(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    world.answers("INPUT_STATUS: COMPLETE\nCONFLICTS: physics-level: real-time and batch only")
    ran = helix(world, "input", "--autonomy", "high", "make it so")
    assert ran.code == 1
    (question,) = world.questions
    assert question.stops
    assert helix(world, "check", "--json").document["next_action"] == "GUIDANCE"
    assert helix(world, "run").code == 0
    assert not world.executed
    listed = helix(world, "input", "--questions", "--json").document["questions"]
    assert listed[0]["kind"] == "physics-level"
    assert helix(world, "input", "--answer", question.id, "batch").code == 0
    assert helix(world, "check", "--json").document["next_action"] == "BUILD"


def test_low_autonomy_asks_before_a_request_is_shaped(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.answers("INPUT_STATUS: COMPLETE")
    ran = helix(world, "input", "--autonomy", "low", "make it so")
    assert ran.code == 1
    assert not world.calls
    helix(world, "input", "--answer", world.questions[0].id, "yes")
    assert helix(world, "input", "--autonomy", "low", "make it so").code == 0


# --- status, stuck, experiment -----------------------------------------------------------------------------


def test_status_reports_a_structured_snapshot_from_persisted_state(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", "a-3"), row("a-3", status="blocked")])
    never = helix(world, "status", "--json").document
    assert (never["condition"], never["last_stop_reason"], never["active_run"]) == ("never", "unknown", None)
    world.answers("NEXT_ACTION: WAIT")
    helix(world, "run", "--no-auto-review")
    document = helix(world, "status", "--json").document
    assert document["condition"] == "stopped"
    assert document["last_stop_reason"] == "next_action:WAIT"
    assert document["current_cycle"] == 1
    assert document["run"]["completed_cycles"] == 1
    assert document["tracker"]["closed"] == 1
    assert {each["id"]: each["reason"] for each in document["parked_beads"]} == {
        "a-2": "dep-blocked",
        "a-3": "external",
    }
    said = helix(world, "status").out
    assert "HELIX Status" in said
    assert "Not moving: a-2 “Title of a-2” (dep-blocked), a-3 “Title of a-3” (external)" in said


def test_status_names_the_beads_of_the_loop_itself_apart(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("r-1", labels=["helix", "helix-injected:review-finding"])])
    world.answers("NEXT_ACTION: WAIT")
    helix(world, "run", "--no-auto-review", "--no-auto-align")
    run = helix(world, "status", "--json").document["run"]
    assert (run["attempted_cycles"], run["completed_cycles"], run["supervisory_cycles"]) == (2, 1, 1)
    assert "Last run: 1 completed of 2 attempted, 1 supervisory, " in helix(world, "status").out


def test_undo_takes_back_what_a_person_did_and_not_what_the_loop_did_since(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", priority=4, **{"execution-eligible": False})])
    assert helix(world, "set", "a-2", "notes=mine").code == 0
    world.answers("NEXT_ACTION: WAIT")
    helix(world, "run", "--no-auto-align", "--review-threshold", "0")
    *since, mine = helix(world, "journal", "--json").document["operations"]
    assert "create" in {each["kind"] for each in since}
    assert ({each["who"]["kind"] for each in since}, mine["who"]["kind"]) == ({"loop"}, "cli")
    assert helix(world, "undo").code == 0
    assert "notes" not in world.rows()["a-2"]


def test_stuck_tells_reason_and_what_one_could_do(helix: Any, stage: StageFactory) -> None:
    world = stage(
        [
            row("a-1", "gone-1"),
            row("a-2", **{"work-retry-after": "2099-01-01T00:00:00Z"}),
            row("e-1", issue_type="epic"),
            row("c-1", "a-2", parent="e-1"),
            # April picks a bead by its type, whatever its title says: this one is next
            row("e-2", era="april", title="Epic: picked like any other", **{"execute-loop-last-status": "no_changes"}),
            row("c-2", "a-2", parent="e-2"),
        ]
    )
    found = {each["bead_id"]: each for each in helix(world, "stuck", "--json").document["stuck"]}
    assert (found["a-1"]["reason"], found["a-1"]["suggested_action"]) == ("dep-blocked", "escalate")
    assert (found["a-2"]["reason"], found["a-2"]["next_eligible_at"]) == (
        "retry-parked",
        "2099-01-01T00:00:00Z",
    )
    assert found["c-1"]["blocking_deps"] == ["a-2"]
    assert "e-1" not in found, "its bead is the cause"
    assert found["c-1"]["detail"].endswith("nothing under e-1 “Title of e-1” can be picked")
    assert "e-2" not in found
    said = helix(world, "stuck").out
    assert "could: leave it until then, or to have it tried now: `helix-tui tracker cooldown clear a-2`" in said
    assert "could: look, and decide: `helix-tui why a-1`" in said


def test_experiment_requires_a_clean_worktree(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / "f.txt").write_text("one")
    _git(world.root, "add", "f.txt")
    ran = helix(world, "experiment", "faster")
    assert ran.code == 1
    assert "worktree has uncommitted changes" in ran.err
    assert not world.calls


def test_experiment_takes_a_file_that_git_does_not_know_for_a_change(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / "new.txt").write_text("one")
    ran = helix(world, "experiment", "faster")
    assert (ran.code, "worktree has uncommitted changes" in ran.err) == (1, True)
    assert not world.calls


@pytest.mark.parametrize("words", [("status",), ("next",), ("stop",), ("help",), ("queue",), ("stuck",)])
def test_every_command_takes_dry_run_and_changes_nothing(helix: Any, stage: StageFactory, words: tuple[str]) -> None:
    world = stage([row("a-1")])
    before = world.rows()
    assert helix(world, *words, "--dry-run").code == 0
    assert world.rows() == before
    assert not (world.root / ".helix").exists()


def test_stop_says_what_it_would_end(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        (world.root / ".ddx" / "helix.pid").write_text(f"{sleeper.pid} {format_instant(now_ns())}\n")
        said = helix(world, "stop", "--dry-run", "--json").document
        assert (said["dry_run"], said["pid"], said["how"]) == (True, sleeper.pid, "stopped")
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait(10)


def test_experiment_takes_no_record_of_ddx_for_a_change(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    world.rewrite("a-1", title="changed")
    world.answers("EXPERIMENT_STATUS: CONVERGED\nEXPERIMENT_KEPT: 2")
    assert helix(world, "experiment", "faster").code == 0


def test_experiment_allows_files_that_git_ignores(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / ".git" / "info" / "exclude").write_text("new.txt\n")
    (world.root / "new.txt").write_text("x")
    world.answers("EXPERIMENT_STATUS: CONVERGED\nEXPERIMENT_KEPT: 2")
    assert helix(world, "experiment", "faster").code == 0


def test_a_batch_runs_by_the_loop_and_ends_in_a_comparison(helix: Any, stage: StageFactory) -> None:
    labels = ["helix", "kind:experiment"]
    world = stage([row("x-1", labels=labels), row("x-2", labels=labels), row("z-9", priority=4)], git=True)
    later = {"retry_after": "2099-01-01T00:00:00Z"}
    world.turns({"results": [{}]}, {"results": [{"status": "no_changes", "fields": later}]})
    document = helix(world, "experiment", "--batch", "--json").document
    assert [each["bead_id"] for each in document["rows"]] == ["x-1", "x-2"]
    assert world.executed == ["x-1 success", "x-2 no_changes"]
    assert "bead" in helix(world, "experiment", "--compare").out
