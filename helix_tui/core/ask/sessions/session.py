"""One question from start to end: retrieve, distinguish senses, follow symbols, compact, answer, pass the gate.

The order is that of docs/formats/ask.md §1. After the loop the evidence is fixed; later phases only arrange it. The
single model call is last, and its answer passes the same gate.

"And when do they expire?" is incomplete: if a question refers back, the words of the previous one are added. Evidence
of the previous run is kept while its text is unchanged; changed text is searched again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ask.answer.answer import (
    Answer,
    Citation,
    ModelAnswer,
    ask_which,
    compose,
    model_items,
    read_answer,
    say_nothing_found,
    with_sources,
)
from helix_tui.core.ask.answer.compaction import (
    Compaction,
    Item,
    compact,
    in_order,
    prompt,
    tool_results,
    walk_line,
)
from helix_tui.core.ask.answer.grounding import Grounding, Tier, cited_numbers, judge, tier_of
from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.answer.passages import Passage, opening_of, passages_for
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import FOLLOWS, Question, Slot, hints_of, read_question, slots_of
from helix_tui.core.ask.records import RankedFile, Result, Span, record_place
from helix_tui.core.ask.retrieval.alignment import Alignment, align
from helix_tui.core.ask.retrieval.controller import Controller, Retrieval, RetrievalStep
from helix_tui.core.ask.retrieval.pool import Pool, Via, any_required, coverage_of, cut_to
from helix_tui.core.ask.retrieval.search import Searcher
from helix_tui.core.ask.retrieval.senses import Ambiguity, concepts_in, prefer, resolve
from helix_tui.core.ask.retrieval.tree_walk import Depth, Policy, WalkNode, place_of, walk
from helix_tui.core.ground.text import clean_block, counted

MAX_KEPT = 8
"""Maximum passages kept of the previous run, its best first."""
WORTH = 0.45
"""Score of the best of them: below a good new result, above a chance one."""
FEW_WORDS = 2
"""Minimum content words of a self-contained question."""
LEAST_ALIKE = 0.3
"""Cosine of the nearest passage with the question below which it is about something else (bench/ask.md)."""
WHOLE = 0.99
LEAST_COVERED = 0.34
"""Share of a question, by the rarity of its words, below which what was found is only the nearest thing."""

_REFERS = re.compile(
    r"^\W*(?:and|but|so|or|then|also|what\s+about|how\s+about|why(?:\s+not)?\W*$|where\W*$|how\W*$|who\W*$|when\W*$)\b"
    r"|\b(?:it|its|they|them|their|that|those|this|these|there|the\s+same|the\s+other|the\s+former|the\s+latter)\b",
    re.IGNORECASE,
)


def with_earlier(text: str, earlier: Mapping[str, Any] | None) -> str:
    """A question with the words of the previous one, if it refers back."""
    if earlier is None:
        return text
    before = clean_block(earlier.get("asked_as") or earlier.get("question"), 1_000).strip()
    # a self-contained question may begin with "and"; one with a single content word or none is not self-contained
    parsed = read_question(text)
    alone = len(parsed.words) + len(parsed.names) >= FEW_WORDS
    return text if not before or (alone and not _REFERS.search(text)) else f"{text.strip()}{FOLLOWS}{before}"


def kept_evidence(library: RepositoryIndex, earlier: Mapping[str, Any]) -> list[tuple[Span, Via, float]]:
    """The still valid evidence of a run: passages whose text still has the same hash, best first."""
    kept: list[tuple[Span, Via, float]] = []
    for one in (earlier.get("evidence") or ())[:MAX_KEPT]:
        span = _present(library, one)
        if span is not None and span.hash == one.get("hash"):
            kept.append((span, "earlier", WORTH * (1 - len(kept) / (2 * MAX_KEPT))))
    return kept


def _present(library: RepositoryIndex, one: Mapping[str, Any]) -> Span | None:
    """The current passage; None if it is gone."""
    file, start, end = str(one.get("file", "")), one.get("start"), one.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    if record_place(file) is None:
        return library.span_at(file, start, end)
    # lines of a record move with every attempt above them: its passage is found by its text
    wanted, lines = str(one.get("text", "")).split("\n"), library.lines(file)
    begins = (at for at, line in enumerate(lines) if line == wanted[0])
    at = next((at for at in begins if lines[at : at + len(wanted)] == wanted), None)
    return None if at is None else library.span_at(file, at + 1, at + len(wanted))


Stage = Literal["retrieve", "senses", "align", "passages", "compact", "answer", "model"]


class News(Struct, frozen=True):
    """A progress message."""

    stage: Stage
    text: str
    step: RetrievalStep | None = None
    """The iteration, if it was one of the loop's."""


