"""Keeping workers from beads for a while, and giving them back exactly as they were: one bead, or all but an epic's.

Rules: docs/decisions/0009, docs/formats/helix.md §3.2–3.3. DDx knows no focus; it skips beads whose
``execution-eligible`` is false. The value that a bead had is stamped into its row by the command that takes it, so the
row alone says what is to be given back, after a kill at any step too. A focus holds back every other open bead, with
the epic beside that value; whether it is on stands in the epic's own row, set before the first bead is held back and
taken away before the first is given back.

`Scope` is what a question about the queue is about (docs/decisions/0018): the beads that a name stands for, or all of
it: `EVERYTHING`, a value that no label, bead or document can be called. HELIX's word for it, ``repo``, is read and
written at the edges only: on the command line, in the title of a governing bead, in a prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from helix_tui.core.beads.readiness import Queue, Rule, looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.editing.plan.fields import FOCUS_MARK, must_live
from helix_tui.core.editing.plan.planner import FOCUS_ON
from helix_tui.core.editing.steps import OperationRefused, Overlay, PlanBuilder, called, stored
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.signals.drift import STALE, Drift
from helix_tui.core.supervision.signals.questions import DRIFTED, UNDECIDED

UNDECIDED_PRIOR = "helix-held-prior"
"""Beside it: ``absent``, true, or ``=`` and a text, what ``execution-eligible`` was before."""


FOR_DECISION = "a decision"


def hold(writing: PlanBuilder, bead_id: str, mark: str, why: str, prior_key: str) -> None:
    """Keep workers from a bead, marked, with the value of before."""
    value = writing.overlay.value(bead_id, "execution-eligible")
    prior: Any
    if value is None or value is True:
        prior = "absent" if value is None else True
    elif isinstance(value, str):
        prior = f"={value}"
    else:
        writing.notes.append(
            f"{called(bead_id)} is left alone: its execution-eligible is neither a boolean nor a string"
        )
        return
    writing.update(bead_id, {"execution-eligible": False, mark: why, prior_key: prior})


def release(writing: PlanBuilder, bead_id: str, mark: str, prior_key: str) -> None:
    """Give a bead its value of before, unless somebody has changed that since; then only the marks go."""
    overlay = writing.overlay
    fields: dict[str, Any] = {mark: None, prior_key: None}
    if overlay.value(bead_id, "execution-eligible") is False:
        prior = overlay.value(bead_id, prior_key)
        text = prior[1:] if isinstance(prior, str) and prior.startswith("=") else ""
        # ddx would make a real false of the text: workers took the bead before, and take it again without
        fields["execution-eligible"] = prior is True or stored("execution-eligible", text, writing.dialect) or None
    writing.update(bead_id, fields)


def undecided(queue: Queue) -> tuple[str, ...]:
    """Beads that a run keeps back until a person has judged what came of them, or it has done the others."""
    # the raw bytes tell without decoding every row of the queue
    mark = f'"{UNDECIDED}"'.encode()
    return tuple(bead_id for bead_id, bead in queue.beads.items() if mark in bead.raw)


def plan_undecided(writing: PlanBuilder, wanted: Iterable[str] | Mapping[str, str]) -> None:
    """Keep exactly these back, each for its reason: what is held besides is given back."""
    overlay, keep = writing.overlay, set(wanted)
    reasons = wanted if isinstance(wanted, Mapping) else {}
    have = set(undecided(overlay.queue))
    for bead_id in sorted(have - keep):
        release(writing, bead_id, UNDECIDED, UNDECIDED_PRIOR)
    for bead_id in sorted(keep - have):
        if bead_id in overlay and _eligible(overlay, bead_id):
            hold(writing, bead_id, UNDECIDED, reasons.get(bead_id, FOR_DECISION), UNDECIDED_PRIOR)


def _eligible(overlay: Overlay, bead_id: str) -> bool:
    return overlay.value(bead_id, "execution-eligible") is not False


DRIFTED_PRIOR = "helix-drift-prior"
"""Beside the mark of drift: ``absent``, true, or ``=`` and a text, what ``execution-eligible`` was before."""


def drifted(queue: Queue) -> tuple[str, ...]:
    """Beads that are kept from workers because their parent or governing document changed."""
    mark = f'"{DRIFTED}"'.encode()
    return tuple(bead_id for bead_id, bead in queue.beads.items() if mark in bead.raw)


def plan_drifted(writing: PlanBuilder, wanted: Iterable[str]) -> None:
    """Keep exactly these back for their drift (CONTRACT-001); the others are given back as they were."""
    overlay, keep = writing.overlay, set(wanted)
    have = set(drifted(overlay.queue))
    for bead_id in sorted(have - keep):
        release(writing, bead_id, DRIFTED, DRIFTED_PRIOR)
    for bead_id in sorted(keep - have):
        if bead_id in overlay and _eligible(overlay, bead_id):
            hold(writing, bead_id, DRIFTED, "parent or document changed", DRIFTED_PRIOR)


def stale(drift: Iterable[Drift]) -> set[str]:
    """Beads whose parent or governing document changed."""
    return {each.bead_id for each in drift if each.field in STALE}


ON = FOCUS_ON
"""In the epic's row: since when the focus is on it."""

