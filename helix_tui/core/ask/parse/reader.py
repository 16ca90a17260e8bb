"""One file's bytes turned into what the index keeps of it."""

from __future__ import annotations

import re

from helix_tui.core.ask.corpus.listing import decode, split_lines
from helix_tui.core.ask.parse import code, documents
from helix_tui.core.ask.parse.languages import DOCUMENTS
from helix_tui.core.ask.parse.pieces import Chunk, Pieces

MAX_TERM_LINE = 4_000
MAX_SUMMARY = 200
_OPENING = 80
_SHORTEST = 15
_COMMENT = re.compile(r'"""(.*?)"""|/\*(.*?)\*/|(?:^[ \t]*(?://|#)[^\n]*\n)+', re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r'"""|/\*+|\*+/|^[ \t]*(?://+!?|#+!?|\*+)', re.MULTILINE)
_LICENCE = re.compile(r"copyright|licen[sc]e|spdx|coding[:=]|eslint|@ts-|usr/bin|shellcheck", re.IGNORECASE)
_PLAIN = frozenset({"text", "data"})


def read_pieces(data: bytes, language: str, *, with_grammar: bool = True) -> tuple[Pieces, list[str]]:
    """The pieces of a file and its lines."""
    text = decode(data)
    lines = split_lines(text)
    if language in DOCUMENTS:
        titles = documents.headings(lines, language)
        cut = documents.sections(lines, titles) if lines else []
        return Pieces(language, len(lines), len(data), cut, [], titles, []), lines
    if language in _PLAIN:
        cut = [Chunk(*run, "lines", "") for run in documents.cut(lines, 1, len(lines), code.MAX_CHUNK)]
        return Pieces(language, len(lines), len(data), cut, [], [], []), lines
    found = code.definitions(text, lines, language if with_grammar else "lines")
    cut = code.chunks(lines, found)
    return Pieces(language, len(lines), len(data), cut, found, [], code.imports(lines), summary(lines)), lines


def summary(lines: list[str]) -> str:
    """The first comment or docstring of code, without its marks, in one line; a licence is passed over."""
    text = "\n".join(line[:200] for line in lines[:_OPENING])
    for match in _COMMENT.finditer(text):
        words = " ".join(_MARKS.sub(" ", match[0]).split())
        if len(words) > _SHORTEST and not _LICENCE.search(words):
            return words[:MAX_SUMMARY]
    return ""


def bodies(pieces: Pieces, lines: list[str]) -> list[str]:
    """The text of each chunk, as far as its words are looked for."""
    if any(len(line) > MAX_TERM_LINE for line in lines):
        lines = [line[:MAX_TERM_LINE] for line in lines]
    return ["\n".join(lines[chunk.start - 1 : chunk.end]) for chunk in pieces.chunks]


def names(pieces: Pieces) -> str:
    """A file's names, of definitions and headings."""
    return "\n".join([one.name for one in pieces.definitions] + [title.text for title in pieces.titles])
