"""The budget of a run and a day (dollars, tokens, attempts), the amount spent (every agent call since the start, each
once), and the limits reached.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import MEMORY_CLASSES, Attempt, memory_class
from helix_tui.core.ddx.attempts.costs import AgentCall, Sums, format_sum, format_usd, sum_calls
from helix_tui.core.ddx.attempts.index import BranchHistory, merge_report
from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.attempts.sources.from_sessions import IndexedCall, SessionIndex
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopEntry, LoopLogs, unrecorded_checks
from helix_tui.core.ddx.files import decode_object, instant, money, text, whole
from helix_tui.core.ground.files import below, is_file, read_bytes, stamp_of
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, parse_instant
from helix_tui.core.ground.writes import replace_file
from helix_tui.core.supervision.run_state.state import load_state
from helix_tui.core.supervision.stages.results import LoopResult, LoopTurn

NAME = "budget.json"
MAX_FILE = 1 << 14

BudgetSpan = Literal["run", "day"]
SPANS: Mapping[BudgetSpan, str] = {"run": "this run", "day": "today"}
"""The periods of a budget, and their names in sentences."""

NONE = ("none", "no limit", "unlimited")
"""Words that remove a budget."""

HOW = "write it like $5, 2M tokens, 10 attempts; or none"
"""The grammar in one line, for error messages."""

_AMOUNT = re.compile(
    r"(?P<dollar>\$)?\s*(?P<number>\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?P<scale>[kKmM]?)\s*"
    r"(?P<unit>usd|dollars?|tokens?|tok|attempts?|beads?)?\Z",
    re.IGNORECASE,
)

_LOOKED_AT = "picker."
"""Prefix of entries on beads that a loop did not take, e.g. because another was quicker."""


class Limits(Struct, frozen=True):
    """Upper limits; None means no limit."""

    usd: float | None = None
    tokens: int | None = None
    attempts: int | None = None

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    def __str__(self) -> str:
        """In the form that `parse_limits` reads."""
        parts = [
            f"${self.usd:,.2f}" if self.usd is not None else "",
            f"{format_count(self.tokens)} tokens" if self.tokens is not None else "",
            counted(self.attempts, "attempt") if self.attempts is not None else "",
        ]
        return ", ".join(filter(None, parts)) or "none"

    def over(self, below: Limits) -> Limits:
        """These limits, completed with ``below``."""
        return Limits(
            self.usd if self.usd is not None else below.usd,
            self.tokens if self.tokens is not None else below.tokens,
            self.attempts if self.attempts is not None else below.attempts,
        )


NO_LIMITS = Limits()


def parse_limits(text: str) -> Limits:
    """Parse limits separated by commas (or one blank after a unit); `NONE` means no limit.

    Raises:
        ValueError: a part is not a limit; the message says how to write one.
    """
    wanted = clean_line(text, 200).strip()
    if not wanted or wanted.lower() in NONE:
        return NO_LIMITS
    found = NO_LIMITS
    # a comma between two digits belongs to the number: 1,000 tokens
    for part in re.split(r",\s+|,(?=\s*\$)|\s+(?=\$)|(?<=[a-z]),", wanted):
        name, value = _amount(part.strip())
        if getattr(found, name) is not None:
            raise ValueError(f"two limits on {name} in “{wanted}”; {HOW}")
        found = replace(found, **{name: value})
    return found


def _amount(part: str) -> tuple[str, Any]:
    match = _AMOUNT.match(part)
    if match is None:
        raise ValueError(f"not a budget: “{part}”; {HOW}")
    unit = (match["unit"] or "").lower()
    number = float(match["number"].replace(",", "")) * {"k": 1e3, "m": 1e6}.get(match["scale"].lower(), 1)
    dollars = bool(match["dollar"]) or unit.startswith(("usd", "dollar"))
    if number < 0.01 or number > 1e12 or (match["dollar"] and unit.startswith(("tok", "att", "bead"))):
        raise ValueError(f"not a budget: “{part}”; {HOW}")
    if dollars:
        return "usd", number
    if unit.startswith("tok"):
        return "tokens", round(number)
    if unit.startswith(("attempt", "bead")) and number == int(number):
        return "attempts", int(number)
    raise ValueError(f"“{part}” has no unit; {HOW}")


def format_count(count: int) -> str:
    """A count with the scale that `parse_limits` reads back: ``2M``, ``250k``, ``940``."""
    for scale, letter in ((1_000_000, "M"), (1_000, "k")):
        if count >= scale:
            short = f"{count / scale:.6g}"
            return f"{short}{letter}" if round(float(short) * scale) == count else f"{count:,}"
    return str(count)


class Budget(Struct, frozen=True):
    """The limits of each run and each day."""

    run: Limits = NO_LIMITS
    day: Limits = NO_LIMITS

    def __bool__(self) -> bool:
        return bool(self.run or self.day)

    def over(self, below: Budget) -> Budget:
        """This budget, completed with ``below``."""
        return Budget(self.run.over(below.run), self.day.over(below.day))

    def record(self) -> dict[str, Any]:
        """As JSON; null means no limit."""
        return {span: _record(getattr(self, span)) for span in SPANS}


NO_BUDGET = Budget()


def _record(limits: Limits) -> dict[str, Any]:
    return {"usd": limits.usd, "tokens": limits.tokens, "attempts": limits.attempts}


def budget_file(project: Project) -> Path:
    """The file of a project's own budget."""
    return project.helix_dir / NAME


