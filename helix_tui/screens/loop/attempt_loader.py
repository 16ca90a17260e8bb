"""What the Loop screen reads of one attempt: calls for a thread, and words for what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptEvidence, Diff, EvidenceFile, read_diff, read_evidence
from helix_tui.core.ddx.events import Event
from helix_tui.core.ddx.files import MAX_POLL, read_bytes
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ddx.runs.transcript import TranscriptTail
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.widgets.text.diff import DiffFacts, parse_diff
from helix_tui.widgets.text.files import size_of
from helix_tui.widgets.text.pane import Para
from helix_tui.widgets.text.transcript import Script

GIT_SECONDS = 8.0
"""How long git may take for a diff: leaving the console waits for it."""

FILE_CAP = 512 << 10
LONG_LINE = 4_000
_MOST_POLLS = 32


def load_evidence(attempt: Attempt, run: Run | None) -> AttemptEvidence:
    """What the evidence folder of an attempt holds; while it runs the folder may be in its work tree only."""
    if run is not None and run.worktree is not None and attempt.attempt_id:
        own = run.worktree / ".ddx" / "executions" / attempt.attempt_id
        if (attempt.bundle is None or not attempt.bundle.is_dir()) and own.is_dir():
            attempt = replace(attempt, bundle=own)
    evidence = read_evidence(attempt)
    if evidence.missing and run is not None and run.live:
        return replace(evidence, missing="It has no evidence folder yet: DDx makes one when the agent starts.")
    return evidence


def load_diff(project: Project, attempt: Attempt, *, running: bool) -> DiffFacts:
    """What an attempt changed, and what to know before reading it."""
    if running and not attempt.result_rev:
        return DiffFacts(before=(("It still runs: what it changed is known when it ends.", "muted"),))
    diff = read_diff(project.root, attempt, timeout=GIT_SECONDS)
    base = clean_line(attempt.base_rev, 80)
    result = clean_line(attempt.result_rev or attempt.landed_rev, 80)
    command = f"git diff {base[:12]} {result[:12]}" if base and result else ""
    return DiffFacts(parse_diff(diff.text), tuple(_sentences(diff, command)), command)


def _sentences(diff: Diff, command: str) -> Iterable[tuple[str, str]]:
    if diff.error:
        yield f"No diff: {diff.error}.", "muted"
    if diff.warning:
        yield f"◆ {diff.warning}", "attention"
    for merge in diff.merges:
        yield f"landed through merge {merge}", "waiting"
    if diff.truncated:
        yield f"This is only its beginning; {command} shows all.", "attention"


def load_script(folders: Sequence[Path]) -> tuple[TranscriptTail, Script]:
    """All events of an attempt so far, and the tail that brings what comes after them."""
    tail, script = TranscriptTail(folders), Script()
    for _ in range(_MOST_POLLS):
        script.add(read_on(tail))
        if not tail.behind:
            break
    return tail, script


def read_on(tail: TranscriptTail) -> list[Event]:
    """What has been written since the last time; a line too long to be read is at least counted."""
    before = tail.skipped
    events = tail.poll()
    left_out = tail.skipped - before
    if left_out:
        lines = f"{left_out} line{'s' * (left_out > 1)}"
        said = f"{lines} of more than {size_of(MAX_POLL)} not shown, see {tail.path}"
        events.append(Event(None, "error", summary=clean_line(said, 300)))
    return events


def load_file(file: EvidenceFile) -> list[str]:
    """The lines of one evidence file, JSON indented; a sentence where it cannot be shown."""
    raw = read_bytes(file.path, FILE_CAP + 1)
    if raw is None:
        return ["It cannot be read: it is gone, or it is not a regular file."]
    if b"\0" in raw[:4096]:
        return [f"Binary, {size_of(file.size)}; not shown."]
    if file.name.endswith(".json") and len(raw) <= FILE_CAP:
        raw = _indented(raw)
    lines = clean_block(raw[:FILE_CAP].decode("utf-8", "replace"), FILE_CAP).rstrip("\n").split("\n")
    shown = [_short(line) for line in lines]
    if len(raw) > FILE_CAP and file.size > FILE_CAP:
        shown.append(f"… {size_of(file.size - FILE_CAP)} more in {clean_line(str(file.path), 300)}")
    return shown


def _indented(raw: bytes) -> bytes:
    try:
        return msgspec.json.format(raw, indent=2)
    except (msgspec.DecodeError, RecursionError):
        return raw


def _short(line: str) -> str:
    return line if len(line) <= LONG_LINE else f"{line[:LONG_LINE]}… {len(line) - LONG_LINE:,} more characters"


def no_transcript(attempt: Attempt, folders: Sequence[Path], *, running: bool) -> list[Para]:
    """What stands where a transcript would be."""
    if not attempt.attempt_id:
        said, why = "No attempt yet.", "The worker is claiming a bead or between beads."
    elif running:
        said, why = "No line yet.", "It appears here as soon as the agent writes one."
    else:
        said = "No transcript here."
        why = "DDx keeps transcripts on the machine that ran the attempt; the other tabs have what is left."
    note = [Para("none", ((said, "text bold"),)), Para("none 2", ((why, "muted"),))]
    for number, folder in enumerate(folders):
        lead = "looked in  " if not number else "           "
        note.append(Para(f"looked {number}", ((lead + clean_line(str(folder), 300), "muted"),), hang=11))
    return note
