"""``helix-tui why ID``: why a bead is or is not next, and what closing it makes ready."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from helix_tui.cli.call import Call
from helix_tui.cli.listing import run_line, title_of
from helix_tui.cli.loading import Present, find_bead, load
from helix_tui.cli.queue import reasons
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.clock import NS, format_age, format_instant
from helix_tui.core.ddx.history import History, LastSeen
from helix_tui.core.text import clean_line, fit

_LABEL = 10
MOST_LOOKUPS = 12


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
    missing = _missing(present, bead_id)
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
                "missing": [_missing_document(gone) for gone in missing],
            }
        )
    else:
        for line in explanation(call, present, bead_id, dict(missing)):
            call.print(line)
    return 0


def explanation(call: Call, present: Present, bead_id: str, missing: dict[str, LastSeen | None]) -> list[str]:
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
        paint(title_of(bead), "bold"),
        f"{'id':<{_LABEL}}{clean_line(bead_id)} · {clean_line(bead.issue_type)} · P{bead.priority}",
        f"{'state':<{_LABEL}}{state}",
    ]
    runs = [run for run in present.runs if run.bead_id == bead_id]
    lines += [f"{'worker':<{_LABEL}}{run_line(run, queue.as_of, '')}" for run in runs]
    for number, why in enumerate(standing.reasons):
        lines.append(f"{'because' if not number else '':<{_LABEL}}{clean_line(why.detail)}")
        lines += _named(call, queue, why.refs, missing)
    if not standing.reasons and place is None:
        lines.append(f"{'because':<{_LABEL}}its status is {clean_line(bead.status, 40)}")
    freed = queue.unblocks(bead_id)
    if freed:
        lines.append(f"{'unblocks':<{_LABEL}}closing it makes {len(freed)} ready:")
        lines += _named(call, queue, freed, missing)
    elif bead.status != "closed":
        waiting = len(queue.graph.dependents.get(bead_id, ()))
        lines.append(
            f"{'unblocks':<{_LABEL}}"
            + (f"nothing at once; {waiting} wait on it and on more" if waiting else "nothing waits on it")
        )
    return lines


def _named(call: Call, queue: Queue, ids: Iterable[str], missing: dict[str, LastSeen | None]) -> list[str]:
    lines = []
    for bead_id in ids:
        bead = queue.beads.get(bead_id)
        if bead is None:
            what = f"not in the tracker; {_last_seen(missing.get(bead_id), queue.as_of)}"
        else:
            what = f"{queue.state(bead_id)}  {title_of(bead)}"
        line = f"{clean_line(bead_id)}  {what}"
        lines.append(" " * _LABEL + "  " + fit(line, call.paint.width - _LABEL - 2).rstrip())
    return lines


def _missing(present: Present, bead_id: str) -> list[tuple[str, LastSeen | None]]:
    """What it waits for that the tracker lacks, and where that was last seen: a few, for each runs git."""
    gone = [target for target in present.queue.beads[bead_id].depends_on if target not in present.queue.beads]
    if not gone:
        return []
    history = History(present.project)
    return [
        (target, history.last_seen(target) if place < MOST_LOOKUPS else None)
        for place, target in enumerate(gone)
    ]


def _missing_document(gone: tuple[str, LastSeen | None]) -> dict[str, object]:
    bead_id, seen = gone
    found = seen and {
        "where": seen.where,
        "status": seen.status,
        "title": seen.title,
        "rev": seen.rev or None,
        "when": None if seen.when is None else format_instant(seen.when),
    }
    return {"id": bead_id, "last_seen": found}


def _last_seen(seen: LastSeen | None, now: int) -> str:
    if seen is None:
        return "neither archive nor git history knows it"
    age = f", {format_age((now - seen.when) / NS)} ago" if seen.when is not None else ""
    where = "archived" if seen.where == "archive" else f"last in git before {seen.rev[:8]}"
    return f"{where} as {clean_line(seen.status, 30)}{age}"
