"""Colour code by Pygments, cheaply enough for a key press."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from helix_tui.widgets.base.line import Span

if TYPE_CHECKING:
    pass


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
