"""The one place that writes ``.ddx/beads.jsonl``: lock directory, whole-file rewrite, rename.

Rules: docs/formats/ddx.md §1 (record) and §3 (locking). Rows keep every field they have, sorted by name as
Go's maps are; lines that are no records are kept at the end instead of being repaired away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helix_ddx.base.files import Disk, go_json
from helix_ddx.base.stamps import stamp
from helix_ddx.store.lock import FolderLock
from helix_ddx.store.lock import LockTimeout as LockTimeout
from helix_ddx.store.lock import process_lives as process_lives
from helix_tui.core.ground.time import now_ns

Row = dict[str, Any]


class Store:
    """The beads of one project.

    Args:
        ddx: the project's ``.ddx`` folder.
        era: ``april`` or ``head``; head adds a token to its lock.
        disk: the writer; its watchers hear of every write.
    """

    def __init__(self, ddx: Path, era: str, disk: Disk | None = None, clock: Callable[[], int] = now_ns) -> None:
        self.path = ddx / "beads.jsonl"
        self.lock_folder = ddx / "beads.lock"
        self.era = era
        self.disk = disk or Disk(durable=True)
        self.lock = FolderLock(self.lock_folder, era, disk=self.disk, clock=clock)

    def read(self) -> dict[str, Row]:
        """Every record by id; the last line of an id wins."""
        return self._parse()[0]

    @contextmanager
    def change(self) -> Iterator[dict[str, Row]]:
        """Lock, read, let the caller change the rows, write. An exception inside writes nothing."""
        with self.locked():
            rows, unread = self._parse()
            yield rows
            self._write(rows, unread)

    def write_new(self, rows: list[Row], unread: tuple[str, ...] = ()) -> None:
        """The first content of a tracker that does not exist yet."""
        self._write({row["id"]: row for row in rows}, list(unread))

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold ``beads.lock``.

        Raises:
            LockTimeout: it was held by a living process for the whole of ``DDX_BEAD_LOCK_TIMEOUT``.
        """
        with self.lock.held():
            yield

    def _parse(self) -> tuple[dict[str, Row], list[str]]:
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {}, []
        rows: dict[str, Row] = {}
        unread: list[str] = []
        for line in raw.decode("utf-8", "replace").split("\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]:
                rows[row["id"]] = row
            else:
                unread.append(line)
        return rows, unread

    def _write(self, rows: dict[str, Row], unread: list[str]) -> None:
        lines = [go_json(dict(sorted(rows[bead_id].items()))) for bead_id in sorted(rows)]
        self.disk.replace(self.path, "".join(line + "\n" for line in [*lines, *unread]))


def event(kind: str, summary: str, body: str, at: int, *, actor: str, source: str) -> dict[str, str]:
    """One entry of a bead's history; its keys are sorted in the file (docs/formats/ddx.md §1)."""
    return {
        "actor": actor,
        "body": body[:65_535],
        "created_at": stamp(at),
        "kind": kind,
        "source": source,
        "summary": summary[:65_535],
    }
