"""Lines made of spans, from which every list and pane of the console is drawn.

A span is ``(text, ink)``; an ink is a role and attributes (``themes.roles``). Text that comes from outside
has passed ``core.ground.text`` before it becomes a span; nothing here parses markup. Widths are Rich's,
because Rich cuts the line that reaches the terminal. `SpanLine` is a widget of one such line: status bar, tabs, footer
and captions are made of it. `palette_of` is the palette of the present theme, `ascii_only` whether ``--ascii`` is
asked for.

`Titles` cuts titles where they are alike, never where they differ. Thirteen beads that all begin
``attempt-backend: verify combined reusable`` look alike once each is cut at its end: here the words at which a title
differs from any other one in the list are kept, and the stretches between them that it shares with others give way to
``…``: ``attempt-backend: verify … part 3``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.strip import Strip
from textual.widget import Widget

from helix_tui.themes import NIGHT, PREFIX, Palette, make_theme, to_ascii

Span = tuple[str, str]
"""A piece of text and its ink (colour role and attributes)."""

Line = Sequence[Span]

GAP = 2
"""Cells between two parts of a packed line."""

_GAP = "… "

_NEAR_CELLS = 9
"""Cells that the word before a difference may take: ``part`` beside ``3``."""

_SORTS_LAST = chr(0x10FFFF)


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


def rule(caption: str, width: int, right: str = "") -> list[Span]:
    """A thin rule with a dim caption, which separates sections."""
    tail = f" {right} ──" if right else ""
    head: list[Span] = [("── ", "rule"), (cut(caption, max(0, width - 4)), "muted"), (" ", "rule")]
    if not caption:
        head = []
    gap = width - width_of(head) - cells_of(tail)
    if gap < 0:
        return fit(head, width)
    return [*head, ("─" * gap, "rule"), (f" {right} " if right else "", "muted"), ("──" if right else "", "rule")]


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


class Titles:
    """The titles of a list, to find where each title differs from the others.

    They are read and sorted once, when the first title has to be shortened: 30 ms for 3,000 of them.
    """

    def __init__(self, titles: Iterable[str] = ()) -> None:
        self._titles = titles
        # on the instance: a cache on the class would keep every list of titles alive
        self.shortened = lru_cache(maxsize=1024)(self._shortened)

    @cached_property
    def _sorted(self) -> list[str]:
        # a blank after each, so that the last word of a title ends like any other
        ordered = sorted({f"{title} " for title in self._titles})
        self._titles = ()  # an iterator may hold a whole queue
        return ordered

    def _parting(self, title: str) -> list[int]:
        """The positions, ascending, of the words where a title differs from others with the same beginning."""
        text = f"{title} "
        places: set[int] = set()
        low, high = bisect_left(self._sorted, text), bisect_left(self._sorted, text + _SORTS_LAST)
        # neighbours in the sorted list share the longest beginning; each step skips all titles that share what was
        # found, so that only a few of many thousands are compared
        for before in (low - 1, high):
            while 0 <= before < len(self._sorted):
                place = _same_words(text, self._sorted[before])
                places.add(place)
                if not place:
                    break
                begin = text[:place]
                edge = bisect_left(self._sorted, begin)
                before = edge - 1 if before < low else bisect_left(self._sorted, begin + _SORTS_LAST)
        return sorted(place for place in places if 0 < place < len(title))

    def _shortened(self, title: str, width: int) -> str:
        """The title in at most ``width`` cells, with the words that distinguish it from the others."""
        if cells_of(title) <= width:
            return title
        places = self._parting(title)
        last = places[-1] if places else 0
        if not last or cells_of(title[: _word_end(title, last)]) < width:
            return cut(title, width)  # a plain cut keeps the difference
        return _elided(title, places, width)


def _same_words(one: str, other: str) -> int:
    """Characters of the words that two texts begin with alike, each with the blank behind it."""
    same = 0
    for same, (left, right) in enumerate(zip(one, other, strict=False)):  # noqa: B007
        if left != right:
            break
    else:
        same = min(len(one), len(other))
    return one.rfind(" ", 0, same) + 1


def _word_end(title: str, at: int) -> int:
    end = title.find(" ", at)
    return len(title) if end < 0 else end


def _elided(title: str, places: list[int], width: int) -> str:
    """Keep the words at ``places``, and as much of the rest as fits, beginning with what follows them."""
    kept = [(0, _word_end(title, 0))]
    for place in reversed(places):  # the most similar titles differ in the last of them
        insort(kept, (place, _word_end(title, place)))
        if cells_of(_joined(title, kept)) > width:
            kept.remove((place, _word_end(title, place)))
    kept = _with_word_before(title, kept, width)
    for tail in (True, False):
        kept = _grown(title, kept, width, tail=tail)
    kept[-1] = (kept[-1][0], len(title))  # as many letters of the next word as fit
    return cut(_joined(title, kept), width)


def _with_word_before(title: str, kept: list[tuple[int, int]], width: int) -> list[tuple[int, int]]:
    """Add the word before the last difference if it is short: ``part 3`` says more than ``3``."""
    begin, end = kept[-1]
    before = title.rfind(" ", 0, max(0, begin - 1)) + 1
    if len(kept) < 2 or begin - before > _NEAR_CELLS or before <= kept[-2][1]:
        return kept
    wider = [*kept[:-1], (before, end)]
    return wider if cells_of(_joined(title, wider)) <= width else kept


def _grown(title: str, kept: list[tuple[int, int]], width: int, *, tail: bool) -> list[tuple[int, int]]:
    """More words after the last kept ones (``tail``), or after the first ones, as long as they fit."""
    kept = _merged(kept)
    while True:
        place = len(kept) - 1 if tail else 0
        begin, end = kept[place]
        if end >= len(title):
            return kept
        grown = _merged([*kept[:place], (begin, _word_end(title, end + 1)), *kept[place + 1 :]])
        if cells_of(_joined(title, grown)) > width:
            return kept
        kept = grown


def _merged(kept: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join stretches that are separated only by a blank."""
    merged = kept[:1]
    for begin, end in kept[1:]:
        if begin <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _joined(title: str, kept: list[tuple[int, int]]) -> str:
    """The kept stretches joined with ``…``, also where the end is missing."""
    parts = [title[kept[0][0] : kept[0][1]]]
    for (_, end), (begin, last) in pairwise(kept):
        parts += [_GAP if begin > end + 1 else " ", title[begin:last]]
    return "".join(parts) + ("…" if kept[-1][1] < len(title) else "")


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
