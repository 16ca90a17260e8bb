"""Lines of spans: cut, spread, wrapped and drawn at exactly the width that is asked for."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from helix_tui.core.ground.text import clean_line
from helix_tui.themes import THEMES, Palette
from helix_tui.widgets.base.line import (
    Span,
    cells_of,
    column,
    cut,
    fit,
    heading,
    spread,
    to_strip,
    width_of,
    wrap_spans,
)

PALETTE = Palette(THEMES[0].variables)

texts = st.text(max_size=60).map(clean_line)
spans = st.lists(st.tuples(texts, st.sampled_from(["text", "muted bold", "success"])), max_size=6)
widths = st.integers(1, 120)


@given(st.text() | st.text(st.characters(max_codepoint=127)))
def test_cells_are_those_that_rich_counts(text: str) -> None:
    assert cells_of(text) == cell_len(text)


@given(texts, widths)
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, width: int) -> None:
    kept = cut(text, width)
    assert cell_len(kept) <= width
    assert kept == text or kept.endswith("…")


@given(spans, widths)
def test_fitted_spans_fit(line: list[Span], width: int) -> None:
    assert width_of(fit(line, width)) <= width


@given(spans, widths)
def test_fitted_spans_say_that_something_is_missing(line: list[Span], width: int) -> None:
    whole = "".join(text for text, _ in line).rstrip()
    shown = "".join(text for text, _ in fit(line, width)).rstrip()
    assert shown == whole or shown.endswith("…")


def test_a_text_that_just_fits_is_cut_where_more_follows_it() -> None:
    assert [text for text, _ in fit([("landed", "success"), (" · large", "muted")], 6)] == ["lande…"]
    assert [text for text, _ in fit([("landed", "success"), ("    ", "muted")], 6)] == ["landed"]


def test_a_wide_character_at_the_cut_leaves_no_gap_before_its_sign() -> None:
    assert cut("다시 시작하는", 6) == "다시 …"
    assert cut("다시시작하는", 6) == "다시…"


@given(texts, st.integers(3, 60))
def test_a_column_has_its_width_and_parts_from_the_next(text: str, width: int) -> None:
    written = column(text, width)
    assert cell_len(written) == width
    assert written.endswith("  ")


@given(spans, spans, widths)
def test_a_spread_line_fits_and_keeps_its_right_side_whole(left: list[Span], right: list[Span], width: int) -> None:
    line = spread(left, right, width)
    assert width_of(line) <= width
    if 0 < width_of(right) < width - 1:
        assert "".join(text for text, _ in line).endswith("".join(text for text, _ in right))
        assert width_of(line) == width


@given(texts, widths, texts)
def test_a_rule_never_overflows(caption: str, width: int, right: str) -> None:
    assert width_of(heading(caption, width, right)) <= max(width, 1)


@given(spans, st.integers(4, 80))
def test_wrapped_spans_fit_and_lose_no_letter(line: list[Span], width: int) -> None:
    lines = wrap_spans(line, width)
    assert all(width_of(one) <= width for one in lines)
    shown = "".join(text for one in lines for text, _ in one)
    assert "".join(shown.split()) == "".join("".join(text for text, _ in line).split())


@given(spans, widths, st.sampled_from(["", "selection", "tint"]), st.booleans())
def test_a_strip_is_exactly_as_wide_as_asked(line: list[Span], width: int, ground: str, plain: bool) -> None:
    strip = to_strip(line, width, PALETTE, ground=ground, plain=plain)
    assert sum(cell_len(segment.text) for segment in strip) == width == strip.cell_length
    assert not any(segment.control for segment in strip)


def test_what_matches_is_drawn_apart_and_nothing_is_lost() -> None:
    strip = to_strip([("Route the route", "text")], 20, PALETTE, pattern=re.compile("route", re.IGNORECASE))
    marked = [segment.text for segment in strip if segment.style and segment.style.underline]
    assert marked == ["Route", "route"]
    assert strip.text.rstrip() == "Route the route"


@given(st.text(max_size=200))
def test_markup_and_control_characters_never_reach_a_segment(text: str) -> None:
    hostile = f"[@click=app.quit()]x[/]\x1b]0;owned\x07\x1b[31m{text}[/nope]"
    strip = to_strip([(clean_line(hostile), "text")], 80, PALETTE)
    assert "\x1b" not in strip.text
    assert strip.text.startswith("[@click=app.quit()]x[/]")
    assert all(segment.style is None or not segment.style.meta for segment in strip)


def test_a_line_breaks_only_at_blanks_also_where_the_ink_changes() -> None:
    spans = [("path ", "muted"), ("2 of 3 in its chain", "text"), (", on the critical path", "waiting")]
    lines = ["".join(text for text, _ in line) for line in wrap_spans(spans, 24)]
    assert lines == ["path 2 of 3 in its", "chain, on the critical", "path"]
