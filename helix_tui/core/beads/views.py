"""The four views of a queue as plain rows: dag, tree, lanes, order.

A view decides which beads show, in which order and with which gutter; widgets decide how a row looks. Finished beads
fold into one row with a count, and so do unlinked beads unless they are ready, running or waiting for a person.

The gutter of the dag is a graph: one row per bead, prerequisites above their dependents, edges in lanes like a git
log. A bead with dependents below opens a lane; each dependent ties into the lanes of all its prerequisites in its own
row. There are at most `MAX_LANES`; an edge without a lane is shown as ``↳ id`` in its row. Cells, read from the
glyph on the left: ``─╮`` a lane begins, ``─┼`` or ``─┤`` ties into a lane that continues, ``─┴`` or ``─╯`` into one
that ends here, ``│`` passes by.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.beads.graph import reached
from helix_tui.core.beads.query import Query, matching, order_key, parse_query
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import STATES, URGENCY, Lane
from helix_tui.core.ground.time import NEVER, bead_instant

MAX_LANES = 6

VIEWS: tuple[ViewKind, ...] = ("dag", "tree", "lanes", "order")
FOLD_DONE = "fold:done"
FOLD_LOOSE = "fold:loose"
FOLD_REST = "fold:rest"
_NEVER_FOLDED: frozenset[Lane] = frozenset({"running", "ready", "parked"})


class GutterRow(Struct, frozen=True):
    """One bead with the cells of its gutter."""

    bead_id: str
    cells: str
    """One cell connecting to the glyph, then one per lane; trailing blanks are cut."""
    see: tuple[str, ...]
    """Prerequisites to be named: all but the nearest, and any whose edge has no lane."""


def order_rows(ids: Sequence[str], depends_on: Mapping[str, Iterable[str]], rank: Callable[[str], object]) -> list[str]:
    """A topological order of ``ids`` that keeps chains together.

    Connected groups stay together, the group with the best rank first; within a group, beads freed by the row above
    come first. Beads in a cycle come at the end of their group, by rank.
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
    # last freed first (-row), then by rank: chains stay together and lanes stay few
    heap = [(0, ranks[bead_id], bead_id) for bead_id in group if not open_needs[bead_id]]
    heapq.heapify(heap)
    ordered: list[str] = []
    placed: set[str] = set()
    while heap or len(ordered) < len(group):
        if not heap:  # a cycle: break it at its best-ranked bead
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
    lanes: list[str] = []  # the source of each lane, "" if free
    rows = []
    for row, bead_id in enumerate(order):
        # lanes of prerequisites: they join here, and end if nothing below waits on them
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


ViewKind = Literal["dag", "tree", "lanes", "order", "list"]


class ViewRow(Struct, frozen=True):
    """One row. ``key`` is unique in its view and stays the same over reloads."""

    key: str
    kind: Literal["bead", "missing", "fold", "heading"]
    bead_id: str = ""
    """The bead id; for ``missing``, one that is not in the tracker."""
    gutter: str = ""
    depth: int = 0
    see: tuple[str, ...] = ()
    """Further prerequisites, shown as ``↳ id``."""
    position: int = 0
    """Place in DDx's pick order, from 1; 0 when it would not be picked."""
    text: str = ""
    """Text of a fold or heading."""
    count: int = 0
    open: bool = True
    """For a heading, a fold, or a bead with children in the tree: whether its rows are shown."""
    context: bool = False
    """Whether it is shown only because something under it matches."""


class QueueView(Struct, frozen=True):
    """The rows of one view, and how many beads match of how many."""

    kind: ViewKind
    rows: tuple[ViewRow, ...]
    matching: int
    total: int


class Folding(Struct, frozen=True):
    """Which rows of a view are expanded or collapsed, and which beads are never folded."""

    unfolded: frozenset[str] = frozenset()
    """Keys of fold rows that are open: `FOLD_DONE`, `FOLD_LOOSE`, `FOLD_REST`, ``done:<parent>``."""
    collapsed: frozenset[str] = frozenset()
    """Ids of beads (tree) and titles of lanes whose children are hidden."""
    keep: frozenset[str] = frozenset()
    """Ids that stay visible, such as the selected bead while it closes."""


