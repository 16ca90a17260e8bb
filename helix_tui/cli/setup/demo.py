"""``helix-tui demo``: a throw-away project, the simulation that drains it, and the console on it.

The project has memories of earlier work: lessons that are injected into its beads, and credited or blamed by what the
simulated attempts leave behind.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.cli import console, programs
from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import read_attempts
from helix_tui.cli.programs import finish, last_words, running, tidy_when_killed
from helix_tui.cli.show import attempts as evidence
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker, read_tracker
from helix_tui.core.ddx.attempts.attempt import Attempt, count_headings, count_outcomes
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import embedded_tracker
from helix_tui.core.editing.execute.trust import allow, not_allowed
from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.ground.processes.start import TimeoutExpired
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.text import clean_line, counted, fit
from helix_tui.core.ground.time import NS, now_ns
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.injection import with_block
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.records import Injection
from helix_tui.core.memory.store.database import database_path
from helix_tui.core.memory.store.indexing import mentioned
from helix_tui.core.statements.ending import outcome_words
from helix_tui.core.supervision.agents.learning import Learner
from helix_tui.core.supervision.run_state.run_control import stop_run

_DAY = 86_400 * NS

_EXIT = "Leave with exit code 2 when the arguments are wrong: a check after the run failed"

LESSONS = (
    (9, "Comparing stop names as typed misses accents", "fold case and accents on both sides", "failure"),
    (8, "Sorting times as text puts 10:05 before 9:40", "parse the clock first, sort by minutes", "failure"),
    (7, "Reporting a wrong line of a timetable", "count lines from one and quote the line", "pattern"),
    (6, "Showing a whole day in the README", "run the command and paste what it prints", "pattern"),
    (3, _EXIT, "print the usage before exiting", "failure"),
    (2, _EXIT, "print the usage before exiting", "failure"),
)
"""(days ago, trigger, resolution, type), each from a different attempt: the last one has occurred twice
within the week, so its third time is systemic."""

BEADS = (
    "Find a stop when its name is typed without accents",
    "Sort sailings by the clock, not by text",
    "Say which line of a timetable is wrong",
    "Leave with exit code 2 when the arguments are wrong",
    "Show a whole day in the README",
)
"""Titles of the beads that are given memories."""

BUILD_LIMIT = 60.0
DRAIN_LIMIT = 300.0

DEMO_STALL_S = 12.0
"""Silence that counts as a stall in the demo, whose agent works a hundred times as fast as a real one."""


class DemoMemories(Struct, frozen=True):
    """The memories that were injected before the simulation."""

    stored: int = 0
    injections: tuple[Injection, ...] = field(default=())


def give(project: Project, tracker: Tracker, env: dict[str, str]) -> DemoMemories:
    """Store the lessons, and write into each bead the memories that fit it."""
    at = [now_ns()]
    # without the environment: HELIX_DB_PATH would point at the user's own memory
    with open_memory(database_path(project, {}), load_encoder(), clock=lambda: at[0], teacher="person") as memory:
        for days, trigger, resolution, kind in LESSONS:
            at[0] = now_ns() - days * _DAY
            past = f"demo-{days}"
            memory.store(trigger, resolution, type=kind, source="the demo", attempt=past, taught_by="attempt")
        at[0] = now_ns()
        wanted = []
        injections = []
        for bead in tracker.beads.values():
            chosen = _chosen(memory, bead) if bead.title in BEADS else None
            if chosen is not None and chosen.shown:
                text = with_block(str(bead.document().get("description") or ""), chosen.text)
                wanted.append(operations.SetFields(bead.id, {"description": text}))
                injections.append(chosen)
        # never the user's ddx: this queue belongs to helix-ddx
        curator = Curator(project, lambda: embedded_tracker(project, env), env=env)
        curator.run(wanted, title="inject memories")
        entered = tuple(memory.enter(injection) for injection in injections)
        return DemoMemories(len(memory.list()), entered)


def _chosen(memory: MemoryStore, bead: Bead) -> Injection:
    row = bead.document()
    said = f"{bead.title}\n{row.get('description') or ''}"
    return memory.inject(bead.title, files=mentioned(said), bead=bead.id, kind=bead.issue_type, limit=2, record=False)


def take_in(
    project: Project, tracker: Tracker, attempts: tuple[Attempt, ...], given: DemoMemories, since: int
) -> dict[str, Any]:
    """Credit and blame the memories by the evidence, accept the proposed failures, and report the result."""
    with open_memory(database_path(project, {}), load_encoder(), teacher="person") as memory:
        learner = Learner(project, memory)
        learned = learner.learn(tracker.beads, attempts, since=since)
        failures = [each for each in learner.proposals.all() if each.type == "failure"]
        MemoryChanges(memory).accept(failures)
        reports = [each.report for each in learned if each.report is not None]
        return {
            "stored": given.stored,
            "injected": sum(len(injection.shown) for injection in given.injections),
            "beads": [injection.bead for injection in given.injections],
            "settled": len(reports),
            "credited": sorted(name for report in reports for name in report.helped),
            "blamed": sorted(name for report in reports for name in report.unhelpful),
            "lessons": sum(each.proposal is not None for each in learned),
            "accepted": len(failures),
            "systemic": [each.name for each in memory.list(type="systemic")],
            "memories": [each.document() for each in memory.list()],
            "mode": memory.mode,
            "detail": memory.detail,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--headless", action="store_true", help="no console: drain the queue and print a summary")
    parser.add_argument("--seconds", type=float, metavar="N", help="end after N seconds")
    parser.add_argument("--tour", action="store_true", help="start with a two-minute tour, key by key")
    parser.add_argument("--keep", action="store_true", help="leave the project on disk afterwards")
    parser.add_argument("--torn-line", action="store_true", help="with a tracker line that a crash cut off")
    console.add_arguments(parser)


def run(call: Call) -> int:
    """Build the project, drain it, and show it; without a terminal, print a summary."""
    if call.options.dry_run:
        return print_dry_run(call)
    headless = call.options.headless or call.json or not (sys.stdout.isatty() and sys.stdin.isatty())
    if not headless:
        call.note("Building a throw-away project for the demo: a few seconds. q leaves it.")
    with tidy_when_killed(), throw_away(call) as holder:
        root = build(call, holder)
        return drain(call, root) if headless else watch(call, root)


def print_dry_run(call: Call) -> int:
    """The commands that the demo would run, in a folder that does not exist yet."""
    made = [*programs.helix_ddx(), "demo-workspace", "DEMO"]
    commands = [made, [*programs.helix_ddx(), "drain", "-C", "DEMO"]]
    if call.json:
        call.emit({"dry_run": True, "commands": commands})
    for words in () if call.json else commands:
        call.print(clean_line(shlex.join(words), 400))
    return 0


@contextmanager
def throw_away(call: Call) -> Iterator[Path]:
    """A temporary folder, removed afterwards unless ``--keep`` was given."""
    holder = Path(tempfile.mkdtemp(prefix="helix-demo-"))
    try:
        yield holder
    finally:
        if call.options.keep:
            call.note(f"helix-tui demo: kept {holder / 'demo'}")
        else:
            shutil.rmtree(holder, ignore_errors=True)


def build(call: Call, holder: Path) -> Path:
    """Let helix-ddx create the project; return its folder."""
    root = holder / "demo"
    command = [*programs.helix_ddx(), "demo-workspace", str(root)]
    command += ["--torn-line"] if call.options.torn_line else []
    finish(command, cwd=holder, env=programs.quiet_environment(), timeout=BUILD_LIMIT)
    project = find_project(root)
    allow(not_allowed(project))  # we made it
    return root


def drain(call: Call, root: Path) -> int:
    """Drain the queue as fast as the simulation can, then print the outcome from the evidence on disk."""
    given = remember(call, root)
    begun, clock = now_ns(), time.monotonic()
    limit = DRAIN_LIMIT if call.options.seconds is None else call.options.seconds
    command = [*programs.helix_ddx(), "drain", "-C", str(root), "--pace", "0", "--json"]
    with running(command, cwd=root, env=programs.quiet_environment()) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except TimeoutExpired:
            call.note(f"helix-tui demo: stopped after {limit:g} s")
        else:
            if process.returncode:
                raise CliError(
                    f"the simulation failed: {last_words(said)}",
                    "`helix-tui demo --keep` keeps its files.",
                )
    project = find_project(root)
    tracker, found = read_attempts(project, now_ns())
    # whole seconds: an attempt may be dated by its id, which has no finer unit
    attempts = [attempt for attempt in found if (attempt.started_at or 0) >= begun // NS * NS]
    seconds = time.monotonic() - clock
    memories = take_in(project, tracker, found, given, begun // NS * NS)
    summarise(call, project, tracker, attempts, memories, seconds)
    return 0


def remember(call: Call, root: Path) -> DemoMemories:
    """Inject the memories of earlier work into the beads."""
    project = find_project(root)
    return give(project, read_tracker(project.beads_file), programs.quiet_environment())


def summarise(
    call: Call, project: Project, tracker: Tracker, attempts: list[Attempt], memories: dict[str, Any], seconds: float
) -> None:
    """Print the outcome of the drain, as text or JSON."""
    counts = count_headings(attempts)
    if call.json:
        queue = classify(tracker.beads, now=now_ns())
        call.emit(
            {
                "workspace": project.root,
                "kept": call.options.keep,
                "attempts": [evidence.as_document(attempt, call.now, queue) for attempt in attempts],
                "counts": counts,
                "memories": memories,
                "seconds": round(seconds, 3),
            }
        )
        return
    call.print(f"SIMULATION in {clean_line(str(project.root))}")
    call.print("a scripted agent with invented costs; files, commits and evidence are real")
    for attempt in reversed(attempts):
        bead = tracker.beads.get(attempt.bead_id)
        title = clean_line(bead.title if bead else attempt.bead_id, 200)
        word = call.paint(fit(attempt.word, 11), OUTCOME_ROWS[attempt.verdict.outcome].role)
        call.print(f"  {word}  {fit(clean_line(attempt.status) or 'no result', 18)}  {fit(title, 60).rstrip()}")
    said = outcome_words(count_outcomes(attempts))
    call.print(f"{counted(len(attempts), 'attempt')} in {seconds:.1f} s: {said or 'nothing was ready'}")
    credited, blamed = len(memories["credited"]), len(memories["blamed"])
    call.print(
        f"memory: {memories['injected']} given to beads · {credited} credited · {blamed} blamed"
        f" · {counted(memories['lessons'], 'lesson')}"
    )
    for memory in memories["memories"]:
        if memory["type"] == "systemic":
            call.print(call.paint(f"  systemic now (third time): {clean_line(memory['trigger'], 120)}", "attention"))


def watch(call: Call, root: Path) -> int:
    """Open the console on it while the simulation works at a pace that a person can follow."""
    remember(call, root)
    command = [*programs.helix_ddx(), "drain", "-C", str(root)]
    with (
        open(root.parent / "simulation.log", "wb") as log,
        running(command, cwd=root, env=programs.quiet_environment(), log=log.fileno()),
    ):
        ours = replace(call, ddx=call.ddx or programs.helix_ddx_file())
        project = find_project(root)
        try:
            return console.open_console(
                ours, project, seconds=call.options.seconds, stall_after_s=DEMO_STALL_S, demo=True
            )
        finally:
            end_runs(project)


def end_runs(project: Project) -> None:
    """End the loop and the attempts that the demo's console started: their folder is about to be removed."""
    with suppress(OSError):
        # first the loop with its ddx, then attempts started one by one
        while stop_run(project).how == "stopped":
            pass
