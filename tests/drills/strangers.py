"""A session in a repository that somebody made to do harm, under strace: what it starts, writes and connects to.

``python -m tests.drills.strangers`` prints what docs/security.md does not name; ``--all`` prints everything. Without
``--kind`` the repository has all kinds that leave room for each other, and commands are run in it beside the console.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from bench.console import Terminal
from tests.drills.projects import isolate
from tests.hostile.kinds import COMBINED, KINDS
from tests.hostile.kinds.registry import SECRET, make_clone, make_outside
from tests.hostile.test_kinds import CHANGE, LOOK, witnesses

CALLS = (
    *("execve", "connect", "sendto", "kill", "open", "openat", "creat", "truncate", "mkdir", "mkdirat", "rmdir"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "symlink", "symlinkat", "link", "linkat"),
    *("chmod", "fchmodat", "mknod", "mknodat"),
)
PROGRAMS = ("git", "ps")
"""Beside our own Python: what a session starts, from the system's folders."""

ESCAPE, LEAVE = "\x1b", "\x11"
KEYS = (*"234i", "hunter2 of the person\r", *"56!", ESCAPE, "?", ESCAPE, "L", ESCAPE, *"1W", ESCAPE, "j", "\r", ESCAPE)
COMMANDS = tuple(words for words in (*LOOK, *CHANGE) if words[0] != "snapshot")
"""What is run where nobody can be asked."""
TOGETHER = (*COMBINED, "hooks_of_git", "git_core_fsmonitor", "git_filter_evil_clean", "git_diff_external")
"""The kinds of one repository: all that leave room for each other, and git's settings that name programs."""

_CALL = re.compile(r"^(?P<call>\w+)\((?P<rest>.*)\) += (?P<result>-?\d+)(?:<(?P<path>.*)>)?")
_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"')
_WRITES = re.compile(r"\bO_(?:WRONLY|RDWR|CREAT|TRUNC)\b")


class Act(Struct, frozen=True):
    """One call of the system that reaches beyond its process."""

    call: str
    path: str
    """The program, or the file; "" for an address or a process."""
    line: str


def read_trace(folder: Path) -> Iterator[Act]:
    """What the processes of a trace did; what failed and what was opened to be read is left out."""
    for path in sorted(folder.iterdir()):
        for line in path.read_text("utf-8", "replace").splitlines():
            match = _CALL.match(line)
            if match is None or (int(match["result"]) < 0 and "EINPROGRESS" not in line):
                continue
            call, rest = match["call"], match["rest"]
            names = list(_NAME.finditer(rest))
            if call == "kill" or "sa_family" in rest:
                yield Act(call, "", line)
            elif call in ("open", "openat") and _WRITES.search(rest):
                yield Act("write", match["path"] or "", line)
            elif call not in ("open", "openat", "sendto"):
                for name in names[:1] if call == "execve" else names:
                    yield Act(call, os.path.normpath(os.path.join(name["folder"] or "", name["name"])), line)


def unnamed(acts: Iterable[Act], root: Path, home: Path) -> list[Act]:
    """What of it docs/security.md does not name.

    Args:
        home: the person's folder, with `tmp` in it as the folder for temporary files.
    """
    real = Path(os.path.realpath(root))
    repository = next((folder for folder in (real, *real.parents) if (folder / ".git").is_dir()), real)
    folders = (
        *(real / name for name in (".helix", ".helix-logs")),
        repository / ".git" / "info",
        *(home / name for name in (".local/state/helix-tui", ".cache/helix-tui", "tmp")),
        *(Path("/dev"), Path("/proc/self")),
    )
    return [act for act in acts if not _is_named(act, folders)]


def _is_named(act: Act, folders: Sequence[Path]) -> bool:
    if act.call == "execve":
        is_python_of_ours = f'"{sys.executable}", "-P", "-E"' in act.line
        return is_python_of_ours or act.path in [f"/usr/bin/{name}" for name in PROGRAMS]
    if act.call == "kill":  # whether a process lives is asked by signal 0
        return ", 0)" in act.line
    if act.call == "mkdir" and any(folder.is_relative_to(act.path) for folder in folders):
        return True
    return bool(act.path) and any(Path(act.path).is_relative_to(folder) for folder in folders)


