"""``helix-tui status | stuck | next``: what the run does or why it stopped, what is stuck, what is next."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import Present, load, note_unread
from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.beads.graph import with_titles
from helix_tui.core.ddx.attempts.costs import format_tokens, format_whole, read_sums
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import capitalized, clean_line, counted
from helix_tui.core.statements.counts import count_project, queue_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    if parser.prog.split()[-1] == "stuck":
        parser.add_argument(
            "--recover", nargs="*", metavar="ID", default=None, help="release orphaned claims: these, or all"
        )
        parser.add_argument("--dry-run", action="store_true", help="print the commands; change nothing")


def run(call: Call) -> int:
    """Print the answer."""
    return {"status": _status, "stuck": _stuck, "next": _next}[call.command](call)


def _status(call: Call) -> int:
    from helix_tui.core.statements.run import status_document

    present = load(call)
    counts, dropped = count_project(present.project, present.queue), len(present.tracker.dropped)
    document = status_document(present.project, present.queue, counts, present.runs, dropped)
    document["refused"] = present.shut.record() if present.shut is not None else None
    if not call.read_only:
        _forget_dead(call, present.project)
    if call.json:
        call.emit(document)
    else:
        _print_status(call, document, counts, present)
    note_unread(call, present.tracker)
    return 0


def _forget_dead(call: Call, project: Project) -> None:
    from helix_tui.core.supervision.run_state.state import forget_dead

    # the answer is printed even if the folder cannot be written
    with suppress(OSError):
        dead = forget_dead(project)
        if dead is not None:
            call.note(f"helix: removed the pid file of a run that has ended (pid {dead.pid})")


def _print_status(call: Call, document: dict[str, Any], counts: QueueCounts, present: Present) -> None:
    run, refused, titled = document["run"], present.shut, partial(with_titles, beads=present.queue.beads, most=5)
    call.print(call.paint("HELIX Status", "bold"))
    call.print(titled(clean_line(document["explanation"], 1000)))
    but = f" · {refused.short}" if refused is not None else ""
    call.print(f"Tracker: {queue_line(counts)}{but}")
    worker = document["last_worker"]
    if worker:
        call.print(call.paint(clean_line(_sentence(worker), 1000), "attention"))
    active = document["active_run"]
    if active:
        call.print(f"Active run: pid {active['pid']}, started {active['started']}, log {clean_line(active['log'])}")
    running = document["running_bead"]
    if running:
        who = clean_line(running["harness"] or running["source"])
        call.print(f"Running: {titled(clean_line(running['id']))} by {who}")
    focus = document["focus"]
    if focus:
        epic = titled(clean_line(focus["epic"])) if focus["epic"] else "ended half-way"
        call.print(f"Epic focus: {epic}, {focus['held']} held back")
    if document["condition"] != "never":
        _print_run(call, document, run)
    decided = document["next_action"]
    if decided:
        code = clean_line(decided["next_action"])
        now = ""
        if code in ("STOP", "WAIT") and counts.ready:  # what the run held back is ready once it has ended
            now = f" when last asked; {counted(len(counts.ready), 'bead is', 'beads are')} ready now"
        call.print(f"Next action: {code} (decided by {clean_line(decided['decided_by'])}){now}")
    for question in document["questions"]:
        call.print(call.paint(f"Asks {question['id']}: {titled(clean_line(question['text'], 300))}", "attention"))
    for bead in document["injected_supervisory"][:5]:
        about = titled(clean_line(bead["triggering_bead"]))
        call.print(f"Injected: {clean_line(bead['id'])} {clean_line(bead['type'])} for {about}")
    parked = document["parked_beads"]
    if parked:
        some = ", ".join(f"{clean_line(each['id'], 60)} ({each['reason']})" for each in parked[:5])
        call.print(f"Not moving: {titled(some)}" + (f" and {len(parked) - 5} more" if len(parked) > 5 else ""))


def _sentence(worker: dict[str, Any]) -> str:
    words, fix = str(worker["words"]), worker["fix"]
    mend = f". Fix: {fix}" if fix and worker["cause_present"] is not False else ""
    return f"{capitalized(words)}{mend} ({worker['ended_at']})"


def _in_words(outcome: object) -> str:
    words: Mapping[str, str] = dict(OUTCOME_WORDS.items())
    return clean_line(words.get(str(outcome), str(outcome)), 60)


def _print_run(call: Call, document: dict[str, Any], run: dict[str, Any]) -> None:
    """Print the run's counters, the outcomes of its attempts, and its last turns."""
    active = document["condition"] == "active"
    ours = f"{run['supervisory_cycles']} supervisory, " if run["supervisory_cycles"] else ""
    reason = "" if active else f", stop reason {clean_line(document['last_stop_reason'])}"
    call.print(
        f"{'This' if active else 'Last'} run: {run['completed_cycles']} completed of "
        f"{run['attempted_cycles']} attempted, {ours}{format_tokens(read_sums(run['spent']))}{reason}, "
        f"{run['last_run'] or run['updated_at']}"
    )
    if run["outcomes"]:
        # an older helix-tui recorded statuses only
        came_to = {_in_words(outcome): count for outcome, count in run["verdicts"].items()} or run["outcomes"]
        said = ", ".join(f"{count} {clean_line(outcome, 60)}" for outcome, count in came_to.items())
        call.print(f"Outcomes: {said}; {format_whole(read_sums(run['spent']))}")
    turns = [each for each in run["cycles"] if isinstance(each, dict) and isinstance(each.get("results"), list)]
    turns = [each for each in turns if each["results"]][-3:]
    for turn in turns:
        told = turn.get("verdicts")
        came_to = [_in_words(outcome) for outcome in told] if isinstance(told, list) else []
        ends = [f"{clean_line(bead, 60)} {clean_line(status, 60)}" for bead, status in turn["results"]]
        # an older helix-tui recorded statuses only
        if len(came_to) == len(ends):
            ends = [f"{end} ({outcome})" for end, outcome in zip(ends, came_to, strict=True)]
        did = ", ".join(ends)
        whose = " (of the run before)" if turn.get("recovered") is True else ""
        call.print(f"Recent: {clean_line(turn.get('at'), 20)}  {did}{whose}")


