"""Colour and columns for people's output, without a library: a queue on stdout must not import one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from typing import TextIO

from msgspec import Struct

from helix_tui.core.ground.text import cell_width, fit

_CODES = {
    "success": "32",
    "running": "1;36",
    "waiting": "2",
    "attention": "35",
    "warning": "33",
    "error": "31",
    "muted": "2",
    "bold": "1",
}

ROLES = {
    "ready": "success",
    "running": "running",
    "retry_cooldown": "warning",
    "preserved_review_blocked": "attention",
    "blocked_external": "error",
    "proposed": "attention",
    "unknown_status": "attention",
    "claimed": "running",
}
"""State -> colour role; every other state is muted."""


class Paint(Struct, frozen=True):
    """How to write to one stream: in colour or not, and how wide."""

    colour: bool
    width: int

    @classmethod
    def for_stream(cls, stream: TextIO, *, plain: bool) -> Paint:
        """Colour on a terminal only, and not against ``--no-color``, NO_COLOR or a dumb terminal."""
        is_terminal = stream.isatty()
        wanted = not plain and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = shutil.get_terminal_size((100, 24)).columns if is_terminal else 100
        return cls(is_terminal and wanted, max(40, width))

    def __call__(self, text: str, role: str) -> str:
        """The text in the colour of a role."""
        code = _CODES.get(role)
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.colour else text

    def state(self, state: str) -> str:
        """A state's word in its colour."""
        return self(state, ROLES.get(state, "muted"))


def columns(rows: Iterable[Sequence[str]], *, gap: str = "  ", right: Iterable[int] = ()) -> list[str]:
    """Cleaned cells as aligned lines; the columns in ``right`` are flush right, the last is not padded."""
    table = [list(row) for row in rows]
    if not table:
        return []
    flush_right = set(right)
    widths = [max(cell_width(row[place]) for row in table) for place in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [
            " " * (width - cell_width(cell)) + cell if place in flush_right else fit(cell, width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(gap.join(cells).rstrip())
    return lines
