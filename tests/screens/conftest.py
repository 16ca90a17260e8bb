"""A console on a committed tracker at a fixed instant, fed by hand: no thread, no watching, no sleep."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helix_tui.app import HelixApp, OnChange
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.snapshot.feed import Gatherer
from helix_tui.core.snapshot.snapshot import Change, Snapshot, compare
from helix_tui.screens.loop.controls import LoopControls

NOW = parse_now("2026-08-21T22:00:28Z")
EVERY_STATE = Path(__file__).resolve().parents[1] / "data" / "screens" / "every-state.jsonl"


class HandFeed:
    """Gathers a snapshot when a test says so, as the live thread would."""

    def __init__(self, root: Path, tell: OnChange) -> None:
        self._gatherer = Gatherer(find_project(root), clock=lambda: NOW, env={})
        self._tell = tell
        self.stopped = False

    @property
    def snapshot(self) -> Snapshot:
        return self._gatherer.snapshot

    def start(self) -> None:
        self.look()

    def painted(self) -> None:
        return

    def stop(self) -> None:
        self.stopped = True

    def look(self) -> Change:
        """Read what lies there now and tell what changed."""
        old = self.snapshot
        new = self._gatherer.gather()
        change = compare(old, new)
        self._tell(new, change)
        return change


class Console(HelixApp):
    """The app with its feed and its project at hand."""

    root: Path
    feed: HandFeed

    def notify(self, message: str, **options: Any) -> None:
        """Show a notice that stays until the test is over: on a busy machine, seconds pass between two keys."""
        super().notify(message, **{**options, "timeout": 3600.0})

    def rows(self) -> list[str]:
        """The lines on screen."""
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]

    def sees(self, text: str) -> bool:
        """Whether a text stands on the screen."""
        return any(text in line for line in self.rows())


MakeConsole = Callable[..., Console]


@pytest.fixture(autouse=True)
def _lends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console without a terminal runs an editor all the same, where a test gives it one."""
    run = staticmethod(lambda command: subprocess.run(command, check=False).returncode)
    terminal = SimpleNamespace(lend=run)
    monkeypatch.setattr(HelixApp, "terminal", property(lambda app: terminal, lambda app, _: None), raising=False)


@pytest.fixture
def a_ddx(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a ddx, as far as the sheet of the loop asks."""
    monkeypatch.setattr(LoopControls, "no_ddx", "")


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeConsole:
    """Make a console: on every state there is, or on ``lines``, or (``lines=None``) on no tracker."""
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")

    def make(lines: Iterable[str] | None = (), *, name: str = "demo", **options: Any) -> Console:
        root = tmp_path / name
        root.mkdir()
        if lines is not None:
            (root / ".ddx").mkdir()
            tracker = root / ".ddx" / "beads.jsonl"
            written = list(lines)
            if written:
                tracker.write_text("".join(f"{line}\n" for line in written))
            else:
                shutil.copy(EVERY_STATE, tracker)
            os.utime(tracker, ns=(NOW - 2 * NS, NOW - 2 * NS))
        feeds: list[HandFeed] = []

        def open_feed(tell: OnChange) -> HandFeed:
            feeds.append(HandFeed(root, tell))
            return feeds[0]

        settings: Mapping[str, Any] = {"clock": lambda: NOW} | options
        app = Console(open_feed, **settings)
        app.root, app.feed = root, feeds[0]
        return app

    return make
