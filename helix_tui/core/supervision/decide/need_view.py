"""Needs for display: grouped by kind, old ones folded, filtered, put off; and which actions of their kind make sense.

Snoozes are in ``.helix/snoozed.json``, written here and read by `needs.read_snoozes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from helix_tui.core.beads.filter_language import (
    Completion,
    Field,
    Filter,
    Test,
    alternatives,
    compared,
    complete,
    number,
    parse,
    seconds,
)
from helix_tui.core.beads.query import FIELDS
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import status_of
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS, format_instant
from helix_tui.core.ground.writes import replace_file
from helix_tui.core.supervision.decide.need_kinds import (
    ASK_OF_ATTEMPT,
    GROUPS,
    KINDS,
    RELEASE_PARKED,
    ActionId,
    Means,
    NeedAction,
)
from helix_tui.core.supervision.decide.needs import ASSIGNED, Need, Snooze, read_snoozes, snooze_file
from helix_tui.core.supervision.stages.landing import kept_ref

if TYPE_CHECKING:
    from helix_tui.core.editing.execute.gate import WriteGate

OLD_AFTER_S = 7 * 86_400
"""Age at which a need is folded in its group, if newer or weightier ones come before it."""

MIN_SHOWN = 3
"""Number of needs of a group shown whatever their age."""

HOUR_S, MORNING = 3600, 8

LANDING: frozenset[ActionId] = frozenset({"land", "resolve"})
"""Actions that need a kept change."""

_NO_CONFLICT: frozenset[ActionId] = frozenset({"resolve"})


class NeedGroup(Struct, frozen=True):
    """The needs under one heading: those shown, and those folded because of their age."""

    name: str
    shown: tuple[Need, ...]
    folded: tuple[Need, ...]

    @property
    def needs(self) -> tuple[Need, ...]:
        """All needs of the group."""
        return (*self.shown, *self.folded)


def grouped(needs: Iterable[Need], now: int) -> tuple[NeedGroup, ...]:
    """Needs by heading, in the given order; in each, what blocks most and costs most first."""
    by_group: dict[str, list[Need]] = {}
    for need in needs:
        by_group.setdefault(KINDS[need.kind].group, []).append(need)
    return tuple(
        _fold(name, sorted(by_group[name], key=_weight), now) for name in (*GROUPS, "snoozed") if name in by_group
    )


def _weight(need: Need) -> tuple[int, float]:
    """Sort key: what blocks most, then what has cost most; else the given order."""
    return -need.waiting, -(need.usd or 0.0)


def _fold(name: str, needs: Sequence[Need], now: int) -> NeedGroup:
    shown = [need for place, need in enumerate(needs) if place < MIN_SHOWN or not is_old(need, now)]
    # the line with the number of folded ones takes the space of one
    if len(needs) - len(shown) < 2:
        return NeedGroup(name, tuple(needs), ())
    kept = {need.key for need in shown}
    return NeedGroup(name, tuple(shown), tuple(need for need in needs if need.key not in kept))


def is_old(need: Need, now: int) -> bool:
    """Whether it has waited long enough to be folded."""
    return need.since is not None and (now - need.since) / NS > OLD_AFTER_S


def stake(need: Need) -> str:
    """The number of beads that it blocks, in words, which ranks it; empty if it blocks none."""
    return f"blocks {need.waiting:,}" if need.waiting else ""


# --- the filter ----------------------------------------------------------------------------------


class NeedContext(Struct, frozen=True):
    """What needs are judged by."""

    queue: Queue
    now: int
    """In nanoseconds since the epoch."""
    needs: tuple[Need, ...] = ()
    """Those of now, whose kinds are offered while one types."""


NeedTest = Test[Need, NeedContext]


def need_filter(text: str, *, me: str = "") -> Filter[Need, NeedContext]:
    """A filter of needs: fields of their own, words in title or reason, and every field of a bead's filter."""
    return parse(text, _fields(me), _has_word)


def complete_need_filter(text: str, cursor: int, context: NeedContext) -> list[Completion]:
    """Completions of a filter."""
    return complete(text, cursor, _fields(""), context)


