"""Read the YAML block at the head of a document as ddx does: same fields, same errors.

Format: docs/formats/documents.md. ddx reads YAML by a Go port of libyaml, which reports a line and a message; its
wording is kept, because ``ddx doc audit`` prints it.
"""

from __future__ import annotations

import base64
import re

import yaml
from msgspec import Struct

from helix_tui.core.ddx.documents.graph import NO_REVIEW, ExecutionDefinition, ReviewStamp
from helix_tui.core.ground.errors import HelixError

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"mapping values are not allowed here": "mapping values are not allowed in this context"}
"""Messages of PyYAML without libyaml -> messages of libyaml."""

_UTF8 = {
    "start byte": "invalid leading UTF-8 octet",
    "unexpected end": "incomplete UTF-8 octet sequence",
    "continuation": "invalid trailing UTF-8 octet",
}
MAX_DEPTH = 60
"""Maximum nesting of a block: real frontmatter is not deeper, and readers recurse."""

_TOO_DEEP = "yaml: exceeded max depth of 10000"
_SPACE = " \t\n\v\f\r\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""The characters that ddx strips from both ends of a block."""
_DIRECTIVES = re.compile(r"(?:(?:%.*|[ \t]*(?:#.*)?)(?:\n|\Z))+")
_VERSION = re.compile(r"^%YAML[ \t]+(\d+)\.(\d+)[ \t]*(?:#.*)?$", re.MULTILINE)
_KEY = re.compile(r"[^\s#].*?:(?=\s|$)")

