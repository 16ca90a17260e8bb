"""Show a diff: the list of files, then per file a header with counts and its lines in colour, below each other or in
two columns, old and new.

Words are compared line by line within a hunk (difflib), code is highlighted by the file's name. Both take time on large
changes: call `painted`, which is pure, from a worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import pairwise, zip_longest

from msgspec.structs import replace

from helix_tui.core.ground.text import counted
from helix_tui.widgets.base.line import Line, Span, fit, width_of, wrap_spans
from helix_tui.widgets.text.diff_lines import DiffFacts, DiffLine, FileDiff, change_in, first_change
from helix_tui.widgets.text.highlight import highlighted
from helix_tui.widgets.text.pane import FoldPane, Para, TextPane
from helix_tui.widgets.text.transcript import short_path

MAX_COMPARED = 400
"""The longest line whose words are compared, in characters."""

MAX_RUN = 60
"""The longest run of removed or added lines that are compared with each other."""

ALIKE = 0.45
"""How similar two lines must be for their words to be compared."""

MAX_CODE = 200_000
"""How many characters in all are highlighted as code; the rest is plain."""

_WORD = re.compile(r"\w+|\s+|[^\w\s]")

GROUNDS: Mapping[str, str] = {"+": "added", "-": "removed"}
PLAIN_INKS: Mapping[str, str] = {"+": "success", "-": "error", " ": "text", "@": "edge", "\\": "muted"}

SPLIT_CELLS = 124
"""The width from which a diff has two columns."""

LONG_LINE = 2_000
"""How many characters of a line are shown."""

_BETWEEN: Span = (" │ ", "rule")

HUGE_FILE = 600
"""The number of lines from which a file starts folded."""

MAX_LINES = 4_000
"""How many lines in all start unfolded; also the most that are ever shown of one file."""

MAX_LISTED = 200
"""How many files the list names."""

NUMBERED = 72
"""The width from which lines have numbers."""

BOTH_NUMBERED = 96
"""The width from which they have both old and new numbers."""

LISTED = "list:"

_LETTERS = {"new": "A", "deleted": "D", "renamed": "R", "copied": "C", "mode": "T", "binary": "B"}
"""git's letters for what happened to a file."""


def painted(files: Iterable[FileDiff]) -> tuple[FileDiff, ...]:
    """The same files, with the differing words marked and the lines highlighted."""
    left = MAX_CODE
    done = []
    for file in files:
        lines = _with_words(file.lines)
        size = sum(len(line.text) for line in lines)
        # a small file after a large one is still highlighted
        if size <= left:
            left -= size
            lines = _with_code(lines, file.path)
        done.append(replace(file, lines=[_inked(line) for line in lines]))
    return tuple(done)


