"""Attempts as a table: columns, orders, groups with their sums, and the filter."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter

from msgspec import Struct
from rich.cells import cell_len

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, count_outcomes
from helix_tui.core.ddx.attempts.costs import format_sum, sum_calls
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.names import Outcome
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import capitalized, clean_line, short_id
from helix_tui.core.ground.time import NS, clock_time, format_span, local_moment, midnight
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, cut, fit, spread, width_of
from helix_tui.widgets.base.row_source import Column, fitting, sorted_first
from helix_tui.widgets.base.word_filter import WordFilter
from helix_tui.widgets.figures import LOOKS, look_of

ENDING_CELLS = 14
MODEL_CELLS = 12
MEASURED = 200
"""How many rows are examined to choose the columns."""

SPARSE = 0.1
"""The share of these rows that must have a value for a column to show by default."""

NARROW = 56
"""The width below which a running entry has one action, and an attempt's figures move to its second line."""

SMALL_TABLE = 110
"""The list width below which words in its columns are cut shorter."""

OUTCOMES_IN_WORDS = 96
"""The list width from which a heading has its outcomes in words; below, all headings have their signs."""

NOTHING = "·"
"""Shown for a figure that was not recorded."""

ATTEMPT_COLUMNS = (
    Column("model", MODEL_CELLS, 3, "model", "the model, or the harness if no model is known", words=True),
    Column("harness", 10, 7, "harness", "the agent program", asked=True, words=True),
    Column("took", 4, 0, "took", "how long it took"),
    Column("tokens", 6, 4, "tokens", "tokens of the work, its reviews and checks"),
    Column("cost", 7, 1, "cost", "the work, its reviews and checks; ≥ where some costs are unknown"),
    Column("bead", 10, 8, "bead", "the bead's id", asked=True, words=True),
    Column("review", 10, 9, "review", "the reviewer's verdict", asked=True, words=True),
    Column("ended", 6, 2, "ended", "when it ended: the time of day, or the day"),
)
"""The columns right of a title; the width decides unless they were chosen."""

_OUTCOMES = {outcome: place for place, outcome in enumerate(LOOKS)}

_SHORT = {
    "execution_failed": "failed",
    "structural_validation_failed": "malformed",
    "resource_exhausted": "out of disk",
    "declined_needs_decomposition": "too big",
    "no_changes": "no change",
    "no_evidence_produced": "no evidence",
    "already_satisfied": "satisfied",
    "land_conflict": "conflict",
    "land_conflict_unresolvable": "conflict",
    "land_conflict_operator_required": "conflict",
    "land_conflict_needs_human": "conflict",
    "land_operator_attention": "land: look",
    "land_retry": "land race",
    "post_run_check_failed": "check failed",
    "ratchet_failed": "ratchet",
    "preserved_needs_review": "to review",
    "repair-cycle-exhausted": "unsatisfied",
    "review_fixable_gap": "review: gap",
    "review_terminal_block": "review: block",
    "review_block": "review: block",
    "review_request_changes": "review: change",
    "review_request_clarification": "review: asks",
    "review_malfunction": "no verdict",
    "success": "",
}
"""DDx's words for an ending, short enough for a column; if they add nothing, the outcome."""

_SAID_BY_SIGN = frozenset({look.glyph: look.word for look in reversed(tuple(LOOKS.values()))}.values())
"""Of the outcomes that share a sign, the first is meant where no word stands beside it."""

_OUTCOME_NAMES = frozenset(OUTCOME_WORDS.values())

SORT_COLUMNS = {"time": "ended", "duration": "took"}
"""The column of an order that has another name."""


class SortKey(Struct, frozen=True):
    """One order of attempts."""

    name: str
    key: str
    """The key that chooses it."""
    first: str
    """What comes first, shown to the user."""
    value: Callable[[Attempt], object]
    """The sort key; None for unknown values, which come last."""
    group: Callable[[Attempt, int], str] | None = None
    """The attempt's group at an instant; None for an order without groups."""
    descending: bool = True


