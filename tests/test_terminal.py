"""What the console writes reaches the terminal, whatever other programs have done to it."""

from __future__ import annotations

import os
import pty
import select
import tty

from helix_tui.terminal import _Writer

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
