"""How the loop looks at every width that it is designed for, in its tabs and in its states.

After a change that is meant: ``pytest tests/screens/test_loop_snapshots.py --snapshot-update``, then look at
every picture that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from helix_tui.widgets.chrome import header as pulse
from tests.screens.loop_host import Attempts, Busy, LoopConsole, open_loop, settled

Compare = Callable[..., bool]

WIDTHS = [(32, 20), (40, 26), (48, 30), (60, 34), (80, 36), (120, 36), (160, 40)]
LANDED = "20260821T200000-aaaa0001"
KEPT = "20260821T190000-aaaa0002"
WORKING = "20260821T215620-bbbb0001"


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No motion."""
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    monkeypatch.setattr(pulse, "FRAME_SECONDS", 3_600.0)


@pytest.fixture
def busy(tmp_path: Path) -> LoopConsole:
    """The console on a project with everything in it."""
    root = tmp_path / "demo"
    root.mkdir()
    Busy(root)
    return open_loop(root)


def on(attempt_id: str, tab: str = "", *keys: str) -> Callable[[Pilot[int]], object]:
    """Go to an attempt, open a tab, press keys."""

    async def run(pilot: Pilot[int]) -> None:
        await settled(pilot)
        app = pilot.app
        assert isinstance(app, LoopConsole)
        if attempt_id:
            app.loop.show_attempt(attempt_id)
            await settled(pilot)
        if tab:
            app.loop.view.open_tab(tab)
            await settled(pilot)
        await pilot.press(*keys)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await settled(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_list(snap_compare: Compare, busy: LoopConsole, size: tuple[int, int]) -> None:
    assert snap_compare(busy, terminal_size=size, run_before=on(""))


@pytest.mark.parametrize("size", [(32, 24), (48, 34), (80, 40), (120, 36)], ids=lambda size: f"{size[0]}")
def test_evidence(snap_compare: Compare, busy: LoopConsole, size: tuple[int, int]) -> None:
    assert snap_compare(busy, terminal_size=size, run_before=on(LANDED))


@pytest.mark.parametrize("size", [(48, 24), (120, 30)], ids=lambda size: f"{size[0]}")
def test_transcript(snap_compare: Compare, busy: LoopConsole, size: tuple[int, int]) -> None:
    assert snap_compare(busy, terminal_size=size, run_before=on(WORKING, "", "K", "enter"))


@pytest.mark.parametrize("size", [(48, 20), (160, 26)], ids=lambda size: f"{size[0]}")
def test_diff(snap_compare: Compare, busy: LoopConsole, size: tuple[int, int]) -> None:
    assert snap_compare(busy, terminal_size=size, run_before=on(LANDED, "diff", "J"))


def test_raw(snap_compare: Compare, busy: LoopConsole) -> None:
    assert snap_compare(busy, terminal_size=(100, 30), run_before=on(LANDED, "raw", "J", "enter"))


def test_preserved(snap_compare: Compare, busy: LoopConsole) -> None:
    assert snap_compare(busy, terminal_size=(120, 34), run_before=on(KEPT))


def test_filter(snap_compare: Compare, busy: LoopConsole) -> None:
    keys = ("slash", *"status", "colon", "a")
    assert snap_compare(busy, terminal_size=(80, 30), run_before=on("", "", *keys))


def test_nothing_yet(snap_compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "demo"
    Attempts(root).bead("ddx-1", "Scrub")
    app = open_loop(root)
    monkeypatch.setattr(type(app.snapshot.project), "ddx_dir", Path("demo/.ddx"))

    async def wait(pilot: Pilot[int]) -> None:
        await settled(pilot)

    assert snap_compare(app, terminal_size=(80, 24), run_before=wait)
