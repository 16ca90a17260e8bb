"""The evidence folders of running work.

A second worker of April is known only from its evidence folder: two workers overwrite each other in
``.ddx/run-state.json``, which is removed after an attempt's end although review and landing continue. The folders under
``.ddx/executions`` are named by their start, so only the few since a claim are read.
"""

from __future__ import annotations

import bisect
import re
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.files import JsonCache
from helix_tui.core.ddx.names import STAMPED_NAME, began_at
from helix_tui.core.ground.files import Folder, is_file, read_bytes
from helix_tui.core.ground.time import NS, parse_instant

_NEWEST = 24


_REVIEW = re.compile(rb'\s*<bead-review>\s*<bead id="([^"\n]{1,200})"')


_About = tuple[str, bool, int]
"""The bead of a folder, whether it is a review, and when it began."""


_NOW = 1 << 62
"""Start assumed for a review that has written only its prompt: now."""


class Bundle(Struct, frozen=True):
    """An evidence folder of a bead's current claim."""

    attempt_id: str
    folder: Path
    started_at: int
    finished: bool
    """Whether its result is written, so that only review or landing continues."""
    reviewing: bool = False
    """Whether a review of the same bead has begun since and has no verdict yet."""


class Bundles:
    """The evidence folders of a project, read only as far as running work needs."""

    def __init__(self, ddx_dir: Path, documents: JsonCache) -> None:
        self._folder = Folder(ddx_dir / "executions")
        self._documents = documents
        self._about: dict[str, _About] = {}

    def of(self, bead_id: str, since: int | None) -> Bundle | None:
        """The newest attempt of a bead that began with or after its claim.

        If the claim's start is unknown, the newest of all, if unfinished.
        """
        found: Bundle | None = None
        for name in self._young(since):
            about = self._about_what(name)
            # a name has whole seconds: an attempt may seem to begin up to one second before its claim
            if about is None or about[0] != bead_id or (since is not None and about[2] < since - NS):
                continue
            folder = self._folder.path / name
            finished = is_file(folder / "result.json")
            if not about[1]:
                found = Bundle(name, folder, began_at(name) or 0, finished)
            elif found is not None:
                found = replace(found, reviewing=not finished)
        return None if since is None and found is not None and found.finished else found

    def _young(self, since: int | None) -> list[str]:
        """Names that may belong to a claim of that time, oldest first: the adjacent ones and the newest."""
        names = self._folder.names()
        # forget folders that ddx has archived: a console runs for days
        if len(self._about) > len(names):
            self._about = {name: about for name, about in self._about.items() if name in set(names)}
        # names sort by time, so those of a claim are adjacent however many follow
        newest = max(0, len(names) - _NEWEST)
        first = newest if since is None else bisect.bisect_left(names, _stamp(since - NS))
        young = (*names[first : min(first + _NEWEST, newest)], *names[newest:])
        return [name for name in young if STAMPED_NAME.match(name)]

    def _about_what(self, name: str) -> _About | None:
        """The bead and kind of a folder; None until its files show it."""
        known = self._about.get(name)
        if known is not None:
            return known
        folder = self._folder.path / name
        manifest = self._documents.load(folder / "manifest.json")
        if manifest is None:
            match = _REVIEW.match(read_bytes(folder / "prompt.md", 1024) or b"")
            if match is None:
                return None
            # not cached: its manifest, with the verdict, is still to come
            return (match[1].decode("utf-8", "replace"), True, _NOW)
        bead_id = manifest.get("bead_id")
        if not isinstance(bead_id, str):
            return None
        # the record takes precedence over the name: a replayed run keeps its attempts' ids
        began = parse_instant(manifest.get("created_at")) or began_at(name) or 0
        about = self._about[name] = (bead_id, "verdict" in manifest, began)
        return about


def _stamp(instant: int) -> str:
    # a record may contain any year, and datetime ends with 9999
    seconds = max(0, min(instant // NS, 253_402_300_799))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%S")
