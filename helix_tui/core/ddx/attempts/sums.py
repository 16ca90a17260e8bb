"""What agents cost: one sum for the console, the command line and the loop, with its parts.

A call whose cost nobody recorded makes its sum a least one, shown with ``≥``; 0 is never put in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.ddx.names import money, whole

Part = Literal["work", "reviews", "checks", "triage", "other"]

PARTS: tuple[Part, ...] = ("work", "reviews", "checks", "triage", "other")
"""What an agent is called for: the bead itself, a review of the change, ddx's readiness check before a
claim, ddx's triage of a failure, and whatever names no bead (a question, a planning stage)."""


class AgentCall(Struct, frozen=True):
    """One call of an agent. ``usd`` and ``tokens`` are None where nobody recorded them."""

    part: Part
    at: int = 0
    """Instant of its end in ns."""
    usd: float | None = None
    tokens: int | None = None
    bead_id: str = ""
    attempt_id: str = ""
    made: bool = True
    """False where no agent was reached: ddx found none to send it to, and it cost nothing."""


class Amount(Struct, frozen=True):
    """Dollars and tokens that are known, and how many calls do not say."""

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
        """Whether any of it is known."""
        return self.without_usd < self.calls

    def record(self) -> dict[str, Any]:
        """As JSON: dollars are null where none are known."""
        return {
            "usd": round(self.usd, 6) if self.known or not self.calls else None,
            "tokens": self.tokens,
            "calls": self.calls,
            "without_usd": self.without_usd,
            "without_tokens": self.without_tokens,
        }


class Sums(Struct, frozen=True):
    """What some calls cost together, and each part of it."""

    parts: Mapping[Part, Amount] = {}

    def __add__(self, other: Sums) -> Sums:
        both = {part: self.part(part) + other.part(part) for part in PARTS}
        return Sums({part: amount for part, amount in both.items() if amount != Amount()})

    def part(self, name: Part) -> Amount:
        """One part; nothing where there was no such call."""
        return self.parts.get(name, Amount())

    @property
    def whole(self) -> Amount:
        """All parts together."""
        return sum(self.parts.values(), Amount())

    @property
    def usd(self) -> float | None:
        """Dollars that are known to have been spent, to the millionth: 0 where no agent was called, None where no
        cost is known.
        """
        whole_ = self.whole
        return round(whole_.usd, 6) if whole_.known or not whole_.calls else None

    @property
    def tokens(self) -> int | None:
        """Tokens that are known to have been used; None where none are."""
        return self.whole.tokens or None

    @property
    def complete(self) -> bool:
        """Whether the cost of every call is known; else `usd` is the least that was spent."""
        return self.whole.without_usd == 0

    @property
    def tokens_complete(self) -> bool:
        """The same of the tokens."""
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
    parts: dict[Part, Amount] = {}
    for call in calls:
        if (since is not None and call.at < since) or (until is not None and call.at > until):
            continue
        parts[call.part] = parts.get(call.part, Amount()) + Amount(
            call.usd or 0.0,
            call.tokens or 0,
            int(call.made),
            int(call.made and call.usd is None),
            int(call.made and call.tokens is None),
        )
    return Sums(parts)


def read_sums(document: object) -> Sums:
    """Sums from the JSON of `Sums.record`; what is no number there counts as nothing."""
    parts = document.get("parts") if isinstance(document, dict) else None
    found: dict[Part, Amount] = {}
    for part in PARTS:
        row = parts.get(part) if isinstance(parts, dict) else None
        if isinstance(row, dict):
            counts = [whole(row.get(name)) or 0 for name in ("tokens", "calls", "without_usd", "without_tokens")]
            found[part] = Amount(money(row.get("usd")) or 0.0, *counts)
    return Sums(found)


def format_usd(usd: float | None) -> str:
    """An amount: ``$1.10``; ``n/a`` when unknown, never 0 for it."""
    if usd is None:
        return "n/a"
    # $0.00 would say that it cost nothing
    if 0 < usd < 0.005:
        return "<$0.01"
    return f"${usd:,.2f}" if usd < 1_000 else f"${usd:,.0f}"


def format_sum(sums: Sums) -> str:
    """A sum in dollars: ``$0.80``; ``≥$0.80`` where the cost of a call is unknown; ``n/a`` where nothing
    but zero is known beside unknown costs: at least nothing was spent says nothing.
    """
    if sums.complete:
        return format_usd(sums.usd)
    return f"≥{format_usd(sums.usd)}" if sums.usd else "n/a"


def format_tokens(sums: Sums) -> str:
    """Tokens: ``1,234 tokens``; ``≥`` where a call does not say, ``tokens n/a`` where none does."""
    if not sums.tokens_complete and not sums.tokens:
        return "tokens n/a"
    return f"{'' if sums.tokens_complete else '≥'}{sums.tokens or 0:,} tokens"


def format_parts(sums: Sums) -> str:
    """The parts of a sum: ``work $0.25 · reviews $0.38``; empty where there is one part only."""
    spent = [(part, sums.parts[part]) for part in PARTS if part in sums.parts and sums.parts[part].calls]
    if len(spent) < 2:
        return ""
    return " · ".join(f"{part} {format_sum(Sums({part: amount}))}" for part, amount in spent)


def format_whole(sums: Sums) -> str:
    """A sum with its parts in brackets."""
    parts = format_parts(sums)
    return format_sum(sums) + (f" ({parts})" if parts else "")