def _stuck(call: Call) -> int:
    from helix_tui.cli.helix.shared import curator_of, explained, note_difference
    from helix_tui.core.editing.overlay import Overlay
    from helix_tui.core.statements.stuck import find_stuck, mend_words
    from helix_tui.core.supervision.decide.check import document_facts
    from helix_tui.core.supervision.decide.facts import unasked
    from helix_tui.core.supervision.run_state.run_status import last_stoppage
    from helix_tui.core.supervision.run_state.state import load_state
    from helix_tui.core.supervision.signals.drift import DriftWatch
    from helix_tui.core.supervision.signals.focus import read_focus
    from helix_tui.core.supervision.signals.orphans import find_left
    from helix_tui.core.supervision.signals.questions import OpenQuestions
    from helix_tui.core.supervision.signals.tried import still_tried

    if call.options.recover is not None:
        return _recover(call)
    with explained():
        curator = curator_of(call)
        queue_state = curator.look()
        drift = DriftWatch(curator.project, curator.gate).check(queue_state.queue.beads, curator.history())
        focus = read_focus(Overlay(queue_state.queue)).epic
        questions = OpenQuestions(curator.project, curator.gate).all()
        conflicts = document_facts(curator, queue_state.queue).look(curator.project, queue_state.queue.beads).conflicts
        state = load_state(curator.project)
        stuck = find_stuck(
            queue_state.queue,
            orphans=find_left(queue_state.runs, queue_state.queue).all,
            drift=drift,
            epic=focus,
            questions=questions,
            unasked=unasked(conflicts, questions),
            tried=still_tried(state.tried, queue_state.queue),
            stoppage=last_stoppage(curator.project, queue_state.runs, state),
            archive=curator.project.archive_file,
        )
    note_unread(call, queue_state.tracker)
    note_difference(call, queue_state)
    if call.json:
        if queue_state.shut is not None:
            call.note(str(queue_state.shut))
        call.emit(
            {
                "refused": queue_state.shut.record() if queue_state.shut is not None else None,
                "stuck": [each.record() for each in stuck],
                "unread_lines": len(queue_state.tracker.dropped),
                "as_of_ns": queue_state.queue.as_of,
            }
        )
        return 0
    if not stuck and not queue_state.tracker.dropped and queue_state.shut is None:
        call.print("nothing is stuck")
    if queue_state.shut is not None:
        # it holds up every bead, so it is an answer and not only a note
        call.print(clean_line(str(queue_state.shut), 1000))
    for each in stuck:
        call.print(f"{call.paint(clean_line(each.name), 'bold')}  {each.reason}: {clean_line(each.detail, 300)}")
        about = f"{clean_line(each.title, 120)} · " if each.title else ""
        call.print(f"    {about}could: {clean_line(mend_words(each, curator.at_hand), 400)}")
    return 0


