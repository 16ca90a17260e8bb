"""How the Memory screen looks at every width that it is designed for, in its views and in its states.

After a change that is meant: run it with ``--snapshot-update``, then look at every picture that changed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot

from tests.screens.conftest import Console, MakeConsole
from tests.screens.memory_host import LOCK, memory_of, remember, settled

Compare = Callable[..., bool]

WIDTHS = [(32, 20), (40, 24), (48, 26), (60, 30), (80, 34), (120, 36), (160, 36)]


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights."""
    monkeypatch.setenv("HELIX_EMBEDDER", "off")


@pytest.fixture
def full(console: MakeConsole) -> Console:
    """The console on a memory with a story."""
    app = console(screen="memory")
    remember(app.root)
    return app


def at(view: str = "all", memory: str = "", *keys: str) -> Callable[[Pilot[int]], object]:
    """Open a view, go to a memory, press keys."""

    async def run(pilot: Pilot[int]) -> None:
        await settled(pilot)
        app = pilot.app
        assert isinstance(app, Console)
        memory_of(app).open_view(view)
        if memory:
            memory_of(app).show_memory(memory)
        await settled(pilot)
        if keys:
            await pilot.press(*keys)
            await settled(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_table(snap_compare: Compare, full: Console, size: tuple[int, int]) -> None:
    assert snap_compare(full, terminal_size=size, run_before=at())


@pytest.mark.parametrize("size", [(48, 30), (120, 44)], ids=lambda size: f"{size[0]}")
def test_page(snap_compare: Compare, full: Console, size: tuple[int, int]) -> None:
    assert snap_compare(full, terminal_size=size, run_before=at("all", LOCK, "enter"))


@pytest.mark.parametrize("view", ["proposed", "plans", "dormant"])
def test_view(snap_compare: Compare, full: Console, view: str) -> None:
    assert snap_compare(full, terminal_size=(100, 30), run_before=at(view))


def test_actions(snap_compare: Compare, full: Console) -> None:
    assert snap_compare(full, terminal_size=(100, 30), run_before=at("proposed", "", "a"))


@pytest.mark.parametrize("size", [(48, 20), (100, 24)], ids=lambda size: f"{size[0]}")
def test_nothing_remembered(snap_compare: Compare, console: MakeConsole, size: tuple[int, int]) -> None:
    async def look(pilot: Pilot[int]) -> None:
        await settled(pilot)
        app = pilot.app
        assert isinstance(app, Console)
        screen = memory_of(app)
        shelf = screen.memory_view
        screen._show_shelf(type(shelf)(shelf.condition, path="demo/.helix/helix.db"))
        await pilot.pause()

    assert snap_compare(console(screen="memory"), terminal_size=size, run_before=look)


def test_ascii(snap_compare: Compare, console: MakeConsole) -> None:
    app = console(screen="memory", ascii_only=True)
    remember(app.root)
    assert snap_compare(app, terminal_size=(100, 30), run_before=at())
