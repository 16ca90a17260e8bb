"""Random keys, clicks, pastes and sizes, as fast as a console takes them.

Everything follows from a seed. A run fails when the console ends, hangs, or an exception reaches the barrier;
the sequence is then shortened until nothing can be left out, and printed with its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual import events
from textual.keys import REPLACED_KEYS, _character_to_key, _get_unicode_name_from_key
from textual.pilot import OutOfBounds, Pilot

from helix_tui.app import HelixApp
from helix_tui.barrier import RECENT
from helix_tui.core.live import Live
from helix_tui.core.project import find_project
from helix_tui.keymap import KEYS
from tests.drills.projects import PROJECTS, isolate, make_project

LEAVES = {"q", "ctrl+q", "ctrl+c"}
"""Keys that end the console, as they should."""

TYPED = [*"abcdefghijklmnoprstuvwxyz0123456789 :/.,-_#@!?()[]{}<>'\"\\éß字\u200d"]
TYPED += ["backspace", "delete", "ctrl+w"]
OFTEN = [*"123456ajk", "escape", "escape", "enter", "enter", "tab", "down", "up", "ctrl+p"]
PASTES = ["", "one line", "two\nlines\n", "\x1b[31mred[/]", "字" * 200, "x" * 20_000, "status:open", "\ud800"]
SIZES = [(1, 1), (2, 1), (1, 40), (8, 3), (20, 8), (40, 20)]
LARGE = [(60, 24), (80, 24), (120, 40), (160, 48), (300, 90)]

HANG_S = 30.0
"""Seconds in which the console must have taken a few keys, on a busy machine too."""

POSTURES: dict[str, dict[str, Any]] = {
    "full": {},
    "pane": {"pane": True},
    "read-only": {"read_only": True},
    "ascii": {"ascii_only": True},
}

Action = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """What is run: everything but the actions follows from the three."""

    seed: int
    project: str
    posture: str


def actions_of(seed: int, count: int) -> list[Action]:
    """The actions of a seed."""
    rng = random.Random(seed)
    keys = sorted({key for entry in KEYS for key in entry.keys.split(",")} - LEAVES)
    actions: list[Action] = []
    while len(actions) < count:
        kind = rng.random()
        if kind < 0.50:
            actions.append(("key", rng.choice(keys)))
        elif kind < 0.78:
            actions.append(("key", rng.choice(OFTEN)))
        elif kind < 0.90:
            actions.append(("key", rng.choice(TYPED)))
        elif kind < 0.96:
            actions.append(("click", (rng.random(), rng.random(), rng.randint(1, 2))))
        elif kind < 0.98:
            actions.append(("paste", rng.choice(PASTES)))
        else:
            actions += [("size", rng.choice(SIZES)), ("size", rng.choice(LARGE))]
        if rng.random() < 0.25:
            actions.append(("rest", None))
    return actions


async def act(app: HelixApp, pilot: Pilot[int], action: Action) -> None:
    """Do one thing; but for `rest` nothing waits until the console has dealt with it."""
    kind, value = action
    if kind == "key":
        key = _character_to_key(value) if len(value) == 1 else value
        named = REPLACED_KEYS.get(key, key)
        try:
            character: str | None = unicodedata.lookup(_get_unicode_name_from_key(named))
        except KeyError:
            character = value if len(value) == 1 else None
        _send(app, events.Key(key, character))
    elif kind == "paste":
        _send(app, events.Paste(value))
    elif kind == "size":
        await pilot.resize_terminal(*value)
    elif kind == "click":
        across, down, times = value
        width, height = app.size
        try:
            await pilot.click(offset=(int(across * width), int(down * height)), times=times)
        except OutOfBounds:
            return
    else:
        await pilot.pause()


def _send(app: HelixApp, event: events.Event) -> None:
    event.set_sender(app)
    if app._driver is not None:
        app._driver.send_message(event)


async def play(case: Case, actions: Sequence[Action], root: Path) -> str:
    """Why the console did not survive these actions; empty when it did."""
    RECENT.clear()
    project = find_project(root)
    app = HelixApp(lambda tell: Live(project, tell), **POSTURES[case.posture])
    size = (52, 40) if case.posture == "pane" else (140, 44)
    try:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            for number, action in enumerate(actions):
                await asyncio.wait_for(act(app, pilot, action), HANG_S)
                if failure := _failure(app):
                    return f"after {number + 1} actions: {failure}"
            await asyncio.wait_for(pilot.pause(), HANG_S)
            failure = _failure(app)
            app.workers.cancel_all()
            return failure
    except TimeoutError:
        return f"nothing happened for {HANG_S:.0f} s"
    except Exception as error:  # noqa: BLE001 - whatever ends the console is what this looks for
        return _shown(error)


def _failure(app: HelixApp) -> str:
    if RECENT:
        return f"caught by the barrier: {RECENT[-1]}"
    if app._exception is not None:
        return _shown(app._exception)
    return "the console ended" if app._exit or not app.is_running else ""


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-6:]).strip()


def run_case(case: Case, actions: Sequence[Action]) -> str:
    """One run in a project of its own."""
    folder = Path(tempfile.mkdtemp(prefix="helix-monkey-"))
    try:
        root = make_project(case.project, folder / "project")
        return asyncio.run(play(case, actions, root))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shorten(
    actions: Sequence[Action], fails: Callable[[Sequence[Action]], bool], most: int = 80
) -> list[Action]:
    """The fewest of the actions, in their order, that still fail: delta debugging, in so many tries."""
    kept, parts, tries = list(actions), 2, 0
    while len(kept) > 1 and tries < most:
        size = max(1, -(-len(kept) // parts))
        for start in range(0, len(kept), size):
            fewer = kept[:start] + kept[start + size :]
            tries += 1
            if fewer and fails(fewer):
                kept, parts = fewer, max(2, parts - 1)
                break
            if tries >= most:
                break
        else:
            if size == 1:
                break
            parts = min(len(kept), parts * 2)
    return kept


def cases(first: int) -> Sequence[Case]:
    """Each project in each posture, with seeds from ``first`` on."""
    names = [(project, posture) for posture in POSTURES for project in PROJECTS]
    return [Case(first + number, *pair) for number, pair in enumerate(names)]


def drill(seconds: float, first: int, keys: int) -> int:
    """Run case after case until the time is over; 1 at the first that fails."""
    until = time.monotonic() + seconds
    done = seed = 0
    while time.monotonic() < until:
        for case in cases(first + seed):
            if time.monotonic() > until:
                break
            actions = actions_of(case.seed, keys)
            failure = run_case(case, actions)
            done += len(actions)
            if failure:
                _tell(case, actions, failure, keys)
                return 1
        seed += len(POSTURES) * len(PROJECTS)
    print(f"monkey: {done:,} actions, seeds from {first}: nothing failed")
    return 0


def _tell(case: Case, actions: Sequence[Action], failure: str, keys: int) -> None:
    print(f"monkey: seed {case.seed}, {case.project}, {case.posture}: {failure}", flush=True)
    at = failure.partition("after ")[2].partition(" ")[0]
    began = actions[: int(at)] if at.isdecimal() else actions
    shortest = shorten(began, lambda some: bool(run_case(case, some)))
    print(f"shortest that still fails, {len(shortest)} actions: {shortest!r}")
    again = f"python -m tests.drills.monkey --seed {case.seed} --keys {keys}"
    print(f"{again} --project {case.project} --posture {case.posture}")


def main(words: Sequence[str] | None = None) -> int:
    """For so long, or one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, default=400, help="actions a case")
    parser.add_argument("--project", choices=sorted(PROJECTS))
    parser.add_argument("--posture", choices=sorted(POSTURES), default="full")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="helix-drill-", ignore_cleanup_errors=True) as home:
        isolate(Path(home))
        if not options.project:
            return drill(options.seconds, options.seed, options.keys)
        case = Case(options.seed, options.project, options.posture)
        actions = actions_of(case.seed, options.keys)
        failure = run_case(case, actions)
        if failure:
            _tell(case, actions, failure, options.keys)
        return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