def read_budget(project: Project) -> Budget:
    """The project's own budget; empty if there is no readable file."""
    return budget_of(decode_json(read_bytes(budget_file(project), MAX_FILE)))


def budget_of(document: object) -> Budget:
    """A budget from the JSON of `Budget.record`; invalid limits are ignored."""
    rows = document if isinstance(document, dict) else {}
    return Budget(*(_limits(rows.get(span)) for span in SPANS))


def _limits(row: object) -> Limits:
    if not isinstance(row, dict):
        return NO_LIMITS
    usd, counts = row.get("usd"), [row.get(name) for name in ("tokens", "attempts")]
    fits = isinstance(usd, int | float) and not isinstance(usd, bool) and usd > 0
    # type(), not isinstance(): True is not a count
    whole = [count if type(count) is int and count > 0 else None for count in counts]
    return Limits(float(usd) if fits else None, *whole)  # type: ignore[arg-type]


def write_budget(project: Project, budget: Budget) -> None:
    """Save a project's own budget; an active run reads it before its next bead.

    Raises:
        OSError: the folder cannot be written.
    """
    replace_file(budget_file(project), msgspec.json.encode({"schema": "budget/1", **budget.record()}) + b"\n")


def budget_in_force(project: Project, asked: Budget = NO_BUDGET, default: Budget = NO_BUDGET) -> Budget:
    """The budget in force: a run's own, then the project's, then the settings'."""
    return asked.over(read_budget(project)).over(default)


class Spending(Struct, frozen=True):
    """The amount spent in a period, and the number of attempts."""

    sums: Sums = field(default_factory=Sums)
    attempts: int = 0


class BudgetUse(Struct, frozen=True):
    """One part of a budget and its use."""

    span: BudgetSpan
    part: Literal["usd", "tokens", "attempts"]
    limit: float
    spent: float
    complete: bool = True
    """Whether every call reports its use; else ``spent`` is a lower bound."""
    sums: Sums = field(default_factory=Sums)

    @property
    def reached(self) -> bool:
        """Whether nothing of it is left."""
        return self.spent >= self.limit

    @property
    def share(self) -> float:
        """The share spent; 1 or more if reached."""
        return self.spent / self.limit

    @property
    def limit_words(self) -> str:
        """``$5.00``, ``2M tokens``, ``10 attempts``."""
        if self.part == "usd":
            return format_usd(self.limit)
        return (
            f"{format_count(int(self.limit))} {self.part}"
            if self.part == "tokens"
            else counted(int(self.limit), "attempt")
        )

    @property
    def amount(self) -> str:
        """``$5.21 of $5.00``; ``≥`` if some calls do not report their use."""
        least = "" if self.complete else "≥"
        if self.part == "usd":
            return f"{format_sum(self.sums)} of {format_usd(self.limit)}"
        if self.part == "tokens":
            return f"{least}{format_count(int(self.spent))} of {format_count(int(self.limit))} tokens"
        return f"{int(self.spent):,} of {int(self.limit):,} attempts"

    def spent_words(self) -> str:
        """``$5.21 of $5.00 this run; 2 calls did not say``."""
        unknown = self.sums.whole.without_usd if self.part == "usd" else self.sums.whole.without_tokens
        blind = unknown and self.part != "attempts"
        calls = f"; {counted(unknown, 'call')} did not say" if blind else ""
        return f"{self.amount} {SPANS[self.span]}{calls}"

    def describe(self) -> str:
        """One sentence: the amount spent of the limit, and what is unknown."""
        return f"budget {'reached' if self.reached else 'in force'}: {self.spent_words()}"


def budget_uses(budget: Budget, *, run: Spending | None, day: Spending) -> tuple[BudgetUse, ...]:
    """Each part of a budget with its use, the most exhausted first.

    Args:
        run: what the active run has spent, or None.
        day: what everyone has spent in this project today.
    """
    spans: Iterable[tuple[BudgetSpan, Limits, Spending | None]] = (("run", budget.run, run), ("day", budget.day, day))
    uses = [use for span, limits, spent in spans if spent is not None for use in _uses(span, limits, spent)]
    return tuple(sorted(uses, key=lambda use: -use.share))


