"""A follow-up question: what it refers back to, and the evidence of the one before that still holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.ask.question import read_question
from helix_tui.core.ask.sessions.session import with_earlier
from tests.core.ask.sessions.solar import QUESTIONS, document, write

BEFORE = {"question": "How are leases renewed?"}


@pytest.mark.parametrize("text", ["and when do they expire?", "Why?", "where is it tested?", "what about errors?"])
def test_what_refers_back_takes_the_question_before_with_it(text: str) -> None:
    assert with_earlier(text, BEFORE) == f"{text}\n\nAfter: How are leases renewed?"
    assert with_earlier(text, None) == text


def test_a_question_of_its_own_stays_alone() -> None:
    assert with_earlier("Which file parses the timetable?", BEFORE) == "Which file parses the timetable?"


@pytest.mark.long
def test_evidence_is_kept_while_its_text_is_the_same(tmp_path: Path) -> None:
    root = write(tmp_path / "solar")
    first = document(root, QUESTIONS[0])
    found = document(root, "and where is it tested?", earlier={**first, "id": "one"})
    assert found["question"] == "and where is it tested?"
    assert found["follows"]["question"] == QUESTIONS[0]
    assert found["follows"]["kept"] == min(8, len(first["evidence"]))
    held = {(one["file"], one["hash"]) for one in first["evidence"]}
    assert held & {(one["file"], one["hash"]) for one in (*found["evidence"], *found["dropped"])}

    path = root / first["evidence"][0]["file"]
    path.write_text(path.read_text().replace("panels", "boards"))
    changed = document(root, "and where is it tested?", earlier={**first, "id": "one"})
    assert changed["follows"]["kept"] < found["follows"]["kept"]


def test_nothing_but_the_two_questions_is_looked_for() -> None:
    text = with_earlier("where are they removed?", {"question": "How are worktrees created?"})
    assert read_question(text).words == ("removed", "worktrees", "created")
