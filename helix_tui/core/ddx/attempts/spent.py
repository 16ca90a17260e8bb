"""Which call of an agent belongs to which attempt: each call once, whoever tells of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.attempts.calls import IndexedCall, SessionIndex
from helix_tui.core.ddx.attempts.sums import AgentCall
from helix_tui.core.ground.time import NS

CHECKED_S = 900
"""Seconds between ddx's readiness check of a bead and the attempt that it led to."""


class Spent:
    """Shares ddx's session index out among attempts."""

    def __init__(self, ddx_dir: Path) -> None:
        self._index = SessionIndex(ddx_dir)
        self._by_bead: dict[str, list[IndexedCall]] = {}
        self._other: dict[str, tuple[AgentCall, ...]] = {}

    def refresh(self) -> set[str]:
        """Take in what ddx appended; the ids of beads that it speaks of."""
        new = self._index.refresh()
        if not new and len(self._index.calls) == sum(map(len, self._by_bead.values())):
            return set()
        dirty = set(self._by_bead) if len(new) == len(self._index.calls) else set()
        grouped: dict[str, list[IndexedCall]] = defaultdict(list)
        for each in self._index.calls:
            grouped[each.call.bead_id].append(each)
        self._by_bead = dict(grouped)
        dirty |= {each.call.bead_id for each in new}
        for bead_id in dirty:
            self._other[bead_id] = tuple(each.call for each in self._by_bead.get(bead_id, ()))
        return dirty

    @property
    def other(self) -> tuple[AgentCall, ...]:
        """Calls that belong to no attempt."""
        return tuple(call for calls in self._other.values() for call in calls)

    def share(self, bead_id: str, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
        """The attempts of a bead, newest first, each with its calls; the others are kept apart."""
        calls = self._by_bead.get(bead_id)
        if not calls:
            return tuple(attempts)
        shares: dict[str, list[IndexedCall]] = defaultdict(list)
        other = []
        for each in calls:
            owner = _owner(each, attempts)
            if owner is None:
                other.append(each.call)
            else:
                shares[owner].append(each)
        self._other[bead_id] = tuple(other)
        return tuple(_with_calls(attempt, shares.get(attempt.attempt_id, ())) for attempt in attempts)


def _owner(each: IndexedCall, attempts: Sequence[Attempt]) -> str | None:
    """The attempt that a call was made for."""
    for attempt in attempts:
        if each.call.attempt_id == attempt.attempt_id:
            return attempt.attempt_id
        if not each.call.attempt_id and each.session_id and each.session_id == attempt.session_id:
            return attempt.attempt_id
    if each.call.part != "checks":
        return None
    later = [
        (attempt.started_at, attempt.attempt_id)
        for attempt in attempts
        if attempt.started_at is not None and -NS <= attempt.started_at - each.started_at < CHECKED_S * NS
    ]
    return min(later)[1] if later else None


def _with_calls(attempt: Attempt, calls: Iterable[IndexedCall]) -> Attempt:
    """An attempt with its calls; what its own cycles used together is said by them and not by the last."""
    held = list(calls)
    if not held:
        return attempt
    work = [each for each in held if each.call.part == "work"]
    changed = replace(attempt, calls=tuple(each.call for each in held))
    if not work:
        return changed
    usd = [each.call.usd for each in work if each.call.usd is not None]
    total = [each.call.tokens for each in work if each.call.tokens is not None]
    if len(usd) == len(work) and any(usd):
        changed = replace(changed, cost_usd=sum(usd))
    if len(total) == len(work) and any(total):
        parts = [
            sum(filter(None, (getattr(each, name) for each in work))) or None for name in ("input", "cached", "output")
        ]
        changed = replace(changed, tokens=Tokens(parts[0], parts[1], parts[2], sum(total)))
    return changed
