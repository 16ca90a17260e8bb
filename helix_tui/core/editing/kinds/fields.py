"""Plan changes of a bead's fields: eligibility, supersession, edges, parent, order, labels, texts.

DDx's pitfalls are in docs/formats/ddx.md §1 and §2: ``--labels`` and ``--notes`` replace, ``--set status=`` is
lost, every edge blocks whatever its type.

Order inside one priority is set with ``bead queue``, which writes ranks (August). Ranks are sparse: the moved bead gets
a number between its neighbours if there is room; else all beads of the priority are renumbered in tens
(docs/formats/ddx.md §2).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from helix_tui.core.beads.record import FOCUS_MARK, TERMINAL
from helix_tui.core.editing.kinds.eligibility_hold import give_back
from helix_tui.core.editing.operation import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import (
    CLAIM_FIELDS,
    FLAGS,
    OperationRefused,
    PlanBuilder,
    called,
    named,
    option,
    stored,
)
from helix_tui.core.editing.values import edge, targets
from helix_tui.core.ground.time import NEVER, parse_instant

STEP = 10

ALLOWED = "helix-allowed"
"""Field naming the attempt whose refused change a person lets a worker land."""

DROPPED = "helix-dropped"
"""Field that names the attempt whose kept change was dropped by a person."""

ALIASES = {
    "type": "issue_type",
    "assignee": "owner",
    "spec": "spec-id",
    "eligible": "execution-eligible",
    "external-blocker-reason": "lifecycle-external-blocker-reason",
}
"""Aliases of fields."""

OWN_COMMAND = {
    "dependencies": "use `dep add` and `dep remove`",
    "events": "ddx alone writes the history; `ddx bead evidence add` appends to it",
}

KEPT_BY_DDX = frozenset(
    {"id", "created_at", "updated_at", "created_by", "schema_version", "events_attachment", "session_id"}
    | {*CLAIM_FIELDS}
)
"""Fields that ddx writes itself: values set there are lost or could not be undone."""


class SetRank(Operation, frozen=True, tag="rank"):
    """Move a bead inside its priority with ``bead queue top | move | clear``; without a place its rank is cleared."""

    before: str = ""
    after: str = ""
    top: bool = False

    @property
    def saying(self) -> str:
        if self.top:
            return "move {} to the top of its priority"
        for word, other in (("before", self.before), ("after", self.after)):
            if other:
                return f"move {{}} {word} {called(other)}"
        return "clear rank of {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        if not writing.dialect.rank:
            raise OperationRefused("this ddx has no order within a priority; change the priority instead")
        if not (self.before or self.after or self.top):
            if _rank(overlay, bead_id) is not None:
                writing.add("queue", ("clear", bead_id), {bead_id: {"queue-rank": None}})
            return
        if self.top:
            _to_the_top(writing, bead_id)
            return
        bucket = _bucket(overlay, overlay.bead(bead_id).priority)
        others = [other for other in bucket if other != bead_id]
        other = self.before or self.after
        if other == bead_id:
            raise OperationRefused("a bead cannot be placed before or after itself; name another one")
        must_exist(overlay, other)
        if other not in others:
            raise OperationRefused(
                f"{called(other)} and {called(bead_id)} differ in priority; give both the same first"
            )
        place = others.index(other) + (1 if self.after else 0)
        words = ("move", bead_id, "--before" if self.before else "--after", other)
        ripple = {moved: {"queue-rank": number} for moved, number in _ranks(overlay, others, bead_id, place).items()}
        writing.add("queue", words, {bead_id: {}}, watched=[(moved, "queue-rank") for moved in bucket], ripple=ripple)


def _to_the_top(writing: PlanBuilder, bead_id: str) -> None:
    """Place a bead before the lowest rank, changing only its own row."""
    overlay = writing.overlay
    priority = overlay.bead(bead_id).priority
    ranks = [
        rank
        for other in _near(overlay, priority)
        if other != bead_id and (rank := overlay.bead(other).queue_rank) is not None
    ]
    ripple = {bead_id: {"queue-rank": min(ranks) - 1 if ranks else 0}}
    writing.add("queue", ("top", bead_id), {bead_id: {}}, watched=[(bead_id, "queue-rank")], ripple=ripple)


def _ranks(overlay: Overlay, others: list[str], bead_id: str, place: int) -> dict[str, int]:
    """The ranks that ddx will write to move a bead to a place."""
    numbers = [_rank(overlay, other) for other in others]
    # unranked beads come after ranked ones, so no single rank places a bead after one of them
    if None not in numbers[:place]:
        low = numbers[place - 1] if place else None
        high = next((number for number in numbers[place:] if number is not None), None)
        if low is not None and (high is None or low + 1 < high):
            return {bead_id: low + 1}
        if low is None:
            return {bead_id: 0 if high is None else high - 1}
    order = [*others[:place], bead_id, *others[place:]]
    return {other: number * STEP for number, other in enumerate(order)}


def _rank(overlay: Overlay, bead_id: str) -> int | None:
    return overlay.bead(bead_id).queue_rank


def _bucket(overlay: Overlay, priority: int) -> list[str]:
    """Ids of one priority in ddx's order."""

    def key(bead_id: str) -> tuple[Any, ...]:
        bead = overlay.bead(bead_id)
        rank = bead.queue_rank
        return rank is None, rank or 0, parse_instant(bead.created_at) or NEVER, bead_id.encode()

    return sorted(_near(overlay, priority), key=key)


