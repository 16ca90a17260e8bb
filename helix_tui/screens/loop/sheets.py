"""Sheets of the loop: the next action and why; the loop's state, its actions, the end of its log.

HELIX's commands are here by name: the palette and ``:`` offer each, and one that needs arguments asks first.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from textual import on

from helix_tui.core.beads.counts import QueueCounts, count_queue
from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.record import TERMINAL
from helix_tui.core.beads.states import IN_HAND
from helix_tui.core.ddx.attempts.costs import format_whole
from helix_tui.core.ddx.claims import PARKED
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.editing.operations import SetEligible
from helix_tui.core.ground.files import read_end
from helix_tui.core.ground.project import machine_name
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import with_relative_times
from helix_tui.core.insights.estimate import Estimate, estimate
from helix_tui.core.statements.ending import SinceLanding, explain_landings, since_landing
from helix_tui.core.statements.next import ROLES, WHO, captions
from helix_tui.core.statements.run import explain_run
from helix_tui.core.supervision.decide.check import StatusSummary
from helix_tui.core.supervision.decide.verdict import VerdictReason
from helix_tui.core.supervision.requests import request_for
from helix_tui.core.supervision.run_state.budget import BudgetSpan, BudgetUse, Limits, first_reached, parse_limits
from helix_tui.core.supervision.run_state.run_control import StopMeans, ways_to_stop
from helix_tui.core.supervision.run_state.run_log import said_lines
from helix_tui.core.supervision.signals.kept_changes import refusal_words
from helix_tui.core.supervision.signals.questions import beads_in_question
from helix_tui.core.supervision.signals.responses import DEFAULT, SHORT, level_of
from helix_tui.core.supervision.stages.commands import ONE_TEXT, ROWS
from helix_tui.core.supervision.stages.delegate import AgentChoice
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, LineSheet
from helix_tui.screens.editing.confirm import carry_through, kept_changes
from helix_tui.screens.editing.preview import PreviewSheet
from helix_tui.screens.loop.controls import LoopControls
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import cut
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.text.page import Page

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.book import AttemptBook
    from helix_tui.core.snapshot.snapshot import Change, Snapshot
    from helix_tui.screens.base import Console

NEVER = "No HELIX loop has run here yet"

MAX_ALIKE = 5
"""How many reasons of one kind `>` lists."""

LOG_LINES = 200
LOG_BYTES = 256 << 10
LOOK_EVERY = 1.0

PREFIX = "helix "
OUTPUT_BYTES = 64 << 10
OUTPUT_LOOK_EVERY = 0.5


class NextSheet(Sheet):
    """NEXT_ACTION with its reasons, the command for it, and what would change it."""

    FOOTER: ClassVar[tuple[str, ...]] = ("go.open", "copy.id=copy command", "go.back")

    def __init__(self) -> None:
        super().__init__("next action")
        self.status_summary = StatusSummary()
        self._since: tuple[AttemptBook | None, SinceLanding] = (None, SinceLanding())
        """The attempts scanned last, and the result: 20,000 attempts are not scanned every second."""

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show the newest answer."""
        self.tick()

    def tick(self) -> None:
        """The answer may have changed."""
        status_summary = self.console.status_summary
        if status_summary is not None and (
            # the time until the next bead may be tried changes without a new answer
            status_summary is not self.status_summary or status_summary.verdict.next_eligible
        ):
            self.status_summary = status_summary
            self.rewrite()

    def write(self, page: Page) -> None:
        """Code, reasons, command, condition."""
        verdict = self.status_summary.verdict
        if not verdict.next_action:
            page.paragraph([("Not checked yet", "muted")])
            return
        page.line(
            [
                (verdict.next_action, f"{ROLES.get(verdict.next_action, 'text')} bold"),
                (f"  {WHO[verdict.decided_by]}", "muted"),
            ],
            key="verdict",
        )
        self._reasons(page, verdict.reasons, "text")
        for name, words in captions(verdict):
            said = with_relative_times(words, self.console.now())
            page.paragraph([(f"{name:<8}", "muted"), (said, "running" if name == "run" else "text")], 8)
        self._since_landing(page)
        if verdict.notes:
            page.caption("also")
            self._reasons(page, verdict.notes, "muted")

    def _since_landing(self, page: Page) -> None:
        """Write how attempts have ended since the last landing."""
        snapshot = self.console.snapshot
        if not len(snapshot.attempts):
            return
        if self._since[0] is not snapshot.attempts:
            self._since = (snapshot.attempts, since_landing(snapshot.attempts))
        found = self._since[1]
        bead = snapshot.queue.beads.get(found.landed.bead_id) if found.landed is not None else None
        page.caption("since the last landing")
        for name, words in explain_landings(
            found,
            title=bead.title if bead is not None else "",
            summary=self.status_summary,
            running=sum(run.live for run in snapshot.runs),
            needs=self.console.needs,
            now=self.console.now(),
        ):
            page.paragraph([(f"{name:<8}", "muted"), (clean_line(words, 1_000), "text")], 8)

    def _reasons(self, page: Page, reasons: Iterable[VerdictReason], ink: str) -> None:
        """Each reason; of many similar ones the first few, and how many more."""
        beads, alike = self.console.snapshot.queue.beads, Counter[str]()
        for number, reason in enumerate(reasons):
            alike[reason.code] += 1
            if alike[reason.code] > MAX_ALIKE:
                continue
            said = with_relative_times(clean_line(with_titles(reason.detail, beads, most=5), 600), self.console.now())
            refs = [ref for ref in reason.refs if ref in beads]
            page.paragraph([("· ", "muted"), (said, ink)], 2, key=f"bead:{number}:{ink}:{refs[0]}" if refs else "")
        for code, count in alike.items():
            if count > MAX_ALIKE:
                kind = code.replace("_", " ")
                page.paragraph([(f"… {count - MAX_ALIKE:,} more: {kind}; helix-tui check names all", "muted")], 2)

    @on(RowList.Opened)
    def go_there(self, event: RowList.Opened) -> None:
        """Go to the first bead that a reason names."""
        event.stop()
        if event.key.startswith("bead:"):
            bead_id = event.key.split(":", 3)[3]
            self.dismiss()
            self.console.go_to_bead(bead_id)

    def action_copy_id(self) -> None:
        """Copy the command."""
        command = clean_line(self.status_summary.verdict.recommended_command, 300)
        if command:
            self.console.copy(command, command)


