"""Find beads that are claimed although nobody works on them, and beads injected by HELIX itself.

Orphaned claims (docs/decisions/0005): the process is dead on this machine, and the claim older than
``HELIX_ORPHAN_THRESHOLD`` (7200 s). They are only reported; a person recovers them, after a second check.

Injected beads (docs/formats/helix.md §3.6): labels ``helix-injected:<type>`` with fields, or a plain label with
notes; either is read, with the cause of the injection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.dialect import FRESH
from helix_tui.core.ddx.runs.running import LeftClaim, Run
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.kinds.lifecycle import add_unclaim
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder, called
from helix_tui.core.ground.text import counted
from helix_tui.core.ground.time import NS, clock_time, format_span

THRESHOLD_S = 7200

Runs = tuple[Run, ...]

REVIEW, ALIGNMENT, ACCEPTANCE = "review-finding", "alignment-review", "acceptance-failure"

PLANNING, ALIGN = "kind:planning", "action:align"
"""Labels of the bead that governs an alignment (docs/formats/helix.md §3.6)."""

_CAUSE = re.compile(r"TRIGGERING_(CYCLE|BEAD)=(\S+)")


class Orphan(Struct, frozen=True):
    """A claim left behind by a dead process."""

    bead_id: str
    pid: int
    machine: str
    owner: str
    claimed_at: int
    age_s: int
    sources: tuple[str, ...]
    """Where the claim is recorded: row, lease."""
    freed_at: int = 0
    """Instant at which ddx hands out the bead again by itself; 0 if unknown."""
    ready: bool = False
    """Whether ddx gives the bead out already, whatever its row says."""

    def __str__(self) -> str:
        return f"{called(self.bead_id)} was {self.reason}"

    @property
    def reason(self) -> str:
        """Why it is one, in words that stand beside the bead."""
        who = f" by {called(self.owner)}" if self.owner else ""
        again = f"; ddx gives it out again at {clock_time(self.freed_at)}" if self.freed_at else ""
        again = "; ddx gives it out all the same" if self.ready else again
        return f"taken{who} {format_span(self.age_s)} ago; process {self.pid} is dead{again}"


class Left(Struct, frozen=True):
    """The claims that dead processes left behind."""

    orphans: tuple[Orphan, ...]
    """Those older than the threshold."""
    honoured: tuple[Orphan, ...]
    """Younger ones that ddx still honours: it hands out the bead again by itself when the heartbeat is 90 s old."""

    @property
    def all(self) -> tuple[Orphan, ...]:
        """Every one, orphans first."""
        return (*self.orphans, *self.honoured)


def threshold_s() -> int:
    """The age at which a dead claim is an orphan."""
    text = os.environ.get("HELIX_ORPHAN_THRESHOLD", "")
    return int(text) if text.isdecimal() else THRESHOLD_S


def find_orphans(runs: Iterable[Run], queue: Queue, *, now: int | None = None) -> tuple[Orphan, ...]:
    """Every orphaned claim, oldest first, at ``now`` or the instant of the queue."""
    return find_left(runs, queue, now=now).orphans


def find_left(runs: Iterable[Run], queue: Queue, *, now: int | None = None) -> Left:
    """The claims of unfinished beads whose processes are dead, oldest first."""
    now = queue.as_of if now is None else now
    least = threshold_s() * NS
    orphans, honoured = {}, {}
    for run in sorted(runs, key=lambda run: (run.left.claimed_at if run.left else 0, run.bead_id or "")):
        bead = queue.beads.get(run.bead_id or "")
        if run.left is None or bead is None or bead.status in TERMINAL:
            continue
        old = now - run.left.claimed_at > least
        orphan = _orphan(bead.id, run.left, now, ready=queue.state(bead.id) == "ready")
        if old and now - run.left.beaten_at > FRESH:  # else another process keeps it alive
            orphans[bead.id] = orphan
        elif not old and orphan.freed_at:
            honoured[bead.id] = orphan
    return Left(tuple(orphans.values()), tuple(honoured.values()))


def _orphan(bead_id: str, left: LeftClaim, now: int, *, ready: bool) -> Orphan:
    age, again = (now - left.claimed_at) // NS, left.freed_at if left.freed_at > now else 0
    return Orphan(bead_id, left.pid, left.machine, left.owner, left.claimed_at, age, left.sources, again, ready)


class Gone(Struct, frozen=True):
    """Runs whose worker is gone, by what they still hold."""

    held: Runs
    """Those whose bead is not ready again, and orphans, which stand until somebody releases them."""
    free: Runs
    """Those whose bead is ready again."""
    lost: Runs
    """Those without an open bead: they have none, or their bead is closed or not in the tracker."""

    @property
    def all(self) -> Runs:
        """Every one, those that *Needs me* lists first."""
        return (*self.held, *self.free, *self.lost)

    @property
    def at_large(self) -> str:
        """``, 9 ready again, 1 without an open bead``: those that hold nothing."""
        ready = f", {len(self.free):,} ready again" if self.free else ""
        return ready + (f", {len(self.lost):,} without an open bead" if self.lost else "")


def gone(runs: Iterable[Run], queue: Queue, *, now: int | None = None) -> Gone:
    """The runs whose worker is gone; every count of stale claims is made from them."""
    runs = tuple(runs)
    orphaned = {orphan.bead_id for orphan in find_orphans(runs, queue, now=now)}
    held, free, lost = [], [], []
    for run in runs:
        if run.verdict != "dead":
            continue
        bead = queue.beads.get(run.bead_id or "")
        if bead is None or bead.status in TERMINAL:
            lost.append(run)
        elif queue.state(bead.id) == "ready" and bead.id not in orphaned:
            free.append(run)
        else:
            held.append(run)
    return Gone(tuple(held), tuple(free), tuple(lost))


def stalled(runs: Iterable[Run], queue: Queue, *, now: int | None = None) -> Runs:
    """The runs that are silent, or gone while their claim stands."""
    runs = tuple(runs)
    left = gone(runs, queue, now=now)
    free = {run.bead_id for run in (*left.free, *left.lost)}  # ddx hands these out again, or has nothing to hand out
    return tuple(run for run in runs if run.verdict != "alive" and run.bead_id is not None and run.bead_id not in free)


def recover(curator: Curator, orphans: Iterable[Orphan]) -> Result:
    """Release orphaned claims; each is checked again first, and left alone if it is no longer one.

    Raises:
        WritesForbidden: --read-only.
    """
    wanted = list(orphans)
    return curator.run_steps("unclaim", release_title(wanted), plan_release(wanted))


def release_title(orphans: Sequence[Orphan]) -> str:
    """What releasing some claims is called; a single bead is named."""
    if len(orphans) == 1:
        return f"release the stale claim on {called(orphans[0].bead_id)}"
    return f"release the stale claims on {counted(len(orphans), 'bead')}"


def plan_release(wanted: Sequence[Orphan]) -> Callable[[PlanBuilder, QueueState], None]:
    """Plan the release of some claims, checking each again first."""

    def make(writing: PlanBuilder, queue_state: QueueState) -> None:
        still = {orphan.bead_id: orphan for orphan in find_left(queue_state.runs, queue_state.queue).all}
        for orphan in wanted:
            now = still.get(orphan.bead_id)
            # released, or taken by another process meanwhile
            if now is None or (now.pid, now.claimed_at) != (orphan.pid, orphan.claimed_at):
                writing.notes.append(f"{called(orphan.bead_id)} is no longer an orphan and was left alone")
                continue
            try:
                add_unclaim(writing, orphan.bead_id)
            except OperationRefused as error:
                writing.notes.append(str(error))

    return make


def injected_type(bead: Bead) -> str:
    """The kind of injected bead, by either form of marking; empty for other beads."""
    if bead.injected:
        return bead.injected
    for kind in (REVIEW, ALIGNMENT, ACCEPTANCE):
        # anyone may have set the label alone
        if kind in bead.labels and b"TRIGGERING_" in bead.raw:
            return kind
    return ""


def supervisory(bead: Bead) -> bool:
    """Whether executing it is supervision, not a build: it counts no cycle and causes no injection."""
    if injected_type(bead) in (REVIEW, ALIGNMENT) or bead.issue_type in (REVIEW, ALIGNMENT):
        return True
    return "action:align" in bead.labels or "kind:review" in bead.labels


def governs_alignment(bead: Bead) -> bool:
    """Whether it is a bead that governs an alignment, which holds nothing up."""
    return bead.title.startswith("align: ") and {PLANNING, ALIGN} <= set(bead.labels)


def injected_record(bead: Bead) -> dict[str, Any]:
    """The record of an injected bead for ``status``; None stands for what was not recorded."""
    row = bead.document()
    notes = dict(_CAUSE.findall(str(row.get("notes") or "")))
    cycle = str(row.get("helix-trigger-cycle") or notes.get("CYCLE") or "")
    return {
        "id": bead.id,
        "type": injected_type(bead),
        "triggering_cycle": int(cycle) if cycle.isdecimal() else None,
        "triggering_bead": row.get("helix-trigger-bead") or notes.get("BEAD"),
        "trigger_source": row.get("helix-trigger-source"),
        "remediation": row.get("helix-remediation"),
        "status": bead.status,
        "created_at": bead.created_at or None,
    }
