"""Commit work on a bead: gate, commit, close, commit the tracker, push both (docs/formats/helix.md §6).

What the upstream branch changed is fetched first. Nothing is stashed, and nothing is merged over what is not committed:
where a bead's row was changed upstream, or the branch cannot go on top of its upstream, nothing is committed. If the
push fails, the commit of the tracker is taken back, so that the bead stays open. Files that ddx and HELIX write for
themselves go into no commit of the work, and alone are nothing to commit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.files import decode_object, text
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.trust import LEFTHOOK
from helix_tui.core.editing.kinds.lifecycle import unclosed
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import plan
from helix_tui.core.editing.steps import OperationRefused, called, named
from helix_tui.core.ground.files import is_file, text_of
from helix_tui.core.ground.git import GitFailed, change_git, read_git
from helix_tui.core.ground.merge_trial import branch_of
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.text import capitalized, clean_line
from helix_tui.core.supervision.signals.stoppage import foretell_stoppage

SUBJECT = 72
GATE_TIMEOUT_S = 1800.0
GIT_TIMEOUT_S = 120.0
GATE_LINES = 40
"""Number of last lines of a failed gate that are shown."""

_MAX_TRACKER = 256 << 20
_SAID_LINES = 12
"""Number of last lines of a failed git that are shown."""

_WORK = (":/", ":(exclude).ddx", ":(exclude).helix", ":(exclude).helix-logs")
"""Pathspecs of files that may be work."""

_STAGE = ("add", "-u", "--", *_WORK)
_UNSTAGE = ("reset", "-q", "--", ".ddx")
_FETCH = ("fetch", "-q")
_FORWARD = ("merge", "-q", "--ff-only", "@{upstream}")
"""Git refuses it where it would overwrite a change that is not committed."""
_REBASE = ("rebase", "-q", "--no-autostash", "@{upstream}")
"""Git refuses it while any tracked file has changes that are not committed."""
_PUSH = ("push", "-q")

NO_GATE = "no build gate here: neither lefthook.yml with lefthook installed nor Cargo.toml nor package.json"

_READING = ("diff", "for-each-ref", "log", "ls-files", "merge-base", "rev-parse", "symbolic-ref")
"""Verbs that a preview runs too, before the person allowed what the repository brings: they must start none of it."""


class CommitError(OperationRefused):
    """Nothing was committed, or a later step failed.

    Attributes:
        advice: what to do.
        output: the gate's output, if the gate failed.
    """

    def __init__(self, message: str, advice: str = "", output: str = "") -> None:
        super().__init__(message, advice)
        self.output = output


class Committed(Struct, frozen=True):
    """The result of a commit."""

    subject: str
    sha: str
    gate: tuple[str, ...]
    """The gate that ran; empty if the project has none."""
    pushed: bool
    push_note: str
    closed: bool


def gate_of(root: Path, which: Callable[[str], str | None] = program) -> tuple[str, ...]:
    """The project's build gate that is installed: lefthook, cargo or npm, in this order; empty if none."""
    if which("lefthook") and any(is_file(root / name) for name in LEFTHOOK):
        return ("lefthook", "run", "pre-commit")
    if is_file(root / "Cargo.toml"):
        return ("cargo", "check", "--workspace")
    if is_file(root / "package.json"):
        return ("npm", "test")
    return ()


def commands_of(curator: Curator, bead_id: str, title: str, *, gated: bool = True) -> list[tuple[str, ...]]:
    """The commands that a commit would run, in order; the commit's hash is not known before.

    Raises:
        CommitError: there is nothing to commit, or no branch to commit on.
    """
    root = curator.project.root
    staged = _must_change(root)
    require_branch(root)
    gate = gate_of(root) if gated else ()
    _must_close(curator, bead_id)
    upstream = _has_upstream(root)
    commands: list[tuple[str, ...]] = [("git", *_FETCH), ("git", *_FORWARD)] if upstream else []
    commands += [("git", *_UNSTAGE)] if _bookkeeping_staged(root) else []
    commands += [] if staged else [("git", *_STAGE)]
    commands += [gate] if gate else []
    commands.append(("git", *_commit_words(root, subject_of(root, bead_id, title), staged)))
    push = [("git", *_PUSH)] if upstream else []
    tracker = _tracker(curator.project)
    if not bead_id or not tracker:
        commands += push
    if bead_id:
        queue = curator.look().queue
        commands += plan(closing(bead_id, "<the new commit>"), queue, curator.dialect()).commands
    if bead_id and tracker:
        commands += [("git", *_tracker_words(bead_id, tracker)), *push]
    return commands


