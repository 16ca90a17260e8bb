"""Read DDx's run records: ``.ddx/run-state``, one per running attempt (docs/formats/ddx.md §4)."""

from __future__ import annotations

from pathlib import Path

from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.claims import Claim, run_state_claim, run_state_files
from helix_tui.core.ddx.files import JsonCache
from helix_tui.core.ground.files import Folder


class RunStates:
    """The run records of a project, read repeatedly."""

    def __init__(self, ddx_dir: Path) -> None:
        self._ddx = ddx_dir
        self._folder = Folder(ddx_dir / "run-state")
        self._documents = JsonCache(limit=1 << 20)
        self._claims: dict[str, Claim] = {}
        self._by_bead: dict[str, dict[str, Piece]] = {}

    def refresh(self) -> set[str]:
        """Read what changed; return the ids of beads whose attempts may differ now."""
        found: dict[str, Claim] = {}
        for path in run_state_files(self._ddx, self._folder):
            document = self._documents.load(path)
            claim = run_state_claim(path, document) if document is not None else None
            if claim is not None and claim.attempt_id:
                found.setdefault(claim.attempt_id, claim)
        self._documents.sweep()
        facts = {name: _facts_of(claim) for name, claim in found.items()}
        before = {name: _facts_of(claim) for name, claim in self._claims.items()}
        names = {name for name in facts.keys() | before.keys() if facts.get(name) != before.get(name)}
        if not names:
            return set()
        self._claims = found
        self._by_bead = {}
        for claim in found.values():
            self._by_bead.setdefault(claim.bead_id, {})[claim.attempt_id] = _piece(claim)
        return {row[0] for name in names for row in (facts.get(name), before.get(name)) if row is not None}

    def of(self, bead_id: str) -> tuple[Piece, ...]:
        """The pieces on attempts of a bead."""
        return tuple(self._by_bead.get(bead_id, {}).values())


def _facts_of(claim: Claim) -> tuple[str, int | None, str, str]:
    """What an attempt takes from its run record, without fields that every heartbeat changes."""
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
