"""When two texts say the same: what must be equal in them, and how alike the rest must be
(docs/decisions/0016).

A model sees nearly one text in "exit code 137" and "exit code 127", in production and staging, in migration
0042 and 0057. What tells problems apart is read out of the words here: figures, codes, names of code, names
of environments, and words that turn a meaning round. Where those differ, nothing is merged, however near the
vectors lie.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from helix_tui.core.memory.recall.thesaurus import related
from helix_tui.core.memory.store.base import Base
from helix_tui.core.memory.words import identifiers, key, likeness, stem

RESOLVES_ALIKE = 0.85
"""Cosine of two resolutions from which on they agree: helix v1's threshold."""

WORDED_ALIKE = 0.8
"""The same without an encoder: share of common words (Dice)."""

_TELL_APART = 2
"""Words of two texts of one length in which they differ if they speak of two things; more, and it is another
wording."""

_FIGURE = re.compile(r"(?<![\w.])[+-]?\d[\w.:]*|(?<!\w)\w*\d\w*")
_CODE = re.compile(r"\b[A-Z][A-Z0-9_]+\b")
_WORD = re.compile(r"[^\W_]+(?:['’]t)?")
_PLAIN = frozenset(
    ("a", "an", "and", "are", "as", "be", "been", "being", "is", "it", "its", "of", "the", "this", "that")
)
"""Words without which a text says the same."""

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
    """What two texts must have in common to speak of one thing.

    Figures, codes, names of code, environments, and words that turn a meaning round.
    """
    found = {match[0].rstrip(".:").lower() for match in _FIGURE.finditer(text)}
    found |= {match[0].lower() for match in _CODE.finditer(text)}
    found |= set(identifiers(text))
    for match in _WORD.finditer(text):
        word = match[0].lower().replace("’", "'")
        word = "not" if word.endswith("n't") else _ALIASES.get(word, word)
        if word in _TELLING:
            found.add(word)
    return frozenset(found)


@lru_cache(maxsize=4_096)
def _gist(text: str) -> tuple[str, ...]:
    """The words of a text in their order, without endings and without what may be left out."""
    return tuple(stem(word) for each in _WORD.findall(text) if (word := each.lower()) not in _PLAIN)


def _one_word_apart(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two texts are the same but for a word or two in the same place, which is what tells them apart.

    Words that stand for one another do not: those are one text in other words.
    """
    if len(one) != len(other) or sorted(one) == sorted(other):
        return False
    apart = [(mine, theirs) for mine, theirs in zip(one, other, strict=True) if mine != theirs]
    return 0 < len(apart) <= _TELL_APART and not any(theirs in related(mine) for mine, theirs in apart)


def one_matter(one: str, other: str) -> bool:
    """Whether two texts have all specifics in common, and no other word in the place of one.

    A name in capitals is the same name without them.
    """
    mine, theirs = specifics(one), specifics(other)
    if _one_word_apart(_gist(one), _gist(other)):
        return False
    return mine == theirs or (mine - theirs <= _all_words(other) and theirs - mine <= _all_words(one))


def _all_words(text: str) -> set[str]:
    return {match[0].lower() for match in _WORD.finditer(text)}


def same_problem(one: str, other: str) -> bool:
    """Whether two triggers name one problem in the same words; case, articles and endings do not count."""
    if one == other:
        return True
    alike = key(one) == key(other) != "" or (_gist(one) == _gist(other) != ())
    return alike and one_matter(one, other)


def resolve_alike(base: Base, one: str, other: str) -> bool:
    """Whether two resolutions agree: the same specifics, and alike by meaning or, without it, by words."""
    if key(one) == key(other) != "" or one == other:
        return one_matter(one, other)
    if not one_matter(one, other):
        return False
    vectors = base.encode([one, other])
    if vectors is None:
        return likeness(one, other) >= WORDED_ALIKE
    return float(vectors[0] @ vectors[1]) >= RESOLVES_ALIKE
