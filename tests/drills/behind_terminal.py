"""The monkey before a console that is a process of its own in a pseudo-terminal, as a person's is.

Keys come as escape sequences, sizes as TIOCSWINSZ; afterwards no log may hold a trace, and the terminal must
be as it was.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.console import Terminal
from tests.drills.actions import BOUND, Action, Case, bound_key, sent
from tests.drills.changes import change, put_back
from tests.drills.telling import BOUND_KEYS

REST_S = 0.5
"""Seconds that a rest takes at most: where something runs, a sign turns on the screen and it is never still."""

STILL_S = 10.0
"""Seconds in which a console that was pressed fast is waited for to be still, before it is asked for another size."""

LIMIT_S = 180.0
"""Seconds that a console may take for anything, as `lived` counts them: on a busy machine what it waits for gets
no turn either."""

WORDS: Mapping[str, Sequence[str]] = {
    "full": (),
    "pane": ("--pane",),
    "read-only": ("--read-only",),
    "ascii": ("--ascii",),
}

MODES = ("?1049", "?1000", "?1003", "?1006", "?2004", "?1004")
"""What a console switches on in a terminal, and must switch off."""


def lived(task: str = "thread-self") -> float:
    """Seconds, without those in which a thread could have run and the machine was at something else."""
    waited = 0
    with contextlib.suppress(OSError, IndexError):
        waited = int(Path(f"/proc/{task}/schedstat").read_text().split()[1])
    return time.monotonic() - waited / 1e9


class Failed(Exception):
    """The console did not survive."""


class Session:
    """One console and what a person's fingers and eyes know of it."""

    def __init__(self, case: Case, root: Path, home: Path, *before: str) -> None:
        """Start one; ``before`` are the words of a program that starts it."""
        home.mkdir(exist_ok=True)
        words = [
            *before,
            "env",
            "PYTHONFAULTHANDLER=1",
            "EDITOR=true",
            "VISUAL=true",
            "PAGER=true",
            f"{BOUND_KEYS}={home / 'bound-keys'}",
            sys.executable,
            str(Path(__file__).with_name("telling.py")),
            "-C",
            str(root),
            *WORDS[case.posture],
        ]
        self.terminal = Terminal(words, root, home)
        self._before = termios.tcgetattr(self.terminal.fd)
        self._places = (root, home)
        self.tail = b""
        """What it wrote last."""
        self.took = False
        """Whether it has taken the terminal."""
        self.size = (160, 48)
        os.set_blocking(self.terminal.fd, False)

    def starts(self) -> None:
        """Wait until it has taken the terminal."""
        until = self._lived() + LIMIT_S
        while not self.took:
            self.drain(0.5, 1.0)
            self.check(until, "does not start")

    def act(self, action: Action) -> None:
        """Do one thing, as fast as the terminal takes it."""
        kind, value = action if action[0] != "bound" else bound_key(action[1], self._open_keys())
        if kind == "stop":
            self.stop()
        elif kind == "size":
            self.size = value
            fcntl.ioctl(self.terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", value[1], value[0], 0, 0))
        elif kind == "change":
            change(self._places[0], value)
        elif kind == "rest":
            self.drain(0.1 if value else 0.0, REST_S)
        else:
            self.write(sent((kind, value), self.size).encode("utf-8", "surrogateescape"))

    def _open_keys(self) -> Sequence[str]:
        """The keys that the open screen had a moment ago; all keys before there is one."""
        with contextlib.suppress(OSError):
            if keys := (self._places[1] / "bound-keys").read_text().split():
                return keys
        return BOUND

    def stop(self) -> None:
        """Stop it as a shell does, and continue it."""
        for number, state in ((signal.SIGTSTP, "T"), (signal.SIGCONT, "RSD")):
            os.kill(self.terminal.pid, number)
            until = self._lived() + 5.0
            while self.state() not in state and self._lived() < until:
                self.drain(0.02, 0.1)

    def revive(self) -> None:
        """Continue it where a busy machine stopped it only after it was continued."""
        if self.code() is None and self.state() == "T":
            os.kill(self.terminal.pid, signal.SIGCONT)

    def state(self) -> str:
        """The letter of its state in ``/proc``."""
        return Path(f"/proc/{self.terminal.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def write(self, data: bytes) -> None:
        """Write all of it, reading meanwhile what the console writes."""
        until = self._lived() + LIMIT_S
        while data:
            readable, writable, _ = select.select([self.terminal.fd], [self.terminal.fd], [], 1.0)
            if readable:
                self._read()
            if writable:
                data = data[os.write(self.terminal.fd, data[:512]) :]
                until = self._lived() + LIMIT_S
            self.revive()
            self.check(until, "takes no input")

    def drain(self, quiet: float, most: float) -> bool:
        """Read until nothing came for ``quiet`` seconds; whether anything did."""
        until, any_came, limit = time.monotonic() + most, False, self._lived() + most + LIMIT_S
        while time.monotonic() < until and select.select([self.terminal.fd], [], [], quiet)[0]:
            any_came = self._read() or any_came
            self.check(limit, "does not end")
        return any_came

    def _hears(self, seconds: float) -> bool:
        """Whether anything comes within so many seconds."""
        return bool(select.select([self.terminal.fd], [], [], seconds)[0]) and self._read()

    def _lived(self) -> float:
        return lived(f"{self.terminal.pid}/task/{self.terminal.pid}")

    def check(self, until: float, why: str) -> None:
        """Raise where the console has ended, or has had its time."""
        if (code := self.code()) is not None:
            raise Ended(code)
        if self._lived() > until:
            raise Failed(f"the console {why}, for {LIMIT_S:.0f} s")

    def code(self) -> int | None:
        """The exit code, -N for a signal; None while it runs."""
        found = os.waitid(os.P_PID, self.terminal.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def answers(self) -> None:
        """Raise where it draws nothing on another size."""
        self.drain(0.5, STILL_S)  # keys come in faster than they are dealt with
        for size in ((100, 30), (101, 31)):
            self.act(("size", size))
            until = self._lived() + LIMIT_S
            while not self._hears(0.5):
                self.revive()
                self.check(until, "draws nothing")

    def end(self) -> int:
        """Leave by the key for it, once for each console that takes the terminal: a tour, and the one after it."""
        until, self.took = self._lived() + LIMIT_S, True
        try:
            while True:
                if self.took:
                    self.took, until = False, self._lived() + LIMIT_S
                    self.write(b"\x1b[27u\x11")
                self.revive()
                self.drain(0.2, REST_S)
                self.check(until, "does not leave")
        except Ended as ended:
            return ended.code

    def left(self) -> str:
        """What is not as it was; empty where everything is."""
        while self._read():
            pass
        now = termios.tcgetattr(self.terminal.fd)
        if now[:4] != self._before[:4]:
            return f"the terminal is left as {now[:4]}, it was {self._before[:4]}"
        written = self.tail.decode("utf-8", "replace")
        on = [mode for mode in MODES if written.rfind(f"\x1b[{mode}h") > written.rfind(f"\x1b[{mode}l")]
        hidden = written.rfind("\x1b[?25l") > written.rfind("\x1b[?25h")
        if on or hidden:
            return f"the terminal is left with {on}, cursor hidden: {hidden}"
        return f"a trace on the terminal: {written[-2000:]}" if "Traceback" in written else ""

    def stacks(self) -> str:
        """End it and what it started, a tour for one; where each of their tasks and threads was."""
        self.tail = b""
        os.kill(self.terminal.pid, signal.SIGUSR1)
        with contextlib.suppress(Ended):
            self.drain(2.0, 10.0)
            os.killpg(self.terminal.pid, signal.SIGABRT)
            self.drain(1.0, 10.0)
        return self.tail.decode("utf-8", "replace")

    def traces(self) -> str:
        """The first trace in any log; empty where there is none."""
        for place in self._places:
            for log in sorted(place.glob("**/logs/helix.log*")):
                text = log.read_text(errors="replace")
                if match := re.search(r"^.*\n +Traceback \(most recent call last\):(\n .*)*", text, re.M):
                    return match[0]
        return ""

    def _read(self) -> bool:
        try:
            chunk = os.read(self.terminal.fd, 1 << 20)
        except OSError:  # nothing there, or closed from the other end
            return False
        self.took = self.took or b"?1049h" in self.tail[-5:] + chunk
        self.tail = (self.tail + chunk)[-200_000:]
        return bool(chunk)


class Ended(Exception):
    """The console has ended."""

    def __init__(self, code: int) -> None:
        super().__init__(f"it ended with {code}")
        self.code = code


def play(case: Case, actions: Sequence[Action], root: Path, home: Path) -> str:
    """Why the console did not survive these actions; empty when it did. One that was left is started again."""
    done, failure = 0, ""
    while done < len(actions) and not failure:
        failure, taken = _sitting(case, actions[done:], root, home)
        done += max(1, taken)
    return failure


def _sitting(case: Case, actions: Sequence[Action], root: Path, home: Path) -> tuple[str, int]:
    """What became of one console, and how many of the actions were written before it failed or was left."""
    put_back(root)
    session = Session(case, root, home)
    taken = 0
    with session.terminal:
        failure = ""
        try:
            try:
                session.starts()
                for action in actions:
                    session.act(action)
                    taken += 1
                session.answers()
                code = session.end()
            except Ended as ended:
                code = ended.code  # a command that leaves was chosen
            failure = f"the console ended with {code}" if code else ""
        except Failed as failed:
            failure = f"{failed}\n{session.stacks()}"
        failure = "; ".join(filter(None, (failure, session.traces(), "" if failure else session.left())))
        return failure, taken
