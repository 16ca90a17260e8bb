"""What the console writes reaches the terminal, whatever other programs have done to it."""

from __future__ import annotations

import os
import pty
import select
import selectors
import tty
from socket import socketpair

import pytest

from helix_tui.terminal import Decoder, _Keys, _Writer

FRAMES = [f"frame {number} " + "x" * 20_000 for number in range(10)]
"""More together than a terminal takes before somebody reads."""


def test_frames_on_a_terminal_left_non_blocking() -> None:
    """An editor or an agent may leave it so, and nobody may be reading at that moment."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    with os.fdopen(theirs, "w") as file:
        os.set_blocking(theirs, False)
        writer = _Writer(file)
        writer.start()
        for frame in FRAMES[:5]:
            writer.write(frame)
        os.set_blocking(theirs, False)  # the next program
        for frame in FRAMES[5:]:
            writer.write(frame)
        came = b""
        while len(came) < len("".join(FRAMES)) and select.select([ours], [], [], 10.0)[0]:
            came += os.read(ours, 65_536)
        assert came.decode() == "".join(FRAMES)
        writer.stop()
    os.close(ours)


def test_a_closed_terminal_blocks_nothing() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(os.dup(theirs), "w") as file:
        writer = _Writer(file)
        writer.start()
        os.close(ours)
        for frame in FRAMES * 10:
            writer.write(frame)
        writer.stop()
        assert not writer.is_alive()
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    os.close(theirs)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"\x1b[97u", "\x1b[97u"),
        (b"\x1b[97;5u", "\x1b[97;5u"),
        (b"a\x1b[1114112ub", "ab"),
        (b"\x1b[999999999;2;3u", ""),
        (b"\x1b[" + b"9" * 5_000 + b"u", ""),
        (b"\xff\xfea", "\ufffd\ufffda"),
    ],
)
def test_a_key_beyond_unicode_is_none_and_a_byte_that_is_no_text_is_replaced(sent: bytes, read: str) -> None:
    assert Decoder().decode(sent) == read


def test_the_reader_waits_shortly_after_a_key_and_at_the_end() -> None:
    here, there = socketpair()
    keys = _Keys()
    with here, there:
        keys.register(here, selectors.EVENT_READ)
        there.send(b"k")
        assert [key.fileobj for key, _ in keys.select(0.0)] == [here]
        here.recv(1)
        assert keys.select(0.0) == [], "the wait for what may follow an escape is short"
        keys.end()
        assert keys.select(0.0) == []
        keys.unregister(here)
        keys.close()
        keys.end()  # it has ended already
