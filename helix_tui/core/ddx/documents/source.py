"""Documents as the rest of the program asks for them: by ddx where there is one, else by our own reader.

What a name that no document declares might mean is found by a search over ids, file names, titles and links;
whoever shows that says so (`Match.how`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.client import Ddx, DdxError
from helix_tui.core.ddx.documents.builder import read_graph, slug_of
from helix_tui.core.ddx.documents.graph import BUCKETS, Document, DocumentGraph, GraphIssue, StaleDocument
from helix_tui.core.ground.process import run
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_instant, parse_instant

Source = Literal["ddx", "files"]
Found = Literal["id", "path", "name", "title", "link"]

OWN_READER = "no ddx is asked: read from the documents' own frontmatter"
TIMEOUT_S = 60.0
_GIT_TIMEOUT_S = 20.0
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Match:
    """A document that a name may mean, and by what it was found."""

    document: Document
    how: Found

    @property
    def words(self) -> str:
        """How it was found, for people."""
        return {
            "id": "by its id",
            "path": "by its path",
            "name": "by its file name (no document declares that id)",
            "title": "by its title (no document declares that id)",
            "link": "by a link in another document (no document declares that id)",
        }[self.how]


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A document that changed after beads under it were written, or after others were reviewed against it."""

    document: Document
    when: int | None
    """When it was last committed, in nanoseconds; None while the change is not committed."""
    dependents: tuple[str, ...]
    """Every document that depends on it, directly first."""
    reviewed: tuple[str, ...]
    """Those of them that were reviewed against an older text of it."""
    beads: tuple[str, ...]
    """Open beads under it or under its dependents that were written before."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The document graph of one project, as one source gave it."""

    source: Source
    note: str
    """Why ddx did not answer; empty where it did."""
    graph: DocumentGraph
    stale: tuple[StaleDocument, ...]
    differences: tuple[str, ...] = ()
    """Where ddx and our own reader disagree."""

    @property
    def all(self) -> Mapping[str, Document]:
        """Every document by its id."""
        return self.graph.documents

    def find(self, name: str) -> Match | None:
        """The document that a bead's ``spec-id`` or a person means; None where none is like it."""
        return next(iter(self.search(name, most=1, loose=False)), None)

    def search(self, text: str, *, most: int = 20, loose: bool = True) -> tuple[Match, ...]:
        """Documents that a text may mean, nearest first: by id, path, file name, title, then by links.

        Args:
            loose: whether some words of a title are enough, and links to nothing count.
        """
        found: dict[str, Match] = {}
        for document_id, how in self._likely(text.strip(), loose=loose):
            if document_id not in found:
                found[document_id] = Match(self.all[document_id], how)
                if len(found) == most:
                    break
        return tuple(found.values())

    def _likely(self, text: str, *, loose: bool) -> Iterator[tuple[str, Found]]:
        if not text:
            return
        plain = text.partition("#")[0]
        slug, lower = slug_of(plain), plain.lower()
        for document in self.all.values():
            if plain == document.id or slug == slug_of(document.id):
                yield document.id, "id"
        for document in self.all.values():
            if plain.partition(":")[0].removeprefix("./") == document.path:
                yield document.id, "path"
        for document in self.all.values():
            stem = Path(document.path).stem.lower()
            if stem == lower or stem.startswith((f"{lower}-", f"{lower}.")):
                yield document.id, "name"
        words = frozenset(_WORD.findall(lower))
        for document in self.all.values():
            title = frozenset(_WORD.findall(document.title.lower()))
            if words and (words <= title if loose else slug == slug_of(document.title)):
                yield document.id, "title"
        if loose:
            for document in self.all.values():
                if any(lower in link.lower() for link in document.unresolved):
                    yield document.id, "link"

    def downstream(self, document_id: str) -> tuple[str, ...]:
        """Every document that depends on one, directly first, each once."""
        return self._reach(document_id, lambda document: document.dependents)

    def upstream(self, document_id: str) -> tuple[str, ...]:
        """Every document that one depends on, directly first, each once; ids of missing ones too."""
        return self._reach(document_id, lambda document: document.depends_on)

    def _reach(self, document_id: str, edges: Any) -> tuple[str, ...]:
        found: dict[str, None] = {}
        ahead = deque([document_id])
        while ahead:
            document = self.all.get(ahead.popleft())
            for other in edges(document) if document is not None else ():
                if other not in found and other != document_id:
                    found[other] = None
                    ahead.append(other)
        return tuple(found)

    def beads_under(self, beads: Iterable[Bead]) -> Mapping[str, tuple[str, ...]]:
        """Open beads by the id of the document that governs them, in tracker order."""
        known: dict[str, str] = {}
        found: dict[str, list[str]] = {}
        for bead in beads:
            name = bead.spec_id.strip()
            if not name or bead.status in TERMINAL:
                continue
            if name not in known:
                match = self.find(name)
                known[name] = match.document.id if match is not None else ""
            if known[name]:
                found.setdefault(known[name], []).append(bead.id)
        return {document_id: tuple(ids) for document_id, ids in found.items()}

    def changes(self, project: Project, beads: Mapping[str, Bead]) -> tuple[DocumentChange, ...]:
        """Documents that changed since beads under them were written or others were reviewed against them.

        Runs git twice; where git does not answer, only reviews speak.
        """
        under = self.beads_under(beads.values())
        reviewed: dict[str, list[str]] = {}
        for entry in self.stale:
            for reason in entry.reasons:
                if reason.startswith("dependency changed: "):
                    reviewed.setdefault(reason.removeprefix("dependency changed: "), []).append(entry.id)
        written = [at for ids in under.values() for each in ids if (at := _written(beads[each])) is not None]
        times = _changed_paths(project.root, min(written)) if written else {}
        found = [
            DocumentChange(document, times.get(document.path), below, tuple(reviewed.get(document.id, ())), held)
            for document in self.all.values()
            if document.path in times or document.id in reviewed
            for below in (self.downstream(document.id),)
            for held in (_before(document, times, [document.id, *below], under, beads),)
            if held or document.id in reviewed
        ]
        return tuple(sorted(found, key=lambda change: (not change.beads, change.document.id)))


