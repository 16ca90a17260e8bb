"""An answer as paragraphs of the console."""

from __future__ import annotations

from typing import Any

from helix_tui.widgets.text.answer import answer_paras


def test_a_question_without_an_answer_says_what_was_searched_and_what_it_would_need() -> None:
    document: dict[str, Any] = {
        "question": "How high is the tide?",
        "tier": "not found",
        "answer": "Nothing that was searched mentions “tide”.",
        "clarify": {"would_satisfy": ["a span that speaks of “tide”"], "searched_queries": ["How high is the tide?"]},
    }
    lines = ["".join(text for text, _ in para.spans) for para in answer_paras(document)]
    assert lines[-2:] == ["• it would need a span that speaks of “tide”", "• searched: “How high is the tide?”"]
