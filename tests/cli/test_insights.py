"""``helix-tui insights``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory


def metric(number: int, outcome: str, **fields: Any) -> str:
    row = {"schema_version": 1, "attempt_id": f"20260511T0057{number:02}-ba01709e", "bead_id": "x-1"}
    times = {"ts_start": f"2026-05-11T00:57:{number:02}Z", "ts_end": f"2026-05-11T01:57:{number:02}Z"}
    return json.dumps({**row, **times, "outcome": outcome, "harness": "claude", "model": "opus", **fields})


@pytest.fixture
def history(project: ProjectFactory) -> Path:
    root = project(['{"id": "x-1", "title": "one", "issue_type": "bug"}'])
    folder = root / ".ddx/metrics"
    folder.mkdir()
    rows = [
        metric(1, "no_changes", cost_usd=1.5),
        metric(2, "success", cost_usd=2.5),
        metric(3, "no_changes"),
    ]
    (folder / "attempts.jsonl").write_text("\n".join([*rows, "{torn"]) + "\n")
    return root


def test_rows_carry_n_interval_and_cost(program: Cli, history: Path) -> None:
    document = json.loads(program("insights", "--json", "-C", str(history)).out)
    (row,) = document["rows"]
    assert document["schema"] == "insights/1"
    assert row["key"] == {"harness": "claude", "model": "opus", "kind": "bug"}
    assert (row["n"], row["landed"], row["rate"]) == (3, 1, pytest.approx(1 / 3))
    assert row["low"] < row["rate"] < row["high"]
    assert (row["cost_per_landed"], row["cost_complete"]) == (4.0, False)
    assert row["duration_p50"] is None


def test_other_dimensions_and_times(program: Cli, history: Path) -> None:
    ran = program("insights", "--json", "--by", "day", "--since", "2026-05-11T00:57:02Z", "-C", str(history))
    (row,) = json.loads(ran.out)["rows"]
    assert (row["key"], row["n"]) == ({"day": "2026-05-11"}, 2)


def test_an_unknown_dimension_is_named_with_what_there_is(program: Cli, history: Path) -> None:
    ran = program("insights", "--by", "model,colour", "-C", str(history))
    assert ran.code == 2
    assert "colour" in ran.err
    assert "harness, model" in ran.err


def test_people_read_what_keeps_failing_and_that_nothing_was_spent_lately(program: Cli, history: Path) -> None:
    out = program("insights", "-C", str(history), "--now", "2026-08-01").out
    assert "claude" in out
    assert "≥$4.00" in out
    assert "and nothing since" in out


def test_a_sum_and_an_unknown_status_are_written_as_attempts_writes_them(program: Cli, project: ProjectFactory) -> None:
    root = project(['{"id": "x-1", "title": "one", "issue_type": "bug"}'])
    (root / ".ddx/metrics").mkdir()
    rows = [metric(1, "no_changes", cost_usd=0.1), metric(2, "failed", cost_usd=0.2)]
    (root / ".ddx/metrics/attempts.jsonl").write_text("\n".join(rows) + "\n")
    left = root / ".ddx/executions/20260512T005700-ba01709e"
    left.mkdir(parents=True)
    kept = {"attempt_id": left.name, "bead_id": "x-1", "preserve_ref": "refs/ddx/iterations/x-1/20260801T013909Z-582cb"}
    (left / "result.json").write_text(json.dumps(kept))
    document = json.loads(program("insights", "--json", "--by", "bead", "-C", str(root)).out)
    newest = json.loads(program("attempts", "--json", "-C", str(root)).out)["attempts"][0]
    (row,), (failing,) = document["rows"], document["failing"]
    assert row["cost_usd"] == row["spent"]["usd"] == failing["cost_usd"] == 0.3, "0.1 + 0.2, to the millionth"
    assert failing["last_attempt_id"] == newest["attempt_id"] == left.name
    assert failing["last_status"] is newest["status"] is None


def test_nothing_attempted_is_said(program: Cli, project: ProjectFactory) -> None:
    assert "nothing was attempted yet" in program("insights", "-C", str(project([]))).out


ODD = ("x", "-5", -1, -1e308, 1e308, 0, True, [1], {"a": 1}, 10**30, -(10**30), "9999-12-31T23:59:59Z")


def test_hostile_figures_are_unknown_ones(program: Cli, project: ProjectFactory) -> None:
    """One row for each odd value in each field; what is left is what a row without any would say."""
    root = project(['{"id": "x-1", "title": "one", "issue_type": "\\u001b]0;x\\u0007"}'])
    (root / ".ddx/metrics").mkdir()
    fields = ("cost_usd", "duration_ms", "input_tokens", "output_tokens", "total_tokens", "ts_end")
    rows = [
        json.dumps(json.loads(metric(1, "success")) | {"attempt_id": f"20260511T005701-{n:08x}", field: odd})
        for n, (field, odd) in enumerate((field, odd) for field in fields for odd in ODD)
    ]
    beyond = ['{"attempt_id": "20260511T005702-00000001", "cost_usd": 1e999}', "[" * 5000, "\0" * 50, "1"]
    (root / ".ddx/metrics/attempts.jsonl").write_text("\n".join([*rows, *beyond]) + "\n")
    document = json.loads(program("insights", "--json", "-C", str(root)).out)
    (row,) = document["rows"]
    assert (row["n"], row["key"]["kind"]) == (len(rows), "unknown")
    figures = ("cost_usd", "tokens_total", "duration_p50", "duration_p95", "cost_per_landed")
    assert {name: row[name] for name in figures} == dict.fromkeys(figures)
    assert [day["key"]["day"] for day in document["burn"]["days"]] == ["2026-05-11"]
    assert "n/a" in program("insights", "-C", str(root)).out


def test_a_table_says_what_was_spent_and_why_that_is_a_bound(program: Cli, history: Path) -> None:
    out = program("insights", "--by", "model", "-C", str(history)).out
    head, opus, note = out.splitlines()[:3]
    assert head.split()[:5] == ["model", "n", "landed", "95", "%"]
    assert "spent" in head
    assert "≥$4.00" in opus
    assert note == "≥: the cost of some attempts is unknown"


def test_an_epic_has_its_title_and_what_its_beads_have_cost(program: Cli, project: ProjectFactory) -> None:
    root = project(
        ['{"id": "x-9", "title": "Timetables", "issue_type": "epic"}', '{"id": "x-1", "title": "one", "parent": "x-9"}']
    )
    (root / ".ddx/metrics").mkdir()
    (root / ".ddx/metrics/attempts.jsonl").write_text(metric(1, "success", cost_usd=1.5) + "\n")
    words = ("insights", "--by", "parent", "-C", str(root))
    row = program(*words).out.splitlines()[1]
    assert "x-9 Timetables" in row
    assert "$1.50" in row
    (cell,) = json.loads(program(*words, "--json").out)["rows"]
    assert (cell["key"], cell["cost_usd"]) == ({"parent": "x-9"}, 1.5)