PRIOR = "helix-focus-prior"
"""In a held-back row: ``absent``, true, or ``=`` and a text, what ``execution-eligible`` was before."""

REACH = "helix-focus-reach"
"""In the epic's row: ``ready`` where only what a worker could pick is held back, turn by turn (a loop's
focus).
"""

_PICKABLE = frozenset({"open", "in_progress"})


class Focus(Struct, frozen=True):
    """What the rows say of the focus."""

    epic: str = ""
    """The epic in focus; empty where there is none."""
    held: tuple[str, ...] = ()
    """Beads that the focus on it holds back."""
    leftovers: tuple[str, ...] = ()
    """Beads that carry a mark of another focus: one that was being ended when its process died."""
    others: tuple[str, ...] = field(default=())
    """Further epics that say they are in focus, older ones."""


def read_focus(overlay: Overlay) -> Focus:
    """The focus as the rows tell it."""
    marked: dict[str, str] = {}
    on: list[tuple[str, str]] = []
    for bead_id in _near_focus(overlay):
        since, epic = overlay.value(bead_id, ON), overlay.value(bead_id, FOCUS_MARK)
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
    """Put the focus on an epic, or bring it up to date: as few commands as lead there.

    Args:
        now_only: hold back only what a worker could pick now or after a cooldown; for a loop that brings the
            focus up to date before every turn, and to which each command costs time.
    """
    overlay = writing.overlay
    must_live(overlay, epic)
    below = descendants(overlay, epic)
    if not any(overlay.status(bead_id) not in TERMINAL for bead_id in below):
        raise OperationRefused(f"nothing open is under {called(epic)}; focus on an epic with open beads under it")
    focus = read_focus(overlay)
    since = overlay.value(epic, ON)
    if since is None or focus.epic != epic:
        since = format_instant(overlay.queue.as_of)
    # before the first bead is held back: killed in between, the focus is known and completed by the next pass
    writing.update(epic, {ON: since, REACH: "ready" if now_only else None})
    for other in dict.fromkeys((focus.epic, *focus.others)):
        if other and other != epic:
            writing.update(other, {ON: None, REACH: None})
    kept = needed(overlay, epic, below)
    for bead_id in (*focus.held, *focus.leftovers):
        if bead_id in kept:
            release(writing, bead_id, FOCUS_MARK, PRIOR)
        # held for another epic: only the mark changes, and the value of before stays as it is in the row
        elif overlay.value(bead_id, FOCUS_MARK) != epic and overlay.status(bead_id) not in TERMINAL:
            writing.update(bead_id, {FOCUS_MARK: epic})
        elif overlay.value(bead_id, FOCUS_MARK) != epic:
            release(writing, bead_id, FOCUS_MARK, PRIOR)
    spared = _spared(overlay, kept) if writing.dialect.closes_ineligible else set()
    for bead_id in _outside(overlay, kept | spared, writing.dialect.rule):
        # what becomes ready later is held back by the pass before that turn
        if now_only and overlay.queue.state(bead_id) not in ("ready", "retry_cooldown"):
            continue
        hold(writing, bead_id, FOCUS_MARK, epic, PRIOR)


