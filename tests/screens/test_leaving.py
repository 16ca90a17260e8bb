"""What the console hands to other programs, and that it does not wait for them when it leaves."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from helix_tui.core.ground.process import Leaving, allow_programs, end_reads, run
from tests.screens.conftest import MakeConsole
from tests.screens.test_queue import queue

pytestmark = pytest.mark.realtime


def program(folder: Path, name: str, script: str) -> None:
    """A program of that name, before all others."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bin_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


async def copied(console: MakeConsole) -> str:
    """What the console says after ``y``."""
    app = console()
    async with app.run_test(size=(150, 40), notifications=True) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("y")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.clipboard == "demo-00000001"
        return " ".join(notification.message for notification in app.told)


async def test_inside_tmux_the_text_goes_to_its_buffer(
    console: MakeConsole, bin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    program(bin_dir, "tmux", f'echo "$@" > {bin_dir}/args; cat > {bin_dir}/buffer')
    assert "to tmux's buffer, and to the clipboard" in await copied(console)
    assert (bin_dir / "args").read_text() == "load-buffer -w -\n"
    assert (bin_dir / "buffer").read_text() == "demo-00000001"


async def test_an_old_tmux_keeps_it_for_itself(
    console: MakeConsole, bin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "x")
    program(bin_dir, "tmux", '[ "$2" = -w ] && { echo "unknown option -- w" >&2; exit 1; }; exit 0')
    assert "tmux's buffer (only)" in await copied(console)


async def test_a_tmux_that_refuses_is_said(
    console: MakeConsole, bin_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "x")
    program(bin_dir, "tmux", 'echo "no server running" >&2; exit 1')
    said = await copied(console)
    assert "no server running" in said
    assert "set-clipboard on" in said


async def test_outside_tmux_the_terminal_is_trusted(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    assert "through the terminal" in await copied(console)


async def test_leaving_ends_what_is_being_looked_up(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        looking = asyncio.create_task(asyncio.to_thread(run, ["sleep", "600"], stop_at_cap=True, timeout=30))
        await pilot.pause()
        app.exit()
    with pytest.raises(Leaving):
        await looking


@pytest.mark.long
async def test_leaving_ends_a_ddx_that_hangs_and_the_journal_says_so(
    console: MakeConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helix_tui.app.PATIENCE", 0.05)
    began = tmp_path / "began"
    program(tmp_path / "bin", "ddx", f'case "$*" in *--help) ;; *) echo $$ > {began}; sleep 600;; esac')
    app = console(ddx=str(tmp_path / "bin" / "ddx"))
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("minus")
        assert await asyncio.to_thread(app.change_runner.settle, 60)
        await pilot.pause()
        await pilot.press("enter")
        while not (began.exists() and began.read_text().strip()):
            await pilot.pause()
        app.exit()
    assert await asyncio.to_thread(app.change_runner.settle, 60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)
    (entry,) = app.change_runner.curator.history().entries
    assert (entry.result, entry.after) == ("failed", {})


def test_a_console_that_quits_starts_no_program_until_another_one_is_opened() -> None:
    end_reads()
    try:
        for reads in (True, False):
            with pytest.raises(Leaving):
                run(["sleep", "600"], stop_at_cap=reads)
    finally:
        allow_programs()
    assert run(["true"], stop_at_cap=True).rc == 0


async def test_a_terminal_that_cannot_be_given_to_an_editor_is_said_alone(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")
    app = console()
    async with app.run_test(size=(150, 40), notifications=True) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("E")
        await pilot.pause()
        (said,) = (notification.message for notification in app.told)
        assert "no other program can run in this terminal" in said
