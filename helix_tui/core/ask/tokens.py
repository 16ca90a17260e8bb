"""Words as the index knows them: identifiers split, stems taken, stop words left out.

The same function reads files and questions, so that ``getUserName``, ``get_user_name`` and "user names"
meet. An identifier of several parts is also kept whole. Everything is deterministic and free of locale.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import chain

from helix_tui.core.ground.text import stem_english

VERSION = 4
"""To be raised with any change of what a text's terms or definitions are: the index of another version is
made anew.
"""

MAX_WORD = 64
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_ISE = re.compile(r"(?<=[a-z]{3})is(e|es|ed|ing|er|ers|able|ation|ations)$")
_OUR = re.compile(r"our(s|ed|ing|ite|ites|al|able)?$")
_ENDING = re.compile(r"(?:[deglsyi]|[eo]r|ic|[ae]nt|ist|ism|ion|our|\W|[^\x00-\x7f])$")
"""How a word ends of which the stemmer, or the American spelling, leaves less. Others need no stemmer: it is slow."""
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

STOP_WORDS = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "all",
        "also",
        "although",
        "always",
        "am",
        "among",
        "an",
        "and",
        "any",
        "are",
        "aren",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "can",
        "cannot",
        "could",
        "couldn",
        "did",
        "didn",
        "do",
        "does",
        "doesn",
        "doing",
        "don",
        "down",
        "during",
        "each",
        "either",
        "else",
        "ever",
        "every",
        "few",
        "for",
        "from",
        "further",
        "get",
        "gets",
        "getting",
        "go",
        "goes",
        "had",
        "hadn",
        "has",
        "hasn",
        "have",
        "haven",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "him",
        "his",
        "how",
        "however",
        "i",
        "if",
        "in",
        "into",
        "is",
        "isn",
        "it",
        "its",
        "itself",
        "just",
        "let",
        "like",
        "ll",
        "many",
        "may",
        "me",
        "might",
        "more",
        "most",
        "much",
        "must",
        "my",
        "neither",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "one",
        "only",
        "onto",
        "or",
        "other",
        "our",
        "ours",
        "out",
        "over",
        "own",
        "per",
        "perhaps",
        "please",
        "quite",
        "rather",
        "re",
        "really",
        "s",
        "same",
        "shall",
        "she",
        "should",
        "shouldn",
        "since",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "though",
        "through",
        "thus",
        "to",
        "too",
        "under",
        "until",
        "up",
        "upon",
        "us",
        "use",
        "used",
        "uses",
        "using",
        "ve",
        "very",
        "via",
        "was",
        "wasn",
        "way",
        "we",
        "well",
        "were",
        "weren",
        "what",
        "when",
        "where",
        "whether",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "within",
        "without",
        "won",
        "would",
        "wouldn",
        "yes",
        "yet",
        "you",
        "your",
        "yours",
    ]
)

_stems: dict[str, str] = {}
_KEEP = 50_000
"""Of words, and of parts of words: 18 MB for both. A large repository has ten times as many."""

_APART = {"settings": "setting", "setting": "setting"}
"""Words whose stem is a word of all code with another meaning: ``set`` stands in each file, settings in a few."""


def words(text: str) -> list[str]:
    """The raw words of a text: runs of letters, digits and underscores."""
    return _WORD.findall(text)


def parts(word: str) -> list[str]:
    """An identifier's parts, lower-cased: ``parseHTTPHeader_v2`` -> parse, http, header, v, 2."""
    return [part.lower() for part in _PART.findall(word)]


def stem(part: str) -> str:
    """A lower-case word without its ending."""
    found = _stems.get(part)
    if found is None:
        english = len(part) > 3 and _ENDING.search(part) and part.isalpha()
        found = _APART.get(part) or (stem_english(_american(part)) if english else part)
        if len(_stems) > _KEEP:
            _stems.clear()
        _stems[part] = found
    return found


def _american(word: str) -> str:
    """A word whose British spelling meets the other one: ``normalised`` is written ``normalized``."""
    # shorter words in -ise and -our are spelt so everywhere: noise, rise, four
    if len(word) >= 7:
        word = _ISE.sub(r"iz\1", word)
    return _OUR.sub(r"or\1", word) if len(word) >= 6 else word


def terms_of(word: str) -> tuple[str, ...]:
    """The terms that one raw word stands for: the stems of its parts, and itself where it has several."""
    return _terms[word]


class _TermsOfWords(dict[str, tuple[str, ...]]):
    """The terms of each word, made when it is first asked for: counting then runs at the speed of a look-up."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) > _KEEP:
            self.clear()
        found = self[word] = make_terms(word)
        return found


_terms = _TermsOfWords()


def make_terms(word: str) -> tuple[str, ...]:
    """The same, made anew: for who keeps what was made."""
    if len(word) > MAX_WORD:
        return ()
    if _WIDE.search(word):
        # no blanks part these words: pairs of letters stand for them, in the file and in the question alike
        return tuple(word[at : at + 2] for at in range(max(1, len(word) - 1)))
    pieces = parts(word)
    kept = [stem(piece) for piece in pieces if len(piece) > 1 and piece not in STOP_WORDS]
    if len(pieces) > 1:
        # the identifier as a whole: who asks for `get_user` means more than "get" and "user" somewhere
        kept.append(word.strip("_").lower())
    return tuple(kept)


def count_terms(text: str) -> Counter[str]:
    """How often each term stands in a text."""
    return Counter(chain.from_iterable(map(_terms.__getitem__, _WORD.findall(text))))


def distinct_terms(texts: Iterable[str]) -> set[str]:
    """The terms that stand in any of some texts."""
    return {term for text in texts for word in _WORD.findall(text) for term in terms_of(word)}
