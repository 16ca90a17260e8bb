"""Figures and signs short enough for a column: tokens, money, times, shares as bars, the outcome of an attempt.

Unknown values say so. A bar is solid up to the lower end of a share's interval, dark up to the share, light up to
the upper end. An outcome has one glyph, one ink and one word, wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import format_usd
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, clock_time, format_age, format_span, local_moment
from helix_tui.widgets.base.line import Span

UNKNOWN = "n/a"

CELLS = 10

BAR_LEGEND = "█ sure  ▓ measured  ░ possible"
"""The legend of `share_bar`."""

RESULTS = {
    "answer": ("●", "success"),
    "sources": ("●", "text"),
    "nothing found": ("✗", "attention"),
    "which one?": ("?", "attention"),
}
"""Glyph and role by the result of a question."""

CHECK_SIGNS: Mapping[str, Span] = {
    "failed": ("✗", "error bold"),
    "open": ("◌", "waiting"),
    "passed": ("✓", "success"),
}
"""Glyph and ink of a check by its outcome (`AttemptCheck.outcome`); sorted by name, failures come first."""


def tokens(count: int | None) -> str:
    """A count of tokens in at most five characters: ``940``, ``38k``, ``1.2M``; ``n/a`` when unknown."""
    if count is None:
        return UNKNOWN
    if count < 1_000:
        return str(count)
    # from 999,500 on it would round to 1000k; from 9,950 on to 10.0k, where 10k says as much
    if count < 999_500:
        return f"{count / 1_000:.0f}k" if count >= 9_950 else f"{count / 1_000:.1f}k"
    return f"{count / 1_000_000:.1f}M" if count < 99_950_000 else f"{count / 1_000_000:.0f}M"


money = format_usd


def took(milliseconds: int | None) -> str:
    """How long one step took: ``40ms``, ``3.2s``, ``2m 06s``; empty when unknown."""
    if milliseconds is None or milliseconds < 0:
        return ""
    if milliseconds < 1_000:
        return f"{milliseconds}ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f}s"
    return format_span(milliseconds / 1_000)


def short_span(milliseconds: int | None) -> str:
    """How long an attempt took, in at most four characters; ``n/a`` when unknown."""
    return UNKNOWN if milliseconds is None or milliseconds < 0 else format_age(milliseconds / 1_000)


def day_or_time(instant: int | None, now: int) -> str:
    """An instant in six cells: the time of day for today, else the day, else month and year.

    Unlike an age, it does not change on screen.
    """
    moment, today = local_moment(instant), local_moment(now)
    if moment is None or today is None:
        return "—"
    if moment.date() == today.date():
        return moment.strftime("%H:%M")
    # half a year: within that span, a day without a year is unambiguous
    if moment.year == today.year or abs((today - moment).days) < 180:
        return f"{moment.day:2} {moment:%b}"
    return moment.strftime("%m/%Y")[-7:]


def moment(instant: int, now: int) -> str:
    """A local clock time, with the day unless that is today: unlike an age, it stays true."""
    day = day_or_time(instant, now).strip()
    time = clock_time(instant)
    return time if ":" in day else f"{day} {time}"


def since_start(instant: int | None, start: int | None) -> str:
    """How far into its attempt something happened: ``+12s``, ``+4m 02s``; empty when unknown."""
    if instant is None or start is None or instant < start:
        return ""
    return f"+{format_span((instant - start) / NS)}"


def share_bar(rate: float | None, low: float, high: float, *, cells: int = CELLS, ink: str = "text") -> list[Span]:
    """A bar of ``cells`` cells for a share with its interval, all between 0 and 1.

    Solid up to ``low`` (sure), dark shade up to the share, light shade up to ``high``; if
    nothing is known, a dotted line.
    """
    if rate is None:
        return [("·" * cells, "muted")]
    sure, likely, most = (round(min(max(part, 0.0), 1.0) * cells) for part in (low, rate, high))
    spans: list[Span] = [
        ("█" * sure, ink),
        ("▓" * (likely - sure), ink),
        ("░" * (most - max(likely, sure)), "muted"),
        ("·" * (cells - max(most, likely, sure)), "rule"),
    ]
    return [span for span in spans if span[0]]


def result_ink(result: str) -> tuple[str, str]:
    """Glyph and role of a question's result; an unknown word is shown as it is."""
    return RESULTS.get(result, ("○", "muted"))


class Look(Struct, frozen=True):
    """The look of an outcome: glyph, ink and word."""

    glyph: str
    ink: str
    word: str


LOOKS: Mapping[Outcome, Look] = {outcome: Look(row.glyph, row.ink, row.word) for outcome, row in OUTCOME_ROWS.items()}
"""One look per outcome, in the order of summaries."""


def look_of(attempt: Attempt) -> Look:
    """The look of an attempt's outcome. An unknown status is shown as it is."""
    look = LOOKS[attempt.verdict.outcome]
    word = attempt.word
    if word == "unknown":
        word = clean_line(attempt.status, 40)
    return look if word == look.word else replace(look, word=word)