def plan_unfocus(writing: PlanBuilder) -> None:
    """End every focus and give back what it held."""
    focus = read_focus(writing.overlay)
    # before the first bead is released: killed in between, what is left are marks without a focus
    for epic in (focus.epic, *focus.others):
        if epic:
            writing.update(epic, {ON: None, REACH: None})
    for bead_id in (*focus.held, *focus.leftovers):
        release(writing, bead_id, FOCUS_MARK, PRIOR)


def plan_upkeep(writing: PlanBuilder) -> None:
    """What the focus needs to be as it should: beads made since, a focus half set or half ended."""
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
    """Everything under a bead, children of children too; a circle of parents is walked once."""
    found: set[str] = set()
    stack = [epic]
    while stack:
        for child in overlay.children(stack.pop()):
            if child not in found and child != epic:
                found.add(child)
                stack.append(child)
    return found


def needed(overlay: Overlay, epic: str, below: set[str]) -> set[str]:
    """What must stay eligible: the epic, all under it, and whatever those wait for, however far.

    An epic that something waits for closes when its children do, so they are needed too; so is the bead that
    supersedes a needed one, for the closing of the one closes the other.
    """
    seen = {bead_id for bead_id in below if overlay.status(bead_id) not in TERMINAL}
    stack = list(seen)
    while stack:
        bead_id = stack.pop()
        near = [*overlay.depends_on(bead_id), *overlay.children(bead_id), overlay.bead(bead_id).superseded_by.strip()]
        for other in near:
            if other and other in overlay and other not in seen and overlay.status(other) not in TERMINAL:
                seen.add(other)
                stack.append(other)
    return {epic, *below, *seen}


def _near_focus(overlay: Overlay) -> Iterator[str]:
    """Beads whose rows name the focus at all, or were changed by the plan."""
    for bead_id, bead in overlay.queue.beads.items():
        if bead.focus_epic or bead.focus_since or bead_id in overlay.edits:
            yield bead_id
    yield from overlay.added


def _outside(overlay: Overlay, kept: set[str], rule: Rule) -> Iterator[str]:
    """Beads to hold back: open, not needed, not held back already, and such as a worker may ever pick.

    Those that are ready come first, in pick order, so that the focus holds as soon as possible.
    """
    position = overlay.queue.position
    last = len(position) + 1
    found = []
    for bead_id, bead in overlay.queue.beads.items():
        if bead_id in kept or bead.status not in _PICKABLE or bead.superseded_by.strip():
            continue
        if bead_id not in overlay.edits and bead.execution_eligible is False:
            continue  # the record knows it: no need to decode the whole row
        if overlay.value(bead_id, "execution-eligible") is False:
            continue
        if _never_picked(overlay, bead, rule):
            continue
        found.append((position.get(bead_id, last), bead_id))
    found.sort(key=lambda pair: pair[0])
    for _, bead_id in found:
        yield bead_id


def _never_picked(overlay: Overlay, bead: Bead, rule: Rule) -> bool:
    """Whether workers pass by this epic anyway: some releases by any, others by one that has children."""
    if not looks_like_epic(bead, titled=rule.titled_epics):
        return False
    return not rule.childless_epics or bool(overlay.queue.graph.children.get(bead.id))


def _spared(overlay: Overlay, kept: set[str]) -> set[str]:
    """Beads above a needed one that are no epics: ddx may close such a bead unworked, once it is not eligible
    and all under it is finished."""
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


def written_like_a_bead(queue: Queue, word: str) -> bool:
    """Whether a word is written like an id of this tracker."""
    prefixes = {bead_id.rpartition("-")[0] for bead_id in queue.beads if "-" in bead_id}
    return bool(_ID.fullmatch(word)) and word.rpartition("-")[0] in prefixes


def names_of(queue: Queue) -> tuple[str, ...]:
    """What a scope can be called by this queue: ids, labels, areas without their mark, specifications."""
    words = (word for bead in queue.beads.values() for word in (bead.id, *bead.labels, bead.spec_id))
    return tuple(dict.fromkeys(word.removeprefix("area:") for word in words if word))


def under(queue: Queue, bead_id: str) -> set[str]:
    """A bead and everything below it; a circle of parents is walked once."""
    found, stack = {bead_id}, [bead_id]
    while stack:
        for child in queue.graph.children.get(stack.pop(), ()):
            if child not in found:
                found.add(child)
                stack.append(child)
    return found
