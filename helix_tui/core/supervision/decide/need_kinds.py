"""The kinds of things that wait for a person: one record each, with sign, heading and what can be done about it.

An action that changes the queue makes a few `Operation`s, planned, shown, journalled and undone like every other
change. Other actions (a lesson, an answer, landing a kept change, another attempt, putting off) are done by the caller,
by the action's id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, cast

from msgspec import Struct

from helix_tui.core.beads.graph import circle_of
from helix_tui.core.editing import operations
from helix_tui.core.editing.operations import Operation
from helix_tui.core.ground.time import format_instant

if TYPE_CHECKING:
    from helix_tui.core.beads.readiness import Queue
    from helix_tui.core.supervision.decide.needs import Need

KindName = Literal[
    "physics-level",
    "contradiction",
    "guidance",
    "approval",
    "ddx_refuses",
    "worker_stopped",
    "budget",
    "dead_run",
    "silent_run",
    "orphaned_claim",
    "conflict",
    "ambiguous",
    "escalation",
    "clarification",
    "gap",
    "drift",
    "tried",
    "focus",
    "proposed",
    "preserved_review_blocked",
    "merge_conflict",
    "failing_check",
    "refused",
    "landed_faulted",
    "kept_aside",
    "blocked_external",
    "lesson",
    "cycle",
    "archived_dependency",
    "missing_dependency",
    "cancelled_dependency",
    "unknown_status",
    "unread_lines",
]

Group = Literal[
    "questions",
    "stopped",
    "budgets reached",
    "stale claims",
    "silent workers",
    "decisions",
    "merge conflicts",
    "failing checks",
    "refused by review",
    "failed after landing",
    "kept aside",
    "skipped in the last run",
    "drift",
    "focus",
    "proposals",
    "blocked outside",
    "lessons",
    "broken dependencies",
    "unreadable",
]

GROUPS: Mapping[Group, str] = {
    "questions": "question",
    "stopped": "stopped",
    "budgets reached": "budget reached",
    "stale claims": "stale claim",
    "silent workers": "silent worker",
    "decisions": "decision",
    "merge conflicts": "merge conflict",
    "failing checks": "failing check",
    "refused by review": "refused by review",
    "failed after landing": "failed after landing",
    "kept aside": "kept aside",
    "skipped in the last run": "skipped in the last run",
    "drift": "drift",
    "focus": "focus",
    "proposals": "proposal",
    "blocked outside": "blocked outside",
    "lessons": "lesson",
    "broken dependencies": "broken dependency",
    "unreadable": "unreadable",
}
"""The headings, the most urgent first, each as for a single need."""

ActionId = Literal[
    "answer", "accept", "reject", "release", "retry", "land", "resolve", "undepend", "hold", "loop", "lines"
]

Means = Literal["change", "approval", "drop", "lesson", "acknowledge", "focus"]
"""How an acceptance or a rejection is carried out: a change of the queue, the answer to an approval or to a question
about a kept change, a lesson settled, drift marked as seen, the focus brought up to date.
"""

Change = Callable[["Need", "Queue"], list[Operation]]
"""The operations with which an action changes the queue, for a need whose bead is in it."""

_ATTENTION = "attention bold"


class NeedAction(Struct, frozen=True):
    """One way to deal with a need."""

    id: ActionId
    label: str
    """A verb in the imperative."""
    effect: str
    """What it does, in one sentence."""
    command: str = ""
    """The command line for it; ``ID``, ``REF`` and ``QUESTION`` are replaced by those of the need."""
    change: Change | None = None
    means: Means = "change"
    objects: str = ""
    """What it acts on, where the label names one of them."""

    def label_for(self, number: int) -> str:
        """The label for a number of needs: ``release all 23 claims``."""
        if number == 1:
            return self.label
        if self.objects:
            return f"{self.label.partition(' ')[0]} all {number:,} {self.objects}"
        return f"{self.label} all {number:,}"

    def command_for(self, need: Need) -> str:
        """The command line for one need; "" if there is none."""
        words = {"ID": need.bead_id, "REF": need.ref, "QUESTION": need.question_id}
        return " ".join(words.get(word, word) for word in self.command.split())

    def command_in(self, needs: Sequence[Need]) -> str:
        """The command line below a list of needs: with a placeholder where they differ."""
        return self.command_for(needs[0]) if len(needs) == 1 or self.command == "REF" else self.command


def _open(need: Need, queue: Queue) -> list[Operation]:
    return [operations.SetFields(need.bead_id, {"status": "open"})]


def _cancel(need: Need, queue: Queue) -> list[Operation]:
    return [operations.CancelBead(need.bead_id)]


def _close(need: Need, queue: Queue) -> list[Operation]:
    return [operations.CloseBead(need.bead_id)]


def _hold_back(need: Need, queue: Queue) -> list[Operation]:
    return [operations.SetEligible(need.bead_id, False)]


def _release(need: Need, queue: Queue) -> list[Operation]:
    return [operations.ReleaseBead(need.bead_id)]


def _drop(need: Need, queue: Queue) -> list[Operation]:
    return [operations.DropChange(need.bead_id, need.attempt_id, need.kept_rev)] if need.attempt_id else []


def _unblock(need: Need, queue: Queue) -> list[Operation]:
    """The fields that ddx itself writes when a blocking review is resolved."""
    at, attempt = format_instant(queue.as_of), queue.beads[need.bead_id].review_blocked_attempt
    name = "preserved-review-unblocked-"
    return [operations.SetFields(need.bead_id, {f"{name}at": at, f"{name}attempt": attempt})]


def _undepend(need: Need, queue: Queue) -> list[Operation]:
    return [operations.RemoveDependency(waiter, on) for waiter, on in unmet_edges(need, queue)]


def unmet_edges(need: Need, queue: Queue) -> list[tuple[str, str]]:
    """(waiting bead, prerequisite) of edges that make a bead wait forever; of a cycle, the one that frees most."""
    if need.kind == "cycle":
        circle = circle_of(queue, need.bead_id)
        return [(cut.waiter, cut.needed) for cut in circle.cuts[:1]] if circle is not None else []
    targets = queue.beads[need.bead_id].depends_on
    lost = [on for on in targets if on not in queue.beads or queue.beads[on].status == "cancelled"]
    return [(need.bead_id, on) for on in lost]


_ANSWER = NeedAction(
    "answer",
    "answer",
    "records the answer where the next agent reads it, and frees the bead",
    "helix-tui input --answer QUESTION TEXT",
)
_SETTLE = NeedAction(
    "answer", "answer", "records which of the two holds, where the next agent reads it", "helix-tui check"
)
_YES = NeedAction(
    "accept", "approve", "lets the run do this once", "helix-tui input --answer QUESTION yes", means="approval"
)
_NO = NeedAction(
    "reject", "refuse", "the run continues without this", "helix-tui input --answer QUESTION no", means="approval"
)
_DECIDE = NeedAction("answer", "decide", "records the decision in the bead that it is about, and closes this one")
_RELEASE = NeedAction(
    "release",
    "release claim",
    "ends the claim; the preview says if the bead becomes ready",
    "helix-tui unclaim ID",
    _release,
    objects="claims",
)
RELEASE_PARKED = NeedAction(
    "release",
    "release claim",
    "ends the claim; the bead still waits for your decision",
    "helix-tui unclaim ID",
    _release,
    objects="claims",
)
"""In place of the action of a stale claim, where the bead waits for a decision too."""
_RETRY = NeedAction(
    "retry", "retry", "runs the bead again with a model of your choice; costs money", "helix-tui build ID"
)
_LAND = NeedAction("land", "land", "merges the kept change into the branch and closes the bead")
_DROP = NeedAction("reject", "drop", "leaves the kept change at its ref; the next attempt starts over", change=_drop)
_DROP_ANSWER = NeedAction(
    "reject", "drop", "leaves the kept change at its ref; the next attempt starts over", means="drop"
)
_RESOLVE = NeedAction(
    "resolve", "resolve in $EDITOR", "opens the conflicts in your editor, then previews the merge and the closing"
)
_HOLD = NeedAction("hold", "keep workers off", "no worker picks the bead until you decide", "helix-tui check --apply")
_HOLD_BACK = NeedAction(
    "reject", "make not eligible", "no worker picks the bead", "helix-tui eligible ID off", _hold_back
)
_CANCEL = NeedAction("reject", "reject", "cancels the bead for good", "helix-tui cancel ID", _cancel)
_INTERRUPT = NeedAction("loop", "stop worker", "opens the loop controls, with what can end this worker")
_LOOP = NeedAction("loop", "start worker", "opens the loop controls: what would run, and what it may cost")
_REMOVE = NeedAction(
    "undepend",
    "remove dependency",
    "the bead no longer waits for something that never comes",
    change=_undepend,
    objects="dependencies",
)


class NeedKind(Struct, frozen=True):
    """What there is to know of one kind."""

    glyph: str
    ink: str
    word: str
    group: Group
    actions: tuple[NeedAction, ...]
    """The likeliest first."""
    attempt: Literal["", "told", "left"] = ""
    """``told``: the last attempt on the bead is its evidence. ``left``: that attempt is what waits; it is listed once a
    bead, unless something else asks about it.
    """
    covers: bool = False
    """Whether it asks what to do with what the bead's attempt left."""
    silent: bool = False
    """Whether it holds nothing up, so that nobody is notified of it."""
    opens: Literal["bead", "attempt", "question", "lines"] = "bead"
    """What enter on it opens; without one of these the bead, without a bead the loop."""


