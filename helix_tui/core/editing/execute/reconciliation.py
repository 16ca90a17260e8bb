"""Find what some steps really did, from the rows and not from exit codes.

Used after every run, and for runs whose process died, of which only the intent in the journal and the rows remain.
What ddx does to the rest of the tracker is reported before and after: a write drops lines that are not beads, and
encodes every row again (docs/formats/ddx.md §1).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.editing.journal import JournalEntry, Result, Rewrite, Values
from helix_tui.core.editing.plan import TRACES, WayBack, leases_lost, way_back
from helix_tui.core.editing.steps import CommandStep, Difference, Overlay, PlanBuilder, called, same
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, parse_instant

# A field that is not compared: DDx sets the creation time.
_UNREPORTED = TRACES | {"created_at"}

_KEPT_BY_DDX = _UNREPORTED | {"id", "schema_version", "session_id", "created_by"}
"""Fields that ddx maintains and no command sets."""

_NOTHING = object()


class StepsRun(Struct):
    """How far some steps got."""

    ran: int = 0
    """Commands that succeeded."""
    ids: dict[str, str] = {}
    """Placeholder -> id of each bead created."""
    error: DdxError | None = None
    moved: Sequence[Difference] = ()
    """What others changed meanwhile, so that the next command was not run."""
    remarks: list[str] = []
    """Errors that ddx printed although it exited with 0."""


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


_ABSENT = "is not in the tracker although ddx reported no error"
_UNMOVED = "ddx reported no error and did not change it"


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


def with_real_ids(steps: Iterable[CommandStep], ids: Mapping[str, str]) -> tuple[CommandStep, ...]:
    """Steps with the placeholders of new beads replaced by their ids."""
    if not ids:
        return tuple(steps)
    return tuple(
        CommandStep(
            tuple(_named(word, ids) for word in step.args),
            _renamed_edits(step.edits, ids),
            _renamed_edits(step.before, ids),
            tuple((ids.get(bead_id, bead_id), name) for bead_id, name in step.watched),
            _renamed_edits(step.ripple, ids),
            {ids.get(bead_id, bead_id): held for bead_id, held in step.leases.items()},
            step.creates,
        )
        for step in steps
    )


def _renamed_edits(edits: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    return {ids.get(bead_id, bead_id): _named(fields, ids) for bead_id, fields in edits.items()}


def _named(value: Any, ids: Mapping[str, str]) -> Any:
    """A value with placeholders replaced wherever a bead is named: alone, between commas, inside an edge."""
    if isinstance(value, str):
        return ",".join(ids.get(part, part) for part in value.split(",")) if "(new" in value else value
    if isinstance(value, list):
        return [_named(part, ids) for part in value]
    if isinstance(value, dict):
        return {key: _named(part, ids) for key, part in value.items()}
    return value


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


def created_bead(out: str, tracker: Tracker, known: set[str]) -> str | None:
    """The id of the bead just created: the one ddx printed, if it is new in the tracker."""
    # ddx prints the id last, after any messages of a hook or a newer release
    for line in reversed(out.split("\n")):
        if line.strip() in tracker.beads and line.strip() not in known:
            return line.strip()
    return None


def unread_warning(tracker: Tracker, embedded: bool) -> Iterator[str]:
    """The consequence of unreadable lines for a write."""
    if not tracker.dropped:
        return
    first = tracker.dropped[0]
    more = f" and {len(tracker.dropped) - 1} more" if len(tracker.dropped) > 1 else ""
    where = f"line {first.line}{more} of {clean_line(tracker.path.name, 60)} cannot be read"
    why = clean_line(first.reason, 120)
    if embedded:
        yield f"{where} ({why}): nothing is written until it is corrected or removed"
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


# --- every row, encoded again ---------------------------------------------------------------------------

_TEXTS = frozenset(
    ["id", "title", "status", "issue_type", "owner", "created_by", "parent", "description", "acceptance", "notes"]
)
_OPTIONAL = _TEXTS - {"id", "title", "status", "issue_type"} | {"labels", "dependencies"}
_EDGE = ("issue_id", "depends_on_id", "type", "created_at", "created_by", "metadata")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)")
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character: not valid in any text."""

_Some = Annotated[str, Meta(min_length=1)]
_Instant = Annotated[
    str, Meta(pattern=r"^\d{4}-(0[1-9]|1[0-2])-([01][1-9]|10|2[0-8])T[01]\d:[0-5]\d:[0-5]\d(\.\d+)?Z$")
]


class _Edge(Struct, forbid_unknown_fields=True):
    issue_id: str
    depends_on_id: str
    type: str
    created_at: str = ""
    created_by: str = ""
    metadata: str = ""


