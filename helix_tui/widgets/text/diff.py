"""A diff that is read: a header a file with its counts, lines in the colour of what happened to them.

Files fold; what is binary or huge is folded or cut, with a sentence that says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from helix_tui.widgets.base.line import Span
from helix_tui.widgets.text.pane import FoldPane, Para

HUGE_FILE = 600
"""Lines from which a file is folded to begin with."""

MOST_LINES = 4_000
"""Lines of all files together that stand open to begin with; also how many are ever shown of one file."""

LONG_LINE = 2_000
NUMBERED = 72
"""Cells from which lines carry their number."""

_HUNK = re.compile(r"@@+ (?:-\d+(?:,\d+)? )+\+(\d+)(?:,\d+)? @@+(.*)")
_HEADER = re.compile(r'diff --(?:git|cc|combined) (?:"?a/.*?"? "?b/)?(.*?)"?$')


@dataclass(slots=True)
class FileDiff:
    """What happened to one file."""

    path: str
    was: str = ""
    """Its name before, where it was renamed or copied."""
    verb: str = ""
    """``new``, ``deleted``, ``renamed``, ``copied``, ``mode``, ``binary``; nothing for a plain change."""
    added: int = 0
    removed: int = 0
    lines: list[tuple[str, int, str]] = field(default_factory=list)
    """Kind (``+ - @ \\`` or a blank), number in the new file (0 for none), text."""


@dataclass(frozen=True, slots=True)
class DiffFacts:
    """A diff and what a person must know before reading it."""

    files: tuple[FileDiff, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    """Sentences above the files, each with its ink."""
    command: str = ""
    """What shows it in a shell."""

    @property
    def added(self) -> int:
        """Lines added in all files."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """Lines removed in all files."""
        return sum(file.removed for file in self.files)


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of git's diff output; lines that are neither header nor hunk are passed over."""
    files: list[FileDiff] = []
    number = 0
    parents = 0
    for line in text.split("\n"):
        if line.startswith("diff --"):
            match = _HEADER.match(line)
            files.append(FileDiff(match[1] if match else line))
            parents = 0
        elif not files:
            continue
        elif line.startswith("@@"):
            match = _HUNK.match(line)
            parents = max(1, len(line) - len(line.lstrip("@")) - 1)
            number = int(match[1]) if match else 0
            files[-1].lines.append(("@", 0, line))
        elif not parents:
            _read_head(files[-1], line)
        elif line[:1] in ("+", "-", " ", "\\"):
            number = _read_line(files[-1], line, number, parents)
    return tuple(files)


def _read_line(file: FileDiff, line: str, number: int, parents: int) -> int:
    """One line of a hunk; the answer is the number that the next line has in the new file."""
    marks, text = line[:parents], line[parents:]
    kind = "\\" if line.startswith("\\") else "+" if "+" in marks else "-" if "-" in marks else " "
    file.added += kind == "+"
    file.removed += kind == "-"
    counts = kind in ("+", " ")
    file.lines.append((kind, number if counts else 0, line if kind == "\\" else text))
    return number + counts


_HEADS = (
    ("new file", "new"),
    ("deleted file", "deleted"),
    ("rename from ", "renamed"),
    ("copy from ", "copied"),
    ("old mode", "mode"),
    ("Binary files", "binary"),
    ("GIT binary patch", "binary"),
)


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


class DiffPane(FoldPane):
    """The diff of one attempt."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.facts = DiffFacts()

    def show_diff(self, facts: DiffFacts) -> None:
        """Show a diff from its beginning; files too long to be read at a glance are folded."""
        self.facts = facts
        left = MOST_LINES
        folded = set()
        for place, file in enumerate(facts.files):
            if len(file.lines) > HUGE_FILE or len(file.lines) > left:
                folded.add(str(place))
            else:
                left -= len(file.lines)
        self.begin(folded)

    def build(self, width: int) -> Sequence[Para]:
        """Sentences, a total, then the files."""
        return list(self._paras_of(self.facts, width))

    def _paras_of(self, facts: DiffFacts, width: int) -> Iterator[Para]:
        for place, (sentence, ink) in enumerate(facts.before):
            yield Para(f"said {place}", ((sentence, ink),))
        if facts.files:
            count = f"{len(facts.files)} file{'s' * (len(facts.files) > 1)} "
            yield Para("total", ((count, "muted"), *counts_of(facts.added, facts.removed)))
        for place, file in enumerate(facts.files):
            folded = self.is_folded(str(place))
            yield _file_header(str(place), file, folded)
            if not folded:
                yield from _file_lines(place, file, width, facts.command)


def counts_of(added: int, removed: int) -> tuple[Span, ...]:
    """``+18 −3``"""
    return ((f"+{added:,}", "success"), (f" −{removed:,}", "error"))


def _file_header(key: str, file: FileDiff, folded: bool) -> Para:
    spans: list[Span] = [("▸ " if folded else "▾ ", "running"), (file.path, "text bold")]
    if file.verb:
        origin = f" from {file.was}" if file.was else ""
        spans.append((f"  {file.verb}{origin}", "waiting"))
    right = counts_of(file.added, file.removed) if file.verb != "binary" else ()
    return Para(key, tuple(spans), right, landmark=True, opens=True, hang=2)


def _file_lines(place: int, file: FileDiff, width: int, command: str) -> Iterator[Para]:
    if file.verb == "binary":
        yield Para(f"{place}:b", (("  binary: its content is not shown", "muted"),))
    gutter = 6 if width >= NUMBERED else 0
    for row, (kind, number, text) in enumerate(file.lines[:MOST_LINES]):
        yield _diff_line(f"{place}:{row}", kind, number, text, gutter)
    beyond = len(file.lines) - MOST_LINES
    if beyond > 0:
        where = f"; {command} shows all" if command else ""
        yield Para(f"{place}:more", ((f"… {beyond:,} more lines{where}", "attention"),))


_INKS = {"+": "success", "-": "error", " ": "text", "@": "edge", "\\": "muted"}


def _diff_line(key: str, kind: str, number: int, text: str, gutter: int) -> Para:
    ink = _INKS[kind]
    if len(text) > LONG_LINE:
        text = f"{text[:LONG_LINE]}… {len(text) - LONG_LINE:,} more characters"
    if kind in "@\\":
        return Para(key, ((" " * gutter + text, ink),), wrap="cells", hang=gutter)
    shown = f"{number:>{gutter - 1}} " if number and gutter else " " * gutter
    mark = "−" if kind == "-" else kind
    spans: tuple[Span, ...] = ((shown, "edge"), (f"{mark} {text}", ink))
    return Para(key, spans, wrap="cells", hang=gutter + 2)
