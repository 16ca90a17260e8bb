"""Text from outside: nothing that a terminal would act on comes through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from helix_tui.core.ground.text import cell_width, clean_block, clean_line, clean_words, fit, short_id


@pytest.mark.parametrize(
    ("hostile", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("a\x1b]0;new title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x9b31mred\x9c", "red"),
        ("x\u202egnp.exe", "xgnp.exe"),
        ("\u2066iso\u2069late", "isolate"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("two\nlines\tand\r\ntabs", "two lines and tabs"),
        ("  edges  ", "edges"),
        ("[bold]kept[/bold] [@click=app.quit()]x[/]", "[bold]kept[/bold] [@click=app.quit()]x[/]"),
        ("\U0001f44d\U0001f3fd", "\U0001f44d"),
        ("\x1b", ""),
        ("a\x1b[", "a"),
        ("\ud800lone", "lone"),
        (None, ""),
        (17, "17"),
    ],
)
def test_clean_line(hostile: object, clean: str) -> None:
    assert clean_line(hostile) == clean


def test_long_text_is_cut_and_says_so() -> None:
    assert clean_line("x" * 10_000, 50) == "x" * 49 + "…"
    assert clean_block("x" * 10, limit=4) == "xxxx\n… 6 more characters"


def test_blocks_keep_their_lines() -> None:
    assert clean_block("a\r\nb\rc\n\td\x1b[2J\x07") == "a\nb\nc\n    d"


def test_a_text_is_cut_between_words_so_that_no_id_or_number_is_halved() -> None:
    text = "waits for ddx-0746ddd3, then 1,325 lines"
    assert clean_words(text, 100) == text
    assert clean_words(text, 20) == "waits for …"
    assert clean_words(text, 28) == "waits for ddx-0746ddd3 …"
    assert clean_words(text, 34) == "waits for ddx-0746ddd3, then …"
    assert clean_words("x" * 30, 10) == "x" * 9 + "…"
    assert clean_words("ends with …", 40) == "ends with …"


@given(st.text())
def test_nothing_that_moves_a_cursor_comes_through(text: str) -> None:
    for cleaned in (clean_line(text), clean_block(text).replace("\n", "")):
        categories = {unicodedata.category(char) for char in cleaned}
        assert not categories & {"Cc", "Cs"}
        assert not set(cleaned) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


@given(st.text(max_size=40), st.integers(0, 30))
def test_fit_takes_exactly_its_cells(text: str, width: int) -> None:
    assert cell_width(fit(clean_line(text), width)) == width


@pytest.mark.parametrize(
    "text", ["naïve", "東京の天気", "क्षि", "🇩🇪", "각", "\u0612\u0788\u07a6", "e\u0301 \u20dd", "👩👧 🚀"]
)
def test_a_list_takes_the_cells_that_a_screen_gives_it(text: str) -> None:
    assert cell_width(text) == cell_len(text) == cell_width(fit(text, cell_width(text)))


def test_ids_are_shortened_where_they_tell_least() -> None:
    assert short_id("ddx-0e268fe3") == "ddx-0e268fe3"
    assert short_id(".execute-bead-wt-ddx-0e5c3005-20260505T113434-3317d134-7fb75345") == "7fb75345"
    assert short_id("a-very-long-identifier-x") == "a-very…ier-x"
