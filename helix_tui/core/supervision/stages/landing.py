"""Land kept changes by hand: merge each into the branch, then close its bead with the merge.

DDx has no verb that lands a kept change (docs/formats/ddx.md §5), so git merges in the project's own work tree, and
the beads are changed through ddx, as one change with one entry in the journal. Nothing of git changes before that:
`merge_trial` finds what would conflict, and a person resolves conflicts in copies of the files. A merge that conflicts
and is not resolved is aborted.
"""

from __future__ import annotations

import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.operations import CloseWithCommit
from helix_tui.core.editing.plan import Plan, Refusal, plan
from helix_tui.core.editing.steps import OperationRefused
from helix_tui.core.ground.files import below, read_bytes, status_of
from helix_tui.core.ground.git import ask_git
from helix_tui.core.ground.merge_trial import MergeTrials, TriedMerge, branch_of, scratch, try_merge
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.writes import remove, replace_file
from helix_tui.core.supervision.signals.questions import OpenQuestions
from helix_tui.core.supervision.stages.commit import clean_tree, failure, require_branch, try_git

MAX_NAMED = 5
_MAX_BYTES = 1 << 30
# not =======, which also underlines a heading
_MARKER = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)
_REF = re.compile(r"refs/[A-Za-z0-9._/-]+\Z|[0-9a-f]{7,64}\Z")

MERGE_COMMIT = "(the merge commit)"
"""Placeholder in a plan for the commit that does not exist yet."""


def kept_ref(attempt: Attempt | None) -> str:
    """The ref or commit by which git can find an attempt's kept change; empty if unknown."""
    found = () if attempt is None else (*attempt.kept_refs, attempt.result_rev)
    return next((ref for ref in found if _REF.match(ref)), "")


def kept_refs(queue: Queue, attempts: AttemptBook) -> dict[str, str]:
    """Attempt -> where git finds its change, for the unfinished beads whose last change is kept."""
    latest = (attempts.deciding(bead_id) for bead_id, bead in queue.beads.items() if bead.status not in TERMINAL)
    kept = (attempt for attempt in latest if attempt is not None and attempt.preserved)
    return {attempt.attempt_id: ref for attempt in kept if (ref := kept_ref(attempt))}


class Resolution(Struct, frozen=True):
    """Copies of the files of a kept change that conflict, in which a person resolves the conflicts."""

    folder: Path
    merge: TriedMerge

    @property
    def copies(self) -> dict[str, bytes]:
        """The copies that are still there, each by its name in the work tree."""
        read = {name: read_bytes(self.folder / name, _MAX_BYTES) for name in self.merge.conflicts}
        return {name: edited for name, edited in read.items() if edited is not None}


class KeptChange(Struct, frozen=True):
    """A kept change that a person lands."""

    bead_id: str
    ref: str
    question_id: str = ""
    """HELIX's question about it, which landing answers."""
    warning: str = ""
    """What to say before it lands: that a review refused it."""
    resolution: Resolution | None = None

    @property
    def git_words(self) -> tuple[str, ...]:
        """The arguments of ``git`` that land it."""
        message = f"Land {clean_line(self.ref, 120)} for {clean_line(self.bead_id, 60)}"
        return ("merge", "--no-ff", "-m", message, self.ref)

    @property
    def command(self) -> str:
        """Its merge as one would type it."""
        resolved = f"  # conflicts resolved as in {self.resolution.folder}" if self.resolution is not None else ""
        return shlex.join(("git", *self.git_words)) + resolved

    def require_resolved(self, head: str) -> None:
        """Require that no conflict is left in its copies, and that the branch is still at ``head``.

        Raises:
            OperationRefused: it is not so.
        """
        if self.resolution is None:
            return
        where = f"your edits are in {self.resolution.folder}"
        if self.resolution.merge.head != head:
            raise OperationRefused(f"was resolved for an older commit of the branch: resolve it again; {where}")
        if left := [name for name, edited in self.resolution.copies.items() if _MARKER.search(edited)]:
            raise OperationRefused(f"still has conflict markers in {', '.join(left[:MAX_NAMED])}; {where}")

    def settle(self, questions: OpenQuestions, sha: str) -> None:
        """Answer the question about it, and remove the copies in which its conflicts were resolved."""
        if self.question_id:
            questions.answer(self.question_id, f"landed by hand as {sha[:12]}")
        if self.resolution is not None:
            shutil.rmtree(self.resolution.folder, ignore_errors=True)


