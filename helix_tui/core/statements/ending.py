"""How attempts ended: the outcomes of some in words, what came after the last landing, and the end of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt, count_outcomes
from helix_tui.core.ddx.attempts.costs import Sums, format_sum, sum_calls
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.statements.counts import need_you
from helix_tui.core.statements.run import explain_run

if TYPE_CHECKING:
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.needs import Need


def outcome_words(counts: Mapping[Outcome, int]) -> str:
    """``3 landed, 1 failed``: each outcome with its number."""
    return ", ".join(f"{number:,} {OUTCOME_WORDS[outcome]}" for outcome, number in counts.items())


def run_ended(newest_first: Iterable[Attempt], since: int) -> tuple[str, tuple[Attempt, ...]]:
    """How the attempts that ended since a run began did, and those attempts, newest first."""
    ended = tuple(each for each in newest_first if each.finished and (each.finished_at or 0) >= since)
    return outcome_words(count_outcomes(ended)) or "no attempt ended in it", ended


class SinceLanding(Struct, frozen=True, dict=True):
    """The last attempt that landed, and those that ended after it."""

    landed: Attempt | None = None
    """None if nothing has landed yet."""
    attempts: tuple[Attempt, ...] = ()
    """Later attempts, newest first; all if nothing has landed."""

    @property
    def at(self) -> int | None:
        """When it landed, in ns."""
        return self.landed.landed_at if self.landed is not None else None

    @cached_property
    def sums(self) -> Sums:
        """The cost of the later attempts."""
        return sum_calls(spent for attempt in self.attempts for spent in attempt.spent)

    def describe_landed(self, title: str, now: int) -> str:
        """The last landing: how long ago, and its bead."""
        if self.landed is None or self.at is None:
            return "nothing yet"
        what = f"“{clean_line(title, 120)}”" if title else clean_line(self.landed.bead_id, 60)
        return f"{format_age((now - self.at) / NS)} ago: {what}"

    def describe_attempts(self) -> str:
        """How the later attempts ended, in the verdict's words, and the most frequent ending."""
        if not self.attempts:
            return "no attempt"
        cost = format_sum(self.sums) if self.sums.usd is not None else "cost unknown"
        ends = outcome_words(count_outcomes(self.attempts))
        return f"{counted(len(self.attempts), 'attempt')} ({cost}): {ends}{self._most_often()}"

    def _most_often(self) -> str:
        """The most frequent ending, with its newest reason."""
        endings = Counter(attempt.status for attempt in self.attempts if attempt.status)
        status, count = next(iter(endings.most_common(1)), ("", 0))
        if not status:
            return ""
        newest = next(attempt for attempt in self.attempts if attempt.status == status)
        reason = clean_line(newest.detail or newest.verdict.why, 200)
        if len(self.attempts) == 1:
            return f"; {reason}"
        word = clean_line(status, 60)
        return (
            f"; last {word}: {reason}" if count == 1 else f"; most often {word} ({count:,}×), the last time: {reason}"
        )

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "landed_at": None if self.at is None else format_instant(self.at),
            "landed_attempt": self.landed.attempt_id if self.landed is not None else None,
            "attempts": len(self.attempts),
            "outcomes": count_outcomes(self.attempts),
            "statuses": dict(Counter(attempt.status or "no status" for attempt in self.attempts).most_common()),
            "spent": self.sums.record(),
        }


def since_landing(newest_first: Iterable[Attempt]) -> SinceLanding:
    """What came after the last landing; an attempt may end before another one and land after it."""
    ended = [each for each in newest_first if each.verdict.outcome != "unfinished"]
    last = max((each for each in ended if each.landed), key=attrgetter("landed_at"), default=None)
    if last is None:
        return SinceLanding(None, tuple(ended))
    later = takewhile(lambda each: each.counted_at > last.landed_at, ended)
    return SinceLanding(last, tuple(each for each in later if each is not last))


def explain_landings(
    found: SinceLanding, *, title: str, summary: StatusSummary, running: int, needs: Sequence[Need], now: int
) -> Iterator[tuple[str, str]]:
    """The whole answer as captions with lines: the last landing, the attempts since, what is running or why nothing is,
    what waits for a person.

    Args:
        title: title of the bead that landed last.
        running: live workers.
        needs: everything that waits for a person.
    """
    yield "landed", found.describe_landed(title, now)
    yield "since", found.describe_attempts()
    yield "runs", " · ".join(_running(summary, running))
    yield "waits", _waiting_left(needs, {attempt.attempt_id for attempt in found.attempts})


def _running(summary: StatusSummary, running: int) -> Iterator[str]:
    """What is running; if nothing, how the loop and the last worker ended."""
    if running:
        yield counted(running, "worker")
        return
    yield "nothing"
    if summary.run.condition != "never":
        yield explain_run(summary.run)
    if summary.stoppage is not None:
        yield summary.stoppage.words


def _waiting_left(needs: Sequence[Need], left: Collection[str]) -> str:
    own = sum(need.attempt_id in left for need in needs)
    return need_you(len(needs)) + (f"; these attempts left {own:,}" if own else "")
