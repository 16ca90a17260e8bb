"""Lines made of spans: what every list and pane of the console is drawn from.

A span is ``(text, ink)``; an ink is a role and attributes (``themes.roles``). Text that comes from outside
has passed ``core.ground.text`` before it becomes a span; nothing here parses markup. Widths are Rich's,
since Rich cuts the line that reaches the terminal.

One line of spans that stands still: pulse, tabs, footer and captions are made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.themes.roles import Palette, to_ascii
from helix_tui.widgets.outcomes import ascii_only, palette_of

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


def column(text: str, width: int) -> str:
    """The text in exactly ``width`` cells, the last two of them blank."""
    return set_cell_size(cut(text, width - 2), width)


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


def wrap_spans(spans: Line, width: int, hang: int = 0, *, words: bool = True) -> list[tuple[Span, ...]]:
    """Spans as lines of at most ``width`` cells; no text is lost but blanks at which a line was broken.

    A width below 2 counts as 2, which the widest character takes.
    """
    width = max(2, width)
    hang = min(hang, width // 2, width - 2)
    lines: list[tuple[Span, ...]] = []
    current: list[Span] = []
    used = 0

    def flush() -> None:
        nonlocal current, used
        while words and len(current) > 1 and current[-1][0] == " ":
            current.pop()
        lines.append(tuple(current))
        current, used = ([(" " * hang, "text")] if hang else []), hang

    for text, ink in spans:
        for piece in _pieces(text) if words else (text,):
            if words and piece == " " and lines and used <= hang:
                continue  # the second of two blanks at which a line was broken
            at = 0
            while at < len(piece):
                room = width - used
                rest = piece[at : at + width + 1]  # enough to see that it does not fit
                cells = cell_len(rest)
                if cells <= room and at + len(rest) == len(piece):
                    current.append((rest, ink))
                    used += cells
                    break
                empty = used <= (hang if lines else 0)
                if words and piece == " ":
                    flush()
                    break
                if not words or empty or cells > width - hang:
                    head = chop_cells(rest[:room], room)[0] if room > 1 else ""
                    if head:
                        current.append((head, ink))
                        at += len(head)
                flush()
    if len(current) > bool(hang and lines) or not lines:
        lines.append(tuple(current))
    return lines


def _pieces(text: str) -> list[str]:
    """Words and the blanks between them."""
    pieces: list[str] = []
    for index, word in enumerate(text.split(" ")):
        if index:
            pieces.append(" ")
        if word:
            pieces.append(word)
    return pieces


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


def with_label(line: Strip, label: str, palette: Palette) -> Strip:
    """A jump label over the first cells of a row."""
    tag = to_strip([(label, "attention bold reverse")], len(label), palette)
    return Strip.join([line.crop(0, 1), tag, line.crop(1 + len(label))])


class SpanLine(Widget):
    """A widget of one line; subclasses say in `spans` what stands on it at a width."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "SpanLine { height: 1; width: 1fr; background: $helix-ground; }"

    def spans(self, width: int) -> Line:
        """The line for ``width`` cells; longer is cut."""
        return ()

    def render_line(self, y: int) -> Strip:
        """The line, cut and padded."""
        width = self.size.width
        return to_strip(fit(self.spans(width), width), width, palette_of(self), plain=ascii_only(self))
