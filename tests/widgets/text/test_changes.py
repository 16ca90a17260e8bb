"""The rows of the journal: days above them, and what the loop did by itself only where it is asked for."""

from __future__ import annotations

from helix_tui.core.ground.time import NS, parse_now
from helix_tui.widgets.text.journal import LOOP, ChangeFilter, ChangeRow, ChangeRows

NOW = parse_now("2026-08-21T12:00:00Z")
DAY = 86_400 * NS
ROWS = [
    ChangeRow("op-3", NOW, "close a", "done", "me"),
    ChangeRow("op-2", NOW - DAY, "tell the agent", "done", LOOP),
    ChangeRow("op-1", NOW - DAY, "label b", "done", "me"),
]


def test_the_loops_own_changes_show_where_they_are_asked_for() -> None:
    assert [row.key for row in ChangeFilter("").passing(ROWS)] == ["op-3", "op-1"]
    assert [row.key for row in ChangeFilter("who:loop").passing(ROWS)] == ["op-2"]
    assert [way for way, _ in ChangeFilter("").ways("")] == ["state:", "who:", "bead:", "op:"]


def test_each_day_has_its_heading() -> None:
    rows = ChangeRows(ROWS, NOW, notices=["one line was left out"])
    lines = ["".join(text for text, _ in rows.paint(place, 60)) for place in range(len(rows))]
    assert [place for place in range(len(rows)) if not rows.selectable(place)] == [0, 1, 3]
    assert "one line was left out" in lines[0]
    assert "Today" in lines[1]
    assert "Yesterday" in lines[3]
    assert rows.index("op-1") == 5
    row = rows.row("op-1")
    assert row is not None
    assert row.title == "label b"
