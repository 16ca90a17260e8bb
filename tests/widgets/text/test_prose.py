"""Markdown as lines: structure shows, width holds, nothing in it is followed."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helix_tui.widgets.base.line import width_of
from helix_tui.widgets.text.markdown import MAX_CHARS, prose, verbatim


def text_of(source: str, width: int = 60) -> list[str]:
    return ["".join(text for text, _ in line) for line in prose(source, width)]


def test_blocks_are_laid_out() -> None:
    source = (
        "# Title\n\n"
        "One paragraph that is long enough to be broken over two lines of sixty cells, surely.\n\n"
        "- first\n- second\n  - inner\n\n3. three\n4. four\n\n> quoted\n\n"
        "```go\nif x {\n\ty()\n}\n```\n\n---\n"
    )
    assert text_of(source) == [
        "Title",
        "One paragraph that is long enough to be broken over two",
        "lines of sixty cells, surely.",
        "",
        "• first",
        "• second",
        "  • inner",
        "",
        "3. three",
        "4. four",
        "",
        "│ quoted",
        "",
        "  if x {",
        "      y()",
        "  }",
        "",
        "─" * 60,
    ]


def test_a_line_broken_on_purpose_stays_broken() -> None:
    assert text_of("PROBLEM\nIt fails.") == ["PROBLEM", "It fails."]
    long = "word " * 14 + "end\nand on it goes"
    assert "end and on it goes" in " ".join(text_of(long))


def test_emphasis_and_code_have_inks() -> None:
    inks = dict(prose("**bold** and `code` and *slanted*", 60)[0])
    assert inks["bold"] == "text bold"
    assert inks["code"] == "running"
    assert inks["slanted"] == "text italic"


def test_links_images_and_html_are_text() -> None:
    assert text_of("[click](https://example.com) ![pic](x.png) <b onclick=x>y</b>") == [
        "click [image: pic] <b onclick=x>y</b>"
    ]


def test_a_table_keeps_its_cells() -> None:
    assert "one  two" in text_of("| a | b |\n|---|---|\n| one | two |\n")


def test_a_huge_text_is_cut_and_says_so() -> None:
    lines = text_of("word " * MAX_CHARS)
    assert len(lines) < MAX_CHARS // 8
    assert "more characters" in lines[-1]


MARKERS = re.compile(r"(?:│ |• |\d+[.)] | )*")
"""What stands before the text of a quotation or an item, inside which there are eight cells at least."""


@example("- 111111漢", 8)
@given(st.text(alphabet="ab *_`#>-+1.[]()|\n\t!<&漢", max_size=300), st.integers(8, 60))
def test_any_text_fits_the_width_or_the_least_there_can_be(source: str, width: int) -> None:
    deep = max((len(line) - len(MARKERS.sub("", line, count=1)) for line in text_of(source, width)), default=0)
    for line in prose(source, width):
        assert width_of(line) <= max(width, 8 + deep)


COMMANDS = (
    'rg -n "stderr|provider.*==|harness.*==" internal/',
    "pytest tests/**/*.py src/**/*.py passes",
    r"grep -E '\.md$' docs && test \* = x",
    "set AT&amp;T and &lt;b&gt; as they are, __init__ and a_b_c too",
    "1. `make test` passes; snake_case_name and *glob* stay",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_acceptance_keeps_every_character(command: str) -> None:
    lines = ["".join(text for text, _ in line) for line in verbatim(command, 200)]
    assert lines == [command]


@pytest.mark.parametrize("command", COMMANDS[:4])
def test_a_command_in_a_description_keeps_every_character(command: str) -> None:
    assert text_of(command, 200) == [command.replace("__init__", "init")]


def test_emphasis_around_words_still_shows_as_such() -> None:
    assert text_of("This is **very** important, *really*.") == ["This is very important, really."]


def test_broken_lines_of_acceptance_stay_broken() -> None:
    lines = ["".join(text for text, _ in line) for line in verbatim("1. first\n2. second\n\nthird", 40)]
    assert lines == ["1. first", "2. second", "", "third"]
