"""The content hash of a document, as ``ddx doc stamp`` writes it and ``ddx doc stale`` compares it.

It is the SHA-256 of the frontmatter, serialized again (keys sorted, the ``review`` block left out, quotes and flow
style kept, comments kept), an empty line, and the body with LF line ends. The serialization follows ddx's Go port of
libyaml: two spaces per level, lists under a key indented, no line limit. Anchors and folded text are written plainly,
so hashes of such documents differ from ddx's; an installed ddx is asked with ``ddx doc stale`` instead.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise

import yaml
from msgspec import Struct

_STEP = 2
_COMMENT = re.compile(r"(?:(?<=\s)|^)#.*$")
_BELOW = "\0"
"""Placeholder after comments below an entry, until everything is written."""
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\x1b": "\\e", "\x07": "\\a"}


def content_hash(block: bytes, node: yaml.Node | None, body: bytes) -> str:
    """The hash of a document.

    Args:
        block: its frontmatter, unchanged.
        node: the same as nodes; None for an empty one.
        body: what follows.
    """
    text = _plain(body.decode("utf-8", "surrogateescape"))
    if node is not None:
        source = _plain(block.decode("utf-8", "replace").strip())
        text = "\n".join(_Writer(_comments(source, node)).document(node)).rstrip("\n") + "\n\n" + text
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


class _Comments(Struct):
    """Comments by the line (from 0) they belong to."""

    head: dict[int, list[str]] = {}
    line: dict[int, str] = {}
    foot: dict[int, list[str]] = {}


def _comments(source: str, root: yaml.Node) -> _Comments:
    """The comments of a block: above a line, at its end, or below it.

    Comments belong below a line if they follow it directly and are followed by an empty line, the end, or a line
    further left. Those above an empty line at the very beginning belong to nothing; ddx drops them.
    """
    found = _Comments()
    if "#" not in source:
        return found
    taken = _scalar_spans(root)
    waiting: list[str] = []
    column, above = 0, -1  # of pending comments; the line they follow directly
    last, left = -1, 0  # the last non-empty line, and its indentation
    keys: dict[int, int] = {}  # column -> the last line that starts there
    for number, line in enumerate([*source.split("\n"), ""]):
        end = max((stop for _start, stop in taken.get(number, ())), default=0)
        match = _COMMENT.search(line, end)
        own = match is not None and not line[: match.start()].strip()
        # a comment on its own line is pending until a later line shows where it belongs
        if own and match is not None:
            if waiting and above >= 0 and match.start() < column:
                found.foot[above], waiting = waiting, []
                column, above = match.start(), keys.get(match.start(), -1)
            elif not waiting:
                column, above = match.start(), last if last == number - 1 else -1
            waiting.append(match.group().rstrip())
            continue
        if match is not None:
            found.line[number] = match.group().rstrip()
        empty = not line.strip() and number not in taken
        indent = len(line) - len(line.lstrip(" "))
        if waiting and above >= 0 and (empty or indent < column or column != indent < left):
            found.foot[above], waiting = waiting, []
        elif waiting and not empty:
            found.head[number], waiting = waiting, []
        elif waiting and last < 0:
            waiting = []
        if not empty:
            last, left = number, indent
            keys[indent] = number
    return found


def _scalar_spans(root: yaml.Node) -> dict[int, list[tuple[int, int]]]:
    """Line to the columns occupied by scalars."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for node in _scalars(root):
        start, end = node.start_mark, node.end_mark
        if start.line == end.line:
            spans.setdefault(start.line, []).append((start.column, end.column))
            continue
        for line in range(start.line, end.line):
            spans.setdefault(line, []).append((0, 1 << 30))
        if end.column:
            spans.setdefault(end.line, []).append((0, end.column))
    return spans


def _scalars(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    seen: set[int] = set()
    stack: list[yaml.Node] = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.ScalarNode):
            yield node
        elif isinstance(node, yaml.SequenceNode):
            stack += node.value
        else:
            stack += [each for pair in node.value for each in pair]


