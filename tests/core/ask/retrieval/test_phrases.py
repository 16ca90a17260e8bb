"""Phrases of plain questions that mean another thing than their words: what reaches code by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.ask.answer.confidence import kind_of_answer
from helix_tui.core.ask.retrieval.subject import Wording, read_subject
from tests.core.ask.sessions.solar import document, write


def _covered(question: str, text: str) -> float:
    wording = Wording(read_subject(question), lambda term: 0.1)
    return wording.covered(wording.in_text(text))


@pytest.mark.parametrize(
    ("question", "written", "other"),
    [
        ("Which boats are left out?", "ignored = boats", "boats go left"),
        ("How do I leave certain boats out of the list?", "exclude(boat)", "boats leave"),
        ("How can the lamp be switched off?", "lamp.disable()", "lamp = other"),
        ("Why is a failed boat not tried again?", "retry(boat)", "boat tries"),
        ("Where is the fare worked out?", "def calculate_fare", "fare works"),
        ("What happens when I press ctrl+c in the harbour?", "harbour: KeyboardInterrupt", "press harbour c"),
        ("Where are my settings?", "load_config()", "set()"),
    ],
)
def test_a_phrase_reaches_what_code_calls_it(question: str, written: str, other: str) -> None:
    assert _covered(question, written) > _covered(question, other)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many boats sail if I say nothing?", ["boats", "sail", "default"]),
        ("Which boat is taken when none is given on the command line?", ["boat", "taken", "default"]),
        ("How many boats sail unless told otherwise?", ["boats", "sail", "default"]),
        ("In which order do boats sail?", ["boats", "sail"]),
        ("How long does a boat sail if I give no limit?", ["long", "boat", "sail", "default", "limit"]),
        ("What happens to a boat if I have no harbour?", ["boat", "harbour"]),
        ("Where is the boat left when nothing is on board?", ["boat", "left", "nothing", "board"]),
    ],
)
def test_a_condition_that_says_nothing_means_the_default(question: str, words: list[str]) -> None:
    assert [one.word for one in read_subject(question).words] == words


def test_a_measure_weighs_little_and_is_said_by_the_name_of_the_quantity() -> None:
    subject = read_subject("How large may a crate be?")
    assert [(one.word, one.weight == 1) for one in subject.words] == [("large", False), ("crate", True)]
    assert _covered("How large may a crate be?", "crate_size") > _covered("How large may a crate be?", "crate")


def test_a_verb_without_its_particle_means_itself() -> None:
    assert [one.means for one in read_subject("Which boats leave the harbour?").words] == [(), (), ()]


def test_the_noun_of_which_is_the_subject_where_no_other_one_is() -> None:
    assert [one.word for one in read_subject("Which level is used by default?").words] == ["level", "default"]
    assert [one.word for one in read_subject("Which level has a boat?").words] == ["boat"]


def test_words_of_little_meaning_alone_answer_nothing() -> None:
    subject = read_subject("How can I make sure that I cannot change anything by accident?")
    assert subject.of_little_meaning
    assert not read_subject("How can I change the theme?").of_little_meaning
    assert kind_of_answer("how to", [], of_little_meaning=True) == "not found"


FILES = {
    "README.md": "# Harbour\n\nA list of boats.\n\n## Ignored boats\n\nWrecks and rafts are not listed.\n",
    "harbour/rules.py": "# boats on the left\nLEFT = 1\n\n\ndef files():\n    return LEFT\n",
    "harbour/skip.py": '"""Boats that are skipped."""\n\nSKIPPED = ["wreck", "raft"]\n',
    "harbour/noise.py": "".join(f"def files_{n}():\n    return {n}\n\n\n" for n in range(30)),
}


def test_what_is_said_by_a_phrase_alone_is_found(tmp_path: Path) -> None:
    said = document(write(tmp_path, FILES), "Which files are left out?")
    assert said["tier"] != "not found"
    assert "wreck" in said["answer"].lower()


def test_a_value_is_quoted_with_the_constant_that_stands_beside_it(tmp_path: Path) -> None:
    body = "".join(f"\tcrates += {n}\n" for n in range(12))
    files = {
        "store/crate.go": "package store\n\nconst CrateSize = 64 * 1024\n\n// Load puts a cargo into crates.\n"
        f"func Load(cargo int) int {{\n\tcrates := (cargo + CrateSize - 1) / CrateSize\n{body}\treturn crates\n}}\n",
        "store/other.go": "package store\n\nfunc Unload() int {\n\treturn 3\n}\n",
    }
    assert "CrateSize = 64 * 1024" in document(write(tmp_path, files), "How large is one crate of cargo?")["answer"]
