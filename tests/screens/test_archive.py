"""The archive on the screens: counted, gone to, found by a filter, and no reason to call anything ready."""

from __future__ import annotations

import json

import pytest

from tests.screens.conftest import MakeConsole
from tests.screens.test_queue import type_text

pytestmark = pytest.mark.long

OLD = {
    "id": "demo-old1",
    "title": "Put away long ago",
    "status": "closed",
    "closed_at": "2026-05-07T05:50:17Z",
    "description": "What it was about",
}
NEW = {
    "id": "demo-a1",
    "title": "Waits",
    "status": "open",
    "dependencies": [{"depends_on_id": "demo-old1"}],
}


async def test_an_archived_bead_is_counted_gone_to_and_explained(console: MakeConsole) -> None:
    app = console([json.dumps(NEW)])
    (app.root / ".ddx" / "beads-archive.jsonl").write_text(json.dumps(OLD) + "\n{half\n")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.feed.look()
        await pilot.pause()
        assert app.sees("1 archived")
        assert app.snapshot.queue.ready == ()
        assert any(notice.kind == "archive" for notice in app.snapshot.notices)
        await pilot.press("slash")
        await type_text(pilot, "long")
        assert app.sees("0 of 1, 1 archived")
        await pilot.press("escape", "escape")
        for query, found in (("status:closed", "1 archived"), ("body:about", "1 archived"), ("p>3", "")):
            await pilot.press("slash")
            await type_text(pilot, query)
            assert app.sees(f"0 of 1, {found}" if found else "0 of 1"), query
            assert bool(found) == app.sees("(: goes there)"), query
            await pilot.press("escape", "escape")
        await pilot.press("colon")
        await type_text(pilot, "archive")
        assert app.sees("archived · Put away long ago"), "the word lists all of them"
        await pilot.press("escape", "colon")
        await type_text(pilot, "old1")
        assert app.sees("archived · Put away long ago")
        await pilot.press("enter")
        await pilot.pause()
        assert app.sees("closed on 2026-05-07 and archived")
        assert app.sees("What it was about")
        assert app.sees("Remove the dependency")
