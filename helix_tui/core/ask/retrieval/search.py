"""Perform the actions of the retrieval loop, and score their spans (docs/formats/ask.md §1, phase 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from helix_tui.core.ask.index.index import FoundSpans, RepositoryIndex
from helix_tui.core.ask.question import Question, terms_in
from helix_tui.core.ask.records import Heading, RankedFile, Span
from helix_tui.core.ask.retrieval.pool import Pool, Via, any_required
from helix_tui.core.ask.retrieval.tree_walk import Match, Policy, matching_trees

Action = Literal["seed_docs", "expand_queries", "widen_to_code", "search_open_slots"]

BASE_SPANS = 80
"""Maximum spans of the first search; its code is used only if evidence from documents does not suffice."""

DOC_SPANS = 10
CODE_SPANS = 14
SECTIONS = 4
OPEN_QUERIES = 3
DEFINITIONS = 3
USES = 4

MOST_USES = 24
"""Maximum uses of a name from which the best are chosen."""

RECORDS, COMMITS = 4, 2
"""Passages of records, and commits, that may answer."""

WORTH: dict[Via, float] = {"heading": 0.7, "tree": 0.6, "definition": 0.9, "use": 0.5, "test": 0.4}
"""Relevance of spans found without a search."""

Brought = Iterator[tuple[str, list[tuple[Span, Via, float]]]]
"""A query (empty if none was searched), and spans with how they were found and their relevance."""


class Searcher:
    """Performs the actions of one run."""

    def __init__(self, library: RepositoryIndex, question: Question, policy: Policy) -> None:
        self.library = library
        self.best = 0.0
        """The best score of the first search."""
        self.ranked: tuple[RankedFile, ...] = ()
        """The whole ranking of files for the question."""
        self.headings: tuple[Heading, ...] = ()
        """Headings that match the question, best first."""
        self.records: tuple[Span, ...] = ()
        """Passages of records, and commits, that speak most of it."""
        self.trees: tuple[Match, ...] = ()
        """Trees with nodes that match it."""
        self._question = question
        self._policy = policy
        self.tree_files = frozenset(tree.source for tree in library.trees())
        self._base: FoundSpans | None = None

    def search(self, action: Action, pool: Pool, step: int) -> tuple[Pool, list[str]]:
        """Perform an action; return the new pool and the queries."""
        doing = {
            "seed_docs": self._seed,
            "expand_queries": self._expand,
            "widen_to_code": self._widen,
            "search_open_slots": self._search_open,
        }
        queries: list[str] = []
        grown = pool
        about_all = not any_required(pool.slots)
        for query, spans in self._introduction() if about_all else doing[action](pool):
            if query and query not in queries:
                queries.append(query)
            # a tree guides the search, but is not evidence
            brought = [span for span in spans if span[0].file not in self.tree_files]
            grown = grown.with_spans(brought, step=step, query=query, policy=self._policy)
        return grown, queries

    def _introduction(self) -> Brought:
        """Yield the repository's introduction: a question without required slots asks about all of it."""
        span = self.library.opening()
        if span is not None:
            self.best = span.score
            self.ranked = (RankedFile(span.file, span.score, {}, span.role),)
            yield "", [(span, "docs", 1.0)]

    def _seed(self, pool: Pool) -> Brought:
        """Yield documents for the question, sections with matching headings, and sections named in trees; search the
        records too, which become evidence only if they answer.
        """
        query = self._question.text
        base = self._base = self.library.search(self._question, spans=BASE_SPANS)
        self.best = max((span.score for span in base.spans), default=0.0)
        self.ranked = tuple(base.files)
        docs = self.library.search(self._question, spans=DOC_SPANS, roles=("doc",))
        yield query, self._scored(docs.spans, "docs")
        terms = tuple(dict.fromkeys(term for slot in pool.slots for term in slot.terms))
        self.headings = self._near(terms)
        yield "", list(self._sections(self.headings[:SECTIONS]))
        self.trees = matching_trees(self.library.trees(), terms)
        yield "", list(self._tree_sections())
        self.records = (
            *self.library.search_records(self._question, RECORDS), *self.library.commits(query, COMMITS)
        )  # fmt: skip

    def _expand(self, pool: Pool) -> Brought:
        """Search documents for open slots with near headings, and with symbols and file names of the best evidence."""
        stems = [path.rpartition("/")[2].partition(".")[0] for path in pool.files[:2]]
        symbols = [entry.span.header for entry in pool.ordered if entry.is_code and entry.span.header]
        for slot in (pool.missing or pool.slots)[:OPEN_QUERIES]:
            near = [heading.title for heading in self._near(slot.terms)[:2]]
            query = " ".join(dict.fromkeys([slot.label, *near, *symbols[:2], *stems]))
            found = self.library.search(query, spans=DOC_SPANS, roles=("doc",))
            yield query, self._scored(found.spans, "docs", worth=0.7)

    def _widen(self, pool: Pool) -> Brought:
        """Yield code of the first search, definitions of the question's names, and some of their uses."""
        if self._base is not None:
            code = [span for span in self._base.spans if span.role != "doc"]
            yield self._question.text, self._scored(code[:CODE_SPANS], "code")
        for name in self._question.names:
            yield name, [*self._defined(name), *self._used(name)]

    def _defined(self, name: str) -> Iterator[tuple[Span, Via, float]]:
        for place in self.library.definitions(name)[:DEFINITIONS]:
            span = self.library.span_at(place.file, place.start, place.end)
            if span is not None:
                yield span, "definition", WORTH["definition"]

    def _used(self, name: str) -> Iterator[tuple[Span, Via, float]]:
        uses = sorted(
            self.library.uses(name, most=MOST_USES),
            key=lambda use: (use.role != "source", use.kind != "call", use.file, use.line),
        )
        for use in uses[:USES]:
            span = self.library.span_at(use.file, max(1, use.line - 2), use.line + 2)
            if span is not None:
                yield span, "use", WORTH["use"]

    def _search_open(self, pool: Pool) -> Brought:
        """Search all files for each open slot by itself."""
        for slot in pool.missing[:OPEN_QUERIES]:
            found = self.library.search(slot.label, spans=DOC_SPANS)
            yield slot.label, self._scored(found.spans, "slot", worth=0.5)

    def _scored(self, spans: Iterable[Span], via: Via, worth: float = 1.0) -> list[tuple[Span, Via, float]]:
        """Spans with their scores relative to the best one for the question, times ``worth``."""
        spans = list(spans)
        best = max([self.best, *(span.score for span in spans)], default=0.0) or 1.0
        return [(span, via, worth * span.score / best) for span in spans]

    def _near(self, terms: tuple[str, ...]) -> tuple[Heading, ...]:
        """Headings with some of the terms: those with most of them first, then the shorter ones."""

        def rank(heading: Heading) -> tuple[int, int, str, int]:
            said = terms_in(heading.title)
            return (-len(said.intersection(terms)), len(said), heading.file, heading.start)

        return tuple(sorted(self.library.headings(terms), key=rank)) if terms else ()

    def _sections(self, headings: Iterable[Heading]) -> Iterator[tuple[Span, Via, float]]:
        for heading in headings:
            span = self.library.span_at(heading.file, heading.start, heading.end)
            if span is not None:
                yield span, "heading", WORTH["heading"]

    def _tree_sections(self) -> Iterator[tuple[Span, Via, float]]:
        """Yield sections that the matching nodes name as evidence."""
        for match in self.trees:
            for ident in match.nodes[:SECTIONS]:
                for proof in match.tree.nodes[ident].evidence:
                    if proof.type == "doc":
                        span = section_of(self.library, proof.path, proof.heading)
                        if span is not None:
                            yield span, "tree", WORTH["tree"]


def section_of(library: RepositoryIndex, path: str, title: str) -> Span | None:
    """The section of a document with a heading, else the first 40 lines; None if the file lacks them."""
    wanted = title.strip().lower()
    if wanted:
        for heading in library.headings(sorted(terms_in(title))):
            if heading.file == path and heading.title.strip().lower() == wanted:
                return library.span_at(path, heading.start, heading.end)
    return library.span_at(path, 1, 40)
