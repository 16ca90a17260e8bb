"""Ways to get about: by name, along edges, by a click."""

from __future__ import annotations

import json

import pytest
from textual.widget import Widget

from helix_tui.core.beads.readiness import classify
from helix_tui.keymap import BY_ID
from helix_tui.screens.commands.commands import commands, ways_to
from helix_tui.screens.help import HelpScreen
from helix_tui.screens.needs.needs_screen import NeedsScreen
from helix_tui.widgets.chrome.bottom import Chooser
from tests.programs import parse_rows
from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_queue import queue, type_text

pytestmark = pytest.mark.long


def ways(text: str, *beads: tuple[str, str]) -> list[str]:
    rows = [json.dumps({"id": bead_id, "title": title}).encode() for bead_id, title in beads]
    found = classify(parse_rows(b"\n".join(rows)).beads, now=0)
    return [way.text for way in ways_to(text, found, commands())]


BEADS = (
    ("x-9ab1", "the sub-demo-1 of it"),
    ("demo-11", "other"),
    ("demo-1", "exactly"),
    ("y-demo", "part after the prefix"),
    ("z-77", "a demo-1 word"),
    ("w-78", "undemo-1ed"),
)


def test_ids_stand_before_words_and_words_before_the_rest() -> None:
    assert ways("demo-1", *BEADS) == ["demo-1", "demo-11", "x-9ab1", "z-77", "w-78"]
    assert ways("77", *BEADS)[0] == "z-77"
    assert ways("demo", *BEADS)[:3] == ["demo-11", "demo-1", "y-demo"]


@pytest.mark.parametrize(("text", "first"), [("q", "quit"), ("quit", "quit"), ("lo", "loop"), ("theme", "theme")])
def test_a_command_stands_before_beads_that_hold_its_beginning(text: str, first: str) -> None:
    beads = (("q-1", "loop quit theme"), ("lo-2", "q quit lo theme"), ("theme-3", "themes"))
    assert ways(text, *beads)[0].startswith(first)


def test_what_is_closed_comes_after_its_equals() -> None:
    rows = [{"id": "a-1", "title": "same", "status": "closed"}, {"id": "b-2", "title": "same"}]
    found = classify(parse_rows(b"\n".join(json.dumps(row).encode() for row in rows)).beads, now=0)
    assert [way.text for way in ways_to("same", found, ())] == ["b-2", "a-1"]


async def test_views_can_be_named(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon")
        await type_text(pilot, "order")
        await pilot.press("enter")
        await pilot.pause()
        assert queue(app).kind == "order"


async def test_quit_by_name_is_two_keys_and_enter(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("colon", "q", "enter")
        await pilot.pause()
        assert app.return_code == 0
        assert not app.is_running or app.leaving


# --- along edges -----------------------------------------------------------------------------------------


async def test_of_several_neighbours_one_is_chosen_while_each_is_looked_at(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("J")
        await pilot.pause()
        assert queue(app).query_one(Chooser)
        assert app.sees("2 wait on 00000001")
        assert queue(app).selected_bead == "demo-00000002"
        await pilot.press("J")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000005"
        await pilot.press("J")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000002", "round and round"
        await pilot.press("escape")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000001"
        assert not queue(app).query(Chooser)
        assert app.focused is queue(app).list


async def test_a_step_back_leads_where_the_last_one_began(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000001")
        await pilot.press("J", "J", "enter")
        await pilot.pause()
        assert queue(app).selected_bead == "demo-00000005", "it waits on more than one"
        await pilot.press("K")
        assert queue(app).selected_bead == "demo-00000001"
        await pilot.press("J", "enter", "J", "enter")
        await pilot.pause()
        there = queue(app).selected_bead
        await pilot.press("K", "K")
        assert queue(app).selected_bead == "demo-00000001", there


async def test_in_the_detail_the_two_keys_go_from_section_to_section(console: MakeConsole) -> None:
    """Where a description is long, its attempts are two screens of j away."""
    told = {"acceptance": "1. it works", "description": "\n".join(f"line {n}" for n in range(90)), "notes": "last"}
    bead = {"id": "demo-1", "title": "Long", "status": "open", "events": [], **told}
    app = console([json.dumps(bead), json.dumps({"id": "demo-2", "title": "Other", "status": "open"})])
    async with app.run_test(size=(120, 30)) as pilot:
        queue(app).go_to("demo-1")
        await pilot.press("tab")
        await pilot.pause(0.1)
        seen = []
        for key in ("J", "J", "J", "K"):
            await pilot.press(key)
            await pilot.pause()
            seen.append((queue(app).detail.selected_key or "").partition("/")[0])
        assert seen == ["acceptance", "description", "notes", "description"]
        assert queue(app).selected_bead == "demo-1"
        assert app.focused is queue(app).detail


async def test_whoever_moved_otherwise_is_not_led_back(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)) as pilot:
        queue(app).go_to("demo-00000002")
        await pilot.press("J")
        queue(app).go_to("demo-00000003")
        queue(app).go_to("demo-0000000e")
        await pilot.press("K")
        await pilot.pause()
        assert queue(app).selected_bead != "demo-00000002"


# --- by a click ------------------------------------------------------------------------------------------


async def click_on(app: Console, widget: Widget, words: str) -> None:
    """Click on words in a one-line widget."""
    line = app.rows()[widget.region.y]
    assert words in line, line
    await app._pilot.click(widget, offset=(line.index(words) - widget.region.x, 0))  # type: ignore[attr-defined]
    await app._pilot.pause()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "arrives"),
    [
        ("need you", lambda app: isinstance(app.screen, NeedsScreen)),
        ("ready", lambda app: queue(app).kind == "order"),
        ("running", lambda app: app.screen.NAME == "loop"),
        ("unread", lambda app: type(app.screen).__name__ == "UnreadScreen"),
    ],
)
async def test_a_click_on_a_count_leads_to_what_it_counts(console: MakeConsole, words: str, arrives: object) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        app._pilot = pilot  # type: ignore[attr-defined]
        await pilot.pause()
        await click_on(app, app.screen.pulse, words)  # type: ignore[attr-defined]
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert arrives(app)  # type: ignore[operator]


async def test_a_click_on_a_key_of_the_footer_presses_it(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(160, 40)) as pilot:
        app._pilot = pilot  # type: ignore[attr-defined]
        await pilot.pause()
        footer = queue(app).footer
        await click_on(app, footer, BY_ID["find.filter"].label)
        assert queue(app).prompt is not None
        await pilot.press("escape")
        await click_on(app, footer, BY_ID["change.actions"].label)
        assert type(app.screen).__name__ == "ChoiceSheet"
        await pilot.press("escape")
        await pilot.pause()
        await click_on(app, footer, BY_ID["app.help"].label)
        assert isinstance(app.screen, HelpScreen)


@pytest.mark.parametrize("width", [160, 60])
async def test_a_click_on_a_tab_shows_its_screen(console: MakeConsole, width: int) -> None:
    app = console()
    async with app.run_test(size=(width, 40)) as pilot:
        app._pilot = pilot  # type: ignore[attr-defined]
        await pilot.pause()
        await click_on(app, queue(app).tabs, "2")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert app.screen.NAME == "loop"  # type: ignore[attr-defined]
