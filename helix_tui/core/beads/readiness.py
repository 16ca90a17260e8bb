"""Decide which beads a worker may pick, by DDx's rule of either era, with a reason for every bead that is not ready.

The rule (docs/formats/ddx.md §2) says which beads are ready, in which order, and which of several reasons against a
bead decides. It changed in May 2026, so there are two:

* ``april``: open, or in progress with a stale heartbeat; every dependency closed; no epic; no active
  ``execute-loop-retry-after``; not ``execution-eligible: false``; not superseded. By priority, creation, id.
* ``head``: the first of claimed, waiting_dependencies, superseded, epic_container, retry_cooldown,
  preserved_review_blocked, not_eligible that holds, else ready. By priority, rank, creation, id.

``auto`` judges each record by the era it shows, or else by the tracker's era. Releases between the two wrote head's
records under April's keys, and April's claims beside leases: in ``auto``, old key names count as long as no record has
the new ones, and a lease counts wherever there is one.

With an installed ddx its own `Rule` judges every record, whatever keys the record has. Each change between releases is
one field of `Rule`, so that a release between two known ones is described exactly, not rounded to the nearest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.record import STATUSES, TERMINAL, Bead
from helix_tui.core.beads.states import STATES, State
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NEVER, NS, bead_instant, format_instant, format_span

Era = Literal["auto", "april", "head"]

HEARTBEAT_TTL = 90 * NS
"""Age at which a claim without a lease counts as stale, in both eras."""

NOT_ELIGIBLE = "workers may not pick it"
"""The reason shown for a bead that is kept from workers without one."""

PROPOSED = "status=proposed requires operator attention"
"""ddx's default reason for a proposed bead."""

_NEVER_PICKED = "the loop never picks an epic"


class Rule(Struct, frozen=True):
    """One release's rule."""

    name: Literal["april", "head"]
    """Its family: which statuses exist, and which of several reasons comes first."""
    old_keys: bool
    """Cooldowns and heartbeats under ``execute-loop-…`` keys count."""
    new_keys: bool
    """Cooldowns and heartbeats under ``work-…`` keys count."""
    open_claims: bool
    """A fresh claim also holds an open bead; else only one in progress."""
    leases: bool
    """Claims are lease files outside the repository."""
    childless_epics: bool
    """An epic without children may be picked; else no epic ever is."""
    titled_epics: bool
    """A title that starts with “Epic:” makes a bead an epic."""
    reviews: bool
    """An attempt kept for review holds its bead until the review is resolved."""
    ranks: bool
    """``queue-rank`` orders beads of one priority."""
    plain_ready: bool
    """DDx counts every open bead that waits for nothing as ready; else only beads that a worker may pick."""
    waiting_is_blocked: bool
    """DDx counts beads that wait for others as blocked; else only beads with that status."""


APRIL = Rule(
    "april",
    old_keys=True,
    new_keys=False,
    open_claims=False,
    leases=False,
    childless_epics=False,
    titled_epics=False,
    reviews=False,
    ranks=False,
    plain_ready=True,
    waiting_is_blocked=True,
)
"""The releases of April 2026."""

HEAD = Rule(
    "head",
    old_keys=False,
    new_keys=True,
    open_claims=True,
    leases=True,
    childless_epics=True,
    titled_epics=True,
    reviews=True,
    ranks=True,
    plain_ready=False,
    waiting_is_blocked=False,
)
"""The releases of August 2026."""

RULES = {"april": APRIL, "head": HEAD}
"""Each era's rule, used when no ddx is installed."""


class Reason(Struct, frozen=True):
    """One reason why a bead is not ready; ``refs`` are the ids it mentions."""

    kind: State
    detail: str
    refs: tuple[str, ...] = ()


class Standing(Struct, frozen=True):
    """A bead's state in the queue, with its reasons."""

    state: State
    reasons: tuple[Reason, ...] = ()
    """Every reason that holds, the deciding one first; empty for a ready bead."""
    until: int | None = None
    """When a cooldown ends, an instant."""

    @property
    def timed(self) -> bool:
        """Whether it may change with time alone."""
        return self.until is not None or self.state == "claimed"


class Claims(Struct, frozen=True):
    """Claims found outside the tracker, gathered by ``core.ddx``."""

    leases: Mapping[str, bool] = {}
    """Bead with a readable lease file to whether DDx considers it fresh."""
    running: frozenset[str] = frozenset()
    """Beads with a live worker, by any evidence. For display; does not change what DDx would pick."""
    origin_head: str = ""
    """Commit of origin/main: a cooldown set on another commit has ended (head era)."""


