"""The shell of the console: takes snapshots from the live feed, hands them to the screen in view.

News comes from the feed's own thread as one message that replaces an older one still waiting; what changed is
gathered meanwhile.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from rich.segment import Segment, Segments
from textual import events
from textual.binding import BindingType
from textual.driver import Driver
from textual.message import Message
from textual.screen import Screen

from helix_tui import barrier, terminal
from helix_tui.barrier import Barrier
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import DEFECT
from helix_tui.core.ground.process import allow_reads, end_reads, end_writes
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import now_ns
from helix_tui.core.snapshot.snapshot import Change, Snapshot, merge_changes
from helix_tui.core.supervision.decide.needs import Need, SplitNeeds, asked_of, needs_of, read_snoozes, split_snoozed
from helix_tui.garbage import GarbageCollection, set_thresholds, settle_memory
from helix_tui.keymap import bindings, checked_keymap
from helix_tui.screens import MODES, SCREENS, SHEETS, to_import_ahead
from helix_tui.screens.background import Closed, LoopCloser, Workers
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.layout import BREAKPOINTS, NARROW
from helix_tui.screens.navigation import Traveller
from helix_tui.settings import Layout, Settings, ViewBook
from helix_tui.themes import DEFAULT_THEME, PLAIN_THEME, THEMES

if TYPE_CHECKING:
    from helix_tui.core.editing.journal import JournalEntry
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.watch_and_notify import Concerns
    from helix_tui.screens.background import ConsoleMonitor, Notifier
    from helix_tui.screens.editing.change_runner import ChangeRunner
    from helix_tui.screens.loop.controls import LoopControls
    from helix_tui.widgets.chrome.prompt import Prompt

TICK_SECONDS = 1.0
"""How often ages on screen are looked at."""

AFTER_PAINT = 0.05
"""Seconds in which news is surely on screen: what Textual calls "after refresh" comes before it writes."""

SETTLE_AFTER = 0.5
"""Seconds after the start at which the journal is looked at for changes that were cut off."""

LOW = 16
"""Rows of the terminal below which no pane stands above another: each would show three lines."""

NEVER = 1_000_000
"""More columns than there are."""

PARSED_SOURCES = 512
"""Stylesheets and widgets' own styles that stay parsed: more than there are."""

PATIENCE = 2.0
"""Seconds that leaving waits for the command that changes the queue."""

_HERE = Path(__file__).parent

# at import, so that no message pump and no driver is made before both are in place
barrier.install()
terminal.install()

OnChange = Callable[[Snapshot, Change], None]

LookOut = Literal["no", "once", "live"]


class Feed(Protocol):
    """Where snapshots come from: `helix_tui.core.snapshot.Live`, or a test's own."""

    @property
    def snapshot(self) -> Snapshot: ...

    def start(self) -> None: ...

    def painted(self) -> None: ...

    def stop(self) -> None: ...


class NewsArrived(Message):
    """There is a newer snapshot. One of these in the queue is enough."""

    def can_replace(self, message: Message) -> bool:
        """An older one that still waits says nothing that this one does not."""
        return isinstance(message, NewsArrived)


