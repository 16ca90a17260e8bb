"""The journal: how every entry stands, what is shown of it, and the way back to any point."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from helix_tui.core.editing import operations as op
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.ground.project import find_project
from helix_tui.screens.editing.preview import HalfWaySheet, PreviewSheet
from helix_tui.screens.journal import JournalScreen
from helix_tui.widgets.chrome import header as pulse
from tests.screens.conftest import Console, MakeConsole
from tests.screens.journal_host import ROWS, at_rest, lines, row, write_journal

pytestmark = pytest.mark.long

Compare = Callable[..., bool]

WIDTHS = [(32, 20), (40, 26), (48, 30), (60, 34), (80, 36), (120, 36), (160, 40)]


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No motion, no ddx but the embedded one."""
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(pulse, "FRAME_SECONDS", 3_600.0)


@pytest.fixture
def told(console: MakeConsole) -> Console:
    """The console on a journal with an entry in every state; opening it changes nothing."""
    app = console(lines(ROWS), read_only=True, screen="journal")
    write_journal(app.root)
    return app


def journal(app: Console) -> JournalScreen:
    (screen,) = (screen for screen in app.screen_stack if isinstance(screen, JournalScreen))
    return screen


def curator(app: Console, who: str = "human") -> Curator:
    project = find_project(app.root)
    return Curator(project, lambda: find_executable(project, None), who=who)


def tracker(app: Console) -> dict[str, dict[str, Any]]:
    text = (app.root / ".ddx" / "beads.jsonl").read_text()
    return {each["id"]: each for each in map(json.loads, text.splitlines())}


def select(*keys: str) -> Callable[[Pilot[int]], object]:
    async def run(pilot: Pilot[int]) -> None:
        await at_rest(pilot)
        for key in keys:
            await pilot.press(key)
            await at_rest(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_list(snap_compare: Compare, told: Console, size: tuple[int, int]) -> None:
    assert snap_compare(told, terminal_size=size, run_before=select())


@pytest.mark.parametrize("size", [(48, 30), (120, 36)], ids=lambda size: f"{size[0]}")
def test_what_somebody_changed_since(snap_compare: Compare, told: Console, size: tuple[int, int]) -> None:
    assert snap_compare(told, terminal_size=size, run_before=select("j", "j", "j", "enter"))


def test_a_text_of_several_lines(snap_compare: Compare, told: Console) -> None:
    assert snap_compare(told, terminal_size=(120, 30), run_before=select("G", "k"))


def test_ascii(snap_compare: Compare, console: MakeConsole) -> None:
    app = console(lines(ROWS), read_only=True, screen="journal", ascii_only=True)
    write_journal(app.root)
    assert snap_compare(app, terminal_size=(80, 30), run_before=select())


async def test_every_state_has_its_word(told: Console) -> None:
    async with told.run_test(size=(120, 36)) as pilot:
        await at_rest(pilot)
        states = {row.key: row.state for row in journal(told)._rows}
        assert list(states.values()) == [
            "pending", "partial", "final", "conflicted", "done", "done", "undone", "done", "done",
        ]  # fmt: skip
        for word in ("under way", "half-way", "no undo", "changed since", "undone"):
            assert told.sees(word)


async def test_a_filter_asks_words_and_fields(told: Console) -> None:
    async with told.run_test(size=(120, 36)) as pilot:
        await at_rest(pilot)
        for text, count in {
            "state:undone": "1 of 9",
            "who:bot": "1 of 9",
            "bead:demo-7 -who:bot": "3 of 9",
            "half of": "1 of 9",
            "nothing like it": "0 of 9",
        }.items():
            journal(told).filter_with(text)
            await at_rest(pilot)
            assert journal(told).filter_count() == count
        assert told.sees("no change matches")
        assert "no field" in journal(told).filter_problem("colour:red")
        journal(told).filter_with("state:undone")
        await pilot.press("escape")
        await at_rest(pilot)
        assert journal(told).filter_count() == "9"


async def test_a_line_leads_to_the_bead_and_to_the_other_entry(told: Console) -> None:
    async with told.run_test(size=(120, 36)) as pilot:
        await at_rest(pilot)
        screen = journal(told)
        (undo,) = (row for row in screen._rows if row.turn)
        screen.list.select(undo.key)
        screen.show_detail()
        screen.detail.focus()
        screen.detail.select("entry:op-5\n0")
        await pilot.press("enter")
        await at_rest(pilot)
        assert screen.list.selected_key == "op-5"
        screen.show_detail()
        screen.detail.focus()
        screen.detail.select("bead:demo-3\n0")
        await pilot.press("enter")
        await at_rest(pilot)
        assert told.current_mode == "queue"


async def test_read_only_watches_and_changes_nothing(told: Console) -> None:
    before = tracker(told)
    async with told.run_test(size=(120, 36)) as pilot:
        await at_rest(pilot)
        for key in ("u", "U", "r"):
            await pilot.press("G", key)
            await at_rest(pilot)
            assert not isinstance(told.screen, PreviewSheet)
        assert "undo" not in told.rows()[-1]
    assert tracker(told) == before


async def test_an_empty_journal_says_what_would_fill_it(console: MakeConsole) -> None:
    app = console(lines(ROWS), screen="journal")
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        assert app.sees("No changes made with helix-tui yet")


async def test_a_journal_that_cannot_be_read_says_why(console: MakeConsole) -> None:
    app = console(lines(ROWS), screen="journal")
    (app.root / ".helix" / "journal.jsonl").mkdir(parents=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await at_rest(pilot)
        assert app.sees("The journal cannot be read")


async def test_torn_and_strange_lines_are_counted(told: Console) -> None:
    path = told.root / ".helix" / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'no record\n{"v":1,"seq":99,"rec')
    async with told.run_test(size=(120, 36)) as pilot:
        await at_rest(pilot)
        assert told.sees("1 invalid line was left out")
        assert told.sees("the last line is incomplete")
        assert len(journal(told)._rows) == 9


async def test_what_others_write_comes_by_itself_and_the_cursor_stays(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]), screen="journal")
    curator(app).run([op.SetPriority("a", 1)])
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        assert journal(app).list.selected_key == "op-1"
        curator(app, "agent").run([op.SetPriority("b", 0)])
        change = app.feed.look()
        assert change.journal
        await at_rest(pilot)
        assert [each.key for each in journal(app)._rows] == ["op-3", "op-1"]
        assert journal(app).list.selected_key == "op-1"


