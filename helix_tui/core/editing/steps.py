"""The parts of a plan: a ddx command with all that is known before it runs, and an overlay of changed rows.

`CommandStep` is one command, `PlanBuilder` collects them, each planned on the `Overlay` left by those before it;
nothing is changed. A change maps fields to values, None meaning an absent field: DDx writes neither null nor an empty
text, list or parent (docs/formats/ddx.md §1). A `Difference` is a field that was changed by others meanwhile, which
makes a plan out of date (`PlanChanged`). `apart` shows where two values of a field differ, however long they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead, Dependency
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.ddx.names import DdxAction
from helix_tui.core.ddx.remarks import Shut
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    from helix_tui.core.editing.journal import JournalEntry

Fields = Mapping[str, Any]
"""Field -> value; None: the field is absent."""

Edits = Mapping[str, Fields]
"""Bead id -> its changed fields, with their values."""

OMITTED_WHEN_EMPTY = frozenset(
    {"parent", "description", "acceptance", "notes", "owner", "labels", "dependencies", "created_by"}
)
"""Fields that DDx leaves out of the row when they are empty."""

_STRUCT = {field.encode_name: field for field in msgspec.structs.fields(Bead) if field.name != "where"}


def canonical(field: str, value: Any) -> Any:
    """The canonical form of a value for comparison: an empty known field is absent, edges have no order."""
    if field == "dependencies":
        return tuple(sorted(targets(value))) or None
    if field in OMITTED_WHEN_EMPTY and not value:
        return None
    return value


def same(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field mean the same; ``true`` is not ``1``, and ``5`` not ``"5"``."""
    one, other = canonical(field, one), canonical(field, other)
    return type(one) is type(other) and bool(one == other)


def targets(value: Any) -> tuple[str, ...]:
    """Ids that a row's ``dependencies`` name, each once, in order."""
    found = [
        edge["depends_on_id"]
        for edge in value or ()
        if isinstance(edge, dict) and isinstance(edge.get("depends_on_id"), str) and edge["depends_on_id"]
    ]
    return tuple(dict.fromkeys(found))


def edge(bead_id: str, target: str) -> dict[str, str]:
    """An edge as ``dep add`` writes it, without its time."""
    return {"issue_id": bead_id, "depends_on_id": target, "type": "blocks"}


def amend(bead: Bead, fields: Fields) -> Bead:
    """The record with some fields changed, for judging; irrelevant fields are left out."""
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        known = _STRUCT.get(name)
        if known is None:
            continue
        if name == "dependencies":
            changes[known.name] = tuple(Dependency(target, "blocks") for target in targets(value))
        elif name == "labels":
            changes[known.name] = tuple(value or ())
        else:
            changes[known.name] = _converted(value, known)
    return msgspec.structs.replace(bead, **changes) if changes else bead


def _converted(value: Any, known: msgspec.structs.FieldInfo) -> Any:
    if value is None:
        return known.default
    try:
        return msgspec.convert(value, known.type)
    except msgspec.ValidationError:
        return known.default  # read like a row with that value


_REPLACED = "superseded-by:"

_NAMES_REPLACEMENT = frozenset({"superseded-by", "labels"})


def replacements(bead: Bead) -> list[str]:
    """The beads that replace one, from its field and its labels."""
    named = [bead.superseded_by.strip()] if bead.superseded_by else []
    named += [label.removeprefix(_REPLACED) for label in bead.labels if label.startswith(_REPLACED)]
    return [by for by in named if by]


