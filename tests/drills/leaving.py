"""Leave a console in each of its states, in each way, beside each kind of ddx: how long it takes and what is left.

``python -m tests.drills.leaving`` prints a line for each; a console that takes longer than `LIMIT_S`, or that leaves
a process behind, fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.console import Terminal
from tests.drills.behind_terminal import lived
from tests.drills.projects import isolate, make_project

LIMIT_S = 2.0
"""How long leaving may take, without the time in which the machine gave the console no turn."""

GIVEN_UP_S = 20.0
"""When a console is no longer waited for."""

MARK = "HELIX_DRILL_OF"
"""The variable by which the processes of one console are known."""

DDX: Mapping[str, str] = {
    "hangs": "exec sleep 600",
    "floods": "exec yes",
    "ignores": 'trap "" TERM INT HUP; while :; do sleep 600; done',
    "works": 'exec {python} -P -m helix_ddx "$@"',
    "changes slowly": 'case "$*" in *--help|*--json|*ready*|*status*) exec {python} -P -m helix_ddx "$@";; esac\n'
    'trap "" TERM; sleep 600',
}
"""What each ddx does, as a script."""

KEYS = {"q": b"q", "ctrl+q": b"\x11"}
WAYS = ("ctrl+q", "SIGTERM", "SIGHUP")


@dataclass(frozen=True)
class State:
    """Keys that lead to a state of the console."""

    name: str
    keys: Sequence[str] = ()
    ddx: str = "works"
    deaf: bool = False
    """Whether the terminal is no longer read."""
    guest: bool = False
    """Whether another program has the terminal."""
    stopped: bool = False
    """Whether it and its guest are stopped first, and continued only when they are to leave."""


STATES = (
    State("queue"),
    State("loading", ("",)),
    *(State(f"screen {key}", (key,)) for key in ("2", "3", "4", "5", "6", "!", "?")),
    State("filter", ("/", "re")),
    State("go to", (":", "to")),
    State("palette", ("\x10",)),
    State("help, search", ("?", "/", "x")),
    State("actions", ("a",)),
    State("columns", ("C",)),
    State("views", ("v",)),
    State("new bead", ("N",)),
    State("preview", ("-",)),
    State("what if", ("w",)),
    State("bead, whole", ("\r",)),
    State("attempt", ("2", "\r")),
    State("loop sheet", ("L",)),
    State("why", ("W",)),
    State("ask prompt", ("4", "i", "why")),
    State("ask runs", ("4", "i", "what failed last?\r")),
    State("editor", ("E",), guest=True),
    State("tour", (":", "tour", "\r"), guest=True),
    State("tour, later", (":", "tour", "\r", "", ""), guest=True),
    State("tour, by its key", ("\x14",), guest=True),
    State("tour, ctrl+z while it starts", ("\x14\x1a", "\x1a"), guest=True),
    State("tour, stopped", ("\x14", "", ""), guest=True, stopped=True),
    State("editor, stopped", ("E",), guest=True, stopped=True),
    State("stopped", (), stopped=True),
    *(State(f"stopped, ddx {kind}", (), kind, stopped=True) for kind in ("hangs", "floods")),
    State("loop runs", ("L", "s", "\r")),
    *(State(f"ddx {kind}", (), kind) for kind in ("hangs", "floods", "ignores")),
    *(State(f"preview, ddx {kind}", ("-",), kind) for kind in ("hangs", "floods", "ignores")),
    *(State(f"change runs, ddx {kind}", ("-", "", "\r"), kind) for kind in ("hangs", "floods", "changes slowly")),
    State("not read", (), "works", deaf=True),
    State("not read, ddx hangs", (), "hangs", deaf=True),
    State("not read, loop runs", ("L", "s", "\r"), "works", deaf=True),
)


class Console(Terminal):
    """A console with marked processes."""

    def __enter__(self) -> Console:
        return self

    def __init__(self, root: Path, home: Path, ddx: Path, mark: str) -> None:
        editor = ddx.with_name("editor")
        editor.write_text("#!/bin/sh\nexec sleep 600\n")
        editor.chmod(0o755)
        words = ["env", f"{MARK}={mark}", f"EDITOR={editor}", sys.executable]
        super().__init__([*words, "-m", "helix_tui", "-C", str(root), "--ddx", str(ddx)], root, home)

    def press(self, keys: Sequence[str]) -> None:
        """Press keys one by one, as a person does."""
        for key in keys:
            os.write(self.fd, key.encode())
            self.settle(0.4, 1.2)

    def stuff(self) -> None:
        """Let it draw until its terminal, which nobody reads, takes no more."""
        for number in range(300):
            os.write(self.fd, b"j" if number % 40 < 20 else b"k")
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop all that it has in its terminal, as a shell's job: the group has no shell, and may take no notice."""
        for sign in (signal.SIGTSTP, signal.SIGSTOP):
            os.killpg(self.pid, sign)
            self.settle(0.4, 1.2)

    def ended(self, within: float) -> bool:
        """Whether it ends; reads what it writes meanwhile where anybody does."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                return True
            time.sleep(0.01)
        return False


def marked(mark: str) -> Iterator[tuple[int, str]]:
    """The processes of a console that still run, and their words."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        try:
            if not entry.name.isdecimal() or wanted not in (entry / "environ").read_bytes():
                continue
            if (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                yield int(entry.name), words.decode("utf-8", "replace")[:120]
        except OSError:
            continue


def leave(state: State, way: str, folder: Path) -> tuple[float, list[str]]:
    """How long it takes to leave a state, and what is left."""
    root = make_project("head", folder / "p")
    ddx = folder / "ddx"
    ddx.write_text("#!/bin/sh\n" + DDX[state.ddx].format(python=sys.executable) + "\n")
    ddx.chmod(0o755)
    mark = folder.name
    home = folder / "home"
    home.mkdir()
    with Console(root, home, ddx, mark) as console:
        console.wait_for("?1049h", timeout=60)
        if state.name != "loading":
            console.settle(0.5, 4.0)
        console.press(state.keys)
        if state.deaf:
            console.stuff()
        if state.stopped:
            console.stop()
        task = f"{console.pid}/task/{console.pid}"
        first, begun = time.monotonic(), lived(task)
        if way.startswith("SIG"):
            os.kill(console.pid, getattr(signal, way))
        if state.stopped:
            os.killpg(console.pid, signal.SIGCONT)
        if way in KEYS:
            os.write(console.fd, KEYS[way])
        while not console.ended(0.02):
            if not state.deaf:
                console.settle(0.0, 0.05)
            if (state.guest or state.stopped) and way in KEYS and lived(task) - begun > 1.5:
                # the first one ended the program that had the terminal, or came before it was taken again
                begun = lived(task)
                os.write(console.fd, KEYS[way])
            if time.monotonic() - first > GIVEN_UP_S:
                break
        seconds = lived(task) - begun
    left = list(marked(mark))
    for pid, _ in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    # a loop that was started keeps running
    return seconds, [] if "loop runs" in state.name else [words for _, words in left]


def main(words: Sequence[str] | None = None) -> int:
    """Leave them all, or the states whose name has a word in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", nargs="*", default=WAYS)
    options = parser.parse_args(words)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="helix-leaving-", ignore_cleanup_errors=True) as holder:
        isolate(Path(holder))
        for state in STATES:
            if options.names and not any(name in state.name for name in options.names):
                continue
            for way in options.ways:
                if state.deaf and not way.startswith("SIG"):
                    continue
                folder = Path(tempfile.mkdtemp(dir=holder))
                seconds, left = leave(state, way, folder)
                bad = seconds > LIMIT_S or left
                failed += bool(bad)
                print(f"{'FAILED ' if bad else ''}{state.name} · {way}: {seconds:.2f} s {left or ''}", flush=True)
    print(f"leaving: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
