"""Read a diff: its files, and their lines with numbers. Pure; call `parse_diff` from a worker."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from helix_tui.widgets.base.line import Span

_HUNK = re.compile(r"@@+ (?:-(\d+)(?:,\d+)? )+\+(\d+)(?:,\d+)? @@+(.*)")
_HEADER = re.compile(r'diff --(?:git|cc|combined) (?:"?a/.*?"? "?b/)?(.*?)"?$')

_HEADS = (
    ("new file", "new"),
    ("deleted file", "deleted"),
    ("rename from ", "renamed"),
    ("copy from ", "copied"),
    ("old mode", "mode"),
    ("Binary files", "binary"),
    ("GIT binary patch", "binary"),
)


class DiffLine(Struct, frozen=True):
    """One line of a hunk."""

    kind: str
    """``+ - @ \\`` or a blank."""
    old: int
    """Its number in the old file, 0 for none."""
    new: int
    text: str
    changed: tuple[range, ...] = ()
    """The characters that differ from the line that it replaces, or is replaced by."""
    spans: tuple[Span, ...] = ()
    """The highlighted text; empty before `painted`."""


class FileDiff(Struct):
    """What happened to one file."""

    path: str
    was: str = ""
    """Its previous name if it was renamed or copied."""
    verb: str = ""
    """``new``, ``deleted``, ``renamed``, ``copied``, ``mode``, ``binary``; nothing for a plain change."""
    added: int = 0
    removed: int = 0
    lines: list[DiffLine] = []


class DiffFacts(Struct, frozen=True):
    """A diff with notes to read first."""

    files: tuple[FileDiff, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    """Sentences above the files, each with its ink."""
    command: str = ""
    """The shell command that shows it."""
    text: str = ""
    """As git printed it."""

    @property
    def added(self) -> int:
        """Lines added in all files."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Lines removed in all files."""
        return sum(file.removed for file in self.files)


def first_change(files: Sequence[FileDiff]) -> tuple[int, int] | None:
    """The first file that can be opened, and its first changed line; None without files."""
    open_ = [place for place, file in enumerate(files) if file.verb not in ("deleted", "binary")]
    place = (open_ or [0])[0]
    return (place, change_in(files[place])) if files else None


def change_in(file: FileDiff) -> int:
    """The number in the new file of the first changed line; 1 if there is none."""
    return next((line.new for line in file.lines if line.kind in "+-" and line.new), 1)


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of git's diff output; lines that are neither header nor hunk are skipped."""
    files: list[FileDiff] = []
    old = new = parents = 0
    for line in text.split("\n"):
        if line.startswith("diff --"):
            match = _HEADER.match(line)
            files.append(FileDiff(match[1] if match else line))
            parents = 0
        elif not files:
            continue
        elif line.startswith("@@"):
            match = _HUNK.match(line)
            # the diff of a merge has an extra @ and column of signs for each further parent
            parents = max(1, len(line) - len(line.lstrip("@")) - 1)
            old, new = (int(match[1]), int(match[2])) if match else (0, 0)
            files[-1].lines.append(DiffLine("@", 0, 0, line))
        # before the first hunk of a file: a line may begin with + or - there and be a header
        elif not parents:
            _read_head(files[-1], line)
        elif line[:1] in ("+", "-", " ", "\\"):
            old, new = _read_line(files[-1], line, old, new, parents)
    return tuple(files)


def _read_line(file: FileDiff, line: str, old: int, new: int, parents: int) -> tuple[int, int]:
    """Read one line of a hunk; return the numbers of the next line."""
    marks, text = line[:parents], line[parents:]
    kind = "\\" if line.startswith("\\") else "+" if "+" in marks else "-" if "-" in marks else " "
    file.added += kind == "+"
    file.removed += kind == "-"
    in_old, in_new = kind in ("-", " "), kind in ("+", " ")
    shown = line if kind == "\\" else text
    file.lines.append(DiffLine(kind, old if in_old and parents == 1 else 0, new if in_new else 0, shown))
    return old + in_old, new + in_new


def _read_head(file: FileDiff, line: str) -> None:
    for start, verb in _HEADS:
        if line.startswith(start):
            file.verb = verb
            if verb in ("renamed", "copied"):
                file.was = line[len(start) :]
    for start in ("rename to ", "copy to ", "+++ b/", '+++ "b/'):
        if line.startswith(start):
            file.path = line[len(start) :].rstrip('\t"')
    if file.verb == "deleted" and line.startswith("--- a/"):
        file.path = line[6:].rstrip('\t"')
