"""Foresee which further beads a release closes by itself (docs/formats/ddx.md §1, auto-close cascade).

Open beads that the closed one supersedes close too, unless they are held or were worked on; and an epic, or a bead that
no worker may pick, closes once all its children are finished. Each release's `Dialect` says which of these it does.
"""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.editing.kinds.fields import (
    chain,
)
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.values import replacements

HOLDING_LABELS = frozenset({"manual-hold", "no-auto-close", "container"})
"""Labels that keep a superseded bead open."""


def cascade(overlay: Overlay, closed: str, dialect: Dialect) -> dict[str, str]:
    """Beads that change with the closing of ``closed``, each with its new status."""
    falls = {}
    if dialect.closes_superseded:
        below = (bead_id for bead_id in _superseded(overlay, closed) if _may_fall(overlay, bead_id, closed))
        falls = dict.fromkeys(below, "closed")
    # DDx counts the children as they were before the superseded ones closed.
    done = {closed: "closed"}
    upper = overlay.parent(closed)
    while upper and upper in overlay and upper not in done and upper not in falls:
        if not _finished(overlay, upper, done, dialect) or not _closes(overlay, upper, dialect):
            break
        if overlay.status(upper) not in TERMINAL:
            falls[upper] = "closed"
        done[upper] = "closed"
        upper = overlay.parent(upper) if dialect.climbs else ""
    return falls


def _closes(overlay: Overlay, upper: str, dialect: Dialect) -> bool:
    """Whether this release closes such a bead once all its children are finished."""
    if dialect.closes_ineligible and overlay.value(upper, "execution-eligible") is False:
        return True
    return dialect.closes_epics and looks_like_epic(overlay.bead(upper))


def near_cascade(overlay: Overlay, closed: str) -> set[str]:
    """Every bead that any release might close after ``closed``."""
    above = (each for each in chain(closed, overlay.parent) if each in overlay and each != closed)
    return {*_superseded(overlay, closed), *above}


def _superseded(overlay: Overlay, closed: str) -> Iterator[str]:
    """Open beads that name ``closed`` as what replaces them, by field or by label."""
    for bead_id in overlay.replaced_by(closed):
        if bead_id == closed or overlay.status(bead_id) != "open":
            continue
        if closed in replacements(overlay.bead(bead_id)):
            yield bead_id


def _may_fall(overlay: Overlay, bead_id: str, closed: str) -> bool:
    # the rest are reasons to keep a bead open: dependents, work begun, notes, a claim
    waiting = (
        other
        for other in overlay.queue.graph.dependents.get(bead_id, ())
        if other != bead_id and overlay.status(other) == "open" and bead_id in overlay.depends_on(other)
    )
    if next(waiting, None) is not None:
        return False
    if any(
        target in overlay and target != closed and overlay.status(target) not in TERMINAL
        for target in overlay.depends_on(bead_id)
    ):
        return False
    if str(overlay.value(bead_id, "notes") or "").strip() or HOLDING_LABELS & set(overlay.bead(bead_id).labels):
        return False
    if overlay.leases.get(bead_id, overlay.queue.claims.leases.get(bead_id, False)):
        return False
    return not any(_of_work(event) for event in overlay.value(bead_id, "events") or ())


def _of_work(event: object) -> bool:
    kind = event.get("kind") if isinstance(event, dict) else None
    return isinstance(kind, str) and (
        kind == "execute-bead" or any(word in kind for word in ("execution", "dispatch", "work"))
    )


def _finished(overlay: Overlay, upper: str, done: dict[str, str], dialect: Dialect) -> bool:
    """Whether there are children and all are finished."""
    children = overlay.children(upper)
    ends = TERMINAL if dialect.cancelled_counts else {"closed"}
    return bool(children) and all(child in done or overlay.status(child) in ends for child in children)
