"""``bead dep``: what waits on what, and what may not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from helix_ddx.files import go_json, loads, second, stamp
from helix_ddx.flags import Refused
from helix_ddx.store.git import writing
from helix_ddx.store.holders import change_row
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import Beads
from helix_ddx.store.workspace import VerbCall
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.record import Bead, UnreadableLine

MAX_TREE = 200_000
"""Lines of a tree at most: where many paths lead to one bead, DDx draws it once for each."""


def edge(bead_id: str, target: str, at: int) -> bytes:
    """One dependency as a record holds it; its fields stand in DDx's order, not sorted."""
    fields = {"issue_id": bead_id, "depends_on_id": target, "type": "blocks", "created_at": second(at)}
    return go_json(fields).encode()


def add(call: VerbCall) -> None:
    """``bead dep add``: a dependency that is there already is no error."""
    bead_id, target = call.given.words
    with writing(call, f"dep-add {bead_id}") as beads:
        bead = beads.bead(bead_id)
        if target not in beads.beads:
            raise Refused(f"bead: dependency not found: {target}")
        if bead_id == target:
            raise Refused("bead: cannot depend on self")
        # nothing is put, so nothing is written
        if target in bead.depends_on:
            return
        if call.head:
            reject_ancestors(beads, bead, (target,))
        if _meets_a_circle(beads.beads, bead_id, target):
            raise Refused(f"bead: circular dependency: {bead_id} -> {target}")
        row = beads.row(bead_id)
        try:
            row.put_list("dependencies", [*row.items("dependencies"), edge(bead_id, target, call.clock())])
        except UnreadableLine as problem:
            raise Refused(f"bead: {bead_id}: {problem}; nothing was written") from None
        row.put("updated_at", stamp(call.clock()))
        beads.put(row)


def remove(call: VerbCall) -> None:
    """``bead dep remove``: a dependency that is not there is no error."""
    bead_id, target = call.given.words

    def drop(row: TrackerRow) -> None:
        row.put_list("dependencies", [item for item in row.items("dependencies") if _target(item) != target])

    with writing(call, f"dep-remove {bead_id}") as beads:
        change_row(call, beads, bead_id, drop)


def _target(item: bytes) -> str:
    value = loads(item)
    return str(value.get("depends_on_id", "")) if isinstance(value, dict) else ""


def _meets_a_circle(beads: Mapping[str, Bead], start: str, new: str) -> bool:
    """Whether a walk along the dependencies, the new one among them, comes back to where it has been."""
    on_path = {start}
    seen = {start}
    # a stack of its own, for a chain may be longer than Python recurses
    walk = [(start, iter((*beads[start].depends_on, new)))]
    while walk:
        place, targets = walk[-1]
        for target in targets:
            if target in on_path:
                return True
            if target in seen:
                continue
            seen.add(target)
            on_path.add(target)
            other = beads.get(target)
            walk.append((target, iter(other.depends_on if other else ())))
            break
        else:
            on_path.discard(place)
            walk.pop()
    return False


def parent_chain(beads: Mapping[str, Bead], parent: str) -> tuple[list[str], bool]:
    """The ids above a bead, nearest first, and whether they go in a circle."""
    chain: list[str] = []
    while parent:
        again = parent in chain
        chain.append(parent)
        if again:
            return chain, True
        above = beads.get(parent)
        parent = above.parent if above else ""
    return chain, False


def reject_ancestors(beads: Beads, bead: Bead, targets: Iterable[str]) -> None:
    """Refuse a dependency on an ancestor.

    Raises:
        Refused: it would.
    """
    chain, circle = parent_chain(beads.beads, bead.parent)
    if circle:
        raise Refused(f"bead: parent cycle detected: {' -> '.join(chain)}")
    for target in targets:
        if target in chain:
            raise Refused(
                f"bead: dependency {target} is an ancestor in the parent chain for {bead.id}: {' -> '.join(chain)}"
            )


def open_dependencies(beads: Mapping[str, Bead], bead: Bead) -> list[str]:
    """Ids that a bead waits for and that are not closed, sorted."""
    open_ids = []
    for target in bead.depends_on:
        other = beads.get(target)
        if other is None or other.status != "closed":
            open_ids.append(target)
    return sorted(open_ids)


def reject_open_dependencies(beads: Beads, bead_id: str) -> None:
    """Head neither claims nor closes what still waits.

    Raises:
        Refused: it waits, or there is no such bead.
    """
    waiting = open_dependencies(beads.beads, beads.bead(bead_id))
    if waiting:
        raise Refused(f"bead: unclosed blocking dependencies: bead {bead_id}: {', '.join(waiting)}")


def tree(call: VerbCall) -> None:
    """``bead dep tree``: under each bead those that wait for it."""
    beads = {**call.store.archived(), **call.store.read().beads}
    children = {target: sorted(set(ids)) for target, ids in Graph(beads).dependents.items()}
    if call.given.words:
        root = call.id
        if root not in beads:
            raise Refused(f"bead: not found: {root}")
        for edge in beads[root].dependencies:
            if edge.depends_on_id in beads:
                call.say(_line(beads[edge.depends_on_id]))
        call.say(_line(beads[root]))
        _draw(call, beads, children, [(child, "  ", True, (root,)) for child in children.get(root, ())])
        return
    roots = sorted(bead.id for bead in beads.values() if not bead.dependencies)
    _draw(call, beads, children, [(root, "", True, ()) for root in roots])


def _draw(
    call: VerbCall,
    beads: Mapping[str, Bead],
    children: Mapping[str, list[str]],
    start: list[tuple[str, str, bool, tuple[str, ...]]],
) -> None:
    stack = start[::-1]
    drawn = 0
    while stack:
        bead_id, prefix, last, above = stack.pop()
        drawn += 1
        if drawn > MAX_TREE:
            call.warn(f"bead: the tree has more than {MAX_TREE} lines; the rest is left out")
            return
        branch = ("└── " if last else "├── ") if prefix else ""
        call.say(f"{prefix}{branch}{_line(beads[bead_id])}")
        # a cycle is drawn to where it closes
        if bead_id in above:
            continue
        deeper = prefix + ("    " if last else "│   ") if prefix else ""
        below = children.get(bead_id, [])
        stack += [(child, deeper, place == len(below) - 1, (*above, bead_id)) for place, child in enumerate(below)][
            ::-1
        ]


def _line(bead: Bead) -> str:
    return f"{bead.id} [{bead.status}] {bead.title}"
