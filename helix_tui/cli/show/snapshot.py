"""``helix-tui snapshot``: one frame of a screen, drawn by the real app without a terminal."""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from helix_tui.cli.app_factory import OnChange, make_app
from helix_tui.cli.app_factory import add_arguments as add_app_arguments
from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.editing.journal import entry_document
from helix_tui.cli.loading import Present
from helix_tui.cli.show import attempts as evidence
from helix_tui.cli.show import queue as queue_command
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import DEFECT
from helix_tui.core.ground.project import Project
from helix_tui.core.snapshot.feed import take_snapshot
from helix_tui.core.snapshot.snapshot import Change, Snapshot
from helix_tui.core.statements.run import explain_run

if TYPE_CHECKING:
    from textual.app import App

    from helix_tui.app import HelixApp

DEFAULT_SIZE = (120, 40)
DRAW_LIMIT = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_app_arguments(parser)
    parser.add_argument("--size", type=_size, metavar="WxH", help="columns and rows (the terminal's, or 120x40)")
    parser.add_argument("--format", choices=("text", "svg", "json"), default="text", help="what to print")


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,3})[x×](\d{1,3})", text)
    size = (int(match.group(1)), int(match.group(2))) if match else (0, 0)
    if min(size) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write it like 120x40")
    return size


def run(call: Call) -> int:
    """Print one frame."""
    return print_frame(call, locate(call))


def print_frame(call: Call, project: Project) -> int:
    """Draw a frame and print it in the format asked for."""
    options = call.options
    form = "json" if call.json else getattr(options, "format", "text")
    size = getattr(options, "size", None) or tuple(shutil.get_terminal_size(DEFAULT_SIZE))
    snapshot = take_snapshot(project, now=call.now, ddx=call.ddx)
    text, svg, sheet = asyncio.run(_draw(call, snapshot, size))
    if form == "json":
        call.emit(
            {
                "screen": options.screen,
                "width": size[0],
                "height": size[1],
                "condition": snapshot.condition,
                "lines": text.splitlines(),
                "data": sheet or _data(snapshot, options.screen),
            }
        )
    else:
        call.print(svg if form == "svg" else text)
    return 0


def _data(snapshot: Snapshot, screen: str) -> dict[str, Any]:
    """What the screen shows, as the command of the same name prints it."""
    if screen == "loop":
        return {
            "running": [queue_command.as_running(run, snapshot.taken_at) for run in snapshot.runs],
            "attempts": [
                evidence.as_document(attempt, snapshot.taken_at, snapshot.queue) for attempt in snapshot.attempts
            ],
        }
    if screen == "journal":
        return {
            "operations": [entry_document(entry) for entry in reversed(snapshot.journal.entries)],
            "dropped": snapshot.journal.dropped,
            "torn": snapshot.journal.torn,
        }
    present = Present(snapshot.project, snapshot.tracker, snapshot.queue, snapshot.runs)
    return queue_command.document(present, queue_command.order_by_pick(snapshot.queue, snapshot.queue.beads))


def _sheet(app: HelixApp, screen: str) -> dict[str, Any]:
    """The data of a sheet, which is opened over the queue; empty for a screen."""
    if screen == "needs":
        return {"needs": [need.record() for need in app.needs]}
    if screen in ("next", "controls") and app.status_summary is not None:
        status_summary = app.status_summary
        run = {"condition": status_summary.run.condition, "explanation": explain_run(status_summary.run)}
        return {**status_summary.verdict.record(), **run}
    return {}


class StillFeed:
    """A feed with one snapshot and nothing after it."""

    def __init__(self, snapshot: Snapshot, on_change: OnChange) -> None:
        self.snapshot = snapshot
        self._on_change = on_change

    def start(self) -> None:
        """Pass the one snapshot on."""
        self._on_change(self.snapshot, Change(everything=True))

    def painted(self) -> None:
        """Nothing is left to read."""

    def stop(self) -> None:
        """Nothing is left to stop."""


async def _draw(call: Call, snapshot: Snapshot, size: tuple[int, int]) -> tuple[str, str, dict[str, Any]]:
    """One frame as text and as SVG, and what a sheet shows."""
    from helix_tui.screens.picture import picture_of

    app = make_app(call, lambda on_change: StillFeed(snapshot, on_change), look_out="once")
    # a frame in the middle of an animation would differ each time
    app.animation_level = "none"
    try:
        async with asyncio.timeout(DRAW_LIMIT), app.run_test(size=size) as pilot:
            for _ in range(3):  # the result of one worker may start another
                await workers_done(app)
                await pilot.pause()
            sheet = _sheet(app, call.options.screen)
            drawn = frame_text(app, colour=call.paint.colour), picture_of(app), sheet
    except TimeoutError:
        raise CliError(f"the frame was not drawn within {DRAW_LIMIT:.0f} s", "Try a smaller --size.") from None
    if app.barrier.count:
        raise CliError(
            f"{call.options.screen} could not be shown because of a bug in helix-tui",
            f"The trace is in {logs.shown_file()}.",
            DEFECT,
        )
    return drawn


async def workers_done(app: App[Any]) -> None:
    """Wait for the workers that run now; one that another replaces meanwhile is done too."""
    from textual.worker import WorkerCancelled

    for worker in list(app.workers):
        with suppress(WorkerCancelled):
            await worker.wait()


def frame_text(app: HelixApp, *, colour: bool) -> str:
    """The text on the screen, line by line; Textual itself exports only SVG."""
    from rich.console import Console

    from helix_tui.textual_inside import frame_of

    width, height = app.size
    recorder = Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        record=True,
    )
    recorder.print(frame_of(app.screen))
    lines = recorder.export_text(styles=colour).splitlines()[:height]
    return "\n".join(line if colour else line.rstrip() for line in lines)
