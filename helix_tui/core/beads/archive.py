"""``.ddx/beads-archive.jsonl`` (since May): finished beads that ddx has put away, and waits for no longer.

Read by the tracker's own reader, row by row and only when the file is another one: a row is decoded as far as
a list needs it, its text stays in its line until somebody looks. ddx lets the tracker's row win where an id
stands in both files, which an interrupted ``ddx bead archive`` leaves behind.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import Tracker, TrackerReader
from helix_tui.core.ground.text import clean_line


class Archived(Struct, frozen=True):
    """One bead of the archive."""

    bead_id: str
    title: str
    status: str
    day: str
    """When it was closed, else put away, else last changed: the day as ddx writes it; empty where nothing
    says."""

    @property
    def words(self) -> str:
        """What became of it."""
        return f"{self.status} on {self.day} and archived" if self.day else f"{self.status} and archived"


class _Reader:
    """One archive, read again when it changes; any thread may ask."""

    def __init__(self, path: Path) -> None:
        self._reader = TrackerReader(path)
        self._lock = threading.Lock()

    def read(self) -> Tracker:
        with self._lock:
            archive = self._reader.read()
            self._reader.rest()
            return archive


@lru_cache(maxsize=4)
def _reader(path: Path) -> _Reader:
    return _Reader(path)


def read_archive(path: Path) -> Tracker:
    """The archive as it stands now: its beads, and the lines that are none; ``missing`` where there is none.

    The very same object as the last time as long as the file is the same.
    """
    return _reader(path).read()


def only_archived(archive: Tracker, held: Collection[str]) -> dict[str, Bead]:
    """What stands in the archive alone, by id; ``held`` are the tracker's ids."""
    return {bead_id: bead for bead_id, bead in archive.beads.items() if bead_id not in held}


def find_archived(path: Path, ids: Collection[str]) -> dict[str, Archived]:
    """Those of some beads that the archive holds; the last row of an id counts."""
    if not ids:
        return {}
    beads = read_archive(path).beads
    return {bead_id: describe(beads[bead_id]) for bead_id in ids if bead_id in beads}


def describe(bead: Bead) -> Archived:
    """What is said of an archived bead, cleaned."""
    row = bead.document()
    told = (row.get(name) for name in ("closed_at", "archived_at", "updated_at"))
    day = next((clean_line(at, 40)[:10] for at in told if isinstance(at, str) and at), "")
    return Archived(bead.id, clean_line(bead.title, 300), clean_line(bead.status, 40), day)
