"""What can be done about each kind of need: one table for the keys beside a row, the menu, the palette and JSON.

An action that changes the queue is a few `Operation`s, planned, shown, journalled and undone like every other
change. What else there is (a lesson, an answer, landing a kept change, another attempt, putting off) is done by
whoever asks, by the action's id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from helix_tui.core.beads.graph import circle_of
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.names import status_of
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation
from helix_tui.core.ground.time import format_instant
from helix_tui.core.supervision.decide.needs import ASSIGNED, OF_ITS_ATTEMPT, Need
from helix_tui.core.supervision.stages.landing import kept_ref

ActionId = Literal[
    "answer", "accept", "reject", "release", "retry", "land", "resolve", "undepend", "hold", "loop", "lines"
]


class NeedAction(Struct, frozen=True):
    """One way to deal with a need."""

    id: ActionId
    label: str
    """A verb in the imperative."""
    effect: str
    """What it does, in one sentence."""
    command: str = ""
    """The same on the command line; ``ID``, ``REF`` and ``QUESTION`` stand for those of the need."""

    def command_for(self, need: Need) -> str:
        """The command line for one need; empty where there is none."""
        words = {"ID": need.bead_id, "REF": need.ref, "QUESTION": need.question_id}
        return " ".join(words.get(word, word) for word in self.command.split())


_ANSWER = NeedAction(
    "answer",
    "answer",
    "records the answer where the next agent reads it, and frees the bead",
    "helix-tui input --answer QUESTION TEXT",
)
_YES = NeedAction("accept", "approve", "lets the run do this once", "helix-tui input --answer QUESTION yes")
_NO = NeedAction("reject", "refuse", "the run continues without this", "helix-tui input --answer QUESTION no")
_DECIDE = NeedAction("answer", "decide", "records the decision in the bead that it is about, and closes this one")
_RELEASE = NeedAction(
    "release", "release claim", "frees the bead, so that workers may pick it again", "helix-tui unclaim ID"
)
_RETRY = NeedAction(
    "retry", "retry", "attempts the bead again, with this or another model; costs money", "helix-tui build ID"
)
_LAND = NeedAction("land", "land", "merges the kept change into the branch and closes the bead")
_DROP = NeedAction("reject", "drop", "leaves the kept change at its ref; the next attempt starts over")
_RESOLVE = NeedAction("resolve", "resolve in $EDITOR", "merges with the conflicts in your editor, then closes the bead")
_HOLD_BACK = NeedAction("reject", "make not eligible", "no worker picks the bead", "helix-tui eligible ID off")
_UNBLOCK = NeedAction("accept", "reopen", "counts the review as resolved, so that workers may pick the bead")
_INTERRUPT = NeedAction("loop", "stop worker", "opens the loop controls, with what can end this worker")
_LOOP = NeedAction("loop", "start worker", "opens the loop controls: what would run, and what it may cost")

ASK_OF_ATTEMPT = ("conflict", "ambiguous")
"""Questions what to do with an attempt."""

ACTIONS: dict[str, tuple[NeedAction, ...]] = {
    **dict.fromkeys(("physics-level", "guidance", "clarification"), (_ANSWER,)),
    "approval": (_YES, _NO),
    **dict.fromkeys(ASK_OF_ATTEMPT, (_ANSWER, _LAND, _RESOLVE, _RETRY, _DROP)),
    "escalation": (_DECIDE,),
    "gap": (_ANSWER,),
    "worker_stopped": (_LOOP,),
    "budget": (_LOOP,),
    "dead_run": (_RELEASE, _RETRY),
    "orphaned_claim": (_RELEASE, _RETRY),
    "silent_run": (_INTERRUPT,),
    "drift": (
        NeedAction("accept", "acknowledge", "accepts the change; workers may pick the bead"),
        NeedAction("hold", "keep workers off", "no worker picks the bead until the change is acknowledged"),
    ),
    "tried": (_RETRY, _HOLD_BACK),
    "focus": (NeedAction("accept", "keep the focus", "updates the focus on these beads"),),
    "proposed": (
        NeedAction("accept", "accept", "opens the bead to workers", "helix-tui set ID status=open"),
        NeedAction("reject", "reject", "cancels the bead for good", "helix-tui cancel ID"),
        _LAND,
    ),
    "preserved_review_blocked": (
        _UNBLOCK,
        _LAND,
        NeedAction("reject", "reject", "cancels the bead for good", "helix-tui cancel ID"),
    ),
    "merge_conflict": (_LAND, _RESOLVE, _RETRY, _DROP),
    "failing_check": (_RETRY, _LAND, _DROP),
    "refused": (_RETRY, _LAND, _DROP),
    "landed_faulted": (
        NeedAction("accept", "close", "leaves the change on the branch and closes the bead", "helix-tui close ID"),
        _RETRY,
        _HOLD_BACK,
    ),
    "kept_aside": (_LAND, _RETRY, _DROP),
    "lesson": (
        NeedAction(
            "accept", "accept", "remembers the lesson; agents are shown it", "helix-tui memory proposals accept REF"
        ),
        NeedAction("reject", "decline", "does not remember the lesson", "helix-tui memory proposals decline REF"),
    ),
    **dict.fromkeys(
        ("cycle", "archived_dependency", "missing_dependency", "cancelled_dependency"),
        (NeedAction("undepend", "remove dependency", "the bead no longer waits for something that never comes"),),
    ),
    "unknown_status": (
        NeedAction("accept", "set open", "gives the bead a status that DDx knows", "helix-tui set ID status=open"),
    ),
    "unread_lines": (
        NeedAction("lines", "list lines", "shows each line that cannot be read, and why", "helix-tui doctor"),
    ),
}
"""Per kind what can be done, the likeliest first; a kind that is new is dealt with on its bead."""


def actions_of(need: Need, without: Collection[ActionId] = ()) -> tuple[NeedAction, ...]:
    """What can be done about a need, but for what makes no sense as it is now."""
    return tuple(each for each in ACTIONS.get(need.kind, ()) if each.id not in without)


LANDING: frozenset[ActionId] = frozenset({"land", "resolve"})
"""What needs a change that an attempt has left beside the branch."""

_NO_CONFLICT: frozenset[ActionId] = frozenset({"resolve"})


def senseless(need: Need, attempt: Attempt | None) -> frozenset[ActionId]:
    """What cannot be done about a need whose attempt is this one: land what was not kept, resolve no conflict."""
    if attempt is None or not attempt.preserved or not kept_ref(attempt):
        return LANDING | {"reject"} if need.kind in ASK_OF_ATTEMPT else LANDING
    return frozenset() if status_of(attempt.status).about == "conflict" else _NO_CONFLICT


def shared_actions(needs: Sequence[Need]) -> tuple[NeedAction, ...]:
    """What can be done about all of some needs together, in the order of the first."""
    ids = [{each.id for each in ACTIONS.get(need.kind, ())} for need in needs]
    common = set.intersection(*ids) if ids else set()
    if len(needs) > 1:
        # each of these opens something for one need: a text, an editor, a list
        common -= {"answer", "resolve", "lines", "loop"}
        if any(need.kind in ASK_OF_ATTEMPT for need in needs):
            common -= {"reject"}  # each is answered by itself
    return tuple(each for each in ACTIONS.get(needs[0].kind, ()) if each.id in common) if needs else ()


def operations_for(action: ActionId, needs: Iterable[Need], queue: Queue) -> list[Operation]:
    """The operations by which an action changes the queue; none for one that is done in another way."""
    found: list[Operation] = []
    for need in needs:
        if need.bead_id in queue.beads:
            found += _operations(action, need, queue)
    return found


def _operations(action: ActionId, need: Need, queue: Queue) -> list[Operation]:
    bead_id = need.bead_id
    if action == "release":
        return [operations.unclaim(bead_id)]
    if action == "accept" and need.kind in ("proposed", "unknown_status"):
        return [operations.assign(bead_id, {"status": "open"})]
    if action == "reject" and need.kind in ("proposed", "preserved_review_blocked"):
        return [operations.cancel(bead_id)]
    if action == "accept" and need.kind == "landed_faulted":
        return [operations.close(bead_id)]
    if action == "reject" and need.kind in ("tried", "landed_faulted"):
        return [operations.eligible(bead_id, False)]
    if action == "reject" and need.attempt_id and need.kind in OF_ITS_ATTEMPT:
        return [operations.drop(bead_id, need.attempt_id, need.kept_rev)]
    if action == "accept" and need.kind == "preserved_review_blocked":
        return [_unblocked(need, queue)]
    if action == "undepend":
        return [operations.undepend(waiter, on) for waiter, on in unmet_edges(need, queue)]
    return []


def _unblocked(need: Need, queue: Queue) -> Operation:
    """What ddx itself writes when a review that held work back is resolved."""
    at, attempt = format_instant(queue.as_of), queue.beads[need.bead_id].review_blocked_attempt
    name = "preserved-review-unblocked-"
    return operations.assign(need.bead_id, {f"{name}at": at, f"{name}attempt": attempt})


def unmet_edges(need: Need, queue: Queue) -> list[tuple[str, str]]:
    """(waiter, prerequisite) of the edges that make a bead wait forever; of a circle the one that frees most."""
    if need.kind == "cycle":
        circle = circle_of(queue, need.bead_id)
        return [(cut.waiter, cut.needed) for cut in circle.cuts[:1]] if circle is not None else []
    targets = queue.beads[need.bead_id].depends_on
    lost = [on for on in targets if on not in queue.beads or queue.beads[on].status == "cancelled"]
    return [(need.bead_id, on) for on in lost]


def assign_to(needs: Iterable[Need], queue: Queue, who: str) -> list[Operation]:
    """Name who is to deal with what waits on some beads; an empty name takes that away."""
    beads = dict.fromkeys(need.bead_id for need in needs if need.bead_id in queue.beads)
    if not who:
        return [operations.clear(bead_id, [ASSIGNED]) for bead_id in beads]
    return [operations.assign(bead_id, {ASSIGNED: who}) for bead_id in beads]
