"""How the words of a question may be written in a repository: stems, parts of names, abbreviations.

A person asks for the *environment*, *directory* or *message* where code writes ``env``, ``dir`` and ``msg``, for
*file names* where it has ``filename``. Each way counts for less than the word itself, so that the word decides
wherever it stands.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from helix_tui.core.ask.retrieval.subject import QuestionSubject
from helix_tui.core.ask.tokens import stem, terms_of

JOINED = 0.95
"""Neighbours in the question that are one word in code."""
DERIVED = 0.7
"""Another form of the word that the stemmer leaves apart: serialize, serialization."""
SHORT = 0.6
"""An abbreviation."""
MOST_WEIGHT = 6.0

_SHORT_FORMS = """
argument arg args | attribute attr | authentication auth | authorization auth | background bg | button btn | buffer
buf | character char chr | command cmd | configuration cfg conf config | connection conn | constant const | context
ctx | count cnt | current cur | database db | definition def | destination dst dest | developer dev | dictionary dict
| difference diff | directory dir folder | document doc | element elem | environment env | error err | evaluate eval |
exception exc | execute exec | expression expr | extension ext | foreground fg | function fn func | header hdr |
identifier id ident | image img | implementation impl | index idx | information info | initialize init | integer int |
iteration iter | length len | library lib | maximum max | memory mem | message msg | minimum min | number num nr |
object obj | operation op | option opt | package pkg | parameter param | password passwd pwd | pointer ptr | position
pos | previous prev | process proc | program prog | property prop | reference ref | regular regex | repository repo |
request req | response res resp | result res | return ret | second sec | sequence seq | source src | standard std |
statistics stats | string str | temporary tmp temp | terminal term tty | text txt | utility util | value val |
variable var | vector vec | window win | colour color col | secret key token | statement stmt | specification spec |
synchronous sync | transaction tx | user usr
"""


def _short_forms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in " ".join(_SHORT_FORMS.split()).split("|"):
        whole, *shorts = group.split()
        found.setdefault(stem(whole), set()).update(stem(short) for short in shorts)
    return {whole: frozenset(shorts) for whole, shorts in found.items()}


_SHORTS = _short_forms()
_WORD = re.compile(r"\w+")
_NEGATED = re.compile(r"^(?:un|in|non|dis)(?=[a-z]{5})")

Hit = tuple[int, float]
"""(number of the word in the subject, how much of it is said)."""


class Wording:
    """The words of one subject, and what of a text says them."""

    def __init__(self, subject: QuestionSubject, share: Callable[[str], float]) -> None:
        """Prepare the words of a subject; ``share`` is the share of all files that have a term."""
        self.subject = subject
        shares = [share(one.term) for one in subject.words]
        self.known = tuple(found > 0 for found in shares)
        """Whether the repository has the word itself."""
        self.weights = tuple(
            one.weight * (1.0 + min(MOST_WEIGHT, -math.log(found)) / 2 if found > 0 else 2.0)
            for one, found in zip(subject.words, shares, strict=True)
        )
        """What each word weighs: a rare one more, a frequent noun never nothing."""
        self.total = sum(self.weights) or 1.0
        self._exact = {one.term: at for at, one in enumerate(subject.words)}
        self._joined: dict[str, tuple[Hit, ...]] = {}
        words = [one.word for one in subject.words]
        for first, second in subject.pairs:
            pair = ((first, JOINED), (second, JOINED))
            # whoever asks for "files names" means what code writes as `filenames`, too
            for joined in (words[first] + words[second], words[first].rstrip("s") + words[second]):
                self._joined.setdefault(stem(joined), pair)
        self._may_say = may_have(_ways_of([*self._exact, *self._joined, *words]))
        self._seen: dict[str, tuple[Hit, ...]] = {}
        self._said: dict[str, tuple[Hit, ...]] = {}

    def hits(self, term: str) -> tuple[Hit, ...]:
        """Which words of the subject a term says, and how well."""
        found = self._seen.get(term)
        if found is None:
            found = self._seen[term] = self._find(term)
        return found

    def _find(self, term: str) -> tuple[Hit, ...]:
        exact = self._exact.get(term)
        if exact is not None:
            return ((exact, 1.0),)
        if term in self._joined:
            return self._joined[term]
        found = []
        for at, one in enumerate(self.subject.words):
            strength = _form_of(one.word, one.term, term)
            if strength > 0:
                found.append((at, strength))
        return tuple(found)

    def said_by(self, word: str) -> tuple[Hit, ...]:
        """Which words of the subject one raw word of a text says: an identifier by its parts."""
        found = self._said.get(word)
        # most words of a text say nothing of the subject, and stemming them is what costs
        if found is None and not self._may_say.search(word):
            found = self._said[word] = ()
        elif found is None:
            best: dict[int, float] = {}
            terms = terms_of(word)
            for term in (
                # the last term is the identifier whole; only its parts are joined in pairs
                (*terms, *(first + second for first, second in pairwise(terms[:-1]))) if len(terms) > 2 else terms
            ):
                for at, strength in self.hits(term):
                    best[at] = max(best.get(at, 0.0), strength)
            found = self._said[word] = tuple(best.items())
        return found

    def in_text(self, text: str) -> dict[int, float]:
        """How much of each word a text says."""
        best: dict[int, float] = {}
        for word in _WORD.findall(text):
            for at, strength in self.said_by(word):
                if strength > best.get(at, 0.0):
                    best[at] = strength
        return best

    def covered(self, said: Mapping[int, float]) -> float:
        """The share of the subject, by weight, that some words say."""
        return sum(self.weights[at] * strength for at, strength in said.items()) / self.total


_BEGIN = 3
_STEMMED_ANEW = {"di": "dy", "li": "ly", "ti": "ty", "sk": "sk"}
"""How some stems begin, and words that have them: *dying*, *lying*, *tying*, *skies*; and *trying*, *owing*."""


def may_have(terms: Iterable[str]) -> re.Pattern[str]:
    """What stands in any raw text that has one of some terms: to stem its words costs a hundred times as much."""
    begins = {
        begin
        for term in terms
        if term
        for begin in (term[: _BEGIN if len(term) > _BEGIN else 2], _STEMMED_ANEW.get(term[:2], term[:_BEGIN]))
    }
    return re.compile("|".join(map(re.escape, sorted(begins))) or r"(?!)", re.IGNORECASE)


def _ways_of(terms: Iterable[str]) -> set[str]:
    """Some terms, and what else `_form_of` takes for one of them, as far as it begins otherwise."""
    ways = set(terms)
    ways |= {short for term in ways for short in _SHORTS.get(term, ())}
    ways |= {whole for whole, shorts in _SHORTS.items() if not shorts.isdisjoint(ways)}
    return ways | {_NEGATED.sub("", term) for term in ways}


def union(rows: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """What several texts say together: of each word as much as the one that says most of it."""
    best: dict[int, float] = {}
    for row in rows:
        for at, strength in row.items():
            if strength > best.get(at, 0.0):
                best[at] = strength
    return best


def _form_of(word: str, asked: str, term: str) -> float:
    """How well a term is another form of a word; 0.0 where it is none."""
    if term in _SHORTS.get(asked, ()) or asked in _SHORTS.get(term, ()):
        return SHORT
    shorter, longer = sorted((asked, term), key=len)
    if len(shorter) >= 5 and longer.startswith(shorter) and len(longer) - len(shorter) <= 4:
        return DERIVED
    if 3 <= len(term) <= 5 and len(word) >= len(term) + 4 and word.startswith(term):
        return SHORT * 0.8
    bare = _NEGATED.sub("", asked)
    if bare != asked and len(bare) >= 5 and (term.startswith(bare[:6]) or (bare.startswith(term) and len(term) > 4)):
        return SHORT
    return 0.0
