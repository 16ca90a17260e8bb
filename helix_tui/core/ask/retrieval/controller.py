"""Run the retrieval loop: weak evidence decides what to search next, until it suffices or a budget is used up.

`Controller` judges each step and chooses the next one (docs/formats/ask.md §1, phase 1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from helix_tui.core.ask.question import Question
from helix_tui.core.ask.retrieval.pool import Pool
from helix_tui.core.ask.retrieval.search import Action, Searcher
from helix_tui.core.ask.retrieval.tree_walk import Policy
from helix_tui.core.ground.text import counted

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
