"""Whether a tree keeps the schema of docs/knowledge/dag-node-schema.md: what is missing, what leads nowhere.

A problem keeps a node from being used as it was meant; a hint names what would make it reproducible.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.ask.index.trees import EVIDENCE, MAX_NODES, MAX_TREE_BYTES, RECOMMENDED

REQUIRED = ("id", "title", "summary", "tags", "evidence")
_KEBAB = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "inputs": list,
    "outputs": list,
    "assumptions": list,
    "dependencies": list,
    "validity": dict,
    "deterministic": bool,
    "tolerance": dict,
    "environment": dict,
    "predictability": dict,
    "tags": list,
    "evidence": list,
    "children": list,
    "links": list,
}
_NAMED = {"inputs": ("name", "type", "unit", "source"), "outputs": ("name", "type", "unit", "path")}
_NEEDS = {"doc": "path", "code": "path", "test": "path", "telemetry": "field"}

ReadFile = Callable[[str], bytes | None]
"""The content of a file of the repository; None where it has none."""


class TreeProblem(Struct, frozen=True):
    """One thing that is wrong with a tree, or would make it better."""

    node: str
    """Id of the node; empty for the tree itself."""
    text: str
    hint: bool = False
    """It can be used as it is."""


def check_tree(data: bytes, read: ReadFile) -> list[TreeProblem]:
    """Everything to say of one tree's JSON, problems first.

    Args:
        data: the file.
        read: what the evidence of nodes names.
    """
    if len(data) > MAX_TREE_BYTES:
        return [TreeProblem("", f"{len(data):,} bytes: more than the {MAX_TREE_BYTES:,} that are read")]
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return [TreeProblem("", f"no JSON: {error}")]
    rows = found.get("nodes") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not rows:
        return [TreeProblem("", "not an object with a non-empty list `nodes`")]
    return sorted(_problems(found, rows, read), key=lambda problem: problem.hint)


def _problems(tree: Mapping[str, Any], rows: list[Any], read: ReadFile) -> Iterator[TreeProblem]:
    nodes: dict[str, dict[str, Any]] = {}
    for place, row in enumerate(rows):
        name = row.get("id") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(name, str) or not name:
            yield TreeProblem("", f"node {place + 1} has no id: it is skipped")
        elif name in nodes:
            yield TreeProblem(name, "its id appears twice: the first one is used")
        else:
            nodes[name] = row
    if len(rows) > MAX_NODES:
        yield TreeProblem("", f"{len(rows):,} nodes: the first {MAX_NODES:,} are read")
    root = tree.get("rootId")
    if root is not None and root not in nodes:
        yield TreeProblem("", f"rootId {root!r} names no node")
    for name, row in nodes.items():
        yield from _node(name, row, nodes, read)
    yield from _circles(nodes)


def _node(name: str, row: Mapping[str, Any], nodes: Mapping[str, Any], read: ReadFile) -> Iterator[TreeProblem]:
    for field in REQUIRED[1:]:
        if not row.get(field):
            yield TreeProblem(name, f"no {field}" + (": it is skipped" if field == "title" else ""))
    if _KEBAB.fullmatch(name) is None:
        yield TreeProblem(name, "its id is not kebab-case", hint=True)
    for field, kind in _KINDS.items():
        if row.get(field) is not None and not isinstance(row[field], kind):
            yield TreeProblem(name, f"{field} must be {_word(kind)}")
    yield from _leads(name, row, nodes)
    for place, entry in enumerate(_rows(row.get("evidence"))):
        yield from _evidence(name, place, entry, read)
    for field, wanted in _NAMED.items():
        for entry in _rows(row.get(field)):
            lacking = [each for each in wanted if not entry.get(each)]
            if lacking:
                label = entry.get("name") or "one without a name"
                yield TreeProblem(name, f"{field}: {label} lacks {', '.join(lacking)}", hint=True)
    missing = [field for field in RECOMMENDED if row.get(field) in (None, "", [], {})]
    missing = [field for field in missing if field not in ("dependencies", "predictability")]
    if missing:
        yield TreeProblem(name, f"not reproducible yet: no {', '.join(missing)}", hint=True)


def _leads(name: str, row: Mapping[str, Any], nodes: Mapping[str, Any]) -> Iterator[TreeProblem]:
    """Children, links and dependencies that lead to no node."""
    for field in ("children", "dependencies"):
        for target in row.get(field) or () if isinstance(row.get(field), list) else ():
            if target not in nodes:
                yield TreeProblem(name, f"{field}: {target!r} names no node")
    for link in _rows(row.get("links")):
        if not link.get("rel") or not link.get("to"):
            yield TreeProblem(name, "a link without rel or to")
        elif link["to"] not in nodes:
            yield TreeProblem(name, f"link {link['rel']}: {link['to']!r} names no node")


def _evidence(name: str, place: int, entry: Mapping[str, Any], read: ReadFile) -> Iterator[TreeProblem]:
    kind, where = entry.get("type"), f"evidence {place + 1}"
    if kind not in EVIDENCE:
        yield TreeProblem(name, f"{where}: type {kind!r} is none of {', '.join(EVIDENCE)}")
        return
    need = _NEEDS[kind]
    path = entry.get("path")
    if not entry.get(need):
        yield TreeProblem(name, f"{where}: {kind} without {need}")
    if not isinstance(path, str) or not path:
        return
    content = read(path)
    if content is None:
        yield TreeProblem(name, f"{where}: there is no {path}")
        return
    for field, what in (("heading", "heading"), ("symbol", "symbol"), ("contains", "text")):
        text = entry.get(field)
        if isinstance(text, str) and text and text.lower().encode() not in content.lower():
            yield TreeProblem(name, f"{where}: {path} holds no {what} “{text}”")
    recorded = entry.get("content_hash")
    if isinstance(recorded, str) and recorded:
        now = hashlib.sha256(content).hexdigest()
        if recorded.removeprefix("sha256:").lower() != now:
            yield TreeProblem(name, f"{where}: stale, {path} has changed (now sha256:{now})", hint=True)


def _circles(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[TreeProblem]:
    """Nodes whose parents, or whose dependencies, lead back to them."""
    parents = {
        name: [link["to"] for link in _rows(row.get("links")) if link.get("rel") == "parent" and link.get("to")]
        for name, row in nodes.items()
    }
    needs = {
        name: [each for each in row.get("dependencies") or () if isinstance(each, str)] for name, row in nodes.items()
    }
    for what, edges in (("parents", parents), ("dependencies", needs)):
        for name in nodes:
            if _leads_back(name, edges):
                yield TreeProblem(name, f"its {what} form a cycle")


def _leads_back(name: str, edges: Mapping[str, list[str]]) -> bool:
    seen: set[str] = set()
    ahead = list(edges.get(name, ()))
    while ahead:
        each = ahead.pop()
        if each == name:
            return True
        if each not in seen:
            seen.add(each)
            ahead += edges.get(each, ())
    return False


def _rows(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _word(kind: type | tuple[type, ...]) -> str:
    return {list: "a list", dict: "an object", bool: "true or false"}[kind]  # type: ignore[index]
