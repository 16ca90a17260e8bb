"""News of a snapshot that nobody takes: a terminal that stands still must not make the console grow."""

from __future__ import annotations

import gc
import json
from typing import Any

import pytest
from textual.message import Message

from helix_tui.app import NewsArrived
from helix_tui.cli.console import EarlyFeed
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import now_ns
from helix_tui.core.snapshot.snapshot import Change, Snapshot
from tests.conftest import ProjectFactory
from tests.screens.conftest import MakeConsole

pytestmark = pytest.mark.long

ROW = {"id": "bd-1", "title": "first", "status": "open", "created_at": "2026-08-20T10:00:00Z"}


def _rewrite(app: Any, number: int) -> None:
    path = app.root / ".ddx" / "beads.jsonl"
    temporary = path.with_name("next")
    temporary.write_text(json.dumps(ROW | {"title": f"title {number}"}) + "\n")
    temporary.rename(path)
    app.feed.look()


def _snapshots() -> int:
    gc.collect()
    return sum(isinstance(one, Snapshot) for one in gc.get_objects())


def _count_news(app: Any, monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages that news posts from now on."""
    posted: list[Message] = []
    post = app.post_message

    def count(message: Message) -> bool:
        posted.extend([message] if isinstance(message, NewsArrived) else [])
        return bool(post(message))

    monkeypatch.setattr(app, "post_message", count)
    return posted


async def test_news_that_waits_is_one_snapshot(console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console([json.dumps(ROW)])
    async with app.run_test() as pilot:
        await pilot.pause()
        before, posted = _snapshots(), _count_news(app, monkeypatch)
        for number in range(50):  # nothing is awaited here: the app takes none of it
            _rewrite(app, number)
        assert _snapshots() <= before + 2
        assert len(posted) == 1
        await pilot.pause()
        assert app.snapshot.queue.beads["bd-1"].title == "title 49"
        assert app.sees("title 49")


async def test_waiting_news_keeps_every_change(console: MakeConsole) -> None:
    app = console([json.dumps(ROW)])
    changes: list[Change] = []
    async with app.run_test() as pilot:
        await pilot.pause()
        app.screen.receive = lambda snapshot, change: changes.append(change)  # type: ignore[attr-defined]
        app._news_from_thread(app.snapshot, Change(beads=frozenset({"bd-1"})))
        app._news_from_thread(app.snapshot, Change(attempts=frozenset({"a-1"}), runs=True))
        await pilot.pause()
    assert changes == [Change(beads=frozenset({"bd-1"}), attempts=frozenset({"a-1"}), runs=True)]


def test_news_before_there_is_an_app_is_one_snapshot(project: ProjectFactory) -> None:
    feed = EarlyFeed(find_project(project([ROW])), now_ns)
    changes: list[Change] = []
    feed.open(lambda snapshot, change: changes.append(change))
    feed._hear(feed.snapshot, Change(runs=True))
    feed._hear(feed.snapshot, Change(journal=True))
    feed.start()
    assert changes == [Change(runs=True, journal=True)]
