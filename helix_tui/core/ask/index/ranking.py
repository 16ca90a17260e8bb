"""Combine the channels into one order of files: scores scaled to their best, weighted, summed, times a prior.

Queries have four shapes (`Shape`), each with its own weights. Weights are round; they were chosen by cross-validation
over repositories, on 900 questions, issues, commit messages and work items over 30 repositories in five languages
(bench/ask.md). Ties are broken by path, so the order is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from helix_tui.core.ask import tokens
from helix_tui.core.ask.index import channels
from helix_tui.core.ask.index.question import IndexQuery, Shape
from helix_tui.core.ask.index.view import (
    CommitHistory,
    IndexView,
    by_module,
    by_stem,
    in_traces,
    mentioned,
    score_commits,
)
from helix_tui.core.ask.records import RankedFile, Role

WEIGHTS: Mapping[str, float] = {
    "whole": 0.6, "best": 1.25, "path": 0.25, "names": 0.4, "stem": 0.1, "short": 0.2, "symbol": 0.8, "fuzzy": 0.3,
    "mention": 0.6, "trace": 0.5, "module": 0.4, "commits": 0.4, "recent": 0.0, "title": 0.0, "calls": 0.2,
    "meaning": 0.6,
}  # fmt: skip
"""For a question: the best passage counts more than the whole of a long file, and names are meant as such. Somebody who
asks seldom knows the words of a path, so they count little, and the meaning counts more.
"""
OF_A_NAME: Mapping[str, float] = {"symbol": 1.0, "whole": 1.0, "names": 0.5}
"""A name asks for its definition."""
OF_A_REPORT: Mapping[str, float] = {
    # a long text contains words of many file names by chance, and has more content than one vector can represent
    "whole": 1.0, "best": 1.0, "path": 0.4, "names": 0.3, "stem": 0.0, "short": 0.0, "meaning": 0.0,
    # the title is the subject as the author sees it; names in the text are in code that demonstrates it
    "title": 1.25, "symbol": 0.5, "module": 0.5,
    # the code named in a report calls a hundred others, one of which is wrong: no gain on issues of five repositories
    "calls": 0.0,
    # work continues where it was done recently
    "recent": 0.3,
}  # fmt: skip
OF_WORK: Mapping[str, float] = {
    # it is described in the words of the code that it changes
    **OF_A_REPORT, "best": 1.25, "path": 0.3, "names": 0.4, "symbol": 0.3, "module": 0.4, "commits": 0.5,
    "meaning": 0.15,
}  # fmt: skip
OF_SHAPE: Mapping[Shape, Mapping[str, float]] = {
    "name": {**WEIGHTS, **OF_A_NAME},
    "question": WEIGHTS,
    "report": {**WEIGHTS, **OF_A_REPORT},
    "work": {**WEIGHTS, **OF_WORK},
}
TITLE: Mapping[str, float] = {"whole": 0.2, "best": 0.2, "names": 0.2, "path": 0.3}
"""Weight of a title's own scores relative to those of the whole text."""
PRIORS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.6, "doc": 0.6, "example": 0.5, "config": 0.8, "data": 0.6, "vendored": 0.4,
}  # fmt: skip
PRIORS_OF_SHAPE: Mapping[Shape, Mapping[Role, float]] = {
    "name": PRIORS,
    "question": PRIORS,
    # problems are shown by tests and fixed in sources
    "report": {**PRIORS, "test": 0.35, "doc": 0.5},
    # a task includes its tests, and often its documents
    "work": {**PRIORS, "test": 0.85},
}
ASKED_FOR = 0.8
"""Minimum weight of a kind of file that the text names; less than a source's, as "doc" and "test" are ordinary words
in a documentation tool or a test framework."""
OUTDATED = 0.6
"""Weight of a file of an older version, unless the text names its folder: it duplicates the current one, and is rarely
meant.
"""
INHERITED = 0.15
"""The share of its source's score that a test gets for a work item: a change of one changes the other."""
OF_PASSAGES = 1.0
"""The weight of meaning if passages are compared: the meaning of a long question is nearer to a passage."""
CALLERS = 8
"""Number of best sources whose calls are followed, from their best passages."""
SECOND_STEP = 0.5
_SURE = frozenset({"fuzzy", "mention", "module", "symbol", "trace"})
_ROLE_OF_KIND: Mapping[str, Role] = {"test": "test", "doc": "doc", "example": "example", "config": "config"}