_OF_AN_ATTEMPT = (_ANSWER, _RESOLVE, _LAND, _RETRY, _DROP_ANSWER)

KINDS: Mapping[KindName, NeedKind] = {
    "physics-level": NeedKind(
        "!", "error bold", "contradiction", "questions", (_ANSWER,), covers=True, opens="question"
    ),
    "contradiction": NeedKind("◆", _ATTENTION, "contradiction", "questions", (_SETTLE,), opens="question"),
    "guidance": NeedKind("?", _ATTENTION, "guidance", "questions", (_ANSWER,), opens="question"),
    "approval": NeedKind("?", _ATTENTION, "approval", "questions", (_YES, _NO), covers=True),
    "ddx_refuses": NeedKind(
        "!",
        "error bold",
        "ddx refuses",
        "stopped",
        (NeedAction("lines", "open bead", "shows the first bead for which ddx refuses, or the loop", "REF"),),
    ),
    "worker_stopped": NeedKind("!", "error bold", "stopped", "stopped", (_LOOP,)),
    "budget": NeedKind("!", _ATTENTION, "budget", "budgets reached", (_LOOP,)),
    "dead_run": NeedKind("!", "error bold", "dead worker", "stale claims", (_RELEASE, _RETRY)),
    "silent_run": NeedKind("!", "error bold", "silent worker", "silent workers", (_INTERRUPT,)),
    "orphaned_claim": NeedKind("!", "error bold", "stale claim", "stale claims", (_RELEASE, _RETRY)),
    "conflict": NeedKind(
        "◆", _ATTENTION, "kept change", "questions", _OF_AN_ATTEMPT, "told", covers=True, opens="question"
    ),
    "ambiguous": NeedKind(
        "◆", _ATTENTION, "needs a decision", "questions", _OF_AN_ATTEMPT, "told", covers=True, opens="question"
    ),
    "escalation": NeedKind("◆", _ATTENTION, "escalation", "decisions", (_DECIDE,), opens="question"),
    "clarification": NeedKind("?", _ATTENTION, "clarification", "questions", (_ANSWER,), opens="question"),
    "gap": NeedKind("?", "attention", "gap", "decisions", (_ANSWER,), opens="question"),
    "drift": NeedKind(
        "◆",
        _ATTENTION,
        "drift",
        "drift",
        (
            NeedAction("accept", "acknowledge", "accepts the change; workers may pick the bead", means="acknowledge"),
            _HOLD,
        ),
    ),
    "tried": NeedKind(
        "✗", "error", "skipped", "skipped in the last run", (_RETRY, _HOLD_BACK), "told", opens="attempt"
    ),
    "focus": NeedKind(
        "◆",
        _ATTENTION,
        "focus",
        "focus",
        (NeedAction("accept", "keep the focus", "updates the focus on these beads", means="focus"),),
    ),
    "proposed": NeedKind(
        "◆",
        _ATTENTION,
        "proposed",
        "proposals",
        (
            NeedAction("accept", "accept", "opens the bead to workers", "helix-tui set ID status=open", _open),
            _CANCEL,
            _RESOLVE,
            _LAND,
        ),
        "told",
        covers=True,
    ),
    "preserved_review_blocked": NeedKind(
        "◆",
        _ATTENTION,
        "review",
        "refused by review",
        (
            NeedAction(
                "accept", "reopen", "counts the review as resolved, so that workers may pick the bead", change=_unblock
            ),
            _CANCEL,
            _RESOLVE,
            _LAND,
        ),
        "told",
        covers=True,
    ),
    "merge_conflict": NeedKind(
        "◆",
        _ATTENTION,
        "merge conflict",
        "merge conflicts",
        (_RESOLVE, _LAND, _RETRY, _DROP),
        "left",
        opens="attempt",
    ),
    "failing_check": NeedKind(
        "✗",
        _ATTENTION,
        "failing check",
        "failing checks",
        (_RETRY, _RESOLVE, _LAND, _DROP),
        "left",
        opens="attempt",
    ),
    "refused": NeedKind(
        "◆",
        _ATTENTION,
        "refused",
        "refused by review",
        (_RETRY, _DROP, _HOLD, _RESOLVE, _LAND),
        "left",
        opens="attempt",
    ),
    "landed_faulted": NeedKind(
        "!",
        _ATTENTION,
        "fault found",
        "failed after landing",
        (
            NeedAction(
                "accept", "close", "leaves the change on the branch and closes the bead", "helix-tui close ID", _close
            ),
            _RETRY,
            _HOLD_BACK,
        ),
        "left",
        opens="attempt",
    ),
    "kept_aside": NeedKind(
        "◆", _ATTENTION, "kept aside", "kept aside", (_RESOLVE, _LAND, _RETRY, _DROP), "left", opens="attempt"
    ),
    "blocked_external": NeedKind(
        "⊘",
        "error",
        "blocked outside",
        "blocked outside",
        (
            NeedAction(
                "accept",
                "reopen",
                "says that the blocker is gone, and opens the bead",
                "helix-tui set ID status=open",
                _open,
            ),
            _CANCEL,
        ),
    ),
    "lesson": NeedKind(
        "◆",
        "attention",
        "lesson",
        "lessons",
        (
            NeedAction(
                "accept",
                "accept",
                "remembers the lesson; agents are shown it",
                "helix-tui memory proposals accept REF",
                means="lesson",
            ),
            NeedAction(
                "reject",
                "decline",
                "does not remember the lesson",
                "helix-tui memory proposals decline REF",
                means="lesson",
            ),
        ),
        silent=True,
        opens="attempt",
    ),
    "cycle": NeedKind("↻", "error", "cycle", "broken dependencies", (_REMOVE,)),
    "archived_dependency": NeedKind("?", "error", "archived", "broken dependencies", (_REMOVE,)),
    "missing_dependency": NeedKind("?", "error", "missing", "broken dependencies", (_REMOVE,)),
    "cancelled_dependency": NeedKind("✗", "error", "cancelled", "broken dependencies", (_REMOVE,)),
    "unknown_status": NeedKind(
        "?",
        _ATTENTION,
        "unknown",
        "unreadable",
        (
            NeedAction(
                "accept", "set open", "gives the bead a status that DDx knows", "helix-tui set ID status=open", _open
            ),
        ),
    ),
    "unread_lines": NeedKind(
        "?",
        _ATTENTION,
        "unread",
        "unreadable",
        (NeedAction("lines", "list lines", "shows each line that cannot be read, and why", "helix-tui doctor"),),
        opens="lines",
    ),
}
"""Every kind, the most urgent first."""

SILENT = frozenset(name for name, kind in KINDS.items() if kind.silent)
"""Kinds of which nobody is notified."""

RANK: Mapping[KindName, int] = {name: place for place, name in enumerate(KINDS)}

STALE_CLAIMS = tuple(name for name, kind in KINDS.items() if kind.group == "stale claims")
"""Kinds of claims whose worker is gone."""

ASK_OF_ATTEMPT = tuple(name for name, kind in KINDS.items() if kind.actions is _OF_AN_ATTEMPT)
"""Kinds of questions about an attempt."""


def kind_named(name: str) -> KindName | None:
    """The kind of this name, which may come from a file; None if there is none."""
    return cast(KindName, name) if name in KINDS else None