def _near(overlay: Overlay, priority: int) -> list[str]:
    """Ids of one priority."""
    here = [bead_id for bead_id, bead in overlay.queue.beads.items() if bead.priority == priority]
    # planned changes may have moved a bead into the priority or out of it
    both = dict.fromkeys((*here, *overlay.edits))
    return [bead_id for bead_id in both if overlay.bead(bead_id).priority == priority]


class SetEligible(Operation, frozen=True, tag="eligible"):
    """Let workers pick a bead, or keep them from it: only a boolean false in ``execution-eligible`` does."""

    on: bool

    @property
    def saying(self) -> str:
        return "allow workers to pick {}" if self.on else "forbid workers to pick {}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, overlay = self.bead_id, writing.overlay
        must_live(overlay, bead_id)
        if not self.on:
            writing.update(bead_id, {"execution-eligible": False})
            return
        # an absent field lets workers pick the bead as well as a true one
        if overlay.value(bead_id, "execution-eligible") is not False:
            return
        epic = overlay.value(bead_id, FOCUS_MARK)
        if epic:
            raise OperationRefused(
                f"{called(bead_id)} is held back by the focus on {called(str(epic))}; "
                "end the focus first (`focus --off`), which makes it eligible again"
            )
        writing.update(bead_id, {"execution-eligible": True})


class Supersede(Operation, frozen=True, tag="supersede"):
    """Mark a bead as superseded by another one: workers no longer pick it, and what waits on it waits on the other."""

    by: str | None
    """None clears it."""

    @property
    def saying(self) -> str:
        return f"mark {{}} as superseded by {called(self.by)}" if self.by else "clear superseded-by of {}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, by, overlay = self.bead_id, self.by, writing.overlay
        must_live(overlay, bead_id)
        if by is None:
            writing.update(bead_id, {"superseded-by": None})
            return
        must_exist(overlay, by)
        if by == bead_id:
            raise OperationRefused("a bead cannot replace itself; name two different beads")
        if bead_id in chain(by, lambda other: overlay.value(other, "superseded-by")):
            raise OperationRefused(f"{called(by)} is itself superseded by {called(bead_id)}; undo that first")
        writing.update(bead_id, {"superseded-by": by})
        waiting = [
            other
            for other in overlay.queue.graph.dependents.get(bead_id, ())
            if overlay.status(other) not in TERMINAL and bead_id in overlay.depends_on(other)
        ]
        # prerequisites and ancestors of the replacement cannot wait on it
        stuck = [other for other in waiting if _why_not_wait(writing, other, by)]
        for other in waiting:
            if other not in stuck:
                AddDependency(other, by).plan(writing)
                RemoveDependency(other, bead_id).plan(writing)
        if stuck:
            wait, the = ("waits", "that dependency") if len(stuck) == 1 else ("wait", "those dependencies")
            writing.notes.append(
                f"{named(stuck)} still {wait} on {called(bead_id)}, which no worker picks any more; "
                f"remove {the}, or close {called(bead_id)}"
            )


class AddDependency(Operation, frozen=True, tag="depend"):
    """Let a bead wait for another one with ``dep add``: every edge blocks, whatever its type."""

    on: str

    @property
    def saying(self) -> str:
        return f"add dependency: {{}} waits on {called(self.on)}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, on, overlay = self.bead_id, self.on, writing.overlay
        must_exist(overlay, bead_id)
        if on != bead_id:
            must_exist(overlay, on, "ddx accepts no dependency on a bead that is not in the tracker")
            if on in overlay.depends_on(bead_id):
                return
        why = _why_not_wait(writing, bead_id, on)
        if why:
            raise OperationRefused(why)
        edges = [*(overlay.value(bead_id, "dependencies") or ()), edge(bead_id, on)]
        writing.add("dep", ("add", bead_id, on), {bead_id: {"dependencies": edges}})