class Landing(Struct, frozen=True):
    """Kept changes to land one after the other, as one change of the queue with one way back."""

    changes: tuple[KeptChange, ...]

    def title(self, count: int) -> str:
        """The change in one sentence, if so many of them can be merged."""
        if len(self.changes) == 1:
            return f"land the kept change of {clean_line(self.changes[0].bead_id, 60)}"
        part = f"{count:,} of " if count < len(self.changes) else ""
        return f"land {part}{counted(len(self.changes), 'kept change')}"

    def plan(self, curator: Curator, queue_state: QueueState) -> Plan:
        """The merges that can be made, and the closings of their beads; nothing is changed.

        Raises:
            OperationRefused: nothing can be merged here now.
        """
        root = curator.project.root
        _require_mergeable(root)
        for change in self.changes:
            change.require_resolved(_head(root))
        merges = MergeTrials(root).look({each.bead_id: each.ref for each in self.changes if each.resolution is None})
        refusals = {
            bead_id: f"{bead_id} {merge}; resolve that first" for bead_id, merge in merges.items() if merge.conflicts
        }
        closings = {change.bead_id: MERGE_COMMIT for change in self.changes if change.bead_id not in refusals}
        made = _closings(curator, queue_state, closings)
        going = {bead_id for step in made.steps for bead_id in step.edits}
        merging = [change for change in self.changes if change.bead_id in going]
        reset, notes = f"git reset --keep {_head(root)[:12]}", made.notes
        traces = (*made.back.traces, "git removes the merge from the branch only as long as nothing else contains it")
        if not made.undoable:
            reset, notes = "", (*notes, "`git revert -m 1` of the merge removes its changes from the branch")
        return replace(
            made,
            kind="land",
            title=self.title(len(merging)),
            first=tuple(change.command for change in merging),
            refusals=(*map(Refusal, map(CloseWithCommit, refusals), refusals.values()), *made.refusals),
            notes=(*(change.warning for change in merging if change.warning), f"merged into {branch_of(root)}", *notes),
            back=replace(made.back, last=reset, traces=traces),
        )

    def run(self, curator: Curator, shown: Plan) -> Result:
        """Merge, then close the beads of what was merged; a change that cannot be merged does not stop the others.

        Raises:
            OperationRefused: nothing could be merged; nothing was changed.
        """
        root, commits, failures = curator.project.root, dict[str, str](), list[str]()
        going = {bead_id for step in shown.steps for bead_id in step.edits}

        def merge(queue_state: QueueState) -> Plan:
            for change in self.changes:
                if change.bead_id in going:
                    try:
                        commits[change.bead_id] = merge_kept(root, change)
                    except OperationRefused as error:
                        failures.append(f"{clean_line(change.bead_id, 60)} {error}")
            if not commits:
                raise OperationRefused(f"nothing was changed: {'; '.join(failures)}")
            return replace(shown, steps=_closings(curator, queue_state, commits).steps)

        done = curator.run_steps("land", shown.title, lambda *_: None, shown=shown, first=merge)
        for change in self.changes:
            if change.bead_id in commits and done.error is None:
                change.settle(OpenQuestions(curator.project, curator.gate), commits[change.bead_id])
        if failures:
            failures.insert(0, f"{len(commits):,} of {len(going):,} landed")
        return replace(done, problems=(*failures, *done.problems))


def _closings(curator: Curator, queue_state: QueueState, commits: Mapping[str, str]) -> Plan:
    operations = [CloseWithCommit(bead_id, commit) for bead_id, commit in commits.items()]
    return plan(operations, queue_state.queue, curator.dialect(), busy=queue_state.busy)


def resolve(root: Path, change: KeptChange) -> KeptChange:
    """Write the files of a change that conflict with the branch into a folder, to be resolved there.

    Raises:
        OperationRefused: it cannot be merged here.
        GitFailed: this git cannot merge outside the work tree.
    """
    _require_mergeable(root)
    folder = Path(tempfile.mkdtemp(prefix="helix-merge-"))
    with scratch(root) as place:
        merge = try_merge(root, place, _head(root), _commit_of(root, change), folder)
    return replace(change, resolution=Resolution(folder, merge)) if merge.conflicts else change


def _require_mergeable(root: Path) -> None:
    """Require what every merge needs: a branch, a clean work tree and a name for the commit.

    Raises:
        OperationRefused: one is missing.
    """
    require_branch(root)
    if not clean_tree(root):
        raise OperationRefused("tracked files have changes that are not committed; commit or stash them first")
    if ask_git(root, "var", "GIT_COMMITTER_IDENT") is None:
        raise OperationRefused(
            "git has no name for your commits here: set one with `git config user.name` and `git config user.email`"
        )


