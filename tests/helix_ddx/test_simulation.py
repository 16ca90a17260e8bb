"""The simulation against what a real ddx wrote, scenario by scenario."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from helix_ddx.files import Disk
from helix_ddx.simulator.head import HeadWorker
from helix_ddx.simulator.worker import Orders, Worker
from helix_ddx.store import places
from helix_ddx.store.git import commit, git, init
from helix_ddx.store.tracker import Store
from tests.helix_ddx.compare import differences
from tests.helix_ddx.recordings import facts, left_out, printed, rows_before, said
from tests.helix_ddx.shapes import Seen, Token, tokens_of

pytestmark = [pytest.mark.realtime, pytest.mark.long]

WRITE = {"path": "greeting.txt", "new": "hello\n"}
OK: dict[str, Any] = {"edits": [WRITE]}
STEPS = [
    {"tool": "Bash", "input": {"command": f"step {number}"}, "output": f"step {number} ok\n"} for number in range(14)
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
    "head-success": Scenario(),
    "head-drain-text": Scenario(orders=DRAIN),
    "head-mixed": Scenario(MIXED, DRAIN),
    "head-no-changes": Scenario({"": {"outcome": "no_changes", "calls": [NOTHING]}}),
    "head-failed": Scenario({"": FAIL}),
    "head-satisfied": Scenario({"": UNPROVEN}),
    "head-conflict": Scenario({"": CONFLICT}),
    "head-review-block": Scenario({"": OK | {"outcome": "review_block"}}),
    "head-killed": Scenario({"": {"outcome": "killed", "opening": "", "calls": [*STEPS[:6], NEVER_ENDS]}}, kills=True),
    "head-one-bead": Scenario(orders=Orders(once=True, only="x", pace=0), first="Write the greeting"),
    "head-one-blocked": Scenario(orders=Orders(once=True, only="x", pace=0), first="Shout"),
    "head-empty": Scenario(),
}


class KilledHereError(Exception):
    """Stands for the signal that would end the test too."""


class Stage:
    """A folder in which a scenario is simulated, with an eye on every write."""

    def __init__(self, name: str, folder: Path) -> None:
        self.scenario = SCENARIOS[name]
        self.project = folder / "project"
        self.env = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
        self.roots = {"$P": self.project, "$H": folder / "home", "$T/tmp": folder / "tmp"}
        self.changes: list[Seen] = []
        self.out = io.StringIO()
        self.rows = rows_before(name)
        init(self.project)
        (self.project / "README.md").write_text("demo\n")
        ignored = ".ddx/agent-logs/\n.ddx/*.lock\n.ddx/executions/*/embedded/\n"
        (self.project / ".gitignore").write_text(ignored)
        Store(self.project / ".ddx").write_new(self.rows)
        commit(self.project, "base")

    def worker(self) -> Worker:
        """A worker of the scenario."""
        acts = self.scenario.acts.items()
        plan = {row["id"]: next(act for part, act in acts if part in row["title"]) for row in self.rows}
        return HeadWorker(
            self.project,
            self.scenario.orders,
            plan=plan,
            env=self.env,
            out=self.out,
            err=io.StringIO(),
            disk=Disk(self.note),
            die=die,
        )

    def note(self, op: str, path: Path, text: str) -> None:
        """Keep one write, under the name that a recording would give the file."""
        name, root = next((name, root) for name, root in self.roots.items() if path.is_relative_to(root))
        short = f"{name}/{path.relative_to(root)}"
        if not left_out(short):
            self.changes.append(Seen(len(self.changes), short, op, text))

    def facts(self) -> list[Token]:
        """What there was to see."""
        return tokens_of(self.changes, {row["id"]: row for row in self.rows})


def simulate(name: str, folder: Path) -> Stage:
    """Run a scenario in a folder."""
    stage = Stage(name, folder)
    worker = stage.worker()
    first = stage.scenario.first
    with contextlib.suppress(KilledHereError):
        if first:
            worker.execute_one(next(row["id"] for row in stage.rows if first in row["title"]))
        else:
            worker.run()
    return stage


def die() -> None:
    raise KilledHereError


@pytest.mark.parametrize("name", SCENARIOS)
def test_same_files_same_order_same_keys_same_words(name: str, tmp_path: Path) -> None:
    stage = simulate(name, tmp_path)
    wrong = differences(facts(name), stage.facts())
    assert not wrong, "\n".join(wrong)
    assert said(stage.out.getvalue().replace(str(stage.project), "$P")) == printed(name)
    assert_nothing_was_written_past_the_writer(stage)


def assert_nothing_was_written_past_the_writer(stage: Stage) -> None:
    """What lies on disk is what the writer told of, and nothing is left that a worker takes away."""
    written = {change.path.removeprefix("$P/") for change in stage.changes if change.path.startswith("$P/")}
    there = {
        str(path.relative_to(stage.project))
        for path in (stage.project / ".ddx").rglob("*")
        if path.is_file() and not left_out(str(path))
    }
    assert there <= written | {".ddx/beads.jsonl"}
    assert not list(stage.project.rglob("*.tmp*"))
    if not stage.scenario.kills:
        assert not list((stage.project / ".ddx").glob("*.lock"))
        assert not list(places.lease_folder(stage.project, stage.env).glob("*"))
        assert len(git(stage.project, "worktree", "list").splitlines()) == 1
