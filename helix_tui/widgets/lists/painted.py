"""A row as painted: its spans, and its strips by look."""

from __future__ import annotations

from textual.strip import Strip

from helix_tui.widgets.lists.line import Line


class Painted:
    """What a row looked like when it was last painted, for one width."""

    __slots__ = ("more", "spans", "strips", "width")

    def __init__(self, spans: Line, more: Line | None, width: int) -> None:
        self.spans = tuple(spans)
        self.more = None if more is None else tuple(more)
        self.width = width
        self.strips: dict[tuple[object, ...], Strip] = {}

    def looks_like(self, other: Painted) -> bool:
        """Whether nothing of it needs painting again."""
        return (self.spans, self.more, self.width) == (other.spans, other.more, other.width)
