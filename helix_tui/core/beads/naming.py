"""Ids in sentences: each with the title of its bead, once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from helix_tui.core.beads.record import Bead
from helix_tui.core.ground.text import clean_line

_WORD = re.compile(r"[A-Za-z0-9][\w.-]*[A-Za-z0-9]")

TITLE = 40
"""Characters of a title that stand beside an id."""


def with_titles(text: str, beads: Mapping[str, Bead], *, most: int = 4) -> str:
    """A sentence whose first ids, each once, are followed by their titles; the rest stays as it is."""
    named: set[str] = set()

    def name(found: re.Match[str]) -> str:
        bead_id = found.group()
        bead = beads.get(bead_id)
        if bead is None or bead_id in named or len(named) >= most or text.startswith("“", found.end() + 1):
            return bead_id
        title = clean_line(bead.title, TITLE + 1)
        if not title or title in text:
            return bead_id
        named.add(bead_id)
        short = title if len(title) <= TITLE else f"{title[: TITLE - 1].rstrip()}…"
        return f"{bead_id} “{short}”"

    return _WORD.sub(name, text)
