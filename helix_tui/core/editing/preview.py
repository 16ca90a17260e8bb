"""Foresee the consequences of planned steps on the snapshot, without changing anything.

Only beads that a change can affect are judged again: the changed ones, their dependents and their ancestors. With ten
thousand beads one operation takes about a millisecond; if a plan affects much of the queue, all beads are judged once,
with the same result.

`places` gives the places of the changed beads in the pick order before and after.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.graph import Graph, reached
from helix_tui.core.beads.readiness import FINISHED, Claims, Queue, pick_order, rule_of
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import IN_HAND, STATES, State
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import CommandStep, called
from helix_tui.core.ground.text import counted

SHOWN = 10
"""How many of the next beads are listed."""

MAX_PLACES = 3
"""How many changed beads are listed below the totals of a larger change."""


class PickPlace(Struct, frozen=True):
    """One bead that a change edits: its place in the pick order now and then, 1-based.

    ``was`` and ``will`` are None if it is not ready; ``state`` is empty if it does not exist yet.
    """

    bead_id: str
    was: int | None
    will: int | None
    state: tuple[str, str]
    ready: tuple[int, int]
    """The number of ready beads now, and then."""

    def __str__(self) -> str:
        before, after = self.state
        if self.was is not None and self.was == self.will and self.ready[0] == self.ready[1]:
            return f"stays {ordinal(self.was)} of {self.ready[0]:,} ready"
        now, then = _where(self.was, before, self.ready[0]), _where(self.will, after, self.ready[1])
        if self.was is not None and self.will is not None:
            now = ordinal(self.was) if self.ready[0] == self.ready[1] else now
            return f"{now} → {then}"
        return f"stays {now}" if now == then else f"{now} → {then}"


def places(now: Queue, then: Queue, edited: Iterable[str]) -> tuple[PickPlace, ...]:
    """The places of edited beads in both orders, in the order of the edits."""
    before = {bead_id: place for place, bead_id in enumerate(now.ready, 1)}
    after = {bead_id: place for place, bead_id in enumerate(then.ready, 1)}
    ready = len(now.ready), len(then.ready)
    return tuple(
        PickPlace(
            bead_id,
            before.get(bead_id),
            after.get(bead_id),
            (now.state(bead_id) if bead_id in now.beads else "", then.state(bead_id)),
            ready,
        )
        for bead_id in edited
    )


def others_keep_order(now: Queue, then: Queue, edited: Iterable[str]) -> bool:
    """Whether all beads that are ready before and after, except the edited ones, keep their order."""
    left_out = {*edited, *(set(now.ready) ^ set(then.ready))}
    return [each for each in now.ready if each not in left_out] == [each for each in then.ready if each not in left_out]


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 112th."""
    last = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{last}"


def _where(place: int | None, state: str, ready: int) -> str:
    if place is not None:
        return f"{ordinal(place)} of {ready:,} ready"
    if not state:
        return "new"
    if state in TERMINAL | IN_HAND:
        return state
    return f"not ready ({STATES[cast(State, state)].sign.word})"


class StrandedBead(Struct, frozen=True):
    """A bead left waiting for something that will no longer happen by itself."""

    bead_id: str
    waits_on: str
    why: str


class Consequences(Struct, frozen=True):
    """The consequences of some steps."""

    newly_ready: tuple[str, ...] = ()
    """Beads ready then and not now, in pick order."""
    newly_blocked: tuple[str, ...] = ()
    """Beads ready now, and then neither ready, finished nor claimed."""
    next_before: tuple[str, ...] = ()
    next_after: tuple[str, ...] = ()
    """The next ten, as they are and as they would be."""
    cycles: tuple[tuple[str, ...], ...] = ()
    """New dependency cycles, each sorted."""
    orphaned: tuple[StrandedBead, ...] = ()
    falls: Mapping[str, str] = {}
    """Beads that ddx closes or cancels by itself, with the new status."""
    changed: Mapping[str, tuple[str, str]] = {}
    """Beads whose state changes: state now, state then."""
    ready: tuple[int, int] = (0, 0)
    """The number of ready beads now, and then."""
    places: tuple[PickPlace, ...] = ()
    """The edited beads with their places in the pick order, now and then."""
    others_keep_order: bool = True
    """Whether all other beads that are ready before and after keep their order."""
    effects: Mapping[str, int] = {}
    """What happens to the edited beads, in a word, and to how many of them."""

    def totals(self, *, again: bool = False) -> str:
        """A change of several beads in figures.

        Args:
            again: it restores an earlier state.
        """
        gained, lost = len(self.newly_ready), len(self.newly_blocked)
        parts = [f"{count:,} {effect}{' again' if again else ''}" for effect, count in self.effects.items()]
        parts.append(f"{gained:,} {'becomes' if gained == 1 else 'become'} ready")
        return ", ".join((*parts, f"{lost:,} no longer ready") if lost else parts)

    def __bool__(self) -> bool:
        moved = any(place.was != place.will for place in self.places) or not self.others_keep_order
        return bool(self.changed or self.cycles or self.orphaned or moved)

    @property
    def order(self) -> str:
        """The effect on the order of all beads that are not edited, in one sentence."""
        edited = {place.bead_id for place in self.places if place.was is not None}
        others = self.ready[0] - len(edited.union(self.newly_blocked))
        if others <= 0:
            return ""
        if others == 1:
            return "the other ready bead stays"
        named = f"the other {counted(others, 'ready bead')}"
        if not self.others_keep_order:
            return f"{named} change their order too"
        return f"{named} keep their order"


