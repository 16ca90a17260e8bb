"""``helix-tui attempts``: the evidence of what was executed, newest first."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Any

from helix_tui.cli.call import Call, columns
from helix_tui.cli.loading import (
    Present,
    add_since,
    archived_bead,
    began_since,
    find_bead,
    load_with_attempts,
    note_unread,
    since_of,
)
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.attempts.attempt import Attempt, count_headings, count_outcomes
from helix_tui.core.ddx.attempts.book import NamelessEnd
from helix_tui.core.ddx.attempts.costs import Sums, format_parts, format_sum, format_whole, sum_calls
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ground.text import clean_line, counted, fit, short_id
from helix_tui.core.ground.time import NS, format_age, format_instant, format_span
from helix_tui.core.statements.ending import SinceLanding, outcome_words, since_landing
from helix_tui.core.supervision.run_state.budget import with_given

MAX_LINES = 60
"""How many attempts are printed without filters."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--bead", metavar="ID", help="only attempts on this bead")
    add_since(parser)


def _wanted(present: Present, text: str) -> str:
    """The bead that a text names, in the tracker or in the archive."""
    gone = archived_bead(present.project, present.queue.beads, text)
    return gone.id if gone is not None else find_bead(present.queue, text)


def run(call: Call) -> int:
    """Print the attempts."""
    since = since_of(call)
    present, book = load_with_attempts(call)
    # an attempt that only such a line records is in no list
    note_unread(call, present.tracker)
    wanted = _wanted(present, call.options.bead) if call.options.bead else None
    known = [each for each in with_given(present.project, book) if wanted is None or each.bead_id == wanted]
    attempts = [attempt for attempt in known if began_since(attempt, since)]
    # of all attempts: the last landing may be older than the ones asked for
    last = since_landing(known)
    other = [each for each in book.other_calls if wanted is None or each.bead_id == wanted]
    nameless = book.nameless_since(since, wanted)
    # including calls that belong to no attempt: reviews, checks and triage cost too
    sums = sum_calls(spent for attempt in attempts for spent in attempt.spent) + sum_calls(other, since)
    if call.json:
        rows = [as_document(attempt, call.now, present.queue) for attempt in attempts]
        call.emit(
            {
                "attempts": rows,
                "counts": count_headings(attempts),
                "outcomes": count_outcomes(attempts),
                "without_id": Counter(end.status for end in nameless),
                "spent": sums.record(),
                "since_landing": last.record(),
            }
        )
        return 0
    titles = {
        attempt.bead_id: present.queue.beads[attempt.bead_id].title
        for attempt in known
        if attempt.bead_id in present.queue.beads
    }
    for line in (*listing(call, attempts, titles, sums, last), *describe_nameless(nameless)):
        call.print(line)
    return 0


def as_document(attempt: Attempt, now: int, queue: Queue) -> dict[str, Any]:
    """One attempt as docs/formats/cli.md specifies it; unrecorded values are null, never zero."""
    tokens, reading = attempt.tokens, interpret(attempt, now, queue)
    return {
        "attempt_id": attempt.attempt_id,
        "bead_id": attempt.bead_id or None,
        "status": attempt.status or None,
        "outcome": attempt.outcome or None,
        "detail": attempt.detail or None,
        "landed": attempt.landed,
        "preserved": attempt.preserved,
        "verdict": {
            "outcome": attempt.verdict.outcome,
            "proof": attempt.verdict.proof,
            "why": clean_line(attempt.verdict.why, 400),
        },
        "harness": attempt.harness or None,
        "model": attempt.model or None,
        "provider": attempt.provider or None,
        "started_at": _instant(attempt.started_at),
        "finished_at": _instant(attempt.finished_at),
        "landed_at": _instant(attempt.landed_at or None) if attempt.landed else None,
        "duration_ms": attempt.duration_ms,
        "tokens": {"input": tokens.input, "cached": tokens.cached, "output": tokens.output, "total": tokens.total},
        # to six decimals, like the sums beside it
        "cost_usd": None if attempt.cost_usd is None else round(attempt.cost_usd, 6),
        "spent": attempt.sums.record(),
        "base_rev": attempt.base_rev or None,
        "result_rev": attempt.result_rev or None,
        "landed_rev": attempt.landed_rev or None,
        "preserve_ref": attempt.preserve_ref or None,
        "candidate_ref": attempt.candidate_ref or None,
        "session_id": attempt.session_id or None,
        "interpretation": reading.interpretation,
        "follow_up": reading.follow_up,
        "failure_mode": attempt.failure_mode or None,
        "no_changes_rationale": attempt.no_changes_rationale or None,
        "retry_after": _instant(attempt.retry_after),
        "review": attempt.review.verdict if attempt.review else None,
        "effort": attempt.effort or None,
        "prompt": attempt.prompt or None,
        "context": attempt.context or None,
        "memories": attempt.memories or None,
        "ratchets": [ratchet.document() for ratchet in attempt.ratchets],
        "sources": attempt.sources,
    }


