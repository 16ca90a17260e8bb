"""``helix-tui status | stuck | next``: what the run does or why it stopped, what does not move, what is
next.
"""

from __future__ import annotations

import argparse
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import load
from helix_tui.cli.paint import counted
from helix_tui.core.text import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of whichever of these commands was asked for."""
    if parser.prog.split()[-1] == "stuck":
        parser.add_argument(
            "--recover",
            nargs="*",
            metavar="ID",
            default=None,
            help="let go of orphaned claims: of these, or of all",
        )
        parser.add_argument("--dry-run", action="store_true", help="print the commands; change nothing")


def run(call: Call) -> int:
    """Tell."""
    return {"status": _status, "stuck": _stuck, "next": _next}[call.command](call)


def _status(call: Call) -> int:
    from helix_tui.core.supervision.run.status import status_document

    present = load(call)
    document = status_document(present.project, present.queue, present.runs, len(present.tracker.dropped))
    if call.json:
        call.emit(document)
    else:
        _print_status(call, document)
    return 0


def _print_status(call: Call, document: dict[str, Any]) -> None:
    tracker, run = document["tracker"], document["run"]
    call.print(call.paint("HELIX Status", "bold"))
    call.print(clean_line(document["explanation"], 1000))
    call.print(
        f"Tracker: {counted(tracker['total'], 'bead')}, {tracker['open']} open, {tracker['closed']} closed, "
        f"{tracker['ready']} ready ({tracker['ready_execution']} for workers), {tracker['blocked']} blocked"
    )
    active = document["active_run"]
    if active:
        call.print(
            f"Active run: pid {active['pid']}, started {active['started']}, log {clean_line(active['log'])}"
        )
    running = document["running_bead"]
    if running:
        call.print(
            f"Running: {clean_line(running['id'])} by {clean_line(running['harness'] or running['source'])}"
        )
    focus = document["focus"]
    if focus:
        call.print(f"Epic focus: {clean_line(focus['epic'] or 'ended half-way')}, {focus['held']} held back")
    if document["condition"] != "never":
        _print_run(call, document, run)
    decided = document["next_action"]
    if decided:
        call.print(
            f"Next action: {clean_line(decided['next_action'])} (decided by "
            f"{clean_line(decided['decided_by'])})"
        )
    for question in document["questions"]:
        call.print(call.paint(f"Asks {question['id']}: {clean_line(question['text'], 300)}", "attention"))
    for bead in document["injected_supervisory"][:5]:
        call.print(
            f"Injected: {clean_line(bead['id'])} {clean_line(bead['type'])} for "
            f"{clean_line(bead['triggering_bead'])}"
        )
    parked = document["parked_beads"]
    if parked:
        some = ", ".join(f"{clean_line(each['id'], 60)} ({each['reason']})" for each in parked[:5])
        call.print(f"Parked: {some}" + (f" and {len(parked) - 5} more" if len(parked) > 5 else ""))


def _print_run(call: Call, document: dict[str, Any], run: dict[str, Any]) -> None:
    """The counters of the run, what came of its attempts, and its last turns."""
    active = document["condition"] == "active"
    reason = "" if active else f", stop reason {clean_line(document['last_stop_reason'])}"
    call.print(
        f"{'This' if active else 'Last'} run: {run['completed_cycles']} completed of "
        f"{run['attempted_cycles']} attempted, {run['total_tokens']:,} tokens{reason}, "
        f"{run['last_run'] or run['updated_at']}"
    )
    if run["outcomes"]:
        said = ", ".join(f"{count} {clean_line(status, 60)}" for status, count in run["outcomes"].items())
        cost = f"; ${run['cost_usd']:.2f}" if run["cost_usd"] else ""
        call.print(f"Outcomes: {said}{cost}")
    turns = [
        each for each in run["cycles"] if isinstance(each, dict) and isinstance(each.get("results"), list)
    ]
    turns = [each for each in turns if each["results"]][-3:]
    for turn in turns:
        did = ", ".join(
            f"{clean_line(bead, 60)} {clean_line(status, 60)}" for bead, status in turn["results"]
        )
        call.print(f"Recent: {clean_line(turn.get('at'), 20)}  {did}")


def _stuck(call: Call) -> int:
    from helix_tui.cli.helix.shared import curator_of, explained
    from helix_tui.core.supervision.curation.rows import Scene
    from helix_tui.core.supervision.drift import DriftWatch
    from helix_tui.core.supervision.focus import read_focus
    from helix_tui.core.supervision.orphans import find_orphans
    from helix_tui.core.supervision.stuck import find_stuck

    if call.options.recover is not None:
        return _recover(call)
    with explained():
        curator = curator_of(call)
        sight = curator.look()
        drift = DriftWatch(curator.project, curator.gate).check(sight.queue.beads, curator.history())
        orphans = find_orphans(sight, curator.project)
        focus = read_focus(Scene(sight.queue)).epic
        stuck = find_stuck(sight.queue, orphans=orphans, drift=drift, epic=focus)
    if call.json:
        call.emit({"stuck": [each.record() for each in stuck], "as_of_ns": sight.queue.as_of})
        return 0
    if not stuck:
        call.print("nothing is stuck")
    for each in stuck:
        call.print(
            f"{call.paint(clean_line(each.bead_id), 'bold')}  {each.reason}: {clean_line(each.detail, 300)}"
        )
        call.print(f"    {clean_line(each.title, 120)} · could: {each.suggested_action}")
    return 0


def _recover(call: Call) -> int:
    from helix_tui.cli.curation.changing import tell
    from helix_tui.cli.helix.shared import curator_of, explained, show_dry_run
    from helix_tui.core.supervision.orphans import find_orphans, recover

    with explained():
        curator = curator_of(call)
        wanted = call.options.recover
        orphans = [
            each
            for each in find_orphans(curator.look(), curator.project)
            if not wanted or each.bead_id in wanted
        ]
        if not orphans:
            raise CliError("no orphaned claim here", "`helix-tui stuck` tells why the rest does not move.")
        if call.options.dry_run:
            return show_dry_run(
                call, [("ddx", "bead", "update", each.bead_id, "--unclaim") for each in orphans]
            )
        done = recover(curator, orphans)
    return tell(call, done, curator)


def _next(call: Call) -> int:
    from helix_tui.core.supervision.siblings import siblings

    present = load(call)
    ready = present.queue.ready
    first = ready[0] if ready else None
    together = siblings(present.queue, first)[1:] if first else ()
    if call.json:
        title = present.queue.beads[first].title if first else None
        call.emit({"id": first, "title": title, "ready": len(ready), "siblings": together})
    elif first is None:
        call.print("no ready issues")
    else:
        call.print(clean_line(first))
        call.note(clean_line(present.queue.beads[first].title, 200))
        if together:
            call.note(f"belongs with {', '.join(clean_line(each, 60) for each in together)}")
    return 0
