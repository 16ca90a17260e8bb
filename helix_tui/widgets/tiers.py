"""How the tier of an answer looks, in the list of questions and above the answer."""

from __future__ import annotations

TIERS = {
    "Grounded": ("●", "success"),
    "Bounded inference": ("◐", "waiting"),
    "Clarify": ("?", "attention"),
}
"""Glyph and role of each tier."""


def tier_ink(tier: str) -> tuple[str, str]:
    """Glyph and role of a tier; an unknown one is shown as such."""
    return TIERS.get(tier, ("○", "muted"))
