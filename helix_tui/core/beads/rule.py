"""The readiness rule of one release of DDx, as facts that can be proven one by one.

Which row a worker may pick changed in May 2026 and again since (docs/formats/ddx.md §2). What changed is a
field here, so that a release between two known ones is what it is, and not the nearest of them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Era = Literal["auto", "april", "head"]


class Rule(Struct, frozen=True):
    """One release's rule."""

    name: Literal["april", "head"]
    """The family it belongs to: which statuses, and which of several reasons is told first."""
    old_keys: bool
    """Cooldowns and heartbeats under ``execute-loop-…`` count."""
    new_keys: bool
    """Cooldowns and heartbeats under ``work-…`` count."""
    open_claims: bool
    """A fresh claim holds an open bead too; else only one in progress."""
    leases: bool
    """Claims stand in lease files beside the repository."""
    childless_epics: bool
    """An epic without children is work like any other; else no epic ever is."""
    titled_epics: bool
    """A title that begins with “Epic:” makes an epic."""
    reviews: bool
    """An attempt kept for review holds its bead until the review is resolved."""
    ranks: bool
    """``queue-rank`` orders beads of one priority."""
    plain_ready: bool
    """DDx counts as ready whatever is open and waits for nothing; else only what a worker may pick."""
    waiting_is_blocked: bool
    """DDx counts as blocked what waits for others; else only what has the status."""


APRIL = Rule(
    "april",
    old_keys=True,
    new_keys=False,
    open_claims=False,
    leases=False,
    childless_epics=False,
    titled_epics=False,
    reviews=False,
    ranks=False,
    plain_ready=True,
    waiting_is_blocked=True,
)
"""The releases of April 2026."""

HEAD = Rule(
    "head",
    old_keys=False,
    new_keys=True,
    open_claims=True,
    leases=True,
    childless_epics=True,
    titled_epics=True,
    reviews=True,
    ranks=True,
    plain_ready=False,
    waiting_is_blocked=False,
)
"""The releases of August 2026."""

RULES = {"april": APRIL, "head": HEAD}
"""The rule that stands for an era where no ddx is at hand to say its own."""
