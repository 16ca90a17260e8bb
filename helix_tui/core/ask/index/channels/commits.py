"""Past commits: those whose messages are like the question vote for the files that they changed.

BM25 over messages; each of the `VOTERS` most similar gives its files its score, divided by the root of how
many there are (docs/formats/ask.md §8: worth about a point of Acc@5, more where history is long).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from helix_tui.core.ask.corpus.git import Commit
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.records import PastCommit
from helix_tui.core.ask.tokens import count_terms

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
    """A commit as a row."""
    counts = count_terms(f"{commit.subject}\n{commit.body[:_MESSAGE]}")
    files = commit.files if len(commit.files) <= MOST_FILES else ()
    return (commit.sha, commit.subject[:300], _encode(dict(sorted(counts.items()))), _encode(files))


@dataclass(frozen=True, slots=True)
class _Message:
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
