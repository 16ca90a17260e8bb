"""The thresholds and budgets of a run: names, defaults and ranges (docs/formats/ask.md §5)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Literal, get_args

from helix_tui.core.ground.errors import HelixError

Depth = Literal["root_to_anchor", "full_path", "anchors_only"]
"""How much of a tree a walk shows: the way to what was found, that and its surroundings, or it alone."""

DEPTHS: tuple[Depth, ...] = get_args(Depth)


class BudgetError(HelixError, ValueError):
    """A budget that does not exist, or a value that it cannot have; the message says what can be written."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a run may spend and what it must reach."""

    min_doc_span_count: int = 1
    """Spans of documents that are wanted before a question about meaning counts as covered."""
    min_slot_coverage_ratio: float = 0.67
    """Share of the required slots that must have evidence."""
    max_iters: int = 4
    """Retrieval steps."""
    max_files: int = 18
    """Files that evidence may come from."""
    max_span_bytes: int = 4_000
    """Bytes of one span; a longer one is cut at a line."""
    max_runtime_ms: int = 10_000
    """Time for the loop. A run that it ends is not repeatable, so it lies far above what a question takes."""
    dominance_threshold: float = 0.18
    """By how much the first sense of a word must lead the second one."""
    grounded_claim_threshold: float = 0.8
    """Share of an answer's claims that their citations must bear out."""
    max_items: int = 12
    """Spans that reach the answer."""
    max_spans: int = 2
    """Spans of one file that reach the answer."""
    max_bytes: int = 18_000
    """Bytes of all of them."""
    max_symbols: int = 6
    """Symbols of documents that are followed into the code."""
    max_code_spans: int = 6
    """Spans that this adds."""
    max_code_bytes: int = 8_000
    """Bytes that this adds."""


_RANGES: dict[str, tuple[float, float]] = {
    "min_doc_span_count": (0, 50),
    "min_slot_coverage_ratio": (0, 1),
    "max_iters": (1, 12),
    "max_files": (1, 200),
    "max_span_bytes": (120, 100_000),
    "max_runtime_ms": (0, 600_000),
    "dominance_threshold": (0, 1),
    "grounded_claim_threshold": (0, 1),
    "max_items": (1, 100),
    "max_spans": (1, 20),
    "max_bytes": (500, 400_000),
    "max_symbols": (0, 50),
    "max_code_spans": (0, 50),
    "max_code_bytes": (0, 200_000),
}

_INTEGERS = frozenset(entry.name for entry in fields(Policy) if isinstance(entry.default, int))


def with_budgets(policy: Policy, settings: Iterable[str]) -> Policy:
    """The policy with some values set, each written ``name=value``.

    Raises:
        BudgetError: a setting that cannot be read, names nothing, or is out of range.
    """
    values: dict[str, float] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        name = name.replace("-", "_").lower()
        if name not in _RANGES:
            near = get_close_matches(name, _RANGES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_RANGES)}"
            raise BudgetError(f"no budget is called “{name[:60]}”; {hint}")
        low, high = _RANGES[name]
        try:
            value = float(text) if equals else low - 1
        except ValueError:
            value = low - 1
        whole = name in _INTEGERS
        if not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise BudgetError(f"{name} is {kind} from {low:g} to {high:g}, not “{text[:40]}”")
        values[name] = int(value) if whole else value
    return replace(policy, **values)  # type: ignore[arg-type]  # the names were looked up above