NO_CLAIMS = Claims()

FINISHED: Mapping[str, Standing] = {"closed": Standing("closed"), "cancelled": Standing("cancelled")}
"""By status: beads that are judged by nothing else."""

_READY = Standing("ready")


class Queue:
    """One classified state of a tracker.

    Attributes:
        beads: by id, in tracker order.
        era: the engine asked for: ``auto``, ``april``, ``head``, or the rule of the installed ddx.
        rule: the rule for records that show no era, and for the order of ready beads.
        as_of: the instant of evaluation.
        picked_by_ddx: ids that DDx would pick, in its order.
        ready: those of them without a live worker: “ready” in every count and list.
    """

    def __init__(
        self,
        beads: Mapping[str, Bead],
        *,
        now: int,
        era: Era | Rule = "auto",
        claims: Claims = NO_CLAIMS,
        last: Queue | None = None,
    ):
        self.beads = beads
        self.graph: Graph = Graph(beads, last.graph if last is not None else None)
        self.era = era
        self.as_of = now
        self.claims = claims
        self.rule = rule_of(beads, era)
        self._standings: dict[str, Standing] = {}
        self._classify_all({} if last is None else self._still_valid(last))
        pickable = [bead_id for bead_id, standing in self._standings.items() if standing is _READY]
        order = pick_order(self.rule)
        self.picked_by_ddx: tuple[str, ...] = tuple(sorted(pickable, key=lambda bead_id: order(beads[bead_id])))
        self.ready: tuple[str, ...] = tuple(bead_id for bead_id in self.picked_by_ddx if bead_id not in claims.running)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each ready bead, 1-based."""
        return {bead_id: place for place, bead_id in enumerate(self.ready, 1)}

    @cached_property
    def _timed(self) -> Sequence[Standing]:
        """Beads whose state may change with time alone."""
        return [standing for standing in self._standings.values() if standing.timed]

    def standing(self, bead_id: str) -> Standing:
        """A bead's state and reasons; a live worker shows as ``running`` before anything else.

        Raises:
            KeyError: the tracker has no such bead.
        """
        standing = self._standings[bead_id]
        if bead_id in self.claims.running and standing.state not in TERMINAL:
            return Standing("running", standing.reasons, standing.until)
        return standing

    def state(self, bead_id: str) -> State:
        """A bead's state."""
        if bead_id in self.claims.running and self._standings[bead_id].state not in TERMINAL:
            return "running"
        return self._standings[bead_id].state

    def restated(self, last: Queue) -> set[str]:
        """Beads whose state differs from that in an older state of the tracker, in which they were too."""
        before = last._standings
        # most beads are closed or ready, and those standings are shared objects
        judged = {
            bead_id for bead_id, standing in self._standings.items() if before.get(bead_id, standing) is not standing
        }
        candidates = judged | ((self.claims.running ^ last.claims.running) & self._standings.keys() & before.keys())
        return {bead_id for bead_id in candidates if self.state(bead_id) != last.state(bead_id)}

    def parked(self, bead_id: str) -> str:
        """Why a bead is parked for a person; empty if it is not parked or not in the tracker."""
        standing = self._standings.get(bead_id)
        return standing.reasons[0].detail if standing is not None and standing.state == "proposed" else ""

    def expired(self, now: int) -> bool:
        """Whether a state may have changed by ``now`` with time alone: a cooldown ended, a claim went stale."""
        # the clock was set back: earlier states may no longer hold
        if now < self.as_of:
            return True
        return any(
            standing.until is not None and standing.until <= now
            if standing.state != "claimed"
            # the end of a lease is in its file, which is not known here: check again each second
            else now - self.as_of > NS
            for standing in self._timed
        )

    def by_state(self) -> dict[State, Sequence[str]]:
        """The beads of each state, ready ones in pick order; empty states are left out."""
        found: dict[State, list[str]] = {}
        for bead_id in self.beads:
            found.setdefault(self.state(bead_id), []).append(bead_id)
        return {**found, "ready": self.ready}

    def counts(self) -> dict[State, int]:
        """The number of beads in each state; empty states are left out."""
        counted = Counter(self.state(bead_id) for bead_id in self.beads)
        return {state: counted[state] for state in STATES if counted[state]}

    def unknown_statuses(self) -> dict[str, int]:
        """Statuses that DDx does not know, verbatim, with the number of beads."""
        return dict(Counter(bead.status for bead in self.beads.values() if bead.status not in STATUSES))

    @property
    def default_era(self) -> Literal["april", "head"]:
        """The era of the rule."""
        return self.rule.name

    def engine(self, bead: Bead) -> Rule:
        """The rule by which a record is judged."""
        if self.era != "auto":
            return self.rule
        era = bead.era
        return RULES[era] if era else self.rule

    def unblocks(self, bead_id: str) -> tuple[str, ...]:
        """Ids that become ready when a bead closes, in pick order."""
        # it is closed already
        if self.beads[bead_id].status == "closed":
            return ()
        freed = [
            other
            for other in self.graph.dependents.get(bead_id, ())
            if other != bead_id
            and self.state(other) == "waiting_dependencies"
            and self._judge(self.beads[other], closed=bead_id) is _READY
        ]
        order = pick_order(self.rule)
        return tuple(sorted(freed, key=lambda other: order(self.beads[other])))

    @cached_property
    def unblock_counts(self) -> Mapping[str, int]:
        """Id to the number of beads that become ready when it closes: `unblocks` for all beads at once.

        Closing one bead frees another exactly when nothing else holds that one.
        """
        freed: Counter[str] = Counter()
        for bead_id in self.beads:
            if bead_id in self.claims.running:
                continue  # it may be picked already
            why = self._standings[bead_id].reasons
            if len(why) == 1 and why[0].kind == "waiting_dependencies" and len(why[0].refs) == 1:
                # closing a bead that waits on itself does not free it
                freed[why[0].refs[0]] += why[0].refs[0] != bead_id
        return freed

    def ready_without(self, bead_id: str, needed: str) -> bool:
        """Whether a bead would be ready if it did not wait on ``needed``."""
        return self._judge(self.beads[bead_id], closed=needed) is _READY

    @cached_property
    def _writes_old_keys(self) -> bool:
        """Whether the DDx that wrote the file still called a worker's keys ``execute-loop-…``."""
        return self.era == "auto" and not any(bead.has_work_keys for bead in self.beads.values())

    def _still_valid(self, last: Queue) -> Mapping[str, Standing]:
        """The states of an older queue that no change since then can have affected."""
        same_rule = (self.era, self.rule, self.claims.origin_head) == (last.era, last.rule, last.claims.origin_head)
        if not same_rule or self.as_of < last.as_of or self._writes_old_keys != last._writes_old_keys:
            return {}
        renewed = {bead_id for bead_id, bead in self.beads.items() if last.beads.get(bead_id) is not bead}
        renewed |= last.beads.keys() - self.beads.keys()
        before, now = last.claims.leases, self.claims.leases
        stale = renewed | {bead_id for bead_id in before.keys() | now.keys() if before.get(bead_id) != now.get(bead_id)}
        for bead_id in renewed:
            # those that wait for it, and the epics that contain it
            stale.update(self.graph.dependents.get(bead_id, ()))
            stale.update(bead.parent for queue in (self, last) if (bead := queue.beads.get(bead_id)) is not None)
        return {
            bead_id: standing
            for bead_id, standing in last._standings.items()
            if bead_id not in stale and not standing.timed
        }

    def _classify_all(self, known: Mapping[str, Standing]) -> None:
        standings, judge = self._standings, self._judge
        for bead_id, bead in self.beads.items():
            standings[bead_id] = FINISHED.get(bead.status) or known.get(bead_id) or judge(bead)

    def _judge(self, bead: Bead, closed: str = "") -> Standing:
        """Judge one unfinished bead as if ``closed`` were closed."""
        # unknown first: DDx ignores such a bead whatever else it contains
        if bead.status not in STATUSES:
            return Standing("unknown_status", (Reason("unknown_status", f"unknown status “{bead.status}”"),))
        if bead.status == "blocked":
            why = bead.blocker_reason.strip() or "blocked status requires an explicit external blocker reason"
            return Standing("blocked_external", (Reason("blocked_external", why),))
        if bead.status == "proposed":
            return Standing("proposed", (Reason("proposed", _asked_by_ddx(bead) or PROPOSED),))
        tests = _HEAD_TESTS if self.engine(bead).name == "head" else _APRIL_TESTS
        reasons = tuple(reason for test in tests if (reason := test(self, bead, closed)) is not None)
        if not reasons:
            return _READY
        cooling = any(reason.kind == "retry_cooldown" for reason in reasons)
        return Standing(reasons[0].kind, reasons, self._cooldown_end(bead) if cooling else None)

    def _cooldown_end(self, bead: Bead) -> int | None:
        """When a bead may be tried again, or None if it may be tried now."""
        rule = self.engine(bead)
        old = bead.loop_retry_after if bead.loop_retry_after and self._reads_old_keys(rule) else ""
        new = bead.work_retry_after if rule.new_keys else ""
        end = bead_instant(new or old)
        if end is None or end <= self.as_of:
            return None
        # a cooldown says "not on this commit": main has moved on, so it may be tried again
        base, head = bead.work_base_rev if new else "", self.claims.origin_head
        return None if base and head and base != head else end

    def _reads_old_keys(self, rule: Rule) -> bool:
        return rule.old_keys or self._writes_old_keys


