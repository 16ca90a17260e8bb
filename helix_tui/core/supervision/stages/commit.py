"""Commit work on a bead (gate, commit, push, close), and parse the trailers of a stage's answer.

`commit` (docs/formats/helix.md §6): rebase and push come before closing, as a rebase changes the commit's hash; a
failed push is reported, and the bead then stays open. Files that ddx and HELIX write for themselves go into no commit
of a bead, and alone are nothing to commit.

`parse_trailers` (§2 and §6): an answer ends in ``NAME: value`` lines, which are read as tolerantly as agents write
them. Bold marks and backticks are ignored; a line may be a heading, a list item, a table cell or an object member, in
any case. A line that repeats the instructions (``A | B | C``, ``<text>``) is not an answer. NEXT_ACTION counts only as
HELIX writes it, and its first line; of every other trailer the last one, as answers quote their instructions first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.lifecycle import unclosed
from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.plan import plan
from helix_tui.core.editing.steps import Overlay, called, named
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_file
from helix_tui.core.ground.git import GitFailed, change_git
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.programs import program
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.table import NEXT_ACTIONS, Stage, Trailer

SUBJECT = 72
GATE_TIMEOUT_S = 1800.0
GIT_TIMEOUT_S = 120.0
GATE_LINES = 40
"""Number of last lines of a failed gate that are shown."""

_SAID_LINES = 12
"""Number of last lines of a failed git that are shown."""

_WORK = (":/", ":(exclude).ddx", ":(exclude).helix", ":(exclude).helix-logs")
"""Pathspecs of files that may be work."""

_STAGE = ("add", "-u", "--", *_WORK)
_UNSTAGE = ("reset", "-q", "--", ".ddx")
_PUSH = (("pull", "-q", "--rebase", "--autostash"), ("push", "-q"))
"""Stash uncommitted changes for the rebase: ddx rewrites a tracked tracker all the time."""


class CommitError(HelixError):
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


LEFTHOOK = ("lefthook.yml", "lefthook.yaml", ".lefthook.yml")

NO_GATE = "no build gate here: neither lefthook.yml nor Cargo.toml nor package.json"


def gate_of(root: Path, which: Callable[[str], str | None] = program) -> tuple[str, ...]:
    """The project's build gate: lefthook, cargo or npm, in this order; empty if none.

    Raises:
        CommitError: the project requires a gate that is not installed here.
    """
    asked = next((name for name in LEFTHOOK if is_file(root / name)), "")
    if asked and not which("lefthook"):
        message = f"nothing was committed: {asked} asks for lefthook as the build gate, and it is not installed here"
        raise CommitError(message, "Install lefthook, or pass --no-gate to commit without the gate.")
    if asked:
        return ("lefthook", "run", "pre-commit")
    if is_file(root / "Cargo.toml"):
        return ("cargo", "check", "--workspace")
    if is_file(root / "package.json"):
        return ("npm", "test")
    return ()


def commands_of(curator: Curator, bead_id: str, title: str, *, gated: bool = True) -> list[tuple[str, ...]]:
    """The commands that a commit would run, in order; the commit's hash is not known before.

    Raises:
        CommitError: nothing to commit, or the gate is not installed.
    """
    root = curator.project.root
    staged = _must_change(root)
    gate = gate_of(root) if gated else ()
    _must_close(curator, bead_id)
    commands: list[tuple[str, ...]] = [("git", *_UNSTAGE)] if _bookkeeping_staged(root) else []
    commands += [] if staged else [("git", *_STAGE)]
    commands += [gate] if gate else []
    commands.append(("git", *_commit_words(root, subject_of(root, bead_id, title), staged)))
    if _has_upstream(root):
        commands += [("git", *words) for words in _PUSH]
    if bead_id:
        queue = curator.look().queue
        commands += plan(closing(bead_id, "<the new commit>"), queue, curator.dialect(queue)).commands
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
    # everything that may refuse is checked before the gate, which may take half an hour
    staged = _must_change(root)
    _must_close(curator, bead_id)
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
    say(f"committed: {subject}")
    pushed, note = _push(root)
    # after the push: its rebase changes the commit's hash
    sha = _git(root, "rev-parse", "HEAD").out.strip()
    if not pushed and _has_upstream(root):
        bead = curator.look().queue.beads.get(bead_id)
        stays = bead is not None and bead.status not in TERMINAL
        but = f"committed as {sha[:12]}, but {note}" + (f"; {bead_id} stays open" if stays else "")
        raise CommitError(but, "Push, then close the bead." if stays else "Push it: `git push`.")
    say("pushed" if pushed else note)
    closed = bool(bead_id) and _close(curator, bead_id, sha)
    if bead_id:
        say(f"closed {bead_id}" if closed else f"{bead_id} was closed already")
    return Committed(subject, sha, gate, pushed, note, closed)


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


def _push(root: Path) -> tuple[bool, str]:
    if not _has_upstream(root):
        return False, "no upstream branch: not pushed"
    for words in _PUSH:
        done = try_git(root, *words)
        if done.rc != 0 or done.timed_out:
            # a conflict must not leave the work tree in the middle of a rebase
            if words[0] == "pull":
                try_git(root, "rebase", "--abort")
            return False, failure(words[0], done)
    return True, ""


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
    planned = plan(closing(bead_id, "<the new commit>"), queue, curator.dialect(queue))
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
    done = try_git(root, "-c", "core.quotePath=false", "diff", "--name-only", *more, "--", *_WORK)
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
        return change_git(root, *words, timeout=GIT_TIMEOUT_S)
    except GitFailed as error:
        raise CommitError(error.message, error.advice) from None


def _cut(text: str, most: int) -> str:
    plain = re.sub(r"\s+", " ", clean_line(text, 400)).strip()
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"


_MARKS = str.maketrans("", "", "*`")
_LEAD = r"""^[ \t>#|\-+"'{(\[_\d.)]*"""
_BETWEEN = r"""["'_ \t]*(?:[:=|]|\n)[\s"'(\[_]*"""
"""The separator between a name and its value: a sign, or the end of a heading's line."""
_TEMPLATE = re.compile(r"<[\w ]+>$")


class Trailers(Struct, frozen=True):
    """The trailers of one answer."""

    values: Mapping[str, str] = {}
    problems: tuple[str, ...] = ()
    """What the stage's contract requires and the answer lacks; else empty."""

    def get(self, name: str) -> str:
        """A trailer's value, or ""."""
        return self.values.get(name, "")

    def number(self, name: str) -> int | None:
        """A trailer's value as a whole number."""
        found = re.match(r"\d+", self.get(name))
        return int(found.group()) if found else None


NO_TRAILERS = Trailers()


def parse_next_action(answer: str) -> str:
    """The first code in a check's answer, or ""; the name and the code count only as HELIX writes them, in capitals
    (FEAT-002, docs/formats/helix.md §2).
    """
    codes = "|".join(NEXT_ACTIONS)
    match = re.search(rf"NEXT_ACTION: *({codes})\b{_not_template(NEXT_ACTIONS)}", answer.translate(_MARKS))
    return match[1] if match else ""


def parse_trailers(answer: str, stage: Stage) -> Trailers:
    """The trailers of a stage in its agent's answer."""
    plain = answer.translate(_MARKS)
    values: dict[str, str] = {}
    problems: list[str] = []
    for trailer in stage.trailers:
        if trailer.name == "NEXT_ACTION":
            value = parse_next_action(answer)
        else:
            value = next(reversed(_all(plain, trailer)), "")
        if value:
            values[trailer.name] = clean_line(value, 1000)
        elif trailer.required:
            other = _another_word(plain, trailer)
            problems.append(
                f"{stage.name} output says {trailer.name}: {other}, which is none of {', '.join(trailer.words)}"
                if other
                else f"{stage.name} output missing {trailer.name} trailer"
            )
    return Trailers(values, tuple(problems))


def _all(plain: str, trailer: Trailer) -> list[str]:
    """Every value of a trailer in an answer, in order."""
    name = trailer.name.replace("_", "[_ -]")
    if trailer.words:
        words = "|".join(re.escape(word).replace("_", "[_ -]") for word in trailer.words)
        pattern = rf"{_LEAD}{name}{_BETWEEN}({words})\b{_not_template(trailer.words)}"
        named = {word.lower(): word for word in trailer.words}
        return [named[re.sub("[ -]", "_", word.lower())] for word in _find(pattern, plain)]
    if trailer.count:
        return _find(rf"{_LEAD}{name}{_BETWEEN}(\d+)\b", plain)
    found = _find(rf"""{_LEAD}{name}["'_ \t]*[:=|][ \t]*(\S[^\n]*)""", plain)
    values = [value.strip(" \t\r|\"'") for value in found]
    if trailer.word:
        values = [value.split()[0].rstrip(".,;") for value in values if value]
    return [value for value in values if value and not _TEMPLATE.match(value)]


def _another_word(plain: str, trailer: Trailer) -> str:
    """An answer's invalid value of a trailer with fixed values; "" if it only repeats the choices."""
    if not trailer.words:
        return ""
    said = next(reversed(_all(plain, Trailer(trailer.name))), "")
    known = re.search(rf"\b({'|'.join(map(re.escape, trailer.words))})\b", said, re.IGNORECASE)
    return "" if known else clean_line(said, 60)


def _find(pattern: str, plain: str) -> list[str]:
    return re.findall(pattern, plain, re.MULTILINE | re.IGNORECASE)


def _not_template(words: tuple[str, ...]) -> str:
    """A lookahead that forbids a second word of the list of choices."""
    return rf"(?![ \t]*[|/][ \t]*(?:{'|'.join(words)})\b)"
