"""The loop: what is weak decides what is searched next, until evidence suffices or the budget is spent.

Policy (docs/formats/ask.md §1, phase 1): documents, their sections and trees first; where a slot stays
open, queries from headings, file names and symbols; then code, the symbol index and one hop of use; then
each open slot by itself. Evidence is united, so coverage never falls; where a budget would make it fall,
the loop keeps what it had and says so. Nothing here reads a clock but the caller's, which only ends a run
that takes too long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.retrieval.question import Question
from helix_tui.core.ask.retrieval.search import Action, Pool, Searcher
from helix_tui.core.ask.retrieval.trees import Policy

StopReason = Literal["coverage_ok", "budget", "empty", "dominance_split"]

STRONG = 0.6
"""Share of the best score seen from which evidence counts as strong."""

_NEEDS_CODE = frozenset(("location", "usage", "task"))
_NEEDS_DOCS = frozenset(("definition", "mechanism", "check"))


class RetrievalStep(Struct, frozen=True):
    """One iteration, as it ended."""

    step: int
    action: Action
    reason: str
    """Why this was done, and at the end of the loop why it is over."""
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
    """What the loop found, and how it went."""

    pool: Pool
    steps: list[RetrievalStep] = []
    stop: StopReason = "empty"
    detail: str = ""
    """In words: which budget, which slots stay open."""
    queries: list[str] = []
    """Every query that was searched, each once, in order."""


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
            searcher: what searches.
            question: as it was understood.
            pool: the empty pool with the slots that need evidence.
            policy: thresholds and budgets.
            elapsed_ms: what the run has computed since it began.
            tell: called with every step as soon as it ends.
        """
        self._searcher = searcher
        self._question = question
        self._policy = policy
        self._elapsed_ms = elapsed_ms
        self._tell = tell
        self.result = Retrieval(pool)

    def run(self) -> Retrieval:
        """Search until it suffices."""
        result = self.result
        action: Action | None = "seed_docs"
        reason = "documents, their sections and trees first"
        while action is not None:
            number = len(result.steps) + 1
            grown, queries = self._searcher.search(action, result.pool, number)
            kept = grown.within(self._policy.max_files)
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
        evidence_ok = self._evidence_ok(pool)
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

    def _evidence_ok(self, pool: Pool) -> bool:
        """Whether evidence is of the kind that the question asks for, and about as strong as any seen."""
        if not pool.entries:
            return False
        needs_code = self._question.kind in _NEEDS_CODE or bool(self._question.names)
        if needs_code and not any(not entry.is_doc and entry.slots for entry in pool.entries.values()):
            return False
        strongest = max(entry.span.score for entry in pool.entries.values())
        return strongest >= STRONG * self._searcher.best or self._did("widen_to_code")

    def _did(self, action: Action) -> bool:
        return any(step.action == action for step in self.result.steps)

    def _next(self, step: RetrievalStep) -> tuple[Action | None, str]:
        """What to do after a step, and why; None where the loop is over, with its stop reason set."""
        result, policy = self.result, self._policy
        docs_wanted = self._question.kind in _NEEDS_DOCS and not step.doc_coverage_ok
        docs_open = docs_wanted and not self._did("expand_queries")
        if step.slot_coverage_ok and step.evidence_ok and not docs_open:
            said = "no document mentions it" if docs_wanted else ""
            return self._stop("coverage_ok", said)
        spent = ""
        if step.step >= policy.max_iters:
            spent = f"max_iters {policy.max_iters}"
        elif self._elapsed_ms() >= policy.max_runtime_ms:
            spent = f"max_runtime_ms {policy.max_runtime_ms}"
        if spent:
            return self._stop("budget" if result.pool.entries else "empty", spent)
        weak = []
        if not step.slot_coverage_ok:
            weak.append("slot coverage weak: " + ", ".join(step.missing_slots[:4]))
        if docs_open:
            weak.append("no document yet")
        if weak and not self._did("expand_queries"):
            return "expand_queries", "; ".join(weak)
        if not self._did("widen_to_code"):
            return "widen_to_code", "; ".join(weak) or "the question needs code"
        if step.missing_slots and not self._did("search_open_slots"):
            return "search_open_slots", "still open: " + ", ".join(step.missing_slots[:4])
        if not result.pool.entries:
            return self._stop("empty", "nothing in the repository mentions it")
        return self._stop("budget", "no_new_evidence: every way to search was taken")

    def _stop(self, stop: StopReason, detail: str) -> tuple[None, str]:
        self.result.stop, self.result.detail = stop, detail
        return None, ""
