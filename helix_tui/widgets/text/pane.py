"""Text panes: paragraphs of spans, wrapped to the width of the pane, one row per line; parts may fold."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from helix_tui.widgets.base.line import Line, Span, heading, spread, width_of, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Gesture, RowSource

if TYPE_CHECKING:
    pass


Wrap = Literal["words", "cells", "no", "heading"]

MIN_WIDTH_BESIDE = 8
"""The text width below which nothing is shown at its right."""


class Para(Struct, frozen=True):
    """One line of a document before it is wrapped."""

    key: str
    spans: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    """Shown at the right edge of the first line."""
    wrap: Wrap = "words"
    """Where it breaks: at blanks; anywhere (for code); not at all; or a heading, below a blank line."""
    hang: int = 0
    """Indent of the lines after the first."""
    landmark: bool = False
    """Whether ``J`` and ``K`` stop here."""
    opens: bool = False
    """Whether enter does something here."""


class Paragraphs(RowSource):
    """Paragraphs laid out for one width."""

    def __init__(self, paras: Sequence[Para], width: int) -> None:
        self.paras = paras
        self.width = max(8, width)
        self._wrapped: dict[int, list[tuple[Span, ...]]] = {}
        sizes = [self._size(number, para) for number, para in enumerate(paras)]
        self._starts = [0, *accumulate(sizes)]
        self._numbers = {para.key: number for number, para in enumerate(paras)}

    def _size(self, number: int, para: Para) -> int:
        if para.wrap == "heading":
            return 2 if number else 1
        if para.wrap == "no":
            return 1
        room = self._room_beside(para)
        if room < MIN_WIDTH_BESIDE:
            room = self.width
        # most paragraphs fit in a line and need no wrapping
        if width_of(para.spans) <= room:
            return 1
        lines = wrap_spans(para.spans, room, para.hang, words=para.wrap == "words")
        self._wrapped[number] = lines
        return len(lines)

    def _room_beside(self, para: Para) -> int:
        """The room that the right side leaves on the first line."""
        return self.width - (width_of(para.right) + 1 if para.right else 0)

    def __len__(self) -> int:
        return self._starts[-1]

    def number(self, index: int) -> int:
        """The number of the paragraph that a row belongs to."""
        return bisect.bisect_right(self._starts, index) - 1

    def place(self, index: int) -> tuple[Para, int]:
        """The paragraph that a row belongs to, and which of its lines the row is."""
        number = self.number(index)
        return self.paras[number], index - self._starts[number]

    def key(self, index: int) -> str:
        para, part = self.place(index)
        return f"{para.key}\n{part}"

    def index(self, key: str) -> int | None:
        name, _, part = key.partition("\n")
        number = self._numbers.get(name)
        if number is None:
            return None
        index = self._starts[number] + int(part or 0)
        # at another width the paragraph may have fewer lines
        return min(index, self._starts[number + 1] - 1)

    def paint(self, index: int, width: int) -> Line:
        number = self.number(index)
        para, part = self.paras[number], index - self._starts[number]
        if para.wrap == "heading":
            if index + 1 < self._starts[number + 1]:
                return []
            caption = "".join(text for text, _ in para.spans)
            return heading(caption, width, "".join(text for text, _ in para.right))
        lines = self._wrapped.get(number)
        spans = para.spans if lines is None else lines[part]
        beside = part == 0 and para.right and self._room_beside(para) >= MIN_WIDTH_BESIDE
        return spread(spans, para.right, width) if beside else spans

    def leads(self, index: int) -> bool:
        para, part = self.place(index)
        return para.opens and not part

    def text(self, index: int) -> str:
        return "".join(text for text, _ in self.paint(index, self.width))

    def landmark(self, index: int, step: int) -> int | None:
        number = self.number(index) + step
        while 0 <= number < len(self.paras):
            if self.paras[number].landmark:
                # a heading is the last of its lines
                return self._starts[number + 1] - 1 if self.paras[number].wrap == "heading" else self._starts[number]
            number += step
        return None


class TextPane(RowList):
    """A pane of paragraphs. Give it `read` for another document, `update` for a new state of the same one."""

    class LineFollowed(Gesture):
        """Enter on a link: the kind of thing, and its name."""

        def __init__(self, kind: str, name: str) -> None:
            super().__init__()
            self.kind = kind
            self.name = name

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, cursor_needs_focus=True)
        self._paras: Sequence[Para] = ()

    @property
    def paras(self) -> Sequence[Para]:
        """The paragraphs shown."""
        return self._paras

    @property
    def para(self) -> Para | None:
        """The paragraph under the cursor."""
        source = self.source
        if isinstance(source, Paragraphs) and 0 <= self.selected_index < len(source):
            return source.place(self.selected_index)[0]
        return None

    def read(self, paras: Sequence[Para]) -> None:
        """Show another document from the top."""
        self.empty()
        self.update_text(paras)

    def update_text(self, paras: Sequence[Para], *, changed: Collection[str] = ()) -> None:
        """Show a new state of the same document at the same position."""
        self._paras = paras
        if self.size.width:
            self.show(Paragraphs(paras, self._text_width), changed=changed)

    def on_resize(self) -> None:
        """Wrap again for the new width."""
        source = self.source
        if self._paras and not (isinstance(source, Paragraphs) and source.width == max(8, self._text_width)):
            self.show(Paragraphs(self._paras, self._text_width))


class FoldPane(TextPane):
    """A pane whose parts fold. Subclasses build the paragraphs; a folded part is its header alone."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._folded: set[str] = set()

    def build(self, width: int) -> Sequence[Para]:
        """The present paragraphs, for a width."""
        raise NotImplementedError

    def begin(self, folded: Collection[str] = ()) -> None:
        """Show another document from the top, with these parts folded."""
        self._folded = set(folded)
        self.empty()
        self.rebuild()

    def rebuild(self) -> None:
        """Show the present paragraphs at the same position."""
        if self.size.width:
            self.update_text(self.build(self._text_width))

    def on_resize(self) -> None:
        """Rebuild for the new width."""
        self.rebuild()

    def unfold_matches(self, words: str) -> None:
        """Unfold every part that contains a text, so that a search finds it."""
        found = [key for key, text in self.folded_texts() if words.lower() in text.lower()]
        if found:
            self._folded -= set(found)
            self.rebuild()

    def folded_texts(self) -> Iterable[tuple[str, str]]:
        """Each folded part with its text, if the pane knows it before unfolding."""
        return ()

    def is_folded(self, key: str) -> bool:
        """Whether a part is folded."""
        return key in self._folded

    def part(self) -> str | None:
        """The key of the header of the part under the cursor."""
        source = self.source
        if not isinstance(source, Paragraphs) or not 0 <= self.selected_index < len(source):
            return None
        number = source.number(self.selected_index)
        # back to the header: only a part's header can be opened
        while number >= 0 and not source.paras[number].opens:
            number -= 1
        return source.paras[number].key if number >= 0 else None

    def action_open(self) -> None:
        """Fold the part under the cursor, or unfold it; only on its header."""
        para = self.para
        if para is not None and para.opens:
            self.set_fold(para.key, on=not self.is_folded(para.key))

    def set_fold(self, key: str, *, on: bool) -> None:
        """Fold or unfold a part, and put the cursor on its header."""
        (self._folded.add if on else self._folded.discard)(key)
        # before rebuilding: the line under the cursor may be folded away
        self.select(f"{key}\n0")
        self.rebuild()

    def fold(self) -> bool:
        """Fold the part under the cursor; False if nothing is left to fold."""
        key = self.part()
        if key is None or self.is_folded(key):
            return False
        self.set_fold(key, on=True)
        return True

    def unfold(self) -> bool:
        """Unfold the part under the cursor; False if it is open."""
        para = self.para
        if para is None or not para.opens or not self.is_folded(para.key):
            return False
        self.set_fold(para.key, on=False)
        return True


def section(caption: str, right: str = "", *, key: str = "") -> Para:
    """A heading; ``J`` and ``K`` stop here."""
    tail: tuple[Span, ...] = ((right, "muted"),) if right else ()
    return Para(f"# {key or caption}", ((caption, "text"),), tail, wrap="heading", landmark=True)


def block(key: str, text: str, ink: str = "text", *, indent: int = 0, code: bool = False) -> list[Para]:
    """A cleaned text of several lines as paragraphs; ``code`` keeps its blanks and breaks anywhere."""
    pad = " " * indent
    return [
        Para(f"{key} {number}", ((pad + line, ink),), wrap="cells" if code else "words", hang=indent)
        for number, line in enumerate(text.rstrip("\n").split("\n"))
    ]
