"""A diff as data and as coloured lines: files, hunks, the words that differ, syntax.

Words are compared line against line within a hunk (difflib), code is read by Pygments as the file's name says.
Both cost time on large changes: do it in a worker, `parse_diff` and `painted` are pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.widgets.base.line import Span
from helix_tui.widgets.text.pane import highlighted

MAX_COMPARED = 400
"""Characters of a line up to which its words are compared."""

MAX_RUN = 60
"""Removed or added lines in a row up to which they are compared with each other."""

ALIKE = 0.45
"""Share of two lines that must be the same for their words to be compared."""

MAX_CODE = 200_000
"""Characters of all files together that are read as code; the rest is plain."""

_HUNK = re.compile(r"@@+ (?:-(\d+)(?:,\d+)? )+\+(\d+)(?:,\d+)? @@+(.*)")
_HEADER = re.compile(r'diff --(?:git|cc|combined) (?:"?a/.*?"? "?b/)?(.*?)"?$')
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


class DiffLine(Struct, frozen=True):
    """One line of a hunk."""

    kind: str
    """``+ - @ \\`` or a blank."""
    old: int
    """Number in the old file, 0 for none."""
    new: int
    text: str
    changed: tuple[range, ...] = ()
    """The characters that differ from the line that it replaces, or that replaces it."""
    spans: tuple[Span, ...] = ()
    """The text in its inks; empty before `painted`."""


class FileDiff(Struct):
    """What happened to one file."""

    path: str
    was: str = ""
    """Its name before, where it was renamed or copied."""
    verb: str = ""
    """``new``, ``deleted``, ``renamed``, ``copied``, ``mode``, ``binary``; nothing for a plain change."""
    added: int = 0
    removed: int = 0
    lines: list[DiffLine] = []


class DiffFacts(Struct, frozen=True):
    """A diff and what a person must know before reading it."""

    files: tuple[FileDiff, ...] = ()
    before: tuple[tuple[str, str], ...] = ()
    """Sentences above the files, each with its ink."""
    command: str = ""
    """What shows it in a shell."""
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
    """The first file that can be opened, and the number in it of the first line that changed; None without files."""
    open_ = [place for place, file in enumerate(files) if file.verb not in ("deleted", "binary")]
    place = (open_ or [0])[0]
    return (place, change_in(files[place])) if files else None


def change_in(file: FileDiff) -> int:
    """The number in the new file of the first line that changed; 1 where none did."""
    return next((line.new for line in file.lines if line.kind in "+-" and line.new), 1)


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of git's diff output; lines that are neither header nor hunk are passed over."""
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
            # the diff of a merge has an @ and a column of signs more for each further parent
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
    """One line of a hunk; the answer is the numbers that the next line has."""
    marks, text = line[:parents], line[parents:]
    kind = "\\" if line.startswith("\\") else "+" if "+" in marks else "-" if "-" in marks else " "
    file.added += kind == "+"
    file.removed += kind == "-"
    in_old, in_new = kind in ("-", " "), kind in ("+", " ")
    shown = line if kind == "\\" else text
    file.lines.append(DiffLine(kind, old if in_old and parents == 1 else 0, new if in_new else 0, shown))
    return old + in_old, new + in_new


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


# --- words and code --------------------------------------------------------------------------------------


def painted(files: Iterable[FileDiff]) -> tuple[FileDiff, ...]:
    """The same files, each line with the words that differ and with its inks."""
    left = MAX_CODE
    done = []
    for file in files:
        lines = _with_words(file.lines)
        size = sum(len(line.text) for line in lines)
        # a small file behind a large one still gets its colours
        if size <= left:
            left -= size
            lines = _with_code(lines, file.path)
        done.append(replace(file, lines=[_inked(line) for line in lines]))
    return tuple(done)