def _asked_by_ddx(bead: Bead) -> str:
    """Why ddx parked a bead for a person, and what it suggests; empty if its record does not say."""
    row = bead.document()
    words = [row.get(f"needs-human-{name}") for name in ("reason", "summary", "suggested-action")]
    *why, suggested = (word if isinstance(word, str) else "" for word in words)
    said = ": ".join(dict.fromkeys(filter(None, why)))
    return clean_line(said + (f"; suggested: {suggested}" if said and suggested else suggested), 600)


def classify(
    beads: Mapping[str, Bead],
    *,
    now: int,
    era: Era | Rule = "auto",
    claims: Claims = NO_CLAIMS,
    last: Queue | None = None,
) -> Queue:
    """Judge every bead of a tracker at an instant (ns since the epoch), by an era's rule or a given one.

    ``last`` is an older state of the same tracker whose results are reused.
    """
    return Queue(beads, now=now, era=era, claims=claims, last=last)


def tracker_era(beads: Mapping[str, Bead]) -> Literal["april", "head"]:
    """The era of the DDx that last wrote the file: head as soon as one row shows it.

    Head stamps every row with a schema version whenever it writes the file. So rows with DDx's dates and no schema
    version are April's even without a worker's key: before the first attempt, and after the last bead is closed. Rows
    without DDx's dates are judged by today's rule. New statuses and attachments alone do not show head: for a week they
    existed beside April's rule.
    """
    april = False
    for bead in beads.values():
        if bead.has_head_keys:
            return "head"
        april = april or bool(bead.created_at) or bead.has_april_keys
    return "april" if april else "head"


