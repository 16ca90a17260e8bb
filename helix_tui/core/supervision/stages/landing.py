"""Landing by hand what an attempt left beside the branch: one merge, then the bead is closed with it.

DDx has no verb that lands a kept change (docs/formats/ddx.md §5), so the merge is git's, in the project's own
work tree, and what DDx keeps of the bead is changed through ddx. A merge that meets a conflict is called off,
unless somebody resolves it in their editor meanwhile.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.commit import CommitError, clean_tree, failure, try_git

MAX_NAMED = 5
_MARKER = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
_REF = re.compile(r"refs/[A-Za-z0-9._/-]+\Z|[0-9a-f]{7,64}\Z")

MERGE_COMMIT = "(the merge commit)"
"""Stands in a plan for the commit that does not exist yet."""


def kept_ref(attempt: Attempt | None) -> str:
    """Where git has the change that an attempt left beside the branch; empty where nobody says."""
    if attempt is None:
        return ""
    found = (attempt.preserve_ref, attempt.candidate_ref, attempt.result_rev)
    return next((ref for ref in found if _REF.match(ref)), "")


def merge_words(bead_id: str, ref: str) -> tuple[str, ...]:
    """The words after ``git`` that land a kept change."""
    return ("merge", "--no-ff", "-m", f"Land {clean_line(ref, 120)} for {clean_line(bead_id, 60)}", ref)


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """How a merge ended."""

    sha: str = ""
    """The merge commit; empty where there is none yet."""
    conflicts: tuple[Path, ...] = ()
    """Files with conflicts, where the merge waits for somebody to resolve them."""


def merge_kept(root: Path, bead_id: str, ref: str, *, keep_conflict: bool = False) -> MergeOutcome:
    """Merge a kept change into the branch.

    Args:
        keep_conflict: leave a merge with conflicts for somebody to resolve; else it is called off.

    Raises:
        OperationRefused: it cannot be merged; nothing has changed then.
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


def conflicted(root: Path) -> tuple[Path, ...]:
    """Files of a merge that waits for its conflicts to be resolved."""
    done = try_git(root, "diff", "--name-only", "--diff-filter=U", "-z")
    return tuple(root / name for name in done.out.split("\0") if name)


def end_resolving(root: Path, files: Sequence[Path]) -> str:
    """Commit a merge whose conflicts somebody has resolved; the commit.

    Raises:
        OperationRefused: a file still has conflict markers; the merge is called off.
    """
    left = [path.name for path in files if path.is_file() and _MARKER.search(path.read_bytes())]
    if left:
        kept = _put_aside(files)
        call_off(root)
        named = ", ".join(left[:MAX_NAMED])
        raise OperationRefused(
            f"{named} still has conflict markers: the merge was called off; your edits are in {kept}"
        )
    for words in (("add", "--", *map(str, files)), ("commit", "-q", "--no-edit")):
        done = try_git(root, *words)
        if done.rc != 0:
            said = failure(words[0], done)
            call_off(root)
            raise OperationRefused(said)
    return _head(root)


def _put_aside(files: Sequence[Path]) -> Path:
    """Copies of files whose edits would be lost."""
    folder = Path(tempfile.mkdtemp(prefix="helix-merge-"))
    for path in files:
        if path.is_file():
            shutil.copy(path, folder / path.name)
    return folder


def call_off(root: Path) -> None:
    """Leave the branch and the work tree as they were before the merge."""
    try_git(root, "merge", "--abort")


def _head(root: Path) -> str:
    return try_git(root, "rev-parse", "HEAD").out.strip()


def _is_clean(root: Path) -> bool:
    try:
        return clean_tree(root)
    except CommitError as error:
        raise OperationRefused(error.message) from None
