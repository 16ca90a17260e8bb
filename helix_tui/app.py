"""The app: takes snapshots from the live feed and passes them to the screen in view.

Snapshots come from the feed's thread as one message that replaces an older one still waiting; changes are
gathered meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast
from weakref import WeakSet

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
from helix_tui.core.ground.process import allow_programs, end_reads, end_writes
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import now_ns
from helix_tui.core.snapshot.snapshot import Change, Snapshot, merge_changes
from helix_tui.core.supervision.decide.needs import Need, SplitNeeds, asked_of, needs_of, read_snoozes, split_snoozed
from helix_tui.garbage import GarbageCollection, set_thresholds, settle_memory
from helix_tui.keymap import bindings, checked_keymap
from helix_tui.screens import HOME, MODES, SCREENS, SHEETS, to_import_ahead
from helix_tui.screens.background import Closed, LoopCloser, UnwaitedThreads
from helix_tui.screens.base import HelixScreen
from helix_tui.screens.layout import BREAKPOINTS, NARROW
from helix_tui.screens.navigation import Traveller
from helix_tui.settings.file import Settings
from helix_tui.settings.layout import Layout
from helix_tui.settings.views import ViewBook
from helix_tui.textual_inside import missing
from helix_tui.themes import DEFAULT_THEME, PLAIN_THEME, THEMES

if TYPE_CHECKING:
    from helix_tui.core.editing.journal import JournalEntry
    from helix_tui.core.supervision.decide.check import StatusSummary
    from helix_tui.core.supervision.decide.monitor import Concerns
    from helix_tui.screens.editing.change_runner import ChangeRunner
    from helix_tui.screens.loop.controls import LoopControls
    from helix_tui.screens.watch import ConsoleMonitor, Notifier
    from helix_tui.widgets.chrome.bottom import Prompt

TICK_SECONDS = 1.0
"""How often ages on screen are refreshed."""

AFTER_PAINT = 0.05
"""Seconds until an update is certainly on screen: Textual's "after refresh" comes before it writes."""

SETTLE_AFTER = 0.5
"""Seconds after the start at which the journal is checked for interrupted changes."""

LOW = 16
"""The terminal height below which panes are not stacked: each would show three lines."""

NEVER = 1_000_000
"""More columns than any terminal has."""

PATIENCE = 0.7
"""Seconds that quitting waits for a command that is changing the queue; the next start settles the journal."""

_HERE = Path(__file__).parent

# at import, so that both are in place before any message pump or driver is created
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
    """There is a newer snapshot. One such message in the queue is enough."""

    def can_replace(self, message: Message) -> bool:
        """Replaces any older one still waiting."""
        return isinstance(message, NewsArrived)


