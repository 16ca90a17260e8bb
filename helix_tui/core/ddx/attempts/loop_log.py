"""What a loop says: its log, and the JSON object at the end of its text stream.

Formats: docs/formats/ddx.md §4 (loop logs, text stream). Types and fields are open sets: an entry of an
unknown type is kept as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.files import Folder, LineTail, decode_object
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import parse_instant

_NO_DATA: dict[str, Any] = {}


class LoopEntry(Struct, frozen=True):
    """One line of a loop log."""

    type: str
    at: int | None
    session_id: str
    data: Mapping[str, Any]

    @property
    def bead_id(self) -> str:
        """The bead it speaks of, or nothing."""
        return self.text("bead_id")

    def text(self, key: str) -> str:
        """A text field of its data, or nothing."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""


class LoopReport(Struct, frozen=True):
    """The object that ``--json`` prints at the end, fields of any release."""

    document: Mapping[str, Any]
    lead: str
    """The text stream before it."""

    @property
    def results(self) -> tuple[Mapping[str, Any], ...]:
        """One object for each attempt; those that are no objects are left out."""
        results = self.document.get("results")
        return tuple(r for r in results if isinstance(r, dict)) if isinstance(results, list) else ()

    @property
    def exit_reason(self) -> str:
        """Why the loop ended, in DDx's words; April does not say."""
        return clean_line(self.document.get("exit_reason") or "", 200)

    @property
    def no_ready_work(self) -> bool:
        """The queue had nothing to pick."""
        return self.document.get("no_ready_work") is True


class MalformedReport(HelixError, ValueError):
    """A text stream that should end in a JSON object and does not."""


def parse_entry(line: bytes) -> LoopEntry | None:
    """A loop log's line, or None where it is no object with a type."""
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


def parse_report(output: str) -> LoopReport:
    """The last report in a loop's output that begins a line: ``{`` alone, or the whole on one line.

    What stands before it is the text stream; what follows it is left out, other JSON objects too, such as a
    harness logs. Where no object has a field of a report, the last one is taken for it.

    Raises:
        MalformedReport: no such object, or it is cut off; the message says which.
    """
    found: tuple[dict[str, Any], int] | None = None
    end, problem = 0, "there is no JSON object in it" if output.strip() else "it is empty"
    for match in _OBJECT_START.finditer(output):
        if match.start() < end:
            continue  # inside the object before
        told = found is not None and not _REPORTED.isdisjoint(found[0])
        try:
            document, end = _DECODER.raw_decode(output, match.start())
        except (ValueError, RecursionError) as error:
            if not told:
                found, problem = None, f"its JSON object does not parse: {clean_line(str(error), 200)}"
            continue
        if not told or not _REPORTED.isdisjoint(document):
            found = (document, match.start())
    if found is None:
        raise MalformedReport(problem)
    return LoopReport(found[0], output[: found[1]])


_REPORTED = frozenset({"project_root", "attempts", "results", "no_ready_work"})
"""Fields by which a report is known among the objects of a text stream (docs/formats/ddx.md §4)."""

_OBJECT_START = re.compile(r'^\{(?=\r?$|")', re.MULTILINE)
_DECODER = json.JSONDecoder()


class LoopLogs:
    """New entries of every loop log of a project, poll by poll."""

    def __init__(self, ddx_dir: Path) -> None:
        self._cli = Folder(ddx_dir / "agent-logs")
        self._server = Folder(ddx_dir / "workers")
        self._tails: dict[Path, LineTail] = {}

    def poll(self, changed: Iterable[Path] | None = None) -> list[LoopEntry]:
        """Entries that came since the last poll; ``changed`` names the only files that can have some."""
        entries: list[LoopEntry] = []
        paths = self.paths(changed)
        if changed is None:
            # only a look at everything can tell which logs are gone; a console left open would keep them all
            there = set(paths)
            self._tails = {path: tail for path, tail in self._tails.items() if path in there}
        for path in paths:
            tail = self._tails.get(path)
            if tail is None:
                tail = self._tails[path] = LineTail(path)
            lines = tail.poll()
            # a poll reads up to a cap, and half a log would leave a run without its end
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
