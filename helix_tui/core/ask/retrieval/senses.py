"""Find the senses of a word in headings, trees and code, and weigh them by evidence.

A word has several senses if different things have its name: "optical cavity" and "Casimir cavity", or a class `Session`
in two packages. "Cavity tuning" is an aspect of the same thing, not another sense. If the evidence does not decide, the
user is asked (docs/formats/ask.md §1, phase 4). `concepts_in` finds concepts: names of several words in headings and
trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.corpus.listing import is_declaration
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import Question, Slot, covers, name_parts, terms_in
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.pool import PoolEntry, coverage_of
from helix_tui.core.ask.tokens import STOP_WORDS, stem

MOST_SENSES = 4
MOST_FOCUS_WORDS = 2
MOST_TITLE_WORDS = 5
SENSE_SPANS = 8

ALIKE = 0.3
"""Overlap of words, by the smaller set, from which two sections are about the same thing."""

Reason = Literal["not_ambiguous", "one_sense", "evidence_dominance", "split", "user_choice"]

_QUALIFIER = re.compile(r"\s+\([^()\d]+\)\s*$")
"""The qualifier after a name: "Shutter (optics)"."""

_SAYS_WHAT = re.compile(r"\b(is|are|means|denotes|stands for|refers to)\b|:\s|\s[—–-]\s")
MOST_WORDS = 4


class Anchor(Struct, frozen=True):
    """A place that names a sense."""

    file: str
    start: int
    end: int
    header: str
    kind: Literal["heading", "tree", "code"]


class Sense(Struct, frozen=True):
    """One possible meaning of the word."""

    label: str
    terms: frozenset[str]
    """Stems of its name."""
    anchors: tuple[Anchor, ...]


class Weighed(Struct, frozen=True):
    """A sense and its evidence."""

    sense: Sense
    query: str
    evidence_mass: float
    """Its share of the evidence of all senses."""
    slot_coverage_ratio: float
    proof_density: float
    """Share of its spans that define it."""
    spans: tuple[Span, ...]

    @property
    def score(self) -> float:
        """The product of mass, coverage and density (docs/formats/ask.md §1, phase 4)."""
        return round(self.evidence_mass * self.slot_coverage_ratio * self.proof_density, 6)


class Ambiguity(Struct, frozen=True):
    """The result of looking for senses."""

    term: str = ""
    """The word with several senses."""
    weighed: tuple[Weighed, ...] = ()
    """The senses, the strongest first."""
    selected: str = ""
    """Label of the sense to answer; empty if none dominates, or there are not several."""
    reason: Reason = "not_ambiguous"
    gap: float = 0.0
    """The difference between the two best scores."""

    @property
    def is_split(self) -> bool:
        """Whether the user has to choose."""
        return self.reason == "split"


def resolve(
    library: RepositoryIndex, question: Question, slots: Sequence[Slot], threshold: float, wanted: str = ""
) -> Ambiguity:
    """Find the senses of a question's subject and select one: the user's choice, or else one with enough lead in
    evidence.

    ``wanted`` is the label of the sense that the user chose.
    """
    focus = _focus_terms(question)
    if not focus:
        return Ambiguity()
    # the first of two senses of one thing gives the label: code comes before headings
    senses = _merged(library, focus, [*_code_senses(library, question), *_named_senses(library, focus)])
    term = question.names[0] if question.names else " ".join(question.words)
    if len(senses) < 2:
        return Ambiguity(term=term, reason="one_sense" if senses else "not_ambiguous")
    weighed = _weigh(library, senses[:MOST_SENSES], slots, focus)
    gap = round(weighed[0].score - weighed[1].score, 6)
    chosen = next((one.sense.label for one in weighed if one.sense.label.lower() == wanted.lower()), "")
    # the user's choice overrides the evidence
    if chosen:
        return Ambiguity(term, weighed, chosen, "user_choice", gap)
    if gap < threshold:
        return Ambiguity(term, weighed, "", "split", gap)
    return Ambiguity(term, weighed, weighed[0].sense.label, "evidence_dominance", gap)


def prefer(ambiguity: Ambiguity, entries: Iterable[PoolEntry]) -> Iterator[tuple[PoolEntry, bool]]:
    """Yield each entry with whether it belongs to the selected sense, or to none of the others."""
    others = [one.sense for one in ambiguity.weighed if one.sense.label != ambiguity.selected]
    chosen = [one.sense for one in ambiguity.weighed if one.sense.label == ambiguity.selected]
    for entry in entries:
        mine = any(belongs(entry.span, sense) for sense in chosen)
        yield entry, mine or not any(belongs(entry.span, sense) for sense in others)


def belongs(span: Span, sense: Sense) -> bool:
    """Whether a span is about a sense: it overlaps one of its places, or has its whole name of several words. For a
    sense in code, being in one of its files decides.
    """
    if any(span.file == at.file and span.start <= at.end and at.start <= span.end for at in sense.anchors):
        return True
    # in any other file, the same name may mean another definition
    if any(at.kind == "code" for at in sense.anchors):
        return any(span.file == at.file for at in sense.anchors)
    words = re.findall(r"\w+", sense.label.partition(" (")[0])
    name = r"\W+".join(map(re.escape, words))
    return len(words) > 1 and re.search(rf"(?<!\w){name}", span.text, re.IGNORECASE) is not None


def _focus_terms(question: Question) -> tuple[str, ...]:
    """The stems of the one thing asked about; empty if the question mentions more."""
    if question.names:
        # a second name or another word makes clear which one is meant
        return name_parts(question.names[0]) if len(question.names) == 1 and not question.words else ()
    return question.terms if 0 < len(question.words) <= MOST_FOCUS_WORDS else ()


def _named_senses(library: RepositoryIndex, focus: tuple[str, ...]) -> Iterator[Sense]:
    """Yield headings and tree nodes whose names end in the word: "optical cavity", "cavity (optics)", not "cavity
    tuning".
    """
    for heading in library.headings(focus):
        if _ends_in(heading.title, focus):
            at = Anchor(heading.file, heading.start, heading.end, heading.path, "heading")
            yield Sense(heading.title.strip(), terms_in(heading.title), (at,))
    for tree in library.trees():
        for node in tree.nodes.values():
            if _ends_in(node.title, focus):
                proofs = [proof for proof in node.evidence if proof.type == "doc"]
                anchors = tuple(Anchor(proof.path, 1, 1, proof.heading, "tree") for proof in proofs[:2])
                yield Sense(node.title.strip(), terms_in(node.title), anchors)


def _code_senses(library: RepositoryIndex, question: Question) -> Iterator[Sense]:
    """Yield definitions of the same name in different files; tests and examples do not count."""
    for name in question.names[:1]:
        places = [definition for definition in library.definitions(name) if definition.role == "source"]
        done = any(not is_declaration(found.file) for found in places)
        seen: set[tuple[str, str]] = set()
        for found in places:
            # a declaration repeats what another file implements; a Go package has a file for each platform
            place = found.file.rpartition("/")[0] if found.file.endswith(".go") else found.file
            if (place, found.header) not in seen and not (done and is_declaration(found.file)):
                seen.add((place, found.header))
                at = Anchor(found.file, found.start, found.end, found.header, "code")
                yield Sense(f"{found.header or name} ({found.file})", terms_in(found.header or name), (at,))


def _ends_in(title: str, focus: tuple[str, ...]) -> bool:
    bare = _QUALIFIER.sub("", title)
    said = [stem(word.lower()) for word in re.findall(r"\w+", bare) if word.lower() not in STOP_WORDS]
    return len(said) <= MOST_TITLE_WORDS and tuple(said[-len(focus) :]) == focus


def _merged(library: RepositoryIndex, focus: tuple[str, ...], senses: Iterable[Sense]) -> list[Sense]:
    """Merge senses of one thing: their sections share many words, or have one name and no words to compare."""
    found: list[tuple[Sense, frozenset[str]]] = []
    for sense in senses:
        # all of them have the word itself, which makes no two alike
        words = _words_at(library, sense) - set(focus)
        for place, (other, others_words) in enumerate(found):
            same_name = other.terms == sense.terms
            if (same_name and (not words or not others_words)) or _alike(words, others_words):
                anchors = tuple(dict.fromkeys((*other.anchors, *sense.anchors)))
                found[place] = Sense(other.label, other.terms, anchors), words | others_words
                break
        else:
            found.append((sense, words))
    return _apart([sense for sense, _ in found])


def _apart(senses: list[Sense]) -> list[Sense]:
    """The senses with different labels: equal ones get their file added."""
    labels = [sense.label.lower() for sense in senses]
    return [
        Sense(f"{sense.label} ({sense.anchors[0].file})", sense.terms, sense.anchors)
        if labels.count(sense.label.lower()) > 1 and sense.anchors
        else sense
        for sense in senses
    ]


def _words_at(library: RepositoryIndex, sense: Sense) -> frozenset[str]:
    texts = (library.span_at(at.file, at.start, max(at.end, at.start)) for at in sense.anchors if at.kind != "tree")
    return frozenset().union(*(terms_in(span.text) for span in texts if span is not None))


def _alike(words: frozenset[str], others: frozenset[str]) -> bool:
    return bool(words and others) and len(words & others) / min(len(words), len(others)) >= ALIKE


def _weigh(
    library: RepositoryIndex, senses: Sequence[Sense], slots: Sequence[Slot], focus: tuple[str, ...]
) -> tuple[Weighed, ...]:
    """Weigh each sense by a small search for its label; the strongest first."""
    found: list[tuple[Sense, str, list[Span], float]] = []
    for sense in senses:
        query = sense.label.replace("(", "").replace(")", "")
        own = [span for span in library.search(query, spans=SENSE_SPANS * 3).spans if belongs(span, sense)]
        at_anchor = (library.span_at(at.file, at.start, at.end) for at in sense.anchors if at.kind != "tree")
        known = {span.key for span in own}
        own += [span for span in at_anchor if span is not None and span.key not in known]
        best = max((span.score for span in own), default=0.0) or 1.0
        own = own[:SENSE_SPANS]
        # a span added only for its place has no score, and counts a quarter of the best
        found.append((sense, query, own, sum(max(0.25, span.score / best) for span in own)))
    total = sum(mass for *_, mass in found) or 1.0
    weighed = [
        Weighed(
            sense,
            query,
            round(mass / total, 6),
            _coverage(own, slots),
            round(sum(_is_proof(span, focus) for span in own) / len(own), 6) if own else 0.0,
            tuple(own),
        )
        for sense, query, own, mass in found
    ]
    return tuple(sorted(weighed, key=lambda one: (-one.score, one.sense.label)))


def _coverage(spans: Sequence[Span], slots: Sequence[Slot]) -> float:
    covered = {slot.id for slot in slots if any(covers(slot, span.text) for span in spans)}
    return round(coverage_of(slots, covered), 6)


def _is_proof(span: Span, focus: tuple[str, ...]) -> bool:
    """Whether a span defines the word: by its heading or name, or by a line that gives its meaning."""
    if terms_in(span.header.rpartition(" > ")[2]).issuperset(focus):
        return True
    return any(defines(line, focus) for line in span.text.split("\n"))


def defines(line: str, focus: Sequence[str]) -> bool:
    """Whether a line defines a word: the word among its first few, then "is", "means" or similar, a colon or a dash."""
    match = _SAYS_WHAT.search(line)
    if match is None:
        return False
    before = line[: match.start()]
    return len(before.split()) <= len(focus) + 4 and terms_in(before).issuperset(focus)


def concepts_in(library: RepositoryIndex, question: Question) -> tuple[str, ...]:
    """Names of concepts whose words are all in a question; most words first, then by name."""
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


def _titles(library: RepositoryIndex, terms: tuple[str, ...]) -> Iterator[str]:
    for heading in library.headings(terms):
        yield heading.title
    for tree in library.trees():
        for node in tree.nodes.values():
            yield node.title
