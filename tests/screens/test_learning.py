"""What helps somebody who is new: words in `?`, keys in the palette, keys that do nothing."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from textual.keys import _character_to_key

from helix_tui.keymap import BY_ID, KEYS, instead_of, names
from helix_tui.screens.commands.palette import matching
from helix_tui.screens.help import STEPS, WORDS, HelpScreen, TourCard, with_keys
from helix_tui.settings.layout import Layout
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.base.row_source import Column
from helix_tui.widgets.figures import BAR_LEGEND
from helix_tui.widgets.rows.cost_tables import Figured, FiguredRows, cell
from helix_tui.widgets.text.memory import heading
from tests.screens.conftest import Console, MakeConsole

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


def said(app: Console) -> list[str]:
    return [notice.message for notice in app.told]


def test_the_glossary_and_the_help_explain_the_same_words() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    table = [match.groups() for line in lines if (match := re.match(r"\| (.*?) \| (.*?) \|$", line))]
    assert tuple(table[1:]) == WORDS


def test_the_words_of_the_specification_are_all_explained(shared: Path) -> None:
    text = (shared / "design" / "words.md").read_text("utf-8")
    table = text[text.index("| word | means |") : text.index("## Style")]
    wanted = [row.split("|")[1].strip() for row in table.splitlines()[2:] if row.startswith("|")]
    explained = " ".join(f"{word} {means}" for word, means in WORDS).lower()
    words = {word.strip("`* ") for row in wanted for word in re.split(r",| / ", row)}
    assert {word for word in words if word.split("(")[0].strip().lower() not in explained} == set()


async def test_help_is_searched_and_explains_bead(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.press("question_mark", "slash", *"unit", "enter")
        assert isinstance(app.screen, HelpScreen)
        assert app.sees("one unit of work in the DDx tracker")
        assert app.sees("Words")
        assert not app.sees("Mouse")
        await pilot.press("escape")
        assert isinstance(app.screen, HelpScreen)
        assert not app.screen.filter_text
        await pilot.press("escape")
        assert not isinstance(app.screen, HelpScreen)


def headings(app: Console) -> list[str]:
    """What stands below a blank line."""
    return [row.strip(" ▐") for above, row in pairwise(app.rows()) if not above.strip(" ▐") and row.strip(" ▐")]


async def test_help_of_a_screen_shows_its_keys_then_its_signs(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 200)) as pilot:
        await pilot.press("question_mark")
        heads = headings(app)
        assert heads[:3] == ["On Queue", "Signs", "Words"]
        await pilot.press("escape", "3", "question_mark")
        await pilot.pause()
        heads = headings(app)
        assert heads[:2] == ["On Memory", "What memories are worth"]
        await pilot.press("escape", "2", "question_mark")
        await pilot.pause()
        heads = headings(app)
        assert heads[:2] == ["On Loop", "Signs of attempts"], "○ is no ready bead there"


async def test_help_finds_a_section_by_its_name_and_an_entry_by_its_own_words(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(100, 60)) as pilot:
        await pilot.press("question_mark", "slash", *"mouse", "enter")
        shown = "\n".join(app.rows())
        assert "Mouse" in shown
        assert "wheel" in shown, "the lines of the section do not name it"
        number, entry = next((number, name) for number, (name, _) in enumerate(WORDS) if name.startswith("family"))
        await pilot.press("escape", "slash", *"family", "enter")
        assert number > 9
        assert app.sees(entry)
        assert not app.sees(WORDS[1][0]), f"entry 1 is not entry {number}"


async def test_the_palette_shows_the_key_of_each_command(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("ctrl+p", *"undo")
        await pilot.pause()
        assert any(re.search(r"\bu +undo\b", row) for row in app.rows())
        keys = app.keys_of(app.offered(app.screen_stack[0]))
        assert (keys["queue"], keys["zoom"], keys["needs me"], keys["eligible"]) == ("1", "z", "!", "e")


async def test_the_palette_finds_a_screen_by_what_it_shows(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)):
        for word, screen in (("cost", "insights"), ("attempts", "loop"), ("change", "journal")):
            best = matching(app.offered(app.screen), word)[:4]
            assert screen in [command.name for command in best], word


async def test_every_key_of_a_screen_is_in_the_palette(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)):
        keys = app.keys_of(app.offered(app.screen))
        offered = {command.name for command in app.offered(app.screen)}
        labels = {key.label for key in KEYS if {"queue", "beads", "panes"} & set(key.scope.split(","))}
        assert labels - {"actions", "stop"} <= offered
        assert set(keys) <= offered


async def test_a_screen_has_an_action_for_every_key_that_its_help_lists(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)) as pilot:
        for key in "123456!":
            await pilot.press(key)
            await pilot.pause()
            bound = (binding for found in app.screen._bindings.key_to_bindings.values() for binding in found)
            actions = {binding.action.partition("(")[0].rpartition(".") for binding in bound}
            on = {"": app.screen, "app": app, "screen": app.screen}
            assert [name for owner, _, name in actions if not hasattr(on[owner], f"action_{name}")] == [], key


async def test_a_command_of_the_palette_is_one_thing_with_its_own_key(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 60)) as pilot:
        for screen in "123456":
            await pilot.press(screen)
            await pilot.pause()
            names = [command.name for command in app.offered(app.screen)]
            assert sorted(set(names)) == sorted(names)
            assert app.keys_of(app.offered(app.screen))["ask"] == "4", "not the key that asks"


async def test_a_key_that_does_nothing_says_where_it_does_and_what_does_it_here(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("W")
        assert said(app) == ["W does nothing here. It is “tree depth” in Ask."]
        await pilot.press("ctrl+z", "ctrl+z")
        assert said(app)[1:] == ["ctrl+z does nothing here. You may want undo: u."]
        await pilot.press("j", "ctrl+z")
        assert len(said(app)) == 3
        await pilot.press("slash", "W")
        assert len(said(app)) == 3


async def test_a_key_is_told_as_it_was_typed(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        for character in "™«§ñ日‐_⟨":
            await pilot.press(_character_to_key(character))
            assert said(app)[-1].startswith(f"{character} does nothing here. ")
    assert instead_of("ctrl+trade_mark_sign").startswith("ctrl+™ does")
    assert instead_of("delete").startswith("delete does")


def test_a_key_that_nobody_knows_leads_to_the_help_as_it_is_set() -> None:
    assert instead_of("f12") == "f12 does nothing here. ? lists every key."
    assert instead_of("f12", {"app.help": "h"}) == "f12 does nothing here. h lists every key."
    assert "undo: z" in instead_of("ctrl+z", {"change.undo": "z"})


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
def test_every_key_of_the_registry_is_known_elsewhere(key: object) -> None:
    for name in names(key.keys):  # type: ignore[attr-defined]
        assert f"“{key.label}”" in instead_of(name)  # type: ignore[attr-defined]


# --- the tour ---------------------------------------------------------------------------------------------


def card(app: Console) -> str:
    """What the card says; empty where there is none."""
    return "\n".join(row for row in app.rows() if row.startswith((" Tour", " New here")))


async def test_every_step_of_the_tour_is_over_when_its_key_is_pressed(console: MakeConsole) -> None:
    app = console()
    app.is_demo = True
    async with app.run_test(size=(120, 40)) as pilot:
        await app.action_tour()
        await pilot.pause()
        for place, step in enumerate(STEPS, 1):
            assert f"Tour {place} of {len(STEPS)} · {step.title}" in card(app)
            await pilot.press(names(BY_ID[step.keys[0]].keys)[0])
            await pilot.pause()
            # two beads wait on the first one: the sheet that asks which covers the card
            if step.keys[0] in ("move.dependent", "find.filter", "change.what-if"):
                await pilot.press("escape")
                await pilot.pause()
        assert app.tour is None
        assert not app.screen.query(TourCard)


async def test_the_first_start_offers_the_tour_once_and_steals_no_key(console: MakeConsole, tmp_path: Path) -> None:
    file = tmp_path / "state" / "layout.json"
    app = console(kept=Layout(file))
    async with app.run_test(size=(120, 40)) as pilot:
        app.offer_tour()
        await pilot.pause()
        assert "New here?" in card(app)
        selected = app.screen.list.selected_key  # type: ignore[attr-defined]
        await pilot.press("j")
        assert app.screen.list.selected_key != selected  # type: ignore[attr-defined]
        await pilot.press("2")
        await pilot.pause()
        assert "New here?" in card(app)
        await pilot.resize_terminal(120, 12)
        await pilot.pause()
        assert not card(app), "three of twelve lines are too much"
        await pilot.resize_terminal(120, 40)
        await pilot.pause()
        assert "New here?" in card(app)
        await pilot.press("ctrl+x")
        await pilot.pause()
        assert not card(app)
        await app.workers.wait_for_complete()
    assert file.exists()
    assert not Layout(file).first_start


async def test_the_offer_asks_for_a_terminal_for_the_demo_and_on_the_demo_begins_there(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        app.begin_tour(offer=True)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert not card(app)
        assert "no other program can run in this terminal" in said(app)[-1]
    here = console(name="here")
    here.is_demo = True
    async with here.run_test(size=(120, 40)) as pilot:
        here.begin_tour(offer=True)
        await pilot.press("ctrl+t")
        await pilot.pause()
        assert "Tour 1 of" in card(here)


async def test_the_keys_of_the_tour_are_nobodys_outside_it(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+n")
        assert "You may want new: N" in said(app)[0]


async def test_a_narrow_console_has_no_card_and_is_still_a_first_start(console: MakeConsole, tmp_path: Path) -> None:
    app = console(kept=Layout(tmp_path / "layout.json"))
    async with app.run_test(size=(48, 40)) as pilot:
        app.offer_tour()
        await pilot.pause()
        assert app.tour is None
        assert app.kept.first_start


async def test_the_tour_is_not_offered_to_a_console_that_has_quit(console: MakeConsole, tmp_path: Path) -> None:
    app = console(kept=Layout(tmp_path / "layout.json"))
    async with app.run_test(size=(120, 40)):
        pass
    app.offer_tour()  # its timer may still be due
    assert app.tour is None


def test_the_tour_names_keys_as_they_are_set() -> None:
    assert with_keys("Press {go.loop} or {go.needs-me}.", {"go.loop": "f7"}) == "Press f7 or !."
    for step in STEPS:
        assert "{" not in with_keys(step.text, {})
        assert all(key_id in BY_ID for key_id in step.keys)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_bars_have_their_legend_over_them_where_there_is_room_and_never_cut(width: int) -> None:
    def text(line: Line) -> str:
        return "".join(part for part, _ in line)

    head = text(heading(width, "", searched=False))
    assert (BAR_LEGEND in head) == (width >= 120)
    assert "█" not in head.replace(BAR_LEGEND, "")
    table = FiguredRows(
        "model", (Column("n", 4),), [Figured("a", [("opus", "text")], (cell("█▓"),))], legend=BAR_LEGEND
    )
    assert [table.selectable(index) for index in range(len(table))] == [False, True, False]
    assert text(table.paint(2, width)).strip() == BAR_LEGEND
    bare = FiguredRows("model", (Column("n", 4),), [Figured("a", [("opus", "text")], (cell("3"),))], legend=BAR_LEGEND)
    assert text(bare.paint(2, width)) == ""
    assert table.index(table.key(2)) == 2
