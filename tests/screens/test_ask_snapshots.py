"""How the Ask screen looks at every width that it is designed for.

After a change that is meant: ``pytest tests/screens/test_ask_snapshots.py --snapshot-update``, then look at
every picture that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from textual.pilot import Pilot

from helix_tui.core.ask.index.keeper import IndexKeeper
from helix_tui.widgets.chrome import header as pulse
from tests.core.ask.sessions.solar import AMBIGUOUS, QUESTIONS, write
from tests.screens.conftest import Console, MakeConsole
from tests.screens.test_ask import asked, settled

pytestmark = pytest.mark.long

Compare = Callable[..., bool]

WIDTHS = [(48, 30), (80, 40), (120, 44), (160, 46)]


@pytest.fixture(autouse=True)
def _still(monkeypatch: pytest.MonkeyPatch) -> None:
    """No motion, no time spent."""
    monkeypatch.setattr(pulse, "FRAME_SECONDS", 3_600.0)
    monkeypatch.setattr(IndexKeeper, "_follow", lambda self, index: None)
    # beside other work of the machine too, the whole repository is asked
    monkeypatch.setattr("helix_tui.core.ask.index.keeper.PATIENCE_S", 60.0)
    still = SimpleNamespace(perf_counter=lambda: 0.0, thread_time=lambda: 0.0)
    monkeypatch.setattr("helix_tui.core.ask.sessions.session.time", still)


@pytest.fixture
def app(console: MakeConsole) -> Console:
    """A console on the Ask screen of the solar repository."""
    made = console(screen="ask")
    write(made.root)
    return made


def after(question: str, *keys: str) -> Callable[[Pilot[int]], object]:
    """Ask, then press keys."""

    async def run(pilot: Pilot[int]) -> None:
        await asked(pilot, question)
        for key in keys:
            await pilot.press(key)
            await settled(pilot)

    return run


@pytest.mark.parametrize("size", WIDTHS, ids=lambda size: f"{size[0]}")
def test_answer(snap_compare: Compare, app: Console, size: tuple[int, int]) -> None:
    keys = ("enter",) if size[0] < 60 else ()
    assert snap_compare(app, terminal_size=size, run_before=after(QUESTIONS[0], *keys))


def test_list_beside_an_agent(snap_compare: Compare, app: Console) -> None:
    assert snap_compare(app, terminal_size=(48, 24), run_before=after(QUESTIONS[0], "escape"))


def test_evidence(snap_compare: Compare, app: Console) -> None:
    assert snap_compare(app, terminal_size=(120, 40), run_before=after(QUESTIONS[0], "O"))


def test_clarify(snap_compare: Compare, app: Console) -> None:
    assert snap_compare(app, terminal_size=(120, 40), run_before=after(AMBIGUOUS))
