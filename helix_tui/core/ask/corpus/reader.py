"""Parse a file's bytes for the index: definitions, headings, chunks.

Code is split by definition (found by tree-sitter, else by lines that look like one), documents by heading. The results
are plain values that can be sent between processes.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

from helix_tui.core.ask.corpus.languages import DOCUMENTS, grammar
from helix_tui.core.ask.corpus.listing import decode, split_lines
from helix_tui.core.ask.records import Kind

if TYPE_CHECKING:
    from tree_sitter import Node

_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_SETEXT = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_RULE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*$")
_ADOC = re.compile(r"(={1,6})[ \t]+(\S.*?)[ \t]*$")
_HEADING_MARKS = re.compile(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])|\[([^\]]*)\]\([^)]*\)|<[^>]*>|\{#[^}]*\}")
_NOT_A_TITLE = re.compile(r"\s|[-*+>|]|\d+[.)]\s")
MAX_SECTION = 60
MAX_CHUNK = 80
MERGE_UP_TO = 40
MAX_PARSE = 6 << 20
MAX_LINE = 20_000
_CONTAINERS = frozenset({"class", "module", "type", "impl"})
_LEADS = ("#", "//", "/*", "*", "@", "--", ";;", '"""', "%%")

_LINE_DEFINITION = re.compile(
    r"^[ \t]{0,12}(?:(?:export|default|public|private|protected|internal|static|final|abstract|async"
    r"|pub(?:\([^)]*\))?|open|override|inline|local|sealed|data|virtual|unsafe|extern|readonly|declare|def\s+self\.)\s+)*"
    r"(?P<word>function|func|fun|fn|def|defp|defmodule|defmacro|sub|proc|class|struct|trait|interface|enum|type"
    r"|module|namespace|object|protocol|extension|record|contract|message|service|rpc|impl|mod|macro_rules!|resource|create\s+table"
    r"|create\s+function|create\s+view)\s+(?P<name>[\w.:$!?\"-]+)",
    re.IGNORECASE,
)

_SHELL_FUNCTION = re.compile(r"^(?P<name>[\w.:-]+)\s*\(\)\s*\{")
MAX_TERM_LINE = 4_000
_PLAIN = frozenset({"text", "data"})


class Chunk(Struct, frozen=True, array_like=True):
    """A range of lines, counted from 1, both ends included; the chunks of a file cover it without overlap."""

    start: int
    end: int
    kind: Kind
    header: str


class Defined(Struct, frozen=True, array_like=True):
    """A definition: its name, kind, lines, and its name with those of the enclosing definitions."""

    name: str
    kind: str
    start: int
    end: int
    header: str


class Title(Struct, frozen=True, array_like=True):
    """A heading, its level from 1, and the last line of its section."""

    level: int
    text: str
    start: int
    end: int


class Pieces(Struct, frozen=True, array_like=True):
    """All parts of one file."""

    language: str
    lines: int
    size: int
    chunks: list[Chunk]
    definitions: list[Defined]
    titles: list[Title]


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
    """A document split at its headings; a long section is split again at blank lines."""
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
    """A range of lines split into ranges of at most ``most``, at a blank line if one is near."""
    runs = []
    while end - start + 1 > most:
        stop = start + most - 1
        # only in the second half, so that no part is much shorter than the others
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
    """The headings for (level, text, line) tuples, with the ends of their sections."""
    ends, unended = [last] * len(found), list[int]()
    for at, (level, _, line) in enumerate(found):
        while unended and found[unended[-1]][0] >= level:
            ends[unended.pop()] = line - 1
        unended.append(at)
    return [Title(level, text, line, end) for (level, text, line), end in zip(found, ends, strict=True)]


