"""Land an attempt's kept change by hand: one merge, then close the bead with it.

DDx has no verb that lands a kept change (docs/formats/ddx.md §5), so the merge is done with git, in the project's own
work tree, and the bead is changed through ddx. A merge with conflicts is aborted, unless a person resolves it in an
editor meanwhile.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.commit import CommitError, clean_tree, failure, try_git

MAX_NAMED = 5
# not =======, which also underlines a heading
_MARKER = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
_REF = re.compile(r"refs/[A-Za-z0-9._/-]+\Z|[0-9a-f]{7,64}\Z")

MERGE_COMMIT = "(the merge commit)"
"""Placeholder in a plan for the commit that does not exist yet."""


def kept_ref(attempt: Attempt | None) -> str:
    """The ref or commit by which git can find an attempt's kept change; empty if unknown."""
    found = () if attempt is None else (*attempt.kept_refs, attempt.result_rev)
    return next((ref for ref in found if _REF.match(ref)), "")


def merge_words(bead_id: str, ref: str) -> tuple[str, ...]:
    """The arguments of ``git`` that land a kept change."""
    return ("merge", "--no-ff", "-m", f"Land {clean_line(ref, 120)} for {clean_line(bead_id, 60)}", ref)


class MergeOutcome(Struct, frozen=True):
    """The result of a merge."""

    sha: str = ""
    """The merge commit; empty if there is none yet."""
    conflicts: tuple[Path, ...] = ()
    """Files with conflicts, if the merge waits for a person to resolve them."""


def merge_kept(root: Path, bead_id: str, ref: str, *, keep_conflict: bool = False) -> MergeOutcome:
    """Merge a kept change into the branch.

    Args:
        keep_conflict: leave a merge with conflicts for a person to resolve; else abort it.

    Raises:
        OperationRefused: it cannot be merged; nothing was changed.
    """
    if not _REF.match(ref):
        raise OperationRefused("no record says where the kept change is; look at the attempt's evidence")
    if try_git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").rc != 0:
        raise OperationRefused(f"{ref} is not in this repository: it was swept, or is on another machine")
    if not _is_clean(root):
        raise OperationRefused("tracked files have changes that are not committed; commit or stash them first")
    done = try_git(root, *merge_words(bead_id, ref))
    if done.rc == 0 and not done.timed_out:
        return MergeOutcome(_head(root))
    files = conflicted(root)
    if files and keep_conflict:
        return MergeOutcome(conflicts=files)
    said = failure("merge", done)
    call_off(root)
    if files:
        names = [clean_line(str(path.relative_to(root)), 200) for path in files[:MAX_NAMED]]
        more = f" and {len(files) - MAX_NAMED} more" if len(files) > MAX_NAMED else ""
        raise OperationRefused(f"the change conflicts with the branch in {', '.join(names)}{more}; nothing was changed")
    raise OperationRefused(said)


class LandedMerge(Struct, frozen=True):
    """The merge of a landing, when its journal entry is undone or redone: its git command, or why there is none."""

    sha: str
    words: tuple[str, ...] = ()
    """The git arguments; empty if the branch stays unchanged."""
    why: str = ""

    def __str__(self) -> str:
        if self.words:
            return f"after that, in the work tree: git {' '.join(self.words)}"
        return f"the merge {self.sha[:12]} stays as it is: {self.why}"


def merge_of(root: Path, entry: JournalEntry, *, redo: bool = False) -> LandedMerge | None:
    """The merge with which an entry closed its bead, or None.

    Undoing removes the merge from the branch only if nothing else contains it yet: it is the newest commit, on no other
    branch, tag or remote, and the work tree is clean. Redoing puts the same commit back on its parent.
    """
    for bead_id, fields in entry.after.items():
        sha = str((fields or {}).get("closing_commit_sha") or "")
        if re.fullmatch(r"[0-9a-f]{40,64}", sha):
            found = try_git(root, "log", "-1", "--format=%P%x00%s", sha)
            parents, _, subject = found.out.strip().partition("\0")
            # the subject that `merge_words` gives: another merge that closed the bead must not be undone here
            ours = subject.startswith("Land ") and subject.endswith(f" for {clean_line(bead_id, 60)}")
            if found.rc == 0 and ours and len(parents.split()) > 1:
                return (_put_back if redo else _take_out)(root, sha, parents.split()[0])
    return None


