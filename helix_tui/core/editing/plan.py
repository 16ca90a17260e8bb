"""Plan operations as commands with their preconditions, effects and undo.

A plan is made on one state of the tracker and changes nothing. Operations are planned one on top of the other, so that
the third sees the effects of the first two.

The way back consists of commands that restore the rows' values, and a list of what no command restores. It is built
from the earlier values, never from the operation, so that it is right whatever the operation did. Rules of the
commands: docs/formats/ddx.md §2; ``--unset`` refuses the claim fields, which only releasing the bead removes.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import FOCUS_ON
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.remarks import shut
from helix_tui.core.editing.journal import Rewrite
from helix_tui.core.editing.kinds.fields import DROPPED
from helix_tui.core.editing.kinds.lifecycle import (
    AUTO_COMMIT,
    BLOCKER_FIELDS,
    CLOSING_COMMIT,
    add_close,
    add_reopen,
    add_status,
    add_unclaim,
    unclosed,
)
from helix_tui.core.editing.operation import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import (
    CLAIM_FIELDS,
    FLAGS,
    CommandStep,
    OperationRefused,
    PlanBuilder,
    called,
    named,
    stored,
)
from helix_tui.core.editing.values import Fields, edge, same, shown, targets

REASON = "undo in helix-tui"
"""Reason in the reopen event of an undo."""

TRACES = frozenset({"events", "events_attachment", "updated_at"})
"""Fields that keep a trace of changes; nothing removes it, and nothing should."""

_NOT_SETTABLE = frozenset({"id", "created_at", "created_by", "schema_version", "session_id"})


class WayBack(Struct, frozen=True):
    """The commands that restore rows."""

    steps: tuple[CommandStep, ...] = ()
    lost: tuple[str, ...] = ()
    """What no command restores, as sentences; any of these prevents an undo."""
    traces: tuple[str, ...] = ()
    """What stays behind although the values are restored, as sentences."""
    last: str = ""
    """The command of git that follows, as one would type it; or empty."""


class _Findings(Struct):
    lost: list[str] = []
    traces: list[str] = []


def way_back(writing: PlanBuilder, goal: Mapping[str, Fields | None], *, reason: str = REASON) -> WayBack:
    """Plan the commands that set every bead of ``goal`` to its values there.

    Args:
        writing: a builder on the rows as they are, or as a plan will leave them.
        goal: bead -> field -> value; None in place of the fields: the bead did not exist.
    """
    findings = _Findings()
    latest_first = list(goal.items())[::-1]
    # a focus mark first, so that the rows show what to do if the process dies half-way; then the latest change
    latest_first.sort(key=lambda pair: FOCUS_ON not in (pair[1] or ()))
    for bead_id, fields in latest_first:
        try:
            if fields is None:
                _uncreate(writing, bead_id, findings)
            else:
                _restore(writing, bead_id, fields, findings, reason)
        except OperationRefused as error:
            findings.lost.append(f"{called(bead_id)}: {error}")
    if writing.dialect.commits:
        findings.traces.append(f"ddx makes a commit of each command ({AUTO_COMMIT}), and an undo removes none")
    steps = () if findings.lost else tuple(writing.steps)
    return WayBack(steps, tuple(dict.fromkeys(findings.lost)), tuple(dict.fromkeys(findings.traces)))


def still_rewritten(rewrites: Iterable[Rewrite], overlay: Overlay) -> tuple[Rewrite, ...]:
    """The rewrites that rows show, each with the beads that do."""
    shown_by = [
        (
            rewrite,
            tuple(
                i
                for i in rewrite.beads
                if i in overlay and same(rewrite.field, overlay.value(i, rewrite.field), rewrite.after)
            ),
        )
        for rewrite in rewrites
    ]
    return tuple(replace(each, beads=ids) for each, ids in shown_by if ids)


def rewrites_remain(rewrites: Iterable[Rewrite]) -> tuple[str, ...]:
    """What a write leaves on rows that no command names, as sentences; nothing removes it.

    ddx itself writes 0 as the schema version of a new row, and 1 at the next write: that is not reported.
    """
    return tuple(
        map(_remains, (rewrite for rewrite in rewrites if (rewrite.field, rewrite.before) != ("schema_version", 0)))
    )


def _remains(rewrite: Rewrite) -> str:
    count = len(rewrite.beads)
    beads = named(rewrite.beads, 3) if count <= 3 else f"{count:,} beads ({named(rewrite.beads, 3)})"
    value = shown(rewrite.field, rewrite.after) if rewrite.after is not None else "absent"
    if rewrite.before is None:
        return f"{called(rewrite.field)} {value} on {beads}: ddx adds it at any change, and no command removes it"
    was = shown(rewrite.field, rewrite.before)
    return (
        f"{called(rewrite.field)} {value} instead of {was} on {beads}: "
        "ddx rewrites it at any change, and no command restores it"
    )


def leases_lost(steps: Iterable[CommandStep]) -> tuple[str, ...]:
    """The released leases of beads whose rows do not change: ddx wrote them for its worker, and no command can."""
    steps = tuple(steps)
    changed = {bead_id for step in steps for edits in (step.edits, step.ripple) for bead_id in edits if edits[bead_id]}
    freed = {bead_id: None for step in steps for bead_id, held in step.leases.items() if not held}
    return tuple(
        f"the lease of {called(bead_id)} belonged to its worker, and no command restores it"
        for bead_id in freed
        if bead_id not in changed
    )


def _uncreate(writing: PlanBuilder, bead_id: str, findings: _Findings) -> None:
    """Cancel a created bead, as it cannot be deleted, if this ddx has that status."""
    if not writing.dialect.lifecycle:
        findings.lost.append(f"{called(bead_id)} was created, and this ddx can neither delete nor cancel a bead")
        return
    status = writing.overlay.status(bead_id)
    if status == "cancelled":
        return
    if status not in ("open", "blocked", "proposed"):
        findings.lost.append(f"{called(bead_id)} is {called(status)} now and can no longer be cancelled")
        return
    findings.traces.append(f"{called(bead_id)} stays as a cancelled bead: ddx deletes none")
    add_status(writing, bead_id, "cancelled")


def _restore(writing: PlanBuilder, bead_id: str, goal: Fields, findings: _Findings, reason: str) -> None:
    overlay = writing.overlay
    wanted = {name: value for name, value in goal.items() if name not in TRACES}
    status = str(wanted.pop("status", overlay.status(bead_id)))
    dropped = overlay.value(bead_id, DROPPED)
    if writing.dialect.lands_kept and dropped and wanted.get(DROPPED, dropped) != dropped:
        findings.traces.append(
            f"the history of {called(bead_id)} keeps the rejection: ddx does not land that change by itself any more"
        )
    held = overlay.values(bead_id, ("owner", *CLAIM_FIELDS))
    _leave_status(writing, bead_id, status, wanted, findings, reason)
    for name, value in held.items():
        wanted.setdefault(name, value)  # reopening and releasing remove more than they should here
    fields = _settable(writing, bead_id, wanted, findings)
    _edges(writing, bead_id, wanted, findings)
    _reach_status(writing, bead_id, status, fields, findings)
    writing.update(bead_id, fields)
    # last, once its edges are restored: ddx refuses to close a bead with an open dependency
    if status == "closed" and overlay.status(bead_id) != "closed" and writing.dialect.lifecycle:
        _close_again(writing, bead_id, findings)


def _leave_status(
    writing: PlanBuilder, bead_id: str, status: str, wanted: Fields, findings: _Findings, reason: str
) -> None:
    """Add the commands that must come before fields are set: reopening, releasing."""
    overlay, checked = writing.overlay, writing.dialect.lifecycle
    have = overlay.status(bead_id)
    if have == "cancelled" and status != "cancelled":
        findings.lost.append(f"{called(bead_id)} is cancelled, and a cancelled bead stays cancelled")
        return
    reopens = have == "closed" and status != "closed" and checked
    if reopens:
        add_reopen(writing, bead_id, reason)
    if reopens or (have != "closed" and status == "closed"):
        findings.traces.append(f"the history of {called(bead_id)} will still show the reopen")
    released = have == "in_progress" and status in ("open", "cancelled") and checked
    gone = [
        name
        for name in CLAIM_FIELDS
        if name in wanted and wanted[name] is None and overlay.value(bead_id, name) is not None
    ]
    # --unset refuses the fields of a claim: only releasing removes them
    if released or any(name.startswith("claimed-") for name in gone):
        add_unclaim(writing, bead_id)
    if writing.dialect.leases and status == "in_progress" and have != "in_progress":
        findings.traces.append(f"the lease of {called(bead_id)} is not restored: the claim comes back without one")


def _settable(writing: PlanBuilder, bead_id: str, wanted: Fields, findings: _Findings) -> dict[str, Any]:
    """The differing fields that ``bead update`` can restore."""
    fields: dict[str, Any] = {}
    for name, value in wanted.items():
        if name == "dependencies" or same(name, writing.overlay.value(bead_id, name), value):
            continue
        as_text = writing.dialect.rank and not writing.dialect.rank_is_number
        if name == "queue-rank" and isinstance(value, int) and as_text:
            fields[name] = str(value)
            findings.traces.append(f"the rank of {called(bead_id)} is kept as text, which ddx reads the same way")
        elif _can_set(writing, name, value):
            fields[name] = value
        else:
            findings.lost.append(f"{called(bead_id)}: no command sets {called(name)} back to what it was")
    return fields


def _can_set(writing: PlanBuilder, name: str, value: Any) -> bool:
    if name in _NOT_SETTABLE:
        return False
    if name == "labels":
        return value is None or all(isinstance(text, str) and "," not in text and text for text in value)
    if name == "priority":
        return isinstance(value, int)
    if name in FLAGS:
        return value is None or isinstance(value, str)
    if name == "issue_type":
        return isinstance(value, str) and bool(value)
    if value is None:
        return name not in CLAIM_FIELDS or not name.startswith("claimed-")
    if isinstance(value, bool):
        return True
    if name == "queue-rank" and isinstance(value, int):
        return writing.dialect.rank_is_number
    return isinstance(value, str) and same(name, stored(name, value, writing.dialect), value)


def _edges(writing: PlanBuilder, bead_id: str, wanted: Fields, findings: _Findings) -> None:
    """Restore dependencies with ``dep remove`` and ``dep add``, removing first to avoid a cycle."""
    if "dependencies" not in wanted:
        return
    overlay = writing.overlay
    have, want = set(overlay.depends_on(bead_id)), targets(wanted["dependencies"])
    for target in sorted(have - set(want)):
        left = [each for each in overlay.value(bead_id, "dependencies") or () if target not in targets([each])]
        writing.add("dep", ("remove", bead_id, target), {bead_id: {"dependencies": left or None}})
    known = {each["depends_on_id"]: each for each in wanted["dependencies"] or () if targets([each])}
    for target in want:
        if target in have:
            continue
        if target not in overlay:
            findings.lost.append(
                f"{called(bead_id)} waited on {called(target)}, which the tracker no longer holds: "
                "ddx takes no such edge"
            )
            continue
        kind, *more = (known[target].get(name) for name in ("type", "created_by", "metadata"))
        if kind != "blocks":
            findings.traces.append(f"the edge to {called(target)} was of type {called(str(kind))}; it is “blocks” now")
        if any(more):
            findings.traces.append(f"who made the edge to {called(target)}, and its notes, are not kept")
        findings.traces.append(
            f"the edge from {called(bead_id)} to {called(target)} is restored as the last one, with a new date"
        )
        edges = [*(overlay.value(bead_id, "dependencies") or ()), edge(bead_id, target)]
        writing.add("dep", ("add", bead_id, target), {bead_id: {"dependencies": edges}})


def _reach_status(writing: PlanBuilder, bead_id: str, status: str, fields: dict[str, Any], findings: _Findings) -> None:
    """Restore the status, in the same command as the fields if ddx allows it."""
    overlay = writing.overlay
    have = overlay.status(bead_id)
    if have in (status, "cancelled"):
        return
    if not writing.dialect.lifecycle:
        if status in ("open", "in_progress", "closed"):
            fields["status"] = status
        else:
            findings.lost.append(f"{called(bead_id)} was {called(status)}, which this ddx does not know")
    elif status == "proposed":
        findings.lost.append(f"{called(bead_id)} was proposed, and no command parks a bead again")
    elif status == "blocked":
        reason = str(fields.pop(BLOCKER_FIELDS[0], "") or "")
        if reason.strip():
            add_status(writing, bead_id, "blocked", reason)
        else:
            findings.lost.append(f"{called(bead_id)} was blocked without a reason, which ddx no longer accepts")
    elif status == "cancelled":
        add_status(writing, bead_id, "cancelled")
    elif status in ("open", "in_progress"):
        fields["status"] = status
    elif status != "closed":
        findings.lost.append(f"{called(bead_id)} was {called(status)}, a status that no command sets")


def _close_again(writing: PlanBuilder, bead_id: str, findings: _Findings) -> None:
    """Undo a reopening with ``bead close``, which must not close other beads."""
    waits = unclosed(writing.overlay, bead_id)
    if waits:
        findings.lost.append(f"{called(bead_id)} was closed, but waits on {named(waits)} now")
        return
    add_close(writing, bead_id)
    # an undo that closes further beads would be another change
    falls = writing.steps[-1].ripple
    if falls:
        findings.lost.append(f"closing {called(bead_id)} again would also close {named(falls)}")


class Refusal(Struct, frozen=True):
    """An operation that is not possible now, and why."""

    operation: Operation
    why: str


class Plan(Struct, frozen=True):
    """Everything known about some operations before they run."""

    kind: str
    title: str
    """The change, in one sentence for people."""
    steps: tuple[CommandStep, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    """Warnings to show before it runs."""
    back: WayBack = field(default_factory=WayBack)
    """The way back, as far as known beforehand."""
    of: str = ""
    """The journal entry that it undoes or redoes; else empty."""
    rewrites: tuple[Rewrite, ...] = ()
    """What its first write would do to rows that no command names."""
    first: tuple[str, ...] = ()
    """The commands of git that run before, as one would type them."""

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands, each as its arguments."""
        return tuple(("ddx", *step.args) for step in self.steps)

    @property
    def lines(self) -> tuple[str, ...]:
        """The commands as one would type them."""
        return (*self.first, *map(shlex.join, self.commands))

    @property
    def way_back(self) -> tuple[str, ...]:
        """The commands that would undo it, as one would type them, as far as known."""
        lines = tuple(shlex.join(("ddx", *step.args)) for step in self.back.steps)
        return (*lines, self.back.last) if self.back.last else lines

    @property
    def touched(self) -> dict[str, tuple[str, ...]]:
        """Bead to the fields that are, or may be, changed."""
        return touched_by(self.steps)

    @property
    def undoable(self) -> bool:
        """Whether there is a way back."""
        return bool(self.steps) and not self.back.lost


