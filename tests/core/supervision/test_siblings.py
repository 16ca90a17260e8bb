"""Work that belongs together."""

from __future__ import annotations

from helix_tui.core.supervision.signals.scope import siblings
from tests.core.supervision.conftest import queue_of, row


def test_area_labels_count_only_where_parent_and_specification_find_nothing() -> None:
    queue = queue_of(
        [
            row("a-1", labels=["area:ui", "helix"]),
            row("a-2", labels=["area:ui"]),
            row("a-3", labels=["area:ui"]),
            row("a-4", labels=["area:ui"]),
            row("b-1", spec__id="SD-1", labels=["area:ui"]),
            row("b-2", spec__id="SD-1"),
            row("e-1", issue_type="epic"),
            row("c-1", parent="e-1"),
            row("c-2", parent="e-1"),
            row("d-1", labels=["helix"]),
        ]
    )
    assert siblings(queue, "a-1") == ("a-1", "a-2", "a-3")
    assert siblings(queue, "b-1") == ("b-1", "b-2")
    assert siblings(queue, "c-2") == ("c-2", "c-1")
    assert siblings(queue, "d-1") == ("d-1",)
