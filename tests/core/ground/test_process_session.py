"""Whatever a program of ours has started is ended with it, wherever it went; nothing else is touched."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ground.process import run, run_to_files
from helix_tui.core.ground.processes import family as session
from helix_tui.core.supervision.run_state.state import process_lives

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]

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
    return session.began_at(pid) is not None and bool(session.alive([session.Member(pid)]))


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
from helix_tui.core.ground.processes.family import mark_for
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


def test_a_number_that_another_process_has_by_now_is_left_alone(
    stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals: list[int] = []
    former = session.Member(stranger.pid)
    # its start time, by which psutil tells processes of one number apart
    setattr(former, "_ident", (stranger.pid, 0.0))  # noqa: B010
    with monkeypatch.context() as patch:
        patch.setattr(os, "kill", lambda pid, sign: signals.append(sign) if sign else None)
        session.signal_all([former], signal.SIGKILL)
        assert session.end([former]) == ()
        assert signals == []
        session.signal_all([session.Member(stranger.pid)], signal.SIGUSR1)
    assert signals == [signal.SIGUSR1], "the one that it is gets it"
    born = session.born_at(stranger.pid)
    assert born
    assert process_lives(stranger.pid, born=born)
    assert not process_lives(stranger.pid, born=born - 1)


def test_whoever_asks_is_never_in_the_family() -> None:
    assert os.getpid() not in {member.pid for member in session.family(os.getppid())}
    assert session.family(2**22 + 1) == ()


def test_what_has_ended_and_is_not_reaped_runs_no_more(stranger: subprocess.Popen[bytes]) -> None:
    members = session.family(stranger.pid)
    assert [member.pid for member in members] == [stranger.pid]
    stranger.kill()
    os.waitid(os.P_PID, stranger.pid, os.WEXITED | os.WNOWAIT)
    assert session.alive(members) == session.family(stranger.pid) == session.end(members) == ()
    # who started it still gets its exit code
    assert stranger.wait(20) == -signal.SIGKILL


CHAIN = """
import subprocess, sys
print(sys.argv[1], flush=True)
if int(sys.argv[1]):
    words = [sys.executable, "-c", sys.argv[2], str(int(sys.argv[1]) - 1), sys.argv[2]]
    subprocess.Popen(words, start_new_session=True)
input()
"""


def test_children_of_children_are_ended_in_whatever_session_they_are() -> None:
    words = [sys.executable, "-c", CHAIN, "3", CHAIN]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(4)] == [b"3\n", b"2\n", b"1\n", b"0\n"]
        members = session.family(process.pid)
        assert len(members) == 4
        assert members[0].pid == process.pid
        assert session.end(members) == ()
        assert process.wait(20) == -signal.SIGTERM


ASK = """
import os, sys
from pathlib import Path
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.processes.family import end, family, require_ours
pid = int(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(65534)
try:
    require_ours(pid, "a file", [Path("/")], r".*", since=None)
except HelixError as error:
    print(error.message)
print(len(end(family(pid))))
"""


def test_a_process_of_another_user_is_neither_examined_nor_ended(stranger: subprocess.Popen[bytes]) -> None:
    pid = 1 if os.geteuid() else stranger.pid
    words = [sys.executable, "-c", ASK, str(pid)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert f"names process {pid}, which belongs to another user" in done.stdout, done.stderr
    assert done.stdout.splitlines()[1] != "0"
    assert stranger.poll() is None