def _commit_of(root: Path, change: KeptChange) -> str:
    if not _REF.match(change.ref):
        raise OperationRefused("is kept at no place that a record names; look at the attempt's evidence")
    named = ask_git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{change.ref}^{{commit}}")
    if named is None:
        raise OperationRefused(f"is not in this repository at {change.ref}: it was swept, or is on another machine")
    return named.out.strip()


def merge_kept(root: Path, change: KeptChange) -> str:
    """Merge a kept change into the branch; return the merge commit.

    Raises:
        OperationRefused: it cannot be merged; nothing was changed.
    """
    _commit_of(root, change)
    _require_mergeable(root)
    change.require_resolved(_head(root))
    done = try_git(root, *change.git_words)
    if change.resolution is not None and done.rc != 0:
        done = _apply(root, change.resolution)
    if done.rc == 0 and not done.timed_out:
        return _head(root)
    unresolved = try_git(root, "diff", "--name-only", "--diff-filter=U", "-z").out.rstrip("\0")
    try_git(root, "merge", "--abort")
    if unresolved:
        raise OperationRefused(str(TriedMerge(branch_of(root), conflicts=tuple(unresolved.split("\0")))))
    raise OperationRefused(f"was not merged: {failure('merge', done)}")


def _apply(root: Path, resolution: Resolution) -> Finished:
    """Complete a merge that conflicts with the files as they were resolved."""
    copies = resolution.copies
    for name in resolution.merge.conflicts:
        place = below(root, name)
        status = status_of(place)
        # either replaces a link, and follows none
        if name in copies:
            replace_file(place, copies[name], 0o644 if status is None else stat.S_IMODE(status.st_mode))
        else:
            remove(place)
    added = try_git(root, "add", "--", *resolution.merge.conflicts)
    return try_git(root, "commit", "-q", "--no-edit") if added.rc == 0 else added


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
    """The merges with which an entry closed its beads, as one; or None.

    Undoing removes them from the branch only if nothing else contains them yet: they are the newest commits, on no
    other branch, tag or remote, and the work tree is clean. Redoing puts the same commits back on their parent.
    """
    parents: dict[str, str] = {}
    for bead_id, fields in entry.after.items():
        sha = str((fields or {}).get("closing_commit_sha") or "")
        if re.fullmatch(r"[0-9a-f]{40,64}", sha):
            logged = try_git(root, "log", "-1", "--format=%P%x00%s", sha)
            above, _, subject = logged.out.strip().partition("\0")
            # the subject that `KeptChange` gives: another merge that closed the bead must not be undone here
            ours = subject.startswith("Land ") and subject.endswith(f" for {clean_line(bead_id, 60)}")
            if logged.rc == 0 and ours and len(above.split()) > 1:
                parents[sha] = above.split()[0]
    if not parents:
        return None
    newest = next(sha for sha in parents if sha not in parents.values())
    oldest = newest
    while parents[oldest] in parents:
        oldest = parents[oldest]
    parent = parents[oldest]
    return _put_back(root, newest, parent) if redo else _take_out(root, newest, oldest, parent)


def _take_out(root: Path, sha: str, oldest: str, parent: str) -> LandedMerge:
    by_hand = f"`git revert -m 1 {sha[:12]}` takes its changes out of the branch"
    if _head(root) != sha:
        return LandedMerge(sha, why=f"commits were made after it; {by_hand}")
    here = try_git(root, "symbolic-ref", "--quiet", "HEAD").out.strip()
    holders = try_git(root, "for-each-ref", "--contains", oldest, "--format=%(refname)").out.split()
    if others := [ref for ref in holders if ref != here]:
        return LandedMerge(sha, why=f"{clean_line(others[0], 120)} has it too; {by_hand}")
    if not clean_tree(root):
        return LandedMerge(sha, why=f"tracked files have changes that are not committed; {by_hand}")
    # --keep refuses to overwrite a changed file
    return LandedMerge(sha, ("reset", "--keep", parent))


def _put_back(root: Path, sha: str, parent: str) -> LandedMerge:
    if try_git(root, "merge-base", "--is-ancestor", sha, "HEAD").rc == 0:
        return LandedMerge(sha, why="it is in the branch")
    if _head(root) != parent or not clean_tree(root):
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


def _head(root: Path) -> str:
    return try_git(root, "rev-parse", "HEAD").out.strip()
