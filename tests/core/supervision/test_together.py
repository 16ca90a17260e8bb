"""Several curators at once beside a live feed, and curators killed in the middle of what they write.

The suite runs a small load. ``HELIX_LOAD=full pytest tests/core/supervision/test_together.py`` runs eight
processes with 200 operations each, and kills 200 of them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.editing.journal import Journal
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.ground.project import find_project
from helix_tui.core.snapshot.feed import Live, take_snapshot
from helix_tui.core.snapshot.snapshot import Change, Snapshot
from helix_tui.core.supervision.signals.focus import plan_unfocus, plan_upkeep, read_focus
from tests.core.supervision.conftest import World, WorldFactory, row, settled
from tests.core.supervision.load_curator import SHARED

pytestmark = [pytest.mark.realtime, pytest.mark.long]

FULL = os.environ.get("HELIX_LOAD") == "full"
WORKER = Path(__file__).with_name("load_curator.py")


def start(here: World, name: str, count: int, *more: str) -> subprocess.Popen[str]:
    seed = str(random.Random(name).randrange(10**8))
    argv = [sys.executable, str(WORKER), str(here.root), name, seed, str(count), *more]
    env = {**os.environ, "DDX_BEAD_LOCK_TIMEOUT": "60", "DDX_BEAD_PREFIX": "demo", "PATH": os.defpath}
    return subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)


def crowd(world: WorldFactory, weight: int = 20) -> World:
    """Six beads that everybody changes, among others; an epic with a child for the focus."""
    rows = [row(bead_id) for bead_id in SHARED]
    rows += [row(f"demo-f{number:07x}", description="x" * 2_000) for number in range(weight)]
    rows += [row("demo-epic", issue_type="epic"), row("demo-child", parent="demo-epic")]
    return world(sorted(rows, key=lambda each: str(each["id"])))


def check(here: World, promises: list[list[str]]) -> None:
    """Every line is a record, and what was promised holds."""
    text = here.tracker.read_text()
    assert text.endswith("\n")
    lines = text.splitlines()
    rows = {each["id"]: each for each in map(json.loads, lines)}
    assert len(rows) == len(lines)
    for kind, *words in promises:
        if kind == "bead":
            assert rows[words[0]]["title"] == words[1]
        elif kind == "label":
            assert words[1] in rows[words[0]]["labels"]
        elif kind == "field":
            assert rows[words[0]][words[1]] == words[2]
        elif kind == "edge":
            assert words[1] in [edge["depends_on_id"] for edge in rows[words[0]]["dependencies"]]
        elif kind == "nothing":
            assert words[1] not in rows[words[0]]


class Watching:
    """A live feed as the console has it; its newest snapshot, and what was ever told."""

    def __init__(self, root: Path) -> None:
        self.newest: Snapshot | None = None
        self.generations: list[int] = []
        self._news = threading.Condition()
        self._live = Live(find_project(root), self._hear)

    def __enter__(self) -> Watching:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop(10)

    def _hear(self, snapshot: Snapshot, change: Change) -> None:
        with self._news:
            self.newest = snapshot
            self.generations.append(snapshot.generation)
            assert not snapshot.tracker.dropped, "a reader saw half of a line"
            self._news.notify_all()

    def agrees(self, root: Path, within: float = 30) -> bool:
        """Whether it comes to show what a fresh read shows."""

        def same() -> bool:
            return self.newest is not None and shown(self.newest) == shown(take_snapshot(find_project(root)))

        with self._news:
            return self._news.wait_for(same, within)


def shown(snapshot: Snapshot) -> tuple[Any, ...]:
    """Everything of a snapshot that a screen shows of the queue and the journal."""
    queue = snapshot.queue
    rows = {bead_id: bead.raw for bead_id, bead in queue.beads.items()}
    states = {bead_id: queue.state(bead_id) for bead_id in queue.beads}
    return rows, states, queue.ready, [entry.id for entry in snapshot.journal.entries]


def test_curators_at_once_lose_nothing_and_the_console_is_not_stale(world: WorldFactory) -> None:
    here = crowd(world)
    workers, count = (8, 200) if FULL else (3, 4)
    with Watching(here.root) as console:
        running = [start(here, f"w{number}", count) for number in range(workers)]
        told = [worker.communicate(timeout=3_000)[0] for worker in running]
        assert [worker.returncode for worker in running] == [0] * workers
        assert console.agrees(here.root)
        assert console.generations == sorted(console.generations)
    promises = [json.loads(line) for text in told for line in text.splitlines()]
    assert not [words for words in promises if words[0] in ("error", "conflict")]
    check(here, promises)
    history = Journal.of(here.curator.project).read()
    assert (history.dropped, history.torn, history.pending) == (0, False, ())
    numbers = [entry.seq for entry in history.entries]
    assert numbers == sorted(set(numbers))
    assert not list((here.root / ".ddx").glob("*.tmp-*"))


def test_killed_curators_leave_everything_whole(world: WorldFactory) -> None:
    here = crowd(world)
    chance = random.Random("head")
    promises: list[list[str]] = []
    for number in range(100 if FULL else 2):
        worker = start(here, f"k{number}", 10_000)
        assert worker.stdout is not None
        promises.extend(json.loads(worker.stdout.readline()) for _ in range(chance.randrange(1, 4)))
        kill_at_a_moment(here, worker, chance)
        told = worker.communicate(timeout=60)[0].splitlines(keepends=True)
        promises += [json.loads(line) for line in told if line.endswith("\n")]
        here.again().recover()
        history = Journal.of(here.curator.project).read()
        assert history.pending == ()
        for entry in history.entries:
            assert entry.result in ("done", "partial", "not_done"), entry
        assert not read_tracker(here.tracker).dropped
    check(here, [words for words in promises if words[0] not in ("nothing", "conflict", "error")])
    last = start(here, "last", 5)
    assert json.loads(last.communicate(timeout=120)[0].splitlines()[-1]) == ["done"]


def kill_at_a_moment(here: World, worker: subprocess.Popen[str], chance: random.Random) -> None:
    """Kill it while a sign of writing stands: the tracker's lock or its half-written file, or at any time."""
    ddx, helix = here.root / ".ddx", here.root / ".helix"
    sign = chance.choice(["*.tmp-*", "beads.lock/*", "beads.lock", "journal"])
    size = (helix / "journal.jsonl").stat().st_size
    after = chance.randrange(1, 30)
    for _ in range(200_000):
        if worker.poll() is not None:
            break
        if sign == "journal":
            now = (helix / "journal.jsonl").stat().st_size
            after -= now != size
            size = now
        else:
            after -= any(ddx.glob(sign))
        if after <= 0:
            break
    os.killpg(worker.pid, signal.SIGKILL)


