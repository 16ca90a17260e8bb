"""Why nothing has landed: one answer from verdicts, the loop's end and what waits for a person."""

from __future__ import annotations

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.runs.endings import WorkerEnding
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.statements.ending import explain_landings, since_landing
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.core.supervision.signals.stoppage import Stoppage

NOW = parse_now("2026-08-21T16:00:00Z")
MINUTE = 60 * NS


def _attempt(name: str, status: str, began: int, ended: int, **more: object) -> Attempt:
    """An attempt that began and ended so many minutes ago."""
    landed = {"landed_rev": "c0ffee"} if status == "success" else {}
    times = {"started_at": NOW - began * MINUTE, "finished_at": NOW - ended * MINUTE}
    return Attempt(name, bead_id=f"b-{name}", status=status, **landed, **times, **more)  # type: ignore[arg-type]


FAILED = _attempt("5", "execution_failed", 30, 20, detail="index.lock exists")
FAILED_BEFORE = _attempt("4", "execution_failed", 60, 50, detail="something else", cost_usd=1.0)
NO_CHANGE = _attempt("3", "no_changes", 100, 90)
SHORT = _attempt("2", "success", 150, 140)
LONG = _attempt("1", "success", 300, 120)


def test_the_last_landing_is_the_one_that_landed_last() -> None:
    found = since_landing([FAILED, FAILED_BEFORE, NO_CHANGE, SHORT, LONG])
    assert found.landed is LONG
    assert found.attempts == (FAILED, FAILED_BEFORE, NO_CHANGE)
    assert found.describe_landed("Sort sailings", NOW) == "2h ago: “Sort sailings”"
    assert found.describe_attempts() == (
        "3 attempts (≥$1.00): 1 no change, 2 failed; most often execution_failed (2×), the last time: index.lock exists"
    )
    assert found.record()["statuses"] == {"execution_failed": 2, "no_changes": 1}


def test_a_landing_counts_from_when_it_landed_and_not_from_when_its_attempt_ended() -> None:
    recovered = _attempt("0", "success", 9000, 8990, recorded_at=NOW - 40 * MINUTE)
    found = since_landing([FAILED, FAILED_BEFORE, NO_CHANGE, SHORT, LONG, recovered])
    assert (found.landed, found.attempts) == (recovered, (FAILED,))
    assert found.describe_landed("Sort sailings", NOW) == "40m ago: “Sort sailings”"


def test_what_still_runs_has_not_ended_and_a_landing_is_not_its_own_aftermath() -> None:
    running = Attempt("6", started_at=NOW - MINUTE, held=True)
    assert since_landing([running, FAILED, SHORT]).attempts == (FAILED,)
    assert since_landing([SHORT]).attempts == ()
    assert since_landing([SHORT]).describe_attempts() == "no attempt"
    none = since_landing([FAILED])
    assert none.landed is None
    assert none.describe_landed("", NOW) == "nothing yet"
    assert none.describe_attempts() == "1 attempt (cost unknown): 1 failed; index.lock exists"
    assert since_landing([]).describe_attempts() == "no attempt"


def test_the_answer_names_how_the_worker_ended_and_what_waits() -> None:
    ending = WorkerEnding("w1", NOW - MINUTE, "routing_unavailable", "no model answers")
    summary = StatusSummary(stoppage=Stoppage(ending, None))
    needs = [Need("kept_aside", "b", "r", 0, attempt_id="5"), Need("proposed", "c", "r", 0)]
    found = since_landing([FAILED, SHORT])
    told = dict(explain_landings(found, title="T", summary=summary, running=0, needs=needs, now=NOW))
    assert told["runs"].startswith("nothing · the last worker stopped (routing unavailable): no model answers")
    assert told["waits"] == "2 need you; these attempts left 1"
    told = dict(explain_landings(found, title="T", summary=summary, running=2, needs=[], now=NOW))
    assert (told["runs"], told["waits"]) == ("2 workers", "nothing needs you")
