"""A console in a terminal that is stopped, hung up, closed, or sends what is no text."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.drills.actions import ODD, Case
from tests.drills.behind_terminal import LIMIT_S, Ended, Session
from tests.drills.projects import make_project

pytestmark = [pytest.mark.realtime, pytest.mark.long]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A console that has come up."""
    yield from _session(tmp_path)


@pytest.fixture
def deaf(tmp_path: Path) -> Iterator[Session]:
    """A console that was started by nohup: it hears of no hang-up."""
    yield from _session(tmp_path, "sh", "-c", 'trap "" HUP; exec "$@"', "sh")


def _session(tmp_path: Path, *before: str) -> Iterator[Session]:
    root = make_project("head", tmp_path / "p")
    session = Session(Case(1, "head", "full", "terminal"), root, tmp_path / "home", *before)
    with session.terminal:
        session.starts()
        session.drain(0.3, 5.0)
        yield session


def _state(session: Session) -> str:
    stat = Path(f"/proc/{session.terminal.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


def _until(session: Session, true: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not true():
        session.drain(0.05, 0.5)
        session.check(until, "does not come to it")


@pytest.mark.parametrize("sign", [signal.SIGHUP, signal.SIGTERM])
def test_who_is_asked_to_leave_gives_the_terminal_back(session: Session, sign: signal.Signals) -> None:
    os.kill(session.terminal.pid, sign)
    with pytest.raises(Ended) as ended:
        _until(session, lambda: False)
    assert ended.value.code == 128 + sign
    assert not session.left()
    assert not session.traces()


def test_who_is_asked_before_anything_is_shown_leaves_too(tmp_path: Path) -> None:
    root = make_project("head", tmp_path / "p")
    session = Session(Case(1, "head", "full", "terminal"), root, tmp_path / "home")
    with session.terminal:
        session.starts()
        os.kill(session.terminal.pid, signal.SIGTERM)
        with pytest.raises(Ended):
            _until(session, lambda: False)
        assert not session.left()
        assert not session.traces()


@pytest.mark.parametrize("sign", [signal.SIGTSTP, signal.SIGSTOP])
def test_who_was_stopped_draws_everything_and_ends_as_ever(session: Session, sign: signal.Signals) -> None:
    for _ in range(3):
        os.kill(session.terminal.pid, sign)
        _until(session, lambda: _state(session) == "T")
        if sign is signal.SIGTSTP:
            assert not session.left(), "the shell gets its terminal"
        session.tail = b""
        os.kill(session.terminal.pid, signal.SIGCONT)
        _until(session, lambda: b"ready" in session.tail.lower())
    session.answers()
    assert session.end() == 0
    assert not session.left()
    assert not session.traces()


@pytest.mark.parametrize("sign", [signal.SIGHUP, signal.SIGTERM])
def test_who_was_stopped_and_is_asked_to_leave_leaves_the_terminal_to_the_shell(
    session: Session, sign: signal.Signals
) -> None:
    os.kill(session.terminal.pid, signal.SIGTSTP)
    _until(session, lambda: _state(session) == "T")
    session.drain(0.2, 1.0)
    session.tail = b""
    for number in (sign, signal.SIGCONT):
        os.kill(session.terminal.pid, number)
    with pytest.raises(Ended) as ended:
        _until(session, lambda: False)
    assert ended.value.code == 128 + sign
    assert not session.tail
    assert not session.left()
    assert not session.traces()


def test_who_was_stopped_beside_a_guest_and_is_asked_to_leave_leaves(session: Session) -> None:
    session.took = False
    session.write(b"\x14")
    _until(session, lambda: session.took)
    os.killpg(session.terminal.pid, signal.SIGSTOP)
    _until(session, lambda: _state(session) == "T")
    os.kill(session.terminal.pid, signal.SIGTERM)
    os.killpg(session.terminal.pid, signal.SIGCONT)
    with pytest.raises(Ended) as ended:
        _until(session, lambda: False)
    assert ended.value.code == 128 + signal.SIGTERM
    assert not session.traces()


def test_bytes_that_are_no_text_and_reports_of_nothing_end_nothing(session: Session) -> None:
    for text in ODD:
        session.write(text.encode("utf-8", "surrogateescape"))
        session.drain(0.2, 1.0)
    session.write(bytes(range(128, 256)))
    session.answers()
    assert session.end() == 0
    assert not session.traces()


def test_who_hears_of_no_hang_up_ends_with_its_terminal(deaf: Session) -> None:
    pid = deaf.terminal.pid
    os.close(deaf.terminal.fd)
    deaf.terminal.fd = os.open(os.devnull, os.O_RDWR)
    until = time.monotonic() + LIMIT_S
    while deaf.code() is None and time.monotonic() < until:
        time.sleep(0.05)
    assert deaf.code() is not None, f"{pid} lives on without a terminal"
    assert not deaf.traces()
