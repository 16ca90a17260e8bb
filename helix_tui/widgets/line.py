"""Lines made of spans: what every list and pane of the console is drawn from.

A span is ``(text, ink)``; an ink is a role and attributes (``themes.roles``). Text that comes from outside
has passed through ``core.text`` before it becomes a span; nothing here parses markup. Widths are Rich's,
since Rich cuts the line that reaches the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from helix_tui.themes.alphabet import to_ascii
from helix_tui.themes.roles import Palette

Span = tuple[str, str]
"""A piece of text and its ink."""

Line = Sequence[Span]


def width_of(spans: Iterable[Span]) -> int:
    """Cells that the spans take."""
    return sum(cell_len(text) for text, _ in spans)


def cut(text: str, width: int) -> str:
    """The text in at most ``width`` cells; a cut ends in ``…``."""
    if width <= 0:
        return ""
    if len(text) * 2 > width and cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return text


def fit(spans: Line, width: int) -> list[Span]:
    """The spans in at most ``width`` cells, cut at the end with ``…``."""
    fitted: list[Span] = []
    left = width
    for text, ink in spans:
        if left <= 0:
            break
        kept = cut(text, left)
        fitted.append((kept, ink))
        left -= cell_len(kept)
        if kept != text:
            break
    return fitted


def spread(left: Line, right: Line, width: int) -> list[Span]:
    """``left`` at the left edge and ``right`` at the right one; the left gives way."""
    taken = width_of(right)
    if taken + 1 >= width:
        return fit(left, width)
    fitted = fit(left, width - taken - (1 if taken else 0))
    return [*fitted, (" " * (width - taken - width_of(fitted)), "text"), *right]


def rule(caption: str, width: int, right: str = "") -> list[Span]:
    """A thin rule with a dim caption: what parts one section from the next."""
    tail = f" {right} ──" if right else ""
    head: list[Span] = [("── ", "rule"), (cut(caption, max(0, width - 4)), "muted"), (" ", "rule")]
    if not caption:
        head = []
    gap = width - width_of(head) - cell_len(tail)
    if gap < 0:
        return fit(head, width)
    return [
        *head,
        ("─" * gap, "rule"),
        (f" {right} " if right else "", "muted"),
        ("──" if right else "", "rule"),
    ]


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """A paragraph as lines of at most ``width`` cells, broken at blanks, else inside the word."""
    room = max(4, width - cell_len(indent))
    lines: list[str] = []
    current = ""
    for word in text.split():
        if not current:
            current = word
        elif cell_len(current) + 1 + cell_len(word) <= room:
            current = f"{current} {word}"
            continue
        else:
            lines.append(current)
            current = word
        if cell_len(current) > room:
            *whole, current = chop_cells(current, room)
            lines.extend(whole)
    return [*lines, current] if current or not lines else lines


def wrap_spans(spans: Line, width: int) -> list[list[Span]]:
    """Spans as lines of at most ``width`` cells, broken at blanks, else inside the word."""
    lines: list[list[Span]] = [[]]
    used = 0
    for text, ink in spans:
        for word in _WORDS.findall(text):
            size = cell_len(word)
            if word == " ":
                if used and used < width:
                    lines[-1].append((word, ink))
                    used += 1
                continue
            if used + size > width and used:
                _begin_line(lines)
                used = 0
            for part in chop_cells(word, width) if size > width else [word]:
                if used + cell_len(part) > width and used:
                    _begin_line(lines)
                    used = 0
                lines[-1].append((part, ink))
                used += cell_len(part)
    return [line for line in lines if line] or [[]]


def _begin_line(lines: list[list[Span]]) -> None:
    """A new line; blanks at the end of the last one go."""
    while lines[-1] and lines[-1][-1][0] == " ":
        lines[-1].pop()
    lines.append([])


_WORDS = re.compile(r"[^\s]+|\s")


def highlight(spans: Line, pattern: re.Pattern[str] | None) -> list[tuple[str, str, bool]]:
    """Spans as (text, ink, matches): what the pattern finds in a span stands apart."""
    if pattern is None:
        return [(text, ink, False) for text, ink in spans]
    pieces: list[tuple[str, str, bool]] = []
    for text, ink in spans:
        at = 0
        for found in pattern.finditer(text):
            start, end = found.span()
            if start == end:
                continue
            if start > at:
                pieces.append((text[at:start], ink, False))
            pieces.append((text[start:end], ink, True))
            at = end
        if at < len(text):
            pieces.append((text[at:], ink, False))
    return pieces


def to_strip(
    spans: Line,
    width: int,
    palette: Palette,
    *,
    ground: str = "",
    pattern: re.Pattern[str] | None = None,
    plain: bool = False,
) -> Strip:
    """Exactly ``width`` cells for the terminal."""
    style = palette.style
    segments = []
    used = 0
    for text, ink, matches in highlight(spans, pattern):
        if plain:
            text = to_ascii(text)
        cells = cell_len(text)
        if used + cells > width:
            text = set_cell_size(text, width - used)
            cells = width - used
        if not text:
            continue
        used += cells
        segments.append(Segment(text, _match_style(palette, ink, ground) if matches else style(ink, ground)))
        if used >= width:
            break
    if used < width:
        segments.append(Segment(" " * (width - used), style("text", ground)))
    return Strip(segments, width)


def _match_style(palette: Palette, ink: str, ground: str) -> Style:
    return palette.style(f"{ink} underline", "match" if ground != "selection" else ground)
