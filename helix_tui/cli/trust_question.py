"""The question whether what a repository brings may run, at a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from helix_tui.cli.call import Call
from helix_tui.core.editing.execute.trust import Brought


def ask_person(call: Call, waiting: Iterable[Brought]) -> bool:
    """Show what would run, and ask; only an explicit yes allows it."""
    call.note("This repository brings what would run when you change something:")
    for brought in waiting:
        for line in brought.describe():
            call.note(f"  {line}")
    sys.stderr.write("Allow it for this repository, as it is now? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
