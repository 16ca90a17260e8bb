"""Answer questions about documents, from ddx if it is installed, else what their files say (`builder`).

A name that no document declares is searched for in ids, file names, titles and links; `DocumentMatch.how` says where it
was found.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.graph import reached
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.client import Ddx, DdxError
from helix_tui.core.ddx.documents.graph import (
    BUCKETS,
    DocumentGraph,
    DocumentsUnreadable,
    GraphDocument,
    GraphIssue,
    StaleDocument,
    slug_of,
)
from helix_tui.core.ddx.git_state import git_records
from helix_tui.core.ground.files import Stamps, below, settled, status_of
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, format_instant, parse_instant

Source = Literal["ddx", "files"]
Found = Literal["id", "path", "name", "title", "link"]

_OWN = "ids, titles and links read from the documents; what is stale only ddx knows"
OWN_READER = f"ddx was not asked: {_OWN}"
TIMEOUT_S = 60.0
MAX_AGE_S = 600.0
"""Default time for which a reading is valid."""
RECENT_S = 10.0
"""Time until a missing document is searched for again."""

_GIT_TIMEOUT_S = 20.0
_MARKDOWN = ("--", ":(icase)*.md")
"""The files that git compares with its index."""
_WORD = re.compile(r"[^\W_]+")


class DocumentMatch(Struct, frozen=True):
    """A document that a name may mean, and how it was found."""

    document: GraphDocument
    how: Found

    @property
    def words(self) -> str:
        """How it was found, for people."""
        return {
            "id": "by its id",
            "path": "by its path",
            "name": "by its file name",
            "title": "by its title",
            "link": "by a link in its text",
        }[self.how]


class DocumentChange(Struct, frozen=True):
    """A document that changed after beads under it were written, or after others were reviewed against it."""

    document: GraphDocument
    when: int | None
    """When it was last committed, in nanoseconds; None if no bead is older than that."""
    uncommitted: bool
    """Whether it has uncommitted changes."""
    dependents: tuple[str, ...]
    """Every document that depends on it, directly first."""
    reviewed: tuple[str, ...]
    """Dependents that were reviewed against an older version of it."""
    beads: tuple[str, ...]
    """Older open beads governed by it or its dependents."""


class Documents(Struct, frozen=True):
    """The document graph of one project from one source."""

    source: Source
    note: str
    """Why ddx did not answer; empty if it did."""
    graph: DocumentGraph
    stale: tuple[StaleDocument, ...] = ()
    """Documents that ddx calls stale; none where it was not asked."""

    @property
    def all(self) -> Mapping[str, GraphDocument]:
        """Every document by its id."""
        return self.graph.documents

    def find(self, name: str) -> DocumentMatch | None:
        """The document that a bead's ``spec-id`` or a person means; None if nothing is similar."""
        return next(iter(self.search(name, most=1, loose=False)), None)

    def search(self, text: str, *, most: int = 20, loose: bool = True) -> tuple[DocumentMatch, ...]:
        """Documents that a text may mean, best first: by id, path, file name, title, then by links.

        Args:
            loose: whether some words of a title suffice, and broken links count.
        """
        found: dict[str, DocumentMatch] = {}
        for document, how in self._likely(text.strip(), loose=loose):
            if document.path not in found:
                found[document.path] = DocumentMatch(document, how)
                if len(found) == most:
                    break
        return tuple(found.values())

    def lacks(self, spec_id: str) -> bool:
        """Whether a bead names a missing document. If no document has an id, nothing is missing."""
        if not spec_id or not (self.all or any(each.id != each.path for each in self.graph.undeclared)):
            return False
        # a bead may name a file, with a section (#) or a line (:)
        path = spec_id.partition("#")[0].partition(":")[0]
        if status_of(below(self.graph.root, path)) is not None:
            return False
        return self.find(spec_id) is None

    def _likely(self, text: str, *, loose: bool) -> Iterator[tuple[GraphDocument, Found]]:
        if not text:
            return
        plain = text.partition("#")[0]
        path, slug, lower = plain.partition(":")[0].removeprefix("./"), slug_of(plain), plain.lower()
        documents = (*self.all.values(), *self.graph.undeclared)
        yield from ((each, "id") for each in documents if plain == each.id)
        yield from ((each, "id") for each in documents if slug and slug == slug_of(each.id))
        yield from ((each, "path") for each in documents if path == each.path)
        for document in documents:
            stem = Path(document.path).stem.lower()
            if stem == lower or stem.startswith((f"{lower}-", f"{lower}.")):
                yield document, "name"
        words = frozenset(_WORD.findall(lower))
        for document in documents:
            title = frozenset(_WORD.findall(document.title.lower()))
            if words and (words <= title if loose else slug and slug == slug_of(document.title)):
                yield document, "title"
        if loose:
            yield from ((each, "link") for each in documents if any(lower in link.lower() for link in each.unresolved))

    def downstream(self, document_id: str) -> tuple[str, ...]:
        """Every document that depends on one, direct ones first, each once."""

        def dependents(name: str) -> tuple[str, ...]:
            return self.all[name].dependents if name in self.all else ()

        return tuple(each for each in reached([document_id], dependents) if each != document_id)

    def beads_under(self, beads: Iterable[Bead]) -> Mapping[str, tuple[str, ...]]:
        """Open beads by the id of the document that governs them, in tracker order."""
        # many beads name the same document, and a search scans all documents
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

    def brief(self, name: str, beads: Iterable[Bead]) -> list[str]:
        """The dependencies, dependents and beads of a document, as lines for a person or agent about to change it.
        Empty if the name means no document.
        """
        match = self.find(name)
        if match is None:
            return []
        document, under = match.document, self.beads_under(beads)
        below = self.downstream(document.id)
        held = [bead_id for each in (document.id, *below) for bead_id in under.get(each, ())]
        said = "" if match.how == "id" else f" (found {match.words})"
        lines = [f"Document {clean_line(document.id, 80)}, {clean_line(document.path, 200)}{said}"]
        execution, metric = document.execution, document.metric
        rows = {
            "runs": (execution.describe(),) if execution is not None else (),
            "metric": (metric.describe(),) if metric is not None else (),
            "depends on": document.depends_on,
            "documents that depend on it, directly or through others": below,
            "open beads under these": held,
            "broken links in its text": document.unresolved,
        }
        lines += [f"- {what}: {clean_line(', '.join(ids), 2000)}" for what, ids in rows.items() if ids]
        stale = next((each for each in self.stale if each.id == document.id), None)
        if stale is not None:
            lines.append(f"- stale: {clean_line('; '.join(stale.reasons), 1000)}")
        return lines

    def changes(self, project: Project, beads: Mapping[str, Bead]) -> tuple[DocumentChange, ...]:
        """Documents that changed since beads under them were written or others were reviewed against them.

        Runs git twice; if git fails, only reviews are used.
        """
        under = self.beads_under(beads.values())
        reviewed: dict[str, list[str]] = {}
        for entry in self.stale:
            for reason in entry.reasons:
                if reason.startswith("dependency changed: "):
                    reviewed.setdefault(reason.removeprefix("dependency changed: "), []).append(entry.id)
        written = [at for ids in under.values() for bead_id in ids if (at := _written(beads[bead_id])) is not None]
        times = _changed_paths(project.root, min(written)) if written else {}
        found = [
            DocumentChange(
                document,
                times.get(document.path),
                document.path in times and times[document.path] is None,
                below,
                tuple(reviewed.get(document.id, ())),
                held,
            )
            for document in (*self.all.values(), *self.graph.undeclared)
            if document.path in times or document.id in reviewed
            # loops over one value, to name it for the row
            for below in (self.downstream(document.id),)
            for held in (_before(document, times, [document.id, *below], under, beads),)
            if held or document.id in reviewed
        ]
        return tuple(sorted(found, key=lambda change: (not change.beads, change.document.id)))