async def test_a_change_is_taken_back_and_done_again_from_its_row(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]), screen="journal")
    curator(app).run([op.SetPriority("a", 1)])
    curator(app).run([op.SetPriority("b", 0)])
    async with app.run_test(size=(120, 30)) as pilot:
        await at_rest(pilot)
        await pilot.press("j", "u")
        await at_rest(pilot)
        assert isinstance(app.screen, PreviewSheet)
        assert app.sees("ddx bead update a --priority 2")
        assert tracker(app)["a"]["priority"] == 1
        await pilot.press("enter")
        await at_rest(pilot)
        assert (tracker(app)["a"]["priority"], tracker(app)["b"]["priority"]) == (2, 0)
        app.feed.look()
        await at_rest(pilot)
        journal(app).list.select("op-1")
        await pilot.press("U", "enter")
        await at_rest(pilot)
        await pilot.press("enter")
        await at_rest(pilot)
        assert tracker(app)["a"]["priority"] == 1


async def test_a_restore_shows_all_its_commands_and_leads_there(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]), screen="journal")
    curator(app).run([op.SetPriority("a", 1)])
    curator(app).run([op.SetPriority("a", 0), op.SetPriority("b", 0)])
    curator(app).run([op.ChangeLabels("b", add=["area:x"])])
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot)
        await pilot.press("G", "r")
        await at_rest(pilot)
        assert isinstance(app.screen, PreviewSheet)
        for words in (
            "undoes op-5",
            "undoes op-3",
            "bead update b --labels",
            "update a --priority 1",
        ):
            assert app.sees(words)
        await pilot.press("enter")
        await at_rest(pilot)
        rows = tracker(app)
        assert (rows["a"]["priority"], rows["b"]["priority"], rows["b"].get("labels")) == (1, 2, None)
        app.feed.look()
        await at_rest(pilot)
        assert [each.state for each in journal(app)._rows if not each.turn] == ["undone", "undone", "done"]


async def test_a_restore_that_meets_a_foreign_change_ends_there_and_says_so(console: MakeConsole) -> None:
    app = console(lines([row("a"), row("b")]), screen="journal")
    curator(app).run([op.SetPriority("a", 1)])
    curator(app).run([op.SetPriority("b", 0)])
    curator(app).run([op.SetPriority("a", 0)])
    rows = tracker(app) | {"b": row("b", priority=4)}
    (app.root / ".ddx" / "beads.jsonl").write_text("".join(f"{line}\n" for line in lines(rows.values())))
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot)
        await pilot.press("G", "r")
        await at_rest(pilot)
        assert app.sees("the restore stops at op-3, which cannot be undone")
        await pilot.press("enter")
        await at_rest(pilot)
        assert isinstance(app.screen, HalfWaySheet)
        assert app.sees("the restore stopped early")
        assert (tracker(app)["a"]["priority"], tracker(app)["b"]["priority"]) == (1, 4)
