"""The monkey itself: what it does follows from its seed, and what fails is made short."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from helix_tui.barrier import RECENT
from helix_tui.core.snapshot.feed import Gatherer
from helix_tui.core.snapshot.snapshot import Snapshot
from tests.drills import monkey
from tests.drills.actions import LEAVES, Action, Case, actions_of, shorten
from tests.drills.changes import AWAY, CHANGES, begin, change, put_back
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


def test_others_change_what_follows_from_the_number_and_the_disk(tmp_path: Path) -> None:
    for name in ("one", "two"):
        root = make_project("head", tmp_path / name / "p")
        begin(root)
        for number in range(150):
            change(root, number)
    found = [
        {path.relative_to(root): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
        for root in (tmp_path / "one" / "p", tmp_path / "two" / "p")
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 1
    put_back(root)
    assert (root / ".ddx").is_dir()
    assert not list(root.rglob(f"*{AWAY}"))


def test_each_kind_of_change_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_project("head", tmp_path / "p")
    begin(root)
    for name, (_, happens) in CHANGES.items():
        monkeypatch.setattr("tests.drills.changes.CHANGES", {name: (1, happens)})
        if name == "put back":
            (root / ".ddx").rename(root / f".ddx{AWAY}")
        before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for number in range(20):
            change(root, number)
        after = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
        assert before != after, name
        put_back(root)


async def test_a_console_that_does_not_follow_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monkey, "BEHIND_S", 0.0)
    monkeypatch.setattr("helix_tui.core.snapshot.feed.Live._concerns", lambda self, changed: False)
    monkeypatch.setattr("helix_tui.core.snapshot.feed.FULL_LOOK_S", 900.0)
    root = make_project("head", tmp_path / "p")
    begin(root)
    number = next(number for number in range(100) if _goes(number))
    failure = await play(Case(1, "head", "full"), [("rest", True), ("rest", True), ("change", number)], root)
    assert failure.startswith("after 3 actions: the console does not follow the project: ")


def _goes(number: int) -> bool:
    rng = random.Random(number)
    return rng.choices([*CHANGES], [often for often, _ in CHANGES.values()]) == ["rows go"]


async def test_what_is_logged_with_a_trace_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(self: Gatherer, **asked: Any) -> Snapshot:
        if threading.current_thread().name == "helix-live":
            raise LookupError("planted")
        return gather(self, **asked)

    gather = Gatherer.gather
    monkeypatch.setattr(Gatherer, "gather", stumble)
    root = make_project("empty", tmp_path / "p")
    failure = await play(Case(1, "empty", "full"), [("rest", True)], root)
    assert "no snapshot could be taken" in failure
    assert "planted" in failure
