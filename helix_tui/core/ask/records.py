"""The values of retrieval: documents, spans, definitions, ranked files, trees, places of records. All are frozen and
plain, independent of process and thread.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.ground.text import clean_line

Role = Literal["source", "test", "doc", "example", "config", "data", "vendored", "record"]
"""The role of a file, by its path; ``record`` means a bead, a memory, a run or a commit."""

Kind = Literal["function", "class", "module", "section", "lines"]
"""The kind of a span: a definition's body, code between definitions, a document's section, plain lines."""

UseKind = Literal["import", "call", "mention"]

Result = Literal["sources", "nothing found", "which one?", "answer"]
"""What a reader is told: passages with their places, that there are none, a choice of two, or a model's answer."""

SpanKey = tuple[str, int, int]
"""(file, start, end): two spans with the same key are the same span."""

MAX_COMMIT_FILES = 20
_FILE = re.compile(r"(bead|memory|run|commit|queue):(\S.*)")
_LINES = re.compile(r"(.+):(\d{1,9})(?:-(\d{1,9}))?")
_ATTEMPT = re.compile(r"^(?:Attempt|Review of) (\S+)$")


class Span(Struct, frozen=True):
    """A run of lines of one file, with why it was found."""

    file: str
    start: int
    end: int
    kind: Kind
    header: str
    """Its place: ``Class.method`` in code, ``Guide > Install`` in a document, else empty."""
    text: str
    hash: str
    """First 12 hex digits of SHA-256 over the text: the same lines have the same hash on every machine."""
    score: float = 0.0
    channels: Mapping[str, float] = {}
    """Channel -> that channel's part of the score, after its weight; a channel that is silent is absent."""
    role: Role = "source"

    @property
    def key(self) -> SpanKey:
        """Identifies a span."""
        return (self.file, self.start, self.end)


class RankedFile(Struct, frozen=True):
    """A file with its score and its parts."""

    file: str
    score: float
    channels: Mapping[str, float]
    """Channel -> its part of the score before the prior."""
    role: Role
    prior: float = 1.0
    """What the sum of the channels was multiplied with, for the file's role and the question's kind."""


class Definition(Struct, frozen=True):
    """Where a name is defined."""

    name: str
    kind: str
    """``function``, ``method``, ``class``, ``type``, ``constant``, ``module``, as the language has it."""
    file: str
    start: int
    end: int
    header: str
    """The name with what encloses it: ``Class.method``."""
    role: Role = "source"


class Use(Struct, frozen=True):
    """A line that mentions a name without defining it."""

    name: str
    file: str
    line: int
    text: str
    header: str
    """The definition that the line stands in, empty at the top level."""
    role: Role = "source"
    kind: UseKind = "mention"


class Heading(Struct, frozen=True):
    """A heading of a document and the lines of its section, up to the next one of its level or above."""

    file: str
    level: int
    title: str
    start: int
    end: int
    trail: tuple[str, ...] = ()
    """The headings above it, the outermost first, without itself."""

    @property
    def path(self) -> str:
        """The heading with those above it: ``Guide > Install``."""
        return " > ".join((*self.trail, self.title))


class Document(Struct, frozen=True):
    """One indexed file."""

    file: str
    role: Role
    language: str
    """Name of the language, ``markdown`` or ``text`` where no grammar applies."""
    lines: int
    size: int
    """Bytes."""
    blob: str
    """Git's id of the content."""


class NodeEvidence(Struct, frozen=True):
    """The evidence of a tree node: the ``evidence`` record of the DAG node schema (docs/formats/ask.md §3.1)."""

    type: Literal["doc", "code", "test", "telemetry"]
    path: str
    heading: str = ""
    symbol: str = ""
    content_hash: str = ""
    """``sha256:…`` as recorded; empty where none was."""


class TreeNode(Struct, frozen=True):
    """One node of a tree: the minimum of the DAG node schema, and its place."""

    id: str
    title: str
    summary: str
    tags: tuple[str, ...] = ()
    evidence: tuple[NodeEvidence, ...] = ()
    parent: str = ""
    children: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """(rel, id) of every link, as recorded."""
    node_type: str = "concept"
    fields: Mapping[str, Any] = {}
    """Its recorded fields for reproducibility: inputs, outputs, assumptions, validity, deterministic, tolerance,
    environment, dependencies, predictability (docs/knowledge/dag-node-schema.md).
    """


