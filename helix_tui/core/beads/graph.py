"""The bead graph: dependencies, missing beads, what a bead holds up, and cycles with the edges that break them.

Only the dependency edge counts, as for readiness: a parent does not wait for its children in DDx. `with_titles` adds
titles to the ids in a sentence.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue

_OF_EDGES_ALONE = ("depends_on", "dependents", "children")
"""The cached results that depend only on ids, dependencies and parents."""

_WORD = re.compile(r"[A-Za-z0-9][\w.-]*[A-Za-z0-9]")

TITLE = 40
"""Characters of a title shown beside an id."""


class Dangling(Struct, frozen=True):
    """An edge to a bead that is not in the active file: the waiting bead starves, and DDx does not report it."""

    bead_id: str
    missing: str


class Chains(Struct, frozen=True):
    """What holds up what in the unfinished part of a graph."""

    holds_up: Mapping[str, int] = {}
    """Id to the number of unfinished beads that wait on it, directly or through others."""
    before: Mapping[str, int] = {}
    """Bead with edges to the length of the longest chain that must close before it."""
    after: Mapping[str, int] = {}
    """Bead with edges to the length of the longest chain that waits for it."""
    path: tuple[str, ...] = ()
    """A longest chain, in the order in which its beads must close; empty if nothing waits."""

    def on_critical_path(self, bead_id: str) -> bool:
        """Whether a bead is part of a longest chain: `path` or another of the same length."""
        here = self.before.get(bead_id, 0) + 1 + self.after.get(bead_id, 0)
        return bool(self.path) and bead_id in self.before and here >= len(self.path)

    def chain_through(self, bead_id: str) -> tuple[int, int]:
        """(place, length) of a bead in the longest chain through it; (1, 1) for a bead without links."""
        before = self.before.get(bead_id, 0)
        return before + 1, before + 1 + self.after.get(bead_id, 0)


class Graph:
    """The edges of one tracker state; each view of them is computed on first use."""

    def __init__(self, beads: Mapping[str, Bead], last: Graph | None = None) -> None:
        """``last`` is the graph of an older state: its results are reused if no edge differs."""
        self.beads = beads
        if last is not None and _same_edges(last.beads, beads):
            known = vars(last)
            vars(self).update({name: known[name] for name in _OF_EDGES_ALONE if name in known})

    @cached_property
    def depends_on(self) -> Mapping[str, tuple[str, ...]]:
        """Bead with dependencies to the ids it waits for."""
        return {bead.id: bead.depends_on for bead in self.beads.values() if bead.dependencies}

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        """Id, even of a missing bead, to the beads that wait for it, in tracker order."""
        found: dict[str, list[str]] = {}
        for bead_id, targets in self.depends_on.items():
            for target in targets:
                found.setdefault(target, []).append(bead_id)
        return {target: tuple(ids) for target, ids in found.items()}

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Parent id to its children, in tracker order."""
        found: dict[str, list[str]] = {}
        for bead in self.beads.values():
            if bead.parent:
                found.setdefault(bead.parent, []).append(bead.id)
        return {parent: tuple(ids) for parent, ids in found.items()}

    @cached_property
    def dangling(self) -> tuple[Dangling, ...]:
        """Edges of unfinished beads to ids that are not in the file."""
        return tuple(
            Dangling(bead_id, target)
            for bead_id, targets in self.depends_on.items()
            if self.beads[bead_id].status not in TERMINAL
            for target in targets
            if target not in self.beads
        )

    @cached_property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Every group of unfinished beads that wait on each other, sorted.

        A bead that waits on itself is a cycle of one. Closed and cancelled beads wait on nothing.
        """
        edges = {bead_id: on for bead_id, on in self.depends_on.items() if self.beads[bead_id].status not in TERMINAL}
        groups = [tuple(sorted(group)) for group in components(edges)]
        return tuple(sorted(group for group in groups if len(group) > 1 or group[0] in edges[group[0]]))

    @cached_property
    def chains(self) -> Chains:
        """What each unfinished bead holds up, and the longest chain; 2 ms for 10,000 beads."""
        return _chains(self.beads, self.depends_on)

    def descendants(self, bead_id: str) -> tuple[str, ...]:
        """Its children, their children and so on, each once."""
        below = reached([bead_id], lambda each: self.children.get(each, ()))
        return tuple(each for each in below if each != bead_id)

    def lineage(self, *bead_ids: str) -> Iterator[str]:
        """Some beads and their ancestors, as far as they exist, nearest first."""
        above = reached(bead_ids, lambda each: (self.beads[each].parent,) if each in self.beads else ())
        return (each for each in above if each in self.beads)

    def progress(self, bead_id: str) -> tuple[int, int]:
        """(closed, all) children of an epic; cancelled children are not counted."""
        children = [self.beads[child] for child in self.children.get(bead_id, ())]
        counted = [child for child in children if child.status != "cancelled"]
        return sum(child.status == "closed" for child in counted), len(counted)


def _same_edges(old: Mapping[str, Bead], new: Mapping[str, Bead]) -> bool:
    return len(old) == len(new) and all(
        one is other or (one.id == other.id and one.parent == other.parent and one.dependencies == other.dependencies)
        for one, other in zip(old.values(), new.values(), strict=True)
    )


def reached(start: Iterable[str], near: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Some ids and all that they lead to, nearest first, each once: a cycle is followed once.

    Args:
        near: the ids next to one; an empty one is passed over.
    """
    seen: set[str] = {""}
    ahead = deque(start)
    while ahead:
        each = ahead.popleft()
        if each not in seen:
            seen.add(each)
            yield each
            ahead.extend(near(each))


