"""What ddx closes by itself after a bead was closed.

Two rules (docs/formats/ddx.md §1): open beads that the closed one supersedes fall with it, unless somebody
has worked on them or holds them; and upwards, an epic or a bead that no worker may pick closes once all of
its children are finished. Which of it a release does stands in its `Dialect`.
"""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.editing.overlay import Overlay, replacements

HOLDING_LABELS = frozenset({"manual-hold", "no-auto-close", "container"})
"""Labels that keep a superseded bead from falling."""


def cascade(scene: Overlay, closed: str, dialect: Dialect) -> dict[str, str]:
    """Beads that change with the closing of ``closed``, each with its new status."""
    falls = {}
    if dialect.closes_superseded:
        below = (bead_id for bead_id in _superseded(scene, closed) if _may_fall(scene, bead_id, closed))
        falls = dict.fromkeys(below, "closed")
    # DDx counts the children as they stood before the superseded ones fell.
    done = {closed: "closed"}
    upper = scene.parent(closed)
    while upper and upper in scene and upper not in done and upper not in falls:
        if not _finished(scene, upper, done, dialect) or not _closes(scene, upper, dialect):
            break
        if scene.status(upper) not in TERMINAL:
            falls[upper] = "closed"
        done[upper] = "closed"
        upper = scene.parent(upper) if dialect.climbs else ""
    return falls


def _closes(scene: Overlay, upper: str, dialect: Dialect) -> bool:
    """Whether this release closes such a bead once all under it is finished."""
    if dialect.closes_ineligible and scene.value(upper, "execution-eligible") is False:
        return True
    return dialect.closes_epics and looks_like_epic(scene.bead(upper))


def near_cascade(scene: Overlay, closed: str) -> set[str]:
    """Every bead that some release may close after ``closed``, whatever its exact rule."""
    near = set(_superseded(scene, closed))
    upper = scene.parent(closed)
    while upper and upper in scene and upper not in near and upper != closed:
        near.add(upper)
        upper = scene.parent(upper)
    return near


def _superseded(scene: Overlay, closed: str) -> Iterator[str]:
    """Open beads that name ``closed`` as what replaces them, by field or by label."""
    for bead_id in scene.replaced_by(closed):
        if bead_id == closed or scene.status(bead_id) != "open":
            continue
        if closed in replacements(scene.bead(bead_id)):
            yield bead_id


def _may_fall(scene: Overlay, bead_id: str, closed: str) -> bool:
    waiting = (
        other
        for other in scene.queue.graph.dependents.get(bead_id, ())
        if other != bead_id and scene.status(other) == "open" and bead_id in scene.depends_on(other)
    )
    if next(waiting, None) is not None:
        return False
    if any(
        target in scene and target != closed and scene.status(target) not in TERMINAL
        for target in scene.depends_on(bead_id)
    ):
        return False
    if str(scene.value(bead_id, "notes") or "").strip() or HOLDING_LABELS & set(scene.bead(bead_id).labels):
        return False
    if scene.leases.get(bead_id, scene.queue.claims.leases.get(bead_id, False)):
        return False
    return not any(_of_work(event) for event in scene.value(bead_id, "events") or ())


def _of_work(event: object) -> bool:
    kind = event.get("kind") if isinstance(event, dict) else None
    return isinstance(kind, str) and (
        kind == "execute-bead" or any(word in kind for word in ("execution", "dispatch", "work"))
    )


def _finished(scene: Overlay, upper: str, done: dict[str, str], dialect: Dialect) -> bool:
    """Whether every child is finished, and there is one at all."""
    children = scene.children(upper)
    ends = TERMINAL if dialect.cancelled_counts else {"closed"}
    return bool(children) and all(child in done or scene.status(child) in ends for child in children)
