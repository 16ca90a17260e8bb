"""Trees of a repository: those that it keeps as JSON of the DAG node schema, and the one its folders make.

The schema: id, title, summary, tags, evidence (docs/formats/ask.md §3). Trees guide and narrate,
they never stand in for a span. What a tree must and should hold for users: docs/knowledge/dag-node-schema.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from helix_tui.core.ask.records import Definition, Document, Heading, NodeEvidence, Tree, TreeNode

MAX_NODES = 5_000
MAX_TREE_BYTES = 8 << 20
_TREE_FILE = re.compile(r"(?:^|/)(?:[^/]*[-_.])?(?:tree|dag)[^/]*\.json$", re.IGNORECASE)
EVIDENCE = ("doc", "code", "test", "telemetry")
RECOMMENDED = (
    "inputs", "outputs", "assumptions", "validity", "deterministic", "tolerance", "environment", "dependencies",
    "predictability",
)  # fmt: skip
"""Fields of a node that make it reproducible (docs/knowledge/dag-node-schema.md)."""
MAX_FIELD_BYTES = 4_000
_TOP = ("class", "type", "function", "module")


def may_hold_tree(path: str) -> bool:
    """Whether a file's name says that it holds a tree: ``*-tree.json``, ``dag*.json``."""
    return _TREE_FILE.search(path) is not None


def read_tree(path: str, data: bytes) -> Tree | None:
    """The tree that a JSON file holds; None where it holds none. A node without id or title is left out."""
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
            nodes.setdefault(node.id, node)
    if not nodes:
        return None
    _link_children(nodes)
    root = found.get("rootId")
    if not isinstance(root, str) or root not in nodes:
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
    """The recommended fields that say something, each of a size that can be shown."""
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
    """Give a node the parent that names it as a child, where its own links name none."""
    for node in list(nodes.values()):
        for child in node.children:
            found = nodes.get(child)
            if found is not None and not found.parent and child != node.id:
                nodes[child] = replace(found, parent=node.id)


def derived_tree(
    name: str,
    documents: Sequence[Document],
    headings: Mapping[str, Sequence[Heading]],
    definitions: Mapping[str, Sequence[Definition]],
) -> Tree:
    """Folders, files, and in each file its headings or its top definitions, as one tree."""
    nodes: dict[str, dict[str, Any]] = {".": _row(name, "folder", "", ())}
    for document in documents:
        parent = _folders(nodes, document.file)
        evidence = NodeEvidence(_type_of(document), document.file)
        nodes[document.file] = _row(
            document.file.rpartition("/")[2], "file", parent, (evidence,), (document.role, document.language)
        )
        for node_id, row in _inside(document, headings.get(document.file, ()), definitions.get(document.file, ())):
            if len(nodes) < MAX_NODES:
                nodes.setdefault(node_id, row)
    children: dict[str, list[str]] = {}
    for node_id, row in nodes.items():
        if node_id != ".":
            children.setdefault(row["parent"], []).append(node_id)
    built = {
        node_id: TreeNode(
            node_id, row["title"], row["summary"], row["tags"], row["evidence"], row["parent"],
            tuple(children.get(node_id, ())), (("parent", row["parent"]),) if row["parent"] else (),
            row["type"],
        )
        for node_id, row in nodes.items()
    }  # fmt: skip
    return Tree("repository", name, "", ".", built)


def _type_of(document: Document) -> Literal["doc", "code", "test"]:
    return "doc" if document.role == "doc" else "test" if document.role == "test" else "code"


def _inside(
    document: Document, headings: Sequence[Heading], definitions: Sequence[Definition]
) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for heading in headings:
        if heading.level <= 3:
            evidence = (NodeEvidence("doc", document.file, heading=heading.title),)
            rows.append((f"{document.file}#{heading.start}", _row(heading.title, "section", document.file, evidence)))
    for one in definitions:
        if one.kind in _TOP and "." not in one.header:
            evidence = (NodeEvidence(_type_of(document), document.file, symbol=one.name),)
            rows.append((f"{document.file}::{one.header}", _row(one.name, one.kind, document.file, evidence)))
    return rows


def _folders(nodes: dict[str, dict[str, Any]], path: str) -> str:
    parent = "."
    steps = path.split("/")[:-1]
    for depth in range(len(steps)):
        folder = "/".join(steps[: depth + 1]) + "/"
        if folder not in nodes:
            nodes[folder] = _row(steps[depth], "folder", parent, ())
        parent = folder
    return parent


def _row(
    title: str, type_: str, parent: str, evidence: tuple[NodeEvidence, ...], tags: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "title": title,
        "summary": f"{type_} {title}",
        "tags": tags,
        "evidence": evidence,
        "parent": parent,
        "type": type_,
    }


def _text(value: object) -> str:
    return value[:2_000] if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value[:2_000] if isinstance(value, list) else []
