"""The Insights screen: tables, what is behind a row, and how it looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from helix_tui.core.snapshot.snapshot import Change
from helix_tui.screens.insights import InsightsScreen
from tests.screens.conftest import Console, MakeConsole

Compare = Callable[..., bool]

MODELS = (("opus", 12, 4, 2.0), ("haiku", 11, 5, 0.2), ("sonnet", 1, 2, None))


def write_history(root: Path) -> None:
    """Attempts of three models: two comparable, one too rare."""
    folder = root / ".ddx/metrics"
    folder.mkdir()
    rows: list[dict[str, object]] = []
    for model, landed, lost, cost in MODELS:
        for number in range(landed + lost):
            minute = len(rows)
            row: dict[str, object] = {
                "attempt_id": f"20260820T10{minute:02}00-{minute:08x}",
                "bead_id": f"demo-{number}" if number < landed else "demo-lost",
                "ts_start": f"2026-08-20T10:{minute:02}:00Z",
                "ts_end": f"2026-08-20T10:{minute:02}:30Z",
                "outcome": "success" if number < landed else "no_changes",
                "harness": "claude",
                "model": model,
                "duration_ms": 30_000 + 1_000 * minute,
            }
            rows.append(row if cost is None else row | {"cost_usd": cost})
    (folder / "attempts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def beads() -> list[str]:
    lost = {"id": "demo-lost", "title": "Lost [red]again\u001b[31m", "labels": ["experiment:prompts"]}
    return [
        *(json.dumps({"id": f"demo-{n}", "title": f"bead {n}", "status": "closed"}) for n in range(16)),
        json.dumps(lost),
    ]


@pytest.fixture
def history(console: MakeConsole) -> Console:
    """A console on the Insights screen over some attempts."""
    app = console(beads(), screen="insights")
    write_history(app.root)
    return app


async def settled(pilot: Pilot[int]) -> None:
    """Let the tables be worked out and shown, and the rows behind them."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    screen = pilot.app.screen
    if isinstance(screen, InsightsScreen):
        screen.show_detail()
    await pilot.pause()


@pytest.mark.long
async def test_the_tables_follow_the_keys(history: Console) -> None:
    async with history.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        assert history.sees("opus  ")
        assert history.sees("75%")
        assert history.sees("$32.00")  # what the model has cost
        for seen in (
            "no document has `metric:` in its frontmatter",
            "context · memories given",
            "length of prompt · effort",
            "prompts",
        ):
            await pilot.press("left_square_bracket")
            await settled(pilot)
            assert history.sees(seen)
        for keys, seen in (("1:failing beads", "Lost"), ("2:insights: cheaper model", "haiku for opus")):
            # by name, from any screen
            await pilot.press(keys[0], "colon", *keys[2:], "enter")
            await settled(pilot)
            assert history.sees(seen)
        await pilot.press(*["left_square_bracket"] * 4)
        await settled(pilot)
        assert history.sees("11×")


@pytest.mark.long
async def test_which_model_lands_cheapest_is_two_keys_away(history: Console) -> None:
    async with history.run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("right_square_bracket")
        await settled(pilot)
        assert history.sees("kind · model · harness")
        assert history.sees("▾$/landed")
        names = [row[1:60].partition("  ")[0] for row in history.rows() if " · claude  " in row[:60]]
        assert names == ["task · haiku · claude", "task · opus · claude", "task · sonnet · claude"], history.rows()
        await pilot.press("o", "d")
        await settled(pilot)
        await pilot.press("o", "d")
        await settled(pilot)
        names = [row[1:60].partition("  ")[0] for row in history.rows() if " · claude  " in row[:60]]
        assert names == ["task · opus · claude", "task · haiku · claude", "task · sonnet · claude"]
        await pilot.press("o", "l")
        await settled(pilot)
        assert history.sees("▾landed")
        await pilot.press("o", "d")
        await pilot.press("o", "d")
        await pilot.resize_terminal(48, 30)
        await settled(pilot)
        assert history.sees("▴$/landed"), history.rows()
        history.screen.show_table("failing beads")  # type: ignore[attr-defined]
        await pilot.press("o")
        await settled(pilot)
        assert len(history.screen_stack) == 1


