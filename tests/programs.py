"""What tests write for the product: Python scripts and a ddx that does as a script says, to run; rows, to read."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from helix_tui.core.beads.tracker import Tracker, read_tracker
from helix_tui.core.editing.execute.gate import EMBEDDED


def parse_rows(rows: bytes) -> Tracker:
    """A tracker of these lines, read as a file is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "beads.jsonl")
        path.write_bytes(rows)
        return read_tracker(path)


def state() -> dict[str, str]:
    """The state folder of the test's person, for a process with another environment: their ledger is in it."""
    return {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}


def write_program(path: Path, code: str) -> Path:
    """Write an executable that runs Python code with this Python, whatever characters its path has.

    A ``#!`` line takes no blanks: the shell reads the text up to its end, Python reads that as a string.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n''':'\nexec {shlex.quote(sys.executable)} \"$0\" \"$@\"\n'''\n{code}\n")
    path.chmod(0o755)
    return path


def write_ddx(path: Path, code: str) -> Path:
    """Write a ddx that does as a script says.

    The script has ``args``, ``passed()``, which lets the embedded tracker answer and gives its exit code, and
    ``number()``, how often it was called so far. Help is always the embedded tracker's.
    """
    count = str(path.parent / "count")
    return write_program(
        path,
        f"""import os, subprocess, sys, time
args = sys.argv[1:]
def passed():
    return subprocess.run({list(EMBEDDED)!r} + args).returncode
def number():
    n = int(open({count!r}).read()) + 1 if os.path.exists({count!r}) else 1
    open({count!r}, "w").write(str(n))
    return n
if "--help" in args: sys.exit(passed())
{code}""",
    )
