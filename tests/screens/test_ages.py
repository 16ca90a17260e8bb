"""An age on a screen is the age of now: it goes on while nothing else changes."""

from __future__ import annotations

import json

import pytest

from helix_tui.core.ground.time import NS, format_instant
from tests.screens.conftest import NOW, MakeConsole


@pytest.mark.parametrize("size", [(120, 30), (48, 30)])
@pytest.mark.long
async def test_the_ages_of_a_bead_go_on(console: MakeConsole, size: tuple[int, int]) -> None:
    instant = format_instant(NOW - 5 * NS)
    row = {"id": "a-1", "title": "Sell tickets", "status": "open", "created_at": instant, "updated_at": instant}
    now = [NOW]
    app = console([json.dumps(row)], clock=lambda: now[0])
    async with app.run_test(size=size) as pilot:
        await pilot.pause(0.3)
        if size[0] < 100:
            await pilot.press("enter")
            await pilot.pause(0.3)
        assert any("5s ago" in line for line in app.rows())
        now[0] += 2 * 3600 * NS
        app._tick()
        await pilot.pause(0.2)
        assert app.sees("2h ago")
        assert not any("s ago" in line for line in app.rows())