class Tree(Struct, frozen=True):
    """A tree of the repository: one that it keeps as JSON, or the one derived from its folders."""

    id: str
    label: str
    source: str
    """Path of its JSON; empty for the derived one."""
    root: str
    nodes: Mapping[str, TreeNode]


class Progress(Struct, frozen=True):
    """How far a refresh is."""

    phase: Literal["list", "parse", "history", "done"]
    done: int
    total: int
    seconds: float

    @property
    def files_per_second(self) -> float:
        """Files done in a second so far; 0.0 before the first."""
        return self.done / self.seconds if self.seconds > 0 else 0.0


class Refreshed(Struct, frozen=True):
    """What a refresh did."""

    files: int
    """Files that are searchable now."""
    parsed: int
    """Files whose content was new."""
    skipped: int
    seconds: float
    rebuilt: bool = False
    """The old index was damaged or of another version, and was made anew."""
    notes: tuple[str, ...] = ()
    """What was left out and why, one sentence each."""


def text_hash(text: str) -> str:
    """The hash of a span's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def field_lines(fields: Mapping[str, Any]) -> list[str]:
    """The reproducibility fields of a node, one per line: ``inputs: gap_m [m], from node:tile-gap``."""
    return [f"{name}: {clean_line(_said(value), 300)}" for name, value in fields.items()]


def _said(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(_said, value))
    if not isinstance(value, dict):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if "name" in value:
        unit = f" [{value['unit']}]" if value.get("unit") else ""
        source = f", from {value['source']}" if value.get("source") else ""
        path = f", at {value['path']}" if value.get("path") else ""
        return f"{value['name']}{unit}{source}{path}"
    return ", ".join(f"{name} {_said(each)}" for name, each in value.items() if each not in (None, "", [], {}))


PlaceKind = Literal["bead", "attempt", "memory", "run", "commit", "queue"]


class RecordPlace(Struct, frozen=True):
    """The record of a passage, and where it opens."""

    kind: PlaceKind
    id: str
    """The bead's or attempt's id, the memory's name, the log's file name, the commit."""
    record: str
    """The record's own id: for an attempt, its bead's."""
    section: str
    """The part of the record, as a heading; empty for its beginning."""

    @property
    def words(self) -> str:
        """For display: ``bead ddx-1234, Acceptance``."""
        owner = {"attempt": "bead", "run": "run log"}.get(self.kind, self.kind)
        whole = f"{owner} {self.record}"
        part = self.section if self.kind != "commit" else ""
        return f"{whole}, {part}" if part else whole


def record_place(file: str, header: str = "") -> RecordPlace | None:
    """What a source is, by its file and heading; None where it is a file of the repository."""
    match = _FILE.fullmatch(file)
    if match is None:
        return None
    kind: PlaceKind = match[1]  # type: ignore[assignment]
    trail = header.split(" > ")
    section = trail[1] if len(trail) > 1 else ""
    attempt = _ATTEMPT.match(section) if kind == "bead" else None
    if attempt is not None:
        return RecordPlace("attempt", attempt[1], match[2], section)
    return RecordPlace(kind, match[2], match[2], section)


def item_id(span: Span) -> str:
    """A passage as one word, by which it can be opened again: its file and lines."""
    return f"{span.file}:{span.start}-{span.end}"


def read_item_id(text: str) -> tuple[str, int, int | None]:
    """(file, first line, last line) of an item's id; the whole of it where no lines are named."""
    match = _LINES.fullmatch(text)
    if match is None:
        return text, 1, None
    first = int(match[2])
    return match[1], max(1, first), int(match[3] or first)


def commit_span(sha: str, subject: str, body: str, files: Sequence[str], score: float) -> Span:
    """A commit as a passage: its message, and below it the files that it changed."""
    more = f"\n… {len(files) - MAX_COMMIT_FILES} more" if len(files) > MAX_COMMIT_FILES else ""
    parts = [subject, body.strip(), "\n".join(files[:MAX_COMMIT_FILES]) + more]
    text = "\n\n".join(part for part in parts if part)
    lines = text.count("\n") + 1
    return Span(
        f"commit:{sha[:12]}", 1, lines, "section", subject, text, text_hash(text), score, {"commits": score}, "record"
    )
