"""Needs as somebody looks at them: grouped by kind, the old ones folded, filtered, and put off for a while.

What is put off is kept in ``.helix/snoozed.json`` (`needs.read_snoozes`); here it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from helix_tui.core.beads.query import Completion, Query, complete, parse_query
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ground.files import replace_file
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_instant
from helix_tui.core.supervision.decide.needs import Need, Snooze, read_snoozes, snooze_file

if TYPE_CHECKING:
    from helix_tui.core.editing.execute.gate import WriteGate

GROUPS: dict[str, tuple[str, ...]] = {
    "questions": ("physics-level", "guidance", "approval", "conflict", "ambiguous", "clarification"),
    "stopped": ("worker_stopped",),
    "budgets reached": ("budget",),
    "stale claims": ("dead_run", "orphaned_claim"),
    "silent workers": ("silent_run",),
    "decisions": ("escalation", "gap"),
    "merge conflicts": ("merge_conflict",),
    "failing checks": ("failing_check",),
    "refused by review": ("refused", "preserved_review_blocked"),
    "landed with a fault": ("landed_faulted",),
    "kept aside": ("kept_aside",),
    "passed over": ("tried",),
    "drift": ("drift",),
    "focus": ("focus",),
    "proposals": ("proposed",),
    "lessons": ("lesson",),
    "broken dependencies": ("cycle", "archived_dependency", "missing_dependency", "cancelled_dependency"),
    "unreadable": ("unknown_status", "unread_lines"),
}
"""Heading of each group and its kinds, the most urgent group first."""

_GROUP_OF = {kind: name for name, kinds in GROUPS.items() for kind in kinds}

OLD_AFTER_S = 7 * 86_400
"""Age from which a need is folded away in its group, where younger or heavier ones stand before it."""

SHOWN_AT_LEAST = 3
"""Needs of a group that are shown whatever their age."""

HOUR_S, MORNING = 3600, 8


def group_of(need: Need) -> str:
    """The heading under which a need stands."""
    return _GROUP_OF.get(need.kind, "unreadable")


def one_of(name: str) -> str:
    """The heading of a group, for a single need: "1 merge conflict"."""
    if name in ("broken dependencies", "budgets reached"):
        return {"broken dependencies": "broken dependency"}.get(name, "budget reached")
    return name.removesuffix("s") if name != "focus" else name


class NeedGroup(Struct, frozen=True):
    """Needs of one heading: what is shown, and what is folded away for its age."""

    name: str
    shown: tuple[Need, ...]
    folded: tuple[Need, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """All of them."""
        return (*self.shown, *self.folded)


def grouped(needs: Iterable[Need], now: int) -> tuple[NeedGroup, ...]:
    """Needs by heading, in the order in which they came; in each, what blocks most and costs most first."""
    by_group: dict[str, list[Need]] = {}
    for need in needs:
        by_group.setdefault(group_of(need), []).append(need)
    return tuple(
        _fold(name, sorted(by_group[name], key=_weight), now) for name in (*GROUPS, "snoozed") if name in by_group
    )


def _weight(need: Need) -> tuple[int, float]:
    """What blocks most, then what has cost most, first; else as they came."""
    return -need.waiting, -(need.usd or 0.0)


def _fold(name: str, needs: Sequence[Need], now: int) -> NeedGroup:
    shown = [need for place, need in enumerate(needs) if place < SHOWN_AT_LEAST or not is_old(need, now)]
    # the line that says how many are folded takes the place of one
    if len(needs) - len(shown) < 2:
        return NeedGroup(name, tuple(needs), ())
    kept = {need.key for need in shown}
    return NeedGroup(name, tuple(shown), tuple(need for need in needs if need.key not in kept))


def is_old(need: Need, now: int) -> bool:
    """Whether it has waited so long that it is folded away."""
    return need.since is not None and (now - need.since) / NS > OLD_AFTER_S


def stake(need: Need) -> str:
    """Why it stands where it stands: what it holds up."""
    return f"blocks {need.waiting:,}" if need.waiting else ""


# --- the filter language ----------------------------------------------------------------------------------

_OWN = {
    "kind": "a kind or heading: kind:proposals",
    "waits": "how long it has waited: waits>3d",
    "cost": "dollars spent on its bead: cost>=1",
    "blocks": "beads that it holds up: blocks>=2",
    "assigned": "who deals with it; me, or none",
}
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda have, wanted: have <= wanted,
    ">=": lambda have, wanted: have >= wanted,
    "<": lambda have, wanted: have < wanted,
    ">": lambda have, wanted: have > wanted,
    ":": lambda have, wanted: have == wanted,
    "=": lambda have, wanted: have == wanted,
}


class NeedFilter:
    """A filter on needs: five fields of their own, words in title or reason, and every field of a bead's filter."""

    def __init__(self, text: str, *, me: str = "") -> None:
        self.text = text
        self.problem = ""
        self._me = me
        self._tests: list[Callable[[Need, Queue, int], bool]] = []
        for term in _terms(text):
            test = self._term(term)
            if test is not None:
                self._tests.append(test)

    def matches(self, need: Need, queue: Queue, now: int) -> bool:
        """Whether every term holds."""
        return all(test(need, queue, now) for test in self._tests)

    def passing(self, needs: Iterable[Need], queue: Queue, now: int) -> tuple[Need, ...]:
        """Those that pass."""
        return tuple(need for need in needs if self.matches(need, queue, now))

    def _term(self, term: str) -> Callable[[Need, Queue, int], bool] | None:
        minus, bare = term.startswith("-") and len(term) > 1, term.removeprefix("-")
        name, operator, value = _parted(bare)
        if name in _OWN:
            test = self._own(name, operator, value)
        elif operator:
            query = parse_query(bare)
            self.problem = self.problem or _with_own(query)
            test = lambda need, queue, now: _of_bead(query, need, queue)  # noqa: E731
        else:
            test = lambda need, queue, now: _has_word(bare.strip('"').lower(), need, queue)  # noqa: E731
        if test is None or not minus:
            return test
        return lambda need, queue, now: not test(need, queue, now)

    def _own(self, name: str, operator: str, value: str) -> Callable[[Need, Queue, int], bool] | None:
        if not value:
            return None  # still being typed
        if name == "kind":
            wanted = value.lower().replace("-", " ").split(",")
            return lambda need, queue, now: any(word in kind for word in wanted if word for kind in _names_of(need))
        if name == "assigned":
            who = self._me if value == "me" else value
            return lambda need, queue, now: (not need.assigned) if value == "none" else need.assigned == who
        try:
            number = span_seconds(value) if name == "waits" else float(value.lstrip("$"))
        except ValueError:
            what = "a duration; write it like 12h or 3d" if name == "waits" else "a number"
            self.problem = self.problem or f"“{clean_line(value, 20)}” is not {what}"
            return None
        compare = _COMPARE[operator]
        return lambda need, queue, now: (have := _figure(name, need, now)) is not None and compare(have, number)


