"""The project's own say in what may be written: ``.ddx/hooks/validate-bead-create`` and ``-update``.

A hook gets the record on stdin. 0 lets it pass, 1 refuses it, 2 lets it pass with a warning, anything else
refuses it too (reference/ddx.md §2).
"""

from __future__ import annotations

import os
import stat
import subprocess

from helix_tui.core.tracker.bead.call import Call, Refused

TIMEOUT_S = 60


def run_hook(call: Call, name: str, record: bytes) -> None:
    """Ask a hook, where the project has one.

    Raises:
        Refused: it says no, cannot be started or does not answer.
    """
    path = call.workspace.ddx / "hooks" / name
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refused(f"bead: hook stat: {error}") from None
    if stat.S_ISDIR(mode) or not mode & 0o111:
        return
    try:
        done = subprocess.run(
            [os.fspath(path)],
            input=record,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Refused(f"bead: hook {name}: no answer after {TIMEOUT_S} s") from None
    except OSError as error:
        raise Refused(f"bead: hook {name}: {error.strerror}") from None
    said = done.stderr.decode("utf-8", "replace").strip() or "validation failed"
    if done.returncode == 2:
        call.warn(f"bead: hook {name} warning: {said}")
    elif done.returncode == 1:
        raise Refused(f"bead: hook {name}: {said}")
    elif done.returncode:
        code = done.returncode if done.returncode > 0 else -1
        raise Refused(f"bead: hook {name} exit {code}: {said}")
