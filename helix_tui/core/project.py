"""Which repository this is, where its ``.ddx`` and ``.helix`` lie, and which ``ddx`` serves it.

Rules: reference/ddx.md §0 (CLI conventions) and §4.3 (leases). Nothing here runs a subprocess: the branch
and the head of ``origin/main`` are read from git's own files.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Project:
    """One project on disk. Its folders need not exist; whoever reads them finds out."""

    root: Path
    """The work tree the console stands in, or the start folder where there is no git."""
    ddx_dir: Path
    git_dir: Path | None = None
    """Git's folder of this work tree; that of a linked work tree differs from `common_dir`."""
    common_dir: Path | None = None
    """Git's folder shared by all work trees: refs and objects."""

    @property
    def name(self) -> str:
        """What people call it: the folder's name."""
        return self.root.name or str(self.root)

    @property
    def beads_file(self) -> Path:
        """The tracker."""
        return self.ddx_dir / "beads.jsonl"

    @property
    def helix_dir(self) -> Path:
        """HELIX's own folder."""
        return self.root / ".helix"
