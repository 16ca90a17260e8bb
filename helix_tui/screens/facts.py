"""What the pulse says of a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.clock import NS
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.text import clean_line
from helix_tui.widgets import figures
from helix_tui.widgets.frame.pulse import PulseFacts

if TYPE_CHECKING:
    from helix_tui.core.live import Snapshot
    from helix_tui.core.supervision.bearing import Bearing
    from helix_tui.core.supervision.needs import Need

STALE_AFTER_S = 60
"""Age of the newest write from which it is called old, while something runs."""

_TROUBLE = {
    "loading": "reading …",
    "no-ddx": "no .ddx here",
    "gone": "the tracker is gone",
    "unreadable": "the tracker cannot be read",
}


def pulse_facts(
    snapshot: Snapshot,
    needs: Sequence[Need],
    now: int,
    *,
    memory: str = "",
    bearing: Bearing | None = None,
) -> PulseFacts:
    """The facts of line 1 at an instant. Before a bearing was taken, what is ready is to be built."""
    age = max(0.0, (now - snapshot.written_at) / NS) if snapshot.written_at else None
    running = sum(run.live and run.verdict != "dead" for run in snapshot.runs)
    ready = len(snapshot.queue.ready)
    return PulseFacts(
        project=clean_line(snapshot.project.name, 60),
        branch=clean_line(snapshot.branch, 60),
        age_s=age,
        stale=bool(running) and age is not None and age >= STALE_AFTER_S,
        running=running,
        dead=sum(run.verdict == "dead" for run in snapshot.runs),
        ready=ready,
        needs_me=len(needs),
        memory=memory,
        spent=_spent_since(snapshot.attempts, figures.midnight(now)),
        action=_action(bearing, ready),
        because=_because(bearing, ready),
        loop=_loop(bearing) if bearing is not None else "",
        focus=_focus(snapshot.queue),
        rehearsal=snapshot.rehearsal,
        unread=len(snapshot.tracker.dropped),
        trouble=_TROUBLE.get(snapshot.condition, ""),
    )


def _action(bearing: Bearing | None, ready: int) -> str:
    if bearing is None or not bearing.verdict.next_action:
        return "BUILD" if ready else ""
    return bearing.verdict.next_action


def _because(bearing: Bearing | None, ready: int) -> str:
    """The reason of NEXT_ACTION in a few words; the whole of it is behind a key."""
    if _action(bearing, ready) == "BUILD":
        notes = bearing.verdict.notes if bearing is not None else ()
        drift = sum(note.code == "drift" for note in notes)
        return f"{ready:,} ready" + (f", {drift:,} drift" if drift else "")
    reasons = bearing.verdict.reasons if bearing is not None else ()
    return clean_line(reasons[0].code.replace("_", " "), 40) if reasons else ""


def _loop(bearing: Bearing) -> str:
    """How HELIX's own loop stands, where that is worth a word."""
    run = bearing.run
    if run.condition == "died":
        return "loop died"
    if run.condition != "active":
        return ""
    if run.state.phase == "paused":
        return "loop paused"
    return {"stop": "loop stopping", "pause": "loop pausing"}.get(bearing.wish, "loop")


@lru_cache(maxsize=4)
def _focus(queue: Queue) -> str:
    """The title of the epic in focus; empty where there is none."""
    epics = [bead for bead in queue.beads.values() if bead.focus_since]
    newest = max(epics, key=lambda bead: (bead.focus_since, bead.id), default=None)
    return (clean_line(newest.title, 40) or clean_line(newest.id, 40)) if newest is not None else ""


@lru_cache(maxsize=4)
def _spent_since(book: AttemptBook, start: int) -> str:
    """Money and tokens of the attempts since an instant; ``≥`` where some of them do not say."""
    costs: list[float | None] = []
    tokens = 0
    for attempt in book:
        if attempt.started_at is None:
            continue
        if attempt.started_at < start:
            break
        costs.append(attempt.cost_usd)
        tokens += attempt.tokens.total or 0
    if not costs:
        return ""
    known = [cost for cost in costs if cost is not None]
    least = "≥" if known and len(known) < len(costs) else ""
    return (
        f"{least}{figures.money(sum(known) if known else None)} · {figures.tokens(tokens or None)} tok today"
    )
