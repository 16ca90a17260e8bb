"""Random keys, clicks, pastes and sizes, as fast as a console takes them, in a project that others change.

Everything follows from a seed. The console runs inside this process, where every exception that its barrier
catches is seen at once, or behind a pseudo-terminal (`tests.drills.behind_terminal`). A run fails when the
console ends, hangs, or an exception reaches the barrier; the sequence is then shortened until nothing can be
left out, and printed with its seed.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Coroutine, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from textual import events
from textual.drivers import linux_driver
from textual.geometry import Size
from textual.pilot import Pilot, WaitForScreenTimeout

from helix_tui.app import HelixApp
from helix_tui.barrier import RECENT
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.project import find_project
from helix_tui.core.snapshot.feed import Live, take_snapshot
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.settings.layout import Layout
from helix_tui.settings.views import ViewBook
from helix_tui.terminal import Decoder
from tests.drills import behind_terminal
from tests.drills.actions import FORMS, LARGE, POSTURES, Action, Case, actions_of, bound_key, cases, sent, shorten
from tests.drills.behind_terminal import lived
from tests.drills.changes import begin, change, put_back
from tests.drills.projects import PROJECTS, isolate, make_project

HANG_S = 60.0
"""Seconds in which the console must have taken a few keys, without those in which the machine gave it no turn."""


BEHIND_S = 60.0
"""Seconds in which a console must know all that has happened; as `HANG_S`."""


async def within_limit(work: Coroutine[Any, Any, object]) -> None:
    """Wait for something that the console does.

    Raises:
        TimeoutError: it takes longer than `HANG_S`.
    """
    task, until = asyncio.ensure_future(work), lived() + HANG_S
    while not task.done():
        await asyncio.wait({task}, timeout=min(5.0, HANG_S))
        if not task.done() and lived() > until:
            task.cancel()
            raise TimeoutError
    await task


class Traces(logging.Handler):
    """What is logged with a trace, by any thread: nothing that happens to files may be a defect here."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the first."""
        if record.exc_info and not self.first:
            self.first = logging.Formatter("%(name)s: %(message)s").format(record)


THREADS_S = 0.5
"""Seconds that a whole rest waits for threads: a search or a command may go on while the next keys come."""


class Hand:
    """Does actions to a console in this process, as its driver would."""

    def __init__(self, app: HelixApp, pilot: Pilot[int], root: Path) -> None:
        self._app = app
        self._root = root
        self._pilot = pilot
        self._parser, self._decoder = linux_driver.XTermParser(), Decoder()  # type: ignore[attr-defined]

    async def act(self, action: Action) -> None:
        """Do one thing; but for a rest nothing waits until the console has dealt with it."""
        driver = self._app._driver
        if driver is None:
            return
        if action[0] == "bound":
            open_keys = self._app.screen.active_bindings if self._app.screen_stack else {}
            action = bound_key(action[1], sorted(open_keys))
        kind, value = action
        if kind == "change":
            change(self._root, value)
        elif kind == "size":
            driver._size = value
            self._app.post_message(events.Resize(Size(*value), Size(*value)))
        elif text := sent(action, self._app.size):
            given = self._decoder.decode(text.encode("utf-8", "surrogateescape"))
            for event in (*self._parser.feed(given), *self._parser.tick()):
                driver.process_message(event)
        elif kind == "rest":
            await self._rest(bool(value))

    async def _rest(self, whole: bool) -> None:
        """Wait until all widgets have dealt with what they were told, and for what threads work out for them.

        Textual's own wait for a process at rest takes up to a second where a thread reads, and none at all on a
        machine so busy that the process gets no turn.
        """
        until = time.monotonic() + THREADS_S
        try:
            await self._pilot.pause(0)
            while whole and time.monotonic() < until and any(worker.is_running for worker in self._app.workers):
                await self._pilot.pause(0.01)
        except WaitForScreenTimeout:  # half a minute at a machine's full load: is it the console, or the machine?
            heard = asyncio.Event()
            self._app.screen.call_later(heard.set)
            await heard.wait()


async def play(case: Case, actions: Sequence[Action], root: Path) -> str:
    """Why the console did not survive these actions; empty when it did. One that was left is started again."""
    done, failure = 0, ""
    while done < len(actions) and not failure:
        failure, taken = await _sitting(case, actions[done:], root)
        if failure and taken:
            failure = f"after {done + taken} actions: {failure}"
        done += taken
    return failure


async def _sitting(case: Case, actions: Sequence[Action], root: Path) -> tuple[str, int]:
    """What became of one console, and how many of the actions it took until it failed or was left."""
    RECENT.clear()
    put_back(root)
    project = find_project(root)
    kept = root.parent / "kept"
    app = HelixApp(
        lambda tell: Live(project, tell),
        look_out="live",
        home=case.posture != "pane",
        kept=Layout(kept / "layout.json"),
        view_book=ViewBook(path=kept / "views.toml"),
        **POSTURES[case.posture],
    )
    app.is_demo = case.project == "used"  # the tour stays here
    number = 0
    traces = Traces()
    logs.begin(root, process="console")
    logging.getLogger("helix").addHandler(traces)
    size = (52, 40) if case.posture == "pane" else LARGE[case.seed % len(LARGE)]
    opened = app.run_test(size=size)
    try:
        pilot = await opened.__aenter__()
        await pilot.pause()
        hand = Hand(app, pilot, root)
        for action in actions:
            number += 1
            await within_limit(hand.act(action))
            if (failure := _failure(app, traces)) or app.leaving:
                break
        else:
            await within_limit(pilot.pause())
            failure = _failure(app, traces) or await _behind(app, root)
        app.workers.cancel_all()
        async with asyncio.timeout(HANG_S):
            await opened.__aexit__(None, None, None)
        return failure or _failure(app, traces), number
    except TimeoutError:  # nobody waits for its end, which would not come either
        return f"nothing happened for {HANG_S:.0f} s", number
    except Exception as error:  # noqa: BLE001 - whatever ends the console is what this looks for
        return _shown(error), number
    finally:
        logging.getLogger("helix").removeHandler(traces)
        logs.end()


