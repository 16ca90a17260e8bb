"""Which questions are about records, and on what; a repository may be about beads itself."""

from __future__ import annotations

import pytest

from helix_tui.core.ask.retrieval.record_question import doing, records_asked


@pytest.mark.parametrize(
    ("text", "shape", "kinds", "subject"),
    [
        ("Which beads touch the parser?", "list", ("bead",), "parser"),
        ("open beads about federation", "list", ("bead",), "federation"),
        ("any lessons about worktrees?", "list", ("memory",), "worktrees"),
        ("what do we remember about git locks?", "list", ("memory",), "git locks"),
        ("which commit removed the cache?", "list", ("commit",), "removed the cache"),
        ("what went wrong with ddx-33af75f3 last time?", "account", (), "ddx-33af75f3"),
        ("what did the reviewer say about ddx-0e268fe3?", "account", ("review",), "ddx-0e268fe3"),
        ("why was the lease TTL changed?", "why", (), "lease TTL"),
        ("when were tabs accepted?", "why", (), "tabs accepted"),
        ("which beads are about the parser?", "list", ("bead",), "parser"),
        ("are there any beads about colours?", "list", ("bead",), "colours"),
        ("have we tried to read the tide tables?", "account", (), "read the tide tables"),
    ],
)
def test_questions_about_records(text: str, shape: str, kinds: tuple[str, ...], subject: str) -> None:
    found = records_asked(text)
    assert (found.shape, found.kinds, found.subject) == (shape, kinds, subject)


@pytest.mark.parametrize(
    "text",
    [
        "How are beads rendered?",
        "What is a bead?",
        "How does ddx work decide which bead to pick next?",
        "Which class renders beads?",
        "which beads are what the queue calls ready?",
        "When is a bead closed?",
        "What runs when a bead is closed?",
        "which review kinds are there?",
        "which memory ranker is the default?",
        "Why is the encoder silent?",
    ],
)
def test_questions_about_code_that_knows_such_words(text: str) -> None:
    assert records_asked(text).shape == "none"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("which beads are ready?", "ready"),
        ("list the ready beads", "ready"),
        ("how many attempts landed so far?", "landed"),
        ("which executions were kept aside?", "kept_aside"),
        ("which ready beads touch the parser?", ""),
        ("which beads are ready to touch the parser?", ""),
        ("which beads landed?", ""),
    ],
)
def test_questions_about_everything_in_a_state(text: str, state: str) -> None:
    found = records_asked(text)
    assert (found.state if found.all_in_state else "") == state


def test_ids_and_states() -> None:
    assert records_asked("why did 20260822T011400-33af75f3 fail?").ids == ("20260822T011400-33af75f3",)
    assert records_asked("show me closed beads about docs").state == "closed"
    assert records_asked("is the well-known port used?").ids == ()


def test_what_ran_into_something_did_not_land_for_it() -> None:
    found = records_asked("did any attempt run into a merge conflict?")
    assert (found.shape, found.kinds, found.cause) == ("list", ("attempt",), "merge conflict")
    assert set(found.ended) == {"failed", "kept aside", "refused", "interrupted"}


def test_a_doer_is_called_after_what_it_does() -> None:
    assert [doing(word) for word in ("parser", "user", "number", "import")] == ["parse", "", "numbe", ""]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("what happened on 2026-10-30?", "2026-10-30"),
        ("why did the run of 30 October stop?", "10-30"),
        ("What landed on October 3rd, 2026?", "2026-10-03"),
        ("what did the last run do?", "last"),
        ("How did the run end?", "last"),
        ("what happened yesterday?", "yesterday"),
        ("What happens on 30 October?", ""),
        ("What does the run do?", ""),
        ("What happened with ddx-33af75f3 on 2026-10-30?", ""),
        ("Who changed the parser on 30 October?", ""),
    ],
)
def test_what_happened_may_be_asked_of_a_day(text: str, day: str) -> None:
    assert records_asked(text).day == day