AS_IT_COMES = Folding()


def build_view(
    queue: Queue, kind: ViewKind = "dag", query: Query | str = "", folding: Folding = AS_IT_COMES
) -> QueueView:
    """The rows of a view.

    Args:
        queue: the classified tracker.
        kind: which view.
        query: filter, parsed or as text.
        folding: what is expanded, collapsed and kept.
    """
    parsed = parse_query(query) if isinstance(query, str) else query
    beads = queue.beads
    shown = matching(parsed, queue) if parsed.tests else list(beads)
    # these two have their own order: with another one they become a list
    if parsed.order and kind in ("dag", "order"):
        kind = "list"
    build = {"dag": _dag, "tree": _tree, "lanes": _lanes, "order": _order, "list": _sorted}[kind]
    rows = tuple(build(queue, shown, bool(parsed.tests), folding, ranked(parsed, queue)))
    return QueueView(kind, rows, len(shown), len(beads))


Rank = Callable[[str], tuple[Any, ...]]


def urgency(queue: Queue) -> Rank:
    """A sort key over ids: running beads, then DDx's next picks in order, then the rest by state."""
    position, beads = queue.position, queue.beads

    def key(bead_id: str) -> tuple[object, ...]:
        bead = beads[bead_id]
        created = bead_instant(bead.created_at)
        return (
            URGENCY[queue.state(bead_id)],
            position.get(bead_id, 0),
            bead.priority,
            NEVER if created is None else created,
            bead_id,
        )

    return key


def ranked(query: Query, queue: Queue) -> Rank:
    """A sort key over ids: the filter's order, then the most urgent first."""
    then = urgency(queue)
    if not query.order:
        return then
    first = order_key(query, queue)
    return lambda bead_id: (*first(bead_id), *then(bead_id))


def _row(queue: Queue, bead_id: str, **more: object) -> ViewRow:
    return ViewRow(bead_id, "bead", bead_id, position=queue.position.get(bead_id, 0), **more)  # type: ignore[arg-type]


def _fold(key: str, text: str, count: int, folding: Folding) -> ViewRow:
    return ViewRow(key, "fold", text=text, count=count, open=key in folding.unfolded)


def _dag(queue: Queue, shown: list[str], filtered: bool, folding: Folding, rank: Rank) -> Iterator[ViewRow]:
    graph, state = queue.graph, queue.state
    # a cancelled bead that others wait for blocks them forever: do not fold it with finished ones
    waited_on = {
        target
        for bead_id, targets in graph.depends_on.items()
        if queue.beads[bead_id].status not in TERMINAL
        for target in targets
        if target not in queue.beads or queue.beads[target].status != "closed"
    }
    live, done, loose = [], [], []
    for bead_id in shown:
        if bead_id in folding.keep:
            live.append(bead_id)
        elif queue.beads[bead_id].status in TERMINAL and bead_id not in waited_on:
            done.append(bead_id)
        elif filtered or STATES[state(bead_id)].lane in _NEVER_FOLDED or _linked(queue, bead_id):
            live.append(bead_id)
        else:
            loose.append(bead_id)
    if filtered and not live:
        live, done = done, []  # a filter for finished beads shows them
    yield from _gutter_rows(queue, live, with_missing=True)
    for key, ids, word in ((FOLD_DONE, done, "closed"), (FOLD_LOOSE, loose, "without links")):
        if not ids:
            continue
        yield _fold(key, _fold_words(queue, ids, word), len(ids), folding)
        if key in folding.unfolded:
            yield from _gutter_rows(queue, ids, with_missing=False)


def _fold_words(queue: Queue, ids: list[str], word: str) -> str:
    if word != "closed":
        return f"{len(ids):,} {word}"
    cancelled = sum(queue.beads[bead_id].status == "cancelled" for bead_id in ids)
    parts = [f"{len(ids) - cancelled:,} closed"] if len(ids) > cancelled else []
    return ", ".join([*parts, f"{cancelled:,} cancelled"] if cancelled else parts)


