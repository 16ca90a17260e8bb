"""Sentences of a span with the lines that they stand on.

Of a section its prose, of code its comment or docstring.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.question import Slot, covers
from helix_tui.core.ground.text import clean_block

MOST_CHARS = 420
"""Characters of one sentence; a longer one is cut at a word."""
MOST_LINES = 200

_FENCE = re.compile(r"^\s*(```|~~~)")
_SKIP = re.compile(r"^\s*(?:#{1,6}\s|\||[-=*_]{3,}\s*$|<!--|\[?!\[|\[[^\]]+\]:|\.\. |:\w+:|</?\w|\.(?:[A-Z]{2}|sp\b))")
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")
_QUOTE = re.compile(r"^\s*>\s?")
_END = re.compile(r"(?<=[.!?])[\"'”’)\]*_]*\s+(?=[\"'“‘(\[`*_]*[A-Z0-9`])")
_PROSE_DIRECTIVE = re.compile(
    r"^\s*\.\. (?:note|warning|tip|hint|important|caution|attention|danger|error|seealso|admonition"
    r"|deprecated|version(?:added|changed))::"
)
_LITERAL = re.compile(r"^\s*\.\. [\w:-]+::|::\s*$")
"""A line of reStructuredText below which stands something else than prose."""
_TROFF = re.compile(r"\\f[BIPR]|\\&")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASIS = re.compile(r"(\*\*|__|(?<!\w)[*_](?=\S))(.+?)(?:\1|(?<=\S)[*_](?!\w))")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|resp|No|Fig|Sec)|\b[A-Z])\.$")

_NO_PROSE = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".lock", ".csv", ".tsv", ".xml", ".svg", ".ini")
"""Files without sentences, even among documents."""

_COMMENT = re.compile(r"^\s*(?:#(?!!)|//[/!]?|--|;+|\*(?!/)|/\*+|%|\"\"\"|''')\s?")
_COMMENT_END = re.compile(r"\s*(?:\*+/|\"\"\"|''')\s*$")
_RULE = re.compile(r"[-=~*_#^+.]{3,}|@\w.*|:\w+(?: [^:]+)?:(?: .*)?")
"""Lines of a comment without a sentence: drawn ones, and tags as ``@param x`` and ``:returns:``."""
_RIGHTS = re.compile(r"\bcopyright\b|\(c\)\s*\d{4}|\blicen[cs]ed?\b|\bSPDX\b|all rights reserved", re.IGNORECASE)
_HEAD = 40
"""Lines of a file among which a comment may say who owns it."""
_DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|declare|override|inline"
    r"|unsafe|extern|const|let|var)\s+)*"
    r"(?:(?:def|func|function\*?|fn|class|struct|interface|type|enum|trait|impl|module|namespace)\s+"
    r"(?:\([^)]*\)\s*)?(?P<named>\w+)"
    r"|(?!(?:if|for|while|switch|catch|return|with|else|elif)\b)(?P<called>[A-Za-z_$][\w$]*)\s*\([^;]*\{\s*$)"
)
_IMPORT = re.compile(r"^\s*(?:import|from|use|#\s*include|export\s+(?:default|\{)|module\.exports)\b|\brequire\(")
_DOCSTRING = re.compile(r"^\s*[rRuUbB]?(\"\"\"|''')")


Block = list[tuple[int, str]]
"""Numbered lines that read on."""


class Sentence(Struct, frozen=True):
    """One sentence and where it stands in its file."""

    text: str
    start: int
    end: int
    place: int
    """Its number in the span, from 0."""
    about: str = ""
    """In code, the name of the definition that its comment or docstring belongs to; empty inside of one."""


def sentences_of(span: Span) -> list[Sentence]:
    """What a span says in words, in its order."""
    if span.file.endswith(_NO_PROSE):
        return []
    lines = [clean_block(line).replace("\n", " ") for line in span.text.split("\n")[:MOST_LINES]]
    prose = _is_prose(span)
    blocks = _prose_blocks(lines) if prose else _comment_blocks(lines)
    found: list[Sentence] = []
    for block in blocks:
        if not prose and block and _is_of_rights(block, span.start):
            continue
        about = "" if prose or not block else _introduced(lines, block)
        for text, first, last in _split(block):
            found.append(Sentence(text, span.start + first, span.start + last, len(found), about))
    return found


def _is_of_rights(block: Block, start: int) -> bool:
    """Whether a comment at the top of a file says who owns it, which is never what is asked about."""
    return start + block[0][0] <= _HEAD and any(_RIGHTS.search(line) for _, line in block)


def _introduced(lines: Sequence[str], block: Block) -> str:
    """The definition that a comment stands right above, or a docstring right below."""
    below = lines[block[-1][0] + 1 :]
    while below and (is_comment(below[0]) or below[0].lstrip().startswith(("@", "*/", "#["))):
        below = below[1:]
    above = [line for line in lines[max(0, block[0][0] - 4) : block[0][0]] if line.strip()]
    quoted = _DOCSTRING.match(lines[block[0][0]]) or (above and _DOCSTRING.fullmatch(above[-1].strip()))
    near = reversed(above) if quoted else below[:1]
    found = next(filter(None, map(_DEFINES.match, near)), None)
    return "" if found is None else found["named"] or found["called"]


def _is_prose(span: Span) -> bool:
    return span.kind == "section" or span.role == "doc"


def _prose_blocks(lines: list[str]) -> Iterator[Block]:
    block: Block = []
    fenced = False
    literal = next((line for line in lines if line.strip()), "").startswith(("  ", "\t"))
    for number, line in enumerate(lines):
        if line.strip() and not (literal and line[0] in " \t"):
            literal = _LITERAL.search(line) is not None and not _PROSE_DIRECTIVE.match(line)
        elif literal and line.strip():
            yield block
            block = []
            continue
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


def is_comment(line: str) -> bool:
    """Whether a line of code is nothing but a comment, or opens a docstring."""
    return _COMMENT.match(line) is not None or _DOCSTRING.match(line) is not None


def is_import(line: str) -> bool:
    """Whether a line only brings a name from one place to another."""
    return _IMPORT.search(line) is not None


def is_definition(line: str, names: Sequence[Slot]) -> bool:
    """Whether a line defines one of some names."""
    found = _DEFINES.match(line)
    return found is not None and any(covers(slot, found["named"] or found["called"]) for slot in names)


def definition_line(span: Span, name: str) -> int:
    """How many lines of a span stand above the definition of a name; 0 where it is not defined there."""
    for at, line in enumerate(span.text.split("\n")[:MOST_LINES]):
        found = _DEFINES.match(line)
        if found is not None and name in (found["named"], found["called"]):
            return at
    return 0


def _split(block: Block) -> Iterator[tuple[str, int, int]]:
    """The sentences of a block with their first and last line."""
    if not block:
        return
    whole, marks = "", []
    for number, line in block:
        marks.append((len(whole), number))
        whole += line + " "
    at = 0
    ends = [found.start() for found in _END.finditer(whole) if not _ABBREVIATED.search(whole[: found.start()])]
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
    text = _LINK.sub(r"\1", _TROFF.sub("", text))
    text = _EMPHASIS.sub(r"\2", text)
    text = " ".join(text.split())
    if len(text) > MOST_CHARS:
        text = text[:MOST_CHARS].rpartition(" ")[0] + " …"
    return text
