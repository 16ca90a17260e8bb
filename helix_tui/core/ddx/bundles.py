"""Which evidence folder belongs to work that is going on: the only place that names April's second worker.

``.ddx/run-state.json`` of April holds one attempt; two workers overwrite each other there, and after an
attempt's end it is gone while review and landing go on (reference/ddx.md §4, "Recorded runs"). The folders
under ``.ddx/executions`` are named by the time they began, so the few that began since a claim are looked at.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from helix_tui.core.clock import NS
from helix_tui.core.ddx.files import Folder, JsonCache, read_bytes

_LOOK_AT = 24
_STAMPED = re.compile(r"(\d{8}T\d{6})-[0-9A-Za-z]+\Z")
_REVIEW = re.compile(rb'\s*<bead-review>\s*<bead id="([^"\n]{1,200})"')


@dataclass(frozen=True, slots=True)
class Bundle:
    """An evidence folder of a bead's present claim."""

    attempt_id: str
    folder: Path
    started_at: int
    finished: bool
    """Its result is written; what still goes on is review or landing."""
    reviewing: bool = False
    """A review of the same bead has begun since and has no verdict yet."""


class Bundles:
    """The evidence folders of a project, looked into only as far as running work needs."""

    def __init__(self, ddx_dir: Path, documents: JsonCache) -> None:
        self._folder = Folder(ddx_dir / "executions")
        self._documents = documents
        self._reviewed: dict[str, str] = {}

    def of(self, bead_id: str, since: int | None) -> Bundle | None:
        """The newest attempt of a bead that began with or after its claim."""
        if since is None:
            return None
        names = self._folder.names()
        first = bisect.bisect_left(names, _stamp(since - NS))
        found: Bundle | None = None
        for name in names[first : first + _LOOK_AT]:
            began = began_at(name)
            if began is None:
                continue
            folder = self._folder.path / name
            manifest = self._documents.load(folder / "manifest.json")
            if manifest is None:
                if found is not None and self._reviewed_bead(name, folder) == bead_id:
                    reviewing = not (folder / "result.json").exists()
                    found = Bundle(
                        found.attempt_id, found.folder, found.started_at, found.finished, reviewing
                    )
            elif manifest.get("bead_id") == bead_id and "verdict" not in manifest:
                finished = (folder / "result.json").exists()
                found = Bundle(name, folder, began, finished)
        return found

    def _reviewed_bead(self, name: str, folder: Path) -> str:
        """The bead that a folder with nothing but a review's prompt is about."""
        known = self._reviewed.get(name)
        if known is None:
            head = read_bytes(folder / "prompt.md", 1024)
            if head is None:
                return ""
            match = _REVIEW.match(head)
            known = self._reviewed[name] = match[1].decode("utf-8", "replace") if match else ""
        return known


def began_at(attempt_id: str) -> int | None:
    """The instant in an attempt's name; None for a name of another form."""
    match = _STAMPED.match(attempt_id)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * NS


def _stamp(instant: int) -> str:
    seconds = max(0, min(instant // NS, 253_402_300_799))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%S")