def _terms(text: str) -> list[str]:
    """The terms of a filter: separated by spaces, those in quotes kept together."""
    terms, open_ = [""], False
    for sign in text:
        open_ = open_ != (sign == '"')
        if sign == " " and not open_:
            terms.append("")
        else:
            terms[-1] += sign
    return [term for term in terms if term.strip('"- ')]


def _parted(term: str) -> tuple[str, str, str]:
    """Field, operator and value of a term; the field is empty where it is a plain word."""
    for at, sign in enumerate(term):
        if sign in "<>=:":
            operator = term[at : at + 2] if term[at : at + 2] in ("<=", ">=") else sign
            return term[:at].lower(), operator, term[at + len(operator) :].strip('"')
        if not (sign.isalpha() or sign in "_-"):
            break
    return "", "", term


def _with_own(query: Query) -> str:
    """What is wrong with a term, with the fields that only needs have among those that there are."""
    return query.problem.replace("there are ", f"there are {', '.join(_OWN)}, ")


def _of_bead(query: Query, need: Need, queue: Queue) -> bool:
    bead = queue.beads.get(need.bead_id)
    return bead is not None and query.matches(bead, queue)


def _has_word(word: str, need: Need, queue: Queue) -> bool:
    bead = queue.beads.get(need.bead_id)
    held = (need.bead_id, need.reason, *_names_of(need), bead.title if bead is not None else "")
    return any(word in text.lower() for text in held)


def _names_of(need: Need) -> tuple[str, str]:
    return need.kind.replace("_", " ").replace("-", " "), group_of(need)


def _figure(name: str, need: Need, now: int) -> float | None:
    if name == "waits":
        return None if need.since is None else (now - need.since) / NS
    return need.usd if name == "cost" else float(need.waiting)


def span_seconds(value: str) -> float:
    """The seconds of a span like ``90m`` or ``3d``; a bare number is seconds.

    Raises:
        ValueError: it is none.
    """
    return float(value[:-1]) * _SPANS[value[-1]] if value[-1:] in _SPANS else float(value)


def filter_ways(text: str, cursor: int, needs: Iterable[Need], queue: Queue) -> list[Completion]:
    """Ways to go on typing a filter."""
    start = max(text.rfind(" ", 0, cursor), -1) + 1
    term = text[start:cursor].removeprefix("-")
    name, colon, typed = term.partition(":")
    if colon and name == "kind":
        kinds = dict.fromkeys(group_of(need) for need in needs)
        return [
            Completion(kind.replace(" ", "-"), cursor - len(typed), "")
            for kind in kinds
            if kind.replace(" ", "-").startswith(typed) and kind.replace(" ", "-") != typed
        ]
    own = [
        Completion(f"{field}{':' if field in ('kind', 'assigned') else '>='}", cursor - len(term), help_)
        for field, help_ in _OWN.items()
        if not colon and field.startswith(term)
    ]
    return [*own, *complete(text, cursor, queue)]


# --- put off ----------------------------------------------------------------------------------------------


def next_morning(now: int) -> int:
    """The instant at which the next local day's morning begins."""
    day = datetime.fromtimestamp(now // NS) + timedelta(days=1)
    return int(day.replace(hour=MORNING, minute=0, second=0, microsecond=0).timestamp()) * NS


Snoozes = Mapping[str, Snooze | None]
"""Key of a need -> how it is put off; None: it is not."""


def put_off(
    project: Project, gate: WriteGate, needs: Iterable[Need], *, until: int | None, by: str, now: int
) -> Snoozes:
    """Put some needs off until an instant, or with None until they change; how each stood before.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be written down.
    """
    end = format_instant(until) if until is not None else ""
    made = {need.key: Snooze(need.key, end, need.mark, by, format_instant(now)) for need in needs}
    return set_snoozes(project, gate, made)


def bring_back(project: Project, gate: WriteGate, keys: Collection[str]) -> Snoozes:
    """Put some needs off no longer; how each stood before.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be written down.
    """
    return set_snoozes(project, gate, dict.fromkeys(keys))


def set_snoozes(project: Project, gate: WriteGate, wanted: Snoozes) -> Snoozes:
    """Have some needs put off as is wanted; how each stood before.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be written down.
    """
    with gate.open():
        # read under the gate: another console may have put something off meanwhile
        have = read_snoozes(project)
        kept = [each for each in {**have, **wanted}.values() if each is not None]
        replace_file(snooze_file(project), msgspec.json.encode({"schema": "snoozed/1", "snoozed": kept}) + b"\n")
    return {key: have.get(key) for key in wanted}
