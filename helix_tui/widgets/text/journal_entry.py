"""One change of the journal: what ran, before and after field by field, the way back, what came since."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from helix_tui.core.ground.text import clean_block, clean_line, short_id
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.base.row_source import Gesture
from helix_tui.widgets.rows.changes import STATE_SIGNS
from helix_tui.widgets.text.pane import Para, TextPane, section

MOST_LINES = 400
"""Lines of a difference between two long texts that are shown."""

SHORT = 44
"""Cells of a value up to which before and after stand on one line."""


class FieldChange(Struct, frozen=True):
    """One field of one bead; its texts are clean."""

    bead_id: str
    field: str
    before: str
    after: str


class ChangeFacts(Struct, frozen=True):
    """Everything that is shown of one change; all texts are clean."""

    key: str
    title: str
    state: str
    why: str
    """Beside the state, one sentence; may be empty."""
    when: str
    who: str
    commands: tuple[str, ...]
    fields: tuple[FieldChange, ...]
    titles: tuple[tuple[str, str], ...] = ()
    """(bead id, title) of the beads that still are there."""
    back: tuple[str, ...] = ()
    """The commands that undo it, or undid it."""
    traces: tuple[str, ...] = ()
    since: tuple[FieldChange, ...] = ()
    """What somebody changed since: what this change had left, and what stands there now."""
    links: tuple[tuple[str, str], ...] = ()
    """(what it is, entry id): the entry that it undoes, the one that undid it, the one that changed the same later."""
    error: str = ""
    born: tuple[str, ...] = ()
    """Beads that it made."""


class ChangePane(TextPane):
    """The detail of the journal. Lines that name a bead or another entry lead there."""

    class Followed(Gesture):
        """Enter on a line that leads somewhere: ``bead`` or ``entry``."""

        def __init__(self, kind: str, name: str) -> None:
            super().__init__()
            self.kind = kind
            self.name = name

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
        yield section("changed since by somebody else")
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
    """Short values side by side, long ones below each other; the bead only where it is not said above."""
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
    """What differs between two texts of several lines."""
    lines = difflib.unified_diff(change.before.split("\n"), change.after.split("\n"), n=1, lineterm="")
    inks = {"-": "error", "+": "success", "@": "muted"}
    # the first two lines of a unified diff name files
    for number, line in enumerate(islice(lines, 2, MOST_LINES)):
        text = "…" if line.startswith("@@") else f"{line[:1].replace('-', '−')} {line[1:]}"
        yield Para(f"{key} line {number}", ((f"  {text}", inks.get(line[:1], "muted")),), hang=4)


def _way_back(facts: ChangeFacts) -> Iterator[Para]:
    if facts.state in ("undone", "failed", "pending") and not facts.back:
        return
    if not facts.back:
        yield section("way back")
        why = facts.why or "no command undoes it"
        yield Para("no way", (("none: ", "waiting"), (why, "text")), hang=2)
        return
    yield from _commands("way back", facts.back, "")
    for number, trace in enumerate(facts.traces):
        yield Para(f"trace {number}", ((f"stays behind: {trace}", "muted"),), hang=2)


def shown_value(value: object, limit: int = 4_000) -> str:
    """A value of a row as a clean text: an absent one said as such, an empty text seen."""
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