Tell = Callable[[News], None]
AskModel = Callable[[str], ModelReply]


class AskRun(Struct):
    """The complete run of one question."""

    question: Question
    slots: tuple[Slot, ...]
    policy: Policy
    depth: Depth
    revision: str
    retrieval: Retrieval
    ranked: tuple[RankedFile, ...]
    ambiguity: Ambiguity
    alignment: Alignment
    compaction: Compaction
    walk: tuple[WalkNode, ...]
    items: tuple[Item, ...]
    drafted: Answer
    """The answer without a model."""
    answer: str
    citations: tuple[Citation, ...]
    grounding: Grounding
    tier: Tier
    missing: tuple[Slot, ...]
    covered_by: Mapping[str, tuple[str, ...]]
    """Slot id -> places of the kept spans that cover it."""
    passages: tuple[Passage, ...]
    """The passages that answer, best first; the answer quotes the first of them."""
    result: Result
    """What a reader is told of the answer."""
    reranked: bool = False
    """Whether the encoder has put the passages in order."""
    partial: str = ""
    """That only a part of the repository was read when it was asked, in a sentence; else empty."""
    model_calls: int = 0
    tool_results: str = ""
    model: ModelReply | None = None
    """The model's reply, if it was asked."""
    fallback: str = ""
    """Why the model's answer was rejected; empty if it was used or not requested."""
    given: tuple[Citation, ...] = ()
    """The items given to the model, by number."""
    read: ModelAnswer = field(default_factory=ModelAnswer)
    """The gate's result on the model's answer."""
    without_model: tuple[str, Tier, Result] | None = None
    """The answer from the evidence alone, with its tiers, if a model's replaced it."""
    asked: str = ""
    """The question as asked; `question` also has the words that it refers back to."""
    earlier: Mapping[str, Any] | None = None
    """The run that the question follows."""
    empty: str = ""
    """Why nothing is indexed; empty if something is."""
    kept_of_earlier: int = 0
    """Number of passages of that run's evidence that are still valid."""
    timings: dict[str, float] = {}
    """Stage -> milliseconds."""


def ask(
    library: RepositoryIndex,
    text: str,
    *,
    policy: Policy | None = None,
    depth: Depth = "root_to_anchor",
    sense: str = "",
    model: AskModel | None = None,
    tell: Tell = lambda _: None,
    earlier: Mapping[str, Any] | None = None,
) -> AskRun:
    """Answer a question from a repository.

    Args:
        library: the repository, indexed.
        text: the question.
        policy: thresholds and budgets.
        depth: how much of a tree is shown.
        sense: the sense that the user chose after a clarify.
        model: asks the model once; without one the answer comes from the evidence alone.
        tell: called with progress messages.
        earlier: the document of a run that the question follows; its evidence is kept as far as it is still valid.
    """
    question = read_question(with_earlier(text, earlier))
    asking = _Asking(library, question, policy or Policy(), depth, tell, earlier)
    run = asking.without_model(sense)
    run.asked, run.earlier, run.empty = text, earlier, library.empty_reason()
    run.timings["total"] = asking.elapsed_ms()
    if model is not None:
        put_to_model(run, model, tell)
    return run


