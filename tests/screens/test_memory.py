"""The Memory screen in use: views, search, the page, lessons, pruning, and the way back."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from textual import events
from textual.widgets import TextArea

from helix_tui.core.memory.memory_store import open_memory
from helix_tui.screens.editing.choices import ChoiceSheet
from helix_tui.screens.memory.changes import CorrectionForm
from helix_tui.screens.memory.memory_screen import MemoryScreen
from helix_tui.screens.sheet import LinesSheet
from tests.screens.conftest import Console, MakeConsole
from tests.screens.memory_host import GATE, IDENTITY, LOCK, PUSH, memory_of, remember, settled

pytestmark = pytest.mark.long

SIZE = (120, 36)


@pytest.fixture(autouse=True)
def _by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights: what is tested here is the screen."""
    monkeypatch.setenv("HELIX_EMBEDDER", "off")


@pytest.fixture
def app(console: MakeConsole) -> Console:
    app = console(screen="memory")
    remember(app.root)
    return app


def keys_of(app: Console) -> list[str]:
    source = memory_of(app).list.source
    return [source.key(index) for index in range(len(source))]


async def test_recurring_ones_come_first_then_what_is_known_to_help(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert keys_of(app)[:3] == [IDENTITY, LOCK, GATE]
        assert app.sees("14 / 2")
        assert app.sees("88%")
        assert app.sees("unproven")
        assert app.sees("recurring: Tests pass locally")
        assert app.sees("2 lessons to review")
        assert app.sees("keywords only")


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ("failure", [LOCK]),
        ("systemic", [IDENTITY]),
        ("harmful", [PUSH]),
        ("dormant", ["prefer-rename-over-truncate"]),
        ("proposed", ["proposal 2", "proposal 1"]),
        ("plans", ["plan 1", "workspace 1", "workspace 2", "exploration 1"]),
    ],
)
async def test_views_hold_what_they_are_called(app: Console, view: str, names: list[str]) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        while memory_of(app).view != view:
            await pilot.press("right_square_bracket")
        await settled(pilot)
        assert keys_of(app) == names