def _fields(me: str) -> dict[str, Field[Need, NeedContext]]:
    return {
        "kind": Field("a kind or heading", "kind:proposals", _of_kind, _present_kinds),
        "waits": Field("how long it has waited", "waits>=3d", compared(_waits, span_seconds), ordered=True),
        "cost": Field("dollars spent on its bead", "cost>=1", compared(_usd, number), ordered=True),
        "blocks": Field("beads that it holds up", "blocks>=2", compared(_waiting, number), ordered=True),
        "assigned": Field("who deals with it; me, or none", "assigned:me", partial(_assigned, me)),
    } | {name: _of_bead(field) for name, field in FIELDS.items() if name not in ("waits", "order")}


def _of_kind(sign: str, value: str) -> NeedTest:
    # as headings, lists and JSON write it
    wanted = alternatives(value.replace("-", " ").replace("_", " "))
    return lambda need, at: any(word in kind for word in wanted for kind in _names_of(need))


def _present_kinds(at: NeedContext) -> list[tuple[str, str]]:
    return [(name.replace(" ", "-"), "") for name in dict.fromkeys(KINDS[need.kind].group for need in at.needs)]


def _waits(need: Need, at: NeedContext) -> float | None:
    return None if need.since is None else (at.now - need.since) / NS


def span_seconds(value: str) -> float:
    """The seconds of a span like ``90m`` or ``3d``; a bare number is seconds.

    Raises:
        ValueError: it is not a span.
    """
    return float(value) if value.replace(".", "", 1).isdecimal() else seconds(value)


def _usd(need: Need, at: NeedContext) -> float | None:
    return need.usd


def _waiting(need: Need, at: NeedContext) -> float:
    return need.waiting


def _assigned(me: str, sign: str, value: str) -> NeedTest:
    who = me if value == "me" else value
    return lambda need, at: (not need.assigned) if value == "none" else need.assigned == who


def _of_bead(field: Field[Bead, Queue]) -> Field[Need, NeedContext]:
    """A field of the bead that a need is about."""

    def make(sign: str, value: str) -> NeedTest | None:
        test = field.make(sign, value)
        if test is None:
            return None
        return lambda need, at: need.bead_id in at.queue.beads and test(at.queue.beads[need.bead_id], at.queue)

    return Field(field.help, field.example, make, lambda at: field.values(at.queue), field.ordered)


def _has_word(word: str) -> NeedTest:
    def test(need: Need, at: NeedContext) -> bool:
        bead = at.queue.beads.get(need.bead_id)
        texts = (need.bead_id, need.reason, *_names_of(need), bead.title if bead is not None else "")
        return any(word in text.lower() for text in texts)

    return test


def _names_of(need: Need) -> tuple[str, ...]:
    own = need.kind.replace("_", " ").replace("-", " "), KINDS[need.kind].group
    return (*own, *_names_of(need.decision)) if need.also else own


# --- snoozes ----------------------------------------------------------------------------------------------


