"""The journal on screen: its changes, one per row with state and author; and one change in full: its commands,
before and after field by field, how to undo it, what changed since.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from msgspec import Struct

from helix_tui.core.beads.states import Sign
from helix_tui.core.ground.text import clean_block, clean_line, short_id
from helix_tui.core.ground.time import NS, format_age
from helix_tui.widgets.base.line import Line, Span, cut, heading, spread
from helix_tui.widgets.base.row_source import RowSource
from helix_tui.widgets.base.word_filter import WordFilter
from helix_tui.widgets.rows.attempt_table import day_name
from helix_tui.widgets.text.pane import Para, TextPane, section

STATE_SIGNS: dict[str, Sign] = {
    "done": Sign("✓", "x", "success", "done"),
    "undone": Sign("⊝", "-", "muted", "undone", "muted"),
    "conflicted": Sign("!", "!", "error bold", "changed since"),
    "partial": Sign("◆", "*", "attention bold", "half-way"),
    "final": Sign("✓", "x", "waiting", "no undo"),
    "failed": Sign("✗", "x", "muted", "nothing changed", "muted"),
    "pending": Sign("◉", "@", "running bold", "under way"),
}
"""Signs by the state of a journal entry."""

WIDE_ROW = 58
"""The width from which a row shows who made the change."""


LOOP = "loop"
"""The author of what a HELIX run changed by itself."""

MAX_LINES = 400
"""How many lines of a difference between two long texts are shown."""

SHORT = 44
"""The longest values for which before and after fit on one line."""


class ChangeRow(Struct, frozen=True):
    """One change, as a row needs it; its texts are clean."""

    key: str
    at: int
    title: str
    state: str
    who: str
    turn: str = ""
    """``undo`` or ``redo`` if it is one, else empty."""
    beads: tuple[str, ...] = ()
    words: str = ""
    """All other text that the filter searches, in lower case."""

    @property
    def sign(self) -> Sign:
        """Its state."""
        return STATE_SIGNS[self.state]


class ChangeRows(RowSource):
    """Changes, the newest first, under their days; captions above them say what cannot be read of the journal."""

    def __init__(
        self, rows: Sequence[ChangeRow], now: int, *, notices: Sequence[str] = (), narrow: bool = False
    ) -> None:
        self._now = now
        self._narrow = narrow
        self._lines: list[tuple[str, ChangeRow | None]] = [(f"notice {text}", None) for text in notices]
        for day, changes in groupby(rows, lambda row: day_name(row.at, now)):
            self._lines += [(f"day {day}", None), *((row.key, row) for row in changes)]
        self._places = {key: place for place, (key, _) in enumerate(self._lines)}

    def row(self, key: str | None) -> ChangeRow | None:
        """The change of a key."""
        place = self._places.get(key or "")
        return None if place is None else self._lines[place][1]

    def __len__(self) -> int:
        return len(self._lines)

    def key(self, index: int) -> str:
        return self._lines[index][0]

    def index(self, key: str) -> int | None:
        return self._places.get(key)

    def selectable(self, index: int) -> bool:
        return self._lines[index][1] is not None

    def text(self, index: int) -> str:
        key, row = self._lines[index]
        return key.partition(" ")[2] if row is None else f"{row.title} {row.key} {row.who}"

    def paint(self, index: int, width: int) -> Line:
        key, row = self._lines[index]
        if row is None:
            kind, _, text = key.partition(" ")
            return heading(text, width) if kind == "day" else [("! ", "attention bold"), (text, "attention")]
        sign = row.sign
        spans: list[Span] = [(f"{sign.glyph} ", sign.ink), (row.title, sign.title_ink)]
        note: list[Span] = []
        # the usual state is not shown; "nothing changed" only if there is room
        if row.state not in ("done", "failed") or (width >= WIDE_ROW and row.state != "done"):
            note = [(sign.word, sign.ink.removesuffix(" bold")), ("  ", "text")]
        if width >= WIDE_ROW:
            note += [(cut(row.who, 12), "muted"), (" ", "text")]
        age = format_age((self._now - row.at) / NS)
        return spread(spans, [*note, (f"{age:>4}", "muted")], width)

    def paint_more(self, index: int, width: int) -> Sequence[Line]:
        row = self._lines[index][1]
        if not self._narrow or row is None:
            return ()
        count = f" · {len(row.beads)} beads" if len(row.beads) > 1 else ""
        said = f"  {row.key} · {row.who}{count} · {row.sign.word}"
        return [[(said, "muted")]]


class ChangeFilter(WordFilter):
    """The filter of the journal."""

    FIELDS = ("state", "who", "bead", "op")

    def passing(self, rows: Iterable[ChangeRow]) -> list[ChangeRow]:
        """The changes that contain all words; without any, what the loop did by itself is left out."""
        if not self.words:
            return [row for row in rows if row.who != LOOP]
        return [row for row in rows if self._matches(row)]

    def _matches(self, row: ChangeRow) -> bool:
        state = f"{row.state} {row.sign.word}"
        fields = {"state": state, "who": row.who, "bead": " ".join(row.beads), "op": row.key}
        return self._accepts(fields, " ".join((row.title, row.words, *fields.values())))

    def ways(self, start: str) -> list[tuple[str, str]]:
        """Completions of the word being typed, with their meaning."""
        key, colon, value = start.lower().partition(":")
        if not colon:
            return [(f"{name}:", "") for name in self.FIELDS if name.startswith(key)]
        if key != "state":
            return []
        return [(f"state:{state}", sign.word) for state, sign in STATE_SIGNS.items() if state.startswith(value)]


class FieldChange(Struct, frozen=True):
    """One field of one bead; its texts are clean."""

    bead_id: str
    field: str
    before: str
    after: str


class ChangeFacts(Struct, frozen=True):
    """The details of one change; all texts are clean."""

    key: str
    title: str
    state: str
    why: str
    """One sentence about the state; may be empty."""
    when: str
    who: str
    commands: tuple[str, ...]
    fields: tuple[FieldChange, ...]
    titles: tuple[tuple[str, str], ...] = ()
    """(bead id, title) of the beads that still exist."""
    back: tuple[str, ...] = ()
    """The commands that undo it, or undid it."""
    traces: tuple[str, ...] = ()
    since: tuple[FieldChange, ...] = ()
    """What someone else changed since: the value that this change left, and the present one."""
    links: tuple[tuple[str, str], ...] = ()
    """(relation, entry id): the entry that it undoes, the one that undid it, a later one on the same fields."""
    error: str = ""
    born: tuple[str, ...] = ()
    """Beads that it created."""


class ChangePane(TextPane):
    """The detail of the journal. Lines that name a bead or another entry are links."""

    class Followed(TextPane.LineFollowed):
        """Enter on a line that leads somewhere: ``bead`` or ``entry``."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown = ""

    def show_change(self, facts: ChangeFacts | None) -> None:
        """Show a change, or nothing."""
        paras = [] if facts is None else list(change_paras(facts))
        key = "" if facts is None else facts.key
        if key != self._shown:
            self._shown = key
            self.read(paras)
        else:
            self.update_text(paras)

    def action_open(self) -> None:
        """Go where the line leads."""
        para = self.para
        if para is not None and para.opens:
            kind, _, name = para.key.partition(":")
            self.post_message(self.Followed(kind, name.partition("\n")[0]))