async def test_an_empty_view_names_the_key_that_leads_on(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        screen = memory_of(app)
        screen._rows = []
        screen.open_view("systemic")
        screen.show_rows()
        await settled(pilot)
        assert app.sees("no systemic memory · ] next view")


async def test_a_click_opens_a_view(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.click("#memory-views", offset=(8, 0))
        assert memory_of(app).view == "failure"


async def test_the_page_tells_worth_edges_and_every_outcome(app: Console) -> None:
    async with app.run_test(size=(120, 60)) as pilot:
        await settled(pilot)
        memory_of(app).show_memory(LOCK)
        await settled(pilot)
        for text in (
            "take the lock",
            "14 helped · 2 failed",
            "16 verified",
            "solves",
            "co occurs →",
            "trend",
        ):
            assert app.sees(text), text
        assert app.sees("14 helped, 2 failed")
        assert app.sees("✗ failed used")


@pytest.mark.parametrize("width", [48, 80, 120, 160])
async def test_at_every_width_the_page_opens_and_the_mode_is_told(app: Console, width: int) -> None:
    async with app.run_test(size=(width, 40)) as pilot:
        await settled(pilot)
        assert app.sees("keywords only")
        memory_of(app).show_memory(LOCK)
        await pilot.press("enter")
        await settled(pilot)
        assert memory_of(app).page.paras
        assert app.sees("take the lock")


async def test_an_edge_leads_to_the_other_memory(app: Console) -> None:
    async with app.run_test(size=(120, 60)) as pilot:
        await settled(pilot)
        memory_of(app).show_memory(GATE)
        await settled(pilot)
        page = memory_of(app).page
        page.focus()
        page.select(next(para.key for para in page.paras if para.key.startswith("memory ")) + "\n0")
        await pilot.press("enter")
        await settled(pilot)
        assert memory_of(app).list.selected_key == LOCK


async def test_search_narrows_and_esc_brings_all_back(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        await pilot.press("slash", *"tracker")
        memory_of(app)._search()
        await settled(pilot)
        assert keys_of(app)[0] == LOCK
        assert app.sees("keywords only")
        await pilot.press("enter")
        await settled(pilot)
        assert app.sees("score")
        await pilot.press("escape")
        await settled(pilot)
        assert len(keys_of(app)) == 5


async def test_what_is_typed_faster_than_the_line_opens_is_text(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        for key in ["slash", *"hour", "enter"]:  # u undoes, r reads again, o orders: as one burst
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        await settled(pilot)
        assert memory_of(app).filter_text == "hour"
        assert memory_of(app).prompt is None


async def test_a_lesson_is_accepted_and_taken_back(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).open_view("proposed")
        await settled(pilot)
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceSheet)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, LinesSheet)
        await pilot.press("enter")
        await settled(pilot)
        await settled(pilot)
        assert keys_of(app) == ["proposal 1"]
        assert len(memory_of(app).memory_view.memories) == 6
        await pilot.press("u")
        await settled(pilot)
        await settled(pilot)
        assert keys_of(app) == ["proposal 2", "proposal 1"]
        assert len(memory_of(app).memory_view.memories) == 5


async def test_what_an_agent_stored_is_accepted_and_waits_again(app: Console) -> None:
    with open_memory(app.root / ".helix" / "helix.db") as memory:
        name = memory.store("Tides are read in the wrong zone", "Read them in UTC").name
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).show_memory(name)
        await settled(pilot)
        assert app.sees("1 memory of agents to review")
        assert app.sees("Taught by an agent, waits for acceptance: no agent is shown it; a accepts it")
        await pilot.press("a", "enter")
        await pilot.pause()
        assert isinstance(app.screen, LinesSheet)
        await pilot.press("enter")
        await settled(pilot)
        await settled(pilot)
        assert memory_of(app).memory_view.names[name].accepted
        await pilot.press("u")
        await settled(pilot)
        await settled(pilot)
        assert not memory_of(app).memory_view.names[name].accepted


async def test_pruning_is_shown_before_it_is_done_and_can_be_left(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app)._act("", "prune")
        await pilot.pause()
        assert app.sees("Retry the push until it works")
        await pilot.press("escape")
        await settled(pilot)
        assert len(memory_of(app).memory_view.memories) == 5
        memory_of(app)._act("", "prune")
        await pilot.pause()
        await pilot.press("enter")
        await settled(pilot)
        await settled(pilot)
        left = memory_of(app).memory_view.names
        assert PUSH not in left
        assert app.memory_health.startswith(f"{len(left)} memor"), "line 1 counts what the screen lists"
        await pilot.press("u")
        await settled(pilot)
        await settled(pilot)
        assert PUSH in memory_of(app).memory_view.names


async def test_a_plan_becomes_beads_after_it_was_shown(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).open_view("plans")
        await settled(pilot)
        memory_of(app)._act("plan 1", "beads")
        await settled(pilot)
        assert app.sees("Create 3 beads from plan 1")
        assert app.sees("ddx bead create")


async def test_read_only_offers_no_change(console: MakeConsole) -> None:
    app = console(screen="memory", read_only=True)
    remember(app.root)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert len(memory_of(app).memory_view.memories) == 5
        await pilot.press("a")
        await pilot.pause()
        assert isinstance(app.screen, MemoryScreen)


async def test_what_another_process_stores_appears(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        with open_memory(app.root / ".helix" / "helix.db", teacher="person") as memory:
            memory.store("Something else that went wrong", "do it differently")
        await settled(pilot)
        assert "something-else-that-went-wrong" in keys_of(app)


def _corrupt(path: Path) -> None:
    path.write_bytes(b"this is no database at all " * 50)


def _newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE helix_meta SET value = '999' WHERE key = 'version'")
    connection.close()


def _missing(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_corrupt, "The memory is damaged."),
        (_newer, "A newer helix-tui wrote this memory."),
        (_missing, "No memories yet."),
    ],
)
async def test_states_say_what_is_the_matter(console: MakeConsole, spoil: object, said: str) -> None:
    app = console(screen="memory")
    path = remember(app.root)
    assert callable(spoil)
    spoil(path)
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert app.sees(said)


