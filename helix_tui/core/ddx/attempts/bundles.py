"""Which evidence folder belongs to work that is going on: the only place that names April's second worker.

``.ddx/run-state.json`` of April holds one attempt; two workers overwrite each other there, and after an
attempt's end it is gone while review and landing go on (docs/formats/ddx.md §4.6). The folders
under ``.ddx/executions`` are named by the time they began, so the few that began since a claim are looked at.
"""

from __future__ import annotations

import bisect
import re
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.files import Folder, JsonCache, read_bytes
from helix_tui.core.ground.time import NS, parse_instant

_LOOK_AT = 24
_STAMPED = re.compile(r"(\d{8}T\d{6})-[0-9A-Za-z]+\Z")
_REVIEW = re.compile(rb'\s*<bead-review>\s*<bead id="([^"\n]{1,200})"')

_About = tuple[str, bool, int]
"""The bead that a folder is about, whether it holds a review of it, and when it began."""

_NOW = 1 << 62
"""The beginning of a review that has written nothing but its prompt: it has just begun."""


class Bundle(Struct, frozen=True):
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
        self._about: dict[str, _About] = {}

    def of(self, bead_id: str, since: int | None) -> Bundle | None:
        """The newest attempt of a bead that began with or after its claim.

        Where nobody tells when the claim began, the newest of all, if it is not finished.
        """
        found: Bundle | None = None
        for name in self._young(since):
            about = self._about_what(name)
            # a name tells whole seconds: an attempt may seem to begin up to one before its claim
            if about is None or about[0] != bead_id or (since is not None and about[2] < since - NS):
                continue
            folder = self._folder.path / name
            finished = (folder / "result.json").exists()
            if not about[1]:
                found = Bundle(name, folder, began_at(name) or 0, finished)
            elif found is not None:
                found = replace(found, reviewing=not finished)
        return None if since is None and found is not None and found.finished else found

    def _young(self, since: int | None) -> list[str]:
        """Names that can belong to a claim of that time, oldest first: those next to it and the newest."""
        names = self._folder.names()
        # folders that ddx has put away since are forgotten: a console runs for days
        if len(self._about) > len(names):
            self._about = {name: about for name, about in self._about.items() if name in set(names)}
        # names sort by time, so those of a claim are neighbours however many came after them
        newest = max(0, len(names) - _LOOK_AT)
        first = newest if since is None else bisect.bisect_left(names, _stamp(since - NS))
        young = (*names[first : min(first + _LOOK_AT, newest)], *names[newest:])
        return [name for name in young if _STAMPED.match(name)]

    def _about_what(self, name: str) -> _About | None:
        """What a folder is about; None as long as nothing in it tells."""
        known = self._about.get(name)
        if known is not None:
            return known
        folder = self._folder.path / name
        manifest = self._documents.load(folder / "manifest.json")
        if manifest is None:
            match = _REVIEW.match(read_bytes(folder / "prompt.md", 1024) or b"")
            if match is None:
                return None
            # not kept: its manifest, with the verdict, is still to come
            return (match[1].decode("utf-8", "replace"), True, _NOW)
        bead_id = manifest.get("bead_id")
        if not isinstance(bead_id, str):
            return None
        # what the record says beats its name: a run that is played again keeps its attempts' ids
        began = parse_instant(manifest.get("created_at")) or began_at(name) or 0
        about = self._about[name] = (bead_id, "verdict" in manifest, began)
        return about


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
    # a record may name any year, and datetime ends with 9999
    seconds = max(0, min(instant // NS, 253_402_300_799))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%S")