def _with_words(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Lines that replace each other know which of their characters differ."""
    found = list(lines)
    place = 0
    while place < len(found):
        removed = _run(found, place, "-")
        added = _run(found, removed.stop, "+")
        # a block that was written anew has no words to compare
        if removed and added and max(len(removed), len(added)) <= MAX_RUN:
            for old, new in _pairs([found[n].text for n in removed], [found[n].text for n in added]):
                before, after = changed_words(found[removed[old]].text, found[added[new]].text)
                found[removed[old]] = replace(found[removed[old]], changed=before)
                found[added[new]] = replace(found[added[new]], changed=after)
        place = max(added.stop, place + 1)
    return found


def _run(lines: Sequence[DiffLine], start: int, kind: str) -> range:
    stop = start
    while stop < len(lines) and lines[stop].kind == kind:
        stop += 1
    return range(start, stop)


def _pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Which line replaces which: in order, each the most like of the next few."""
    first = 0
    for place, text in enumerate(old):
        # lines move little within a hunk, and comparing each with each is quadratic
        reach = range(first, min(len(new), max(first + 4, place + 3)))
        ratio, best = max(((_alike(text, new[n]), -n) for n in reach), default=(0.0, 0))
        if ratio >= ALIKE:
            yield place, -best
            first = -best + 1


def _alike(one: str, other: str) -> float:
    if max(len(one), len(other)) > MAX_COMPARED:
        return 0.0
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    # the quick ones are upper bounds of the ratio, and cost a fraction
    return matcher.ratio() if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE else 0.0


def changed_words(old: str, new: str) -> tuple[tuple[range, ...], tuple[range, ...]]:
    """The characters of two lines that differ, by whole words; nothing where a line is blank."""
    before, after = _WORD.findall(old), _WORD.findall(new)
    gone: list[range] = []
    come: list[range] = []
    for what, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what != "equal":
            gone += _cells(before, i, j)
            come += _cells(after, k, m)
    return tuple(gone), tuple(come)


def _cells(words: Sequence[str], start: int, stop: int) -> list[range]:
    at = sum(len(word) for word in words[:start])
    length = sum(len(word) for word in words[start:stop])
    return [range(at, at + length)] if length else []


def _with_code(lines: Sequence[DiffLine], path: str) -> list[DiffLine]:
    """Each line in the inks of its language; a hunk's old and new side are each read as a whole."""
    found = list(lines)
    start = 0
    for stop in [*[n for n, line in enumerate(found) if line.kind == "@"][1:], len(found)]:
        for side in ("-", "+"):
            places = [n for n in range(start, stop) if found[n].kind in (side, " ")]
            # nothing was removed: the old side is part of the new one
            if side == "-" and all(found[n].kind == " " for n in places):
                continue
            inked = highlighted("\n".join(found[n].text for n in places), path)
            for n, spans in zip(places, inked, strict=False):
                found[n] = replace(found[n], spans=spans)
        start = stop
    return found


GROUNDS: Mapping[str, str] = {"+": "added", "-": "removed"}
PLAIN_INKS: Mapping[str, str] = {"+": "success", "-": "error", " ": "text", "@": "edge", "\\": "muted"}


def _inked(line: DiffLine) -> DiffLine:
    """The line's spans with what happened to them: on their ground, changed words on a stronger one."""
    spans = line.spans or ((line.text, PLAIN_INKS[line.kind]),)
    ground = GROUNDS.get(line.kind, "")
    if not ground:
        return replace(line, spans=spans)
    inked: list[Span] = []
    at = 0
    for text, ink in spans:
        for piece, differs in _split(text, at, line.changed):
            inked.append((piece, f"text bold on:{ground}_word" if differs else f"{ink} on:{ground}"))
        at += len(text)
    return replace(line, spans=tuple(inked))


def _split(text: str, at: int, changed: Sequence[range]) -> Iterator[tuple[str, bool]]:
    """Pieces of a text that begins at a character, each with whether it differs."""
    cuts = {0, len(text)}
    for cells in changed:
        cuts |= {min(max(edge - at, 0), len(text)) for edge in (cells.start, cells.stop)}
    edges = sorted(cuts)
    for start, stop in pairwise(edges):
        yield text[start:stop], any(at + start in cells for cells in changed)