def _day(attempt: Attempt, now: int) -> str:
    return day_name(attempt.finished_at or attempt.started_at, now)


def day_name(instant: int | None, now: int) -> str:
    """``today``, ``yesterday``, ``Tue 11 Aug``, with the year if it is not the present one."""
    moment, today = local_moment(instant), local_moment(now)
    if moment is None or today is None:
        return "no date"
    days = (today.date() - moment.date()).days
    if days in (0, 1):
        return ("today", "yesterday")[days]
    return f"{moment:%a} {moment.day} {moment:%b}" + (f" {moment.year}" if moment.year != today.year else "")


def _outcome_name(attempt: Attempt) -> str:
    """The outcome, and how it ended if that is another word."""
    word, ending = look_of(attempt).word, ending_of(attempt)
    return word if ending == word else f"{word}: {ending}"


SORTS: Mapping[str, SortKey] = {
    sort.name: sort
    for sort in (
        SortKey("time", "t", "the newest", attrgetter("counted_at"), _day),
        SortKey("cost", "c", "the most expensive", lambda attempt: attempt.sums.usd),
        SortKey("duration", "d", "the longest", lambda attempt: attempt.duration_ms or None),
        SortKey("tokens", "k", "the most", lambda attempt: attempt.sums.tokens),
        SortKey(
            "model",
            "m",
            "by name",
            lambda attempt: model_of(attempt) or None,
            lambda attempt, _: model_of(attempt) or "model unknown",
            descending=False,
        ),
        SortKey(
            "outcome",
            "s",
            "what landed",
            lambda attempt: (_OUTCOMES[attempt.verdict.outcome], ending_of(attempt)),
            lambda attempt, _: _outcome_name(attempt),
            descending=False,
        ),
        SortKey(
            "bead",
            "b",
            "by id",
            lambda attempt: attempt.bead_id or None,
            lambda attempt, _: clean_line(attempt.bead_id, 60) or "no bead named",
            descending=False,
        ),
    )
}
"""Orders by name; the first is the default."""


def arranged(attempts: Iterable[Attempt], sort: SortKey, *, turned: bool = False) -> tuple[Attempt, ...]:
    """Sort attempts that are newest first into another order; equal ones stay newest first, unknown ones come last.

    The cost of 20,000 takes 0.2 s: call it from a worker.
    """
    given = tuple(attempts)
    if sort.name == "time":
        return given[::-1] if turned else given
    valued = [(sort.value(attempt), attempt) for attempt in given]
    known = [pair for pair in valued if pair[0] is not None]
    # `reverse` keeps equal ones in their order too, so these stay newest first
    known.sort(key=lambda pair: pair[0], reverse=sort.descending is not turned)  # type: ignore[arg-type,return-value]
    return (*(attempt for _, attempt in known), *(attempt for value, attempt in valued if value is None))


# --- groups ----------------------------------------------------------------------------------------------


