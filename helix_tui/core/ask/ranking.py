"""From channels to one order of files: scores scaled to their best, weighted, summed, multiplied with a
prior.

Weights are round and set by hand: measured sets are too small to fit them (reference/engines.md §1.3). Ties
break by path, so the order is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from helix_tui.core.ask.channels import commits, lexical
from helix_tui.core.ask.question import Question
from helix_tui.core.ask.records import RankedFile, Role
from helix_tui.core.ask.store.view import View

WEIGHTS: Mapping[str, float] = {"whole": 1.0, "best": 1.0, "path": 0.5, "names": 0.5, "commits": 0.3}
PRIORS: Mapping[Role, float] = {
    "source": 1.0, "test": 0.55, "doc": 0.6, "example": 0.6, "config": 0.7, "data": 0.5, "vendored": 0.4,
}  # fmt: skip
_ROLE_OF_KIND: Mapping[str, Role] = {"test": "test", "doc": "doc", "example": "example", "config": "config"}


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order of files for one question, and the scores of chunks that it rests on."""

    files: list[RankedFile]
    chunks: np.ndarray
    """float64 (chunks,): BM25 of every chunk."""


def rank(question: Question, view: View, history: commits.History) -> Ranking:
    """Every file that some channel speaks for, best first."""
    words = lexical.score(question, view)
    scaled = {
        "whole": _scaled(words.whole),
        "best": _scaled(words.best),
        "path": _scaled(words.path),
        "names": _scaled(words.names),
        "commits": _scaled(commits.score(history.similar(question), view.paths)),
    }
    total = np.zeros(len(view))
    for name in sorted(scaled):
        total += WEIGHTS[name] * scaled[name]
    priors = np.array([_prior(document.role, question) for document in view.documents])
    total *= priors
    order = [at for at in np.lexsort((np.arange(len(total)), -total)).tolist() if total[at] > 0]
    files = [
        RankedFile(
            view.paths[at],
            float(total[at]),
            {
                name: float(WEIGHTS[name] * values[at])
                for name, values in sorted(scaled.items())
                if values[at] > 0
            },
            view.documents[at].role,
            float(priors[at]),
        )
        for at in order
    ]
    return Ranking(files, words.chunks)


def _prior(role: Role, question: Question) -> float:
    if any(_ROLE_OF_KIND[kind] == role for kind in question.kinds):
        return 1.0
    return PRIORS[role]


def _scaled(scores: np.ndarray) -> np.ndarray:
    most = scores.max(initial=0.0)
    return scores / most if most > 0 else scores
