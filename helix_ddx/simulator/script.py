"""What happens to a bead in the simulation, as data: the code has no branches for single beads.

A bead carries its act in the field ``simulate`` (a name of an outcome, or an object with the fields of
``Act``) or in a label ``simulate:<outcome>``; a plan file holds acts by bead id. A bead without one
succeeds by editing a file that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

HARNESS = "simulation"
"""The harness in every record of a simulation, so that it is not mistaken for real work."""
MODEL = "simulation-medium"

SAY = "say"

OUTCOMES = (
    "success",
    "no_changes",
    "already_satisfied",
    "execution_failed",
    "land_conflict",
    "post_run_check_failed",
    "structural_validation_failed",
    "review_block",
    "review_request_changes",
    "stall",
    "killed",
)


class ScriptError(ValueError):
    """An act that cannot be played; the message says which bead and why."""


class FileEdit(Struct, frozen=True):
    """One change of one file: ``old`` becomes ``new``; without ``old``, ``new`` is added at the end."""

    path: str
    new: str
    old: str = ""


class ToolCall(Struct, frozen=True):
    """One tool call as the transcript shows it; ``say`` is not a tool but a message."""

    tool: str
    input: Mapping[str, Any]
    output: str
    """Its output; ``error:`` at the beginning makes it fail."""
    beats: float = 1.0
    """How long it takes, in steps of the simulation's pace."""

    @property
    def failed(self) -> bool:
        """Whether the tool ended in an error: its output says so."""
        return self.output.startswith("error:")


class Act(Struct, frozen=True):
    """Everything that happens in one attempt."""

    outcome: str = "success"
    edits: tuple[FileEdit, ...] = ()
    calls: tuple[ToolCall, ...] | None = None
    """What the agent runs; without any word about it, what fits the edits."""
    opening: str | None = None
    closing: str | None = None
    detail: str = ""
    rationale: str = ""
    model: str = MODEL
    input_tokens: int = 2850
    output_tokens: int = 150
    cost_usd: float | None = 0.0421
    person: FileEdit | None = None
    """What a person commits to the branch while the attempt runs."""
    silence_beats: float = 0.0
    """How long the transcript is silent while the heartbeat continues."""
    verified: bool = True
    """Whether the proof of an ``already_satisfied`` holds when the worker tries it."""
    recovers: bool = True
    """Whether a later DDx may resolve a land conflict by itself, with the branch's side winning."""
    verdicts: tuple[str, ...] = ()
    """What the reviewer says to each candidate in turn; by default it follows from the outcome."""


def act_for(row: Mapping[str, Any], plan: Mapping[str, Any] | None = None) -> Act:
    """The act of a bead: from the plan, its own field, its label, or the default.

    Raises:
        ScriptError: the act names an unknown outcome or holds something of a wrong type.
    """
    bead_id = str(row.get("id", ""))
    spec = (plan or {}).get(bead_id, row.get("simulate"))
    if spec is None:
        labels = row.get("labels")
        for label in labels if isinstance(labels, list) else ():
            if isinstance(label, str) and label.startswith("simulate:"):
                spec = label.removeprefix("simulate:")
    act = _read(spec, bead_id)
    if not act.edits and act.outcome not in ("no_changes", "already_satisfied", "structural_validation_failed"):
        act = replace(act, edits=(default_edit(row),))
    return replace(
        act,
        calls=default_calls(row, act) if act.calls is None else act.calls,
        opening=f"I will work on: {row.get('title', bead_id)}" if act.opening is None else act.opening,
        closing="Done." if act.closing is None else act.closing,
    )


def read_plan(path: Path) -> dict[str, Any]:
    """A plan file: a JSON object, bead id -> act.

    Raises:
        ScriptError: it cannot be read or is no such object.
    """
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ScriptError(f"plan {path}: {error}") from None
    if not isinstance(plan, dict):
        raise ScriptError(f"plan {path}: an object with bead ids as keys is expected")
    return plan


def default_edit(row: Mapping[str, Any]) -> FileEdit:
    """A line at the end of the first file that the bead names, or of a note of its own."""
    named = re.search(
        r"(?m)^[-*]\s+`?([\w./-]+\.\w+)`?\s*$|`([\w-][\w./-]*\.\w{1,5})`",
        f"{row.get('description', '')}\n{row.get('acceptance', '')}",
    )
    path = (named[1] or named[2]) if named else f"docs/notes/{row.get('id', 'bead')}.md"
    # a bead's text is untrusted: no path outside the copy, nothing in .git
    if path.startswith(("/", "../")) or "/../" in path or ".git/" in path:
        path = f"docs/notes/{row.get('id', 'bead')}.md"
    comment = {"py": "#", "sh": "#", "txt": "#", "toml": "#", "yaml": "#"}.get(path.rpartition(".")[2], "")
    return FileEdit(path, f"{comment} {row.get('title', '')}".strip() + "\n")


def default_calls(row: Mapping[str, Any], act: Act) -> tuple[ToolCall, ...]:
    """Look at the files, edit them, run what the acceptance asks for."""
    calls = [
        ToolCall("Edit", {"file_path": edit.path, "old_string": edit.old, "new_string": edit.new}, "ok")
        for edit in act.edits
    ]
    match = re.search(r"`([^`\n]+)` passes", str(row.get("acceptance", "")))
    command = match[1] if match else f"cat {act.edits[0].path}" if act.edits else "git log --oneline -5"
    return (*calls, ToolCall("Bash", {"command": command}, "ok\n", 2.0))


def _read(spec: object, bead_id: str) -> Act:
    if spec is None:
        return Act()
    if isinstance(spec, str):
        spec = {"outcome": spec}
    if not isinstance(spec, dict):
        raise ScriptError(f"{bead_id}: simulate is neither an outcome nor an object")
    values: dict[str, Any] = dict(spec)
    try:
        values["edits"] = tuple(FileEdit(**edit) for edit in values.get("edits", ()))
        if values.get("calls") is not None:
            values["calls"] = tuple(ToolCall(**call) for call in values["calls"])
        if values.get("person") is not None:
            values["person"] = FileEdit(**values["person"])
        values["verdicts"] = tuple(values.get("verdicts", ()))
        act = Act(**values)
    except TypeError as error:
        raise ScriptError(f"{bead_id}: simulate: {error}") from None
    if act.outcome not in OUTCOMES:
        raise ScriptError(f"{bead_id}: unknown outcome {act.outcome!r}; known are {', '.join(OUTCOMES)}")
    return act
