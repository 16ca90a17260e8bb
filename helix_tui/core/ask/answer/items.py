"""The items that an answer is made from, typed, in a stable order, each with a hash (docs/formats/ask.md
§1, phase 2).

Two runs of one question over the same content have the same hashes on every machine: an item holds no time,
no score and no path outside the repository. What differs between two runs is what differs between their
items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

ItemType = Literal[
    "intent",
    "selected_trees",
    "doc_section_hits",
    "repo_search_hits",
    "proof_spans",
    "slot_coverage_report",
    "tree_walk",
]

ORDER: tuple[ItemType, ...] = get_args(ItemType)


@dataclass(frozen=True, slots=True)
class Item:
    """One typed input of the answer."""

    type: ItemType
    path: str
    """The file it comes from; empty where it comes from none."""
    header: str
    start: int
    end: int
    content: str

    @property
    def hash(self) -> str:
        """First 12 hex digits of SHA-256 over type, place in words and content."""
        whole = "\n".join((self.type, self.path, self.header, self.content.strip()))
        return hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:12]

    @property
    def id(self) -> str:
        """``type:hash``."""
        return f"{self.type}:{self.hash}"


def in_order(items: Iterable[Item]) -> tuple[Item, ...]:
    """By type, then file, then place in the file; the same item only once."""
    unique = {(item.type, item.path, item.start, item.end, item.hash): item for item in items}
    return tuple(
        sorted(
            unique.values(),
            key=lambda item: (
                ORDER.index(item.type),
                item.path,
                item.start,
                item.end,
                item.header,
                item.hash,
            ),
        )
    )


def assembly_hash(items: Sequence[Item]) -> str:
    """One hash over all items in their order."""
    return hashlib.sha256("\n".join(item.id for item in items).encode()).hexdigest()[:12]


ChangeKind = Literal["same", "changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """One line of a comparison of two runs."""

    kind: ChangeKind
    type: str
    path: str
    header: str
    before: str
    """Hash in the first run; empty where it was not there."""
    after: str


def compare(before: Sequence[dict[str, object]], after: Sequence[dict[str, object]]) -> tuple[ItemChange, ...]:
    """Two runs item by item, as their records list them (``type, path, header, hash``).

    An item with an equal hash is the same one; of the rest, those of one type and place are paired as
    changed.
    """
    hashes = {_text(item, "hash") for item in before} & {_text(item, "hash") for item in after}
    left = [item for item in before if _text(item, "hash") not in hashes]
    right = [item for item in after if _text(item, "hash") not in hashes]
    changes = [_change("same", item, item) for item in after if _text(item, "hash") in hashes]
    for item in right:
        partner = next((other for other in left if _place(other) == _place(item)), None)
        if partner is not None:
            left.remove(partner)
        changes.append(_change("added" if partner is None else "changed", partner, item))
    changes += [_change("removed", item, None) for item in left]
    rank = {name: place for place, name in enumerate(ORDER)}
    return tuple(sorted(changes, key=lambda one: (rank.get(one.type, 99), one.path, one.header, one.kind)))  # type: ignore[call-overload]


def _change(kind: ChangeKind, before: dict[str, object] | None, after: dict[str, object] | None) -> ItemChange:
    shown = after or before or {}
    return ItemChange(
        kind,
        _text(shown, "type"),
        _text(shown, "path"),
        _text(shown, "header"),
        _text(before or {}, "hash"),
        _text(after or {}, "hash"),
    )


def _place(item: dict[str, object]) -> tuple[str, str, str]:
    return _text(item, "type"), _text(item, "path"), _text(item, "header")


def _text(item: dict[str, object], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""
