"""Plan status changes, by the lifecycle of each era.

Rules: docs/formats/ddx.md §1 (lifecycle) and §2. April lets any of its three statuses follow any other; later releases
check each step.
"""

from __future__ import annotations

from typing import Any

from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.editing.kinds.cascade import cascade, near_cascade
from helix_tui.core.editing.kinds.fields import (
    ALIASES,
    must_exist,
    plan_fields,
)
from helix_tui.core.editing.operation import Operation
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.steps import (
    CLAIM_FIELDS,
    OperationRefused,
    PlanBuilder,
    called,
    named,
    option,
)
from helix_tui.core.ground.time import format_instant

BLOCKER_FIELDS = ("lifecycle-external-blocker-reason", "lifecycle-cross-repo-blocker-ref")
"""Fields of a blocked bead, removed when it is unblocked."""

STATUSES = ("open", "in_progress", "blocked", "proposed", "closed", "cancelled")
"""Every status in head."""

_MOVES = {
    "open": {"in_progress", "blocked", "cancelled"},
    "in_progress": {"open", "blocked"},
    "blocked": {"open", "cancelled"},
    "proposed": {"open", "cancelled"},
}
"""Status changes by ``update --status`` in head, besides closing and reopening."""

CLOSING_COMMIT = "closing_commit_sha"
"""Field with the commit that closed a bead."""

AUTO_COMMIT = "git.auto_commit is always"


class ClaimBead(Operation, frozen=True, tag="claim"):
    """Claim a bead with ``update --claim``."""

    assignee: str = ""

    @property
    def saying(self) -> str:
        return "claim {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        status = overlay.status(bead_id)
        if status not in ("open", "in_progress"):
            raise OperationRefused(f"{called(bead_id)} is {status}; only an open bead can be claimed")
        if _held(overlay, bead_id):
            owner = overlay.value(bead_id, "owner") or "somebody"
            raise OperationRefused(
                f"{called(bead_id)} is held by {called(str(owner))} and the claim is fresh; let them finish"
            )
        waits = unclosed(overlay, bead_id)
        if waits and not writing.dialect.gives_out_waiting:
            raise OperationRefused(f"{called(bead_id)} waits on {named(waits)}; ddx gives out no bead that waits")
        if waits:
            writing.notes.append(f"{called(bead_id)} waits on {named(waits)}")
        edits: dict[str, Any] = {"status": "in_progress"}
        if self.assignee:
            edits["owner"] = self.assignee
        beat = {"execute-loop-heartbeat-at": format_instant(overlay.queue.as_of)}
        words = [bead_id, "--claim", *(option("--assignee", self.assignee) if self.assignee else ())]
        writing.add(
            "update",
            words,
            {bead_id: edits},
            # ddx writes the owner, host and time: they are read from the row afterwards
            watched=[(bead_id, field) for field in ("owner", *CLAIM_FIELDS)],
            ripple={bead_id: beat} if writing.dialect.claim_in_row else None,
            leases={bead_id: True} if writing.dialect.leases else None,
        )


class ReleaseBead(Operation, frozen=True, tag="unclaim"):
    """Release a claim with ``update --unclaim``."""

    force: bool = False
    """Even if a live worker is on the bead."""

    @property
    def saying(self) -> str:
        return "release {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        held = (
            overlay.status(bead_id) == "in_progress"
            or overlay.value(bead_id, "owner") is not None
            or any(overlay.value(bead_id, field) is not None for field in CLAIM_FIELDS)
            or overlay.leases.get(bead_id, bead_id in overlay.queue.claims.leases)
        )
        if not held:
            return
        if bead_id in writing.busy and not self.force:
            raise OperationRefused(f"a live worker is on {called(bead_id)}; stop the worker first")
        add_unclaim(writing, bead_id)


def add_unclaim(writing: PlanBuilder, bead_id: str) -> None:
    """Append the command that releases a claim."""
    overlay = writing.overlay
    kept = writing.dialect.kept_heartbeat
    edits: dict[str, Any] = {
        field: None for field in ("owner", *CLAIM_FIELDS) if field != kept and overlay.value(bead_id, field) is not None
    }
    if overlay.status(bead_id) == "in_progress":
        edits["status"] = "open"
    writing.add("update", (bead_id, "--unclaim"), {bead_id: edits}, leases={bead_id: False})


