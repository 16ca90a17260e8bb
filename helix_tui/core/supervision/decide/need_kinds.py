"""The kinds of things that wait for a person."""

KINDS = (
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
)
"""The kinds of needs, the most urgent first."""


OF_ITS_ATTEMPT = ("merge_conflict", "failing_check", "refused", "landed_faulted", "kept_aside")
"""Kinds that a bead's latest attempt leaves for a person: listed once per bead, unless a question covers it."""

STALE_CLAIMS = ("dead_run", "orphaned_claim")
"""Kinds of claims whose worker is gone."""

GROUPS: dict[str, tuple[str, ...]] = {
    "questions": ("physics-level", "contradiction", "guidance", "approval", "conflict", "ambiguous", "clarification"),
    "stopped": ("ddx_refuses", "worker_stopped"),
    "budgets reached": ("budget",),
    "stale claims": ("dead_run", "orphaned_claim"),
    "silent workers": ("silent_run",),
    "decisions": ("escalation", "gap"),
    "merge conflicts": ("merge_conflict",),
    "failing checks": ("failing_check",),
    "refused by review": ("refused", "preserved_review_blocked"),
    "landed with a fault": ("landed_faulted",),
    "kept aside": ("kept_aside",),
    "passed over": ("tried",),
    "drift": ("drift",),
    "focus": ("focus",),
    "proposals": ("proposed",),
    "blocked outside": ("blocked_external",),
    "lessons": ("lesson",),
    "broken dependencies": ("cycle", "archived_dependency", "missing_dependency", "cancelled_dependency"),
    "unreadable": ("unknown_status", "unread_lines"),
}
"""Each group's heading and kinds, the most urgent group first."""

_GROUP_OF = {kind: name for name, kinds in GROUPS.items() for kind in kinds}


def group_of(kind: str) -> str:
    """The group a kind is listed in; a kind that no group has counts as unreadable."""
    return _GROUP_OF.get(kind, "unreadable")
