"""Cut passages for quoting: the complete unit around the best lines, the paragraphs of a document or a definition
with its comment; and split a text into sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

MOST_QUOTED = 10
"""Maximum lines of one quote: three of them and their places are what is read of an answer."""
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

_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)")
_MARKS = re.compile(r"^[\s#/*\"'>|-]+|[\s*/\"'|]+$", re.MULTILINE)


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
    # the beginning of what a heading or a colon announces, where the whole is too long
    if high + 1 < len(blocks) and end - start < most - 2 and _leads_on(lines, blocks[high], blocks[high + 1]):
        end = min(blocks[high + 1][1], start + most - 1)
    if end - start >= most:
        start = max(start, min(first - 2, end - most + 1))
        end = min(end, start + most - 1)
    return start, end


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


def sentences_in(text: str) -> Iterator[tuple[str, int]]:
    """The sentences of a text without marks of comments and lists, each with the place of its first line, from 0."""
    at = 0
    for end in (*(found.end() for found in _END.finditer(text)), len(text)):
        part = text[at:end]
        said = " ".join(_MARKS.sub(" ", part).split())
        if len(said) > 2 and any(char.isalpha() for char in said):
            yield said, text.count("\n", 0, at + len(part) - len(part.lstrip()))
        at = end