def foresee(queue: Queue, steps: Iterable[CommandStep]) -> Consequences:
    """Foresee the consequences of steps on a queue."""
    steps, overlay = tuple(steps), Overlay(queue)
    falls: dict[str, str] = {}
    for step in steps:
        overlay.apply(step.edits, step.leases)
        overlay.apply(step.ripple)
        falls |= {
            bead_id: str(fields["status"])
            for bead_id, fields in step.ripple.items()
            if fields.get("status") in TERMINAL
        }
    if not overlay.edits and not overlay.leases:
        top = queue.ready[:SHOWN]
        return Consequences(next_before=top, next_after=top, ready=(len(queue.ready), len(queue.ready)))
    then = PlannedQueue(overlay)
    edited = tuple(dict.fromkeys(bead_id for step in steps for bead_id in (*step.edits, *step.leases)))
    changed = {
        bead_id: (queue.state(bead_id) if bead_id in queue.beads else "", then.state(bead_id))
        for bead_id in then.judged
    }
    changed = {bead_id: states for bead_id, states in changed.items() if states[0] != states[1]}
    was, now = set(queue.ready), set(then.ready)
    return Consequences(
        newly_ready=tuple(bead_id for bead_id in then.ready if bead_id not in was),
        newly_blocked=tuple(
            bead_id for bead_id in queue.ready if bead_id not in now and then.state(bead_id) not in TERMINAL | IN_HAND
        ),
        next_before=queue.ready[:SHOWN],
        next_after=then.ready[:SHOWN],
        cycles=tuple(sorted(_new_cycles(overlay))),
        orphaned=tuple(_orphans(overlay)),
        falls=falls,
        changed=changed,
        ready=(len(queue.ready), len(then.ready)),
        places=places(queue, then, edited),
        others_keep_order=others_keep_order(queue, then, edited),
        effects=Counter(_effect(overlay, bead_id) for bead_id in edited),
    )


def _effect(overlay: Overlay, bead_id: str) -> str:
    """What planned changes do to a bead, in a word."""
    bead, fields = overlay.queue.beads.get(bead_id), overlay.edits.get(bead_id, {})
    status = overlay.status(bead_id)
    if bead is None:
        return "created"
    if status != bead.status and TERMINAL & {status, bead.status}:
        return status if status in TERMINAL else "reopened"
    if bead_id in overlay.leases or "owner" in fields:
        return "claimed" if overlay.leases.get(bead_id) or fields.get("owner") else "released"
    if "execution-eligible" in fields:
        return "kept from workers" if fields["execution-eligible"] is False else "open to workers"
    return "changed"


class PlannedQueue(Queue):
    """A queue after planned changes, judged again only where they have an effect; by the queue's rule.

    Attributes:
        judged: ids judged again; the state of every other bead is unchanged.
    """

    def __init__(self, overlay: Overlay) -> None:
        base = overlay.queue
        changed = {bead_id: overlay.bead(bead_id) for bead_id in overlay.edits}
        self.beads = _Layered(base.beads, changed, overlay.added)
        self.era, self.as_of = base.era, base.as_of
        self.claims = _claims(base.claims, overlay.leases)
        self.rule = base.rule
        # the rows show which ddx wrote the tracker, so a changed one may change the rule
        if base.era == "auto" and any(bead.era for bead in changed.values()):
            self.rule = rule_of(self.beads, base.era)
        self.graph = Graph(self.beads)
        # set here, as the graph would scan every bead to find them
        self.graph.children = _children(overlay, changed)
        everything = self.rule != base.rule
        self.judged: set[str] = set(self.beads if everything else _reached(overlay, changed))
        self._standings = dict(base._standings)
        for bead_id in self.judged:
            bead = self.beads[bead_id]
            self._standings[bead_id] = FINISHED.get(bead.status) or self._judge(bead)
        self.ready = self.picked_by_ddx = self._picks(base)

    def _picks(self, base: Queue) -> tuple[str, ...]:
        """The pick order: beads not judged again keep their places, the others are inserted."""
        order = pick_order(self.rule)

        def key(bead_id: str) -> tuple[object, ...]:
            return order(self.beads[bead_id])

        fresh = [
            bead_id
            for bead_id in self.judged
            if self._standings[bead_id].state == "ready" and bead_id not in self.claims.running
        ]
        kept = [bead_id for bead_id in base.ready if bead_id not in self.judged]
        # each insertion moves a part of the list: for many beads one sort costs less
        if len(fresh) * 8 > len(kept):
            return tuple(sorted((*kept, *fresh), key=key))
        for bead_id in fresh:
            insort(kept, bead_id, key=key)
        return tuple(kept)


