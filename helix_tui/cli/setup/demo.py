"""``helix-tui demo``: a throw-away project, the simulation draining it, and the console on it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from helix_tui.cli import console, programs
from helix_tui.cli.call import Call, CliError
from helix_tui.cli.programs import finish, last_words, running, tidy_when_killed
from helix_tui.cli.setup import demo_memory as demonstrating
from helix_tui.cli.show import attempts as evidence
from helix_tui.core.beads.tracker import Tracker, read_tracker
from helix_tui.core.ddx.attempts.attempt import count_headings, count_outcomes
from helix_tui.core.ddx.attempts.index import Attempt
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.runs.running import find_running
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.text import clean_line, counted, fit
from helix_tui.core.ground.time import NS, now_ns

BUILD_LIMIT = 60.0
DRAIN_LIMIT = 300.0


DEMO_STALL_S = 12.0
"""Silence that the demo's console calls a stall: its agent works a hundred times as fast as a real one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--headless", action="store_true", help="no console: drain the queue and print a summary")
    parser.add_argument("--seconds", type=float, metavar="N", help="end after N seconds")
    parser.add_argument("--tour", action="store_true", help="with a tour of two minutes: what is where, key by key")
    parser.add_argument("--keep", action="store_true", help="leave the project on disk afterwards")
    parser.add_argument("--era", choices=("april", "head"), default="head", help="the DDx release that it simulates")
    parser.add_argument("--torn-line", action="store_true", help="with a line in the tracker that a crash cut off")
    console.add_arguments(parser)


def run(call: Call) -> int:
    """Build the project, drain it, and show it; without a terminal, sum it up."""
    if call.options.dry_run:
        return foretell(call)
    headless = call.options.headless or call.json or not (sys.stdout.isatty() and sys.stdin.isatty())
    with tidy_when_killed(), throw_away(call) as holder:
        root = build(call, holder)
        return drain(call, root) if headless else watch(call, root)


def foretell(call: Call) -> int:
    """The commands that the demo would run, in a folder that does not exist yet."""
    made = [*programs.helix_ddx(), "demo-workspace", "DEMO", "--era", call.options.era]
    commands = [made, [*programs.helix_ddx(), "drain", "-C", "DEMO"]]
    if call.json:
        call.emit({"dry_run": True, "commands": commands})
    for words in () if call.json else commands:
        call.print(clean_line(shlex.join(words), 400))
    return 0


@contextmanager
def throw_away(call: Call) -> Iterator[Path]:
    """A temporary folder that is gone afterwards, unless it is to be kept."""
    holder = Path(tempfile.mkdtemp(prefix="helix-demo-"))
    try:
        yield holder
    finally:
        if call.options.keep:
            call.note(f"helix-tui demo: kept {holder / 'demo'}")
        else:
            shutil.rmtree(holder, ignore_errors=True)


def build(call: Call, holder: Path) -> Path:
    """Let helix-ddx make the project; where it is."""
    root = holder / "demo"
    command = [*programs.helix_ddx(), "demo-workspace", str(root), "--era", call.options.era]
    command += ["--torn-line"] if call.options.torn_line else []
    finish(command, cwd=holder, env=environment(call), timeout=BUILD_LIMIT)
    return root


def environment(call: Call) -> dict[str, str]:
    """What helix-ddx is told: which era to play, and nothing of another project."""
    return programs.quiet_environment() | {"HELIX_DDX_ERA": call.options.era}


def drain(call: Call, root: Path) -> int:
    """Drain it as fast as the simulation can, then say what came of it, by the evidence on disk."""
    given = remember(call, root)
    begun, clock = now_ns(), time.monotonic()
    limit = DRAIN_LIMIT if call.options.seconds is None else call.options.seconds
    command = [*programs.helix_ddx(), "drain", "-C", str(root), "--pace", "0", "--json"]
    with running(command, cwd=root, env=environment(call)) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            call.note(f"helix-tui demo: stopped after {limit:g} s")
        else:
            if process.returncode:
                raise CliError(f"the simulation failed: {last_words(said)}", "`helix-tui demo --keep` keeps its files.")
    project = find_project(root)
    tracker = read_tracker(project.beads_file)
    found = evidence.read_attempts(project, tracker, find_running(project, tracker.beads, now_ns()))
    attempts = [attempt for attempt in found if (attempt.started_at or 0) >= begun // NS * NS]
    seconds = time.monotonic() - clock
    memories = demonstrating.take_in(project, tracker, found, given, begun // NS * NS)
    summarise(call, project, tracker, attempts, memories, seconds)
    return 0


def remember(call: Call, root: Path) -> demonstrating.DemoMemories:
    """Give the beads what earlier work has taught."""
    project = find_project(root)
    return demonstrating.give(project, read_tracker(project.beads_file), environment(call))


def summarise(
    call: Call,
    project: Project,
    tracker: Tracker,
    attempts: list[Attempt],
    memories: dict[str, Any],
    seconds: float,
) -> None:
    """What came of the drain, for people or for a machine."""
    counts = count_headings(attempts)
    if call.json:
        call.emit(
            {
                "workspace": project.root,
                "kept": call.options.keep,
                "attempts": [evidence.as_document(attempt, call.now) for attempt in attempts],
                "counts": counts,
                "memories": memories,
                "seconds": round(seconds, 3),
            }
        )
        return
    call.print(f"SIMULATION in {clean_line(str(project.root))}")
    call.print("a scripted agent with invented costs; files, commits and evidence are real")
    for attempt in reversed(attempts):
        outcome = attempt.verdict.outcome
        bead = tracker.beads.get(attempt.bead_id)
        title = clean_line(bead.title if bead else attempt.bead_id, 200)
        word = call.paint(fit(attempt.word, 11), evidence.ROLES.get(outcome, "muted"))
        call.print(f"  {word}  {fit(clean_line(attempt.status) or 'no result', 18)}  {fit(title, 60).rstrip()}")
    ended = count_outcomes(attempts).items()
    said = " · ".join(f"{number} {OUTCOME_WORDS[outcome]}" for outcome, number in ended)
    call.print(f"{counted(len(attempts), 'attempt')} in {seconds:.1f} s: {said or 'nothing was ready'}")
    credited, blamed = len(memories["credited"]), len(memories["blamed"])
    call.print(
        f"memory: {memories['injected']} given to beads · {credited} credited · {blamed} blamed"
        f" · {counted(memories['lessons'], 'lesson')}"
    )
    for name in memories["systemic"]:
        call.print(call.paint(f"  systemic now (third time): {clean_line(name, 80)}", "attention"))


def watch(call: Call, root: Path) -> int:
    """Open the console on it while the simulation works at a person's pace."""
    remember(call, root)
    command = [*programs.helix_ddx(), "drain", "-C", str(root)]
    with (
        open(root.parent / "simulation.log", "wb") as log,
        running(command, cwd=root, env=environment(call), log=log.fileno()),
    ):
        os.environ["HELIX_DDX_ERA"] = call.options.era  # a loop started from this console plays the same
        ours = replace(call, ddx=call.ddx or programs.helix_ddx_file())
        return console.open_console(
            ours, find_project(root), seconds=call.options.seconds, stall_after_s=DEMO_STALL_S, demo=True
        )
