"""The rehearsal against what a real ddx of both eras wrote, scenario by scenario."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.tracker import places
from helix_tui.core.tracker.files import Disk
from helix_tui.core.tracker.git import commit, git, init
from helix_tui.core.tracker.store import Store
from helix_tui.core.tracker.worker import Orders
from helix_tui.core.tracker.working import make_worker
from tests.core.tracker.compare import differences
from tests.core.tracker.recordings import facts, left_out, printed, rows_before, said
from tests.core.tracker.shapes import Seen, tokens_of

WRITE = {"path": "greeting.txt", "new": "hello\n"}
OK: dict[str, Any] = {"edits": [WRITE]}
STEPS = [
    {"tool": "Bash", "input": {"command": f"step {number}"}, "output": f"step {number} ok\n"}
    for number in range(14)
]
SLOW = {
    "edits": [{"path": "slow.txt", "new": "x\n"}],
    "opening": "",
    "calls": [
        *STEPS,
        {"tool": "say", "input": {}, "output": "I will write slow.txt."},
        {
            "tool": "Edit",
            "input": {"file_path": "slow.txt", "old_string": "", "new_string": "x\n"},
            "output": "ok",
        },
        {"tool": "Bash", "input": {"command": "cat slow.txt"}, "output": "x\n"},
    ],
}
MAKE = {"tool": "Bash", "input": {"command": "make"}, "output": "error: make: *** No targets."}
FAIL = {"outcome": "execution_failed", "opening": "Trying.", "calls": [MAKE]}


ONCE = Orders(once=True, as_json=True, pace=0)


@dataclass(frozen=True)
class Scenario:
    """What was asked of the recorded ddx, and what its scripted agent did."""

    acts: dict[str, Any] = field(default_factory=lambda: {"": OK})
    """By a part of the bead's title."""
    orders: Orders = ONCE
    first: str = ""
    """Part of the title of the one bead that was asked for."""
    kills: bool = False


DRAIN = Orders(pace=0)
MIXED = {"[fail]": FAIL, "[slow]": SLOW, "": OK}
SAME_LINE = {"path": "README.md", "old": "demo\n", "new": "agent\n"}
CONFLICT = {
    "edits": [SAME_LINE],
    "calls": [],
    "closing": "",
    "person": {"path": "README.md", "old": "demo\n", "new": "person\n"},
}
HOLDS = "greeting.txt holds hello since the last commit"
NOTHING = {"tool": "Bash", "input": {"command": "cat greeting.txt"}, "output": "hello\n"}
SATISFIED = {"tool": "Bash", "input": {"command": "grep -q hello greeting.txt"}, "output": ""}

UNPROVEN = {
    "outcome": "already_satisfied",
    "verified": False,
    "opening": "",
    "calls": [SATISFIED],
    "rationale": HOLDS,
}
NEVER_ENDS = {"tool": "Bash", "input": {"command": "step 6"}, "output": ""}

SCENARIOS = {
    "april-success": Scenario(),
    "april-drain-text": Scenario(orders=DRAIN),
    "april-mixed": Scenario(MIXED, DRAIN),
    "april-no-changes": Scenario({"": {"outcome": "no_changes", "calls": [NOTHING]}}),
    "april-failed": Scenario({"": FAIL}),
    "april-satisfied": Scenario({"": UNPROVEN}),
    "april-conflict": Scenario({"": CONFLICT}),
    "april-review-changes": Scenario({"": OK | {"outcome": "review_request_changes"}}),
    "april-killed": Scenario({"": {"outcome": "killed", "opening": "", "calls": STEPS[:7]}}, kills=True),
    "april-one-bead": Scenario(first="Write the greeting"),
    "april-empty": Scenario(),
    "head-success": Scenario(),
    "head-drain-text": Scenario(orders=DRAIN),
    "head-mixed": Scenario(MIXED, DRAIN),
    "head-no-changes": Scenario({"": {"outcome": "no_changes", "calls": [NOTHING]}}),
    "head-failed": Scenario({"": FAIL}),
    "head-satisfied": Scenario({"": UNPROVEN}),
    "head-conflict": Scenario({"": CONFLICT}),
    "head-review-block": Scenario({"": OK | {"outcome": "review_block"}}),
    "head-killed": Scenario(
        {"": {"outcome": "killed", "opening": "", "calls": [*STEPS[:6], NEVER_ENDS]}}, kills=True
    ),
    "head-one-bead": Scenario(orders=Orders(once=True, only="x", pace=0), first="Write the greeting"),
    "head-one-blocked": Scenario(orders=Orders(once=True, only="x", pace=0), first="Shout"),
    "head-empty": Scenario(),
}


