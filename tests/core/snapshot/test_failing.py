"""A defect while a snapshot is taken: the thread goes on, says so, and recovers."""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ground import log as logs
from helix_tui.core.ground.project import find_project
from helix_tui.core.snapshot.feed import Gatherer, Live
from helix_tui.core.snapshot.snapshot import Change, Snapshot


def test_the_feed_survives_and_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ddx").mkdir()
    tracker = tmp_path / ".ddx" / "beads.jsonl"
    tracker.write_text('{"id": "demo-00000001", "title": "one"}\n')
    logs.begin(tmp_path, process="test")
    heard: queue.Queue[Snapshot] = queue.Queue()

    def hear(snapshot: Snapshot, _: Change) -> None:
        heard.put(snapshot)

    def plant(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("planted")

    live = Live(find_project(tmp_path), hear, env={})
    with monkeypatch.context() as patched:
        patched.setattr(Gatherer, "_notices", plant)
        live.start()
        try:
            first = heard.get(timeout=30)
            assert first.condition == "unreadable"
            assert "bug in helix-tui: ZeroDivisionError" in first.tracker.problem
            assert logs.shown_file() in first.notices[0].text
            patched.undo()
            tracker.write_text('{"id": "demo-00000002", "title": "two"}\n')
            while (snapshot := heard.get(timeout=30)).condition != "live":
                pass
            assert "ZeroDivisionError: planted" in logs.log_file().read_text()
            while "demo-00000002" not in snapshot.tracker.beads:
                snapshot = heard.get(timeout=30)
            assert not snapshot.tracker.problem
        finally:
            live.stop()
            logs.end()