def _markdown(lines: list[str]) -> list[tuple[int, str, int]]:
    found: list[tuple[int, str, int]] = []
    fence = ""
    start = _after_front_matter(lines)
    for number, line in enumerate(lines[start:], start + 1):
        mark = _FENCE.match(line)
        if mark:
            if not fence:
                fence = mark[1]
            # CommonMark: a fence ends only with the same character, at least as many times
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        atx = _ATX.match(line)
        if atx and _plain_title(atx[2]):
            found.append((len(atx[1]), _plain_title(atx[2]), number))
            continue
        above = lines[number - 2] if number >= 2 + start else ""
        under = _SETEXT.match(line)
        if under and above.strip() and not _NOT_A_TITLE.match(above) and not _ATX.match(above):
            found.append((1 if under[1][0] == "=" else 2, _plain_title(above), number - 1))
    return found


def _after_front_matter(lines: list[str]) -> int:
    """The number of lines of YAML front matter."""
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
        # docutils: an underline alone, and the same character above and below, are two levels
        style = (rule[0], above)
        if style not in styles:
            styles.append(style)
        found.append((styles.index(style) + 1, _plain_title(text), at - 1 if above else at))
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
            found.append((len(mark[1]), _plain_title(mark[2]), number))
    return found


def _plain_title(text: str) -> str:
    """A heading without its marks."""
    return " ".join(_HEADING_MARKS.sub(lambda match: match[1] or "", text).split())[:200]


def definitions(text: str, lines: list[str], language: str) -> list[Defined]:
    """The definitions of a file in order of line, each with the name of what encloses it."""
    found = _by_grammar(text, lines, language) if _is_parseable(text, lines) else None
    if found is None:
        found = _by_line(lines)
    return _qualified(found)


def chunks(lines: list[str], found: list[Defined]) -> list[Chunk]:
    """A file split into its definitions: none longer than `MAX_CHUNK`, small neighbours merged."""
    if not lines:
        return []
    runs: list[Chunk] = []
    _partition(lines, 1, len(lines), _tree(lines, found), "", "module", runs)
    return _merged(runs)


def _is_parseable(text: str, lines: list[str]) -> bool:
    return len(text) <= MAX_PARSE and all(len(line) <= MAX_LINE for line in lines)


def _by_grammar(text: str, lines: list[str], language: str) -> list[Defined] | None:
    loaded = grammar(language)
    if loaded is None:
        return None
    # imported here: a question over an up-to-date index parses nothing
    from tree_sitter import Parser, QueryCursor

    tree = Parser(loaded[0]).parse(text.encode("utf-8", "replace"))
    found: dict[tuple[int, str], Defined] = {}
    for _, captures in QueryCursor(loaded[1]).matches(tree.root_node):
        node, names = captures["def"][0], captures["name"]
        kind = next(name for name in captures if name not in ("def", "name"))
        start, end = _rows(node)
        for name_node in names:
            name = _node_text(_own_name(node) if name_node.text == b"exports" else name_node)
            key = (start, name)
            # `_` takes what nobody wants, or is checked by the compiler alone
            if name.strip("_") and (key not in found or found[key].kind == "constant"):
                found[key] = Defined(name, kind, start, end, _receiver(node, language))
    return sorted(found.values(), key=lambda one: (one.start, -one.end, one.name))


def _own_name(node: Node) -> Node:
    """The name of an exported class or function, if it has one of its own; else ``exports``."""
    right = node.child_by_field_name("right") or node
    left = node.child_by_field_name("left") or node
    return right.child_by_field_name("name") or left.child_by_field_name("property") or node


def _rows(node: Node) -> tuple[int, int]:
    """First and last line of a node, its decorators or export keyword included."""
    parent = node.parent
    if parent is not None and parent.type in ("decorated_definition", "export_statement", "template_declaration"):
        node = parent
    # a node that ends at column 0 ends with the line before
    end = node.end_point[0] + (1 if node.end_point[1] else 0)
    return node.start_point[0] + 1, max(end, node.start_point[0] + 1)


def _node_text(node: Node) -> str:
    text = node.text or b""
    return text[:200].decode("utf-8", "replace").partition("<")[0].strip().strip("'\"")


