"""``helix-tui attempts``: the evidence of what was executed, newest first."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.cli.loading import find_bead, load
from helix_tui.cli.paint import columns, counted
from helix_tui.cli.since import add_since, began_since, since_of
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.clock import NS, format_age, format_instant, format_span
from helix_tui.core.ddx.attempts.evidence import interpret
from helix_tui.core.ddx.attempts.index import Attempt, AttemptIndex
from helix_tui.core.ddx.names import StatusClass
from helix_tui.core.ddx.workers.claims import ClaimReader
from helix_tui.core.project import Project
from helix_tui.core.text import clean_line, fit, short_id

KINDS: tuple[StatusClass, ...] = ("landed", "preserved", "failed", "no_changes", "other")
MOST_LINES = 60
"""Attempts that people get to see at once."""

ROLES = {"landed": "success", "preserved": "attention", "failed": "error"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--bead", metavar="ID", help="of this bead only")
    add_since(parser)


def run(call: Call) -> int:
    """Print the attempts."""
    since = since_of(call)
    present = load(call)
    wanted = find_bead(present.queue, call.options.bead) if call.options.bead else None
    attempts = [
        attempt
        for attempt in read_attempts(present.project, present.tracker)
        if (wanted is None or attempt.bead_id == wanted) and began_since(attempt, since)
    ]
    if call.json:
        call.emit(
            {"attempts": [as_document(attempt, call.now) for attempt in attempts], "counts": counts(attempts)}
        )
        return 0
    titles = {
        attempt.bead_id: present.queue.beads[attempt.bead_id].title
        for attempt in attempts
        if attempt.bead_id in present.queue.beads
    }
    for line in listing(call, attempts, titles):
        call.print(line)
    return 0


def read_attempts(project: Project, tracker: Tracker) -> tuple[Attempt, ...]:
    """Every attempt that left evidence, newest first."""
    index = AttemptIndex(project.ddx_dir)
    index.refresh(tracker.beads, held={claim.bead_id for claim in ClaimReader(project).leases()})
    return index.attempts


def counts(attempts: Iterable[Attempt]) -> dict[str, int]:
    """How many landed, were preserved, failed, changed nothing, or are none of these (yet)."""
    counted_ = Counter(attempt.kind for attempt in attempts)
    return {kind: counted_[kind] for kind in KINDS}


def as_document(attempt: Attempt, now: int) -> dict[str, Any]:
    """One attempt as design/cli.md promises it; what nobody recorded is null, never zero."""
    tokens, reading = attempt.tokens, interpret(attempt, now)
    return {
        "attempt_id": attempt.attempt_id,
        "bead_id": attempt.bead_id or None,
        "status": attempt.status or None,
        "outcome": attempt.outcome or None,
        "detail": attempt.detail or None,
        "landed": attempt.landed,
        "preserved": attempt.preserved,
        "harness": attempt.harness or None,
        "model": attempt.model or None,
        "provider": attempt.provider or None,
        "started_at": _instant(attempt.started_at),
        "finished_at": _instant(attempt.finished_at),
        "duration_ms": attempt.duration_ms,
        "tokens": {
            "input": tokens.input,
            "cached": tokens.cached,
            "output": tokens.output,
            "total": tokens.total,
        },
        "cost_usd": attempt.cost_usd,
        "base_rev": attempt.base_rev or None,
        "result_rev": attempt.result_rev or None,
        "landed_rev": attempt.landed_rev or None,
        "preserve_ref": attempt.preserve_ref or None,
        "session_id": attempt.session_id or None,
        "interpretation": reading.interpretation,
        "follow_up": reading.follow_up,
        "failure_mode": attempt.failure_mode or None,
        "no_changes_rationale": attempt.no_changes_rationale or None,
        "retry_after": _instant(attempt.retry_after),
        "review": attempt.review.verdict if attempt.review else None,
        "sources": attempt.sources,
    }


def _instant(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)


def listing(call: Call, attempts: list[Attempt], titles: dict[str, str]) -> list[str]:
    """One line an attempt, and the sums."""
    if not attempts:
        return ["no attempts" + (" that match" if call.options.bead or call.options.since else " yet")]
    newest, older = attempts[:MOST_LINES], len(attempts) - MOST_LINES
    rows = [_cells(call, attempt) for attempt in newest]
    lines = columns(rows, right=(3, 4))
    out = []
    for attempt, line in zip(newest, lines, strict=True):
        kind = attempt.kind
        title = clean_line(titles.get(attempt.bead_id, attempt.bead_id), 200)
        room = max(10, call.paint.width - len(line) - 2)
        out.append(call.paint(line, ROLES.get(kind, "muted")) + "  " + fit(title, room).rstrip())
    if older > 0:
        out.append(call.paint(f"… {older:,} older: --since, --bead or --json show them", "muted"))
    return [*out, "", _sums(attempts)]


def _cells(call: Call, attempt: Attempt) -> list[str]:
    begun = attempt.started_at or attempt.finished_at
    model = fit(clean_line(attempt.model or attempt.harness, 60), 12).rstrip()
    return [
        format_age((call.now - begun) / NS) if begun else "",
        fit(clean_line(short_id(attempt.bead_id)), 12).rstrip(),
        fit(clean_line(attempt.status), 20).rstrip() or "no result",
        format_span(attempt.duration_ms / 1000) if attempt.duration_ms is not None else "n/a",
        money(attempt.cost_usd),
        *([model] if call.paint.width >= 100 else []),
    ]


def money(cost: float | None) -> str:
    """Dollars; an unknown cost is n/a, never 0."""
    return "n/a" if cost is None else f"${cost:.2f}"


def _sums(attempts: list[Attempt]) -> str:
    known = [attempt.cost_usd for attempt in attempts if attempt.cost_usd is not None]
    said = ", ".join(
        f"{number} {kind.replace('_', ' ')}" for kind, number in counts(attempts).items() if number
    )
    cost = f"{money(sum(known))} in {len(known)} of them" if known else "cost n/a"
    return f"{counted(len(attempts), 'attempt')}: {said} · {cost}"
