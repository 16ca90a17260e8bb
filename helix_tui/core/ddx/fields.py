"""Fields of a JSON object of whatever shape, each by itself: a wrong type is an absent field."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from helix_tui.core.ground.time import NEVER, parse_instant


def text(document: Mapping[str, Any] | None, key: str) -> str:
    """A text field, or nothing."""
    value = document.get(key) if document is not None else None
    return value if isinstance(value, str) else ""


def word(document: Mapping[str, Any] | None, key: str) -> str:
    """A text field that says the same in many documents (a status, a model): one object for all of them."""
    return sys.intern(text(document, key))


def instant(value: object) -> int | None:
    """An instant; None for an absent one and for Go's zero time."""
    found = parse_instant(value)
    return found if found is not None and found > NEVER else None


def whole(value: object, low: int = 0) -> int | None:
    """A whole number not below ``low``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if low <= value < 1e15 else None


def money(value: object) -> float | None:
    """A cost that is known: DDx writes 0 or -1 where it does not know (docs/formats/ddx.md §5)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < 1e9 else None
