"""The project's own say in what may be written: ``.ddx/hooks/validate-bead-create`` and ``-update``.

A hook gets the record on stdin. 0 lets it pass, 1 refuses it, 2 lets it pass with a warning, anything else
refuses it too (docs/formats/ddx.md §2).
"""

from __future__ import annotations

import stat

from helix_ddx.base.flags import Refused
from helix_ddx.store.call import VerbCall

TIMEOUT_S = 60


def run_hook(call: VerbCall, name: str, record: bytes) -> None:
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
    from helix_ddx.base.external_tools import OtherError, hook  # only where there is a hook

    try:
        code, said = hook(path, record, timeout=TIMEOUT_S)
    except OtherError as problem:
        raise Refused(f"bead: hook {name}: {problem}") from None
    said = said or "validation failed"
    if code == 2:
        call.warn(f"bead: hook {name} warning: {said}")
    elif code == 1:
        raise Refused(f"bead: hook {name}: {said}")
    elif code:
        raise Refused(f"bead: hook {name} exit {max(code, -1)}: {said}")
