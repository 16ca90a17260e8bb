"""Beads that wait on each other in a circle: the circle itself, step by step, and what would break it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL


class Cut(Struct, frozen=True):
    """An edge of a circle. Without it, or once ``needed`` is closed, the circle is broken."""

    waiter: str
    needed: str
    frees: bool
    """Whether the waiter is ready then; else it goes on waiting, on something outside the circle too."""


class Circle(Struct, frozen=True):
    """Beads of which each waits on the next, and the last on the first. None of them can ever start."""

    ids: tuple[str, ...]
    cuts: tuple[Cut, ...]
    """Every edge, those first that make a bead ready at once."""

    def path(self, name: Callable[[str], str] = str) -> str:
        """``a → b → a``."""
        return " → ".join(map(name, (*self.ids, self.ids[0])))


def circle_of(queue: Queue, bead_id: str) -> Circle | None:
    """The shortest circle that a bead is in, beginning with it; None where it is in none."""
    found = _way(queue, bead_id, lambda other: other == bead_id)
    return None if found is None else _circle(queue, found)


def circle_ahead(queue: Queue, bead_id: str) -> Circle | None:
    """The nearest circle that a bead waits on, directly or through others, without being in it."""
    circled = {other for group in queue.graph.cycles for other in group} - {bead_id}
    if not circled:
        return None
    way = _way(queue, bead_id, lambda other: other in circled and circle_of(queue, other) is not None)
    return None if way is None else circle_of(queue, way[-1])


def circles(queue: Queue) -> Iterator[Circle]:
    """One circle, a shortest one, of every group of beads that wait on each other."""
    for group in queue.graph.cycles:
        for bead_id in group:
            circle = circle_of(queue, bead_id)
            if circle is not None:
                yield circle
                break


def _circle(queue: Queue, way: list[str]) -> Circle:
    """The circle of a way that ends where it began."""
    ids = tuple(way[:-1])
    edges = zip(ids, (*ids[1:], ids[0]), strict=True)
    cuts = [Cut(waiter, needed, queue.ready_without(waiter, needed)) for waiter, needed in edges]
    return Circle(ids, tuple(sorted(cuts, key=lambda cut: not cut.frees)))


def _way(queue: Queue, start: str, arrived: Callable[[str], bool]) -> list[str] | None:
    """The shortest way from a bead along what holds it back to another one; both ends included."""
    beads, edges = queue.beads, queue.graph.depends_on
    before: dict[str, str] = {}
    ahead = deque([start])
    while ahead:
        bead_id = ahead.popleft()
        if beads[bead_id].status in TERMINAL:
            continue  # it waits on nothing any more
        for target in edges.get(bead_id, ()):
            if target not in beads or beads[target].status == "closed":
                continue
            if arrived(target):
                way = [target, bead_id]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before:
                before[target] = bead_id
                ahead.append(target)
    return None
