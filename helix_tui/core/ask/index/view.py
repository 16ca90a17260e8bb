"""The view of a question: the files of one revision or work tree, mapped to the segments with their blobs; their names;
and past commits.

Blobs are numbered across all segments ("rows"), as are chunks. Files are in order of path, whatever order the
segments were written in, and every sum over terms runs in order of term, so that the same tree gives the same scores,
however its index was built.

History: BM25 over messages; each of the `VOTERS` most similar commits gives its score to the files that it changed,
divided by the square root of their number (docs/formats/ask.md §8: worth about a point of Acc@5, more with a long
history). Names: files that a question names by path, stack trace, dotted module, number, or by their words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256

import msgspec
import numpy as np
from msgspec import Struct

from helix_tui.core.ask.corpus.git import Commit
from helix_tui.core.ask.corpus.listing import (
    kinds_version,
    plain_stem,
    role_of,
    standing,
    successors,
    tested_stem,
)
from helix_tui.core.ask.index.database import Database, StoredBlob
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.segment import NAME, FieldLengths, PathIndex, index_paths, unpacked
from helix_tui.core.ask.records import Document, PastCommit, Role
from helix_tui.core.ask.tokens import count_terms

MAX_POSTINGS = 24 << 20
"""Maximum bytes of cached posting lists: beyond, all are dropped and read again (a question reads a few
hundred; a frequent term of a large repository takes 1 MB)."""
MANY_PATHS = 1_000
"""Number of paths from which their words are stored: reading a thousand anew takes 30 ms."""
_OF_PATHS = frozenset(
    {
        "path_digest",
        "path_index",
        "position",
        "standing",
        "tested",
        "tests",
        "outdated",
        "roles",
        "_by_name",
        "_by_stem",
    }
)
"""Cached values that depend only on the paths."""


class StaleView(Exception):
    """Another process has merged the segments meanwhile: load them again."""


class _PathKinds(Struct, frozen=True, array_like=True):
    """The roles and weights of a set of paths, stored as their words are: each process would match a dozen patterns
    with twenty thousand paths, .4 s.
    """

    roles: list[Role]
    role_of: bytes
    """uint8 (files,): the number of each file's role."""
    standing: bytes
    """float64 (files,)."""


_kinds = msgspec.msgpack.Decoder(_PathKinds)


