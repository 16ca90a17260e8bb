"""What the console can do to a loop. Each action is a command that is shown first and runs in a worker thread."""

from __future__ import annotations

import contextlib
import os
import shlex
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.dialect import Dialect, dialect_or_family
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import find_executable
from helix_tui.core.editing.execute.trust import NotAllowed
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.processes.family import mark_for
from helix_tui.core.ground.processes.start import STDOUT, Process, start
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import format_instant, now_ns
from helix_tui.core.snapshot.snapshot import Snapshot
from helix_tui.core.statements.run import explain_run
from helix_tui.core.supervision.run_state.budget import SPANS, BudgetSpan, parse_limits, read_budget, write_budget
from helix_tui.core.supervision.run_state.run_control import (
    GIVEN_BACK,
    LEFT_CLAIMED,
    StopEnding,
    StopMeans,
    active_run,
    interrupt_worker,
    request,
    start_run,
    stop_run,
)
from helix_tui.core.supervision.run_state.run_status import run_status
from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding
from helix_tui.core.supervision.signals.escalation import decide_escalation
from helix_tui.core.supervision.signals.questions import OpenQuestions, UnknownQuestion
from helix_tui.core.supervision.signals.responses import DEFAULT, LEVELS, SHORT, Level, level_of
from helix_tui.core.supervision.stages.build import let_land, undone
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate, chosen, environment_options, logs_folder
from helix_tui.core.supervision.stages.results import answer_question
from helix_tui.screens.base import ThreadHost
from helix_tui.screens.sheet import ask_to_allow
from helix_tui.screens.watch import ATTEMPTING
from helix_tui.settings.file import load_settings

READ_ONLY = "this console was started with --read-only"

ENDINGS = {
    "none": "no HELIX loop is running here",
    "stale": "the loop had already ended; its pid file is removed",
    "left": "no loop was running; the ddx that was still at work was ended",
    "ends": "no loop is running; the ddx that is still at work ends after its bead",
    "stopped": "the loop has stopped",
    "killed": "the loop did not answer and was ended by force; the next one takes over what it left",
    "asked": "the loop stops after the current bead",
}


class LoopHost(ThreadHost, Protocol):
    """What the loop controls need from the app."""

    snapshot: Snapshot

    @property
    def is_running(self) -> bool: ...


