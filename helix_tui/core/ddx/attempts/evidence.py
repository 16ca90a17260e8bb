"""Read one attempt in full on demand: its files, checks, prompt, review and diff.

Diffs run git, so do not call this on the UI thread.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.sources.from_events import told_below
from helix_tui.core.ddx.files import decode_object, text, whole
from helix_tui.core.ddx.measures import ratchet_reason, rows_in
from helix_tui.core.ground.files import files_below, is_folder, names_in, read_bytes, stamp_of
from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.text import clean_block, clean_line, counted

PROMPT_CAP = 200_000
DIFF_CAP = 2 << 20
_MOST_FILES = 500
_REVISION = re.compile(r"[0-9a-f]{7,64}\Z")
_REFERENCE = re.compile(r"refs/ddx/[A-Za-z0-9._/-]+\Z")

# a user's settings (external tools, textconv, colours, a subfolder) must not change what is shown
_PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules", "-M")


class EvidenceFile(Struct, frozen=True):
    """One file of a bundle."""

    name: str
    """Path inside the bundle."""
    path: Path
    size: int


class AttemptCheck(Struct, frozen=True):
    """One check that ran on an attempt's result."""

    name: str
    status: str
    message: str = ""
    required: bool | None = None

    @property
    def outcome(self) -> Literal["failed", "open", "passed"]:
        """How it ended; ``open`` if it was not run or is left to a reviewer; an unknown status counts as failed."""
        if self.status in ("pass", "passed", "ok", "success"):
            return "passed"
        return "open" if self.status in ("needs_judgment", "skipped", "pending", "") else "failed"


class AttemptEvidence(Struct, frozen=True):
    """The content of an attempt's bundle. Texts are cleaned and cut to a readable length."""

    files: tuple[EvidenceFile, ...] = ()
    result: str = ""
    """The content of result.json."""
    checks: tuple[AttemptCheck, ...] = ()
    rationale: str = ""
    prompt: str = ""
    review: str = ""
    decisions: str = ""
    told: str = ""
    """What DDx wrote of it into its bead, where neither a reason nor a review is at hand."""
    missing: str = ""
    """Why there is nothing to show, if so."""
    problems: tuple[str, ...] = field(default=())


class Diff(Struct, frozen=True):
    """The changes of an attempt."""

    text: str = ""
    truncated: bool = False
    merges: tuple[str, ...] = ()
    """Merge commits between base and result: hash and subject."""
    warning: str = ""
    """A warning to read before trusting the diff."""
    error: str = ""
    """Why there is no diff, and what to do."""


def read_evidence(attempt: Attempt, bead: Bead | None = None) -> AttemptEvidence:
    """Read an attempt's bundle; missing parts are left empty.

    Args:
        bead: its bead, which may say why it ended as it did where the bundle does not.
    """
    evidence = _read_bundle(attempt)
    if bead is None or evidence.rationale or evidence.review or attempt.no_changes_rationale or attempt.review:
        return evidence
    return replace(evidence, told=told_below(bead, attempt))


def _read_bundle(attempt: Attempt) -> AttemptEvidence:
    bundle = attempt.bundle
    if bundle is None or not is_folder(bundle):
        where = f"no folder .ddx/executions/{attempt.attempt_id} here"
        return AttemptEvidence(missing=f"{where}: it ran on another machine, or its evidence was pruned")
    problems: list[str] = []
    files = _list_files(bundle)
    result = _read(bundle / "result.json", PROMPT_CAP)
    review = _read(bundle / "reviewer-stream.log", PROMPT_CAP)
    if not review and attempt.review is not None:
        words = (attempt.review.verdict, attempt.review.rationale)
        review = clean_block("\n\n".join(word for word in words if word))
    return AttemptEvidence(
        files=files,
        result=result,
        checks=_read_checks(bundle, problems),
        rationale=_read(bundle / "no_changes_rationale.txt", PROMPT_CAP) or attempt.no_changes_rationale,
        prompt=_read(bundle / "prompt.md", PROMPT_CAP),
        review=review,
        decisions=_read(bundle / "decisions.md", PROMPT_CAP),
        problems=tuple(problems),
    )


def read_diff(root: Path, attempt: Attempt, *, timeout: float = 15.0, cap: int = DIFF_CAP) -> Diff:
    """The diff of an attempt from its base to its result, without ddx's own records, which April commits with the
    change. Runs git: call it from a worker.
    """
    base, result = attempt.base_rev, result_of(attempt)
    if not base or not result:
        return Diff(error="the attempt names no commits" + ("" if attempt.status else ": it left no result"))
    own = f":(top,exclude,literal).ddx/executions/{attempt.attempt_id}"
    return git_diff(root, base, result, paths=(":/", own), timeout=timeout, cap=cap)


def result_of(attempt: Attempt) -> str:
    """The ref at which an attempt's change is kept, else its commit; empty if it names none."""
    return attempt.kept_at or attempt.result_rev or attempt.landed_rev


