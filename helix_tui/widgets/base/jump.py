"""Jump labels: a letter on every row in view, and what typing one means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

JUMP_LETTERS = "fjdkslaghrueiwoqptyvbncmxz"


class JumpLabels:
    """The labels that are shown, if any; while they are, every key belongs to them."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        """The label on each row, by the row's key."""
        self._rows: dict[str, str] = {}
        self._typed = ""

    def __bool__(self) -> bool:
        return bool(self._rows)

    def put(self, rows: Sequence[str]) -> None:
        """Put a label on each row; labels have two letters where one is not enough for all."""
        labels = list(JUMP_LETTERS)
        if len(rows) > len(labels):
            labels = [first + second for first in JUMP_LETTERS for second in JUMP_LETTERS]
        self._rows = dict(zip(labels, rows, strict=False))
        self.of = {key: label for label, key in self._rows.items()}
        self._typed = ""

    def drop(self) -> None:
        """Show none any more."""
        self._rows, self.of, self._typed = {}, {}, ""

    def type(self, character: str) -> str | Literal[False] | None:
        """Take a key: the row that it leads to, None where it leads nowhere, False while more is to come."""
        typed = self._typed + character
        key = self._rows.get(typed)
        if key is None and character and any(label.startswith(typed) for label in self._rows):
            self._typed = typed
            return False
        self.drop()
        return key