class AttemptGroup(Struct, frozen=True, dict=True):
    """Neighbours in an order that belong together."""

    name: str
    attempts: Sequence[Attempt]

    @cached_property
    def counts(self) -> Mapping[Outcome, int]:
        """How many attempts had each outcome."""
        return count_outcomes(self.attempts)

    @cached_property
    def summed(self) -> Sequence[str]:
        """Their total cost, tokens and time, what is known: ``$4.10``, ``1.2M tok``, ``2h 05m``.

        Line 1 counts what runs and every other call of the day too.
        """
        sums = sum_calls(call for attempt in self.attempts for call in attempt.spent)
        took = sum(attempt.duration_ms or 0 for attempt in self.attempts)
        cost = format_sum(sums) if sums.whole.calls else ""
        parts = [
            cost if cost != figures.UNKNOWN else "",
            f"{figures.tokens(sums.tokens)} tok" if sums.tokens else "",
            format_span(took / 1000) if took else "",
        ]
        return list(filter(None, parts))

    def caption(self, width: int, *, folded: bool = False) -> Line:
        """Its name, outcomes and sums."""
        head: list[Span] = [("▸ ", "running")] if folded else []
        head += [(self.name, "text bold"), *(self._in_words() if width >= OUTCOMES_IN_WORDS else self._by_sign())]
        sums = [*self.summed]
        while sums and width_of(head) + cell_len(said := f"sum {' · '.join(sums)}") + 2 > width:
            sums.pop()
        return spread(head, [(said, "muted")], width) if sums else fit(head, width)

    def _in_words(self) -> Iterable[Span]:
        """``9 landed · 1 failed``."""
        shown = [(self.counts[outcome], look) for outcome, look in LOOKS.items() if outcome in self.counts]
        for place, (count, look) in enumerate(shown):
            yield (" · " if place else "  ", "muted")
            yield (f"{count:,} {look.word}", look.ink)

    def _by_sign(self) -> Iterable[Span]:
        """``✓9 ✗1``, each sign once."""
        alike: dict[str, tuple[int, str]] = {}
        for outcome, count in self.counts.items():
            before, ink = alike.get(LOOKS[outcome].glyph, (0, LOOKS[outcome].ink))
            alike[LOOKS[outcome].glyph] = before + count, ink
        yield (" ", "text")
        yield from ((f" {glyph}{count:,}", ink) for glyph, (count, ink) in alike.items())


def grouped(attempts: Sequence[Attempt], sort: SortKey, now: int) -> tuple[AttemptGroup, ...]:
    """The groups of an order, each a slice of it; one nameless group for an order without groups."""
    if not attempts:
        return ()
    if sort.name == "time":
        return tuple(_days(attempts, now))
    if sort.group is None:
        return (AttemptGroup(f"by {sort.name}", attempts),)
    groups: list[AttemptGroup] = []
    start, name = 0, sort.group(attempts[0], now)
    for place, attempt in enumerate(attempts):
        other = sort.group(attempt, now)
        if other != name:
            groups.append(AttemptGroup(name, attempts[start:place]))
            start, name = place, other
    return (*groups, AttemptGroup(name, attempts[start:]))


def _days(attempts: Sequence[Attempt], now: int) -> Iterable[AttemptGroup]:
    """One group per local day; each day's end is found by search, not by counting."""
    # the order may be reversed; either way each day is contiguous
    newest_first = attempts[0].counted_at >= attempts[-1].counted_at
    start = 0
    while start < len(attempts):
        at = attempts[start].counted_at
        if newest_first:
            begin = midnight(at) if at else 0
            stop = bisect.bisect_right(attempts, -begin, lo=start, key=lambda attempt: -attempt.counted_at)
        else:
            # 30 hours after a midnight is on the next day, also where that day had 23 hours or 25
            end = midnight(midnight(at) + 30 * 3600 * NS) if at else 1
            stop = bisect.bisect_left(attempts, end, lo=start, key=attrgetter("counted_at"))
        # always forward: an attempt out of order must not cause an endless loop
        stop = max(stop, start + 1)
        yield AttemptGroup(capitalized(day_name(at or None, now)), attempts[start:stop])
        start = stop


# --- cells -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _ending(word: str, status: str, outcome: str, faulted: bool) -> str:
    # for these DDx's own word adds nothing to the outcome, unless a review found a fault after landing
    if not status or (outcome in ("landed", "interrupted", "unfinished", "unknown") and not faulted):
        return word
    short = _SHORT.get(status, clean_line(status.replace("_", " "), 60))
    # of work that is kept aside the status may name another outcome: "satisfied" of a change that waits
    return word if short in _OUTCOME_NAMES else short or word


def ending_of(attempt: Attempt) -> str:
    """How it ended, short enough for a column: DDx's own word if it says more than the outcome."""
    return _ending(look_of(attempt).word, attempt.status, attempt.verdict.outcome, attempt.faulted)


def model_of(attempt: Attempt | Run) -> str:
    """The model of an attempt or run, as short as possible; its harness if no model is known."""
    return _short_model(attempt.model or attempt.harness)


@lru_cache(maxsize=512)
def _short_model(name: str) -> str:
    return clean_line(name.rpartition("/")[2].removeprefix("claude-"), 40)


