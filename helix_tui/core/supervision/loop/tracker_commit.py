"""A tracker that its project commits: what a run writes after ddx's last commit of it is committed too.

ddx commits the tracker around each attempt, never after a ``bead update`` typed by hand. What a run writes
is of the first kind: whoever began with a clean file, or has seen ddx commit it, ends with a clean one.
"""

from __future__ import annotations

from helix_tui.core.ddx.uncommitted import tracked, uncommitted
from helix_tui.core.ground.project import Project
from helix_tui.core.supervision.stages.commit import CommitError, commit_files


class TrackerCommit:
    """Watches one tracker during a run, and commits it at the end where nothing but the run's words differs."""

    def __init__(self, project: Project) -> None:
        root, file = project.root, project.beads_file
        self._root = root
        self._name = file.relative_to(root).as_posix() if file.is_relative_to(root) else ""
        self._seen_clean = False

    def note(self) -> None:
        """Look at it at the beginning, and after each turn of ddx before anything of ours is written."""
        self._seen_clean = self._seen_clean or (bool(self._tracked()) and self._left() == ())

    def end(self, run_id: str) -> str:
        """Commit it if it differs from what was seen committed; what to say where it stays uncommitted."""
        if not self._tracked() or not self._left():
            return ""
        if not self._seen_clean:
            return f"{self._name} is not committed; it was not when the run began"
        try:
            commit_files(self._root, [self._name], f"chore: update tracker (helix-tui {run_id})")
        except CommitError as error:
            return f"{self._name} is not committed: {error}"
        return ""

    def _tracked(self) -> tuple[str, ...]:
        return tracked(self._root, [self._name]) if self._name else ()

    def _left(self) -> tuple[str, ...] | None:
        return uncommitted(self._root, [self._name])
