"""Entries of the journal in the words and shapes that its screen shows."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from helix_tui.core.beads.record import Bead
from helix_tui.core.editing.journal import JournalEntry, JournalHistory
from helix_tui.core.editing.undo.undo_plan import Mark
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.rows.changes import ChangeRow
from helix_tui.widgets.text.journal_entry import ChangeFacts, FieldChange, shown_value

if TYPE_CHECKING:
    from helix_tui.core.snapshot import Snapshot

MOST_FIELDS = 2_000
"""Fields of one change that are shown; a bulk change may touch more."""

_WHO = {"human": "the console", "cli": "the command line", "agent": "an agent", "loop": "the loop"}


def change_row(entry: JournalEntry, mark: Mark) -> ChangeRow:
    """An entry as a row."""
    beads = tuple(clean_line(bead_id, 80) for bead_id in {**entry.before, **entry.after})
    words = " ".join([entry.kind, *(" ".join(words) for words in entry.commands[:50])])
    return ChangeRow(
        entry.id,
        entry.at,
        clean_line(entry.title, 300),
        mark.state,
        clean_line(entry.who.name, 30),
        entry.kind if entry.of else "",
        beads,
        words.lower(),
    )


def facts_of(
    entry: JournalEntry, mark: Mark, history: JournalHistory, beads: Mapping[str, Bead], now: int
) -> ChangeFacts:
    """Everything that is shown of an entry."""
    born = tuple(clean_line(bead_id, 80) for bead_id, fields in entry.before.items() if fields is None)
    told = {*entry.before, *entry.after}
    return ChangeFacts(
        key=entry.id,
        title=clean_line(entry.title, 600),
        state=mark.state,
        why=clean_line(mark.why, 600),
        when=f"{format_instant(entry.at)}, {format_age((now - entry.at) / NS)} ago",
        who=_who(entry),
        commands=tuple(_command(words) for words in entry.commands),
        fields=tuple(_fields(entry)),
        titles=tuple((bead_id, clean_line(beads[bead_id].title, 200)) for bead_id in told if bead_id in beads),
        back=_back(entry, history),
        traces=tuple(clean_line(trace, 300) for trace in entry.traces),
        since=tuple(
            FieldChange(
                clean_line(each.bead_id, 80),
                clean_line(each.field, 60),
                shown_value(each.ours),
                shown_value(each.theirs),
            )
            for each in mark.differences
        ),
        links=tuple(_links(entry, mark)),
        error=clean_line(entry.error, 600),
        born=born,
    )


def _who(entry: JournalEntry) -> str:
    where = _WHO.get(entry.who.kind, clean_line(entry.who.kind, 30))
    user = clean_line(entry.who.user, 40)
    settled = "; its process died, and its outcome was read from the files" if entry.recovered else ""
    if entry.who.kind == "loop":
        return f"{where}, started by {user}{settled}" if user else where + settled
    return (f"{user} at {where}" if user and entry.who.person else user or where) + settled


def _command(words: tuple[str, ...]) -> str:
    return clean_block(shlex.join(words), 8_000).replace("\n", "⏎")


def _fields(entry: JournalEntry) -> Iterator[FieldChange]:
    count = 0
    for bead_id, fields in entry.after.items():
        before = entry.before.get(bead_id) or {}
        for name, value in (fields or {}).items():
            if before.get(name) is None and value is None:
                continue  # a new bead is told by what it has
            if (count := count + 1) > MOST_FIELDS:
                return
            yield FieldChange(
                clean_line(bead_id, 80),
                clean_line(name, 60),
                shown_value(before.get(name)),
                shown_value(value),
            )


def _back(entry: JournalEntry, history: JournalHistory) -> tuple[str, ...]:
    """The commands that undid it, or else those that would."""
    undo = history.get(entry.undone_by) if entry.undone_by else None
    return tuple(_command(words) for words in (undo.commands if undo is not None else entry.inverse))


def _links(entry: JournalEntry, mark: Mark) -> Iterator[tuple[str, str]]:
    if entry.of:
        yield ("undoes" if entry.kind == "undo" else "redoes"), entry.of
    if entry.undone_by:
        yield "undone by", entry.undone_by
    if mark.covered_by:
        yield "changed again by", mark.covered_by


def as_markdown(entry: JournalEntry) -> str:
    """A change as text: what was done, by whom, and its commands."""
    commands = "\n".join(clean_block(shlex.join(words)) for words in entry.commands)
    head = f"{clean_line(entry.title, 600)} ({entry.id}, {format_instant(entry.at)}, {_who(entry)})"
    return f"{head}\n\n```\n{commands}\n```\n"


def placard(snapshot: Snapshot) -> list[Line] | None:
    """The paragraphs for a journal without entries; None where there are some."""
    journal = snapshot.journal
    if journal.entries:
        return None
    file = clean_line(str(snapshot.project.helix_dir / "journal.jsonl"), 300)
    if journal.problem:
        return [
            [("The journal cannot be read.", "error bold")],
            [],
            [(clean_line(journal.problem, 300), "text")],
            [(file, "muted")],
            [],
            [("Nothing can be changed from here until it can be written.", "muted")],
        ]
    if snapshot.condition == "loading":
        return [[("Reading the journal …", "text bold")], [(file, "muted")]]
    said: list[Line] = [[("Nothing has been changed from here yet.", "text bold")], []]
    if journal.dropped or journal.torn:
        said[0] = [("No line of the journal is a record.", "error bold")]
        said += [[(notice, "attention")] for notice in notices(journal)]
    return [
        *said,
        [("Every change made in the console or by ", "muted"), ("helix-tui", "running")],
        [("on the command line is written down here before it runs.", "muted")],
        [],
        [(file, "muted")],
    ]


def notices(history: JournalHistory) -> list[str]:
    """What of the journal cannot be read, in sentences."""
    found = []
    if history.problem:
        found.append(f"{clean_line(history.problem, 200)}; showing what was last read")
    if history.dropped:
        many = history.dropped != 1
        found.append(f"{history.dropped:,} line{'s are not records' if many else ' is not a record'} and left out")
    if history.torn:
        found.append("the last line is incomplete: it is being written, or its writer died")
    return found