def subject_of(root: Path, bead_id: str, title: str) -> str:
    """The first line: id and title, else the first three files that change."""
    if bead_id:
        return _cut(f"{bead_id} {title}", SUBJECT)
    names = _names(root, "--cached") or _names(root)
    return f"update {_cut(','.join(names[:3]), SUBJECT - 7)}"


def commit(curator: Curator, bead_id: str, title: str, say: Callable[[str], None], *, gated: bool = True) -> Committed:
    """Commit the work on a bead.

    Args:
        gated: run the project's build gate first, and report its result.

    Raises:
        CommitError: nothing to commit, the gate, git or the push fails, or the bead cannot be closed.
        DdxError, WritesForbidden: as the curator.
    """
    root = curator.project.root
    curator.gate.check()
    curator.require_allowed(gated=gated)
    # everything that may refuse is checked before the gate, which may take half an hour
    staged = _must_change(root)
    require_branch(root)
    _must_close(curator, bead_id)
    tracker, upstream = _tracker(curator.project), _has_upstream(root)
    if upstream:
        _meet_upstream(root, tracker, say, staged=staged)
    gate = gate_of(root) if gated else ()
    if _bookkeeping_staged(root):
        _git(root, *_UNSTAGE)
        say("left out of the commit: what is staged under .ddx, which ddx commits itself")
    if not staged:
        say("no staged changes — staging all modified files")
        _git(root, *_STAGE)
    subject = subject_of(root, bead_id, title)
    if gated:
        _pass_gate(root, gate, say)
    else:
        say("committing without the build gate, as asked (--no-gate)")
    _git(root, *_commit_words(root, subject, staged=True))
    failed = _rebase(root) if upstream else ""
    sha = last = _head(root)
    say(f"committed to {branch_of(root)}: {subject}")
    closed, before, within = False, "", bool(bead_id and tracker and not failed)
    if within:
        # the tracker as it is, with what others have changed in it and nobody committed
        before = _git(root, "stash", "create").out.strip() if _differs(root, "HEAD", "--", tracker) else ""
        closed = _close(curator, bead_id, sha)
        if _differs(root, "HEAD", "--", tracker):
            _git(root, *_tracker_words(bead_id, tracker))
        last = _head(root)
    failed = failed or (_push(root) if upstream else "")
    if failed:
        if sha != last == _head(root):
            _take_back(root, sha, before, tracker)
        bead = curator.look().queue.beads.get(bead_id)
        still_open = bead is not None and bead.status not in TERMINAL
        but = f"committed as {sha[:12]}, but {failed}" + (f"; {bead_id} stays open" if still_open else "")
        raise CommitError(but, "Push, then close the bead." if still_open else "Push it: `git push`.")
    note = "" if upstream else "no upstream branch: not pushed"
    say(note or "pushed")
    if bead_id and not within:
        say("the tracker is not in this work tree's commits: no commit closes it")
        closed = _close(curator, bead_id, sha)
    if bead_id:
        say(f"closed {bead_id}" if closed else f"{bead_id} was closed already")
    return Committed(subject, sha, gate, upstream, note, closed)


def require_branch(root: Path) -> None:
    """Require that what is committed or merged here will be on a branch.

    Raises:
        CommitError: HEAD is detached, or the git folder is not this work tree's.
    """
    stoppage = foretell_stoppage(find_project(root))
    if stoppage is not None:
        raise CommitError(f"nothing was changed: {stoppage.words}", f"{capitalized(stoppage.fix)}.")


def _meet_upstream(root: Path, tracker: str, say: Callable[[str], None], *, staged: bool) -> None:
    """Fetch, and follow the upstream branch where git can without overwriting what is not committed.

    Raises:
        CommitError: rows of the tracker were changed there, or git could not go on top of that branch after the commit.
    """
    fetched = try_git(root, *_FETCH)
    if fetched.rc != 0:
        say(f"compared with what was fetched last: {failure('fetch', fetched)}")
    base = try_git(root, "merge-base", "HEAD", "@{upstream}").out.strip()
    if tracker and base:
        old, theirs = (_rows(try_git(root, "show", f"{rev}:./{tracker}").out) for rev in (base, "@{upstream}"))
        ours = _rows(text_of(root / tracker, _MAX_TRACKER))
        ids = {**old, **theirs}
        changed = [bead_id for bead_id in ids if theirs.get(bead_id) not in (old.get(bead_id), ours.get(bead_id))]
        if changed:
            message = f"nothing was committed: the upstream branch changed {named(changed)} in the tracker"
            raise CommitError(message, f"`git commit {tracker}`, then `git pull`; after that commit again.")
    # a rebase of the commit needs a work tree in which nothing else is changed
    left = _differs(root) if staged else _differs(root, "--", ".ddx")
    if try_git(root, *_FORWARD).rc != 0 and left:
        message = "nothing was committed: git cannot go on top of the upstream branch beside other uncommitted changes"
        raise CommitError(message, "Commit those changes, then `git pull --rebase`; after that commit again.")


