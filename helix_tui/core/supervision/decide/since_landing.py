"""Why nothing has landed since the last landing: what was attempted since, how it ended, what runs, what waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt, count_outcomes
from helix_tui.core.ddx.attempts.index import LONGEST_DAY
from helix_tui.core.ddx.attempts.sums import Sums, format_sum, sum_calls
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, format_age, format_instant

if TYPE_CHECKING:
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.needs import Need

Told = tuple[str, str]
"""A caption and what stands behind it."""


class SinceLanding(Struct, frozen=True):
    """The last attempt that landed, and those that ended after it."""

    landed: Attempt | None = None
    """None where nothing has landed yet."""
    attempts: tuple[Attempt, ...] = ()
    """Newest first; all of them where nothing has landed."""

    @property
    def at(self) -> int | None:
        """When it landed, in ns."""
        return self.landed.counted_at if self.landed is not None else None

    @property
    def sums(self) -> Sums:
        """What those after it cost."""
        return sum_calls(spent for attempt in self.attempts for spent in attempt.spent)

    def describe_landed(self, title: str, now: int) -> str:
        """How long ago, and what."""
        if self.landed is None or self.at is None:
            return "nothing yet"
        what = f"“{clean_line(title, 120)}”" if title else clean_line(self.landed.bead_id, 60)
        return f"{format_age((now - self.at) / NS)} ago: {what}"

    def describe_attempts(self) -> str:
        """How those after it ended, in the words of the one verdict, and which ending was the most frequent."""
        if not self.attempts:
            return "nothing was attempted" + ("" if self.landed is None else " since")
        counts = count_outcomes(self.attempts).items()
        ends = ", ".join(f"{count:,} {OUTCOME_WORDS[outcome]}" for outcome, count in counts)
        number = counted(len(self.attempts), "attempt")
        return f"{number}, {format_sum(self.sums)}: {ends}{self._most_often()}"

    def _most_often(self) -> str:
        """The ending that most of them had, with the newest reason given for it."""
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
    """What came after the last landing; an attempt may begin before another one and land after it."""
    seen: list[Attempt] = []
    last: Attempt | None = None
    for attempt in newest_first:
        if last is not None and (attempt.started_at or attempt.counted_at) < last.counted_at - LONGEST_DAY:
            break
        seen.append(attempt)
        if attempt.landed and (last is None or attempt.counted_at > last.counted_at):
            last = attempt
    after = [each for each in seen if last is None or (each is not last and each.counted_at > last.counted_at)]
    return SinceLanding(last, tuple(each for each in after if each.verdict.outcome != "unfinished"))


def explain_landings(
    found: SinceLanding,
    *,
    title: str,
    summary: StatusSummary,
    running: int,
    needs: Sequence[Need],
    now: int,
) -> Iterator[Told]:
    """The whole answer: the last landing, the attempts since, what runs or why nothing does, what waits for a person.

    Args:
        title: of the bead that landed last.
        running: workers that live.
        needs: everything that waits for a person.
    """
    yield "landed", found.describe_landed(title, now)
    yield "since", found.describe_attempts()
    yield "runs", " · ".join(_running(summary, running))
    yield "waits", _waiting(needs, {attempt.attempt_id for attempt in found.attempts})


def _running(summary: StatusSummary, running: int) -> Iterator[str]:
    """What runs; where nothing does, how the loop and the last worker ended."""
    if running:
        yield counted(running, "worker")
        return
    yield "nothing"
    if summary.run.condition != "never":
        yield f"loop {summary.run.explanation}"
    if summary.stoppage is not None:
        yield summary.stoppage.words


def _waiting(needs: Sequence[Need], left: Collection[str]) -> str:
    if not needs:
        return "nothing waits for you"
    own = sum(need.attempt_id in left for need in needs)
    said = f"{counted(len(needs), 'thing')} need{'s' * (len(needs) == 1)} you"
    return said + (f", {own:,} of them left by these attempts" if own else "")