def _with_words(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Mark the characters that differ between lines that replace each other."""
    found = list(lines)
    place = 0
    while place < len(found):
        removed = _run(found, place, "-")
        added = _run(found, removed.stop, "+")
        # a rewritten block has no words to compare
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
    """Which line replaces which: in order, each matched with the most similar of the next few."""
    first = 0
    for place, text in enumerate(old):
        # lines move little within a hunk, and comparing all pairs is quadratic
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
    """The characters that differ between two lines, by whole words; none if a line is blank."""
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
    """Each line highlighted; a hunk's old and new side are each highlighted as a whole."""
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


def _inked(line: DiffLine) -> DiffLine:
    """The line's spans on their background colour, changed words on a stronger one."""
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
    """Pieces of a text that begins at a given character, each with whether it differs."""
    cuts = {0, len(text)}
    for cells in changed:
        cuts |= {min(max(edge - at, 0), len(text)) for edge in (cells.start, cells.stop)}
    edges = sorted(cuts)
    for start, stop in pairwise(edges):
        yield text[start:stop], any(at + start in cells for cells in changed)


def beside_each_other(place: int, lines: Sequence[DiffLine], width: int) -> Iterator[Para]:
    """The lines of a file in two columns; a long line continues below.

    Keys are those of one column, ``place:row``, with ``/n`` for the lines below the first, so that the cursor
    keeps its place where the width changes.
    """
    half = (width - width_of([_BETWEEN])) // 2
    for left, right in _beside_each_other(lines):
        row = left if left is not None else right
        assert row is not None
        if lines[row].kind in "@\\":
            yield Para(f"{place}:{row}", ((" " * 8 + lines[row].text, PLAIN_INKS[lines[row].kind]),), wrap="no")
            continue
        sides = [
            _wrapped(lines[n], half, old=old) if n is not None else [] for n, old in ((left, True), (right, False))
        ]
        for part, (one, other) in enumerate(zip_longest(*sides, fillvalue=())):
            spans = (*_filled(one, half), _BETWEEN, *_filled(other, half))
            yield Para(f"{place}:{row}" + (f"/{part}" if part else ""), spans, wrap="no")


def _beside_each_other(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, int | None]]:
    """The line numbers that are side by side: removed lines with those added after them."""
    at = 0
    while at < len(lines):
        if lines[at].kind not in "+-":
            yield (at, at) if lines[at].kind == " " else (at, None)
            at += 1
            continue
        middle = at
        while middle < len(lines) and lines[middle].kind == "-":
            middle += 1
        end = middle
        while end < len(lines) and lines[end].kind == "+":
            end += 1
        yield from zip_longest(range(at, middle), range(middle, end))
        at = end


def _wrapped(line: DiffLine, width: int, *, old: bool) -> list[Line]:
    """One side of a line with its number."""
    number = line.old if old else line.new
    mark = {"-": "−", "+": "+"}.get(line.kind, " ")
    ink = PLAIN_INKS[line.kind]
    spans = line.spans or ((line.text, ink),)
    if len(line.text) > LONG_LINE:
        spans = ((f"{line.text[:LONG_LINE]}… {counted(len(line.text) - LONG_LINE, 'more character')}", ink),)
    lead: tuple[Span, ...] = ((f"{number or '':>5} ", "edge"), (f"{mark} ", ink))
    return list(wrap_spans((*lead, *spans), width, 8, words=False))


def _filled(spans: Line, width: int) -> list[Span]:
    fitted = fit(spans, width)
    return [*fitted, (" " * (width - width_of(fitted)), "text")]


