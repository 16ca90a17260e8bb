"""Rows of figures: which columns stay where there is little room."""

from __future__ import annotations

from helix_tui.widgets.base.row_source import Column
from helix_tui.widgets.rows.cost_tables import Figured, FiguredRows

COLUMNS = (Column("one", 4), Column("two", 10, rank=1), Column("three", 5))
FIGURES = tuple(((text, "text"),) for text in ("1", "2", "3"))


def test_columns_of_a_high_rank_go_first_and_figures_stay_under_their_titles() -> None:
    rows = FiguredRows("name", COLUMNS, [Figured("a", (("alpha", "text"),), FIGURES)])

    def line(index: int, width: int) -> str:
        return "".join(text for text, _ in rows.paint(index, width))

    assert line(0, 80).split() == ["name", "one", "two", "three"]
    assert line(1, 80).split() == ["alpha", "1", "2", "3"]
    assert line(0, 30).split() == ["name", "one", "three"]
    assert line(1, 30).split() == ["alpha", "1", "3"]
    assert line(0, 30).index("three") + 4 == line(1, 30).index("3")