class _Writer:
    """Writes nodes as lines of YAML."""

    def __init__(self, comments: _Comments) -> None:
        self._head = comments.head
        self._line = comments.line
        self._foot = comments.foot

    def document(self, root: yaml.Node) -> list[str]:
        return _spaced(self._block(root, 0, top=True)) if _is_block(root) else [self._inline(root)]

    def _block(self, node: yaml.Node, indent: int, *, top: bool = False) -> list[str]:
        if isinstance(node, yaml.SequenceNode):
            return [line for each in node.value for line in self._item(each, indent)]
        lines: list[str] = []
        for key, value in sorted(node.value, key=lambda pair: str(pair[0].value)):
            if top and key.value in ("ddx", "dun") and isinstance(value, yaml.MappingNode):
                value = _without_review(value)
            lines += self._pair(key, value, indent)
        return lines

    def _pair(self, key: yaml.Node, value: yaml.Node, indent: int) -> list[str]:
        pad = " " * indent
        name = f"{pad}{self._inline(key)}:"
        head = [pad + comment for comment in self._head.get(key.start_mark.line, ())]
        if _is_block(value):
            said = self._said(key.start_mark.line)
            return [*head, name + said, *self._block(value, indent + _STEP), *self._below(key.start_mark.line, indent)]
        return [*head, *self._with_value(name, value, indent)]

    def _item(self, node: yaml.Node, indent: int) -> list[str]:
        pad = " " * indent
        head = [pad + comment for comment in self._head.get(node.start_mark.line, ())]
        if not _is_block(node):
            return [*head, *self._with_value(f"{pad}-", node, indent)]
        if isinstance(node, yaml.MappingNode):
            # a comment above the item is also above its first key; write it once
            for key, _value in node.value:
                if key.start_mark.line == node.start_mark.line:
                    self._head.pop(key.start_mark.line, None)
        inner = self._block(node, indent + _STEP)
        return [*head, f"{pad}- {inner[0].lstrip(' ')}", *inner[1:]]

    def _with_value(self, start: str, node: yaml.Node, indent: int) -> list[str]:
        if isinstance(node, yaml.ScalarNode) and (node.style in ("|", ">") or _is_long(node)):
            text = _folded(node.value) if node.style == ">" else node.value
            return [f"{start} {node.style or '|'}{_chomp(node.value)}", *_indented(text, indent + _STEP)]
        text = self._inline(node)
        line = node.end_mark.line if text else node.start_mark.line
        return [start + (f" {text}" if text else "") + self._said(line), *self._below(line, indent)]

    def _below(self, line: int, indent: int) -> list[str]:
        foot = [" " * indent + comment for comment in self._foot.get(line, ())]
        return [*foot, _BELOW] if foot else []

    def _said(self, line: int) -> str:
        comment = self._line.get(line)
        return f" {comment}" if comment else ""

    def _inline(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.SequenceNode):
            return f"[{', '.join(map(self._inline, node.value))}]"
        if isinstance(node, yaml.MappingNode):
            pairs = sorted(node.value, key=lambda pair: str(pair[0].value))
            return "{" + ", ".join(f"{self._inline(key)}: {self._inline(value)}" for key, value in pairs) + "}"
        return _scalar(node)


def _spaced(lines: list[str]) -> list[str]:
    """The lines, with an empty one after comments below an entry if the next line has the same indentation."""
    done: list[str] = []
    for place, line in enumerate(lines):
        if line != _BELOW:
            done.append(line)
        elif place + 1 < len(lines) and _column(lines[place + 1]) == _column(done[-1]):
            done.append("")
    return done


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_block(node: yaml.Node) -> bool:
    return not isinstance(node, yaml.ScalarNode) and bool(node.value) and not node.flow_style


def _without_review(node: yaml.MappingNode) -> yaml.MappingNode:
    kept = list(node.value)
    for place, (key, _value) in enumerate(kept):
        if key.value == "review":
            del kept[place]
            break
    return yaml.MappingNode(node.tag, kept, node.start_mark, node.end_mark, flow_style=node.flow_style)


def _is_long(node: yaml.ScalarNode) -> bool:
    return not node.style and "\n" in node.value


def _scalar(node: yaml.ScalarNode) -> str:
    value = str(node.value)
    if node.style == "'" and "\n" not in value:
        return "'" + value.replace("'", "''") + "'"
    if node.style in ("'", '"'):
        return '"' + "".join(_ESCAPES.get(char, char) for char in value) + '"'
    return value


def _chomp(text: str) -> str:
    # without the hint a reader would take the text's leading blanks for indentation
    hint = str(_STEP) if text[:1] in (" ", "\n") else ""
    if not text.endswith("\n"):
        return hint + "-"
    return hint + ("+" if text == "\n" or text.endswith("\n\n") else "")


def _folded(text: str) -> str:
    """Text with doubled line breaks where folding would turn one into a space."""
    lines = text.split("\n")
    done = lines[0]
    for before, line in pairwise(lines):
        joined = bool(before) and before[0] not in " \t" and bool(line) and line[0] not in " \t"
        done += ("\n\n" if joined else "\n") + line
    return done


def _indented(text: str, indent: int) -> list[str]:
    lines = text.removesuffix("\n").split("\n")
    return [" " * indent + line if line else "" for line in lines]