class StartForecast(Struct, frozen=True):
    """What a start would cost: one bead, and all that are ready."""

    asked: tuple[AttemptBook, tuple[str, ...], AgentChoice] | None = None
    ready: tuple[str, ...] = ()
    each: Estimate | None = None
    """None while it is worked out."""
    whole: Estimate | None = None

    def lines(self, uses: Sequence[BudgetUse]) -> list[tuple[str, str]]:
        """Its lines, each with a caption; the last says where the budget, of which ``uses`` are spent, stops it."""
        each, whole = self.each, self.whole
        if each is None or whole is None:
            return [("costs", "estimating …")]
        if each.usd is None and each.seconds is None:
            return [("costs", each.describe_usd())]
        rows = [("a bead", _amounts(each))]
        if whole.attempts > 1:
            rows.append((f"all {whole.attempts}", _amounts(whole)))
        rows.append(("", each.basis))
        usd, tokens = (found.middle if found is not None else None for found in (each.usd, each.tokens))
        reached = first_reached(uses, usd=usd, tokens=tokens)
        return [*rows, ("stops", _stops(*reached, whole.attempts))] if reached is not None else rows


def _stops(after: int, use: BudgetUse, beads: int) -> str:
    """After how many beads a budget would end a run, judging by past attempts."""
    part = f"the budget of {'a run' if use.span == 'run' else 'a day'}, {use.limit_words}"
    if not after:
        return f"before the first bead: {part}, is reached"
    if after >= beads:
        return f"not by the budget, as far as past attempts tell; nearest is {part}"
    return f"after about {after:,} of {counted(beads, 'bead')}: {part}"


def _amounts(found: Estimate) -> str:
    took = found.describe_time()
    return found.describe_usd() + (f" · {took}" if took else "")