def read_documents(project: Project, ddx: Ddx | None = None) -> Documents:
    """The documents of a project.

    Args:
        ddx: who is asked; our own reader answers where it is None or has no answer.

    Raises:
        DocumentsUnreadable: a file under ``.ddx/graphs`` is broken, or there are too many files.
    """
    ours = read_graph(project.root, project.ddx_dir)
    if ddx is None:
        return Documents("files", OWN_READER, ours, ours.stale())
    try:
        theirs = _Answers(ddx)
    except DdxError as error:
        return Documents("files", f"ddx does not answer ({error.message}): {OWN_READER}", ours, ours.stale())
    merged = {entry["id"]: _merged(ours.documents.get(entry["id"]), entry) for entry in theirs.graph}
    graph = replace(ours, documents=merged, issues=theirs.issues)
    return Documents("ddx", "", graph, theirs.stale, tuple(_differences(ours, theirs)))


class _Answers:
    """What a ddx says of the documents.

    Raises:
        DdxError: a verb fails, or answers with something else.
    """

    def __init__(self, ddx: Ddx) -> None:
        self.graph = [entry for entry in _rows(ddx.json("doc", "graph", "--json", timeout=TIMEOUT_S)) if _whole(entry)]
        self.issues = tuple(_issue(entry) for entry in _rows(_audit(ddx)))
        self.stale = tuple(_stale(ddx.json("doc", "stale", "--json", timeout=TIMEOUT_S)))


def _audit(ddx: Ddx) -> Any:
    """Its answer; it ends with 1 where it found something, and so an exit code says nothing."""
    finished = ddx.attempt("doc", "audit", "--json", timeout=TIMEOUT_S)
    try:
        return msgspec.json.decode(finished.stdout)
    except msgspec.DecodeError:
        return ddx.json("doc", "audit", "--json", timeout=TIMEOUT_S)


