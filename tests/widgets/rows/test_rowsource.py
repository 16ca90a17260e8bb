"""Ready-made rows: one that is cut shows the rest below while it is selected."""

from __future__ import annotations

from helix_tui.widgets.base.line import heading
from helix_tui.widgets.base.row_source import Row, Rows
from helix_tui.widgets.text.page import Page


def test_a_row_that_is_cut_unfolds_and_no_other_does() -> None:
    long = (("p  ", "running"), ("parent  ", "text"), ("Put it under another bead, or under none.", "muted"))
    short = (("short", "text"),)
    rows = Rows([Row("a", long), Row("b", short), Row("c", long, selectable=False)], unfold=True)
    (line,) = rows.paint_more(0, 34)
    assert "".join(text for text, _ in line).split() == ["bead,", "or", "under", "none."]
    assert not any([*rows.paint_more(1, 34), *rows.paint_more(2, 34), *rows.paint_more(0, 80)])
    assert not Rows([Row("a", long)]).paint_more(0, 30)


def test_a_row_unfolds_to_as_many_lines_as_its_words_take() -> None:
    words = "Undo your last change, in the journal the selected one, and say what it was"
    rows = Rows([Row("u", (("u  ", "running"), (words, "muted")))], unfold=True)
    more = ["".join(text for text, _ in line) for line in rows.paint_more(0, 24)]
    assert len(more) > 1
    assert max(map(len, more)) <= 24
    assert " ".join(f"{''.join(more)}".split()).endswith("the selected one, and say what it was")


def test_the_words_of_choices_are_whole_beside_the_label_or_below_it() -> None:
    page = Page(40)
    page.choice([("r  retry  ", "text")], ("recorded in the bead; workers may attempt it again", "muted"), key="r")
    page.choice([("c  what is held up longest ", "text")], ("order:-age", "muted"), key="c")
    page.choice([("v  what unblocks most beads ", "text")], ("ready:yes order:unblocks,-age", "muted"), key="v")
    rows = page.rows
    assert ["".join(text for text, _ in rows.paint(index, 40)).rstrip() for index in range(len(rows))] == [
        "r  retry  recorded in the bead; workers",
        "          may attempt it again",
        "c  what is held up longest order:-age",
        "v  what unblocks most beads",
        "    ready:yes order:unblocks,-age",
    ]
    # the cursor steps from choice to choice, and nothing is left to unfold
    assert [index for index in range(len(rows)) if rows.selectable(index)] == [0, 2, 3]
    assert not any(rows.paint_more(index, 40) for index in range(len(rows)))


def test_sections_are_found_by_their_mark_and_not_by_their_looks() -> None:
    ruled = tuple(heading("part", 20))
    rows = Rows([Row("a", ruled), Row("b", (("text", "text"),)), Row("c", ruled, landmark=True), Row("d", ruled)])
    assert (rows.landmark(0, 1), rows.landmark(2, 1)) == (2, None)
    assert (rows.landmark(3, -1), rows.landmark(2, -1)) == (2, None)