async def _behind(app: HelixApp, root: Path) -> str:
    """What the console does not know of the project, though nothing happens any more; empty where it knows all."""
    until = lived() + BEHIND_S
    while unknown := _unknown(app.snapshot, take_snapshot(find_project(root))):
        if lived() > until:
            return f"the console does not follow the project: {unknown}"
        await asyncio.sleep(0.5)
    return ""


def _unknown(shown: Snapshot, read: Snapshot) -> str:
    """How what is shown differs from what is read now; a tracker that is gone leaves the last beads in view."""
    if read.condition not in ("live", "unreadable"):
        return "" if shown.condition in (read.condition, "gone") else f"{shown.condition}, not {read.condition}"
    # a console remembers what a loop told, even where its log is gone: it may know more than the disk, not less
    attempts = {attempt.attempt_id for attempt in read.attempts} - {attempt.attempt_id for attempt in shown.attempts}
    beads = [
        bead_id
        for bead_id in {**read.queue.beads, **shown.queue.beads}
        if _told(read.queue, bead_id) != _told(shown.queue, bead_id)
    ]
    beads = beads if read.condition == shown.condition == "live" else []
    different = [*beads[:3], *sorted(attempts)[:3]]
    if read.condition != shown.condition:
        different.append(f"{shown.condition}, not {read.condition}")
    return ", ".join(different)


def _told(queue: Queue, bead_id: str) -> object:
    """What a row tells of a bead."""
    bead = queue.beads.get(bead_id)
    return bead and (bead.title, bead.status, queue.standing(bead_id).state, queue.position.get(bead_id))


def _failure(app: HelixApp, traces: Traces) -> str:
    if traces.first:
        return traces.first
    if RECENT:
        return f"caught by the barrier: {RECENT[-1]}"
    if app._exception is not None:
        return _shown(app._exception)
    return f"the console ended with {app.return_code}" if app.return_code else ""


def _shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-6:]).strip()


def run_case(case: Case, actions: Sequence[Action]) -> str:
    """One run in a project of its own."""
    folder = Path(tempfile.mkdtemp(prefix="helix-monkey-"))
    try:
        root = make_project(case.project, folder / "project")
        begin(root)
        if case.form == "terminal":
            return behind_terminal.play(case, actions, root, folder / "home")
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(play(case, actions, root))
        finally:
            loop.close()  # what hangs is left as it is: to cancel it is to wait for it
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def drill(seconds: float, first: int, keys: int, forms: Sequence[str]) -> int:
    """Run case after case until the time is over; 1 at the first that fails."""
    until = time.monotonic() + seconds
    done = seeds = 0
    all_cases = (case for start in count(first, len(cases(0, forms))) for case in cases(start, forms))
    for case in all_cases:
        if time.monotonic() > until:
            break
        actions, cpu = actions_of(case.seed, keys), time.process_time()
        failure = run_case(case, actions)
        pressed = sum(kind not in ("rest", "size", "change", "stop") for kind, _ in actions)
        done, seeds = done + pressed, seeds + 1
        if failure:
            _tell(case, actions, failure, keys)
            return 1
        cpu = time.process_time() - cpu
        place = f"seed {case.seed}, {case.project}, {case.posture}, {case.form}"
        print(f"monkey: {place}: {pressed:,} keys, {cpu:.0f} CPU s here; {done:,} in {seeds} seeds", flush=True)
    print(f"monkey: {done:,} keys, clicks and pastes, {seeds} seeds from {first}: nothing failed")
    return 0


def _tell(case: Case, actions: Sequence[Action], failure: str, keys: int) -> None:
    print(f"monkey: seed {case.seed}, {case.project}, {case.posture}, {case.form}: {failure}", flush=True)
    at = failure.partition("after ")[2].partition(" ")[0]
    began = actions[: int(at)] if at.isdecimal() else actions
    shortest = shorten(began, lambda some: bool(run_case(case, some)))
    print(f"shortest that still fails, {len(shortest)} actions: {shortest!r}")
    again = f"python -m tests.drills.monkey --seed {case.seed} --keys {keys}"
    print(f"{again} --project {case.project} --posture {case.posture} --form {case.form}")


def main(words: Sequence[str] | None = None) -> int:
    """For so long, or one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, default=400, help="actions a case")
    parser.add_argument("--project", choices=sorted(PROJECTS))
    parser.add_argument("--posture", choices=sorted(POSTURES), default="full")
    parser.add_argument("--form", choices=FORMS, help="default: both; for one project inside")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="helix-drill-", ignore_cleanup_errors=True) as home:
        isolate(Path(home))
        if not options.project:
            forms = [options.form] if options.form else FORMS
            return drill(options.seconds, options.seed, options.keys, forms)
        case = Case(options.seed, options.project, options.posture, options.form or FORMS[0])
        actions = actions_of(case.seed, options.keys)
        failure = run_case(case, actions)
        if failure:
            _tell(case, actions, failure, options.keys)
        return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
