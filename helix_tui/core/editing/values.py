"""Values of a bead's fields as DDx stores them, and where two of them differ.

A change maps fields to values, None meaning an absent field: DDx writes neither null nor an empty text, list or parent
(docs/formats/ddx.md §1). `apart` shows where two values of a field differ, however long they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from helix_tui.core.beads.record import Bead, Dependency
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    pass


Fields = Mapping[str, Any]
"""Field -> value; None: the field is absent."""

Edits = Mapping[str, Fields]
"""Bead id -> its changed fields, with their values."""

OMITTED_WHEN_EMPTY = frozenset(
    {"parent", "description", "acceptance", "notes", "owner", "labels", "dependencies", "created_by"}
)
"""Fields that DDx leaves out of the row when they are empty."""

_STRUCT = {field.encode_name: field for field in msgspec.structs.fields(Bead) if field.name != "where"}

_REPLACED = "superseded-by:"

MOST = 60
"""Characters of a value in a sentence."""


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


def replacements(bead: Bead) -> list[str]:
    """The beads that replace one, from its field and its labels."""
    named = [bead.superseded_by.strip()] if bead.superseded_by else []
    named += [label.removeprefix(_REPLACED) for label in bead.labels if label.startswith(_REPLACED)]
    return [by for by in named if by]


def canonical_absent(field: str, value: Any) -> Any:
    """None for an empty known field, else the value unchanged."""
    return None if field in OMITTED_WHEN_EMPTY and not value else value


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
