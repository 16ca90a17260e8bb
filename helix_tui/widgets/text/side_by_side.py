"""A diff in two columns: what was on the left, what is there now on the right, lines that replace each other beside.

Only where both columns have room to be read; below that a diff is one column, as git prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from helix_tui.widgets.base.line import Line, Span, fit, width_of, wrap_spans
from helix_tui.widgets.text.pane import Para
from helix_tui.widgets.text.patch import PLAIN_INKS, DiffLine

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