def _receiver(node: Node, language: str) -> str:
    """The type of a Go method, which encloses it logically but not in the text."""
    if language != "go" or node.type != "method_declaration":
        return ""
    receiver = node.child_by_field_name("receiver")
    words = re.findall(rb"\w+", (receiver.text or b"") if receiver is not None else b"")
    named = [word for word in words if not word.isdigit()]
    generic = receiver is not None and b"[" in (receiver.text or b"")
    return (named[1] if generic and len(named) > 1 else named[-1]).decode("utf-8", "replace") if named else ""


def _by_line(lines: list[str]) -> list[Defined]:
    """Lines that look like definitions; each extends to the next one that is not indented deeper."""
    starts: list[tuple[int, int, str, str]] = []
    for number, line in enumerate(lines, 1):
        if len(line) > 500:
            continue
        match = _LINE_DEFINITION.match(line) or _SHELL_FUNCTION.match(line)
        if match:
            word = (match.groupdict().get("word") or "function").lower()
            starts.append((number, len(line) - len(line.lstrip()), match["name"].strip('":'), _kind(word)))
    found = []
    for at, (number, depth, name, kind) in enumerate(starts):
        end = next((later - 1 for later, other, _, _ in starts[at + 1 :] if other <= depth), len(lines))
        if name:
            found.append(Defined(name, kind, number, end, ""))
    return found


def _kind(word: str) -> str:
    if word in ("class", "struct", "object", "record", "contract"):
        return "class"
    if word in ("module", "namespace", "defmodule", "mod", "service"):
        return "module"
    if word in (
        "trait",
        "interface",
        "enum",
        "type",
        "protocol",
        "message",
        "create table",
        "create view",
        "extension",
    ):
        return "type"
    return "impl" if word == "impl" else "function"


def _qualified(found: list[Defined]) -> list[Defined]:
    """Each definition with its header: the names of the enclosing definitions, then its own."""
    open_ones: list[tuple[Defined, str]] = []
    result = []
    for one in found:
        # definitions are in order of line, so one that ended before this one encloses no later one either; constants
        # of one statement are side by side
        while open_ones and (open_ones[-1][0].end < one.end or _beside(open_ones[-1][0], one)):
            open_ones.pop()
        above, prefix = open_ones[-1] if open_ones else (None, one.header)
        header = f"{prefix}.{one.name}" if prefix else one.name
        kind = one.kind
        if kind == "function" and above is not None and above.kind != "module" and above.kind in _CONTAINERS:
            kind = "method"
        if kind != "field":
            open_ones.append((one, one.name if kind == "impl" else header))
        result.append(Defined(one.name, kind, one.start, one.end, one.name if kind == "impl" else header))
    return result


def _beside(one: Defined, two: Defined) -> bool:
    return one.kind == two.kind == "constant" and (one.start, one.end) == (two.start, two.end)


class _Block:
    """A definition with those inside it, as lines of the file, including the comments above it."""

    def __init__(self, start: int, end: int, header: str, kind: Kind) -> None:
        self.start = start
        self.end = end
        self.header = header
        self.kind = kind
        self.inner: list[_Block] = []


def _tree(lines: list[str], found: list[Defined]) -> list[_Block]:
    """Definitions as a forest of blocks that do not overlap and are inside their parents."""
    top: list[_Block] = []
    stack: list[_Block] = []
    for one in found:
        # a block for each field or short constant would split a file into single lines
        if one.kind == "field" or (one.kind == "constant" and one.end - one.start < 3):
            continue
        while stack and stack[-1].end < one.start:
            stack.pop()
        # definitions may overlap in broken code; chunks may not
        if stack and one.end > stack[-1].end:
            continue
        siblings = stack[-1].inner if stack else top
        floor = max(siblings[-1].end + 1 if siblings else 1, stack[-1].start + 1 if stack else 1)
        start = _lead(lines, one.start, floor)
        if start > one.end:
            continue
        block = _Block(start, one.end, one.header, "class" if one.kind in _CONTAINERS else "function")
        siblings.append(block)
        stack.append(block)
    return top


