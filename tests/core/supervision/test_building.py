"""How one attempt ended, from the lines that ``ddx try`` prints, its exit code and the tracker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.readiness import classify
from helix_tui.core.ddx.dialect import AUGUST
from helix_tui.core.ddx.help_text import DdxVerb
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.signals.kept_changes import kept_change, landed_by_opening
from helix_tui.core.supervision.stages.build import build_bead
from helix_tui.core.supervision.stages.delegate import NOBODY, Delegate
from tests.core.ddx.attempts.test_attempts import FIRST, Place, event
from tests.core.supervision.conftest import WorldFactory, make_curator, row
from tests.programs import write_program

SUCCESS = "bead: a\nstatus: success\ndetail: success\nresult_rev: abc1234\nlanded_branch: main\n"
REF = "refs/ddx/iterations/a/0"
KEPT = f"bead: a\nstatus: preserved_needs_review\ndetail: review: BLOCK\npreserve_ref: {REF}\n"
NO_EVIDENCE = "bead: a\nstatus: no_evidence_produced\ndetail: no commit\n"
FAILED = "bead: a\nstatus: execution_failed\ndetail: exit status 1\n"
COOLING = "bead is in retry cooldown; re-run with --force-claim"


def saying(folder: Path, root: Path, printed: str, said: str = "", rc: int = 0) -> Delegate:
    """A ddx whose ``try`` prints this and ends so."""
    program = write_program(
        folder / "ddx",
        "import os, sys\n"
        "if '--help' in sys.argv:\n"
        "    verb = ' '.join(sys.argv[1:-1])\n"
        "    print('Usage:\\n  ddx ' + verb + ' [flags]\\n\\nFlags:\\n  --watch --harness')\n"
        "    sys.exit(verb not in ('try', 'work'))\n"
        f"print('progress')\nprint('\\n' + {printed!r}, end='')\nsys.stderr.write({said!r})\n"
        f"os.kill(os.getpid(), {-rc}) if {rc} < 0 else sys.exit({rc})",
    )
    return Delegate(find_project(root), str(program))


@pytest.mark.parametrize(
    ("printed", "said", "rc", "status", "detail", "kept"),
    [
        (SUCCESS, "", 0, "success", "success", ""),
        (KEPT, "", 1, "preserved_needs_review", "review: BLOCK", REF),
        (NO_EVIDENCE, "", 1, "no_evidence_produced", "no commit", ""),
        (FAILED, "run: ddx doctor", 2, "execution_failed", "exit status 1", ""),
        ("", COOLING, 2, "refused", "retry cooldown", ""),
        ("", "claimed a", -9, "interrupted", "", ""),
    ],
)  # fmt: skip
def test_each_outcome_is_told_as_ddx_tells_it(
    world: WorldFactory, tmp_path: Path, printed: str, said: str, rc: int, status: str, detail: str, kept: str
) -> None:
    here = world([row("a")])
    delegate = saying(tmp_path, here.root, printed, said, rc)
    built = build_bead(make_curator(here.root), delegate, "a", NOBODY)
    assert (built.status, built.preserve_ref, built.code) == (status, kept, int(rc != 0))
    assert detail in built.detail
    assert built.landed == (status == "success")


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.long
def test_git_decides_whether_what_ddx_calls_a_success_has_landed(world: WorldFactory, tmp_path: Path) -> None:
    here = world([row("a")])
    git(here.root, "init", "-qb", "main")
    git(here.root, "commit", "-q", "--allow-empty", "-m", "base")
    base = git(here.root, "rev-parse", "HEAD")
    beside = git(here.root, "commit-tree", "-p", base, "-m", "beside", f"{base}^{{tree}}")
    for made, landed in ((beside, False), (base, True)):
        said = SUCCESS.replace("abc1234", made) + f"base_rev: {'0' * 40}\n"
        built = build_bead(make_curator(here.root), saying(tmp_path, here.root, said), "a", NOBODY)
        assert (built.status, built.landed, built.preserved) == ("success", landed, not landed)
        assert (built.code == 0, "not landed" in built.detail) == (landed, not landed)


def attempted(root: Path, day: int, **outcome: str) -> None:
    """The record of an attempt on ``a`` that ended on a day of August."""
    attempt = f"202608{day:02}T101112-0123abcd"
    bundle = root / ".ddx" / "executions" / attempt
    bundle.mkdir(parents=True)
    result = {"bead_id": "a", "attempt_id": attempt, "base_rev": "a" * 40}
    (bundle / "result.json").write_text(json.dumps(result | outcome))


@pytest.mark.parametrize(("preserved", "kept"), [(REF, "b" * 40), ("", "")])
def test_what_ddx_may_land_without_an_agent_is_known_before(
    world: WorldFactory, tmp_path: Path, preserved: str, kept: str
) -> None:
    here = world([row("a")])
    aside = {"status": "repair-cycle-exhausted", "outcome": "preserved", "result_rev": "b" * 40}
    attempted(here.root, 21, **(aside | {"preserve_ref": preserved} if preserved else {"status": "execution_failed"}))
    dialect = saying(tmp_path, here.root, SUCCESS).dialect
    curator = make_curator(here.root)
    queue = curator.look().queue
    found = kept_change(curator.project, queue, dialect, "a")
    assert (found.result_rev if found else "") == kept
    attempted(here.root, 22, status="execution_failed")
    found = kept_change(curator.project, queue, dialect, "a")
    assert (found.result_rev if found else "") == kept, "one that fails leaves what is kept where it is"
    assert kept_change(curator.project, queue, replace(dialect, verbs={}), "a") is None
    if kept:
        with (here.root / ".ddx" / "beads.jsonl").open("w") as file:
            event = {"kind": "preserved-result-rejected", "body": f"result_rev={kept}"}
            file.write(json.dumps(row("a", events=[event])) + "\n")
        assert kept_change(curator.project, curator.look().queue, dialect, "a") is None, "it begins afresh"


@pytest.mark.long
def test_a_dry_run_refuses_what_the_run_refuses(world: WorldFactory, tmp_path: Path) -> None:
    here = world([row("a")])
    refused = {"status": "repair-cycle-exhausted", "outcome": "preserved", "result_rev": "b" * 40}
    attempted(here.root, 21, **refused, preserve_ref=REF)
    delegate = saying(tmp_path, here.root, SUCCESS)
    words = [sys.executable, "-m", "helix_tui", "build", "a", "-C", str(here.root), "--ddx", str(delegate.ddx.path)]
    ran = subprocess.run([*words, "--dry-run"], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, "a review refused it" in ran.stderr) == (1, True), ran
    ran = subprocess.run([*words, "--dry-run", "--land-kept"], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0


@pytest.mark.parametrize(
    ("status", "lands", "said"), [("proposed", True, 1), ("open", True, 0), ("proposed", False, 0)]
)
def test_opening_a_parked_bead_says_what_ddx_lands_of_it(tmp_path: Path, status: str, lands: bool, said: int) -> None:
    place = Place(tmp_path)
    place.bundle(FIRST, status="success", outcome="task_succeeded", result_rev="c" * 40)
    kept = f"pre-land repair: exhausted\nresult_rev={'c' * 40}\npreserve_ref=refs/ddx/iterations/{FIRST}/1"
    place.row("b-1", event("execute-bead", "repair-cycle-exhausted", kept), status=status)
    flags = frozenset({"--set", "--reject-preserved"} if lands else {"--set"})
    dialect = replace(AUGUST, verbs={**AUGUST.verbs, "update": DdxVerb(("bead", "update"), flags)})
    found = landed_by_opening(find_project(tmp_path), classify(place.beads, now=0), dialect, ["b-1"])
    assert len(found) == said
    for line in found:
        assert line.startswith("review refused this change of b-1")
        assert f"a worker lands {'c' * 12} as it is, without an agent" in line
