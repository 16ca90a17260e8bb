"""The queue in lines for people: rows, notes, and the counts in one line, the same in every command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from helix_tui.cli.call import Call
from helix_tui.cli.loading import Present
from helix_tui.core.beads.graph import circles
from helix_tui.core.beads.readiness import NOT_ELIGIBLE, Queue
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.states import STATES, states_where
from helix_tui.core.beads.tracker import describe, read_archive
from helix_tui.core.beads.views import build_view
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import cell_width, clean_line, counted, fit, short_id
from helix_tui.core.ground.time import NS, format_age, format_instant
from helix_tui.core.statements.counts import count_project
from helix_tui.core.statements.why import note_on, run_words

if TYPE_CHECKING:
    from helix_tui.core.supervision.signals.orphans import Gone


def queue_lines(call: Call, present: Present, shown: Sequence[str], archived: Sequence[str] | None = None) -> list[str]:
    """The queue: unfinished beads in the order asked for; finished ones are counted.

    Args:
        shown: ids that pass the filter, in the order asked for.
        archived: archived ids that pass it; None if they are not asked for.
    """
    if call.options.order == "pick":
        body: Iterable[str] = _by_state(call, present, shown)
    else:
        body = _as_on_screen(call, present.queue)
    return [
        _headline(call, present, len(shown)),
        "",
        *body,
        *_archived(call, present, archived),
        "",
        *notes(call, present),
    ]


def _archived(call: Call, present: Present, archived: Sequence[str] | None) -> list[str]:
    """Beads of ddx's archive that pass the filter, if they are asked for."""
    if archived is None:
        return []
    beads = read_archive(present.project.archive_file).beads
    found = [describe(beads[bead_id]) for bead_id in archived]
    lines = [f"{clean_line(each.bead_id, 60)}  {each.day or each.status}  {each.title}" for each in found]
    return ["", f"archived {len(found):,}", *(fit("  " + line, call.paint.width).rstrip() for line in lines)]


def _by_state(call: Call, present: Present, shown: Sequence[str]) -> list[str]:
    """One paragraph per state, running beads first; with a filter, also the finished beads that pass it."""
    queue = present.queue
    runs: dict[str, list[Run]] = {}
    for run in present.runs:
        runs.setdefault(run.bead_id or "", []).append(run)
    states = {bead_id: queue.state(bead_id) for bead_id in shown}
    shown_states = [state for state in STATES if call.options.filter or state not in TERMINAL]
    lines: list[str] = []
    for state in shown_states:
        group = [bead_id for bead_id in shown if states[bead_id] == state]
        if state != "ready":
            # ready beads are in ddx's pick order, which is not by priority alone
            group.sort(key=lambda bead_id: queue.beads[bead_id].priority)
        if group:
            but = f" · {present.shut.short}" if state == "ready" and present.shut is not None else ""
            lines += ["", f"{call.paint.state(state)} {len(group)}{but}"]
            for bead_id in group:
                lines.append(_row(call, queue, bead_id))
                lines += [" " * 10 + run_words(run, queue.as_of) for run in runs.get(bead_id, ()) if run.live]
    return lines[1:] or [_nothing(call, present)]


def _nothing(call: Call, present: Present) -> str:
    """Why no bead is listed."""
    if call.options.filter:
        return "nothing to show"
    unread = present.tracker.dropped
    if present.queue.beads:
        return f"nothing to do: every bead{' that can be read' if unread else ''} is closed or cancelled"
    return "no line of the tracker can be read" if unread else "nothing to do: the queue is empty"


def _as_on_screen(call: Call, queue: Queue) -> Iterator[str]:
    """The tree or the graph as the console has it, folds and all."""
    tree = call.options.order == "tree"
    rows = build_view(queue, "tree" if tree else "dag", call.options.filter).rows
    leads = [("  " * row.depth if tree else row.gutter + " ") for row in rows]
    width = 0 if tree else min(16, max(map(cell_width, leads), default=0))
    for row, lead in zip(rows, leads, strict=True):
        lead = lead if tree else fit(lead, width)
        if row.kind == "fold":
            yield call.paint(f"{'':>{12 + _id_width(queue)}}{lead}… {row.text}", "muted")
        elif row.kind == "missing":
            name = fit(clean_line(short_id(row.bead_id)), _id_width(queue))
            yield f"{'':>10}{name}  {lead}" + call.paint("not in the tracker", "attention")
        elif row.kind == "bead":
            yield _row(call, queue, row.bead_id, lead, name_state=True)


def _headline(call: Call, present: Present, shown: int) -> str:
    queue, project = present.queue, present.project
    branch = project.branch()
    written = f"written {format_age((call.now - present.tracker.mtime_ns) / NS)} ago"
    as_of = f"as of {format_instant(queue.as_of)}" if call.fixed_now else written
    parts = [
        clean_line(project.name, 40) + (f" ⎇ {clean_line(branch, 30)}" if branch else ""),
        f"{shown:,} of {counted(len(queue.beads), 'bead')}"
        if call.options.filter
        else counted(len(queue.beads), "bead"),
        str(count_project(project, queue)),
        present.shut.short if present.shut is not None else "",
        "" if present.tracker.missing else f"rules of {present.judged_by}",
        "no bead yet" if present.tracker.missing else as_of,
    ]
    return " · ".join(filter(None, parts))