def _take_out(root: Path, sha: str, parent: str) -> LandedMerge:
    by_hand = f"`git revert -m 1 {sha[:12]}` takes its changes out of the branch"
    if _head(root) != sha:
        return LandedMerge(sha, why=f"commits were made after it; {by_hand}")
    here = try_git(root, "symbolic-ref", "--quiet", "HEAD").out.strip()
    holders = try_git(root, "for-each-ref", "--contains", sha, "--format=%(refname)").out.split()
    if others := [ref for ref in holders if ref != here]:
        return LandedMerge(sha, why=f"{clean_line(others[0], 120)} has it too; {by_hand}")
    if not _is_clean(root):
        return LandedMerge(sha, why=f"tracked files have changes that are not committed; {by_hand}")
    # --keep refuses to overwrite a changed file
    return LandedMerge(sha, ("reset", "--keep", parent))


def _put_back(root: Path, sha: str, parent: str) -> LandedMerge:
    if try_git(root, "merge-base", "--is-ancestor", sha, "HEAD").rc == 0:
        return LandedMerge(sha, why="it is in the branch")
    if _head(root) != parent or not _is_clean(root):
        raise OperationRefused("the branch has moved on since the merge was undone: land the kept change again")
    return LandedMerge(sha, ("merge", "--ff-only", sha))


def follow_landing(curator: Curator, done: Result | None) -> str:
    """Remove the merge of a landing that was just undone from the branch, if that is safe, or restore it on redo.

    Returns:
        The result in one sentence; empty without a merge.
    """
    entry = done.entry if done is not None and done.error is None else None
    history = curator.history()
    about = history.get(entry.of) if entry is not None and entry.of else None
    if entry is None or about is None:
        return ""
    root = curator.project.root
    merge = merge_of(root, history.root(about), redo=entry.kind == "redo")
    if merge is None or not merge.words:
        return str(merge or "")
    ran = try_git(root, *merge.words)
    return f"git {' '.join(merge.words)}" if ran.rc == 0 else failure(merge.words[0], ran)


def conflicted(root: Path) -> tuple[Path, ...]:
    """Files of a merge that waits for its conflicts to be resolved."""
    done = try_git(root, "diff", "--name-only", "--diff-filter=U", "-z")
    return tuple(root / name for name in done.out.split("\0") if name)


def end_resolving(root: Path, files: Sequence[Path]) -> str:
    """Commit a merge whose conflicts were resolved; return the commit.

    Raises:
        OperationRefused: a file still has conflict markers; the merge is aborted.
    """
    left = [path.name for path in files if path.is_file() and _MARKER.search(path.read_bytes())]
    if left:
        # aborting the merge discards the resolutions made so far
        kept = _put_aside(root, files)
        call_off(root)
        named = ", ".join(left[:MAX_NAMED])
        raise OperationRefused(f"{named} still has conflict markers: the merge was aborted; your edits are in {kept}")
    for words in (("add", "--", *map(str, files)), ("commit", "-q", "--no-edit")):
        done = try_git(root, *words)
        if done.rc != 0:
            # a hook of the project may refuse the commit: the person's resolutions must not be lost
            kept = _put_aside(root, files)
            call_off(root)
            raise OperationRefused(f"{failure(words[0], done)}; the merge was aborted, your edits are in {kept}")
    return _head(root)


def _put_aside(root: Path, files: Sequence[Path]) -> Path:
    """Copy files whose edits would be lost, keeping their relative paths, as two may have the same name."""
    folder = Path(tempfile.mkdtemp(prefix="helix-merge-"))
    for path in files:
        if path.is_file():
            copy = folder / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    return folder


def call_off(root: Path) -> None:
    """Abort the merge, restoring the branch and the work tree."""
    try_git(root, "merge", "--abort")


def _head(root: Path) -> str:
    return try_git(root, "rev-parse", "HEAD").out.strip()


def _is_clean(root: Path) -> bool:
    try:
        return clean_tree(root)
    except CommitError as error:
        raise OperationRefused(error.message) from None