def git_diff(
    root: Path, base: str, result: str, *, paths: Sequence[str] = (), timeout: float = 15.0, cap: int = DIFF_CAP
) -> Diff:
    """The diff between two revisions, of some files or all. Runs git: call it from a worker."""
    for revision in (base, result):
        # the revisions come from files: only a commit or ddx's own refs may reach git's command line
        if not (_REVISION.match(revision) or _REFERENCE.match(revision)):
            return Diff(error=f"{clean_line(revision, 80)} is not a commit")
    if base == result:
        return Diff(error="the attempt changed nothing")
    gone = _missing_revision(root, (base, result), timeout)
    if gone:
        return Diff(error=gone)
    try:
        words = ("diff", *_PLAIN_DIFF, "--end-of-options", base, result, "--", *paths)
        git = read_git(root, *words, timeout=timeout, cap=cap)
    except GitFailed as error:
        return Diff(error=error.message)
    merges = _merges(root, base, result, timeout)
    warning = ""
    # how ddx of August resolves some conflicts by itself; it then reports success
    if any("-X ours" in merge for merge in merges):
        warning = "landed by a merge that preferred its own side: somebody's change may be lost"
    return Diff(clean_block(git.out, cap), git.truncated, merges, warning)


def _list_files(bundle: Path) -> tuple[EvidenceFile, ...]:
    files: list[EvidenceFile] = []
    for path, size in islice(files_below(bundle), _MOST_FILES):
        files.append(EvidenceFile(clean_line(str(path.relative_to(bundle)), 300), path, size))
    return tuple(files)


def _read(path: Path, cap: int) -> str:
    """The text of a file up to ``cap`` bytes; of a longer one the last line says how many more it has."""
    raw = read_bytes(path, cap + 1)
    if not raw:
        return ""
    decoder = getincrementaldecoder("utf-8")("replace")
    # without the end of input it holds back a character that the cut left unfinished
    shown = decoder.decode(raw[:cap], final=len(raw) <= cap)
    text = clean_block(shown, cap)
    if len(raw) <= cap:
        return text
    size = max(stamp[1] if (stamp := stamp_of(path)) is not None else 0, len(raw))
    beyond = size - cap + len(decoder.getstate()[0])
    return f"{text}\n… {counted(beyond, 'more byte')}"


def _read_checks(bundle: Path, problems: list[str]) -> tuple[AttemptCheck, ...]:
    """April's checks.json, head's one file a check, and the acceptance check."""
    checks: list[AttemptCheck] = []
    gates = _object(bundle / "checks.json", problems)
    for gate in rows_in(gates.get("results")):
        name = text(gate, "definition_id") or text(gate, "name") or "check"
        required = gate.get("required")
        # of a ratchet the gate's own output is only the number
        said = text(gate, "message") or ratchet_reason(gate) or text(gate, "stdout") or text(gate, "stderr")
        # -1 is what Go reports of a process that a signal ended
        code = whole(gate.get("exit_code"), low=-(1 << 31))
        said = said or (f"exit code {code}" if code else "")
        checks.append(_check(name, text(gate, "status"), said, required if isinstance(required, bool) else None))
    names = [name for name in names_in(bundle / "checks") if name.endswith(".json")]
    for path in (bundle / "checks" / name for name in names[:_MOST_FILES]):
        document = _object(path, problems)
        if document:
            checks.append(_check(path.stem, text(document, "status"), text(document, "message")))
    criteria = rows_in(_object(bundle / "ac-check.json", problems).get("items"))
    accepted = [_check(f"acceptance {c.get('ac', '')}", text(c, "result"), text(c, "evidence")) for c in criteria]
    return (*checks, *accepted)


def _check(name: str, status: str, message: str, required: bool | None = None) -> AttemptCheck:
    return AttemptCheck(clean_line(name, 120), clean_line(status, 60), clean_line(message, 1000), required)


def _object(path: Path, problems: list[str]) -> dict[str, Any]:
    raw = read_bytes(path, 8 << 20)
    if raw is None:
        return {}
    try:
        return decode_object(raw)
    except ValueError as error:
        problems.append(clean_line(f"{path.name}: {error}", 200))
        return {}


def _missing_revision(root: Path, revisions: tuple[str, ...], timeout: float) -> str:
    for revision in revisions:
        try:
            words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
            done = read_git(root, *words, timeout=timeout, cap=1 << 16, check=False)
        except GitFailed as error:
            return error.message
        if done.rc and done.err.strip():
            return clean_line(f"git: {done.err.strip()}", 300)
        if done.rc:
            short = revision if revision.startswith("refs/") else revision[:12]
            return f"commit {short} is not in this repository: its work tree was removed, or fetch it first"
    return ""


def _merges(root: Path, base: str, result: str, timeout: float) -> tuple[str, ...]:
    words = ("log", "--merges", "--max-count=20", "--format=%h %s", "--end-of-options", f"{base}..{result}", "--")
    found = ask_git(root, *words, timeout=timeout, cap=1 << 20)
    if found is None:
        return ()
    return tuple(clean_line(line, 300) for line in found.out.split("\n") if line)
