"""What agent calls cost: dollars, tokens, and how much of both is unknown.

`Sums` is the one sum for the console, the command line and the loop. A call without a recorded cost makes it a lower
bound, shown with ``≥``; it is never counted as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.ddx.files import money, whole

Part = Literal["work", "reviews", "checks", "triage", "other"]


PARTS: tuple[Part, ...] = ("work", "reviews", "checks", "triage", "other")
"""Why an agent is called: the bead itself, a review of the change, ddx's readiness check before a claim, ddx's triage
of a failure, or anything without a bead (a question, a planning stage).
"""

_NOTHING = (0.0, 0, 0, 0, 0)


class AgentCall(Struct, frozen=True):
    """One call of an agent. ``usd`` and ``tokens`` are None if they were not recorded."""

    part: Part
    at: int = 0
    """Instant of its end in ns."""
    usd: float | None = None
    tokens: int | None = None
    bead_id: str = ""
    attempt_id: str = ""
    made: bool = True
    """False if ddx found no agent for the call, so that it cost nothing."""


class Amount(Struct, frozen=True):
    """Known dollars and tokens, and the number of calls without a record of them."""

    usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    without_usd: int = 0
    without_tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.usd + other.usd,
            self.tokens + other.tokens,
            self.calls + other.calls,
            self.without_usd + other.without_usd,
            self.without_tokens + other.without_tokens,
        )

    @property
    def known(self) -> bool:
        """Whether any cost is known."""
        return self.without_usd < self.calls

    def record(self) -> dict[str, Any]:
        """As JSON; dollars are null if none are known."""
        return {
            "usd": round(self.usd, 6) if self.known or not self.calls else None,
            "tokens": self.tokens,
            "calls": self.calls,
            "without_usd": self.without_usd,
            "without_tokens": self.without_tokens,
        }


class Sums(Struct, frozen=True):
    """The total cost of some calls, and its parts."""

    parts: Mapping[Part, Amount] = {}

    def __add__(self, other: Sums) -> Sums:
        both = {part: self.part(part) + other.part(part) for part in PARTS}
        return Sums({part: amount for part, amount in both.items() if amount != Amount()})

    def part(self, name: Part) -> Amount:
        """One part; an empty amount if there was no such call."""
        return self.parts.get(name, Amount())

    @property
    def whole(self) -> Amount:
        """All parts together."""
        return sum(self.parts.values(), Amount())

    @property
    def usd(self) -> float | None:
        """Dollars known to have been spent, to the millionth: 0 if no agent was called, None if no cost is known."""
        whole_ = self.whole
        return round(whole_.usd, 6) if whole_.known or not whole_.calls else None

    @property
    def tokens(self) -> int | None:
        """Tokens known to have been used, or None."""
        return self.whole.tokens or None

    @property
    def complete(self) -> bool:
        """Whether the cost of every call is known; else `usd` is a lower bound."""
        return self.whole.without_usd == 0

    @property
    def tokens_complete(self) -> bool:
        """Whether the tokens of every call are known."""
        return self.whole.without_tokens == 0

    def record(self) -> dict[str, Any]:
        """As JSON."""
        whole_ = self.whole
        return {
            "usd": self.usd,
            "complete": self.complete,
            "tokens": self.tokens,
            "tokens_complete": self.tokens_complete,
            "calls": whole_.calls,
            "parts": {part: self.parts[part].record() for part in PARTS if part in self.parts},
        }


def sum_calls(calls: Iterable[AgentCall], since: int | None = None, until: int | None = None) -> Sums:
    """The sum of some calls; those that ended before ``since`` or after ``until`` (ns) are left out."""
    # plain numbers: a struct for each of 20,000 calls took five times as long
    found: dict[Part, tuple[float, int, int, int, int]] = {}
    for call in calls:
        if (since is not None and call.at < since) or (until is not None and call.at > until):
            continue
        usd, tokens, made, without_usd, without_tokens = found.get(call.part, _NOTHING)
        found[call.part] = (
            usd + (call.usd or 0.0),
            tokens + (call.tokens or 0),
            made + call.made,
            without_usd + (call.made and call.usd is None),
            without_tokens + (call.made and call.tokens is None),
        )
    return Sums({part: Amount(*amounts) for part, amounts in found.items()})


def read_sums(document: object) -> Sums:
    """Sums from the JSON of `Sums.record`; values that are not numbers count as absent."""
    parts = document.get("parts") if isinstance(document, dict) else None
    found: dict[Part, Amount] = {}
    for part in PARTS:
        row = parts.get(part) if isinstance(parts, dict) else None
        if isinstance(row, dict):
            counts = [whole(row.get(name)) or 0 for name in ("tokens", "calls", "without_usd", "without_tokens")]
            found[part] = Amount(money(row.get("usd")) or 0.0, *counts)
    return Sums(found)


def format_usd(usd: float | None, complete: bool = True) -> str:
    """An amount: ``$1.10``; ``≥$1.10`` if part of it is unknown; ``n/a`` if all is."""
    if usd is None:
        return "n/a"
    # $0.00 would say that it cost nothing
    if 0 < usd < 0.005:
        return "<$0.01" if complete else ">$0"
    return ("" if complete else "≥") + (f"${usd:,.2f}" if usd < 1_000 else f"${usd:,.0f}")


def format_sum(sums: Sums) -> str:
    """A sum in dollars: ``$0.80``; ``≥$0.80`` if the cost of a call is unknown; ``n/a`` if the known part is zero, as
    ``≥$0.00`` would say nothing.
    """
    if sums.complete:
        return format_usd(sums.usd)
    return format_usd(sums.usd, False) if sums.usd else "n/a"


def format_tokens(sums: Sums) -> str:
    """Tokens: ``1,234 tokens``; ``≥`` if a call has no count, ``tokens n/a`` if none has."""
    if not sums.tokens_complete and not sums.tokens:
        return "tokens n/a"
    return f"{'' if sums.tokens_complete else '≥'}{sums.tokens or 0:,} tokens"


def format_parts(sums: Sums) -> str:
    """The parts of a sum: ``work $0.25 · reviews $0.38``; empty if there is only one part."""
    spent = [(part, sums.parts[part]) for part in PARTS if part in sums.parts and sums.parts[part].calls]
    if len(spent) < 2:
        return ""
    return " · ".join(f"{part} {format_sum(Sums({part: amount}))}" for part, amount in spent)


def format_whole(sums: Sums) -> str:
    """A sum with its parts in brackets."""
    parts = format_parts(sums)
    return format_sum(sums) + (f" ({parts})" if parts else "")