def _rows(answer: Any) -> list[dict[str, Any]]:
    return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []


def _whole(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("id"), str) and isinstance(entry.get("path"), str)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _merged(own: Document | None, entry: Mapping[str, Any]) -> Document:
    document = own or Document(entry["id"], entry["path"])
    return replace(
        document,
        path=entry["path"],
        title=str(entry.get("title") or ""),
        depends_on=_texts(entry.get("depends_on")),
        dependents=_texts(entry.get("dependents")),
    )


def _issue(entry: Mapping[str, Any]) -> GraphIssue:
    names = ("kind", "message", "path", "id", "relatedPath")
    return GraphIssue(*(str(entry.get(name) or "") for name in names))


def _stale(answer: Any) -> Iterator[StaleDocument]:
    """Stale documents of either form of the answer: one list, or one a bucket."""
    parts = answer if isinstance(answer, dict) else {BUCKETS[0]: answer}
    found = [
        StaleDocument(entry["id"], entry["path"], _texts(entry.get("reasons")), bucket)
        for bucket in BUCKETS
        for entry in _rows(parts.get(bucket))
        if _whole(entry)
    ]
    yield from sorted(found, key=lambda each: each.id)


def _differences(ours: DocumentGraph, theirs: _Answers) -> Iterator[str]:
    """What our own reader would have answered otherwise: empty as long as its rule is ddx's."""
    mine = {entry["id"]: entry for entry in ours.graph_json()}
    said = {entry["id"]: entry for entry in theirs.graph}
    for name in sorted(mine.keys() ^ said.keys()):
        yield f"{clean_line(name, 80)} is a document {'here' if name in mine else 'for ddx'} alone"
    for name in sorted(mine.keys() & said.keys()):
        if mine[name] != said[name]:
            yield f"{clean_line(name, 80)} has other edges or another title for ddx"
    if {each.id: each.reasons for each in ours.stale()} != {each.id: each.reasons for each in theirs.stale}:
        yield "other documents are stale for ddx"
    if ours.issues != theirs.issues:
        yield f"{len(ours.issues)} issues here, {len(theirs.issues)} for ddx"


def _written(bead: Bead) -> int | None:
    """When a bead was last written, in nanoseconds."""
    return parse_instant(bead.updated_at) or parse_instant(bead.created_at)


def _before(
    document: Document,
    times: Mapping[str, int | None],
    ids: Iterable[str],
    under: Mapping[str, tuple[str, ...]],
    beads: Mapping[str, Bead],
) -> tuple[str, ...]:
    """Beads under some documents that were written before one of them changed."""
    if document.path not in times:
        return tuple(bead_id for each in ids for bead_id in under.get(each, ()))
    when = times[document.path]
    held = (bead_id for each in ids for bead_id in under.get(each, ()))
    return tuple(each for each in held if when is None or (at := _written(beads[each])) is None or at < when)


def _changed_paths(root: Path, since: int) -> dict[str, int | None]:
    """Markdown files that changed since an instant: when last committed, None where not committed."""
    marks = ("--format=%x00%ct", "--name-only", "--relative", f"--since={format_instant(since)}", "-z", "--", ".")
    log = run(("git", "log", *marks), cwd=root, timeout=_GIT_TIMEOUT_S, cap=16 << 20)
    found: dict[str, int | None] = {}
    when = 0
    for part in log.out.split("\0") if log.rc == 0 else ():
        word = part.strip("\n")
        if word.isdecimal():
            when = int(word) * NS
        elif word.lower().endswith(".md"):
            found.setdefault(word, when)
    open_ = run(("git", "diff", "--name-only", "--relative", "-z", "HEAD", "--", "."), cwd=root, timeout=_GIT_TIMEOUT_S)
    for word in open_.out.split("\0") if open_.rc == 0 else ():
        if word.lower().endswith(".md"):
            found[word] = None
    return found
