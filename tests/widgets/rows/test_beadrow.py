"""What stands below the selected row of a narrow list."""

from __future__ import annotations

import pytest

from helix_tui.widgets.rows.bead import RowContext, second_line
from tests.core.supervision.conftest import queue_of, row


@pytest.mark.parametrize(("status", "said"), [("open", "next"), ("closed", "closed"), ("cancelled", "cancelled")])
def test_the_second_line_says_how_the_bead_stands(status: str, said: str) -> None:
    queue = queue_of([row("demo-0000000a", status=status)])
    line = second_line(queue.beads["demo-0000000a"], RowContext(queue, {}, queue.as_of), 48)
    assert "".join(text for text, _ in line).split() == ["0000000a", said]
