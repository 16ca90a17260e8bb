"""Find the senses of a word in headings, trees and code, weigh them by evidence, and link documents to code.

A word has several senses if different things have its name: "optical cavity" and "Casimir cavity", or a class `Session`
in two packages. "Cavity tuning" is an aspect of the same thing, not another sense. If the evidence does not decide, the
user is asked (docs/formats/ask.md §1, phase 4). `concepts_in` finds concepts: names of several words in headings and
trees.

`align` follows symbols named in documents to their definitions, one use and one test each. Only a name in the symbol
index is a symbol; a capitalised word of prose is not (docs/formats/ask.md §1, phase 5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.corpus.listing import is_declaration
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import Question, Slot, covers, name_parts, names_in, terms_in
from helix_tui.core.ask.records import Definition, Span, Use
from helix_tui.core.ask.retrieval.search import Pool, PoolEntry, Via, coverage_of, cut_to
from helix_tui.core.ask.retrieval.trees import Policy
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


# --- candidates -------------------------------------------------------------------------------------------


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
        places = [found for found in library.definitions(name) if found.role == "source"]
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


# --- evidence ---------------------------------------------------------------------------------------------


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


_SAYS_WHAT = re.compile(r"\b(is|are|means|denotes|stands for|refers to)\b|:\s|\s[—–-]\s")


def defines(line: str, focus: Sequence[str]) -> bool:
    """Whether a line defines a word: the word among its first few, then "is", "means" or similar, a colon or a dash."""
    found = _SAYS_WHAT.search(line)
    if found is None:
        return False
    before = line[: found.start()]
    return len(before.split()) <= len(focus) + 4 and terms_in(before).issuperset(focus)


MOST_WORDS = 4


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


MOST_LOOKUPS = 60
MOST_USES = 24
MOST_DOCS = 8
MOST_NAMESAKES = 12
"""Maximum number of definitions of one name; with more, none is followed."""
_CALLABLE = frozenset(("class", "type", "function", "interface", "struct", "enum", "trait"))
STRANGERS = 2
"""A symbol not near the question's words is followed only while fewer than this many are resolved."""
_TICKED = re.compile(r"`+([^`\n]{2,120}?)`+")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|#)[A-Za-z_]\w*)*")

WORTH: dict[Via, float] = {"alignment": 0.65, "use": 0.45, "test": 0.4}


class Link(Struct, frozen=True):
    """A link from a document to code."""

    symbol: str
    doc: str
    """``file:start-end`` of the span that names it."""
    definition: str
    use: str
    """``file:line`` of a place that uses it; empty if none does."""
    test: str


class Alignment(Struct, frozen=True):
    """The result of following the symbols of documents."""

    extracted: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    added: int = 0
    """Number of code spans added to the evidence."""

    @property
    def applied(self) -> bool:
        """Whether any symbol led to code."""
        return bool(self.links)


def align(library: RepositoryIndex, pool: Pool, policy: Policy, step: int) -> tuple[Pool, Alignment]:
    """The pool with the code that its documents name, and how it was found."""
    docs = pool.docs()[:MOST_DOCS]
    extracted = _symbols(docs, pool.slots)
    links: list[Link] = []
    brought: list[tuple[Span, Via, float]] = []
    resolved: list[str] = []
    for symbol, by_question in extracted[:MOST_LOOKUPS]:
        if len(resolved) >= (policy.max_symbols if by_question else min(STRANGERS, policy.max_symbols)):
            break
        found = _definition(library, symbol)
        if found is not None:
            resolved.append(symbol)
            doc = next(entry.span for entry in docs if symbol in entry.span.text)
            use, test = _one_hop(library, symbol, found)
            links.append(_link(symbol, doc, found, use, test))
            brought += _spans(library, found, use, test)
    fitting = _fitting(brought, pool, policy)
    grown = pool.with_spans(fitting, step=step, query="", policy=policy)
    added = len(grown.entries.keys() - pool.entries.keys())
    names = tuple(name for name, _ in extracted[:MOST_LOOKUPS])
    return grown, Alignment(names, tuple(resolved), tuple(links), added)


