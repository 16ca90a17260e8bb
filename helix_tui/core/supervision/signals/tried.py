"""What a run has tried and left open: passed over until its record changes, and named wherever one looks.

ddx itself tries a bead once in a session and then the others (docs/decisions/0004). A run lets ddx do one
bead a session, so the memory of what was tried is the run's own: it stands in the run's state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ddx.names import WORKER_PREFIX
from helix_tui.core.editing.plan.fields import FOCUS_MARK
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.signals.eligibility_hold import DRIFTED, UNDECIDED


@dataclass(frozen=True, slots=True)
class Tried:
    """One bead that an attempt left open."""

    bead_id: str
    status: str
    """DDx's word for what came of it."""
    detail: str = ""
    fingerprint: str = ""
    """Of its record as the attempt left it."""

    @property
    def why(self) -> str:
        """What came of it, for a sentence."""
        return clean_line(self.status + (f": {self.detail}" if self.detail else ""), 300)

    def record(self) -> dict[str, str]:
        """As it stands in the run's state."""
        return asdict(self)


def still_tried(rows: Iterable[Mapping[str, Any]], queue: Queue) -> tuple[Tried, ...]:
    """Those of a run's state whose bead is open, with the record that the attempt left."""
    found = []
    for row in rows:
        words = {name: str(row.get(name) or "") for name in ("bead_id", "status", "detail", "fingerprint")}
        bead = queue.beads.get(words["bead_id"])
        if bead is None or bead.status in TERMINAL or bead_fingerprint(bead) != words["fingerprint"]:
            continue
        found.append(Tried(**words))
    return tuple(found)


def bead_fingerprint(bead: Bead) -> str:
    """A digest of what a person or a planning pass may have changed in a record, but for the hold itself."""
    fields = work_fields(bead)
    fields.pop("execution-eligible", None)
    return hashlib.sha256(repr(fields).encode("utf-8", "replace")).hexdigest()


def work_fields(bead: Bead) -> dict[str, Any]:
    """A record without what a worker notes in it as it comes and goes, or a focus or a run holds back."""
    row = bead.document()
    held = FOCUS_MARK in row or UNDECIDED in row or DRIFTED in row
    return {
        name: "open" if row[name] == "in_progress" else row[name]
        for name in sorted(row)
        if not name.startswith(_NOTED) and not (held and name == "execution-eligible")
    }


_NOTED = (
    *WORKER_PREFIX.values(),
    "claimed-",
    "events",
    "helix-drift",
    "helix-focus",
    "helix-held",
    "owner",
    "session_id",
    "updated_at",
)
"""Beginnings of the fields that a worker, or the loop itself, writes into a row without changing the work."""
