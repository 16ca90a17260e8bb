"""The index of one repository, at one revision or in its work tree, with the records of the work on it: what a question
searches and looks up. It tells where things stand; what answers is decided elsewhere.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from msgspec import Struct

from helix_tui.core.ask.corpus.reader import enclosing, trails
from helix_tui.core.ask.index import channels
from helix_tui.core.ask.index.contents import Contents, may_hold_tree
from helix_tui.core.ask.index.database import FILE, VERSION, FileRow
from helix_tui.core.ask.index.trees import read_tree
from helix_tui.core.ask.question import Question, read_question, terms_in
from helix_tui.core.ask.records import (
    Definition,
    Heading,
    Kind,
    RankedFile,
    Role,
    Span,
    Tree,
    Use,
    UseKind,
    commit_span,
    text_hash,
)
from helix_tui.core.ask.tokens import terms_of
from helix_tui.core.ground.files import is_file
from helix_tui.core.ground.project import Project

MOST_SPAN_LINES = 120
MOST_OPENING = 60
"""Maximum lines of a README's introduction."""
DOC_FILES = 24
"""Documents whose headings are looked at for one query, at most."""
_SPAN_FILES = 60
_SEARCHES = 16
_USE_FILES = 400
"""Files searched for the uses of a name, at most; a name in more files is used everywhere."""
_LONG_LINE = 2_000
_IMPORT = re.compile(r"\s*(?:from|import|use|#\s*include|export\b.*\bfrom)\b")
_README = re.compile(r"(?:^|/)readme[^/]*$", re.IGNORECASE)
_KINDS: dict[str, Kind] = {"class": "class", "type": "class", "function": "function", "method": "function"}


def open_index(project: Project, revision: str | None = None, *, in_memory: bool = False) -> RepositoryIndex:
    """The index of a project's work tree, or of a revision of it.

    It is empty before `RepositoryIndex.refresh`; files read by an earlier run are not read again. If ``.helix`` is not
    writable the index is in memory.

    Raises:
        NothingToAsk: the folder or the revision does not exist.
        GitFailed: git is missing, or fails.
    """
    # of this work tree, whose files differ from those of others of the project
    folder = Path(project.root, ".helix", "ask")
    if in_memory:
        return RepositoryIndex(project.root, None, revision)
    if revision is None:
        return RepositoryIndex(project.root, folder / FILE)
    name = re.sub(r"[^\w.-]", "_", revision)[:60]
    path = folder / f"index-{VERSION}-{name}.db"
    fresh = not is_file(path) and is_file(folder / FILE)
    index = RepositoryIndex(project.root, path, revision)
    if fresh:
        # most of a revision's files are those of the work tree
        index.begin_with(folder / FILE)
    return index


_Words = ParamSpec("_Words")
_Found = TypeVar("_Found")


def _asking(
    method: Callable[Concatenate[RepositoryIndex, _Words], _Found],
) -> Callable[Concatenate[RepositoryIndex, _Words], _Found]:
    """One thread at a time; damage to the file is repaired once."""

    @wraps(method)
    def asked(self: RepositoryIndex, /, *words: _Words.args, **named: _Words.kwargs) -> _Found:
        with self._lock:
            try:
                self._fresh()
                return method(self, *words, **named)
            # busy or not readable: a DatabaseError by class, but not damaged
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._database.renew()
                self.refresh()
            # try again, but only once: a second error is raised
            return method(self, *words, **named)

    return asked


class FoundSpans(Struct, frozen=True):
    """The results of one search, best first, in an order that depends only on the content."""

    files: tuple[RankedFile, ...]
    spans: tuple[Span, ...]


