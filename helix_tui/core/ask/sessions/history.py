"""The history of runs, one JSON file each in ``.helix/ask/history``; and one question's view of the index.

Runs are listed newest first and read one by one. `IndexLibrary` looks up what one question needs, each item once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.corpus.listing import role_of
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.records import (
    Definition,
    Heading,
    Kind,
    RankedFile,
    Records,
    Role,
    Span,
    Tree,
    Use,
    commit_span,
    text_hash,
)
from helix_tui.core.ask.retrieval.question import terms_in
from helix_tui.core.ask.retrieval.subject import may_have
from helix_tui.core.ask.sessions.envelope import result_of
from helix_tui.core.ground.files import names_in, read_bytes
from helix_tui.core.ground.records import decode_json, encode_json
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant
from helix_tui.core.ground.writes import remove, replace_file

MOST_RUNS = 200
MAX_FILE = 8 << 20

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d{3,})?-[0-9a-f]{8}(?:-\d+)?\.json")
"""Second, number within the second, hash; runs stored by earlier versions have no number."""


class RunSummary(Struct, frozen=True):
    """A past run in one line."""

    id: str
    """The file's name without its ending; newer ids sort later."""
    asked_at: int
    """Instant in nanoseconds; 0 if not recorded."""
    question: str
    result: str
    """The result, in words."""
    seconds: float


class _Head(Struct):
    """The fields of a file that the list needs; others are skipped."""

    question: str = ""
    tier: str = ""
    tier_selected: str = ""
    clarify: dict[str, Any] = {}
    asked_at_ns: int = 0
    timings_ms: dict[str, float] = {}