class Overlay:
    """The beads of a queue after planned changes.

    Attributes:
        queue: the underlying queue, which is not changed.
        edits: what was changed so far, by bead.
        leases: claims taken or released so far.
        added: ids of beads that do not exist yet.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.edits: dict[str, dict[str, Any]] = {}
        self.leases: dict[str, bool] = {}
        self.added: list[str] = []
        self._documents: dict[str, dict[str, Any]] = {}
        self._replaced: dict[str, list[str]] | None = None

    def __contains__(self, bead_id: object) -> bool:
        return bead_id in self.queue.beads or bead_id in self.edits

    def __iter__(self) -> Iterator[str]:
        yield from self.queue.beads
        yield from self.added

    def value(self, bead_id: str, field: str) -> Any:
        """A field after the changes; None if absent."""
        changed = self.edits.get(bead_id)
        if changed is not None and field in changed:
            return changed[field]
        if field == "queue-rank" and bead_id in self.queue.beads:
            return self.queue.beads[bead_id].raw_rank  # read for a whole priority: no need to decode its rows
        return canonical_absent(field, self._document(bead_id).get(field))

    def values(self, bead_id: str, fields: Iterable[str]) -> dict[str, Any]:
        """Several fields of a bead."""
        return {field: self.value(bead_id, field) for field in fields}

    def row(self, bead_id: str) -> dict[str, Any]:
        """Every field of the row after the changes."""
        whole = {**self._document(bead_id), **self.edits.get(bead_id, {})}
        return {field: value for field, value in whole.items() if value is not None}

    def status(self, bead_id: str) -> str:
        """The status after the changes; empty for a missing bead."""
        changed = self.edits.get(bead_id)
        if changed is not None and "status" in changed:
            return str(changed["status"])
        bead = self.queue.beads.get(bead_id)
        return bead.status if bead is not None else ""

    def depends_on(self, bead_id: str) -> tuple[str, ...]:
        """Ids it waits for after the changes."""
        changed = self.edits.get(bead_id)
        if changed is not None and "dependencies" in changed:
            return targets(changed["dependencies"])
        bead = self.queue.beads.get(bead_id)
        return bead.depends_on if bead is not None else ()

    def parent(self, bead_id: str) -> str:
        """The parent after the changes."""
        changed = self.edits.get(bead_id)
        if changed is not None and "parent" in changed:
            return str(changed["parent"] or "")
        bead = self.queue.beads.get(bead_id)
        return bead.parent if bead is not None else ""

    def children(self, bead_id: str) -> list[str]:
        """Ids whose parent it is after the changes."""
        stayed = [child for child in self.queue.graph.children.get(bead_id, ()) if self.parent(child) == bead_id]
        known = set(stayed)
        came = [other for other in self.edits if self.edits[other].get("parent") == bead_id and other not in known]
        return stayed + came

    def replaced_by(self, bead_id: str) -> list[str]:
        """Ids of beads that may be superseded by this one, before the changes or after."""
        # one scan of all beads serves every bead that a plan closes
        if self._replaced is None:
            self._replaced = {}
            for other, bead in self.queue.beads.items():
                for by in replacements(bead):
                    self._replaced.setdefault(by, []).append(other)
        changed = (
            other
            for other, fields in self.edits.items()
            if not _NAMES_REPLACEMENT.isdisjoint(fields) and bead_id in replacements(self.bead(other))
        )
        return list(dict.fromkeys((*self._replaced.get(bead_id, ()), *changed)))

    def bead(self, bead_id: str) -> Bead:
        """The record after the changes.

        Raises:
            KeyError: there is no such bead.
        """
        base = self.queue.beads.get(bead_id)
        if base is None:
            if bead_id not in self.edits:
                raise KeyError(bead_id)
            base = Bead(id=bead_id)
        return amend(base, self.edits.get(bead_id, {}))

    def apply(self, edits: Edits, leases: Mapping[str, bool] | None = None) -> None:
        """Apply further changes."""
        for bead_id, fields in edits.items():
            if bead_id not in self:
                self.added.append(bead_id)
            self.edits.setdefault(bead_id, {}).update(fields)
        self.leases.update(leases or {})

    def _document(self, bead_id: str) -> dict[str, Any]:
        known = self._documents.get(bead_id)
        if known is None:
            bead = self.queue.beads.get(bead_id)
            known = self._documents[bead_id] = bead.document() if bead is not None else {}
        return known


def canonical_absent(field: str, value: Any) -> Any:
    """None for an empty known field, else the value unchanged."""
    return None if field in OMITTED_WHEN_EMPTY and not value else value


MOST = 60
"""Characters of a value in a sentence."""


def apart(field: str, one: Any, other: Any, most: int = MOST) -> tuple[str, str]:
    """Two values for a sentence: whole if short, else the parts that differ."""
    if isinstance(one, str) and isinstance(other, str):
        pairs = enumerate(zip(one, other, strict=False))
        first = next((place for place, (mine, yours) in pairs if mine != yours), min(len(one), len(other)))
        start = max(0, first - most // 3) if max(len(one), len(other)) > most else 0
        return _part(one, start, most), _part(other, start, most)
    ours, theirs = _items(field, one), _items(field, other)
    if ours is not None and theirs is not None:
        whole = [", ".join(items) for items in (ours, theirs)]
        if max(map(len, whole)) > most:
            return _against(ours, theirs, most), _against(theirs, ours, most)
    return shown(field, one, most), shown(field, other, most)


def shown(field: str, value: Any, most: int = MOST) -> str:
    """One value for a sentence."""
    items = _items(field, value)
    if items is not None:
        return clean_line(", ".join(items), most) if items else "none"
    if value is None:
        return "absent"
    return f"“{clean_line(value, most)}”" if isinstance(value, str) else clean_line(str(value), most)


def _items(field: str, value: Any) -> list[str] | None:
    """The items of a list: labels, or what a bead waits on."""
    if value is None and field in ("labels", "dependencies"):
        return []
    if not isinstance(value, list | tuple):
        return None
    if any(isinstance(item, dict) for item in value):
        return list(targets(value)) if field == "dependencies" else None
    return [str(item) for item in value]


def _against(mine: list[str], yours: list[str], most: int) -> str:
    """The items that a list has and lacks compared with another."""
    more = [item for item in mine if item not in yours]
    less = [item for item in yours if item not in mine]
    parts = [f"{word} {', '.join(items)}" for word, items in (("with", more), ("without", less)) if items]
    return clean_line(", ".join(parts) or "in another order", most)


def _part(text: str, start: int, most: int) -> str:
    end = "…" if len(text) > start + most else ""
    return f"“{'…' if start else ''}{clean_line(text[start : start + most], most)}{end}”"


NEW = "(new)"
"""Placeholder for the id of a bead that does not exist yet, replaced in later commands by the id that ddx prints."""

MAX_VALUE = 120_000
"""Maximum bytes of one value: the kernel's limit for a command-line argument."""

