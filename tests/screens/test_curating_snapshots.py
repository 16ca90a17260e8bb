"""How changes look before they run, at the widths of a side pane, of a stack and of a terminal.

After a change that is meant: ``pytest tests/screens/test_curating_snapshots.py --snapshot-update``, then look
at every picture that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest
from textual.pilot import Pilot

from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.differences import Conflict, Difference
from helix_tui.core.supervision.requests import UndoRequest
from helix_tui.screens.editing.preview import TroubleSheet
from helix_tui.screens.queue.queue_screen import QueueScreen
from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_curating import press, thought, type_text

pytestmark = pytest.mark.long

Compare = Callable[..., bool]

WIDTHS = [(48, 26), (80, 30), (120, 36)]


def on_the_bead(*keys: str, typed: str = "") -> Callable[[Pilot[int]], object]:
    """Put the cursor on a bead that others wait on, then press keys."""

    async def run(pilot: Pilot[int]) -> None:
        await thought(pilot)
        cast(QueueScreen, pilot.app.screen).go_to("demo-00000001")
        await press(pilot, *keys)
        await type_text(pilot, typed)
        await thought(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_what_if(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=on_the_bead("w"))


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_picker(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=on_the_bead("d", typed="re"))


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_new_bead(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=on_the_bead("N", typed="Sell tickets"))


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_menu(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    assert snap_compare(console(), terminal_size=size, run_before=on_the_bead("a"))


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_conflict(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    async def run(pilot: Pilot[int]) -> None:
        await thought(pilot)
        found = [
            Difference("demo-00000001", "priority", 1, 4),
            Difference("demo-00000001", "description", "What we wrote.\nTwo lines.", None),
        ]
        await pilot.app.push_screen(TroubleSheet(UndoRequest("undo"), Conflict(found)))
        await pilot.pause()

    assert snap_compare(console(), terminal_size=size, run_before=run)


def test_marks(snap_compare: Compare, console: MakeConsole) -> None:
    run = on_the_bead("space", "v", "j", "j")
    assert snap_compare(console(), terminal_size=(100, 24), run_before=run)


def test_labels(snap_compare: Compare, console: MakeConsole) -> None:
    assert snap_compare(console(), terminal_size=(80, 24), run_before=on_the_bead("number_sign", "tab"))


@pytest.mark.parametrize("theme", ["helix-paper", "helix-16"])
def test_themes(snap_compare: Compare, console: MakeConsole, theme: str) -> None:
    assert snap_compare(console(theme=theme), terminal_size=(80, 24), run_before=on_the_bead("w"))


def test_ddx_error_in_ascii(snap_compare: Compare, console: MakeConsole) -> None:
    async def run(pilot: Pilot[int]) -> None:
        await thought(pilot)
        error = DdxError(("ddx", "bead", "close", "demo-1"), "no answer after 60 s", "see who holds the tracker")
        await pilot.app.push_screen(TroubleSheet(UndoRequest("undo"), error))
        await pilot.pause()

    app: Console = console(ascii_only=True)
    assert snap_compare(app, terminal_size=(80, 24), run_before=run)
