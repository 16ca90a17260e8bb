"""The loop on libraries that nobody wrote by hand: it always ends, and what is covered stays covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import Question, covers, read_question, slots_of
from helix_tui.core.ask.records import Definition, Heading, RankedFile, Role, Span, Tree, Use, text_hash
from helix_tui.core.ask.retrieval.controller import Controller, Retrieval
from helix_tui.core.ask.retrieval.pool import Pool, cut_to
from helix_tui.core.ask.retrieval.search import Searcher
from helix_tui.core.ask.retrieval.tree_walk import BudgetError, Policy, with_budgets

QUESTION = "How does the `retry_after` cooldown of a lease reach the queue?"


@dataclass
class Shelf:
    """A library of given spans: every search brings what it is given next."""

    spans: list[Span]

    @property
    def files(self) -> Sequence[RankedFile]:
        return [RankedFile(span.file, span.score, {}, span.role) for span in self.spans]

    def search(self, query: str | Question, *, spans: int = 60, roles: Sequence[Role] = (), per_file: int = 3) -> Shelf:
        text = query if isinstance(query, str) else query.text
        found = [span for span in self.spans if not roles or span.role in roles]
        turn = len(text) % (len(found) or 1)
        return Shelf([*found[turn:], *found[:turn]][: max(1, spans // 20)])

    def search_records(self, question: Question, most: int) -> list[Span]:
        return []

    def definitions(self, name: str) -> Sequence[Definition]:
        return ()

    def uses(self, name: str, *, most: int = 50) -> Sequence[Use]:
        return ()

    def headings(self, terms: Sequence[str]) -> Sequence[Heading]:
        return ()

    def trees(self) -> Sequence[Tree]:
        return ()

    def span_at(self, file: str, start: int, end: int) -> Span | None:
        return None

    def opening(self) -> Span | None:
        return None

    def rarity(self, term: str) -> float:
        return 1.0

    def commits(self, text: str, most: int) -> Sequence[Span]:
        return ()


def made(file: int, start: int, text: str, role: Role, score: float) -> Span:
    lines = text.count("\n")
    return Span(f"f{file}", start, start + lines, "lines", "", text, text_hash(text), score, {}, role)


WORDS = st.sampled_from(["retry_after", "retryAfter", "cooldown", "lease", "queue", "boat", "harbour"])
SPANS = st.builds(
    made,
    st.integers(0, 8),
    st.integers(1, 200),
    st.lists(WORDS, min_size=1, max_size=6).map("\n".join),
    st.sampled_from(["doc", "source", "test"]),
    st.floats(0, 1),
)


def retrieved(spans: list[Span], policy: Policy) -> Retrieval:
    question = read_question(QUESTION)
    shelf = Shelf(spans)
    pool = Pool(slots_of(question, shelf.rarity), {})
    return Controller(
        Searcher(cast("RepositoryIndex", shelf), question, policy),
        question,
        pool,
        policy,
        elapsed_ms=lambda: 0.0,
        tell=lambda _: None,
    ).run()


@given(st.lists(SPANS, max_size=12), st.integers(1, 6), st.integers(1, 6))
def test_coverage_never_falls_and_the_loop_always_stops_with_a_reason(
    spans: list[Span], files: int, iters: int
) -> None:
    found = retrieved(spans, Policy(max_files=files, max_iters=iters))
    coverage = [step.slot_coverage for step in found.steps]
    assert coverage == sorted(coverage)
    assert 1 <= len(found.steps) <= iters
    assert found.stop in ("coverage_ok", "budget", "empty")
    assert found.detail or found.stop == "coverage_ok"
    assert len(found.pool.files) <= files
    assert (found.stop == "empty") == (not found.pool.entries)


@given(st.lists(SPANS, max_size=12))
def test_the_order_in_which_spans_come_changes_nothing(spans: list[Span]) -> None:
    def pool(given: list[Span]) -> list[tuple[object, ...]]:
        question = read_question(QUESTION)
        empty = Pool(slots_of(question, lambda _: 0.1), {})
        brought = [(span, "code", span.score) for span in given]
        grown = empty.with_spans(brought, step=1, query="", policy=Policy())  # type: ignore[arg-type]
        return [entry.order for entry in grown.ordered]

    assert pool(spans) == pool(spans[::-1])


@pytest.mark.parametrize("line", [10, 11, 14, 30])
def test_a_span_that_is_too_long_keeps_the_line_that_is_named(line: int) -> None:
    lines = [f"line {number} " + "word " * 20 for number in range(10, 31)]
    text = "\n".join(lines)
    cut = cut_to(Span("a.md", 10, 30, "section", "", text, text_hash(text)), 240, (), line)
    assert cut.start <= line <= cut.end
    assert cut.text == "\n".join(lines[cut.start - 10 : cut.end - 9])


def test_a_span_that_is_too_long_keeps_what_covers_a_slot() -> None:
    question = read_question("Where is `needle` hidden?")
    slots = slots_of(question, lambda _: 0.1)
    span = made(1, 10, "\n".join([f"hay {n}" for n in range(500)] + ["a needle"]), "source", 1.0)
    cut = cut_to(span, 200, slots)
    assert covers(slots[0], cut.text)
    assert len(cut.text) <= 200
    assert span.text.split("\n")[cut.start - 10] == cut.text.split("\n")[0]
    assert cut.hash == text_hash(cut.text)


@pytest.mark.parametrize(
    ("question", "focus", "names", "words"),
    [
        ("What does solar restoration mean in this repo?", "solar restoration", (), ("solar", "restoration")),
        ("Define TS_ratio in this repo.", "TS_ratio", ("TS_ratio",), ()),
        ("Where is parse_now() defined?", "", ("parse_now",), ("defined",)),
        ("who calls `classify`?", "", ("classify",), ("calls",)),
        ("What does the summary option print?", "", (), ("summary", "option", "print")),
        ("Why are timetables text files?", "", (), ("timetables", "text", "files")),
        ("How does a cavity work?", "", (), ("cavity",)),
        ("", "", (), ()),
    ],
)
def test_a_question_is_read_by_its_words(
    question: str, focus: str, names: tuple[str, ...], words: tuple[str, ...]
) -> None:
    found = read_question(question)
    assert (found.focus, found.names, found.words) == (focus, names, words)


def test_budgets_are_named_ranged_and_whole_where_they_count() -> None:
    policy = with_budgets(Policy(), ["max_iters=2", "min-slot-coverage-ratio = 0.5"])
    assert (policy.max_iters, policy.min_slot_coverage_ratio) == (2, 0.5)
    for wrong in ("max_iter=2", "max_iters=0", "max_iters=1.5", "max_iters", "max_iters=nan", "max_files=x"):
        with pytest.raises(BudgetError):
            with_budgets(Policy(), [wrong])