class RankingSources(Struct, frozen=True):
    """Everything that a ranking uses besides the question."""

    view: IndexView
    history: CommitHistory
    reader: channels.Reader
    meanings: channels.Meanings | None = None
    """None if the encoder must not be used."""


class Ranking:
    """The order of files for one question, and its scores."""

    def __init__(
        self, view: IndexView, parts: Mapping[str, np.ndarray], weights: np.ndarray, chunks: np.ndarray
    ) -> None:
        """``parts`` are the channels after their weights, ``weights`` the priors, both by file."""
        self.chunks = chunks
        """float64 (chunks,): BM25 of every chunk."""
        self._view = view
        self._parts = parts
        self._priors = weights
        total = np.zeros(len(view))
        for name in sorted(parts):
            total += parts[name]
        self._total = total * weights
        order = np.lexsort((np.arange(len(total)), -self._total))
        self.order: list[int] = order[: int((self._total > 0).sum())].tolist()
        """Positions of the files with a score in any channel, best first; ties in order of path."""

    def best_chunk(self, at: int) -> int | None:
        """The number, within a file, of the chunk that best matches the question; None if no chunk matches."""
        row = int(self._view.row[at])
        scores = self.chunks[int(self._view.first[row]) : int(self._view.first[row + 1])]
        return int(np.argmax(scores)) if len(scores) else None

    def share(self, at: int) -> float:
        """A file's score as a share of the best one's."""
        return float(self._total[at] / self._total[self.order[0]])

    def files(self, chosen: Sequence[int]) -> list[RankedFile]:
        """The files at some positions, with the parts of their scores."""
        parts = {name: values[chosen].tolist() for name, values in self._parts.items()}
        totals, priors = self._total[chosen].tolist(), self._priors[chosen].tolist()
        return [
            RankedFile(
                self._view.paths[at],
                totals[number],
                {name: values[number] for name, values in parts.items() if values[number] > 0},
                self._view.documents[at].role,
                priors[number],
            )
            for number, at in enumerate(chosen)
        ]


def rank(question: IndexQuery, known: RankingSources) -> Ranking:
    """Rank every file with a score in any channel, best first.

    Words, names and history come first; then calls of the best files are followed, and their meanings compared.
    """
    view = known.view
    words = channels.score_words(question.weights, view)
    weights = weights_for(question)
    found = _by_words(question, words, known)
    # a channel without weight for this shape does not appear in the explanation of a score
    parts = {name: weights[name] * _scaled(name, found[name]) for name in sorted(found) if weights[name]}
    prior = priors(question, view)
    # a first order by words, as calls and meanings are too expensive for every file
    first = Ranking(view, parts, prior, words.chunks)
    if weights["calls"]:
        parts["calls"] = weights["calls"] * _calls(first, known)
    if weights["meaning"] and known.meanings is not None:
        weight = OF_PASSAGES if _is_long(question) else weights["meaning"]
        parts["meaning"] = weight * _scaled("meaning", _meanings(question, first, known, known.meanings))
    if question.shape == "work":
        parts["tested"] = _inherited(parts, prior, view)
    return Ranking(view, parts, prior, words.chunks)


def _by_words(question: IndexQuery, words: channels.Lexical, known: RankingSources) -> dict[str, np.ndarray]:
    """Every channel that does not depend on another, float64 (files,)."""
    view, history = known.view, known.history
    return {
        "whole": words.whole,
        "best": words.best,
        "path": words.path,
        "names": words.names,
        "title": _title(question, view),
        "short": channels.shortened(question, view) if weights_for(question)["short"] else np.zeros(len(view)),
        "stem": by_stem(question, view),
        "symbol": channels.score_symbols(question, view),
        "fuzzy": channels.score_fuzzy(question, view),
        "mention": mentioned(question, view),
        "trace": in_traces(question, view),
        "module": by_module(question, view),
        "commits": score_commits(history.similar(question), view.position),
        "recent": history.recent(view.position),
    }


