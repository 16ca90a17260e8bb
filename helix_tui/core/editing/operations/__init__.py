"""The operations on the queue as data: the kind, the bead, the values.

An operation states an intention. `plan.plan` turns operations into ddx commands for one state of the tracker,
each with its preconditions and effects; neither changes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct


class Operation(Struct, frozen=True):
    """One requested change. ``values`` are the arguments of the function that made it."""

    kind: str
    bead_id: str = ""
    """The bead it is about; empty for a creation."""
    values: Mapping[str, Any] = {}


def eligible(bead_id: str, on: bool) -> Operation:
    """Let workers pick a bead, or keep them from it."""
    return Operation("eligible", bead_id, {"on": on})


def supersede(bead_id: str, by: str | None) -> Operation:
    """Mark a bead as superseded by another one; None clears that."""
    return Operation("supersede", bead_id, {"by": by})


def depend(bead_id: str, on: str) -> Operation:
    """Let a bead wait for another one."""
    return Operation("depend", bead_id, {"on": on})


def undepend(bead_id: str, on: str) -> Operation:
    """Let a bead no longer wait for another one."""
    return Operation("undepend", bead_id, {"on": on})


def parent(bead_id: str, under: str | None) -> Operation:
    """Put a bead under another one; None puts it under none."""
    return Operation("parent", bead_id, {"under": under})


def priority(bead_id: str, level: int) -> Operation:
    """Set the priority, 0 the highest."""
    return Operation("priority", bead_id, {"level": level})


def rank(bead_id: str, *, before: str = "", after: str = "", top: bool = False) -> Operation:
    """Move a bead inside its priority; without a place its rank is cleared."""
    return Operation("rank", bead_id, {"before": before, "after": after, "top": top})


def label(bead_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()) -> Operation:
    """Add and remove labels; the others stay."""
    return Operation("label", bead_id, {"add": tuple(add), "remove": tuple(remove)})


def claim(bead_id: str, assignee: str = "") -> Operation:
    """Claim a bead."""
    return Operation("claim", bead_id, {"assignee": assignee})


def unclaim(bead_id: str, *, force: bool = False) -> Operation:
    """Release a claim; with ``force`` even if a live worker is on the bead."""
    return Operation("unclaim", bead_id, {"force": force})


def close(bead_id: str) -> Operation:
    """Close a bead by hand."""
    return Operation("close", bead_id)


def reopen(bead_id: str, reason: str = "", notes: str = "") -> Operation:
    """Open a closed bead again; ``notes`` are appended."""
    return Operation("reopen", bead_id, {"reason": reason, "notes": notes})


def cancel(bead_id: str) -> Operation:
    """Cancel a bead for good."""
    return Operation("cancel", bead_id)


DROPPED = "helix-dropped"
"""Field that names the attempt whose kept change was dropped by a person."""


def drop(bead_id: str, attempt_id: str, rev: str = "") -> Operation:
    """Drop an attempt's kept change; ``rev`` is its commit, if known."""
    return Operation("drop", bead_id, {"attempt_id": attempt_id, "rev": rev})


def assign(bead_id: str, fields: Mapping[str, str]) -> Operation:
    """Set fields by name, as ``helix-tui set``; known names go where ddx keeps them."""
    return Operation("set", bead_id, {"fields": dict(fields)})


def clear(bead_id: str, names: Iterable[str]) -> Operation:
    """Remove fields by name."""
    return Operation("unset", bead_id, {"names": tuple(names)})


def create(
    title: str,
    *,
    issue_type: str = "task",
    priority: int = 2,
    labels: Iterable[str] = (),
    parent: str = "",
    depends_on: Iterable[str] = (),
    spec_id: str = "",
    acceptance: str = "",
    description: str = "",
    notes: str = "",
    fields: Mapping[str, str] | None = None,
) -> Operation:
    """Make a new bead. Its priority is always passed, as ddx defaults to P0."""
    return Operation(
        "create",
        "",
        {
            "title": title,
            "issue_type": issue_type,
            "priority": priority,
            "labels": tuple(labels),
            "parent": parent,
            "depends_on": tuple(depends_on),
            "spec_id": spec_id,
            "acceptance": acceptance,
            "description": description,
            "notes": notes,
            "fields": dict(fields or {}),
        },
    )


VALUES: Mapping[str, frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in {
        "eligible": "on",
        "supersede": "by",
        "depend": "on",
        "undepend": "on",
        "parent": "under",
        "priority": "level",
        "rank": "before after top",
        "label": "add remove",
        "claim": "assignee",
        "unclaim": "force",
        "close": "",
        "reopen": "reason notes",
        "cancel": "",
        "drop": "attempt_id rev",
        "set": "fields",
        "unset": "names",
        "create": "title issue_type priority labels parent depends_on spec_id acceptance description notes fields",
    }.items()
}
"""Kind to the names of its values, which a recorded operation needs to be planned again."""
