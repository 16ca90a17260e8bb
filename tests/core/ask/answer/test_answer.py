"""The answer without a model: what is told of code and documents, and of whom it is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ask.answer.sentences import sentences_of
from helix_tui.core.ask.records import Kind, Role, Span, text_hash
from helix_tui.core.ask.retrieval.question import understand
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


def span(text: str, file: str, role: Role = "source", kind: Kind = "function", header: str = "") -> Span:
    return Span(file, 1, 1 + text.count("\n"), kind, header, text, text_hash(text), role=role)


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (
            "a.go",
            ENGINE,
            [
                ("Serve answers requests until it is stopped.", "Serve"),
                ("pick the oldest request of the backlog", ""),
                ("Close stops the engine.", "Close"),
                ("the backlog is empty here", ""),
            ],
        ),
        (
            "a.py",
            'def load(path):\n    """Read a table.\n\n    :param path: where it lies\n    """\n    pass\n',
            [("Read a table.", "load")],
        ),
        (
            "a.js",
            "/**\n * Opens a door.\n * @param {string} key the key of the door\n */\nasync open (key) {\n}\n",
            [("Opens a door.", "open")],
        ),
    ],
)
def test_a_comment_is_told_of_the_definition_it_stands_at(file: str, text: str, told: list[tuple[str, str]]) -> None:
    assert [(one.text, one.about) for one in sentences_of(span(text, file))] == told


@pytest.mark.parametrize(
    "text",
    [
        "Guide\n-----\n\nRun it so::\n\n   door.open(1)\n\nIt opens.",
        ".. code-block:: python\n   :caption: x\n\n   door.open(1)\n\n.. note::\n   It opens.",
        "   door.open(1)\n\nIt opens.",
    ],
)
def test_code_in_restructured_text_is_no_sentence(text: str) -> None:
    told = [one.text for one in sentences_of(span(text, "a.rst", "doc", "section"))]
    assert "It opens." in told
    assert not any("door" in one for one in told)


def test_how_and_why_ask_for_a_mechanism_whatever_follows() -> None:
    assert understand("How does the engine decide which modules are loaded?").kind == "mechanism"
    assert understand("Which modules are loaded?").kind == "location"


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


def test_who_calls_a_name_is_told_by_the_line_that_calls_it(engine: Path) -> None:
    found: dict[str, Any] = document(engine, "Who calls dispatch()?")
    assert found["answer"].startswith("used at engine/engine.go:8 in `Engine.Serve`: `e.dispatch(c)`")


def test_what_stands_above_a_definition_is_not_told_of_it(tmp_path: Path) -> None:
    text = '"""Stop names as people type them."""\n\n\ndef same_stop(one, other):\n    return one == other\n'
    answer = document(make(tmp_path, {"names.py": text}), "How are stop names typed?")["answer"]
    assert '    """Stop names as people type them.' in answer
    assert "`same_stop`: Stop names" not in answer


@pytest.mark.parametrize("question", ["What does TakeLock do?", "What does openDoor do?"])
def test_a_declaration_or_another_platform_is_no_second_sense(engine: Path, question: str) -> None:
    assert document(engine, question)["retrieval_stop_reason"] == "coverage_ok"


@pytest.mark.parametrize("question", ["What does this project do?", "give me an overview of this code"])
def test_a_question_about_everything_is_answered_by_the_readme(tmp_path: Path, question: str) -> None:
    readme = "[![ok](https://x/y.svg)](https://x)\n\n# Shelf\n\nShelf keeps books in order and lends them.\n"
    files = {"README.md": readme, "src/doing.py": "def project():\n    pass\n", "lib/README.md": "# Lib\n"}
    found = document(make(tmp_path, files), question)
    assert found["answer"].startswith("Shelf keeps books in order and lends them. [1]")
    assert {one["file"] for one in found["evidence"]} == {"README.md"}


@pytest.mark.parametrize("question", ["?!", "what is this"])
def test_a_question_without_a_word_and_a_repository_without_an_introduction(tmp_path: Path, question: str) -> None:
    found = document(make(tmp_path, {"new.py": "x = 1\n"}), question)
    assert (found["tier_selected"], found["retrieval_stop_reason"]) == ("Clarify", "empty")
    assert "Which file or name do you mean?" in found["answer"]


def test_a_file_name_cannot_break_a_line_of_the_answer(tmp_path: Path) -> None:
    root = make(tmp_path, {"we\nird\x1b[31m.py": "def weird():\n    pass\n"})
    answer = document(root, "where is weird defined")["answer"]
    assert "\x1b" not in answer
    assert answer.startswith("`we ird.py:1-2` `weird` [1]")