class _Asking:
    def __init__(
        self,
        library: RepositoryIndex,
        question: Question,
        policy: Policy,
        depth: Depth,
        tell: Tell,
        earlier: Mapping[str, Any] | None = None,
    ) -> None:
        self._library = library
        self._earlier = earlier
        self._kept = 0
        self._question = question
        self._policy = policy
        self._depth = depth
        self._tell = tell
        self._begun = time.perf_counter()
        self._lap = self._begun
        self._computed = time.thread_time()
        self._timings: dict[str, float] = {}

    def elapsed_ms(self) -> float:
        """Milliseconds since the question was asked."""
        return (time.perf_counter() - self._begun) * 1_000

    def computed_ms(self) -> float:
        """Milliseconds of CPU time of this thread since then, which the budget counts: other work on a busy machine
        must not change an answer."""
        return (time.thread_time() - self._computed) * 1_000

    def _timed(self, stage: Stage) -> None:
        now = time.perf_counter()
        self._timings[stage] = self._timings.get(stage, 0.0) + (now - self._lap) * 1_000
        self._lap = now

    # --- the evidence -------------------------------------------------------------------------------------

    def without_model(self, sense: str) -> AskRun:
        """The whole run without the model."""
        library, question, policy = self._library, self._question, self._policy
        slots = slots_of(question, library.rarity, concepts_in(library, question))
        slots += hints_of((heading.title for heading in library.headings(question.terms)), slots)
        searcher = Searcher(library, question, policy)
        held = kept_evidence(library, self._earlier) if self._earlier is not None else []
        self._kept = len(held)
        if held:
            self._tell(News("retrieve", f"kept {counted(len(held), 'source')} of the question before"))
        # the loop starts with the still valid evidence of the previous question
        retrieval = Controller(
            searcher,
            question,
            Pool(slots, {}).with_spans(held, step=0, query="", policy=policy),
            policy,
            elapsed_ms=self.computed_ms,
            tell=lambda step: self._tell(News("retrieve", said_of(step), step)),
        ).run()
        self._timed("retrieve")
        ambiguity = resolve(library, question, slots, policy.dominance_threshold, sense)
        # without evidence there are no options to choose from
        if ambiguity.is_split and retrieval.pool.entries:
            retrieval.stop = "dominance_split"
            retrieval.detail = f"“{ambiguity.term}” has senses that the evidence does not separate"
        if len(ambiguity.weighed) > 1:
            self._tell(News("senses", said_of_senses(ambiguity)))
        self._timed("senses")
        pool, alignment = align(library, retrieval.pool, policy, len(retrieval.steps) + 1)
        if alignment.extracted:
            words = (
                f"{counted(len(alignment.extracted), 'symbol')} in documents, {len(alignment.resolved)} defined here"
            )
            self._tell(News("align", f"{words}, +{counted(alignment.added, 'span')} of code"))
        self._timed("align")
        pool, passages = self._passages(searcher, pool, len(retrieval.steps) + 1)
        self._timed("passages")
        # evidence of senses that were not chosen is dropped before anything is cut to fit
        belongs = list(prefer(ambiguity, pool.ordered)) if ambiguity.selected else []
        unwanted = frozenset(entry.span.key for entry, wanted in belongs if not wanted)
        passages = [passage for passage in passages if passage.found.key not in unwanted]
        pool = pool.within(policy.max_files)
        compaction = compact(pool.ordered, slots, policy, unwanted, [passage.found.key for passage in passages])
        size = sum(len(one.entry.span.text.encode("utf-8", "replace")) for one in compaction.kept)
        self._tell(
            News("compact", f"{len(pool.entries)} → {counted(len(compaction.kept), 'span')}, {size / 1000:.1f} kB")
        )
        self._timed("compact")
        return self._answered(slots, searcher, retrieval, pool, ambiguity, alignment, compaction, passages)

    def _passages(self, searcher: Searcher, pool: Pool, step: int) -> tuple[Pool, list[Passage]]:
        """The pool with the spans of the passages that answer, and these passages, best first."""
        policy = self._policy
        # a question about everything has no subject that a passage could contain: the introduction answers
        if not any_required(pool.slots):
            return pool, [opening_of(entry.span) for entry in pool.ordered[:1]]
        more = [*searcher.records, *(entry.span for entry in pool.ordered)]
        passages = []
        for one in passages_for(self._library, self._question, more, searcher.tree_files):
            cut = cut_to(one.found, policy.max_span_bytes, pool.slots, one.line)
            quote = cut_to(one.span, policy.max_span_bytes, pool.slots, one.line)
            inside = cut.start <= quote.start and quote.end <= cut.end
            passages.append(replace(one, span=quote, found=cut if inside else quote))
        spans: list[tuple[Span, Via, float]] = [
            (passage.found, "passage", 1 - rank / len(passages)) for rank, passage in enumerate(passages)
        ]
        return pool.with_spans(spans, step=step, query=self._question.text, policy=policy), passages

    def _answered(
        self,
        slots: tuple[Slot, ...],
        searcher: Searcher,
        retrieval: Retrieval,
        pool: Pool,
        ambiguity: Ambiguity,
        alignment: Alignment,
        compaction: Compaction,
        passages: Sequence[Passage],
    ) -> AskRun:
        question, policy = self._question, self._policy
        covered_by = {
            slot.id: tuple(place_of(one.entry.span) for one in compaction.kept if slot.id in one.entry.slots)
            for slot in slots
        }
        # by the kept evidence, not by all that was found: the answer uses no other
        missing = tuple(slot for slot in slots if slot.required and not covered_by[slot.id])
        docs = [one.entry.span for one in compaction.kept if one.entry.is_doc]
        walked = walk(searcher.trees, docs, self._depth, self._library.lines)
        covered = coverage_of(slots, [ident for ident, places in covered_by.items() if places])
        # a name that is found, or all of the words in one place, is what was asked about
        said = any(covered_by[slot.id] for slot in slots if slot.source == "name")
        said = said or any(passage.covered >= WHOLE for passage in passages)
        alike = max((passage.likeness for passage in passages if passage.likeness is not None), default=1.0)
        anything = bool(compaction.kept) and covered >= LEAST_COVERED and (said or alike >= LEAST_ALIKE)
        split = retrieval.stop == "dominance_split"
        if split:
            answer = ask_which(ambiguity, policy.dominance_threshold, retrieval.queries)
        elif not anything:
            answer = say_nothing_found(compaction.kept, missing, retrieval.queries, self._library.empty_reason())
        else:
            answer = compose(question, compaction.kept, passages, missing)
        cited = {source.number: source.span for source in answer.sources}
        grounding = judge(answer.claims, cited, policy.grounded_claim_threshold)
        tier = tier_of(
            grounding,
            evidence_ok=bool(retrieval.steps) and retrieval.stop == "coverage_ok",
            coverage_ok=covered >= policy.min_slot_coverage_ratio,
            anything_covered=anything,
            split=split,
        )
        self._tell(News("answer", f"without a model, {said_of_gate(grounding)}: {tier}"))
        self._timed("answer")
        return AskRun(
            question=question,
            slots=slots,
            policy=policy,
            depth=self._depth,
            revision=self._library.revision,
            retrieval=retrieval,
            ranked=searcher.ranked,
            ambiguity=ambiguity,
            alignment=alignment,
            compaction=compaction,
            walk=walked,
            items=in_order(_items(question, slots, searcher, pool, compaction, covered_by, walked)),
            drafted=answer,
            answer=answer.text,
            citations=answer.cited,
            grounding=grounding,
            tier=tier,
            missing=missing,
            covered_by=covered_by,
            passages=tuple(passages),
            result="which one?" if split else "sources" if anything else "nothing found",
            reranked=any(passage.likeness is not None for passage in passages),
            partial=self._library.partial(),
            timings=self._timings,
            kept_of_earlier=self._kept,
        )