async def test_no_database_is_made_by_looking(console: MakeConsole) -> None:
    app = console(screen="memory")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert app.sees("No memories yet.")
        assert not (app.root / ".helix" / "helix.db").exists()


async def test_a_locked_database_is_told_and_comes_back(app: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helix_tui.screens.memory.view_state.BUSY_SECONDS", 0.05)
    path = app.root / ".helix" / "helix.db"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    holder.execute("UPDATE memory SET source = 'held'")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        shown = app.sees("The memory is in use by another process.") or keys_of(app)
        assert shown
        holder.execute("ROLLBACK")
        holder.close()
        await settled(pilot)
        await settled(pilot)
        assert LOCK in keys_of(app)


async def test_a_memory_is_edited_in_a_form_shown_first_and_taken_back(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).list.select(LOCK)
        await pilot.press("E")
        await settled(pilot)
        form = app.screen
        assert isinstance(form, CorrectionForm)
        form.query_one("#field-resolution", TextArea).text = "use the tracker's own command"
        await pilot.press("ctrl+o")
        await settled(pilot)
        assert isinstance(app.screen, LinesSheet)
        assert app.sees("revision 1 stays in its history with its 14 helped / 2 failed")
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, MemoryScreen)
        found = memory_of(app).memory_view.names[LOCK]
        assert (found.resolution, found.revision, found.uses) == ("use the tracker's own command", 2, 0)
        await pilot.press("u")
        await settled(pilot)
        assert memory_of(app).memory_view.names[LOCK].helped == 14


async def test_a_correction_says_what_it_lacks(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).list.select(LOCK)
        await pilot.press("E")
        await settled(pilot)
        form = app.screen
        assert isinstance(form, CorrectionForm)
        for name in ("trigger", "resolution"):
            form.query_one(f"#field-{name}", TextArea).text = ""
        await settled(pilot)
        assert app.sees("✗ the trigger needs")
        assert app.sees("✗ the resolution is empty")


async def test_esc_asks_once_before_it_discards_a_correction(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).list.select(LOCK)
        await pilot.press("E")
        await settled(pilot)
        assert isinstance(app.screen, CorrectionForm)
        app.screen.query_one("#field-resolution", TextArea).focus()
        await pilot.press("x", "y", "escape")
        await settled(pilot)
        assert isinstance(app.screen, CorrectionForm)
        assert any("Press esc again to discard" in each.message for each in app.told)
        assert "xy" in app.screen.form.texts["resolution"]
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, MemoryScreen)
        before = memory_of(app).memory_view.names[LOCK]
        assert (before.revision, before.helped) == (1, 14)
        await pilot.press("E")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, MemoryScreen), "an untouched form asks nothing"


async def test_a_memory_is_removed_and_another_one_takes_its_place(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        memory_of(app).list.select(PUSH)
        await pilot.press("D")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert PUSH not in memory_of(app).memory_view.names
        await pilot.press("u")
        await settled(pilot)
        assert PUSH in memory_of(app).memory_view.names
        memory_of(app).list.select(PUSH)
        await pilot.press("s")
        await settled(pilot)
        assert isinstance(app.screen, ChoiceSheet)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, LinesSheet)
        await pilot.press("enter")
        await settled(pilot)
        assert PUSH not in memory_of(app).memory_view.names
        await pilot.press("u")
        await settled(pilot)
        assert memory_of(app).memory_view.names[PUSH].failed == 4


async def test_few_outcomes_are_no_percentage_and_nothing_is_proven_by_them(app: Console) -> None:
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert app.sees("n 3")
        assert not app.sees("100%")
        assert app.sees("5 memories, 1 proven")


async def test_hostile_text_stays_text(console: MakeConsole) -> None:
    app = console(screen="memory")
    with open_memory(app.root / ".helix" / "helix.db", teacher="person") as memory:
        memory.store("[red]bold[/] \x1b[31m escape", "[link=x]y[/link]\x07")
    async with app.run_test(size=SIZE) as pilot:
        await settled(pilot)
        assert app.sees("[red]bold[/] escape")
        assert not any("\x1b" in row or "\u202e" in row for row in app.rows())
