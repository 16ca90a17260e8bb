"""What each HELIX command owes beyond its usual case: refusals, failures, what must never happen."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.commands import ROWS
from tests.cli.conftest import Cli
from tests.cli.helix.conftest import BUILDABLE
from tests.core.supervision.conftest import row
from tests.core.supervision.loop.conftest import Stage, StageFactory

LATER = "2099-01-01T00:00:00Z"


def tree(root: Path) -> dict[str, bytes]:
    """Every file of a project, but git's own."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and ".git" not in path.parts}


def write_opposed_documents(root: Path) -> None:
    """Two documents of one rank, each of which says that it supersedes the other."""
    (root / "docs").mkdir()
    for name, other in (("PRD-1", "PRD-2"), ("PRD-2", "PRD-1")):
        document = f"---\nddx:\n  id: {name}\n  supersedes: {other}\n---\n# Requirements\n"
        (root / "docs" / f"{name}.md").write_text(document)


# --- check -------------------------------------------------------------------------------------------------


def test_check_says_that_a_scope_names_nothing(helix: Any, stage: StageFactory) -> None:
    document = helix(stage([row("a-1", **BUILDABLE)]), "check", "no-such-thing", "--json").document
    assert "scope" in [reason["code"] for reason in document["reasons"]]
    assert document["scope"] == "no-such-thing"


@pytest.mark.long
def test_the_answer_to_a_contradiction_can_be_given_where_check_says(helix: Any, stage: StageFactory) -> None:
    """A look at it asks nothing, so nothing waits for an answer yet; `check` asks."""
    world = stage([row("a-1", **BUILDABLE)])
    write_opposed_documents(world.root)
    looked = helix(world, "check", "--read-only", "--json").document
    assert (looked["next_action"], looked["recommended_command"]) == ("GUIDANCE", "helix-tui check")
    assert "nothing waits for an answer" in helix(world, "input", "--questions").out
    asked = helix(world, "check", "--json").document
    assert asked["recommended_command"] == "helix-tui input --questions"
    assert "q-1" in helix(world, "input", "--questions").out


@pytest.mark.long
def test_a_contradiction_is_one_need_before_and_after_it_is_asked(helix: Any, stage: StageFactory) -> None:
    """Asking must not notify again, nor end a snooze; until then `stuck` names it too."""
    world = stage([row("a-1", **BUILDABLE)])
    assert helix(world, "stuck").out.strip() == "nothing is stuck"
    write_opposed_documents(world.root)
    (stuck,) = helix(world, "stuck", "--json").document["stuck"]
    assert (stuck["reason"], stuck["documents"]) == ("contradiction", ["docs/PRD-1.md", "docs/PRD-2.md"])
    assert "docs/PRD-1.md and docs/PRD-2.md  contradiction" in helix(world, "stuck").out
    (before,) = helix(world, "needs", "--json").document["needs"]
    helix(world, "check")
    (after,) = helix(world, "needs", "--json").document["needs"]
    assert (before["question_id"], after["question_id"]) == (None, "q-1")
    assert before["key"] == after["key"]
    assert [each["question_id"] for each in helix(world, "stuck", "--json").document["stuck"]] == ["q-1"]


