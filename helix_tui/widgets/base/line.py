"""Lines made of spans, from which every list and pane of the console is drawn.

A span is ``(text, ink)``; an ink is a role and attributes (``themes.roles``). Text that comes from outside
has passed ``core.ground.text`` before it becomes a span; nothing here parses markup. Widths are Rich's,
because Rich cuts the line that reaches the terminal. `SpanLine` is a widget of one such line: status bar, tabs, footer
and captions are made of it. `palette_of` is the palette of the present theme, `ascii_only` whether ``--ascii`` is
asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.core.ground.text import capitalized
from helix_tui.themes import NIGHT, PREFIX, Palette, make_theme, to_ascii

Span = tuple[str, str]
"""A piece of text and its ink (colour role and attributes)."""

Line = Sequence[Span]

GAP = 2
"""Cells between two parts of a packed line."""


def cells_of(text: str) -> int:
    """Cells that a text takes, as Rich counts them."""
    # most texts are ASCII, of which each printable character takes one cell: ten times as fast as asking Rich
    return len(text) if text.isascii() and text.isprintable() else cell_len(text)


def width_of(spans: Iterable[Span]) -> int:
    """Cells that the spans take."""
    return sum(cells_of(text) for text, _ in spans)


def cut(text: str, width: int) -> str:
    """The text in at most ``width`` cells; a cut ends in ``…``."""
    if width <= 0:
        return ""
    # no character takes more than two cells: most texts need not be measured
    if len(text) * 2 > width and cells_of(text) > width:
        kept = set_cell_size(text, width - 1)
        # half of a wide character became a blank, which would part the text from its end
        return (kept if text.startswith(kept) else kept[:-1]) + "…"
    return text


def column(text: str, width: int) -> str:
    """The text in exactly ``width`` cells, the last two of them blank."""
    return set_cell_size(cut(text, width - 2), width)


def fit(spans: Line, width: int) -> list[Span]:
    """The spans in at most ``width`` cells; where more than blanks is missing, the end is ``…``."""
    whole = list(spans)
    if width_of(whole) <= width:
        return whole
    while whole and not whole[-1][0].strip():
        whole.pop()
    if whole:
        whole[-1] = (whole[-1][0].rstrip(), whole[-1][1])
    if width_of(whole) <= width:
        return whole
    fitted: list[Span] = []
    left = width
    for text, ink in whole:
        cells = cells_of(text)
        if cells >= left:  # a text that just fits is cut too: what follows it is missing
            fitted.append((cut(f"{text} ", left), ink))
            break
        fitted.append((text, ink))
        left -= cells
    return fitted


def spread(left: Line, right: Line, width: int) -> list[Span]:
    """``left`` at the left edge and ``right`` at the right one; the left is cut first."""
    taken = width_of(right)
    # no room for both: the left part identifies the row
    if taken + 1 >= width:
        return fit(left, width)
    fitted = fit(left, width - taken - (1 if taken else 0))
    return [*fitted, (" " * (width - taken - width_of(fitted)), "text"), *right]


def unpadded(spans: Line) -> list[Span]:
    """Columns without leading blanks: empty columns at the left give their room to what comes before them."""
    left = list(spans)
    while left and not left[0][0].strip():
        left.pop(0)
    return [(left[0][0].lstrip(), left[0][1]), *left[1:]] if left else []


def heading(caption: str, width: int, right: str = "", *, beside: str = "") -> list[Span]:
    """What begins a section or a group: its name, in sentence case, and what there is to say of it, dim.

    Args:
        beside: shown after the name, cut where there is no room.
        right: shown at the right edge, or not at all.
    """
    spans: list[Span] = [(capitalized(caption), "text bold")]
    spans += [(f"  {beside}", "muted")] if beside else []
    if not right or width_of(spans) + cells_of(right) + 2 > width:
        return fit(spans, width)
    return spread(spans, [(right, "muted")], width)


def packed(parts: Iterable[Line], width: int, gap: int = GAP) -> list[Line]:
    """Parts in sequence, as many on a line as fit; none is broken, and one that is too long has its own line."""
    lines: list[list[Span]] = []
    for part in parts:
        if lines and width_of(lines[-1]) + gap + width_of(part) <= width:
            lines[-1] += [(" " * gap, "text"), *part]
        else:
            lines.append([*part])
    return list(lines)


def wrap_spans(spans: Line, width: int, hang: int = 0, *, words: bool = True) -> list[tuple[Span, ...]]:
    """Spans as lines of at most ``width`` cells; nothing is lost except blanks at line breaks.

    A width below 2 counts as 2, the width of the widest character.
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

    for word in _words(spans) if words else [[span] for span in spans]:
        blank = words and word[0][0] == " "
        if blank and lines and used <= hang:
            continue  # the second of two blanks at a line break
        # a word longer than a line is broken, and so is code, which breaks anywhere
        breaks = not words or not _fits(word, width - hang)
        if not breaks and not _fits(word, width - used):
            flush()
            if blank:
                continue
        for text, ink in word:
            at = 0
            while at < len(text):
                room = width - used
                # a text may be a megabyte without a blank: handle one line at a time
                rest = text[at : at + width + 1]  # enough to see that it does not fit
                cells = cells_of(rest)
                if cells <= room:
                    current.append((rest, ink))
                    used += cells
                    at += len(rest)
                    continue
                # combining marks alone take no cell
                head = (chop_cells(rest[:room], room) or [rest[:room]])[0] if room > 1 else ""
                if head:
                    current.append((head, ink))
                    at += len(head)
                flush()
    if len(current) > bool(hang and lines) or not lines:
        lines.append(tuple(current))
    return lines