class _Layered(Mapping[str, Bead]):
    """Beads with some of them replaced and some added, without copying the rest."""

    def __init__(self, base: Mapping[str, Bead], changed: Mapping[str, Bead], added: Iterable[str]) -> None:
        self._base, self._changed, self._added = base, changed, tuple(added)

    def __getitem__(self, bead_id: str) -> Bead:
        found = self._changed.get(bead_id)
        return self._base[bead_id] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from self._base
        yield from self._added

    def __len__(self) -> int:
        return len(self._base) + len(self._added)


def _claims(claims: Claims, leases: Mapping[str, bool]) -> Claims:
    """The claims after some were taken and some released."""
    if not leases:
        return claims
    kept = {bead_id: fresh for bead_id, fresh in claims.leases.items() if bead_id not in leases}
    taken = {bead_id for bead_id, held in leases.items() if held}
    return replace(claims, leases=kept | dict.fromkeys(taken, True), running=(claims.running - leases.keys()) | taken)


def _children(overlay: Overlay, changed: Mapping[str, Bead]) -> Mapping[str, tuple[str, ...]]:
    """Parent to its children, computed again only if a change set a parent."""
    old = overlay.queue.beads
    parents = {bead.parent for bead in changed.values()}
    parents |= {old[bead_id].parent for bead_id in changed if bead_id in old}
    found = dict(overlay.queue.graph.children)
    for parent in parents - {""}:
        found[parent] = tuple(overlay.children(parent))
    return found


def _reached(overlay: Overlay, changed: Mapping[str, Bead]) -> Iterator[str]:
    """Beads whose state a change may alter: the changed ones, their dependents, their parents."""
    old, dependents = overlay.queue.beads, overlay.queue.graph.dependents
    yield from changed
    yield from (bead_id for bead_id in overlay.leases if bead_id in old)
    for bead_id, bead in changed.items():
        before = old.get(bead_id)
        # a dependent depends only on the status of a bead
        if before is None or before.status != bead.status:
            yield from dependents.get(bead_id, ())
        for parent in {bead.parent, before.parent if before is not None else ""}:
            if parent in old or parent in changed:
                yield parent


def _new_cycles(overlay: Overlay) -> set[tuple[str, ...]]:
    """Cycles closed by a new edge: the beads that both reach its end and are reached from it."""
    found = set()
    for bead_id, fields in overlay.edits.items():
        if "dependencies" not in fields:
            continue
        before = overlay.queue.beads.get(bead_id)
        had = before.depends_on if before is not None else ()
        if any(target not in had for target in overlay.depends_on(bead_id)):
            circle = _component(overlay, bead_id)
            if circle:
                found.add(circle)
    return found


def _component(overlay: Overlay, bead_id: str) -> tuple[str, ...]:
    """The beads in a cycle with this one, sorted; empty if there is none."""

    def waits_on(waiter: str) -> tuple[str, ...]:
        # as in `Graph.cycles`: closed and cancelled beads wait on nothing
        return () if overlay.status(waiter) in TERMINAL else overlay.depends_on(waiter)

    waiting: dict[str, list[str]] = {}
    for waiter in reached([bead_id], waits_on):
        for end in waits_on(waiter):
            waiting.setdefault(end, []).append(waiter)
    back = set(reached(waiting.get(bead_id, ()), lambda each: waiting.get(each, ())))
    return tuple(sorted(back)) if bead_id in back else ()


def _orphans(overlay: Overlay) -> Iterator[StrandedBead]:
    """Unfinished beads that wait on one which no worker will finish after the change."""
    for bead_id in overlay.edits:
        why = _why_never(overlay, bead_id)
        if not why:
            continue
        for other in overlay.queue.graph.dependents.get(bead_id, ()):
            if overlay.status(other) not in TERMINAL and bead_id in overlay.depends_on(other):
                yield StrandedBead(other, bead_id, why)


def _why_never(overlay: Overlay, bead_id: str) -> str:
    """Why no worker will finish a changed bead; empty if one may, or if it was so before."""
    now, before = overlay.bead(bead_id), overlay.queue.beads.get(bead_id)
    if now.status == "cancelled":
        return "" if before is not None and before.status == "cancelled" else "is cancelled, never closed"
    if now.status == "closed":
        return ""
    by = now.superseded_by.strip()
    if by and (before is None or before.superseded_by.strip() != by):
        return f"is superseded by {called(by)} and no longer picked"
    if now.execution_eligible is False and (before is None or before.execution_eligible is not False):
        return "is not eligible and no longer picked"
    return ""
