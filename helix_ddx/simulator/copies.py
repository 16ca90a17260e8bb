"""An attempt's own copy of the code, and how its commit gets onto the branch.

April works in a linked worktree, head in a local clone (docs/formats/ddx.md §4.6). Both land by
fast forward when nobody committed meanwhile, else by a merge that is made in a folder of its own.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from helix_ddx.simulator.script import FileEdit
from helix_ddx.store.git import GitError, alone, commit, git, head


@dataclass
class Copy:
    """The folder that one attempt works in."""

    project: Path
    path: Path
    era: str
    base: str

    def make(self) -> None:
        """Check out the base in a folder of its own."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.era == "april":
            with alone(self.project):
                git(self.project, "worktree", "add", "-q", "--detach", str(self.path), self.base)
        else:
            with alone(self.project):  # objects that are being written are not all there yet
                git(self.project, "clone", "-q", "--local", "--no-checkout", str(self.project), str(self.path))
            git(self.path, "checkout", "-q", "--detach", self.base)

    def apply(self, edit: FileEdit) -> None:
        """Change a file as the edit says."""
        apply_edit(self.path, edit)

    def commit(self, message: str, trailers: dict[str, str], at: int) -> str:
        """Commit the code, never ``.ddx``; head's commit is fetched into the project at once."""
        text = message + "\n\n" + "".join(f"{name}: {value}\n" for name, value in trailers.items())
        return commit(self.path, text, ".", ":!.ddx", at=at)

    def keep(self, ref: str, rev: str) -> None:
        """Give a commit of the copy a name in the project."""
        if self.era == "april":
            git(self.project, "update-ref", ref, rev)
        else:
            with alone(self.project):
                git(self.project, "fetch", "-q", "--no-tags", str(self.path), f"+{rev}:{ref}")

    def remove(self) -> None:
        """Take the folder away, whatever is in it."""
        if not self.path.exists():
            return
        shutil.rmtree(self.path)
        if self.era == "april":
            with alone(self.project):
                git(self.project, "worktree", "prune")


def apply_edit(folder: Path, edit: FileEdit) -> None:
    """Replace ``old`` by ``new`` in a file of a folder; without ``old``, or when it is not there, append.

    Raises:
        GitError: the path leads out of the folder.
    """
    path = folder / edit.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise GitError(f"the edit of {edit.path} leads out of the project")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    if edit.old and edit.old in text:
        path.write_text(text.replace(edit.old, edit.new, 1), encoding="utf-8")
        return
    gap = "\n" if text and not text.endswith("\n") else ""
    path.write_text(text + gap + edit.new, encoding="utf-8")


class LandConflict(RuntimeError):
    """Two commits change the same lines."""


def land(project: Path, rev: str, message: str, scratch: Path, at: int, *, ours: bool = False) -> str:
    """Bring a commit onto the branch; the branch's new tip.

    Args:
        message: of the merge commit, when the branch has moved.
        scratch: a folder to merge in; it is gone afterwards.
        ours: let the branch win where both changed the same lines.

    Raises:
        LandConflict: it cannot be merged, and ``ours`` is not set.
        GitError: the project's files stand in the way.
    """
    with alone(project):
        tip = head(project)
        merged = rev
        if git(project, "merge-base", tip, rev) != tip:
            merged = _merge(project, rev, tip, message, scratch, at, ("-X", "ours") if ours else ())
        git(project, "merge", "-q", "--ff-only", merged)
    return merged


def _merge(project: Path, rev: str, tip: str, message: str, scratch: Path, at: int, strategy: tuple[str, ...]) -> str:
    git(project, "worktree", "add", "-q", "--detach", str(scratch), tip)
    try:
        try:
            git(scratch, "merge", "-q", "--no-ff", *strategy, "-m", message, rev, at=at)
        except GitError as error:
            if "onflict" not in str(error) and not _unmerged(scratch):
                raise
            raise LandConflict("merge conflict") from None
        return head(scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        git(project, "worktree", "prune")


def _unmerged(folder: Path) -> bool:
    return bool(git(folder, "ls-files", "--unmerged"))


def subject(title: str) -> str:
    """A commit's first line made of a bead's title: one line, no control characters, not too long."""
    plain = re.sub(r"[^\x20-\x7e]+", " ", title)
    plain = re.sub(r"\s+", " ", plain).strip() or "work on the bead"
    return f"feat: {plain[0].lower()}{plain[1:64]}".rstrip()