class IndexView:
    """One set of files over a database. Not thread-safe."""

    def __init__(self, database: Database, files: Sequence[tuple[str, str]], before: IndexView | None = None) -> None:
        """``files`` are (path, blob key) in any order; those not yet indexed or refused are left out.

        ``before`` shares its values that depend only on the paths, if these are equal.
        """
        self._database = database
        stored = database.stored()
        known = sorted((path, key) for path, key in files if key in stored and not stored[key].refused)
        self.paths = [path for path, _ in known]
        self.keys = [key for _, key in known]
        earlier = [] if before is None else before.documents
        roles = {one.file: one.role for one in earlier} or self._stored_roles()
        self.documents: list[Document] = [
            Document(
                path,
                roles.get(path) or role_of(path),
                stored[key].language,
                stored[key].lines,
                stored[key].size,
                key.partition(":")[0],
            )
            for path, key in known
        ]
        # the words of ten thousand paths take most of a second; most changes affect only contents
        if before is not None and before.paths == self.paths:
            self.__dict__.update({name: fact for name, fact in vars(before).items() if name in _OF_PATHS})
        self._lay_out(stored)
        self._cache: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._held = 0
        """Bytes in the cache."""
        self.called: dict[tuple[int, int, int], list[str]] = {}
        """The names that lines of a file call, by its position, the first and the last (`channels.score_calls`)."""

    def _lay_out(self, stored: dict[str, StoredBlob]) -> None:
        segments = self._database.segments()
        self._blob_base, self._chunk_base = {}, {}
        blobs = chunks = 0
        for segment in segments:
            self._blob_base[segment.id], self._chunk_base[segment.id] = blobs, chunks
            blobs += segment.blobs
            chunks += len(segment.lengths) // 4
        counts = _numbers([segment.chunks for segment in segments])
        self.row = np.array(
            [self._blob_base[stored[key].segment] + stored[key].position for key in self.keys], np.int64
        )
        """int64 (files,): the row of each file's blob."""
        # segments also have blobs of other revisions, which must not count in lengths and frequencies
        live = np.zeros(blobs, bool)
        live[self.row] = True
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        """int64 (rows + 1,): the first chunk of each row."""
        self.row_of = np.repeat(np.arange(blobs), counts)
        """int64 (chunks,): the row of each chunk."""
        lengths = _numbers([segment.lengths for segment in segments])
        whole = np.bincount(self.row_of, weights=lengths, minlength=blobs) if blobs else np.zeros(0)
        self.chunks = FieldLengths.of(lengths, live[self.row_of])
        self.whole = FieldLengths.of(whole, live)
        self.names = FieldLengths.of(_numbers([segment.names for segment in segments]), live)

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def path_index(self) -> PathIndex:
        """The words of all paths; those of many paths are stored, as each process would read them anew."""
        if len(self.paths) < MANY_PATHS:
            return index_paths(self.paths)
        packed = self._database.path_words(self.path_digest)
        if packed is not None:
            with suppress(msgspec.MsgspecError, ValueError):
                return PathIndex.of(packed)
        found = index_paths(self.paths)
        self._database.keep_path_words(self.path_digest, found.packed())
        return found

    @cached_property
    def path_digest(self) -> str:
        """Identifies the set of paths."""
        return sha256("\0".join(self.paths).encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def _key_of_kinds(self) -> str:
        return f"{self.path_digest}:{kinds_version()}"

    def _stored_roles(self) -> dict[str, Role]:
        """The roles of the paths, if they are stored, and with them their weights; else empty."""
        packed = self._database.path_words(self._key_of_kinds) if len(self.paths) >= MANY_PATHS else None
        if packed is not None:
            with suppress(msgspec.MsgspecError, ValueError, IndexError):
                kinds = _kinds.decode(packed)
                weights = np.frombuffer(kinds.standing, "<f8").astype(np.float64)
                found = dict(zip(self.paths, map(kinds.roles.__getitem__, kinds.role_of), strict=True))
                if len(weights) == len(found):
                    self.__dict__["standing"] = weights
                    return found
        return {}

    @cached_property
    def standing(self) -> np.ndarray:
        """float64 (files,): the weight of each path among others of its role."""
        weights = np.array([standing(path) for path in self.paths])
        if len(self.paths) >= MANY_PATHS:
            roles, numbers = self.roles
            kinds = _PathKinds(roles, numbers.astype(np.uint8).tobytes(), weights.astype("<f8").tobytes())
            self._database.keep_path_words(self._key_of_kinds, msgspec.msgpack.encode(kinds))
        return weights

    @cached_property
    def roles(self) -> tuple[list[Role], np.ndarray]:
        """The roles of files, and the number of each file's in this list, int64 (files,)."""
        roles = sorted({document.role for document in self.documents})
        return roles, np.array([roles.index(document.role) for document in self.documents], np.int64)

    @cached_property
    def outdated(self) -> dict[int, str]:
        """The files of older versions, by position, with the folder that shows it."""
        within = dict.fromkeys(path.rpartition("/")[0] for path in self.paths)
        folders = {f"{path}/"[: at.start()] for path in within if path for at in re.finditer("/", f"{path}/")}
        # a version is a folder's, so most paths need no further look
        old = {folder for folder in within if folder and next(successors(f"{folder}/"), None) is not None}
        found = {}
        for at, path in enumerate(self.paths if old else ()):
            if path.rpartition("/")[0] not in old:
                continue
            later = (step for step, other in successors(path) if other in self.position or other in folders)
            step = next(later, None)
            if step is not None:
                found[at] = step
        return found

    @cached_property
    def tested(self) -> np.ndarray:
        """int64 (files,): the position of the source tested by a test, by its name; -1 if there is none."""
        sources: dict[str, list[int]] = {}
        for at, document in enumerate(self.documents):
            if document.role == "source":
                sources.setdefault(plain_stem(document.file), []).append(at)
        found = np.full(len(self), -1, np.int64)
        for at, document in enumerate(self.documents):
            named = sources.get(tested_stem(document.file), ()) if document.role == "test" else ()
            if named:
                steps = set(document.file.split("/"))
                found[at] = max(
                    named, key=lambda other: (len(steps.intersection(self.paths[other].split("/"))), -other)
                )
        return found

    @cached_property
    def tests(self) -> np.ndarray:
        """int64: the positions of the tests whose source is known."""
        return np.flatnonzero(self.tested >= 0)

    @cached_property
    def position(self) -> dict[str, int]:
        """The position of each path."""
        return {path: at for at, path in enumerate(self.paths)}

    @cached_property
    def files_of_key(self) -> dict[str, list[int]]:
        """The files with each content, by position: more than one if it was copied."""
        found: dict[str, list[int]] = {}
        for at, key in enumerate(self.keys):
            found.setdefault(key, []).append(at)
        return found

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        """Files by the last part of their path, in lower case."""
        found: dict[str, list[int]] = {}
        for at, path in enumerate(self.paths):
            found.setdefault(path.rpartition("/")[2].lower(), []).append(at)
        return found

    @cached_property
    def _by_stem(self) -> dict[str, list[int]]:
        """Files by their name without extension; the main file of a package or folder by the folder's name."""
        found: dict[str, list[int]] = {}
        for at, path in enumerate(self.paths):
            *folders, name = path.split("/")
            stem = name.partition(".")[0]
            if stem in ("__init__", "index", "mod", "lib") and folders:
                found.setdefault(folders[-1].lower(), []).append(at)
            found.setdefault(stem.lower(), []).append(at)
        return found

    def files_defining(self, name: str, *, any_case: bool = False) -> list[int]:
        """The files that define a name, by position."""
        keys = {key for _, key in self._database.keys_defining(name, any_case=any_case)}
        return sorted(at for key in keys for at in self.files_of_key.get(key, ()))

    def files_defining_each(self, names: Collection[str]) -> dict[str, list[int]]:
        """name -> the files that define it, by position, without names that no file defines."""
        found: dict[str, set[int]] = {}
        for name, key in self._database.keys_defining_any(sorted(names)):
            found.setdefault(name, set()).update(self.files_of_key.get(key, ()))
        return {name: sorted(files) for name, files in found.items() if files}

    def names_like(self, folded: str) -> list[str]:
        """Defined names, in lower case, that share trigrams with a word."""
        return self._database.names_like(folded)

    def files_ending(self, path: str) -> list[int]:
        """The files whose path ends in a given path, or in the longest tail of it that ends any."""
        steps = steps_of(path)
        found = self._by_name.get(steps[-1], []) if steps else []
        for size in range(2, len(steps) + 1):
            tail = "/".join(steps[-size:])
            closer = [at for at in found if f"/{self.paths[at].lower()}".endswith(f"/{tail}")]
            if not closer:
                break
            found = closer
        return found

    def files_named_with(self, number: str) -> list[int]:
        """The files whose name contains a number like ``FEAT-003``, as a whole."""
        wanted = number.lower()
        found = [
            at
            for name, files in self._by_name.items()
            # FEAT-003 is not FEAT-0031
            if wanted in name and not name.partition(wanted)[2][:1].isdigit()
            for at in files
        ]
        return sorted(found)

    def files_of_module(self, module: str) -> list[int]:
        """The files whose path, without extension, ends in a module's: ``a/b`` finds ``src/a/b.py``."""
        tail = module.lower()
        found = []
        for at in self._by_stem.get(tail.rpartition("/")[2], ()):
            whole = self.paths[at].lower().partition(".")[0]
            # a package's own file, `a/b/__init__.py`, represents its folder
            ends = (whole, whole.rpartition("/")[0])
            if any(f"/{end}".endswith(f"/{tail}") for end in ends):
                found.append(at)
        return found

    def postings(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        """(live units int64 ascending, counts float64) of a term: chunks, or rows if it begins with `NAME`."""
        found = self._cache.get(term)
        if found is None:
            found = self._read(term)
            self._held += found[0].nbytes + found[1].nbytes + 200
            if self._held > MAX_POSTINGS:
                self._cache.clear()
                self._held = found[0].nbytes + found[1].nbytes + 200
            self._cache[term] = found
        return found

    def _read(self, term: str) -> tuple[np.ndarray, np.ndarray]:
        name = term.startswith(NAME)
        bases, live = (self._blob_base, self.names.live) if name else (self._chunk_base, self.chunks.live)
        numbers, counts = [np.zeros(0, np.int64)], [np.zeros(0)]
        for segment, data in self._database.postings(term):
            # another process merged segments after this view was built
            if segment not in bases:
                raise StaleView
            docs, times = unpacked(data)
            numbers.append(docs.astype(np.int64) + bases[segment])
            counts.append(times.astype(np.float64))
        docs, times = np.concatenate(numbers), np.concatenate(counts)
        kept = live[docs]
        return docs[kept], times[kept]


def steps_of(path: str) -> list[str]:
    """The parts of a path as written by a person, in lower case."""
    return [step for step in path.replace("\\", "/").lower().split("/") if step not in ("", ".", "..")]


def _numbers(parts: Sequence[bytes]) -> np.ndarray:
    return np.frombuffer(b"".join(parts), "<u4").astype(np.int64)


MOST_COMMITS = 3_000
VOTERS = 50
MOST_FILES = 30
"""Maximum files of a commit: one that changed more says little about any of them."""
LATEST = 200
HALF = 50
"""Number of commits after which a change counts half."""
_MESSAGE = 2_000
_K1, _B = 1.2, 0.75

Row = tuple[str, str, bytes, bytes]
"""sha, subject, packed terms, packed files: a commit as stored in the database."""


def packed(commit: Commit) -> Row:
    """A commit as a row; invalid UTF-8 becomes question marks in its message, and files with it are left out."""
    counts = count_terms(f"{commit.subject}\n{commit.body[:_MESSAGE]}")
    files = [path for path in commit.files if _utf8(path) == path] if len(commit.files) <= MOST_FILES else []
    return (commit.sha, _utf8(commit.subject[:300]), _encode(dict(sorted(counts.items()))), _encode(files))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


class _Message(Struct, frozen=True):
    sha: str
    subject: str
    terms: Mapping[str, int]
    length: int
    files: tuple[str, ...]


class CommitHistory:
    """The past commits of a view, in memory, newest first."""

    def __init__(self, shas: Iterable[str], rows: Mapping[str, tuple[str, bytes, bytes]]) -> None:
        self._messages = []
        for sha in shas:
            row = rows.get(sha)
            if row is not None:
                terms = _terms.decode(row[1])
                self._messages.append(_Message(sha, row[0], terms, sum(terms.values()), tuple(_files.decode(row[2]))))
        self._average = max(sum(one.length for one in self._messages) / max(len(self._messages), 1), 1e-9)
        self._frequency: dict[str, int] = {}
        for one in self._messages:
            for term in one.terms:
                self._frequency[term] = self._frequency.get(term, 0) + 1

    def __len__(self) -> int:
        return len(self._messages)

    def past(self) -> list[PastCommit]:
        """Every commit, newest first, without a score."""
        return [PastCommit(one.sha, one.subject, one.files, 0.0) for one in self._messages]

    def recent(self, position: Mapping[str, int]) -> np.ndarray:
        """How recently and how often each file was changed, float64 (files,): work continues where it was done."""
        votes: dict[str, float] = {}
        for at, one in enumerate(self._messages[:LATEST]):
            for path in one.files:
                votes[path] = votes.get(path, 0.0) + 0.5 ** (at / HALF) / len(one.files) ** 0.5
        return _by_file(votes, position)

    def similar(self, question: IndexQuery, limit: int = VOTERS) -> list[PastCommit]:
        """The commits most similar to the question, best first; of equal ones the newer first."""
        weights = {}
        for term, weight in question.weights:
            count = self._frequency.get(term)
            if count:
                weights[term] = weight * float(np.log(1 + (len(self) - count + 0.5) / (count + 0.5)))
        scored = []
        for at, one in enumerate(self._messages):
            score = 0.0
            for term, weight in weights.items():
                times = one.terms.get(term)
                if times:
                    norm = _K1 * (1 - _B + _B * one.length / self._average)
                    score += weight * times * (_K1 + 1) / (times + norm)
            if score > 0:
                scored.append((-score, at))
        best = sorted(scored)[:limit]
        return [
            PastCommit(self._messages[at].sha, self._messages[at].subject, self._messages[at].files, -score)
            for score, at in best
        ]


def score_commits(similar: Sequence[PastCommit], position: Mapping[str, int]) -> np.ndarray:
    """The votes that each file gets, float64 (files,)."""
    votes: dict[str, float] = {}
    for commit in similar:
        for path in commit.files:
            votes[path] = votes.get(path, 0.0) + commit.score / len(commit.files) ** 0.5
    return _by_file(votes, position)


def _by_file(votes: Mapping[str, float], position: Mapping[str, int]) -> np.ndarray:
    scores = np.zeros(len(position))
    for path, vote in votes.items():
        if path in position:
            scores[position[path]] = vote
    return scores


_encode = msgspec.msgpack.Encoder().encode
_terms = msgspec.msgpack.Decoder(dict[str, int])
_files = msgspec.msgpack.Decoder(list[str])


_SHORTEST_PREFIX = 4
_PREFIX_HIT = 0.7
_OTHER_FOLDER = 0.3
"""Weight of a file that matches a path only by name."""


def mentioned(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files whose path ends like one in the question or whose name has a number from it (``FEAT-003-search.md``),
    float64 (files,); a path or number that fits many counts less.
    """
    scores = np.zeros(len(view))
    for path in question.paths:
        _give(scores, *_likely(path, view), 1.0)
    for number in question.numbered:
        _give(scores, view.files_named_with(number), 1.0, 1.0)
    return scores


def in_traces(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files of stack traces, float64 (files,); the innermost frame counts most."""
    scores = np.zeros(len(view))
    for at, path in enumerate(question.frames):
        _give(scores, *_likely(path, view), 0.5 ** min(at, 4))
    return scores


def _likely(path: str, view: IndexView) -> tuple[list[int], float]:
    """The files that a path may name, with the certainty: paths that differ in a folder are different files."""
    files = view.files_ending(path)
    whole = "/" + "/".join(steps_of(path))
    sure = [at for at in files if whole.endswith(f"/{view.paths[at].lower()}")]
    ends = [at for at in files if f"/{view.paths[at].lower()}".endswith(whole)]
    return (sure or ends, 1.0) if sure or ends else (files, _OTHER_FOLDER)


def by_module(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files of a dotted name, float64 (files,): ``package/module.py`` for ``package.module.Class``."""
    scores = np.zeros(len(view))
    for name in question.modules:
        steps = name.split(".")
        for size in range(len(steps), 0, -1):
            found = view.files_of_module("/".join(steps[:size]))
            # a single part is a word in which many paths end
            if found and (size > 1 or len(found) == 1):
                _give(scores, found, 1.0, size / len(steps))
                break
    return scores


def by_stem(question: IndexQuery, view: IndexView) -> np.ndarray:
    """The share of each file name's words that are in the question, float64 (files,); less for a word of which only the
    beginning is: `config` in the name for "configuration", `configuration` for "config".
    """
    said = {term for term, _ in question.weights}
    index = view.path_index
    hits = np.zeros(len(index.words))
    ordered = index.alphabetical
    for term in (one for one in said if len(one) >= _SHORTEST_PREFIX):
        place = bisect_left(ordered, (term, 0))
        while place < len(ordered) and ordered[place][0].startswith(term):
            if ordered[place][0] != term:
                hits[ordered[place][1]] = _PREFIX_HIT
            place += 1
        for begun in (term[:size] for size in range(_SHORTEST_PREFIX, len(term))):
            place = bisect_left(ordered, (begun, 0))
            if place < len(ordered) and ordered[place][0] == begun:
                hits[ordered[place][1]] = _PREFIX_HIT
    for term in said:
        hits[index.with_stem.get(term, [])] = 1.0
    sums = np.bincount(index.file_of_word, weights=hits[index.word_of], minlength=len(view))
    sizes = np.bincount(index.file_of_word, minlength=len(view))
    return sums / np.maximum(sizes, 1)


def _give(scores: np.ndarray, files: list[int], sure: float, weight: float) -> None:
    for at in files:
        scores[at] = max(scores[at], sure * weight / len(files) ** 0.5)