class _OwnForm(Struct):
    """A row that every release writes as it is, except for its schema version."""

    title: str
    status: _Some
    issue_type: _Some
    priority: int
    created_at: _Instant
    updated_at: _Instant
    owner: str = ""
    created_by: str = ""
    parent: str = ""
    description: str = ""
    acceptance: str = ""
    notes: str = ""
    labels: tuple[str, ...] = ()
    dependencies: tuple[_Edge, ...] = ()


_in_own_form = msgspec.json.Decoder(_OwnForm).decode
_BIG = re.compile(rb":\s?-?[0-9]{16}")
"""A number that a 64-bit float may not hold."""


class Rewrites:
    """Finds what the next write of ddx does to rows that no command names; remembers what it found in a row."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Bead, Mapping[str, tuple[Any, Any]]]] = {}

    def find(
        self, beads: Mapping[str, Bead], dialect: Dialect, named: Mapping[str, Collection[str]] | None = None
    ) -> tuple[Rewrite, ...]:
        """The fields that any write changes.

        Args:
            named: bead -> the fields that the commands themselves set.
        """
        if dialect.fills is None:
            return ()
        found: dict[str, tuple[Rewrite, list[str]]] = {}
        for bead_id, bead in beads.items():
            known = self._known.get(bead_id)
            # an unchanged row keeps its object
            if known is None or known[0] is not bead:
                known = self._known[bead_id] = (bead, _changes(bead, dialect.fills))
            for name, (was, now) in known[1].items():
                if name not in (named or {}).get(bead_id, ()):
                    found.setdefault(repr((name, was, now)), (Rewrite(name, was, now), []))[1].append(bead_id)
        return tuple(replace(rewrite, beads=tuple(ids)) for rewrite, ids in found.values())


def _changes(bead: Bead, fills: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The fields of a bead's row that any write changes, each with its value before and after."""
    stamped = bead.schema_version != 0 and (bead.schema_version is not None or "schema_version" not in fills)
    if stamped and _keeps(bead.raw):
        return {}
    row = bead.document()
    return {name: (row.get(name), value) for name, value in rewritten(row, fills).items()}


def _keeps(raw: bytes) -> bool:
    """Whether a row certainly has ddx's own form but for its schema version."""
    try:
        _in_own_form(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return b"\\ud" not in raw and b"\\uD" not in raw and _BIG.search(raw) is None


def rewritten(row: Mapping[str, Any], fills: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a row that any write changes, with their new values; None: the field is dropped.

    A write decodes every row and encodes it again: absent fields, and known ones of the wrong type, get what ``fills``
    has for them. Fields that keep their meaning are left out.
    """
    changed = {name: value for name, value in fills.items() if name not in row}
    for name, value in row.items():
        kept = _kept(name, value, fills.get(name))
        if not _alike(name, value, kept):
            changed[name] = kept
    return changed


def _kept(name: str, value: Any, default: Any) -> Any:
    """A field of a row after a write."""
    if name in _TEXTS:
        return _text(value) if isinstance(value, str) and (value or name == "title") else default
    if name == "priority" or (name == "schema_version" and default is not None):
        whole = type(value) is int and abs(value) < 1 << 63
        return value if whole and (value or name == "priority") else default
    if name in ("created_at", "updated_at"):
        valid = isinstance(value, str) and _INSTANT.fullmatch(value) and parse_instant(value) is not None
        return value if valid else default
    if name == "labels":
        return [_text(label) for label in value] if isinstance(value, list) else None
    if name == "dependencies":
        return [_edge(each) for each in value] if isinstance(value, list) else None
    return _encoded_again(value)


def _text(value: Any) -> str:
    return _HALF.sub("\ufffd", value) if isinstance(value, str) else ""


def _edge(value: Any) -> dict[str, str]:
    """An edge after a write: only the fields that ddx knows, and the first three of them always."""
    known = value if isinstance(value, dict) else {}
    texts = {name: _text(known.get(name)) for name in _EDGE}
    return {name: text for name, text in texts.items() if text or name in _EDGE[:3]}


def _encoded_again(value: Any) -> Any:
    """A value of a field that ddx does not know after a write: every number becomes a 64-bit float."""
    if isinstance(value, dict):
        return {name: _encoded_again(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_encoded_again(each) for each in value]
    if isinstance(value, str):
        return _text(value)
    if type(value) is int and abs(value) > 1 << 53:
        try:
            return int(Decimal(repr(float(value)))) if abs(value) < 10**21 else float(value)
        except OverflowError:
            return None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _alike(name: str, one: Any, other: Any) -> bool:
    """Whether two values of a field have the same meaning to ddx."""
    if not other and name in _OPTIONAL:
        return one in (None, "", [])
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)
