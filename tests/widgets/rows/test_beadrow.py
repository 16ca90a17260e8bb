"""A bead's row where room is short, and the second line of the selected one."""

from __future__ import annotations

import pytest

from helix_tui.widgets.rows.bead import RowContext, bead_line, second_line
from tests.core.supervision.conftest import queue_of, row


@pytest.mark.parametrize(
    ("status", "said"), [("open", "ready, picked next"), ("closed", "closed"), ("cancelled", "cancelled")]
)
def test_the_second_line_says_how_the_bead_stands(status: str, said: str) -> None:
    queue = queue_of([row("demo-0000000a", status=status)])
    line = second_line(queue.beads["demo-0000000a"], RowContext(queue, {}, queue.as_of), 48)
    assert "".join(text for text, _ in line).split(maxsplit=1) == ["0000000a", said]


def test_a_state_that_has_no_room_is_left_out_and_not_cut_to_its_first_letters() -> None:
    queue = queue_of([row("demo-0000000a", status="proposed", title="Split the importer by harbour office")])
    world, bead = RowContext(queue, {}, queue.as_of), queue.beads["demo-0000000a"]
    for width in range(20, 58):
        line = "".join(text for text, _ in bead_line(bead, world, width, lead=[("  ", "text")]))
        assert "proposed" in line or "prop" not in line, line
    assert "proposed" in line
