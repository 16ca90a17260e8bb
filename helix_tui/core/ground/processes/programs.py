"""Where programs are: never in the current folder, which may be a stranger's repository (docs/security.md).

`process` starts them; this module is apart from it because most commands only look for ddx and start nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

NEUTRAL = Path("/")
"""The folder of programs that have nothing to do in the project."""


def program(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """The absolute path of a program; None if there is none.

    Folders of PATH that are empty or relative are passed over: they are the current folder, or lie in it. A relative
    path names no program.
    """
    folders = (os.environ if env is None else env).get("PATH", os.defpath).split(os.pathsep)
    if os.path.dirname(name):
        folders = ["/"] if os.path.isabs(name) else []
    paths = (os.path.join(folder, name) for folder in folders if os.path.isabs(folder))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def python_argv(module: str) -> tuple[str, ...]:
    """The words that run a module of ours.

    ``-P`` keeps the current folder from the module search path, ``-E`` the folders of PYTHONPATH and PYTHONHOME, which
    the programs that it starts find unchanged. The user's own site-packages stay.
    """
    return (os.path.abspath(sys.executable), "-P", "-E", "-m", module)
