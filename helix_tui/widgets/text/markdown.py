"""Lay Markdown out as paragraphs, cheaply enough for a key press."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from helix_tui.core.ground.text import clean_block
from helix_tui.widgets.base.line import Line, Span, cut, wrap_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


MAX_CHARS = 24_000
"""How many characters of one text are laid out; the last line says how many more there are."""

SHORT_LINE = 50
"""A source line shorter than this was broken on purpose, so its break is kept."""

_ITEM = re.compile(r"\s*(?:[-*•]|\(?\d+[.)]|AC[-\s]?\d+[.:)])\s+")
_CODE = re.compile(r"(`+[^`\n]+`+)")


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
