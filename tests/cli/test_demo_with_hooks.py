"""The demo with our own hook asked by ddx, in every autonomy, to its end: nothing of ours is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.nightly

MAX_RUNS = 40
"""Runs at autonomy low until nothing more is asked: each dispatch and injection is one question."""


FAILED = (
    "execution_failed",
    "structural_validation_failed",
    "post_run_check_failed",
    "repair-cycle-exhausted",
    "review_block",
    "no_changes",
)
"""Ends of an attempt that tell of the work, and so teach."""


class Demo:
    """A demo project whose hook asks our authoring rules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        programs = Path(sys.executable).parent
        self.env = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HELIX_DDX_PACE": "0",
            "HELIX_EMBEDDER": "off",
            "HOME": str(root.parent),
        }
        self.ddx = str(programs / "helix-ddx")
        self.call(self.ddx, "demo-workspace", str(root), cwd=root.parent)
        self.tui("install-hooks", "--commit")

    def call(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=1200,
        )

    def tui(self, *words: str) -> dict[str, Any]:
        done = self.call(sys.executable, "-m", "helix_tui", *words, "--json")
        assert done.stdout.startswith("{"), (words, done.returncode, done.stdout, done.stderr)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def run(self, level: str) -> Iterator[dict[str, Any]]:
        """Runs until one stops for another reason than a yes that is missing; every question gets one."""
        for _ in range(MAX_RUNS):
            ended = self.tui("run", "--ddx", self.ddx, "--autonomy", level, "--summary")
            yield ended
            if ended["stop_reason"] != "approval":
                return
            for asked in self.tui("input", "--questions")["questions"]:
                self.tui("input", "--answer", asked["id"], "yes")
        raise AssertionError("it never ended")

    def rows(self) -> dict[str, dict[str, Any]]:
        lines = (self.root / ".ddx" / "beads.jsonl").read_text().splitlines()
        return {row["id"]: row for row in map(json.loads, lines)}


@pytest.mark.parametrize("level", ["low", "medium", "high"])
def test_the_demo_runs_to_its_end_with_our_own_hook(tmp_path: Path, level: str) -> None:
    demo = Demo(tmp_path / "demo")
    runs = list(demo.run(level))
    assert {run["stop_reason"] for run in runs} <= {"approval", "question", "no_progress"}
    assert not any(run["problems"] for run in runs)
    rows = demo.rows()
    done = {
        bead_id
        for run in runs
        for cycle in run["cycles"]
        for bead_id, word in cycle["results"]
        if word == "success" and "helix-trigger-bead" not in rows[bead_id]
    }
    reviewed = {row["helix-trigger-bead"] for row in rows.values() if "kind:review" in row.get("labels", ())}
    assert len(done) >= 2
    assert done <= reviewed
    blocked = {
        attempt["bead_id"]
        for run in runs
        for cycle in run["cycles"]
        for attempt in cycle["attempts"]
        if attempt["status"] in FAILED
    }
    proposals = demo.tui("memory", "proposals")["proposals"]
    assert blocked or level == "low"  # which stops at the first outcome that a person must judge
    assert blocked <= {proposal["bead"] for proposal in proposals if proposal["type"] == "failure"}
    if level == "high":
        assert sum("kind:escalation" in row.get("labels", ()) for row in rows.values()) >= 2
