"""A cost of which a part is unknown: it ranks behind exact ones, and the table says so."""

from __future__ import annotations

from itertools import count

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ground.time import NS
from helix_tui.core.insights.report import Report, read_report
from helix_tui.widgets.rows.cost_tables import FiguredRows, table_of

NOW = 1_800_000_000 * NS
_numbers = count()


def attempt(bead: str, model: str, usd: float | None) -> Attempt:
    return Attempt(
        f"attempt-{next(_numbers)}",
        bead_id=bead,
        status="success",
        model=model,
        harness="h",
        cost_usd=usd,
        tokens=Tokens(total=1_000),
        started_at=NOW - 2 * NS,
        finished_at=NOW - NS,
    )


def report_of(*attempts: Attempt) -> Report:
    beads = {each.bead_id: Bead(id=each.bead_id, issue_type="bug", labels=("experiment:x",)) for each in attempts}
    return read_report(attempts, classify(beads, now=NOW), NOW)


def lines_of(rows: FiguredRows, width: int = 120) -> list[str]:
    return ["".join(text for text, _ in rows.paint(index, width)) for index in range(len(rows))]


PARTLY = (attempt("a", "partly", 0.1), attempt("a", "partly", None), attempt("b", "exact", 5.0))


def test_the_cheapest_for_bugs_is_one_whose_cost_is_known_and_the_table_says_so() -> None:
    lines = lines_of(table_of("kinds", report_of(*PARTLY)))
    assert ["exact" in lines[1], "≥$0.10" in lines[2]] == [True, True]
    assert "≥ some costs unknown: after exact costs" in lines[-1]
    exact = lines_of(table_of("kinds", report_of(PARTLY[0], PARTLY[2])))
    assert not any("≥" in line for line in exact)


def test_an_experiment_whose_cost_is_known_in_part_does_not_win() -> None:
    report = report_of(*PARTLY)
    (batch,) = report.batches
    assert [trial.bead.id for trial in batch.trials] == ["b", "a"]
    assert lines_of(table_of("experiments", report))[-1].strip() == "≥ some costs unknown: after exact costs"


def test_what_a_cheaper_model_saves_is_a_bound_where_a_cost_is_one() -> None:
    lines = lines_of(table_of("cheaper model", report_of(*PARTLY)))
    # the cheaper one landed one bead for at least $0.10: it saves at most $4.90
    assert "≤$4.90" in lines[1]
    assert lines[-1].strip().startswith("≥ at least, ≤ at most")


def test_an_empty_table_names_what_would_fill_it() -> None:
    report = report_of()
    for name, fills in (("experiments", "helix-tui label ID --add experiment:NAME"), ("measures", "`metric:`")):
        assert fills in lines_of(table_of(name, report))[0]
