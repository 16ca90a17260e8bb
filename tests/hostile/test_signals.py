"""A process that a file of a repository names is signalled only where it is provably the one that the file means."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.core.supervision.run_state.run_control import StopMeans, interrupt_worker, left_at_work, stop_run
from helix_tui.core.supervision.run_state.state import RunState, save_state
from tests.conftest import ProjectFactory
from tests.programs import write_program

Begin = Callable[..., subprocess.Popen[bytes]]
HOUR = 3600 * NS


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Start a program that waits: ``begin("helix-tui", "run", cwd=…)``; it has written "up" when this returns."""
    with ExitStack() as stack:

        def start(name: str, *words: str, cwd: Path) -> subprocess.Popen[bytes]:
            path = tmp_path / ("a long path " * 12) / name
            path.parent.mkdir(exist_ok=True)
            write_program(path, "print('up', flush=True)\ninput()\n")
            pipe = subprocess.PIPE
            process = stack.enter_context(
                subprocess.Popen([str(path), *words], cwd=cwd, stdin=pipe, stdout=pipe, process_group=0)
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            return process

        yield start


def name_in_pid_file(root: Path, pid: int, at: int, folder: str = ".ddx") -> Path:
    path = root / folder / "helix.pid"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{pid} {format_instant(at)}\n")
    return path


@pytest.mark.parametrize("folder", [".ddx", ".helix"])
@pytest.mark.parametrize(
    ("program", "words", "inside", "later", "reason"),
    [
        ("editor", ("run",), True, 0, "editor run`"),
        ("helix-tui", (), True, 0, "helix-tui`"),
        ("helix-tui", ("run",), False, 0, "does not agree"),
        ("helix-tui", ("run",), True, HOUR, "does not agree"),
    ],
)
def test_a_stop_signals_no_process_that_only_a_file_calls_a_run(
    project: ProjectFactory,
    begin: Begin,
    tmp_path: Path,
    folder: str,
    program: str,
    words: tuple[str, ...],
    inside: bool,
    later: int,
    reason: str,
) -> None:
    root = project()
    stranger = begin(program, *words, cwd=root if inside else tmp_path)
    path = name_in_pid_file(root, stranger.pid, now_ns() + later, folder)
    with pytest.raises(HelixError, match=reason) as refused:
        stop_run(find_project(root), patience=0.05)
    assert f"{folder}/helix.pid names process {stranger.pid}" in refused.value.message
    assert f"kill -INT {stranger.pid}" in refused.value.advice
    assert stranger.poll() is None
    assert path.exists()


def test_a_run_of_the_shell_predecessor_is_stopped(project: ProjectFactory, begin: Begin) -> None:
    root = project()
    run = begin("helix", "run", cwd=root)
    name_in_pid_file(root, run.pid, now_ns())
    assert stop_run(find_project(root)).how in ("stopped", "killed")
    assert run.wait(20) < 0


def test_the_command_says_what_it_saw_and_what_to_do(project: ProjectFactory, begin: Begin) -> None:
    root = project()
    stranger = begin("editor", cwd=root)
    name_in_pid_file(root, stranger.pid, now_ns())
    for words in (("stop",), ("stop", "--dry-run")):
        call = [sys.executable, "-P", "-m", "helix_tui", *words, "-C", str(root)]
        done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1
        assert "nothing was signalled" in done.stderr
        assert f"kill -INT {stranger.pid}" in done.stderr
    assert stranger.poll() is None


def test_a_process_that_a_state_calls_the_ddx_of_a_run_is_not_ended(project: ProjectFactory, begin: Begin) -> None:
    root = project()
    stranger = begin("ddx", "work", cwd=root)
    named = find_project(root)
    pending = {"command": ["ddx", "work"], "pid": stranger.pid, "started_at": format_instant(now_ns())}
    save_state(named, RunState(run_id="r", phase="dispatching", pending=pending))
    assert left_at_work(named) == ()
    assert stop_run(named).how == "none"
    assert stranger.poll() is None


@pytest.mark.parametrize(
    ("program", "inside", "before", "reason"),
    [
        ("editor", True, 0, "editor"),
        ("ddx", False, 0, "does not agree"),
        ("ddx", True, HOUR, "does not agree"),
    ],
)
def test_a_worker_is_interrupted_only_where_its_record_agrees(
    project: ProjectFactory, begin: Begin, tmp_path: Path, program: str, inside: bool, before: int, reason: str
) -> None:
    root = project()
    stranger = begin(program, "work", cwd=root if inside else tmp_path)
    means = StopMeans("signal", "", "", pid=stranger.pid, since=now_ns() - before)
    with pytest.raises(HelixError, match=reason):
        interrupt_worker(find_project(root), means, "ddx")
    assert stranger.poll() is None


@pytest.mark.parametrize("pid", [0, -1, 1 << 40])
def test_a_number_that_means_more_than_one_process_is_refused(project: ProjectFactory, pid: int) -> None:
    means = StopMeans("signal", "", "", pid=pid, since=now_ns())
    with pytest.raises(HelixError, match="has ended"):
        interrupt_worker(find_project(project()), means, "ddx")


@pytest.mark.long
def test_a_worker_of_this_project_is_interrupted(project: ProjectFactory, begin: Begin) -> None:
    root = project()
    (root / "src").mkdir()
    worker = begin("my-ddx", "work", cwd=root / "src")
    means = StopMeans("signal", "", "", pid=worker.pid, since=now_ns())
    assert interrupt_worker(find_project(root), means, os.fspath(root / "bin" / "my-ddx")) == ()
    assert worker.wait(20) < 0