def _rebase(root: Path) -> str:
    """Put what was committed on top of the upstream branch, if that has more; return why it failed, or ""."""
    if try_git(root, "merge-base", "--is-ancestor", "@{upstream}", "HEAD").rc == 0:
        return ""
    done = try_git(root, *_REBASE)
    if done.rc == 0 and not done.timed_out:
        return ""
    # a conflict must not leave the work tree in the middle of a rebase
    try_git(root, "rebase", "--abort")
    return failure("rebase", done)


def _rows(tracker: str) -> dict[str, dict[str, Any]]:
    """The readable rows of a tracker by id."""
    rows: dict[str, dict[str, Any]] = {}
    for line in tracker.split("\n"):
        with suppress(ValueError):
            row = decode_object(line.encode())
            rows[text(row, "id")] = row
    return rows


def _tracker(project: Project) -> str:
    """The tracker's path in this work tree, if git tracks it; "" if its rows go into no commit made here."""
    path = os.path.relpath(project.beads_file, project.root)
    listed = try_git(project.root, "ls-files", "--error-unmatch", "--", path)
    return path if not path.startswith("..") and listed.rc == 0 else ""


def _tracker_words(bead_id: str, tracker: str) -> tuple[str, ...]:
    """The commit command of a tracker in which a bead was closed."""
    verification = f"Verification: ddx bead show {bead_id} --json"
    subject = _cut(f"{bead_id} close tracker bead", SUBJECT)
    return ("commit", "-q", "-m", subject, "-m", verification, "--only", "--", tracker)


def _take_back(root: Path, sha: str, before: str, tracker: str) -> None:
    """Remove the commits that closed the bead, and leave the tracker as it was; git refuses if others changed it."""
    if try_git(root, "reset", "-q", "--keep", sha).rc == 0 and before:
        _git(root, "checkout", "-q", before, "--", tracker)
        _git(root, "reset", "-q", "--", tracker)


def _head(root: Path) -> str:
    return _git(root, "rev-parse", "HEAD").out.strip()


def commit_files(root: Path, files: Sequence[str], subject: str) -> str:
    """Commit exactly these files, whatever else is staged; return the new commit's hash.

    Raises:
        CommitError: git fails.
    """
    _must_be_repository(root)
    _git(root, "add", "-A", "--", *files)
    _git(root, "commit", "-q", "-m", subject, "--only", "--", *files)
    return _git(root, "rev-parse", "HEAD").out.strip()


def _pass_gate(root: Path, gate: tuple[str, ...], say: Callable[[str], None]) -> None:
    if not gate:
        say(NO_GATE)
        return
    say("running build gate...")
    try:
        done = run(gate, cwd=root, timeout=GATE_TIMEOUT_S)
    except OSError as error:
        raise CommitError(
            f"the build gate {gate[0]} does not start: {error.strerror}", "Install it, or pass --no-gate."
        ) from None
    if done.rc != 0 or done.timed_out:
        why = f"took longer than {GATE_TIMEOUT_S:.0f} s" if done.timed_out else f"ended with {done.rc}"
        raise CommitError(
            f"BUILD GATE FAILED — fix before committing (`{' '.join(gate)}` {why})",
            "The changes stay staged; commit again once it passes.",
            "\n".join(f"{done.out}\n{done.err}".strip().split("\n")[-GATE_LINES:]),
        )
    say("build gate passed")


def _push(root: Path) -> str:
    """Push; return why it failed, or ""."""
    done = try_git(root, *_PUSH)
    return failure("push", done) if done.rc != 0 or done.timed_out else ""


def _must_be_repository(root: Path) -> None:
    """Require a git repository.

    Raises:
        CommitError: there is none.
    """
    if try_git(root, "rev-parse", "--git-dir").rc != 0:
        raise CommitError(f"{clean_line(str(root), 200)} is not a git repository", "`git init` creates one.")


def _must_change(root: Path) -> bool:
    """Whether anything is staged; otherwise require a changed tracked file.

    Raises:
        CommitError: neither.
    """
    if _staged(root):
        return True
    if not _names(root):
        _must_be_repository(root)
        said = "nothing to commit"
        if _bookkeeping_staged(root) or _differs(root, "--", ".ddx"):
            said += ": only ddx's own records under .ddx have changed"
        raise CommitError(said, "New files are staged by hand: `git add FILE`.")
    return False


