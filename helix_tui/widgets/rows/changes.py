"""The changes made from here, one a row: sign, when, what, and on the right how it stands and who made it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_age
from helix_tui.themes.roles import Sign
from helix_tui.widgets.base.line import Line, Span, cut, spread
from helix_tui.widgets.base.row_source import RowSource

STATE_SIGNS: dict[str, Sign] = {
    "done": Sign("✓", "x", "success", "done"),
    "undone": Sign("⊝", "-", "muted", "undone", "muted"),
    "conflicted": Sign("!", "!", "error bold", "changed since"),
    "partial": Sign("◆", "*", "attention bold", "half-way"),
    "final": Sign("✓", "x", "waiting", "no way back"),
    "failed": Sign("✗", "x", "muted", "nothing changed", "muted"),
    "pending": Sign("◉", "@", "running bold", "under way"),
}
"""By how an entry of the journal stands."""

WIDE_ROW = 58
"""Cells from which a row has room for who made the change."""


class ChangeRow(Struct, frozen=True):
    """One change, as a row needs it; its texts are clean."""

    key: str
    at: int
    title: str
    state: str
    who: str
    turn: str = ""
    """``undo`` or ``redo`` where it is one, else empty."""
    beads: tuple[str, ...] = ()
    words: str = ""
    """Everything else that a filter looks in, in small letters."""

    @property
    def sign(self) -> Sign:
        """How it stands."""
        return STATE_SIGNS[self.state]


class ChangeRows(RowSource):
    """Changes, the newest first; captions above them say what of the journal cannot be read."""

    def __init__(
        self, rows: Sequence[ChangeRow], now: int, *, notices: Sequence[str] = (), narrow: bool = False
    ) -> None:
        self.rows = tuple(rows)
        self.notices = tuple(notices)
        self._now = now
        self._narrow = narrow
        self._places = {row.key: place for place, row in enumerate(self.rows, len(self.notices))}

    def row(self, key: str | None) -> ChangeRow | None:
        """The change of a key."""
        place = self._places.get(key or "")
        return None if place is None else self.rows[place - len(self.notices)]

    def __len__(self) -> int:
        return len(self.notices) + len(self.rows)

    def key(self, index: int) -> str:
        return f"notice {index}" if index < len(self.notices) else self.rows[index - len(self.notices)].key

    def index(self, key: str) -> int | None:
        if key.startswith("notice "):
            place = int(key.partition(" ")[2])
            return place if place < len(self.notices) else None
        return self._places.get(key)

    def selectable(self, index: int) -> bool:
        return index >= len(self.notices)

    def text(self, index: int) -> str:
        if index < len(self.notices):
            return self.notices[index]
        row = self.rows[index - len(self.notices)]
        return f"{row.title} {row.key} {row.who}"

    def paint(self, index: int, width: int) -> Line:
        if index < len(self.notices):
            return [("! ", "attention bold"), (self.notices[index], "attention")]
        row = self.rows[index - len(self.notices)]
        sign = row.sign
        left: list[Span] = [(f"{sign.glyph} ", sign.ink), (row.title, sign.title_ink)]
        note: list[Span] = []
        # how most entries stand goes without saying; that nothing was changed, only where there is room
        if row.state not in ("done", "failed") or (width >= WIDE_ROW and row.state != "done"):
            note = [(sign.word, sign.ink.removesuffix(" bold")), ("  ", "text")]
        if width >= WIDE_ROW:
            note += [(cut(row.who, 12), "muted"), (" ", "text")]
        age = format_age((self._now - row.at) / NS)
        return spread(left, [*note, (f"{age:>4}", "muted")], width)

    def paint_more(self, index: int, width: int) -> Line | None:
        if not self._narrow or index < len(self.notices):
            return None
        row = self.rows[index - len(self.notices)]
        count = f" · {len(row.beads)} beads" if len(row.beads) > 1 else ""
        said = f"  {row.key} · {row.who}{count} · {row.sign.word}"
        return [(said, "muted")]


class ChangeFilter:
    """Words that a change must hold, all of them; ``key:word`` asks one field, ``-`` turns a word round."""

    FIELDS = ("state", "who", "bead", "op")

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.words = text.lower().split()

    @property
    def problem(self) -> str:
        """What is not understood, in one sentence; empty when all is."""
        for word in self.words:
            key, colon, _ = word.lstrip("-").partition(":")
            if colon and key.isalpha() and key not in self.FIELDS:
                return f"no field “{clean_line(key, 20)}”; there are {', '.join(self.FIELDS)}"
        return ""

    def passing(self, rows: Iterable[ChangeRow]) -> list[ChangeRow]:
        """The changes that hold all words."""
        return [row for row in rows if all(self._has(row, word) for word in self.words)]

    def _has(self, row: ChangeRow, word: str) -> bool:
        wanted = not word.startswith("-") or len(word) == 1
        word = word if wanted else word[1:]
        key, colon, value = word.partition(":")
        fields = {
            "state": f"{row.state} {row.sign.word}",
            "who": row.who.lower(),
            "bead": " ".join(row.beads).lower(),
            "op": row.key,
        }
        if colon and key in fields:
            return (value in fields[key]) is wanted
        held = " ".join((row.title.lower(), row.words, *fields.values()))
        return (word in held) is wanted

    def pattern(self) -> re.Pattern[str] | None:
        """What the words light up in the rows."""
        words = [word for word in self.words if word[0] != "-" and word.split(":")[0] not in self.FIELDS]
        return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None

    def ways(self, start: str) -> list[tuple[str, str]]:
        """Ways to go on with the word that is being typed, with what each is."""
        key, colon, value = start.lower().partition(":")
        if not colon:
            return [(f"{name}:", "") for name in self.FIELDS if start and name.startswith(key)]
        if key != "state":
            return []
        return [(f"state:{state}", sign.word) for state, sign in STATE_SIGNS.items() if state.startswith(value)]
