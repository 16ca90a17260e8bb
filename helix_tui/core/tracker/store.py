"""The one place that writes ``.ddx/beads.jsonl``: lock directory, whole-file rewrite, rename.

Rules: reference/ddx.md §1 (record) and §3 (locking). Rows keep every field they have, sorted by name as Go's
maps are; lines that are no records are kept at the end instead of being repaired away.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helix_tui.core.clock import NS, now_ns, parse_instant
from helix_tui.core.tracker.files import Disk, go_json
from helix_tui.core.tracker.stamps import second, stamp

Row = dict[str, Any]

LOCK_RETRY_S = 0.05
LOCK_TIMEOUT_S = 10.0
STALE_AFTER = 2 * 3600 * NS


class LockTimeout(RuntimeError):
    """Somebody else holds the tracker; the message is DDx's own."""


class Store:
    """The beads of one project.

    Args:
        ddx: the project's ``.ddx`` folder.
        era: ``april`` or ``head``; head adds a token to its lock.
        disk: the writer; its watchers hear of every write.
    """

    def __init__(
        self, ddx: Path, era: str, disk: Disk | None = None, clock: Callable[[], int] = now_ns
    ) -> None:
        self.path = ddx / "beads.jsonl"
        self.lock_folder = ddx / "beads.lock"
        self.era = era
        self.disk = disk or Disk(durable=True)
        self.clock = clock

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
        self.lock_folder.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + _lock_timeout()
        while True:
            try:
                self.lock_folder.mkdir()
                break
            except FileExistsError:
                if self._break_stale():
                    continue
                if time.monotonic() >= deadline:
                    raise LockTimeout(
                        f"bead: lock timeout (owner pid: {self._owner() or 'unknown'})"
                    ) from None
                time.sleep(LOCK_RETRY_S)
        try:
            self.disk.create(self.lock_folder / "pid", str(os.getpid()))
            self.disk.create(self.lock_folder / "acquired_at", second(self.clock()))
            if self.era == "head":
                self.disk.create(self.lock_folder / "owner_token", os.urandom(32).hex())
            yield
        finally:
            self.disk.delete_tree(self.lock_folder)

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

    def _owner(self) -> str:
        try:
            return (self.lock_folder / "pid").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return ""

    def _break_stale(self) -> bool:
        """Remove the lock of a dead or ancient owner; whether it is gone."""
        owner = self._owner()
        try:
            acquired = parse_instant((self.lock_folder / "acquired_at").read_text(encoding="utf-8").strip())
        except (OSError, UnicodeDecodeError):
            acquired = None
        ancient = acquired is not None and self.clock() - acquired > STALE_AFTER
        if not ancient and (not owner.isdecimal() or process_lives(int(owner))):
            return False
        tomb = self.lock_folder.with_name(f"beads.lock.tombstone.{os.getpid()}-{time.time_ns()}-0.lock")
        try:
            self.lock_folder.rename(tomb)
        except OSError:
            return not self.lock_folder.exists()
        shutil.rmtree(tomb, ignore_errors=True)
        return True


def event(kind: str, summary: str, body: str, at: int, *, actor: str, source: str) -> dict[str, str]:
    """One entry of a bead's history; its keys are sorted in the file (reference/ddx.md §1)."""
    return {
        "actor": actor,
        "body": body[:65_535],
        "created_at": stamp(at),
        "kind": kind,
        "source": source,
        "summary": summary[:65_535],
    }


def process_lives(pid: int) -> bool:
    """Whether a process with this id runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _lock_timeout() -> float:
    text = os.environ.get("DDX_BEAD_LOCK_TIMEOUT", "").removesuffix("s")
    try:
        return float(text) if text else LOCK_TIMEOUT_S
    except ValueError:
        return LOCK_TIMEOUT_S
