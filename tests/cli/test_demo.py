"""``helix-tui demo``: the whole thing, with real files, real git and the simulation."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ground.processes.threads import pid_alive
from tests.cli.conftest import Cli
from tests.cli.test_console import LIMIT_S, Terminal

pytestmark = [pytest.mark.realtime, pytest.mark.long]


def leftovers() -> list[str]:
    """Demo projects that still lie in this test's temporary folder."""
    return [name for name in os.listdir(os.environ["TMPDIR"]) if name.startswith("helix-demo-")]


def test_headless_drains_and_sums_up(program: Cli) -> None:
    ran = program("demo", "--headless", "--json", "--keep")
    assert ran.code == 0, ran.err
    document = ran.document
    assert document["schema"] == "demo/1"
    memories = document["memories"]
    assert memories["injected"] >= len(memories["beads"]) > 0
    assert memories["settled"] > 0
    assert "sorting-times-as-text-puts-10-05-before-9-40" in memories["credited"]
    assert "reporting-a-wrong-line-of-a-timetable" in memories["blamed"]
    assert memories["systemic"] == ["leave-with-exit-code-2-when-the-arguments-are"]
    assert document["seconds"] > 0
    counts = document["counts"]
    assert {"landed", "preserved", "failed", "no_changes"} <= counts.keys()
    assert all(counts[kind] for kind in ("landed", "preserved", "failed", "no_changes"))
    assert sum(counts.values()) == len(document["attempts"])
    assert {attempt["harness"] for attempt in document["attempts"]} == {"simulation"}
    beads = read_tracker(Path(document["workspace"]) / ".ddx" / "beads.jsonl").beads
    landed = {attempt["bead_id"] for attempt in document["attempts"] if attempt["landed"]}
    assert {beads[bead_id].status for bead_id in landed} == {"closed"}


def test_it_can_be_cut_short_and_leaves_nothing(program: Cli) -> None:
    ran = program("demo", "--headless", "--seconds", "0")
    assert ran.code == 0, ran.err
    assert "stopped after 0 s" in ran.err
    assert "SIMULATION" in ran.out
    assert leftovers() == []


def test_without_a_terminal_it_is_headless(program: Cli) -> None:
    ran = program("demo", "--seconds", "0")
    assert ran.code == 0, ran.err
    assert "SIMULATION" in ran.out


def test_console_on_the_demo_says_simulation_and_cleans_up() -> None:
    terminal = Terminal("demo")
    try:
        terminal.read_until(b"SIMULATION")
        terminal.press(b"q")
        assert terminal.process.wait(LIMIT_S) == 0
    finally:
        terminal.close()
    assert leftovers() == []


def test_a_loop_started_on_the_demo_ends_with_it_and_writes_nothing_after_it() -> None:
    terminal = Terminal("demo", "--screen", "loop")
    try:
        terminal.read_until(b"SIMULATION")
        terminal.press(b"L")
        terminal.read_until(b"ends with the demo")
        terminal.press(b"s")
        terminal.read_until(b"Start the loop")
        terminal.press(b"y")
        terminal.read_until(b"the loop is running")
        pid = int(re.findall(rb"running \(pid (\d+)", terminal.seen)[0])
        terminal.press(b"q")
        assert terminal.exit_code() == 0
        assert not pid_alive(pid)
    finally:
        terminal.close()
    assert leftovers() == []


def test_it_touches_no_ddx_and_no_memory_but_its_own(
    program: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddx = tmp_path / "ddx"
    ddx.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/touched"\nexit 1\n')
    ddx.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("DDX_BIN", str(ddx))
    monkeypatch.setenv("HELIX_DB_PATH", str(tmp_path / "mine.db"))
    ran = program("demo", "--headless", "--json")
    assert ran.code == 0, ran.err
    assert ran.document["memories"]["injected"] > 0
    assert not (tmp_path / "touched").exists()
    assert not (tmp_path / "mine.db").exists()
