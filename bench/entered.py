"""How many files one step of the program passes through: ``python -m bench.entered [--files]``.

Counted are the source files of ``helix_tui`` and ``helix_ddx`` in which at least one function (a method, a lambda or a
comprehension too) is entered while the step runs, in any thread of this process; `sys.setprofile` says so. Not counted:
the body of a module or class that is imported meanwhile, and what a program that the step starts (``git``,
``helix-ddx``) does by itself. Each step is done once before anything is counted, so that nothing is first use, and then
five times, on another bead each time: a file counts that is entered every time, so that a timer which fires meanwhile
does not. The console runs without its background look at the next action, which is another journey.

A bead in a file: from the write until its new title is on the screen. A key: from `e` until the sheet shows the
command. Enter: until the tracker has the change and the change runner is done with it. In these two the feed's thread
is left out, for what it does is the first step again. The steps of the command line are whole calls of it.

A long path is not slow but hard to follow: the bounds limit it. Speed is ``bench.ratios``'s.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from textual.pilot import Pilot

from bench.trackers import touch_row, write_tracker
from helix_tui.app import HelixApp
from helix_tui.cli.app_factory import make_app
from helix_tui.cli.call import Call
from helix_tui.cli.console import EarlyFeed
from helix_tui.cli.program import load
from helix_tui.cli.program import main as helix_tui
from helix_tui.core.ground.project import find_project

BOUNDS = {
    "bead in a file to screen": 40,
    "key to plan": 45,
    "enter to changed tracker": 50,
    "question to answer": 50,
    "memory feedback": 25,
}
TURNS = 5
PAUSE_S = 1.0
WAIT_S = 20.0
_ROOT = Path(__file__).resolve().parents[1]
_OURS = (f"{_ROOT / 'helix_tui'}{os.sep}", f"{_ROOT / 'helix_ddx'}{os.sep}")


class Entered:
    """The files entered while a step is counted."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._counting = False
        self.left_out: int | None = None
        """A thread that is not counted."""
        self._aside: int | None = None
        """The thread that is looking at the screen for us."""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What Python calls at every function that is entered or left."""
        if not self._counting or event != "call" or threading.get_ident() in (self._aside, self.left_out):
            return
        code = frame.f_code
        # an optimized code object has fast locals: all functions do, bodies of modules and classes do not
        if code.co_flags & 1 and code.co_filename.startswith(_OURS):
            self.files.add(code.co_filename)

    @contextlib.contextmanager
    def step(self) -> Iterator[set[str]]:
        """Reset the count and start counting."""
        self.files = set()
        self._counting = True
        try:
            yield self.files
        finally:
            self._counting = False

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Exclude this thread: it does the measuring."""
        self._aside = threading.get_ident()
        try:
            yield
        finally:
            self._aside = None


