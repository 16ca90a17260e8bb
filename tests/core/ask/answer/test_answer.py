"""The answer without a model: passages with their places, as much as is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.core.ask.answer.answer import MOST_LINES
from helix_tui.core.ask.answer.quotes import sentences_in
from tests.core.ask.sessions.solar import document
from tests.core.ask.test_index import make

ENGINE = """// Copyright (C) 2020 The Authors. Licensed under MIT.

package engine

// Serve answers requests until it is stopped.
func (e *Engine) Serve(c Context) {
	// pick the oldest request of the backlog
	e.dispatch(c)
}

// Close stops the engine.
func (e *Engine) Close() {}

func (e *Engine) dispatch(c Context) {
	// the backlog is empty here
	c.next()
}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Guide\n\nIt opens. It\ncloses.", [("Guide", 0), ("It opens.", 2), ("It closes.", 2)]),
        ("- one\n- two words", [("one", 0), ("two words", 1)]),
        ("// Serve answers.\n// It stops.", [("Serve answers.", 0), ("It stops.", 1)]),
    ],
)
def test_sentences_have_no_marks_and_know_their_lines(text: str, said: list[tuple[str, int]]) -> None:
    assert list(sentences_in(text)) == said


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {
        "engine/engine.go": ENGINE,
        "engine/lock_unix.go": "package engine\n\n// TakeLock locks the file.\nfunc TakeLock() {}\n",
        "engine/lock_windows.go": "package engine\n\n// TakeLock does nothing.\nfunc TakeLock() {}\n",
        "web/door.js": "function openDoor () {\n  return 1\n}\nmodule.exports = { openDoor }\n",
        "types/door.d.ts": "/** Opens a door. */\nexport declare function openDoor(): number\n",
    }
    return make(tmp_path_factory.mktemp("engine"), files)


def test_a_passage_is_a_whole_unit_under_its_place(engine: Path) -> None:
    answer = document(engine, "Which request of the backlog is picked?")["answer"]
    assert answer.startswith("`engine/engine.go:5-9` `Engine.Serve` [1]\n    // Serve answers requests")
    assert "Copyright" not in answer


def test_who_calls_a_name_has_the_line_that_calls_it_among_the_evidence(engine: Path) -> None:
    found = document(engine, "Who calls dispatch()?")
    assert any("e.dispatch(c)" in one["text"] for one in found["evidence"])


def test_an_answer_is_no_longer_than_what_is_read(tmp_path: Path) -> None:
    files = {f"m{n}.py": f"def lease_{n}():\n" + "    renew('lease')\n" * 30 for n in range(9)}
    found = document(make(tmp_path, files), "how is a lease renewed")
    body = found["answer"].partition("\n\nSources:")[0].split("\n")
    assert 20 < len(body) <= MOST_LINES
    assert len(found["passages"]) > len(found["citations"]), "the rest is in the document"
    assert all(one["text"] for one in found["passages"])


def test_a_question_for_a_definition_begins_with_the_sentence_that_defines(tmp_path: Path) -> None:
    files = {
        "docs/lease.md": "# Lease\n\nSome words before.\n\nA lease is a claim that ends by itself.\n",
        "lease.py": "def lease(owner): return owner\n",
    }
    answer = document(make(tmp_path, files), "What is a lease?")["answer"]
    assert answer.count("\n- ") == 1, "code has no definition in words"
    assert answer.startswith("Definition:\n- A lease is a claim that ends by itself. [1]\n\n`docs/lease.md:")


@pytest.mark.parametrize("question", ["What does TakeLock do?", "What does openDoor do?"])
def test_a_declaration_or_another_platform_is_no_second_sense(engine: Path, question: str) -> None:
    assert document(engine, question)["retrieval_stop_reason"] != "dominance_split"


@pytest.mark.parametrize("question", ["What is this?", "tell me about it"])
def test_a_question_about_everything_is_answered_by_the_readme(tmp_path: Path, question: str) -> None:
    readme = "# Shelf\n\nShelf keeps books in order and lends them.\n"
    files = {"README.md": readme, "src/doing.py": "def project():\n    pass\n", "lib/README.md": "# Lib\n"}
    found = document(make(tmp_path, files), question)
    assert "Shelf keeps books in order and lends them." in found["answer"]
    assert {one["file"] for one in found["evidence"]} == {"README.md"}


@pytest.mark.parametrize("question", ["?!", "what is this"])
def test_a_question_without_a_word_and_a_repository_without_an_introduction(tmp_path: Path, question: str) -> None:
    found = document(make(tmp_path, {"new.py": "x = 1\n"}), question)
    assert (found["tier_selected"], found["retrieval_stop_reason"]) == ("Clarify", "empty")
    assert "Which file or name do you mean?" in found["answer"]


def test_what_nothing_mentions_is_not_answered_by_what_is_near(tmp_path: Path) -> None:
    files = {"ferry.py": "def sail(line):\n    connect(line)\n"}
    found = document(make(tmp_path, files), "How do I connect to a Postgres database?")
    assert found["tier"] == "nothing found"
    assert "Nearest:" in found["answer"]


def test_a_file_name_cannot_break_a_line_of_the_answer(tmp_path: Path) -> None:
    root = make(tmp_path, {"we\nird\x1b[31m.py": "def weird():\n    pass\n"})
    answer = document(root, "where is weird defined")["answer"]
    assert "\x1b" not in answer
    assert answer.startswith("`we ird.py:1-2` `weird` [1]")
