"""Documents by heading: markdown, reStructuredText and AsciiDoc read line by line, code fences skipped."""

from __future__ import annotations

import re

from helix_tui.core.ask.parse.pieces import Chunk, Title

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_RULE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*$")
_ADOC = re.compile(r"(={1,6})[ \t]+(\S.*?)[ \t]*$")
_MARKS = re.compile(r"[*_`]+|\[([^\]]*)\]\([^)]*\)|<[^>]*>|\{#[^}]*\}")
_NOT_A_TITLE = re.compile(r"\s|[-*+>|]|\d+[.)]\s")
MAX_SECTION = 60


def headings(lines: list[str], language: str) -> list[Title]:
    """The headings of a document with the last line of each one's section."""
    found = {"markdown": _markdown, "restructuredtext": _rst, "asciidoc": _asciidoc}[language](lines)
    return _with_ends(found, len(lines))


def trails(titles: list[Title]) -> list[tuple[str, ...]]:
    """For each heading the headings above it, the outermost first."""
    open_ones: list[Title] = []
    result = []
    for title in titles:
        while open_ones and open_ones[-1].level >= title.level:
            open_ones.pop()
        result.append(tuple(above.text for above in open_ones))
        open_ones.append(title)
    return result


def sections(lines: list[str], titles: list[Title]) -> list[Chunk]:
    """A document cut at its headings; a long section is cut again at blank lines."""
    starts = [title.start for title in titles]
    headers = [" > ".join((*trail, title.text)) for trail, title in zip(trails(titles), titles, strict=True)]
    if not starts or starts[0] > 1:
        starts.insert(0, 1)
        headers.insert(0, "")
    chunks = []
    for at, (start, header) in enumerate(zip(starts, headers, strict=True)):
        end = starts[at + 1] - 1 if at + 1 < len(starts) else len(lines)
        for first, last in cut(lines, start, end, MAX_SECTION):
            chunks.append(Chunk(first, last, "section", header))
    return chunks


def cut(lines: list[str], start: int, end: int, most: int) -> list[tuple[int, int]]:
    """A run of lines cut into runs of at most ``most``, at a blank line where one is near."""
    runs = []
    while end - start + 1 > most:
        stop = start + most - 1
        for line in range(stop, start + most // 2, -1):
            if not lines[line - 1].strip():
                stop = line
                break
        runs.append((start, stop))
        start = stop + 1
    if start <= end:
        runs.append((start, end))
    return runs


def _with_ends(found: list[tuple[int, str, int]], last: int) -> list[Title]:
    """(level, text, line) of each heading, completed with where its section ends."""
    titles = []
    for at, (level, text, line) in enumerate(found):
        end = next((later[2] - 1 for later in found[at + 1 :] if later[0] <= level), last)
        titles.append(Title(level, text, line, end))
    return titles


def _markdown(lines: list[str]) -> list[tuple[int, str, int]]:
    found: list[tuple[int, str, int]] = []
    fence = ""
    start = _after_front_matter(lines)
    for number, line in enumerate(lines[start:], start + 1):
        mark = _FENCE.match(line)
        if mark:
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        atx = _ATX.match(line)
        if atx and _plain(atx[2]):
            found.append((len(atx[1]), _plain(atx[2]), number))
            continue
        above = lines[number - 2] if number >= 2 + start else ""
        under = _SETEXT.match(line)
        if under and above.strip() and not _NOT_A_TITLE.match(above) and not _ATX.match(above):
            found.append((1 if under[1][0] == "=" else 2, _plain(above), number - 1))
    return found


def _after_front_matter(lines: list[str]) -> int:
    """How many lines a YAML head takes."""
    if lines and lines[0].strip() == "---":
        for at, line in enumerate(lines[1:60], 1):
            if line.strip() == "---":
                return at + 1
    return 0


def _rst(lines: list[str]) -> list[tuple[int, str, int]]:
    """Underlined titles; levels in the order in which the underlines first appear."""
    found: list[tuple[int, str, int]] = []
    styles: list[tuple[str, bool]] = []
    for at in range(1, len(lines)):
        rule, text = lines[at], lines[at - 1]
        if not _RULE.match(rule) or not text.strip() or _RULE.match(text) or text[:1].isspace():
            continue
        if len(rule.strip()) + 1 < len(text.strip()):
            continue
        above = at >= 2 and lines[at - 2].strip() == rule.strip()
        style = (rule[0], above)
        if style not in styles:
            styles.append(style)
        found.append((styles.index(style) + 1, _plain(text), at - 1 if above else at))
    return found


def _asciidoc(lines: list[str]) -> list[tuple[int, str, int]]:
    found: list[tuple[int, str, int]] = []
    fence = ""
    for number, line in enumerate(lines, 1):
        bare = line.rstrip()
        if bare in ("----", "....", "++++", "////"):
            fence = "" if fence == bare else fence or bare
            continue
        mark = None if fence else _ADOC.match(line)
        if mark:
            found.append((len(mark[1]), _plain(mark[2]), number))
    return found


def _plain(text: str) -> str:
    """A heading without its marks."""
    return " ".join(_MARKS.sub(lambda match: match[1] or "", text).split())[:200]
