"""``helix-tui`` without a subcommand: the console.

Reading starts before Textual is imported, so that the first frame has the queue in it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import locate
from helix_tui.core.clock import now_ns
from helix_tui.core.live import Change, Live, Snapshot
from helix_tui.core.project import Project
from helix_tui.core.text import clean_line

if TYPE_CHECKING:
    from helix_tui.app import Feed, HelixApp

FIRST_PAINT_S = 2.0
"""How long the first frame may keep back what takes longer to read."""

OnChange = Callable[[Snapshot, Change], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the console, its snapshot and the demo all understand."""
    parser.add_argument("--screen", metavar="NAME", default="queue", help="the screen: queue, loop")
    parser.add_argument("--pane", action="store_true", help="side-pane posture, for 40 to 60 columns")
    parser.add_argument("--theme", metavar="NAME", help="helix-night, helix-paper, helix-stark, helix-16")
    parser.add_argument("--ascii", action="store_true", help="plain letters instead of glyphs")


def run(call: Call) -> int:
    """Open the console; where there is no terminal, print one frame of it."""
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        from helix_tui.cli import snapshot

        return snapshot.print_frame(call, locate(call))
    return open_console(call, locate(call))


def open_console(call: Call, project: Project, *, seconds: float | None = None) -> int:
    """Show the console on a project until its user leaves, or until ``seconds`` are over."""
    feed = EarlyFeed(project, clock_of(call))
    feed.begin()
    try:
        app = make_app(call, feed.open)
        if seconds is not None:
            ender = threading.Timer(seconds, lambda: app.call_from_thread(app.exit, 0))
            ender.daemon = True
            ender.start()
        return app.run() or 0
    finally:
        feed.stop()


def make_app(call: Call, open_feed: Callable[[OnChange], Feed]) -> HelixApp:
    """The app as this call wants it."""
    from helix_tui.app import HelixApp
    from helix_tui.screens import SCREENS
    from helix_tui.settings import load_settings

    options = call.options
    if options.screen not in SCREENS:
        name = clean_line(options.screen, 40)
        raise CliError(f"there is no screen “{name}”", f"There are: {', '.join(SCREENS)}.", 2)
    return HelixApp(
        open_feed,
        read_only=call.read_only,
        pane=options.pane,
        ascii_only=options.ascii,
        theme=options.theme,
        screen=options.screen,
        settings=load_settings(),
        clock=clock_of(call),
    )


def clock_of(call: Call) -> Callable[[], int]:
    """The clock of a call: the present, or the instant at which ``--now`` stopped it."""
    return (lambda: call.now) if call.fixed_now else now_ns


class EarlyFeed:
    """The live feed, begun before there is an app to tell; what it says until then is kept."""

    def __init__(self, project: Project, clock: Callable[[], int]) -> None:
        self._live = Live(project, self._hear, clock=clock, patience=FIRST_PAINT_S)
        self._lock = threading.Lock()
        self._kept: list[tuple[Snapshot, Change]] = []
        self._tell: OnChange | None = None
        self._on_change: OnChange | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self._live.snapshot

    def begin(self) -> None:
        """Start to read."""
        self._live.start()

    def open(self, on_change: OnChange) -> EarlyFeed:
        """Say whom to tell once it runs."""
        self._on_change = on_change
        return self

    def start(self) -> None:
        """The app runs: tell what was kept, and from now on as it comes."""
        with self._lock:
            assert self._on_change is not None
            self._tell = self._on_change
            for snapshot, change in self._kept:
                self._tell(snapshot, change)
            self._kept.clear()

    def painted(self) -> None:
        """The queue is on screen: the rest may be read, and garbage looked for."""
        gc.enable()
        self._live.painted()

    def stop(self) -> None:
        """End the thread that reads."""
        self._live.stop()

    def _hear(self, snapshot: Snapshot, change: Change) -> None:
        with self._lock:
            if self._tell is None:
                self._kept.append((snapshot, change))
            else:
                self._tell(snapshot, change)
