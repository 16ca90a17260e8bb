"""Two attempts on one bead side by side: how each ended, its checks, its files, then the difference of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import AttemptCheck, AttemptComparison
from helix_tui.core.ddx.attempts.sums import format_whole
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_span
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import column, width_of, wrap_spans
from helix_tui.widgets.outcomes import look_of
from helix_tui.widgets.text.diff import DiffPane
from helix_tui.widgets.text.pane import Para, section
from helix_tui.widgets.text.patch import DiffFacts, FileDiff

NAME_CELLS = 10
MOST_FILES = 40


class ComparisonFacts(Struct, frozen=True):
    """A comparison with the files of both, read as far as they are shown."""

    comparison: AttemptComparison
    earlier: tuple[FileDiff, ...]
    later: tuple[FileDiff, ...]
    between: DiffFacts
    now: int = 0


class ComparisonPane(DiffPane):
    """The comparison of an attempt with another one on its bead; below the facts it is a diff."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: ComparisonFacts | None = None
        self._note: Sequence[Para] = ()

    def show_comparison(self, facts: ComparisonFacts | None, note: Sequence[Para] = ()) -> None:
        """Show a comparison from its beginning, or the words in its place."""
        self._facts, self._note = facts, note
        self.show_diff(facts.between if facts is not None else DiffFacts())

    def build(self, width: int) -> Sequence[Para]:
        """The facts side by side, then the difference."""
        if self._facts is None:
            return self._note
        return [*_beside(self._facts, width), section("from the earlier result to the later"), *super().build(width)]


_ROWS: tuple[tuple[str, Callable[[Attempt, int], str]], ...] = (
    ("outcome", lambda attempt, now: f"{look_of(attempt).glyph} {look_of(attempt).word}"),
    ("ending", lambda attempt, now: attempt.status or "no status"),
    ("why", lambda attempt, now: attempt.detail or attempt.verdict.why),
    ("ended", lambda attempt, now: figures.day_or_time(attempt.finished_at or attempt.started_at, now).strip()),
    ("model", lambda attempt, now: f"{attempt.harness} {attempt.model}".strip() or "unknown"),
    ("took", lambda attempt, now: format_span(attempt.duration_ms / 1000) if attempt.duration_ms else "unknown"),
    ("tokens", lambda attempt, now: figures.tokens(attempt.sums.tokens)),
    ("cost", lambda attempt, now: format_whole(attempt.sums)),
    ("review", lambda attempt, now: attempt.review.verdict if attempt.review is not None else "none"),
)


def _beside(facts: ComparisonFacts, width: int) -> Iterator[Para]:
    sides = (facts.comparison.earlier, facts.comparison.later)
    half = max(8, (width - NAME_CELLS) // 2)
    names = [clean_line(side.attempt.attempt_id, 60) for side in sides]
    yield from _row("heads", "attempt", names, half, ("text bold", "text bold"))
    for name, of in _ROWS:
        values = [clean_line(of(side.attempt, facts.now), 400) for side in sides]
        differs = values[0] != values[1]
        inks = (look_of(sides[0].attempt).ink, look_of(sides[1].attempt).ink) if name == "outcome" else None
        yield from _row(name, name, values, half, inks or (("text", "text bold") if differs else ("muted", "muted")))
    yield from _checks(facts, half)
    yield from _files(facts, half)


def _row(key: str, name: str, values: Sequence[str], half: int, inks: Sequence[str]) -> Iterator[Para]:
    """Both values in full beside each other, on as many lines as the longer one needs."""
    sides = (wrap_spans(((value, ink),), half - 2) for value, ink in zip(values, inks, strict=True))
    for number, (one, other) in enumerate(zip_longest(*sides, fillvalue=())):
        lead = (column("" if number else name, NAME_CELLS), "muted")
        blank = (" " * (half - width_of(one)), "text")
        yield Para(f"beside {key}" + (f"/{number}" if number else ""), (lead, *one, blank, *other), wrap="no")


def _checks(facts: ComparisonFacts, half: int) -> Iterator[Para]:
    """Checks that ended otherwise in the two; those that ended alike are counted."""
    before, after = (
        {check.name: check for check in side.checks} for side in (facts.comparison.earlier, facts.comparison.later)
    )
    other = [name for name in {**before, **after} if _status(before, name) != _status(after, name)]
    if before or after:
        alike = len({**before, **after}) - len(other)
        yield section("checks", f"{alike} alike", key="checks beside")
    for name in other:
        inks = [_check_ink(checks.get(name)) for checks in (before, after)]
        yield from _row(f"check {name}", name, (_status(before, name), _status(after, name)), half, inks)


def _status(checks: dict[str, AttemptCheck], name: str) -> str:
    return checks[name].status if name in checks else "not run"


def _check_ink(check: AttemptCheck | None) -> str:
    return "muted" if check is None else "success" if check.passed else "error"


def _files(facts: ComparisonFacts, half: int) -> Iterator[Para]:
    """Every file that either touched, with what each did to it."""
    before, after = ({file.path: file for file in files} for files in (facts.earlier, facts.later))
    paths = list({**before, **after})
    if not paths:
        return
    yield section(f"files {len(paths)}", key="files beside")
    for path in paths[:MOST_FILES]:
        counts = [_counts(files.get(path)) for files in (before, after)]
        yield Para(f"file {path}", ((path, "text"),), wrap="no")
        yield from _row(f"counts {path}", "", counts, half, ("muted", "muted" if counts[0] == counts[1] else "text"))
    if len(paths) > MOST_FILES:
        yield Para("files more", ((f"… {len(paths) - MOST_FILES:,} more files", "muted"),))


def _counts(file: FileDiff | None) -> str:
    return "not touched" if file is None else f"{file.verb or 'changed'} +{file.added:,} −{file.removed:,}"
