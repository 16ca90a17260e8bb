"""The index of one repository, at one revision or in its work tree, for retrieval. `IndexKeeper` is the thread that
reads the work tree and keeps the index fresh.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import watchfiles
from msgspec import Struct

from helix_tui.core.ask.corpus.git import Git
from helix_tui.core.ask.corpus.languages import DOCUMENTS
from helix_tui.core.ask.corpus.listing import NothingToAsk, decode, left_out, role_of, split_lines
from helix_tui.core.ask.corpus.reader import enclosing, trails
from helix_tui.core.ask.index.contents import Contents
from helix_tui.core.ask.index.database import FILE
from helix_tui.core.ask.index.question import IndexQuery, read_question
from helix_tui.core.ask.index.ranking import Ranking, RankingSources, rank
from helix_tui.core.ask.index.trees import derived_tree, read_tree
from helix_tui.core.ask.index.view import StaleView
from helix_tui.core.ask.records import (
    Definition,
    Document,
    Heading,
    PastCommit,
    Progress,
    RankedFile,
    SkippedFile,
    Span,
    Tree,
    Use,
    UseKind,
    text_hash,
)
from helix_tui.core.ask.tokens import terms_of
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.git import GitFailed
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.threads import keep_at

BLAME_S = 5.0
"""Seconds after which no line's commit is waited for: a tenth of one is usual."""
MOST_ORIGINS = 500

_SPAN_FILES = 60
_RANKINGS = 16
_USE_FILES = 400
"""Files that are looked through for the uses of a name; one that stands in more is used everywhere."""
RANKED = 500
"""Maximum files returned from a ranking."""
_LONG_LINE = 2_000
_IMPORT = re.compile(r"\s*(?:from|import|use|#\s*include|export\b.*\bfrom)\b")
TREE_FILES = 1_000
"""In a larger repository the definitions of the first files only stand in the tree."""


def open_index(
    project: Project, revision: str | None = None, *, in_memory: bool = False, with_meaning: bool = True
) -> RepositoryIndex:
    """The index of a project's work tree, or of a revision of it.

    ``with_meaning`` false leaves the encoder out. It is empty before `RepositoryIndex.refresh`; files read by an
    earlier run are not read again. If ``.helix`` is not writable the index is in memory.

    Raises:
        NothingToAsk: the folder or the revision does not exist.
        GitFailed: git is missing, or would not answer.
    """
    path = None if in_memory else Path(project.helix_dir, "ask", FILE)
    return RepositoryIndex(project.root, path, revision, with_meaning=with_meaning)


_Words = ParamSpec("_Words")
_Found = TypeVar("_Found")


def _asking(
    method: Callable[Concatenate[RepositoryIndex, _Words], _Found],
) -> Callable[Concatenate[RepositoryIndex, _Words], _Found]:
    """One thread at a time; changes by another process and damage to the file are repaired once."""

    @wraps(method)
    def asked(self: RepositoryIndex, /, *words: _Words.args, **named: _Words.kwargs) -> _Found:
        with self._lock:
            try:
                return method(self, *words, **named)
            except StaleView:
                self._look_again()
            # busy or not to be read: a DatabaseError by its class, but no damage
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                self._database.renew()
                self.refresh()
            # once more, and only once: what is wrong a second time is told
            return method(self, *words, **named)

    return asked


