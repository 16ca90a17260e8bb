"""Whatever a program of ours has started is ended with it, wherever it went; nothing else is touched."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ground import process_tree as session
from helix_tui.core.ground.process import run, run_to_files

pytestmark = pytest.mark.long

AGENT = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"

DDX = """
import os, subprocess, sys, time
own = {"group": {"process_group": 0}, "session": {"start_new_session": True}, "none": {}}[sys.argv[2]]
child = subprocess.Popen([sys.executable, "-c", sys.argv[3], sys.argv[1]], **own)
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read()):
    time.sleep(0.01)
print("ready", flush=True)
if sys.argv[4] == "ends":
    sys.exit(0)
time.sleep(600)
"""
"""As ddx of April: an agent in a group, or a session, of its own, and no signal handler."""


def words(mark: Path, own: str, how: str) -> tuple[str, ...]:
    return (sys.executable, "-c", DDX, str(mark), own, AGENT, how)


def pid_in(mark: Path) -> int:
    return int(mark.read_text())


def lives(pid: int) -> bool:
    return bool(session.alive([session.Member(pid, session.born_at(pid))]))


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    """Where the agent writes its number; it is ended whatever the test finds."""
    path = tmp_path / "agent.pid"
    yield path
    if path.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid_in(path), signal.SIGKILL)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is nobody's business."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("own", ["group", "session", "none"])
def test_an_interrupt_ends_the_agent_too(
    tmp_path: Path, mark: Path, own: str, stranger: subprocess.Popen[bytes]
) -> None:
    done = run_to_files(
        words(mark, own, "stays"),
        out=tmp_path / "o",
        err=tmp_path / "e",
        timeout=60,
        stop=lambda: b"ready" in (tmp_path / "o").read_bytes(),
    )
    assert (done.rc, done.timed_out) == (-signal.SIGINT, False)
    assert not lives(pid_in(mark))
    assert stranger.poll() is None


@pytest.mark.parametrize("own", ["group", "session", "none"])
@pytest.mark.parametrize("to_files", [True, False])
def test_a_time_limit_ends_the_agent_too(tmp_path: Path, mark: Path, own: str, to_files: bool) -> None:
    files: dict[str, Path] = {"out": tmp_path / "o", "err": tmp_path / "e"}
    call: Callable[..., object] = run_to_files if to_files else run
    done = call(words(mark, own, "stays"), timeout=1.5, **(files if to_files else {}))
    assert getattr(done, "timed_out")  # noqa: B009 - of either call
    assert not mark.exists() or not lives(pid_in(mark))


def test_what_a_turn_leaves_in_its_session_is_ended(tmp_path: Path, mark: Path) -> None:
    done = run_to_files(words(mark, "group", "ends"), out=tmp_path / "o", err=tmp_path / "e", timeout=60)
    assert done.rc == 0
    assert not lives(pid_in(mark))


def test_a_program_of_another_terminal_is_interrupted_with_its_agent(mark: Path) -> None:
    with subprocess.Popen(words(mark, "group", "stays"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        found = {member.pid for member in session.family(process.pid)}
        assert found == {process.pid, pid_in(mark)}
        assert session.interrupt(process.pid, 20) == ()
        assert process.wait(20) == -signal.SIGINT
    assert not lives(pid_in(mark))


STARTER = """
import os, subprocess, sys, time
from helix_tui.core.ground.process_tree import mark_for
env = {**os.environ, **mark_for(sys.argv[1])}
print(subprocess.Popen([sys.argv[1]], env=env, start_new_session=True).pid, flush=True)
time.sleep(60)
"""


def test_what_a_starter_that_was_killed_left_at_work_is_known_by_its_mark(tmp_path: Path) -> None:
    program = tmp_path / "a ddx"
    program.write_text("#!/bin/sh\nsetsid sleep 60 &\nsleep 60\n")  # an agent's own server is nobody's to end
    program.chmod(0o755)
    words = [sys.executable, "-c", STARTER, str(program)]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        try:
            assert session.left_behind(tmp_path) == (), "its starter sees to it"
            starter.kill()
            starter.wait(20)
            assert session.left_behind(tmp_path) == (pid,)
            assert session.left_behind(tmp_path.parent) == ()
        finally:
            assert session.end(session.family(pid)) == ()
    assert session.left_behind(tmp_path) == ()


def test_a_number_that_another_process_has_by_now_is_left_alone(stranger: subprocess.Popen[bytes]) -> None:
    former = session.Member(stranger.pid, session.born_at(stranger.pid) - 1)
    assert session.end([former]) == ()
    assert stranger.poll() is None


def test_whoever_asks_is_never_in_the_family() -> None:
    assert os.getpid() not in {member.pid for member in session.family(os.getppid())}
    assert session.family(2**22 + 1) == ()


def test_without_proc_ps_tells(mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helix_tui.core.ground.process.os.listdir", lambda path: [])
    with subprocess.Popen(words(mark, "group", "stays"), stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], 60)[0]
        process.stdout.readline()
        found = {member.pid for member in session.family(process.pid)}
        assert found == {process.pid, pid_in(mark)}
        process.kill()