def _must_close(curator: Curator, bead_id: str) -> None:
    """Require that the bead is closed or could be closed afterwards.

    Raises:
        CommitError: it waits for another one, or ddx would not close it.
    """
    queue = curator.look().queue
    bead = queue.beads.get(bead_id)
    if bead is None or bead.status in TERMINAL:
        return
    if waits := unclosed(Overlay(queue), bead_id):
        message = f"nothing was committed: {called(bead_id)} waits on {named(waits)}"
        raise CommitError(message, "Close those first, or remove the dependency; then commit again.")
    planned = plan(closing(bead_id, "<the new commit>"), queue, curator.dialect())
    if planned.refusals:
        raise CommitError(f"nothing was committed: {planned.refusals[0].why}")


def _commit_words(root: Path, subject: str, staged: bool) -> tuple[str, ...]:
    """The commit command, with the size of the change as its body."""
    shown = try_git(root, "diff", *(["--cached"] if staged else []), "--stat", "--", *_WORK)
    stat = shown.out.strip().split("\n")[-1].strip()
    return ("commit", "-q", "-m", subject, "-m", stat)


def closing(bead_id: str, sha: str) -> list[Operation]:
    """Close a bead with the commit that did its work."""
    return [operations.CloseWithCommit(bead_id, sha)]


def _close(curator: Curator, bead_id: str, sha: str) -> bool:
    bead = curator.look().queue.beads.get(bead_id)
    if bead is not None and bead.status in TERMINAL:
        return False
    done = curator.run(closing(bead_id, sha), title=f"close {bead_id} with its commit")
    if done.error is not None:
        raise done.error
    if done.plan.refusals:
        raise CommitError(f"committed, but not closed: {done.plan.refusals[0].why}")
    return True


def _staged(root: Path) -> bool:
    return _differs(root, "--cached", "--", *_WORK)


def _bookkeeping_staged(root: Path) -> bool:
    return _differs(root, "--cached", "--", ".ddx")


def _differs(root: Path, *words: str) -> bool:
    # 1 means a difference; any other code is an error, which proves nothing
    return try_git(root, "diff", "--quiet", *words).rc == 1


def _names(root: Path, *more: str) -> list[str]:
    # otherwise git writes non-ASCII letters as octal escapes
    done = try_git(root, "diff", "--name-only", *more, "--", *_WORK)
    return [line for line in done.out.split("\n") if line]


def _has_upstream(root: Path) -> bool:
    return try_git(root, "rev-parse", "--abbrev-ref", "@{upstream}").rc == 0


def clean_tree(root: Path) -> bool:
    """Whether nothing differs from the last commit except files of ddx and HELIX: an experiment is reverted with git,
    which would leave untracked files.

    Raises:
        CommitError: it is not a git repository, or git does not start.
    """
    _must_be_repository(root)
    if _differs(root, "--", *_WORK) or _differs(root, "--cached", "--", *_WORK):
        return False
    return not _git(root, "ls-files", "--others", "--exclude-standard", "--", *_WORK).out.strip()


def _git(root: Path, *words: str) -> Finished:
    done = try_git(root, *words)
    if done.rc != 0 or done.timed_out:
        raise CommitError(failure(words[0], done))
    return done


def failure(verb: str, done: Finished) -> str:
    """The error message of git or its hook, without git's hints for a terminal."""
    if done.timed_out:
        return f"git {verb} took longer than {GIT_TIMEOUT_S:.0f} s and was ended"
    conflicts = [line for line in done.out.split("\n") if line.startswith("CONFLICT ")]
    lines = [line.strip() for line in done.err.split("\n")]
    lines = [*conflicts, *(line for line in lines if line and not line.startswith("hint:"))]
    said = " ".join((lines or [f"it ended with {done.rc}"])[-_SAID_LINES:])
    return f"git {verb} failed: {clean_line(said, 1_000)}"


def try_git(root: Path, *words: str) -> Finished:
    """Run git in a work tree; without prompts or editor.

    Raises:
        CommitError: git does not start.
    """
    try:
        if words[0] in _READING:
            return read_git(root, *words, timeout=GIT_TIMEOUT_S, check=False)
        return change_git(root, *words, timeout=GIT_TIMEOUT_S)
    except GitFailed as error:
        raise CommitError(error.message, error.advice) from None


def _cut(text: str, most: int) -> str:
    plain = re.sub(r"\s+", " ", clean_line(text, 400)).strip()
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"
