"""A console in a pseudo-terminal, timed from outside: what a person's fingers and eyes would measure."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

COLUMNS, ROWS = 160, 48

FRAME_BYTES = 2_000
"""More than an answer to a key short of a whole screen."""

EMPTY_APP = """
from textual.app import App
from textual.widgets import Static
class Empty(App):
    def compose(self):
        yield Static("painted-marker")
Empty().run()
"""

LIST_APP = """
from textual.app import App
from textual.widgets import OptionList
class Listed(App):
    BINDINGS = [("j", "move('down')", "down"), ("k", "move('up')", "up")]
    def compose(self):
        yield OptionList(*[f"row {number}" for number in range(40)])
    def action_move(self, way):
        getattr(self.query_one(OptionList), f"action_cursor_{way}")()
Listed().run()
"""


class Terminal:
    """One program in a pseudo-terminal of 160 x 48 true-colour cells.

    Raises:
        TimeoutError: what was waited for did not appear.
    """

    def __init__(self, argv: Sequence[str], cwd: Path, home: Path) -> None:
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "HOME": str(home),
                "TMPDIR": str(home),
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "LANG": "C.UTF-8",
            }
            # as a terminal starts it, also where this process was told to ignore them (nohup)
            for sign in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                signal.signal(sign, signal.SIG_DFL)
            try:
                os.chdir(cwd)
                os.execvpe(argv[0], list(argv), environment)
            finally:
                os._exit(127)
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def wait_for(self, *markers: str, timeout: float = 30.0) -> float:
        """Seconds from the start of the program until one of the texts has been written."""
        wanted = [marker.encode() for marker in markers]
        seen = b""
        deadline = time.perf_counter() + timeout
        while time.perf_counter() < deadline:
            chunk = self._read(0.25)
            seen = seen[-256:] + chunk
            if chunk and any(marker in seen for marker in wanted):
                return time.perf_counter() - self.started
        raise TimeoutError(f"none of {markers} was painted within {timeout} s")

    def settle(self, quiet: float = 0.15, most: float = 10.0) -> None:
        """Read on until nothing has been written for ``quiet`` seconds."""
        deadline = time.perf_counter() + most
        while time.perf_counter() < deadline and self._read(quiet):
            pass

    def key(self, key: str, timeout: float = 5.0) -> float:
        """Seconds from a key written to the first byte that comes back."""
        begun = time.perf_counter()
        os.write(self.fd, key.encode())
        ready, _, _ = select.select([self.fd], [], [], timeout)
        taken = time.perf_counter() - begun
        if not ready:
            raise TimeoutError(f"nothing came back for {key!r} within {timeout} s")
        return taken

    def resident_mb(self) -> float:
        """Resident memory of the program now, in MB (10^6 bytes)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024 / 1e6
        return 0.0

    def loop_cpu(self) -> float:
        """Seconds of the processor that the program's first thread has taken: in a console, the event loop's."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def cpu_to_frame(self, key: str, *, quiet: float = 0.8, timeout: float = 20.0) -> float:
        """Seconds of the processor that the event loop takes from a key to the last byte of what it draws."""
        begun = taken = self.loop_cpu()
        os.write(self.fd, key.encode())
        deadline, drawn = time.perf_counter() + timeout, 0
        while time.perf_counter() < deadline:
            chunk = self._read(quiet)
            drawn += len(chunk)
            if chunk:
                taken = self.loop_cpu()
            elif drawn > FRAME_BYTES:
                return taken - begun
        raise TimeoutError(f"nothing was drawn for {key!r} within {timeout} s")

    def close(self) -> None:
        """End the program, if it still runs, and close the terminal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _read(self, timeout: float) -> bytes:
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if not ready:
            return b""
        try:
            return os.read(self.fd, 1 << 20)
        except OSError:  # Linux's way to say that the other end is closed
            return b""


def console_argv(project: Path) -> list[str]:
    """How the console is started on a project."""
    return [sys.executable, "-m", "helix_tui", "-C", str(project)]


def empty_argv() -> list[str]:
    """The floor: a Textual app that shows one word."""
    return [sys.executable, "-c", EMPTY_APP]


def list_argv() -> list[str]:
    """A list of Textual's own with 40 rows and nothing else, in this interpreter."""
    return [sys.executable, "-c", LIST_APP]
