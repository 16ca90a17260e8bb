"""Split texts into the words of the keyword leg, and make names of them.

Identifiers are split, English words reduced to their stems. ``parse_config`` is found as ``parse``, as ``config`` and
as itself; ``src/auth.py`` as each of its parts, as ``auth.py`` and as the whole. SQLite's own tokenizers cannot do
that, so the split words are indexed.
"""

from __future__ import annotations

import re
from functools import lru_cache

from helix_tui.core.ground.text import stem_english

MAX_WORDS = 4_000
"""Maximum words read of one text."""

MAX_NAME = 50
"""Maximum characters of a memory's name."""

_SLUG = re.compile(r"[^a-z0-9]+")
_TOKEN = re.compile(r"\w+(?:[./:\\-]+\w+)*")
_STEP = re.compile(r"[/\\]+")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_IDENTIFIER = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z]\d|\d[A-Za-z]|\w[_.:/\\]+\w")

_STOP_WORDS = """
a an and are as at be been but by can do does for from had has have how if in into is it its
let may no not of on or our so some such than that the their them then there these they this to
too up use used using was we were what when where which while who why will with would you your
"""

_STOP = frozenset(_STOP_WORDS.split())


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A lower-case word without its English endings."""
    return stem_english(word)


def words(text: str) -> list[str]:
    """The search words of a text in order, with repetitions."""
    found: list[str] = []
    for token in _TOKEN.findall(text):
        found += _forms(token)
        if len(found) >= MAX_WORDS:
            break
    return found[:MAX_WORDS]


def telling(text: str) -> list[str]:
    """The distinctive words of a query, without stop words and duplicates."""
    return [word for word in dict.fromkeys(words(text)) if word not in _STOP]


def identifiers(text: str) -> list[str]:
    """The names of code in a query, each as one word: ``parse_config``, ``ImportError``, ``auth.py``."""
    found = [form for token in _TOKEN.findall(text) if _IDENTIFIER.search(token) for form in _wholes(token)]
    return list(dict.fromkeys(found))[:MAX_WORDS]


def key(text: str) -> str:
    """A key that is equal for texts differing only in case, punctuation and blanks."""
    return " ".join(_PART.findall(text.casefold()))


def likeness(left: str, right: str) -> float:
    """The similarity of two texts by words, 0 to 1 (Dice), used without an encoder."""
    one, other = set(telling(left)), set(telling(right))
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _forms(token: str) -> list[str]:
    pieces = [piece for part in _PART.findall(token) for piece in _CAMEL.findall(part)]
    # a stop word keeps its form: `telling` would not recognise its stem
    simple = [piece if (lower := piece.lower()) in _STOP else stem(lower) for piece in pieces]
    forms = [piece.lower() for piece in simple]
    if len(pieces) > 1:
        forms += [whole for whole in _wholes(token) if whole not in forms]
    return forms


def _wholes(token: str) -> list[str]:
    """The token as one word, and the last step of a path as one."""
    last = _STEP.split(token)[-1]
    return list(dict.fromkeys("".join(_PART.findall(text)).lower() for text in (token, last)))


def slug(text: str) -> str:
    """A name for a text: its whole first words in lower case, joined by dashes, at most 50 characters."""
    whole = dashed(text)
    cut = whole[:MAX_NAME]
    if whole[MAX_NAME : MAX_NAME + 1].strip("-"):
        # a word is whole or not there, as long as half a name is left
        fewer = cut.rpartition("-")[0]
        cut = fewer if len(fewer) >= MAX_NAME // 2 else cut
    return cut.strip("-")


def dashed(text: str) -> str:
    """A text in lower case, its words joined by dashes."""
    return _SLUG.sub("-", text.lower()).strip("-")
