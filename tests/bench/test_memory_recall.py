"""Questions in other words find their memories without an encoder."""

from __future__ import annotations

from bench.memory_recall import QUESTIONS, right


def test_ten_of_fifteen_questions_find_their_memory_first_without_weights() -> None:
    places = right("off", "seed")
    assert len(places) == len(QUESTIONS) == 15
    assert places.count(1) >= 10