def _title(bead_id: str, snapshot: Snapshot) -> str:
    bead = snapshot.queue.beads.get(bead_id)
    return f"“{cut(clean_line(bead.title, 200), 44)}”" if bead is not None and bead.title else bead_id


class StartSheet(ChoiceSheet):
    """Asks before a start: shows what it would run and cost."""

    def __init__(self, start: Choice, write: Callable[[Page], None]) -> None:
        super().__init__("start the loop? It spends money", [start])
        self._write = write

    def on_mount(self) -> None:
        """Show the estimate once it is ready."""
        super().on_mount()
        self.set_interval(LOOK_EVERY, self.rewrite)

    def write(self, page: Page) -> None:
        """What it would do, then the choice."""
        self._write(page)
        page.blank()
        super().write(page)


class LoopSheet(ChoiceSheet):
    """The loop: its state, its actions, and the end of its log."""

    def __init__(self, bead_id: str) -> None:
        """``bead_id``: the bead under the cursor, which can be run alone; may be empty."""
        super().__init__("loop", ())
        self.status_summary = StatusSummary()
        self._bead_id = bead_id
        self._log: tuple[str, ...] = ()
        self.forecast = StartForecast()
        self._barred = ""
        """Why nothing can be started; empty if it can."""

    @property
    def loop_controls(self) -> LoopControls:
        """The actions."""
        return self.console.loop_controls

    def on_mount(self) -> None:
        """Follow the log."""
        super().on_mount()
        self.set_interval(LOOK_EVERY, self._look)

    def show_snapshot(self, snapshot: Snapshot, change: Change) -> None:
        """Show its present state."""
        self.tick()
        self._foresee()

    def tick(self) -> None:
        """The loop may have progressed."""
        status_summary = self.console.status_summary
        if not self.choices or (status_summary is not None and status_summary is not self.status_summary):
            self.status_summary = status_summary or self.status_summary
            self.choices = tuple(self._choices())
            self._foresee()
            self.rewrite()
            self._look()

    def _workers(self) -> Iterable[Run]:
        """Workers not started by HELIX's loop."""
        # the loop itself and the ddx that it started are stopped with the loop's own keys
        holder, pending = self.status_summary.run.holder, self.status_summary.run.state.pending.get("pid")
        ours = {holder.pid if holder is not None else 0, pending}
        return (run for run in self.console.snapshot.runs if run.live and run.pid not in ours)

    def _stops(self, off: str) -> Iterable[Choice]:
        """Ways to stop workers that were started elsewhere, the gentlest first."""
        snapshot, offered = self.console.snapshot, set()
        for run in self._workers():
            for means in ways_to_stop(run, snapshot.queue, self.loop_controls.dialect, here=machine_name()):
                # one way may stop several workers: it is offered once
                if means.kind == "hold" and "hold" not in offered:
                    yield Choice("h", "h", means.name, means.effect, partial(self._hold, means.beads), off)
                elif means.kind != "hold" and means.name not in offered:
                    do = partial(self._ask_to_stop, means)
                    yield Choice("", "", means.name, means.effect, do, off)
                offered |= {means.name, means.kind} if means.kind == "hold" else {means.name}

    def _hold(self, beads: Sequence[str]) -> None:
        """Keep beads from workers, after a preview; one undo releases them."""
        if beads:
            title = f"hold {counted(len(beads), 'bead')}, so that workers end after the current bead"
            self.console.push_screen(PreviewSheet(request_for([SetEligible(bead, False) for bead in beads], title)))

    def _ask_to_stop(self, means: StopMeans) -> None:
        do = partial(self.loop_controls.stop_by, means)
        yes = Choice("y", "y", "stop", means.effect, do)
        self.console.push_screen(ChoiceSheet(f"stop a worker: {means.name}", [yes]))

    def _look(self) -> None:
        log = self.status_summary.run.state.log
        if log:
            self.run_worker(partial(self._read, Path(log)), thread=True, group="log", exclusive=True)

    def _read(self, path: Path) -> None:
        said = said_lines(read_end(path, LOG_BYTES))
        lines = tuple(clean_line(line, 300) for line in said[-LOG_LINES:])
        if lines != self._log:
            self.app.call_from_thread(self._take, lines)

    def _take(self, lines: tuple[str, ...]) -> None:
        self._log = lines
        self.rewrite()

    def _choices(self) -> list[Choice]:
        loop_controls, run = self.loop_controls, self.status_summary.run
        active = run.condition == "active"
        off = "not with --read-only" if loop_controls.read_only else ""
        idle = off or ("" if active else "no HELIX loop is running")
        refused, stoppage = self.console.snapshot.shut, self.status_summary.stoppage
        stopped = stoppage.words if stoppage is not None and stoppage.present else ""
        stopped = loop_controls.no_ddx or stopped
        shut = self._barred = f"{refused.short}; {refused.remedy}" if refused is not None else stopped
        choices = [
            Choice(
                "s",
                "s",
                "start",
                "asks first; "
                + ("ends with the demo" if self.console.is_demo else "keeps running when you quit the console"),
                self._ask_to_start,
                off or ("it is already running" if active else shut),
            )
        ]
        level = run.state.autonomy if active else loop_controls.autonomy
        running = f"the loop runs at {level}; the level can only be changed while it is stopped" if active else ""
        said = SHORT.get(level_of(level) or DEFAULT, "")
        choices.append(Choice("a", "a", f"autonomy {level}", said, loop_controls.next_autonomy, off or running))
        if self.status_summary.requested:
            choices.append(
                Choice("r", "r", "continue", f"cancels the {self.status_summary.requested}", loop_controls.resume, idle)
            )
        else:
            choices.append(Choice("p", "p", "pause", "after the current bead", loop_controls.pause, idle))
        choices += [
            Choice(
                "x",
                "x",
                "stop",
                "after the current bead: nothing is lost",
                partial(loop_controls.stop, now=False),
                idle,
            ),
            Choice("X", "X", "stop now", "interrupts ddx and the attempt", partial(loop_controls.stop, now=True), idle),
        ]
        choices.append(Choice("b", "b", "budget", self._budget_words(), self._choose_budget, off))
        choices += self._stops(off)
        if self._bead_id:
            said = clean_line(with_titles(self._bead_id, self.console.snapshot.queue.beads), 160)
            unfit = off or shut or self._why_not_executable()
            choices.append(Choice("o", "o", "only this bead", said, self._confirm_one_bead, unfit))
        return choices

    # --- what starting would cost -------------------------------------------------------------------------

    def _ask_to_start(self) -> None:
        """Starting costs money: show how much, and ask."""
        start = Choice("y", "y", "start", "esc cancels", self.loop_controls.start)
        self.console.push_screen(StartSheet(start, self._write_start))

    def _budget_words(self) -> str:
        budget = self.status_summary.budget
        uses = self.status_summary.budget_uses(self.console.snapshot.attempts, self.console.now())
        if not budget:
            return "none: a run continues until nothing is left to do"
        spent = "; ".join(use.spent_words() for use in uses)
        return f"run {budget.run} · day {budget.day}" + (f" ({spent})" if spent else "")

    def _choose_budget(self) -> None:
        budget, console = self.status_summary.budget, self.console
        about = "Write it like $5, 2M tokens, 10 attempts; or none. A run stops after the current bead."

        def ask(span: BudgetSpan, limits: Limits) -> None:
            written = partial(self.loop_controls.set_budget, span)
            title = f"what {'a run' if span == 'run' else 'a day, by any worker,'} may cost"
            text = str(limits) if limits else ""
            console.push_screen(LineSheet(title, "budget", written, about, text=text, problem=_budget_problem))

        choices = [
            Choice("r", "r", "of a run", str(budget.run), partial(ask, "run", budget.run)),
            Choice("d", "d", "of a day", str(budget.day), partial(ask, "day", budget.day)),
        ]
        console.push_screen(ChoiceSheet("budget", choices))

    def _foresee(self) -> None:
        """Estimate, in a thread, what the ready beads would cost; again when they change."""
        snapshot, who = self.console.snapshot, self.loop_controls.who
        # a run keeps workers from the others first
        ready = tuple(worker for worker in self._counts.for_workers if worker not in self.status_summary.refused)
        asked = (snapshot.attempts, ready, who)
        if asked != self.forecast.asked:
            self.forecast = StartForecast(asked, ready)
            self.run_worker(partial(self._estimate, asked), thread=True, group="estimate", exclusive=True)

    @property
    def _counts(self) -> QueueCounts:
        return count_queue(self.console.snapshot.queue, beads_in_question(self.status_summary.questions))

    def _estimate(self, asked: tuple[AttemptBook, tuple[str, ...], AgentChoice]) -> None:
        book, ready, who = asked
        # for at least one bead: an estimate for none is meaningless
        each, whole = (estimate(book, n, harness=who.harness, model=who.model) for n in (1, max(1, len(ready))))
        self.app.call_from_thread(self._take_forecast, StartForecast(asked, ready, each, whole))

    def _take_forecast(self, forecast: StartForecast) -> None:
        # else the queue or the agent has changed meanwhile
        if forecast.asked == self.forecast.asked:
            self.forecast = forecast
            self.rewrite()

    def _write_start(self, page: Page) -> None:
        """Write what a start would run, with which agent, on which beads, at what cost."""
        snapshot, who, forecast = self.console.snapshot, self.loop_controls.who, self.forecast
        rows = [("command", shlex.join(self.loop_controls.start_words))]
        agent = " · ".join(filter(None, (who.harness, who.model, who.effort)))
        rows.append(("agent", clean_line(agent, 200) or "ddx chooses (no --agent, HELIX_AGENT or setting)"))
        rows.append(("takes", self._takes(forecast.ready, snapshot)))
        for bead_id, attempt in self.status_summary.refused.items():
            if (bead := snapshot.queue.beads.get(bead_id)) is not None:
                rows.append(("not", f"{_title(bead_id, snapshot)}: {refusal_words(bead, attempt)}"))
        uses = self.status_summary.budget_uses(snapshot.attempts, self.console.now(), of_new_run=True)
        rows += forecast.lines(uses)
        limits = self._budget_words()
        rows.append(("budget", limits))
        for name, said in rows:
            page.paragraph([(f"{name:<9}", "muted"), (said, "text")], 9)

    def _takes(self, ready: Sequence[str], snapshot: Snapshot) -> str:
        first = ", ".join(_title(each, snapshot) for each in ready[:3])
        more = f" and {len(ready) - 3:,} more" if len(ready) > 3 else ""
        left_out = self._counts.left_out
        if not ready:
            return f"nothing: {left_out}" if left_out else "nothing is ready now"
        count = f"{counted(len(ready), 'bead')} {'workers may pick' if left_out else 'ready'}"
        waits = f"; {left_out}" if left_out else ""
        return f"{count}: {first}{more}; then any bead that these make ready{waits}"

    def _why_not_executable(self) -> str:
        """Why the bead cannot be run now; empty if it can."""
        queue = self.console.snapshot.queue
        if not self.loop_controls.one_bead_words(self._bead_id):
            return "this ddx has no command that executes one bead"
        bead = queue.beads.get(self._bead_id)
        if bead is None:
            return "this bead is not in the tracker"
        if bead.status in TERMINAL:
            return f"this bead is {bead.status}"
        if bead.status in PARKED:
            return f"ddx runs no bead that is {bead.status}; decide on it in Needs me first"
        return "a worker is running this bead" if queue.state(bead.id) in IN_HAND else ""

    def _confirm_one_bead(self) -> None:
        """Run the bead; if that would land a kept change, only after confirmation."""
        if unfit := self._why_not_executable():  # it may have changed since the sheet was drawn
            self.console.say(unfit, "warning")
            return
        carry_through(self.console, [self._bead_id], partial(self.loop_controls.run_beads, [self._bead_id], None))

    def write(self, page: Page) -> None:
        """State, actions, log."""
        run = self.status_summary.run
        ink = {"active": "running", "died": "error"}.get(run.condition, "text")
        never = NEVER if self.loop_controls.read_only or self._barred else f"{NEVER}: s starts one"
        explanation = never if run.condition == "never" else clean_line(explain_run(run), 600)
        page.paragraph([(explanation, ink)])
        state = run.state
        if run.condition != "never":
            said = f"{state.progress} · {figures.tokens(state.total_tokens or None)} tokens"
            said += f" · {format_whole(state.sums)}"
            for status, count in state.outcomes.items():
                said += f" · {count} {clean_line(status, 40)}"
            page.paragraph([(said, "muted")])
        if self.status_summary.requested:
            page.paragraph([(f"asked to {self.status_summary.requested} after the current bead", "waiting")])
        page.blank()
        super().write(page)
        page.blank()
        if self._barred:
            page.paragraph([("Nothing can be started: ", "attention"), (clean_line(self._barred, 400), "text")])
        else:
            page.caption("a start would")
            self._write_start(page)
        if self._bead_id and not self._barred and not self._why_not_executable():
            command = shlex.join(self.loop_controls.one_bead_words(self._bead_id))
            page.paragraph([("o  ", "running"), (command, "muted")], 3)
            page.paragraph([("   ", "muted"), (self.loop_controls.one_bead_effects, "muted")], 3)
            # August's ddx lands a kept change before it attempts a bead afresh: say so before o is pressed
            for change in kept_changes(self.console, [self._bead_id]):
                said = (
                    f"The change of attempt {clean_line(change.attempt_id, 40)} is kept aside "
                    f"({clean_line(change.status, 60)}): ddx may land {change.result_rev[:12]} as it is, "
                    "without an agent, and close the bead. You will be asked to confirm."
                )
                page.paragraph([("   ", "muted"), (said, "attention")], 3)
        if self._log:
            page.caption("log", clean_line(Path(state.log).name, 60))
            for line in self._log:
                page.line([(line, "muted")])


