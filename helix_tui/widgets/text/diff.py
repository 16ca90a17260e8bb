"""A diff that is read: the list of files, then a header a file with its counts and its lines in colour, one below the
other or old and new in two columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from helix_tui.core.ground.text import counted
from helix_tui.widgets.base.line import Line, Span, fit, width_of, wrap_spans
from helix_tui.widgets.text.pane import FoldPane, Para, TextPane
from helix_tui.widgets.text.patch import PLAIN_INKS, DiffFacts, DiffLine, FileDiff, change_in, first_change
from helix_tui.widgets.text.transcript import short_path

SPLIT_CELLS = 124
"""Cells from which a diff stands in two columns."""

LONG_LINE = 2_000
"""Characters of a line that are shown."""

_BETWEEN: Span = (" │ ", "rule")


def beside_each_other(place: int, lines: Sequence[DiffLine], width: int) -> Iterator[Para]:
    """The lines of a file in two columns; a line that is too long goes on below itself.

    Keys are those of one column, ``place:row``, with ``/n`` for the lines below the first, so that the cursor
    keeps its place where the width changes.
    """
    half = (width - width_of([_BETWEEN])) // 2
    for left, right in _pairs(lines):
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


def _pairs(lines: Sequence[DiffLine]) -> Iterator[tuple[int | None, int | None]]:
    """The numbers of the lines that stand beside each other: removed ones with those that were added after them."""
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
        spans = ((f"{line.text[:LONG_LINE]}… {len(line.text) - LONG_LINE:,} more characters", ink),)
    lead: tuple[Span, ...] = ((f"{number or '':>5} ", "edge"), (f"{mark} ", ink))
    return list(wrap_spans((*lead, *spans), width, 8, words=False))


def _filled(spans: Line, width: int) -> list[Span]:
    fitted = fit(spans, width)
    return [*fitted, (" " * (width - width_of(fitted)), "text")]


HUGE_FILE = 600
"""Lines from which a file is folded to begin with."""

MOST_LINES = 4_000
"""Lines of all files together that stand open to begin with; also how many are ever shown of one file."""

MOST_LISTED = 200
"""Files that the list above them names."""

NUMBERED = 72
"""Cells from which lines carry their number."""

BOTH_NUMBERED = 96
"""Cells from which they carry that in the old file and that in the new one."""

LISTED = "list:"


class DiffPane(FoldPane):
    """The diff of one attempt."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.facts = DiffFacts()
        self.listed = True
        """The files are listed above them; not where a `DiffFiles` beside the pane does that."""

    def show_diff(self, facts: DiffFacts) -> None:
        """Show a diff from its beginning; files too long to be read at a glance are folded."""
        self.facts = facts
        left = MOST_LINES
        folded = set()
        for place, file in enumerate(facts.files):
            # a small file behind a huge one may still have room
            if len(file.lines) > HUGE_FILE or len(file.lines) > left:
                folded.add(str(place))
            else:
                left -= len(file.lines)
        self.begin(folded)

    # --- where one is -------------------------------------------------------------------------------------

    @property
    def here(self) -> tuple[int, int] | None:
        """The file under the cursor, and the number in the new file of the line; 1 where it names none."""
        para = self.para
        if para is None or not self.facts.files:
            return None
        name, _, row = para.key.removeprefix(LISTED).partition("/")[0].partition(":")
        if not name.isdecimal():
            return None
        file = self.facts.files[int(name)]
        if not row.isdecimal():
            return int(name), change_in(file)
        # a removed line has no number in the new file: the next one that has is where it was
        after = (line.new for line in file.lines[int(row) :] if line.new)
        return int(name), next(after, 1)

    @property
    def top(self) -> tuple[int, int] | None:
        """The first file that can be opened, and the line in it that changed first; None where there is no file."""
        return first_change(self.facts.files)

    @property
    def where(self) -> str:
        """The file under the cursor in words: ``3/12 core/x.py``."""
        here = self.here
        if here is None:
            return ""
        return f"{here[0] + 1}/{len(self.facts.files)} {self.facts.files[here[0]].path}"

    def action_open(self) -> None:
        """From the list to a file; on a file's header, fold or unfold it."""
        para = self.para
        if para is not None and para.key.startswith(LISTED):
            self.go_to_file(int(para.key.removeprefix(LISTED)))
        else:
            super().action_open()

    def go_to_file(self, number: int) -> None:
        """To a file's header, at the top of the view."""
        if self.is_folded(str(number)):
            self.set_fold(str(number), on=False)
        # from below, so that the header comes to the top of the view and its lines are seen
        self.action_last()
        self.select(f"{number}\n0")

    def fold(self) -> bool:
        """Fold the file that the cursor is in; not from the list."""
        para = self.para
        return para is not None and not para.key.startswith(LISTED) and super().fold()

    def folded_texts(self) -> Iterator[tuple[str, str]]:
        """The files that are folded."""
        for place, file in enumerate(self.facts.files):
            if self.is_folded(str(place)):
                yield str(place), "\n".join(line.text for line in file.lines[:MOST_LINES])

    # --- what it shows ------------------------------------------------------------------------------------

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
    """The files of a diff by folder, beside it: the cursor is on the file that is read, and leads to another."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._cursor_needs_focus = False
        self._files: Sequence[FileDiff] = ()

    def show_files(self, files: Sequence[FileDiff]) -> None:
        """Show the files of another diff, or the same ones at another width."""
        other, self._files = files is not self._files, files
        if other:
            self.empty()
        if self.size.width:
            self.update_text(list(_by_folder(files, self._text_width)))
        if files and self.number is None:
            self.point_at(0)

    def on_resize(self) -> None:
        """Names are cut for the width."""
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
    for number, file in enumerate(files[:MOST_LISTED]):
        folder, _, name = file.path.rpartition("/")
        if folder != before and folder:
            yield Para(f"folder {number}", ((tail_of(f"{folder}/", width), "muted"),), wrap="no")
        before = folder
        letter, ink = _letter(file)
        right = counts_of(file.added, file.removed) if letter != "B" else ()
        spans = ((f" {letter} ", ink), (short_path(name, max(8, width - 4 - width_of(right))), "text"))
        yield Para(f"{LISTED}{number}", spans, right, wrap="no", opens=True)
    if len(files) > MOST_LISTED:
        yield Para("list more", ((f"   … {len(files) - MOST_LISTED:,} more files", "muted"),))


def tail_of(path: str, width: int) -> str:
    """A path in at most ``width`` cells, without its beginning: what is nearest to the file tells most."""
    return path if width_of(((path, ""),)) <= width else f"…{path[-(width - 1) :]}"


def counts_of(added: int, removed: int) -> tuple[Span, ...]:
    """``+18 −3``"""
    return ((f"+{added:,}", "success"), (f" −{removed:,}", "error"))


_LETTERS = {"new": "A", "deleted": "D", "renamed": "R", "copied": "C", "mode": "T", "binary": "B"}
"""git's own letters for what happened to a file."""


