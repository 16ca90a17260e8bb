"""What a question about the queue is about: all of it, or the beads that a name stands for.

Rule: docs/decisions/0018. All of it is `EVERYTHING`, a value that no label, bead or document can be called.
HELIX's word for it, ``repo``, is read and written at the edges only: on the command line, in the title of
a governing bead, in a prompt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the table of stages needs the word alone
    from helix_tui.core.beads.readiness import Queue

Scope = str | None
"""A bead and all under it, a label, an area or a specification; None: everything."""

EVERYTHING: Scope = None

WORD = "repo"
"""How HELIX writes `EVERYTHING` (FEAT-002: ``helix check [scope=repo]``)."""

_LABEL = "label:"


_ID = re.compile(r"[A-Za-z][\w.]*(?:-[\w.]+)+")


def read_scope(word: str) -> Scope:
    """What somebody means who types this as a scope; the label ``repo`` is ``label:repo``."""
    return EVERYTHING if word.strip() in ("", WORD) else word.strip()


def scope_word(scope: Scope) -> str:
    """A scope as the command line takes it."""
    return WORD if scope is None else scope


def named_beads(queue: Queue, scope: Scope) -> tuple[str, ...] | None:
    """Ids of the beads that a scope names; None where it names none, and for `EVERYTHING`."""
    if scope is None:
        return None
    if scope in queue.beads:
        below = under(queue, scope)
        return tuple(bead_id for bead_id in queue.beads if bead_id in below)
    label = scope.removeprefix(_LABEL)
    named = tuple(
        bead_id
        for bead_id, bead in queue.beads.items()
        if label in bead.labels or f"area:{label}" in bead.labels or (label == scope and bead.spec_id == scope)
    )
    return named or None


def missing_bead(queue: Queue, scope: Scope) -> bool:
    """Whether a scope is written like an id of this tracker and names no bead, label or document there."""
    if scope is None or not _ID.fullmatch(scope) or named_beads(queue, scope) is not None:
        return False
    prefixes = {bead_id.rpartition("-")[0] for bead_id in queue.beads if "-" in bead_id}
    return scope.rpartition("-")[0] in prefixes


def under(queue: Queue, bead_id: str) -> set[str]:
    """A bead and everything below it; a circle of parents is walked once."""
    found, stack = {bead_id}, [bead_id]
    while stack:
        for child in queue.graph.children.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found
