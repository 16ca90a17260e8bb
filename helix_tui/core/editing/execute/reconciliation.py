"""Find what some steps really did, from the rows and not from exit codes.

Used after every run, and for runs whose process died, of which only the intent in the journal and the rows remain.
A write also drops lines that are not beads, and adds fields to other rows or changes them (docs/formats/ddx.md §1): the
fields that it adds are reported before, all that it changed after.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.editing.journal import JournalEntry, Result, Rewrite, Values
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import TRACES, WayBack, leases_lost, way_back
from helix_tui.core.editing.steps import CommandStep, PlanBuilder, called
from helix_tui.core.editing.values import same
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant

# A field that is not compared: DDx sets the creation time.
_UNREPORTED = TRACES | {"created_at"}

_KEPT_BY_DDX = _UNREPORTED | {"id", "schema_version", "session_id", "created_by"}
"""Fields that ddx maintains and no command sets."""

_NOTHING = object()

_ABSENT = "is not in the tracker although ddx reported no error"
_UNMOVED = "ddx reported no error and did not change it"


class SettledChange(Struct, frozen=True):
    """The actual effect of some steps."""

    result: Result
    before: Values = {}
    after: Values = {}
    back: WayBack = field(default_factory=WayBack)
    problems: tuple[str, ...] = ()
    """Sentences about unexpected values in the tracker."""
    rewritten: tuple[Rewrite, ...] = ()


def settle(
    steps: Sequence[CommandStep], ran: int, before: Values, overlay: Overlay, dialect: Dialect, *, unsure: bool = False
) -> SettledChange:
    """The actual effect of steps, from the rows of ``overlay``.

    Args:
        ran: the number of steps that succeeded.
        before: earlier values of the fields that the steps touch.
        unsure: whether the step after those may have run too, or all of them if the process died.
    """
    seen = _seen(steps if unsure else steps[:ran], ran, before, overlay)
    problems = _against(steps[:ran], before, overlay)
    goal: dict[str, Mapping[str, Any] | None] = {}
    after: dict[str, Mapping[str, Any]] = {}
    for bead_id, fields in seen.items():
        old = before.get(bead_id)
        if old is None:
            goal[bead_id], after[bead_id] = None, fields
            continue
        kept = {name: value for name, value in fields.items() if not same(name, old.get(name), value)}
        if kept:
            goal[bead_id], after[bead_id] = {name: old.get(name) for name in kept}, kept
    if not after:
        back = WayBack(lost=leases_lost(steps[:ran]))
        return SettledChange("failed" if ran < len(steps) or problems else "done", back=back, problems=problems)
    # if unsure, only the rows count; else a value that ddx stores in its own form is not a failure
    whole = not _against(steps, before, overlay) if unsure else ran >= len(steps) and not _unmoved(problems)
    back = way_back(PlanBuilder(overlay, dialect), goal)
    return SettledChange("done" if whole else "partial", goal, after, back, problems)


def _seen(steps: Sequence[CommandStep], ran: int, before: Values, overlay: Overlay) -> dict[str, dict[str, Any]]:
    """The visible effect of steps: fields that they set, as they are now, and watched fields that differ.

    A successful command is assumed to have set its field to the current value, even if this ddx stores it in another
    form than expected.
    """
    found: dict[str, dict[str, Any]] = {}
    for number, step in enumerate(steps):
        # a step's possible further changes count as its own only if it evidently ran
        took = number < ran
        for bead_id, fields in step.edits.items():
            if bead_id not in overlay:
                continue
            old = before.get(bead_id) or {}
            for name, value in fields.items():
                now = overlay.value(bead_id, name)
                changed = number < ran and not same(name, old.get(name), now)
                if name not in _UNREPORTED and (changed or same(name, now, value)):
                    found.setdefault(bead_id, {})[name] = now
                    took = took or not same(name, old.get(name), value)
        for bead_id, name, value in _further(step):
            was = before.get(bead_id)
            if was is None or bead_id not in overlay or name in _UNREPORTED:
                continue
            now = overlay.value(bead_id, name)
            if not same(name, was.get(name), now) and (took or same(name, now, value)):
                found.setdefault(bead_id, {})[name] = now
    return found


def _further(step: CommandStep) -> Iterator[tuple[str, str, Any]]:
    """(bead, field, likely value) of a step's possible further changes."""
    for bead_id, fields in step.ripple.items():
        for name, value in fields.items():
            yield bead_id, name, value
    for bead_id, name in step.watched:
        if name not in step.ripple.get(bead_id, {}):
            yield bead_id, name, _NOTHING


