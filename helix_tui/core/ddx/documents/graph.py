"""The document graph and its answers, in the format of ``ddx doc … --json``.

Format: docs/formats/documents.md. ``builder`` builds one from files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct, to_builtins

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line

Bucket = Literal["active_actionable", "historical_superseded", "noise"]
BUCKETS: tuple[Bucket, ...] = ("active_actionable", "historical_superseded", "noise")


class DocumentsUnreadable(HelixError):
    """There are too many files, or none of them is the document asked for."""


class ExecutionDefinition(Struct, frozen=True):
    """``ddx.execution`` of a document: a command that decides whether an attempt may land."""

    command: tuple[str, ...] = ()
    required: bool = False
    comparison: str = ""
    ratchet: float | None = None
    unit: str = ""
    metric_id: str = ""

    def describe(self) -> str:
        """``make bench, required to land, ratchet at most 250 ms, measures MET-1``."""
        said = [clean_line(" ".join(self.command), 200) or "no command"]
        said += ["required to land"] if self.required else []
        if self.ratchet is not None:
            bound = "at least" if self.comparison == "higher-is-better" else "at most"
            said.append(f"ratchet {bound} {self.ratchet:g} {clean_line(self.unit, 20)}".rstrip())
        said += [f"measures {clean_line(self.metric_id, 80)}"] if self.metric_id else []
        return ", ".join(said)


class Metric(Struct, frozen=True):
    """The ``metric`` block of a metric definition (``MET-…``)."""

    unit: str = ""
    direction: str = ""
    goal: float | None = None
    budget: float | None = None

    def describe(self) -> str:
        """``ms, lower-is-better, goal 100, budget 200``."""
        said = [clean_line(self.unit, 20), clean_line(self.direction, 40)]
        said += [
            f"{name} {value:g}" for name, value in (("goal", self.goal), ("budget", self.budget)) if value is not None
        ]
        return ", ".join(filter(None, said))


class GraphDocument(Struct, frozen=True):
    """One document of the graph."""

    id: str
    path: str
    """Relative to the root of the project."""
    title: str = ""
    status: str = ""
    depends_on: tuple[str, ...] = ()
    """Ids declared in the frontmatter or linked as ``[[ID]]`` in the text, sorted."""
    dependents: tuple[str, ...] = ()
    execution: ExecutionDefinition | None = None
    metric: Metric | None = None
    unresolved: tuple[str, ...] = ()
    """Links of its text that name no document."""
    superseded_by: tuple[str, ...] = ()
    """Ids of the documents that it says replace it; ddx does not read this."""
    supersedes: tuple[str, ...] = ()
    """Ids of the documents that it says it replaces; ddx does not read this."""


class GraphIssue(Struct, frozen=True, omit_defaults=True, rename={"related_path": "relatedPath"}):
    """Something wrong with the graph, in ddx's words."""

    kind: str
    message: str
    path: str = ""
    id: str = ""
    related_path: str = ""

    def as_json(self) -> dict[str, str]:
        """As ``ddx doc audit --json`` prints it."""
        return cast(dict[str, str], to_builtins(self))


class StaleDocument(Struct, frozen=True):
    """A document whose dependencies changed since its review, or were never reviewed."""

    id: str
    path: str
    reasons: tuple[str, ...]
    bucket: Bucket = "active_actionable"

    def as_json(self) -> dict[str, Any]:
        """As ``ddx doc stale --json`` lists it."""
        return {"id": self.id, "path": self.path, "reasons": list(self.reasons)}


class DocumentGraph(Struct, frozen=True):
    """The documents of one project, and the issues with them."""

    root: Path
    documents: Mapping[str, GraphDocument]
    """Documents by id, sorted."""
    issues: tuple[GraphIssue, ...] = ()
    undeclared: tuple[GraphDocument, ...] = ()
    """Markdown files under ``docs`` that are not documents to ddx, for searches: each with its path or its
    frontmatter's top-level ``id`` as id.
    """

    def document(self, document_id: str) -> GraphDocument:
        """A document by its id.

        Raises:
            DocumentsUnreadable: there is no such document.
        """
        found = self.documents.get(document_id)
        if found is None:
            raise DocumentsUnreadable(f"document not found: {document_id}")
        return found

    def graph_json(self) -> list[dict[str, Any]]:
        """As ``ddx doc graph --json`` prints it."""
        return [_entry(document) for document in self.documents.values()]

    def show_json(self, document_id: str) -> dict[str, Any]:
        """As ``ddx doc show ID --json`` prints it.

        Raises:
            DocumentsUnreadable: there is no such document.
        """
        return _entry(self.document(document_id))

    def audit_json(self) -> list[dict[str, str]]:
        """As ``ddx doc audit --json`` prints it."""
        return [issue.as_json() for issue in self.issues]


def stale_json(found: Sequence[StaleDocument]) -> dict[str, Any]:
    """As ``ddx doc stale --json`` prints it since June; up to May it prints one list."""
    parts: dict[str, Any] = {name: [each.as_json() for each in found if each.bucket == name] for name in BUCKETS}
    return {**parts, "summary": {"total": len(found), **{name: len(parts[name]) for name in BUCKETS}}}


def _entry(document: GraphDocument) -> dict[str, Any]:
    found: dict[str, Any] = {"id": document.id, "path": document.path, "title": document.title}
    found |= {"depends_on": list(document.depends_on), "dependents": list(document.dependents)}
    return {name: value for name, value in found.items() if value or name in ("id", "path")}


def slug_of(text: str) -> str:
    """A name in lower case with hyphens; keeps letters, digits and dots."""
    kept = "".join(
        char if char.isalpha() or char.isdigit() or char == "." else "-" if char in "-_" or char.isspace() else ""
        for char in text.lower()
    )
    return re.sub(r"-+", "-", kept).strip("-")
