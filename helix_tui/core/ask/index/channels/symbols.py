"""Names that the question writes as code does, found where they are defined.

A name that many files define says little: each gets the power -0.7 of their number (docs/formats/ask.md §8).
"""

from __future__ import annotations

import numpy as np

from helix_tui.core.ask.index.question import IndexQuery
from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.tokens import STOP_WORDS, words

SHARE_OF_CAPITAL = 0.5
"""A capitalised word may only begin a sentence."""
SHARE_OF_PHRASE = 0.2
"""Words that follow each other and make a name when joined: "user agent" and ``user_agent``."""
PHRASE = (2, 3)
_RARITY = -0.7
_OWN_FILE = 1.5
"""What a definition counts for more in a file that is named after it."""


def score(question: IndexQuery, view: IndexView) -> np.ndarray:
    """What each file defines of the names in the question, float64 (files,)."""
    scores = _phrases(question, view)
    plain = (name for name in question.capitals if name not in question.symbols)
    for name, share in [(name, 1.0) for name in question.symbols] + [(name, SHARE_OF_CAPITAL) for name in plain]:
        files = defining(name, view)
        if not files:
            continue
        sources = sum(view.documents[at].role == "source" for at in files)
        weight = share * max(sources, 1) ** _RARITY
        for at in files:
            scores[at] += weight * (_OWN_FILE if _named_after(view.paths[at], name) else 1.0)
    return scores


def _phrases(question: IndexQuery, view: IndexView) -> np.ndarray:
    """What the title's words define when they are joined, in any case."""
    said = [word.lower() for word in words(question.title) if word.lower() not in STOP_WORDS]
    runs = ["_".join(said[at : at + size]) for size in PHRASE for at in range(len(said) - size + 1)]
    scores = np.zeros(len(view))
    for name in dict.fromkeys(name for run in runs for name in (run, run.replace("_", ""))):
        files = view.files_defining(name, any_case=True)
        for at in files:
            scores[at] += SHARE_OF_PHRASE * len(files) ** _RARITY
    return scores


def defining(name: str, view: IndexView) -> list[int]:
    """The files that define a name, by position; where none does in this spelling, those that do in
    another.
    """
    return view.files_defining(name) or view.files_defining(name, any_case=True)


def _named_after(path: str, name: str) -> bool:
    stem = path.rpartition("/")[2].partition(".")[0]
    return stem.replace("_", "").replace("-", "").lower() == name.replace("_", "").lower()