def plan(
    operations: Iterable[Operation], queue: Queue, dialect: Dialect, *, busy: Collection[str] = (), title: str = ""
) -> Plan:
    """Plan operations on a queue; invalid ones are left out and reported."""
    wanted = list(operations)
    writing = PlanBuilder(Overlay(queue), dialect, busy, refused=shut(queue.beads, dialect))
    refusals = []
    for operation in wanted:
        mark, notes_before = len(writing.steps), len(writing.notes)
        try:
            operation.plan(writing)
        except OperationRefused as error:
            refusals.append(Refusal(operation, str(error)))
            # nothing is left of an operation that was refused half-way
            del writing.notes[notes_before:]
            if len(writing.steps) > mark:
                writing = _up_to(writing, queue, mark)
    steps = tuple(writing.steps)
    kinds = {operation.kind for operation in wanted}
    return Plan(
        kind=kinds.pop() if len(kinds) == 1 else "several",
        title=title or describe(wanted),
        steps=steps,
        refusals=tuple(refusals),
        notes=tuple(dict.fromkeys(writing.notes)),
        back=plan_back(steps, queue, dialect) if steps else WayBack(),
    )


def plan_back(steps: Sequence[CommandStep], queue: Queue, dialect: Dialect) -> WayBack:
    """The way back from the state after some steps, as far as known beforehand."""
    after = Overlay(queue)
    for step in steps:
        after.apply(step.edits, step.leases)
        after.apply(step.ripple)
    commits = [bead_id for step in steps for bead_id, name in step.watched if name == CLOSING_COMMIT]
    if dialect.commits_staged and commits:
        # the commit is known only afterwards
        after.apply({commits[0]: {CLOSING_COMMIT: "a commit to come"}})
    # a watched field may not change, and then there is nothing to restore
    goal = {bead_id: fields for bead_id, fields in values_before(steps, queue).items() if bead_id in after.edits}
    back = way_back(PlanBuilder(after, dialect), goal)
    lost = leases_lost(steps)
    return WayBack((), (*back.lost, *lost), back.traces) if lost else back


