"""Where DDx keeps what does not lie in the project: leases and the workers' copies of the code.

Source: docs/formats/ddx.md §4. The exec root is ``$DDX_EXEC_WT_DIR``, else
``executions.temp_worktree_root`` of the project's config or of ``~/.ddx/config.yaml``; without one, leases
lie under the system's temporary folder and the copies under ``~/.cache/ddx/exec-wt``.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

LEASES = "ddx-claim-heartbeats"

_WORKTREE_ROOT = re.compile(r"(?m)^[ \t]+temp_worktree_root:[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s#][^\n#]*))")


def exec_root(project: Path, env: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that was set for leases and working copies, or None when DDx would use its defaults."""
    if chosen := env.get("DDX_EXEC_WT_DIR"):
        return Path(chosen)
    for config in (project / ".ddx" / "config.yaml", home(env) / ".ddx" / "config.yaml"):
        try:
            found = _WORKTREE_ROOT.search(config.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if found:
            chosen = next(group for group in found.groups() if group).strip()
            return project / Path(chosen).expanduser()
    return None


def home(env: Mapping[str, str] = os.environ) -> Path:
    """The home folder that DDx would see."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def temp_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The temporary folder as Go finds it: ``$TMPDIR``, else the system's."""
    return Path(env["TMPDIR"]) if env.get("TMPDIR") else Path(tempfile.gettempdir())


def lease_folder(project: Path, env: Mapping[str, str] = os.environ) -> Path:
    """The folder of this project's leases; its name is the SHA-1 of the project's real path."""
    return (exec_root(project, env) or temp_folder(env)) / LEASES / project_hash(project)


def project_hash(project: Path) -> str:
    """What the leases' folder is called for this project."""
    return hashlib.sha1(os.path.realpath(project).encode(), usedforsecurity=False).hexdigest()


def copies_folder(project: Path, era: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where an attempt's own copy of the code goes: a worktree in April, a local clone at head."""
    if era == "april":
        return (exec_root(project, env) or temp_folder(env)) / "ddx-exec-wt"
    return exec_root(project, env) or home(env) / ".cache" / "ddx" / "exec-wt"
