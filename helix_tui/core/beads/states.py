"""The states of a bead: one row each, with everything that any place says or does by a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

State = Literal[
    "running",
    "claimed",
    "ready",
    "proposed",
    "unknown_status",
    "preserved_review_blocked",
    "retry_cooldown",
    "waiting_dependencies",
    "blocked_external",
    "epic_container",
    "not_eligible",
    "superseded",
    "closed",
    "cancelled",
]

Lane = Literal["running", "ready", "parked", "waiting", "set aside", "done"]

Mover = Literal["worker", "person", "time", "beads", "children", "whoever holds it", "nobody"]
"""Who or what lets a bead leave its state."""


Remedy = Literal["defer", "wait", "escalate", "decide", "recheck", "close"]
"""What FEAT-002 advises for a bead that does not move."""


class Sign(Struct, frozen=True):
    """How a state looks: glyph, ASCII glyph, ink (a role and attributes), and the word for it."""

    glyph: str
    ascii: str
    ink: str
    word: str
    title_ink: str = "text"
    """The ink of such a bead's title."""

    @property
    def role(self) -> str:
        """The role of the ink, where there are no attributes."""
        return self.ink.partition(" ")[0]


class Parked(Struct, frozen=True):
    """What HELIX says of a bead that does not move (FEAT-002)."""

    reason: str
    remedy: Remedy


class StateRow(Struct, frozen=True):
    """What there is to know of one state."""

    sign: Sign
    lane: Lane
    mover: Mover
    parked: Parked | None
    """None for a state that is left as it should be."""
    worded: bool
    """Whether a row of a list has the word beside the sign."""


STATES: Mapping[State, StateRow] = {
    "running": StateRow(
        Sign("◉", "@", "running bold", "running", "text bold"), "running", "worker", None, worded=False
    ),
    "claimed": StateRow(Sign("◉", "@", "running", "claimed"), "running", "worker", None, worded=True),
    "ready": StateRow(Sign("○", "o", "success", "ready"), "ready", "worker", None, worded=False),
    "proposed": StateRow(
        Sign("◆", "*", "attention bold", "proposed"),
        "parked",
        "person",
        Parked("operator-attention", "escalate"),
        worded=True,
    ),
    "unknown_status": StateRow(
        Sign("?", "?", "attention bold", "unknown status"),
        "parked",
        "nobody",
        Parked("unknown-status", "escalate"),
        worded=False,
    ),
    "preserved_review_blocked": StateRow(
        Sign("◆", "*", "attention bold", "review unresolved"),
        "parked",
        "person",
        Parked("review-blocked", "escalate"),
        worded=True,
    ),
    "retry_cooldown": StateRow(
        Sign("◷", "~", "waiting", "cools down"), "waiting", "time", Parked("retry-parked", "defer"), worded=False
    ),
    "waiting_dependencies": StateRow(
        Sign("◌", ".", "muted", "waits"), "waiting", "beads", Parked("dep-blocked", "wait"), worded=False
    ),
    "blocked_external": StateRow(
        Sign("⊘", "#", "error", "blocked outside"), "waiting", "person", Parked("external", "recheck"), worded=True
    ),
    "epic_container": StateRow(Sign("▣", "+", "text", "epic"), "set aside", "children", None, worded=False),
    "not_eligible": StateRow(
        Sign("⊝", "-", "muted", "not eligible", "muted"),
        "set aside",
        "whoever holds it",
        Parked("not-eligible", "decide"),
        worded=True,
    ),
    "superseded": StateRow(
        Sign("⊝", "-", "muted", "superseded", "muted strike"),
        "set aside",
        "nobody",
        Parked("superseded", "close"),
        worded=False,
    ),
    "closed": StateRow(Sign("✓", "x", "muted", "closed", "muted"), "done", "nobody", None, worded=False),
    "cancelled": StateRow(Sign("✗", "X", "muted", "cancelled", "muted strike"), "done", "nobody", None, worded=False),
}
"""Every state, those that need attention first, as documented for ``queue --json``."""

URGENCY: Mapping[State, int] = {state: place for place, state in enumerate(STATES)}
"""The rank of a state when beads that need attention come first."""


def states_where(*, lane: Lane | None = None, mover: Mover | None = None) -> tuple[State, ...]:
    """The states of a lane, or those that somebody can move, in order."""
    return tuple(
        state
        for state, row in STATES.items()
        if (lane is None or row.lane == lane) and (mover is None or row.mover == mover)
    )


IN_HAND = frozenset(states_where(lane="running"))
"""States of a bead that somebody works on or holds."""

FOR_A_WORKER = states_where(mover="worker")
"""States that a bead leaves by a worker's doing."""

OPENED_BY_A_PERSON = states_where(mover="person")
"""States that a bead leaves only by a person's decision."""

GOING = frozenset(state for state, row in STATES.items() if row.mover in ("worker", "time", "beads"))
"""States that a bead leaves by work alone, now or later."""