class AskHistory:
    """The past runs of one project."""

    def __init__(self, helix_dir: Path) -> None:
        self.folder = helix_dir / "ask" / "history"
        self._heads: dict[str, RunSummary] = {}
        """By id, for the stored runs: at most `MOST_RUNS`, and those added by others."""

    def save(self, document: Mapping[str, Any], asked_at: int) -> str:
        """Save a run and return its id; the oldest are removed if there are too many.

        Raises:
            OSError: the folder cannot be written.
        """
        data = encode_json({**document, "asked_at_ns": asked_at})
        stamp = re.sub(r"[-:]|\.\d+", "", format_instant(asked_at))
        # with only the hash, two runs of one second would be listed in any order
        number = sum(name.startswith(stamp) for name in self._names()) + 1
        ident = f"{stamp}-{number:03}-{hashlib.sha256(data).hexdigest()[:8]}"
        # atomically, as another session may list the folder meanwhile
        replace_file(self.folder / f"{ident}.json", data)
        for name in self._names()[MOST_RUNS:]:
            remove(self.folder / name)
        return ident

    def list(self) -> Sequence[RunSummary]:
        """Every run that can be read, newest first."""
        found, names = [], self._names()
        for gone in self._heads.keys() - {name.removesuffix(".json") for name in names}:
            del self._heads[gone]
        for name in names:
            ident = name.removesuffix(".json")
            if ident not in self._heads:
                head = self._head(name)
                if head is None:
                    continue
                self._heads[ident] = head
            found.append(self._heads[ident])
        return found

    def load(self, ident: str) -> dict[str, Any] | None:
        """A whole run; None if there is none with that id, or it cannot be read."""
        name = f"{ident}.json"
        # an id comes from a command line or an agent: it must not lead out of the folder
        document = decode_json(self._read(name)) if _NAME.fullmatch(name) else None
        return document if isinstance(document, dict) else None

    def _names(self) -> Sequence[str]:
        return sorted(filter(_NAME.fullmatch, names_in(self.folder)), reverse=True)

    def _head(self, name: str) -> RunSummary | None:
        try:
            head = msgspec.json.decode(self._read(name), type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return RunSummary(
            name.removesuffix(".json"),
            head.asked_at_ns,
            clean_line(head.question, 400),
            result_of({"tier": head.tier, "tier_selected": head.tier_selected, "clarify": head.clarify}),
            head.timings_ms.get("total", 0.0) / 1_000,
        )

    def _read(self, name: str) -> bytes:
        return read_bytes(self.folder / name, MAX_FILE) or b""


DOC_FILES = 24
"""Maximum documents whose sections and headings are searched for one query."""
SPANS_OF_A_FILE = 3
MOST_SPAN_LINES = 120
MOST_OPENING = 60
"""Maximum lines of a README's introduction."""
_README = re.compile(r"(?:^|/)readme[^/]*$", re.IGNORECASE)
_KINDS: dict[str, Kind] = {"class": "class", "type": "class", "function": "function", "method": "function"}


class FoundSpans(Struct, frozen=True):
    """The results of one search."""

    files: tuple[RankedFile, ...]
    spans: tuple[Span, ...]


class IndexLibrary:
    """One question's view of an index; create another one for the next question."""

    def __init__(self, index: RepositoryIndex, records: Records | None = None) -> None:
        self._index = index
        self._records = records
        self._fresh = False
        self._asked = ""
        """The question itself, which is searched first."""
        self._ranked: dict[str, list[RankedFile]] = {}
        self._headings: dict[str, list[Heading]] = {}
        self._trees: list[Tree] | None = None

    @property
    def revision(self) -> str:
        """The commit that is searched; empty for the work tree."""
        return self._index.commit or ""

    @property
    def empty(self) -> str:
        """Why the repository cannot be searched, in a sentence; else ""."""
        return self._index.empty_reason()

    @property
    def records(self) -> Records | None:
        """The records of the work on the repository, read on first use, or None."""
        if self._records is not None and not self._fresh:
            self._fresh = True
            # read on first use, once per question: most questions need none
            self._records.refresh(self._index.past())
        return self._records

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]:
        """Lines of a file; empty if it is not searched."""
        return self._index.lines(file, start, end)

    def commit(self, sha: str) -> list[Span]:
        """The known commit with a hash, or with a hash that starts so, as a whole; empty if there is none."""
        known = [one.sha for one in self._index.past() if sha and one.sha.startswith(sha)]
        return self.commits_of(known[:1])

    def origins(self, file: str, first: int, last: int) -> Sequence[str]:
        """The commit that each of some lines comes from; empty if unknown."""
        return self._index.origins(file, first, last)

    def commits_of(self, shas: Sequence[str]) -> list[Span]:
        """Some commits, each as a whole, in the given order."""
        git = self._index.source.git
        known = {one.sha for one in self._index.past()}
        asked = [sha for sha in shas if sha in known]
        if git is None or not asked:
            return []
        return [commit_span(one.sha, one.subject, one.body, one.files, 1.0) for one in git.commits(asked)]

    def commits(self, text: str, most: int) -> list[Span]:
        """The commits with messages most similar to a text, each as a whole, best first, without merges."""
        found = self._index.commits(text, most)
        git = self._index.source.git
        if git is None or not found:
            return []
        best = found[0].score
        bodies = {one.sha: one for one in git.commits([one.sha for one in found])}
        whole = [(bodies[one.sha], one.score / best) for one in found if one.sha in bodies]
        return [commit_span(one.sha, one.subject, one.body, one.files, score) for one, score in whole]

    def search(self, text: str, *, spans: int = 60, docs_only: bool = False, per_file: int = 0) -> FoundSpans:
        """Files and spans for a text, through every channel; at most ``per_file`` spans of a file, 0: the default."""
        # the encoder is used only for the first search: it may take a second, and there are many generated queries
        self._asked = self._asked or text
        ranked, again = self._rank(text), self._is_asked(text)
        if not docs_only:
            found = self._index.search(text, spans, per_file=per_file or SPANS_OF_A_FILE, rerank=again)
            return FoundSpans(tuple(ranked), tuple(map(self._whole, found)))
        docs = self._docs(text)
        found = self._index.search(text, spans, per_file=per_file or 2, files=docs, rerank=again) if docs else []
        return FoundSpans(tuple(one for one in ranked if one.role == "doc"), tuple(map(self._whole, found)))

    def _whole(self, span: Span) -> Span:
        """A document's span, extended to the start of a fence that it begins in, so that it is not taken for prose."""
        if span.role != "doc" or span.start == 1:
            return span
        before = self._index.lines(span.file, 1, span.start - 1)
        fences = [number for number, line in enumerate(before, 1) if line.lstrip().startswith(("```", "~~~"))]
        # no fence is open here, or it was opened too far above
        if len(fences) % 2 == 0 or span.start - fences[-1] > MOST_SPAN_LINES:
            return span
        text = "\n".join([*before[fences[-1] - 1 :], span.text])
        return replace(span, start=fences[-1], text=text, hash=text_hash(text))

    def definitions(self, name: str, *, any_case: bool = False) -> Sequence[Definition]:
        """Where an identifier is defined; for a dotted one, its last part inside the one before."""
        owner, _, last = name.replace("::", ".").rpartition(".")
        found = self._index.definitions(last, any_case=any_case)
        owners = owner.rpartition(".")[2]
        within = [one for one in found if owners and owners in (*one.header.split("."), _module(one.file))]
        # `a.b` has no definition if nothing called b is inside a
        return within or (found if not owner else [])

    def definitions_in(self, file: str) -> Sequence[Definition]:
        """The definitions of a file in order of line."""
        return self._index.definitions_in(file)

    def uses(self, name: str, *, most: int = 50, role: Role | None = None) -> Sequence[Use]:
        """Lines that mention an identifier without defining it; with a role, in its files only."""
        return self._index.uses(name.replace("::", ".").rpartition(".")[2], most, role)

    def headings(self, terms: Sequence[str]) -> Sequence[Heading]:
        """Headings with any of some stems, in the documents most relevant to the question.

        If none of these has any, the documents most relevant to the stems are searched too.
        """
        if not terms:
            return []
        wanted, said, may = frozenset(terms), " ".join(terms), may_have(terms)
        texts = dict.fromkeys((next(iter(self._ranked), said), said))
        for text in texts:
            found = [
                one
                for file in self._docs(text)
                for one in self._headings_of(file)
                if may.search(one.title) and not wanted.isdisjoint(terms_in(one.title))
            ]
            if found:
                return found
        return []

    def trees(self) -> Sequence[Tree]:
        """The trees stored in the repository."""
        if self._trees is None:
            self._trees = self._index.trees()
        return self._trees

    def opening(self) -> Span | None:
        """The beginning of the repository's README, the one nearest its root; None if it has none."""
        files = [one.file for one in self._index.documents() if _README.search(one.file) and one.role == "doc"]
        first = min(files, key=lambda file: (file.count("/"), file), default=None)
        return None if first is None else self.span_at(first, 1, MOST_OPENING)

    def span_at(self, file: str, start: int, end: int) -> Span | None:
        """Some lines of a file as a span; None if the file has no such lines."""
        lines = self._index.lines(file, start, min(end, start + MOST_SPAN_LINES - 1))
        if not lines:
            return None
        end = start + len(lines) - 1
        text = "\n".join(lines)
        kind, header = self._place(file, start, end)
        return Span(file, start, end, kind, header, text, text_hash(text), role=role_of(file))

    def _place(self, file: str, start: int, end: int) -> tuple[Kind, str]:
        """The kind of the lines, and the definition or section that contains them."""
        definitions = self._index.definitions_in(file)
        middle = (start + end) // 2
        around = [one for one in definitions if one.start <= start and end <= one.end]
        around = around or [one for one in definitions if one.start == start or one.start <= middle <= one.end]
        if around:
            inner = max(around, key=lambda one: (one.start, -one.end))
            exact = inner.start == start
            return (_KINDS.get(inner.kind, "lines") if exact else "lines"), inner.header
        sections = [one for one in self._headings_of(file) if one.start <= start <= one.end]
        if sections:
            return "section", max(sections, key=lambda one: (one.start, one.level)).path
        return "lines", ""

    def _headings_of(self, file: str) -> list[Heading]:
        if file not in self._headings:
            self._headings[file] = self._index.headings(file)
        return self._headings[file]

    def share(self, term: str) -> float:
        """The share of all files that contain a stem."""
        return self._index.share(term)

    def _rank(self, text: str) -> list[RankedFile]:
        if text not in self._ranked:
            self._ranked[text] = self._index.rank_files(text, rerank=self._is_asked(text))
        return self._ranked[text]

    def _is_asked(self, text: str) -> bool:
        """Whether a text is the question itself, which comes first, and not a query generated by the search."""
        return text == self._asked

    def _docs(self, text: str) -> list[str]:
        return [one.file for one in self._rank(text) if one.role == "doc"][:DOC_FILES]


def _module(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0]
