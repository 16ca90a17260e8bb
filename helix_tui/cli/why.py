"""``helix-tui why ID``: why a bead is or is not next, and what closing it makes ready."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from helix_tui.cli.call import Call
from helix_tui.cli.listing import run_line
from helix_tui.cli.loading import Present, find_bead, load
from helix_tui.cli.queue import reasons
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.text import clean_line, fit

_LABEL = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("id", metavar="ID", help="a bead id, or the beginning or end of one")
    parser.add_argument("--era", choices=("auto", "april", "head"), default="auto", help="one rule for all")


def run(call: Call) -> int:
    """Explain one bead."""
    present = load(call, era=call.options.era)
    queue = present.queue
    bead_id = find_bead(queue, call.options.id)
    bead, standing = queue.beads[bead_id], queue.standing(bead_id)
    if call.json:
        call.emit(
            {
                "id": bead_id,
                "title": bead.title,
                "status": bead.status,
                "priority": bead.priority,
                "state": standing.state,
                "reasons": reasons(standing),
                "position": queue.position.get(bead_id),
                "unblocks": queue.unblocks(bead_id),
                "depends_on": bead.depends_on,
                "dependents": queue.graph.dependents.get(bead_id, ()),
                "running": bead_id in queue.claims.running,
                "era": queue.engine(bead),
            }
        )
    else:
        for line in explanation(call, present, bead_id):
            call.print(line)
    return 0


def explanation(call: Call, present: Present, bead_id: str) -> list[str]:
    """The answer in lines for people."""
    queue, paint = present.queue, call.paint
    bead, standing = queue.beads[bead_id], queue.standing(bead_id)
    place = queue.position.get(bead_id)
    state = paint.state(standing.state)
    if place:
        state += f", number {place} of {len(queue.ready)} in the order DDx picks" + (
            " (next)" if place == 1 else ""
        )
    lines = [
        paint(clean_line(bead.title, 400), "bold"),
        f"{'id':<{_LABEL}}{clean_line(bead_id)} · {clean_line(bead.issue_type)} · P{bead.priority}",
        f"{'state':<{_LABEL}}{state}",
    ]
    runs = [run for run in present.runs if run.bead_id == bead_id]
    lines += [f"{'worker':<{_LABEL}}{run_line(run, queue.as_of, '')}" for run in runs]
    for number, why in enumerate(standing.reasons):
        lines.append(f"{'because' if not number else '':<{_LABEL}}{clean_line(why.detail)}")
        lines += _named(call, queue, why.refs)
    if not standing.reasons and place is None:
        lines.append(f"{'because':<{_LABEL}}its status is {clean_line(bead.status, 40)}")
    freed = queue.unblocks(bead_id)
    if freed:
        lines.append(f"{'unblocks':<{_LABEL}}closing it makes {len(freed)} ready:")
        lines += _named(call, queue, freed)
    elif bead.status != "closed":
        waiting = len(queue.graph.dependents.get(bead_id, ()))
        lines.append(
            f"{'unblocks':<{_LABEL}}"
            + (f"nothing at once; {waiting} wait on it and on more" if waiting else "nothing waits on it")
        )
    return lines


def _named(call: Call, queue: Queue, ids: Iterable[str]) -> list[str]:
    lines = []
    for bead_id in ids:
        bead = queue.beads.get(bead_id)
        what = f"{queue.state(bead_id)}  {clean_line(bead.title, 400)}" if bead else "not in the tracker"
        line = f"{clean_line(bead_id)}  {what}"
        lines.append(" " * _LABEL + "  " + fit(line, call.paint.width - _LABEL - 2).rstrip())
    return lines
