"""Channels of history and of names: past commits like the question, and files that it names outright.

BM25 over messages: each of the `VOTERS` most similar commits gives the files that it changed its score, divided by the
root of how many there are (docs/formats/ask.md §8: worth about a point of Acc@5, more where history is long).

Files are named by path, by stack trace, by dotted module, by number, or by their name's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from helix_tui.core.ask.corpus.git import Commit
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.view import IndexView, steps_of
from helix_tui.core.ask.records import PastCommit
from helix_tui.core.ask.tokens import count_terms, stem

MOST_COMMITS = 3_000
VOTERS = 50
MOST_FILES = 30
"""A commit that changed more says little about any of them."""
LATEST = 200
HALF = 50
"""Commits after which a change counts for half."""
_MESSAGE = 2_000
_K1, _B = 1.2, 0.75

Row = tuple[str, str, bytes, bytes]
"""sha, subject, packed terms, packed files: a commit as the database keeps it."""


def packed(commit: Commit) -> Row:
    """A commit as a row; bytes that are no UTF-8 are question marks in its message, and no file is named with them."""
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
        """Every commit, newest first, with no score."""
        return [PastCommit(one.sha, one.subject, one.files, 0.0) for one in self._messages]

    def recent(self, paths: Sequence[str]) -> np.ndarray:
        """How lately and how often each file was changed, float64 (files,): work goes on where it is done."""
        votes: dict[str, float] = {}
        for at, one in enumerate(self._messages[:LATEST]):
            for path in one.files:
                votes[path] = votes.get(path, 0.0) + 0.5 ** (at / HALF) / len(one.files) ** 0.5
        return np.array([votes.get(path, 0.0) for path in paths])

    def similar(self, question: IndexQuery, limit: int = VOTERS) -> list[PastCommit]:
        """The commits most like the question, best first; ties go to the newer one."""
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


def score(similar: Sequence[PastCommit], paths: Sequence[str]) -> np.ndarray:
    """The votes that each file gets, float64 (files,)."""
    votes: dict[str, float] = {}
    for commit in similar:
        for path in commit.files:
            votes[path] = votes.get(path, 0.0) + commit.score / len(commit.files) ** 0.5
    return np.array([votes.get(path, 0.0) for path in paths])


_encode = msgspec.msgpack.Encoder().encode
_terms = msgspec.msgpack.Decoder(dict[str, int])
_files = msgspec.msgpack.Decoder(list[str])


_SHORTEST_PREFIX = 4
_PREFIX_HIT = 0.7
_OTHER_FOLDER = 0.3
"""What a file counts for whose name alone is that of a path."""


def mentioned(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files whose path ends like one in the question or whose name has a number of it (``FEAT-003-search.md``),
    float64 (files,); what fits many counts for less.
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
    """The files that a path names and how sure that is: two paths that differ in a folder are two files."""
    files = view.files_ending(path)
    whole = "/" + "/".join(steps_of(path))
    sure = [at for at in files if whole.endswith(f"/{view.paths[at].lower()}")]
    ends = [at for at in files if f"/{view.paths[at].lower()}".endswith(whole)]
    return (sure or ends, 1.0) if sure or ends else (files, _OTHER_FOLDER)


def by_module(question: IndexQuery, view: IndexView) -> np.ndarray:
    """Files that a dotted name leads to, float64 (files,): ``package.module.Class`` to
    ``package/module.py``.
    """
    scores = np.zeros(len(view))
    for name in question.modules:
        steps = name.split(".")
        for size in range(len(steps), 0, -1):
            found = view.files_of_module("/".join(steps[:size]))
            # one step alone is a word in which many paths end
            if found and (size > 1 or len(found) == 1):
                _give(scores, found, 1.0, size / len(steps))
                break
    return scores


def by_stem(question: IndexQuery, view: IndexView) -> np.ndarray:
    """The share of each file name's words that the question says, float64 (files,)."""
    said = {term for term, _ in question.weights}
    # both ways round: `config` in the name for "configuration", `configuration` for "config"
    begun = {term[:size] for term in said for size in range(_SHORTEST_PREFIX, len(term))}
    index = view.path_index
    hits = np.array([_hit(word, said, begun) for word in index.words], np.float64)
    sums = np.bincount(index.file_of_word, weights=hits[index.word_of], minlength=len(view))
    sizes = np.bincount(index.file_of_word, minlength=len(view))
    return sums / np.maximum(sizes, 1)


def _hit(word: str, said: set[str], begun: set[str]) -> float:
    """Whether a word of a file's name is said; less where only one of the two begins with the other."""
    if stem(word) in said:
        return 1.0
    if word[:_SHORTEST_PREFIX] not in begun and word[:_SHORTEST_PREFIX] not in said:
        return 0.0
    if word in begun or any(word[:size] in said for size in range(_SHORTEST_PREFIX, len(word))):
        return _PREFIX_HIT
    return 0.0


def _give(scores: np.ndarray, files: list[int], sure: float, weight: float) -> None:
    for at in files:
        scores[at] = max(scores[at], sure * weight / len(files) ** 0.5)