def _lead(lines: list[str], start: int, floor: int) -> int:
    """The first line of the comments and decorators right above a definition."""
    first = max(start, floor)
    while first > floor and lines[first - 2].lstrip().startswith(_LEADS):
        first -= 1
    return first


def _partition(
    lines: list[str], start: int, end: int, blocks: list[_Block], header: str, kind: Kind, out: list[Chunk]
) -> None:
    """Split lines at the blocks in them; a block that is short enough stays whole."""
    at = start
    for block in blocks:
        _plain(lines, at, block.start - 1, header, kind, out)
        # one that is too long and has no blocks inside is split at blank lines
        if block.end - block.start < MAX_CHUNK or not block.inner:
            _plain(lines, block.start, block.end, block.header, block.kind, out)
        else:
            _partition(lines, block.start, block.end, block.inner, block.header, block.kind, out)
        at = block.end + 1
    _plain(lines, at, end, header, kind, out)


def _plain(lines: list[str], start: int, end: int, header: str, kind: Kind, out: list[Chunk]) -> None:
    for first, last in cut(lines, start, end, MAX_CHUNK):
        out.append(Chunk(first, last, kind, header))


def _merged(runs: list[Chunk]) -> list[Chunk]:
    """Merge small neighbours that have the same enclosing definition, or of which one is a gap."""
    result: list[Chunk] = []
    for run in runs:
        last = result[-1] if result else None
        if last is not None and run.end - last.start < MERGE_UP_TO and _belong(last, run):
            result[-1] = _joined(last, run)
        else:
            result.append(run)
    return result


def _belong(one: Chunk, two: Chunk) -> bool:
    return (
        one.header == two.header or two.end - two.start < 3 or one.end - one.start < 3 or _parent(one) == _parent(two)
    )


def _parent(chunk: Chunk) -> str:
    return chunk.header.rpartition(".")[0]


def _joined(one: Chunk, two: Chunk) -> Chunk:
    """Two ranges as one, named after the longer one that has a name."""
    named = max((one, two), key=lambda chunk: (bool(chunk.header), chunk.end - chunk.start))
    return Chunk(one.start, two.end, named.kind, named.header)


def enclosing(found: list[Defined], line: int) -> str:
    """The header of the innermost definition around a line; empty at the top level."""
    starts = [one.start for one in found]
    for one in reversed(found[: bisect_right(starts, line)]):
        if one.end >= line and one.kind not in ("field", "constant"):
            return one.header
    return ""


def read_pieces(data: bytes, language: str, *, with_grammar: bool = True) -> tuple[Pieces, list[str]]:
    """The pieces of a file and its lines."""
    text = decode(data)
    lines = split_lines(text)
    if language in DOCUMENTS:
        titles = headings(lines, language)
        made = sections(lines, titles) if lines else []
        return Pieces(language, len(lines), len(data), made, [], titles), lines
    # these have neither definitions nor headings
    if language in _PLAIN:
        made = [Chunk(*run, "lines", "") for run in cut(lines, 1, len(lines), MAX_CHUNK)]
        return Pieces(language, len(lines), len(data), made, [], []), lines
    found = definitions(text, lines, language if with_grammar else "lines")
    made = chunks(lines, found)
    return Pieces(language, len(lines), len(data), made, found, []), lines


def bodies(pieces: Pieces, lines: list[str]) -> list[str]:
    """The searchable text of each chunk."""
    if any(len(line) > MAX_TERM_LINE for line in lines):
        lines = [line[:MAX_TERM_LINE] for line in lines]
    return ["\n".join(lines[chunk.start - 1 : chunk.end]) for chunk in pieces.chunks]


def names(pieces: Pieces) -> str:
    """The names of a file's definitions and headings."""
    return "\n".join([definition.name for definition in pieces.definitions] + [title.text for title in pieces.titles])