def same_commands(made: Plan, shown: Plan) -> bool:
    """Whether a plan equals the confirmed one: the same commands, preconditions and further closed beads. Instants that
    each plan takes from the clock are ignored.
    """
    return _promise(made) == _promise(shown)


def _promise(made: Plan) -> list[tuple[Any, ...]]:
    return [
        (step.args, step.before, {bead_id: fields.get("status") for bead_id, fields in step.ripple.items()})
        for step in made.steps
    ]


def values_before(steps: Sequence[CommandStep], queue: Queue) -> dict[str, Fields | None]:
    """Bead to its values of the fields that steps touch; None for a bead that they create."""
    overlay = Overlay(queue)
    return {
        bead_id: overlay.values(bead_id, fields) if bead_id in overlay else None
        for bead_id, fields in touched_by(steps).items()
    }


def touched_by(steps: Iterable[CommandStep]) -> dict[str, tuple[str, ...]]:
    """Bead to the fields that steps change, or may change."""
    found: dict[str, dict[str, None]] = {}
    for step in steps:
        for edits in (step.edits, step.ripple):
            for bead_id, fields in edits.items():
                found.setdefault(bead_id, {}).update(dict.fromkeys(fields))
        for bead_id, name in step.watched:
            found.setdefault(bead_id, {})[name] = None
    return {bead_id: tuple(name for name in fields if name not in TRACES) for bead_id, fields in found.items()}


def _up_to(writing: PlanBuilder, queue: Queue, mark: int) -> PlanBuilder:
    """The plan without the steps of an operation that was refused half-way."""
    shorter = PlanBuilder(Overlay(queue), writing.dialect, writing.busy, refused=writing.refused)
    shorter.notes = writing.notes
    shorter.steps = writing.steps[:mark]
    for step in shorter.steps:
        shorter.overlay.apply(step.edits, step.leases)
        shorter.overlay.apply(step.ripple)
    return shorter


def describe(operations: Sequence[Operation]) -> str:
    """Describe a change in one sentence."""
    if not operations:
        return "nothing"
    sayings = {operation.saying for operation in operations}
    if len(sayings) > 1:
        return f"{len(operations)} operations"
    ids = [operation.bead_id for operation in operations]
    whom = called(ids[0]) if len(ids) == 1 else f"{len(ids)} beads"
    return sayings.pop().replace("{}", whom, 1)
