"""Ask git about DDx's files: uncommitted changes, and where a missing bead was last seen.

`implementation_changes` are the changes because of which ddx would refuse to work. Every function runs git.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.record import Bead, UnreadableLine, decode_bead
from helix_tui.core.beads.tracker import read_archive
from helix_tui.core.ddx.dialect import BOOKKEEPING
from helix_tui.core.ground.files import Stamp, is_folder, stamp_of
from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.time import NS, parse_instant

_FOLDERS = tuple(path for path in BOOKKEEPING if path.endswith("/"))
_LOCKS = (".ddx/.git-tracker.lock.", ".ddx/beads.lock.")
_SKILLS = (".crush/skills/", ".claude/skills/", ".agents/skills/")
_CAP = 4 << 20

WRITTEN_AT_START = (".ddx/agent-logs/",)
"""Folders in which every worker writes before its first attempt, and which are no bookkeeping to ddx since May."""

_MAX_OUTPUT = 256 << 20

MOST_KNOWN = 1_000
"""Maximum number of answers kept, some 500 bytes each: more than any tracker's missing beads."""


def is_bookkeeping(path: str) -> bool:
    """Whether ddx treats a change of this file (relative to the root, with ``/``) as its own."""
    return (
        path in BOOKKEEPING
        or path.startswith((*_FOLDERS, ".ddx/beads.jsonl.tmp-"))
        or (path.startswith(_LOCKS) and path.endswith(".lock"))
    )


def uncommitted(root: Path, paths: Iterable[str] = (), *, timeout: float = 20.0) -> tuple[str, ...] | None:
    """Files that are changed, staged or untracked, in git's order; None if git fails.

    Args:
        root: the work tree.
        paths: restrict to these.
        timeout: seconds that git may take.

    Beyond 4 MiB of names the rest is left out.
    """
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--")
    raw = git_records(root, (*words, *(paths or (".",))), timeout)
    if raw is None:
        return None
    records = [record for record in raw.split("\0") if len(record) > 3]
    # each record is two letters of state, a blank and the name; without renames one name
    return tuple(dict.fromkeys(record[3:] for record in records))


def implementation_changes(root: Path) -> tuple[str, ...] | None:
    """Changes because of which ddx since May refuses to start; None if git fails."""
    found = uncommitted(root)
    if found is None:
        return None
    return tuple(path for path in found if not is_bookkeeping(path) and not _unfolded_skill(root, path))


def written_and_shown(root: Path, folders: Iterable[str] = WRITTEN_AT_START) -> tuple[str, ...]:
    """Those folders whose next file git would show as untracked, so that ddx stops for what it wrote itself."""
    probes = {f"{folder}next": folder for folder in folders}
    if not probes:
        return ()
    words = ("check-ignore", "--no-index", "-z", "--stdin")
    try:
        # 1: it ignores none of them
        done = read_git(root, *words, given="\0".join(probes).encode(), check=False)
    except GitFailed:
        return ()
    if done.rc not in (0, 1):
        return ()
    ignored = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return tuple(folder for probe, folder in probes.items() if probe not in ignored)


def tracked(root: Path, paths: Sequence[str], *, timeout: float = 20.0) -> tuple[str, ...]:
    """The tracked files below some paths."""
    raw = git_records(root, ("ls-files", "-z", "--", *paths), timeout)
    return tuple(path for path in (raw or "").split("\0") if path)


def _unfolded_skill(root: Path, path: str) -> bool:
    """Whether it is a skill that git tracks as a link and that a tool replaced by a folder: ddx ignores it."""
    if not path.startswith(_SKILLS):
        return False
    link = "/".join(path.split("/")[:3])
    staged = git_records(root, ("ls-files", "--stage", "-z", "--", link), 20.0) or ""
    # git's mode of a symbolic link
    return staged.startswith("120000") and is_folder(root / link)


def staged_beside_tracker(root: Path) -> bool:
    """Whether anything but the tracker is staged; False if git fails."""
    tracker = ":(exclude).ddx/beads.jsonl"
    return bool(git_records(root, ("diff", "--cached", "--name-only", "-z", "--", ".", tracker), 5.0))


