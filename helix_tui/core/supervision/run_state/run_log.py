"""Print the output of a run and keep its log (docs/formats/helix.md §1b).

With a summary only short lines are printed, each with its lines in the log; long ones go only into the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from helix_tui.core.ground.files import read_end
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import clock_time
from helix_tui.core.ground.writes import append_file

MAX_LOG_CHARS = 200_000
"""Characters of one program's output that go into the log."""


class Teller:
    """The output of one run.

    Attributes:
        path: the log.
        last: the last line printed for everyone.
    """

    def __init__(self, path: Path, say: Callable[[str], None], *, summary: bool = False, quiet: bool = False) -> None:
        self.path = path
        self.summary = summary
        self.last = ""
        self._say = say
        self._quiet = quiet
        self._lines = read_end(path, 1 << 30).count("\n")

    def verbose(self, text: str) -> None:
        """Print a detail, for a person who follows the run."""
        self._log(text)
        if not self.summary and not self._quiet:
            self._say(f"helix: {clean_line(text, 1000)}")

    def brief(self, text: str) -> None:
        """Print a short line of a summary; without a summary only log it."""
        self._log(text)
        if self.summary:
            self._say(f"helix: {clean_line(text, 1000)}")

    def always(self, text: str) -> None:
        """Print a line in every mode."""
        self.last = text
        self._log(text)
        # clean_line strips it, and the blocker report is indented
        indent = " " * (len(text) - len(text.lstrip(" ")))
        self._say(f"helix: {indent}{clean_line(text, 1000)}")

    def quote(self, text: str, prose: str) -> None:
        """Print a line with an agent's prose after it, for which a summary names its line in the log."""
        if not self.summary:
            self.always(f"{text} — {prose}")
            return
        self._log(prose)
        self.always(f"{text} — log L{self._lines} in {self.path}")
        self.last = prose

    def block(self, title: str, finished: Finished, at: int) -> tuple[int, int]:
        """Write a program's output into the log; return the numbers of its first and last line there."""
        first = self._lines + 1
        self._log(f"--- {title} [{clock_time(at)}] rc={finished.rc} elapsed={finished.seconds:.0f}s ---")
        for text in (finished.out, finished.err):
            if text.strip():
                self._log(_clipped(text).rstrip("\r\n"))
        self._log(f"--- end {title} ---")
        return first, self._lines

    def _log(self, text: str) -> None:
        lines = clean_block(text).split("\n")
        # An unwritable log must not end a run whose state can be saved.
        with contextlib.suppress(OSError):
            append_file(self.path, ("\n".join(lines) + "\n").encode("utf-8", "replace"))
        self._lines += len(lines)


def _clipped(text: str) -> str:
    """The beginning and end of output too long for the log; the turn's own file has all of it."""
    if len(text) <= MAX_LOG_CHARS:
        return text
    head, tail = text[: MAX_LOG_CHARS // 2], text[-MAX_LOG_CHARS // 2 :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n… {counted(left_out, 'character')} left out here …\n{tail}"


def said_lines(text: str) -> list[str]:
    """The end of a log without output of programs and quoted texts: the run's own lines, oldest first."""
    said: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("--- end ") and line.endswith(" ---"):
            if not inside:
                said.clear()  # the block began before the text
            inside = False
        elif not inside and line.startswith("--- ") and line.endswith(" ---"):
            inside = True
        elif not inside and line.strip():
            said.append(line)
    return said
