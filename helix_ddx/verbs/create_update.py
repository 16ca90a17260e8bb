"""``bead create``, ``update``, ``queue`` and ``dep``: create, change, claim, release, rank and link records."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from helix_ddx.files import go_json, instant_of, loads, second, stamp
from helix_ddx.flags import Refused
from helix_ddx.store.events import add_inline, new_event
from helix_ddx.store.git import resolve_commit, writing
from helix_ddx.store.holders import change_row, claims_of, remove_lease, run_hook, write_lease
from helix_ddx.store.places import KNOWN, TrackerRow
from helix_ddx.store.tracker import Beads, StatusChange, check_row, transition, write_whole
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs import create_update
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead, UnreadableLine

CLAIM_KEYS = ("claimed-at", "claimed-pid", "claimed-machine", "claimed-session", "claimed-worktree")
PROTECTED = frozenset({"events", "session_id", *CLAIM_KEYS})
"""Fields that ``--unset`` does not remove."""

RANK_KEYS = ("queue-rank", "queue_rank")
"""What a rank is called, and what it was called: head writes the first in place of both."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")
_TEXT_FIELDS = ("acceptance", "parent", "description", "notes")
_SET_FIELDS = frozenset({"parent", "description", "notes", "acceptance", "issue_type"})
"""DDx's own fields that ``--set`` reaches; the others it loses without a word, and so do we."""

STEP = 10
"""Distance between ranks where a whole priority is numbered anew."""

MAX_TREE = 200_000
"""Lines of a tree at most: where many paths lead to one bead, DDx draws it once for each."""


def create(call: VerbCall) -> None:
    """``bead create``: print the id of a new bead."""
    row = _new_row(call)
    check_row(row)
    if call.env.get("DDX_ACTOR_ISSUE_TYPE") == "operator-prompt" == row.text("issue_type"):
        raise Refused("bead: operator-prompt bead may not mutate another operator-prompt bead")
    run_hook(call, "validate-bead-create", row.line())
    bead_id = row.text("id")
    with writing(call, f"create {bead_id}") as beads:
        if bead_id in beads.beads:
            raise Refused(f"bead: duplicate id: {bead_id}")
        bead = row.bead()
        for target in bead.depends_on:
            if target not in beads.beads:
                raise Refused(f"bead: dependency not found: {target}")
        create_update.reject_ancestors(beads, bead, bead.depends_on)
        beads.put(row, new=True)
        beads.after.append(lambda: _mark_lifecycle(call))
    call.say(bead_id)


def _new_row(call: VerbCall) -> TrackerRow:
    given, now = call.given, call.clock()
    row = TrackerRow({})
    row.put("id", call.workspace.prefix() + os.urandom(4).hex())
    row.put("title", given.words[0])
    row.put("status", "open")
    row.put("priority", given.number("priority") if given.has("priority") else 0)
    row.put("issue_type", given.text("type") or "task")
    row.put("created_at", stamp(now))
    row.put("updated_at", stamp(now))
    row.put("schema_version", 0)
    row.put_list("labels", _labels(given.text("labels")))
    for name in ("acceptance", "description", "parent"):
        row.put_text(name, given.text(name))
    targets = dict.fromkeys(target.strip() for target in given.all("depends-on"))
    bead_id = row.text("id")
    row.put_list("dependencies", [create_update.edge(bead_id, target, now) for target in targets if target])
    for name, value in _pairs(call):
        _set_extra(row, name, value)
    return row


def _labels(text: str) -> list[bytes]:
    return [go_json(label).encode() for label in text.split(",")] if text else []


def _mark_lifecycle(call: VerbCall) -> None:
    """Head notes beside the tracker that its statuses are of the newer kind."""
    path = call.workspace.ddx / "lifecycle-schema.json"
    if path.exists():
        return
    text = (
        f'{{\n  "applied_at": "{second(call.clock())}",\n  "schema": "bead-lifecycle",\n'
        '  "source": "ddx bead migrate --lifecycle",\n  "version": 1\n}\n'
    )
    write_whole(path, text.encode())


def update(call: VerbCall) -> None:
    """``bead update``: claim, unclaim, or change fields."""
    # ddx ignores every other flag then
    if call.given.on("claim"):
        claim(call)
    elif call.given.on("unclaim"):
        unclaim(call)
    else:
        _change_fields(call)


def _change_fields(call: VerbCall) -> None:
    for name in call.given.all("unset"):
        if name in PROTECTED:
            raise Refused(f"cannot unset protected bead field: {name}")
    pairs = [(name, _checked(call, name, value)) for name, value in _pairs(call)]
    blocker = _blocker(call, pairs)
    with writing(call, f"update {call.id}") as beads:
        if call.given.text("status") == "closed":
            create_update.reject_open_dependencies(beads, call.id)
        change_row(call, beads, call.id, lambda row: _apply(call, row, pairs, blocker))