_MERGE = "tag:yaml.org,2002:merge"
_TRUE = frozenset(("true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE = frozenset(("false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"))


class FrontmatterError(HelixError):
    """A block that ddx cannot read; the text is ddx's own."""


class Fields(Struct, frozen=True):
    """The fields of a document: those that ddx knows, and what it says of its replacement."""

    id: str = ""
    status: str = ""
    depends_on: tuple[str, ...] = ()
    review: ReviewStamp = NO_REVIEW
    parking_lot: bool = False
    execution: ExecutionDefinition | None = None
    superseded_by: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()


def split(content: bytes) -> tuple[bytes, bytes] | None:
    """The block and the body after it; None if the document has no block."""
    first, newline, rest = content.partition(b"\n")
    if not newline or first.rstrip(b"\r") != b"---":
        return None
    start = 0
    while start <= len(rest):
        end = rest.find(b"\n", start)
        stop = len(rest) if end < 0 else end
        if rest[start:stop].rstrip(b"\r") == b"---":
            return rest[:start], rest[stop + 1 :]
        if end < 0:
            return None
        start = stop + 1
    return None


def read_node(block: bytes) -> yaml.Node | None:
    """The block as nodes; None for an empty one.

    Raises:
        FrontmatterError: it is not YAML.
    """
    text = _text(block.strip()).strip(_SPACE)
    _check_directives(text)
    loader = None
    try:
        loader = _LOADER(text)
        node = loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as error:
        raise FrontmatterError(f"yaml: {_problem(error, text)}") from None
    except yaml.reader.ReaderError as error:
        raise FrontmatterError(f"yaml: {error.reason}") from None
    except RecursionError:
        raise FrontmatterError(_TOO_DEEP) from None
    finally:
        if loader is not None:
            loader.dispose()
    # with the message of ddx's reader, though its own limit is far higher
    if node is not None and _depth(node) > MAX_DEPTH:
        raise FrontmatterError(_TOO_DEEP)
    return node


def _check_directives(text: str) -> None:
    """Refuse a version that ddx's reader does not know: any but 1.1. It reads the token after a directive first."""
    head = _DIRECTIVES.match(text)
    versioned = _VERSION.search(head[0]) if head is not None else None
    if head is None or versioned is None:
        return
    if _KEY.match(text, head.end()):
        line = head[0].count("\n") + 1
        raise FrontmatterError(f"yaml: line {line}: mapping values are not allowed in this context")
    if (int(versioned[1]), int(versioned[2])) != (1, 1):
        line = head[0][: versioned.start()].count("\n")
        raise FrontmatterError(f"yaml: {f'line {line}: ' if line else ''}found incompatible YAML document")


def _text(block: bytes) -> str:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError as error:
        said = next(
            (text for word, text in _UTF8.items() if word in error.reason), "control characters are not allowed"
        )
        raise FrontmatterError(f"yaml: {said}") from None


def _problem(error: yaml.MarkedYAMLError, text: str) -> str:
    """The error, with its line as libyaml's port counts: from 0, plus one for scanner errors."""
    problem = str(error.problem)
    at = error.problem_mark
    if problem.startswith("found undefined alias") and at is not None:
        name = re.match(r"\*?([\w-]+)", text.split("\n")[at.line][at.column :])
        return f"unknown anchor '{name[1] if name else ''}' referenced"
    mark = error.context_mark if error.context_mark and error.context_mark.line else at
    line = mark.line if mark is not None else 0
    where = f"line {line + isinstance(error, yaml.scanner.ScannerError)}: " if line else ""
    return where + _WORDS.get(problem, problem)


def read_fields(node: yaml.Node | None, *, status: bool = True) -> Fields:
    """The fields under ``ddx``, or under the older ``dun`` if ``ddx`` names no id.

    Args:
        status: whether a status that is not text is an error (`DocumentRule.status`).

    Raises:
        FrontmatterError: a value has another type than ddx expects.
    """
    for name, owner in (("ddx", "DDx"), ("dun", "Dun")):
        decoder = NodeDecoder()
        kind = f'struct {{ {owner} docgraph.DocFrontmatter "yaml:\\"{name}\\"" }}'
        fields = decoder.fields(decoder.mapping(node, kind).get(name), status=status)
        decoder.check()
        if fields.id:
            return fields
    return Fields()


def value_at(node: yaml.Node | None, *names: str) -> yaml.Node | None:
    """The value at a path of keys, or None."""
    for name in names:
        if not isinstance(node, yaml.MappingNode):
            return None
        node = next((value for key, value in node.value if key.value == name), None)
    return node


def number_at(node: yaml.Node | None, *names: str) -> float | None:
    """The number at a path of keys, or None."""
    found = value_at(node, *names)
    return _number(found.value) if isinstance(found, yaml.ScalarNode) and not found.style else None


def text_at(node: yaml.Node | None, *names: str) -> str:
    """The text at a path of keys, or ""."""
    found = value_at(node, *names)
    return str(found.value) if isinstance(found, yaml.ScalarNode) and not _is_null(found) else ""


class NodeDecoder:
    """Decodes nodes into fields, with errors in ddx's words."""

    def __init__(self) -> None:
        self._errors: list[tuple[int, int, str]] = []
        """Errors by their place in the text: the line from 1, and the message."""

    def check(self) -> None:
        """Raise if a value had another type than ddx expects.

        Raises:
            FrontmatterError: a value had.
        """
        if self._errors:
            said = "\n".join(
                f"  line {line}: {text}" for _, line, text in sorted(self._errors, key=lambda each: each[0])
            )
            raise FrontmatterError(f"yaml: unmarshal errors:\n{said}")

    def fields(self, node: yaml.Node | None, *, status: bool) -> Fields:
        found = self.mapping(node, "docgraph.DocFrontmatter")
        execution = found.get("execution")
        # not used, but an error if of another type
        self.texts(found.get("inputs"))
        self.text(found.get("prompt"))
        return Fields(
            id=self.text(found.get("id")),
            status=self.text(found.get("status")) if status else text_at(found.get("status")),
            depends_on=self.texts(found.get("depends_on")),
            review=self._review(found.get("review")),
            parking_lot=self.truth(found.get("parking_lot")),
            execution=None if _is_null(execution) else self._execution(execution),
            superseded_by=_names(found.get("superseded_by")),
            supersedes=_names(found.get("supersedes")),
        )

    def _review(self, node: yaml.Node | None) -> ReviewStamp:
        found = self.mapping(node, "docgraph.DocReview")
        return ReviewStamp(
            self_hash=self.text(found.get("self_hash")),
            deps=self._texts_by_name(found.get("deps")),
            reviewed_at=self.text(found.get("reviewed_at")),
        )

    def _execution(self, node: yaml.Node | None) -> ExecutionDefinition:
        found = self.mapping(node, "docgraph.DocExecDef")
        limits = self.mapping(found.get("thresholds"), "docgraph.DocThresholds")
        metric = self.mapping(found.get("metric"), "docgraph.DocMetricSpec")
        self._texts_by_name(found.get("env"))  # these three are not used either
        self.texts(found.get("artifact_ids"))
        self.truth(found.get("active"))
        return ExecutionDefinition(
            kind=self.text(found.get("kind")),
            command=self.texts(found.get("command")),
            cwd=self.text(found.get("cwd")),
            timeout_ms=int(self.number(found.get("timeout_ms"), "int") or 0),
            required=self.truth(found.get("required")),
            comparison=self.text(found.get("comparison")),
            ratchet=self.number(limits.get("ratchet"), "float64"),
            warn=self.number(limits.get("warn"), "float64"),
            unit=self.text(limits.get("unit")) or self.text(metric.get("unit")),
            metric_id=self.text(metric.get("metric_id")).strip(),
        )

    def mapping(self, node: yaml.Node | None, kind: str, seen: set[int] | None = None) -> dict[str, yaml.Node]:
        """The value of each key, with `<<` merged in.

        Args:
            kind: ddx's name of the type.
            seen: nodes already merged, which add nothing.

        Raises:
            FrontmatterError: a merged node is not a mapping.
        """
        if _is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self._refuse(node, kind)
            return {}
        lines: dict[str, int] = {}
        seen = set() if seen is None else seen
        found: dict[str, yaml.Node] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "string")
                continue
            if key.value in lines:
                name = '"' + key.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
                said = f"mapping key {name} already defined at line {lines[key.value]}"
                self._errors.append((node.start_mark.index, _line(key), said))
            lines.setdefault(key.value, _line(key))
            if key.tag == _MERGE:
                merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            else:
                found[key.value] = value
        for each in merged:
            if not isinstance(each, yaml.MappingNode):
                raise FrontmatterError("yaml: map merge requires map or sequence of maps as the value")
            if id(each) not in seen:
                seen.add(id(each))
                # a key of the mapping itself wins over a merged one, an earlier merge over a later one
                found = self.mapping(each, kind, seen) | found
        return found

    def text(self, node: yaml.Node | None) -> str:
        if _is_null(node):
            return ""
        if not isinstance(node, yaml.ScalarNode):
            self._refuse(node, "string")
            return ""
        if node.tag.endswith(":binary"):
            return _decoded(node.value)
        return str(node.value)

    def texts(self, node: yaml.Node | None) -> tuple[str, ...]:
        if _is_null(node):
            return ()
        if not isinstance(node, yaml.SequenceNode):
            self._refuse(node, "[]string")
            return ()
        return tuple(self.text(each) for each in node.value)

    def _texts_by_name(self, node: yaml.Node | None) -> dict[str, str]:
        return {name: self.text(value) for name, value in self.mapping(node, "map[string]string").items()}

    def truth(self, node: yaml.Node | None) -> bool:
        if _is_null(node):
            return False
        value = node.value if isinstance(node, yaml.ScalarNode) else None
        if value not in _TRUE and value not in _FALSE:
            self._refuse(node, "bool")
        return value in _TRUE

    def number(self, node: yaml.Node | None, kind: str) -> float | None:
        if _is_null(node):
            return None
        # a number in quotes is a text
        plain = isinstance(node, yaml.ScalarNode) and not node.style
        found = _number(node.value) if node is not None and plain else None
        if found is None:
            self._refuse(node, kind)
        return found

    def _refuse(self, node: yaml.Node | None, kind: str) -> None:
        if isinstance(node, yaml.ScalarNode):
            # cut as ddx's reader does, as the message is compared with ddx's own
            shown = node.value if len(node.value.encode()) <= 10 else _first_bytes(node.value, 7) + "..."
            self._errors.append(
                (node.start_mark.index, _line(node), f"cannot unmarshal {_tag(node)} `{shown}` into {kind}")
            )
        elif node is not None:
            word = "!!seq" if isinstance(node, yaml.SequenceNode) else "!!map"
            own = node.tag.replace("tag:yaml.org,2002:", "!!")
            word = word if own == word else f"{own} ``"
            self._errors.append((node.start_mark.index, _line(node), f"cannot unmarshal {word} into {kind}"))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        raise FrontmatterError("yaml: !!binary value contains invalid base64 data") from None


def _tag(node: yaml.ScalarNode) -> str:
    if node.tag == _MERGE or node.tag.startswith("!"):
        return "!!merge" if node.tag == _MERGE else str(node.tag)
    if node.style:
        return "!!str"
    if node.value in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return "!!bool"
    number = _number(node.value)
    if node.tag.endswith(":float") and number is None:
        return "!!float"
    if number is None:
        return "!!timestamp" if node.tag.endswith(":timestamp") else "!!str"
    return "!!int" if not set(node.value) & set(".eE") or node.value.startswith("0x") else "!!float"


def _number(text: str) -> float | None:
    try:
        return float(int(text, 0)) if text.lower().startswith(("0x", "0o", "0b")) else float(text.replace("_", ""))
    except ValueError:
        return None


def _first_bytes(text: str, count: int) -> str:
    return text.encode()[:count].decode("utf-8", "replace")


def _names(node: yaml.Node | None) -> tuple[str, ...]:
    """One name, or a list of names; ddx does not read it, so nothing else is an error."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return tuple(name for each in nodes if (name := text_at(each).strip()))


def _is_null(node: yaml.Node | None) -> bool:
    return node is None or (isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _depth(root: yaml.Node) -> int:
    """The nesting depth of nodes. A node named by several aliases is visited once."""
    seen: set[int] = set()
    level: list[yaml.Node] = [root]
    depth = 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        below: list[yaml.Node] = []
        for node in level:
            if isinstance(node, yaml.ScalarNode) or id(node) in seen:
                continue
            seen.add(id(node))
            below += (
                node.value if isinstance(node, yaml.SequenceNode) else [each for pair in node.value for each in pair]
            )
        level = below
    return depth
