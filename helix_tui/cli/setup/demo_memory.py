"""The demo's memory: what earlier work is said to have taught, given to beads before the simulation begins.

The simulation is another program and knows nothing of memory: it reads the beads, and its scripted agents
say in their transcripts which of the names they used, as an agent would. What comes of that is read from
the evidence.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import embedded_tracker
from helix_tui.core.embedding import load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS, now_ns
from helix_tui.core.memory import Injection, MemoryStore, database_path, open_memory
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.recall.injection import with_block
from helix_tui.core.memory.store.paths import mentioned
from helix_tui.core.supervision.agents.learning import Learner

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
"""(days ago, trigger, resolution, type), each met by an attempt of its own: the last one has occurred twice
within the week, so its third time is systemic."""

BEADS = (
    "Find a stop when its name is typed without accents",
    "Sort sailings by the clock, not by text",
    "Say which line of a timetable is wrong",
    "Leave with exit code 2 when the arguments are wrong",
    "Show a whole day in the README",
)
"""Titles of the beads that are given memories."""


class DemoMemories(Struct, frozen=True):
    """What was put into beads before the simulation."""

    stored: int = 0
    injections: tuple[Injection, ...] = field(default=())


def give(project: Project, tracker: Tracker, env: dict[str, str]) -> DemoMemories:
    """Remember the lessons, and write into each bead what is remembered for it."""
    at = [now_ns()]
    with open_memory(database_path(project, {}), load_encoder(), clock=lambda: at[0]) as memory:
        for days, trigger, resolution, kind in LESSONS:
            at[0] = now_ns() - days * _DAY
            memory.store(trigger, resolution, type=kind, source="the demo", attempt=f"demo-{days}")
        at[0] = now_ns()
        wanted = []
        injections = []
        for bead in tracker.beads.values():
            chosen = _chosen(memory, bead) if bead.title in BEADS else None
            if chosen is not None and chosen.shown:
                text = with_block(str(bead.document().get("description") or ""), chosen.text)
                wanted.append(operations.assign(bead.id, {"description": text}))
                injections.append(chosen)
        # never the ddx of whoever looks at the demo: this queue is helix-ddx's
        curator = Curator(project, lambda era: embedded_tracker(project, era=era, env=env), env=env)
        curator.run(wanted, title="inject memories")
        entered = tuple(memory.enter(each) for each in injections)
        return DemoMemories(len(memory.list()), entered)


def _chosen(memory: MemoryStore, bead: Bead) -> Injection:
    row = bead.document()
    said = f"{bead.title}\n{row.get('description') or ''}"
    return memory.inject(bead.title, files=mentioned(said), bead=bead.id, kind=bead.issue_type, limit=2, record=False)


def take_in(
    project: Project, tracker: Tracker, attempts: tuple[Attempt, ...], given: DemoMemories, since: int
) -> dict[str, Any]:
    """Let the evidence credit and blame, accept the failures it teaches, and say what came of it."""
    with open_memory(database_path(project, {}), load_encoder()) as memory:
        learner = Learner(project, memory)
        learned = learner.learn(tracker.beads, attempts, since=since)
        failures = [each for each in learner.proposals.all() if each.type == "failure"]
        MemoryChanges(memory).accept(failures)
        reports = [each.report for each in learned if each.report is not None]
        return {
            "stored": given.stored,
            "injected": sum(len(each.shown) for each in given.injections),
            "beads": [each.bead for each in given.injections],
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
