"""The book of attempts: an immutable collection, newest first, with an index by bead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # 6 ms that the first painted queue need not wait for
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.core.ddx.attempts.sums import AgentCall


class AttemptBook:
    """Every known attempt of a project at one moment."""

    def __init__(self, attempts: Iterable[Attempt] = (), other_calls: tuple[AgentCall, ...] = ()) -> None:
        """Take attempts, newest first, and the calls of agents that belong to none."""
        self.other_calls = other_calls
        self._by_id: Mapping[str, Attempt] = {attempt.attempt_id: attempt for attempt in attempts}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._by_id.values())

    def get(self, attempt_id: str) -> Attempt | None:
        """The attempt of that id."""
        return self._by_id.get(attempt_id)

    def newest(self, count: int) -> tuple[Attempt, ...]:
        """The newest attempts."""
        return tuple(attempt for attempt, _ in zip(self, range(count), strict=False))

    def of_bead(self, bead_id: str) -> tuple[Attempt, ...]:
        """The attempts on one bead, newest first."""
        return self._by_bead.get(bead_id, ())

    def changed_since(self, old: AttemptBook) -> frozenset[str]:
        """Ids of attempts that are new, different or gone."""
        if old is self:
            return frozenset()
        before, after = old._by_id, self._by_id
        changed = {key for key, attempt in after.items() if before.get(key) is not attempt}
        same = {key for key in changed if key in before and before[key] == after[key]}
        return frozenset((changed - same) | (before.keys() - after.keys()))

    @cached_property
    def _by_bead(self) -> Mapping[str, tuple[Attempt, ...]]:
        found: dict[str, list[Attempt]] = {}
        for attempt in self:
            found.setdefault(attempt.bead_id, []).append(attempt)
        return {bead_id: tuple(attempts) for bead_id, attempts in found.items()}
