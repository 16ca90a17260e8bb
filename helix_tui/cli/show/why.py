"""``helix-tui why ID``: why a bead is or is not next, and what closing it would make ready."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from helix_tui.cli.call import Call
from helix_tui.cli.loading import Present, archived_bead, find_bead, load_with_attempts, note_unread
from helix_tui.cli.queue_lines import title_of
from helix_tui.cli.show.queue import reasons, weight_document
from helix_tui.core.beads.graph import Circle, circle_ahead, circle_of, with_titles
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import STATES
from helix_tui.core.beads.tracker import describe
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.interpretation import interpret
from helix_tui.core.ddx.git_state import BeadHistory, LastSeen
from helix_tui.core.ground.text import clean_line, fit
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.statements.why import Statement, Topic, explain, held_by
from helix_tui.core.supervision.decide.needs import asked_of
from helix_tui.core.supervision.signals.kept_changes import refused_changes

_LABEL = 10
MAX_LOOKUPS = 12
MAX_NAMED = 10
"""How many beads of one reason are listed."""

_LABELS: Mapping[Topic, str] = {"break": "to break"}


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
    held = held_by(bead, asked_of(present.project), refused)
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
                "causes": held,
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
        runs = [run for run in present.runs if run.bead_id == bead_id]
        said = explain(bead, queue, runs=runs, held=held, shut=present.shut, last=last)
        for line in _lines(call, present, bead, said, dict(missing)):
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


def _lines(
    call: Call, present: Present, bead: Bead, said: Iterable[Statement], missing: dict[str, LastSeen | None]
) -> Iterator[str]:
    """The answer as lines of text, each with what it is about in front, and the beads that it names below it."""
    queue = present.queue
    yield call.paint(title_of(bead), "bold")
    yield f"{'id':<{_LABEL}}{clean_line(bead.id)} · {clean_line(bead.issue_type)} · P{bead.priority}"
    last = ""
    for each in said:
        label, last = "" if each.topic == last else _LABELS.get(each.topic, each.topic), each.topic
        listed = each.refs if each.topic in ("because", "blocks") else ()
        text = with_titles(each.text, queue.beads) if each.topic == "but" else each.text
        if len(listed) > MAX_NAMED:  # the ids follow, one per line
            text = fit(each.text, call.paint.width - _LABEL).rstrip()
        yield f"{label:<{_LABEL}}{text}"
        if each.command:
            yield f"{'':<{_LABEL}}  {each.command}"
        yield from _named(call, queue, listed, missing)
    for target, seen in missing.items():
        if seen is not None and seen.where == "archive":
            edge = f"helix-tui dep remove {clean_line(bead.id)} {clean_line(target)}"
            yield f"{'repair':<{_LABEL}}ddx does not look into the archive: {edge}"


def _named(call: Call, queue: Queue, all_ids: Sequence[str], missing: dict[str, LastSeen | None]) -> list[str]:
    """A line for each bead; if there are many, the first few, and how many more by state."""
    ids = all_ids if len(all_ids) <= MAX_NAMED else all_ids[: MAX_NAMED - 1]
    lines = []
    for bead_id in ids:
        bead = queue.beads.get(bead_id)
        if bead is None:
            what = f"not in the tracker; {_last_seen(missing.get(bead_id), queue.as_of)}"
        else:
            what = f"{STATES[queue.state(bead_id)].sign.word}  {title_of(bead)}"
        line = f"{clean_line(bead_id)}  {what}"
        lines.append(" " * _LABEL + "  " + fit(line, call.paint.width - _LABEL - 2).rstrip())
    rest = all_ids[len(ids) :]
    if rest:
        counted = Counter(STATES[queue.state(other)].sign.word if other in queue.beads else "missing" for other in rest)
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
