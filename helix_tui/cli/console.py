"""``helix-tui`` without a subcommand: the console.

Reading starts before Textual is imported, so that the first frame has the queue in it.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable

from helix_tui.cli.app_factory import OnChange, add_arguments, make_app
from helix_tui.cli.call import Call, locate
from helix_tui.core.ground.processes.threads import keep_heaps_small
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_line
from helix_tui.core.snapshot.feed import Live
from helix_tui.core.snapshot.snapshot import Change, Snapshot, merge_changes
from helix_tui.settings.file import load_settings

__all__ = ["add_arguments", "run"]

FIRST_PAINT_S = 2.0
"""How long the first frame may postpone the slower reads."""


def run(call: Call) -> int:
    """Open the console; without a terminal, print one frame of it."""
    if call.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        from helix_tui.cli.show import snapshot

        return snapshot.print_frame(call, locate(call))
    return open_console(call, locate(call), home=True)


def open_console(
    call: Call,
    project: Project,
    *,
    seconds: float | None = None,
    stall_after_s: float | None = None,
    home: bool = False,
    demo: bool = False,
) -> int:
    """Show the console on a project until the user quits, or for ``seconds``.

    A worker without an event for ``stall_after_s`` is called silent; None takes the user's setting. ``home`` opens
    Needs me if something waits and nothing runs. ``demo``: the project is a throw-away one, and the
    tour runs here; elsewhere it is a program of its own that this console gives its terminal to.
    """
    keep_heaps_small()
    feed = EarlyFeed(project, call.clock, stall_after_s or load_settings().stall_after_s, call.ddx)
    feed.begin()
    try:
        app = make_app(call, feed.open, home=home)
        app.is_demo = demo
        if demo and call.options.tour:
            app.call_later(app.begin_tour)
        if seconds is not None:
            ender = threading.Timer(seconds, lambda: app.call_from_thread(app.exit, 0))
            ender.daemon = True  # it must not keep a console that has quit alive
            ender.start()
        app.run()
        # whatever the demo started ends with it
        for said in () if demo else app.loop_controls.at_work():
            call.note(clean_line(said, 300))
    finally:
        feed.stop()
    return app.return_code or 0


class EarlyFeed:
    """The live feed, started before the app exists; its messages are kept until the app can take them."""

    def __init__(
        self, project: Project, clock: Callable[[], int], stall_after_s: float | None = None, ddx: str | None = None
    ) -> None:
        self._live = Live(
            project, self._hear, clock=clock, patience=FIRST_PAINT_S, stall_after_s=stall_after_s, ddx=ddx
        )
        self._lock = threading.Lock()
        self._kept: tuple[Snapshot, Change] | None = None
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
        """Set the app that gets the messages once it runs."""
        self._on_change = on_change
        return self

    def start(self) -> None:
        """The app runs: pass on the kept message, and from now on each new one at once."""
        # passed on while the lock is held, so that no newer snapshot overtakes the kept one
        with self._lock:
            assert self._on_change is not None
            self._tell = self._on_change
            if self._kept is not None:
                self._tell(*self._kept)
                self._kept = None
            self._live.on_change = self._on_change

    def painted(self) -> None:
        """The queue is on screen: start the slower reads and garbage collection."""
        gc.enable()
        self._live.painted()

    def stop(self) -> None:
        """End the thread that reads."""
        self._live.stop()

    def _hear(self, snapshot: Snapshot, change: Change) -> None:
        """Receives the feed's messages until the app runs."""
        with self._lock:
            if self._tell is not None:
                self._tell(snapshot, change)
            elif self._kept is None:
                self._kept = snapshot, change
            else:
                # of several snapshots before the app runs only the newest is passed on, with the changes of all
                self._kept = snapshot, merge_changes((self._kept[1], change))