class HelixApp(Traveller, barrier.GuardedApp):
    """The console on one project."""

    TITLE = "helix-tui"
    ALLOW_SELECT = False  # of text, by the mouse: Textual 8.2.8 fails at a widget that goes away meanwhile
    CSS_PATH: ClassVar[list[str | PurePath]] = [_HERE / "themes" / "app.tcss", *sorted(_HERE.glob("screens/**/*.tcss"))]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("app"), *bindings("tour")]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (8, "-short"), (LOW, "-tall")]
    MODES: ClassVar[dict[str, str | Callable[[], Screen[Any]]]] = {**MODES}
    DEFAULT_MODE = "queue"

    def __init__(
        self,
        open_feed: Callable[[OnChange], Feed],
        *,
        read_only: bool = False,
        pane: bool = False,
        ascii_only: bool = False,
        theme: str | None = None,
        screen: str = "queue",
        settings: Settings | None = None,
        kept: Layout | None = None,
        view_book: ViewBook | None = None,
        clock: Callable[[], int] = now_ns,
        ddx: str | None = None,
        look_out: LookOut = "no",
        own: Sequence[str] = (),
        home: bool = False,
    ) -> None:
        """Make a console.

        Args:
            open_feed: makes the feed, given whom to call with news.
            read_only: offer nothing that changes the queue.
            pane: keep to the layouts of a side pane at any width.
            ascii_only: the ASCII column of the alphabet.
            theme: by name; else the one of the settings, else the default.
            screen: the screen to open on, or the sheet that is laid on the queue.
            settings: what the user has set.
            kept: how the user left the console; None keeps it for this process alone.
            view_book: saved slices of the queue; None has those that the settings and the console bring along.
            clock: the present instant, for ages.
            ddx: the ddx to write with; else the one on PATH, else the embedded tracker.
            own: the words that start this program once more, for a loop in the background.
            home: open on what needs its user where something waits and nothing runs.
            look_out: whether to look for drift, orphaned claims and an unminded focus: all the time, or once.
        """
        self.DEFAULT_MODE = screen if screen in SCREENS else "queue"  # type: ignore[misc]  # read by super
        self._sheet = SHEETS.get(screen, "")
        self._standing = False
        self._styled = 0
        """With which colours, as Textual counts them, the stylesheets were parsed last."""
        self.barrier = Barrier(self)
        # with this, Textual's filter for NO_COLOR takes colours out instead of making them grey
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._workers = Workers(self)
        self.read_only = read_only
        self.kept = kept or Layout()
        self.view_book = view_book or ViewBook(settings.views if settings else ())
        self.ascii_only = ascii_only
        self.set_class(ascii_only, "-ascii")
        self.now = clock
        self.ddx_named = ddx
        self._own = tuple(own)
        self._home, self._pane = home, pane
        self._begun = False
        """The queue was told of once."""
        self._change_runner: ChangeRunner | None = None
        self._loop_controls: LoopControls | None = None
        self._notifier: Notifier | None = None
        self._settings = settings or Settings()
        self._look_out = look_out
        self.monitor: ConsoleMonitor | None = None
        self._feed = open_feed(self._news_from_thread)
        self.snapshot = self._feed.snapshot
        self.needs: tuple[Need, ...] = ()
        self.snoozed: tuple[Need, ...] = ()
        self._wakes_at = 0
        self.memory_health = ""
        self._closer = LoopCloser(self, read_only=read_only, tell=self._loop_closed)
        self._keys = 0
        self._garbage = GarbageCollection()
        self._importer: threading.Thread | None = None
        self._pending: tuple[Snapshot, Change, SplitNeeds] | None = None
        self.prepare: Callable[[Snapshot], None] | None = None
        self._lock = threading.Lock()
        # gathered until the app is mounted: before that nothing can be shown
        self._problems: list[str] = []
        self.keymap: dict[str, str] = {}
        self._apply(settings or Settings(), theme)

    def _apply(self, settings: Settings, theme: str | None) -> None:
        for known in THEMES:
            self.register_theme(known)
        # the call comes before the settings, and those before what the terminal can show
        wanted = theme or settings.theme or self._fitting_theme()
        if wanted not in self.available_themes:
            self._problems.append(f"unknown theme: {wanted}")
            wanted = DEFAULT_THEME
        self.theme = wanted
        # the stylesheets are read after this, with these colours; else they would be read twice before the first frame
        self.stylesheet.set_variables(self.get_css_variables())
        # Textual keeps 64 parsed sources of our 100, and each widget of a new kind has all of them read in turn
        self.stylesheet._parse_cache.maxsize = PARSED_SOURCES
        self.keymap, clashes = checked_keymap(settings.keymap)
        self.set_keymap(self.keymap)
        self._problems += [*settings.problems, *clashes, *filter(None, [self.kept.problem])]
        self._problems += [*self.view_book.problems, *self.bind_views()]

    def _fitting_theme(self) -> str:
        """The default theme, or the plain one for a terminal that has few colours or should show none."""
        few = self.console.color_system in (None, "standard", "windows")
        return PLAIN_THEME if few or self.no_color else DEFAULT_THEME

    @property
    def HORIZONTAL_BREAKPOINTS(self) -> list[tuple[int, str]]:  # type: ignore[override]
        """Those of the layouts that there is room for: of a side pane, or of a low terminal, one pane at a time."""
        if self._pane:
            return [entry for entry in BREAKPOINTS if entry[1] in NARROW]
        if self.size.height < LOW:
            # no width is that of a stack then; its class is named, so that a screen takes it off
            return [*((least, "-side" if name == "-stack" else name) for least, name in BREAKPOINTS), (NEVER, "-stack")]
        return list(BREAKPOINTS)

    def get_driver_class(self) -> type[Driver]:
        """Textual's own, made to survive what terminals do."""
        found = super().get_driver_class()
        return terminal.TerminalDriver if issubclass(terminal.TerminalDriver, found) else found

    def refresh_css(self, animate: bool = True) -> None:
        """Parse the stylesheets again where they hold no longer; not while starting, when they have just been read.

        Textual asks for it twice with each screen that is shown for the first time, which costs 40 ms: its widgets were
        styled as they were mounted.
        """
        if not self._standing:
            return
        screen, valid = self.screen, self._styled == self._css_update_count
        if valid and screen._css_update_count in (-1, self._css_update_count):
            screen._css_update_count = self._css_update_count
            return
        self._styled = self._css_update_count
        super().refresh_css(animate=animate)

    # --- news ---------------------------------------------------------------------------------------------

    async def on_load(self) -> None:
        """Begin to read while the terminal is being set up."""
        self.barrier.watch_threads()
        # a thread that reads gives way to a key within half a millisecond, not five
        sys.setswitchinterval(0.0005)
        # a console that was left for the tour comes back in the same process, where it ended all reads as it left
        allow_reads()
        self._feed.start()
        if self._home:
            await self.wait_for_first(lambda: self._pending)

    def on_mount(self) -> None:
        """Begin to count the seconds."""
        self.set_interval(TICK_SECONDS, self._tick)
        self._standing, self._styled = True, self._css_update_count
        set_thresholds()
        for problem in self._problems:
            self.say(problem, "warning")
        # nothing that can come after the first painted queue stands before it
        if not self.read_only:
            self.set_timer(SETTLE_AFTER, self._settle_journal)
        self.set_timer(SETTLE_AFTER, self._begin_watch)
        if self.kept.first_start and not self.tour_wanted:
            self.set_timer(SETTLE_AFTER, self.offer_tour)
        if self._sheet:
            self.call_after_refresh(self.run_action, self._sheet)

    def exit(self, result: int | None = None, return_code: int = 0, message: Any = None) -> None:
        """Leave at once: nobody waits for a git that is looking something up."""
        end_reads()
        super().exit(result, return_code, message)

    def on_unmount(self) -> None:
        """Stop reading; let a command that changes the queue come to its end, but not wait forever."""
        self.barrier.leave_threads()
        self._feed.stop()
        if self.monitor is not None:
            self.monitor.stop()
        # first no further command begins, then the one that runs has its time to end, last the journal is told
        changing = self._change_runner is not None and self._change_runner.stop()
        end_writes(PATIENCE)
        if self._change_runner is not None:
            if changing:
                self._change_runner.settle(PATIENCE)  # the journal is told how far it came
            self._change_runner.end()

    def _news_from_thread(self, snapshot: Snapshot, change: Change) -> None:
        """Called by the feed in its thread: what takes long is worked out there."""
        # what was found last: where looking fails, the snapshot is shown with that
        needs = SplitNeeds(self.needs, self.snoozed, self._wakes_at)
        with self.barrier.elsewhere():
            if self._look_out == "once":
                self._open_watch(snapshot, read_only=True).look(snapshot)
            elif self.monitor is not None:
                self.monitor.see(snapshot)
            needs = self._needs_of(snapshot)
        with self.barrier.elsewhere():
            # guarded apart: a screen that cannot prepare itself keeps nobody from the needs, nor from the news
            if self.prepare is not None:
                self.prepare(snapshot)
        self._leave_news(snapshot, change, needs)

    def _leave_news(self, snapshot: Snapshot, change: Change, needs: SplitNeeds) -> None:
        """Put news where the app finds it, and post a message if none is on its way.

        News that still waits is merged with newer: while the terminal takes nothing (ctrl+s, a connection
        that hangs) one snapshot is kept, not every one since.
        """
        with self._lock:
            waiting = self._pending
            if waiting is not None:
                change = merge_changes((waiting[1], change))
            self._pending = snapshot, change, needs
        if waiting is None:
            self.post_message(NewsArrived())

    def _needs_of(self, snapshot: Snapshot) -> SplitNeeds:
        if self.monitor is None:
            asked = asked_of(snapshot.project)
            needs = needs_of(
                snapshot.queue, snapshot.runs, snapshot.tracker, questions=asked, attempts=snapshot.attempts
            )
            return split_snoozed(needs, read_snoozes(snapshot.project), self.now())
        return self.monitor.needs(snapshot, self.now())

    def refresh_needs(self) -> None:
        """Something that waits on a person was dealt with beside the queue, or put off: look again, in a thread."""

        def work() -> None:
            snapshot = self._feed.snapshot
            with self.barrier.elsewhere():
                self._leave_news(snapshot, Change(), self._needs_of(snapshot))

        self.run_worker(work, group="needs", thread=True)

    def _open_watch(self, snapshot: Snapshot, *, read_only: bool) -> ConsoleMonitor:
        from helix_tui.screens.background import ConsoleMonitor

        self.monitor = ConsoleMonitor(
            snapshot, self._concerns_from_thread, read_only=read_only, ddx=self.ddx_named, clock=self.now
        )
        return self.monitor

    def _begin_watch(self) -> None:
        """Look out, once the queue is on screen."""
        if self._look_out == "live" and self.monitor is None:
            self._open_watch(self.snapshot, read_only=self.read_only).start(self.snapshot)

    def _concerns_from_thread(self, concerns: Concerns) -> None:
        """Called by the monitor in its thread: what waits on a person is another list now."""
        snapshot = self._feed.snapshot
        needs = self._needs_of(snapshot)
        self._leave_news(snapshot, Change(), needs)
        if concerns.minded:
            count = len(concerns.minded)
            self.call_later(self.say, f"updated the focus: {counted(count, 'bead')} changed for it")
        if concerns.trouble:
            self.call_later(self.say, clean_line(concerns.trouble, 300), "warning")

    def acknowledge(self, bead_ids: Iterable[str]) -> None:
        """The drift of these beads has been seen; what that leaves is told when it is written down."""
        if self.monitor is not None:
            self.monitor.acknowledge(bead_ids)

    def on_news_arrived(self) -> None:
        """Take the newest snapshot, with everything that changed since the last one taken."""
        with self._lock:
            news, self._pending = self._pending, None
        # the news was taken by an earlier message, or the console leaves
        if news is None or not self.screen_stack:
            return
        notices_before = self.snapshot.notices
        self.snapshot, change, needs = news
        # the first snapshot that was read, not the one that the app was made with
        begins = not self._begun and self.snapshot.condition != "loading"
        self._begun = self._begun or begins
        self.needs, self.snoozed, self._wakes_at = needs.active, needs.snoozed, needs.wakes_at
        looked = self.has_looked
        if looked and self._look_out == "live":  # what is there at the first look is no news
            self.notifier.see(self.snapshot, self.needs)
        for notice in self.snapshot.notices:
            if notice.kind == "watch" and notice not in notices_before:
                self.say(notice.text, "warning")
        screen = self.screen
        log = logs.logger("app")
        if log.isEnabledFor(10):  # logging.DEBUG
            log.debug(
                "repainting %s for snapshot %d: %d beads, %d attempts, runs %s, everything %s",
                type(screen).__name__,
                self.snapshot.generation,
                len(change.beads),
                len(change.attempts),
                change.runs,
                change.everything,
            )
        # what is seen around a sheet follows too; a screen that is covered catches up when it is gone to
        for shown in self.screen_stack if screen.is_modal else (screen,):
            if isinstance(shown, HelixScreen):
                with self.barrier.guard(shown):
                    shown.receive(self.snapshot, change)
        if change.attempts or change.everything or begins:
            self._closer.settle_ended(self.snapshot)
        self._open_home(looked)
        if begins:
            self.set_timer(AFTER_PAINT, self._feed.painted)
        # a whole queue has just been read: what it replaced is garbage, what it is made of stands for long
        if (begins or change.everything) and not self.is_headless:
            self.set_timer(AFTER_PAINT, settle_memory)

    def _open_home(self, looked: bool) -> None:
        """Begin on what waits for its user, where nothing runs; not once a key was pressed, or all was looked at."""
        if not self._home or self.snapshot.condition == "loading":
            return
        if self.opens_home(self.snapshot, self.needs) and len(self.screen_stack) == 1:
            self._home = False
            self.action_needs_me()
        elif looked or any(run.live for run in self.snapshot.runs):
            self._home = False

    def _loop_closed(self, closed: Closed) -> None:
        """Outcomes have settled what attempts were given."""
        self.memory_health = closed.health
        self._show_time()
        if closed.said:
            self.say(f"memories: {closed.said}")

    def on_key(self, event: events.Key) -> None:
        """Somebody is at the keys. What was typed ahead of a line belongs to it, not to a binding."""
        self._keys += 1
        self._home = False
        prompt = next(iter(self.screen.query_children("Prompt")), None) if self.screen_stack else None
        if prompt is not None and cast("Prompt", prompt).take_ahead(event):
            event.stop()
            event.prevent_default()

    def _show_time(self) -> None:
        """Let the screen in view show ages anew; on the way out there is none."""
        screen = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(screen, HelixScreen) and not screen.failed:
            with self.barrier.guard(screen):
                screen.tick()

    def _tick(self) -> None:
        self._show_time()
        # the first snoozed need is due; the answer, from a thread, names the next instant
        if 0 < self._wakes_at <= self.now():
            self._wakes_at = 0
            self.refresh_needs()
        if self._notifier is not None:
            self._notifier.tick(self.snapshot, self.needs)
        busy, self._keys = bool(self._keys), 0
        self._garbage.tick(busy, freeze=not self.is_headless)
        if not busy and self._begun and not self.is_headless:
            self._import_ahead()

    def _import_ahead(self) -> None:
        """Import what other screens need, in a thread: a key that first leads there waits 10 to 120 ms less."""
        names = to_import_ahead(travelled=self.travelled)
        if not names or (self._importer is not None and self._importer.is_alive()):
            return

        def work() -> None:
            with self.barrier.elsewhere():
                for name in names:
                    import_module(name)

        # nothing waits for its end, leaving least of all
        self._importer = threading.Thread(target=work, name="import-ahead", daemon=True)
        self._importer.start()

    # --- changing -----------------------------------------------------------------------------------------

    @property
    def change_runner(self) -> ChangeRunner:
        """What changes the queue; made when it is first asked for."""
        if self._change_runner is None:
            from helix_tui.screens.editing.change_runner import open_change_runner

            self._change_runner = open_change_runner(self, read_only=self.read_only, ddx=self.ddx_named, clock=self.now)
        return self._change_runner

    def _settle_journal(self) -> None:
        """Settle what a program that died left in the journal, where there is one."""

        def settled_now(settled: tuple[JournalEntry, ...]) -> None:
            for entry in settled:
                self.say(f"settled an interrupted change: {clean_line(entry.title, 120)} ({entry.result})")

        if self.snapshot.project.helix_dir.joinpath("journal.jsonl").exists():
            self.change_runner.recover(settled_now, lambda error: self.say(clean_line(str(error), 300), "warning"))

    def show_pending(self) -> None:
        """Mark what is being changed, on every screen."""
        change_runner = self.change_runner
        work = ""
        if change_runner.pending:
            ran, of = change_runner.progress or (0, 0)
            work = f"changing {ran:,} of {of:,}" if of > 1 else "changing"
        for screen in self.screen_stack:
            if isinstance(screen, HelixScreen):
                with self.barrier.guard(screen):
                    screen.show_pending(change_runner.pending, work)

    def changed(self, beads: tuple[str, ...], created: tuple[str, ...]) -> None:
        """A change was made: marks of it go, and the cursor goes to what is new once it is read."""
        for screen in self.screen_stack:
            if isinstance(screen, HelixScreen):
                with self.barrier.guard(screen):
                    screen.after_change(beads, created)

    # --- failing ------------------------------------------------------------------------------------------

    def _handle_exception(self, error: Exception) -> None:
        """Textual's own way ends the app; see `helix_tui.barrier`."""
        self.barrier.caught(error)

    def end_by_defect(self, line: str) -> None:
        """Leave, the terminal restored, with one line on it and exit code 70."""
        # of several defects on the way out the first one is told
        if self._return_code != DEFECT:
            self._return_code = DEFECT
            self._exit_renderables = [Segments([Segment(f"helix-tui: {line}\n")])]
        self._close_messages_no_wait()

    def panic(self, *renderables: Any) -> None:
        """Called by the driver when the terminal can no longer be read."""
        logs.logger("app").critical("the terminal can no longer be read")
        self.end_by_defect(f"the terminal can no longer be read; see {logs.shown_file()}")

    def action_try_again(self) -> None:
        """Retry what could not be shown."""
        self.barrier.try_again()

    # --- steering -----------------------------------------------------------------------------------------

    @property
    def status_summary(self) -> StatusSummary | None:
        """Where the work stands and what should come next; None before anybody looked."""
        return self.monitor.concerns.status_summary if self.monitor is not None else None

    @property
    def notifier(self) -> Notifier:
        """What tells somebody who looks elsewhere; made once there is something to compare."""
        if self._notifier is None:
            from helix_tui.screens.background import Notifier

            self._notifier = Notifier(self, self._settings, read_only=self.read_only, clock=self.now)
        return self._notifier

    def write_terminal(self, text: str) -> None:
        """Write a sequence to the terminal itself, beside what is drawn."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(text)

    @property
    def has_looked(self) -> bool:
        """Whether everything that waits on a person was looked for at least once, or nobody looks."""
        if self._look_out == "no":
            return True
        return self.status_summary is not None and bool(self.status_summary.verdict.next_action)

    @property
    def loop_controls(self) -> LoopControls:
        """What can be done to the loop; made when it is first asked for."""
        if self._loop_controls is None:
            from helix_tui.screens.loop.controls import LoopControls

            self._loop_controls = LoopControls(self, own=self._own, ddx=self.ddx_named, read_only=self.read_only)
        return self._loop_controls

    # --- looks and words ----------------------------------------------------------------------------------

    def action_use_theme(self, name: str) -> None:
        """Other colours, at once."""
        self.theme = name

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """The screen as a picture, in a file."""
        from helix_tui.screens.picture import keep_picture, picture_of

        name = filename or f"helix-tui-{self.current_mode}"
        keep = partial(keep_picture, picture_of(self), name, Path(path) if path else None)

        def work() -> None:
            try:
                said, severity = f"screenshot: {clean_line(str(keep()), 300)}", "information"
            except OSError as error:
                said, severity = f"the screenshot was not saved: {clean_line(str(error), 300)}", "warning"
            self.call_from_thread(self.say, said, severity)

        self.run_worker(work, group="screenshot", thread=True, exclusive=True)

    def copy(self, text: str, what: str) -> None:
        """To the clipboard, through the terminal (OSC 52), and through tmux where we are in one."""
        self.copy_to_clipboard(text)
        # tmux drops OSC 52 unless it is told otherwise, so there its own buffer gets the text too
        if "TMUX" not in os.environ:
            self.say(f"copied {what}, through the terminal")
            return
        from helix_tui.screens.external_editor import into_tmux

        def work() -> None:
            said, well = into_tmux(text, what, os.environ)
            self.call_from_thread(self.say, said, "information" if well else "warning")

        self.run_worker(work, group="copy", thread=True, exclusive=True)