def next_morning(now: int) -> int:
    """The start of the next local morning."""
    day = datetime.fromtimestamp(now // NS) + timedelta(days=1)
    return int(day.replace(hour=MORNING, minute=0, second=0, microsecond=0).timestamp()) * NS


Snoozes = Mapping[str, Snooze | None]
"""Key of a need -> its snooze, or None."""


def put_off(
    project: Project, gate: WriteGate, needs: Iterable[Need], *, until: int | None, by: str, now: int
) -> Snoozes:
    """Put some needs off until an instant, or with None until they change; return the previous snoozes.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be saved.
    """
    end = format_instant(until) if until is not None else ""
    made = {need.key: Snooze(need.key, end, need.mark, by, format_instant(now)) for need in needs}
    return set_snoozes(project, gate, made)


def bring_back(project: Project, gate: WriteGate, keys: Collection[str]) -> Snoozes:
    """Bring back some needs that were put off; return the previous snoozes.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be saved.
    """
    return set_snoozes(project, gate, dict.fromkeys(keys))


def set_snoozes(project: Project, gate: WriteGate, wanted: Snoozes) -> Snoozes:
    """Set the snoozes of some needs; return the previous ones.

    Raises:
        WritesForbidden: --read-only.
        OSError: it cannot be saved.
    """
    with gate.open():
        # read under the gate: another console may have put something off meanwhile
        have = read_snoozes(project)
        kept = [each for each in {**have, **wanted}.values() if each is not None]
        replace_file(snooze_file(project), msgspec.json.encode({"schema": "snoozed/1", "snoozed": kept}) + b"\n")
    return {key: have.get(key) for key in wanted}


def actions_of(need: Need, without: Collection[ActionId] = ()) -> tuple[NeedAction, ...]:
    """The actions for a need, without those that make no sense now."""
    return tuple(each for each in _offered(need) if each.id not in without)


def _offered(need: Need) -> tuple[NeedAction, ...]:
    """The actions of its kind, and those of the decision that its bead waits for besides."""
    own = KINDS[need.kind].actions
    if need.conflicts:
        own = tuple(sorted(own, key=lambda each: each.id == "land"))  # as it is, the merge would fail
    if not need.also:
        return own
    return (*(RELEASE_PARKED if each.id == "release" else each for each in own), *KINDS[need.also].actions)


def senseless(need: Need, attempt: Attempt | None) -> frozenset[ActionId]:
    """Actions that make no sense for an attempt: landing without a kept change, resolving without a conflict, executing
    a bead that waits to be opened.
    """
    parked: frozenset[ActionId] = frozenset({"retry", "hold"}) if need.parked else frozenset()
    if attempt is None or not attempt.preserved or not kept_ref(attempt):
        return parked | LANDING | ({"reject"} if need.kind in ASK_OF_ATTEMPT else set())
    conflicts = status_of(attempt.status).about == "conflict" if need.conflicts is None else need.conflicts
    return parked if conflicts else parked | _NO_CONFLICT


Without = Callable[[Need], Collection[ActionId]]
"""The actions that make no sense for a need."""


def shared_actions(needs: Sequence[Need], without: Without) -> tuple[NeedAction, ...]:
    """The actions of some needs: those that their kinds share and that make sense for one of them, at least."""
    ids = [{each.id for each in _offered(need)} for need in needs]
    common = set.intersection(*ids) if ids else set()
    if len(needs) > 1:
        # each of these opens something for one need: a text, an editor, a list
        common -= {"answer", "resolve", "lines", "loop"}
        if any(need.kind in ASK_OF_ATTEMPT for need in needs):
            common -= {"reject"}  # each is answered separately
    able: set[ActionId] = set()
    for need in needs:
        # a heading does not offer to land what a review refused or what conflicts: each is looked at first
        unfit = {"land"} if len(needs) > 1 and (need.refused or need.conflicts) else set()
        able |= common.difference(without(need), unfit)
        if able == common:
            break
    return tuple(each for each in _offered(needs[0]) if each.id in able) if needs else ()


def by_means(action: ActionId, needs: Iterable[Need]) -> dict[Means, list[Need]]:
    """The needs that offer an action, by how it is carried out for them."""
    found: dict[Means, list[Need]] = {}
    for need in needs:
        for each in _offered(need):
            if each.id == action:
                found.setdefault(each.means, []).append(need)
    return found


def operations_for(action: ActionId, needs: Iterable[Need], queue: Queue) -> list[Operation]:
    """The operations with which an action changes the queue; empty for other actions."""
    found: list[Operation] = []
    for need in needs:
        offered = next((each for each in _offered(need) if each.id == action), None)
        if offered is not None and offered.change is not None and need.bead_id in queue.beads:
            found += offered.change(need.decision, queue)
    return found


def assign_to(needs: Iterable[Need], queue: Queue, who: str) -> list[Operation]:
    """Assign the needs of some beads to a person; an empty name removes the assignment."""
    beads = dict.fromkeys(need.bead_id for need in needs if need.bead_id in queue.beads)
    if not who:
        return [operations.ClearFields(bead_id, [ASSIGNED]) for bead_id in beads]
    return [operations.SetFields(bead_id, {ASSIGNED: who}) for bead_id in beads]
