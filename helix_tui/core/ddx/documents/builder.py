"""Read a project's documents from their files: ids, titles and links, without hashes or reviews, which are ddx's.

A document is a Markdown file whose frontmatter names an id under ``ddx`` (or, older, ``dun``); rule:
docs/formats/documents.md.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from helix_tui.core.ddx.documents.frontmatter import FrontmatterError, read_frontmatter, split
from helix_tui.core.ddx.documents.graph import (
    DocumentGraph,
    DocumentsUnreadable,
    GraphDocument,
    GraphIssue,
    slug_of,
)
from helix_tui.core.ground.files import Stamps, names_in, read_bytes, stamp_of, walk

MAX_FILES = 50_000
"""Maximum number of Markdown files in one tree."""

_MANAGED = frozenset((".git", ".ddx", ".claude", "worktrees"))
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]")


def read_graph(root: Path) -> DocumentGraph:
    """The documents below a folder.

    Raises:
        DocumentsUnreadable: there are too many files.
    """
    documents: dict[str, GraphDocument] = {}
    undeclared: list[GraphDocument] = []
    issues: list[GraphIssue] = []
    links: dict[str, tuple[str, ...]] = {}
    for path in _markdown_files(root):
        relative = os.path.relpath(path, root)
        try:
            document, text, declared = _parse(path, relative)
        except FrontmatterError as error:
            issues.append(GraphIssue("parse_error", f"{relative}: {error}", relative))
            continue
        there = documents.get(document.id)
        if not declared:
            if document.id != relative or relative.startswith(f"docs{os.sep}"):
                undeclared.append(document)
        elif there is not None:
            said = f"{relative} has the id of {there.path}: {document.id}"
            issues.append(GraphIssue("duplicate_id", said, relative, document.id, there.path))
        else:
            documents[document.id] = document
            links[document.id] = tuple(filter(None, map(str.strip, _LINK.findall(text))))
    linked = {name: _linked(documents[name], links[name], documents) for name in sorted(documents)}
    dependents: dict[str, list[str]] = {}
    for document in linked.values():
        for needed in document.depends_on:
            dependents.setdefault(needed, []).append(document.id)
            if needed not in linked:
                said = f"{document.id} depends on {needed}, an id that no document declares"
                issues.append(GraphIssue("missing_dep", said, document.path, needed))
    whole = {name: replace(each, dependents=tuple(dependents.get(name, ()))) for name, each in linked.items()}
    return DocumentGraph(root, whole, tuple(issues), tuple(undeclared))


def read_stamps(root: Path, ddx_dir: Path) -> Stamps:
    """The stamp of each file on which the graph depends, here or in ddx, to detect changes.

    Raises:
        DocumentsUnreadable: as `read_graph`.
    """
    own = (str(ddx_dir / "graphs" / name) for name in names_in(ddx_dir / "graphs"))
    return {path: stamp_of(path) for path in (*own, *_markdown_files(root))}


def _parse(path: str, relative: str) -> tuple[GraphDocument, str, bool]:
    """A file as a document, its text, and whether it declares an id; else it has its path for one."""
    raw = read_bytes(path)
    if raw is None:
        raise FrontmatterError("cannot be read")
    block, body = split(raw) or (b"", raw)
    frontmatter = read_frontmatter(block)
    text = body.decode("utf-8", "replace")
    title = next((line.strip()[2:].strip() for line in text.splitlines() if line.strip().startswith("# ")), "")
    document = GraphDocument(
        id=frontmatter.id or frontmatter.name or relative,
        path=relative,
        title=title,
        status=frontmatter.status,
        depends_on=tuple(sorted(set(frontmatter.depends_on))),
        execution=frontmatter.execution,
        metric=frontmatter.metric,
        superseded_by=frontmatter.superseded_by,
        supersedes=frontmatter.supersedes,
    )
    return document, text, bool(frontmatter.id)


def _linked(document: GraphDocument, links: Iterable[str], documents: Mapping[str, GraphDocument]) -> GraphDocument:
    """A document with the documents that it links as ``[[ID]]`` among its dependencies."""
    targets = {text: _resolve(text, documents) for text in links}
    needed = {*document.depends_on, *filter(None, targets.values())} - {document.id}
    unresolved = tuple(text for text, target in targets.items() if not target)
    return replace(document, depends_on=tuple(sorted(needed)), unresolved=unresolved)


def _resolve(text: str, documents: Mapping[str, GraphDocument]) -> str:
    """The id that a link names, as written or as a slug; else ""."""
    return next((name for name in (text, slug_of(text)) if name in documents), "")


def _markdown_files(root: Path) -> list[str]:
    """Every Markdown file below a folder, sorted, except in hidden folders and those of tools.

    Raises:
        DocumentsUnreadable: there are too many.
    """
    found: list[str] = []
    # as for ddx, a link to a folder is a file that cannot be read
    for folder, folders, names in walk(os.fspath(root)):
        # in place: those that are removed are not entered
        folders[:] = [name for name in folders if name not in _MANAGED and not name.startswith(".")]
        paths = (os.path.join(folder, name) for name in names if not name.startswith("."))
        found += [path for path in paths if os.path.splitext(path)[1].lower() == ".md"]
        if len(found) > MAX_FILES:
            raise DocumentsUnreadable(
                f"more than {MAX_FILES:,} Markdown files under {root}",
                "Move files that are not documents out of the project.",
            )
    return sorted(found)