def _unmoved(problems: Iterable[str]) -> bool:
    """Whether a successful command left a field unchanged or its bead missing."""
    return any(problem.endswith((_UNMOVED, _ABSENT)) for problem in problems)


def _against(steps: Sequence[CommandStep], before: Values, overlay: Overlay) -> tuple[str, ...]:
    """Where the rows differ from the result expected of successful commands."""
    wanted: dict[str, dict[str, Any]] = {}
    for step in steps:
        for bead_id, fields in step.edits.items():
            wanted.setdefault(bead_id, {}).update(fields)
    problems = []
    for bead_id, fields in wanted.items():
        if bead_id not in overlay:
            problems.append(f"{called(bead_id)} {_ABSENT}")
            continue
        for name, value in fields.items():
            now = overlay.value(bead_id, name)
            if name in _UNREPORTED or same(name, now, value):
                continue
            unmoved = same(name, now, (before.get(bead_id) or {}).get(name))
            why = _UNMOVED if unmoved else "this ddx stores it differently, or somebody changed it meanwhile"
            found, asked = in_words(now), in_words(value)
            if found == asked:  # they differ in what is not displayed: line ends, blanks
                found, asked = ascii(now), ascii(value)
            problems.append(f"{called(bead_id)}: {called(name)} is {found}, not {asked}; {why}")
    return tuple(problems)


def changed_rows(before: Mapping[str, Bead], after: Mapping[str, Bead]) -> tuple[Values, Values]:
    """(values before, values now) of every field that differs between two readings, without traces."""
    old: dict[str, Mapping[str, Any] | None] = {}
    new: dict[str, Mapping[str, Any] | None] = {}
    for bead_id, bead in after.items():
        was = before.get(bead_id)
        if was is not None and was.raw == bead.raw:
            continue
        now = {name: value for name, value in bead.document().items() if name not in _KEPT_BY_DDX}
        if was is None:
            old[bead_id], new[bead_id] = None, now
            continue
        then = {name: value for name, value in was.document().items() if name not in _KEPT_BY_DDX}
        names = [name for name in dict.fromkeys((*then, *now)) if not same(name, then.get(name), now.get(name))]
        if names:
            old[bead_id] = {name: then.get(name) for name in names}
            new[bead_id] = {name: now.get(name) for name in names}
    return old, new


def irreversible_changes(before: Mapping[str, Bead], after: Mapping[str, Bead], known: Values) -> tuple[str, ...]:
    """Changes that no ddx command undoes: removed rows and, if no field differs, a longer history."""
    gone = [f"{called(bead_id)} left the tracker" for bead_id in before if bead_id not in after]
    grown = [
        f"the history of {called(bead_id)} has changed"
        for bead_id, bead in after.items()
        if not known and bead_id in before and _history(before[bead_id]) != _history(bead)
    ]
    return (*gone, *grown)


def _history(bead: Bead) -> tuple[Any, Any]:
    """The events of a row, or the place of its attachment."""
    row = bead.document()
    return row.get("events"), row.get("events_attachment")


def in_words(value: object) -> str:
    """A value for a sentence."""
    if value is None:
        return "absent"
    return f"“{called(str(value))}”" if isinstance(value, str) else called(str(value))


def record_of(step: CommandStep) -> dict[str, Any]:
    """A step as the journal keeps it."""
    return {
        "command": list(step.args),
        "edits": step.edits,
        "watched": [list(pair) for pair in step.watched],
        "ripple": step.ripple,
        "creates": step.creates,
    }


def steps_of(entry: JournalEntry) -> tuple[CommandStep, ...]:
    """The steps of an entry; unreadable parts are ignored."""
    steps = []
    for record in entry.steps:
        edits, ripple = record.get("edits"), record.get("ripple")
        steps.append(
            CommandStep(
                tuple(map(str, record.get("command") or ())),
                edits if isinstance(edits, dict) else {},
                watched=tuple((str(pair[0]), str(pair[1])) for pair in record.get("watched") or ()),
                ripple=ripple if isinstance(ripple, dict) else {},
                creates=str(record.get("creates") or ""),
            )
        )
    return tuple(steps)


