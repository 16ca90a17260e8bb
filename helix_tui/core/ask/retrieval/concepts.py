"""The concepts of a repository: names of several words that its headings and trees give to things."""

from __future__ import annotations

import re
from collections.abc import Iterator

from helix_tui.core.ask.retrieval.library import Library
from helix_tui.core.ask.retrieval.question import Question
from helix_tui.core.ask.tokens import STOP_WORDS, stem

MOST_WORDS = 4


def concepts_in(library: Library, question: Question) -> tuple[str, ...]:
    """Names of concepts, all of whose words a question has; the longest first, then by name."""
    said = frozenset(question.terms)
    if len(said) < 2:
        return ()
    found: dict[tuple[str, ...], str] = {}
    for title in _titles(library, question.terms):
        words = [word for word in re.findall(r"\w+", title.lower()) if word not in STOP_WORDS]
        terms = tuple(stem(word) for word in words)
        if 1 < len(terms) <= MOST_WORDS and said.issuperset(terms):
            found.setdefault(terms, " ".join(words))
    return tuple(sorted(found.values(), key=lambda name: (-len(name.split()), name)))


def _titles(library: Library, terms: tuple[str, ...]) -> Iterator[str]:
    for heading in library.headings(terms):
        yield heading.title
    for tree in library.trees():
        for node in tree.nodes.values():
            yield node.title
