"""Trees of a repository: those stored as JSON in the DAG node schema, and the one derived from its folders.

`check_tree` reports where a stored one violates docs/knowledge/dag-node-schema.md: missing fields, broken references,
changes since it was recorded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.records import NodeEvidence, Tree, TreeNode
from helix_tui.core.ground.text import clean_line, counted

MAX_NODES = 5_000
MAX_UNKNOWN = 6
"""Unknown fields of one object that are named."""
MAX_TREE_BYTES = 8 << 20
EVIDENCE = ("doc", "code", "test", "telemetry")
RECOMMENDED = (
    "inputs", "outputs", "assumptions", "validity", "deterministic", "tolerance", "environment", "dependencies",
    "predictability",
)  # fmt: skip
"""Fields of a node that make it reproducible (docs/knowledge/dag-node-schema.md)."""
MAX_FIELD_BYTES = 4_000

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

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "": ("version", "rootId", "treeId", "label", "nodes"),
    "node": (*REQUIRED, *RECOMMENDED, "excerpt", "nodeType", "links", "children"),
    "link": ("rel", "to"),
    "evidence": ("type", "path", "heading", "contains", "symbol", "field", "content_hash", "repo_rev"),
    **_NAMED,
}
"""What has fields -> the fields that are known."""

_NEEDS = {"doc": "path", "code": "path", "test": "path", "telemetry": "field"}


def read_tree(path: str, data: bytes) -> Tree | None:
    """The tree in a JSON file, or None. A node without id or title is left out."""
    if len(data) > MAX_TREE_BYTES:
        return None
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    rows = found.get("nodes") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(rows, list):
        return None
    nodes: dict[str, TreeNode] = {}
    for row in rows[:MAX_NODES]:
        node = _node(row)
        if node is not None:
            # of two nodes with one id the first counts, as in `check_tree`
            nodes.setdefault(node.id, node)
    if not nodes:
        return None
    _link_children(nodes)
    root = found.get("rootId")
    if not isinstance(root, str) or root not in nodes:
        # if parents form a cycle every node may have one: then use the first
        root = next((node.id for node in nodes.values() if not node.parent), next(iter(nodes)))
    label = _text(found.get("label")) or nodes[root].title
    return Tree(_text(found.get("treeId")) or root, label, path, root, nodes)


def _node(row: object) -> TreeNode | None:
    if not isinstance(row, dict):
        return None
    number, title = _text(row.get("id")), _text(row.get("title"))
    if not number or not title:
        return None
    links = tuple(
        (_text(link.get("rel")), _text(link.get("to"))) for link in _list(row.get("links")) if isinstance(link, dict)
    )
    parent = next((to for rel, to in links if rel == "parent" and to), "")
    return TreeNode(
        number,
        title,
        _text(row.get("summary")) or _text(row.get("excerpt")),
        tuple(tag for tag in map(_text, _list(row.get("tags"))) if tag),
        tuple(one for one in map(_evidence, _list(row.get("evidence"))) if one is not None),
        parent,
        tuple(child for child in map(_text, _list(row.get("children"))) if child),
        tuple(link for link in links if link[1]),
        _text(row.get("nodeType")) or "concept",
        _fields(row),
    )


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The recommended fields that are neither empty nor too large to be shown."""
    found = {name: row[name] for name in RECOMMENDED if row.get(name) not in (None, "", [], {})}
    return {name: value for name, value in found.items() if len(msgspec.json.encode(value)) <= MAX_FIELD_BYTES}


def _evidence(row: object) -> NodeEvidence | None:
    if not isinstance(row, dict) or row.get("type") not in EVIDENCE:
        return None
    return NodeEvidence(
        row["type"],
        _text(row.get("path")),
        _text(row.get("heading")),
        _text(row.get("symbol")),
        _text(row.get("content_hash")),
    )


def _link_children(nodes: dict[str, TreeNode]) -> None:
    """Give a node the parent that names it as a child, if its own links name none."""
    for node in list(nodes.values()):
        for child in node.children:
            found = nodes.get(child)
            # a node's own link to its parent takes precedence over others' links to their children
            if found is not None and not found.parent and child != node.id:
                nodes[child] = replace(found, parent=node.id)


def _text(value: object) -> str:
    return value[:2_000] if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value[:2_000] if isinstance(value, list) else []


ReadFile = Callable[[str], bytes | None]
"""Returns the content of a file of the repository, or None."""


class TreeProblem(Struct, frozen=True):
    """One problem of a tree, or a possible improvement."""

    node: str
    """Id of the node; empty for the tree itself."""
    text: str
    hint: bool = False
    """Whether the tree can be used unchanged: the problem is only a possible improvement."""