def change_paras(facts: ChangeFacts) -> Iterator[Para]:
    """Everything, what matters first."""
    sign = STATE_SIGNS[facts.state]
    yield Para("title", ((facts.title, "text bold"),))
    yield Para("when", ((f"{facts.key} · {facts.when} · {facts.who}", "muted"),))
    why = f": {facts.why}" if facts.why else ""
    yield Para("state", ((f"{sign.glyph} {sign.word}", sign.ink), (why, "text")), hang=2)
    if facts.error:
        yield Para("error", (("! ", "error bold"), (facts.error, "error")), hang=2)
    for what, entry_id in facts.links:
        yield Para(f"entry:{entry_id}", ((f"↳ {what} ", "muted"), (entry_id, "running")), opens=True)
    yield from _commands("commands", facts.commands, "no command ran")
    yield from _fields(facts)
    if facts.since:
        yield section("changed since by someone else")
        yield from _changes(facts.since, "since", "left as", "now")
    yield from _way_back(facts)


def _commands(caption: str, commands: Sequence[str], none: str) -> Iterator[Para]:
    yield section(caption, f"{len(commands):,}" if len(commands) > 1 else "")
    if not commands:
        yield Para(f"{caption} none", ((none, "muted"),))
    for number, words in enumerate(commands):
        yield Para(f"{caption} {number}", (("$ ", "muted"), (words, "text")), hang=2)


