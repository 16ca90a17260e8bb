"""Find beads that are claimed although nobody works on them, and beads injected by HELIX itself.

Orphaned claims (docs/decisions/0005): the process is dead on this machine, and the claim older than
``HELIX_ORPHAN_THRESHOLD`` (7200 s). They are only reported; a person recovers them, after a second check.

Injected beads (docs/formats/helix.md §3.6): labels ``helix-injected:<type>`` with fields, or a plain label with
notes; either is read, with the cause of the injection.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.claims import Claim, ClaimReader, given_out_again
from helix_tui.core.ddx.dialect import FRESH
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.operations.lifecycle import add_unclaim
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder, called
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.threads import pid_alive
from helix_tui.core.ground.time import NS, clock_time, format_span

THRESHOLD_S = 7200
AT_ONCE = 2 * NS
"""A heartbeat so soon after the claim was written by the claim itself."""


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
        who = f" by {called(self.owner)}" if self.owner else ""
        again = f"; ddx gives it out again at {clock_time(self.freed_at)}" if self.freed_at else ""
        again = "; ddx gives it out all the same" if self.ready else again
        return (
            f"{called(self.bead_id)} was taken{who} {format_span(self.age_s)} ago, "
            f"and process {self.pid} is dead{again}"
        )


def threshold_s(env: Mapping[str, str] | None = None) -> int:
    """The age at which a dead claim is an orphan."""
    text = (os.environ if env is None else env).get("HELIX_ORPHAN_THRESHOLD", "")
    return int(text) if text.isdecimal() else THRESHOLD_S


def find_orphans(
    queue_state: QueueState, project: Project, *, env: Mapping[str, str] | None = None, now: int | None = None
) -> tuple[Orphan, ...]:
    """Every orphaned claim, oldest first, at ``now`` or the instant of the queue."""
    now = queue_state.queue.as_of if now is None else now
    least = threshold_s(env) * NS
    return tuple(each for each in _dead(queue_state, project, env, now) if now - each.claimed_at > least)


def find_dead_claims(
    queue_state: QueueState, project: Project, *, env: Mapping[str, str] | None = None, now: int | None = None
) -> tuple[Orphan, ...]:
    """Claims of dead processes that ddx still honours, with their expiry.

    They are not orphans yet: ddx hands out each bead again by itself when its heartbeat is 90 s old.
    """
    now = queue_state.queue.as_of if now is None else now
    least = threshold_s(env) * NS
    return tuple(
        each
        for each in _dead(queue_state, project, env, now)
        if now - each.claimed_at <= least and each.freed_at > now and not queue_state.alive(each.bead_id)
    )


def _dead(queue_state: QueueState, project: Project, env: Mapping[str, str] | None, now: int) -> tuple[Orphan, ...]:
    """Every claim left behind by a dead process, oldest first."""
    reader = ClaimReader(project, env)
    claims: dict[str, list[Claim]] = {}
    for claim in reader.read(queue_state.tracker.beads.values()):
        if claim.bead_id and claim.source in ("row", "lease", "run-state"):
            claims.setdefault(claim.bead_id, []).append(claim)
    found = [
        orphan
        for bead_id, holding in claims.items()
        if bead_id in queue_state.queue.beads and queue_state.queue.beads[bead_id].status not in TERMINAL
        if (orphan := _judge(bead_id, holding, now, threshold_s(env) * NS, reader.here)) is not None
    ]
    found = [structs.replace(each, ready=queue_state.queue.state(each.bead_id) == "ready") for each in found]
    return tuple(sorted(found, key=lambda orphan: (orphan.claimed_at, orphan.bead_id)))


def recover(curator: Curator, orphans: Iterable[Orphan]) -> Result:
    """Release orphaned claims; each is checked again first, and left alone if it is no longer one.

    Raises:
        WritesForbidden: --read-only.
    """
    wanted = list(orphans)
    names = called(wanted[0].bead_id) if len(wanted) == 1 else f"{len(wanted)} beads"
    title = f"release the stale claim on {names}"
    return curator.run_steps("unclaim", title, plan_release(wanted, curator.project))


def plan_release(wanted: Sequence[Orphan], project: Project) -> Callable[[PlanBuilder, QueueState], None]:
    """Plan the release of some claims, checking each again first."""

    def make(writing: PlanBuilder, queue_state: QueueState) -> None:
        left = (*find_orphans(queue_state, project), *find_dead_claims(queue_state, project))
        still = {orphan.bead_id: orphan for orphan in left}
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


def _judge(bead_id: str, claims: list[Claim], now: int, least: int, here: str) -> Orphan | None:
    """The orphan, if every claim on a bead is certainly dead and old; else None."""
    held = [claim for claim in claims if claim.source in ("row", "lease")]
    if not held:
        return None
    # a claim without a time has no age, and may be a minute old
    started = [claim.started_at or claim.at for claim in held]
    if any(instant is None for instant in started):
        return None
    oldest = min(instant for instant in started if instant is not None)
    pids = {claim.pid for claim in claims if claim.pid is not None}
    if not pids or any(claim.machine not in ("", here) for claim in claims):
        return None  # unknown from here whether it is running
    if any(pid_alive(pid) for pid in pids):
        return None
    beats = [claim.at for claim in claims if claim.at is not None and claim.at - oldest > AT_ONCE]
    if now - oldest > least and any(now - beat <= FRESH for beat in beats):
        return None  # another process keeps it alive
    owner = next((claim.owner for claim in held if claim.owner), "")
    machine = next((claim.machine for claim in held if claim.machine), here)
    pid = next(claim.pid for claim in claims if claim.pid is not None)
    age = (now - oldest) // NS
    sources = tuple(dict.fromkeys(claim.source for claim in held))
    return Orphan(bead_id, pid, machine, owner, oldest, age, sources, given_out_again(held, now))


REVIEW, ALIGNMENT, ACCEPTANCE = "review-finding", "alignment-review", "acceptance-failure"

PLANNING, ALIGN = "kind:planning", "action:align"
"""Labels of the bead that governs an alignment (docs/formats/helix.md §3.6)."""

_CAUSE = re.compile(r"TRIGGERING_(CYCLE|BEAD)=(\S+)")


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