def _recover(call: Call) -> int:
    from helix_tui.cli.editing.change import tell
    from helix_tui.cli.helix.shared import curator_of, explained, show_dry_run
    from helix_tui.core.ddx.dialect import dialect_or_family
    from helix_tui.core.supervision.signals.orphans import find_left, recover

    with explained():
        curator = curator_of(call)
        wanted = call.options.recover
        queue_state = curator.look()
        left = find_left(queue_state.runs, queue_state.queue)
        orphans = [each for each in left.all if not wanted or each.bead_id in wanted]
        if not orphans:
            raise CliError("no claim of a dead process here", "`helix-tui stuck` says why other beads are stuck.")
        if call.options.dry_run:
            update = dialect_or_family(queue_state.dialect, queue_state.queue).words("update")
            return show_dry_run(call, [("ddx", *update, orphan.bead_id, "--unclaim") for orphan in orphans])
        done = recover(curator, orphans)
    return tell(call, done, curator)


def _next(call: Call) -> int:
    from helix_tui.core.ddx.attempts.index import AttemptIndex
    from helix_tui.core.statements.why import held_by
    from helix_tui.core.supervision.decide.needs import asked_of
    from helix_tui.core.supervision.signals.kept_changes import attempts_now, refused_changes
    from helix_tui.core.supervision.signals.scope import siblings

    present = load(call)
    # A bead that ddx refuses to hand out is nobody's next bead.
    ready = present.queue.ready if present.shut is None or present.shut.lists else ()
    first = ready[0] if ready else None
    together = siblings(present.queue, first)[1:] if first else ()
    attempts = attempts_now(AttemptIndex.of(present.project, first or ""), present.queue, present.dialect)
    refused = refused_changes(present.queue, present.dialect, attempts)
    waits = held_by(present.queue.beads[first], asked_of(present.project), refused.get(first)) if first else ()
    note_unread(call, present.tracker)
    if call.json:
        title = present.queue.beads[first].title if first else None
        call.emit(
            {"id": first, "title": title, "ready": len(ready), "siblings": together, "causes": waits}
            | {"unread_lines": len(present.tracker.dropped)}
            | {"refused": present.shut.record() if present.shut is not None else None}
        )
    elif present.shut is not None and not present.shut.lists:
        raise CliError(f"no bead is next: {present.shut.short}", present.shut.fix)
    elif first is None:
        call.print("no ready issues")
    else:
        call.print(clean_line(first))
        call.note(clean_line(present.queue.beads[first].title, 200))
        for wait in waits:
            call.note(clean_line(wait, 400))
        if together:
            call.note(f"belongs with {', '.join(clean_line(each, 60) for each in together)}")
    return 0
