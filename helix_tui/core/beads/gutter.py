"""The gutter graph: one row a bead, prerequisites above what waits on them, edges in lanes like a git log.

A bead with dependents below opens a lane; each dependent ties into the lanes of all its prerequisites in
its own row. There are at most `MAX_LANES`; an edge that finds no lane is left to the ``↳ id`` of its row.
Cells, read from the glyph on the left: ``─╮`` a lane begins, ``─┼`` or ``─┤`` ties into a lane that goes on,
``─┴`` or ``─╯`` into one that ends here, ``│`` passes by.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

MAX_LANES = 6


class GutterRow(Struct, frozen=True):
    """One bead with the cells of its gutter."""

    bead_id: str
    cells: str
    """One cell of connection to the glyph, then one a lane; trailing blanks are cut."""
    see: tuple[str, ...]
    """Prerequisites that need naming: all but the nearest, and any whose edge found no lane."""


def order_rows(ids: Sequence[str], depends_on: Mapping[str, Iterable[str]], rank: Callable[[str], object]) -> list[str]:
    """A topological order of ``ids`` that keeps chains together.

    Connected groups stand together, the group with the best rank first; in a group, what the row above has
    just freed comes before the rest. Beads in a circle stand where their group ends, by rank.
    """
    shown = set(ids)
    needs = {bead_id: [t for t in depends_on.get(bead_id, ()) if t in shown and t != bead_id] for bead_id in ids}
    feeds: dict[str, list[str]] = {}
    for bead_id, targets in needs.items():
        for target in targets:
            feeds.setdefault(target, []).append(bead_id)
    ranks = {bead_id: (rank(bead_id), place) for place, bead_id in enumerate(ids)}
    ordered: list[str] = []
    for group in _groups(ids, needs, feeds, ranks):
        ordered.extend(_chain(group, needs, feeds, ranks))
    return ordered


def _groups(
    ids: Sequence[str],
    needs: Mapping[str, list[str]],
    feeds: Mapping[str, list[str]],
    ranks: Mapping[str, tuple[object, int]],
) -> list[list[str]]:
    seen: set[str] = set()
    groups: list[list[str]] = []
    for root in sorted(ids, key=ranks.__getitem__):
        if root in seen:
            continue
        seen.add(root)
        group = [root]
        for bead_id in group:
            for other in (*needs[bead_id], *feeds.get(bead_id, ())):
                if other not in seen:
                    seen.add(other)
                    group.append(other)
        groups.append(group)
    return groups


def _chain(
    group: list[str],
    needs: Mapping[str, list[str]],
    feeds: Mapping[str, list[str]],
    ranks: Mapping[str, tuple[object, int]],
) -> Iterable[str]:
    if len(group) == 1:
        return group
    open_needs = {bead_id: len(needs[bead_id]) for bead_id in group}
    row = 0
    # the freshest freed first (-row), then by rank: chains stay together and lanes stay few
    heap = [(0, ranks[bead_id], bead_id) for bead_id in group if not open_needs[bead_id]]
    heapq.heapify(heap)
    ordered: list[str] = []
    placed: set[str] = set()
    while heap or len(ordered) < len(group):
        if not heap:  # a circle: break it at its best ranked bead
            best = min((b for b in group if b not in placed), key=ranks.__getitem__)
            heapq.heappush(heap, (-row, ranks[best], best))
        bead_id = heapq.heappop(heap)[2]
        if bead_id in placed:
            continue
        row += 1
        placed.add(bead_id)
        ordered.append(bead_id)
        for other in feeds.get(bead_id, ()):
            open_needs[other] -= 1
            if not open_needs[other] and other not in placed:
                heapq.heappush(heap, (-row, ranks[other], other))
    return ordered


def draw(order: Sequence[str], depends_on: Mapping[str, Iterable[str]]) -> list[GutterRow]:
    """The rows of an order with their lanes."""
    row_of = {bead_id: row for row, bead_id in enumerate(order)}
    last_use: dict[str, int] = {}
    above: list[list[str]] = []
    for row, bead_id in enumerate(order):
        targets = [t for t in depends_on.get(bead_id, ()) if row_of.get(t, row) < row]
        above.append(targets)
        for target in targets:
            last_use[target] = row
    lanes: list[str] = []  # the source of each lane, "" for a free one
    rows = []
    for row, bead_id in enumerate(order):
        ties = {lane for lane, source in enumerate(lanes) if source and source in above[row]}
        ends = {lane for lane in ties if last_use[lanes[lane]] == row}
        drawn = {lanes[lane] for lane in ties}
        nearest = max((t for t in above[row] if t in drawn), key=row_of.__getitem__, default="")
        others = tuple(target for target in depends_on.get(bead_id, ()) if target in row_of and target != nearest)
        if not lanes and bead_id not in last_use:
            rows.append(GutterRow(bead_id, "", others))
            continue
        passing = [bool(source) for source in lanes]
        for lane in ends:
            lanes[lane] = ""
        opened = _open_lane(lanes, bead_id) if bead_id in last_use else None
        rows.append(GutterRow(bead_id, _cells(passing, ties, ends, opened), others))
        while lanes and not lanes[-1]:
            lanes.pop()
    return rows


def _open_lane(lanes: list[str], bead_id: str) -> int | None:
    for lane, source in enumerate(lanes):
        if not source:
            lanes[lane] = bead_id
            return lane
    if len(lanes) == MAX_LANES:
        return None
    lanes.append(bead_id)
    return len(lanes) - 1


def _cells(passing: list[bool], ties: set[int], ends: set[int], opened: int | None) -> str:
    touched = ties | ({opened} if opened is not None else set())
    if not touched:
        return (" " + "".join("│" if on else " " for on in passing)).rstrip()
    reach = max(touched)
    cells = ["─"]
    for lane in range(max(len(passing), reach + 1)):
        on = lane < len(passing) and passing[lane]
        far = lane >= reach
        if lane in ties and (lane not in ends or lane == opened):
            cells.append("┤" if far else "┼")
        elif lane in ties:
            cells.append("╯" if far else "┴")
        elif lane == opened:
            cells.append("╮" if far else "┬")
        elif on:
            cells.append("│")
        else:
            cells.append("─" if lane < reach else " ")
    return "".join(cells).rstrip()
