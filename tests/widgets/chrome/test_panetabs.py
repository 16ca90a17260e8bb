"""Tabs of a pane: the open one and its neighbours always show, whatever the width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from helix_tui.widgets.base.line import width_of
from helix_tui.widgets.chrome.header import MORE, PaneTabs

NAMES = ("all", "failure", "pattern", "systemic", "dormant", "harmful", "proposed", "plans")


@given(st.sampled_from(NAMES), st.integers(24, 120), st.text(alphabet="ab ·", max_size=40))
def test_whole_words_around_the_open_one_and_a_way_to_the_rest(current: str, width: int, note: str) -> None:
    tabs = PaneTabs(NAMES)
    tabs.show(current, note)
    line = tabs.spans(width)
    assert width_of(line) <= width
    assert (current, "text bold underline") in line
    labels = tabs._labels(width)
    shown = [name for name, label in labels if label != MORE]
    assert "".join(shown) in "".join(NAMES)
    beyond = [name for name, label in labels if label == MORE]
    assert bool(beyond) == (len(shown) < len(NAMES))
    assert not set(beyond) & set(shown)


def test_a_note_loses_its_first_parts_first() -> None:
    tabs = PaneTabs(("one",))
    tabs.show("one", "semantic · 4 proven · 9 memories")
    assert "".join(text for text, _ in tabs.spans(30)).endswith("  4 proven · 9 memories ")
    assert "".join(text for text, _ in tabs.spans(22)).endswith("  9 memories ")
