"""Keep workers from all beads but an epic's for a while, and restore them exactly.

Rules: docs/decisions/0009, docs/formats/helix.md §3.2. DDx knows no focus; it skips beads whose ``execution-eligible``
is false. The earlier value is written into the row by the command that changes it, so the row alone says what to
restore, even after a kill at any step. A focus holds back every other open bead, with the epic beside that value; the
epic's own row says whether it is on, set before the first bead is held back and removed before the first is released.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from helix_tui.core.beads.graph import reached
from helix_tui.core.beads.readiness import Queue, Rule, looks_like_epic
from helix_tui.core.beads.record import FOCUS_MARK, FOCUS_ON, TERMINAL, Bead
from helix_tui.core.editing.kinds.eligibility_hold import hold, release
from helix_tui.core.editing.kinds.fields import must_live
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import OperationRefused, PlanBuilder, called
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.signals.drift import STALE, Drift
from helix_tui.core.supervision.signals.orphans import REVIEW, injected_type

PRIOR = "helix-focus-prior"
"""In a held row: the earlier ``execution-eligible``: ``absent``, true, or ``=`` and a text."""

REACH = "helix-focus-reach"
"""In the epic's row: ``ready`` if only beads that a worker could pick are held back, turn by turn (a loop's focus)."""

_PICKABLE = frozenset({"open", "in_progress"})


def stale(drift: Iterable[Drift]) -> set[str]:
    """Beads whose parent or governing document changed."""
    return {each.bead_id for each in drift if each.field in STALE}


class Focus(Struct, frozen=True):
    """The focus, from the rows."""

    epic: str = ""
    """The epic in focus, or ""."""
    held: tuple[str, ...] = ()
    """Beads that the focus on it holds back."""
    leftovers: tuple[str, ...] = ()
    """Beads marked by another focus, which was being ended when its process died."""
    others: tuple[str, ...] = field(default=())
    """Further epics marked as focused, older ones."""


def read_focus(overlay: Overlay) -> Focus:
    """Read the focus from the rows."""
    marked: dict[str, str] = {}
    on: list[tuple[str, str]] = []
    for bead_id in _near_focus(overlay):
        since, epic = overlay.value(bead_id, FOCUS_ON), overlay.value(bead_id, FOCUS_MARK)
        if since is not None:
            on.append((str(since), bead_id))
        if epic is not None:
            marked[bead_id] = str(epic)
    on.sort()
    epic = on[-1][1] if on else ""
    return Focus(
        epic,
        held=tuple(bead_id for bead_id, mark in marked.items() if mark == epic),
        leftovers=tuple(bead_id for bead_id, mark in marked.items() if mark != epic),
        others=tuple(bead_id for _, bead_id in on[:-1]),
    )


def plan_focus(writing: PlanBuilder, epic: str, *, now_only: bool = False) -> None:
    """Focus on an epic, or update the focus, with as few commands as possible.

    Args:
        now_only: hold back only what a worker could pick now or after a cooldown; for a loop that updates the focus
            before every turn and must save commands.
    """
    overlay = writing.overlay
    must_live(overlay, epic)
    below = descendants(overlay, epic)
    if not any(overlay.status(bead_id) not in TERMINAL for bead_id in below):
        raise OperationRefused(f"nothing open is under {called(epic)}; focus on an epic with open beads under it")
    focus = read_focus(overlay)
    since = overlay.value(epic, FOCUS_ON)
    if since is None or focus.epic != epic:
        since = format_instant(overlay.queue.as_of)
    # before the first bead is held back: if killed in between, the next pass completes the focus
    writing.update(epic, {FOCUS_ON: since, REACH: "ready" if now_only else None})
    for other in dict.fromkeys((focus.epic, *focus.others)):
        if other and other != epic:
            writing.update(other, {FOCUS_ON: None, REACH: None})
    kept = needed(overlay, epic, below) | set(_reviews(overlay.queue))
    for bead_id in (*focus.held, *focus.leftovers):
        if bead_id in kept:
            release(writing, bead_id, FOCUS_MARK, PRIOR)
        # held for another epic: only the mark changes; the earlier value stays in the row
        elif overlay.value(bead_id, FOCUS_MARK) != epic and overlay.status(bead_id) not in TERMINAL:
            writing.update(bead_id, {FOCUS_MARK: epic})
        elif overlay.value(bead_id, FOCUS_MARK) != epic:
            release(writing, bead_id, FOCUS_MARK, PRIOR)
    spared = _spared(overlay, kept) if writing.dialect.closes_ineligible else set()
    for bead_id in _outside(writing, kept | spared):
        # beads that become ready later are held back before their turn
        if now_only and overlay.queue.state(bead_id) not in ("ready", "retry_cooldown"):
            continue
        hold(writing, bead_id, FOCUS_MARK, epic, PRIOR)


def plan_unfocus(writing: PlanBuilder) -> None:
    """End every focus and release what it held."""
    focus = read_focus(writing.overlay)
    # before the first bead is released: if killed in between, only marks without a focus remain
    for epic in (focus.epic, *focus.others):
        if epic:
            writing.update(epic, {FOCUS_ON: None, REACH: None})
    for bead_id in (*focus.held, *focus.leftovers):
        release(writing, bead_id, FOCUS_MARK, PRIOR)


def plan_upkeep(writing: PlanBuilder) -> None:
    """Plan the repair of the focus: beads created since, a focus half set or half ended."""
    overlay = writing.overlay
    focus = read_focus(overlay)
    if focus.epic and overlay.status(focus.epic) not in TERMINAL:
        below = descendants(overlay, focus.epic)
        if any(overlay.status(bead_id) not in TERMINAL for bead_id in below):
            plan_focus(writing, focus.epic, now_only=overlay.value(focus.epic, REACH) == "ready")
            return
        writing.notes.append(f"the focus on {called(focus.epic)} has ended: nothing under it is left to do")
    if focus.epic or focus.held or focus.leftovers:
        plan_unfocus(writing)


def descendants(overlay: Overlay, epic: str) -> set[str]:
    """All descendants of a bead after the changes."""
    return set(reached([epic], overlay.children)) - {epic}


def needed(overlay: Overlay, epic: str, below: set[str]) -> set[str]:
    """Beads that must stay eligible: the epic, its descendants, and all their direct and indirect prerequisites.

    An epic that is a prerequisite closes with its children, so they are needed too; so is the bead that supersedes a
    needed one, as closing it closes the other.
    """

    def unfinished(ids: Iterable[str]) -> list[str]:
        return [bead_id for bead_id in ids if bead_id in overlay and overlay.status(bead_id) not in TERMINAL]

    def near(bead_id: str) -> list[str]:
        replacement = overlay.bead(bead_id).superseded_by.strip()
        return unfinished((*overlay.depends_on(bead_id), *overlay.children(bead_id), replacement))

    return {epic, *below, *reached(unfinished(below), near)}


def _near_focus(overlay: Overlay) -> Iterator[str]:
    """Beads whose rows mention the focus, or were changed by the plan."""
    for bead_id, bead in overlay.queue.beads.items():
        if bead.focus_epic or bead.focus_since or bead_id in overlay.edits:
            yield bead_id
    yield from overlay.added


def _reviews(queue: Queue) -> Iterator[str]:
    """The open reviews that HELIX injected: they come before the next bead, in any focus."""
    return (bead.id for bead in queue.beads.values() if bead.status not in TERMINAL and injected_type(bead) == REVIEW)


def _outside(writing: PlanBuilder, kept: set[str]) -> Iterator[str]:
    """Beads to hold back: open, not needed, not yet held back, pickable by a worker, and not claimed by one.

    Ready ones come first, in pick order, so that the focus takes effect as soon as possible.
    """
    overlay, rule = writing.overlay, writing.dialect.rule
    position = overlay.queue.position
    last = len(position) + 1
    found = []
    for bead_id, bead in overlay.queue.beads.items():
        if bead_id in kept or bead.status not in _PICKABLE or bead.superseded_by.strip():
            continue
        # a bead that somebody is working on is held back once it is free
        if bead_id in writing.claimed:
            continue
        if bead_id not in overlay.edits and bead.execution_eligible is False:
            continue  # the record has it: no need to decode the whole row
        if overlay.value(bead_id, "execution-eligible") is False:
            continue
        if _never_picked(overlay, bead, rule):
            continue
        found.append((position.get(bead_id, last), bead_id))
    found.sort(key=lambda pair: pair[0])
    for _, bead_id in found:
        yield bead_id


def _never_picked(overlay: Overlay, bead: Bead, rule: Rule) -> bool:
    """Whether workers skip this epic anyway: some releases skip any, others those with children."""
    if not looks_like_epic(bead, titled=rule.titled_epics):
        return False
    return not rule.childless_epics or bool(overlay.queue.graph.children.get(bead.id))


def _spared(overlay: Overlay, kept: set[str]) -> set[str]:
    """Ancestors of needed beads that are not epics: ddx may close such a bead undone, once it is not eligible and all
    its children are finished.
    """
    found: set[str] = set()
    for bead_id in kept:
        if bead_id not in overlay or overlay.status(bead_id) in TERMINAL:
            continue
        upper = overlay.parent(bead_id)
        while upper and upper in overlay and upper not in found and upper not in kept:
            if not looks_like_epic(overlay.bead(upper)):
                found.add(upper)
            upper = overlay.parent(upper)
    return found
