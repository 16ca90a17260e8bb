"""The running panel: one pane with what runs and what ended."""

from __future__ import annotations

from textual import on

from helix_tui.core.ddx.runs.running import Run
from helix_tui.widgets.rows.attempts import RunningPanel, RunView
from tests.widgets.host import Host
from tests.widgets.rows.test_attempts import attempt, board, run


class Listener(Host):
    """Keeps what was chosen."""

    chosen: list[tuple[str, str]]

    @on(RunningPanel.Chosen)
    def note(self, event: RunningPanel.Chosen) -> None:
        self.chosen.append((event.attempt_id, event.bead_id))


async def test_it_says_what_runs_and_lists_the_newest_only() -> None:
    panel = RunningPanel(most=3)
    app = Host(panel)
    async with app.run_test(size=(46, 20)) as pilot:
        gone = run(verdict="dead", live=False, why="its process is gone", attempt_id="x")
        panel.show_board(board([attempt(number) for number in range(1, 9)], run(), gone))
        await pilot.pause()
        shown = app.rows()
        assert "Running 1 · 1 dead" in shown[0]
        assert "follows" in shown[0]
        assert sum("Pin the provider" in line for line in shown) == 3


async def test_nothing_runs_where_a_worker_is_between_beads() -> None:
    panel = RunningPanel()
    app = Host(panel)
    async with app.run_test(size=(46, 8)) as pilot:
        panel.show_board(board([attempt(1)]))
        await pilot.pause()
        assert app.rows()[0].strip() == "Idle"
        panel.show_board(board([attempt(1)], run(bead_id=None, worker_id="w")))
        await pilot.pause()
        assert "Idle · 1 between beads" in app.rows()[0]


async def test_enter_names_the_attempt_and_the_bead() -> None:
    panel = RunningPanel()
    app = Listener(panel)
    app.chosen = []
    async with app.run_test(size=(46, 20)) as pilot:
        claimed = RunView(Run("ddx-2", None, source="lease"))
        panel.show_board(board([attempt(1)], claimed))
        panel.list.focus()
        await pilot.press("enter", "j", "enter")
        await pilot.pause()
    assert app.chosen == [("", "ddx-2"), (attempt(1).attempt_id, "ddx-1")]