def _apply(call: VerbCall, row: TrackerRow, pairs: list[tuple[str, str]], blocker: str) -> None:
    given = call.given
    if given.has("title"):
        row.put("title", given.text("title"))
    if given.has("priority"):
        row.put("priority", given.number("priority"))
    if given.has("labels"):
        row.put_list("labels", _labels(given.text("labels")))
    if given.has("assignee"):
        row.put_text("owner", given.text("assignee"))
    for name in _TEXT_FIELDS:
        if given.has(name):
            row.put_text(name, given.text(name))
    for name, value in pairs:
        if name in _SET_FIELDS:
            row.put_text(name, value)
        else:
            _set_extra(row, name, value)
    for name in given.all("unset"):
        if name not in KNOWN:
            row.drop(*(RANK_KEYS if name in RANK_KEYS else (name,)))
    if given.has("status"):
        _set_status(call, row, given.text("status"), blocker)
    if given.has("reject-preserved"):
        _reject(call, row, given.text("reject-preserved").strip())


def _reject(call: VerbCall, row: TrackerRow, rev: str) -> None:
    """Note in the history that a kept commit is not to be landed."""
    if not rev:
        raise Refused("invalid --reject-preserved value: empty value")
    words = {"summary": f"rejected preserved result rev {rev}", "body": f"result_rev={rev}"}
    add_inline(row, new_event("preserved-result-rejected", call.clock(), source="ddx bead update", **words))


def _set_status(call: VerbCall, row: TrackerRow, status: str, blocker: str) -> None:
    before = row.text("status")
    transition(row, status, StatusChange(blocker_reason=blocker if status == "blocked" else ""))
    if call.given.text("blocked-by-ref") and status == "blocked":
        repository, _, bead_id = call.given.text("blocked-by-ref").partition("#")
        row.put("lifecycle-cross-repo-blocker-ref", {"bead": bead_id, "repo": repository})
    if (before, status) == ("proposed", "open"):
        body = {"from_status": before, "operator_required": True, "source": "ddx bead update", "to_status": status}
        summary = "operator accepted proposed bead"
        event = new_event("triaged", call.clock(), summary=summary, body=go_json(body), source="ddx bead update")
        add_inline(row, event)


def _blocker(call: VerbCall, pairs: list[tuple[str, str]]) -> str:
    """Why a bead is blocked: from its own flag, from ``--set``, or from the bead it waits for elsewhere."""
    reason = call.given.text("external-blocker-reason")
    if not reason:
        reason = next((value for name, value in pairs if name == "lifecycle-external-blocker-reason"), "")
    reference = call.given.text("blocked-by-ref")
    if not reference:
        return reason
    repository, _, bead_id = reference.partition("#")
    if not repository.strip() or not bead_id.strip():
        raise Refused("cross-repo blocker ref requires non-empty repo and bead id")
    return reason or f"blocked by {reference}"


def _pairs(call: VerbCall) -> list[tuple[str, str]]:
    pairs = []
    for text in call.given.all("set"):
        name, equals, value = text.partition("=")
        if not equals:
            raise Refused(f"--set requires key=value format, got: {text}")
        pairs.append((name, value.replace("\r\n", "\n")))  # ddx reads the flag as CSV
    return pairs


def _checked(call: VerbCall, name: str, value: str) -> str:
    if name != "closing_commit_sha":
        return value
    try:
        found = resolve_commit(call, value) if value else ""
    except Refused as problem:
        raise Refused(f"invalid closing_commit_sha {go_json(value)}: {problem}") from None
    if not found:
        raise Refused(f"invalid closing_commit_sha {go_json(value)}: empty value")
    return found


def _set_extra(row: TrackerRow, name: str, value: str) -> None:
    """Write a custom field: true and false become booleans; everything else except a rank stays text."""
    if name in KNOWN or name == "schema_version":
        return
    if value in ("true", "false"):
        row.put(name, value == "true")
    elif name in RANK_KEYS:
        if not _WHOLE.match(value.strip()):
            raise Refused(f"queue-rank must be an integer, got: {go_json(value)}")
        row.drop(*RANK_KEYS)
        row.put("queue-rank", int(value))
    else:
        row.put(name, value)