def short_model(name: str, names: Collection[str], cells: int) -> str:
    """A model's name in so many cells, without leading parts that it shares with others of ``names``.

    ``gpt-5.6-sol`` beside ``gpt-5.4-mini`` loses ``gpt-`` before it loses its end.
    """
    parts = name.split("-")
    while len(parts) > 1 and cell_len("-".join(parts)) > cells:
        begin = name[: len(name) - len("-".join(parts[1:]))]
        shared = any(other.startswith(begin) and other != name for other in names)
        if not shared and cell_len(parts[0]) < cells:
            break
        parts = parts[1:]
    return "-".join(parts)


class Cells(Struct, frozen=True):
    """The column values of attempts, for one list at one moment."""

    now: int
    by_day: bool
    """Whether they are grouped by day: then the time of day is enough."""
    models: frozenset[str] = frozenset()
    """The models of its first rows: a name too long for its column loses the part they share."""
    headed: bool = True
    """Whether it has headings of its own; without them it is about one thing, which its caption names."""

    @property
    def says_model(self) -> bool:
        """Whether the caption names the model of all its rows."""
        return not self.headed and len(self.models) == 1

    def text(self, column: str, attempt: Attempt) -> str:
        """One cell; empty if it was not recorded."""
        if column == "ended":
            at = attempt.finished_at or attempt.started_at
            return clock_time(at)[:5] if self.by_day and at else figures.day_or_time(at, self.now)
        if column == "took":
            return figures.short_span(attempt.duration_ms) if attempt.duration_ms else ""
        if column == "tokens":
            used = attempt.sums.tokens
            return figures.tokens(used) if used else ""
        if column == "cost":
            cost = format_sum(attempt.sums)
            return "" if cost == figures.UNKNOWN else cost
        if column == "model":
            return model_of(attempt)
        if column == "review":
            return clean_line(attempt.review.verdict, 20).lower().replace("_", " ") if attempt.review else ""
        return short_id(clean_line(attempt.bead_id, 60)) if column == "bead" else clean_line(attempt.harness, 20)


def filled(
    attempts: Sequence[Attempt], cells: Cells, chosen: Sequence[str] | None, marks: Mapping[str, str]
) -> list[Column]:
    """The columns for which the first rows have values, each as wide as needed; chosen ones stay.

    Args:
        marks: the columns that they are sorted by, as for `sorted_first`.
    """
    first = attempts[:MEASURED]
    columns: list[Column] = []
    for column in sorted_first(ATTEMPT_COLUMNS, marks):
        if chosen is None and column.asked:
            continue
        if chosen is None and column.name == "model" and cells.says_model and len(first) > 1:
            continue
        texts = [text for attempt in first if (text := cells.text(column.name, attempt))]
        stays = column.rank < 0 or (chosen is not None and column.name in chosen)
        if stays or len(texts) > SPARSE * len(first):
            widest = max(map(cell_len, texts), default=1)
            columns.append(_as_wide(column, min(widest, column.cells)))
    return columns


def _as_wide(column: Column, cells: int) -> Column:
    cells = max(cells, min(cell_len(column.title), column.cells))
    return Column(column.title, cells, column.rank, column.name, column.help, column.asked, column.words)