def first_reached(
    uses: Iterable[BudgetUse], *, usd: float | None, tokens: float | None
) -> tuple[int, BudgetUse] | None:
    """After how many beads of this average cost the first part of a budget is reached, and which; None if none is.

    A part for which the cost of a bead is unknown is skipped, unless it is reached already: then the number is 0.
    """
    sizes = {"usd": usd, "tokens": tokens, "attempts": 1.0}
    known = ((use, size) for use in uses if (size := sizes[use.part]) or use.reached)
    counts = [(0 if use.reached else ceil((use.limit - use.spent) / (size or 1)), use) for use, size in known]
    return min(counts, key=lambda count: count[0], default=None)


def _uses(span: BudgetSpan, limits: Limits, spent: Spending) -> Iterable[BudgetUse]:
    sums = spent.sums
    if limits.usd is not None:
        yield BudgetUse(span, "usd", limits.usd, sums.usd or 0.0, sums.complete, sums)
    if limits.tokens is not None:
        yield BudgetUse(span, "tokens", limits.tokens, sums.tokens or 0, sums.tokens_complete, sums)
    if limits.attempts is not None:
        yield BudgetUse(span, "attempts", limits.attempts, spent.attempts, sums=sums)


class WhoseCall:
    """Distinguishes the calls of one turn from those of parallel workers, by the logs that grew since its start."""

    def __init__(self, ddx_dir: Path, since: int, results: Iterable[LoopResult]) -> None:
        """Read those logs.

        Args:
            since: when the turn began, in nanoseconds.
            results: the results reported by the turn's ddx.
        """
        ours = {result.session_id for result in results if result.session_id}
        logs = LoopLogs(ddx_dir)
        self._said: list[tuple[int, str, bool]] = []  # (time, bead, whether by a parallel worker)
        stamps = ((path, stamp_of(path)) for path in logs.paths())
        grown = [path for path, stamp in stamps if stamp is not None and stamp[0] >= since // NS * NS]
        loops = [entries for path in grown if (entries := logs.poll([path]))]
        begun = [entries for entries in loops if (entries[0].at or 0) >= since // NS * NS]
        own = [entries for entries in begun if ours & _told(entries)]
        # an interrupted loop has reported no result: those without one may be this turn's
        if not own:
            own = [entries for entries in begun if not _told(entries)]
        for entries in loops:
            beside = not any(entries is each for each in own)
            taken = (entry for entry in entries if not entry.type.startswith(_LOOKED_AT))
            self._said += [(each.at, each.bead_id, beside) for each in taken if each.at is not None]
        self._said.sort()
        self.unrecorded = [call for entries in own for call in unrecorded_checks(entries)]
        """Calls of the turn itself that its log tells of and the index does not."""

    def beside(self, call: IndexedCall) -> bool:
        """Whether a parallel worker made the call; False if no log says so."""
        bead_id = call.call.bead_id
        # the last loop that took the bead before the call made it; a call without a bead goes by time alone
        for at, named, beside in reversed(self._said):
            if at <= call.started_at and (named == bead_id or not bead_id):
                return beside
        return False


def _told(entries: Sequence[LoopEntry]) -> set[str]:
    """The sessions with results reported by a loop."""
    return {session for entry in entries if entry.type == "bead.result" and (session := entry.text("session_id"))}


class Account:
    """Determines what the turns and questions of one run cost."""

    def __init__(self, ddx_dir: Path, *, anew: bool = True) -> None:
        """Open the account; existing index entries count as booked, unless they may belong to a run that died."""
        self._ddx_dir = ddx_dir
        self._index = SessionIndex(ddx_dir)
        self._counted: set[tuple[str, int]] = set()
        if anew:
            self._index.refresh()
            self._counted = {_key(call) for call in self._index.calls}

    def turn(self, turn: LoopTurn, since: int, booked: Collection[str] = ()) -> tuple[Sums, tuple[LoopResult, ...]]:
        """The cost of a turn of ddx, and its attempts that its report omits (May retries).

        Args:
            since: the start of the turn.
            booked: ids of attempts already counted.
        """
        reported = {result.attempt_id for result in turn.results}
        calls = self._made_by(turn, since, booked)
        # the report of a turn without an agent repeats an earlier attempt's tokens, which the index has already
        worked = {each.call.attempt_id for each in self._index.calls if each.call.part == "work"}
        worked |= {result.attempt_id for result in turn.results if result.attempt.recovered}
        missing = [result for result in turn.results if result.attempt_id not in worked]
        calls += [_from_report(result) for result in missing]
        if missing and missing == list(turn.results) and not any(result.tokens for result in missing) and turn.tokens:
            # the harness reported one sum for the turn: assign it to one attempt, so that it counts once
            calls[-1] = replace(calls[-1], tokens=turn.tokens)  # a harness that reports its tokens on stderr
        unsaid = {call.attempt_id: call.bead_id for call in calls if call.part == "work" and call.attempt_id}
        left_out = [self._result(name, unsaid[name]) for name in sorted(unsaid.keys() - reported)]
        return sum_calls(calls), tuple(left_out) if turn.results else ()

    def _made_by(self, turn: LoopTurn, since: int, booked: Collection[str]) -> list[AgentCall]:
        """The calls of a turn: those of its attempts, and those without an attempt not made by a parallel worker."""
        reported = {result.attempt_id for result in turn.results if result.attempt_id}
        beads = {result.bead_id for result in turn.results}
        new = [each for each in self._new(since) if each.call.attempt_id not in booked]
        likely = [each for each in new if not each.call.attempt_id or each.call.bead_id in beads]
        whose = WhoseCall(self._ddx_dir, since, turn.results)
        made = [
            each.call for each in new if each.call.attempt_id in reported or (each in likely and not whose.beside(each))
        ]
        return made + whose.unrecorded

    def question(self, since: int, tokens: int, usd: float) -> Sums:
        """The cost of a question to an agent, or of a planning stage."""
        named_nothing = (each.call for each in self._new(since) if not each.call.attempt_id and not each.call.bead_id)
        calls = list(named_nothing)  # a call with a bead is a parallel worker's
        if not calls:
            calls = [AgentCall("other", since, usd or None, tokens or None)]
        return sum_calls(calls)

    def _new(self, since: int) -> Iterable[IndexedCall]:
        """Rows from the second of ``since`` on that are not yet counted."""
        self._index.refresh()
        for call in reversed(self._index.calls):
            key = _key(call)
            if call.call.at < since // NS * NS:
                return
            if key not in self._counted and call.started_at >= since // NS * NS:
                self._counted.add(key)
                yield call

    def _result(self, attempt_id: str, bead_id: str) -> LoopResult:
        raw = read_bytes(below(self._ddx_dir / "executions", attempt_id) / "result.json")
        try:
            said = decode_object(raw or b"")
        except ValueError:
            said = {}
        status, detail = text(said, "status") or "unknown", clean_line(text(said, "detail"), 400)
        return LoopResult(bead_id, status, attempt_id, detail)


def _key(each: IndexedCall) -> tuple[str, int]:
    return (each.session_id, each.started_at)


def _from_report(result: LoopResult) -> AgentCall:
    return AgentCall("work", 0, result.cost_usd or None, result.tokens or None, result.bead_id, result.attempt_id)


def with_given(project: Project, attempts: Iterable[Attempt]) -> tuple[Attempt, ...]:
    """Attempts with the class of the memories they were shown, in their bead or by a hook (from the ledger)."""
    if not is_file(project.helix_dir / "helix.db") and not os.environ.get("HELIX_DB_PATH"):
        return tuple(attempts)
    from helix_tui.core.memory.injection import memories_given  # importing its libraries takes half a second

    given = {name: memory_class(count) for name, count in memories_given(project).items()}
    return tuple(
        replace(attempt, memories=class_given)
        if (class_given := given.get(attempt.attempt_id)) and MEMORY_CLASSES.index(class_given) > _class_of(attempt)
        else attempt
        for attempt in attempts
    )


def _class_of(attempt: Attempt) -> int:
    return MEMORY_CLASSES.index(attempt.memories) if attempt.memories in MEMORY_CLASSES else -1


def with_memories_given(project: Project, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Attempts with evidence, with the class of memories each was shown, and those of the last run without evidence."""
    known = {attempt.attempt_id for attempt in attempts}
    evident = {attempt.bead_id for attempt in attempts}
    branch, completed = BranchHistory(project), []
    for cycle in load_state(project).cycles:
        rows = cycle.get("attempts")
        for row in rows if isinstance(rows, list) else ():
            if not isinstance(row, dict):
                continue
            name = text(row, "attempt_id")
            # Without an id there is no telling whether the bead's evidence is of this attempt.
            if name not in known if name else text(row, "bead_id") not in evident:
                piece = _piece(name, row, parse_instant(str(cycle.get("at", ""))))
                completed.append(merge_report(branch, piece))
    return with_given(project, (*attempts, *completed))


def _piece(name: str, row: Mapping[str, Any], at: int | None) -> Piece:
    words = ("bead_id", "status", "detail", "session_id", "harness", "model", "provider")
    revs = ("base_rev", "result_rev", "preserve_ref")
    said: dict[str, Any] = {word: text(row, word) for word in (*words, *revs)}
    return Piece(
        "loop",
        name,
        **said,
        tokens=whole(row.get("tokens")) or None,
        cost_usd=money(row.get("cost_usd")) or None,
        duration_ms=whole(row.get("duration_ms")),
        retry_after=instant(row.get("retry_after")),
        finished_at=at,
    )
