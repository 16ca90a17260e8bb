"""Taking over from a run that died: what its ddx did is booked once, whoever sees the end of it.

ddx writes into a file, not into a pipe of ours: killed, we leave it at work, and its report is there when
it ends. Where it left none either, its own evidence tells which attempts of that time landed
(docs/decisions/0014).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.steps import named
from helix_tui.core.ground.opening import read_end
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.loop.booking import Booking
from helix_tui.core.supervision.loop.options import Stop, Stopped
from helix_tui.core.supervision.loop.work import LoopWork
from helix_tui.core.supervision.run_state.state import ddx_lives
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn, read_turn

MAX_REPORT = 64 << 20


def take_over(work: LoopWork, booking: Booking) -> None:
    """Book what the last run left unbooked.

    Raises:
        Stopped: interrupted while its ddx was still at work.
    """
    pending = work.state.pending
    if not pending:
        return
    if "aftermath" in pending:
        results = work.judged(_result(row) for row in pending["aftermath"] if isinstance(row, dict))
        work.teller.verbose("finishing what the last run began after its last turn")
        work.state.pending["recovered"] = True
        booking.follow_up(results, booking.complete(results))
        return
    _wait(work, pending)
    turn = _report(work, pending)
    if turn is not None:
        since = parse_instant(pending.get("started_at")) or work.clock()
        turn = replace(turn, results=work.judged(turn.results, since))
    turn = turn or _evidence(work, pending)
    if turn is not None and pending.get("why") == "interrupted":
        turn = turn.interrupted()
    how = "ended without a report of ddx" if pending.get("why") else "died while ddx was executing"
    if turn is None or not turn.results:
        work.teller.verbose(f"the last run {how}, and ddx left no evidence of an attempt")
        work.state.pending = {}
        work.save()
        return
    ids = named([result.bead_id for result in turn.results])
    work.teller.always(f"the last run {how}; what ddx did on {ids} is booked now, as of that run")
    completed = booking.count(turn, recovered=True)
    booking.follow_up(turn.results, completed)


def _wait(work: LoopWork, pending: Mapping[str, Any]) -> None:
    """Let the ddx of the dead run finish, as long as an attempt may take."""
    deadline = time.monotonic() + work.delegate.timeout
    told = False
    while ddx_lives(pending) and time.monotonic() < deadline:
        if not told:
            pid = pending.get("pid") or "unknown"
            work.teller.always(f"ddx of the run that died is still at work (pid={pid}); waiting for it")
            work.save("dispatching")
            told = True
        if work.control.interrupted:
            raise Stopped(Stop("interrupted", "while waiting for ddx of the run that died", 130))
        work.control.rest()


def _report(work: LoopWork, pending: Mapping[str, Any]) -> LoopTurn | None:
    out = Path(str(pending.get("out") or ""))
    if out.parent != work.teller.path.parent:
        return None
    printed = read_end(out, MAX_REPORT).encode("utf-8", "replace")
    if not printed:
        return None
    said = read_end(out.with_suffix(".err"), MAX_REPORT).encode("utf-8", "replace")
    try:
        return read_turn(Finished(("ddx",), 0, printed, said, 0.0), work.project)
    except DdxError:
        return None


def _evidence(work: LoopWork, pending: Mapping[str, Any]) -> LoopTurn | None:
    """The attempt that ddx itself says it made since then: one turn executes one bead, however often.

    What another worker did meanwhile is not this turn's.
    """
    since = parse_instant(pending.get("started_at"))
    if since is None:
        return None
    booked = {"", *(each for each in pending.get("booked") or () if isinstance(each, str))}
    index = AttemptIndex.of(work.project)
    index.refresh(work.look().queue.beads)
    found = [
        LoopResult(
            attempt.bead_id,
            attempt.status,
            attempt.attempt_id,
            base_rev=attempt.base_rev,
            result_rev=attempt.result_rev,
            tokens=attempt.tokens.total or 0,
            cost_usd=attempt.cost_usd or 0.0,
            judged=attempt,
        )
        for attempt in sorted(index.attempts, key=lambda each: each.started_at or 0)
        if attempt.finished
        and attempt.bead_id
        and (attempt.started_at or 0) >= since
        and attempt.attempt_id not in booked
    ]
    last = [each for each in found if each.bead_id == found[0].bead_id][-1:]
    return LoopTurn(tuple(last), 1) if last else None


def _result(row: Mapping[str, Any]) -> LoopResult:
    def word(name: str) -> str:
        return str(row.get(name) or "")

    return LoopResult(
        word("bead_id"),
        word("status"),
        word("attempt_id"),
        word("detail"),
        base_rev=word("base_rev"),
        result_rev=word("result_rev"),
        preserve_ref=word("preserve_ref"),
        retry_after=word("retry_after"),
    )
