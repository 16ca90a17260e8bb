"""Saved views: on a sheet, on keys, in files; by hand and from the console."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import cast

import pytest
from textual.pilot import Pilot

from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.screens.queue.queue_screen import QueueScreen
from helix_tui.settings.file import Settings, load_settings
from helix_tui.settings.views import OWN_VIEWS, SavedView, ViewBook, as_toml
from tests.screens.conftest import Console, MakeConsole


def queue(app: Console) -> QueueScreen:
    return cast(QueueScreen, app.screen)


def said(app: Console) -> str:
    return "\n".join(notice.message for notice in app.told)


async def typed(pilot: Pilot[int], text: str) -> None:
    await pilot.press(*("space" if char == " " else char for char in text))


async def test_a_digit_shows_a_view_with_its_filter_order_and_columns(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("V", "1")
        assert queue(app).filter_text == OWN_VIEWS[0].filter
        assert queue(app).chosen_columns == OWN_VIEWS[0].columns
        assert app.sees("▾unbl")  # it orders by it
        assert app.sees("hold   P")
        await pilot.press("escape")
        assert queue(app).chosen_columns is None
        assert not app.sees("▾unbl")


@pytest.mark.long
async def test_the_present_view_is_saved_under_a_name_and_is_there_at_the_next_start(
    console: MakeConsole, tmp_path: Path
) -> None:
    file = tmp_path / "config" / "views.toml"
    app = console(view_book=ViewBook(path=file))
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).filter_with('type:task "two words" order:-age')
        queue(app).choose_columns(["labels"])
        await pilot.press("V", "S")
        await typed(pilot, "my old ones")
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        assert "saved: my old ones" in said(app)
        await pilot.press("V", "S")
        await typed(pilot, "my old ones")
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        assert "replaced: my old ones" in said(app)
    assert tomllib.loads(file.read_text())["view"] == [
        {"name": "my old ones", "filter": 'type:task "two words" order:-age', "view": "dag", "columns": ["labels"]}
    ]
    again = console(name="again", view_book=ViewBook(path=file))
    async with again.run_test(size=(120, 40)) as pilot:
        await pilot.press("V", "1")
        assert queue(again).filter_text == 'type:task "two words" order:-age'
        assert queue(again).chosen_columns == ("labels",)
        await pilot.press("V", "D", "1")
        await again.workers.wait_for_complete()
    assert "my old ones" not in [view.name for view in ViewBook(path=file).views]


async def test_a_view_on_a_key_is_shown_from_any_screen_and_a_taken_key_is_said(console: MakeConsole) -> None:
    views = (
        SavedView("bugs", "type:bug", view="tree", key="f6"),
        SavedView("taken", "type:task", key="j"),
        SavedView("twice", "type:epic", key="f6"),
    )
    app = console(settings=Settings(views=views))
    async with app.run_test(size=(120, 40)) as pilot:
        assert "view taken: j is already down" in said(app)
        assert "view twice: f6 is already another view" in said(app)
        await pilot.press("2", "f6")
        await pilot.pause()
        assert (queue(app).filter_text, queue(app).kind) == ("type:bug", "tree")
        await pilot.press("1", "j")
        assert queue(app).filter_text == "type:bug"


@pytest.mark.long
async def test_a_name_that_was_written_by_hand_is_not_overwritten(console: MakeConsole) -> None:
    app = console(settings=Settings(views=(SavedView("mine", "type:bug"),)))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("V", "S", *"mine", "enter")
        assert "not saved: mine is defined by hand" in said(app)
        await pilot.press("V", "S", "enter")
        assert "a view needs a name" in said(app)


def test_views_of_the_settings_are_read_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(
        '[[view]]\nname = "a"\nfilter = "p<=1"\ncolumns = ["age"]\nkey = "f6"\n'
        '[[view]]\nfilter = "p<=1"\n[[view]]\nname = "b"\ncolumns = "age"\n'
    )
    settings = load_settings(file)
    assert settings.views == (SavedView("a", "p<=1", "", ("age",), "f6"), SavedView("b"))
    assert [problem.partition(":")[0] for problem in settings.problems] == ["view 2", "view 3"]


def test_a_file_of_views_that_somebody_broke_is_said_and_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "views.toml"
    file.write_text("[[view]\n")
    book = ViewBook(path=file)
    assert "views.toml cannot be read" in book.problems[0]
    book.keep(SavedView("x", "p<=1"))
    book.write()
    assert file.read_text() == "[[view]\n"


def test_a_saved_view_reads_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "views.toml"
    view = SavedView('quote " and \\ and ü and 🚀', 'title "x"', "lanes", (), "f7")
    book = ViewBook(path=file)
    book.keep(view)
    book.write()
    assert ViewBook(path=file).named(view.name) == view


def test_control_characters_in_a_view_leave_its_file_readable() -> None:
    view = SavedView("a\x7fb\nc\x01d")
    assert tomllib.loads(as_toml([view]))["view"][0]["name"] == view.name


PROPOSED = [
    '{"id":"p-1","title":"First","status":"proposed","priority":1,"schema_version":1}',
    '{"id":"p-2","title":"Second","status":"proposed","priority":2,"schema_version":1}',
]


@pytest.mark.long
async def test_a_filter_of_needs_me_is_saved_there_and_shown_from_the_queue(
    console: MakeConsole, tmp_path: Path
) -> None:
    file = tmp_path / "config" / "views.toml"
    app = console(PROPOSED, view_book=ViewBook(path=file))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("exclamation_mark")
        needs = app.screen
        assert isinstance(needs, NeedsScreen)
        needs.filter_with("p:1")
        await pilot.press("V", "S", *"urgent", "enter")
        await app.workers.wait_for_complete()
        assert tomllib.loads(file.read_text())["view"] == [{"name": "urgent", "filter": "p:1", "view": "needs"}]
        await pilot.press("1")
        assert isinstance(app.screen, QueueScreen)
        await pilot.press("V", "1")
        await pilot.pause()
        assert isinstance(app.screen, NeedsScreen)
        assert app.screen.filter_text == "p:1"
        assert app.sees("Needs me 1 of 2")


async def test_the_views_of_the_queue_are_two_keys_from_needs_me(console: MakeConsole) -> None:
    app = console(PROPOSED)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("exclamation_mark", "V", "3")
        await pilot.pause()
        assert queue(app).filter_text == OWN_VIEWS[2].filter


async def test_plus_raises_the_bead_of_a_row_of_needs_me(console: MakeConsole) -> None:
    app = console(PROPOSED)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("exclamation_mark", "plus")
        assert app.sees("First")
        assert app.sees("--priority 0")
