"""NEXT_ACTION as HELIX writes it, and other trailers in every form in which agents write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.supervision.stages.table import NEXT_ACTIONS, STAGES
from helix_tui.core.supervision.stages.trailers import parse_next_action, parse_trailers

ALL = " | ".join(NEXT_ACTIONS)


@pytest.mark.parametrize(
    "answer",
    [
        "NEXT_ACTION: ALIGN",
        "**NEXT_ACTION:** ALIGN",
        "**NEXT_ACTION**: `ALIGN` — reconcile",
        "`NEXT_ACTION: ALIGN`",
        "```\nNEXT_ACTION: ALIGN\n```",
        "> NEXT_ACTION: ALIGN",
        "- NEXT_ACTION: ALIGN.",
        "1. NEXT_ACTION: ALIGN,",
        "### NEXT_ACTION: ALIGN",
        "NEXT_ACTION:ALIGN\r\nScope: docs\r\n",
        "Some talk first; NEXT_ACTION: ALIGN",
        "NEXT_ACTION: ALIGN\nNEXT_ACTION: STOP",
        "next_action: stop\nNEXT_ACTION: ALIGN",
        "NEXT_ACTION: MAYBE\nNEXT_ACTION: ALIGN",
        f"NEXT_ACTION: {ALL}\n\nNEXT_ACTION: ALIGN",
    ],
)
def test_a_code_is_found_in_bold_and_between_other_words(answer: str) -> None:
    assert parse_next_action(answer) == "ALIGN"


@pytest.mark.parametrize(
    "answer",
    [
        *("", "NEXT_ACTION: REBUILD", "NEXT_ACTION: BUILDING", "the next action is unclear", ALL),
        *(
            "next_action: stop",
            "NEXT_ACTION: stop",
            "Next action: STOP",
            '{"next_action": "STOP"}',
            "NEXT_ACTION\nSTOP",
        ),
    ],
)
def test_what_names_no_code_is_no_answer(answer: str) -> None:
    assert parse_next_action(answer) == ""


def test_the_instructions_repeated_are_no_answer() -> None:
    assert parse_next_action(f"NEXT_ACTION: {ALL}") == ""
    echoed = "BACKFILL_STATUS: COMPLETE | GUIDANCE_NEEDED | BLOCKED\nBACKFILL_REPORT: <text>\nRESEARCH_EPIC: <text>"
    assert len(parse_trailers(echoed, STAGES["backfill"]).problems) == 3


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("fine", "review output missing REVIEW_STATUS trailer"),
        ("REVIEW_STATUS: CLEAN | ISSUES_FOUND | BLOCKED", "review output missing REVIEW_STATUS trailer"),
        ("**REVIEW_STATUS:** DANCE", "review output says REVIEW_STATUS: DANCE, which is none of CLEAN, ISSUES_FOUND"),
    ],
)
def test_another_word_than_a_trailer_takes_is_told(answer: str, problem: str) -> None:
    (said, *_) = parse_trailers(answer, STAGES["review"]).problems
    assert said.startswith(problem)


def test_a_path_and_an_id_end_where_the_agent_goes_on_talking() -> None:
    answer = (
        "**BACKFILL_STATUS:** `guidance needed`\r\n- BACKFILL_REPORT: `docs/r.md`.\r\n"
        "RESEARCH_EPIC: hx-12 (created just now)\r\n"
    )
    assert parse_trailers(answer, STAGES["backfill"]).values == {
        "BACKFILL_STATUS": "GUIDANCE_NEEDED",
        "BACKFILL_REPORT": "docs/r.md",
        "RESEARCH_EPIC": "hx-12",
    }


def test_of_other_trailers_the_last_one_counts() -> None:
    answer = "REVIEW_STATUS: CLEAN\n\nreview_status: ISSUES_FOUND\nISSUES_COUNT: 4 issues\n"
    trailers = parse_trailers(answer, STAGES["review"])
    assert (trailers.get("REVIEW_STATUS"), trailers.get("ISSUES_COUNT")) == ("ISSUES_FOUND", "4")


@given(st.text(max_size=400), st.sampled_from(sorted(STAGES)))
def test_any_text_is_read(answer: str, stage: str) -> None:
    trailers = parse_trailers(answer, STAGES[stage])
    assert all(trailers.values.values())
