"""The part of the queue that a run is for (docs/decisions/0018), and work that belongs together.

`Scope` is the beads matching a name, or `EVERYTHING`, a value that cannot be the name of a label, bead or document.
HELIX's word for it, ``repo``, is read and written only at the edges: on the command line, in the title of a governing
bead, in a prompt.

`siblings` names work that belongs together (docs/formats/helix.md §3.5): the same parent or specification first; only
if that finds nothing, a shared ``area:`` label; at most three, including the bead itself. They are named beside the
next bead and to its agent, never dispatched together (ddx takes one bead per turn).
"""

from __future__ import annotations

import re
from functools import lru_cache

from helix_tui.core.beads.readiness import Queue, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead

Scope = str | None
"""A bead and its descendants, a label, an area or a specification; None: everything."""

EVERYTHING: Scope = None

WORD = "repo"
"""How HELIX writes `EVERYTHING` (FEAT-002: ``helix check [scope=repo]``)."""

_LABEL = "label:"
_ID = re.compile(r"[A-Za-z][\w.]*(?:-[\w.]+)+")

MAX_SIBLINGS = 3


def read_scope(word: str) -> Scope:
    """Parse a scope; the label ``repo`` is written ``label:repo``."""
    return EVERYTHING if word.strip() in ("", WORD) else word.strip()


def scope_word(scope: Scope) -> str:
    """A scope as written on the command line."""
    return WORD if scope is None else scope


def named_beads(queue: Queue, scope: Scope) -> tuple[str, ...] | None:
    """Ids of the beads in a scope; None if it matches none, and for `EVERYTHING`."""
    if scope is None:
        return None
    if scope in queue.beads:
        below = {scope, *queue.graph.descendants(scope)}
        return tuple(bead_id for bead_id in queue.beads if bead_id in below)
    label = scope.removeprefix(_LABEL)
    named = tuple(
        bead_id
        for bead_id, bead in queue.beads.items()
        if label in bead.labels or f"area:{label}" in bead.labels or (label == scope and bead.spec_id == scope)
    )
    return named or None


def written_like_a_bead(queue: Queue, word: str) -> bool:
    """Whether a word looks like an id of this tracker."""
    prefixes = {bead_id.rpartition("-")[0] for bead_id in queue.beads if "-" in bead_id}
    return bool(_ID.fullmatch(word)) and word.rpartition("-")[0] in prefixes


def names_of(queue: Queue) -> tuple[str, ...]:
    """All scope names in this queue: ids, labels, areas without prefix, specifications."""
    words = (word for bead in queue.beads.values() for word in (bead.id, *bead.labels, bead.spec_id))
    return tuple(dict.fromkeys(word.removeprefix("area:") for word in words if word))


def is_finished_epic(queue: Queue, bead: Bead) -> bool:
    """Whether it is an open epic, not set aside, under which something was closed and nothing is left to do."""
    if bead.status not in ("open", "in_progress") or not looks_like_epic(bead):
        return False
    below = _statuses_below(queue).get(bead.id, set())
    return "closed" in below and below <= TERMINAL


def is_empty_epic(queue: Queue, bead: Bead) -> bool:
    """Whether it is an epic that no worker picks, and under which nothing is left and nothing was closed."""
    below = _statuses_below(queue).get(bead.id, set())
    return queue.state(bead.id) == "epic_container" and looks_like_epic(bead) and below <= {"cancelled"}


@lru_cache(maxsize=1)
def _statuses_below(queue: Queue) -> dict[str, set[str]]:
    """The statuses of the descendants of each bead; nested epics share the way up, so that the work is linear."""
    below: dict[str, set[str]] = {}
    for bead in queue.beads.values():
        above = bead.parent
        while above in queue.beads and above != bead.id and bead.status not in below.setdefault(above, set()):
            below[above].add(bead.status)
            above = queue.beads[above].parent
    return below


def siblings(queue: Queue, bead_id: str) -> tuple[str, ...]:
    """The bead and its ready siblings, in ddx's pick order."""
    bead = queue.beads[bead_id]
    others = [queue.beads[each] for each in queue.ready if each != bead_id]
    others = [other for other in others if not looks_like_epic(other)]
    related = [other for other in others if _same(bead.parent, other.parent) or _same(bead.spec_id, other.spec_id)]
    if not related:
        areas = _areas(bead)
        related = [other for other in others if areas & _areas(other)]
    return (bead_id, *(each.id for each in related[: MAX_SIBLINGS - 1]))


def _same(one: str, other: str) -> bool:
    return bool(one) and one == other


def _areas(bead: Bead) -> frozenset[str]:
    return frozenset(label for label in bead.labels if label.startswith("area:"))
