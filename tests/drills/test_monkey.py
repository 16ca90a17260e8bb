"""The monkey itself: what it does follows from its seed, and what fails is made short."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from helix_tui.barrier import RECENT
from tests.drills import monkey
from tests.drills.actions import LEAVES, Action, Case, actions_of, shorten
from tests.drills.monkey import play
from tests.drills.projects import make_project

pytestmark = pytest.mark.long


def test_a_seed_gives_one_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert actions_of(7, 300) == actions_of(7, 300)
    assert actions_of(7, 300) != actions_of(8, 300)
    # typed words may hold a letter that leaves elsewhere
    monkeypatch.setattr("tests.drills.actions._line", lambda rng: [("rest", True)])
    assert not {("key", key) for key in LEAVES} & {action for action in actions_of(7, 3_000) if action[0] == "key"}


def test_a_failure_is_shortened_to_what_it_needs() -> None:
    def fails(actions: Sequence[Action]) -> bool:
        keys = [value for _, value in actions]
        return "x" in keys and "y" in keys[keys.index("x") :]

    actions: list[Action] = [("key", letter) for letter in "abcdxefghijklmnoypqrstuvw"]
    assert shorten(actions, fails) == [("key", "x"), ("key", "y")]


async def test_what_the_console_raises_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(self: object) -> None:
        raise LookupError("planted")

    monkeypatch.setattr("helix_tui.screens.base.HelixScreen.action_needs_me", stumble, raising=False)
    monkeypatch.setattr("helix_tui.app.HelixApp.action_needs_me", stumble, raising=False)
    root = make_project("broken", tmp_path / "p")
    failure = await play(Case(1, "broken", "full"), [("key", "!"), ("rest", None)], root)
    RECENT.clear()
    assert "planted" in failure


async def test_what_never_ends_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monkey, "HANG_S", 0.05)
    await monkey.within_limit(asyncio.sleep(0))
    with pytest.raises(TimeoutError):
        await monkey.within_limit(asyncio.Event().wait())


@pytest.mark.parametrize("project", ["head", "empty", "broken"])
async def test_a_few_keys_on_each_project(tmp_path: Path, project: str) -> None:
    case = Case(3, project, "full")
    assert await play(case, actions_of(case.seed, 60), make_project(project, tmp_path / "p")) == ""