CLAIM_FIELDS = (
    "claimed-at",
    "claimed-machine",
    "claimed-pid",
    "claimed-session",
    "claimed-worktree",
    "execute-loop-heartbeat-at",
    "work-heartbeat-at",
)
"""Fields that a claim writes into the row; only releasing the bead removes them."""

FLAGS = {
    "title": "--title",
    "priority": "--priority",
    "labels": "--labels",
    "acceptance": "--acceptance",
    "owner": "--assignee",
    "parent": "--parent",
    "description": "--description",
    "notes": "--notes",
}
"""Fields that ``bead update`` has a flag for; an empty text clears them."""


class OperationRefused(HelixError):
    """An operation that is not possible now; the message says why and what would help, in one sentence."""


class CommandStep(Struct, frozen=True):
    """One command, its preconditions and its changes."""

    args: tuple[str, ...]
    """Arguments after ``ddx``."""
    edits: Edits = {}
    """The certain values of the rows afterwards."""
    before: Edits = {}
    """The values of the same fields before, so that changes by others are not overwritten."""
    watched: tuple[tuple[str, str], ...] = ()
    """Further (bead, field) pairs that the command may change to values that only ddx knows."""
    ripple: Edits = {}
    """Changes that ddx will most likely make to other rows by itself."""
    leases: Mapping[str, bool] = {}
    """Claims outside the rows that it takes or releases."""
    creates: str = ""
    """The placeholder for the id of the bead that it creates."""


_IDS: Mapping[DdxAction, slice] = {"create": slice(0), "dep": slice(1, 3), "queue": slice(1, 2)}
"""Which words after the verb are ids; of every other action the first is."""


