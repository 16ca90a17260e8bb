"""Whether a process of this host is at work; apart from `process`, so that readers of claims start fast."""

from __future__ import annotations

import os


def pid_alive(pid: int) -> bool:
    """Whether a process of this host is at work; one that has ended and was not yet reaped is not."""
    if not 0 < pid < 1 << 31:
        return False
    try:
        # signal 0 asks only
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read(4096)
    except OSError:
        return True
    # the name before the state is in parentheses and may hold some itself
    return stat.rpartition(b")")[2].split()[:1] != [b"Z"]
