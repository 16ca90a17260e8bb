"""Drift, orphaned claims and the focus on the screens: each is shown, and dealt with by one key."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import GateBusy, WriteGate, find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.statements.notifications import claimed
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.focus import plan_focus
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.signals.tried import Tried, bead_fingerprint
from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.needs.actions import BesideQueue
from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.screens.watch import ATTEMPTING
from helix_tui.settings.file import Settings
from tests.screens.conftest import Console, MakeConsole
from tests.screens.journal_host import at_rest, lines, row

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def dead_pid() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def rows_of(app: Console) -> dict[str, dict[str, Any]]:
    text = (app.root / ".ddx" / "beads.jsonl").read_text()
    return {each["id"]: each for each in map(json.loads, text.splitlines())}


def rewrite(app: Console, *rows: dict[str, Any]) -> None:
    """Somebody else puts other rows in the place of those of the same id."""
    found = rows_of(app) | {each["id"]: each for each in rows}
    (app.root / ".ddx" / "beads.jsonl").write_text("".join(f"{line}\n" for line in lines(found.values())))


def looked(app: Console) -> None:
    """The monitor has looked at what lies there now."""
    watch = app.monitor
    assert watch is not None
    app.feed.look()
    watch.look(app.feed.snapshot)
    app._concerns_from_thread(watch.concerns)


def watched(app: Console) -> None:
    """A monitor without a thread of its own: it looks when the test says so."""
    app._open_watch(app.snapshot, read_only=app.read_only)
    looked(app)


async def test_drift_waits_on_a_person_until_it_is_acknowledged(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        rewrite(app, row("a", parent="b", spec__id="S-2"))
        looked(app)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        assert isinstance(app.screen, NeedsScreen)
        assert [need.kind for need in app.needs] == ["drift"]
        assert app.sees("parent was absent and is “b”")
        assert app.sees("acknowledge")
        assert app.monitor is not None
        app.monitor.start(app.feed.snapshot)
        await pilot.press("A")
        for _ in range(200):
            await pilot.pause(0.02)
            if not app.needs:
                break
        app.monitor.stop()
        assert app.needs == ()
        assert app.sees("nothing waits for you")


async def test_documents_that_contradict_each_other_wait_for_a_person_and_are_answered_there(
    console: MakeConsole,
) -> None:
    app = console(lines([row("a")]))
    (app.root / "docs").mkdir()
    for name, other in (("SD-001", "SD-002"), ("SD-002", "SD-001")):
        document = f"---\nddx:\n  id: {name}\n  supersedes: {other}\n---\n# Design\n"
        (app.root / "docs" / f"{name}.md").write_text(document)
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        assert [need.kind for need in app.needs] == ["contradiction"]
        assert app.status_summary is not None
        assert app.status_summary.verdict.next_action == "GUIDANCE"
        assert app.sees("each supersede the other")
        await pilot.press("enter", *"second", "enter")
        await at_rest(pilot)
        (asked,) = OpenQuestions(find_project(app.root), WriteGate(find_project(app.root))).all()
        assert (asked.kind, asked.answer) == ("physics-level", "second")
        assert app.monitor is not None
        app._concerns_from_thread(app.monitor.concerns)
        await at_rest(pilot)
        assert app.needs == (), "decided, though the monitor has not looked since"
        looked(app)
        assert app.status_summary.verdict.next_action == "BUILD"


async def test_one_key_keeps_a_drifted_bead_from_workers_until_it_is_acknowledged(
    console: MakeConsole,
) -> None:
    app = console(lines([row("a"), row("b")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        rewrite(app, row("a", parent="b"))
        looked(app)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        assert app.sees("e keep workers off")
        await pilot.press("e")
        await at_rest(pilot)
        assert isinstance(app.screen, PreviewSheet)
        assert "execution-eligible" not in rows_of(app)["a"], "only shown so far"
        await pilot.press("enter")
        await at_rest(pilot)
        assert rows_of(app)["a"]["execution-eligible"] is False
        looked(app)
        assert [need.kind for need in app.needs] == ["drift"]
        assert app.monitor is not None
        app.monitor.start(app.feed.snapshot)
        assert isinstance(app.screen, NeedsScreen)
        await at_rest(pilot)
        assert not app.sees("e keep workers off"), "held back already"
        await pilot.press("A")
        for _ in range(200):
            await pilot.pause(0.02)
            if not app.needs:
                break
        app.monitor.stop()
        after = rows_of(app)["a"]
        assert "execution-eligible" not in after
        assert not [name for name in after if name.startswith("helix-drift")]


async def test_an_orphaned_claim_is_let_go_of_by_one_key_and_a_look(console: MakeConsole, dead_pid: int) -> None:
    held = {"status": "in_progress", "owner": "bot", "claimed__at": "2026-08-01T00:00:00Z"}
    dead = {"claimed__pid": str(dead_pid), "claimed__machine": socket.gethostname()}
    app = console(lines([row("a", **held, **dead), row("b")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        assert [need.kind for need in app.needs] == ["orphaned_claim"], "not told twice as a dead worker"
        assert app.sees("c release claim")
        await pilot.press("c")
        await at_rest(pilot)
        assert isinstance(app.screen, PreviewSheet)
        assert app.sees("ddx bead update a --unclaim")
        assert rows_of(app)["a"]["status"] == "in_progress"
        await pilot.press("enter")
        await at_rest(pilot)
        assert rows_of(app)["a"]["status"] == "open"


@pytest.mark.parametrize("meanwhile", ["claimed by another worker", "closed", "worker's lease", "edited"])
async def test_a_release_runs_only_what_was_shown(
    console: MakeConsole, dead_pid: int, meanwhile: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "leases"))
    held = {"status": "in_progress", "owner": "bot", "claimed__at": "2026-08-01T00:00:00Z"}
    here = {"claimed__machine": socket.gethostname()}
    dead = row("a", **held, claimed__pid=str(dead_pid), **here)
    app = console(lines([dead, row("b")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        await pilot.press("exclamation_mark")
        await at_rest(pilot)
        await pilot.press("c")
        await at_rest(pilot)
        assert app.sees("ddx bead update a --unclaim")
        if meanwhile == "claimed by another worker":
            again = {"claimed__at": "2026-08-20T00:00:00Z", "claimed__pid": str(os.getpid())}
            rewrite(app, row("a", **held | again, **here))
        elif meanwhile == "closed":
            rewrite(app, dead | {"status": "closed"})
        elif meanwhile == "edited":
            rewrite(app, dead | {"owner": "anna"})
        else:
            lease(app.root, "a", tmp_path / "leases")
        before = rows_of(app)["a"]
        await pilot.press("enter")
        await at_rest(pilot)
        assert not isinstance(app.screen, NeedsScreen), "it is shown again, or why nothing was done"
        assert rows_of(app)["a"] == before, "nothing ran that was not shown"


def lease(root: Path, bead_id: str, folder: Path) -> None:
    """A living worker's lease, as head writes it."""
    place = folder / "ddx-claim-heartbeats" / hashlib.sha1(os.path.realpath(root).encode()).hexdigest()
    place.mkdir(parents=True)
    now = format_instant(now_ns())
    document = {"bead_id": bead_id, "machine": socket.gethostname(), "pid": os.getpid(), "owner": "w"}
    (place / f"{bead_id}.json").write_text(json.dumps(document | {"started_at": now, "updated_at": now}))


