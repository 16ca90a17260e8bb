"""Where beads are in the pick order before a change and after it, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL


@dataclass(frozen=True, slots=True)
class PickPlace:
    """One bead that a change edits: its place in the pick order now and then, 1-based.

    ``was`` and ``will`` are None where it is not ready; ``state`` is empty where it does not exist yet.
    """

    bead_id: str
    was: int | None
    will: int | None
    state: tuple[str, str]
    ready: tuple[int, int]
    """How many beads are ready now, and then."""

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
    """Whether all beads that are ready before and after, but for the edited ones, keep their order."""
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
    if state in TERMINAL | {"running", "claimed"}:
        return state
    return f"not ready ({state.replace('_', ' ')})"