class PlanBuilder:
    """Collects the steps of a plan, each planned on the result of those before it.

    Attributes:
        busy: beads with a live worker, by more than a claim.
        claimed: beads held by a worker or a person not known to be dead.
        refused: why ddx would refuse every change; then nothing is planned.
        notes: warnings to show before the commands run.
    """

    def __init__(
        self,
        overlay: Overlay,
        dialect: Dialect,
        busy: Collection[str] = (),
        *,
        claimed: Collection[str] = (),
        refused: Shut | None = None,
    ) -> None:
        self.overlay = overlay
        self.dialect = dialect
        self.busy = busy
        self.claimed = claimed
        self.refused = refused if refused is not None and refused.bars_changes else None
        self.steps: list[CommandStep] = []
        self.notes: list[str] = []

    def add(
        self,
        action: DdxAction,
        args: Iterable[str],
        edits: Edits,
        *,
        watched: Iterable[tuple[str, str]] = (),
        ripple: Edits | None = None,
        leases: Mapping[str, bool] | None = None,
        creates: str = "",
    ) -> None:
        """Append one command: what ddx is to do, and the words after its verb."""
        if self.refused is not None:
            raise OperationRefused(str(self.refused))
        after = tuple(args)
        words = (*self.dialect.words(action), *after)
        check_words(words)
        check_ids(after[_IDS.get(action, slice(0, 1))])
        for bead_id, fields in edits.items():
            self._check_labels(bead_id, fields.get("labels") or ())
            self._check_gates(bead_id, fields)
        # its preconditions: the values left by the steps before it
        before = {bead_id: self.overlay.values(bead_id, fields) for bead_id, fields in edits.items()}
        step = CommandStep(words, edits, before, tuple(watched), ripple or {}, leases or {}, creates)
        self.steps.append(step)
        self.overlay.apply(edits, leases)
        self.overlay.apply(ripple or {})

    def _check_labels(self, bead_id: str, labels: Iterable[object]) -> None:
        """Refuse labels with a comma, at which ddx would split them."""
        for text in labels:
            if isinstance(text, str) and "," in text:
                raise OperationRefused(
                    f"the label “{called(text)}” of {called(bead_id)} has a comma, at which ddx would split "
                    "it for good; remove that label first, or leave the labels of this bead as they are"
                )

    def _check_gates(self, bead_id: str, fields: Mapping[str, Any]) -> None:
        """Refuse a value that would make this ddx refuse every further command."""
        have = self.overlay.values(bead_id, ("labels", "status")) if bead_id in self.overlay else {}
        for gate in self.dialect.gates:
            if gate.kind == "label":
                # only what the step itself adds: an existing label is reported by `shut`
                brings = gate.word in (fields.get("labels") or ()) and gate.word not in (have.get("labels") or ())
            else:
                brings = fields.get(gate.kind) == gate.word != have.get(gate.kind)
            if brings:
                raise OperationRefused(
                    f"with the {gate.kind} {gate.word} on a bead this ddx refuses every command, reading too "
                    f"({gate.code}); only `{gate.command}` would help, and it removes the {gate.kind}"
                )

    def update(
        self,
        bead_id: str,
        fields: Mapping[str, Any],
        *,
        flags: Sequence[str] = (),
        watched: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Append one ``bead update`` that leaves the bead with these fields; nothing if it has them."""
        changed = {
            name: value for name, value in fields.items() if not same(name, self.overlay.value(bead_id, name), value)
        }
        if changed or flags:
            self.add("update", (bead_id, *flags, *update_words(changed)), {bead_id: changed}, watched=watched)


def update_words(fields: Mapping[str, Any]) -> list[str]:
    """The flags of ``bead update`` that set fields to values, or remove them for None."""
    words: list[str] = []
    for name, value in fields.items():
        if name in FLAGS:
            words += option(FLAGS[name], _flag_text(name, value))
        elif name == "status":
            words += option("--status", str(value))
        elif value is None:
            words += option("--unset", name)
        else:
            words += option("--set", f"{name}={_set_text(value)}")
    return words


def _flag_text(name: str, value: Any) -> str:
    if value is None:
        return ""
    return ",".join(value) if name == "labels" else str(value)


def _set_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def option(flag: str, value: str) -> list[str]:
    """A flag and its value; a value that looks like a flag is escaped."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def stored(name: str, text: str, dialect: Dialect) -> Any:
    """The value that ``--set name=text`` leaves in the row: ``true`` and ``false`` become booleans, a rank in some
    releases a number, and lines end in LF (every release reads ``--set`` as CSV, which drops the CR).
    """
    if text in ("true", "false"):
        return text == "true"
    if name == "queue-rank" and dialect.rank_is_number and re.fullmatch(r"-?[0-9]{1,19}", text):
        return int(text)
    return text.replace("\r\n", "\n")


def check_words(words: Iterable[str]) -> None:
    """Refuse arguments that a command line cannot contain.

    Raises:
        OperationRefused: an argument is too long, or has a character that no command accepts.
    """
    for word in words:
        if "\0" in word:
            raise OperationRefused("the text holds a NUL character, which no command can take; remove it")
        try:
            size = len(word.encode())
        except UnicodeEncodeError:
            raise OperationRefused("the text holds half a character (a lone surrogate), which is not Unicode") from None
        if size > MAX_VALUE:
            raise OperationRefused(
                f"the text has {size:,} bytes and a command accepts {MAX_VALUE:,}; shorten it, or put it in a file"
            )


def check_ids(ids: Iterable[str]) -> None:
    """Refuse ids that ddx would not read as ids.

    Raises:
        OperationRefused: an id is empty, begins with a dash, or has control characters.
    """
    for bead_id in ids:
        if not re.fullmatch(r"[^-\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*", bead_id):
            raise OperationRefused(
                f"the id “{called(bead_id)}” is empty, begins with “-” or has control characters; "
                "correct the id in the tracker by hand"
            )


def called(bead_id: str) -> str:
    """A bead's id for a sentence."""
    return clean_line(bead_id, 60)


def named(ids: Iterable[str], most: int = 5) -> str:
    """Some ids for a sentence."""
    some = [called(bead_id) for bead_id in ids]
    more = len(some) - most
    return ", ".join(some[:most]) + (f" and {more} more" if more > 0 else "")


class Difference(Struct, frozen=True):
    """A field that was changed by others: the expected and the current value."""

    bead_id: str
    field: str
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        name = f"{called(self.bead_id)}: {called(self.field)}"
        ours, theirs = apart(self.field, self.ours, self.theirs)
        return f"{name} was {ours} and is {theirs} now"


class Conflict(HelixError):
    """The fields to change were changed by others meanwhile; nothing was overwritten.

    Attributes:
        differences: both versions, field by field.
        entry: the change to undo or redo, if it was one.
        ran: how many commands of the change had run, and stay in effect.
        of: the number of its commands.
    """

    def __init__(
        self, differences: Sequence[Difference], entry: JournalEntry | None = None, *, ran: int = 0, of: int = 0
    ) -> None:
        super().__init__("; ".join(map(str, differences[:5])) or "the queue has changed")
        self.differences = tuple(differences)
        self.entry = entry
        self.ran, self.of = ran, of


class PlanChanged(Conflict):
    """Other commands would run now than were confirmed; nothing ran. Show the plan again."""


def differences(
    expected: Edits | Mapping[str, Mapping[str, Any] | None], beads: Mapping[str, Bead]
) -> list[Difference]:
    """Where rows differ from expected values; a missing bead differs in every field."""
    found = []
    for bead_id, fields in expected.items():
        bead = beads.get(bead_id)
        row = bead.document() if bead is not None else {}
        for name, value in (fields or {}).items():
            now = canonical_absent(name, row.get(name))
            if bead is None or not same(name, now, value):
                found.append(Difference(bead_id, name, value, now))
    return found


def differences_in(expected: Edits | Mapping[str, Mapping[str, Any] | None], overlay: Overlay) -> list[Difference]:
    """The same for rows after planned changes."""
    return [
        Difference(bead_id, name, value, overlay.value(bead_id, name))
        for bead_id, fields in expected.items()
        for name, value in (fields or {}).items()
        if bead_id not in overlay or not same(name, overlay.value(bead_id, name), value)
    ]


def preconditions(steps: Sequence[CommandStep]) -> dict[str, dict[str, Any]]:
    """The values that rows must have before the first of these steps."""
    first: dict[str, dict[str, Any]] = {}
    for step in steps:
        for bead_id, fields in step.before.items():
            kept = first.setdefault(bead_id, {})
            for name, value in fields.items():
                # a later step may depend on an earlier one's effect: the first value counts
                kept.setdefault(name, value)
    made = {step.creates for step in steps if step.creates}
    return {bead_id: fields for bead_id, fields in first.items() if bead_id not in made}
