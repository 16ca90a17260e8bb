"""A share as a bar with its interval: full up to the share, shaded up to what it may be."""

from __future__ import annotations

from helix_tui.widgets.base.line import Span

CELLS = 10


def share_bar(rate: float | None, low: float, high: float, *, cells: int = CELLS, ink: str = "text") -> list[Span]:
    """A bar of ``cells`` cells for a share with its interval, all of them between 0 and 1.

    Solid up to ``low`` (so much is sure), dark shade up to the share, light shade up to ``high``; where
    nothing is known, a dotted line.
    """
    if rate is None:
        return [("·" * cells, "muted")]
    sure, likely, most = (round(min(max(part, 0.0), 1.0) * cells) for part in (low, rate, high))
    spans: list[Span] = [
        ("█" * sure, ink),
        ("▓" * (likely - sure), ink),
        ("░" * (most - max(likely, sure)), "muted"),
        ("·" * (cells - max(most, likely, sure)), "rule"),
    ]
    return [span for span in spans if span[0]]
