"""Sentences of a span with the lines that they stand on.

Of a section its prose, of code its comment or docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from helix_tui.core.ask.records import Span
from helix_tui.core.text import clean_block

MOST_CHARS = 420
"""Characters of one sentence; a longer one is cut at a word."""
MOST_LINES = 200

_FENCE = re.compile(r"^\s*(```|~~~)")
_SKIP = re.compile(r"^\s*(?:#{1,6}\s|\||[-=*_]{3,}\s*$|<!--|!\[|\[[^\]]+\]:|\.\. |:\w+:|</?\w)")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_QUOTE = re.compile(r"^\s*>\s?")
_END = re.compile(r"(?<=[.!?])[\"'”’)\]*_]*\s+(?=[\"'“‘(\[`*_]*[A-Z0-9`])")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASIS = re.compile(r"(\*\*|__|(?<!\w)[*_](?=\S))(.+?)(?:\1|(?<=\S)[*_](?!\w))")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|resp|No|Fig|Sec)|\b[A-Z])\.$")

_NO_PROSE = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".lock", ".csv", ".tsv", ".xml", ".svg", ".ini")
"""Files without sentences, even among documents."""

_COMMENT = re.compile(r"^\s*(?:#(?!!)|//[/!]?|--|;+|\*(?!/)|/\*+|%|\"\"\"|''')\s?")
_COMMENT_END = re.compile(r"\s*(?:\*+/|\"\"\"|''')\s*$")
_RULE = re.compile(r"[-=~*_#^+.]{3,}")
_DOCSTRING = re.compile(r"^\s*[rRuUbB]?(\"\"\"|''')")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and where it stands in its file."""

    text: str
    start: int
    end: int
    place: int
    """Its number in the span, from 0."""


def sentences_of(span: Span) -> list[Sentence]:
    """What a span says in words, in its order."""
    if span.file.endswith(_NO_PROSE):
        return []
    lines = [clean_block(line).replace("\n", " ") for line in span.text.split("\n")[:MOST_LINES]]
    blocks = _prose_blocks(lines) if _is_prose(span) else _comment_blocks(lines)
    found: list[Sentence] = []
    for block in blocks:
        for text, first, last in _split(block):
            found.append(Sentence(text, span.start + first, span.start + last, len(found)))
    return found


def _is_prose(span: Span) -> bool:
    return span.kind == "section" or span.role == "doc"


Block = list[tuple[int, str]]
"""Numbered lines that read on."""


def _prose_blocks(lines: list[str]) -> Iterator[Block]:
    block: Block = []
    fenced = False
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
            yield block
            block = []
            continue
        line = _QUOTE.sub("", line)
        bullet = _BULLET.match(line)
        indented = line.startswith(("    ", "\t")) and not block
        if fenced or bullet or indented or not line.strip() or _SKIP.match(line):
            yield block
            block = []
        if bullet and not fenced:
            block = [(number, line[bullet.end() :].strip())]
        elif not fenced and not indented and line.strip() and not _SKIP.match(line):
            block.append((number, line.strip()))
    yield block


def _comment_blocks(lines: list[str]) -> Iterator[Block]:
    """Comments and docstrings before and in a piece of code; the first blocks tell most."""
    block: Block = []
    quote = ""
    for number, line in enumerate(lines):
        opened = _DOCSTRING.match(line) if not quote else None
        if quote or opened:
            body = line[opened.end() :] if opened else line
            mark = opened[1] if opened else quote
            ends = mark in body
            text = body.partition(mark)[0].strip()
            quote = "" if ends else mark
            spoken = bool(text) and not _RULE.fullmatch(text)
            if spoken:
                block.append((number, text))
            if (ends or not spoken) and block:
                yield block
                block = []
        elif _COMMENT.match(line):
            text = _COMMENT_END.sub("", _COMMENT.sub("", line)).strip()
            if text and not _RULE.fullmatch(text):
                block.append((number, text))
            elif block:
                yield block
                block = []
        elif block:
            yield block
            block = []
    yield block


def _split(block: Block) -> Iterator[tuple[str, int, int]]:
    """The sentences of a block with their first and last line."""
    if not block:
        return
    whole, marks = "", []
    for number, line in block:
        marks.append((len(whole), number))
        whole += line + " "
    at = 0
    ends = [
        found.start() for found in _END.finditer(whole) if not _ABBREVIATED.search(whole[: found.start()])
    ]
    for end in [*ends, len(whole)]:
        text = plain(whole[at:end])
        if len(text) > 2 and any(char.isalpha() for char in text):
            first = max(number for start, number in marks if start <= at)
            last = max(number for start, number in marks if start < max(end, at + 1))
            yield text, first, last
        at = end
        while at < len(whole) and whole[at] == " ":
            at += 1


def plain(text: str) -> str:
    """Markdown's emphasis and links taken out, blanks made one, a long text cut at a word."""
    text = _LINK.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = " ".join(text.split())
    if len(text) > MOST_CHARS:
        text = text[:MOST_CHARS].rpartition(" ")[0] + " …"
    return text
