"""How the queue looks at every width that it is designed for, and in the states without a queue.

After a change that is meant: ``pytest tests/screens/test_queue_snapshots.py --snapshot-update``, then look at
every picture that changed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.screens.conftest import MakeConsole

Compare = Callable[..., bool]

WIDTHS = [(32, 20), (40, 24), (48, 24), (60, 30), (80, 30), (120, 36), (160, 40)]


async def rested(pilot: Pilot[int]) -> None:
    """Until the detail has followed and the third pane is there."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def press(*keys: str) -> Callable[[Pilot[int]], object]:
    async def run(pilot: Pilot[int]) -> None:
        await rested(pilot)
        await pilot.press(*keys)
        await rested(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_dag(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=rested)


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_needs_me(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=press("exclamation_mark"))


@pytest.mark.parametrize("view", ["tree", "lanes", "order"])
def test_views(snap_compare: Compare, console: MakeConsole, view: str) -> None:
    turns = ["tree", "lanes", "order"].index(view) + 1
    assert snap_compare(console(), terminal_size=(100, 34), run_before=press(*["right_square_bracket"] * turns))


@pytest.mark.parametrize("theme", ["helix-paper", "helix-stark", "helix-16"])
def test_themes(snap_compare: Compare, console: MakeConsole, theme: str) -> None:
    assert snap_compare(console(theme=theme), terminal_size=(100, 26), run_before=press("j"))


def test_ascii(snap_compare: Compare, console: MakeConsole) -> None:
    assert snap_compare(console(ascii_only=True), terminal_size=(100, 26), run_before=rested)


def test_help(snap_compare: Compare, console: MakeConsole) -> None:
    assert snap_compare(console(), terminal_size=(48, 30), run_before=press("question_mark"))


def test_filter_with_ways_on(snap_compare: Compare, console: MakeConsole) -> None:
    keys = ("slash", *"state", "colon", *"re")
    assert snap_compare(console(), terminal_size=(80, 26), run_before=press(*keys))


def test_no_ddx(snap_compare: Compare, console: MakeConsole, monkeypatch: pytest.MonkeyPatch) -> None:
    app = console(None)
    monkeypatch.setattr(type(app.feed.snapshot.project), "beads_file", "demo/.ddx/beads.jsonl")
    assert snap_compare(app, terminal_size=(80, 24), run_before=rested)


def test_jump(snap_compare: Compare, console: MakeConsole) -> None:
    assert snap_compare(console(), terminal_size=(60, 24), run_before=press("f"))


@pytest.mark.parametrize("size", [(60, 30), (80, 30), (120, 36), (160, 40)], ids=lambda size: f"{size[0]}")
def test_lanes(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    turns = ("right_square_bracket",) * 2
    assert snap_compare(console(), terminal_size=size, run_before=press(*turns))
