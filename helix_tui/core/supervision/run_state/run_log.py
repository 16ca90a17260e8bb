"""What a run says: lines for a person, and a log that holds everything.

Forms: docs/formats/helix.md §1b. With a summary only short lines are said, each with the lines of the log
that it stands for; the long ones go into the log alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from helix_tui.core.ground.opening import read_end
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import format_instant

MOST = 200_000
"""Characters of one program's output that go into the log."""


class Teller:
    """One run's voice.

    Attributes:
        path: the log.
        last: the last line that everybody was told.
    """

    def __init__(self, path: Path, say: Callable[[str], None], *, summary: bool = False, quiet: bool = False) -> None:
        self.path = path
        self.summary = summary
        self.last = ""
        self._say = say
        self._quiet = quiet
        self._lines = read_end(path, 1 << 30).count("\n")

    def verbose(self, text: str) -> None:
        """Something that only a person who follows along wants to know."""
        self._log(text)
        if not self.summary and not self._quiet:
            self._say(f"helix: {clean_line(text, 1000)}")

    def brief(self, text: str) -> None:
        """A short line of a summary; without one it goes to the log."""
        self._log(text)
        if self.summary:
            self._say(f"helix: {clean_line(text, 1000)}")

    def always(self, text: str) -> None:
        """What everybody must see."""
        self.last = text
        self._log(text)
        indent = " " * (len(text) - len(text.lstrip(" ")))
        self._say(f"helix: {indent}{clean_line(text, 1000)}")

    def block(self, title: str, finished: Finished, at: int) -> tuple[int, int]:
        """Put a program's output into the log; the lines that it takes there, from and to."""
        first = self._lines
        clock = format_instant(at)[11:19]
        self._log(f"--- {title} [{clock}] rc={finished.rc} elapsed={finished.seconds:.0f}s ---")
        for text in (finished.out, finished.err):
            if text.strip():
                self._log(_clipped(text).rstrip("\r\n"))
        self._log(f"--- end {title} ---")
        return first, self._lines

    def _log(self, text: str) -> None:
        lines = clean_block(text).split("\n")
        # A log that cannot be written must not end a run whose state can be.
        with contextlib.suppress(OSError), open(self.path, "a", encoding="utf-8", errors="replace") as file:
            file.write("\n".join(lines) + "\n")
        self._lines += len(lines)


def _clipped(text: str) -> str:
    """The beginning and the end of what is too long for a log; the whole stands in the turn's own file."""
    if len(text) <= MOST:
        return text
    head, tail = text[: MOST // 2], text[-MOST // 2 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {left_out:,} characters are left out here …\n{tail}"


def said_lines(text: str) -> list[str]:
    """The end of a log without what programs printed: what the run itself says, oldest first."""
    said: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("--- end ") and line.endswith(" ---"):
            if not inside:
                said.clear()  # the block began before the text did
            inside = False
        elif not inside and line.startswith("--- ") and " rc=" in line:
            inside = True
        elif not inside and line.strip():
            said.append(line)
    return said