def _linked(queue: Queue, bead_id: str) -> bool:
    bead = queue.beads[bead_id]
    return bool(
        bead.dependencies
        or bead_id in queue.graph.dependents
        or bead_id in queue.graph.children
        or (bead.parent and bead.parent in queue.beads)
    )


def _gutter_rows(queue: Queue, ids: list[str], with_missing: bool) -> Iterator[ViewRow]:
    key = urgency(queue)
    missing = _missing_targets(queue, ids) if with_missing else {}
    rank: Callable[[str], object] = lambda i: min(map(key, missing[i])) if i in missing else key(i)  # noqa: E731
    edges = queue.graph.depends_on
    order = order_rows([*missing, *ids] if missing else ids, edges, rank)
    for row in draw(order, edges):
        if row.bead_id in missing:
            yield ViewRow(f"missing:{row.bead_id}", "missing", row.bead_id, row.cells)
        else:
            yield _row(queue, row.bead_id, gutter=row.cells, see=row.see)


def _missing_targets(queue: Queue, ids: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    shown = set(ids)
    for edge in queue.graph.dangling:
        if edge.bead_id in shown:
            found.setdefault(edge.missing, []).append(edge.bead_id)
    return found


def _tree(queue: Queue, shown: list[str], filtered: bool, folding: Folding, rank: Rank) -> Iterator[ViewRow]:
    beads = queue.beads
    matching = set(shown)
    # ancestors of a match are shown too, for context
    visible = set(queue.graph.lineage(*shown)) if filtered else set(matching)
    children: dict[str, list[str]] = {}
    roots: list[str] = []
    for bead_id in beads:
        if bead_id in visible:
            parent = beads[bead_id].parent
            (children.setdefault(parent, []) if parent in visible and parent != bead_id else roots).append(bead_id)
    roots.extend(_circled(roots, children, visible))
    top: dict[str, list[str]] = {"": roots, **children}
    best = _best_ranks(top, rank)
    for ids in top.values():
        ids.sort(key=best.__getitem__)
    stack: list[tuple[str, str, int]] = [("walk", "", -1)]
    done_rows: set[str] = set()
    while stack:
        action, bead_id, depth = stack.pop()
        if action == "fold":
            done = [child for child in top[bead_id] if child not in folding.keep and _folds(queue, child, top)]
            key = f"done:{bead_id}" if bead_id else FOLD_DONE
            words = _fold_words(queue, done, "closed")
            yield ViewRow(key, "fold", bead_id, depth=depth, text=words, count=len(done), open=key in folding.unfolded)
            continue
        if bead_id:
            # parents may form a cycle, and each row is shown once
            if bead_id in done_rows:
                continue
            done_rows.add(bead_id)
            kids = top.get(bead_id, [])
            closed = bead_id in folding.collapsed
            yield _row(
                queue,
                bead_id,
                depth=depth,
                see=beads[bead_id].depends_on if queue.state(bead_id) == "waiting_dependencies" else (),
                count=len(kids),
                open=not closed,
                context=bead_id not in matching,
            )
            if closed:
                continue
        kids = top.get(bead_id, [])
        done = [child for child in kids if not filtered and child not in folding.keep and _folds(queue, child, top)]
        key = f"done:{bead_id}" if bead_id else FOLD_DONE
        hidden = set(done)
        entries = [("walk", child, depth + 1) for child in kids if child not in hidden]
        if done:
            entries.append(("fold", bead_id, depth + 1))
            if key in folding.unfolded:
                entries.extend(("walk", child, depth + 1) for child in done)
        stack.extend(reversed(entries))


def _folds(queue: Queue, bead_id: str, children: dict[str, list[str]]) -> bool:
    """Whether a bead folds: it is finished and nothing unfinished is below it."""
    below = reached([bead_id], lambda each: children.get(each, ()))
    return all(queue.beads[each].status in TERMINAL for each in below)


def _circled(roots: list[str], children: dict[str, list[str]], visible: set[str]) -> list[str]:
    """Beads not reachable from a root because their parents form a cycle: shown at the top level."""
    placed: set[str] = set()

    def unplaced(bead_id: str) -> list[str]:
        return [child for child in children.get(bead_id, ()) if child not in placed]

    placed.update(reached(roots, unplaced))
    first_ids = []
    for bead_id in sorted(visible - placed):
        if bead_id not in placed:
            first_ids.append(bead_id)
            placed.update(reached([bead_id], unplaced))
    return first_ids


def _best_ranks(
    children: dict[str, list[str]], rank: Callable[[str], tuple[object, ...]]
) -> dict[str, tuple[object, ...]]:
    """Bead to the best rank of itself and all below it, so that an epic is placed by its next bead."""
    best: dict[str, tuple[object, ...]] = {}
    stack = [(bead_id, False) for bead_id in children[""]]
    while stack:
        bead_id, ready = stack.pop()
        kids = children.get(bead_id, ())
        if ready or not kids:
            best[bead_id] = min([rank(bead_id), *(best[kid] for kid in kids if kid in best)])
        elif bead_id not in best:
            best[bead_id] = rank(bead_id)
            stack.append((bead_id, True))
            stack.extend((kid, False) for kid in kids if kid not in best)
    return best


def _lanes(queue: Queue, shown: list[str], filtered: bool, folding: Folding, rank: Rank) -> Iterator[ViewRow]:
    lanes: dict[Lane, list[str]] = {row.lane: [] for row in STATES.values()}
    for bead_id in shown:
        lanes[STATES[queue.state(bead_id)].lane].append(bead_id)
    for title, ids in lanes.items():
        ids.sort(key=rank)
        done = title == "done"
        is_open = (FOLD_DONE in folding.unfolded or filtered) if done else title not in folding.collapsed
        key = FOLD_DONE if done else f"lane:{title}"
        yield ViewRow(key, "heading", text=title, count=len(ids), open=is_open)
        for bead_id in ids if is_open else (bead_id for bead_id in ids if bead_id in folding.keep):
            yield _row(queue, bead_id)


def _sorted(queue: Queue, shown: list[str], filtered: bool, folding: Folding, rank: Rank) -> Iterator[ViewRow]:
    """One row per bead, in the given order; finished beads fold unless the filter asks only for them."""
    done = [] if filtered else [i for i in shown if queue.beads[i].status in TERMINAL and i not in folding.keep]
    hidden = set(done)
    yield from (_row(queue, bead_id) for bead_id in sorted((i for i in shown if i not in hidden), key=rank))
    if done:
        yield _fold(FOLD_DONE, _fold_words(queue, done, "closed"), len(done), folding)
        if FOLD_DONE in folding.unfolded:
            yield from (_row(queue, bead_id) for bead_id in sorted(done, key=rank))


def _order(queue: Queue, shown: list[str], filtered: bool, folding: Folding, rank: Rank) -> Iterator[ViewRow]:
    wanted = set(shown)
    for bead_id in queue.ready:
        if bead_id in wanted:
            yield _row(queue, bead_id)
    rest = [bead_id for bead_id in shown if bead_id not in queue.position]
    yield from (_row(queue, bead_id) for bead_id in rest if bead_id in folding.keep)
    rest = [bead_id for bead_id in rest if bead_id not in folding.keep]
    open_ids = [bead_id for bead_id in rest if queue.beads[bead_id].status not in TERMINAL]
    done = [bead_id for bead_id in rest if queue.beads[bead_id].status in TERMINAL]
    if open_ids:
        yield _fold(FOLD_REST, f"{len(open_ids):,} not ready", len(open_ids), folding)
        if FOLD_REST in folding.unfolded:
            yield from (_row(queue, bead_id) for bead_id in sorted(open_ids, key=rank))
    if done:
        yield _fold(FOLD_DONE, _fold_words(queue, done, "closed"), len(done), folding)
        if FOLD_DONE in folding.unfolded:
            yield from (_row(queue, bead_id) for bead_id in sorted(done, key=rank))
