"""Read one attempt in full on demand, and compare two attempts on one bead.

One attempt: its files, checks, prompt, review and diff, and HELIX's reading of its outcome. Two: how the later change
differs from the earlier. Diffs run git, so do not call this on the UI thread.
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

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.from_events import told_below
from helix_tui.core.ddx.files import decode_object, text, whole
from helix_tui.core.ddx.measures import ratchet_reason, rows_in
from helix_tui.core.ddx.names import status_of
from helix_tui.core.ground.errors import UNROUTED, WHO
from helix_tui.core.ground.files import files_below, is_folder, names_in, read_bytes, stamp_of
from helix_tui.core.ground.git import GitFailed, ask_git, read_git
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import NS, format_span

Interpretation = Literal["resolvable", "parked", "physics-level"]

PROMPT_CAP = 200_000
DIFF_CAP = 2 << 20
_MOST_FILES = 500
_REVISION = re.compile(r"[0-9a-f]{7,64}\Z")
_REFERENCE = re.compile(r"refs/ddx/[A-Za-z0-9._/-]+\Z")


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


class Reading(Struct, frozen=True):
    """HELIX's reading of an outcome: its class of conflict, if any, and the suggested next step."""

    interpretation: Interpretation | None
    follow_up: str = ""


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
        shown = read_git(root, *words, timeout=timeout, cap=cap)
    except GitFailed as error:
        return Diff(error=error.message)
    merges = _merges(root, base, result, timeout)
    warning = ""
    # how ddx of August resolves some conflicts by itself; it then reports success
    if any("-X ours" in merge for merge in merges):
        warning = "landed by a merge that preferred its own side: somebody's change may be lost"
    return Diff(clean_block(shown.out, cap), shown.truncated, merges, warning)


def interpret(attempt: Attempt, now: int, queue: Queue | None = None) -> Reading:
    """HELIX's reading of an attempt and the suggested follow-up.

    Args:
        attempt: the attempt.
        now: the current instant.
        queue: the queue, for what became of its bead since; None: judged by the attempt alone.

    An attempt that was preserved or that failed is never classed as physics-level; only an agent that declined a
    self-contradictory bead can say so (docs/formats/helix.md §4).
    """
    bead = queue.beads.get(attempt.bead_id) if queue is not None else None
    if queue is None or bead is None:
        return Reading(*_reading(attempt, now, ""))
    interpretation, follow_up = _reading(attempt, now, queue.parked(bead.id))
    # what is on the branch may still be at fault, whatever became of the bead
    if bead.status in TERMINAL and attempt.verdict.outcome in _OVER_WITH_ITS_BEAD:
        follow_up = f"nothing to do: its bead is {bead.status}"
    elif bead.status not in TERMINAL and follow_up in (_LANDED, _DONE):
        follow_up = _left_open(attempt, queue.state(bead.id))
    return Reading(interpretation, follow_up)


def _reading(attempt: Attempt, now: int, parked: str) -> tuple[Interpretation | None, str]:
    """The class and the follow-up of an attempt whose bead is open, or of which nothing else is known."""
    if attempt.landed:
        return None, _after_landing(attempt)
    if attempt.verdict.outcome == "unfinished":
        return None, "no result yet" if not attempt.status else "its landing has not been seen"
    if attempt.verdict.outcome == "no_change" and _contradicts(attempt):
        return "physics-level", "a person must decide: the agent says the bead contradicts itself"
    if parked:
        return "parked", parked
    if not attempt.finished and not attempt.attempt_id:
        return None, f"release its claim: `helix-tui unclaim {clean_line(attempt.bead_id, 60)}`"
    if not attempt.finished:
        return None, "it left no result: read its transcript, then try again"
    if attempt.verdict.outcome == "satisfied":
        return None, _DONE
    # a worker writes its success before landing, so by itself it proves nothing
    if attempt.verdict.outcome == "unknown" and status_of(attempt.status).successful:
        return None, "check whether it landed: no record says so"
    return "resolvable", _follow_up(attempt, now)


_LANDED, _DONE = "nothing to do: it landed", "nothing to do"

_OVER_WITH_ITS_BEAD = frozenset({"kept_aside", "refused", "no_change", "failed", "interrupted"})
"""Outcomes about which nothing is to be done once the bead is finished."""


def _left_open(attempt: Attempt, state: str) -> str:
    """The follow-up of an attempt that did its work, though its bead is open."""
    what = "it landed" if attempt.landed else "the work was done before"
    if state in ("running", "claimed"):
        return f"{what}, and its bead is being worked on again"
    close = f"`helix-tui close {clean_line(attempt.bead_id, 60)}`"
    return f"{what}, but its bead is still open: look at the result, then {close}"


def _after_landing(attempt: Attempt) -> str:
    if "auto-recovered" in attempt.detail:
        return "landed by a merge over other work: check that nothing was lost"
    if attempt.status.startswith("review_"):
        return "the change has landed: read it, then fix or revert it"
    if attempt.status.startswith("push_"):
        return "landed here, not pushed: push by hand"
    return _LANDED


_CONTRADICTION = re.compile(
    r"\b(contradict\w*|mutually exclusive|cannot (both|coexist)|conflicting (requirements?|constraints?))\b",
    re.IGNORECASE,
)


def _contradicts(attempt: Attempt) -> bool:
    return _CONTRADICTION.search(attempt.no_changes_rationale) is not None