async def test_the_focus_is_drawn_and_an_unminded_one_told(console: MakeConsole) -> None:
    rows = [row("e", issue_type="epic", title="Metrics"), row("c", parent="e"), row("out")]
    app = console(lines(rows))
    project = find_project(app.root)
    curator = Curator(project, lambda: find_executable(project, None), who="human")
    curator.run_steps("focus", "focus on e", lambda writing, _: plan_focus(writing, "e"))
    app.read_only = True
    async with app.run_test(size=(140, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        await at_rest(pilot)
        assert "FOCUS Metrics" in app.rows()[0]
        app.go_to_bead("out")
        await at_rest(pilot)
        assert app.sees("held by focus")
        assert app.sees("held back by the focus on e")
        assert app.sees("in focus 0/1")
        rewrite(app, row("late"))
        looked(app)
        await at_rest(pilot)
        assert [need.kind for need in app.needs] == ["focus"]
    app = console(lines(rows), name="other")
    async with app.run_test(size=(140, 30)) as pilot:
        await at_rest(pilot)
        assert "FOCUS" not in app.rows()[0]


async def test_read_only_acknowledges_and_recovers_nothing(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]), read_only=True)
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        watched(app)
        assert not (app.root / ".helix").exists()
        await pilot.press("exclamation_mark", "a")
        await at_rest(pilot)
        assert not (app.root / ".helix").exists()


async def test_a_bead_that_the_last_run_tried_is_named_until_it_changes(console: MakeConsole) -> None:
    app = console(lines([row("x-1"), row("x-2")]))
    async with app.run_test(size=(140, 30)) as pilot:
        await at_rest(pilot)
        app.feed.look()
        bead = app.feed.snapshot.queue.beads["x-1"]
        tried = Tried("x-1", "execution_failed", "exit status 1", bead_fingerprint(bead)).record()
        (app.root / ".helix").mkdir(exist_ok=True)
        (app.root / ".helix" / "run-state.json").write_text(json.dumps({"run_id": "r", "tried": [tried]}))
        watched(app)
        await at_rest(pilot)
        assert [(need.kind, need.bead_id) for need in app.needs] == [("tried", "x-1")]
        app.push_screen(NeedsScreen())
        await at_rest(pilot)
        assert app.sees("still open: execution_failed: exit status 1")
        rewrite(app, row("x-1", description="another way"))
        looked(app)
        await at_rest(pilot)
        assert app.needs == ()