class CloseBead(Operation, frozen=True, tag="close"):
    """Close a bead by hand and without evidence, with ``bead close``."""

    @property
    def saying(self) -> str:
        return "close {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        status = overlay.status(bead_id)
        if status == "closed":
            return
        if status == "cancelled":
            raise OperationRefused(f"{called(bead_id)} is cancelled, which is final, as closed is")
        waits = unclosed(overlay, bead_id)
        if waits and not writing.dialect.closes_waiting:
            raise OperationRefused(
                f"{called(bead_id)} waits on {named(waits)}; close those first, or remove the dependency"
            )
        if waits:
            writing.notes.append(f"{called(bead_id)} still waits on {named(waits)}")
        if bead_id in writing.busy:
            writing.notes.append(f"a live worker is on {called(bead_id)} and will continue")
        add_close(writing, bead_id)


class CloseWithCommit(Operation, frozen=True, tag="close-with-commit"):
    """Close a bead with the commit that did its work."""

    commit: str = ""

    @property
    def saying(self) -> str:
        return "close {} with its commit"

    def plan(self, writing: PlanBuilder) -> None:
        must_exist(writing.overlay, self.bead_id)
        writing.update(self.bead_id, {CLOSING_COMMIT: self.commit})
        CloseBead(self.bead_id).plan(writing)


def add_close(writing: PlanBuilder, bead_id: str) -> None:
    """Append the command that closes a bead, with what ddx will close after it."""
    overlay = writing.overlay
    falls = cascade(overlay, bead_id, writing.dialect)
    for other, status in falls.items():
        writing.notes.append(f"ddx will make {called(other)} {status} too")
    watched = [(other, field) for other in (bead_id, *falls) for field in BLOCKER_FIELDS]
    watched.append((bead_id, CLOSING_COMMIT))
    # the first of several commits everything staged
    verb = writing.dialect.words("close")
    if writing.dialect.commits_staged and not any(step.args[: len(verb)] == verb for step in writing.steps):
        writing.notes.append(f"ddx commits what is staged with it: {AUTO_COMMIT}")
    if writing.dialect.lifecycle:
        watched += [(other, "status") for other in near_cascade(overlay, bead_id)]
    writing.add(
        "close",
        (bead_id,),
        {bead_id: {"status": "closed"}},
        watched=watched,
        ripple={other: {"status": status} for other, status in falls.items()},
        leases={bead_id: False},
    )


class ReopenBead(Operation, frozen=True, tag="reopen"):
    """Open a closed bead again with ``bead reopen``, which clears the claim and leaves an event."""

    reason: str = ""
    notes: str = ""
    """They are appended."""

    @property
    def saying(self) -> str:
        return "reopen {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        status = overlay.status(bead_id)
        if status != "closed":
            hint = "a cancelled bead stays cancelled" if status == "cancelled" else "only a closed bead can be reopened"
            raise OperationRefused(f"{called(bead_id)} is {status}; {hint}")
        add_reopen(writing, bead_id, self.reason, self.notes)


def add_reopen(writing: PlanBuilder, bead_id: str, reason: str, notes: str = "") -> None:
    """Append the command that opens a closed bead."""
    overlay = writing.overlay
    edits: dict[str, Any] = {"status": "open"}
    kept = writing.dialect.kept_heartbeat
    for field in ("owner", *CLAIM_FIELDS):
        if field != kept and overlay.value(bead_id, field) is not None:
            edits[field] = None
    words = [bead_id]
    if reason:
        words += option("--reason", reason)
    if notes:
        words += option("--append-notes", notes)
        have = overlay.value(bead_id, "notes")
        edits["notes"] = f"{have}\n\n{notes}" if have else notes
    writing.add("reopen", words, {bead_id: edits})


