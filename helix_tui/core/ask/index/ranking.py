"""From channels to one order of files: scores scaled to their best, weighted, summed, multiplied with a
prior.

Weights are round and set by hand: measured sets are too small to fit them (docs/formats/ask.md §8). Ties
break by path, so the order is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from helix_tui.core.ask.index.channels import commits, fuzzy, lexical, meaning, symbols
from helix_tui.core.ask.index.channels import commits as mentions
from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.records import RankedFile, Role

WEIGHTS: Mapping[str, float] = {
    "whole": 1.0, "best": 1.0, "path": 0.5, "names": 0.5, "stem": 0.15, "symbol": 0.3, "fuzzy": 0.3,
    "mention": 0.6, "trace": 0.5, "module": 0.4, "commits": 0.3, "recent": 0.0, "meaning": 1.0,
}  # fmt: skip
OF_A_NAME: Mapping[str, float] = {"symbol": 1.0, "meaning": 0.3}
OF_A_REPORT: Mapping[str, float] = {"best": 1.5, "path": 0.3, "stem": 0.0, "meaning": 0.0, "recent": 0.25}
"""A long text has words of many files' names by chance, and is about more than one vector can hold; it tells
of work, which goes on where it was done lately (docs/formats/ask.md §8).
"""
PRIORS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.55, "doc": 0.5, "example": 0.5, "config": 0.8, "data": 0.5, "vendored": 0.4,
}  # fmt: skip
_SURE = frozenset({"fuzzy", "mention", "module", "symbol", "trace"})
_ROLE_OF_KIND: Mapping[str, Role] = {"test": "test", "doc": "doc", "example": "example", "config": "config"}


class Ranking:
    """The order of files for one question, and the scores that it rests on."""

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
        """Positions of the files that some channel speaks for, best first; ties in order of path."""

    def file(self, at: int) -> RankedFile:
        """The file at a position, with what made up its score."""
        return RankedFile(
            self._view.paths[at],
            float(self._total[at]),
            {name: float(values[at]) for name, values in self._parts.items() if values[at] > 0},
            self._view.documents[at].role,
            float(self._priors[at]),
        )


def features(
    question: IndexQuery, view: IndexView, history: commits.CommitHistory, about: meaning.Meanings | None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Each channel's scores, float64 (files,), its best scaled to 1; and BM25 of every chunk."""
    words = lexical.score(question, view)
    found = {
        "whole": words.whole,
        "best": words.best,
        "path": words.path,
        "names": words.names,
        "stem": mentions.by_stem(question, view),
        "symbol": symbols.score(question, view),
        "fuzzy": fuzzy.score(question, view),
        "mention": mentions.mentioned(question, view),
        "trace": mentions.in_traces(question, view),
        "module": mentions.by_module(question, view),
        "commits": commits.score(history.similar(question), view.paths),
        "recent": history.recent(view.paths),
    }
    if about is not None:
        found["meaning"] = about.score(question)
    return {name: _scaled(name, found[name]) for name in sorted(found)}, words.chunks


def rank(
    question: IndexQuery, view: IndexView, history: commits.CommitHistory, about: meaning.Meanings | None = None
) -> Ranking:
    """Every file that some channel speaks for, best first."""
    scaled, chunks = features(question, view, history, about)
    weights = weights_for(question)
    parts = {name: weights[name] * values for name, values in scaled.items()}
    return Ranking(view, parts, priors(question, view), chunks)


def weights_for(question: IndexQuery) -> Mapping[str, float]:
    """The weights for a kind of question: a name asks for its definition, a report for the words it uses."""
    if question.is_symbol:
        return {**WEIGHTS, **OF_A_NAME}
    if question.is_report:
        return {**WEIGHTS, **OF_A_REPORT}
    return WEIGHTS


def priors(question: IndexQuery, view: IndexView) -> np.ndarray:
    """What each file's sum is multiplied with, float64 (files,)."""
    of_role = {role: _prior(role, question) for role in PRIORS}
    shares: np.ndarray = view.standing * [of_role[document.role] for document in view.documents]
    return shares


def _prior(role: Role, question: IndexQuery) -> float:
    if any(_ROLE_OF_KIND[kind] == role for kind in question.kinds):
        return 1.0
    return PRIORS[role]


def _scaled(channel: str, scores: np.ndarray) -> np.ndarray:
    """Scores with their best at 1; of a channel that says how sure it is, a doubtful best stays doubtful."""
    most = scores.max(initial=1.0 if channel in _SURE else 0.0)
    return scores / most if most > 0 else scores
