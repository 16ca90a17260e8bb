"""Reviews and alignment as beads in the queue, and follow-ups for acceptance that failed.

Rules: docs/formats/helix.md §3.6 and §3.9, docs/decisions/0007.
One open bead per (type, trigger); never from a supervisory bead. A machine can check their acceptance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import INJECTED, TERMINAL, Bead
from helix_tui.core.editing.operations import CreateBead
from helix_tui.core.editing.steps import called
from helix_tui.core.ground.files import is_file
from helix_tui.core.ground.git import ask_git
from helix_tui.core.ground.process import run
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.supervision.signals.escalation import DECISION, KEY
from helix_tui.core.supervision.signals.orphans import (
    ACCEPTANCE,
    ALIGNMENT,
    REVIEW,
    injected_record,
    injected_type,
    supervisory,
)

UNGOVERNED = "chore"
"""The type of a bead without a governing document: the authoring rules require no spec-id of it, and ddx picks it like
a task.
"""

THRESHOLD = 0
"""Changed lines at which a success is reviewed; 0: always (FEAT-002)."""

FILES = 3
"""Changed files at which it is reviewed, whatever their size."""

SCRIPTS = ("scripts/check-acceptance-traceability.sh", "scripts/check-acceptance-coverage.sh")
"""The repository's own acceptance checks, run after a success where they exist."""

SCRIPT_TIMEOUT_S = 300.0
__all__ = ["ACCEPTANCE", "ALIGNMENT", "INJECTED", "REVIEW", "injected_record", "injected_type", "supervisory"]

_REVISION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/-]{3,200}\Z")


class Trigger(Struct, frozen=True):
    """Why a bead is injected."""

    source: str
    """post-cycle-review, post-epic-close, periodic-alignment, escalation, documents or acceptance-failure."""
    cycle: int
    bead_id: str
    """The bead or document that caused it."""
    remediation: str = ""


def standing(queue: Queue, kind: str, trigger: str = "") -> str:
    """The open injected bead of a kind for this trigger, or for any; else ""."""
    for bead_id, bead in queue.beads.items():
        if bead.status in TERMINAL or injected_type(bead) != kind:
            continue
        if not trigger or injected_record(bead)["triggering_bead"] == trigger:
            return bead_id
    return ""


def type_for(spec_id: str) -> str:
    """The type with which an injected bead meets the authoring rules: a task has a governing document, a chore none."""
    return "task" if spec_id else UNGOVERNED


def spec_of(queue: Queue, bead: Bead | None, *above: str) -> str:
    """The document that governs a bead: its own, else an ancestor's; else ""."""
    own = [bead.id] if bead is not None else []
    specs = (queue.beads[each].spec_id for each in queue.graph.lineage(*own, *above))
    return next(filter(None, specs), "")


def review_bead(queue: Queue, trigger: Trigger, *, scope: str, epic: str = "", reviewer: str = "") -> CreateBead:
    """A review of a bead's change; it comes before the next bead (CONTRACT-001), so its priority is the highest."""
    bead = queue.beads.get(trigger.bead_id)
    areas = _areas(bead)
    acceptance = (
        f"`ddx bead list --label {REVIEW} --status open --json` contains no bead whose helix-trigger-bead is "
        f"{trigger.bead_id}, and the review records REVIEW_STATUS: CLEAN"
    )
    fields = _fields(trigger) | ({"helix-reviewer": reviewer} if reviewer else {})
    spec = spec_of(queue, bead, epic)
    return CreateBead(
        title=f"review: {called(bead.title) if bead else trigger.bead_id}",
        priority=0,
        labels=_labels(queue, "review", REVIEW, "kind:review", areas),
        parent=next((each for each in (epic, bead.parent if bead else "") if _open(queue, each)), ""),
        issue_type=type_for(spec),
        spec_id=spec,
        acceptance=acceptance,
        description=(
            f"Scope: {scope}\nReview the change of {trigger.bead_id} with fresh eyes, defects first. "
            "File each "
            "finding of critical, high or medium severity as a bead; report REVIEW_STATUS."
        ),
        notes=_cause(trigger),
        fields=fields,
    )


def alignment_bead(queue: Queue, trigger: Trigger, *, epic: str = "", areas: Iterable[str] = ()) -> CreateBead:
    """A comparison of the actual state with the documents."""
    spec = spec_of(queue, None, epic)
    return CreateBead(
        title=f"align: repo after {counted(trigger.cycle, 'cycle')}",
        priority=1,
        labels=_labels(queue, "review", ALIGNMENT, "kind:planning", list(areas)),
        parent=epic,
        issue_type=type_for(spec),
        spec_id=spec,
        acceptance=(
            "`ddx bead list --label alignment-review --status open --json` returns no gap that is "
            "unclassified, and "
            "the report records ALIGN_STATUS: COMPLETE"
        ),
        description=(
            "Scope: repo\nCompare documents, tests and code from the top down; file a bead for each real gap."
        ),
        notes=_cause(trigger),
        fields=_fields(trigger),
    )