class GoverningDocuments:
    """The documents of one project, read on first use, and again if a requested one is missing.

    They are read again only if the stamp of a file changed; otherwise the same object is returned.

    Args:
        ddx: the ddx to ask; None for the built-in reader.
        max_age_s: how long a reading is valid.
    """

    def __init__(self, project: Project, ddx: Ddx | None = None, *, max_age_s: float = MAX_AGE_S) -> None:
        self._project = project
        self._ddx = ddx
        self._max_age_s = max_age_s
        self._read_at = 0.0
        self._stamps: Stamps | None = None
        self._known: Documents | None = None

    def get(self) -> Documents:
        """The current documents; none if the graph's configuration is unreadable."""
        if self._known is None or time.monotonic() - self._read_at > self._max_age_s:
            self._read()
        assert self._known is not None
        return self._known

    def lacks(self, spec_id: str) -> bool:
        """Whether a bead names a document that does not exist."""
        if not spec_id or not self.get().lacks(spec_id):
            return False
        if time.monotonic() - self._read_at > RECENT_S:
            self._read()
        return self.get().lacks(spec_id)

    def _read(self) -> None:
        from helix_tui.core.ddx.documents.builder import read_stamps  # as in `read_documents`

        try:
            stamps = read_stamps(self._project.root, self._project.ddx_dir)
            asked = self._known is not None and (self._ddx is None or self._known.source == "ddx")
            if not asked or stamps != self._stamps:
                # stamps first, then documents: changes in between are read next time
                sure = all(map(settled, stamps.values()))  # otherwise a change may still leave the same stamp
                self._known = read_documents(self._project, self._ddx)
                self._stamps = stamps if sure else None
        except DocumentsUnreadable as error:
            self._known = Documents("files", str(error), DocumentGraph(self._project.root, {}))
            self._stamps = None
        self._read_at = time.monotonic()