def check_tree(data: bytes, read: ReadFile) -> list[TreeProblem]:
    """All findings about one tree's JSON, problems first.

    Args:
        data: the file.
        read: reads the files named in the evidence of nodes.
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
        yield TreeProblem("", f"{counted(len(rows), 'node')}: the first {MAX_NODES:,} are read")
    root = tree.get("rootId")
    if root is not None and not _names(root, nodes):
        yield TreeProblem("", f"rootId {root!r} names no node")
    yield from _unknown("", "", tree)
    for name, row in nodes.items():
        yield from _check_node(name, row, nodes, read)
    yield from _circles(nodes)


def _check_node(name: str, row: Mapping[str, Any], nodes: Mapping[str, Any], read: ReadFile) -> Iterator[TreeProblem]:
    for field in REQUIRED[1:]:
        if not row.get(field):
            yield TreeProblem(name, f"no {field}" + (": it is skipped" if field == "title" else ""))
    if _KEBAB.fullmatch(name) is None:
        yield TreeProblem(name, "its id is not kebab-case", hint=True)
    yield from _unknown(name, "node", row)
    for field, kind in _KINDS.items():
        if row.get(field) is not None and not isinstance(row[field], kind):
            yield TreeProblem(name, f"{field} must be {_word(kind)}")
    yield from _leads(name, row, nodes)
    for place, entry in enumerate(_rows(row.get("evidence"))):
        yield from _check_evidence(name, place, entry, read)
    for field, wanted in _NAMED.items():
        for entry in _rows(row.get(field)):
            yield from _unknown(name, field, entry)
            lacking = [each for each in wanted if not entry.get(each)]
            if lacking:
                label = entry.get("name") or "one without a name"
                yield TreeProblem(name, f"{field}: {label} lacks {', '.join(lacking)}", hint=True)
    missing = [field for field in RECOMMENDED if row.get(field) in (None, "", [], {})]
    # a node need not depend on another one, and may have no predictions
    missing = [field for field in missing if field not in ("dependencies", "predictability")]
    if missing:
        yield TreeProblem(name, f"not reproducible yet: no {', '.join(missing)}", hint=True)


def _unknown(name: str, of: str, row: Mapping[str, Any], place: int = 0) -> Iterator[TreeProblem]:
    """The fields that the schema does not know, each with the known one that it may mean."""
    known = _KNOWN[of]
    strange = [field for field in row if field not in known]
    if not strange:
        return
    from difflib import get_close_matches  # most trees have none

    plain = {_plain(field): field for field in known}
    named = []
    for field in strange[:MAX_UNKNOWN]:
        near = get_close_matches(_plain(field), plain, n=1)
        named.append(f"{clean_line(field, 60)}{f' (did you mean {plain[near[0]]}?)' if near else ''}")
    more = f" and {len(strange) - MAX_UNKNOWN:,} more" if len(strange) > MAX_UNKNOWN else ""
    where = "" if of in ("", "node") else f"{of} {place}: " if place else f"{of}: "
    yield TreeProblem(name, f"{where}not in the schema, not read: {', '.join(named)}{more}", hint=True)


def _plain(field: str) -> str:
    """A field's name without the signs and capitals in which writers differ."""
    return re.sub(r"[^a-z0-9]", "", field.lower()[:60])


def _leads(name: str, row: Mapping[str, Any], nodes: Mapping[str, Any]) -> Iterator[TreeProblem]:
    """Children, links and dependencies that lead to no node."""
    for field in ("children", "dependencies"):
        for target in row.get(field) or () if isinstance(row.get(field), list) else ():
            if not _names(target, nodes):
                yield TreeProblem(name, f"{field}: {target!r} names no node")
    for link in _rows(row.get("links")):
        yield from _unknown(name, "link", link)
        if not _text(link.get("rel")) or not link.get("to"):
            yield TreeProblem(name, "a link without rel or to")
        elif not _names(link["to"], nodes):
            yield TreeProblem(name, f"link {link['rel']}: {link['to']!r} names no node")


def _names(target: object, nodes: Mapping[str, Any]) -> bool:
    """Whether a value of the JSON, of whatever type, is the id of a node."""
    return isinstance(target, str) and target in nodes


def _check_evidence(name: str, place: int, entry: Mapping[str, Any], read: ReadFile) -> Iterator[TreeProblem]:
    kind, where = entry.get("type"), f"evidence {place + 1}"
    yield from _unknown(name, "evidence", entry, place + 1)
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
        name: [link["to"] for link in _rows(row.get("links")) if link.get("rel") == "parent" and _text(link.get("to"))]
        for name, row in nodes.items()
    }
    needs = {
        name: [each for each in _list(row.get("dependencies")) if isinstance(each, str)] for name, row in nodes.items()
    }
    for what, edges in (("parents", parents), ("dependencies", needs)):
        for name in nodes:
            if _leads_back(name, edges):
                yield TreeProblem(name, f"its {what} form a cycle")


def _leads_back(name: str, edges: Mapping[str, list[str]]) -> bool:
    seen: set[str] = set()
    ahead = list(edges.get(name, ()))
    while ahead:
        # a list instead of recursion: a chain may have `MAX_NODES` nodes
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
