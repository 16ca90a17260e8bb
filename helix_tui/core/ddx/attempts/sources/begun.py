"""Attempts that have begun and not ended, by their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopEntry
from helix_tui.core.ground.time import NS

MAX_BEGUN = 40_000
"""Maximum number of beginnings kept, the last reported: 0.3 KB each."""


_ENDS = ("bead.result", "loop.operator_attention")
"""Entries with which a loop says what came of a bead: a result, or that it stopped before an agent started."""


FOLLOWS_BEGIN_S = 120
"""Seconds within which an attempt's evidence begins after its loop reports it: commits before dispatch come between."""


class Begun(Struct, gc=False):
    """The beginning of an attempt in a loop log."""

    attempt_id: str
    """The loop's own name for it, which no other record uses."""
    bead_id: str
    loop: str
    at: int
    harness: str
    model: str
    ended: bool = False
    """Whether its loop has said since what came of it."""


class BegunAttempts:
    """What loops say has begun (``worker.heartbeat``, from summer 2026): all that a worker leaves if it is killed
    before its evidence is written.
    """

    def __init__(self) -> None:
        """Start with none."""
        self._by_bead: dict[str, dict[str, Begun]] = {}
        self._in_order: dict[str, str] = {}  # attempt to bead

    def take(self, entry: LoopEntry) -> bool:
        """Read one entry; return whether it tells of a beginning that was not known."""
        bead_id, attempt_id = entry.bead_id, entry.text("attempt_id")
        known = self._by_bead.get(bead_id, {})
        if entry.type in _ENDS:
            for each in known.values():
                each.ended |= each.loop == entry.session_id and each.at <= (entry.at or 0)
            return False
        if entry.type != "worker.heartbeat" or not bead_id or not attempt_id or attempt_id in known or not entry.at:
            return False
        harness, model = entry.text("harness"), entry.text("model")
        begun = Begun(attempt_id, bead_id, entry.session_id, entry.at, harness, model)
        self._by_bead.setdefault(bead_id, {})[attempt_id] = begun
        self._in_order[attempt_id] = bead_id
        if len(self._in_order) > MAX_BEGUN:
            oldest = next(iter(self._in_order))
            of_bead = self._by_bead[self._in_order.pop(oldest)]
            del of_bead[oldest]
        return True

    def without_evidence(self, bead_id: str, began: Iterable[int]) -> Iterator[Piece]:
        """The attempts on a bead that have no result and to which no known attempt belongs.

        Args:
            began: when the known attempts on the bead began; each belongs to the last beginning before it.
        """
        known = self._by_bead.get(bead_id, {}).values()
        if all(each.ended for each in known):
            return
        met = set()
        for instant_ns in began:
            # the name of an attempt has whole seconds: it may seem to begin before its loop reports it
            before = [each for each in known if -NS <= instant_ns - each.at < FOLLOWS_BEGIN_S * NS]
            met |= {max(before, key=lambda each: each.at).attempt_id} if before else set()
        for each in known:
            if not each.ended and each.attempt_id not in met:
                yield Piece(
                    "heartbeat",
                    each.attempt_id,
                    bead_id,
                    worker_id=each.loop,
                    harness=each.harness,
                    model=each.model,
                    started_at=each.at,
                )
