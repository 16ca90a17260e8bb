"""Two values of a field in words, so that one sees where they differ however long they are."""

from __future__ import annotations

from typing import Any

from helix_tui.core.editing.overlay import targets
from helix_tui.core.ground.text import clean_line

MOST = 60
"""Characters of a value in a sentence."""


def apart(field: str, one: Any, other: Any, most: int = MOST) -> tuple[str, str]:
    """Both values for a sentence: whole where they are short, else the part in which they differ."""
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
    """What a list has that the other has not, and lacks that the other has."""
    more = [item for item in mine if item not in yours]
    less = [item for item in yours if item not in mine]
    parts = [f"{word} {', '.join(items)}" for word, items in (("with", more), ("without", less)) if items]
    return clean_line(", ".join(parts) or "in another order", most)


def _part(text: str, start: int, most: int) -> str:
    end = "…" if len(text) > start + most else ""
    return f"“{'…' if start else ''}{clean_line(text[start : start + most], most)}{end}”"
