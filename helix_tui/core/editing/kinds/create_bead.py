"""Plan a new bead.

It always gets a ``--priority``, as ddx defaults to P0; notes and, without ``--depends-on``, dependencies follow as
separate commands (docs/formats/ddx.md §2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helix_tui.core.editing.kinds.fields import (
    KEPT_BY_DDX,
    OWN_COMMAND,
    chain,
    check_labels,
    checked_priority,
    must_exist,
)
from helix_tui.core.editing.operation import Operation
from helix_tui.core.editing.steps import FLAGS, NEW, OperationRefused, PlanBuilder, called, option, stored
from helix_tui.core.editing.values import edge
from helix_tui.core.ground.time import format_instant


class CreateBead(Operation, frozen=True, kw_only=True, tag="create"):
    """Make a new bead with ``bead create``, then with commands for what that has no flag for. The priority is always
    passed, as ddx defaults to P0.
    """

    title: str
    bead_id: str = ""
    """Empty: it has no id yet."""
    issue_type: str = "task"
    priority: int = 2
    labels: Sequence[str] = ()
    parent: str = ""
    depends_on: Sequence[str] = ()
    spec_id: str = ""
    acceptance: str = ""
    description: str = ""
    notes: str = ""
    fields: dict[str, str] = {}

    @property
    def saying(self) -> str:
        return f"create “{called(self.title)}”"

    def plan(self, writing: PlanBuilder) -> None:
        overlay, title = writing.overlay, self.title
        if not title.strip():
            raise OperationRefused("every bead has a title; write one")
        check_labels(self.labels)
        level = checked_priority(self.priority)
        if self.parent:
            must_exist(overlay, self.parent)
        targets = tuple(dict.fromkeys(self.depends_on))
        for target in targets:
            must_exist(overlay, target, "ddx accepts no dependency on a bead that is not in the tracker")
            if not writing.dialect.waits_on_parents and target in chain(self.parent, writing.overlay.parent):
                raise OperationRefused(
                    f"{called(target)} is above the new bead in the tree, and ddx lets no bead wait on one above it"
                )
        # one plan may create several beads, each with its own placeholder
        place = NEW if NEW not in overlay else f"(new {len(overlay.added) + 1})"
        extra = _extra(writing, self)
        # the row that ddx will write, then the arguments for it
        row: dict[str, Any] = {
            "title": title,
            "status": "open",
            "priority": level,
            "issue_type": self.issue_type or "task",
            "labels": list(self.labels) or None,
            "parent": self.parent or None,
            "acceptance": self.acceptance or None,
            "description": self.description or None,
            **extra,
        }
        words: list[str] = []
        # a title that looks like a flag is given last, after --
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
        writing.add("create", words, {place: row}, ripple={place: born}, creates=place)
        _afterwards(writing, place, targets, self.notes)


def _afterwards(writing: PlanBuilder, place: str, targets: tuple[str, ...], notes: str) -> None:
    """Add the commands for what ``bead create`` has no flag for."""
    if targets and not writing.dialect.depends_on:
        for target in targets:
            edges = [*(writing.overlay.value(place, "dependencies") or ()), edge(place, target)]
            writing.add("dep", ("add", place, target), {place: {"dependencies": edges}})
    if notes:
        writing.update(place, {"notes": notes})


def _extra(writing: PlanBuilder, wanted: CreateBead) -> dict[str, Any]:
    fields = {"spec-id": wanted.spec_id, **wanted.fields}
    extra = {}
    for name, text in fields.items():
        if name in KEPT_BY_DDX or name in OWN_COMMAND or name in FLAGS or name in ("status", "issue_type"):
            raise OperationRefused(f"“{called(name)}” is not set with --set at creation; it has its own option or none")
        if text:
            value = stored(name, text, writing.dialect)
            # At creation a rank stays text.
            extra[name] = text if name == "queue-rank" else value
    return extra
