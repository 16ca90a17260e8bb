"""Tell whether two texts are about the same problem: what must be equal for two memories to merge.

Similarity alone merges nothing (docs/decisions/0016). To a model "exit code 137" and "exit code 127" are nearly the
same, as are production and staging, or migrations 0042 and 0057. Problems are distinguished by words: numbers, codes,
names of code and environments, and words that reverse a meaning. If those differ, two memories stay separate, however
near their vectors are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.words import identifiers, key, likeness, stem

RESOLVES_ALIKE = 0.85
"""Cosine at which two resolutions agree: helix v1's threshold."""

WORDED_ALIKE = 0.8
"""The same without an encoder: share of common words (Dice)."""

_TELL_APART = 2
"""Maximum differing words of two texts of equal length about different things; with more, it is another wording."""

_FIGURE = re.compile(r"(?<![\w.])[+-]?\d[\w.:]*|(?<!\w)\w*\d\w*")
_CODE = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_WORD = re.compile(r"[^\W_]+(?:['’]t)?")

_PLAIN = frozenset(
    ("a", "an", "and", "are", "as", "be", "been", "being", "is", "it", "its", "of", "the", "this", "that")
)
"""Words that do not change the meaning of a text."""

_ALIASES = {
    "prod": "production",
    "stg": "staging",
    "stage": "staging",
    "dev": "development",
    "osx": "macos",
    "mac": "macos",
    "win": "windows",
}

_PLACES = """
production staging development preview canary sandbox uat qa ci local localhost remote
linux macos windows android ios chrome firefox safari docker kubernetes
"""

_OPPOSITES = """
not no never without cannot nor none neither wrong worse instead avoid revert rollback undo disable disabled
enable enabled before after above below read write client server input output start stop open close closed
first last upload download login logout encode decode primary replica secondary source target request response
incoming outgoing upgrade downgrade increase decrease raise lower add remove delete create allow deny minimum
maximum min max sync async synchronous asynchronous public private left right up down on off
"""

_TELLING = frozenset(_PLACES.split()) | frozenset(_OPPOSITES.split())


@lru_cache(maxsize=4_096)
def specifics(text: str) -> frozenset[str]:
    """What two texts must have in common to be about the same thing.

    Figures, codes, names of code, environments, and words that reverse a meaning.
    """
    # without the end of a sentence, which is not part of a number
    found = {match[0].rstrip(".:").lower() for match in _FIGURE.finditer(text)}
    found |= {match[0].lower() for match in _CODE.finditer(text)}
    found |= set(identifiers(text))
    for match in _WORD.finditer(text):
        word = match[0].lower().replace("’", "'")
        # don't and doesn't reverse a meaning as "not" does
        word = "not" if word.endswith("n't") else _ALIASES.get(word, word)
        if word in _TELLING:
            found.add(word)
    return frozenset(found)


@lru_cache(maxsize=4_096)
def _gist(text: str) -> tuple[str, ...]:
    """The words of a text in order, without endings and optional words."""
    return tuple(stem(word) for each in _WORD.findall(text) if (word := each.lower()) not in _PLAIN)


def _one_word_apart(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts are the same except for a word or two in the same place that distinguish them."""
    # the same words in another order are the same text
    if len(one) != len(other) or sorted(one) == sorted(other):
        return False
    apart = [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine != theirs]
    return 0 < len(apart) <= _TELL_APART


def one_matter(one: str, other: str) -> bool:
    """Whether two texts have all specifics in common, and no distinguishing word.

    Case of names is ignored.
    """
    mine, theirs = specifics(one), specifics(other)
    if _one_word_apart(_gist(one), _gist(other)):
        return False
    return mine == theirs or (mine - theirs <= _all_words(other) and theirs - mine <= _all_words(one))


def _all_words(text: str) -> set[str]:
    return {match[0].lower() for match in _WORD.finditer(text)}


def same_problem(one: str, other: str) -> bool:
    """Whether two triggers name one problem in the same words; case, articles and endings are ignored."""
    if one == other:
        return True
    alike = key(one) == key(other) != "" or (_gist(one) == _gist(other) != ())
    return alike and one_matter(one, other)


def resolve_alike(base: Base, one: str, other: str) -> bool:
    """Whether two resolutions agree: the same specifics, and similar in meaning or, without an encoder, in words."""
    # the same except for punctuation, but that may be a sign or a decimal point
    if key(one) == key(other) != "" or one == other:
        return one_matter(one, other)
    if not one_matter(one, other):
        return False
    vectors = base.encode([one, other])
    if vectors is None:
        return likeness(one, other) >= WORDED_ALIKE
    return float(vectors[0] @ vectors[1]) >= RESOLVES_ALIKE