def rule_of(beads: Mapping[str, Bead], era: Era | Rule) -> Rule:
    """The rule asked for; ``auto`` is that of the DDx that last wrote the file."""
    if isinstance(era, Rule):
        return era
    return RULES[tracker_era(beads) if era == "auto" else era]


def pick_order(rule: Rule) -> Callable[[Bead], tuple[object, ...]]:
    """The key by which a rule sorts the beads that a worker may pick, the next one first."""
    return _head_order if rule.ranks else _april_order


def _april_order(bead: Bead) -> tuple[object, ...]:
    # bytes, not characters: Go compares strings bytewise
    return bead.priority, bead_instant(bead.created_at) or NEVER, bead.id.encode()


def _head_order(bead: Bead) -> tuple[object, ...]:
    rank = bead.queue_rank
    return bead.priority, rank is None, rank or 0, bead_instant(bead.created_at) or NEVER, bead.id.encode()


# --- the tests, one per reason, in order of precedence ------------------------------------------


def _claimed(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    rule = queue.engine(bead)
    if not rule.open_claims and bead.status != "in_progress":
        return None
    lease = queue.claims.leases.get(bead.id) if rule.leases else None
    beat = _beat(bead.work_heartbeat_at) if rule.new_keys else NEVER
    # a release between the two writes heartbeats under the old name, beside claims of the new kind
    if bead.loop_heartbeat_at and queue._reads_old_keys(rule):
        beat = _beat(bead.loop_heartbeat_at)
    # a lease file is newer than the row, which is written once per claim
    fresh = lease if lease is not None else queue.as_of - beat <= HEARTBEAT_TTL
    return Reason("claimed", f"claimed by {bead.owner or 'a worker'}, lease is current") if fresh else None


def _claimed_april(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    if bead.status != "in_progress":
        return None
    fresh = queue.as_of - _beat(bead.loop_heartbeat_at) <= HEARTBEAT_TTL
    # May's releases judge as April did and already kept leases
    if queue.era == "auto" or queue.rule.leases:
        fresh = queue.claims.leases.get(bead.id, fresh)
    if not fresh:
        return None
    return Reason("claimed", f"claimed by {bead.owner or 'a worker'}, heartbeat is current")


def _beat(text: str) -> int:
    instant = bead_instant(text)
    return NEVER if instant is None else instant


def _waits(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    if not bead.dependencies:
        return None
    open_ids: list[str] = []
    missing: list[str] = []
    cancelled: list[str] = []
    for target in bead.depends_on:
        other = queue.beads.get(target)
        if other is None:
            missing.append(target)
        elif other.status != "closed" and target != closed:
            (cancelled if other.status == "cancelled" else open_ids).append(target)
    nameless = any(not edge.depends_on_id for edge in bead.dependencies)
    kept = {*open_ids, *missing, *cancelled}
    if not kept and not nameless:
        return None
    parts = []
    if open_ids:
        parts.append(f"waits on {', '.join(open_ids)}")
    if cancelled:
        parts.append(f"waits on {', '.join(cancelled)}, cancelled and never closed")
    if missing:
        parts.append(f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not in the tracker")
    if nameless:  # DDx looks up its empty id, finds no bead, and so never counts it as closed
        parts.append("a dependency names no bead, so DDx never counts it as closed")
    unclosed = tuple(target for target in bead.depends_on if target in kept)
    return Reason("waiting_dependencies", "; ".join(parts), unclosed)


def _superseded(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    # head trims the value, April took blanks as an id
    by = bead.superseded_by.strip()
    return Reason("superseded", f"superseded by {by}", (by,)) if by else None


def _superseded_april(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    by = bead.superseded_by
    return Reason("superseded", f"superseded by {by}", (by,)) if by else None


def _epic_container(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    rule = queue.engine(bead)
    if not looks_like_epic(bead, titled=rule.titled_epics):
        return None
    children = queue.graph.children.get(bead.id, ())
    if not children:
        return None if rule.childless_epics else Reason("epic_container", _NEVER_PICKED)
    left = tuple(child for child in children if queue.beads[child].status != "closed")
    detail = f"an epic with {len(left)} of {len(children)} children not closed"
    return Reason("epic_container", detail if left else "an epic whose children are all closed", left)


def looks_like_epic(bead: Bead, *, titled: bool = True) -> bool:
    """Whether a bead is an epic: by its type or (``titled``) the start of its title."""
    if bead.issue_type.strip().lower() == "epic":
        return True
    return titled and bead.title.strip().lower().startswith(("epic:", "epic "))


def _epic_april(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    # April compares the type unchanged; head trims it and looks at titles too
    if bead.issue_type != "epic":
        return None
    left = tuple(child for child in queue.graph.children.get(bead.id, ()) if queue.beads[child].status != "closed")
    return Reason("epic_container", _NEVER_PICKED, left)


def _cooldown(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    end = queue._cooldown_end(bead)
    if end is None:
        return None
    last = bead.work_last_status or bead.loop_last_status
    after = f" after {last}" if last else ""
    wait = format_span((end - queue.as_of) / NS)
    return Reason("retry_cooldown", f"retry in {wait}, at {format_instant(end)}{after}")


def _review_blocked(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    blocked = bead_instant(bead.review_blocked_at) if queue.engine(bead).reviews else None
    if blocked is None:
        return None
    attempt = bead.review_blocked_attempt
    unblocked = bead_instant(bead.review_unblocked_at)
    # a later review may block the bead again: only a later lift counts
    lifted = unblocked is not None and unblocked > blocked
    if lifted and attempt and bead.review_unblocked_attempt == attempt:
        return None
    return Reason("preserved_review_blocked", f"its review is not resolved; attempt {attempt or 'unknown'}")


def _not_eligible(queue: Queue, bead: Bead, closed: str) -> Reason | None:
    # absent means eligible
    if bead.execution_eligible is not False:
        return None
    if bead.focus_epic:
        said = f"held back by the focus on {bead.focus_epic}"
        return Reason("not_eligible", said, (bead.focus_epic,))
    return Reason("not_eligible", bead.skip_reason.strip() or NOT_ELIGIBLE)


_Test = Callable[[Queue, Bead, str], Reason | None]

_HEAD_TESTS: tuple[_Test, ...] = (
    _claimed,
    _waits,
    _superseded,
    _epic_container,
    _cooldown,
    _review_blocked,
    _not_eligible,
)

_APRIL_TESTS: tuple[_Test, ...] = (_claimed_april, _waits, _epic_april, _cooldown, _not_eligible, _superseded_april)
