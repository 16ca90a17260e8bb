"""The console as a program in a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from helix_tui.cli.console import EarlyFeed
from helix_tui.core.ground.project import find_project
from helix_tui.core.snapshot.snapshot import Change, Snapshot
from tests.cli.test_queue import ROWS
from tests.conftest import ProjectFactory

pytestmark = pytest.mark.realtime

LIMIT_S = 30.0


class Terminal:
    """A program at the other end of a terminal of 100 x 30."""

    def __init__(self, *words: object) -> None:
        self.fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "helix_tui", *map(str, words)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = b""

    def read_until(self, wanted: bytes) -> None:
        """Read on until a text has been written, or nothing came for too long."""
        while wanted not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], LIMIT_S)
            try:
                chunk = os.read(self.fd, 1 << 16) if ready else b""
            except OSError:  # the other end is closed
                chunk = b""
            assert chunk, f"{wanted!r} never came; the end was {self.seen[-600:]!r}"
            self.seen += chunk

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self.fd, keys)

    def exit_code(self) -> int:
        """Read to the end, for who writes to a full terminal waits, and say how it ended."""
        while select.select([self.fd], [], [], LIMIT_S)[0]:
            try:
                os.read(self.fd, 1 << 16)
            except OSError:  # the other end is closed
                break
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        """End it, if it still runs."""
        self.process.kill()
        self.process.wait(LIMIT_S)
        os.close(self.fd)


@pytest.fixture
def console(project: ProjectFactory) -> Iterator[Terminal]:
    """The console on a small queue."""
    terminal = Terminal("-C", project(ROWS))
    yield terminal
    terminal.close()


@pytest.mark.long
def test_it_opens_on_what_waits_1_shows_the_queue_and_q_leaves(console: Terminal) -> None:
    console.read_until(b"cannot be read")
    console.press(b"1")
    console.read_until(b"Title of demo-a1")
    console.press(b"q")
    assert console.exit_code() == 0


def test_what_is_read_before_the_app_runs_is_kept_for_it(project: ProjectFactory) -> None:
    feed = EarlyFeed(find_project(project(ROWS)), lambda: 0)
    heard: list[tuple[Snapshot, Change]] = []
    feed._hear(feed.snapshot, Change(runs=True))
    assert feed.open(lambda snapshot, change: heard.append((snapshot, change))) is feed
    assert not heard
    feed.start()
    assert [change.runs for _, change in heard] == [True]
    feed._hear(feed.snapshot, Change(everything=True))
    assert [change.everything for _, change in heard] == [False, True]


@pytest.mark.long
def test_a_tracker_that_appears_later_is_shown(tmp_path: Path) -> None:
    terminal = Terminal("-C", tmp_path)
    try:
        terminal.read_until(b".ddx")
        (tmp_path / ".ddx").mkdir()
        (tmp_path / ".ddx" / "beads.jsonl").write_text('{"id": "late-1", "title": "Better late than never"}\n')
        terminal.read_until(b"Better late than never")
    finally:
        terminal.close()
