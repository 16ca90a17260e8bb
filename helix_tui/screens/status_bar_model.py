"""The status bar's text for a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from helix_tui.core.beads.counts import QueueCounts, count_queue
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.runs.running import beads_at_work
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, midnight
from helix_tui.core.statements.next import action_now, code_words, in_brief
from helix_tui.core.supervision.decide.need_kinds import STALE_CLAIMS
from helix_tui.core.supervision.decide.verdict import NextVerdict
from helix_tui.core.supervision.signals.questions import beads_in_question
from helix_tui.widgets import figures
from helix_tui.widgets.chrome.header import PulseFacts

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.costs import Sums
    from helix_tui.core.snapshot.snapshot import Snapshot
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.needs import Need

STALE_AFTER_S = 60
"""The age from which the newest write counts as old while something runs."""

_DRAWN_ELSEWHERE = frozenset(("unread", "status"))
"""Notices that the status bar counts and the rows show."""

_TROUBLE = {
    "loading": "reading …",
    "no-ddx": "no .ddx here",
    "gone": "the tracker is gone",
    "unreadable": "the tracker cannot be read",
}


def pulse_facts(
    snapshot: Snapshot,
    needs: Sequence[Need] | None,
    now: int,
    *,
    memory: str = "",
    status_summary: StatusSummary | None = None,
) -> PulseFacts:
    """The facts of line 1 at an instant. Before the first look, ready beads mean BUILD.

    Args:
        needs: None until everything that may wait for a person has been read.
    """
    age = max(0.0, (now - snapshot.written_at) / NS) if snapshot.written_at else None
    running = len(beads_at_work(snapshot.runs))
    counts = counts_of(snapshot.queue, status_summary)
    refused = snapshot.shut
    if refused is not None and not refused.matters(counts.ready):
        refused = None
    verdict = status_summary.verdict if status_summary is not None else NextVerdict("")
    spent, cost, over = _spent(snapshot, status_summary, now, running=running > 0)
    return PulseFacts(
        project=clean_line(snapshot.project.name, 60),
        branch=clean_line(snapshot.branch, 60),
        age_s=age,
        stale=bool(running) and age is not None and age >= STALE_AFTER_S,
        running=running,
        # not every dead run: ddx hands some of their beads out again, and Needs me leaves those out too
        stale_claims=sum(need.kind in STALE_CLAIMS for need in needs or ()),
        ready=len(counts.ready),
        needs_me=None if needs is None else len(needs),
        memory=memory,
        spent=spent,
        cost=cost,
        over=over,
        action=action_now(verdict, counts) if refused is None else "GUIDANCE",
        because=in_brief(verdict, counts) if refused is None else code_words(refused.gate.code),
        loop=_loop(status_summary) if status_summary is not None else "",
        focus=_focus(snapshot.queue),
        simulation=snapshot.simulation,
        unread=len(snapshot.tracker.dropped),
        trouble=_TROUBLE.get(snapshot.condition, f"ddx refuses {refused.briefly}" if refused is not None else ""),
    )


def notice_forms(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """The notice line: each notice in its forms, the longest first."""
    return [
        (clean_line(notice.text, 1_000), *(clean_line(form, 1_000) for form in notice.short))
        for notice in snapshot.notices
        if notice.kind not in _DRAWN_ELSEWHERE
    ]


def counts_of(queue: Queue, status_summary: StatusSummary | None) -> QueueCounts:
    """The counts that line 1 and the screens print."""
    asked = beads_in_question(status_summary.questions) if status_summary is not None else {}
    return count_queue(queue, asked)


def _loop(status_summary: StatusSummary) -> str:
    """The state of HELIX's own loop, if it matters."""
    run = status_summary.run
    if run.condition == "died":
        return "loop died"
    if run.condition != "active":
        return ""
    if run.state.phase == "paused":
        return "loop paused"
    asked = {"stop": "loop stopping", "pause": "loop pausing"}.get(status_summary.requested, "")
    return asked or clean_line(f"loop {run.state.autonomy}", 20)


@lru_cache(maxsize=4)
def _focus(queue: Queue) -> str:
    """The title of the epic in focus; empty if there is none."""
    epics = [bead for bead in queue.beads.values() if bead.focus_since]
    newest = max(epics, key=lambda bead: (bead.focus_since, bead.id), default=None)
    return (clean_line(newest.title, 40) or clean_line(newest.id, 40)) if newest is not None else ""


@lru_cache(maxsize=4)
def _sums_since(book: AttemptBook, start: int) -> Sums:
    """Every call of an agent since an instant."""
    return book.spent_since(start)


def _spent(
    snapshot: Snapshot, status_summary: StatusSummary | None, now: int, *, running: bool
) -> tuple[str, str, bool]:
    """Today's cost, in full and as short as possible, and whether part of the budget is spent."""
    book = snapshot.attempts
    uses = status_summary.budget_uses(book, now) if status_summary is not None else ()
    if not (len(book) or book.other_calls or running or uses):
        return "", "", False
    from helix_tui.core.ddx.attempts.costs import format_sum
    from helix_tui.core.supervision.run_state.budget import SPANS

    sums = _sums_since(book, midnight(now))
    if not sums.whole.calls and not running and not uses:
        return "", "", False
    known = format_sum(sums)
    cost = "cost n/a" if known == figures.UNKNOWN else known
    full = f"{cost} · {figures.tokens(sums.tokens)} tok today" if sums.tokens else f"{cost} today"
    if not uses:
        return full, cost, False
    # the limit that is closest to being reached
    nearest = uses[0]
    if (nearest.span, nearest.part) == ("day", "usd"):
        return f"{nearest.amount} today", nearest.amount.replace(" of ", "/"), nearest.reached
    return f"{full} · {nearest.amount} {SPANS[nearest.span]}", cost, nearest.reached
