"""Text panes: wrapping loses nothing, and a new width or state keeps the place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from helix_tui.widgets.base.line import width_of, wrap_spans
from helix_tui.widgets.text.pane import Para, Paragraphs, block, section

SPANS = st.lists(
    st.tuples(st.text(alphabet="ab cdé漢👩 -_", max_size=60), st.sampled_from(["text", "muted"])), max_size=5
)


@given(SPANS, st.integers(-2, 60), st.integers(0, 12), st.booleans())
def test_wrapping_keeps_every_visible_character_in_order_and_fits(
    spans: list[tuple[str, str]], width: int, hang: int, words: bool
) -> None:
    lines = wrap_spans(spans, width, hang, words=words)
    assert all(width_of(line) <= max(2, width) for line in lines)
    shown = "".join(text for line in lines for text, _ in line)
    given_text = "".join(text for text, _ in spans)
    assert shown.replace(" ", "") == given_text.replace(" ", "")


def test_words_stay_whole_and_lines_after_the_first_hang() -> None:
    lines = wrap_spans([("alpha beta gamma", "text")], 10, 2)
    assert ["".join(text for text, _ in line) for line in lines] == ["alpha beta", "  gamma"]


def test_a_line_of_half_a_megabyte_wraps_at_once() -> None:
    lines = wrap_spans([("x" * 500_000, "text")], 50, words=False)
    assert len(lines) == 10_000


def test_keys_and_places_agree_at_every_width() -> None:
    paras = [
        section("one"),
        *block("a", "alpha beta gamma delta\nepsilon"),
        section("two"),
        *block("b", "z" * 90),
    ]
    for width in (8, 20, 80):
        source = Paragraphs(paras, width)
        assert [source.index(source.key(row)) for row in range(len(source))] == list(range(len(source)))
        assert len({source.key(row) for row in range(len(source))}) == len(source)
        assert all(cell_len(source.text(row)) <= source.width for row in range(len(source)))


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_right_side_wider_than_the_pane_leaves_the_text_its_room(right: int, width: int) -> None:
    para = Para("a", (("alpha beta gamma", "text"),), right=(("r" * right, "muted"),))
    source = Paragraphs([para], width)
    shown = "".join(source.text(row) for row in range(len(source)))
    assert "alphabetagamma" in shown.replace("r", "").replace(" ", "")
    assert all(cell_len(source.text(row)) <= source.width for row in range(len(source)))


def test_a_place_that_the_new_width_does_not_have_is_the_end_of_its_paragraph() -> None:
    narrow, wide = (Paragraphs(block("a", "alpha beta gamma"), width) for width in (8, 40))
    assert wide.index(narrow.key(2)) == 0


def test_landmarks_are_stepped_through_and_end() -> None:
    source = Paragraphs([section("one"), Para("x", (("t", "text"),)), section("two")], 20)
    assert source.landmark(0, 1) == 3, "below a blank line"
    assert source.landmark(3, 1) is None
    assert source.landmark(1, -1) == 0