def _symbols(docs: Sequence[PoolEntry], slots: Sequence[Slot]) -> list[tuple[str, bool]]:
    """Names in document spans, those related to the question first; True marks names that have one of its required
    terms, or are near one.
    """
    counts: Counter[str] = Counter()
    first: dict[str, int] = {}
    near: set[str] = set()
    asked = frozenset(term for slot in slots if slot.required for term in slot.terms)
    for entry in docs:
        for symbol in dict.fromkeys(_names(entry.span.text)):
            counts[symbol] += 1
            first.setdefault(symbol, len(first))
        # near: in one paragraph or item with a word of the question
        for block in re.split(r"\n\s*\n|\n(?=\s*[-*|])", entry.span.text):
            if not asked.isdisjoint(terms_in(block)):
                near.update(_names(block))
    ranked = sorted(
        counts, key=lambda name: (-len(terms_in(name) & asked), name not in near, -counts[name], first[name])
    )
    return [(name, name in near or not asked.isdisjoint(terms_in(name))) for name in ranked]


def _names(text: str) -> Iterator[str]:
    """Yield the identifiers of a document: names in back-ticks, and words written like code."""
    for ticked in _TICKED.findall(text):
        head = ticked.partition("(")[0].strip()
        if " " not in head:  # of a command or a phrase only names count
            yield from (name for name in _IDENTIFIER.findall(head)[:1] if "(" in ticked or not name.islower())
    yield from names_in(text)


def _definition(library: RepositoryIndex, symbol: str) -> Definition | None:
    """A symbol's definition, source before tests and types before members; None if there is none, or too many.

    A plain word, like ``demo``, is a symbol only if source defines a type or a function of that name.
    """
    found = sorted(
        library.definitions(symbol),
        key=lambda place: (place.role != "source", place.header.count("."), place.file, place.start),
    )
    if not names_in(symbol):
        found = [place for place in found if place.role == "source" and place.kind in _CALLABLE]
    return found[0] if found and len(found) <= MOST_NAMESAKES else None


def _one_hop(library: RepositoryIndex, symbol: str, found: Definition) -> tuple[Use | None, Use | None]:
    """A use of a symbol in source and one in a test; None in place of a missing one."""
    uses = sorted(
        (use for use in library.uses(symbol, most=MOST_USES) if use.kind != "import"),
        key=lambda use: (use.kind != "call", use.file == found.file, use.file, use.line),
    )
    code = next((use for use in uses if use.role == "source"), None)
    return code, next((use for use in uses if use.role == "test"), None)


def _spans(
    library: RepositoryIndex, found: Definition, use: Use | None, test: Use | None
) -> Iterator[tuple[Span, Via, float]]:
    places: list[tuple[Via, tuple[str, int, int]]] = [("alignment", (found.file, found.start, found.end))]
    places += [("use", (use.file, max(1, use.line - 2), use.line + 2))] if use is not None else []
    places += [("test", (test.file, max(1, test.line - 2), test.line + 4))] if test is not None else []
    for via, place in places:
        span = library.span_at(*place)
        if span is not None:
            yield span, via, WORTH[via]


def _fitting(spans: Iterable[tuple[Span, Via, float]], pool: Pool, policy: Policy) -> list[tuple[Span, Via, float]]:
    """As many spans as fit the budget, each cut to size: definitions before uses, uses before tests."""
    kept: list[tuple[Span, Via, float]] = []
    count, room = policy.max_code_spans, policy.max_code_bytes
    for span, via, worth in sorted(spans, key=lambda one: -one[2]):
        span = cut_to(span, policy.max_span_bytes, pool.slots)
        size = len(span.text.encode("utf-8", "surrogateescape"))
        if count > 0 and size <= room:
            kept.append((span, via, worth))
            count, room = count - 1, room - size
    return kept


def _link(symbol: str, doc: Span, found: Definition, use: Use | None, test: Use | None) -> Link:
    return Link(
        symbol,
        f"{doc.file}:{doc.start}-{doc.end}",
        f"{found.file}:{found.start}-{found.end}",
        f"{use.file}:{use.line}" if use is not None else "",
        f"{test.file}:{test.line}" if test is not None else "",
    )