class CancelBead(Operation, frozen=True, tag="cancel"):
    """Cancel a bead with ``update --status cancelled``, which is final."""

    @property
    def saying(self) -> str:
        return "cancel {}"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, bead_id = writing.overlay, self.bead_id
        must_exist(overlay, bead_id)
        status = overlay.status(bead_id)
        if not writing.dialect.lifecycle:
            raise OperationRefused("this ddx has no status cancelled; close the bead, or make it not eligible")
        if status == "cancelled":
            return
        if status == "closed":
            raise OperationRefused(f"{called(bead_id)} is closed and cannot be cancelled; reopen it first")
        if bead_id in writing.busy:
            raise OperationRefused(f"a live worker is on {called(bead_id)}; stop the worker first")
        # ddx lets cancelled follow open, and not in_progress
        if status == "in_progress":
            add_unclaim(writing, bead_id)
        waiting = [
            other
            for other in overlay.queue.graph.dependents.get(bead_id, ())
            if overlay.status(other) not in TERMINAL and bead_id in overlay.depends_on(other)
        ]
        if waiting:
            wait = "waits on it and never becomes" if len(waiting) == 1 else "wait on it and never become"
            writing.notes.append(f"{named(waiting)} {wait} ready: cancelled is not closed")
        add_status(writing, bead_id, "cancelled")


class SetFields(Operation, frozen=True, tag="set"):
    """Set fields by name, as ``helix-tui set``, then the status with its own command."""

    fields: dict[str, str]
    """Name or alias -> text; known names go where ddx keeps them."""

    @property
    def saying(self) -> str:
        return f"set {', '.join(map(called, self.fields))} of {{}}"

    def plan(self, writing: PlanBuilder) -> None:
        given = {ALIASES.get(name, name): text for name, text in self.fields.items()}
        reason = ""
        if given.get("status") == "blocked":
            # the reason goes into the command that blocks: ddx refuses that without one
            reason = given.pop(BLOCKER_FIELDS[0], "")
        plan_fields(writing, self.bead_id, given)
        if "status" in given:
            plan_status(writing, self.bead_id, given["status"], reason)


def plan_status(writing: PlanBuilder, bead_id: str, status: str, reason: str = "") -> None:
    """Set a status with its own command, as ``--set status=`` is lost."""
    overlay = writing.overlay
    have = overlay.status(bead_id)
    if status == have:
        return
    if status == "closed":
        CloseBead(bead_id).plan(writing)
    elif status == "cancelled":
        CancelBead(bead_id).plan(writing)
    elif status == "open" and have == "closed":
        ReopenBead(bead_id, reason).plan(writing)
    elif status == "proposed":
        raise OperationRefused("only a worker parks a bead as proposed; ddx has no command for it")
    elif not writing.dialect.lifecycle and status not in ("open", "in_progress"):
        raise OperationRefused(f"this ddx knows open, in_progress and closed, not “{called(status)}”")
    elif status not in STATUSES:
        raise OperationRefused(f"there is no status “{called(status)}”; there are {', '.join(STATUSES)}")
    elif writing.dialect.lifecycle and status not in _MOVES.get(have, set()):
        raise OperationRefused(f"{called(bead_id)} is {called(have)}, and ddx lets no {called(status)} follow that")
    elif status == "blocked" and not reason.strip():
        raise OperationRefused("a blocked bead needs a reason: set lifecycle-external-blocker-reason=… with it")
    else:
        add_status(writing, bead_id, status, reason)


def add_status(writing: PlanBuilder, bead_id: str, status: str, reason: str = "") -> None:
    """Append ``update --status``."""
    overlay = writing.overlay
    words = [bead_id, "--status", status]
    edits: dict[str, Any] = {"status": status}
    if status == "blocked":
        name = BLOCKER_FIELDS[0]
        edits[name] = reason
        words += (
            option("--external-blocker-reason", reason)
            if writing.dialect.blocker_reason
            else option("--set", f"{name}={reason}")
        )
    else:
        # an unblocked bead loses its reasons
        edits |= {name: None for name in BLOCKER_FIELDS if overlay.value(bead_id, name) is not None}
    writing.add("update", words, {bead_id: edits}, watched=[(bead_id, "work-consecutive-wedges")])


def unclosed(overlay: Overlay, bead_id: str) -> tuple[str, ...]:
    """Unclosed ids that a bead waits for, including missing ones."""
    return tuple(target for target in overlay.depends_on(bead_id) if overlay.status(target) != "closed")


def _held(overlay: Overlay, bead_id: str) -> bool:
    """Whether a bead has a fresh claim."""
    if bead_id in overlay.leases:
        return overlay.leases[bead_id]
    if bead_id not in overlay.queue.beads:
        return False
    return any(reason.kind == "claimed" for reason in overlay.queue.standing(bead_id).reasons)