class DiffPane(FoldPane):
    """The diff of one attempt."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.facts = DiffFacts()
        self.listed = True
        """Whether the files are listed above; not if a `DiffFiles` beside the pane lists them."""

    def show_diff(self, facts: DiffFacts) -> None:
        """Show a diff from the top; long files are folded."""
        self.facts = facts
        left = MAX_LINES
        folded = set()
        for place, file in enumerate(facts.files):
            # a small file after a huge one may still have room
            if len(file.lines) > HUGE_FILE or len(file.lines) > left:
                folded.add(str(place))
            else:
                left -= len(file.lines)
        self.begin(folded)

    # --- position -----------------------------------------------------------------------------------------

    @property
    def here(self) -> tuple[int, int] | None:
        """The file under the cursor, and the line's number in the new file; 1 if it has none."""
        para = self.para
        if para is None or not self.facts.files:
            return None
        name, _, row = para.key.removeprefix(LISTED).partition("/")[0].partition(":")
        if not name.isdecimal():
            return None
        file = self.facts.files[int(name)]
        if not row.isdecimal():
            return int(name), change_in(file)
        # a removed line has no number in the new file: the next line that has one marks its place
        after = (line.new for line in file.lines[int(row) :] if line.new)
        return int(name), next(after, 1)

    @property
    def top(self) -> tuple[int, int] | None:
        """The first file that can be opened, and its first changed line; None if there is no file."""
        return first_change(self.facts.files)

    @property
    def where(self) -> str:
        """The file under the cursor in words: ``3/12 core/x.py``."""
        here = self.here
        if here is None:
            return ""
        return f"{here[0] + 1}/{len(self.facts.files)} {self.facts.files[here[0]].path}"

    def action_open(self) -> None:
        """Go from the list to a file; on a file's header, fold or unfold it."""
        para = self.para
        if para is not None and para.key.startswith(LISTED):
            self.go_to_file(int(para.key.removeprefix(LISTED)))
        else:
            super().action_open()

    def go_to_file(self, number: int) -> None:
        """Go to a file's header, at the top of the view."""
        if self.is_folded(str(number)):
            self.set_fold(str(number), on=False)
        # from below, so that the header ends up at the top of the view with its lines visible
        self.action_last()
        self.select(f"{number}\n0")

    def fold(self) -> bool:
        """Fold the file under the cursor; not from the list."""
        para = self.para
        return para is not None and not para.key.startswith(LISTED) and super().fold()

    def folded_texts(self) -> Iterator[tuple[str, str]]:
        """The folded files."""
        for place, file in enumerate(self.facts.files):
            if self.is_folded(str(place)):
                yield str(place), "\n".join(line.text for line in file.lines[:MAX_LINES])

    # --- contents -----------------------------------------------------------------------------------------

    def build(self, width: int) -> Sequence[Para]:
        """Sentences, a total, the list, then the files."""
        return list(self._paras_of(self.facts, width))

    def _paras_of(self, facts: DiffFacts, width: int) -> Iterator[Para]:
        for place, (sentence, ink) in enumerate(facts.before):
            yield Para(f"said {place}", ((sentence, ink),))
        if facts.files:
            count = f"{counted(len(facts.files), 'file')} "
            yield Para("total", ((count, "muted"), *counts_of(facts.added, facts.removed)))
        if len(facts.files) > 1 and self.listed:
            yield from _file_list(facts.files, width)
        for place, file in enumerate(facts.files):
            folded = self.is_folded(str(place))
            yield _file_header(str(place), file, folded)
            if not folded:
                yield from _file_lines(place, file, width, facts.command)


class DiffFiles(TextPane):
    """The files of a diff by folder, beside it: the cursor follows the file being read, and selects another."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cursor_needs_focus = False
        self._files: Sequence[FileDiff] = ()

    def show_files(self, files: Sequence[FileDiff]) -> None:
        """Show the files of a diff, or the same ones at another width."""
        other, self._files = files is not self._files, files
        if other:
            self.empty()
        if self.size.width:
            self.update_text(list(_by_folder(files, self._text_width)))
        if files and self.number is None:
            self.point_at(0)

    def on_resize(self) -> None:
        """Cut the names for the new width."""
        self.show_files(self._files)

    @property
    def number(self) -> int | None:
        """The file under the cursor; None on a folder."""
        para = self.para
        return int(para.key.removeprefix(LISTED)) if para is not None and para.opens else None

    def point_at(self, number: int) -> None:
        """Put the cursor on a file."""
        self.select(f"{LISTED}{number}\n0")


def _by_folder(files: Sequence[FileDiff], width: int) -> Iterator[Para]:
    """Each folder once, its files below it."""
    before = None
    for number, file in enumerate(files[:MAX_LISTED]):
        folder, _, name = file.path.rpartition("/")
        if folder != before and folder:
            yield Para(f"folder {number}", ((tail_of(f"{folder}/", width), "muted"),), wrap="no")
        before = folder
        letter, ink = _letter(file)
        right = counts_of(file.added, file.removed) if letter != "B" else ()
        spans = ((f" {letter} ", ink), (short_path(name, max(8, width - 4 - width_of(right))), "text"))
        yield Para(f"{LISTED}{number}", spans, right, wrap="no", opens=True)
    if len(files) > MAX_LISTED:
        yield Para("list more", ((f"   … {counted(len(files) - MAX_LISTED, 'more file')}", "muted"),))


def tail_of(path: str, width: int) -> str:
    """A path in at most ``width`` cells, cut at the beginning: the part nearest to the file says most."""
    return path if width_of(((path, ""),)) <= width else f"…{path[-(width - 1) :]}"


def counts_of(added: int, removed: int) -> tuple[Span, ...]:
    """``+18 −3``"""
    return ((f"+{added:,}", "success"), (f" −{removed:,}", "error"))


def _letter(file: FileDiff) -> tuple[str, str]:
    letter = _LETTERS.get(file.verb, "M")
    return letter, {"A": "success", "D": "error", "M": "muted"}.get(letter, "waiting")


def _file_list(files: Sequence[FileDiff], width: int) -> Iterator[Para]:
    """One line per file, with git's letter and its share of the change as a bar."""
    most = max(file.added + file.removed for file in files)
    for number, file in enumerate(files[:MAX_LISTED]):
        letter, ink = _letter(file)
        right = (*counts_of(file.added, file.removed), (" ", "text"), *_bar(file, most)) if letter != "B" else ()
        path = short_path(file.path, max(12, width - 5 - width_of(right)))
        spans = ((f"  {letter} ", ink), (path, "text"))
        yield Para(f"{LISTED}{number}", spans, right, wrap="no", opens=True)
    if len(files) > MAX_LISTED:
        yield Para("list more", ((f"    … {counted(len(files) - MAX_LISTED, 'more file')}", "muted"),))