def _fits(word: Line, room: int) -> bool:
    """Whether the parts of a word take at most ``room`` cells; of a long word only the beginning is measured."""
    for text, _ in word:
        if len(text) > 2 * room + 1:
            return False
        room -= cells_of(text)
        if room < 0:
            return False
    return True


def _words(spans: Line) -> Iterator[list[Span]]:
    """Words and the blanks between them; the parts of a word may differ in ink and stay together."""
    word: list[Span] = []
    for text, ink in spans:
        for index, part in enumerate(text.split(" ")):
            if index:
                if word:
                    yield word
                    word = []
                yield [(" ", ink)]
            if part:
                word.append((part, ink))
    if word:
        yield word


def highlight(spans: Line, pattern: re.Pattern[str] | None) -> list[tuple[str, str, bool]]:
    """Spans as (text, ink, matches): what the pattern finds becomes a separate piece."""
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
        cells = cells_of(text)
        if used + cells > width:
            # a character of two cells at the edge becomes a blank, so that the line has its width
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
    """A widget of one line; subclasses give its content for a width in `spans`."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "SpanLine { height: 1; width: 1fr; background: $helix-ground; }"

    def spans(self, width: int) -> Line:
        """The line for ``width`` cells; longer is cut."""
        return ()

    def render_line(self, y: int) -> Strip:
        """The line, cut and padded."""
        width = self.size.width
        return to_strip(fit(self.spans(width), width), width, palette_of(self), plain=ascii_only(self))


_palettes: dict[tuple[str, bool], Palette] = {}
"""Palettes by theme, with and without colours: as many as there are themes."""


def palette_of(widget: Widget) -> Palette:
    """The palette of the present theme; the default palette if the theme has no helix-tui roles."""
    app = widget.app
    wanted = app.theme, app.no_color
    found = _palettes.get(wanted)
    if found is None:
        found = _palettes[wanted] = Palette(_colours(app), no_colour=app.no_color)
    return found


def _colours(app: App[object]) -> Mapping[str, str]:
    own = app.current_theme.variables
    # the settings may name one of Textual's own themes, which lack helix-tui's roles
    return own if PREFIX + "ground" in own else make_theme("", NIGHT, dark=True).variables


def ascii_only(widget: Widget) -> bool:
    """Whether the user asked for ASCII glyphs."""
    return bool(getattr(widget.app, "ascii_only", False))
