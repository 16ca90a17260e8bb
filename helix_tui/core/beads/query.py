"""The filter language: ``status:open -label:docs p<=1 ready:yes "two words"``.

Terms are joined by *and*; ``-`` before a term negates it; a comma inside a value means *or*. A word without a field
searches id and title. A term that cannot be parsed is searched for as text and reported in ``Query.problem``: a typing
error never hides beads silently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import STATUSES, Bead
from helix_tui.core.beads.states import STATES, URGENCY
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, bead_instant

_Test = Callable[[Bead, Queue], bool]

_TOKEN = re.compile(r'(-?)(?:([A-Za-z_-]+)(<=|>=|:|=|<|>))?("[^"]*"?|[^\s"]*)')
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|d|w)\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TRUE = frozenset({"yes", "y", "true", "1"})
_FALSE = frozenset({"no", "n", "false", "0"})


class Query(Struct, frozen=True):
    """A parsed filter. The empty one matches everything."""

    text: str
    tests: tuple[_Test, ...] = ()
    """One per term; if empty, every bead passes."""
    problem: str = ""
    """What could not be parsed and what would be, in one sentence; else empty."""
    words: tuple[str, ...] = ()
    """Plain search words in lower case, for a list to highlight."""
    order: tuple[str, ...] = ()
    """Names of `ORDERS` to sort by, the main one first; ``-`` before a name reverses it."""

    def matches(self, bead: Bead, queue: Queue) -> bool:
        """Whether a bead matches every term."""
        return all(test(bead, queue) for test in self.tests)


def matching(query: Query, queue: Queue) -> list[str]:
    """The ids of a queue that match a filter."""
    return [bead_id for bead_id, bead in queue.beads.items() if query.matches(bead, queue)]


class Completion(Struct, frozen=True):
    """A completion: ``text`` replaces the input from ``replace_from`` to the cursor."""

    text: str
    replace_from: int
    help: str


def parse_query(text: str) -> Query:
    """Parse a filter; never fails."""
    tests: list[_Test] = []
    words: list[str] = []
    problem = ""
    order: tuple[str, ...] = ()
    for token in _TOKEN.finditer(text):
        minus, name, operator, value = token.groups()
        if not token.group().strip():
            continue
        value = value.strip('"')
        try:
            if (name or "").lower() == "order":
                order = _order(value)
                continue
            test = _term((name or "").lower(), operator or "", value)
        except ValueError as error:
            problem = problem or str(error)
            literal = token.group().lstrip("-").replace('"', "")
            test = _word(literal)
        if test is None:
            continue  # a term that is still being typed
        if not name and not minus:
            words.append(value.lower())
        tests.append(_negated(test) if minus else test)
    return Query(text, tuple(tests), problem, tuple(words), order)


def complete(text: str, cursor: int, queue: Queue, limit: int = 12) -> list[Completion]:
    """Completions of the term at the cursor, the likeliest first."""
    start = max(text.rfind(" ", 0, cursor), -1) + 1
    term = text[start:cursor]
    if term.startswith("-"):
        start, term = start + 1, term[1:]
    name, colon, typed = term.partition(":")
    if not colon:
        found = [Completion(key, start, field.help) for key, field in _COMPLETED.items() if key.startswith(term)]
        return found[:limit] if term else found
    field = _FIELDS.get(name.lower())
    if field is None:
        return []
    # a comma means or: complete the last value
    typed = typed.rpartition(",")[2]
    typed = typed.removeprefix("-") if field is _FIELDS["order"] else typed
    begin = cursor - len(typed)
    values = [(value, help_) for value, help_ in field.values(queue) if value.lower().startswith(typed.lower())]
    return [
        Completion(f'"{value}"' if " " in value else value, begin, help_)
        for value, help_ in values[:limit]
        if value != typed
    ]


class FieldHelp(Struct, frozen=True):
    """A field as shown in help: what it matches, and a valid example."""

    name: str
    help: str
    example: str


def fields() -> list[FieldHelp]:
    """Every field of the language, in display order."""
    return [FieldHelp(name, field.help, _EXAMPLES[name]) for name, field in _FIELDS.items()]


def _term(name: str, operator: str, value: str) -> _Test | None:
    if not name:
        return _word(value) if value else None
    field = _FIELDS.get(name)
    if field is None:
        raise ValueError(f"no field “{clean_line(name, 20)}”; there are {', '.join(_FIELDS)}")
    if not value:
        return None
    if operator in ("<", ">", "<=", ">=") and not field.ordered:
        raise ValueError(f"“{name}” cannot be compared; write {name}:{clean_line(value, 20)}")
    return field.make(operator or ":", value)


def _order(value: str) -> tuple[str, ...]:
    names = [name for name in value.lower().split(",") if name.lstrip("-")]
    unknown = next((name for name in names if name.removeprefix("-") not in ORDERS), None)
    # a prefix of a name is still being typed
    if unknown is not None and not any(name.startswith(unknown.removeprefix("-")) for name in ORDERS):
        raise ValueError(f"no order “{clean_line(unknown, 20)}”; there are {', '.join(ORDERS)}")
    return tuple(name for name in names if name.removeprefix("-") in ORDERS)


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


def _word(value: str) -> _Test:
    wanted = value.lower()
    return lambda bead, queue: wanted in bead.title.lower() or wanted in bead.id.lower()


def _negated(test: _Test) -> _Test:
    return lambda bead, queue: not test(bead, queue)


class _Field(Struct, frozen=True):
    help: str
    make: Callable[[str, str], _Test]
    values: Callable[[Queue], Iterable[tuple[str, str]]] = lambda queue: ()
    ordered: bool = False


def _one_of(read: Callable[[Bead, Queue], str]) -> Callable[[str, str], _Test]:
    def make(operator: str, value: str) -> _Test:
        wanted = tuple(part.lower() for part in value.split(",") if part)
        return lambda bead, queue: read(bead, queue).lower() in wanted

    return make


def _part_of(read: Callable[[Bead, Queue], str]) -> Callable[[str, str], _Test]:
    def make(operator: str, value: str) -> _Test:
        wanted = tuple(part.lower() for part in value.split(",") if part)

        def test(bead: Bead, queue: Queue) -> bool:
            have = read(bead, queue).lower()
            return any(part in have for part in wanted)

        return test

    return make


def _label(operator: str, value: str) -> _Test:
    """``label:area:ui`` is that label; ``label:area:`` and ``label:area:*`` are all that begin so."""
    wanted = tuple(part.lower() for part in value.split(",") if part)
    exact = frozenset(wanted)
    prefixes = tuple(part.rstrip("*") for part in wanted if part.endswith((":", "*")))

    def test(bead: Bead, queue: Queue) -> bool:
        return any(
            label.lower() in exact or (bool(prefixes) and label.lower().startswith(prefixes)) for label in bead.labels
        )

    return test


def _yes_no(read: _Test) -> Callable[[str, str], _Test]:
    def make(operator: str, value: str) -> _Test:
        if value.lower() in _TRUE:
            return read
        if value.lower() in _FALSE:
            return lambda bead, queue: not read(bead, queue)
        if "yes".startswith(value.lower()) or "no".startswith(value.lower()):
            return lambda bead, queue: True  # still being typed
        raise ValueError(f"“{clean_line(value, 20)}” is neither yes nor no")

    return make


def _compared(
    read: Callable[[Bead, Queue], float | None], parse: Callable[[str], float]
) -> Callable[[str, str], _Test]:
    def make(operator: str, value: str) -> _Test:
        wanted = parse(value)

        def test(bead: Bead, queue: Queue) -> bool:
            have = read(bead, queue)
            if have is None:
                return False
            if operator == "<":
                return have < wanted
            if operator == "<=":
                return have <= wanted
            if operator == ">":
                return have > wanted
            return have >= wanted if operator == ">=" else have == wanted

        return test

    return make


def _number(value: str) -> float:
    try:
        return int(value.lower().removeprefix("p"))
    except ValueError:
        raise ValueError(f"“{clean_line(value, 20)}” is not a number") from None


def _span(value: str) -> float:
    found = _SPAN.match(value.lower())
    if found is None:
        raise ValueError(f"“{clean_line(value, 20)}” is not a duration; write it like 30m, 12h or 3d")
    return float(found.group(1)) * _SECONDS[found.group(2)]


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

_FIELDS: dict[str, _Field] = {
    "status": _Field(
        "as the record says: open, closed …",
        _one_of(lambda bead, queue: bead.status),
        lambda queue: [*((status, "") for status in sorted(STATUSES)), *((s, "") for s in queue.unknown_statuses())],
    ),
    "state": _Field(
        "as DDx would treat it: ready, retry_cooldown …",
        _one_of(lambda bead, queue: queue.state(bead.id)),
        _words_of(STATES),
    ),
    "label": _Field("a label; area:* for all of a kind", _label, _seen(lambda bead: bead.labels)),
    "p": _Field("priority, 0 is highest: p<=1", _compared(lambda b, q: b.priority, _number), ordered=True),
    "type": _Field(
        "issue type: task, bug, epic …",
        _one_of(lambda bead, queue: bead.issue_type),
        _seen(lambda bead: (bead.issue_type,)),
    ),
    "ready": _Field("yes: DDx would pick it", _yes_no(lambda b, q: b.id in q.position), _YES_NO),
    "running": _Field("yes: a worker is on it", _yes_no(lambda b, q: b.id in q.claims.running), _YES_NO),
    "parent": _Field("children of this bead", _part_of(lambda bead, queue: bead.parent), _parents),
    "waits": _Field(
        "waits on this bead",
        _part_of(lambda bead, queue: " ".join(bead.depends_on)),
        lambda queue: [(target, "") for target in queue.graph.dependents],
    ),
    "id": _Field("part of the id", _part_of(lambda bead, queue: bead.id)),
    "owner": _Field("who holds or held it", _one_of(lambda bead, queue: bead.owner), _seen(lambda bead: (bead.owner,))),
    "spec": _Field(
        "part of the spec id", _part_of(lambda bead, queue: bead.spec_id), _seen(lambda bead: (bead.spec_id,))
    ),
    "unblocks": _Field(
        "how many beads closing it makes ready",
        _compared(lambda bead, queue: queue.unblock_counts.get(bead.id, 0), _number),
        ordered=True,
    ),
    "holds": _Field(
        "how many beads wait on it, directly or through others",
        _compared(lambda bead, queue: queue.graph.chains.holds_up.get(bead.id, 0), _number),
        ordered=True,
    ),
    "path": _Field(
        "yes: part of the longest chain of beads, the critical path",
        _yes_no(lambda bead, queue: queue.graph.chains.on_critical_path(bead.id)),
        _YES_NO,
    ),
    "missing": _Field("yes: waits on a bead that does not exist", _yes_no(_missing), _YES_NO),
    "age": _Field("since it was created: age<3d", _compared(_age(lambda bead: bead.created_at), _span), ordered=True),
    "updated": _Field(
        "since its last change: updated<1h", _compared(_age(lambda bead: bead.updated_at), _span), ordered=True
    ),
    "body": _Field(
        "anywhere in the record, description and notes too",
        _part_of(lambda bead, queue: bead.raw.decode("utf-8", "replace")),
    ),
}


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


_FIELDS["order"] = _Field(
    "sort: order:unblocks,-age puts what unblocks most first, then the oldest",
    lambda operator, value: lambda bead, queue: True,
    lambda queue: [(name, order.help) for name, order in ORDERS.items()],
)

_COMPLETED = {f"{name}{'<=' if field.ordered else ':'}": field for name, field in _FIELDS.items()}

_EXAMPLES = {
    "status": "status:open,blocked",
    "state": "state:retry_cooldown",
    "label": "label:area:*",
    "p": "p<=1",
    "type": "-type:epic",
    "ready": "ready:yes",
    "running": "running:yes",
    "parent": "parent:0e268fe3",
    "waits": "waits:0e268fe3",
    "id": "id:0e26",
    "owner": "owner:ddx",
    "spec": "spec:FEAT-002",
    "unblocks": "unblocks>=2",
    "holds": "holds>=2",
    "path": "path:yes",
    "missing": "missing:yes",
    "age": "age<3d",
    "updated": "updated<1h",
    "body": 'body:"federated search"',
    "order": "order:unblocks,-age",
}