def make_stranger(folder: Path, kinds: Iterable[str] = TOGETHER) -> Path:
    """A repository of some kinds; the folder in it to open."""
    (folder / "home").mkdir(parents=True)
    secret, root = make_outside(folder / "home"), make_clone(folder / "demo")
    opened = root
    for name in kinds:
        opened = KINDS[name](root, secret) or opened
    return opened


def traced(trace: Path, home: Path, *words: str) -> list[str]:
    """Our program under strace, with a person's folder of its own."""
    trace.mkdir(parents=True)
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    strace = ["strace", "-ff", "-qq", "-y", "-s", "4096", "-e", f"trace={','.join(CALLS)}", "-o", str(trace / "of")]
    # -B: what Python compiles of a program beside it is no act in the repository
    ours = [sys.executable, "-P", "-E", "-B", "-m", "helix_tui", *words]
    return ["env", f"TMPDIR={home / 'tmp'}", f"PATH={os.environ['PATH']}", *strace, *ours]


class Recorder(Terminal):
    """A terminal that keeps what was written to it."""

    written = b""

    def _read(self, timeout: float) -> bytes:
        chunk = super()._read(timeout)
        self.written += chunk
        return chunk


def watch_console(root: Path, trace: Path, home: Path, seconds: float) -> bytes:
    """Open the console, go through its screens, ask, supervise for some seconds, and leave; what it wrote."""
    with Recorder(traced(trace, home, "-C", str(root)), root, home) as terminal:
        terminal.wait_for("Queue", "helix", timeout=120)
        terminal.settle(2.0, 20.0)
        for key in KEYS:
            os.write(terminal.fd, key.encode())
            terminal.settle(1.0, 4.0)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            terminal.settle(1.0, 1.0)
        os.write(terminal.fd, LEAVE.encode())
        terminal.settle(2.0, 20.0)
        return terminal.written


def watch_commands(root: Path, trace: Path, home: Path, commands: Sequence[Sequence[str]]) -> None:
    """Run commands where nobody can be asked."""
    env = {"HOME": str(home), "LANG": "C.UTF-8"}
    for number, words in enumerate(commands):
        argv = traced(trace / f"{number:02}-{words[0]}", home, "-C", str(root), *words)
        subprocess.run(argv, cwd=root, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False)


def drill(folder: Path, seconds: float, commands: Sequence[Sequence[str]] = COMMANDS) -> tuple[list[Act], list[Act]]:
    """What a console and some commands did in such a repository: everything, and what the page does not name."""
    root, home = make_stranger(folder), folder / "person"
    watch_console(root, folder / "console", home, seconds)
    watch_commands(root, folder / "commands", home, commands)
    traces = (folder / "console", *sorted((folder / "commands").iterdir()))
    acts = [act for trace in traces for act in read_trace(trace)]
    return acts, unnamed(acts, root, home)


def watch_kinds(folder: Path, kinds: Sequence[str], seconds: float) -> tuple[list[Act], list[Act]]:
    """What a console did in a repository of some kinds; a file outside that changed or was shown counts as an act."""
    root, home, outside = make_stranger(folder, kinds), folder / "person", folder / "home"
    before = witnesses(outside)
    written = watch_console(root, folder / "console", home, seconds)
    acts = list(read_trace(folder / "console"))
    wrong = unnamed(acts, root, home)
    if witnesses(outside) != before:
        wrong.append(Act("changed", str(outside), ""))
    if SECRET.encode() in written:
        wrong.append(Act("shown", str(outside), ""))
    return acts, wrong


def main(words: Sequence[str] | None = None) -> int:
    """Print what the page does not name; 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the console supervises (default 60)")
    parser.add_argument("--all", action="store_true", help="print everything")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="a console in this kind alone")
    options = parser.parse_args(words)
    if shutil.which("strace") is None:
        print("strace is not installed")
        return 2
    with tempfile.TemporaryDirectory(prefix="helix-strangers-") as folder:
        isolate(Path(folder, "maker"))
        if options.kind:
            acts, wrong = watch_kinds(Path(folder), options.kind, options.seconds)
        else:
            acts, wrong = drill(Path(folder), options.seconds)
    for act in acts if options.all else wrong:
        print(act.call, act.path or act.line)
    print(f"{len(acts)} calls, {len(wrong)} that docs/security.md does not name")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