def _bar(file: FileDiff, most: int) -> tuple[Span, ...]:
    whole = max(1, round(8 * (file.added + file.removed) / max(1, most)))
    added = round(whole * file.added / max(1, file.added + file.removed))
    return (("+" * added, "success"), ("−" * (whole - added), "error"), (" " * (8 - whole), "text"))


def _file_header(key: str, file: FileDiff, folded: bool) -> Para:
    spans: list[Span] = [("▸ " if folded else "▾ ", "running"), (file.path, "text bold")]
    if file.verb:
        origin = f" from {file.was}" if file.was else ""
        spans.append((f"  {file.verb}{origin}", "waiting"))
    right = counts_of(file.added, file.removed) if file.verb != "binary" else ()
    return Para(key, tuple(spans), right, landmark=True, opens=True, hang=2)


def _file_lines(place: int, file: FileDiff, width: int, command: str) -> Iterator[Para]:
    if file.verb == "binary":
        yield Para(f"{place}:b", (("  binary: content not shown", "muted"),))
    if width >= SPLIT_CELLS:
        yield from beside_each_other(place, file.lines[:MAX_LINES], width)
    else:
        for row, line in enumerate(file.lines[:MAX_LINES]):
            yield _diff_line(f"{place}:{row}", line, width)
    beyond = len(file.lines) - MAX_LINES
    if beyond > 0:
        where = f"; {command} shows all" if command else ""
        yield Para(f"{place}:more", ((f"… {counted(beyond, 'more line')}{where}", "attention"),))


def _diff_line(key: str, line: DiffLine, width: int) -> Para:
    gutter = _gutter(line, width)
    ink = PLAIN_INKS[line.kind]
    text = line.text
    if line.kind in "@\\":
        # what git names behind the numbers is cut by git already
        return Para(key, ((" " * len(gutter) + text, ink),), wrap="no")
    spans: tuple[Span, ...] = line.spans or ((text, ink),)
    if len(text) > LONG_LINE:
        spans = ((f"{text[:LONG_LINE]}… {counted(len(text) - LONG_LINE, 'more character')}", ink),)
    mark = "−" if line.kind == "-" else line.kind
    return Para(key, ((gutter, "edge"), (f"{mark} ", ink), *spans), wrap="cells", hang=len(gutter) + 2)


def _gutter(line: DiffLine, width: int) -> str:
    """The numbers of a line: in both files if there is room, else in the one that it is in."""
    if width < NUMBERED:
        return ""
    if width < BOTH_NUMBERED:
        number = line.new or line.old
        return f"{number:>5} " if number else " " * 6
    return f"{line.old or '':>5} {line.new or '':>5} "