class OutputSheet(Sheet):
    """What a command has printed so far; it continues without the sheet."""

    FOOTER = ("go.back",)

    def __init__(self, title: str, path: Path) -> None:
        super().__init__(title)
        self._path = path
        self._lines: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Follow the file."""
        self.set_interval(OUTPUT_LOOK_EVERY, self._look)
        self._look()

    def _look(self) -> None:
        self.run_worker(self._read, thread=True, group="output", exclusive=True)

    def _read(self) -> None:
        lines = tuple(clean_block(read_end(self._path, OUTPUT_BYTES)).split("\n"))
        if lines != self._lines:
            self.app.call_from_thread(self._take, lines)

    def _take(self, lines: tuple[str, ...]) -> None:
        self._lines = lines
        self.rewrite()

    def write(self, page: Page) -> None:
        """The lines, unchanged."""
        if not any(self._lines):
            page.paragraph([("nothing printed yet", "muted")])
        for line in self._lines if any(self._lines) else ():
            page.paragraph([(line, "text")])


def helix_commands(console: Console) -> Iterable[tuple[str, str, Callable[[], object]]]:
    """Every command that has no other place in the console: name, help, action."""
    for name, row in ROWS.items():
        if row.asks is not None:
            yield PREFIX + name, row.summary, partial(_begin, console, name)


def _begin(console: Console, name: str) -> None:
    row = ROWS[name]
    if not row.asks:
        _run(console, name, ())
        return
    title = f"helix-tui {name}: {row.summary}"
    console.push_screen(LineSheet(title, row.asks, partial(_run_with, console, name)))


def _budget_problem(text: str) -> str:
    """Why a text is not a valid budget; empty if it is."""
    try:
        parse_limits(text)
    except ValueError as error:
        return clean_line(str(error), 300)
    return ""


def _run_with(console: Console, name: str, text: str) -> None:
    if ROWS[name].asks in ONE_TEXT:
        # the user's text may begin with a dash and is not an option then
        words = ["--", text] if text else []
    else:
        try:
            words = shlex.split(text)
        except ValueError as error:
            console.say(f"that is not a command line: {error}", "warning")
            return
    _run(console, name, words)


def _run(console: Console, name: str, words: Iterable[str]) -> None:
    def began(path: Path) -> None:
        console.push_screen(OutputSheet(f"helix-tui {name}", path))

    console.loop_controls.command(name, tuple(words), began)
