"""One bounded attempt at one chosen bead: which one, by which verb, and what that verb leaves undone.

Facts: reference/ddx.md, “Recorded runs”. April's ``execute-bead`` neither claims nor closes nor looks at
dependencies; head's ``try`` does all of that and tells by its exit code how it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.clock import now_ns
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import interpret
from helix_tui.core.ddx.attempts.looplog import MalformedReport, parse_report
from helix_tui.core.ddx.client import last_error
from helix_tui.core.ddx.fields import text
from helix_tui.core.ddx.names import status_of
from helix_tui.core.process import Finished
from helix_tui.core.supervision.curation.curator import Curator
from helix_tui.core.supervision.delegate import Delegate, Wishes, logs_folder
from helix_tui.core.supervision.run.results import malformed

Undone = tuple[str, ...]

REFUSED = "refused"
"""What an attempt is called that ddx did not begin: a word of ours, for its own is an exit code."""

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Built:
    """How one attempt ended."""

    bead_id: str
    status: str
    detail: str
    closed: bool
    landed: bool
    preserved: bool
    follow_up: str
    code: int
    document: dict[str, Any]
    log: str

    def record(self) -> dict[str, Any]:
        """As JSON: landed, preserved and closed are three facts."""
        return {
            "bead_id": self.bead_id,
            "status": self.status,
            "detail": self.detail,
            "closed": self.closed,
            "landed": self.landed,
            "preserved": self.preserved,
            "follow_up": self.follow_up,
            "exit_code": self.code,
            "result": self.document,
            "log": self.log,
        }


def select(queue: Queue, selector: str) -> str:
    """The first ready bead that a selector fits: by id, parent, spec-id, label, then title; empty where
    none does.
    """
    ready = [queue.beads[bead_id] for bead_id in queue.ready if not looks_like_epic(queue.beads[bead_id])]
    if not selector:
        return ready[0].id if ready else ""
    wanted = selector.lower()
    for fits in (
        lambda bead: bead.id == selector,
        lambda bead: bead.parent == selector,
        lambda bead: bead.spec_id == selector,
        lambda bead: selector in bead.labels,
        lambda bead: wanted in bead.title.lower(),
    ):
        found = next((bead.id for bead in ready if fits(bead)), "")
        if found:
            return found
    return ""


def undone(words: Sequence[str]) -> Undone:
    """What the verb leaves to somebody else, said before it runs."""
    if "execute-bead" in words:
        return (
            "this ddx lands the code but neither claims nor closes the bead, and does not look at its "
            "dependencies",
            "close the bead yourself once you have seen the result",
        )
    return ()


def build_bead(curator: Curator, delegate: Delegate, bead_id: str, wishes: Wishes) -> Built:
    """Let ddx execute one bead.

    Raises:
        DdxError: no ddx (127), one without the verb (69), no answer in time, or output that is none (65).
        OSError: the log folder cannot be written.
    """
    out = logs_folder(curator.project) / f"build-{now_ns()}.out"
    words = delegate.one_bead(bead_id, wishes)
    finished = delegate.execute(words, out)
    document = _result(finished, out)
    row = curator.look().queue.beads.get(bead_id)
    closed = row is not None and row.status in TERMINAL
    status = text(document, "status") or _by_exit(finished, closed)
    preserve_ref = text(document, "preserve_ref")
    outcome = text(document, "outcome")
    landed = (outcome == "merged" or (status == "success" and not preserve_ref)) and outcome != "preserved"
    attempt = Attempt(
        text(document, "attempt_id"),
        bead_id,
        status,
        landed=landed,
        preserved=bool(preserve_ref) or outcome == "preserved",
        preserve_ref=preserve_ref,
        no_changes_rationale=text(document, "no_changes_rationale"),
    )
    follow_up = interpret(attempt, now_ns()).follow_up
    if landed and not closed:
        follow_up = f"look at the result, then `helix-tui close {bead_id}`"
    if status == REFUSED:
        follow_up = f"helix-tui why {bead_id}"
    detail = text(document, "detail") or text(document, "reason") or text(document, "error")
    if not document and finished.rc:
        detail = last_error(finished)
    good = status_of(status).successful and finished.rc == 0
    code = 0 if good else INTERRUPTED if finished.rc == INTERRUPTED else 1
    return Built(
        bead_id, status, detail, closed, landed, attempt.preserved, follow_up, code, document, str(out)
    )


def _result(finished: Finished, out: Path) -> dict[str, Any]:
    """The object that the verb prints, or nothing where its era prints none."""
    try:
        whole = msgspec.json.decode(finished.stdout)
        if isinstance(whole, dict):
            return whole
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return dict(parse_report(finished.out).document)
    except MalformedReport as error:
        if "--json" in finished.argv and finished.rc == 0:
            raise malformed(finished, f"{error} (see {out})") from None
        return {}


def _by_exit(finished: Finished, closed: bool) -> str:
    """How ``try`` ended: 0 and closed is success, 2 is a refusal."""
    if finished.timed_out:
        return "timeout"
    if finished.rc == 0:
        return "success" if closed else "unknown"
    return REFUSED if finished.rc == 2 else "execution_failed"