def _instant(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)


def listing(call: Call, attempts: list[Attempt], titles: dict[str, str], sums: Sums, last: SinceLanding) -> list[str]:
    """One line per attempt, the outcomes since the last landing, and the sums."""
    if not attempts:
        none = "no attempts" + (" that match" if call.options.bead or call.options.since else " yet")
        if not sums.parts:
            return [none]
        # a readiness check was paid for, and no attempt came of it
        return [f"{none} · {format_sum(sums)} ({format_parts(sums) or next(iter(sums.parts))})"]
    newest, older = attempts[:MAX_LINES], len(attempts) - MAX_LINES
    rows = [_cells(call, attempt) for attempt in newest]
    lines = columns(rows, right=(4, 5))
    out = []
    for attempt, line in zip(newest, lines, strict=True):
        title = clean_line(titles.get(attempt.bead_id, attempt.bead_id), 200)
        room = max(10, call.paint.width - len(line) - 2)
        out.append(call.paint(line, OUTCOME_ROWS[attempt.verdict.outcome].role) + "  " + fit(title, room).rstrip())
    if older > 0:
        out.append(call.paint(f"… {older:,} older: --since, --bead or --json show them", "muted"))
    return [*out, "", *_last_landing(call, last, titles), _sums(attempts, sums)]


def describe_nameless(ends: Sequence[NamelessEnd]) -> list[str]:
    """How many recorded ends have no attempt in the list, and their statuses; empty if there are none."""
    if not ends:
        return []
    statuses = Counter(end.status for end in ends)
    counts = ", ".join(f"{number:,} {status or 'no status'}" for status, number in statuses.most_common())
    return [f"not listed: {counted(len(ends), 'end')} that ddx recorded without an attempt id: {counts}"]


def _last_landing(call: Call, found: SinceLanding, titles: dict[str, str]) -> list[str]:
    """How long ago an attempt landed, and how those after it ended, if there are any."""
    if not found.attempts:
        return []
    landed = found.describe_landed(titles.get(found.landed.bead_id, "") if found.landed else "", call.now)
    return [f"last landed: {landed}", f"since then: {found.describe_attempts()}"]


def _cells(call: Call, attempt: Attempt) -> list[str]:
    begun = attempt.started_at or attempt.finished_at
    model = fit(clean_line(attempt.model or attempt.harness, 60), 12).rstrip()
    return [
        format_age((call.now - begun) / NS) if begun else "",
        fit(clean_line(short_id(attempt.bead_id)), 12).rstrip(),
        attempt.word,
        fit(clean_line(attempt.status), 20).rstrip() or "no status",
        format_span(attempt.duration_ms / 1000) if attempt.duration_ms is not None else "n/a",
        format_sum(attempt.sums),
        *([model] if call.paint.width >= 100 else []),
    ]


def _sums(attempts: list[Attempt], sums: Sums) -> str:
    return f"{counted(len(attempts), 'attempt')}: {outcome_words(count_outcomes(attempts))} · {format_whole(sums)}"
