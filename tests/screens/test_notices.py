"""What must be known of a project stands on every screen, with the way out, at every width."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import APRIL, AUGUST, RowGate
from tests.screens.conftest import MakeConsole

pytestmark = pytest.mark.long

LATER = {"id": "demo-a1", "title": "Written by a later DDx", "status": "open", "schema_version": 1}
EARLIER = {
    "id": "demo-a1",
    "title": "Written in April",
    "status": "open",
    "created_at": "2026-04-01T00:00:00Z",
}
SIZES = [(48, 20), (120, 40), (160, 40)]
SCREENS = "123456"


@pytest.mark.parametrize("size", SIZES)
async def test_another_release_is_said_with_the_way_out_on_every_screen(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setattr("helix_tui.core.snapshot.feed.at_hand", lambda *_, **__: APRIL)
    app = console([json.dumps(LATER)])
    async with app.run_test(size=size) as pilot:
        for key in SCREENS:
            await pilot.press(key)
            await pilot.pause()
            assert app.sees("a later DDx wrote"), key
            assert app.sees("run `ddx upgrade`"), key
        await pilot.press("exclamation_mark")
        await pilot.pause()
        assert app.sees("run `ddx upgrade`")


@pytest.mark.parametrize("size", SIZES)
async def test_a_tracker_that_ddx_refuses_is_said_with_its_command(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    gate = RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply")
    monkeypatch.setattr("helix_tui.core.snapshot.feed.at_hand", lambda *_, **__: replace(AUGUST, gates=(gate,)))
    app = console([json.dumps(LATER | {"labels": ["needs_human"]})])
    async with app.run_test(size=size) as pilot:
        for key in SCREENS:
            await pilot.press(key)
            await pilot.pause()
            assert app.sees("run `ddx bead migrate --lifecycle --apply`"), key
        (app.root / ".ddx" / "beads.jsonl").write_text(json.dumps(LATER) + "\n")
        app.feed.look()
        await pilot.pause()
        assert not app.sees("migrate --lifecycle"), "it goes when its cause is gone"


async def test_several_notices_are_counted_and_listed_in_full(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helix_tui.core.snapshot.feed.at_hand", lambda *_, **__: AUGUST)
    app = console([json.dumps(EARLIER)])
    (app.root / ".ddx" / "beads-archive.jsonl").write_text("{half\n")
    async with app.run_test(size=(48, 24)) as pilot:
        await pilot.pause()
        app.feed.look()
        await pilot.pause()
        assert app.sees("an earlier DDx wrote this tracker")
        assert app.sees("+1 ▸")
        app.screen.notices.focus()  # type: ignore[attr-defined]
        await pilot.press("enter")
        await pilot.pause()
        text = " ".join(" ".join(row.split()) for row in app.rows())
        assert "ready is what the installed ddx gives out" in text
        assert "`helix-tui eligible ID off`" in text
        assert "line 1 of beads-archive.jsonl cannot be read" in text


async def test_no_line_is_taken_where_there_is_nothing_to_say(console: MakeConsole) -> None:
    app = console()
    async with app.run_test(size=(120, 40)):
        assert not app.screen.notices.display  # type: ignore[attr-defined]


async def test_the_loop_offers_nothing_that_ddx_would_refuse(
    console: MakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply")
    monkeypatch.setattr("helix_tui.core.snapshot.feed.at_hand", lambda *_, **__: replace(AUGUST, gates=(gate,)))
    app = console([json.dumps(LATER), json.dumps(LATER | {"id": "demo-b2", "labels": ["needs_human"]})])
    started: list[object] = []
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.press("L")
        await pilot.pause()
        monkeypatch.setattr(type(app.loop_controls), "start", lambda self: started.append("start"))
        monkeypatch.setattr(type(app.loop_controls), "run_beads", lambda self, *given: started.append(given))
        assert app.sees("ddx refuses every command (lifecycle_migration_required)")
        await pilot.press("s", "o")
        await pilot.pause()
        assert started == []


@pytest.mark.parametrize("width", [32, 48, 120])
async def test_a_message_is_whole_at_every_width(console: MakeConsole, width: int) -> None:
    app = console([json.dumps(EARLIER)])
    async with app.run_test(size=(width, 12), notifications=True) as pilot:
        await pilot.pause()
        app.say("archive is not in the tracker", "warning")
        while not app.sees("archive is not in"):
            await pilot.pause()
        # in 32 cells all of it fits, and a scrollbar's column would hide the last word
        assert app.sees("is not in the tracker")
