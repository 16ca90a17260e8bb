"""How DDx's last worker ended, in its own words.

A loop of the command line records its end in ``.ddx/agent-logs/agent-loop-*.jsonl`` (``loop.operator_attention``,
``loop.end``), one that a server started in ``.ddx/workers/worker-*/`` (``status.json``, ``result.json`` and the end of
``worker.log``). A loop without an end is running or was killed: its claim shows which.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.attempts.sources.loop_logs import LoopEntry, parse_entry
from helix_tui.core.ddx.files import decode_object, instant, text, whole
from helix_tui.core.ground.files import names_in, read_bytes, read_end
from helix_tui.core.ground.text import clean_line

_TAIL = 256 << 10


_QUIET = frozenset(
    (
        "binary_refresh",
        "context_cancelled",
        "drained",
        "goal_satisfied",
        "no_ready_work",
        "once",
        "once_complete",
        "sigint",
        "sigterm",
    )
)
"""Reasons for an end that need no action: done, asked to stop, or restarted."""


class WorkerEnding(Struct, frozen=True):
    """The end of a worker, in ddx's words, cleaned."""

    worker_id: str
    at: int
    """Instant in ns."""
    reason: str
    """ddx's reason: ``checkpoint_dirty``, ``routing_unavailable``, ``drained`` …; empty if it gives none."""
    message: str = ""
    bead_id: str = ""
    paths: tuple[str, ...] = ()
    """Files that ddx names, relative to the project."""

    @property
    def troubled(self) -> bool:
        """Whether its reason will stop the next worker too unless it is fixed."""
        return bool(self.reason) and self.reason not in _QUIET


def read_ending(ddx_dir: Path) -> WorkerEnding | None:
    """The newest end that any worker recorded, or None."""
    found = [each for each in (_loop_ending(ddx_dir), _server_ending(ddx_dir)) if each is not None]
    return max(found, key=lambda each: each.at, default=None)


def _names(folder: Path, prefix: str, most: int = 3) -> list[Path]:
    """The newest entries of a folder; their names end with a time."""
    names = [name for name in names_in(folder) if name.startswith(prefix)]
    return [folder / name for name in reversed(names[-most:])]


def _loop_ending(ddx_dir: Path) -> WorkerEnding | None:
    for path in _names(ddx_dir / "agent-logs", "agent-loop-"):
        lines = read_end(path, _TAIL).encode("utf-8", "surrogateescape").split(b"\n")
        entries = [entry for line in lines if (entry := parse_entry(line)) is not None]
        end = next((entry for entry in reversed(entries) if entry.type == "loop.end"), None)
        # a log without an end belongs to a running or killed loop: the log before it has the last end
        if end is not None and end.at is not None:
            return _from_entries(end, entries)
    return None


def _from_entries(end: LoopEntry, entries: list[LoopEntry]) -> WorkerEnding:
    reason = _word(end.text("exit_reason"))
    wanted = {"operator_attention": "loop.operator_attention", "routing_unavailable": "disruption_detected"}
    said = [entry for entry in entries if entry.type == wanted.get(reason, "loop.error")]
    last = said[-1] if said else None
    if last is None:
        return WorkerEnding(end.session_id, end.at or 0, reason)
    own = _word(last.text("reason")) if reason == "operator_attention" else ""
    message = last.text("message") or last.text("detail")
    paths = last.data.get("dirty_paths")
    return WorkerEnding(
        end.session_id,
        end.at or 0,
        own or reason,
        clean_line(message, 600),
        clean_line(last.bead_id, 120),
        tuple(clean_line(path, 300) for path in paths if isinstance(path, str)) if isinstance(paths, list) else (),
    )


def _server_ending(ddx_dir: Path) -> WorkerEnding | None:
    for folder in _names(ddx_dir / "workers", "worker-"):
        status = _object(folder / "status.json")
        at = instant(status.get("finished_at"))
        if at is None:
            continue
        result = _object(folder / "result.json")
        reason = _word(text(status, "status")) or _word(text(result, "stop_condition"))
        if result.get("operator_attention") is True:
            reason = "operator_attention"
        elif text(status, "state") in ("exited", "stopped") and not text(status, "error"):
            reason = _word(text(result, "stop_condition")) or ("drained" if whole(status.get("pid")) else reason)
        said = _said(read_end(folder / "worker.log", _TAIL))
        message = said.get("message") or text(result, "last_failure_detail") or text(status, "error") or ""
        paths = tuple(path for path in said.get("dirty paths", "").split(", ") if path)
        if reason == "operator_attention" and paths:
            reason = "checkpoint_dirty"
        return WorkerEnding(folder.name, at, reason, clean_line(message, 600), said.get("released bead", ""), paths)
    return None


def _said(log: str) -> dict[str, str]:
    """The fields under the last ``operator attention:`` of a worker's log."""
    _, found, block = log.rpartition("\noperator attention:\n")
    said: dict[str, str] = {}
    for line in block.split("\n") if found else ():
        key, colon, value = line.strip().partition(": ")
        if not line.startswith("  "):
            break
        if colon and key in ("released bead", "project root", "dirty paths", "reason", "retry after"):
            said[key] = clean_line(value, 600)
        else:
            said.setdefault("message", clean_line(line.strip(), 600))
    return said


def _object(path: Path) -> Mapping[str, Any]:
    try:
        return decode_object(read_bytes(path) or b"")
    except ValueError:
        return {}


def _word(reason: str) -> str:
    """A reason as ddx's newer records write it: ``OperatorAttention`` is ``operator_attention``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", reason.strip()).replace("-", "_")
    return clean_line(spaced.lower(), 80)