_BY_STATUS = {
    "land_retry": "landing is tried again by the loop",
    "post_run_check_failed": "see which check failed, fix the preserved change, or try again",
    "ratchet_failed": "see which measure got worse, fix the preserved change, or try again",
    "preserved_needs_review": "review the preserved change, then land it or reject it",
    "push_failed": "push by hand, or correct the remote",
    "push_conflict": "fetch, rebase and push by hand",
    "declined_needs_decomposition": "split the bead",
    "no_evidence_produced": "read the transcript; the agent must commit or say why it changed nothing",
    "no_changes": "read its reason; close the bead if it is done, otherwise sharpen its acceptance",
    "structural_validation_failed": "add the fields that the bead lacks",
    "resource_exhausted": "free disk or memory, then start the loop again",
    "review_request_clarification": "answer the reviewer in the bead, then open it again",
    "review_terminal_block": "read the review; split or rewrite the bead",
    "review_malfunction": "read the change yourself; the reviewer gave no usable verdict",
}

_BY_FAILURE = {
    "timeout": "split the bead, or give it more time",
    "context_overflow": "split the bead: it did not fit into the model's context",
    "no_viable_provider": "change the route: no provider was available",
    "auth_error": "sign in to the provider again",
    "worktree_lost": "try again: its work tree was removed",
    "attempt_integrity": "read the result: the attempt did not keep to its contract",
    "blocked_by_passthrough_constraint": "do not pin the harness or model",
    "resource_exhausted": "free disk or memory, then start the loop again",
}


_LIMIT = re.compile(r"(?<!\d)429(?!\d)|rate limit|usage limit|quota", re.IGNORECASE)
"""Messages of a provider about its limits, which ddx of May also reports as ``auth_error``."""


def _follow_up(attempt: Attempt, now: int) -> str:
    if attempt.retry_after is not None and attempt.retry_after > now:
        return f"retry in {format_span((attempt.retry_after - now) / NS)}"
    if attempt.status.startswith("land_conflict"):
        return "resolve its conflicts with the branch, or have the bead attempted again"
    if re.search(UNROUTED, f"{attempt.error}\n{attempt.detail}"):
        return WHO
    worse = [each.describe() for each in attempt.ratchets if not each.passed]
    if worse:
        return f"{'; '.join(worse)}: fix the preserved change, or try again"
    if attempt.failure_mode == "auth_error" and _LIMIT.search(f"{attempt.error}\n{attempt.detail}"):
        return "wait until the provider's limit is over, then try again"
    known = _BY_STATUS.get(attempt.status) or _BY_FAILURE.get(attempt.failure_mode)
    if known:
        return known
    if attempt.preserved:
        return f"look at {attempt.kept_at or 'the preserved change'}, then land it or try again"
    if attempt.verdict.outcome == "interrupted":
        return "somebody ended it: it can be tried again"
    if attempt.status == "execution_failed":
        return "see its error; try again, or with a stronger model"
    return f"read its evidence: {status_of(attempt.status).meaning}"


def _list_files(bundle: Path) -> tuple[EvidenceFile, ...]:
    found: list[EvidenceFile] = []
    for path, size in islice(files_below(bundle), _MOST_FILES):
        found.append(EvidenceFile(clean_line(str(path.relative_to(bundle)), 300), path, size))
    return tuple(found)


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


# a user's settings (external tools, textconv, colours, a subfolder) must not change what is shown
_PLAIN_DIFF = ("--no-color", "--no-ext-diff", "--no-textconv", "--no-relative", "--ignore-submodules", "-M")


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


class Side(Struct, frozen=True):
    """One of the two, with what has to be read of it."""

    attempt: Attempt
    diff: Diff
    """What it changed of its own base."""
    checks: tuple[AttemptCheck, ...] = ()


class AttemptComparison(Struct, frozen=True):
    """Two attempts and the difference of their results."""

    earlier: Side
    later: Side
    between: Diff
    """From the earlier result to the later one, in the files that either of them touched."""


def previous_attempt(attempt: Attempt, siblings: tuple[Attempt, ...]) -> Attempt | None:
    """The attempt on the same bead before this one; ``siblings`` are all of them, newest first."""
    places = [place for place, other in enumerate(siblings) if other.attempt_id == attempt.attempt_id]
    older = siblings[places[0] + 1 :] if places else ()
    return older[0] if older else None


def compare(root: Path, earlier: Attempt, later: Attempt, *, timeout: float = 8.0) -> AttemptComparison:
    """Read both and the difference. This runs git: call it from a worker."""
    sides = [
        Side(each, read_diff(root, each, timeout=timeout), read_evidence(each).checks) for each in (earlier, later)
    ]
    return AttemptComparison(sides[0], sides[1], _between(root, sides[0], sides[1], timeout))


def _between(root: Path, earlier: Side, later: Side, timeout: float) -> Diff:
    if later.diff.error:
        return Diff(error=f"{clean_line(later.attempt.attempt_id, 60)}: {later.diff.error}")
    # the later change can still be read where the earlier one is gone
    if earlier.diff.error:
        said = f"all that the later one changed; nothing is left of the earlier one ({earlier.diff.error})"
        return replace(later.diff, warning=said)
    one, other = result_of(earlier.attempt), result_of(later.attempt)
    if one == other:
        return Diff(error="both have the same result")
    paths = sorted(touched(earlier.diff.text) | touched(later.diff.text))
    return git_diff(root, one, other, paths=paths[:MOST_PATHS], timeout=timeout)


MOST_PATHS = 500
"""Files that the difference of two results is asked of."""


def touched(text: str) -> set[str]:
    """The files that a diff names, by their names after it and before it."""
    found = set()
    for line in text.split("\n"):
        for start in ("+++ b/", "--- a/", "rename from ", "rename to "):
            if line.startswith(start):
                # git puts a tab after a name with blanks
                found.add(line[len(start) :].rstrip('\t"'))
    return found