class RepositoryIndex(Contents):
    """Retrieval over one tree. Safe to ask from one thread while another refreshes."""

    def _look_again(self) -> None:
        """Locate the same files in the current segments."""
        self._look_at(self._files)

    # -- asking ------------------------------------------------------------------------------------

    @_asking
    def rank_files(self, query: str | IndexQuery, limit: int = RANKED, *, rerank: bool = True) -> list[RankedFile]:
        """The files relevant to the question, best first; ties in order of path.

        ``rerank`` false leaves the encoder out, which may take a second when it first sees a part of the repository:
        while somebody types, and for queries that only a search makes up.
        """
        with self._lock:
            ranking = self._rank(query, rerank)
            return [ranking.file(at) for at in ranking.order[:limit]]

    @_asking
    def search(
        self, query: str | IndexQuery, k: int = 20, *, per_file: int = 3, files: Sequence[str] = (), rerank: bool = True
    ) -> list[Span]:
        """The best ``k`` spans, at most ``per_file`` of one file; only of ``files`` where some are named."""
        with self._lock:
            ranking = self._rank(query, rerank)
            wanted = {self._view.position[file] for file in files if file in self._view.position}
            chosen = [at for at in ranking.order if at in wanted] if files else ranking.order
            return self._spans(ranking, chosen[: max(k, _SPAN_FILES)], per_file, k)

    def _rank(self, query: str | IndexQuery, rerank: bool) -> Ranking:
        """The ranking for a question; the last ones are kept, for files and spans are asked in turn."""
        found = self._rankings.get((query, rerank))
        if found is None:
            question = read_question(query) if isinstance(query, str) else query
            if len(self._rankings) >= _RANKINGS:
                self._rankings.clear()
            known = RankingSources(self._view, self._history, self, self._meanings if rerank else None)
            found = self._rankings[query, rerank] = rank(question, known)
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
                # a file that was found by its name or its past may have no chunk with a word of the question
                if score > 0 or place == 0:
                    share = score / top if top > 0 else 1.0
                    found.append((-one.score * (0.5 + 0.5 * share), one.file, chunk, score / most, one))
        found.sort(key=lambda row: row[:3])
        return [self._span(one, chunk, -score, lexical) for score, _, chunk, lexical, one in found[:k]]

    def _span(self, ranked: RankedFile, chunk: int, score: float, lexical: float) -> Span:
        cut = self.pieces(ranked.file).chunks[chunk]
        text = "\n".join(self.lines(ranked.file, cut.start, cut.end))
        channels = {**ranked.channels, "chunk": lexical}
        return Span(
            ranked.file, cut.start, cut.end, cut.kind, cut.header, text, text_hash(text), score, channels, ranked.role
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
                lines = split_lines(self._text_of(file))
                if len(self._texts) > 500:
                    self._texts.clear()
                self._texts[file] = lines
        return lines[max(0, start - 1) : end]

    def _text_of(self, file: str) -> str:
        """The text of a file as the revision has it; empty where it is unknown."""
        oid = self._oids.get(file)
        data = None if oid is None else self.source.text(file, oid)
        return "" if data is None else decode(data)

    def share(self, term: str) -> float:
        """The share of all searchable contents that have a term, 0 to 1."""
        with self._lock:
            chunks, _ = self._view.postings(term)
            rows = len(np.unique(self._view.row_of[chunks]))
            return rows / len(self._view) if len(self._view) else 0.0

    @_asking
    def definitions(self, name: str, *, any_case: bool = False) -> list[Definition]:
        """Where a name is defined; source before tests, then in order of path and line."""
        found = []
        with self._lock:
            for defined, key in self._database.keys_defining(name, any_case=any_case):
                for path in self._paths_of(key):
                    found += [
                        Definition(one.name, one.kind, path, one.start, one.end, one.header, role_of(path))
                        for one in self.pieces(path).definitions
                        if one.name == defined
                    ]
        return sorted(found, key=lambda one: (one.role != "source", one.file, one.start, one.end))

    @_asking
    def definitions_in(self, file: str) -> list[Definition]:
        """The definitions of a file in order of line."""
        role = role_of(file)
        with self._lock:
            return [
                Definition(one.name, one.kind, file, one.start, one.end, one.header, role)
                for one in self.pieces(file).definitions
            ]

    @_asking
    def imports(self, file: str) -> list[str]:
        """What a file imports, as written."""
        with self._lock:
            return list(self.pieces(file).imports)

    @_asking
    def uses(self, name: str, limit: int = 50) -> list[Use]:
        """Lines that mention a name outside its definition's first line; source before tests, in order of
        path.
        """
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        call = re.compile(rf"(?<!\w){re.escape(name)}\s*[(<\[]")
        found: list[Use] = []
        with self._lock:
            mentioning = self._files_mentioning(name)
            mentioning.sort(key=lambda path: role_of(path) != "source")
            for path in mentioning[:_USE_FILES]:
                # its parts' stems may stand in a file without the name itself: that one is not cut into lines
                if path not in self._texts and name not in self._text_of(path):
                    continue
                pieces = self.pieces(path)
                defining = {one.start for one in pieces.definitions if one.name == name}
                for number, line in enumerate(self.lines(path), 1):
                    if name not in line or number in defining or not word.search(line[:_LONG_LINE]):
                        continue
                    kind = _use_kind(line, call)
                    header = enclosing(pieces.definitions, number)
                    found.append(Use(name, path, number, line, header, role_of(path), kind))
                # more than are wanted, for they are put in order only then
                if len(found) >= limit * 4:
                    break
        return sorted(found, key=lambda use: (use.role != "source", use.file, use.line))[:limit]

    @_asking
    def headings(self, file: str | None = None) -> list[Heading]:
        """The headings of one document, or of all, in order of path and line."""
        found = []
        with self._lock:
            for document in self._view.documents:
                if document.language in DOCUMENTS and file in (None, document.file):
                    titles = self.pieces(document.file).titles
                    found += [
                        Heading(document.file, one.level, one.text, one.start, one.end, trail)
                        for one, trail in zip(titles, trails(titles), strict=True)
                    ]
        return found

    @_asking
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

    @_asking
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

    @_asking
    def commits(self, query: str | IndexQuery, limit: int = 20) -> list[PastCommit]:
        """Past commits whose messages are like the question, best first."""
        with self._lock:
            return self._history.similar(read_question(query) if isinstance(query, str) else query, limit)

    def past(self) -> list[PastCommit]:
        """The past commits that are known, newest first."""
        with self._lock:
            return self._history.past()

    def origins(self, file: str, first: int, last: int) -> list[str]:
        """The commit that each of some lines of a file comes from; empty where none is known, or git takes too long."""
        with self._lock:
            git, place = self.source.git, (file, self._oids.get(file, ""), self.commit, first, last)
            if git is None or self.commit is None or file not in self._oids:
                return []
            # the lock is let go before git is asked: it may take seconds, and questions wait for the lock
            found = self._origins.get(place)
        if found is None:
            try:
                revision = self.commit if self.source.revision is not None else None
                found = Git(git.root, timeout=BLAME_S).blame(file, first, last, revision=revision)
            except GitFailed as error:
                logs.logger("ask").info("%s: %s", file, error)
                return []
            with self._lock:
                if len(self._origins) >= MOST_ORIGINS:
                    self._origins.clear()
                self._origins[place] = found
        return found

    def _files_mentioning(self, name: str) -> list[str]:
        rows: set[int] | None = None
        for term in terms_of(name):
            chunks, _ = self._view.postings(term)
            here = set(self._view.row_of[chunks].tolist())
            rows = here if rows is None else rows & here
        return [
            path for path, row in zip(self._view.paths, self._view.row.tolist(), strict=True) if row in (rows or ())
        ]

    def _paths_of(self, key: str) -> list[str]:
        return [self._view.paths[at] for at in self._view.files_of_key.get(key, ())]


def _use_kind(line: str, call: re.Pattern[str]) -> UseKind:
    if _IMPORT.match(line):
        return "import"
    return "call" if call.search(line[:_LONG_LINE]) else "mention"


QUIET_MS = 800
"""How long files must lie still before they are read again."""


class State(Struct, frozen=True):
    """The state of the index."""

    files: int = 0
    progress: Progress | None = None
    """How far reading is; None if nothing is being read."""
    problem: str = ""


PATIENCE_S = 3.0
"""How long a question waits for all of the repository once a part of it can be asked: a small one is whole by
then, and a large one answers from what there is."""


class IndexKeeper:
    """Reads a project's files into its index, in its own thread, until it is stopped."""

    def __init__(self, project: Project, tell: Callable[[State], None], *, watch: bool = True) -> None:
        """``tell`` is called from the thread with every new state."""
        self._project = project
        self._tell = tell
        self._watch = watch
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._whole = threading.Event()
        self._thread = threading.Thread(
            target=keep_at, args=(self._keep, self._stop.wait), name="ask-index", daemon=True
        )
        self._index: RepositoryIndex | None = None
        self.state = State(progress=Progress("list", 0, 0, 0.0))

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the database is closed by it."""
        self._stop.set()

    def index(self, timeout: float = 30.0) -> RepositoryIndex | None:
        """The index, as soon as part of it can be searched, or None."""
        self._ready.wait(timeout)
        self._whole.wait(min(timeout, PATIENCE_S))
        return self._index

    def _say(self, state: State) -> None:
        self.state = state
        self._tell(state)

    def _keep(self) -> None:
        try:
            index = open_index(self._project)
            self._index = index
            try:
                self._read(index)
                if self._watch:
                    self._follow(index)
                # where the tree cannot be followed the index is still asked
                self._stop.wait()
            finally:
                # do not hand out an index that is being closed
                self._index = None
                index.close()
        except (NothingToAsk, GitFailed, OSError) as error:
            self._say(State(problem=str(error)))
        finally:
            self._ready.set()
            self._whole.set()

    def _read(self, index: RepositoryIndex) -> None:
        def report(progress: Progress) -> None:
            if progress.phase == "parse" and progress.done:
                self._ready.set()  # what has been read can be asked
            self._say(State(len(index.documents()) if progress.phase == "done" else self.state.files, progress))

        done = index.refresh(report, stop=self._stop.is_set)
        self._ready.set()
        self._whole.set()
        self._say(State(done.files))

    def _follow(self, index: RepositoryIndex) -> None:
        """Refresh after changes until stopped; where the kernel has no watches left, changes are not followed."""
        new: set[str] = set()
        while not self._stop.is_set():
            new = {folder for folder in new if os.path.isdir(folder)}
            folders = self._folders(index) | new
            try:
                new |= self._follow_in(folders, index)
            except FileNotFoundError:  # a folder went away before it was watched
                self._stop.wait(0.5)
            except (OSError, RuntimeError) as error:
                logs.logger("ask").warning("changes of files are not followed: %s", clean_line(str(error), 200))
                return

    def _follow_in(self, folders: set[str], index: RepositoryIndex) -> set[str]:
        """Refresh after changes in some folders until others have to be watched; the folders that appeared there."""
        new: set[str] = set()
        settled = False
        for changes in watchfiles.watch(
            *sorted(folders),
            watch_filter=lambda _, path: self._concerns(path),
            debounce=QUIET_MS,
            stop_event=self._stop,
            rust_timeout=500,
            yield_on_timeout=True,
            raise_interrupt=False,
            # recursive watches would follow every evidence folder, and watchfiles keeps an entry for each of them
            # after it is gone: 7 MB after 40,000
            recursive=False,
        ):
            if settled and not changes:
                continue
            # files may have changed while the watches were set up
            settled = True
            self._read(index)
            new |= {path for _, path in changes if os.path.isdir(path) and self._concerns(f"{path}/x")}
            if self._folders(index) | new != folders:
                break
        return new

    def _folders(self, index: RepositoryIndex) -> set[str]:
        """The existing folders of documents, the root, and git's own folder, in which ``git add`` changes the index."""
        root = self._project.root
        places = {PurePosixPath(document.file).parent for document in index.documents()}
        wanted = {root, *(root / above for place in places for above in (place, *place.parents))}
        if self._project.git_dir is not None:
            wanted.add(self._project.git_dir)
        return {str(folder) for folder in wanted if folder.is_dir()}

    def _concerns(self, path: str) -> bool:
        """Whether a change of a path can change what is indexed."""
        if self._project.git_dir is not None and path.startswith(f"{self._project.git_dir}{os.sep}"):
            return path == str(self._project.git_dir / "index")
        return left_out(path.removeprefix(f"{self._project.root}{os.sep}")) is None
