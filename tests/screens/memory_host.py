"""A console on the Memory screen over a project with a memory whose story is known."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from helix_tui.core.ground.time import NS
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.plan_records import TaskReport
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.tasks.plans import Plans
from helix_tui.core.memory.tasks.task_check import TaskCheck
from helix_tui.screens.memory.memory_screen import MemoryScreen
from tests.screens.conftest import NOW, Console

DAY = 86_400 * NS

LOCK = "lock-the-tracker-before-rewriting-it"
GATE = "run-the-gate-sequentially-not-in-parallel"
PUSH = "retry-the-push-until-it-works"
IDENTITY = "tests-pass-locally-ci-lacks-git-identity"


def remember(root: Path) -> Path:
    """Write the memory; where it lies."""
    path = root / ".helix" / "helix.db"
    at = [NOW - 70 * DAY]
    with open_memory(path, clock=lambda: at[0], teacher="person") as memory:
        memory.store("Prefer rename over truncate", "write beside it, then rename", type="pattern")
        at[0] = NOW - 6 * DAY
        memory.store("Lock the tracker before rewriting it", "take the lock, read again, write by rename")
        memory.store("Run the gate sequentially, not in parallel", "two cores are few", type="pattern")
        memory.store("Retry the push until it works", "sleep and push again", type="pattern")
        memory.store("Tests pass locally, CI lacks git identity", "set the author", type="systemic")
        for number in range(16):
            at[0] = NOW - 5 * DAY + number * 3600 * NS
            _settle(memory, LOCK, f"20260816T{number:02}0000-aaaa{number:04}", number < 14)
        for number in range(3):
            _settle(memory, GATE, f"20260817T{number:02}0000-bbbb{number:04}", True)
        for number in range(4):
            _settle(memory, PUSH, f"20260818T{number:02}0000-cccc{number:04}", False)
        memory.relate(GATE, LOCK, "solves")
        memory.relate(LOCK, IDENTITY, "co_occurs", 0.8)
        at[0] = NOW - 3600 * NS
        _propose(memory)
        _plan(memory)
    return path


def _settle(memory: MemoryStore, name: str, attempt: str, passed: bool) -> None:
    found = memory.get(name)
    assert found is not None
    memory.inject(found.trigger, attempt=attempt, bead="demo-1", limit=1)
    memory.feedback(
        injected=[name],
        utilized=[name],
        verified="passed" if passed else "failed",
        attempt=attempt,
        kind="task",
    )


def _propose(memory: MemoryStore) -> None:
    lessons = [
        ("failure", "Keep metrics apart: a check after the run failed", "go vet finds an unused variable"),
        ("pattern", "Sort sailings by the clock", "parse times before comparing them"),
    ]
    for number, (kind, trigger, resolution) in enumerate(lessons):
        lesson = Proposal(
            0, f"20260820T0{number}0000-dddd0001", "demo-1", kind, trigger, resolution, "checks failed: vet"
        )
        Proposals(memory).add(lesson)


def _plan(memory: MemoryStore) -> None:
    task: dict[str, Any] = {"delta": ["src/auth.py"], "budget": 7, "verify": "pytest tests/test_auth.py"}
    first = task | {"seq": "001", "slug": "models", "objective": "Specify the models", "depends": "none"}
    second = task | {"seq": "002", "slug": "service", "objective": "Lock the tracker", "depends": "001"}
    plans = Plans(memory)
    plan = plans.add_plan({"objective": "Authenticate users", "tasks": [first, second]})
    done = plans.open_workspace(plan, plan.tasks[0])
    plans.close_workspace(
        done.id, TaskReport(delivered="the models are there"), TaskCheck("passed", "`make test` passed")
    )
    plans.open_workspace(plan, plan.tasks[1])
    plans.add_exploration("Authenticate users", {"structure": {"entry_points": ["main.py"]}})


def memory_of(app: Console) -> MemoryScreen:
    """The screen in view."""
    return cast(MemoryScreen, app.screen)


async def settled(pilot: Pilot[int]) -> None:
    """Until everything asked for has come."""
    await pilot.pause()
    screen = pilot.app.screen
    if isinstance(screen, MemoryScreen):
        screen.look()
    for _ in range(4):
        with suppress(WorkerCancelled):  # a look that a newer one has taken the place of
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