def claim(call: VerbCall) -> None:
    """Take a bead: a lease beside the record says so."""
    owner = call.given.text("assignee") or call.assignee()
    now = call.clock()
    with writing(call, f"claim {call.id}") as beads:
        bead = beads.bead(call.id)
        create_update.reject_open_dependencies(beads, call.id)
        # in_progress is no refusal by itself: its worker may be gone
        if bead.status not in ("open", "in_progress") or _is_held(call, bead):
            raise Refused(f"bead: cannot claim {call.id} from status {bead.status}")
        change_row(call, beads, call.id, lambda row: _take(row, owner))
        beads.after.append(lambda: write_lease(call, call.id, owner, now))


def _is_held(call: VerbCall, bead: Bead) -> bool:
    """Whether the bead is held, by the rule of readiness."""
    queue = classify({bead.id: bead}, now=call.clock(), era="head", claims=claims_of(call))
    return any(reason.kind == "claimed" for reason in queue.standing(bead.id).reasons)


def _take(row: TrackerRow, owner: str) -> None:
    row.put_text("owner", owner)
    transition(row, "in_progress")
    row.drop(*CLAIM_KEYS, "work-heartbeat-at")


def unclaim(call: VerbCall) -> None:
    """Release a bead; a closed one stays closed."""
    with writing(call, f"unclaim {call.id}") as beads:
        change_row(call, beads, call.id, lambda row: release(call, row))
        beads.after.append(lambda: remove_lease(call, call.id))


def release(call: VerbCall, row: TrackerRow) -> None:
    """Clear every trace of a claim from a record."""
    if row.text("status") == "in_progress":
        transition(row, "open")
    row.drop("owner")
    clear_claim(row)


def clear_claim(row: TrackerRow) -> None:
    """Remove the fields in which a record says who holds it."""
    row.drop(*CLAIM_KEYS, "work-heartbeat-at")


def top(call: VerbCall) -> None:
    """``bead queue top``: before all others of its priority."""
    with writing(call, f"queue top {call.id}") as beads:
        beads.bead(call.id)
        _place(call, beads, call.id, 0)


def move(call: VerbCall) -> None:
    """``bead queue move``: next to another bead of the same priority."""
    before, after = call.given.text("before"), call.given.text("after")
    if not before and not after:
        raise Refused("must specify exactly one of --before or --after")
    if before and after:
        raise Refused("cannot specify both --before and --after")
    with writing(call, f"queue move {call.id}") as beads:
        bead, other = beads.bead(call.id), beads.bead(before or after)
        if bead.priority != other.priority:
            raise Refused(
                f"bead: queue move limited to one priority bucket: {bead.id} (P{bead.priority}) "
                f"and {other.id} (P{other.priority})"
            )
        others = [each.id for each in _bucket(beads, bead.priority) if each.id != bead.id]
        if other.id not in others:
            raise Refused(f"bead: queue move limited to one priority bucket: {bead.id} and {other.id}")
        _place(call, beads, bead.id, others.index(other.id) + (not before))


def clear(call: VerbCall) -> None:
    """``bead queue clear``: back to the natural order."""
    with writing(call, f"queue clear {call.id}") as beads:
        change_row(call, beads, call.id, lambda row: row.drop(*RANK_KEYS))


def _bucket(beads: Beads, priority: int) -> list[Bead]:
    """Every bead of a priority, in queue order."""
    found = [bead for bead in beads.beads.values() if bead.priority == priority]
    return sorted(
        found,
        key=lambda bead: (bead.queue_rank is None, bead.queue_rank or 0, instant_of(bead.created_at), bead.id.encode()),
    )


def _place(call: VerbCall, beads: Beads, bead_id: str, place: int) -> None:
    bead = beads.bead(bead_id)
    others = [each for each in _bucket(beads, bead.priority) if each.id != bead_id]
    rank = _free_rank(others[:place], others[place:])
    if rank is not None:
        _rank(call, beads, bead_id, rank)
        return
    for number, each in enumerate([*others[:place], bead, *others[place:]]):
        _rank(call, beads, each.id, number * STEP)


def _free_rank(before: Sequence[Bead], after: Sequence[Bead]) -> int | None:
    """A rank that fits without touching any other bead, or None where none does."""
    # ranked beads go before unranked ones: whatever is to stay ahead needs a rank first
    if any(bead.queue_rank is None for bead in before):
        return None
    low = before[-1].queue_rank if before else None
    high = next((bead.queue_rank for bead in after if bead.queue_rank is not None), None)
    if low is None:
        return 0 if high is None else high - 1
    return low + 1 if high is None or low + 1 < high else None


def _rank(call: VerbCall, beads: Beads, bead_id: str, rank: int) -> None:
    def change(row: TrackerRow) -> None:
        row.drop(*RANK_KEYS)
        row.put("queue-rank", rank)

    change_row(call, beads, bead_id, change)


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
