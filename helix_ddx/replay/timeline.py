"""Recorded timelines: what one real ``ddx`` did, one JSON object a line (docs/formats/ddx.md §4)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 256 * 1024 * 1024
"""A larger file is no recorded run."""

OPS = frozenset({"create", "append", "write", "replace", "delete"})


class TimelineError(ValueError):
    """A timeline that cannot be played; the message names the line."""


@dataclass(frozen=True)
class TimelineStep:
    """One line of a timeline: a file that changed, a line of output, or the worker's start and end."""

    line: int
    t: float
    src: str
    op: str = ""
    path: str = ""
    text: str = ""
    rc: int | None = None
    argv: tuple[str, ...] = ()
    stdout: str = ""

    @property
    def is_file(self) -> bool:
        """Whether a file changed in this step."""
        return self.src == "file"


@dataclass(frozen=True)
class Timeline:
    """A whole recorded run."""

    steps: tuple[TimelineStep, ...]
    after: tuple[TimelineStep, ...]
    """What reading commands said when the run was over."""

    @property
    def rc(self) -> int | None:
        """The recorded worker's exit code; a negative one is the signal that killed it."""
        return next((step.rc for step in reversed(self.steps) if step.src == "cmd" and step.rc is not None), None)

    @property
    def seconds(self) -> float:
        """How long the run took."""
        return self.steps[-1].t if self.steps else 0.0


def read_timeline(path: Path) -> Timeline:
    """Read a timeline and check every line of it before anything is played.

    Raises:
        TimelineError: the file cannot be read, or a line is no step; says which line and why.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TimelineError(f"{path}: larger than {MAX_BYTES // 1024**2} MiB, no recorded run")
        raw = path.read_bytes()
    except OSError as error:
        raise TimelineError(f"{path}: {error.strerror or error}") from None
    steps: list[TimelineStep] = []
    after: list[TimelineStep] = []
    last = 0.0
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        step = _step(number, line, last, path)
        if step.src in ("cmd", "file", "stdout", "stderr"):
            last = step.t
            steps.append(step)
        else:
            after.append(step)
    if not steps:
        raise TimelineError(f"{path}: no steps in it")
    return Timeline(tuple(steps), tuple(after))


def _step(number: int, line: bytes, last: float, path: Path) -> TimelineStep:
    def refuse(why: str) -> TimelineError:
        return TimelineError(f"{path}: line {number}: {why}")

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refuse(f"no JSON ({error}); the file may be cut off there") from None
    if not isinstance(row, dict) or not isinstance(row.get("src"), str):
        raise refuse('not a step: an object with "src" is expected')
    moment = row.get("t")
    if moment is None:
        moment = last
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not 0 <= moment < 1e9:
        raise refuse('"t" is not a number of seconds')
    rc = row.get("rc")
    if rc is not None and (isinstance(rc, bool) or not isinstance(rc, int)):
        raise refuse('"rc" is not an exit code')
    argv = row.get("argv") or []
    step = TimelineStep(
        line=number,
        t=max(float(moment), last),
        src=row["src"],
        op=_text(row, "op", refuse),
        path=_text(row, "path", refuse),
        text=_text(row, "text", refuse),
        rc=rc,
        argv=tuple(str(word) for word in argv) if isinstance(argv, list) else (),
        stdout=_text(row, "stdout", refuse),
    )
    if step.is_file and step.op not in OPS:
        raise refuse(f"unknown operation {step.op!r}; known are {', '.join(sorted(OPS))}")
    if step.is_file and not step.path.startswith(("$P/", "$H/", "$T/")):
        raise refuse(f"the path {step.path!r} does not begin with $P/, $H/ or $T/")
    if step.is_file and ".." in step.path.split("/"):
        raise refuse(f"the path {step.path!r} leads out of the folder")
    return step


def _text(row: dict[str, Any], key: str, refuse: Any) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise refuse(f'"{key}" is not a text')
    return value.encode("utf-8", "replace").decode("utf-8")