def title_room(width: int) -> int:
    """The width that a title keeps before a column is dropped: the title matters most."""
    # duration and cost fit beside it; a narrow row's second line has what its columns leave out
    return max(18, width * 5 // 8) if width < NARROW else min(55, width - 18)


def shown_columns(columns: Sequence[Column], width: int, chosen: Sequence[str] | None) -> list[Column]:
    """The columns that leave a title its room in a list of a width."""
    if width < SMALL_TABLE:
        columns = [
            _as_wide(column, min(column.cells, 7 if width < 70 else 8)) if column.words else column
            for column in columns
        ]
    return fitting(columns, width - 2 - title_room(width), chosen)


def paint_cells(attempt: Attempt, columns: Sequence[Column], cells: Cells) -> list[Span]:
    """The columns of one attempt."""
    spans = []
    for column in columns:
        text = cells.text(column.name, attempt)
        if column.name == "model":
            text = short_model(text, cells.models, column.cells)
        spans.append(column.placed(text or NOTHING, "text" if text and column.name == "cost" else "muted"))
    return spans


def beside_title(attempt: Attempt) -> str:
    """How it ended, after its title: ``: check failed``; nothing where the sign says as much."""
    ending = ending_of(attempt)
    return "" if ending in _SAID_BY_SIGN else f": {cut(ending, ENDING_CELLS)}"


class GroupPlaces:
    """The row numbers of groups: a caption each, then its attempts unless it is folded."""

    def __init__(self, groups: Sequence[AttemptGroup], folded: Collection[str]) -> None:
        self.groups = groups
        self.folded = folded
        self._starts = [0]
        self._firsts = [0]
        """Attempts before each group."""
        for group in groups:
            rows = 1 if group.name in folded else 1 + len(group.attempts)
            self._starts.append(self._starts[-1] + rows)
            self._firsts.append(self._firsts[-1] + len(group.attempts))
        self._by_name = {group.name: number for number, group in enumerate(groups)}

    def __len__(self) -> int:
        return self._starts[-1]

    def at(self, row: int) -> tuple[AttemptGroup, int]:
        """The group of a row, and which of its attempts the row is; -1 for the caption."""
        number = bisect.bisect_right(self._starts, row) - 1
        return self.groups[number], row - self._starts[number] - 1

    def caption_row(self, name: str) -> int | None:
        """The row of a group's caption."""
        number = self._by_name.get(name)
        return None if number is None else self._starts[number]

    def row_of(self, place: int) -> int:
        """The row of the attempt at a place in the order; its group's caption if the group is folded."""
        number = bisect.bisect_right(self._firsts, place) - 1
        if self.groups[number].name in self.folded:
            return self._starts[number]
        return self._starts[number] + 1 + place - self._firsts[number]


class AttemptFilter(WordFilter):
    """The filter of attempts."""

    FIELDS = ("outcome", "status", "bead", "harness", "model")

    def __init__(self, text: str, beads: Mapping[str, Bead] | None = None) -> None:
        super().__init__(text)
        self._beads = beads

    def matches(self, attempt: Attempt) -> bool:
        """Whether the attempt passes."""
        if not self.words:
            return True
        word, bead = look_of(attempt).word, (self._beads or {}).get(attempt.bead_id)
        fields = {
            "outcome": f"{word} {attempt.verdict.outcome}",
            "status": f"{word} {attempt.status}",
            "bead": f"{attempt.bead_id} {bead.title}" if bead is not None else attempt.bead_id,
            "harness": attempt.harness,
            "model": attempt.model,
        }
        # the outcome is in the status
        return self._accepts(fields, " ".join((*(fields[name] for name in self.FIELDS[1:]), attempt.attempt_id)))

    def matches_run(self, run: Run) -> bool:
        """Whether a run passes; its status is ``running``, ``silent`` or ``dead``."""
        said = {"alive": "running", "silent": "running silent", "dead": "dead"}[run.verdict]
        shown = Attempt(run.attempt_id or "", run.bead_id or "", status=said, harness=run.harness, model=run.model)
        return self.matches(shown)

    def ways(self, start: str, attempts: Iterable[Attempt]) -> list[tuple[str, str]]:
        """Completions of the word being typed, with their meaning."""
        key, colon, value = start.lower().partition(":")
        if not colon:
            return [(f"{name}:", "") for name in self.FIELDS if start and name.startswith(key)]
        if key not in ("outcome", "status", "harness", "model"):
            return []
        get = attrgetter("verdict.outcome" if key == "outcome" else key)
        counts = Counter(map(get, attempts))
        found = [(f"{key}:{name}", f"{count:,}") for name, count in counts.most_common() if value in name.lower()]
        # a blank ends a word of the filter: a value containing one cannot be typed
        return [(clean_line(way, 80), count) for way, count in found if " " not in way and not way.endswith(":")]