async def test_the_end_of_a_run_is_said_on_the_screen_too(console: MakeConsole) -> None:
    app = console(lines([row("a")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        at_work = replace(app.snapshot, runs=(Run("a", live=True, verdict="alive"),))
        app.notifier.see(at_work, ())
        attempted = threading.Event()
        retries = app.run_worker(attempted.wait, thread=True, group=ATTEMPTING)
        app.notifier.see(app.snapshot, ())
        assert not app.told, "between two of several retries it has not ended"
        attempted.set()
        await retries.wait()
        app.notifier.see(app.snapshot, (Need("proposed", "b", "", 0),))
        await pilot.pause()
        (said,) = (notice.message for notice in app.told)
        assert said == "The run has ended: no attempt ended in it · 1 needs you: !"


async def test_what_is_new_is_told_once_and_not_in_quiet_hours(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: list[str] = []
    monkeypatch.setattr(Console, "write_terminal", lambda app, text: told.append(text))
    out = tmp_path / "told"
    notify = f"{shlex.quote(sys.executable)} -c \"import sys; open('{out}', 'a').write(sys.stdin.read())\""
    settings = Settings(notify=notify, notify_terminal=("bell", "osc9"), quiet="00:00-23:59")
    app = console(lines([row("a"), row("b", status="proposed")]), settings=settings)
    (app.root / ".helix").mkdir()
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        app._look_out = "live"
        watched(app)
        await at_rest(pilot)
        assert told == [], "what was there before is no news"
        rewrite(app, row("a", status="proposed"))
        looked(app)
        await at_rest(pilot)
        assert told == [], "it is quiet"
        monkeypatch.setattr(app.notifier, "_settings", replace(settings, quiet=""))
        app._tick()
        await at_rest(pilot)
        looked(app)
        await at_rest(pilot)
        said = "demo: 2 need you: proposal: “Title of a”: no worker picks it until it is accepted"
        assert told == [f"\a\x1b]9;{said}\x1b\\"]
        (document,) = map(json.loads, out.read_text().splitlines())
        assert [need["bead_id"] for need in document["needs"]] == ["a"]


async def test_what_could_not_be_undone_or_redone_is_what_the_next_key_tries(console: MakeConsole) -> None:
    busy = [GateBusy("busy"), None, GateBusy("busy"), None]
    called: list[str] = []

    def tried(name: str) -> str:
        called.append(name)
        if (error := busy.pop(0)) is not None:
            raise error
        return name

    app = console(lines([row("a", status="proposed")]))
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        app.push_screen(screen := NeedsScreen())
        await at_rest(pilot)
        screen._undo += [BesideQueue(str, str), BesideQueue(lambda: tried("redone"), lambda: tried("undone"))]
        for key in ("u", "u", "U", "U"):
            await pilot.press(key)
            await at_rest(pilot)
        assert called == ["undone", "undone", "redone", "redone"]
        assert (len(screen._undo), len(screen._redo)) == (2, 0)


async def test_a_need_that_goes_in_quiet_hours_is_told_when_it_comes_back(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console(lines([row("a")]), settings=Settings(quiet="00:00-23:59"))
    (app.root / ".helix").mkdir()
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        project = app.snapshot.project
        assert claimed(project, ("proposed:a",))
        watch = SimpleNamespace(see=lambda *_, **__: (), gone=lambda: frozenset({"proposed:a"}))
        monkeypatch.setattr(app.notifier, "_watch", watch)
        app.notifier.see(app.snapshot, ())
        await at_rest(pilot)
        assert claimed(project, ("proposed:a",)), "its marker has gone with it"


async def test_a_range_that_shrinks_gives_back_its_marks_and_no_others(console: MakeConsole) -> None:
    app = console(lines([row(name, status="proposed") for name in "abcd"]))
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot)
        app.push_screen(screen := NeedsScreen())
        await at_rest(pilot)
        keys = [key for key, each in screen._rows.items() if each.kind == "need"]
        screen.list.select(keys[3])
        await pilot.press("space")
        screen.list.select(keys[0])
        await pilot.press("v", "j", "j", "k", "v")
        await at_rest(pilot)
        marked = [key for key in keys if screen._rows[key].needs[0].key in screen.marked]
        assert marked == [keys[0], keys[1], keys[3]]