# --- the model call -----------------------------------------------------------------------------------------


def put_to_model(run: AskRun, ask_model: AskModel, tell: Tell = lambda _: None) -> None:
    """Ask the model once and use its answer if it passes the gate; else keep the one from evidence, with the reason.

    The model is not asked if the user has to choose first, or if there is no evidence.
    """
    # at most one call, and none if the user has to choose first or nothing was found
    if run.model is not None or run.tier == "Clarify" or not run.compaction.kept:
        return
    begun = time.perf_counter()
    given = model_items(run.drafted.sources, (entry for entry in run.retrieval.pool.ordered))
    sources = {one.number: one.span for one in given}
    run.tool_results = tool_results(
        queries=run.retrieval.queries,
        sources=sources,
        walk=run.walk,
        missing=run.missing,
        covered=[slot for slot in run.slots if slot.required and slot not in run.missing],
        most_bytes=run.policy.max_prompt_bytes,
    )
    tell(News("model", "asked"))
    run.model_calls += 1
    reply = run.model = ask_model(prompt(run.asked, run.tool_results, run.earlier))
    run.timings["model"] = (time.perf_counter() - begun) * 1_000
    run.timings["total"] = run.timings.get("total", 0.0) + run.timings["model"]
    run.given = given
    run.read = answer = read_answer(reply, sources, run.missing, run.policy.grounded_claim_threshold)
    run.fallback = answer.refused
    if run.fallback:
        run.answer = with_walk(run.drafted.text, run.walk)
        tell(News("model", f"not taken: {run.fallback}"))
        return
    run.without_model = (run.answer, run.tier, run.result)
    numbers = set(cited_numbers(answer.text))
    run.citations = tuple(one for one in given if one.number in numbers)
    run.answer = with_sources(answer.text, run.citations)
    run.grounding = answer.grounding
    if not answer.grounding.passes:
        run.tier = "Bounded inference"
    run.result = "answer"
    tell(News("model", f"{said_of_gate(answer.grounding)}: {run.tier}"))


