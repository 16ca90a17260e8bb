"""Run the retrieval loop: weak evidence decides what to search next, until it suffices or a budget is used up.

`Pool` is the evidence, `Searcher` performs the actions and scores their spans, `Controller` judges each step and
chooses the next one (docs/formats/ask.md §1, phase 1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ask.index.index import FoundSpans, RepositoryIndex
from helix_tui.core.ask.question import Question, Slot, covers, terms_in
from helix_tui.core.ask.records import Heading, RankedFile, Span, SpanKey, text_hash
from helix_tui.core.ask.retrieval.trees import Match, Policy, matching_trees
from helix_tui.core.ground.text import counted

Via = Literal[
    "docs",
    "heading",
    "tree",
    "code",
    "definition",
    "use",
    "slot",
    "sense",
    "alignment",
    "test",
    "record",
    "passage",
    "earlier",
]
"""How a span was found."""


class PoolEntry(Struct, frozen=True):
    """A span of evidence, and how it was found."""

    span: Span
    via: Via
    step: int
    """The iteration that found it first."""
    query: str
    relevance: float
    """0 to 1: its score relative to the best one, or a fixed value for how it was found."""
    slots: frozenset[str]
    """Ids of the slots that its words cover, soft ones too."""

    @property
    def is_doc(self) -> bool:
        """Whether it is in a document."""
        return self.span.role == "doc"

    @property
    def is_code(self) -> bool:
        """Whether it is in source code other than tests."""
        return self.span.role in ("source", "example", "vendored") and self.span.kind != "section"

    @property
    def order(self) -> tuple[float, str, int, int]:
        """Best first; ties by place."""
        return (-self.relevance, *self.span.key)


class Pool(Struct, frozen=True):
    """Evidence by span; every change returns a new pool."""

    slots: tuple[Slot, ...]
    entries: dict[SpanKey, PoolEntry]

    @property
    def ordered(self) -> list[PoolEntry]:
        """Every entry, best first."""
        return sorted(self.entries.values(), key=lambda entry: entry.order)

    @property
    def covered(self) -> frozenset[str]:
        """Ids of the required slots that some span covers."""
        found = {ident for entry in self.entries.values() for ident in entry.slots}
        return frozenset(slot.id for slot in self.slots if slot.required and slot.id in found)

    @property
    def missing(self) -> tuple[Slot, ...]:
        """Required slots that no span covers."""
        covered = self.covered
        return tuple(slot for slot in self.slots if slot.required and slot.id not in covered)

    @property
    def coverage(self) -> float:
        """Share of the required slots that are covered, by weight; without slots, any evidence is enough."""
        return coverage_of(self.slots, self.covered) if any_required(self.slots) else float(bool(self.entries))

    @property
    def files(self) -> list[str]:
        """Files with evidence, best first."""
        return list(dict.fromkeys(entry.span.file for entry in self.ordered))

    def docs(self) -> list[PoolEntry]:
        """Spans of documents that cover a slot, best first; without slots, all spans of documents."""
        return [entry for entry in self.ordered if entry.is_doc and (entry.slots or not self.slots)]

    def with_spans(self, spans: Iterable[tuple[Span, Via, float]], *, step: int, query: str, policy: Policy) -> Pool:
        """Add spans with their relevance; a span already there keeps the higher one."""
        entries = dict(self.entries)
        for span, via, relevance in spans:
            span = cut_to(span, policy.max_span_bytes, self.slots)
            slots = frozenset(slot.id for slot in self.slots if covers(slot, span.text))
            entry = PoolEntry(span, via, step, query, round(min(1.0, relevance), 6), slots)
            held = entries.get(span.key)
            if held is None:
                entries[span.key] = entry
            # the step and query that found it first stay: they explain the run
            elif entry.relevance > held.relevance:
                entries[span.key] = replace(held, relevance=entry.relevance, via=entry.via)
        return Pool(self.slots, entries)

    def within(self, most_files: int) -> Pool:
        """Limit the pool to some files: first those needed to cover slots, then the best."""
        ordered = self.ordered
        kept: dict[str, None] = {}
        covered: set[str] = set()
        for entry in ordered:
            new = {slot for slot in entry.slots if slot not in covered}
            if new and len(kept) < most_files:
                covered |= new
                kept.setdefault(entry.span.file)
        for entry in ordered:
            if len(kept) < most_files:
                kept.setdefault(entry.span.file)
        return Pool(self.slots, {key: entry for key, entry in self.entries.items() if entry.span.file in kept})


def any_required(slots: Iterable[Slot]) -> bool:
    """Whether any slot needs evidence; a question without one asks about everything."""
    return any(slot.required for slot in slots)


def coverage_of(slots: Sequence[Slot], covered: Collection[str]) -> float:
    """The share, by weight, of the required slots whose ids are covered; 1 without any."""
    total = sum(slot.weight for slot in slots if slot.required)
    return sum(slot.weight for slot in slots if slot.required and slot.id in covered) / total if total else 1.0


def cut_to(span: Span, most_bytes: int, slots: Sequence[Slot], line: int = 0) -> Span:
    """Cut a span to ``most_bytes``.

    Its head is kept, or the lines around the first hit if the head misses a slot; ``line``, if given, stays in it.
    """
    if len(span.text.encode("utf-8", "surrogateescape")) <= most_bytes:
        return span
    lines = span.text.split("\n")
    first = 0
    head = "\n".join(_fitting(lines, 0, most_bytes))
    missed = [slot for slot in slots if covers(slot, span.text) and not covers(slot, head)]
    if missed:
        hits = (place for place, line in enumerate(lines) if any(covers(slot, line) for slot in missed))
        # with two lines before the hit, which often name its subject
        first = max(0, next(hits, 0) - 2)
    kept = _fitting(lines, first, most_bytes)
    at = line - span.start
    if line and not first <= at < first + len(kept):
        first = at
        kept = _fitting(lines, first, most_bytes)
    text = "\n".join(kept)
    start = span.start + first
    return replace(span, start=start, end=start + len(kept) - 1, text=text, hash=text_hash(text))


def _fitting(lines: Sequence[str], first: int, most_bytes: int) -> list[str]:
    """As many whole lines as fit, from index ``first``; if that line alone is too long, it is cut."""
    kept: list[str] = []
    room = most_bytes
    for line in lines[first:]:
        size = len(line.encode("utf-8", "surrogateescape")) + bool(kept)
        if size > room:
            break
        kept.append(line)
        room -= size
    return kept or [lines[first].encode("utf-8", "surrogateescape")[:most_bytes].decode("utf-8", "ignore")]


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
            brought = [one for one in spans if one[0].file not in self.tree_files]
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


StopReason = Literal["coverage_ok", "budget", "empty", "dominance_split"]


class RetrievalStep(Struct, frozen=True):
    """One finished iteration."""

    step: int
    action: Action
    reason: str
    """Why this action was chosen."""
    evidence_ok: bool
    slot_coverage_ok: bool
    doc_coverage_ok: bool
    confidence: float
    missing_slots: tuple[str, ...]
    """Labels."""
    slot_coverage: float
    spans_added: int
    spans: int
    files: int
    queries: tuple[str, ...]


class Retrieval(Struct):
    """The result of the loop, and its steps."""

    pool: Pool
    steps: list[RetrievalStep] = []
    stop: StopReason = "empty"
    detail: str = ""
    """The reason in words: which budget, or what is missing."""
    queries: list[str] = []
    """Every query, each once, in order."""


class Controller:
    """One run of the loop."""

    def __init__(
        self,
        searcher: Searcher,
        question: Question,
        pool: Pool,
        policy: Policy,
        *,
        elapsed_ms: Callable[[], float],
        tell: Callable[[RetrievalStep], None],
    ) -> None:
        """Prepare a run.

        Args:
            searcher: performs the actions.
            question: the parsed question.
            pool: the empty pool with the slots that need evidence.
            policy: thresholds and budgets.
            elapsed_ms: returns the run's computing time so far.
            tell: called with every step as soon as it ends.
        """
        self._searcher = searcher
        self._question = question
        self._policy = policy
        self._elapsed_ms = elapsed_ms
        self._tell = tell
        self.result = Retrieval(pool)

    def run(self) -> Retrieval:
        """Search until the evidence suffices or a budget is used up."""
        result = self.result
        action: Action | None = "seed_docs"
        reason = "documents, their sections and trees first"
        while action is not None:
            number = len(result.steps) + 1
            grown, queries = self._searcher.search(action, result.pool, number)
            kept = grown.within(self._policy.max_files)
            # coverage must never fall (criterion 9): if the file budget would lower it, the pool stays as it was
            regress = kept.coverage < result.pool.coverage
            before = result.pool
            if not regress:
                result.pool = kept
            result.queries += [query for query in queries if query not in result.queries]
            step = self._judge(action, reason, before, tuple(queries))
            result.steps.append(step)
            self._tell(step)
            if regress:
                result.stop, result.detail = "budget", f"max_files {self._policy.max_files} would lose a slot"
                break
            action, reason = self._next(step)
        return result

    # --- judging ------------------------------------------------------------------------------------------

    def _judge(self, action: Action, reason: str, before: Pool, queries: tuple[str, ...]) -> RetrievalStep:
        pool = self.result.pool
        slots_ok = bool(pool.entries) and pool.coverage >= self._policy.min_slot_coverage_ratio
        docs_ok = len(pool.docs()) >= self._policy.min_doc_span_count
        # the strongest place is known once the code has been searched, unless the documents' is as strong
        searched_code = action == "widen_to_code" or self._did("widen_to_code")
        strongest = max((entry.span.score for entry in pool.entries.values()), default=0.0)
        evidence_ok = bool(pool.entries) and (searched_code or strongest >= self._searcher.best)
        top = pool.ordered[:5]
        agreement = sum(len(entry.span.channels) > 1 for entry in top) / len(top) if top else 0.0
        confidence = 0.5 * pool.coverage + 0.2 * docs_ok + 0.2 * evidence_ok + 0.1 * agreement
        return RetrievalStep(
            step=len(self.result.steps) + 1,
            action=action,
            reason=reason,
            evidence_ok=evidence_ok,
            slot_coverage_ok=slots_ok,
            doc_coverage_ok=docs_ok,
            confidence=round(confidence, 3) if pool.entries else 0.0,
            missing_slots=tuple(slot.label for slot in pool.missing),
            slot_coverage=round(pool.coverage, 3),
            spans_added=len(pool.entries.keys() - before.entries.keys()),
            spans=len(pool.entries),
            files=len(pool.files),
            queries=queries,
        )

    def _did(self, action: Action) -> bool:
        return any(step.action == action for step in self.result.steps)

    def _next(self, step: RetrievalStep) -> tuple[Action | None, str]:
        """The next action and its reason; None if the loop is over, with its stop reason set."""
        result, policy = self.result, self._policy
        if step.slot_coverage_ok and step.evidence_ok and step.doc_coverage_ok:
            return self._stop("coverage_ok", "")
        # check success before budgets: a last step that suffices is not a budget used up
        spent = ""
        if step.step >= policy.max_iters:
            spent = f"max_iters {policy.max_iters}"
        elif self._elapsed_ms() >= policy.max_runtime_ms:
            spent = f"max_runtime_ms {policy.max_runtime_ms}"
        if spent:
            return self._stop("budget" if result.pool.entries else "empty", spent)
        weak = [] if step.slot_coverage_ok else ["slot coverage weak: " + ", ".join(step.missing_slots[:4])]
        weak += [] if step.doc_coverage_ok else [self._few_documents()]
        # each action is taken once, the cheapest first, so the loop always ends
        if weak and not self._did("expand_queries"):
            return "expand_queries", "; ".join(weak)
        if not self._did("widen_to_code"):
            return "widen_to_code", "; ".join(weak) or "the code may say it better"
        if step.missing_slots and not self._did("search_open_slots"):
            return "search_open_slots", "still open: " + ", ".join(step.missing_slots[:4])
        if not result.pool.entries:
            return self._stop("empty", "nothing in the repository mentions it")
        return self._stop("budget", f"every way to search was taken; {'; '.join(weak)}")

    def _few_documents(self) -> str:
        found, wanted = len(self.result.pool.docs()), self._policy.min_doc_span_count
        return f"{found} of {counted(wanted, 'passage')} of documents" if found else "no document mentions it"

    def _stop(self, stop: StopReason, detail: str) -> tuple[None, str]:
        self.result.stop, self.result.detail = stop, detail
        return None, ""
