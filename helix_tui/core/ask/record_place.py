"""A passage of a record: how it is written as a source, and what it belongs to.

The passage's file is ``bead:ddx-1234``, ``memory:NAME``, ``run:LOG`` or ``commit:SHA``; the section that it stands in
names the attempt or review. Faces ask here what a source is called and where it opens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.records import Span, text_hash

MAX_COMMIT_FILES = 20

PlaceKind = Literal["bead", "attempt", "memory", "run", "commit"]

_FILE = re.compile(r"(bead|memory|run|commit):(\S.*)")
_LINES = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
_ATTEMPT = re.compile(r"^(?:Attempt|Review of) (\S+)$")


class RecordPlace(Struct, frozen=True):
    """What a passage belongs to, and where it opens."""

    kind: PlaceKind
    id: str
    """The bead's or attempt's id, the memory's name, the log's file name, the commit."""
    record: str
    """The record's own id: for an attempt, its bead's."""
    section: str
    """The part of the record, as a heading; empty for its beginning."""

    @property
    def words(self) -> str:
        """As people read it: ``bead ddx-1234, Acceptance``."""
        owner = {"attempt": "bead", "run": "run log"}.get(self.kind, self.kind)
        whole = f"{owner} {self.record}"
        part = self.section if self.kind != "commit" else ""
        return f"{whole}, {part}" if part else whole


def record_place(file: str, header: str = "") -> RecordPlace | None:
    """What a source is, by its file and heading; None where it is a file of the repository."""
    found = _FILE.fullmatch(file)
    if found is None:
        return None
    kind: PlaceKind = found[1]  # type: ignore[assignment]
    trail = header.split(" > ")
    section = trail[1] if len(trail) > 1 else ""
    attempt = _ATTEMPT.match(section) if kind == "bead" else None
    if attempt is not None:
        return RecordPlace("attempt", attempt[1], found[2], section)
    return RecordPlace(kind, found[2], found[2], section)


def item_id(span: Span) -> str:
    """A passage as one word, by which it can be opened again: its file and lines."""
    return f"{span.file}:{span.start}-{span.end}"


def read_item_id(text: str) -> tuple[str, int, int | None]:
    """(file, first line, last line) of an item's id; the whole of it where no lines are named."""
    found = _LINES.fullmatch(text)
    if found is None:
        return text, 1, None
    first = int(found[2])
    return found[1], max(1, first), int(found[3] or first)


def commit_span(sha: str, subject: str, body: str, files: Sequence[str], score: float) -> Span:
    """A commit as a passage: its message, and below it the files that it changed."""
    more = f"\n… {len(files) - MAX_COMMIT_FILES} more" if len(files) > MAX_COMMIT_FILES else ""
    parts = [subject, body.strip(), "\n".join(files[:MAX_COMMIT_FILES]) + more]
    text = "\n\n".join(part for part in parts if part)
    lines = text.count("\n") + 1
    return Span(
        f"commit:{sha[:12]}", 1, lines, "section", subject, text, text_hash(text), score, {"commits": score}, "record"
    )
