"""A diff in two columns: what replaces what stands beside it, and the cursor knows its line."""

from __future__ import annotations

import pytest

from helix_tui.widgets.base.line import width_of
from helix_tui.widgets.text.diff import SPLIT_CELLS, DiffPane, beside_each_other, painted
from helix_tui.widgets.text.diff_lines import DiffFacts, parse_diff
from tests.widgets.host import Host

DIFF = """\
diff --git a/ferry.py b/ferry.py
--- a/ferry.py
+++ b/ferry.py
@@ -10,5 +10,6 @@ def sail():
 first
-old one
-old two
+new one
+new two
+new three
 last 渡し船
\\ No newline at end of file
"""


def shown(width: int) -> list[tuple[str, str]]:
    (file,) = painted(parse_diff(DIFF))
    paras = beside_each_other(0, file.lines, width)
    return [(para.key, "".join(text for text, _ in para.spans)) for para in paras]


def test_lines_that_replace_each_other_stand_in_one_row() -> None:
    rows = [(key, *(side.split() for side in text.split(" │ "))) for key, text in shown(130) if " │ " in text]
    assert rows == [
        ("0:1", ["10", "first"], ["10", "first"]),
        ("0:2", ["11", "−", "old", "one"], ["11", "+", "new", "one"]),
        ("0:3", ["12", "−", "old", "two"], ["12", "+", "new", "two"]),
        ("0:6", [], ["13", "+", "new", "three"]),
        ("0:7", ["13", "last", "渡し船"], ["14", "last", "渡し船"]),
    ]


@pytest.mark.parametrize("width", [60, 131, 130])
def test_no_row_is_wider_than_the_pane_and_no_letter_is_lost(width: int) -> None:
    (file,) = painted(parse_diff(DIFF.replace("new two", "new " + "渡x" * 60)))
    paras = list(beside_each_other(0, file.lines, width))
    sides = [para for para in paras if len(para.spans) > 1]
    assert {width_of(para.spans) for para in sides} <= {width, width - 1}
    right = "".join("".join(text for text, _ in para.spans).split(" │ ")[1][8:].strip() for para in sides)
    assert "渡x" * 60 in right
    assert len({para.key for para in paras}) == len(paras)


async def test_the_cursor_in_two_columns_names_its_line_and_keeps_it_in_one() -> None:
    pane = DiffPane()
    async with Host(pane).run_test(size=(SPLIT_CELLS + 8, 20)) as pilot:
        pane.show_diff(DiffFacts(painted(parse_diff(DIFF))))
        await pilot.pause()
        assert pane.select("0:6\n0")
        assert pane.here == (0, 13)
        await pilot.resize_terminal(80, 20)
        await pilot.pause()
        assert pane.here == (0, 13)
        assert pane.para is not None
        assert "new three" in "".join(text for text, _ in pane.para.spans)