def main() -> int:
    """Measure and print; 1 when a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", action="store_true", help="name the files")
    options = parser.parse_args()
    entered = Entered()
    threading.setprofile(entered)
    sys.setprofile(entered)
    with tempfile.TemporaryDirectory(prefix="helix-entered-") as scratch:
        root = _project(Path(scratch))
        found = {**asyncio.run(console_steps(entered, root)), **command_steps(entered, root)}
    sys.setprofile(None)
    threading.setprofile(None)
    holds = True
    for name, bound in BOUNDS.items():
        always = set.intersection(*found[name])
        holds = holds and len(always) <= bound
        verdict = "ok" if len(always) <= bound else "NO"
        print(f"{name:26} {len(always):3} files, at most {bound}  {verdict}")
        if options.files:
            print(*(f"    {Path(each).relative_to(_ROOT)}" for each in sorted(always)), sep="\n")
    return 0 if holds else 1


def _project(scratch: Path) -> Path:
    """A repository with a queue and a little code, in a home of its own."""
    for name in ("home", "project"):
        (scratch / name).mkdir()
    for kind in ("CONFIG", "CACHE", "DATA", "STATE"):
        os.environ[f"XDG_{kind}_HOME"] = str(scratch / "home" / kind.lower())
    os.environ |= {"HOME": str(scratch / "home"), "TEXTUAL_ANIMATIONS": "none"}
    os.environ["DDX_BIN"] = str(Path(sys.executable).with_name("helix-ddx"))
    root = scratch / "project"
    write_tracker(root / ".ddx/beads.jsonl", 200)
    (root / "lease.py").write_text(
        'def release_lease(bead):\n    """Give the lease of a bead back."""\n    bead.lease = None\n'
    )
    (root / "queue.md").write_text("# Queue\n\nA worker takes the first ready bead of the queue.\n")
    (root / ".gitignore").write_text(".helix/\n")
    who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", "-C", str(root), *who, *words], check=True, timeout=60)
    return root


async def console_steps(entered: Entered, root: Path) -> dict[str, list[set[str]]]:
    """The three steps of a console: a bead that changes on disk, a key, and enter on the sheet with the plan."""
    _, parser = load(None)
    call = Call.of("console", parser.parse_args(["-C", str(root)]))
    feed = EarlyFeed(find_project(root), call.clock, ddx=call.ddx)
    feed.begin()
    app = make_app(call, feed.open, look_out="no")
    taken: dict[str, list[set[str]]] = {name: [] for name in list(BOUNDS)[:3]}
    try:
        async with app.run_test(size=(120, 40)) as pilot:
            await _seen(entered, app, "bench 0")
            await asyncio.sleep(2)  # what is read after the first frame
            ready = app.snapshot.queue.ready
            for turn in range(TURNS + 1):
                for name, files in (await _one_bead(entered, app, pilot, root, ready, turn)).items():
                    if turn:
                        taken[name].append(files)
    finally:
        feed.stop()
    return taken


async def _one_bead(
    entered: Entered, app: HelixApp, pilot: Pilot[int], root: Path, ready: Sequence[str], turn: int
) -> dict[str, set[str]]:
    """A new title for the bead under the cursor, then `e`, which makes workers leave it alone."""
    path = root / ".ddx" / "beads.jsonl"
    bead_id = ready[turn]
    app.select_below(bead_id)
    await asyncio.sleep(PAUSE_S)
    with entered.step() as to_screen:
        with entered.aside():
            touch_row(path, bead_id, f"bench 0 rewritten {turn}")
        await _seen(entered, app, f"rewritten {turn}")
    await asyncio.sleep(PAUSE_S)
    entered.left_out = next(each.ident for each in threading.enumerate() if each.name == "helix-live")
    with entered.step() as to_plan:
        await pilot.press("e")
        await _seen(entered, app, f"ddx bead update {bead_id}")
    await asyncio.sleep(PAUSE_S)
    was = path.read_bytes()
    with entered.step() as to_tracker:
        await pilot.press("enter")
        await _until(entered, lambda: path.read_bytes() != was and app.change_runner.settle(0))
    entered.left_out = None
    await asyncio.sleep(PAUSE_S)
    return dict(zip(list(BOUNDS)[:3], (to_screen, to_plan, to_tracker), strict=True))


async def _seen(entered: Entered, app: HelixApp, text: str) -> None:
    """Until a text is on the screen."""
    await _until(entered, lambda: any(text in strip.text for strip in app.screen._compositor.render_strips()))


async def _until(entered: Entered, holds: Callable[[], bool]) -> None:
    for _ in range(int(WAIT_S / 0.02)):
        with entered.aside():
            if holds():
                return
        await asyncio.sleep(0.02)
    raise TimeoutError("the step did not come to its end; is another program changing this project?")


def command_steps(entered: Entered, root: Path) -> dict[str, list[set[str]]]:
    """The two steps of the command line."""
    here = "-C", str(root), "memory"
    memory = _call(*here, "store", "--json", "--trigger", "a lease is not released", "--resolution", "end the worker")
    memory_name = json.loads(memory)["name"]
    taken: dict[str, list[set[str]]] = {name: [] for name in list(BOUNDS)[3:]}
    for turn in range(TURNS + 1):
        with entered.step() as answer:
            _call("-C", str(root), "ask", "where is a lease released")
        with entered.step() as feedback:
            _call(*here, "feedback", "--injected", json.dumps([memory_name]), "--task", f"t-{turn}")
        if turn:
            taken["question to answer"].append(answer)
            taken["memory feedback"].append(feedback)
    return taken


def _call(*words: str) -> str:
    """One command line in this process; its output."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(output):
        code = helix_tui(list(words))
        output.flush()
    text = output.buffer.getvalue().decode()
    if code:
        raise RuntimeError(f"helix-tui {' '.join(words)} ended with {code}: {text}")
    return text


if __name__ == "__main__":
    sys.exit(main())
