"""Navigation: to a screen, a bead, an attempt, or a sheet over the present screen.

``:`` leads to beads by id or title, to screens and to commands; the palette offers the same commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import isawaitable
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from textual.await_complete import AwaitComplete
from textual.message import Message
from textual.screen import Screen

from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import BY_ID, as_typed, instead_of, shown, taken_by
from helix_tui.screens import HOME, MODES
from helix_tui.screens.base import Dismissal, HelixScreen, breakpoint_of
from helix_tui.screens.commands.commands import Command, commands, keys_bound_on, ways_to
from helix_tui.screens.layout import NARROW
from helix_tui.settings.views import OF_NEEDS
from helix_tui.textual_inside import OpenedApp
from helix_tui.widgets.chrome.header import StatusBar, Tabs
from helix_tui.widgets.chrome.notices import PassingNotice

if TYPE_CHECKING:
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.core.supervision.decide.needs import Need, SplitNeeds
    from helix_tui.screens.help import Tour
    from helix_tui.settings.layout import Layout
    from helix_tui.settings.views import ViewBook
    from helix_tui.widgets.chrome.bottom import Prompt

    FirstNews = tuple[Snapshot, Change, SplitNeeds]

NOTICE_S = 4.0
"""How long a notice is shown."""

HOME_WAIT_S = 0.25
"""How long the first frame waits for the queue, to choose the first screen."""


class Traveller(OpenedApp):
    """The console's app as far as it navigates between screens."""

    snapshot: Snapshot
    needs: tuple[Need, ...]
    snoozed: tuple[Need, ...]
    keymap: dict[str, str]
    view_book: ViewBook
    kept: Layout
    is_demo = False
    """Whether the project is the demo's."""
    travelled = False
    """Whether the user has changed the screen."""
    tour: Tour | None = None
    opened: WeakSet[Any]
    told: tuple[PassingNotice, ...] = ()
    """The notices of the last few seconds."""
    own_command: tuple[str, ...] = ()
    """The command that starts this program again."""
    _home = False
    """Whether to open on Needs me."""
    _first_news: FirstNews | None = None
    _queue_is_home = False
    """Whether the queue is the screen of the mode `HOME`."""
    _line: Prompt | None = None
    """The prompt of ``:``."""
    _unknown_key = ""
    """The last key that did nothing: while held down, it is reported once."""

    def say(self, text: str, severity: Any = "information") -> None:
        """Show a notice; its text is never parsed as markup."""
        self.notify(text, severity=severity)

    def notify(self, message: str, *, title: str = "", severity: Any = "information", **_: Any) -> None:
        """Show a notice for `NOTICE_S`, in lines of its own on every screen: Textual's lie over the text."""
        notice = PassingNotice(": ".join(filter(None, (title, message))), severity)
        self.told = (*self.told, notice)
        self._show_notices()
        self.set_timer(NOTICE_S, partial(self._forget_notice, notice))

    def clear_notifications(self) -> None:
        """Forget all notices."""
        self.told = ()
        self._show_notices()

    def _forget_notice(self, notice: PassingNotice) -> None:
        self.told = tuple(other for other in self.told if other is not notice)
        self._show_notices()

    def _show_notices(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, HelixScreen):
                screen.show_notices(self.told)

    # --- home ---------------------------------------------------------------------------------------------

    async def wait_for_first(self, news: Callable[[], FirstNews | None]) -> None:
        """Wait briefly for the queue, to choose the first screen."""
        until = monotonic() + HOME_WAIT_S
        while (found := news()) is None and monotonic() < until:  # noqa: ASYNC110  # it comes from a thread
            await asyncio.sleep(0.005)
        self._first_news = found

    def make_first_screen(self) -> Screen[Any]:
        """The first screen of a console that may open on Needs me: that, or the queue.

        Both in one mode, since the mode is fixed as the app is made, before anything of the queue is known.
        """
        news, self._first_news = self._first_news, None
        self._queue_is_home = news is None or not self.opens_home(news[0], news[2].active)
        if news is not None and not self._queue_is_home:
            self.snapshot, self.needs, self.snoozed = news[0], news[2].active, news[2].snoozed
            self._home = False
        return MODES["queue" if self._queue_is_home else HOME]()

    def opens_home(self, snapshot: Snapshot, needs: Sequence[Need]) -> bool:
        """Whether something waits, nothing runs, and there is room."""
        return bool(needs) and f"-{breakpoint_of(self)}" not in NARROW and not any(run.live for run in snapshot.runs)

    def pop_screen(self) -> AwaitComplete:
        """As in Textual; the screen knows that it has left."""
        screen = self.screen
        if isinstance(screen, Dismissal):
            if screen.leave_now():
                return cast(AwaitComplete, AwaitComplete.nothing())  # type: ignore[no-untyped-call]
            screen.has_left = True
        return super().pop_screen()

    # --- screens and sheets -------------------------------------------------------------------------------

    async def action_show_screen(self, name: str) -> None:
        """Go to a screen by name, closing any sheets on the present one.

        Not for a worker: cancelled halfway, it would break the loops of the app and of the closing screen. Nothing
        here waits for a screen to end, for it may be that screen's own loop that runs this.
        """
        self.travelled = True
        while len(self.screen_stack) > 1:
            self.pop_screen()  # the app waits for it to end after this
        left = self.current_mode
        await self.switch_mode(HOME if name == "queue" and self._queue_is_home else name)
        if left == HOME and not self._queue_is_home:
            self.remove_mode(HOME)  # from now on it opens over other screens; the app waits for this one too

    async def action_show_table(self, name: str) -> None:
        """Go to a table of Insights by name, from anywhere."""
        from helix_tui.screens.insights import InsightsScreen

        await self.action_show_screen("insights")
        if isinstance(self.screen, InsightsScreen):
            self.screen.show_table(name)

    async def on_tabs_pressed(self, event: Tabs.Pressed) -> None:
        """Go to the screen whose tab was clicked."""
        await self.action_show_screen(event.name)

    def action_next_action(self) -> None:
        """Show NEXT_ACTION with its reasons."""
        from helix_tui.screens.loop.sheets import NextSheet

        self._lay_on(NextSheet)

    def action_loop(self) -> None:
        """Show the loop and its actions."""
        from helix_tui.screens.loop.sheets import LoopSheet
        from helix_tui.screens.queue.queue_screen import QueueScreen

        bead_id = self.screen.selected_bead if isinstance(self.screen, QueueScreen) else None
        self._lay_on(LoopSheet, bead_id or "")

    def action_needs_me(self) -> None:
        """Show what needs the user."""
        from helix_tui.screens.needs.needs_screen import NeedsScreen

        self._lay_on(NeedsScreen)

    def action_help(self) -> None:
        """Show every key."""
        from helix_tui.screens.help import HelpScreen

        self._lay_on(HelpScreen)

    def list_unread(self) -> None:
        """Open the list of unreadable lines."""
        from helix_tui.screens.queue.queue_screen import UnreadScreen

        self._lay_on(UnreadScreen)

    action_unread = list_unread

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open already."""
        from helix_tui.screens.commands.palette import CommandsSheet

        if not isinstance(self.screen, CommandsSheet):
            offered = self.offered(self.screen)
            self.push_screen(CommandsSheet(offered, self.keys_of(offered), self._do))

    def _lay_on(self, kind: Callable[..., HelixScreen], *about: str) -> None:
        """Open a screen over the present one, unless it is open already."""
        if type(self.screen) is not kind:
            self.push_screen(kind(*about))

    # --- beads and attempts -------------------------------------------------------------------------------

    def open_bead(self, bead_id: str) -> None:
        """Show a bead full screen."""
        from helix_tui.screens.queue.bead_screen import BeadScreen

        self.push_screen(BeadScreen(bead_id))

    def go_to_bead(self, bead_id: str) -> bool:
        """Go to a bead in the queue, or to an archived one on its own screen; False if no bead has that id."""
        if bead_id not in self.snapshot.queue.beads:
            if bead_id in self.snapshot.archive:
                self.open_bead(bead_id)
                return True
            self.say(f"{bead_id} is not in the tracker", "warning")
            return False
        # in the app's own loop: a handler of the closing sheet cannot wait for the sheet to end
        self.call_later(self._go_to_bead, bead_id)
        return True

    async def _go_to_bead(self, bead_id: str) -> None:
        await self.action_show_screen("queue")
        self.select_below(bead_id)

    def open_attempt(self, attempt_id: str, tab: str = "") -> None:
        """Go to an attempt on the Loop screen, in one of its tabs."""
        self.call_later(self._open_attempt, attempt_id, tab)

    async def _open_attempt(self, attempt_id: str, tab: str) -> None:
        await self.action_show_screen("loop")
        from helix_tui.screens.loop.loop_screen import LoopScreen

        if isinstance(self.screen, LoopScreen):
            self.screen.show_attempt(attempt_id, tab)

    def open_memory(self, name: str) -> None:
        """Go to a memory on its screen."""
        self.call_later(self._open_memory, name)

    async def _open_memory(self, name: str) -> None:
        await self.action_show_screen("memory")
        from helix_tui.screens.memory.memory_screen import MemoryScreen

        if isinstance(self.screen, MemoryScreen):
            self.screen.show_memory(name)

    def ask_about(self, text: str) -> None:
        """Go to the Ask screen, with a question begun."""
        self.call_later(self._ask_about, text)

    async def _ask_about(self, text: str) -> None:
        await self.action_show_screen("ask")
        from helix_tui.screens.ask.ask_screen import AskScreen

        if isinstance(self.screen, AskScreen):
            self.screen.ask(text)

    def select_below(self, bead_id: str) -> None:
        """Put the queue's cursor on a bead, closing whatever covers the queue."""
        from helix_tui.screens.queue.queue_screen import QueueScreen

        for screen in self.screen_stack:
            if isinstance(screen, QueueScreen):
                screen.go_to(bead_id)

    async def action_go_to(self) -> None:
        """Ask where to go."""
        screen = self.screen
        if not isinstance(screen, HelixScreen) or (self._line is not None and self._line.parent is screen):
            return
        from helix_tui.widgets.chrome.bottom import Prompt

        queue, commands = self.snapshot.queue, self._commands(screen)
        archive = self.snapshot.archive.values()
        ways = lambda text, at: ways_to(text, queue, commands, archive)  # noqa: E731
        self._line = Prompt(":", ways, must_choose=True)
        await screen.mount(self._line)

    async def on_prompt_done(self, event: Message) -> None:
        """Go where the prompt says; screens handle their own prompts."""
        from helix_tui.widgets.chrome.bottom import Prompt

        if not isinstance(event, Prompt.Done):
            return
        self._line = None
        if isinstance(self.screen, HelixScreen):
            self.screen.focus_first()
        await event.prompt.remove()
        text = event.text.strip()
        if not event.kept or not text:
            return
        command = next((each for each in self._commands(self.screen) if each.name == text.lower()), None)
        # a bead id that is also a command's name means the bead
        if text in self.snapshot.queue.beads or text in self.snapshot.archive:
            self.go_to_bead(text)
        elif command is not None:
            await self._do(command)
        else:
            self.say(f"no bead or command is called {text}", "warning")

    def _commands(self, screen: Screen[Any]) -> list[Command]:
        """All commands on a screen: the app's and its own."""
        from helix_tui.screens.loop.sheets import helix_commands

        if not isinstance(screen, HelixScreen):
            return commands(demo=self.is_demo)
        by_label = {key.label: key for key in keys_bound_on(screen)}
        own = [
            Command(name, said, do, key=by_label.pop(name).id if name in by_label else "")
            for name, said, do in screen.commands()
        ]
        # the rest of the screen's keys; keys that a command already has are not offered twice
        offered = commands(demo=self.is_demo)
        known = {command.key for command in (*offered, *own)}
        by_key = [key for key in by_label.values() if key.id not in known]
        taken = {command.name for command in (*offered, *own)}
        rest = [
            Command(
                # the screen “ask” is not the key that asks
                f"{key.label} ({shown(key, self.keymap)})" if key.label in taken else key.label,
                key.help,
                partial(screen.run_action, key.action),
                key=key.id,
            )
            for key in by_key
        ]
        return [*own, *rest, *offered, *(Command(*each) for each in helix_commands(screen.console))]

    def keys_of(self, offered: Iterable[Command]) -> dict[str, str]:
        """Command -> its key, as shown to people."""
        return {command.name: shown(BY_ID[command.key], self.keymap) for command in offered if command.key in BY_ID}

    async def _do(self, command: Command) -> None:
        if isinstance(command.action, str):
            await self.run_action(command.action)
        elif isawaitable(done := command.action()):
            await done

    def offered(self, screen: Screen[Any]) -> list[Command]:
        """The palette's commands, the same as those of ``:``; none if gathering them fails."""
        try:
            return self._commands(screen)
        except Exception as error:  # noqa: BLE001 - the app's barrier logs it
            self.failed(error)
            return []

    def on_notice_line_pressed(self) -> None:
        """Show all notices after a click on their line."""
        self.list_unread()

    async def on_status_bar_pressed(self, event: StatusBar.Pressed) -> None:
        """Open what the clicked part of the status bar shows."""
        laid = {
            "unread": self.list_unread,
            "needs": self.action_needs_me,
            "stale": self.action_needs_me,
            "next": self.action_next_action,
            "loop": self.action_loop,
        }
        if event.part in laid:
            laid[event.part]()
        elif event.part == "ready":
            await self._show_pick_order()
        else:
            screen = {"memory": "memory", "spent": "insights"}.get(event.part, "loop")
            await self.action_show_screen(screen)

    def bind_views(self) -> list[str]:
        """Bind saved views to the keys that they name; one message for each key that is taken."""
        problems, bound = [], set()
        for view in self.view_book.views:
            does = taken_by(view.key, self.keymap) or ("another view" if view.key in bound else "")
            if view.key and does:
                problems.append(f"view {clean_line(view.name, 40)}: {view.key} is already {does}")
            elif view.key:
                bound.add(view.key)
                self.bind(view.key, f"saved_view({view.name!r})", description=view.name, show=False)
        return problems

    async def pressed(self, key: str, bound: Callable[[], Awaitable[bool]]) -> bool:
        """A key; an unbound one is answered with where it works, or which key works here."""
        screen = self.screen
        if not isinstance(screen, HelixScreen):
            return await bound()
        if await screen.take_letter(as_typed(key), self._does(key), partial(self._press, key, bound)):
            self._unknown_key = ""
            return True
        return await self._press(key, bound)

    def _does(self, key: str) -> str:
        """The id of a key's present binding; empty if it has none."""
        bound = self.screen.active_bindings.get(key)
        return (bound.binding.id or bound.binding.action) if bound is not None else ""

    async def _press(self, key: str, bound: Callable[[], Awaitable[bool]]) -> bool:
        done = await bound()
        if not done and key != self._unknown_key:
            self._unknown_key = key
            self.say(instead_of(key, self.keymap))
        elif done:
            self._unknown_key = ""
            with self._touring() as tour:
                if tour is not None:
                    tour.pressed(key)
        return done

    # --- the tour -----------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the tour belong to it while there is one."""
        return self.tour is not None or action not in ("tour_next", "tour_end")

    def offer_tour(self) -> None:
        """Offer the tour at the first start, if there is room; never again after that."""
        from helix_tui.screens.panes import keep

        # a timer calls this: the console may be quitting, without a screen
        screen = next(reversed(self.screen_stack), None)
        if self._has_tour_room and self.kept.first_start and isinstance(screen, HelixScreen):
            self.kept.note_start()
            keep(screen, self.kept.write)
            if self.tour is None:  # else it has begun: `demo --tour`
                self.begin_tour(offer=True)

    @property
    def _has_tour_room(self) -> bool:
        from helix_tui.screens.help import MIN_CARD_SIZE

        return self.size.width >= MIN_CARD_SIZE.width and self.size.height >= MIN_CARD_SIZE.height

    def begin_tour(self, *, offer: bool = False) -> None:
        """Show the first step, or the offer."""
        from helix_tui.screens.help import MIN_CARD_SIZE, Tour

        self.tour = Tour(self, offer=offer)
        if not self._has_tour_room:
            columns, lines = MIN_CARD_SIZE
            self.say(f"The tour needs {columns} columns and {lines} lines. Enlarge the terminal to see it.", "warning")
        for screen in self.screen_stack:
            self.show_tour(screen)

    def show_tour(self, screen: Screen[Any]) -> None:
        """Update the card on a screen during a tour."""
        with self._touring() as tour:
            if tour is not None:
                tour.show_on(screen)

    @contextmanager
    def _touring(self) -> Iterator[Tour | None]:
        """The tour; if it fails it ends, so that no screen fails with it again."""
        with ExitStack() as failed:
            # runs only if the block raises: else pop_all discards it
            failed.callback(self.end_tour)
            yield self.tour
            failed.pop_all()

    async def action_tour(self) -> None:
        """Start the tour: here if this is the demo; else on a demo in this terminal, and return afterwards."""
        if self.is_demo:
            await self.action_show_screen("queue")
            self.begin_tour()
            return
        from helix_tui.screens.external_editor import leave_for

        self.end_tour()
        if problem := leave_for(self, [*self.own_command, "demo", "--tour"]):
            self.say(problem, "warning")

    async def action_tour_next(self) -> None:
        """Go to the next step, or accept the offer."""
        if self.tour is not None and self.tour.offered:
            await self.action_tour()
        else:
            with self._touring() as tour:
                if tour is not None:
                    tour.go_on()

    def action_tour_end(self) -> None:
        """End the tour."""
        self.end_tour()

    def end_tour(self) -> None:
        """Remove its card everywhere."""
        tour, self.tour = self.tour, None
        if tour is not None:
            tour.leave(list(self.opened))

    async def action_saved_view(self, name: str) -> None:
        """Show the queue, or Needs me, with a saved view."""
        from helix_tui.screens.needs.needs_screen import NeedsScreen
        from helix_tui.screens.queue.queue_screen import QueueScreen

        view = self.view_book.named(name)
        if view is None or view.view != OF_NEEDS:
            await self.action_show_screen("queue")
        elif not isinstance(self.screen, NeedsScreen):
            await self.push_screen(NeedsScreen())
        if isinstance(self.screen, (NeedsScreen, QueueScreen)):
            self.screen.show_saved(name)

    async def _show_pick_order(self) -> None:
        await self.action_show_screen("queue")
        from helix_tui.screens.queue.queue_screen import QueueScreen

        if isinstance(self.screen, QueueScreen):
            self.screen.show_view("order")