def _why_not_wait(writing: PlanBuilder, bead_id: str, on: str) -> str:
    """Why ddx does not let a bead wait on another existing one; else empty."""
    overlay = writing.overlay
    if on == bead_id:
        return "a bead cannot wait for itself; name two different beads"
    # ddx refuses a cycle too, but does not name its beads
    path = _path(overlay, on, bead_id)
    if path:
        return f"they would form a dependency cycle: {' → '.join(map(called, (bead_id, *path)))}; remove one of these"
    if not writing.dialect.waits_on_parents and on in chain(bead_id, overlay.parent):
        return f"{called(on)} is above {called(bead_id)} in the tree, and ddx lets no bead wait on one above it"
    return ""


class RemoveDependency(Operation, frozen=True, tag="undepend"):
    """Let a bead no longer wait for another one, with ``dep remove``."""

    on: str

    @property
    def saying(self) -> str:
        return f"remove dependency: {{}} no longer waits on {called(self.on)}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, on = self.bead_id, self.on
        must_exist(writing.overlay, bead_id)
        edges = writing.overlay.value(bead_id, "dependencies") or []
        if on not in targets(edges):
            return
        left = [each for each in edges if not (isinstance(each, dict) and each.get("depends_on_id") == on)]
        writing.add("dep", ("remove", bead_id, on), {bead_id: {"dependencies": left or None}})


class SetParent(Operation, frozen=True, tag="parent"):
    """Put a bead under another one: a tree, so no bead may be its own ancestor."""

    under: str | None
    """None puts it under none."""

    @property
    def saying(self) -> str:
        return f"set parent of {{}} to {called(self.under)}" if self.under else "clear parent of {}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, under, overlay = self.bead_id, self.under, writing.overlay
        must_exist(overlay, bead_id)
        if under:
            must_exist(overlay, under)
            if bead_id in chain(under, overlay.parent):
                raise OperationRefused(
                    f"{called(under)} is under {called(bead_id)} already; the tree would have a cycle"
                )
        writing.update(bead_id, {"parent": under or None})


class SetPriority(Operation, frozen=True, tag="priority"):
    """Set the priority."""

    level: int
    """0, the highest, to 4."""

    @property
    def saying(self) -> str:
        return f"set priority of {{}} to P{self.level}"

    def plan(self, writing: PlanBuilder) -> None:
        must_live(writing.overlay, self.bead_id)
        writing.update(self.bead_id, {"priority": checked_priority(self.level)})


class ChangeLabels(Operation, frozen=True, tag="label"):
    """Add and remove labels; the others stay, although ``--labels`` replaces all of them."""

    add: Sequence[str] = ()
    remove: Sequence[str] = ()

    @property
    def saying(self) -> str:
        parts = [f"+{called(text)}" for text in self.add] + [f"-{called(text)}" for text in self.remove]
        return f"label {{}} {' '.join(parts)}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, remove = self.bead_id, set(self.remove)
        must_exist(writing.overlay, bead_id)
        check_labels(self.add)
        have = [text for text in writing.overlay.value(bead_id, "labels") or () if isinstance(text, str)]
        left = [text for text in have if text not in remove and text.strip() not in remove]
        left += [text for text in dict.fromkeys(self.add) if text not in {other.strip() for other in left}]
        writing.update(bead_id, {"labels": left or None})


def plan_fields(writing: PlanBuilder, bead_id: str, given: Mapping[str, str]) -> None:
    """Set fields by their names in rows, except the status, each with the flag or command that actually writes it."""
    must_exist(writing.overlay, bead_id)
    fields: dict[str, Any] = {}
    for name, text in given.items():
        # each of these has a rule of its own, below or in `lifecycle`
        if name in ("status", "superseded-by", "queue-rank", "parent", "execution-eligible"):
            continue
        fields[name] = _assigned(writing, name, text)
    if "queue-rank" in given:
        fields["queue-rank"] = _checked_rank(writing, given["queue-rank"])
    if "parent" in given:
        SetParent(bead_id, given["parent"] or None).plan(writing)
    if "superseded-by" in given:
        Supersede(bead_id, given["superseded-by"] or None).plan(writing)
    if "execution-eligible" in given:
        on = _checked_truth(given["execution-eligible"])
        # `SetEligible` leaves an absent field alone, but here the value itself was asked for
        if on and writing.overlay.value(bead_id, "execution-eligible") is None:
            fields["execution-eligible"] = True
        else:
            SetEligible(bead_id, on).plan(writing)
    writing.update(bead_id, fields)
    if ALLOWED in given:
        give_back(writing, bead_id)


