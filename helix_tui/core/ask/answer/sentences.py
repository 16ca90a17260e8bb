"""Extract the sentences of a span with their lines, and cut passages for quoting.

A quote is the complete unit around its best lines: the paragraphs of a document, or a definition with its comment.
Sentences come from prose and, in code, from comments and docstrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.question import Slot, covers
from helix_tui.core.ground.text import clean_block

MOST_QUOTED = 34
"""Maximum lines of one quote: about one screen."""
LEAST_LINES = 6
MOST_LEAD = 24
"""Maximum lines of comments that are quoted with the definition below them."""
NEAR_HEAD = 8
"""Maximum distance in lines from the head of a long definition for the head to be quoted too."""

_FENCE_LINE = re.compile(r"^\s*(?:```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+|^\s*\|")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s|^={2,}\s|^\.S[HS]\b")
_LEAD = re.compile(r"^\s*(?:#(?!!|\s*include|\s*define)|//|/\*|\*|--|;|@|\"\"\"|'''|\[\w)")

Lines = Sequence[str]


def cut_document(lines: Lines, first: int, last: int, most: int = MOST_QUOTED) -> tuple[int, int]:
    """The first and last line of the blocks of a document around some lines, all from 0 and inclusive."""
    blocks = _blocks(lines)
    touched = [at for at, (start, end) in enumerate(blocks) if start <= last and end >= first]
    if not touched:
        return first, last
    low, high = touched[0], touched[-1]
    while high + 1 < len(blocks) and _leads_on(lines, blocks[high], blocks[high + 1]):
        if blocks[high + 1][1] - blocks[low][0] >= most:
            break
        high += 1
    if low > 0 and _leads_on(lines, blocks[low - 1], blocks[low]) and blocks[high][1] - blocks[low - 1][0] < most:
        low -= 1
    # too long for a quote: drop blocks at the end farther from the best lines
    while blocks[high][1] - blocks[low][0] >= most and high > low:
        if first - blocks[low][0] > blocks[high][1] - last:
            low += 1
        else:
            high -= 1
    start, end = blocks[low][0], blocks[high][1]
    if end - start >= most:
        start = max(start, min(first - 2, end - most + 1))
        end = min(end, start + most - 1)
    return start, end


def section_around(lines: Lines, first: int, last: int) -> tuple[int, int]:
    """The first and last line of a document's section around some lines, with its heading, all from 0 and inclusive."""
    headings = [start for start, end in _blocks(lines) if start == end and _HEADING.match(lines[start])]
    start = max((at for at in headings if at <= first), default=0)
    end = min((at for at in headings if at > last), default=len(lines)) - 1
    return _filled(lines, start, end)


