"""Find git's folders of a work tree in git's own files, without running git, and prove that they are its own.

What a repository brings may name the git folder of another project: a ``.git`` file, a made-up linked work tree, a link
or ``core.worktree``. None is followed without the proof of docs/decisions/0021; git and ddx are then run so that they
do not follow it either.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ground.files import text_of
from helix_tui.core.ground.text import clean_line

_OWN_PARTS = ("HEAD", "config", "index", "logs", "objects", "packed-refs", "refs")
"""Parts of a git folder that must not be links to another repository's."""

# read as git does, but more strictly: the heading may be on the same line, and any section counts
_CORE_WORKTREE = re.compile(r"^(?:[ \t]*\[[^\n]*\])?[ \t]*worktree[ \t]*=([^\n]*)", re.IGNORECASE | re.MULTILINE)


def git_dir_of(dot_git: Path) -> Path | None:
    """The git folder that a ``.git`` folder or file refers to; None if it is neither."""
    if dot_git.is_dir():
        return dot_git if (dot_git / "HEAD").exists() else None
    line = first_line(dot_git)
    # a work tree or submodule: .git is a file that names the folder
    if not line.startswith("gitdir: "):
        return None
    git_dir = Path(os.path.abspath(dot_git.parent / line[8:].strip()))
    return git_dir if git_dir.is_dir() else None


def common_dir_of(git_dir: Path) -> Path:
    """The git folder that all work trees of a repository share."""
    shared = first_line(git_dir / "commondir")
    return Path(os.path.abspath(git_dir / shared)) if shared else git_dir


class WorkTree(Struct, frozen=True):
    """A work tree of git, and its git folders where they prove to be its own (docs/decisions/0021)."""

    root: Path
    git_dir: Path | None = None
    common_dir: Path | None = None
    problem: str = ""
    """Why git's folders were not followed; one sentence, and what to do."""


def work_tree_above(folder: Path) -> WorkTree | None:
    """The work tree that a folder is in; None outside of git."""
    for root in (folder, *folder.parents):
        git_dir = git_dir_of(root / ".git")
        if git_dir is not None:
            common_dir = common_dir_of(git_dir)
            problem = _foreign(root, git_dir, common_dir)
            return WorkTree(root, problem=problem) if problem else WorkTree(root, git_dir, common_dir)
    return None


def common_dir_above(folder: Path) -> Path | None:
    """The shared git folder of the repository that a folder is in; None outside of one."""
    tree = work_tree_above(folder)
    return tree.common_dir if tree is not None else None


def git_environment(folder: Path) -> dict[str, str]:
    """What git and ddx need in their environment in a folder: they must not follow what `work_tree_above` does not."""
    return environment_of(work_tree_above(Path(os.path.abspath(folder))))


def environment_of(tree: WorkTree | None) -> dict[str, str]:
    """The same for a work tree that was found."""
    return {"GIT_DIR": os.devnull} if tree is not None and tree.problem else {}


def _foreign(root: Path, git_dir: Path, common_dir: Path) -> str:
    """Why the ``.git`` of a work tree must not be followed; "" if its git folder proves to be its own.

    A linked work tree is named by its repository's own records. Any other git folder must be in the work tree, name
    it as ``core.worktree``, or name none and have none beside it (``git init --separate-git-dir``).
    """
    dot_git = root / ".git"
    real, shared = Path(os.path.realpath(git_dir)), Path(os.path.realpath(common_dir))
    shown, folder = clean_line(str(git_dir), 300), clean_line(str(root), 300)
    if real != shared:
        named_back = first_line(real / "gitdir")
        named = not dot_git.is_symlink() and _same(real / named_back, dot_git)
        if real.parent == shared / "worktrees" and named and _ours(shared, dot_git):
            return ""
        return (
            f"git is not used in {folder}: its .git names {shown}, which does not name this folder. "
            f"If it was moved: `git worktree repair {folder}` in its repository"
        )
    trees = [tree for name in ("config", "config.worktree") for tree in _CORE_WORKTREE.findall(text_of(real / name))]
    if any(not _same(real / tree.strip().strip('"'), root) for tree in trees):
        return f"git is not used in {folder}: its configuration sets core.worktree to another folder"
    if any(_leads_out(real, name) for name in _OWN_PARTS):
        return f"git is not used in {folder}: {shown} has links to another repository"
    if trees or Path(os.path.realpath(root)) in real.parents:
        return ""
    if real.name == ".git" or configured(real, "core", "bare") == "true" or not _ours(real, dot_git):
        return (
            f"git is not used in {folder}: its .git names {shown}, which is another repository. "
            f"If it is this one: `git --git-dir={shown} config core.worktree {folder}`"
        )
    return ""


def _leads_out(real: Path, name: str) -> bool:
    part = real / name
    return os.path.islink(part) and real not in Path(os.path.realpath(part)).parents


def _same(path: Path, other: Path) -> bool:
    """Whether two paths are one file or folder, however they are reached."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _ours(*paths: Path) -> bool:
    """Whether all paths belong to this user."""
    try:
        return all(path.lstat().st_uid == os.geteuid() for path in paths)
    except OSError:
        return False


def configured(common_dir: Path, section: str, key: str) -> str:
    """A plain value of a repository's own configuration; "" if it is not set.

    Args:
        section: as git writes its heading, without brackets: ``ddx``, ``remote "origin"``.
        key: compared as git does, without regard to case.
    """
    inside, found = False, ""
    heading = f"[{section}]".replace(" ", "")
    for line in text_of(common_dir / "config").split("\n"):
        line = line.strip()
        if line.startswith("["):
            inside = line.replace(" ", "") == heading
        elif inside and line.partition("=")[0].strip().lower() == key.lower():
            # the last one counts, as for git
            found = line.partition("=")[2].strip().strip('"')
    return found


def origin_url(common_dir: Path) -> str:
    """The address of the remote ``origin``; "" where there is none."""
    return configured(common_dir, 'remote "origin"', "url")


def packed_ref(packed: Path, name: str) -> str | None:
    """The commit of a ref in ``packed-refs``."""
    wanted = f" {name}"
    for line in text_of(packed, limit=64 << 20).split("\n"):
        # ^ begins the commit that an annotated tag points to, not a ref
        if line.endswith(wanted) and line[:1] not in "#^":
            return line[: -len(wanted)]
    return None


def first_line(path: Path) -> str:
    """The first line of a small text file, stripped; "" if it cannot be read."""
    return text_of(path).partition("\n")[0].strip()
