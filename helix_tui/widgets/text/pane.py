"""Text panes: paragraphs of spans, wrapped to the width of the pane, one row per line; parts may fold.

Markdown and code are laid out cheaply enough for a key press.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from helix_tui.core.ground.text import clean_block
from helix_tui.widgets.base.line import Line, Span, cut, rule, spread, width_of, wrap_spans
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.base.row_source import Gesture, RowSource

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_CHARS = 24_000
"""How many characters of one text are laid out; the last line says how many more there are."""

SHORT_LINE = 50
"""A source line shorter than this was broken on purpose, so its break is kept."""


def prose(text: object, width: int) -> list[Line]:
    """The lines of a markdown text."""
    cleaned = clean_block(text, MAX_CHARS).strip("\n")
    if not cleaned:
        return []
    return list(_laid_out(cleaned, max(8, width)))


# the texts of some eight beads: when one of a bead's fields changes, and when the cursor comes back to a bead
@lru_cache(maxsize=32)
def _laid_out(text: str, width: int) -> tuple[Line, ...]:
    lines = _Layout(width).run(_parser().parse(text))
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def verbatim(text: object, width: int) -> list[Line]:
    """The lines of a literal text, such as acceptance and commands; code in its ink."""
    lines: list[Line] = []
    for line in clean_block(text, MAX_CHARS).strip("\n").split("\n"):
        item = _ITEM.match(line)
        hang = len(item.group()) if item else len(line) - len(line.lstrip())
        spans = [(part, "running" if number % 2 else "text") for number, part in enumerate(_CODE.split(line)) if part]
        lines += wrap_spans(spans, max(8, width), hang) if spans else [[]]
    return lines if any(lines) else []


_ITEM = re.compile(r"\s*(?:[-*•]|\(?\d+[.)]|AC[-\s]?\d+[.:)])\s+")
_CODE = re.compile(r"(`+[^`\n]+`+)")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    # backslashes and entities are kept: they are part of commands
    return MarkdownIt("commonmark", {"html": False}).enable("table").disable(["escape", "entity"])


class _Layout:
    """Walks a document's tokens once and collects lines."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._lines: list[Line] = []
        self._indents: list[str] = []
        self._counters: list[int | None] = []
        self._bullet = ""

    def run(self, tokens: Sequence[Token]) -> list[Line]:
        """The lines of all tokens."""
        ink = "text"
        row: list[str] = []
        for token in tokens:
            kind = token.type
            if kind == "heading_open":
                self._blank()
                ink = "text bold underline" if token.tag in ("h1", "h2") else "text bold"
            elif kind == "inline":
                if row or self._in_table:
                    row.append(token.content)
                else:
                    self._paragraph(token.children or (), ink)
            elif kind == "heading_close":
                ink = "text"
            elif kind == "paragraph_close" and not token.hidden:
                self._blank()
            elif kind in ("fence", "code_block"):
                self._code(token.content)
            elif kind == "hr":
                self._add([("─" * (self._width - self._indent_size), "rule")])
            elif kind == "tr_open":
                self._in_table, row = True, []
            elif kind == "tr_close":
                self._in_table = False
                self._add([("  ".join(row), ink)])
                row = []
            elif kind == "table_close":
                self._blank()
            else:
                self._nest(token)
        return self._lines

    _in_table = False

    def _nest(self, token: Token) -> None:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            start = token.attrGet("start")
            self._counters.append(None if kind.startswith("bullet") else int(start or 1))
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._counters.pop()
            if not self._counters:
                self._blank()
        elif kind == "list_item_open":
            counter = self._counters[-1]
            self._bullet = "• " if counter is None else f"{counter}. "
            self._indents.append(" " * len(self._bullet))
            if counter is not None:
                self._counters[-1] = counter + 1
        elif kind == "list_item_close":
            self._indents.pop()
            self._bullet = ""
        elif kind == "blockquote_open":
            self._indents.append("│ ")
        elif kind == "blockquote_close":
            self._indents.pop()

    @property
    def _indent_size(self) -> int:
        return sum(map(len, self._indents))

    def _prefix(self) -> str:
        """The beginning of a line: indents, and the bullet on an item's first line."""
        if not self._bullet:
            return "".join(self._indents)
        bullet, self._bullet = self._bullet, ""
        return "".join(self._indents)[: -len(bullet)] + bullet

    def _add(self, spans: Line) -> None:
        prefix = self._prefix()
        self._lines.append([(prefix, "muted"), *spans] if prefix else list(spans))

    def _blank(self) -> None:
        if self._lines and self._lines[-1]:
            self._lines.append([])

    def _paragraph(self, children: Sequence[Token], ink: str) -> None:
        for spans in _hard_lines(_inline(children, ink)):
            for line in wrap_spans(spans, max(8, self._width - self._indent_size)):
                self._add(line)

    def _code(self, content: str) -> None:
        room = self._width - self._indent_size - 2
        for line in content.rstrip("\n").split("\n"):
            self._add([("  ", "text"), (cut(line, room), "running")])
        self._blank()