def _leads_on(lines: Lines, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether a block belongs with the next one: a heading, an end in a colon, or a list item before another or before
    indented text.
    """
    last, following = lines[one[1]].rstrip(), lines[other[0]]
    if _HEADING.match(following):
        return False
    if _HEADING.match(lines[one[0]]) and one[0] == one[1]:
        return True
    if last.endswith(":") or last.endswith("::"):
        return True
    return bool(_ITEM.match(lines[one[0]]) and (_ITEM.match(following) or following.startswith("  ")))


def _blocks(lines: Lines) -> list[tuple[int, int]]:
    """Runs of lines between blank ones; a fenced block is one, with its blank lines; a heading is one by itself."""
    found: list[tuple[int, int]] = []
    start, fenced = -1, False
    for at, line in enumerate(lines):
        if _FENCE_LINE.match(line):
            if fenced:
                found.append((start, at))
                start, fenced = -1, False
                continue
            if start >= 0:
                found.append((start, at - 1))
            start, fenced = at, True
        elif fenced:
            continue
        elif not line.strip():
            if start >= 0:
                found.append((start, at - 1))
            start = -1
        elif _HEADING.match(line):
            if start >= 0:
                found.append((start, at - 1))
            found.append((at, at))
            start = -1
        elif start < 0:
            start = at
    if start >= 0:
        found.append((start, len(lines) - 1))
    return found


def cut_code(
    lines: Lines, first: int, last: int, around: Sequence[tuple[int, int]] = (), most: int = MOST_QUOTED
) -> tuple[int, int]:
    """The first and last line of the largest definition around some lines that is short enough, else of their
    paragraph; all from 0 and inclusive.

    ``around`` are the definitions around the lines, the shortest first.
    """
    whole = [(start, end) for start, end in around if end - start < most]
    if whole:
        return _filled(lines, with_lead(lines, whole[-1][0]), whole[-1][1])
    floor, roof = around[0] if around else (0, len(lines) - 1)
    start, end = max(floor, first), min(roof, last)
    while start > floor and lines[start - 1].strip() and end - start < most - 1:
        start -= 1
    while end < roof and end - start < most - 1 and lines[end + 1].strip():
        end += 1
    # near the head of the definition, quote its first line too, which names it
    if around and start - floor <= NEAR_HEAD and end - floor < most:
        start = with_lead(lines, floor)
    while end - start + 1 < LEAST_LINES and end < roof:
        end += 1
    return _filled(lines, start, min(end, start + most - 1))


def with_lead(lines: Lines, start: int) -> int:
    """The first line of the comments and decorators directly above a line; a block comment is taken whole."""
    first = start
    while first > 0 and start - first < MOST_LEAD:
        above = lines[first - 1]
        if above.rstrip().endswith("*/") and "/*" not in above:
            opening = next((at for at in range(first - 2, max(-1, first - MOST_LEAD), -1) if "/*" in lines[at]), None)
            if opening is None:
                break
            first = opening
        elif _LEAD.match(above):
            first -= 1
        else:
            break
    return first


def _filled(lines: Lines, start: int, end: int) -> tuple[int, int]:
    """Strip blank lines from both ends of a range."""
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end].strip():
        end -= 1
    return start, end


MOST_CHARS = 420
"""Maximum characters of one sentence; a longer one is cut at a word."""
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
"""A line of reStructuredText that introduces something other than prose."""
_TROFF = re.compile(r"\\f[BIPR]|\\&")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASIS = re.compile(r"(\*\*|__|(?<!\w)[*_](?=\S))(.+?)(?:\1|(?<=\S)[*_](?!\w))")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|cf|vs|approx|resp|No|Fig|Sec)|\b[A-Z])\.$")

_NO_PROSE = (".json", ".jsonl", ".yaml", ".yml", ".toml", ".lock", ".csv", ".tsv", ".xml", ".svg", ".ini")
"""Files without sentences, even if they are documents."""

_COMMENT = re.compile(r"^\s*(?:#(?!!)|//[/!]?|--|;+|\*(?!/)|/\*+|%|\"\"\"|''')\s?")
_COMMENT_END = re.compile(r"\s*(?:\*+/|\"\"\"|''')\s*$")
_RULE = re.compile(r"[-=~*_#^+.]{3,}|@\w.*|:\w+(?: [^:]+)?:(?: .*)?")
"""Comment lines without a sentence: rules, and tags such as ``@param x`` and ``:returns:``."""
_RIGHTS = re.compile(r"\bcopyright\b|\(c\)\s*\d{4}|\blicen[cs]ed?\b|\bSPDX\b|all rights reserved", re.IGNORECASE)
_HEAD = 40
"""First lines of a file, in which a comment may be a copyright notice."""
_DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|declare|override|inline"
    r"|unsafe|extern|const|let|var)\s+)*"
    r"(?:(?:def|func|function\*?|fn|class|struct|interface|type|enum|trait|impl|module|namespace)\s+"
    r"(?:\([^)]*\)\s*)?(?P<named>\w+)"
    r"|(?!(?:if|for|while|switch|catch|return|with|else|elif)\b)(?P<called>[A-Za-z_$][\w$]*)\s*\([^;]*\{\s*$)"
)
_IMPORT = re.compile(
    r"^\s*(?:import\s+(?:static\s+)?[\w.*]+(?:\s+as\s+\w+)?(?:\s*,.*)?;?\s*$|import\b.*[\"'{(]|from\s+[\w.]+\s+import\b"
    r"|(?:pub\s+)?use\s+[\w:]+(?:::.*|;)?$|#\s*include\b|export\s+(?:default\b|\{|\*)|module\.exports\b)|\brequire\("
)
"""An import or export statement, as opposed to prose that begins with the same word."""
_DOCSTRING = re.compile(r"^\s*[rRuUbB]?(\"\"\"|''')")


Block = list[tuple[int, str]]
"""Consecutive lines with their numbers."""


class Sentence(Struct, frozen=True):
    """One sentence and its lines in the file."""

    text: str
    start: int
    end: int
    place: int
    """Its number in the span, from 0."""
    about: str = ""
    """In code, the name of the definition that its comment or docstring belongs to; else empty."""


def sentences_of(span: Span) -> list[Sentence]:
    """The sentences of a span, in order."""
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
    """Whether a comment at the top of a file is a copyright notice, which is never relevant."""
    return start + block[0][0] <= _HEAD and any(_RIGHTS.search(line) for _, line in block)


def _introduced(lines: Sequence[str], block: Block) -> str:
    """The name of the definition directly below a comment or above a docstring; empty if there is none."""
    below = lines[block[-1][0] + 1 :]
    while below and (is_comment(below[0]) or below[0].lstrip().startswith(("@", "*/", "#["))):
        # decorators, attributes and further comments may come between
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
    # a passage may begin inside a literal block: its first line is then indented
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
    """Yield blocks of comments and docstrings in a piece of code."""
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
            # a docstring may have several paragraphs: a blank line or a tag ends a block, not the docstring
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
    """Whether a line of code is only a comment, or opens a docstring."""
    return _COMMENT.match(line) is not None or _DOCSTRING.match(line) is not None


def is_import(line: str) -> bool:
    """Whether a line imports or exports a name."""
    return _IMPORT.search(line) is not None


def imports_in(lines: Lines) -> Iterator[int]:
    """Yield the lines that only import or export names, from 0; a list of names in brackets to its end."""
    closing = ""
    for at, line in enumerate(lines):
        # a module's default export may be all of its code
        if not closing and is_import(line) and not line.lstrip().startswith(("export default", "module.exports")):
            closing = next((end for begin, end in ("()", "{}") if begin in line and end not in line), "")
            yield at
        elif closing:
            closing = "" if closing in line else closing
            yield at


def is_definition(line: str, names: Sequence[Slot]) -> bool:
    """Whether a line defines one of some names."""
    found = _DEFINES.match(line)
    return found is not None and any(covers(slot, found["named"] or found["called"]) for slot in names)


def definition_line(span: Span, name: str) -> int:
    """The number of lines of a span above the definition of a name; 0 if it is not defined there."""
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
        # where each line begins in the joined text: a sentence may continue over line ends
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
    """Remove Markdown emphasis, link targets and troff fonts, collapse blanks, and cut a long text at a word."""
    text = _LINK.sub(r"\1", _TROFF.sub("", text))
    text = _EMPHASIS.sub(r"\2", text)
    text = " ".join(text.split())
    if len(text) > MOST_CHARS:
        text = text[:MOST_CHARS].rpartition(" ")[0] + " …"
    return text


def around_quote(quote: tuple[int, int], found: tuple[int, int], most: int) -> tuple[int, int]:
    """The lines of ``found`` that are next to a quote, ``most`` with its own: as many before as after if possible."""
    before, after = quote[0] - found[0], found[1] - quote[1]
    room = max(0, most - (quote[1] - quote[0] + 1))
    first = min(before, max(room // 2, room - after))
    return quote[0] - first, quote[1] + min(after, room - first)


_ROW_OR_ITEM = re.compile(r"\s*(?:\||[-+•]\s|\*\s+\S.*[*`_]|\d+[.)]\s)")
"""A table row or list item. A star starts an item only if the line has further markup: comments have stars too."""


def items_in(lines: Sequence[str]) -> list[bool]:
    """Whether each line begins a row or an item; asked once for a span, whose windows overlap."""
    return [_ROW_OR_ITEM.match(line) is not None for line in lines]