class HelixApp(Traveller, barrier.GuardedApp):
    """The console on one project."""

    TITLE = "helix-tui"
    ALLOW_SELECT = False  # of text, by mouse: Textual 8.2.8 fails if a widget disappears meanwhile
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
            open_feed: creates the feed, given the callback for updates.
            read_only: offer nothing that changes the queue.
            pane: keep to the layouts of a side pane at any width.
            ascii_only: the ASCII column of the alphabet.
            theme: its name; else that of the settings, else the default.
            screen: the screen to open on, or the sheet to open over the queue.
            settings: the user's settings.
            kept: the saved layout; None keeps it for this process only.
            view_book: saved views; None uses those of the settings and the built-in ones.
            clock: gives the present instant, for ages.
            ddx: the ddx to write with; else the one on PATH, else the embedded tracker.
            own: the command that starts this program again, for a background loop.
            home: open on Needs me if something waits and nothing runs.
            look_out: whether to look for drift, orphaned claims and an outdated focus all the time, or once.
        """
        # read by super
        self.DEFAULT_MODE = HOME if home else screen if screen in SCREENS else "queue"  # type: ignore[misc]
        self.MODES = {**MODES, HOME: self.make_first_screen}  # type: ignore[misc]
        self._sheet = SHEETS.get(screen, "")
        self.terminal: terminal.TerminalDriver | None = None
        self.barrier = Barrier(self)
        self.opened = WeakSet()
        # with this, Textual's filter for NO_COLOR takes colours out instead of making them grey
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self.read_only = read_only
        self.kept = kept or Layout()
        self.view_book = view_book or ViewBook(settings.views if settings else ())
        self.ascii_only = ascii_only
        self.set_class(ascii_only, "-ascii")
        self.now = clock
        self.ddx_named = ddx
        self.own_command = tuple(own)
        self._home, self._pane = home, pane
        self._begun = False
        """Whether a queue has been shown once."""
        self._change_runner: ChangeRunner | None = None
        self._loop_controls: LoopControls | None = None
        self._notifier: Notifier | None = None
        self._settings, self._look_out = settings or Settings(), look_out
        self.monitor: ConsoleMonitor | None = None
        self._feed = open_feed(self._news_from_thread)
        self.snapshot = self._feed.snapshot
        self.needs: tuple[Need, ...] = ()
        self.snoozed: tuple[Need, ...] = ()
        self._wakes_at = self._keys = 0
        self.memory_health = ""
        self._closer = LoopCloser(self, read_only=read_only, tell=self._loop_closed)
        self._garbage = GarbageCollection()
        self._importer: threading.Thread | None = None
        self._pending: tuple[Snapshot, Change, SplitNeeds] | None = None
        self.prepare: Callable[[Snapshot], None] | None = None
        self._lock = threading.Lock()
        # collected until the app is mounted: before that nothing can be shown
        self._problems: list[str] = []
        self.keymap: dict[str, str] = {}
        self._apply(settings or Settings(), theme)

    def _apply(self, settings: Settings, theme: str | None) -> None:
        for known in THEMES:
            self.register_theme(known)
        # the command line takes precedence over the settings, and those over what the terminal can show
        wanted = theme or settings.theme or self._fitting_theme()
        if wanted not in self.available_themes:
            self._problems.append(f"unknown theme: {wanted}")
            wanted = DEFAULT_THEME
        self.theme = wanted
        # the stylesheets are read after this, with these colours; else they would be read twice before the first frame
        self.stylesheet.set_variables(self.get_css_variables())
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
        """The layouts that fit: those of a side pane or a low terminal show one pane at a time."""
        if self._pane:
            return [entry for entry in BREAKPOINTS if entry[1] in NARROW]
        if self.size.height < LOW:
            # then no width gives a stack; its class is listed, so that a screen removes it
            return [*((least, "-side" if name == "-stack" else name) for least, name in BREAKPOINTS), (NEVER, "-stack")]
        return list(BREAKPOINTS)

    def get_driver_class(self) -> type[Driver]:
        """Textual's driver, made to survive what terminals do."""
        found = super().get_driver_class()
        return terminal.TerminalDriver if issubclass(terminal.TerminalDriver, found) else found

    # --- updates------------------------------------------------------------------------------------------

    async def on_load(self) -> None:
        """Start reading while the terminal is being set up."""
        self.barrier.watch_threads()
        asyncio.get_running_loop().set_default_executor(UnwaitedThreads(thread_name_prefix="asyncio"))
        # a reading thread yields to a key within half a millisecond, not five
        sys.setswitchinterval(0.0005)
        # an earlier console of this process, in tests, stopped all programs when it quit
        allow_programs()
        self._feed.start()
        if self._home:
            await self.wait_for_first(lambda: self._pending)

    def on_mount(self) -> None:
        """Start the timers."""
        self.set_interval(TICK_SECONDS, self._tick)
        self.styles_are_read()
        set_thresholds()
        for problem in self._problems:
            self.say(problem, "warning")
        for name in missing():
            logs.logger("app").warning("this Textual has no %s: %s", name.name, name.without)
        # everything that can wait starts after the first painted queue
        if not self.read_only:
            self.set_timer(SETTLE_AFTER, self._settle_journal)
        self.set_timer(SETTLE_AFTER, self._begin_watch)
        if self.kept.first_start:
            self.set_timer(SETTLE_AFTER, self.offer_tour)
        if self._sheet:
            self.call_after_refresh(self.run_action, self._sheet)

    def exit(self, result: int | None = None, return_code: int = 0, message: Any = None) -> None:
        """Quit at once, without waiting for a git that is only reading."""
        self.leaving = True
        end_reads()
        super().exit(result, return_code, message)

    def on_unmount(self) -> None:
        """Stop reading; let a command that changes the queue finish, within a time limit."""
        self.barrier.leave_threads()
        self._feed.stop()
        if self.monitor is not None:
            self.monitor.stop()
        # first start no further command, then let the running one end, then record it in the journal
        changing = self._change_runner is not None and self._change_runner.stop()
        end_writes(PATIENCE)
        if self._change_runner is not None:
            if changing:
                self._change_runner.settle(PATIENCE / 2)  # the journal records how far it got
            self._change_runner.end()

    def _news_from_thread(self, snapshot: Snapshot, change: Change) -> None:
        """Called by the feed in its thread: expensive work is done there."""
        # the last findings: if looking fails, the snapshot is shown with these
        needs = SplitNeeds(self.needs, self.snoozed, self._wakes_at)
        with self.barrier.elsewhere():
            if self._look_out == "once":
                self._open_watch(snapshot, read_only=True).look(snapshot)
            elif self.monitor is not None:
                self.monitor.see(snapshot)
            needs = self._needs_of(snapshot)
        with self.barrier.elsewhere():
            # guarded separately: a screen that fails to prepare must not hold back needs or updates
            if self.prepare is not None:
                self.prepare(snapshot)
        self._leave_news(snapshot, change, needs)

    def _leave_news(self, snapshot: Snapshot, change: Change, needs: SplitNeeds) -> None:
        """Store an update for the app, and post a message if none is pending.

        A waiting update is merged with a newer one: while the terminal takes no output (ctrl+s, a connection
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
        """A need was dealt with outside the queue, or snoozed: look again, in a thread."""

        def work() -> None:
            snapshot = self._feed.snapshot
            with self.barrier.elsewhere():
                self._leave_news(snapshot, Change(), self._needs_of(snapshot))

        self.run_worker(work, group="needs", thread=True)

    def _open_watch(self, snapshot: Snapshot, *, read_only: bool) -> ConsoleMonitor:
        from helix_tui.screens.watch import ConsoleMonitor

        self.monitor = ConsoleMonitor(
            snapshot, self._concerns_from_thread, read_only=read_only, ddx=self.ddx_named, clock=self.now
        )
        return self.monitor

    def _begin_watch(self) -> None:
        """Start the monitor, once the queue is on screen."""
        if self._look_out == "live" and self.monitor is None:
            # the newest one: what arrived before the monitor was there is not passed on again
            self._open_watch(self.snapshot, read_only=self.read_only).start(self._feed.snapshot)

    def _concerns_from_thread(self, concerns: Concerns) -> None:
        """Called by the monitor in its thread: the needs have changed."""
        snapshot = self._feed.snapshot
        needs = self._needs_of(snapshot)
        self._leave_news(snapshot, Change(), needs)
        if concerns.minded:
            count = len(concerns.minded)
            self.call_later(self.say, f"updated the focus: {counted(count, 'bead')} changed for it")
        if concerns.trouble:
            self.call_later(self.say, clean_line(concerns.trouble, 300), "warning")

    def acknowledge(self, bead_ids: Iterable[str]) -> None:
        """Mark the drift of these beads as seen; the needs are updated once that is stored."""
        if self.monitor is not None:
            self.monitor.acknowledge(bead_ids)

    def on_news_arrived(self) -> None:
        """Take the newest snapshot, with everything that changed since the last one taken."""
        with self._lock:
            news, self._pending = self._pending, None
        # an earlier message took the update, or the console is quitting
        if news is None or not self.screen_stack:
            return
        notices_before = self.snapshot.notices
        self.snapshot, change, needs = news
        # the first snapshot that was read, not the one that the app was created with
        begins = not self._begun and self.snapshot.condition != "loading"
        self._begun = self._begun or begins
        self.needs, self.snoozed, self._wakes_at = needs.active, needs.snoozed, needs.wakes_at
        looked = self.has_looked
        if looked and self._look_out == "live":  # whatever exists at the first look is not new
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
        # the screen around a sheet is updated too; a covered screen catches up when it comes into view
        for shown in self.screen_stack if screen.is_modal else (screen,):
            if isinstance(shown, HelixScreen):
                with self.barrier.guard(shown):
                    shown.receive(self.snapshot, change)
        if change.attempts or change.everything or begins:
            self._closer.settle_ended(self.snapshot)
        self._open_home(looked)
        if begins:
            self.set_timer(AFTER_PAINT, self._feed.painted)
        # a whole queue has just been read: the replaced one is garbage, the new one will live long
        if (begins or change.everything) and not self.is_headless:
            self.set_timer(AFTER_PAINT, settle_memory)

    def _open_home(self, looked: bool) -> None:
        """Open on Needs me if nothing runs; not after a key was pressed, or once everything was read."""
        if not self._home or self.snapshot.condition == "loading":
            return
        if self.opens_home(self.snapshot, self.needs) and len(self.screen_stack) == 1:
            self._home = False
            self.action_needs_me()
        elif looked or any(run.live for run in self.snapshot.runs):
            self._home = False

    def _loop_closed(self, closed: Closed) -> None:
        """Outcomes of ended attempts have been settled in the memory."""
        self.memory_health = closed.health
        self._show_time()
        if closed.said:
            self.say(closed.said)

    def on_key(self, event: events.Key) -> None:
        """A key was pressed. Keys typed ahead for a prompt belong to it, not to bindings."""
        self._keys += 1
        self._home = False
        prompt = next(iter(self.screen.query_children("Prompt")), None) if self.screen_stack else None
        if prompt is not None and cast("Prompt", prompt).take_ahead(event):
            event.stop()
            event.prevent_default()

    def _show_time(self) -> None:
        """Let the screen in view refresh its ages; while quitting there is none."""
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
        """Import what other screens need, in a thread: the first visit is 10 to 120 ms faster."""
        names = to_import_ahead(travelled=self.travelled)
        if not names or (self._importer is not None and self._importer.is_alive()):
            return

        def work() -> None:
            with self.barrier.elsewhere():
                for name in names:
                    import_module(name)

        # nothing waits for it, not even quitting
        self._importer = threading.Thread(target=work, name="import-ahead", daemon=True)
        self._importer.start()

    # --- changing -----------------------------------------------------------------------------------------

    @property
    def change_runner(self) -> ChangeRunner:
        """The change runner; created on first use."""
        if self._change_runner is None:
            from helix_tui.screens.editing.change_runner import open_change_runner

            self._change_runner = open_change_runner(self, read_only=self.read_only, ddx=self.ddx_named, clock=self.now)
        return self._change_runner

    def _settle_journal(self) -> None:
        """Settle the journal entries of a process that died, if there is a journal."""

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
        """A change was made: remove its marks, and move the cursor to a new bead once it is read."""
        for screen in self.screen_stack:
            if isinstance(screen, HelixScreen):
                with self.barrier.guard(screen):
                    screen.after_change(beads, created)

    # --- failing ------------------------------------------------------------------------------------------

    def failed(self, error: Exception) -> None:
        """Textual's own way ends the app; see `helix_tui.barrier`."""
        self.barrier.caught(error)

    def end_by_defect(self, line: str) -> None:
        """Quit with the terminal restored, one line on it, and exit code 70."""
        # of several errors while quitting, the first is reported
        if self.return_code != DEFECT:
            self.exit(None, DEFECT, Segments([Segment(f"helix-tui: {line}\n")]))

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
        """The state of the work and the next action; None before the first look."""
        return self.monitor.concerns.status_summary if self.monitor is not None else None

    @property
    def notifier(self) -> Notifier:
        """The notifier; created once there is something to compare."""
        if self._notifier is None:
            from helix_tui.screens.watch import Notifier

            self._notifier = Notifier(self, self._settings, read_only=self.read_only, clock=self.now)
        return self._notifier

    def write_terminal(self, text: str) -> None:
        """Write a sequence directly to the terminal."""
        if self.terminal is not None and not self.is_headless:
            self.terminal.write(text)

    @property
    def has_looked(self) -> bool:
        """Whether the monitor has looked for all needs at least once, or does not run."""
        if self._look_out == "no":
            return True
        return self.status_summary is not None and bool(self.status_summary.verdict.next_action)

    @property
    def loop_controls(self) -> LoopControls:
        """The loop controls; created on first use."""
        if self._loop_controls is None:
            from helix_tui.screens.loop.controls import LoopControls

            self._loop_controls = LoopControls(self, own=self.own_command, ddx=self.ddx_named, read_only=self.read_only)
        return self._loop_controls

    # --- theme and notices-------------------------------------------------------------------------------

    def action_use_theme(self, name: str) -> None:
        """Change the theme, at once."""
        self.theme = name

    def action_screenshot(self, filename: str | None = None, path: str | None = None) -> None:
        """Save the screen as a picture."""
        from helix_tui.screens.picture import keep_picture, picture_of

        name = filename or f"helix-tui-{getattr(self.screen_stack[0], 'NAME', '') or self.current_mode}"
        keep = partial(keep_picture, picture_of(self), name, Path(path) if path else None)

        def work() -> None:
            try:
                said, severity = f"screenshot: {clean_line(str(keep()), 300)}", "information"
            except OSError as error:
                said, severity = f"the screenshot was not saved: {clean_line(str(error), 300)}", "warning"
            self.call_from_thread(self.say, said, severity)

        self.run_worker(work, group="screenshot", thread=True, exclusive=True)

    def copy(self, text: str, what: str) -> None:
        """Copy to the clipboard, through the terminal (OSC 52), and through tmux if inside it."""
        self.copy_to_clipboard(text)
        # tmux drops OSC 52 unless configured otherwise, so its own buffer gets the text too
        if "TMUX" not in os.environ:
            self.say(f"copied {what}, through the terminal")
            return
        from helix_tui.screens.external_editor import into_tmux

        def work() -> None:
            said, well = into_tmux(text, what, os.environ)
            self.call_from_thread(self.say, said, "information" if well else "warning")

        self.run_worker(work, group="copy", thread=True, exclusive=True)
