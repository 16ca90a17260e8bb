"""Follow symbols named in documents to their definitions, one use and one test each.

Only a name in the symbol index is a symbol; a capitalised word of prose is not (docs/formats/ask.md §1, phase 5).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import Slot, names_in, terms_in
from helix_tui.core.ask.records import Definition, Span, Use
from helix_tui.core.ask.retrieval.pool import Pool, PoolEntry, Via, cut_to
from helix_tui.core.ask.retrieval.tree_walk import Policy

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
