"""Find the conflicts that documents and beads declare: resolvable ones, physics-level ones, and gaps.

Declared are: two documents that supersede each other, a superseded document that open beads name, and a name that no
document has. The text of documents is not judged (docs/formats/helix.md §4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.documents.graph import GraphDocument
from helix_tui.core.ddx.documents.source import Documents
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.orphans import supervisory

Class = Literal["physics-level", "resolvable", "gap"]

TIERS = (
    ("vision", 0),
    ("prd", 1),
    ("feat", 2),
    ("us", 3),
    ("adr", 4),
    ("arch", 4),
    ("sd", 5),
    ("td", 6),
    ("tp", 7),
    ("test", 8),
    ("plan", 9),
)
"""Prefix of a document's name or id -> its authority; 0 is the highest."""

LOWEST = 10

_EXAMPLE = re.compile("template|example", re.IGNORECASE)
"""Part of the path of a document whose names are only placeholders."""


class DocumentFinding(Struct, frozen=True):
    """A conflict that documents declare, or a broken reference."""

    kind: Class
    text: str
    documents: tuple[str, ...]
    """Paths, the deciding one first, if any."""
    statements: tuple[tuple[str, str], ...] = ()
    """The (document, id that it declares) pairs in conflict; empty for a gap."""
    missing: str = ""
    """For a gap: the document that does not exist."""
    assumed: str = ""
    """The assumption under which work may continue; empty if physics-level."""

    @property
    def key(self) -> str:
        """A key that is stable for the same finding: a missing document is one gap, whoever refers to it."""
        return f"{self.kind}:{self.missing or self.text}"[:400]


def find_conflicts(documents: Documents, spec_ids: Iterable[str] = ()) -> tuple[DocumentFinding, ...]:
    """Every declared conflict and gap, unresolvable ones first.

    Args:
        spec_ids: the documents that open beads name.
    """
    named = sorted(set(spec_ids))
    replacements = _replacements(documents)
    opposed = [
        (documents.all[replaced], documents.all[other])
        for replaced, others in replacements.items()
        for other in others
        if replaced < other and replaced in replacements.get(other, ())
    ]
    disputed = {document.id for pair in opposed for document in pair}
    superseded = {name: others for name, others in replacements.items() if name not in disputed}
    findings = [_opposed(*pair) for pair in opposed]
    findings += _superseded_in_use(documents, superseded, named)
    findings += _gaps(documents, named)
    order = {"physics-level": 0, "resolvable": 1, "gap": 2}
    unique: dict[str, DocumentFinding] = {}
    for finding in sorted(findings, key=lambda finding: (order[finding.kind], finding.text)):
        unique.setdefault(finding.key, finding)
    return tuple(unique.values())


def open_spec_ids(beads: Mapping[str, Bead]) -> frozenset[str]:
    """The documents that open beads name, as written."""
    return frozenset(
        bead.spec_id
        for bead in beads.values()
        if bead.spec_id and bead.status not in TERMINAL and not supervisory(bead)
    )


def tier_of(document: GraphDocument) -> int:
    """The authority of a document, by its id or name; the lower the number, the more it decides."""
    for word in (document.id.lower(), Path(document.path).stem.lower()):
        for start, tier in TIERS:
            if re.match(rf"(helix\.)?(product-)?{start}([-.\d]|$)", word):
                return tier
    return LOWEST


def _replacements(documents: Documents) -> Mapping[str, tuple[str, ...]]:
    """The id of each superseded document, with the ids of those that replace it, where they are known."""
    replacements: dict[str, tuple[str, ...]] = {}
    for document in documents.all.values():
        if document.superseded_by or document.status.strip().lower() == "superseded":
            known = tuple(name for name in document.superseded_by if name in documents.all and name != document.id)
            replacements[document.id] = (*replacements.get(document.id, ()), *known)
        for name in document.supersedes:
            if name in documents.all and name != document.id:
                replacements[name] = (*replacements.get(name, ()), document.id)
    return replacements


def _opposed(one: GraphDocument, other: GraphDocument) -> DocumentFinding:
    high, low = sorted((one, other), key=tier_of)
    paths = (high.path, low.path)
    pairs = ((high, low), (low, high))
    declared = tuple((by.path, of.id) for by, of in pairs if of.id in (*by.superseded_by, *by.supersedes))
    if tier_of(high) == tier_of(low):
        text = f"{_called(high)} and {_called(low)} each supersede the other"
        return DocumentFinding("physics-level", text, paths, declared)
    text = f"{_called(high)} and {_called(low)} each supersede the other; the higher one, {high.id}, decides"
    return DocumentFinding("resolvable", text, paths, declared, assumed=f"{clean_line(high.id, 60)} holds")


def _superseded_in_use(
    documents: Documents, superseded: Mapping[str, tuple[str, ...]], named: Iterable[str]
) -> Iterator[DocumentFinding]:
    """Superseded documents that open beads name."""
    if not superseded:
        return
    for name in named:
        match = documents.find(name)
        if match is None or match.document.id not in superseded:
            continue
        document, others = match.document, [documents.all[each] for each in superseded[match.document.id]]
        by = f"superseded by {', '.join(map(_called, others))}" if others else "superseded"
        yield DocumentFinding(
            "resolvable",
            f"open beads name {_called(document)}, which is {by}",
            (*(other.path for other in others), document.path),
            tuple((document.path, each) for each in document.superseded_by),
            assumed=f"{clean_line(others[0].id, 60)} holds" if others else f"{clean_line(document.id, 60)} still holds",
        )


def _gaps(documents: Documents, named: Iterable[str]) -> Iterator[DocumentFinding]:
    """Names that no document has: dependencies of documents, then documents of open beads."""
    for issue in documents.graph.issues:
        if issue.kind != "missing_dep" or _EXAMPLE.search(issue.path):
            continue
        near = documents.find(issue.id)
        hint = f"; a search finds {near.document.path} {near.words}" if near is not None else ""
        text = f"{issue.path} depends on {clean_line(issue.id, 60)}, an id that no document declares{hint}"
        yield _gap(issue.id, text, (issue.path,))
    for name in named:
        if documents.lacks(name):
            yield _gap(name, f"open beads name {clean_line(name, 60)}, which does not exist", ())


def _gap(name: str, text: str, referring: tuple[str, ...]) -> DocumentFinding:
    return DocumentFinding("gap", text, referring, missing=name, assumed="it adds no requirement")


def _called(document: GraphDocument) -> str:
    return f"{clean_line(document.id, 60)} ({clean_line(document.path, 200)})"
