"""What the pulse says of a snapshot, and how news becomes a frame."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt, Tokens
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.dialect import AUGUST, RowGate
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.time import NS
from helix_tui.core.snapshot.feed import empty_snapshot
from helix_tui.core.snapshot.snapshot import Change, Snapshot
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.screens.status_bar_model import pulse_facts
from tests.programs import parse_rows
from tests.screens.conftest import NOW, Console, MakeConsole


def snapshot(**parts: object) -> Snapshot:
    empty = empty_snapshot(Project(Path("/p/demo"), Path("/p/demo/.ddx")), NOW)
    return replace(empty, condition="live", **parts)


def attempt(number: int, cost_usd: float | None = None, tokens: int | None = None) -> Attempt:
    return Attempt(
        f"2026082{number % 2 + 1}T0{number}0000-0000000{number}",
        started_at=NOW - number * NS,
        cost_usd=cost_usd,
        tokens=Tokens(total=tokens),
    )


def test_an_old_write_is_called_old_only_while_something_runs() -> None:
    old = {"written_at": NOW - 61 * NS}
    assert not pulse_facts(snapshot(**old), (), NOW).stale
    running = snapshot(**old, runs=(Run("b", live=True),))
    assert pulse_facts(running, (), NOW).stale
    assert not pulse_facts(running, (), NOW - 2 * NS).stale


def test_a_dead_run_and_a_worker_between_beads_do_not_count_as_running() -> None:
    between = Run(None, worker_id="w")
    needs = (Need("dead_run", "b", "its process is gone", 0), Need("proposed", "c", "parked", 0))
    facts = pulse_facts(snapshot(runs=(Run("a"), Run("b", live=False, verdict="dead"), between)), needs, NOW)
    assert (facts.running, facts.stale_claims) == (1, 1)
    free = pulse_facts(snapshot(runs=(Run("b", live=False, verdict="dead"),)), needs[1:], NOW)
    assert free.stale_claims == 0, "ddx gives b out again: nobody has to look at it"


def test_a_simulation_stays_one_while_a_claim_does_not_tell_its_harness_yet() -> None:
    simulated = AttemptBook([replace(attempt(1), harness="simulation")])
    assert pulse_facts(snapshot(attempts=simulated, runs=(Run("a"),)), (), NOW).simulation
    assert not pulse_facts(snapshot(attempts=simulated, runs=(Run("a", harness="claude"),)), (), NOW).simulation


def test_what_today_cost_is_known_at_least() -> None:
    book = AttemptBook([attempt(1, 1.5, 200_000), attempt(2, None, 100_000)])
    assert pulse_facts(snapshot(attempts=book), (), NOW).spent == "≥$1.50 · 300k tok today"
    unknown = AttemptBook([attempt(1)])
    assert pulse_facts(snapshot(attempts=unknown), (), NOW).spent == "cost n/a today"
    assert pulse_facts(snapshot(), (), NOW).spent == ""
    assert pulse_facts(snapshot(attempts=book), (), NOW + 3 * 86_400 * NS).spent == ""


async def test_the_frame_is_there_before_the_queue(console: MakeConsole) -> None:
    app = console()
    app.feed.start = lambda: None  # type: ignore[method-assign]
    async with app.run_test(size=(100, 20)) as pilot:
        await pilot.pause()
        assert app.sees("1 Queue")
        assert app.sees("Reading the queue …")
        assert app.sees("reading …")
        app.feed.look()
        await pilot.pause()
        assert app.sees("Scrub worktree leftovers")


async def test_a_burst_of_news_costs_one_frame(console: MakeConsole) -> None:
    app = console()
    changes: list[Change] = []

    async with app.run_test(size=(100, 20)) as pilot:
        screen = app.screen
        show = screen.receive  # type: ignore[attr-defined]

        def receive(snapshot: Snapshot, change: Change) -> None:
            changes.append(change)
            show(snapshot, change)

        screen.receive = receive  # type: ignore[attr-defined]
        latest = app.feed.snapshot
        for number in range(1000):
            news = replace(latest, generation=latest.generation + 1 + number)
            app._news_from_thread(news, Change(beads=frozenset({f"b{number}"})))
        await pilot.pause()
        assert len(changes) <= 3
        assert len(frozenset().union(*(change.beads for change in changes))) == 1000


async def test_the_widest_posture_has_the_stream_beside_queue_and_bead(console: MakeConsole) -> None:
    app: Console = console()
    async with app.run_test(size=(160, 30)) as pilot:
        await pilot.pause()
        await pilot.pause()
        assert app.sees("Idle")
        await pilot.press("tab", "tab")
        assert app.focused is app.screen.query_one("#stream").query_one("AttemptList")
        await pilot.press("escape")
        assert app.focused is app.screen.query_one("#queue")


async def test_a_missing_bead_says_who_waits_and_where_it_was_last_seen(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        app.screen.query_one("#queue").select("missing:demo-gone0001")  # type: ignore[attr-defined]
        await pilot.pause()
        app.screen.show_detail()  # type: ignore[attr-defined]
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.sees("not in the tracker:")
        assert app.sees("neither the archive nor the git history")
        assert app.sees("Wait for what nobody has")


def test_the_pulse_counts_nothing_as_ready_that_ddx_refuses_to_give_out() -> None:
    gate = RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate")
    rows = parse_rows(b'{"id":"a","status":"open"}\n{"id":"b","status":"open","labels":["needs_human"]}\n')
    seen = replace(snapshot(tracker=rows), dialect=replace(AUGUST, gates=(gate,)))
    facts = pulse_facts(seen, (), NOW)
    assert facts.trouble == "ddx refuses all"
    assert (facts.action, facts.because) == ("GUIDANCE", "lifecycle migration required")
    assert pulse_facts(replace(seen, dialect=AUGUST), (), NOW).trouble == ""


def test_before_everything_is_read_nobody_says_how_much_waits() -> None:
    assert pulse_facts(snapshot(), (), NOW).needs_me == 0
    assert pulse_facts(snapshot(), None, NOW).needs_me is None
