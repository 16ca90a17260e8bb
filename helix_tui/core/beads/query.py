"""The filter of beads: what `filter_language` can ask of a bead, and in which order it lists them.

A word without a field searches id and title.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from helix_tui.core.beads import filter_language
from helix_tui.core.beads.filter_language import (
    Completion,
    Field,
    Filter,
    Test,
    alternatives,
    compared,
    one_of,
    part_of,
    seconds,
    terms,
    whole_number,
    yes_no,
)
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import STATUSES, Bead
from helix_tui.core.beads.states import STATES, URGENCY
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, bead_instant


class Query(Filter[Bead, Queue], frozen=True):
    """A parsed filter, with the order that it asks for."""

    order: tuple[str, ...] = ()
    """Names of `ORDERS` to sort by, the main one first; ``-`` before a name reverses it."""


def matching(query: Query, queue: Queue) -> list[str]:
    """The ids of a queue that match a filter."""
    return [bead_id for bead_id, bead in queue.beads.items() if query.matches(bead, queue)]


def parse_query(text: str) -> Query:
    """Parse a filter; never fails."""
    found = filter_language.parse(text, FIELDS, _word)
    orders = [value for _, name, _, value in terms(text) if name == "order"]
    return Query(text, found.tests, found.problem, found.words, _order(orders[-1]) if orders else ())


def complete(text: str, cursor: int, queue: Queue, limit: int = 12) -> list[Completion]:
    """Completions of the term at the cursor, the likeliest first."""
    return filter_language.complete(text, cursor, FIELDS, queue, limit)


def _ordering(sign: str, value: str) -> None:
    """An order tests nothing; an unknown one is a problem, but a prefix of a name is still being typed."""
    names = [name.lstrip("-") for name in value.lower().split(",")]
    unknown = next((name for name in names if not any(known.startswith(name) for known in ORDERS)), None)
    if unknown is not None:
        raise ValueError(f"no order “{clean_line(unknown, 20)}”; there are {', '.join(ORDERS)}")


def _order(value: str) -> tuple[str, ...]:
    return tuple(name for name in value.lower().split(",") if name.removeprefix("-") in ORDERS)


def with_order(text: str, order: str) -> str:
    """A filter with its order replaced, or removed if ``order`` is empty."""
    kept = [word for word in text.split() if not word.lower().startswith("order:")]
    return " ".join([*kept, f"order:{order}"] if order else kept)


def order_key(query: Query, queue: Queue) -> Callable[[str], tuple[object, ...]]:
    """A sort key over ids for the orders of a filter, the main one first."""
    reads = [(ORDERS[name.removeprefix("-")].read, name.startswith("-")) for name in query.order]

    def key(bead_id: str) -> tuple[object, ...]:
        bead = queue.beads[bead_id]
        return tuple([_Turned(read(bead, queue)) if turned else read(bead, queue) for read, turned in reads])

    return key


class _Turned(Struct, frozen=True):
    """A value that sorts in reverse."""

    value: Any

    def __lt__(self, other: _Turned) -> bool:
        return bool(other.value < self.value)


def _word(wanted: str) -> Test[Bead, Queue]:
    return lambda bead, queue: wanted in bead.title.lower() or wanted in bead.id.lower()


def _label(sign: str, value: str) -> Test[Bead, Queue]:
    """``label:area:ui`` is that label; ``label:area:`` and ``label:area:*`` are all that begin so."""
    wanted = alternatives(value)
    exact = frozenset(wanted)
    prefixes = tuple(part.rstrip("*") for part in wanted if part.endswith((":", "*")))

    def test(bead: Bead, queue: Queue) -> bool:
        return any(
            label.lower() in exact or (bool(prefixes) and label.lower().startswith(prefixes)) for label in bead.labels
        )

    return test


def _age(read: Callable[[Bead], str]) -> Callable[[Bead, Queue], float | None]:
    def age(bead: Bead, queue: Queue) -> float | None:
        instant = bead_instant(read(bead))
        return None if instant is None else (queue.as_of - instant) / NS

    return age


def _missing(bead: Bead, queue: Queue) -> bool:
    return any(target not in queue.beads for target in bead.depends_on)


def _seen(read: Callable[[Bead], Iterable[str]]) -> Callable[[Queue], Iterable[tuple[str, str]]]:
    def values(queue: Queue) -> Iterable[tuple[str, str]]:
        values = Counter(value for bead in queue.beads.values() for value in read(bead) if value)
        return [(clean_line(value, 60), counted(number, "bead")) for value, number in values.most_common(200)]

    return values


def _words_of(words: Iterable[str]) -> Callable[[Queue], Iterable[tuple[str, str]]]:
    fixed = [(word, "") for word in words]
    return lambda queue: fixed


def _parents(queue: Queue) -> Iterable[tuple[str, str]]:
    return [
        (parent, clean_line(queue.beads[parent].title, 60)) for parent in queue.graph.children if parent in queue.beads
    ]


_YES_NO = _words_of(("yes", "no"))

FIELDS: dict[str, Field[Bead, Queue]] = {
    "status": Field(
        "as the record says: open, closed …",
        "status:open,blocked",
        one_of(lambda bead, queue: bead.status),
        lambda queue: [*((status, "") for status in sorted(STATUSES)), *((s, "") for s in queue.unknown_statuses())],
    ),
    "state": Field(
        "as DDx would treat it: ready, retry_cooldown …",
        "state:retry_cooldown",
        one_of(lambda bead, queue: queue.state(bead.id)),
        _words_of(STATES),
    ),
    "label": Field("a label; area:* for all of a kind", "label:area:*", _label, _seen(lambda bead: bead.labels)),
    "p": Field("priority, 0 is highest: p<=1", "p<=1", compared(lambda b, q: b.priority, whole_number), ordered=True),
    "type": Field(
        "issue type: task, bug, epic …",
        "-type:epic",
        one_of(lambda bead, queue: bead.issue_type),
        _seen(lambda bead: (bead.issue_type,)),
    ),
    "ready": Field("yes: DDx would pick it", "ready:yes", yes_no(lambda b, q: b.id in q.position), _YES_NO),
    "running": Field("yes: a worker is on it", "running:yes", yes_no(lambda b, q: b.id in q.claims.running), _YES_NO),
    "parent": Field("children of this bead", "parent:0e268fe3", part_of(lambda bead, queue: bead.parent), _parents),
    "waits": Field(
        "waits on this bead",
        "waits:0e268fe3",
        part_of(lambda bead, queue: " ".join(bead.depends_on)),
        lambda queue: [(target, "") for target in queue.graph.dependents],
    ),
    "id": Field("part of the id", "id:0e26", part_of(lambda bead, queue: bead.id)),
    "owner": Field(
        "who holds or held it", "owner:ddx", one_of(lambda bead, queue: bead.owner), _seen(lambda bead: (bead.owner,))
    ),
    "spec": Field(
        "part of the spec id",
        "spec:FEAT-002",
        part_of(lambda bead, queue: bead.spec_id),
        _seen(lambda bead: (bead.spec_id,)),
    ),
    "unblocks": Field(
        "how many beads closing it makes ready",
        "unblocks>=2",
        compared(lambda bead, queue: queue.unblock_counts.get(bead.id, 0), whole_number),
        ordered=True,
    ),
    "holds": Field(
        "how many beads wait on it, directly or through others",
        "holds>=2",
        compared(lambda bead, queue: queue.graph.chains.holds_up.get(bead.id, 0), whole_number),
        ordered=True,
    ),
    "path": Field(
        "yes: part of the longest chain of beads, the critical path",
        "path:yes",
        yes_no(lambda bead, queue: queue.graph.chains.on_critical_path(bead.id)),
        _YES_NO,
    ),
    "missing": Field("yes: waits on a bead that does not exist", "missing:yes", yes_no(_missing), _YES_NO),
    "age": Field(
        "since it was created: age<3d", "age<3d", compared(_age(lambda bead: bead.created_at), seconds), ordered=True
    ),
    "updated": Field(
        "since its last change: updated<1h",
        "updated<1h",
        compared(_age(lambda bead: bead.updated_at), seconds),
        ordered=True,
    ),
    "body": Field(
        "anywhere in the record, description and notes too",
        'body:"federated search"',
        part_of(lambda bead, queue: bead.raw.decode("utf-8", "replace")),
    ),
    "order": Field(
        "sort: order:unblocks,-age puts what unblocks most first, then the oldest",
        "order:unblocks,-age",
        _ordering,
        lambda queue: [(name, order.help) for name, order in ORDERS.items()],
        turned=True,
    ),
}
"""What can be asked of a bead, in display order."""


class BeadOrder(Struct, frozen=True):
    """A sort order, most wanted first; ``-`` reverses it."""

    help: str
    read: Callable[[Bead, Queue], Any]


def _newest(text: str) -> int:
    return -(bead_instant(text) or 0)


ORDERS: dict[str, BeadOrder] = {
    "pick": BeadOrder("as DDx will pick", lambda bead, queue: queue.position.get(bead.id, len(queue.beads) + 1)),
    "p": BeadOrder("P0 first", lambda bead, queue: bead.priority),
    "unblocks": BeadOrder(
        "what makes the most beads ready first", lambda bead, queue: -queue.unblock_counts.get(bead.id, 0)
    ),
    "holds": BeadOrder(
        "what blocks most beads first", lambda bead, queue: -queue.graph.chains.holds_up.get(bead.id, 0)
    ),
    "path": BeadOrder(
        "along the longest chains first", lambda bead, queue: _along_chains(queue.graph.chains.chain_through(bead.id))
    ),
    "age": BeadOrder("the newest first; -age: the oldest", lambda bead, queue: _newest(bead.created_at)),
    "updated": BeadOrder("the last changed first", lambda bead, queue: _newest(bead.updated_at)),
    "title": BeadOrder("A to Z", lambda bead, queue: bead.title.lower()),
    "state": BeadOrder("what runs, is ready, waits for a person …", lambda bead, queue: URGENCY[queue.state(bead.id)]),
    # ~ sorts after every ASCII letter, so beads without a label come last
    "label": BeadOrder("by the first label", lambda bead, queue: bead.labels[0].lower() if bead.labels else "~"),
    "epic": BeadOrder("by parent bead", lambda bead, queue: bead.parent or "~"),
    "id": BeadOrder("by id", lambda bead, queue: bead.id),
}
"""The orders offered by ``order:`` and by the sort key."""


def _along_chains(place: tuple[int, int]) -> tuple[int, int]:
    return -place[1], place[0]
