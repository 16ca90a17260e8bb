"""The bead graph: what waits on what, what is missing, what goes in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from helix_tui.core.beads.record import TERMINAL, Bead


@dataclass(frozen=True, slots=True)
class Dangling:
    """An edge to a bead that the active file does not hold: its waiter starves and DDx says so nowhere."""

    bead_id: str
    missing: str


class Graph:
    """Edges of one tracker state, built once and only as far as asked."""

    def __init__(self, beads: Mapping[str, Bead], last: Graph | None = None) -> None:
        """``last`` is the graph of an older state: where no edge differs, what it has worked out holds."""
        self.beads = beads
        if last is not None and _same_edges(last.beads, beads):
            known = vars(last)
            vars(self).update({name: known[name] for name in _OF_EDGES_ALONE if name in known})

    @cached_property
    def depends_on(self) -> Mapping[str, tuple[str, ...]]:
        """Per bead with dependencies: the ids it waits for."""
        return {bead.id: bead.depends_on for bead in self.beads.values() if bead.dependencies}

    @cached_property
    def dependents(self) -> Mapping[str, tuple[str, ...]]:
        """Per id: the beads that wait for it, in tracker order. Missing targets are keys too."""
        found: dict[str, list[str]] = {}
        for bead_id, targets in self.depends_on.items():
            for target in targets:
                found.setdefault(target, []).append(bead_id)
        return {target: tuple(ids) for target, ids in found.items()}

    @cached_property
    def children(self) -> Mapping[str, tuple[str, ...]]:
        """Per parent id: its children, in tracker order."""
        found: dict[str, list[str]] = {}
        for bead in self.beads.values():
            if bead.parent:
                found.setdefault(bead.parent, []).append(bead.id)
        return {parent: tuple(ids) for parent, ids in found.items()}

    @cached_property
    def dangling(self) -> tuple[Dangling, ...]:
        """Edges of unfinished beads to ids that the file does not hold."""
        return tuple(
            Dangling(bead_id, target)
            for bead_id, targets in self.depends_on.items()
            if self.beads[bead_id].status not in TERMINAL
            for target in targets
            if target not in self.beads
        )

    @cached_property
    def cycles(self) -> tuple[tuple[str, ...], ...]:
        """Every group of beads that wait on each other in a circle, each sorted, the list sorted.

        A bead that waits on itself is a circle of one.
        """
        groups = [tuple(sorted(group)) for group in components(self.depends_on)]
        return tuple(sorted(group for group in groups if len(group) > 1 or group[0] in self.depends_on[group[0]]))

    def progress(self, bead_id: str) -> tuple[int, int]:
        """(closed, all) children of an epic; cancelled children count in neither."""
        children = [self.beads[child] for child in self.children.get(bead_id, ())]
        counted = [child for child in children if child.status != "cancelled"]
        return sum(child.status == "closed" for child in counted), len(counted)


_OF_EDGES_ALONE = ("depends_on", "dependents", "children", "cycles")
"""What a graph works out that rests on nothing but ids, dependencies and parents."""


def _same_edges(old: Mapping[str, Bead], new: Mapping[str, Bead]) -> bool:
    return len(old) == len(new) and all(
        one is other or (one.id == other.id and one.parent == other.parent and one.dependencies == other.dependencies)
        for one, other in zip(old.values(), new.values(), strict=True)
    )


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
                if target not in edges:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(edges[target])))
                    break
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
