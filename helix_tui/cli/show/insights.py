"""``helix-tui insights``: cost and outcome of attempts by any dimensions, with experiments and a forecast.

An unrecorded figure is ``n/a`` in text and null in JSON, never zero.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from helix_tui.cli.call import Call, CliError, columns
from helix_tui.cli.loading import add_since, began_since, load_with_attempts, note_unread, since_of
from helix_tui.cli.show.attempts import describe_nameless
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import only_archived, read_archive
from helix_tui.core.ddx.attempts.costs import format_sum, format_usd, format_whole
from helix_tui.core.ground.text import clean_line, counted, fit, short_id
from helix_tui.core.ground.time import format_instant, format_span
from helix_tui.core.insights.burn import Burn, burn, to_do
from helix_tui.core.insights.cells import DIMENSIONS, Cell, percentile, table
from helix_tui.core.insights.failing import Failing, failing
from helix_tui.core.insights.forecast import Forecast, forecast
from helix_tui.core.insights.report import (
    Batch,
    Measure,
    ModelComparison,
    Trial,
    batches,
    compare_models,
    count_without_result,
    not_counted,
    read_measures,
)
from helix_tui.core.supervision.run_state.budget import with_memories_given

_HEADER = ("bead", "result", "kept", "tries", "model", "tokens", "cost", "time", "what")

DEFAULT_BY = "harness,model,kind"

MAX_ROWS = 30
"""How many rows of a table are printed."""


def trial_document(trial: Trial, state: str) -> dict[str, Any]:
    """One experiment: sums over its attempts, and the metadata of the one that landed, else of the newest.

    Args:
        state: of its bead in the queue.
    """
    shown, cell = trial.shown, trial.cell
    texts = ("status", "harness", "model", "provider", "base_rev", "result_rev", "preserve_ref")
    return {
        "bead_id": trial.bead.id,
        "title": trial.bead.title,
        "state": state,
        "outcome": trial.outcome,
        "kept": trial.kept,
        "attempts": cell.n,
        "cost_usd": cell.cost,
        "cost_complete": cell.cost_complete,
        "tokens_total": cell.tokens_total,
        "duration_ms": cell.duration_ms,
        **{name: (getattr(shown, name) or None) if shown else None for name in texts},
        "attempt_id": (shown.attempt_id or None) if shown else None,
        "session_id": (shown.session_id or None) if shown else None,
        "why": trial.why or None,
        "ratchets": [ratchet.document() for ratchet in shown.ratchets] if shown else [],
    }


def trial_lines(call: Call, trials: Iterable[Trial]) -> list[str]:
    """A comparison as lines, the header first."""
    cells = [list(_HEADER), *map(_cells, trials)]
    lines = columns([[fit(clean_line(cell, 200), 60).rstrip() for cell in row] for row in cells], right=(3, 5, 6, 7))
    return [call.paint(lines[0], "muted"), *lines[1:]]


def _cells(trial: Trial) -> list[str]:
    shown, cell = trial.shown, trial.cell
    ratchets = shown.ratchets if shown else ()
    return [
        trial.bead.id,
        shown.status if shown else trial.outcome,
        "yes" if trial.kept else "no",
        f"{cell.n}×",
        (shown.model or shown.harness if shown else "") or "n/a",
        count(cell.tokens_total),
        dollars(cell),
        span(cell.duration_ms),
        "; ".join(ratchet.describe() for ratchet in ratchets) or trial.why or trial.bead.title,
    ]


def percent(part: float | None) -> str:
    """A share in whole percent."""
    return "n/a" if part is None else f"{part * 100:.0f}%"


def dollars(cell: Cell) -> str:
    """The known cost of a cell, with ``≥`` if the cost of some calls is unknown."""
    return format_usd(None) if cell.cost is None else format_sum(cell.sums)


def per_landed(cell: Cell) -> str:
    """Cost per landed bead."""
    return format_usd(cell.cost_per_landed, cell.cost_complete)


def count(tokens: int | None) -> str:
    """Tokens, short."""
    if tokens is None:
        return "n/a"
    return f"{tokens:,}" if tokens < 10_000 else f"{tokens / 1000:,.0f}k"


def span(milliseconds: int | None) -> str:
    """A duration, short."""
    return "n/a" if milliseconds is None else format_span(milliseconds / 1000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    known = ", ".join(DIMENSIONS)
    parser.add_argument("--by", metavar="D,D", default=DEFAULT_BY, help=f"dimensions of the table: {known}")
    add_since(parser)


def run(call: Call) -> int:
    """Print the tables."""
    by, since = _dimensions(call), since_of(call)
    present, book = load_with_attempts(call)
    note_unread(call, present.tracker)
    beads = present.tracker.beads
    every = with_memories_given(present.project, tuple(book))
    attempts = [attempt for attempt in every if began_since(attempt, since)]
    cells = table(attempts, beads, by)
    other = [each for each in book.other_calls if since is None or each.at >= since]
    spent = burn(attempts, beads, call.now, left=to_do(present.queue), other_calls=other)
    away = only_archived(read_archive(present.project.archive_file), beads)
    # from all attempts: --since narrows the tables, not the forecast
    drained = forecast(every, beads, present.queue.graph, call.now, left=to_do(present.queue), archive=away)
    lost = failing(attempts, beads)
    models, tried = compare_models(attempts, beads), batches(attempts, beads)
    measured = read_measures(present.project, attempts)
    unended = count_without_result(attempts)
    if call.json:
        call.emit(
            {
                "by": by,
                "attempts": len(attempts),
                # a table by outcome leaves them out
                "without_result": unended,
                "rows": [cell_document(cell) for cell in cells],
                "burn": burn_document(spent),
                "forecast": drained.record(),
                "failing": [failing_document(each) for each in lost],
                "models": [comparison_document(model) for model in models],
                "experiments": [batch_document(each, present.queue) for each in tried],
                "measures": [each.document() for each in measured],
            }
        )
        return 0
    for line in _listing(call, by, cells, beads, spent, drained, lost, models, tried):
        call.print(line)
    for line in _measured(call, measured):
        call.print(line)
    if unended:
        call.print(not_counted(unended))
    for line in describe_nameless(book.nameless_since(since)):
        call.print(line)
    return 0


def _measured(call: Call, measures: Iterable[Measure]) -> Iterator[str]:
    """Each metric with a value: its baseline, ratchet and direction."""
    for place, each in enumerate(measure for measure in measures if measure.value is not None):
        if not place:
            yield ""
            yield call.paint("measures", "bold")
        sign = "≤" if each.direction == "lower-is-better" else "≥"
        said = [f"baseline {each.show(each.baseline)}" if each.baseline is not None else "", each.trend]
        said.append(f"ratchet {sign} {each.show(each.ratchet)}" if each.ratchet is not None else "")
        ink = "error" if each.holds is False else "muted"
        shown = clean_line(each.title or each.name, 80)
        yield f"  {shown}  {each.show(each.value)}  {call.paint(' · '.join(filter(None, said)), ink)}"


def _dimensions(call: Call) -> list[str]:
    names = [name.strip() for name in call.options.by.split(",") if name.strip()]
    unknown = [name for name in names if name not in DIMENSIONS]
    if unknown or not names:
        raise CliError(
            f"--by {clean_line(call.options.by, 60)!r}: no dimension is called "
            f"{clean_line(', '.join(unknown), 60) or 'nothing'}",
            f"Dimensions: {', '.join(DIMENSIONS)}.",
            2,
        )
    return list(dict.fromkeys(names))


# --- documents --------------------------------------------------------------------------------------------


def cell_document(cell: Cell) -> dict[str, Any]:
    """One row: counts, the landed share with its 95 % interval, dollars, tokens, durations in ms.

    Unrecorded values are null. ``cost_complete`` is false where the cost of some attempts is unknown.
    """
    return {
        "key": dict(cell.key),
        "n": cell.n,
        **cell.counts,
        "outcomes": dict(cell.outcomes),
        "rate": cell.landed.rate,
        "low": cell.landed.low,
        "high": cell.landed.high,
        "small": cell.small,
        "beads": cell.beads,
        "beads_landed": cell.beads_landed,
        "cost_usd": cell.cost,
        "spent": cell.sums.record(),
        "cost_known": len(cell.costs),
        "cost_complete": cell.cost_complete,
        "cost_per_landed": cell.cost_per_landed,
        "cost_per_attempt": cell.cost_per_attempt,
        "tokens_total": cell.tokens_total,
        "tokens_p50": percentile(cell.tokens, 0.5),
        "duration_p50": percentile(cell.durations, 0.5),
        "duration_p95": percentile(cell.durations, 0.95),
    }


def burn_document(spent: Burn) -> dict[str, Any]:
    """Spending by day and at the current rate, in dollars."""
    return {
        "last_24h": cell_document(spent.last_day),
        "recent": cell_document(spent.recent),
        "per_day": spent.per_day,
        "open_beads": spent.open_beads,
        "left": spent.left,
        "days": [cell_document(cell) for cell in spent.days],
    }


def failing_document(each: Failing) -> dict[str, Any]:
    """A bead that keeps failing."""
    cell = each.cell
    return {
        "bead_id": each.bead_id,
        "title": each.title,
        "attempts": cell.n,
        "cost_usd": cell.cost,
        "cost_complete": cell.cost_complete,
        "tokens_total": cell.tokens_total,
        "duration_ms": cell.duration_ms,
        "last_status": each.last.status or None,
        "last_attempt_id": each.last.attempt_id,
        "last_at": _instant(each.last.at),
    }


def comparison_document(each: ModelComparison) -> dict[str, Any]:
    """Whether a cheaper model would have been enough for one kind of bead."""
    return {
        "kind": each.kind,
        "dearer": cell_document(each.dearer),
        "cheaper": cell_document(each.cheaper),
        "verdict": each.verdict,
        "saved_per_landed": each.saved,
        "rescued": each.rescued,
    }


def batch_document(batch: Batch, queue: Queue) -> dict[str, Any]:
    """A batch of experiments."""
    return {
        "batch": batch.name,
        "best": batch.best.bead.id if batch.best else None,
        "trials": [trial_document(trial, queue.state(trial.bead.id)) for trial in batch.trials],
    }


def _instant(instant: int | None) -> str | None:
    return None if instant is None else format_instant(instant)


# --- for people -------------------------------------------------------------------------------------------


def _listing(
    call: Call,
    by: Sequence[str],
    cells: Sequence[Cell],
    beads: Mapping[str, Bead],
    spent: Burn,
    drained: Forecast,
    lost: Sequence[Failing],
    models: Sequence[ModelComparison],
    tried: Sequence[Batch],
) -> list[str]:
    if not cells:
        return ["nothing was attempted" + (" since then" if call.options.since else " yet")]
    lines = _table(call, by, cells, beads)
    lines += ["", *_burn_lines(spent), drained.describe()]
    if lost:
        lines += ["", call.paint("keeps failing", "bold"), *_failing_lines(lost)]
    better = [model for model in models if model.verdict in ("as good", "better") and (model.saved or 0) > 0]
    if better:
        lines += ["", call.paint("a cheaper model would have been enough", "bold"), *map(said, better)]
    for batch in tried:
        lines += [
            "",
            call.paint(f"experiments: {clean_line(batch.name, 60)}", "bold"),
            *trial_lines(call, batch.trials),
        ]
    return lines


def _table(call: Call, by: Sequence[str], cells: Sequence[Cell], beads: Mapping[str, Bead]) -> list[str]:
    head = [*by, "n", "landed", "95 %", "spent", "$/landed", "tok p50", "p50", "p95"]
    rows = [head, *(_row(cell, beads) for cell in cells[:MAX_ROWS])]
    lines = columns(rows, right=tuple(range(len(by), len(head))))
    out = [call.paint(lines[0], "muted")]
    out += [call.paint(line, "muted") if cell.small else line for cell, line in zip(cells, lines[1:], strict=False)]
    if len(cells) > MAX_ROWS:
        out.append(f"… {counted(len(cells) - MAX_ROWS, 'more row')}: --json shows them")
    if any(cell.cost is not None and not cell.cost_complete for cell in cells):
        out.append(call.paint("≥: the cost of some attempts is unknown", "muted"))
    return out


def _row(cell: Cell, beads: Mapping[str, Bead]) -> list[str]:
    titles = [f"{value} {beads[value].title}" if value in beads else value for _, value in cell.key]
    return [
        *(
            fit(clean_line(title, 60), 44 if title != value else 20).rstrip()
            for title, (_, value) in zip(titles, cell.key, strict=True)
        ),
        f"{cell.n:,}",
        percent(cell.landed.rate),
        f"{percent(cell.landed.low)}–{percent(cell.landed.high)}",
        dollars(cell),
        per_landed(cell),
        count(percentile(cell.tokens, 0.5)),
        span(percentile(cell.durations, 0.5)),
        span(percentile(cell.durations, 0.95)),
    ]


def _burn_lines(spent: Burn) -> list[str]:
    rate = f" = {format_usd(spent.per_day)} a day" if spent.per_day is not None else ""
    lines = [f"last 24 h: {_sum(spent.last_day)}", f"last 7 d:  {_sum(spent.recent)}{rate}"]
    if not spent.recent.n and spent.days:
        newest = spent.days[0]
        lines.append(f"{newest.key[0][1]}: {_sum(newest)}, and nothing since")
    if spent.left is not None and spent.open_beads:
        each = format_usd(spent.recent.cost_per_landed)
        open_ = counted(spent.open_beads, "open one", "open ones")
        lines.append(f"{each} per landed bead; estimate for the {open_}: {format_usd(spent.left)}")
    return lines


def _sum(cell: Cell) -> str:
    return f"{counted(cell.n, 'attempt')}, {cell.counts['landed']} landed, {format_whole(cell.sums)}"


def _failing_lines(lost: Sequence[Failing]) -> list[str]:
    rows = [
        [
            f"{each.cell.n}×",
            dollars(each.cell),
            fit(clean_line(each.last.status), 22).rstrip(),
            short_id(clean_line(each.bead_id)),
            fit(clean_line(each.title, 200), 60).rstrip(),
        ]
        for each in lost[:MAX_ROWS]
    ]
    more = [f"… {len(lost) - MAX_ROWS:,} more"] if len(lost) > MAX_ROWS else []
    return [*columns(rows, right=(0, 1)), *more]


def said(each: ModelComparison) -> str:
    """A comparison in one sentence."""
    cheaper, dearer = (dict(cell.key)["model"] for cell in (each.cheaper, each.dearer))
    return clean_line(
        f"{each.kind}: {cheaper} lands {percent(each.cheaper.landed.rate)} of {each.cheaper.n:,} at "
        f"{per_landed(each.cheaper)}, {dearer} {percent(each.dearer.landed.rate)} of {each.dearer.n:,} at "
        f"{per_landed(each.dearer)}: {format_usd(each.saved)} less per landed bead",
        300,
    )
