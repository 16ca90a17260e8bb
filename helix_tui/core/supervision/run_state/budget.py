"""What a run, and a day, may cost: dollars, tokens, attempts; how much of it is spent, and what is reached.

One grammar wherever a budget is written (settings, ``--budget``, the console): ``$5, 2M tokens, 10 attempts``.
A run stops once a part of its budget is reached, after the current bead. A dollar budget counts what is known:
a call whose cost nobody recorded spends nothing of it, and `BudgetUse.describe` says so (docs/decisions/0025).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.sums import Sums, format_sum, format_usd
from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ground.files import replace_file
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line, counted

NAME = "budget.json"
MAX_FILE = 1 << 14

BudgetSpan = Literal["run", "day"]
SPANS: Mapping[BudgetSpan, str] = {"run": "this run", "day": "today"}
"""What a budget is of, and how a sentence names it."""

NONE = ("none", "no limit", "unlimited")
"""Words that take a budget away."""

HOW = "write it like $5, 2M tokens, 10 attempts; or none"
"""The grammar in one line, for whoever wrote another one."""


class Limits(Struct, frozen=True):
    """At most so much; None where there is no limit."""

    usd: float | None = None
    tokens: int | None = None
    attempts: int | None = None

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    def __str__(self) -> str:
        """As `parse_limits` reads it."""
        parts = [
            f"${self.usd:,.2f}" if self.usd is not None else "",
            f"{format_count(self.tokens)} tokens" if self.tokens is not None else "",
            counted(self.attempts, "attempt") if self.attempts is not None else "",
        ]
        return ", ".join(filter(None, parts)) or "none"

    def over(self, below: Limits) -> Limits:
        """These limits, and those below where these say nothing."""
        return Limits(
            self.usd if self.usd is not None else below.usd,
            self.tokens if self.tokens is not None else below.tokens,
            self.attempts if self.attempts is not None else below.attempts,
        )


NO_LIMITS = Limits()

_AMOUNT = re.compile(
    r"(?P<dollar>\$)?\s*(?P<number>\d[\d,]*(?:\.\d+)?|\.\d+)\s*(?P<scale>[kKmM]?)\s*"
    r"(?P<unit>usd|dollars?|tokens?|tok|attempts?|beads?)?\Z",
    re.IGNORECASE,
)


def parse_limits(text: str) -> Limits:
    """The limits that a text names, parted by commas (or one blank after a unit); `NONE` is none.

    Raises:
        ValueError: something in it is no limit; the message says how to write one.
    """
    wanted = clean_line(text, 200).strip()
    if not wanted or wanted.lower() in NONE:
        return NO_LIMITS
    found = NO_LIMITS
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
    """What each run, and each day, may cost."""

    run: Limits = NO_LIMITS
    day: Limits = NO_LIMITS

    def __bool__(self) -> bool:
        return bool(self.run or self.day)

    def over(self, below: Budget) -> Budget:
        """This budget, and that below where this says nothing."""
        return Budget(self.run.over(below.run), self.day.over(below.day))

    def record(self) -> dict[str, Any]:
        """As JSON; null where there is no limit."""
        return {span: _record(getattr(self, span)) for span in SPANS}


NO_BUDGET = Budget()


def _record(limits: Limits) -> dict[str, Any]:
    return {"usd": limits.usd, "tokens": limits.tokens, "attempts": limits.attempts}


def budget_file(project: Project) -> Path:
    """Where a project's own budget is kept."""
    return project.helix_dir / NAME


def read_budget(project: Project) -> Budget:
    """The project's own budget; none where there is no file, or none that can be read."""
    try:
        document = msgspec.json.decode(read_bytes(budget_file(project), MAX_FILE) or b"null")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_BUDGET
    return budget_of(document)


def budget_of(document: object) -> Budget:
    """A budget from the JSON of `Budget.record`; what is no limit there is none."""
    rows = document if isinstance(document, dict) else {}
    return Budget(*(_limits(rows.get(span)) for span in SPANS))


def _limits(row: object) -> Limits:
    if not isinstance(row, dict):
        return NO_LIMITS
    usd, counts = row.get("usd"), [row.get(name) for name in ("tokens", "attempts")]
    fits = isinstance(usd, int | float) and not isinstance(usd, bool) and usd > 0
    whole = [count if type(count) is int and count > 0 else None for count in counts]
    return Limits(float(usd) if fits else None, *whole)  # type: ignore[arg-type]


def write_budget(project: Project, budget: Budget) -> None:
    """Keep a project's own budget; a run that is under way looks at it before its next bead.

    Raises:
        OSError: the folder cannot be written.
    """
    replace_file(budget_file(project), msgspec.json.encode({"schema": "budget/1", **budget.record()}) + b"\n")


def budget_in_force(project: Project, asked: Budget = NO_BUDGET, default: Budget = NO_BUDGET) -> Budget:
    """What holds: what was asked for with a run, then the project's own, then the settings'."""
    return asked.over(read_budget(project)).over(default)


class Spending(Struct, frozen=True):
    """What was spent in a span, and by how many attempts."""

    sums: Sums = field(default_factory=Sums)
    attempts: int = 0


class BudgetUse(Struct, frozen=True):
    """One part of a budget, and how much of it is spent."""

    span: BudgetSpan
    part: Literal["usd", "tokens", "attempts"]
    limit: float
    spent: float
    complete: bool = True
    """Whether every call says what it used; else ``spent`` is the least."""
    sums: Sums = field(default_factory=Sums)

    @property
    def reached(self) -> bool:
        """Nothing of it is left."""
        return self.spent >= self.limit

    @property
    def share(self) -> float:
        """How much of it is spent: 1 and more where it is reached."""
        return self.spent / self.limit

    @property
    def amount(self) -> str:
        """``$5.21 of $5.00``; ``≥`` where some calls do not say what they used."""
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
        """One sentence: how much is spent of what, and what is not known."""
        return f"budget {'reached' if self.reached else 'in force'}: {self.spent_words()}"


def budget_uses(budget: Budget, *, run: Spending | None, day: Spending) -> tuple[BudgetUse, ...]:
    """Each part of a budget with what is spent of it, what is nearest to its end first.

    Args:
        run: what the run that is under way has spent; None where none is.
        day: what everybody has spent in this project today.
    """
    spans: Iterable[tuple[BudgetSpan, Limits, Spending | None]] = (("run", budget.run, run), ("day", budget.day, day))
    uses = [use for span, limits, spent in spans if spent is not None for use in _uses(span, limits, spent)]
    return tuple(sorted(uses, key=lambda use: -use.share))


def _uses(span: BudgetSpan, limits: Limits, spent: Spending) -> Iterable[BudgetUse]:
    sums = spent.sums
    if limits.usd is not None:
        yield BudgetUse(span, "usd", limits.usd, sums.usd or 0.0, sums.complete, sums)
    if limits.tokens is not None:
        yield BudgetUse(span, "tokens", limits.tokens, sums.tokens or 0, sums.tokens_complete, sums)
    if limits.attempts is not None:
        yield BudgetUse(span, "attempts", limits.attempts, spent.attempts, sums=sums)
