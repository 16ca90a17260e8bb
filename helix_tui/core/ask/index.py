"""The index of one repository at one revision or in its work tree: what retrieval asks.

>>> index = open_index(project)
>>> index.refresh()
>>> index.rank_files("how are leases renewed")[0].file
"""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from helix_tui.core.ask.build import Raw, read_all, refused_blob
from helix_tui.core.ask.channels import commits, meaning
from helix_tui.core.ask.corpus.content import decode, split_lines
from helix_tui.core.ask.corpus.git import Entry
from helix_tui.core.ask.corpus.listing import Listing, Source
from helix_tui.core.ask.corpus.roles import role_of
from helix_tui.core.ask.parse.code import enclosing
from helix_tui.core.ask.parse.documents import trails
from helix_tui.core.ask.parse.languages import DOCUMENTS, language_of
from helix_tui.core.ask.parse.pieces import Pieces
from helix_tui.core.ask.question import Question, read_question
from helix_tui.core.ask.ranking import Ranking, rank
from helix_tui.core.ask.records import (
    Definition,
    Document,
    Heading,
    PastCommit,
    Progress,
    RankedFile,
    Refreshed,
    SkippedFile,
    Span,
    Tree,
    Use,
    UseKind,
    text_hash,
)
from helix_tui.core.ask.store.database import Database
from helix_tui.core.ask.store.segment import Builder, Segment, joined
from helix_tui.core.ask.store.view import View
from helix_tui.core.ask.tokens import terms_of
from helix_tui.core.ask.trees import derived_tree, may_hold_tree, read_tree
from helix_tui.core.project import Project

FILE = "index.db"
_COMMIT_FILES = 2_000
_COMMIT_SECONDS = 4.0
_SPAN_FILES = 60
_RANKINGS = 16
_PIECES = 20_000
_NOTHING = Pieces("", 0, 0, [], [], [], [])
RANKED = 500
"""Files of a ranking that are handed out."""
_COMMITS_AT_ONCE = 500
_LONG_LINE = 2_000
_IMPORT = re.compile(r"\s*(?:from|import|use|#\s*include|export\b.*\bfrom)\b")
TREE_FILES = 1_000
"""In a larger repository the definitions of the first files only stand in the tree."""

Report = Callable[[Progress], None]


def open_index(
    project: Project, revision: str | None = None, *, in_memory: bool = False, with_meaning: bool = True
) -> Index:
    """The index of a project's work tree, or of a revision of it.

    ``with_meaning`` false leaves the encoder out. Nothing is read until `Index.refresh`; what an earlier
    run indexed is there at once. Where ``.helix`` cannot be written the index lives in memory.

    Raises:
        NothingToAsk: the folder or the revision does not exist.
        GitFailed: git is missing, or would not answer.
    """
    path = None if in_memory else Path(project.helix_dir, "ask", FILE)
    return Index(project.root, path, revision, with_meaning=with_meaning)


