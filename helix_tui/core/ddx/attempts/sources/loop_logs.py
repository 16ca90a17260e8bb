"""Read the logs of DDx's loops, line by line; their types and fields are open sets (docs/formats/ddx.md §4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.attempts.costs import AgentCall
from helix_tui.core.ddx.files import LineTail, decode_object
from helix_tui.core.ground.files import Folder
from helix_tui.core.ground.time import parse_instant

_NO_DATA: dict[str, Any] = {}

_THROWN_AWAY = "project root mutation rejected"


class LoopEntry(Struct, frozen=True):
    """One line of a loop log."""

    type: str
    at: int | None
    session_id: str
    data: Mapping[str, Any]

    @property
    def bead_id(self) -> str:
        """The id of its bead, or ""."""
        return self.text("bead_id")

    def text(self, key: str) -> str:
        """A text field of its data, or ""."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""


def unrecorded_checks(entries: Iterable[LoopEntry]) -> Iterator[AgentCall]:
    """Readiness checks whose answer ddx threw away because the work tree had changed: it writes no cost of them."""
    for entry in entries:
        if entry.type.startswith("pre_claim_intake.") and _THROWN_AWAY in entry.text("detail"):
            yield AgentCall("checks", entry.at or 0, bead_id=entry.bead_id)


def parse_entry(line: bytes) -> LoopEntry | None:
    """A loop log's line, or None if it is not an object with a type."""
    try:
        entry = decode_object(line)
    except ValueError:
        return None
    kind = entry.get("type")
    if not isinstance(kind, str):
        return None
    data = entry.get("data")
    session = entry.get("session_id")
    return LoopEntry(
        kind,
        parse_instant(entry.get("ts")),
        session if isinstance(session, str) else "",
        data if isinstance(data, dict) else _NO_DATA,
    )


class LoopLogs:
    """New entries of every loop log of a project, poll by poll."""

    def __init__(self, ddx_dir: Path) -> None:
        self._cli = Folder(ddx_dir / "agent-logs")
        self._server = Folder(ddx_dir / "workers")
        self._tails: dict[Path, LineTail] = {}

    def poll(self, changed: Iterable[Path] | None = None) -> list[LoopEntry]:
        """Entries since the last poll; ``changed`` names the only files that may have any."""
        entries: list[LoopEntry] = []
        paths = self.paths(changed)
        if changed is None:
            # only a full look shows which logs are gone; otherwise an open console would keep them all
            there = set(paths)
            self._tails = {path: tail for path, tail in self._tails.items() if path in there}
        for path in paths:
            tail = self._tails.get(path)
            if tail is None:
                tail = self._tails[path] = LineTail(path)
            lines = tail.poll()
            # a poll reads up to a cap: continue, or a run would lack its end
            while tail.behind:
                lines += tail.poll()
            entries += [entry for line in lines if (entry := parse_entry(line)) is not None]
        return entries

    def paths(self, changed: Iterable[Path] | None = None) -> list[Path]:
        """The loop logs of the project, or those among the files that changed."""
        if changed is not None:
            return [path for path in changed if _is_loop_log(path)]
        paths = [self._cli.path / name for name in self._cli.names() if name.startswith("agent-loop-")]
        paths += [self._server.path / name / "worker-events.jsonl" for name in self._server.names()]
        return paths


def _is_loop_log(path: Path) -> bool:
    named = path.name.startswith("agent-loop-") and path.suffix == ".jsonl"
    return named or path.name == "worker-events.jsonl"