def test_check_read_only_asks_nobody_and_writes_nothing(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    before = tree(world.root)
    assert helix(world, "check", "--read-only", "--json").document["decided_by"] == "none"
    assert (tree(world.root), world.calls) == (before, [])
    assert helix(world, "check", "--read-only", "--ask").code == 1


def test_check_without_ddx_names_the_way_without_an_agent(
    cli: Cli, stage: StageFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = stage([row("a-1", status="closed")])
    ran = cli("check", "-C", world.root, "--ddx", tmp_path / "none")
    assert ran.code == 127
    assert "--no-model" in ran.err


# --- build -------------------------------------------------------------------------------------------------


def test_build_tells_why_the_named_bead_is_not_ready(helix: Any, stage: StageFactory) -> None:
    ran = helix(stage([row("a-1", "a-2"), row("a-2")]), "build", "a-1")
    assert ran.code == 1
    assert "no execution-ready bead matched the build selector: a-1 is waiting dependencies" in ran.err
    assert "helix-tui why a-1" in ran.err


def test_build_does_not_call_an_unreadable_tracker_no_match(helix: Any, stage: StageFactory) -> None:
    world = stage([])
    (world.root / ".ddx" / "beads.jsonl").write_text("{broken\n")
    ran = helix(world, "build")
    assert ran.code == 1
    assert "line 1" in ran.err
    assert "matched" not in ran.err


@pytest.mark.parametrize("command", ["run", "start"])
def test_a_dry_run_names_what_would_stop_the_run(helix: Any, stage: StageFactory, command: str) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    assert "comes first" not in helix(world, command, "--dry-run").err
    with open(world.root / ".ddx" / "beads.jsonl", "a") as tracker:
        tracker.write('{"id": "a-2", "sta\n')
    assert "GUIDANCE comes first: line 2 of beads.jsonl" in helix(world, command, "--dry-run").err


def test_a_refusal_is_told_in_ddx_words_and_exits_one(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.ddx.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '  "try --help") echo "Usage:"; echo "  ddx try <id> [flags]"; echo "  --harness";;\n'
        '  try*) echo "bead has unmet dependencies: a-9" >&2; echo "Error: " >&2; exit 2;;\n'
        "  *) exit 1;;\n"
        "esac\n"
    )
    ran = helix(world, "build", "a-1")
    assert ran.code == 1
    assert "refused: bead has unmet dependencies: a-9" in ran.out
    assert "next: helix-tui why a-1" in ran.out


# --- align -------------------------------------------------------------------------------------------------

GOVERNING = {"title": "align: docs", "labels": ["kind:planning", "action:align"]}


def test_align_makes_no_bead_for_an_agent_that_is_not_there(
    cli: Cli, stage: StageFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stage([row("a-1")])
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    monkeypatch.delenv("DDX_BIN", raising=False)
    assert cli("align", "-C", world.root).code == 127
    assert list(world.rows()) == ["a-1"]


@pytest.mark.long
def test_align_hands_back_the_bead_that_it_claimed_where_the_agent_fails(helix: Any, stage: StageFactory) -> None:
    world = stage([row("g-1", **GOVERNING)])
    world.answers({"output": "", "rc": 3})
    assert helix(world, "align", "docs").code != 0
    assert world.rows()["g-1"]["status"] == "open"


@pytest.mark.long
def test_align_says_that_its_bead_still_stands(helix: Any, stage: StageFactory) -> None:
    world = stage([row("g-1", **GOVERNING)])
    world.answers("ALIGN_STATUS: COMPLETE", "I looked around.")
    ran = helix(world, "align", "docs")
    assert world.rows()["g-1"]["status"] == "open"
    assert "helix-tui close g-1" in ran.err
    assert "the answer has no ALIGN_STATUS trailer" in helix(world, "align", "website").err


# --- planning stages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", ["0", "-1", "many"])
def test_rounds_are_counted_from_one(helix: Any, stage: StageFactory, rounds: str) -> None:
    world = stage([row("a-1")])
    assert helix(world, "polish", "--rounds", rounds).code == 2
    assert not world.calls


def test_a_contradiction_that_evolve_finds_stops_and_waits_on_a_person(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    world.answers("EVOLUTION_STATUS: COMPLETE\nCONFLICTS: physics-level: real-time and batch only")
    assert helix(world, "evolve", "make it batch").code == 1
    assert [question.kind for question in world.questions] == ["physics-level"]


def test_guidance_that_a_stage_needs_is_a_question(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.answers("FRAME_STATUS: GUIDANCE_NEEDED\n- Which market is it for?\n")
    assert helix(world, "frame").code == 0
    assert [(question.kind, question.text) for question in world.questions] == [("guidance", "Which market is it for?")]


# --- input -------------------------------------------------------------------------------------------------


def test_autonomy_said_twice_dispatches_nothing(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    ran = helix(world, "input", "--autonomy", "low", "--autonomy", "high", "x")
    assert (ran.code, world.calls) == (2, [])
    assert "--autonomy is given twice" in ran.err


CONFLICTS = "INPUT_STATUS: COMPLETE\nBEADS_CREATED: {made}\nCONFLICTS: resolvable: A or B; gap: FEAT-9 is missing"


def test_medium_asks_about_conflicts_and_gaps(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.answers(CONFLICTS.format(made="none"))
    helix(world, "input", "x")
    assert [(question.kind, question.text) for question in world.questions] == [
        ("conflict", "A or B"),
        ("gap", "FEAT-9 is missing"),
    ]
    assert list(world.rows()) == ["a-1"]


def test_high_files_what_the_agent_did_not(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", labels=["helix", "kind:escalation"])])
    world.answers(CONFLICTS.format(made="a-2"), CONFLICTS.format(made="a-2"))
    for _ in range(2):
        assert helix(world, "input", "--autonomy", "high", "x").code == 0
    (filed,) = [bead for bead_id, bead in world.rows().items() if bead_id not in ("a-1", "a-2")]
    assert "kind:speculative" in filed["labels"]
    assert (filed["title"], filed["execution-eligible"]) == ("gap: FEAT-9 is missing", False)
    assert not world.questions


def test_input_needs_no_queue(cli: Cli, stage: StageFactory) -> None:
    world = stage([])
    (world.root / ".ddx" / "beads.jsonl").unlink()
    world.answers("INPUT_STATUS: COMPLETE")
    assert cli("input", "make it so", "-C", world.root, "--ddx", world.ddx).code == 0


# --- triage ------------------------------------------------------------------------------------------------

TRIAGE = ("triage", "Parse it", "--labels", "helix,phase:build,kind:build", "--spec-id", "FEAT-1")


def test_triage_prints_the_id_alone(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    ran = helix(world, *TRIAGE, "--acceptance", "`pytest -q` passes", "--deps", "a-1")
    assert ran.out.strip() in world.rows()
    assert "ddx bead create" in ran.err
    quiet = helix(world, *TRIAGE, "--acceptance", "`pytest -q` passes", "--silent")
    assert (quiet.out.strip() in world.rows(), quiet.err) == (True, "")


def test_triage_names_an_unknown_dependency_beside_the_other_errors(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    ran = helix(world, "triage", "Parse it", "--labels", "helix", "--deps", "a-1,zz-9", "--parent", "zz-8")
    assert ran.code == 1
    for word in ("zz-9", "zz-8", "missing phase label", "spec-id required for a task", "acceptance required"):
        assert word in ran.err
    assert list(world.rows()) == ["a-1"]
    alone = helix(world, *TRIAGE, "--acceptance", "`pytest -q` passes", "--deps", "zz-9")
    assert (alone.code, "zz-9" in alone.err, list(world.rows())) == (1, True, ["a-1"])


def test_triage_honours_the_word_that_its_hook_honours(
    helix: Any, stage: StageFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = stage([row("a-1")])
    assert helix(world, "triage", "Parse it").code == 1
    monkeypatch.setenv("HELIX_SKIP_TRIAGE", "1")
    ran = helix(world, "triage", "Parse it")
    assert ran.out.strip() in world.rows()
    assert helix(world, "triage", "Parse it", "--deps", "zz-9").code == 1, "what is not there cannot be waited on"


# --- commit ------------------------------------------------------------------------------------------------


def git(root: Path, *words: str) -> str:
    """Git's answer."""
    return subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def changed(stage: StageFactory, tmp_path: Path) -> Stage:
    """A project with an upstream and one changed tracked file."""
    world = stage([row("a-1", title="Do it")], git=True)
    (world.root / "f.txt").write_text("one\n")
    git(world.root, "add", "f.txt")
    git(world.root, "commit", "-q", "-m", "f")
    git(world.root, "clone", "-q", "--bare", ".", str(tmp_path / "remote.git"))
    git(world.root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    git(world.root, "push", "-q", "-u", "origin", "main")
    (world.root / "f.txt").write_text("two\n")
    return world


@pytest.mark.long
def test_commit_pushes_though_other_files_are_changed_too(helix: Any, changed: Stage) -> None:
    git(changed.root, "add", "f.txt")
    changed.rewrite("a-1", notes="in the making")
    ran = helix(changed, "commit", "a-1")
    assert ran.code == 0, ran.err
    assert git(changed.root, "rev-parse", "origin/main") == git(changed.root, "rev-parse", "HEAD")
    assert changed.rows()["a-1"]["closing_commit_sha"] == git(changed.root, "rev-parse", "HEAD~1").strip()
    assert git(changed.root, "show", "origin/main:.ddx/beads.jsonl").count('"closed"') == 1


@pytest.mark.long
def test_commit_says_which_file_a_pull_conflicts_in(helix: Any, changed: Stage, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(tmp_path / "remote.git"), str(other))
    (other / "f.txt").write_text("three\n")
    git(other, "commit", "-qam", "theirs")
    git(other, "push", "-q")
    ran = helix(changed, "commit", "a-1")
    assert (ran.code, "Merge conflict in f.txt" in ran.err, "hint:" in ran.err) == (1, True, False), ran.err
    assert git(changed.root, "status", "--porcelain", "--untracked-files=no", "f.txt") == ""
    assert git(changed.root, "log", "-1", "--format=%s").strip() == "a-1 Do it"


@pytest.mark.long
def test_commit_says_why_a_remote_refuses_a_push(helix: Any, changed: Stage, tmp_path: Path) -> None:
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'GH006: main is protected' >&2\nexit 1\n")
    hook.chmod(0o755)
    for words in (["a-1"], []):
        (changed.root / "f.txt").write_text(f"three {words}\n")
        ran = helix(changed, "commit", *words)
        assert (ran.code, "GH006: main is protected" in ran.err) == (1, True), ran.err
        assert ("stays open" in ran.err) == bool(words)
    changed.rewrite("a-1", status="closed")
    (changed.root / "f.txt").write_text("four\n")
    ran = helix(changed, "commit", "a-1")
    assert (ran.code, "stays open" in ran.err) == (1, False), ran.err


@pytest.fixture
def colleague(changed: Stage, tmp_path: Path) -> Path:
    """Another person's clone of the upstream repository."""
    git(tmp_path, "clone", "-q", str(tmp_path / "remote.git"), str(tmp_path / "other"))
    return tmp_path / "other"


def push(colleague: Path, file: str, text: str) -> None:
    (colleague / file).write_text(text)
    git(colleague, "add", "--", file)
    git(colleague, "commit", "-qm", "theirs")
    git(colleague, "push", "-q")


@pytest.mark.long
def test_commit_overwrites_no_row_that_was_changed_upstream(helix: Any, changed: Stage, colleague: Path) -> None:
    theirs = (colleague / ".ddx" / "beads.jsonl").read_text().replace('"priority":2', '"priority":0')
    push(colleague, ".ddx/beads.jsonl", theirs)
    changed.rewrite("a-1", notes="as ddx leaves it, uncommitted")
    before = tree(changed.root), git(changed.root, "rev-parse", "HEAD"), git(changed.root, "status", "--porcelain")
    ran = helix(changed, "commit", "a-1")
    assert (ran.code, "the upstream branch changed a-1 in the tracker" in ran.err) == (1, True), ran.err
    assert "`git pull`" in ran.err
    after = tree(changed.root), git(changed.root, "rev-parse", "HEAD"), git(changed.root, "status", "--porcelain")
    assert (after, git(changed.root, "stash", "list")) == (before, "")


@pytest.mark.long
def test_commit_goes_on_top_of_the_upstream_branch_beside_uncommitted_work(
    helix: Any, changed: Stage, colleague: Path
) -> None:
    push(colleague, "theirs.txt", "theirs\n")
    (changed.root / "g.txt").write_text("staged\n")
    git(changed.root, "add", "g.txt")
    ran = helix(changed, "commit", "a-1")
    assert ran.code == 0, ran.err
    # f.txt is a person's other work: it is neither committed nor stashed nor changed
    assert ((changed.root / "f.txt").read_text(), git(changed.root, "stash", "list")) == ("two\n", "")
    assert git(changed.root, "status", "--porcelain", "--untracked-files=no") == " M f.txt\n"
    subjects = git(changed.root, "log", "-3", "--format=%s", "origin/main").split("\n")[:3]
    assert subjects == ["a-1 close tracker bead", "a-1 Do it", "theirs"]


@pytest.mark.long
def test_commit_whose_push_is_refused_leaves_the_tracker_as_it_was(helix: Any, changed: Stage, tmp_path: Path) -> None:
    hook = tmp_path / "remote.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    changed.rewrite("a-1", notes="uncommitted before")
    row_before, status = changed.rows()["a-1"], git(changed.root, "status", "--porcelain", ".ddx/beads.jsonl")
    ran = helix(changed, "commit", "a-1")
    assert (ran.code, "a-1 stays open" in ran.err) == (1, True), ran.err
    assert changed.rows()["a-1"] == row_before
    assert git(changed.root, "status", "--porcelain", ".ddx/beads.jsonl") == status
    assert git(changed.root, "log", "-1", "--format=%s").strip() == "a-1 Do it"


def test_nothing_is_committed_or_landed_on_a_detached_head(helix: Any, changed: Stage) -> None:
    git(changed.root, "checkout", "-q", "--detach")
    head = git(changed.root, "rev-parse", "HEAD")
    for words in (("commit", "a-1"), ("commit", "a-1", "--dry-run"), ("build", "a-1"), ("run",), ("start",)):
        ran = helix(changed, *words)
        assert (ran.code != 0, "HEAD is detached" in ran.err, "git switch" in ran.err) == (True, True, True), ran.err
    assert (git(changed.root, "rev-parse", "HEAD"), changed.rows()["a-1"]["status"]) == (head, "open")


def test_commit_dry_run_is_what_commit_does(helix: Any, changed: Stage) -> None:
    before = tree(changed.root), git(changed.root, "status", "--porcelain")
    assert helix(changed, "commit", "a-1", "--dry-run").out.splitlines() == [
        "git fetch -q",
        "git merge -q --ff-only '@{upstream}'",
        "git add -u -- :/ ':(exclude).ddx' ':(exclude).helix' ':(exclude).helix-logs'",
        "git commit -q -m 'a-1 Do it' -m '1 file changed, 1 insertion(+), 1 deletion(-)'",
        "ddx bead update a-1 --set 'closing_commit_sha=<the new commit>'",
        "ddx bead close a-1",
        "git commit -q -m 'a-1 close tracker bead' -m 'Verification: ddx bead show a-1 --json'"
        " --only -- .ddx/beads.jsonl",
        "git push -q",
    ]
    assert (tree(changed.root), git(changed.root, "status", "--porcelain")) == before
    git(changed.root, "checkout", "-q", "f.txt")
    assert helix(changed, "commit", "a-1", "--dry-run").code == 1


def test_commit_shows_what_the_failed_gate_said(
    helix: Any, changed: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "tools" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho the first problem\necho the second\nexit 3\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}{os.pathsep}{os.environ['PATH']}")
    (changed.root / "package.json").write_text(json.dumps({}))
    assert helix(changed, "trust", "--yes").code == 0
    ran = helix(changed, "commit", "a-1")
    assert ran.code == 1
    assert "the first problem" in ran.err
    assert "(`npm test` ended with 3)" in ran.err


@pytest.mark.long
def test_commit_leaves_a_closed_bead_as_it_is(helix: Any, changed: Stage) -> None:
    changed.rewrite("a-1", status="closed")
    git(changed.root, "commit", "-q", "-a", "-m", "closed")
    (changed.root / "f.txt").write_text("three\n")
    ran = helix(changed, "commit", "a-1")
    assert (ran.code, "a-1 was closed already" in ran.err) == (0, True)
    assert "closing_commit_sha" not in changed.rows()["a-1"]


# --- experiment --------------------------------------------------------------------------------------------


@pytest.fixture
def tried(helix: Any, stage: StageFactory) -> Stage:
    """Three experiments that ddx ran and of which it left no evidence but its own results."""
    marked = {"labels": ["helix", "kind:experiment"]}
    world = stage([row("x-1", **marked), row("x-2", **marked), row("x-3", labels=["experiment:fast"])], git=True)
    told = {"cost_usd": 0.5, "model": "m-1", "tokens": 10, "duration_ms": 4000}
    world.turns(
        {"results": [{"status": "no_changes", "fields": {"detail": "no gain", "retry_after": LATER}}]},
        {"results": [{"fields": told}]},
        {"results": [{"fields": {"preserve_ref": "refs/ddx/iterations/x"}}]},
    )
    assert helix(world, "experiment", "--batch").code == 0
    return world


@pytest.mark.long
def test_a_batch_is_compared_by_what_the_loop_told(helix: Any, tried: Stage) -> None:
    document = helix(tried, "experiment", "--compare", "--json").document
    rows = {each["bead_id"]: each for each in document["rows"]}
    assert document["kept"] == ["x-2"]
    assert next(iter(rows)) == "x-2"
    assert (rows["x-2"]["cost_usd"], rows["x-2"]["model"], rows["x-2"]["tokens_total"]) == (0.5, "m-1", 10)
    assert (rows["x-1"]["cost_usd"], rows["x-1"]["why"]) == (None, "no gain")
    assert (rows["x-3"]["outcome"], rows["x-3"]["kept"]) == ("preserved", False)
    lines = helix(tried, "experiment", "--compare", "fast").out.splitlines()
    assert [line.split()[0] for line in lines] == ["bead", "x-3"]
    assert "n/a" in lines[1]


@pytest.mark.long
def test_insights_know_what_the_loop_told_too(helix: Any, tried: Stage) -> None:
    document = helix(tried, "insights", "--json").document
    assert document["attempts"] == 3
    assert {row["key"]["model"]: row["cost_usd"] for row in document["rows"]} == {"m-1": 0.5, "unknown": None}
    assert {batch["batch"]: batch["best"] for batch in document["experiments"]} == {
        "fast": None,
        "no batch": "x-2",
    }


@pytest.mark.long
def test_evidence_stands_before_what_the_loop_told(helix: Any, tried: Stage) -> None:
    metrics = tried.root / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir()
    known = {"attempt_id": "20261121T000000-0000000a", "bead_id": "x-2", "outcome": "success", "model": "m-2"}
    metrics.write_text(json.dumps(known) + "\n")
    rows = helix(tried, "experiment", "--compare", "--json").document["rows"]
    assert [(row["model"], row["attempts"]) for row in rows if row["bead_id"] == "x-2"] == [("m-2", 1)]


# --- tracker -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_tracker_has_every_verb_of_ddx_bead(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", "a-1")])
    made = helix(world, "tracker", "create", "New", "--type", "task", "--priority", "1").out.strip()
    assert json.loads(helix(world, "tracker", "show", made, "--json").out)["title"] == "New"
    assert helix(world, "tracker", "update", made, "--set", "spec-id=S-1").code == 0
    assert world.rows()[made]["spec-id"] == "S-1"
    listed = {verb: helix(world, "tracker", verb, "--json").out for verb in ("list", "ready", "status")}
    assert {load["id"] for load in json.loads(listed["list"])} == {"a-1", "a-2", made}
    assert [load["id"] for load in json.loads(listed["ready"])] == [made, "a-1"]
    assert json.loads(listed["status"])["total"] == 3
    assert helix(world, "tracker", "blocked").code == 0
    assert helix(world, "tracker", "dep", "remove", "a-2", "a-1").code == 0
    assert helix(world, "tracker", "dep", "add", "a-1", made).code == 0
    assert helix(world, "tracker", "close", made).code == 0
    assert world.rows()[made]["status"] == "closed"
    assert helix(world, "tracker", "show", "none-9").code == 1


# --- every command -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ROWS))
def test_an_option_that_is_not_there_exits_two_and_tells_where_help_is(cli: Cli, name: str) -> None:
    if name == "tracker":  # its words are ddx's
        return
    ran = cli(name, "--dry-runn")
    assert ran.code == 2
    assert f"helix-tui {name} --help" in ran.err


def test_what_may_have_been_meant_is_named(cli: Cli) -> None:
    assert "did you mean --max-cycles?" in cli("run", "--max-cycle", "3").err
    assert "unknown command: polsh. Did you mean “polish”?" in cli("polsh").err


def test_an_experiment_wants_a_repository(helix: Any, stage: StageFactory) -> None:
    ran = helix(stage([row("a-1")]), "experiment", "faster")
    assert ran.code == 1
    assert "is not a git repository" in ran.err


def test_quiet_tells_how_it_ended_and_no_more(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    assert helix(world, "check", "--quiet").out == "NEXT_ACTION: BUILD\n"
    world.answers("A long story.\nREVIEW_STATUS: ISSUES_FOUND\nISSUES_COUNT: 2")
    ran = helix(world, "review", "-q")
    assert (ran.code, ran.out) == (10, "")
    assert "review reported 2 issue(s)" in ran.err


# --- what is asked for and what ddx takes ------------------------------------------------------------------


def test_a_wish_that_this_ddx_has_no_option_for_is_told(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.ddx.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '  "run --help") echo "Usage:"; echo "  ddx run [flags]"; echo "  --prompt --json";;\n'
        "  run*) echo 'NEXT_ACTION: WAIT';;\n"
        "  *) exit 1;;\n"
        "esac\n"
    )
    ran = helix(world, "check", "--agent", "codex", "--effort", "high")
    assert "NEXT_ACTION: WAIT" in ran.out
    assert "does not take --harness: codex is not passed on" in ran.err
    assert "does not take --effort: high is not passed on" in ran.err
    assert "takes no" not in helix(world, "frame").err


def test_a_dry_run_acknowledges_nothing(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    helix(world, "check")
    world.rewrite("a-1", **{"spec-id": "SD-2"})
    before = tree(world.root)
    helix(world, "check", "--acknowledge", "a-1", "--dry-run")
    assert tree(world.root) == before
    ran = helix(world, "check", "--acknowledge", "a-1", "a-9", "--json")
    assert ran.document["drift"] == []
    assert "nobody has changed a-9" in ran.err


def test_an_answer_is_foretold_and_nothing_written(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1", **BUILDABLE)])
    asked = world.store.ask("conflict", "which?", key="k", bead_id="a-1")
    other = world.store.ask("guidance", "whither?", key="l")
    before = tree(world.root)
    ran = helix(world, "input", "--answer", asked.id, "the second", "--dry-run")
    assert ran.out.startswith("ddx bead update a-1")
    assert "the second" in ran.out
    assert "no ddx command would run" in helix(world, "input", "--answer", other.id, "on", "--dry-run").err
    assert helix(world, "input", "--answer", "q-99", "on", "--dry-run").code == 1
    assert tree(world.root) == before


def test_a_no_is_told_as_one(helix: Any, stage: StageFactory) -> None:
    world = stage([row("a-1")])
    helix(world, "input", "--autonomy", "low", "x")
    helix(world, "input", "--answer", world.questions[0].id, "no")
    ran = helix(world, "input", "--autonomy", "low", "x")
    assert (ran.code, world.calls) == (1, [])
    assert "a person refused it" in ran.err
