"""``helix-tui run | start | stop``: supervise ddx's loop until a reason to stop occurs.

Compatibility surfaces (FEAT-002): execution, landing, closing and retries are ddx's; HELIX curates,
counts, interprets.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import FrameType

from helix_tui.cli import programs
from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.helix.shared import (
    add_agent_options,
    add_autonomy,
    agent_choice_of,
    autonomy_of,
    curator_of,
    delegate_of,
    explained,
    note_difference,
    refuse_in_attempt,
    refuse_shut,
    show_dry_run,
)
from helix_tui.core.ddx.attempts.index import AttemptIndex
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.editing.execute.gate import QueueState
from helix_tui.core.ground.errors import ReaderGone
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.statements.stuck import blockers_of_run
from helix_tui.core.supervision.decide.check import document_facts, take_status_summary
from helix_tui.core.supervision.decide.verdict import REFUSED_BY_REVIEW
from helix_tui.core.supervision.loop.runner import RunOutcome, supervise
from helix_tui.core.supervision.loop.work import RunOptions
from helix_tui.core.supervision.run_state.budget import NO_LIMITS, Budget, Limits, parse_limits
from helix_tui.core.supervision.run_state.run_control import (
    Control,
    active_run,
    describe_left,
    left_at_work,
    require_run,
    start_run,
    stop_run,
)
from helix_tui.core.supervision.run_state.state import AlreadyRunning, Holder
from helix_tui.core.supervision.signals.kept_changes import attempts_now, refusal_words
from helix_tui.core.supervision.stages.delegate import Delegate, environment_options
from helix_tui.core.supervision.stages.injection import THRESHOLD
from helix_tui.core.supervision.stages.stage_run import agent_context
from helix_tui.settings.file import load_settings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    if parser.prog.split()[-1] == "stop":
        parser.add_argument(
            "--after-bead", action="store_true", help="finish the current bead first; without it ddx is interrupted"
        )
        parser.add_argument("--dry-run", action="store_true", help="name the process it would end; end nothing")
        return
    parser.add_argument("--max-cycles", type=_number, default=0, metavar="N", help="completed cycles; 0: no limit")
    parser.add_argument(
        "--review-every", type=_number, default=15, metavar="N", help="an alignment bead every N completed cycles"
    )
    parser.add_argument(
        "--review-threshold",
        type=_number,
        default=THRESHOLD,
        metavar="N",
        help="skip reviews of changes below N lines and 3 files, and list them (default: review every success)",
    )
    parser.add_argument("--no-auto-align", action="store_true", help="inject no alignment and do not run ALIGN")
    parser.add_argument("--no-auto-review", action="store_true", help="inject no reviews")
    parser.add_argument("--focus", default="", metavar="ID", help="start with this epic")
    parser.add_argument("--no-focus", action="store_true", help="do not stay on an epic until it is done")
    for flag, span in (("--budget", "this run"), ("--day-budget", "a day")):
        text = f"what {span} may cost, as “$5, 2M tokens, 10 attempts”; it stops after the current bead"
        parser.add_argument(flag, type=_limits, default=NO_LIMITS, metavar="LIMITS", help=text)
    parser.add_argument(
        "--no-context",
        action="store_true",
        help="give agents neither stance nor context: nothing is written into the bead that ddx picks",
    )
    parser.add_argument("--ephemeral", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-s", "--summary", action="store_true", help="one line per event, the rest in the log")
    add_autonomy(parser)
    add_agent_options(parser)


def run(call: Call) -> int:
    """Run the loop here, start it in the background, or stop it."""
    if call.command != "stop":
        refuse_in_attempt(call)
    return {"run": _run, "start": _start, "stop": _stop}[call.command](call)


def options_of(call: Call) -> RunOptions:
    """The settings of a run, from the options."""
    options = call.options
    align = environment_options(os.environ).get("auto_align", "1") != "0"
    return RunOptions(
        max_cycles=options.max_cycles,
        review_every=options.review_every,
        review_threshold=options.review_threshold,
        auto_align=align and not options.no_auto_align,
        auto_review=not options.no_auto_review,
        autonomy=autonomy_of(call),
        focus=options.focus,
        auto_focus=not options.no_focus,
        context=not options.no_context,
        agent_choice=agent_choice_of(call),
        budget=Budget(options.budget, options.day_budget),
        default_budget=load_settings().budget,
    )


def _run(call: Call) -> int:
    options = options_of(call)
    with explained():
        curator = curator_of(call, who="loop")
        queue_state = curator.look()
        refuse_shut(queue_state, curator.project)
        note_difference(call, queue_state)
        delegate = delegate_of(call, curator)
        if call.options.dry_run:
            words = ("ddx", *delegate.drain(options.agent_choice.builder))
            queue = queue_state.queue
            held = note_what_comes_first(call, curator, queue_state)
            ready = [bead_id for bead_id in queue.ready if bead_id not in held]
            bead = queue.beads[ready[0]] if ready and options.context else None
            context = agent_context(curator.project, queue, bead) if bead is not None else ""
            if context and not call.json and bead is not None:
                call.note(
                    clean_block(f"added to {bead.id} while its agent works, and removed afterwards:\n{context}\n")
                )
            return show_dry_run(call, [words], ready=ready, context=context)
        outcome = supervised(call, curator, delegate, options, summary=call.options.summary)
    learned = learn(call, outcome)
    if call.json:
        call.emit(_document(outcome) | {"learned": learned})
    return outcome.stop.code


def note_what_comes_first(call: Call, curator: Curator, queue_state: QueueState) -> Collection[str]:
    """Say on stderr where a run lands, which beads it would keep from workers, and what it would do instead of
    executing a bead; return those beads.
    """
    documents, queue = document_facts(curator, queue_state.queue), queue_state.queue
    attempts = attempts_now(AttemptIndex.of(curator.project), queue, queue_state.dialect)
    summary = take_status_summary(queue_state, curator.project, attempts, documents=documents)
    verdict = summary.verdict
    call.note(f"helix: what ddx lands goes to {curator.project.branch() or 'no branch'}")
    for bead_id, attempt in summary.refused.items():
        words = refusal_words(queue.beads[bead_id], attempt)
        call.note(f"helix: the run keeps workers from {clean_line(bead_id, 60)}: {words}")
    others = [reason for reason in verdict.reasons if reason.code != REFUSED_BY_REVIEW]
    if verdict.next_action != "BUILD" and others:
        why = "; ".join(reason.detail for reason in others)
        call.note(clean_line(f"helix: {verdict.next_action} comes first: {why}", 600))
    return summary.refused


def learn(call: Call, outcome: RunOutcome) -> dict[str, object]:
    """Learn from a run's attempts by ddx's evidence: settle the injected memories, and propose lessons.

    If the memory cannot be opened, the lessons are lost and one line says so; the run is unaffected.
    """
    state = outcome.state
    since = parse_instant(state.started_at)
    if not state.attempted_cycles or since is None or call.read_only:
        return {}
    # imported only here: the memory's libraries take a fifth of a second, and `start` and `stop` do not need them
    from helix_tui.cli.loading import read_attempts
    from helix_tui.core.memory.lessons import waiting_lessons
    from helix_tui.core.memory.memory_store import open_memory
    from helix_tui.core.memory.provenance import teacher_here
    from helix_tui.core.memory.records import MemoryFault
    from helix_tui.core.memory.store.database import database_path
    from helix_tui.core.supervision.agents.learning import Learner, accept_by_rule, summed

    project = locate(call)
    # as of now: the call began before the run
    tracker, attempts = read_attempts(project, call.clock())
    try:
        # no encoder: settling and proposing compare no texts
        with open_memory(database_path(project), None, teacher=teacher_here()) as memory:
            learner = Learner(project, memory)
            found = learner.learn(tracker.beads, attempts, since=since)
            accept_by_rule(memory, load_settings().accept_lessons, attempts)
            waiting = len(waiting_lessons(memory))
    except (MemoryFault, OSError) as error:
        call.note(f"helix: nothing was learned from this run: {clean_line(error, 300)}")
        return {}
    if found and not call.options.quiet:
        many = counted(waiting, "lesson to review", "lessons to review")
        lessons = f"{many}: helix-tui memory proposals" if waiting else ""
        call.note(f"helix: memory: {' · '.join(filter(None, (summed(found), lessons)))}")
    return {"attempts": len(found), "proposed": sum(each.proposal is not None for each in found), "waiting": waiting}


def supervised(
    call: Call, curator: Curator, delegate: Delegate, options: RunOptions, *, summary: bool = False
) -> RunOutcome:
    """Run in this process until something stops it; signals end it in an orderly way."""
    # report an unreadable tracker before the run is recorded anywhere
    curator.look()
    control = Control(curator.project)
    try:
        with _signals(control):
            return supervise(
                curator.project,
                curator,
                delegate,
                options,
                say=_heard(call, control),
                blockers=blockers_of_run,
                control=control,
                confirm=_confirm if _somebody_there(call) else None,
                summary=summary,
                quiet=call.options.quiet,
            )
    except AlreadyRunning as error:
        fix = "Stop it with `helix-tui stop`, or watch it with `helix-tui status`."
        raise CliError(str(error), fix, 2) from None


def _heard(call: Call, control: Control) -> Callable[[str], None]:
    """Print each line of a run; when the reader has gone, ask the run to end, as a signal would."""

    def say(line: str) -> None:
        try:
            call.note(line)
        except ReaderGone:
            # raised while a line is printed, it would end the run halfway through a step
            control.interrupted = True

    return say


def _document(outcome: RunOutcome) -> dict[str, object]:
    stop, state = outcome.stop, outcome.state
    return {
        "stop_reason": stop.reason,
        "stop_detail": stop.detail,
        "meaning": stop.meaning,
        "recommended_command": stop.command or None,
        "exit_code": stop.code,
        "attempted_cycles": state.attempted_cycles,
        "completed_cycles": state.completed_cycles,
        "supervisory_cycles": state.supervisory_cycles,
        "skipped_count": state.skipped_count,
        "outcomes": state.outcomes,
        "verdicts": state.verdicts,
        "total_tokens": state.total_tokens,
        "cost_usd": state.cost_usd,
        "spent": state.sums.record(),
        "cycles": state.cycles,
        "injected": state.injected,
        "next_action": state.next_action or None,
        "next_eligible": state.next_eligible or None,
        "blockers": state.blockers,
        "problems": state.problems,
        "log": state.log,
        "run_id": state.run_id,
    }


def _start(call: Call) -> int:
    project = locate(call)
    holder = active_run(project)
    if holder is not None:
        raise CliError(f"run already active (pid={holder.pid})", "Use `helix-tui stop` first.")
    with explained():
        curator = curator_of(call)
        queue_state = curator.look()
        refuse_shut(queue_state, project)
        if call.options.dry_run:
            note_what_comes_first(call, curator, queue_state)
    words = [*programs.helix_tui(), "run", "--summary", "-C", str(project.root), *_again(call)]
    if call.options.dry_run:
        return show_dry_run(call, [words])
    if call.read_only:
        raise CliError("nothing was started: --read-only is set", "Run it without --read-only.")
    started = start_run(project, words)
    if started.code:
        fix = f"Its output: {started.log}"
        raise CliError(f"the run ended at once: {clean_line(started.trouble, 600)}", fix, started.code)
    if call.json:
        call.emit({"pid": started.pid, "log": str(started.log), "active": started.code is None})
    else:
        call.print(f"helix: started (pid={started.pid}, log={started.log})")
    return 0


def _again(call: Call) -> list[str]:
    """The options of this call for the run in the background."""
    options = call.options
    words = ["--max-cycles", str(options.max_cycles), "--review-every", str(options.review_every)]
    words += ["--review-threshold", str(options.review_threshold), "--autonomy", autonomy_of(call)]
    flags = {
        "--no-auto-align": options.no_auto_align,
        "--no-auto-review": options.no_auto_review,
        "--no-focus": options.no_focus,
        "--no-context": options.no_context,
        "--quiet": options.quiet,
    }
    words += [flag for flag, on in flags.items() if on]
    values = {
        "--focus": options.focus,
        "--budget": str(options.budget) if options.budget else "",
        "--day-budget": str(options.day_budget) if options.day_budget else "",
        "--agent": options.agent,
        "--review-agent": options.review_agent,
        "--model": options.model,
        "--effort": options.effort,
        "--ddx": call.ddx,
        "--timeout": options.timeout and f"{options.timeout:g}",
    }
    return words + [word for flag, value in values.items() if value for word in (flag, str(value))]


def _stop(call: Call) -> int:
    project = locate(call)
    if call.options.dry_run:
        return _foretell_stop(call, project, active_run(project))
    if call.read_only:
        raise CliError("nothing was stopped: --read-only is set", "Run it without --read-only.")
    # whoever left a console may have left its bead at work on purpose, and it is paid for
    left = () if call.options.after_bead or not _somebody_there(call) else left_at_work(project)
    if left and not _confirm(f"no active run; {describe_left(left[0])}. End it, its attempt included?"):
        raise CliError("nothing was stopped")
    try:
        ending = stop_run(project, now=not call.options.after_bead)
    except PermissionError:
        raise CliError(
            "the active run belongs to another user", "Ask them to stop it, or stop it as that user."
        ) from None
    said = {
        "none": "no active run (no PID file)",
        "stale": f"stale PID file removed (pid={ending.pid} was not running)",
        "left": f"no active run; ended what was still at work (pid={ending.pid})",
        "ends": f"no active run; {describe_left(ending.pid)}; it ends after its bead",
        "stopped": f"stopped (pid={ending.pid})",
        "killed": f"stopped by force (pid={ending.pid}); the next run takes over what it left",
        "asked": f"asked to stop after the current bead (pid={ending.pid})",
    }[ending.how]
    if ending.alive:
        said += f"; still alive: {', '.join(map(str, ending.alive))}"
    if call.json:
        call.emit({"pid": ending.pid or None, "how": ending.how, "alive": list(ending.alive)})
    call.note(f"helix: {said}") if call.json or ending.how in ("none", "stale") else call.print(f"helix: {said}")
    return 1 if ending.how in ("none", "stale") else 0


def _foretell_stop(call: Call, project: Project, holder: Holder | None) -> int:
    """Which process a stop would end, and how."""
    left = left_at_work(project)
    soft = call.options.after_bead
    how = ("ends" if soft else "left") if left else "none" if holder is None else "asked" if soft else "stopped"
    if call.json:
        pid = holder.pid if holder is not None else next(iter(left), None)
        call.emit({"dry_run": True, "pid": pid, "how": how})
    elif left:
        told = "it ends after its bead" if soft else "stop would end it, its attempt included"
        call.print(f"helix: no active run; {describe_left(left[0])}; {told}")
    elif holder is None:
        call.print("helix: no active run: nothing would be stopped")
    else:
        if how == "stopped":
            require_run(project, holder)
        way = "ask the run to stop after the current bead" if how == "asked" else "interrupt the run and its ddx"
        call.print(f"helix: would {way} (pid={holder.pid})")
    return 0


def _somebody_there(call: Call) -> bool:
    return not call.json and sys.stdin.isatty() and sys.stderr.isatty()


def _confirm(text: str) -> bool:
    sys.stderr.write(f"helix: {clean_line(text, 600)} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def _signals(control: Control) -> Iterator[None]:
    """The first signal asks the run to end, ddx included; a second one ends it at once."""

    def ask(number: int, frame: FrameType | None) -> None:
        if control.interrupted:
            raise KeyboardInterrupt
        control.interrupted = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _limits(text: str) -> Limits:
    try:
        return parse_limits(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)