def components(edges: Mapping[str, tuple[str, ...]]) -> Iterator[list[str]]:
    """Strongly connected components (Tarjan 1972) of the nodes that have edges, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_stack: set[str] = set()
    stack: list[str] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                # it has no outgoing edge, so it is in no cycle
                if target not in edges:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges[target])))
                    break
                # an edge back to a node of the current group
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[str] = []
                    while not component or component[-1] != node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    yield component


def _chains(beads: Mapping[str, Bead], depends_on: Mapping[str, tuple[str, ...]]) -> Chains:
    """Compute the chains of the unfinished part of a graph; 10 ms for 10,000 beads."""
    waits_on = _open_edges(beads, depends_on)
    if not waits_on:
        return Chains()
    linked = {**dict.fromkeys((target for targets in waits_on.values() for target in targets), ()), **waits_on}
    waiters: dict[str, list[str]] = {}
    for bead_id, targets in waits_on.items():
        for target in targets:
            waiters.setdefault(target, []).append(bead_id)
    groups = list(components(linked))  # prerequisites come before what waits on them
    # a chain is an order of closing: beads that never close, missing or in a cycle, have no place in it
    closing = [
        bead_id
        for bead_id, *others in groups
        if not others and bead_id in beads and beads[bead_id].status not in TERMINAL and bead_id not in linked[bead_id]
    ]
    inside = set(closing)
    chained = {bead_id: tuple(t for t in linked[bead_id] if t in inside) for bead_id in closing}
    held_up = {bead_id: tuple(w for w in waiters.get(bead_id, ()) if w in inside) for bead_id in closing}
    before = _longest(closing, chained)
    after = _longest(reversed(closing), held_up)
    return Chains(_held(groups, waiters), before, after, _path(chained, before, after))


def _open_edges(beads: Mapping[str, Bead], depends_on: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Unfinished bead to the ids that it still waits on; a cancelled or missing one is waited on forever."""
    edges = {}
    for bead_id, targets in depends_on.items():
        if beads[bead_id].status not in TERMINAL:
            left = tuple(t for t in dict.fromkeys(targets) if t not in beads or beads[t].status != "closed")
            if left:
                edges[bead_id] = left
    return edges


