"""Run records, each read as a piece of an attempt: of one whose worker was killed it may be all there is.

``.ddx/run-state/<attempt>.json`` and ``.ddx/run-state.json`` (docs/formats/ddx.md §4.1). Since May the
evidence folder comes into the project when the agent has ended; what ddx was killed at has none.
"""

from __future__ import annotations

from pathlib import Path

from helix_tui.core.ddx.attempts.attempt import Piece
from helix_tui.core.ddx.claims import Claim, run_state_claim, run_state_files
from helix_tui.core.ddx.files import Folder, JsonCache


class RunStates:
    """The run records of a project, look after look."""

    def __init__(self, ddx_dir: Path) -> None:
        self._ddx = ddx_dir
        self._folder = Folder(ddx_dir / "run-state")
        self._documents = JsonCache(limit=1 << 20)
        self._claims: dict[str, Claim] = {}
        self._by_bead: dict[str, dict[str, Piece]] = {}

    def refresh(self) -> set[str]:
        """Take in what changed; the ids of beads whose attempts may differ now."""
        found: dict[str, Claim] = {}
        for path in run_state_files(self._ddx, self._folder):
            document = self._documents.load(path)
            claim = run_state_claim(path, document) if document is not None else None
            if claim is not None and claim.attempt_id:
                found.setdefault(claim.attempt_id, claim)
        self._documents.sweep()
        told = {name: _told(claim) for name, claim in found.items()}
        before = {name: _told(claim) for name, claim in self._claims.items()}
        names = {name for name in told.keys() | before.keys() if told.get(name) != before.get(name)}
        if not names:
            return set()
        self._claims = found
        self._by_bead = {}
        for claim in found.values():
            self._by_bead.setdefault(claim.bead_id, {})[claim.attempt_id] = _piece(claim)
        return {row[0] for name in names for row in (told.get(name), before.get(name)) if row is not None}

    def of(self, bead_id: str) -> tuple[Piece, ...]:
        """What is recorded of attempts of a bead."""
        return tuple(self._by_bead.get(bead_id, {}).values())


def _told(claim: Claim) -> tuple[str, int | None, str, str]:
    """What an attempt takes from its record: nothing that each heartbeat changes."""
    return claim.bead_id, claim.started_at, claim.harness, claim.model


def _piece(claim: Claim) -> Piece:
    return Piece(
        "run-state",
        claim.attempt_id,
        claim.bead_id,
        worker_id=claim.worker_id,
        harness=claim.harness,
        model=claim.model,
        started_at=claim.started_at,
    )