class KilledHereError(Exception):
    """Stands for the signal that would end the test too."""


@dataclass
class Rehearsed:
    """A rehearsal that has been run."""

    env: dict[str, str]
    project: Path
    changes: list[Seen]
    out: str
    err: str
    rc: int | None


def rehearse(name: str, folder: Path) -> Rehearsed:
    """Run a scenario in a folder, noting every write."""
    scenario = SCENARIOS[name]
    era = name.partition("-")[0]
    project = folder / "project"
    init(project)
    (project / "README.md").write_text("demo\n")
    (project / ".gitignore").write_text(".ddx/agent-logs/\n.ddx/*.lock\n.ddx/executions/*/embedded/\n")
    rows = rows_before(name)
    plan = {
        row["id"]: next(act for part, act in scenario.acts.items() if part in row["title"]) for row in rows
    }
    Store(project / ".ddx", era).write_new(rows)
    commit(project, "base")
    changes: list[Seen] = []
    env = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp"), "DDX_AGENT_NAME": "tester"}
    roots = {"$P": project, "$H": folder / "home", "$T/tmp": folder / "tmp"}

    def note(op: str, path: Path, text: str) -> None:
        short = next(
            f"{key}/{path.relative_to(root)}" for key, root in roots.items() if path.is_relative_to(root)
        )
        if not left_out(short):
            changes.append(Seen(len(changes), short, op, text))

    worker = make_worker(
        era,
        project,
        scenario.orders,
        plan=plan,
        env=env,
        out=(out := io.StringIO()),
        err=(err := io.StringIO()),
        disk=Disk(note),
        die=die,
    )
    rc: int | None
    try:
        if scenario.first:
            rc = worker.execute_one(next(row["id"] for row in rows if scenario.first in row["title"]))
        else:
            rc = worker.run()
    except KilledHereError:
        rc = None
    return Rehearsed(env, project, changes, out.getvalue(), err.getvalue(), rc)


def die() -> None:
    raise KilledHereError


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_files_same_order_same_keys(name: str, tmp_path: Path) -> None:
    done = rehearse(name, tmp_path)
    before = {row["id"]: row for row in rows_before(name)}
    wrong = differences(facts(name), tokens_of(done.changes, before))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", SCENARIOS)
def test_prints_what_was_printed(name: str, tmp_path: Path) -> None:
    done = rehearse(name, tmp_path)
    assert said(done.out.replace(str(done.project), "$P")) == printed(name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_nothing_is_written_past_the_writer(name: str, tmp_path: Path) -> None:
    done = rehearse(name, tmp_path)
    written = {change.path.removeprefix("$P/") for change in done.changes if change.path.startswith("$P/")}
    there = {
        str(path.relative_to(done.project))
        for path in (done.project / ".ddx").rglob("*")
        if path.is_file() and not left_out(str(path))
    }
    assert there <= written | {".ddx/beads.jsonl"}
    assert not list(done.project.rglob("*.tmp*"))
    if not SCENARIOS[name].kills:
        assert not list((done.project / ".ddx").glob("*.lock"))
        assert not list(places.lease_folder(done.project, done.env).glob("*"))
        assert len(git(done.project, "worktree", "list").splitlines()) == 1
