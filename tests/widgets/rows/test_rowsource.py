"""Ready-made rows: one that is cut says the rest on a second line while it is selected."""

from __future__ import annotations

from helix_tui.widgets.base.row_source import Row, Rows


def test_a_row_that_is_cut_unfolds_and_no_other_does() -> None:
    long = (("p  ", "running"), ("parent  ", "text"), ("Put it under another bead, or under none.", "muted"))
    short = (("short", "text"),)
    rows = Rows([Row("a", long), Row("b", short), Row("c", long, selectable=False)], unfold=True)
    said = "".join(text for text, _ in rows.paint_more(0, 34) or ())
    assert said.split() == ["bead,", "or", "under", "none."]
    assert [rows.paint_more(index, 34) is None for index in (1, 2)] == [True, True]
    assert rows.paint_more(0, 80) is None
    assert Rows([Row("a", long)]).paint_more(0, 30) is None