def _title(question: IndexQuery, view: IndexView) -> np.ndarray:
    """The scores of the title alone, its parts already weighted."""
    titled = question.titled()
    total = np.zeros(len(view))
    if titled is not None:
        words = channels.score_words(titled.weights, view)
        for name, scores in (
            ("whole", words.whole), ("best", words.best), ("names", words.names), ("path", words.path),
        ):  # fmt: skip
            total += TITLE[name] * _scaled(name, scores)
    return total


def _calls(first: Ranking, known: RankingSources) -> np.ndarray:
    """Scores of the definitions called in the best passages of the best sources, and of those that they call."""
    view, seeds = known.view, []
    # tests and documents call what they are about, not what implements it
    sources = [at for at in first.order[: CALLERS * 8] if view.documents[at].role == "source"][:CALLERS]
    for at in sources:
        chunk = first.best_chunk(at)
        cut = known.reader.pieces(view.paths[at]).chunks[chunk] if chunk is not None else None
        if cut is not None:
            seeds.append(channels.CallSeed(at, cut.start, cut.end, first.share(at)))
    one, two = channels.score_calls(seeds, view, known.reader)
    total: np.ndarray = _scaled("calls", one) + SECOND_STEP * _scaled("calls", two)
    return total


def _meanings(question: IndexQuery, first: Ranking, known: RankingSources, meanings: channels.Meanings) -> np.ndarray:
    """The similarity in meaning of the best files, by their digests or by their best passages."""
    view, reader = known.view, known.reader
    scores = np.zeros(len(view))
    speaking = [at for at in first.order if channels.speaks_for(view.documents[at].role)][: channels.MOST_BY_MEANING]
    if _is_long(question):
        speaking = speaking[: channels.MOST_PASSAGES]
        texts = [_passage(at, first, known) for at in speaking]
    else:
        texts = [channels.digest(view.paths[at], reader.pieces(view.paths[at])) for at in speaking]
    found = meanings.score(question.text, texts)
    if found is not None:
        scores[speaking] = found
    return scores


def _is_long(question: IndexQuery) -> bool:
    return question.shape == "question" and len(question.text.split()) > channels.FEW_WORDS


def _passage(at: int, first: Ranking, known: RankingSources) -> str:
    """The passage of a file with the most words of the question."""
    path, chunk = known.view.paths[at], first.best_chunk(at)
    if chunk is None:
        return path
    cut = known.reader.pieces(path).chunks[chunk]
    return channels.passage(path, cut.header, known.reader.lines(path, cut.start, cut.end))


def _inherited(parts: Mapping[str, np.ndarray], prior: np.ndarray, view: IndexView) -> np.ndarray:
    """Each test's share of its source's score, before its prior."""
    total = sum((parts[name] for name in sorted(parts)), np.zeros(len(view))) * prior
    scores = np.zeros(len(view))
    tests = view.tests
    # divided by the test's prior, as the ranking multiplies with it again
    scores[tests] = INHERITED * total[view.tested[tests]] / prior[tests]
    return scores


def weights_for(question: IndexQuery) -> Mapping[str, float]:
    """The weights for a shape: a name asks for its definition, a report for the words it uses."""
    return OF_SHAPE[question.shape]


def priors(question: IndexQuery, view: IndexView) -> np.ndarray:
    """The factor for each file's sum, float64 (files,)."""
    of_role = dict(PRIORS_OF_SHAPE[question.shape])
    for kind in question.kinds:
        role = _ROLE_OF_KIND[kind]
        of_role[role] = max(of_role[role], ASKED_FOR)
    roles, role_of_file = view.roles
    shares: np.ndarray = view.standing * np.array([of_role[role] for role in roles])[role_of_file]
    said = set(tokens.words(question.text.lower()))
    for at, folder in view.outdated.items():
        if folder not in said:
            shares[at] *= OUTDATED
    return shares


def _scaled(channel: str, scores: np.ndarray) -> np.ndarray:
    """Scores scaled to a maximum of 1; a channel with absolute scores keeps a doubtful maximum below 1."""
    if channel in ("title", "short"):
        return scores
    most = scores.max(initial=1.0 if channel in _SURE else 0.0)
    return scores / most if most > 0 else scores