def read_documents(project: Project, ddx: Ddx | None = None) -> Documents:
    """The documents of a project.

    Args:
        ddx: the ddx to ask; the built-in reader answers if it is None or fails.

    Raises:
        DocumentsUnreadable: there are too many files.
    """
    from helix_tui.core.ddx.documents.builder import read_graph  # YAML is imported only where documents are needed

    ours = read_graph(project.root)
    if ddx is None:
        return Documents("files", OWN_READER, ours)
    try:
        theirs = _Answers(ddx.alone)
    except DdxError as error:
        return Documents("files", f"ddx does not answer ({error.message}): {_OWN}", ours)
    merged = {entry["id"]: _merged(ours.documents.get(entry["id"]), entry) for entry in theirs.graph}
    return Documents("ddx", "", replace(ours, documents=merged, issues=theirs.issues), theirs.stale)


class _Answers:
    """A ddx's answers about the documents.

    Raises:
        DdxError: a verb fails, or answers with something else.
    """

    def __init__(self, ddx: Ddx) -> None:
        self.graph = [entry for entry in _rows(ddx.json("doc", "graph", "--json", timeout=TIMEOUT_S)) if _whole(entry)]
        self.issues = tuple(_issue(entry) for entry in _rows(_audit(ddx)))
        self.stale = tuple(_stale(ddx.json("doc", "stale", "--json", timeout=TIMEOUT_S)))


def _audit(ddx: Ddx) -> Any:
    """The answer of ``ddx doc audit``, which exits with 1 if it found something."""
    finished = ddx.attempt("doc", "audit", "--json", timeout=TIMEOUT_S)
    try:
        return msgspec.json.decode(finished.stdout)
    except (msgspec.DecodeError, RecursionError):
        # run again for an error with a reason and advice
        return ddx.json("doc", "audit", "--json", timeout=TIMEOUT_S)


def _rows(answer: Any) -> list[dict[str, Any]]:
    return [entry for entry in answer if isinstance(entry, dict)] if isinstance(answer, list) else []


def _whole(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("id"), str) and isinstance(entry.get("path"), str)


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _merged(own: GraphDocument | None, entry: Mapping[str, Any]) -> GraphDocument:
    document = own or GraphDocument(entry["id"], entry["path"])
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
    """Stale documents from either form of the answer: one list (releases up to May), or one per bucket."""
    parts = answer if isinstance(answer, dict) else {BUCKETS[0]: answer}
    found = [
        StaleDocument(entry["id"], entry["path"], _texts(entry.get("reasons")), bucket)
        for bucket in BUCKETS
        for entry in _rows(parts.get(bucket))
        if _whole(entry)
    ]
    yield from sorted(found, key=lambda each: each.id)


def _written(bead: Bead) -> int | None:
    """When a bead was last written, in nanoseconds."""
    return parse_instant(bead.updated_at) or parse_instant(bead.created_at)


def _before(
    document: GraphDocument,
    times: Mapping[str, int | None],
    ids: Iterable[str],
    under: Mapping[str, tuple[str, ...]],
    beads: Mapping[str, Bead],
) -> tuple[str, ...]:
    """Beads governed by some documents and written before one of them changed."""
    if document.path not in times:
        return ()
    when = times[document.path]
    held = (bead_id for each in ids for bead_id in under.get(each, ()))
    return tuple(each for each in held if when is None or (at := _written(beads[each])) is None or at < when)


def _changed_paths(root: Path, since: int) -> dict[str, int | None]:
    """Markdown files changed since an instant: when last committed, or None if uncommitted."""
    marks = ("--format=%x00%ct", "--name-only", "--relative", f"--since={format_instant(since)}", "-z", *_MARKDOWN)
    log = git_records(root, ("log", *marks), _GIT_TIMEOUT_S, cap=16 << 20) or ""
    found: dict[str, int | None] = {}
    when = 0
    for part in log.split("\0"):
        word = part.strip("\n")
        if word.isdecimal():
            when = int(word) * NS
        elif word.lower().endswith(".md") and when >= since:  # git reads an instant in the future as any time
            found.setdefault(word, when)
    # with that setting `git diff` writes the index in spite of GIT_OPTIONAL_LOCKS; without it, files that were only
    # touched are listed too, with no line added or deleted
    diff = ("-c", "diff.autoRefreshIndex=false", "diff", "--numstat", "--no-renames", "--relative", "-z", "HEAD")
    for part in (git_records(root, (*diff, *_MARKDOWN), _GIT_TIMEOUT_S) or "").split("\0"):
        added, _, rest = part.partition("\t")
        deleted, _, word = rest.partition("\t")
        if word.lower().endswith(".md") and (added, deleted) != ("0", "0"):
            found[word] = None
    return found
