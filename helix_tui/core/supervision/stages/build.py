"""One bounded attempt at one chosen bead: its selection, the verb, and what that verb leaves undone.

Facts: docs/formats/ddx.md §4.6. ``agent execute-bead`` neither claims nor closes nor checks dependencies, and prints
its result as JSON; ``try`` does all of that, prints its result as lines (``status:``, ``detail:``, ``preserve_ref:`` …)
and ends with 0 success, 1 kept aside or no change, 2 failed or not started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, to_builtins

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import REFUSED as HELD_AS_REFUSED
from helix_tui.core.beads.record import TERMINAL, hold_reason
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.attempts.report import MalformedReport, parse_report
from helix_tui.core.ddx.client import last_error
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.files import text
from helix_tui.core.ddx.names import status_of
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.kinds.fields import ALLOWED
from helix_tui.core.editing.operations import SetFields
from helix_tui.core.editing.steps import named
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.time import now_ns
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate, logs_folder
from helix_tui.core.supervision.stages.results import malformed

REFUSED = "refused"
"""HELIX's word for an attempt that ddx did not start, for which ddx has only an exit code."""

INTERRUPTED = 130

_LINE = re.compile(r"^([a-z_]+): (.*)$", re.MULTILINE)


class Built(Struct, frozen=True, rename={"code": "exit_code", "document": "result"}):
    """How one attempt ended."""

    bead_id: str
    status: str
    detail: str
    closed: bool
    landed: bool
    preserved: bool
    preserve_ref: str
    follow_up: str
    code: int
    document: dict[str, Any]
    log: str

    def record(self) -> dict[str, Any]:
        """As JSON: landed, preserved and closed are three facts."""
        return {**to_builtins(self), "preserve_ref": self.preserve_ref or None}


def select(queue: Queue, selector: str, *, held: bool = False) -> str:
    """The first ready bead that matches a selector: by id, parent, spec-id, label, then title; else "".

    Args:
        held: whether the id of a bead that is kept from workers for its refused change is one.
    """
    if held and selector in queue.beads and hold_reason(queue.beads[selector]) == HELD_AS_REFUSED:
        return selector
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


def undone(dialect: Dialect) -> tuple[str, ...]:
    """What the verb for one bead leaves undone, shown before it runs."""
    if dialect.carries_through:
        return ()
    return (
        "this ddx lands the code but neither claims nor closes the bead, and does not look at its "
        "dependencies; a loop may pick the same bead meanwhile",
        "close the bead yourself once you have seen the result",
    )


def let_land(curator: Curator, attempts: Iterable[Attempt]) -> None:
    """Record that a person lets the refused changes of these attempts land, and give their beads back to workers.

    Raises:
        DdxError: it could not be recorded.
    """
    wanted = [SetFields(attempt.bead_id, {ALLOWED: attempt.attempt_id}) for attempt in attempts]
    if wanted:
        done = curator.run(wanted, title=f"let what a review refused land: {named([each.bead_id for each in wanted])}")
        if done.error is not None:
            raise done.error


def build_bead(curator: Curator, delegate: Delegate, bead_id: str, agent_choice: AgentChoice) -> Built:
    """Let ddx execute one bead.

    Raises:
        DdxError: no ddx (127), one without the verb (69), no answer in time, or invalid output (65).
        OSError: the log folder cannot be written.
    """
    out = logs_folder(curator.project) / f"build-{now_ns()}.out"
    words = delegate.one_bead(bead_id, agent_choice)
    began = now_ns()
    finished = delegate.execute(words, out)
    document = _result(finished, out)
    # judged by git and ddx's records; the verb's output is one source
    records = AttemptIndex.of(curator.project)
    queue = curator.look(records).queue
    row = queue.beads.get(bead_id)
    closed = row is not None and row.status in TERMINAL
    status = text(document, "status") or _by_exit(finished, closed)
    attempt = records.judged(
        Piece(
            "loop",
            text(document, "attempt_id"),
            bead_id,
            status,
            outcome=text(document, "outcome"),
            detail=text(document, "detail"),
            base_rev=text(document, "base_rev"),
            result_rev=text(document, "result_rev"),
            landed_rev=text(document, "landed_rev") or _landed_as(document),
            preserve_ref=text(document, "preserve_ref"),
            candidate_ref=text(document, "candidate_ref"),
            no_changes_rationale=text(document, "no_changes_rationale"),
        ),
        began,
    )
    landed = attempt.landed
    follow_up = interpret(attempt, now_ns(), queue).follow_up
    if status == REFUSED:
        follow_up = f"helix-tui why {bead_id}"
    detail = text(document, "detail") or text(document, "reason") or text(document, "error")
    if not detail and not document and finished.rc:
        detail = last_error(finished, _meaning(delegate.dialect, finished.rc))
    successful = status_of(status).successful
    if successful and attempt.preserved:
        detail = f"not landed: {attempt.verdict.why}"
    good = successful and not attempt.preserved and finished.rc == 0
    code = 0 if good else INTERRUPTED if finished.rc == INTERRUPTED else 1
    return Built(
        bead_id,
        status,
        detail,
        closed=closed,
        landed=landed,
        preserved=attempt.preserved,
        preserve_ref=attempt.kept_at,
        follow_up=follow_up,
        code=code,
        document=document,
        log=str(out),
    )


def _result(finished: Finished, out: Path) -> dict[str, Any]:
    """The result that the verb prints, as an object or as lines; empty if there is none."""
    try:
        whole = msgspec.json.decode(finished.stdout)
        if isinstance(whole, dict):
            return whole
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return dict(parse_report(finished.out).document)
    except MalformedReport as error:
        # a failure may give only a message; a success without a result breaks the contract
        if "--json" in finished.argv and finished.rc == 0:
            raise malformed(finished, f"{error} (see {out})") from None
    return _lines(finished.out)


def _lines(printed: str) -> dict[str, Any]:
    """The result in lines at the end of an output; empty without ``bead:`` and ``status:``."""
    # the last block: an agent may print such lines before it
    block = printed[max(printed.rfind("\nbead: "), 0) :].strip()
    found = {name: value.strip() for name, value in _LINE.findall(block)}
    return found if found.keys() >= {"bead", "status"} else {}


def _landed_as(document: dict[str, Any]) -> str:
    """The commit that landed, if the lines name only the branch."""
    if not text(document, "landed_branch"):
        return ""
    return text(document, "implementation_rev") or text(document, "result_rev")


def _meaning(dialect: Dialect, code: int) -> str:
    """This ddx's help on an exit code, or ""."""
    verb = dialect.verbs.get("one_bead")
    return verb.meaning(code) if verb is not None else ""


def _by_exit(finished: Finished, closed: bool) -> str:
    """The outcome if no result was printed: the attempt did not start, or it is unknown."""
    if finished.timed_out:
        return "timeout"
    if finished.rc == 0:
        return "success" if closed else "unknown"
    killed = finished.rc < 0 or finished.rc == INTERRUPTED
    return "interrupted" if killed else REFUSED
