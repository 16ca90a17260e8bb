"""Planning of a new bead.

``--priority`` is always passed, for without it ddx makes a bead P0 (docs/formats/ddx.md §1); notes and, where
``--depends-on`` is not known, dependencies follow as commands of their own.
"""

from __future__ import annotations

from typing import Any

from helix_tui.core.editing.operations import Operation
from helix_tui.core.editing.overlay import edge
from helix_tui.core.editing.plan.fields import (
    KEPT_BY_DDX,
    OWN_COMMAND,
    check_labels,
    checked_priority,
    must_exist,
)
from helix_tui.core.editing.steps import FLAGS, NEW, OperationRefused, PlanBuilder, called, option, stored
from helix_tui.core.ground.time import format_instant


def plan_create(writing: PlanBuilder, operation: Operation) -> None:
    """``bead create``, then what it has no flag for."""
    overlay, wanted = writing.overlay, operation.values
    title = str(wanted["title"])
    if not title.strip():
        raise OperationRefused("every bead has a title; write one")
    check_labels(wanted["labels"])
    level = checked_priority(wanted["priority"])
    if wanted["parent"]:
        must_exist(overlay, wanted["parent"])
    targets = tuple(dict.fromkeys(wanted["depends_on"]))
    for target in targets:
        must_exist(overlay, target, "ddx accepts no dependency on a bead that is not in the tracker")
        if not writing.dialect.waits_on_parents and _above(writing, wanted["parent"], target):
            raise OperationRefused(
                f"{called(target)} is above the new bead in the tree, and ddx lets no bead wait on one above it"
            )
    place = NEW if NEW not in overlay else f"(new {len(overlay.added) + 1})"
    extra = _extra(writing, wanted)
    row: dict[str, Any] = {
        "title": title,
        "status": "open",
        "priority": level,
        "issue_type": wanted["issue_type"] or "task",
        "labels": list(wanted["labels"]) or None,
        "parent": wanted["parent"] or None,
        "acceptance": wanted["acceptance"] or None,
        "description": wanted["description"] or None,
        **extra,
    }
    words = ["bead", "create"]
    if not title.startswith("-"):
        words.append(title)
    words += option("--type", row["issue_type"]) + option("--priority", str(level))
    for name in ("labels", "parent", "acceptance", "description"):
        if row[name]:
            words += option(FLAGS[name], ",".join(row[name]) if name == "labels" else row[name])
    for name, value in extra.items():
        words += option("--set", f"{name}={'true' if value is True else 'false' if value is False else value}")
    if targets and writing.dialect.depends_on:
        words += option("--depends-on", ",".join(targets))
        row["dependencies"] = [edge(place, target) for target in targets]
    if title.startswith("-"):
        words += ["--", title]
    born = {"created_at": format_instant(overlay.queue.as_of)}
    writing.add(words, {place: row}, ripple={place: born}, creates=place)
    _afterwards(writing, place, targets, str(wanted["notes"]))


def _afterwards(writing: PlanBuilder, place: str, targets: tuple[str, ...], notes: str) -> None:
    """What ``bead create`` has no flag for."""
    if targets and not writing.dialect.depends_on:
        for target in targets:
            edges = [*(writing.overlay.value(place, "dependencies") or ()), edge(place, target)]
            writing.add(("bead", "dep", "add", place, target), {place: {"dependencies": edges}})
    if notes:
        writing.update(place, {"notes": notes})


def _extra(writing: PlanBuilder, wanted: Any) -> dict[str, Any]:
    fields = {"spec-id": wanted["spec_id"], **wanted["fields"]}
    extra = {}
    for name, text in fields.items():
        if name in KEPT_BY_DDX or name in OWN_COMMAND or name in FLAGS or name in ("status", "issue_type"):
            raise OperationRefused(f"“{called(name)}” is not set with --set at creation; it has its own option or none")
        if text:
            value = stored(name, text, writing.dialect)
            # At creation a rank stays the text that was given.
            extra[name] = text if name == "queue-rank" else value
    return extra


def _above(writing: PlanBuilder, parent: str, target: str) -> bool:
    seen: set[str] = set()
    while parent and parent not in seen:
        if parent == target:
            return True
        seen.add(parent)
        parent = writing.overlay.parent(parent)
    return False