def _inline(children: Sequence[Token], ink: str) -> Iterator[Span]:
    """The spans of one inline run; a hard break is the span ``"\\n"``."""
    attributes: list[str] = []
    written = 0
    literal = _no_emphasis(children)
    for place, child in enumerate(children):
        written += len(child.content)
        if place in literal:
            yield child.markup, " ".join([ink, *attributes])
        elif child.type in ("strong_open", "em_open"):
            attributes.append("bold" if child.type == "strong_open" else "italic")
        elif child.type in ("strong_close", "em_close"):
            attributes.pop()
        elif child.type == "softbreak":
            yield ("\n" if written < SHORT_LINE else " "), ink
            written = 0
        elif child.type == "hardbreak":
            yield "\n", ink
        elif child.type == "code_inline":
            yield child.content, "running"
        elif child.type == "image":
            yield f"[image: {child.content}]", "muted"
        elif child.type == "link_close":
            continue
        elif child.content:
            yield child.content, " ".join([ink, *attributes])


def _no_emphasis(children: Sequence[Token]) -> set[int]:
    """Places of emphasis inside words, as in ``src/**/*.py`` and ``a.*==|b.*==``: those are characters."""
    found: set[int] = set()
    opened: list[int] = []
    for place, child in enumerate(children):
        if child.type in ("strong_open", "em_open"):
            opened.append(place)
        elif child.type in ("strong_close", "em_close"):
            begin = opened.pop()
            before = children[begin - 1] if begin else None
            after = children[place + 1] if place + 1 < len(children) else None
            outside = (before is None or _ends_apart(before)) and (after is None or _begins_apart(after))
            if not outside:
                found |= {begin, place}
    return found


def _ends_apart(token: Token) -> bool:
    """Whether the character before emphasis allows it to begin a word."""
    return token.type != "code_inline" and (not token.content or token.content[-1] in " \t\n([{\"'“‘—–")


def _begins_apart(token: Token) -> bool:
    """Whether the character after emphasis allows it to end a word."""
    return token.type != "code_inline" and (not token.content or token.content[0] in " \t\n)]}\"'”’—–.,;:!?")


def _hard_lines(spans: Iterator[Span]) -> Iterator[list[Span]]:
    line: list[Span] = []
    for span in spans:
        if span[0] == "\n":
            yield line
            line = []
        else:
            line.append(span)
    if line:
        yield line


MAX_CODE_CHARS = 20_000

_INKS = (
    ("Token.Comment", "muted"),
    ("Token.Literal.String.Doc", "muted"),
    ("Token.Literal.String", "success"),
    ("Token.Literal.Number", "waiting"),
    ("Token.Keyword", "running"),
    ("Token.Name.Function", "text bold"),
    ("Token.Name.Class", "text bold"),
    ("Token.Name.Decorator", "waiting"),
    ("Token.Generic.Heading", "text bold"),
    ("Token.Generic.Subheading", "text bold"),
    ("Token.Operator.Word", "running"),
)


@lru_cache(maxsize=256)
def highlighted(text: str, file: str) -> Sequence[tuple[Span, ...]]:
    """Cleaned text as lines of spans; plain if no language is known for the file."""
    # a text this long stays plain: highlighting takes too long for a key press
    if len(text) > MAX_CODE_CHARS:
        return [((line, "text"),) for line in text.split("\n")]
    from pygments import lex
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(file.rpartition("/")[2], stripnl=False, ensurenl=False)
    except ClassNotFound:
        return [((line, "text"),) for line in text.split("\n")]
    lines: list[list[Span]] = [[]]
    for kind, value in lex(text, lexer):
        ink = _ink(str(kind))
        for place, part in enumerate(value.split("\n")):
            if place:
                lines.append([])
            if part:
                lines[-1].append((part, ink))
    return [tuple(line) for line in lines]


@lru_cache(maxsize=512)
def _ink(kind: str) -> str:
    return next((ink for start, ink in _INKS if kind.startswith(start)), "text")


Wrap = Literal["words", "cells", "no", "rule"]

MIN_WIDTH_BESIDE = 8
"""The text width below which nothing is shown at its right."""


class Para(Struct, frozen=True):
    """One line of a document before it is wrapped."""

    key: str
    spans: tuple[Span, ...] = ()
    right: tuple[Span, ...] = ()
    """Shown at the right edge of the first line."""
    wrap: Wrap = "words"
    """Where it breaks: at blanks; anywhere (for code); not at all; or a caption in a rule."""
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
        if para.wrap in ("no", "rule"):
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
        if para.wrap == "rule":
            caption = "".join(text for text, _ in para.spans)
            return rule(caption, width, "".join(text for text, _ in para.right))
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
                return self._starts[number]
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
    """A caption in a thin rule; ``J`` and ``K`` stop here."""
    tail: tuple[Span, ...] = ((right, "muted"),) if right else ()
    return Para(f"# {key or caption}", ((caption, "muted"),), tail, wrap="rule", landmark=True)


def block(key: str, text: str, ink: str = "text", *, indent: int = 0, code: bool = False) -> list[Para]:
    """A cleaned text of several lines as paragraphs; ``code`` keeps its blanks and breaks anywhere."""
    pad = " " * indent
    return [
        Para(f"{key} {number}", ((pad + line, ink),), wrap="cells" if code else "words", hang=indent)
        for number, line in enumerate(text.rstrip("\n").split("\n"))
    ]
