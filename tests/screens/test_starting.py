"""Starting costs money: what a start would do and cost is shown before it; who else works can be stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.ground.project import find_project, machine_name
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.supervision.run_state.budget import Budget, Limits, read_budget, write_budget
from helix_tui.core.supervision.signals.questions import OpenQuestions
from tests.screens.conftest import MakeConsole
from tests.screens.test_steering import BEADS, REPORTS, said, settled, waited


def past(root: Path, count: int, usd: float) -> None:
    """Attempts of yesterday that cost so much each."""
    metrics = root / ".ddx" / "metrics" / "attempts.jsonl"
    metrics.parent.mkdir()
    rows = [
        {
            "attempt_id": f"20260820T1000{n:02}-aaaa00{n:02}",
            "bead_id": "x-0",
            "ts_start": f"2026-08-20T10:00:{n:02}Z",
            "ts_end": f"2026-08-20T10:01:{n:02}Z",
            "outcome": "success",
            "duration_ms": 60_000,
            "cost_usd": usd,
        }
        for n in range(count)
    ]
    metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))


async def test_before_a_start_stands_what_it_takes_and_what_it_would_cost(console: MakeConsole, a_ddx: None) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", REPORTS))
    past(app.root, 12, 0.5)
    app.feed.look()
    async with app.run_test(size=(140, 34)) as pilot:
        await pilot.press("L")
        await waited(pilot, lambda: app.sees("from 12 past attempts"))
        assert app.sees("2 beads ready: “one”, “two”")
        assert app.sees("a bead   $0.50 ($0.50–$0.50) · 1m 00s (1m 00s–1m 00s)")
        assert app.sees("all 2    $1.00 ($1.00–$1.00)")
        await pilot.press("s")
        await settled(pilot)
        assert app.sees("Start the loop? It spends money")
        assert app.sees("all 2    $1.00")
        await pilot.press("escape")
        await settled(pilot)
    assert not (app.root / "started").exists()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget(Limits(usd=0.4)), "after about 1 of 2 beads: the budget of a run, $0.40"),
        (Budget(Limits(usd=5.0), Limits(attempts=1)), "after about 1 of 2 beads: the budget of a day, 1 attempt"),
        (Budget(Limits(usd=5.0)), "not by the budget, as far as past attempts tell; nearest is the budget of a run"),
    ],
)
async def test_before_a_start_stands_where_the_budget_stops_it(
    console: MakeConsole, a_ddx: None, budget: Budget, words: str
) -> None:
    app = console(BEADS, look_out="once")
    past(app.root, 12, 0.5)
    write_budget(find_project(app.root), budget)
    app.feed.look()
    async with app.run_test(size=(140, 34)) as pilot:
        await pilot.press("L")
        await waited(pilot, lambda: app.sees(f"stops    {words}"))


async def test_what_waits_for_an_answer_is_not_among_what_a_start_takes(console: MakeConsole, a_ddx: None) -> None:
    app = console(BEADS, look_out="once", own=(sys.executable, "-c", REPORTS))
    past(app.root, 12, 0.5)
    project = find_project(app.root)
    first, *_ = (json.loads(row)["id"] for row in BEADS)
    OpenQuestions(project, WriteGate(project, read_only=False)).ask("ambiguous", "land it?", key="k", bead_id=first)
    app.feed.look()
    async with app.run_test(size=(140, 34)) as pilot:
        await pilot.press("L")
        await waited(
            pilot,
            lambda: app.sees("takes    1 bead workers may pick: “two”; then any bead that these make ready; q-1 waits"),
        )
        assert not app.sees("all 2")


@pytest.mark.long
async def test_a_budget_is_set_where_the_loop_is_started(console: MakeConsole) -> None:
    app = console(BEADS, look_out="once")
    project = find_project(app.root)
    async with app.run_test(size=(120, 30)) as pilot:
        for keys, kept in (
            (("L", "b", "r", *"$5", "enter"), Budget(Limits(usd=5.0))),
            (("L", "b", "d", *"9 attempts", "enter"), Budget(Limits(usd=5.0), Limits(attempts=9))),
        ):
            await pilot.press(*keys)
            await settled(pilot)
            assert read_budget(project) == kept
        await pilot.press("L", "b", "r", "ctrl+u", *"five", "enter")
        await settled(pilot)
        assert "write it like $5" in said(app)
        assert read_budget(project) == kept
        await pilot.press("ctrl+u", *"$6", "enter")
        await settled(pilot)
        assert read_budget(project).run == Limits(usd=6.0), "what was wrong can be put right where it was typed"


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for somebody else's worker."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def at_work(root: Path, pid: int, bead: str) -> None:
    """A run record and a sidecar, as ddx writes them while a worker is on a bead."""
    now = format_instant(now_ns())
    document = {
        "worker_id": "agent-loop-1",
        "pid": pid,
        "machine": machine_name(),
        "current_bead": bead,
        "attempt_id": "20260821T100000-aaaa0001",
        "phase": "running",
        "started_at": now,
        "last_activity_at": now,
    }
    folder = root / ".ddx" / "workers" / "agent-loop-1"
    folder.mkdir(parents=True)
    (folder / "status.json").write_text(json.dumps(document))


async def test_a_worker_that_somebody_else_started_is_stopped_by_named_means_the_softest_first(
    console: MakeConsole, worker: subprocess.Popen[bytes]
) -> None:
    app = console([*BEADS, '{"id":"x-3","title":"three"}'], look_out="once")
    at_work(app.root, worker.pid, "x-1")
    app.feed.look()
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.press("L")
        await settled(pilot)
        shown = "\n".join(app.rows())
        hold = shown.index("hold 2 beads (execution-eligible=false)")
        assert hold < shown.index(f"ctrl+c (SIGINT) to process {worker.pid}")
        await pilot.press("h")
        await settled(pilot)
        await waited(pilot, lambda: app.sees("Hold 2 beads"))
    assert worker.poll() is None, "nothing was signalled"
