"""Our own executables as commands, however this program was installed or started."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def helix_tui() -> list[str]:
    """The words that start this program once more, from any folder."""
    own = Path(sys.argv[0])
    if own.name == "helix-tui" and shutil.which(str(own.absolute())):
        return [str(own.absolute())]
    beside = Path(sys.executable).with_name("helix-tui")
    return [str(beside)] if shutil.which(str(beside)) else [sys.executable, "-m", "helix_tui"]


def helix_ddx() -> list[str]:
    """The words that start the simulation and the embedded tracker."""
    return [sys.executable, "-m", "helix_ddx"]


def helix_ddx_file() -> str | None:
    """The same as one executable, where it is installed beside this Python."""
    beside = Path(sys.executable).with_name("helix-ddx")
    return str(beside) if shutil.which(str(beside)) else None


def quiet_environment() -> dict[str, str]:
    """The environment without what would lead a program of ours to another project's records."""
    package = str(Path(__file__).resolve().parents[2])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DDX_", "GIT_"))}
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (package, kept.get("PYTHONPATH", ""))))
    return kept
