"""``helix-tui why ID``: why a bead is or is not next, and what closing it would make ready."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from helix_tui.cli.call import Call
from helix_tui.cli.loading import Present, archived_bead, find_bead, load_with_attempts, note_unread
from helix_tui.cli.queue_lines import run_line, title_of
from helix_tui.cli.show.queue import reasons, weight_document
from helix_tui.core.beads.graph import Circle, circle_ahead, circle_of, with_titles
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead, hold_reason
from helix_tui.core.beads.tracker import describe
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.evidence import interpret
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.git_state import BeadHistory, LastSeen
from helix_tui.core.ddx.runs.running import unheard_claim
from helix_tui.core.ground.text import clean_line, counted, fit
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.supervision.decide.needs import asked_of
from helix_tui.core.supervision.signals.kept_changes import refusal_words, refused_changes
from helix_tui.core.supervision.signals.questions import causes

_LABEL = 10
MAX_LOOKUPS = 12
MAX_NAMED = 10
"""How many beads of one reason are listed."""

MAX_CUTS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("id", metavar="ID", help="a bead id, or the beginning or end of one")
    parser.add_argument(
        "--era", choices=("auto", "april", "head"), default="auto", help="use one readiness rule for all beads"
    )


def run(call: Call) -> int:
    """Explain one bead."""
    present, attempts = load_with_attempts(call, call.options.era, call.options.id)
    queue = present.queue
    gone = archived_bead(present.project, queue.beads, call.options.id)
    if gone is not None:
        _print_archived(call, present, gone)
        return 0
    bead_id = find_bead(queue, call.options.id)
    bead, standing = queue.beads[bead_id], queue.standing(bead_id)
    missing = _missing(present, bead_id)
    # what did its work and left the bead open is no reason of the queue's, but says what to do
    last = next(iter(attempts.of_bead(bead_id)), None) if bead.status not in TERMINAL else None
    last = last if last is not None and last.verdict.outcome in ("landed", "satisfied") else None
    refused = refused_changes(queue, present.dialect, attempts).get(bead_id)
    note_unread(call, present.tracker)
    if call.json:
        call.emit(
            {
                "id": bead_id,
                "title": bead.title,
                "status": bead.status,
                "priority": bead.priority,
                "state": standing.state,
                "refused": present.shut.record() if present.shut is not None else None,
                "reasons": reasons(standing),
                "causes": why_not(present, bead, refused),
                "position": queue.position.get(bead_id),
                "unblocks": queue.unblocks(bead_id),
                "done_by": None if last is None else _attempt_document(last, call.now, queue),
                **weight_document(queue, bead_id),
                "depends_on": bead.depends_on,
                "dependents": queue.graph.dependents.get(bead_id, ()),
                "running": bead_id in queue.claims.running,
                "era": queue.engine(bead).name,
                "missing": [_missing_document(gone) for gone in missing],
                "circle": _circle_document(circle_of(queue, bead_id)),
                "waits_on_circle": _circle_document(circle_ahead(queue, bead_id)),
            }
        )
    else:
        for line in explanation(call, present, bead_id, dict(missing), last, refused):
            call.print(line)
    return 0


def _print_archived(call: Call, present: Present, bead: Bead) -> None:
    """Print how an archived bead ended, and what still waits on it."""
    gone = describe(bead)
    waiting = present.queue.graph.dependents.get(bead.id, ())
    if call.json:
        call.emit(
            {
                "id": bead.id,
                "title": bead.title,
                "status": bead.status,
                "priority": bead.priority,
                "state": bead.status,
                "archived": True,
                "day": gone.day or None,
                "depends_on": bead.depends_on,
                "dependents": waiting,
            }
        )
        return
    call.print(call.paint(title_of(bead), "bold"))
    shown = clean_line(bead.id)
    call.print(f"{'id':<{_LABEL}}{shown} · {clean_line(bead.issue_type)} · P{bead.priority}")
    call.print(f"{'state':<{_LABEL}}{gone.words}; `ddx bead show {shown}` has its record")
    for other in waiting:
        call.print(
            f"{'holds':<{_LABEL}}{clean_line(other)} waits on it, and ddx does not look into the archive: "
            f"helix-tui dep remove {clean_line(other)} {shown}"
        )


def _attempt_document(attempt: Attempt, now: int, queue: Queue) -> dict[str, object]:
    """The last attempt on an open bead, if it did its work; the follow-up is that of ``attempts``."""
    return {
        "attempt_id": attempt.attempt_id,
        "outcome": attempt.verdict.outcome,
        "at": format_instant(attempt.at) if attempt.at is not None else None,
        "follow_up": interpret(attempt, now, queue).follow_up,
    }


def why_not(present: Present, bead: Bead, refused: Attempt | None) -> tuple[str, ...]:
    """What a person can act on; ``refused``: its attempt whose change a review refused."""
    held = causes(bead, asked_of(present.project))
    return held if refused is None or hold_reason(bead) else (*held, refusal_words(bead, refused))


def explanation(
    call: Call,
    present: Present,
    bead_id: str,
    missing: dict[str, LastSeen | None],
    last: Attempt | None = None,
    refused: Attempt | None = None,
) -> list[str]:
    """The answer as lines of text."""
    queue, paint = present.queue, call.paint
    bead, standing = queue.beads[bead_id], queue.standing(bead_id)
    place = queue.position.get(bead_id)
    state = paint.state(standing.state)
    if place:
        state += f", number {place} of {len(queue.ready)} in the order DDx picks" + (" (next)" if place == 1 else "")
    if standing.state == "ready" and present.shut is not None:
        state += f"; {present.shut.short}"
    lines = [
        paint(title_of(bead), "bold"),
        f"{'id':<{_LABEL}}{clean_line(bead_id)} · {clean_line(bead.issue_type)} · P{bead.priority}",
        f"{'state':<{_LABEL}}{state}",
    ]
    runs = [run for run in present.runs if run.bead_id == bead_id]
    lines += [f"{'worker':<{_LABEL}}{run_line(run, queue.as_of, '')}" for run in runs]
    if claimed := unheard_claim(bead, next(iter(runs), None)):
        lines.append(f"{'claim':<{_LABEL}}{claimed}")
    # the reasons: what waits for a person first, then the queue's own
    held = why_not(present, bead, refused)
    for number, cause in enumerate(held):
        lead = f"{'because' if not number else '':<{_LABEL}}"
        lines.append(lead + clean_line(with_titles(cause, queue.beads)))
    for number, why in enumerate(standing.reasons, len(held)):
        lead = f"{'because' if not number else '':<{_LABEL}}"
        detail = clean_line(why.detail)
        if len(why.refs) > MAX_NAMED:  # the ids follow, one per line
            detail = fit(detail, call.paint.width - _LABEL).rstrip()
        lines.append(lead + detail)
        lines += _named(call, queue, why.refs, missing)
    if not standing.reasons and place is None:
        lines.append(f"{'because':<{_LABEL}}its status is {clean_line(bead.status, 40)}")
    if last is not None:
        age = f" {format_age((queue.as_of - last.at) / NS)} ago" if last.at is not None else ""
        follow_up = clean_line(interpret(last, queue.as_of, queue).follow_up, 300)
        lines.append(f"{'attempt':<{_LABEL}}{OUTCOME_WORDS[last.verdict.outcome]}{age}: {follow_up}")
    lines += _round_about(queue, bead_id)
    for target, seen in missing.items():
        if seen is not None and seen.where == "archive":
            edge = f"helix-tui dep remove {clean_line(bead_id)} {clean_line(target)}"
            lines.append(f"{'repair':<{_LABEL}}ddx does not look into the archive: {edge}")
    # what would follow from closing it
    freed = queue.unblocks(bead_id)
    if freed:
        lines.append(f"{'unblocks':<{_LABEL}}closing it makes {len(freed)} ready:")
        lines += _named(call, queue, freed, missing)
    elif bead.status != "closed":
        waiting = len(queue.graph.dependents.get(bead_id, ()))
        lines.append(
            f"{'unblocks':<{_LABEL}}"
            + (f"nothing at once; {waiting} wait on it and on others" if waiting else "nothing waits on it")
        )
    place, length = queue.graph.chains.chain_through(bead_id)
    # in a cycle no bead has a place: each comes before the others
    if length > 1 and circle_of(queue, bead_id) is None:
        critical = ", on the critical path" if queue.graph.chains.on_critical_path(bead_id) else ""
        waits = queue.graph.chains.holds_up.get(bead_id, 0)
        said = f"holds up {counted(waits, 'bead')}, " if waits else ""
        lines.append(f"{'path':<{_LABEL}}{said}{place} of {length} in its chain{critical}")
    return lines


def _round_about(queue: Queue, bead_id: str) -> list[str]:
    """The cycle that a bead is in or waits on, and what would break it."""
    mine = circle_of(queue, bead_id)
    circle = mine or circle_ahead(queue, bead_id)
    if circle is None:
        return []
    said = "in a dependency cycle" if mine else "waits on a dependency cycle"
    what = "none of these can ever start" if len(circle.ids) > 1 else "it waits on itself and can never start"
    lines = [f"{'cycle':<{_LABEL}}{said}, {what}: {circle.path(clean_line)}"]
    for number, cut in enumerate(circle.cuts[:MAX_CUTS]):
        lead = f"{'to break' if not number else '':<{_LABEL}}"
        then = f"then {clean_line(cut.waiter)} is ready" if cut.frees else "it still waits for others"
        lines.append(f"{lead}helix-tui dep remove {clean_line(cut.waiter)} {clean_line(cut.needed)}   ({then})")
    if len(circle.cuts) > MAX_CUTS:
        lines.append(f"{'':<{_LABEL}}or any other edge of the cycle")
    return lines


def _named(call: Call, queue: Queue, all_ids: Sequence[str], missing: dict[str, LastSeen | None]) -> list[str]:
    """A line for each bead; if there are many, the first few, and how many more by state."""
    ids = all_ids if len(all_ids) <= MAX_NAMED else all_ids[: MAX_NAMED - 1]
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
    """Missing beads that it waits on, and where each was last seen: only a few, because each look runs git."""
    gone = [target for target in present.queue.beads[bead_id].depends_on if target not in present.queue.beads]
    if not gone:
        return []
    history = BeadHistory(present.project)
    return [(target, history.last_seen(target) if place < MAX_LOOKUPS else None) for place, target in enumerate(gone)]


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