class LoopControls:
    """The actions on the loop of one project."""

    def __init__(self, host: LoopHost, *, own: Sequence[str], ddx: str | None, read_only: bool) -> None:
        self._host = host
        self._own = tuple(own)
        self._ddx = ddx
        self.read_only = read_only
        self.level: Level | None = None
        """The autonomy chosen in this console; None: that of the environment or the settings."""
        self._carried: list[tuple[str, Process]] = []

    # --- commands -----------------------------------------------------------------------------------------

    @property
    def start_words(self) -> tuple[str, ...]:
        """The command that starts a loop."""
        root = os.fspath(self._host.snapshot.project.root)
        chosen = ("--ddx", self._ddx) if self._ddx else ()
        return (*self._own, "run", "--summary", "--autonomy", self.autonomy, "-C", root, *chosen)

    @property
    def autonomy(self) -> Level:
        """The autonomy of the next loop."""
        if self.level is not None:
            return self.level
        return level_of(environment_options(os.environ).get("autonomy", "") or load_settings().autonomy) or DEFAULT

    def next_autonomy(self) -> None:
        """Switch the next loop's autonomy: low, medium, high, low …"""
        self.level = LEVELS[(LEVELS.index(self.autonomy) + 1) % len(LEVELS)]
        self._host.say(f"the next loop starts at autonomy {self.level}: {SHORT[self.level]}")

    @property
    def dialect(self) -> Dialect:
        """The installed ddx's capabilities, for texts that are shown before it runs."""
        return dialect_or_family(self._host.snapshot.dialect, self._host.snapshot.queue)

    @property
    def one_bead_effects(self) -> str:
        """What running one bead by hand does, and what only the loop does."""
        left = undone(self.dialect)
        if left:
            return "; ".join(left) + "."
        return (
            f"{self._one_bead_verb} claims the bead, lands, closes it, and refuses one with open "
            "dependencies. No review is injected and no cycle is counted: only the loop does that."
        )

    @property
    def no_ddx(self) -> str:
        """Why nothing can run here, and what to do, if there is no ddx; else empty."""
        try:
            Delegate(self._host.snapshot.project, self._ddx).ddx  # noqa: B018
        except DdxError as error:
            return f"{error.message}; {error.advice}"
        return ""

    @property
    def _one_bead_verb(self) -> str:
        return " ".join(("ddx", *self.dialect.verbs["one_bead"].words))

    @property
    def _interrupted(self) -> str:
        return GIVEN_BACK if self.dialect.gives_back else LEFT_CLAIMED

    @property
    def who(self) -> AgentChoice:
        """The agent and model given by the environment and the settings."""
        settings = load_settings()
        return chosen(os.environ, set_agent=settings.agent, set_model=settings.model)

    def one_bead_words(self, bead_id: str, who: AgentChoice | None = None) -> tuple[str, ...]:
        """The command that runs one bead, with the project's agent or another one; empty if this ddx has
        none.
        """
        verb = self.dialect.verbs.get("one_bead")
        if verb is None:
            return ()
        flags = [word for flag, value in (who or self.who).flags.items() if value for word in (flag, value)]
        return (self._ddx or "ddx", *verb.words, bead_id, *flags)

    # --- actions ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start HELIX's loop in the background; it outlives the console."""
        project, words = self._host.snapshot.project, self.start_words

        def work() -> str:
            self._curator().require_allowed()
            started = start_run(project, words)
            if started.code is not None:
                why = started.trouble or explain_run(run_status(project))
                raise OSError(f"the loop ended at once: {why}; Needs me and `stuck` say what to do")
            return f"the loop is running (pid {started.pid}); screen 2 follows its output"

        self._do("start", work)

    def pause(self) -> None:
        """Ask the loop to pause after the current bead."""
        self._request("pause", "the loop pauses after the current bead")

    def resume(self) -> None:
        """Cancel a requested pause or stop."""
        self._request("", "the loop keeps running")

    def stop(self, *, now: bool) -> None:
        """End the loop: after the current bead, or at once with the running attempt."""
        project, said = self._host.snapshot.project, self._interrupted

        def work() -> str:
            ending: StopEnding = stop_run(project, now=now)
            alive = f"; still alive: {', '.join(map(str, ending.alive))}" if ending.alive else ""
            return ENDINGS[ending.how] + (f"; {said}" if ending.how == "stopped" else "") + alive

        self._do("stop", work)

    def stop_by(self, means: StopMeans) -> None:
        """Stop a worker that was started elsewhere, with a ddx command or a signal."""
        if means.kind == "signal":
            self._interrupt(means)
            return
        delegate = Delegate(self._host.snapshot.project, self._ddx)

        def work() -> str:
            delegate.ddx.run(*means.words)
            return f"{means.name}: {means.effect}"

        self._do("stop", work)

    def set_budget(self, span: BudgetSpan, text: str) -> None:
        """Store the budget of a run or a day; an active run reads it before its next bead."""
        try:
            limits = parse_limits(text)
        except ValueError as error:
            self._host.say(clean_line(str(error), 300), "warning")
            return
        project = self._host.snapshot.project

        def work() -> str:
            write_budget(project, replace(read_budget(project), **{span: limits}))
            return f"budget {SPANS[span]}: {limits}"

        self._do("budget", work)

    def _interrupt(self, means: StopMeans) -> None:
        """Interrupt a worker of ddx itself, as ctrl+c in its terminal would."""
        project, said = self._host.snapshot.project, self._interrupted

        def work() -> str:
            left = interrupt_worker(project, means, self._ddx or "ddx")
            alive = f"; still alive: {', '.join(map(str, left))}" if left else ""
            return f"interrupted pid {means.pid}: {said}{alive}"

        self._do("interrupt", work)

    def run_beads(self, bead_ids: Sequence[str], who: AgentChoice | None, allowed: Sequence[Attempt]) -> None:
        """Run some beads, one after the other, in the background.

        Args:
            allowed: attempts whose change a review refused, and which the person lets land.
        """
        delegate = Delegate(self._host.snapshot.project, self._ddx)

        def work() -> str:
            done = 0
            self._curator().require_allowed()
            let_land(self._curator(), allowed)
            for bead_id in bead_ids:
                words = delegate.one_bead(bead_id, who or self.who)
                command = (os.fspath(delegate.ddx.path), *words)
                bead = self._host.snapshot.queue.beads.get(bead_id)
                title = f"“{clean_line(bead.title, 60)}”" if bead is not None else bead_id
                process, _ = self._begin(command, delegate, "one", f"the attempt on {title}", "Loop shows the outcome")
                if len(bead_ids) == 1:
                    return f"{title} is attempted (pid {process.pid}); Loop shows it"
                self._host.call_from_thread(self._host.say, f"{title} is attempted")
                process.wait()
                done += 1
            return f"{counted(done, 'bead has', 'beads have')} been attempted; the Loop screen shows the outcomes"

        self._do(ATTEMPTING, work)

    def command_words(self, name: str, words: Sequence[str]) -> tuple[str, ...]:
        """One of HELIX's commands on this project; the user's text comes last, unchanged."""
        root = os.fspath(self._host.snapshot.project.root)
        chosen = ("--ddx", self._ddx) if self._ddx else ()
        return (*self._own, name, "-C", root, *chosen, *words)

    def command(self, name: str, words: Sequence[str], began: Callable[[Path], None]) -> None:
        """Run one of HELIX's commands in the background.

        Args:
            began: called, on the console's thread, with the file that it writes to.
        """
        command = self.command_words(name, words)
        delegate = Delegate(self._host.snapshot.project, self._ddx)
        shown = shlex.join(("helix-tui", name, *words))

        def work() -> str:
            process, out = self._begin(command, delegate, name, shown, "its output is in .helix-logs")
            self._host.call_from_thread(began, out)
            return f"{shown} runs (pid {process.pid})"

        self._do("command", work)

    def _begin(
        self, command: Sequence[str], delegate: Delegate, kind: str, shown: str, after: str
    ) -> tuple[Process, Path]:
        """Start a program that does not depend on the console, and report when it has ended."""
        stamp = format_instant(now_ns()).replace(":", "").replace("-", "")
        out = logs_folder(delegate.project) / f"{kind}-{stamp}.out"
        with open(out, "wb") as log:
            env = {**delegate.env, **mark_for(command[0])}
            process = start(command, cwd=delegate.project.root, env=env, stdout=log, stderr=STDOUT)
        self._carried.append((shown, process))
        logs.logger("loop").info("%s: started in the background as %d", logs.masked(command), process.pid)
        # nothing waits for this thread: the program keeps running when the user quits
        threading.Thread(target=self._await, args=(process, shown, after), daemon=True).start()
        return process, out

    def _await(self, process: Process, shown: str, after: str) -> None:
        code = process.wait()
        said = f"{shown} has ended{f' with exit code {code}' if code else ''}; {after}"
        # this thread may outlive the console
        if not self._host.is_running:
            return
        with contextlib.suppress(RuntimeError):  # the console quit at this moment
            self._host.call_from_thread(self._host.say, clean_line(said, 400))

    def at_work(self) -> list[str]:
        """What keeps running without the console, one line each, with how to end it."""
        found = [
            f"{shown} keeps running (pid {process.pid}); `pkill -s {process.pid}` ends it with its agent"
            for shown, process in self._carried
            if process.poll() is None
        ]
        holder = active_run(self._host.snapshot.project)
        if holder is not None:
            found.append(
                f"HELIX's loop keeps running (pid {holder.pid}); `helix-tui status` shows its state, "
                "`helix-tui stop` ends it"
            )
        return found

    def answer(self, question_id: str, text: str) -> None:
        """Answer one of HELIX's questions."""

        def work() -> str:
            curator = self._curator()
            answered, _ = answer_question(curator, OpenQuestions(curator.project, curator.gate), question_id, text)
            return f"answered {answered.id}: {clean_line(text, 120)}"

        self._do("answer", work)

    def settle(self, finding: DocumentFinding, text: str) -> None:
        """Ask which of two conflicting demands holds, and answer that."""

        def work() -> str:
            curator = self._curator()
            questions = OpenQuestions(curator.project, curator.gate)
            # asked again, it would wait for the next person
            if any(each.key == finding.key and each.answered_at for each in questions.all()):
                raise UnknownQuestion(finding.key)
            answered, _ = answer_question(curator, questions, questions.ask_about(finding).id, text)
            return f"answered {answered.id}: {clean_line(text, 120)}"

        self._do("answer", work)

    def decide(self, bead_id: str, text: str) -> None:
        """Decide an escalation, which closes its bead."""

        def work() -> str:
            decide_escalation(self._curator(), bead_id, text)
            return f"decided {bead_id}: {clean_line(text, 120)}"

        self._do("answer", work)

    def _curator(self) -> Curator:
        project = self._host.snapshot.project
        return Curator(project, lambda: find_executable(project, self._ddx), who="human")

    def _request(self, requested: Any, said: str) -> None:
        project = self._host.snapshot.project

        def work() -> str:
            request(project, requested)
            return said

        self._do("request", work)

    def _do(self, group: str, work: Callable[[], str]) -> None:
        if self.read_only:
            self._host.say(READ_ONLY, "warning")
            return
        self._host.run_worker(partial(self._carry_out, group, work), thread=True, group=group)

    def _carry_out(self, group: str, work: Callable[[], str]) -> None:
        severity = "information"
        try:
            said = work()
        except DdxError as error:
            said, severity = f"{error.message}: {error.advice}", "error"
        except NotAllowed as refused:
            self._host.call_from_thread(ask_to_allow, self._host, refused, partial(self._do, group, work))
            return
        # another console, or the command line, was faster; UnknownQuestion is a HelixError too
        except KeyError:
            said, severity = "that question has been answered already", "warning"
        except (HelixError, OSError) as error:
            said, severity = ". ".join(filter(None, (str(error), getattr(error, "advice", "")))), "error"
        self._host.call_from_thread(self._host.say, clean_line(said, 400), severity)
