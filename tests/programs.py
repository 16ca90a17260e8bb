"""What tests write for the product: Python programs to run, rows to read."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

from helix_tui.core.beads.tracker import Tracker, read_tracker


def parse_rows(rows: bytes) -> Tracker:
    """A tracker of these lines, read as a file is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "beads.jsonl")
        path.write_bytes(rows)
        return read_tracker(path)


def state() -> dict[str, str]:
    """The state folder of the test's person, for a process with another environment: their ledger is in it."""
    return {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}


SCRIPT = f"#!/bin/sh\n''':'\nexec {shlex.quote(sys.executable)} \"$0\" \"$@\"\n'''\n"
"""How a program of the tests begins: the shell takes it for a command, Python for a text.

A ``#!`` line takes no blanks, and a Python may be at a path with some.
"""


def write_program(path: Path, code: str) -> Path:
    """Write an executable that runs Python code with this Python, whatever characters its path has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{SCRIPT}{code}\n")
    path.chmod(0o755)
    return path