def _fields(facts: ChangeFacts) -> Iterator[Para]:
    if not facts.fields and not facts.born:
        return
    beads = list(dict.fromkeys([*facts.born, *(change.bead_id for change in facts.fields)]))
    yield section("before → after", f"{len(beads):,} beads" if len(beads) > 1 else "")
    titles = dict(facts.titles)
    for bead_id in beads:
        name: list[Span] = [(short_id(bead_id, 24), "running"), ("  ", "text")]
        name.append((titles[bead_id], "text") if bead_id in titles else ("no longer in the tracker", "attention"))
        yield Para(f"bead:{bead_id}", tuple(name), opens=bead_id in titles)
        if bead_id in facts.born:
            yield Para(f"born {bead_id}", (("  made by this change", "muted"),))
        own = [change for change in facts.fields if change.bead_id == bead_id]
        yield from _changes(own, f"after {bead_id}", "", "")


def _changes(changes: Sequence[FieldChange], key: str, was: str, now: str) -> Iterator[Para]:
    """Short values side by side, long ones below each other; the bead is named only if it is not named above."""
    for number, change in enumerate(changes):
        lead = f"  {change.field}  " if not was else f"{short_id(change.bead_id, 24)} {change.field}  "
        of_lines = "\n" in change.before + change.after
        if not of_lines and len(change.before) + len(change.after) <= SHORT:
            spans: list[Span] = [(lead, "muted"), (f"{was} ".lstrip(), "muted"), (change.before, "text")]
            spans += [(" → ", "muted"), (f"{now} ".lstrip(), "muted"), (change.after, "text bold")]
            yield Para(f"{key} {number}", tuple(spans), hang=4)
            continue
        yield Para(f"{key} {number}", ((lead.rstrip(), "muted"),))
        if of_lines:
            yield from _line_by_line(change, f"{key} {number}")
            continue
        yield Para(f"{key} {number} -", (("  − ", "error"), (change.before, "text")), hang=4)
        yield Para(f"{key} {number} +", (("  + ", "success"), (change.after, "text")), hang=4)


def _line_by_line(change: FieldChange, key: str) -> Iterator[Para]:
    """The differences between two texts of several lines."""
    lines = difflib.unified_diff(change.before.split("\n"), change.after.split("\n"), n=1, lineterm="")
    inks = {"-": "error", "+": "success", "@": "muted"}
    # the first two lines of a unified diff name files
    for number, line in enumerate(islice(lines, 2, MAX_LINES)):
        text = "…" if line.startswith("@@") else f"{line[:1].replace('-', '−')} {line[1:]}"
        yield Para(f"{key} line {number}", ((f"  {text}", inks.get(line[:1], "muted")),), hang=4)


def _way_back(facts: ChangeFacts) -> Iterator[Para]:
    if facts.state in ("undone", "failed", "pending") and not facts.back:
        return
    if not facts.back:
        yield section("undo")
        why = facts.why or "no command undoes it"
        yield Para("no way", (("none: ", "waiting"), (why, "text")), hang=2)
    else:
        yield from _commands("undo", facts.back, "")
    for number, trace in enumerate(facts.traces):
        yield Para(f"trace {number}", ((f"remains: {trace}", "muted"),), hang=2)


def shown_value(value: object, limit: int = 4_000) -> str:
    """A value of a row as clean text; absent values and empty texts are made visible."""
    if value is None:
        return "absent"
    if isinstance(value, str):
        text = clean_block(value, limit).strip("\n")
        return (text if "\n" in text else clean_line(text, limit)) or "“”"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_member(member) for member in value[:200]) or "none"
    return clean_line(value, limit)


def _member(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("depends_on_id"), str):
        return clean_line(value["depends_on_id"], 80)
    return clean_line(value, 200)