def _letter(file: FileDiff) -> tuple[str, str]:
    letter = _LETTERS.get(file.verb, "M")
    return letter, {"A": "success", "D": "error", "M": "muted"}.get(letter, "waiting")


def _file_list(files: Sequence[FileDiff], width: int) -> Iterator[Para]:
    """One line a file, with git's letter; its share of the change as a bar."""
    most = max(file.added + file.removed for file in files)
    for number, file in enumerate(files[:MOST_LISTED]):
        letter, ink = _letter(file)
        right = (*counts_of(file.added, file.removed), (" ", "text"), *_bar(file, most)) if letter != "B" else ()
        path = short_path(file.path, max(12, width - 5 - width_of(right)))
        spans = ((f"  {letter} ", ink), (path, "text"))
        yield Para(f"{LISTED}{number}", spans, right, wrap="no", opens=True)
    if len(files) > MOST_LISTED:
        yield Para("list more", ((f"    … {len(files) - MOST_LISTED:,} more files", "muted"),))


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
        yield from beside_each_other(place, file.lines[:MOST_LINES], width)
    else:
        for row, line in enumerate(file.lines[:MOST_LINES]):
            yield _diff_line(f"{place}:{row}", line, width)
    beyond = len(file.lines) - MOST_LINES
    if beyond > 0:
        where = f"; {command} shows all" if command else ""
        yield Para(f"{place}:more", ((f"… {beyond:,} more lines{where}", "attention"),))


def _diff_line(key: str, line: DiffLine, width: int) -> Para:
    gutter = _gutter(line, width)
    ink = PLAIN_INKS[line.kind]
    text = line.text
    if line.kind in "@\\":
        return Para(key, ((" " * len(gutter) + text, ink),), wrap="cells", hang=len(gutter))
    spans: tuple[Span, ...] = line.spans or ((text, ink),)
    if len(text) > LONG_LINE:
        spans = ((f"{text[:LONG_LINE]}… {len(text) - LONG_LINE:,} more characters", ink),)
    mark = "−" if line.kind == "-" else line.kind
    return Para(key, ((gutter, "edge"), (f"{mark} ", ink), *spans), wrap="cells", hang=len(gutter) + 2)


def _gutter(line: DiffLine, width: int) -> str:
    """The numbers of a line: in both files where there is room, else in the one that it is in."""
    if width < NUMBERED:
        return ""
    if width < BOTH_NUMBERED:
        number = line.new or line.old
        return f"{number:>5} " if number else " " * 6
    return f"{line.old or '':>5} {line.new or '':>5} "
