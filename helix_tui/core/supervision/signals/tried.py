"""Beads that a run attempted and left open, and whether they have changed since."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import (
    FOCUS_MARK,
    FOCUS_ON,
    HELD,
    TERMINAL,
    Bead,
)
from helix_tui.core.ddx.names import WORKER_PREFIX
from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    pass


UNDECIDED = "helix-held-for"

_NOTED = (
    *WORKER_PREFIX.values(),
    "claimed-",
    "events",
    "helix-drift",
    FOCUS_ON,
    "helix-held",
    "owner",
    "session_id",
    "updated_at",
)
"""Prefixes of fields that a worker or the loop itself writes into a row without changing the work."""


class Tried(Struct, frozen=True):
    """One bead that an attempt left open."""

    bead_id: str
    status: str
    """DDx's status of the attempt."""
    detail: str = ""
    fingerprint: str = ""
    """Fingerprint of its record after the attempt."""

    @property
    def why(self) -> str:
        """The result, for a sentence."""
        return clean_line(self.status + (f": {self.detail}" if self.detail else ""), 300)

    @property
    def words(self) -> str:
        """What came of it, as a sentence."""
        return f"attempted and still open: {self.why}"

    def record(self) -> dict[str, str]:
        """As stored in the run's state."""
        return asdict(self)


def still_tried(rows: Iterable[Mapping[str, Any]], queue: Queue) -> tuple[Tried, ...]:
    """The tried beads of a run's state that are still open and unchanged since the attempt."""
    found = []
    for row in rows:
        words = {name: str(row.get(name) or "") for name in ("bead_id", "status", "detail", "fingerprint")}
        bead = queue.beads.get(words["bead_id"])
        # a person, or a planning pass, has changed it since: it is worth another attempt
        if bead is None or bead.status in TERMINAL or bead_fingerprint(bead) != words["fingerprint"]:
            continue
        found.append(Tried(**words))
    return tuple(found)


def bead_fingerprint(bead: Bead) -> str:
    """A digest of what a person or a planning pass may have changed in a record, without the hold itself."""
    fields = work_fields(bead)
    fields.pop("execution-eligible", None)
    return hashlib.sha256(repr(fields).encode("utf-8", "replace")).hexdigest()


def work_fields(bead: Bead) -> dict[str, Any]:
    """A record without the fields that workers, a focus or a run write in passing."""
    row = bead.document()
    held = FOCUS_MARK in row or UNDECIDED in row or HELD in row
    return {
        # a temporary claim is not a change of the work
        name: "open" if row[name] == "in_progress" else row[name]
        for name in sorted(row)
        if not name.startswith(_NOTED) and not (held and name == "execution-eligible")
    }
