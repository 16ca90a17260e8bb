"""A run as people read it: words for its result, code apart from prose, sources with their lines."""

from __future__ import annotations

from typing import Any

import pytest

from helix_tui.core.ask.sessions.envelope import (
    answer_blocks,
    not_found_of,
    reservations_of,
    result_of,
    sources_of,
    what_would_decide,
)

ANSWER = """\
`src/a.py:3-6` `parse` [1]
    def parse(line):

        return line

- told in bead:fy-1a2b:11-23 too [2]

Sources:
[1] src/a.py:3-6  parse"""

READER = "import os\n\nclass Reader:\n    def read(self):\n" + "  x\n" * 15

DOCUMENT: dict[str, Any] = {
    "answer": ANSWER,
    "tier_selected": "Grounded",
    "citations": [
        {"id": 1, "file": "src/a.py", "start": 3, "end": 6, "header": "parse", "hash": "x"},
        {"id": 2, "file": "bead:fy-1a2b", "start": 1, "end": 2, "header": "Quoted commas > Acceptance", "hash": "y"},
        {"id": 3, "file": "src/b.py", "start": 1, "end": 20, "header": "Reader.read", "hash": "z"},
    ],
    "evidence": [
        {"file": "src/a.py", "start": 1, "end": 6, "text": "\n\ndef parse(line):\n\n    return line\n"},
        {
            "file": "src/b.py",
            "start": 1,
            "end": 20,
            "text": READER,
        },
    ],
    "slots": [
        {"label": "tide", "required": True, "covered_by": []},
        {"label": "line", "required": True, "covered_by": ["src/a.py:3"]},
    ],
}


def test_code_stands_apart_with_its_place_and_records_have_their_names() -> None:
    blocks = list(answer_blocks(DOCUMENT))
    code = next(block for block in blocks if block.kind == "code")
    assert (code.file, code.start, code.text) == ("src/a.py", 3, "def parse(line):\n\n    return line")
    assert [block.text for block in blocks if block.kind == "item"] == ["told in bead fy-1a2b too [2]"]
    assert not any("Sources" in block.text for block in blocks)


def test_sources_show_lines_that_the_answer_does_not_quote_under_their_place() -> None:
    second, third = sources_of(DOCUMENT)
    assert (second.words, second.kind, second.id) == ("bead fy-1a2b, Acceptance", "bead", "fy-1a2b")
    assert third.start == 4
    assert third.lines[0] == "    def read(self):"
    assert len(third.lines) == 8
    assert third.more == 8


def test_what_nothing_mentions_is_named() -> None:
    assert not_found_of(DOCUMENT) == ["tide"]
    assert not_found_of({**DOCUMENT, "not_found": []}) == []
    assert reservations_of(DOCUMENT) == ["not found: “tide”"]
    assert reservations_of({**DOCUMENT, "answer": f"{ANSWER}\n\nNot found: “tide”."}) == []


@pytest.mark.parametrize(
    ("document", "word"),
    [
        ({"tier_selected": "Grounded", "tier": "sources"}, "sources"),
        ({"tier_selected": "Grounded", "tier": "answer"}, "answer"),
        ({"tier_selected": "Clarify", "tier": "nothing found"}, "nothing found"),
        ({"tier_selected": "Clarify", "clarify": {"options": [{}, {}]}}, "which one?"),
        # runs of earlier versions
        ({"tier_selected": "Grounded"}, "sources"),
        ({"tier_selected": "Grounded", "tier": "evidence found"}, "sources"),
        ({"tier_selected": "Grounded", "tier": "answered", "model": {"taken": True}}, "answer"),
        ({"tier_selected": "Clarify", "tier": "not found"}, "nothing found"),
        ({"tier_selected": "Clarify"}, "nothing found"),
    ],
)
def test_the_result_in_words(document: dict[str, Any], word: str) -> None:
    assert result_of(document) == word


def test_what_was_not_found_tells_what_was_searched_and_what_it_would_need() -> None:
    clarify = {"would_satisfy": ["a span that speaks of “tide”"], "searched_queries": ["How high is the tide?", "tide"]}
    document = {"tier": "nothing found", "clarify": clarify}
    assert what_would_decide(document) == [
        "it would need a span that speaks of “tide”",
        "searched: “How high is the tide?”; “tide”",
    ]
    assert not what_would_decide({"tier": "sources", "clarify": {}})
    split = {"tier": "nothing found", "clarify": {**clarify, "options": [{"label": "tide"}]}}
    assert not what_would_decide(split)  # its answer says it