class ClearFields(Operation, frozen=True, tag="unset"):
    """Remove fields by name."""

    names: Sequence[str]

    @property
    def saying(self) -> str:
        return f"clear {', '.join(map(called, self.names))} of {{}}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id = self.bead_id
        must_exist(writing.overlay, bead_id)
        fields: dict[str, Any] = {}
        for name in dict.fromkeys(ALIASES.get(name, name) for name in self.names):
            _check_writable(name)
            if name in ("title", "status", "priority", "issue_type"):
                raise OperationRefused(f"every bead has a {name.replace('_', ' ')}; set another one instead")
            if name == FOCUS_MARK:
                raise OperationRefused("the focus manages its own marks; end it with `focus --off`")
            fields[name] = None
        writing.update(bead_id, fields)


def must_exist(overlay: Overlay, bead_id: str, why: str = "look it up with `helix-tui queue`") -> None:
    """Refuse an id that is not in the tracker."""
    if bead_id not in overlay:
        raise OperationRefused(f"there is no bead {called(bead_id)} in the tracker; {why}")


def must_live(overlay: Overlay, bead_id: str) -> None:
    """Refuse a bead that is closed or cancelled: no worker picks it."""
    must_exist(overlay, bead_id)
    status = overlay.status(bead_id)
    if status in TERMINAL:
        hint = "reopen it first" if status == "closed" else "a cancelled bead stays cancelled"
        raise OperationRefused(f"{called(bead_id)} is {status}; {hint}")


def checked_priority(level: object) -> int:
    """A valid priority, 0 to 4."""
    text = str(level).strip().removeprefix("P").removeprefix("p")
    if text not in {"0", "1", "2", "3", "4"}:
        raise OperationRefused(f"a priority is 0 (first) to 4 (last), not “{called(str(level))}”")
    return int(text)


def check_labels(labels: Iterable[str]) -> None:
    """Refuse a label that ``--labels a,b`` would cut in two or lose."""
    for text in labels:
        if not text.strip() or "," in text:
            raise OperationRefused(f"a label is a word without a comma, not “{called(text)}”")


def _assigned(writing: PlanBuilder, name: str, text: str) -> Any:
    """The value of a field after it is set to a text."""
    _check_writable(name)
    if name == "priority":
        return checked_priority(text)
    if name == "title" and not text.strip():
        raise OperationRefused("every bead has a title; write one")
    if name == "issue_type" and not text.strip():
        raise OperationRefused("every bead has a type; name one, as task, bug, epic or chore")
    if name == "labels":
        labels = text.split(",") if text else []
        check_labels(labels)
        return labels or None
    if name in FLAGS:
        return text or None
    return text if name == "issue_type" else stored(name, text, writing.dialect)


def _check_writable(name: str) -> None:
    if not name or "=" in name or name != name.strip():
        raise OperationRefused(f"“{called(name)}” is not a field name; write it as key=value")
    if name in OWN_COMMAND:
        raise OperationRefused(f"“{name}” is not set by hand: {OWN_COMMAND[name]}")
    if name in KEPT_BY_DDX:
        raise OperationRefused(f"“{name}” is kept by ddx itself and cannot be set by hand")


def _checked_rank(writing: PlanBuilder, text: str) -> Any:
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        raise OperationRefused(f"a rank is a whole number, not “{called(text)}”")
    return stored("queue-rank", str(int(text)), writing.dialect)


def _checked_truth(text: str) -> bool:
    truths = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
    if text.lower() not in truths:
        raise OperationRefused(f"eligible is true or false, not “{called(text)}”")
    return truths[text.lower()]


class DropChange(Operation, frozen=True, tag="drop"):
    """Drop an attempt's kept change: record it and, if ddx would land it by itself, reject it in ddx too."""

    attempt_id: str
    rev: str = ""
    """The commit of the change, if known."""

    @property
    def saying(self) -> str:
        return "drop the kept change of {}"

    def plan(self, writing: PlanBuilder) -> None:
        bead_id, rev = self.bead_id, self.rev
        must_exist(writing.overlay, bead_id)
        rejected = option("--reject-preserved", rev) if rev and writing.dialect.lands_kept else ()
        writing.update(bead_id, {DROPPED: self.attempt_id}, flags=rejected)
        give_back(writing, bead_id)


def chain(start: str, above: Callable[[str], Any]) -> list[str]:
    """``start`` and its ancestors; a cycle is followed once."""
    chain = [start]
    while True:
        upper = above(chain[-1])
        if not isinstance(upper, str) or not upper or upper in chain:
            return chain
        chain.append(upper)


def _path(overlay: Overlay, start: str, goal: str) -> list[str]:
    """Ids from ``start`` to ``goal`` along dependencies; empty if there is no path."""
    came: dict[str, str] = {start: ""}
    stack = [start]
    while stack:
        here = stack.pop()
        if here == goal:
            way = [here]
            while came[way[-1]]:
                way.append(came[way[-1]])
            return way[::-1]
        for target in overlay.depends_on(here):
            if target not in came:
                came[target] = here
                stack.append(target)
    return []