def _row(call: Call, queue: Queue, bead_id: str, lead: str = "", *, name_state: bool = False) -> str:
    """``   1  P0  ddx-0e268fe3  title … why``, as wide as the terminal."""
    bead, standing = queue.beads[bead_id], queue.standing(bead_id)
    place = queue.position.get(bead_id)
    head = f"{place if place and standing.state == 'ready' else '':>4}  P{bead.priority}  "
    name = fit(clean_line(short_id(bead_id)), _id_width(queue))
    note = _note(queue, bead, name_state=name_state)
    left = call.paint.width - len(head) - _id_width(queue) - 2 - (cell_width(note) + 2 if note else 0)
    title = fit(lead + title_of(bead), max(12, left))
    tail = "  " + call.paint(note, "muted") if note else ""
    return f"{head}{call.paint(name, STATES[standing.state].sign.role)}  {title}{tail}".rstrip()


def _note(queue: Queue, bead: Bead, *, name_state: bool) -> str:
    """The note that lists on the screen have; without one, the first reason, or what waits for the bead."""
    state, reasons, found = queue.state(bead.id), queue.standing(bead.id).reasons, note_on(bead, queue, queue.as_of)
    word = STATES[state].sign.word
    if found is not None and found.text != word:
        note = found.text
    elif state == "ready":
        freed = len(queue.unblocks(bead.id))
        return f"unblocks {freed}" if freed else ""
    elif reasons and state not in ("running", "proposed") and reasons[0].detail != NOT_ELIGIBLE:
        note = fit(clean_line(reasons[0].detail), 28).rstrip()
    else:
        note = ""
    return f"{word} {note}".rstrip() if name_state and state != "waiting_dependencies" else note


def title_of(bead: Bead) -> str:
    """The title, cleaned; never empty."""
    return clean_line(bead.title, 400) or "(no title)"


@lru_cache(maxsize=1)
def _id_width(queue: Queue) -> int:
    """The width of the widest shortened id; one unusually long id does not widen the column."""
    return min(12, max((cell_width(clean_line(short_id(bead_id))) for bead_id in queue.beads), default=12))


def claims_left(left: Gone) -> str:
    """How many workers are dead, and how many of them hold nothing any more."""
    return f"{counted(len(left.all), 'claim')} of dead workers{left.at_large}"


def notes(call: Call, present: Present) -> list[str]:
    """Notes on what the rows leave out: finished, unreadable, unknown or missing beads, and cycles."""
    queue, tracker = present.queue, present.tracker
    counts = queue.counts()
    finished = ", ".join(f"{counts.get(state, 0):,} {state}" for state in states_where(lane="done"))
    archive = read_archive(present.project.archive_file)
    if away := count_project(present.project, queue).put_away:
        finished += f"; {away}; --archived lists them"
    lines = [call.paint(finished, "muted")]
    if archive.problem or archive.unread:
        lines.append(call.paint(clean_line(archive.problem or archive.unread, 300), "attention"))
    if tracker.dropped:
        lines.append(call.paint(f"{counted(len(tracker.dropped), 'line')} unread:", "attention"))
        lines += [f"  line {line.line}: {line.reason}" for line in tracker.dropped[:5]]
        if len(tracker.dropped) > 5:
            lines.append(f"  … {len(tracker.dropped) - 5} more, all of them in --json")
    if tracker.folded:
        lines.append(f"{counted(len(tracker.folded), 'id')} on more than one line; the last one counts")
    for status, number in queue.unknown_statuses().items():
        lines.append(
            call.paint(f"{counted(number, 'bead')} with unknown status “{clean_line(status, 40)}”", "attention")
        )
    from helix_tui.core.supervision.signals.orphans import gone  # not for --json, which must stay light

    left = gone(present.runs, queue)
    if left.all:
        some = ", ".join(clean_line(short_id(run.bead_id or run.worker_id or "?")) for run in left.all[:4])
        lines.append(call.paint(f"{claims_left(left)}: ", "attention") + some + (", …" if len(left.all) > 4 else ""))
    missing = dict.fromkeys(edge.missing for edge in queue.graph.dangling)
    if missing:
        waiting = len({edge.bead_id for edge in queue.graph.dangling})
        some = ", ".join(clean_line(bead_id, 40) for bead_id in list(missing)[:3])
        said = f"{counted(waiting, 'bead waits', 'beads wait')} for {len(missing)} that the tracker lacks: "
        lines.append(call.paint(said, "attention") + some + (", …" if len(missing) > 3 else ""))
    for circle in islice(circles(queue), 5):
        path = circle.path(lambda bead_id: clean_line(short_id(bead_id)))
        lines.append(call.paint("dependency cycle: ", "error") + path)
    return lines