class Index:
    """Retrieval over one tree. Safe to ask from one thread while another refreshes."""

    def __init__(
        self, root: Path, path: Path | None, revision: str | None = None, *, with_meaning: bool = True
    ) -> None:
        """Over a folder, kept in a file; in memory where ``path`` is None."""
        self._with_meaning = with_meaning
        self.source = Source(root, revision)
        self._database = _open_database(path)
        self._lock = threading.RLock()
        self._files: list[tuple[str, str]] = []
        self._oids: dict[str, str] = {}
        self._skipped: list[tuple[str, str]] = []
        self._view = View(self._database, [])
        self._texts: dict[str, list[str]] = {}
        self._history = commits.History((), {})
        self._tree_files: list[str] = []
        self._read_pieces: dict[str, Pieces] = {}
        self._tree: Tree | None = None
        self._about: meaning.Meanings | None = None
        self._rankings: dict[str | Question, Ranking] = {}
        self.commit: str | None = None

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    # -- building ----------------------------------------------------------------------------------

    def refresh(
        self, progress: Report | None = None, *, stop: Callable[[], bool] = lambda: False
    ) -> Refreshed:
        """Bring the index up to date: list, read what is new, and see the present tree from then on.

        Raises:
            NothingToAsk, GitFailed: see `open_index`.
        """
        begun = time.monotonic()
        report = progress or (lambda _: None)
        report(Progress("list", 0, 0, 0.0))
        listing = self.source.list()
        self._tree_files = [entry.path for entry in listing.entries if may_hold_tree(entry.path)]
        parsed = self._read_new(listing, begun, report, stop)
        self._read_history(listing, begun, report)
        about = self._read_meaning(begun, report, stop)
        with self._lock:
            self.commit = listing.commit
            self._look_at(self._files)
            self._about = about
            self._rankings.clear()
            stored = self._database.stored()
            refused = [
                (path, stored[key].refused)
                for path, key in self._files
                if key in stored and stored[key].refused
            ]
            self._skipped = sorted(listing.skipped + refused)
        seconds = time.monotonic() - begun
        report(Progress("done", len(self._view), len(self._view), seconds))
        return Refreshed(
            len(self._view), parsed, len(self._skipped), seconds, self._database.rebuilt, tuple(listing.notes)
        )

    def _read_new(self, listing: Listing, begun: float, report: Report, stop: Callable[[], bool]) -> int:
        known = self._database.stored().keys()
        files: list[tuple[str, str]] = []
        unread: list[Entry] = []
        for entry in listing.entries:
            key = blob_key(entry.oid, entry.path)
            if entry.oid and key in known:
                files.append((entry.path, key))
                self._oids[entry.path] = entry.oid
            else:
                unread.append(entry)
        self._files = files
        if unread:
            return self._read(unread, listing, set(known), begun, report, stop)
        return 0

    def _read(
        self,
        unread: list[Entry],
        listing: Listing,
        known: set[str],
        begun: float,
        report: Report,
        stop: Callable[[], bool],
    ) -> int:
        """Read files and write their segments, every few seconds so that questions see them."""
        large: list[tuple[str, str, int]] = []
        by_path = {entry.path: entry for entry in unread}
        twins: dict[str, list[str]] = {}
        for entry in unread:
            if entry.oid:
                twins.setdefault(blob_key(entry.oid, entry.path), []).append(entry.path)
        new = 0

        def raws() -> Iterable[Raw]:
            nonlocal new
            for entry, oid, data in self.source.read(by_path.values(), listing.oid_digits):
                key = blob_key(oid, entry.path)
                for path in {entry.path, *twins.get(key, ())}:
                    self._files.append((path, key))
                    self._oids[path] = oid
                if key in known:
                    continue
                known.add(key)
                new += 1
                if isinstance(data, int):
                    large.append((key, language_of(entry.path), data))
                else:
                    yield Raw(key, language_of(entry.path), data)

        waiting: list[Segment] = []
        last = time.monotonic()
        done = 0
        for segment in read_all(raws(), stop):
            waiting.append(segment)
            done += len(segment.blobs)
            now = time.monotonic()
            report(Progress("parse", min(done, len(unread)), len(unread), now - begun))
            if now - last > _COMMIT_SECONDS or sum(len(one.blobs) for one in waiting) > _COMMIT_FILES:
                self._write(waiting)
                waiting, last = [], now
        if large:
            builder = Builder()
            for key, language, size in large:
                builder.add(refused_blob(key, language, size, "too large"), [], Counter())
            waiting.append(builder.finish())
        if waiting:
            self._write(waiting)
        return new

    def _read_history(self, listing: Listing, begun: float, report: Report) -> None:
        """Read the messages of past commits that are not known yet."""
        git = self.source.git
        if git is None or listing.commit is None:
            self._history = commits.History((), {})
            return
        shas = git.ancestors(listing.commit, commits.MOST_COMMITS)
        known = self._database.past_shas()
        unread = [sha for sha in shas if sha not in known]
        for at in range(0, len(unread), _COMMITS_AT_ONCE):
            report(Progress("history", at, len(unread), time.monotonic() - begun))
            batch = unread[at : at + _COMMITS_AT_ONCE]
            self._database.add_past(commits.packed(commit) for commit in git.commits(batch))
        self._history = commits.History(shas, self._database.past())

    def _read_meaning(
        self, begun: float, report: Report, stop: Callable[[], bool]
    ) -> meaning.Meanings | None:
        """The vectors of the files, where the repository is small enough and there are weights."""
        with self._lock:
            self._look_at(self._files)
            view = self._view
            if not self._with_meaning or len(view) > meaning.MOST_FILES:
                return None
            digests = [
                meaning.digest(document.file, self._pieces(document.file))
                if meaning.speaks_for(document.role)
                else None
                for document in view.documents
            ]
        return meaning.gather(
            self._database,
            digests,
            lambda done, total: report(Progress("meaning", done, total, time.monotonic() - begun)),
            stop,
        )

    def _write(self, waiting: list[Segment]) -> None:
        with self._lock:
            self._database.add(joined(waiting))
            self._look_at(self._files)

    def _look_at(self, files: Sequence[tuple[str, str]]) -> None:
        self._about = None
        self._view = View(self._database, list(dict.fromkeys(files)))
        self._texts.clear()
        self._rankings.clear()
        self._read_pieces.clear()
        self._tree = None

    # -- asking ------------------------------------------------------------------------------------

    def rank_files(self, query: str | Question, limit: int = RANKED) -> list[RankedFile]:
        """The files that speak to the question, best first; ties in order of path."""
        with self._lock:
            ranking = self._rank(query)
            return [ranking.file(at) for at in ranking.order[:limit]]

    def search(
        self, query: str | Question, k: int = 20, *, per_file: int = 3, files: Sequence[str] = ()
    ) -> list[Span]:
        """The best ``k`` spans, at most ``per_file`` of one file; only of ``files`` where some are named."""
        with self._lock:
            ranking = self._rank(query)
            wanted = {self._view.position[file] for file in files if file in self._view.position}
            chosen = [at for at in ranking.order if at in wanted] if files else ranking.order
            return self._spans(ranking, chosen[: max(k, _SPAN_FILES)], per_file, k)

    def _rank(self, query: str | Question) -> Ranking:
        """The ranking for a question; the last ones are kept, for files and spans are asked in turn."""
        found = self._rankings.get(query)
        if found is None:
            question = read_question(query) if isinstance(query, str) else query
            if len(self._rankings) >= _RANKINGS:
                self._rankings.clear()
            found = self._rankings[query] = rank(question, self._view, self._history, self._about)
        return found

    def _spans(self, ranking: Ranking, chosen: Sequence[int], per_file: int, k: int) -> list[Span]:
        """The best chunks of some files; a file's further chunks count for less than its best one."""
        view = self._view
        most = float(ranking.chunks.max(initial=0.0)) or 1.0
        found: list[tuple[float, str, int, float, RankedFile]] = []
        for at in chosen:
            one = ranking.file(at)
            row = int(view.row[at])
            first, last = int(view.first[row]), int(view.first[row + 1])
            scores = ranking.chunks[first:last]
            best = np.lexsort((np.arange(len(scores)), -scores))[:per_file].tolist()
            top = float(scores[best[0]]) if best else 0.0
            for place, chunk in enumerate(best):
                score = float(scores[chunk])
                if score > 0 or place == 0:
                    share = score / top if top > 0 else 1.0
                    found.append((-one.score * (0.5 + 0.5 * share), one.file, chunk, score / most, one))
        found.sort(key=lambda row: row[:3])
        return [self._span(one, chunk, -score, lexical) for score, _, chunk, lexical, one in found[:k]]

    def _span(self, ranked: RankedFile, chunk: int, score: float, lexical: float) -> Span:
        cut = self._pieces(ranked.file).chunks[chunk]
        text = "\n".join(self.lines(ranked.file, cut.start, cut.end))
        channels = {**ranked.channels, "chunk": lexical}
        return Span(
            ranked.file,
            cut.start,
            cut.end,
            cut.kind,
            cut.header,
            text,
            text_hash(text),
            score,
            channels,
            ranked.role,
        )

    # -- looking things up -------------------------------------------------------------------------

    def documents(self) -> list[Document]:
        """Every searchable file, in order of path."""
        return self._view.documents

    def skipped(self) -> list[SkippedFile]:
        """Every tracked file that is not searched, with the reason."""
        return [SkippedFile(path, reason) for path, reason in self._skipped]

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]:
        """Lines of a file as the revision has them, both ends counted from 1; empty where it is unknown."""
        with self._lock:
            lines = self._texts.get(file)
            if lines is None:
                oid = self._oids.get(file)
                data = None if oid is None else self.source.text(file, oid)
                lines = [] if data is None else split_lines(decode(data))
                if len(self._texts) > 500:
                    self._texts.clear()
                self._texts[file] = lines
        return lines[max(0, start - 1) : end]

    def share(self, term: str) -> float:
        """The share of all searchable contents that have a term, 0 to 1."""
        with self._lock:
            chunks, _ = self._view.postings(term)
            rows = len(set(self._view.row_of[chunks].tolist()))
            return rows / len(self._view) if len(self._view) else 0.0

    def definitions(self, name: str, *, any_case: bool = False) -> list[Definition]:
        """Where a name is defined; source before tests, then in order of path and line."""
        found = []
        with self._lock:
            for defined, key in self._database.keys_defining(name, any_case=any_case):
                for path in self._paths_of(key):
                    found += [
                        Definition(one.name, one.kind, path, one.start, one.end, one.header, role_of(path))
                        for one in self._pieces(path).definitions
                        if one.name == defined
                    ]
        return sorted(found, key=lambda one: (one.role != "source", one.file, one.start, one.end))

    def definitions_in(self, file: str) -> list[Definition]:
        """The definitions of a file in order of line."""
        with self._lock:
            return [
                Definition(one.name, one.kind, file, one.start, one.end, one.header, role_of(file))
                for one in self._pieces(file).definitions
            ]

    def imports(self, file: str) -> list[str]:
        """What a file imports, as written."""
        with self._lock:
            return list(self._pieces(file).imports)

    def uses(self, name: str, limit: int = 50) -> list[Use]:
        """Lines that mention a name outside its definition's first line; source before tests, in order of
        path.
        """
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        call = re.compile(rf"(?<!\w){re.escape(name)}\s*[(<\[]")
        found: list[Use] = []
        with self._lock:
            for path in self._files_mentioning(name):
                pieces = self._pieces(path)
                defining = {one.start for one in pieces.definitions if one.name == name}
                for number, line in enumerate(self.lines(path), 1):
                    if name not in line or number in defining or not word.search(line[:_LONG_LINE]):
                        continue
                    kind = _use_kind(line, call)
                    header = enclosing(pieces.definitions, number)
                    found.append(Use(name, path, number, line, header, role_of(path), kind))
                if len(found) >= limit * 4:
                    break
        return sorted(found, key=lambda use: (use.role != "source", use.file, use.line))[:limit]

    def headings(self, file: str | None = None) -> list[Heading]:
        """The headings of one document, or of all, in order of path and line."""
        found = []
        with self._lock:
            for document in self._view.documents:
                if document.language in DOCUMENTS and file in (None, document.file):
                    titles = self._pieces(document.file).titles
                    found += [
                        Heading(document.file, one.level, one.text, one.start, one.end, trail)
                        for one, trail in zip(titles, trails(titles), strict=True)
                    ]
        return found

    def tree(self) -> Tree:
        """The tree of the repository: folders, files, their headings and top definitions."""
        with self._lock:
            if self._tree is None:
                self._tree = self._derive_tree()
            return self._tree

    def _derive_tree(self) -> Tree:
        documents = self._view.documents
        headings: dict[str, list[Heading]] = {}
        for heading in self.headings():
            headings.setdefault(heading.file, []).append(heading)
        defined = {document.file: self.definitions_in(document.file) for document in documents[:TREE_FILES]}
        return derived_tree(self.source.root.name, documents, headings, defined)

    def trees(self) -> list[Tree]:
        """The trees that the repository keeps as JSON, in order of path."""
        found = []
        with self._lock:
            for path in self._tree_files:
                data = self.source.text(path, self._oids.get(path, ""))
                tree = None if data is None else read_tree(path, data)
                if tree is not None:
                    found.append(tree)
        return found

    def commits(self, query: str | Question, limit: int = 20) -> list[PastCommit]:
        """Past commits whose messages are like the question, best first."""
        with self._lock:
            return self._history.similar(read_question(query) if isinstance(query, str) else query, limit)

    def _files_mentioning(self, name: str) -> list[str]:
        rows: set[int] | None = None
        for term in terms_of(name):
            chunks, _ = self._view.postings(term)
            here = set(self._view.row_of[chunks].tolist())
            rows = here if rows is None else rows & here
        return [
            path
            for path, row in zip(self._view.paths, self._view.row.tolist(), strict=True)
            if row in (rows or ())
        ]

    def _paths_of(self, key: str) -> list[str]:
        return [self._view.paths[at] for at in self._view.files_of_key.get(key, ())]

    def _pieces(self, file: str) -> Pieces:
        at = self._view.position.get(file)
        if at is None:
            return _NOTHING
        found = self._read_pieces.get(file)
        if found is None:
            if len(self._read_pieces) > _PIECES:
                self._read_pieces.clear()
            found = self._read_pieces[file] = self._database.pieces(self._view.keys[at]) or _NOTHING
        return found


def blob_key(oid: str, path: str) -> str:
    """What the index keeps a content under: the same bytes in two languages are two things."""
    return f"{oid}:{language_of(path)}"


def _use_kind(line: str, call: re.Pattern[str]) -> UseKind:
    if _IMPORT.match(line):
        return "import"
    return "call" if call.search(line[:_LONG_LINE]) else "mention"


def _open_database(path: Path | None) -> Database:
    try:
        return Database(path)
    except (OSError, sqlite3.OperationalError):
        return Database(None)