async def test_enter_leads_to_the_attempts_and_on_to_the_loop(history: Console) -> None:
    async with history.run_test(size=(48, 24)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert history.sees("bead 0")
        await pilot.press("escape")
        await settled(pilot)
        assert history.sees("haiku")
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert history.current_mode == "loop"


async def test_new_attempts_change_the_figures_and_keep_the_row(history: Console) -> None:
    async with history.run_test(size=(160, 40)) as pilot:
        await settled(pilot)
        screen = history.screen
        assert isinstance(screen, InsightsScreen)
        await pilot.press("j")
        key = screen.list.selected_key
        with (history.root / ".ddx/metrics/attempts.jsonl").open("a") as file:
            for number in range(20):
                row = {"attempt_id": f"20260821T10{number:02}00-{number:08x}", "bead_id": "demo-lost"}
                ended = {
                    "outcome": "no_changes",
                    "harness": "x",
                    "model": "new",
                    "ts_end": "2026-08-21T11:00:00Z",
                }
                file.write(json.dumps(row | ended) + "\n")
        history.feed.look()
        await pilot.pause()
        await settled(pilot)
        assert history.sees("new  ")
        assert screen.list.selected_key == key


async def test_nothing_attempted_is_said(console: MakeConsole) -> None:
    app = console(beads(), screen="insights")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert app.sees("Nothing has been attempted yet.")


async def test_a_click_on_a_table_shows_it(history: Console) -> None:
    async with history.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        await pilot.click("#insight-views", offset=(12, 0))
        await settled(pilot)
        assert isinstance(history.screen, InsightsScreen)
        assert history.screen.table == "kinds"


@pytest.mark.parametrize("size", [(48, 20), (80, 30), (120, 30), (160, 36)], ids=str)
def test_looks(history: Console, size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(history, terminal_size=size, run_before=settled)


async def test_what_a_run_told_counts_where_no_evidence_is_left(console: MakeConsole) -> None:
    app = console(beads(), screen="insights")
    told = {"bead_id": "demo-1", "status": "success", "harness": "codex", "model": "m-1", "cost_usd": 0.25}
    folder = app.root / ".helix"
    folder.mkdir(exist_ok=True)
    state = {"cycles": [{"at": "2026-08-20T10:00:00Z", "attempts": [told, 7]}, {"attempts": None}]}
    (folder / "run-state.json").write_text(json.dumps(state))
    async with app.run_test(size=(120, 30)) as pilot:
        await settled(pilot)
        assert app.sees("m-1  ")


@pytest.mark.parametrize("screen", ["insights", "loop"])
async def test_nothing_is_called_unattempted_before_attempts_were_read(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, screen: str
) -> None:
    app = console(beads(), screen=screen)
    write_history(app.root)
    gatherer = app.feed._gatherer
    with monkeypatch.context() as early:
        early.setattr(app.feed, "start", lambda: app._news_from_thread(gatherer.gather(attempts=False), Change()))
        async with app.run_test(size=(120, 30)) as pilot:
            await pilot.pause()
            assert app.sees("Reading attempts")
            assert not app.sees("attempted yet")
            app.feed.look()
            await pilot.pause(0.2)
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert not app.sees("Reading attempts")
            assert app.sees("sonnet")


async def test_an_epic_says_what_its_beads_have_cost_in_its_detail_and_in_its_table(console: MakeConsole) -> None:
    rows = [
        json.dumps({"id": "demo-epic", "title": "Timetables", "issue_type": "epic", "status": "open"}),
        json.dumps({"id": "demo-part", "title": "Part", "issue_type": "epic", "parent": "demo-epic", "status": "open"}),
        *(json.dumps({"id": f"demo-{n}", "title": f"bead {n}", "parent": "demo-part"}) for n in range(16)),
    ]
    app = console(rows)
    write_history(app.root)
    async with app.run_test(size=(120, 40)) as pilot:
        app.feed.look()
        await pilot.pause()
        app.screen.go_to("demo-epic")  # type: ignore[attr-defined]
        app.screen.show_detail()  # type: ignore[attr-defined]
        await pilot.pause()
        assert app.sees("spent  ≥$26.20 in 24 attempts on it"), app.rows()
        await pilot.press("5")
        await settled(pilot)
        app.screen.show_table("epics")  # type: ignore[attr-defined]
        await settled(pilot)
        assert app.sees("Part ")
        assert app.sees("≥$26.20")
