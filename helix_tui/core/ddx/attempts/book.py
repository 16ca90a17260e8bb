"""All attempts known at one moment: an immutable collection, newest first, indexed by bead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import AgentCall, Sums, sum_calls
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ground.time import NS

LONGEST_DAY = 86_400 * NS
"""How long before an instant an attempt may have begun whose calls fall after that instant."""


class NamelessEnd(Struct, frozen=True):
    """The end of an attempt without an id: ddx failed before it had one, or is a release of early April."""

    bead_id: str
    status: str
    at: int | None


def deciding(made: Sequence[Attempt]) -> Attempt | None:
    """The attempt that decides a bead's state, from its attempts, newest first: the newest that neither failed nor was
    interrupted, else the newest.
    """
    decided = (attempt for attempt in made if OUTCOME_ROWS[attempt.verdict.outcome].decides)
    return next(decided, None) or next(iter(made), None)


class AttemptBook:
    """All known attempts of a project at one moment."""

    def __init__(
        self,
        attempts: Iterable[Attempt] = (),
        other_calls: tuple[AgentCall, ...] = (),
        nameless: tuple[NamelessEnd, ...] = (),
    ) -> None:
        """Take attempts, newest first, and the agent calls and ends that belong to no attempt."""
        self.other_calls = other_calls
        self.nameless = nameless
        self._by_id: Mapping[str, Attempt] = {attempt.attempt_id: attempt for attempt in attempts}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Attempt]:
        return iter(self._by_id.values())

    def get(self, attempt_id: str) -> Attempt | None:
        """The attempt with an id, or None."""
        return self._by_id.get(attempt_id)

    def newest(self, count: int) -> tuple[Attempt, ...]:
        """At most ``count`` attempts, the newest."""
        return tuple(attempt for attempt, _ in zip(self, range(count), strict=False))

    def of_bead(self, bead_id: str) -> tuple[Attempt, ...]:
        """The attempts on one bead, newest first."""
        return self._by_bead.get(bead_id, ())

    def deciding(self, bead_id: str) -> Attempt | None:
        """The attempt that decides a bead's state."""
        return deciding(self.of_bead(bead_id))

    def nameless_since(self, start: int | None, bead_id: str | None = None) -> list[NamelessEnd]:
        """The ends without an attempt's id since an instant, of one bead or of all; of all time if it is None."""
        return [
            end for end in self.nameless if bead_id in (None, end.bead_id) and (start is None or (end.at or 0) >= start)
        ]

    def spent_since(self, start: int) -> Sums:
        """The cost of all agent calls since an instant; the search ends `LONGEST_DAY` before it."""
        calls = list(self.other_calls)
        for attempt in self._since(start):
            calls += attempt.spent
        return sum_calls(calls, since=start)

    def begun_since(self, start: int) -> int:
        """How many attempts began since an instant."""
        return sum((attempt.started_at or 0) >= start for attempt in self._since(start))

    def _since(self, start: int) -> Iterator[Attempt]:
        """The attempts that may have been active since an instant."""
        # newest end first, so the search can stop at the first that is too old
        for attempt in self:
            ended = attempt.finished_at
            if ended is not None and ended < start and (attempt.started_at or 0) < start - LONGEST_DAY:
                return
            yield attempt

    def changed_since(self, old: AttemptBook) -> frozenset[str]:
        """Ids of attempts that were added, changed or removed."""
        if old is self:
            return frozenset()
        before, after = old._by_id, self._by_id
        # identity first, it is cheaper: an attempt that was not merged again is the same object
        changed = {key for key, attempt in after.items() if before.get(key) is not attempt}
        same = {key for key in changed if key in before and before[key] == after[key]}
        return frozenset((changed - same) | (before.keys() - after.keys()))

    @cached_property
    def _by_bead(self) -> Mapping[str, tuple[Attempt, ...]]:
        found: dict[str, list[Attempt]] = {}
        for attempt in self:
            found.setdefault(attempt.bead_id, []).append(attempt)
        return {bead_id: tuple(attempts) for bead_id, attempts in found.items()}