def with_walk(text: str, walked: Sequence[WalkNode]) -> str:
    """An answer from evidence with the tree walk before its sources, used instead of a model's."""
    if not walked:
        return text
    marks = ("\n\nSources:\n", "\n\nNot found:\n")
    end = min((at for mark in marks if (at := text.find(mark)) >= 0), default=len(text))
    walk = "\n".join(f"- {walk_line(node).strip()}" for node in walked)
    return f"{text[:end]}\n\nTree walk:\n{walk}{text[end:]}"


def _items(
    question: Question,
    slots: tuple[Slot, ...],
    searcher: Searcher,
    pool: Pool,
    compaction: Compaction,
    covered_by: Mapping[str, tuple[str, ...]],
    walked: tuple[WalkNode, ...],
) -> list[Item]:
    """The typed items of a run, independent of machine, clock and scores."""
    wanted = "\n".join(f"{slot.id} {slot.source}" for slot in slots if slot.required)
    items = [Item("intent", "", question.focus, 0, 0, f"{question.text}\n{wanted}")]
    items += [
        Item("selected_trees", match.tree.source, match.tree.id, 0, 0, "\n".join(match.nodes))
        for match in searcher.trees
    ]
    for entry in pool.ordered:
        span = entry.span
        kind: Literal["doc_section_hits", "repo_search_hits"]
        kind = "doc_section_hits" if entry.is_doc else "repo_search_hits"
        items.append(Item(kind, span.file, span.header, span.start, span.end, span.hash))
    for one in compaction.kept:
        span = one.entry.span
        items.append(Item("proof_spans", span.file, span.header, span.start, span.end, span.text))
    report = "\n".join(f"{slot.id}: {', '.join(covered_by[slot.id]) or 'open'}" for slot in slots if slot.required)
    items.append(Item("slot_coverage_report", "", "", 0, 0, report))
    if walked:
        items.append(Item("tree_walk", "", "", 0, 0, "\n".join(map(walk_line, walked))))
    return items


# --- for display ---------------------------------------------------------------------------------------------


def said_of(step: RetrievalStep) -> str:
    """What an iteration brought, in one line: spans, slots, documents, confidence, and why it was taken."""
    missing = f", open: {', '.join(step.missing_slots[:3])}" if step.missing_slots else ""
    docs = "documents" if step.doc_coverage_ok else "too few documents"
    return (
        f"{counted(step.spans_added, 'span')} more, {step.slot_coverage:.0%} of the slots{missing}, {docs},"
        f" confidence {step.confidence:.2f}; {step.reason}"
    )


def said_of_senses(ambiguity: Ambiguity) -> str:
    """The result of the search for senses, in one line."""
    scores = " · ".join(f"{one.sense.label} {one.score:.2f}" for one in ambiguity.weighed[:3])
    chosen = f"→ {ambiguity.selected}" if ambiguity.selected else "undecided"
    return f"{scores} {chosen}"


def said_of_gate(grounding: Grounding) -> str:
    """The gate's findings, in a few words."""
    sign = "≥" if grounding.passes else "<"
    return f"ratio {grounding.ratio:.2f} {sign} {grounding.threshold:.2f}"