def _longest(ordered: Iterable[str], edges: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Bead to the length of the longest chain along ``edges``, without itself; targets come first in ``ordered``."""
    found: dict[str, int] = {}
    for bead_id in ordered:
        found[bead_id] = max((found[target] + 1 for target in edges[bead_id]), default=0)
    return found


def _held(groups: list[list[str]], waiters: Mapping[str, list[str]]) -> dict[str, int]:
    """Id to the number of beads that wait on it, using integers as bit sets of beads."""
    bit = {bead_id: 1 << place for place, bead_id in enumerate(_in_turn(groups, waiters))}
    reached: dict[str, int] = {}
    held: dict[str, int] = {}
    for group in reversed(groups):
        mask = 0
        for bead_id in group:
            for waiter in waiters.get(bead_id, ()):
                mask |= bit[waiter] | reached.get(waiter, 0)
        for bead_id in group:
            reached[bead_id] = mask
            # in a cycle a bead waits on itself, which does not count
            count = (mask & ~bit.get(bead_id, 0)).bit_count()
            if count:
                held[bead_id] = count
    return held


def _in_turn(groups: list[list[str]], waiters: Mapping[str, list[str]]) -> list[str]:
    """Every waiting bead once, the last to close first: low bits keep the bit sets short."""
    waiting = {waiter for ids in waiters.values() for waiter in ids}
    return [bead_id for group in reversed(groups) for bead_id in group if bead_id in waiting]


def _path(
    waits_on: Mapping[str, tuple[str, ...]], before: Mapping[str, int], after: Mapping[str, int]
) -> tuple[str, ...]:
    """One of the longest chains, first bead first; empty if it would be a single bead."""
    last = max(before, key=lambda bead_id: (before[bead_id], -after[bead_id]), default="")
    if not before.get(last):
        return ()
    path = [last]
    while further := waits_on[path[-1]]:
        path.append(max(further, key=lambda target: before[target]))
    return tuple(reversed(path))


class Cut(Struct, frozen=True):
    """An edge of a cycle: removing it, or closing ``needed``, breaks the cycle."""

    waiter: str
    needed: str
    frees: bool
    """Whether the waiting bead is ready then; else it also waits on something outside the cycle."""


class Circle(Struct, frozen=True):
    """Beads each of which waits on the next, and the last on the first: none can ever start."""

    ids: tuple[str, ...]
    cuts: tuple[Cut, ...]
    """Every edge, those first that make a bead ready at once."""

    def path(self, name: Callable[[str], str] = str) -> str:
        """``a → b → a``."""
        return " → ".join(map(name, (*self.ids, self.ids[0])))


def circle_of(queue: Queue, bead_id: str) -> Circle | None:
    """The shortest cycle through a bead, starting with it, or None."""
    found = _way(queue, bead_id, lambda other: other == bead_id)
    return None if found is None else _circle(queue, found)


def circle_ahead(queue: Queue, bead_id: str) -> Circle | None:
    """The nearest cycle that a bead waits on, directly or through others, without being part of it."""
    circled = {other for group in queue.graph.cycles for other in group} - {bead_id}
    if not circled:
        return None
    # a cycle through a closed bead holds nothing up
    way = _way(queue, bead_id, lambda other: other in circled and circle_of(queue, other) is not None)
    return None if way is None else circle_of(queue, way[-1])


def circles(queue: Queue) -> Iterator[Circle]:
    """A shortest cycle of every group of beads that wait on each other."""
    for group in queue.graph.cycles:
        for bead_id in group:
            circle = circle_of(queue, bead_id)
            if circle is not None:
                yield circle
                break


def _circle(queue: Queue, way: list[str]) -> Circle:
    """The circle for a path that ends where it began."""
    ids = tuple(way[:-1])
    edges = zip(ids, (*ids[1:], ids[0]), strict=True)
    cuts = [Cut(waiter, needed, queue.ready_without(waiter, needed)) for waiter, needed in edges]
    return Circle(ids, tuple(sorted(cuts, key=lambda cut: not cut.frees)))


def _way(queue: Queue, start: str, arrived: Callable[[str], bool]) -> list[str] | None:
    """The shortest path of prerequisites from one bead to another, both ends included."""
    beads, edges = queue.beads, queue.graph.depends_on
    before: dict[str, str] = {}
    ahead = deque([start])
    while ahead:
        bead_id = ahead.popleft()
        if beads[bead_id].status in TERMINAL:
            continue  # it no longer waits on anything
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


def with_titles(text: str, beads: Mapping[str, Bead], *, most: int = 4) -> str:
    """A sentence with titles after the first ids in it, each id once."""
    named: set[str] = set()

    def name(found: re.Match[str]) -> str:
        bead_id = found.group()
        bead = beads.get(bead_id)
        # part of a ref or a file name; a quotation mark after it means its title is there already
        in_a_path = "/" in (text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1])
        if bead is None or bead_id in named or len(named) >= most or in_a_path:
            return bead_id
        if text.startswith("“", found.end() + 1):
            return bead_id
        title = clean_line(bead.title, TITLE + 1)
        if not title or title in text:
            return bead_id
        named.add(bead_id)
        short = title if len(title) <= TITLE else f"{title[: TITLE - 1].rstrip()}…"
        return f"{bead_id} “{short}”"

    return _WORD.sub(name, text)