class RepositoryIndex(Contents):
    """Retrieval over one tree. One thread may query it while another refreshes it."""

    # -- searching ---------------------------------------------------------------------------------

    @_asking
    def search(
        self, query: str | Question, *, spans: int = 60, roles: Sequence[Role] = (), per_file: int = 3
    ) -> FoundSpans:
        """Files and spans for a text, through every channel; of files of some roles only, if any is named."""
        question = read_question(query) if isinstance(query, str) else query
        found = self._search(question)
        files = tuple(file for file in found.files if not roles or file.role in roles)
        rows: list[tuple[float, str, int, RankedFile]] = []
        for file in files[: max(spans, _SPAN_FILES)]:
            hits = found.hits.get(file.file, ())[:per_file]
            # a file found by its name or its history may have no passage with a word of the question
            best = hits[0].score if hits else 1.0
            chunks = [(hit.chunk, hit.score / best) for hit in hits] or [(0, 1.0)]
            rows += [(-file.score * (0.5 + 0.5 * share), file.file, chunk, file) for chunk, share in chunks]
        rows.sort(key=lambda row: row[:3])
        made = (self._span(one, chunk, -score) for score, _, chunk, one in rows[:spans])
        return FoundSpans(files, tuple(span for span in made if span is not None))

    def _search(self, question: Question) -> channels.Found:
        """The files of a question; the last ones are kept, as a run asks for the same again."""
        found = self._searches.get(question)
        if found is None:
            if len(self._searches) >= _SEARCHES:
                self._searches.clear()
            found = self._searches[question] = channels.search(question, self._database)
        return found

    def _span(self, ranked: RankedFile, chunk: int, score: float) -> Span | None:
        chunks = self.pieces(ranked.file).chunks
        if chunk >= len(chunks):
            return None
        cut = chunks[chunk]
        text = "\n".join(self.lines(ranked.file, cut.start, cut.end))
        return Span(
            ranked.file, cut.start, cut.end, cut.kind, cut.header, text, text_hash(text), score, ranked.channels,
            ranked.role,
        )  # fmt: skip

    @_asking
    def search_records(self, question: Question, most: int) -> list[Span]:
        """The passages of records that speak most of a question, best first, their scores as shares of the best one;
        and every passage of a record that it names by its id.
        """
        named = [
            span
            for word in dict.fromkeys(re.findall(r"[\w.-]*\w", question.text))
            for row in self._database.records(word)
            for span in self._sections(row.path, 1.0)
        ]
        hits = self._database.hits("work", channels.terms_for(question.text, self._database, "work"), most)
        rows = self._database.by_id({hit.file for hit in hits})
        best = max((hit.score for hit in hits), default=1.0)
        found = [
            span
            for hit in hits
            if hit.file in rows
            for span in self._sections(rows[hit.file].path, hit.score / best, hit.chunk)
        ]
        return list({span.key: span for span in (*found, *named)}.values())

    @_asking
    def record(self, word: str) -> str:
        """The path of the record that an id, or an unmistakable part of one, names; empty if none has it."""
        return next((row.path for row in self._database.records(word)), "")

    def _sections(self, path: str, score: float, at: int | None = None) -> list[Span]:
        """The passages of a record, or one of them."""
        chunks = self.pieces(path).chunks
        chosen = chunks if at is None else chunks[at : at + 1]
        texts = ["\n".join(self.lines(path, cut.start, cut.end)).rstrip("\n") for cut in chosen]
        return [
            Span(path, cut.start, cut.start + text.count("\n"), "section", cut.header, text, text_hash(text), score,
                 {"records": score}, "record")
            for cut, text in zip(chosen, texts, strict=True)
        ]  # fmt: skip

    @_asking
    def vectors(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The stored vectors of some texts, by the texts' hashes."""
        return self._database.vectors(keys)

    @_asking
    def keep_vectors(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Store vectors, unless the index is busy."""
        self._database.keep_vectors(rows)

    @_asking
    def rarity(self, term: str) -> float:
        """A term's weight by rarity among the passages of files; one that none has counts like one that one has."""
        among = self._database.passages()
        return channels.rarity(self._database.passages_with([term]).get(term, 1), among) if among else 1.0

    @_asking
    def commits(self, text: str, most: int) -> list[Span]:
        """The commits with messages most similar to a text, each as a whole, best first, without merges."""
        terms = channels.terms_for(text, self._database, "message")
        found = dict(self._database.matching("message", terms, most))
        best = max(found.values(), default=1.0)
        rows = sorted(self._database.past(found), key=lambda row: (-found[row.id], row.sha))
        return [commit_span(row.sha, row.subject, row.body, row.files, found[row.id] / best) for row in rows]

    @_asking
    def commit_at(self, sha: str) -> list[Span]:
        """The known commit with a hash, or with a hash that starts so, as a whole; empty if there is none."""
        rows = sorted(
            (row for row in self._database.past() if sha and row.sha.startswith(sha)), key=lambda row: row.sha
        )
        return [commit_span(row.sha, row.subject, row.body, row.files, 1.0) for row in rows[:1]]

    @_asking
    def past(self) -> list[tuple[str, Sequence[str]]]:
        """(subject, files) of the commits in the index."""
        return [(row.subject, row.files) for row in self._database.past()]

    # -- looking things up -------------------------------------------------------------------------

    @property
    def revision(self) -> str:
        """The commit that is searched; empty for the work tree."""
        return self.commit or "" if self.source.revision is not None else ""

    @_asking
    def definitions(self, name: str) -> list[Definition]:
        """Where a name is defined; a dotted one by its last part inside the one before; source before tests."""
        owner, _, last = name.replace("::", ".").rpartition(".")
        pairs = {(defined, number) for _, defined, number in self._database.defining([last]) if defined == last}
        rows = self._database.by_id({number for _, number in pairs})
        found = [
            _definition(
                definition.name, definition.kind, rows[number], definition.start, definition.end, definition.header
            )
            for defined, number in pairs
            if number in rows
            for definition in self.pieces(rows[number].path).definitions
            if definition.name == defined
        ]
        found.sort(key=lambda one: (one.role != "source", one.file, one.start, one.end))
        owners = owner.rpartition(".")[2]
        within = [one for one in found if owners and owners in (*one.header.split("."), _module(one.file))]
        # `a.b` has no definition if nothing called b is inside a
        return within or (found if not owner else [])

    @_asking
    def definitions_in(self, file: str) -> list[Definition]:
        """The definitions of a file in order of line."""
        rows = self._database.at([file])
        return [
            _definition(definition.name, definition.kind, row, definition.start, definition.end, definition.header)
            for row in rows
            for definition in self.pieces(file).definitions
        ]

    @_asking
    def uses(self, name: str, *, most: int = 50) -> list[Use]:
        """Lines that mention a name outside its definition's first line; source before tests, in order of path."""
        name = name.replace("::", ".").rpartition(".")[2]
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        call = re.compile(rf"(?<!\w){re.escape(name)}\s*[(<\[]")
        found: list[Use] = []
        for row in self._files_mentioning(name)[:_USE_FILES]:
            pieces = self.pieces(row.path)
            defining = {definition.start for definition in pieces.definitions if definition.name == name}
            for number, line in enumerate(self.lines(row.path), 1):
                if name not in line or number in defining or not word.search(line[:_LONG_LINE]):
                    continue
                header = enclosing(pieces.definitions, number)
                found.append(Use(name, row.path, number, line, header, row.role, _use_kind(line, call)))
            # more than requested, as they are sorted only afterwards
            if len(found) >= most * 4:
                break
        return sorted(found, key=lambda use: (use.role != "source", use.file, use.line))[:most]

    def _files_mentioning(self, name: str) -> list[FileRow]:
        """The files with all terms of a name in one passage, sources first, in order of path."""
        hits = self._database.hits("passage", terms_of(name), _USE_FILES * 4, every=True)
        files = self._database.by_id({hit.file for hit in hits})
        return sorted(files.values(), key=lambda row: (row.role != "source", row.path))

    @_asking
    def headings_in(self, file: str) -> list[Heading]:
        """The headings of a document in order of line."""
        titles = self.pieces(file).titles
        return [
            Heading(file, one.level, one.text, one.start, one.end, trail)
            for one, trail in zip(titles, trails(titles), strict=True)
        ]

    @_asking
    def headings(self, terms: Sequence[str]) -> list[Heading]:
        """Headings with any of some stems, in the documents that have most of these in their headings."""
        wanted = frozenset(terms)
        rows = self._database.by_id(
            {number for number, _ in self._database.matching("names", sorted(wanted), channels.MOST_FILES)}
        )
        documents = sorted(row.path for row in rows.values() if row.role == "doc")[:DOC_FILES]
        return [
            one for file in documents for one in self.headings_in(file) if not wanted.isdisjoint(terms_in(one.title))
        ]

    @_asking
    def trees(self) -> list[Tree]:
        """The trees stored as JSON in the repository, in order of path."""
        if self._trees is not None:
            return self._trees
        found = []
        for row in self._database.files("path LIKE '%tree%.json' OR path LIKE '%dag%.json'"):
            data = self.source.text(row.path, row.oid) if may_hold_tree(row.path) else None
            tree = None if data is None else read_tree(row.path, data)
            if tree is not None:
                found.append(tree)
        self._trees = found
        return found

    @_asking
    def opening(self) -> Span | None:
        """The beginning of the repository's README, the one nearest its root; None if it has none."""
        files = [row.path for row in self._database.files("name LIKE 'readme%'") if _README.search(row.path)]
        first = min(files, key=lambda file: (file.count("/"), file), default=None)
        return None if first is None else self.span_at(first, 1, MOST_OPENING)

    @_asking
    def span_at(self, file: str, start: int, end: int) -> Span | None:
        """Some lines of a file as a span; None if the file has no such lines."""
        lines = self.lines(file, start, min(end, start + MOST_SPAN_LINES - 1))
        row = next(iter(self._database.at([file])), None)
        if not lines or row is None:
            return None
        end = start + len(lines) - 1
        text = "\n".join(lines)
        kind, header = self._place(file, start, end)
        return Span(file, start, end, kind, header, text, text_hash(text), role=row.role)

    def _place(self, file: str, start: int, end: int) -> tuple[Kind, str]:
        """The kind of the lines, and the definition or section that contains them."""
        definitions = self.definitions_in(file)
        middle = (start + end) // 2
        around = [definition for definition in definitions if definition.start <= start and end <= definition.end]
        around = around or [
            definition
            for definition in definitions
            if definition.start == start or definition.start <= middle <= definition.end
        ]
        if around:
            inner = max(around, key=lambda one: (one.start, -one.end))
            exact = inner.start == start
            return (_KINDS.get(inner.kind, "lines") if exact else "lines"), inner.header
        sections = [one for one in self.headings_in(file) if one.start <= start <= one.end]
        if sections:
            return "section", max(sections, key=lambda one: (one.start, one.level)).path
        return "lines", ""


def _definition(name: str, kind: str, row: FileRow, start: int, end: int, header: str) -> Definition:
    return Definition(name, kind, row.path, start, end, header, row.role)


def _use_kind(line: str, call: re.Pattern[str]) -> UseKind:
    if _IMPORT.match(line):
        return "import"
    return "call" if call.search(line[:_LONG_LINE]) else "mention"


def _module(file: str) -> str:
    return file.rpartition("/")[2].partition(".")[0]
