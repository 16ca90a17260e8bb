"""The one model call: it gets twenty items, its ranking counts, its claims pass the gate, ours stays beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ask.answer.model import ModelReply
from helix_tui.core.ask.retrieval.tree_walk import Policy
from tests.core.ask.sessions.solar import QUESTIONS, document, write

TRUE = "Solar restoration is the work that returns panels to full output after a storm. [1]"
FALSE = "It was invented in 1871 by pirates of the Caribbean. [1]"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return write(tmp_path / "solar")


def _answered(repository: Path, text: str, **more: Any) -> tuple[dict[str, Any], str]:
    given: list[str] = []

    def model(prompt: str) -> ModelReply:
        given.append(prompt)
        return ModelReply(text=text, command="scripted")

    return document(repository, QUESTIONS[0], model=model, **more), given[0]


@pytest.mark.long
def test_what_it_used_comes_first_in_the_ranking(repository: Path) -> None:
    plain = document(repository, QUESTIONS[0])
    last = plain["evidence"][-1]["file"]
    assert plain["ranked_files"][0] != last
    numbers = {one["item"]: one["n"] for one in _answered(repository, TRUE)[0]["model"]["items"]}
    number = next(n for item, n in numbers.items() if item.startswith(f"{last}:"))
    found, prompt = _answered(repository, f"{TRUE}\n\nUSED: [{number}], [1]")
    assert found["ranked_files"][0] == last
    assert sorted(found["ranked_files"]) == sorted(plain["ranked_files"])
    assert found["model"]["used"] == [number, 1]
    assert "USED" not in found["answer"]
    assert f"[{number}] | {last}" in prompt
    assert 1 < len(numbers) <= 20


def test_claims_that_are_not_in_their_sources_are_left_out_and_kept_with_the_reason(repository: Path) -> None:
    found, _ = _answered(repository, f"- {TRUE}\n- {FALSE}\nUSED: 1")
    assert "full output" in found["answer"]
    assert "1871" not in found["answer"]
    (left,) = found["model"]["left_out"]
    assert left["text"] == FALSE
    assert left["why"]
    assert found["tier_selected"] == "Bounded inference"


@pytest.mark.long
def test_the_answer_without_it_stays_beside_it(repository: Path) -> None:
    plain = document(repository, QUESTIONS[0])
    found, _ = _answered(repository, TRUE)
    assert found["answer_without_model"] == plain["answer"]
    assert found["tier_without_model"] == plain["tier_selected"]
    assert found["citations_without_model"] == plain["citations"]
    refused, _ = _answered(repository, FALSE)
    assert re.sub(r"\n\nTree walk:\n(?:- .*\n?)+?(?=\n\n|$)", "", refused["answer"]) == plain["answer"], "and the walk"
    assert "\n\nTree walk:\n- " in refused["answer"]
    assert "answer_without_model" not in refused
    assert refused["ranked_files"] == plain["ranked_files"]


def test_a_small_context_gets_fewer_items(repository: Path) -> None:
    _, whole = _answered(repository, TRUE)
    _, small = _answered(repository, TRUE, policy=Policy(max_prompt_bytes=1_500))
    assert len(small) < len(whole)
    assert "[1] | " in small
