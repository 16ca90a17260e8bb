"""The one door: what leaves the memory is screened here, whoever asks and however it is shown.

A text is scanned when it is stored, and the verdict is kept with a digest of the text: what the plugin or a
hand has changed since is scanned again when it is asked for. Secrets are blotted out. What gives orders is
replaced by a mark that says so, and no agent is shown that memory. A name is made from the trigger: where
that is not clean, the memory goes by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache, singledispatch, wraps
from typing import Any, ParamSpec, TypeVar

from helix_tui.core.memory.corrections import Correction
from helix_tui.core.memory.marks import ORDER, screen, withheld
from helix_tui.core.memory.records import (
    Connected,
    Edge,
    Injection,
    Memory,
    Outcome,
    Recall,
    Recalled,
    Related,
    Revision,
    Shown,
    Stored,
)
from helix_tui.core.memory.reports import (
    Assessment,
    Consolidated,
    Decayed,
    FeedbackReport,
    Health,
    Pruned,
    Similar,
    Suggestion,
)

P = ParamSpec("P")
R = TypeVar("R")


_SHORT = 8
"""Characters below which a name can say nothing."""


def outward(method: Callable[P, R]) -> Callable[P, R]:
    """A method whose answer leaves the memory: it passes `shown`."""

    @wraps(method)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        found: R = shown(method(*args, **kwargs))
        return found

    return guarded


def shown_text(text: str) -> str:
    """A text as it may be shown: secrets blotted out, orders replaced by a mark."""
    if not text:
        return text
    rules, safe = screen(text)
    return safe if rules else text


def shown_pair(trigger: str, resolution: str) -> tuple[str, str, tuple[str, ...]]:
    """A trigger and its resolution as they may be shown, and the rules that they meet, also read as one."""
    (of_trigger, one), (of_resolution, other) = screen(trigger), screen(resolution)
    rules = (*of_trigger, *of_resolution)
    whole, _ = screen(f"{trigger} {resolution}")
    split = tuple(rule for rule in whole if rule.startswith(ORDER) and rule not in rules)
    if split:
        one = other = withheld(split)
    return one, other, rules + split


def shown_name(name: str) -> str:
    """A name as it may be shown; one that gives orders or holds a secret is a mark."""
    return name if _clean_name(name) else "withheld"


@singledispatch
def shown(value: Any) -> Any:
    """A record as it may be shown; what holds nothing of a memory's text is itself."""
    return value


@shown.register
def _(value: list) -> Any:  # type: ignore[type-arg]
    return [shown(each) for each in value]


@shown.register
def _(value: tuple) -> Any:  # type: ignore[type-arg]
    return tuple(shown_text(each) if isinstance(each, str) else shown(each) for each in value)


@shown.register
def _(value: Memory) -> Memory:
    if value.verdict == "":
        return value
    trigger, resolution, met = shown_pair(value.trigger, value.resolution)
    more, source = screen(value.source)
    rules = tuple(dict.fromkeys((*met, *more)))
    if not rules:
        return value if _clean_name(value.name) else replace(value, name=str(value.id))
    hidden = trigger != value.trigger and not value.name.startswith(f"{value.type}-marked")
    name = str(value.id) if hidden or not _clean_name(value.name) else value.name
    return replace(value, name=name, trigger=trigger, resolution=resolution, source=source, marks=rules)


@shown.register
def _(value: Recalled) -> Recalled:
    return replace(value, memory=shown(value.memory), via=_names(value.via))


@shown.register
def _(value: Recall) -> Recall:
    return replace(value, found=shown(value.found))


@shown.register(Revision)
@shown.register(Connected)
@shown.register(Similar)
def _(value: Any) -> Any:
    return replace(value, memory=shown(value.memory))


@shown.register
def _(value: Correction) -> Correction:
    return replace(value, before=shown(value.before), after=shown(value.after))


@shown.register
def _(value: Decayed) -> Decayed:
    return replace(value, candidates=shown(value.candidates))


@shown.register
def _(value: Pruned) -> Pruned:
    return replace(value, removed=shown(value.removed))


@shown.register(Edge)
@shown.register(Suggestion)
def _(value: Any) -> Any:
    return replace(value, from_name=shown_name(value.from_name), to_name=shown_name(value.to_name))


@shown.register
def _(value: Related) -> Related:
    return value if value.edge is None else replace(value, edge=shown(value.edge))


@shown.register
def _(value: Shown) -> Shown:
    return value if _clean_name(value.name) else replace(value, name=str(value.memory_id))


@shown.register
def _(value: Injection) -> Injection:
    kept_back = {shown_name(name): why for name, why in value.withheld.items()}
    return replace(value, shown=shown(value.shown), objective=shown_text(value.objective), withheld=kept_back)


@shown.register
def _(value: Outcome) -> Outcome:
    return value if _clean_name(value.name) else replace(value, name=str(value.memory_id))


@shown.register
def _(value: Stored) -> Stored:
    name = value.name if _clean_name(value.name) else str(value.id)
    return replace(value, name=name, similar=_names(value.similar))


@shown.register
def _(value: FeedbackReport) -> FeedbackReport:
    return replace(
        value,
        helped=_names(value.helped),
        unhelpful=_names(value.unhelpful),
        unchanged=_names(value.unchanged),
        missing=_names(value.missing),
        ignored=_names(value.ignored),
        outside_ledger=_names(value.outside_ledger),
    )


@shown.register
def _(value: Consolidated) -> Consolidated:
    return replace(value, merged=tuple((shown_name(a), shown_name(b)) for a, b in value.merged))


@shown.register
def _(value: Health) -> Health:
    return replace(value, systemic=_names(value.systemic))


@shown.register
def _(value: Assessment) -> Assessment:
    return replace(value, reason=shown_text(value.reason), suggested_pivot=shown_text(value.suggested_pivot))


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(shown_name(name) for name in names)


@lru_cache(maxsize=4_096)
def _clean_name(name: str) -> bool:
    """Whether nothing speaks out of a name: read as words, and in capitals as keys are written."""
    if len(name) < _SHORT:
        return True
    return not any(screen(text)[0] for text in (name, name.replace("-", " "), name.upper()))