def git_records(root: Path, words: Sequence[str], timeout: float, cap: int | None = None) -> str | None:
    """The NUL-terminated records that a read-only git prints; None if it fails.

    Args:
        timeout: seconds that git may take.
        cap: bytes at which it is ended, 4 MiB by default; a cut record is left out.
    """
    done = ask_git(root, *words, timeout=timeout, cap=_CAP if cap is None else cap)
    if done is None:
        return None
    whole = done.stdout[: done.stdout.rfind(b"\0") + 1] if done.truncated else done.stdout
    return whole.decode("utf-8", "surrogateescape")


class LastSeen(Struct, frozen=True):
    """The last record of a bead that is no longer in the tracker."""

    where: Literal["archive", "git"]
    status: str
    title: str
    rev: str = ""
    """The commit that removed it; empty for the archive."""
    when: int | None = None

    @property
    def closed(self) -> bool:
        """Whether it was closed when it was removed."""
        return self.status == "closed"


class BeadHistory:
    """Looks up missing beads; answers are kept until the archive or the branch changes."""

    def __init__(self, project: Project, *, timeout: float = 10.0) -> None:
        self._project = project
        self._timeout = timeout
        self._known: Recent[str, LastSeen | None] = Recent(MOST_KNOWN)
        self._state: tuple[Stamp | None, str | None] | None = None

    def last_seen(self, bead_id: str) -> LastSeen | None:
        """The bead's last record in the archive, else in git; None if it is in neither.

        Runs git: call it from a worker.
        """
        # a program's argument cannot contain NUL, nor a line of the tracker a newline
        if not bead_id or "\0" in bead_id or "\n" in bead_id:
            return None
        state = (stamp_of(self._project.archive_file), self._head())
        if state != self._state:
            self._known.clear()
            self._state = state
        if bead_id not in self._known:
            self._known[bead_id] = self._in_archive(bead_id) or self._in_git(bead_id)
        return self._known[bead_id]

    def _head(self) -> str | None:
        branch = self._project.branch()
        return self._project.ref(f"refs/heads/{branch}") or branch if branch else None

    def _in_archive(self, bead_id: str) -> LastSeen | None:
        bead = read_archive(self._project.archive_file).beads.get(bead_id)
        if bead is None:
            return None
        return LastSeen("archive", bead.status, bead.title, when=parse_instant(bead.updated_at))

    def _in_git(self, bead_id: str) -> LastSeen | None:
        """Find the bead in git: the newest commit that changed how often its id occurs removed it."""
        try:
            tracker = self._project.beads_file.resolve().relative_to(self._project.main_root.resolve()).as_posix()
        except (ValueError, OSError, RuntimeError):  # outside the work tree, or circular links
            return None
        needle = f'-S"id":"{bead_id}"'
        log = self._git("log", "-1", "--format=%H %ct", needle, "--", tracker)
        rev, _, seconds = log.out.strip().partition(" ") if log is not None else ("", "", "")
        if not rev:
            return None
        # its parent still had the bead; else it added the bead, and the removal is not committed
        for spec in (f"{rev}^", rev):
            blob = self._git("cat-file", "blob", f"{spec}:{tracker}")
            if blob is not None:
                bead = _find_row(blob.stdout.split(b"\n"), bead_id)
                if bead is not None:
                    when = int(seconds) * NS if seconds.isdecimal() else None
                    return LastSeen("git", bead.status, bead.title, rev, when)
        return None

    def _git(self, *args: str) -> Finished | None:
        if self._project.git_dir is None:
            return None
        return ask_git(self._project.main_root, *args, timeout=self._timeout, cap=_MAX_OUTPUT)


def _find_row(lines: Iterable[bytes], bead_id: str) -> Bead | None:
    """The last record of a bead in JSON lines."""
    needle = f'"{bead_id}"'.encode()
    found = None
    for line in lines:
        if needle in line:
            try:
                bead = decode_bead(line.rstrip(b"\n"))
            except UnreadableLine:
                continue
            found = bead if bead.id == bead_id else found
    return found
