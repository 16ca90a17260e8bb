"""The pulse: what matters most is there at any width, and it never takes more than it has."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from helix_tui.widgets.base.line import width_of
from helix_tui.widgets.chrome.header import PulseFacts, StatusBar
from tests.widgets.host import Host

FACTS = PulseFacts(
    project="demo",
    branch="main",
    age_s=2,
    running=2,
    ready=12,
    needs_me=3,
    spent="$4.10 · 1.2M tok today",
    cost="$4.10",
    action="BUILD",
    because="12 ready, 0 drift",
)


async def line(facts: PulseFacts, width: int) -> str:
    pulse = StatusBar()
    pulse.facts = facts
    async with Host(pulse).run_test(size=(width, 3)):
        spans = pulse.spans(width)
        assert width_of(spans) <= width
        return "".join(text for text, _ in spans)


@pytest.mark.parametrize(
    ("width", "there", "gone"),
    [
        (
            140,
            ["demo ⎇ main · 2s", "◉ 2 running", "○ 12 ready", "◆ 3 need you", "$4.10", "BUILD ▸ 12 ready"],
            [],
        ),
        (110, ["demo ⎇ main · 2s", "BUILD ▸ 12 ready", "$4.10"], ["tok"]),
        (82, ["demo ⎇ main", "◉ 2 running", "$4.10", "BUILD"], ["▸"]),
        (52, ["demo ⎇ main", "◉2", "○12", "◆3", "$4.10", "BUILD"], ["running"]),
        (34, ["demo", "◉2 ○12 ◆3", "$4.10", "BUILD"], ["main"]),
        (26, ["◉2 ○12 ◆3 $4.10 · BUILD"], ["demo"]),
    ],
)
async def test_parts_go_in_order(width: int, there: list[str], gone: list[str]) -> None:
    said = await line(FACTS, width)
    assert all(part in said for part in there), said
    assert not any(part in said for part in gone), said


@pytest.mark.parametrize("width", [24, 32, 40, 48, 60, 80, 100, 120, 160, 220])
async def test_while_something_runs_its_cost_never_leaves(width: int) -> None:
    assert "$4.10" in await line(FACTS, width)
    idle = replace(FACTS, running=0)
    assert "$4.10" in await line(replace(idle, loop="loop medium"), width), "between two beads of a loop too"
    assert "$4.10" in await line(replace(idle, over=True), width), "a part of the budget is spent"
    assert ("$4.10" in await line(idle, width)) is (width >= 100)


async def test_a_simulation_says_so_at_any_width() -> None:
    for width in (160, 80, 48, 32):
        assert "SIMULATION" in await line(PulseFacts(project="demo", ready=3, action="BUILD", simulation=True), width)


async def test_trouble_stands_in_place_of_counts() -> None:
    said = await line(PulseFacts(project="demo", trouble="no .ddx here"), 60)
    assert "no .ddx here" in said
    assert "ready" not in said


async def test_words_stay_at_80_cells_and_the_place_gives_way() -> None:
    facts = PulseFacts("a-project-of-a-long-name-in-deed", "wt/feature-branch", 2.0, ready=12, running=2, needs_me=3)
    said = await line(facts, 80)
    for words in ("2 running", "12 ready", "3 need you"):
        assert words in said


async def test_each_part_answers_for_its_own_cells_whatever_the_project_is_called() -> None:
    pulse = StatusBar()
    facts = replace(FACTS, project="○ 9 unread", unread=2, memory="5 memories", loop="loop", stale_claims=1)
    pulse.facts = facts
    async with Host(pulse).run_test(size=(200, 3)):
        said = "".join(text for text, _ in pulse.spans(200))
        parts = {part: said[cells.start : cells.stop].strip() for part, cells in pulse._parts}
    assert parts.pop("running")
    assert parts == {
        "stale": "! 1 stale",
        "ready": "○ 12 ready",
        "needs": "◆ 3 need you",
        "unread": "2 lines unread ▸",
        "memory": "5 memories",
        "spent": "$4.10 · 1.2M tok today",
        "loop": "loop ·",
        "next": "BUILD ▸ 12 ready, 0 drift",
    }