def test_a_focus_killed_at_any_time_is_mended_and_given_back_whole(world: WorldFactory) -> None:
    here = crowd(world, weight=4)
    here.rewrite("demo-f0000001", execution__eligible=False)
    here.rewrite("demo-f0000002", execution__eligible=True)
    before = {bead_id: settled(each) for bead_id, each in here.rows().items()}
    chance = random.Random("head")
    for number in range(50 if FULL else 2):
        worker = start(here, f"f{number}", 10_000, "focus")
        assert worker.stdout is not None
        if chance.random() < 0.5:
            worker.stdout.readline()
        size = (here.root / ".ddx" / "beads.jsonl").stat().st_mtime_ns
        after = chance.randrange(1, 12)
        for _ in range(500_000):
            now = here.tracker.stat().st_mtime_ns
            after -= now != size
            size = now
            if after <= 0:
                break
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate(timeout=60)
        curator = here.again()
        curator.recover()
        curator.run_steps("focus", "mend", lambda writing, _: plan_upkeep(writing))
        overlay = Overlay(curator.look().queue)
        focus = read_focus(overlay)
        assert focus.leftovers == ()
        assert not focus.held or focus.epic == "demo-epic"
        if focus.epic:
            held = {f"demo-f{each:07x}" for each in (0, 2, 3)} | set(SHARED)
            assert set(focus.held) == held
            assert overlay.queue.state("demo-child") == "ready"
    here.again().run_steps("focus", "off", lambda writing, _: plan_unfocus(writing))
    assert {bead_id: settled(each) for bead_id, each in here.rows().items()} == before