def unreported_creations(
    since: int, steps: Sequence[CommandStep], overlay: Overlay, known: Collection[str]
) -> dict[str, str]:
    """Unreported new beads of a change: matched by title, created since it began, not ``known``."""
    ids: dict[str, str] = {}
    for step in steps:
        if not step.creates:
            continue
        row = step.edits.get(step.creates, {})
        for bead_id, bead in overlay.queue.beads.items():
            created_bead = parse_instant(bead.created_at)
            if (
                bead.title == row.get("title")
                and created_bead is not None
                # a row may have whole seconds
                and created_bead >= since - NS
                and bead_id not in known
                and bead_id not in ids.values()
            ):
                ids[step.creates] = bead_id
                break
    return ids


def unread_warning(tracker: Tracker, embedded: bool) -> Iterator[str]:
    """The consequence of unreadable lines for a write."""
    if not tracker.dropped:
        return
    first = tracker.dropped[0]
    more = f" and {len(tracker.dropped) - 1} more" if len(tracker.dropped) > 1 else ""
    where = f"line {first.line}{more} of {clean_line(tracker.path.name, 60)} cannot be read"
    why = clean_line(first.reason, 120)
    if embedded:
        yield f"{where} ({why}): the embedded tracker writes nothing until it is corrected or removed"
    else:
        yield f"{where} ({why}): ddx drops it at this write, and may keep a copy beside the file"


def lines_dropped(before: Tracker, after: Tracker) -> tuple[str, ...]:
    """The lines that ddx dropped between two readings, which no command restores."""
    left = {line.excerpt for line in after.dropped}
    return tuple(
        f"ddx dropped line {line.line}, which is not a bead: {clean_line(line.excerpt, 200)}"
        for line in before.dropped
        if line.excerpt not in left
    )


# --- what a write does to other rows --------------------------------------------------------------------

Named = Mapping[str, Collection[str]]
"""Bead -> the fields that the commands of a change set themselves."""


def expected_rewrites(beads: Mapping[str, Bead], dialect: Dialect, named: Named) -> tuple[Rewrite, ...]:
    """The fields that the next write adds to every row without them."""
    fills = [(name, f'"{name}"'.encode(), value) for name, value in (dialect.fills or {}).items()]
    bare = Bead("")
    return _grouped(
        (bead_id, name, None, value)
        for bead_id, bead in beads.items()
        for name, key, value in fills
        # a row with another value than that of an absent field has the field: it need not be read
        if getattr(bead, name, None) == getattr(bare, name, None)
        if key not in bead.raw and name not in named.get(bead_id, ())
    )


def observed_rewrites(
    before: Mapping[str, Bead], after: Mapping[str, Bead], named: Named, expected: Iterable[Rewrite]
) -> tuple[Rewrite, ...]:
    """What a write changed in rows that its commands do not name, beyond what was expected of it.

    A row with a new time is left out: somebody else changed it meanwhile.
    """
    known = {(bead_id, rewrite.field) for rewrite in expected for bead_id in rewrite.beads}
    unnamed = {
        bead_id: bead
        for bead_id, bead in after.items()
        if bead_id not in named and bead_id in before and before[bead_id].updated_at in ("", bead.updated_at)
    }
    old, new = changed_rows(before, unnamed)
    return _grouped(
        (bead_id, name, (old[bead_id] or {}).get(name), value)
        for bead_id, fields in new.items()
        for name, value in (fields or {}).items()
        if (bead_id, name) not in known
    )


def _grouped(changes: Iterable[tuple[str, str, Any, Any]]) -> tuple[Rewrite, ...]:
    """Changes (bead, field, value before, value after) as one rewrite for all beads with the same."""
    groups: dict[str, tuple[Rewrite, list[str]]] = {}
    for bead_id, name, was, now in changes:
        groups.setdefault(repr((name, was, now)), (Rewrite(name, was, now), []))[1].append(bead_id)
    return tuple(replace(rewrite, beads=tuple(ids)) for rewrite, ids in groups.values())