def acceptance_bead(queue: Queue, trigger: Trigger, *, script: str, output: str) -> CreateBead:
    """Follow-up work for an acceptance check that fails."""
    return CreateBead(
        title=f"Acceptance failure: {script} after {trigger.bead_id}",
        priority=1,
        labels=_labels(queue, "build", ACCEPTANCE, "kind:build", _areas(queue.beads.get(trigger.bead_id))),
        # the script is the follow-up's governing document, by which `acceptance_standing` finds an open one
        spec_id=script,
        acceptance=f"`bash {script}` passes with exit status 0",
        description=(
            f"Acceptance check {script} failed after implementing {trigger.bead_id}.\n"
            f"Output: {clean_block(output, 500)}"
        ),
        notes=_cause(trigger),
        fields=_fields(trigger) | {"helix-acceptance-script": script},
    )


def decision_bead(queue: Queue, label: str, title: str, text: str, **about: str) -> CreateBead:
    """A bead for a person, with the assumption under which work continues; no worker picks it.

    Args:
        label: ``kind:escalation`` for a conflict, ``kind:speculative`` for something missing.
        about: ``key`` (the same for the same conflict), ``spec_id``, ``acceptance`` and ``assumed``.
    """
    spec = about.get("spec_id", "")
    return CreateBead(
        title=title,
        issue_type=type_for(spec),
        labels=["helix", f"{activity_prefix(queue)}:frame", label],
        spec_id=spec,
        acceptance=about.get("acceptance", f"the field `{DECISION}` of this bead records the decision"),
        description=f"{text}\nAssumed meanwhile: {about['assumed']}.",
        fields={"execution-eligible": "false", KEY: about["key"]},
    )


def decision_standing(queue: Queue, label: str, key: str) -> Bead | None:
    """The bead about this decision, or None; a closed one is decided."""
    about = (bead for bead in queue.beads.values() if label in bead.labels and bead.document().get(KEY) == key)
    return next(about, None)


def acceptance_standing(queue: Queue, script: str) -> str:
    """The open follow-up for a script: one is enough, whichever bead made it fail."""
    for bead_id, bead in queue.beads.items():
        if bead.status not in TERMINAL and injected_type(bead) == ACCEPTANCE and bead.spec_id == script:
            return bead_id
    return ""


def failing_scripts(project: Project) -> Iterable[tuple[str, str]]:
    """(script, output) of each acceptance check of the repository that fails now."""
    for name in SCRIPTS:
        path = project.root / name
        if not is_file(path) or not os.access(path, os.X_OK):
            continue
        try:
            done = run((os.fspath(path),), cwd=project.root, timeout=SCRIPT_TIMEOUT_S, cap=1 << 20)
        except OSError as error:
            yield name, f"it does not start: {error.strerror}"
            continue
        if done.timed_out:
            yield name, f"it took longer than {SCRIPT_TIMEOUT_S:.0f} s"
        elif done.rc != 0:
            yield name, (done.out + done.err).strip()


def why_unreviewed(root: Path, base: str, result: str, threshold: int) -> str:
    """Why a change gets no review; else "": it has at least ``threshold`` lines or three files.

    0 means everything is reviewed. A change that git cannot measure is reviewed; one without commits is not a change.
    """
    if threshold <= 0:
        return ""
    if not base or not result:
        return "ddx names no base and result revision, so the size of the change is unknown"
    if base == result:
        return "nothing was committed"
    # they come from ddx's output and become arguments of a command
    if not (_REVISION.match(base) and _REVISION.match(result)):
        return ""
    words = ("diff", "--numstat", "--no-renames", "--end-of-options", base, result, "--")
    done = ask_git(root, *words, cap=8 << 20)
    if done is None:
        return ""
    rows = [line.split("\t") for line in done.out.split("\n") if line.count("\t") >= 2]
    # ddx commits its own records beside the work: they need no review
    rows = [row for row in rows if not row[2].startswith(".ddx/")]
    # git writes "-" for a binary file
    lines = sum(int(number) for row in rows for number in row[:2] if number.isdecimal())
    if lines >= threshold or len(rows) >= FILES:
        return ""
    size = f"{counted(lines, 'line')} in {counted(len(rows), 'file')}"
    return f"{size}, below {threshold} lines and {FILES} files"


def activity_prefix(queue: Queue) -> str:
    """The label prefix of this repository for the activity: ``phase`` or ``activity``."""
    for bead in queue.beads.values():
        for label in bead.labels:
            if label.startswith("activity:"):
                return "activity"
            if label.startswith("phase:"):
                return "phase"
    return "phase"


def _labels(queue: Queue, phase: str, kind: str, role: str, areas: Iterable[str]) -> list[str]:
    return ["helix", f"{activity_prefix(queue)}:{phase}", role, kind, f"{INJECTED}{kind}", *areas]


def _areas(bead: Bead | None) -> list[str]:
    """The bead's areas, without any with a comma, which the command line would split."""
    labels = bead.labels if bead is not None else ()
    return [label for label in labels if label.startswith("area:") and "," not in label]


def _open(queue: Queue, bead_id: str) -> bool:
    return bead_id in queue.beads and queue.beads[bead_id].status not in TERMINAL


def _fields(trigger: Trigger) -> dict[str, str]:
    return {
        "execution-eligible": "true",
        "helix-trigger-source": trigger.source,
        "helix-trigger-cycle": str(trigger.cycle),
        "helix-trigger-bead": trigger.bead_id,
        "helix-remediation": trigger.remediation or "verify-governance-diff",
    }


def _cause(trigger: Trigger) -> str:
    return clean_line(f"TRIGGERING_CYCLE={trigger.cycle} TRIGGERING_BEAD={trigger.bead_id}", 300)
