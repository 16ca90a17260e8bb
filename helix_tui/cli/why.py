"""``helix-tui why ID``: why a bead is or is not next, and what closing it makes ready."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from helix_tui.cli.call import Call
from helix_tui.cli.listing import run_line, title_of
from helix_tui.cli.loading import Present, find_bead, load
from helix_tui.cli.queue import reasons
from helix_tui.core.beads.circles import Circle, circle_ahead, circle_of
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.clock import NS, format_age, format_instant
from helix_tui.core.ddx.history import History, LastSeen
from helix_tui.core.text import clean_line, fit

_LABEL = 10
MOST_LOOKUPS = 12
MOST_NAMED = 10
"""Beads of one reason that get a line."""

MOST_CUTS = 4


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
                "circle": _circle_document(circle_of(queue, bead_id)),
                "waits_on_circle": _circle_document(circle_ahead(queue, bead_id)),
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
        lead = f"{'because' if not number else '':<{_LABEL}}"
        detail = clean_line(why.detail)
        if len(why.refs) > MOST_NAMED:  # the ids follow, one a line
            detail = fit(detail, call.paint.width - _LABEL).rstrip()
        lines.append(lead + detail)
        lines += _named(call, queue, why.refs, missing)
    if not standing.reasons and place is None:
        lines.append(f"{'because':<{_LABEL}}its status is {clean_line(bead.status, 40)}")
    lines += _round_about(queue, bead_id)
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


def _round_about(queue: Queue, bead_id: str) -> list[str]:
    """The circle that a bead is in, or that it waits on; and what would break it."""
    mine = circle_of(queue, bead_id)
    circle = mine or circle_ahead(queue, bead_id)
    if circle is None:
        return []
    said = "in a circle" if mine else "waits on a circle"
    what = "none of these can ever start" if len(circle.ids) > 1 else "it waits on itself and can never start"
    lines = [f"{'circle':<{_LABEL}}{said}, {what}: {circle.path(clean_line)}"]
    for number, cut in enumerate(circle.cuts[:MOST_CUTS]):
        lead = f"{'to break' if not number else '':<{_LABEL}}"
        then = f"then {clean_line(cut.waiter)} is ready" if cut.frees else "it goes on waiting on others"
        lines.append(
            f"{lead}helix-tui dep remove {clean_line(cut.waiter)} {clean_line(cut.needed)}   ({then})"
        )
    if len(circle.cuts) > MOST_CUTS:
        lines.append(f"{'':<{_LABEL}}or any other edge of the circle")
    return lines


def _named(
    call: Call, queue: Queue, all_ids: Sequence[str], missing: dict[str, LastSeen | None]
) -> list[str]:
    """A line for each bead; of many the first few, and how many more in which states."""
    ids = all_ids if len(all_ids) <= MOST_NAMED else all_ids[: MOST_NAMED - 1]
    lines = []
    for bead_id in ids:
        bead = queue.beads.get(bead_id)
        if bead is None:
            what = f"not in the tracker; {_last_seen(missing.get(bead_id), queue.as_of)}"
        else:
            what = f"{queue.state(bead_id)}  {title_of(bead)}"
        line = f"{clean_line(bead_id)}  {what}"
        lines.append(" " * _LABEL + "  " + fit(line, call.paint.width - _LABEL - 2).rstrip())
    rest = all_ids[len(ids) :]
    if rest:
        counted = Counter(queue.state(other) if other in queue.beads else "missing" for other in rest)
        states = ", ".join(f"{count:,} {state}" for state, count in counted.most_common())
        lines.append(" " * _LABEL + f"  … {len(rest):,} more: {states} (all in --json)")
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


def _circle_document(circle: Circle | None) -> dict[str, object] | None:
    if circle is None:
        return None
    cuts = [{"bead": cut.waiter, "needs": cut.needed, "frees": cut.frees} for cut in circle.cuts]
    return {"ids": circle.ids, "cuts": cuts}


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
