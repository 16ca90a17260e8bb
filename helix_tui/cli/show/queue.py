"""``helix-tui queue``: the queue as DDx sees it."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.loading import Present, load
from helix_tui.core.beads.query import matching, parse_query
from helix_tui.core.beads.readiness import Queue, Standing, classify, tracker_era
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import describe, only_archived, read_archive
from helix_tui.core.beads.views import ranked
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant
from helix_tui.core.statements.counts import count_project


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "--order", choices=("pick", "tree", "dag"), default="pick", help="as DDx picks, by parent, by dependency"
    )
    parser.add_argument("--filter", metavar="QUERY", default="", help="like: status:open label:area:ui p<=1 text")
    parser.add_argument("--view", metavar="NAME", default="", help="a saved view: its filter and order")
    parser.add_argument("--archived", action="store_true", help="list the beads of ddx's archive too")
    parser.add_argument(
        "--era", choices=("auto", "april", "head"), default="auto", help="use one readiness rule for all beads"
    )


def run(call: Call) -> int:
    """Print the queue."""
    if call.options.view:
        call.options.filter = f"{filter_of_view(call.options.view)} {call.options.filter}".strip()
    present = load(call, era=call.options.era, digest=call.json)
    archived = chosen_archived(call, present) if call.options.archived else None
    if call.json:
        call.emit(document(present, chosen(call, present.queue), archived))
        return 0
    from helix_tui.cli import queue_lines as listing

    for line in listing.queue_lines(call, present, chosen(call, present.queue), archived):
        call.print(line)
    return 0


def filter_of_view(name: str) -> str:
    """The filter of a saved view.

    Raises:
        CliError: no view of the queue has that name.
    """
    from helix_tui.settings.file import load_settings, settings_file
    from helix_tui.settings.views import OF_NEEDS, ViewBook

    book = ViewBook(load_settings().views, settings_file().with_name("views.toml"))
    view = book.named(name)
    if view is None:
        known = ", ".join(f"“{clean_line(each.name, 40)}”" for each in book.views)
        raise CliError(f"no view is called “{clean_line(name, 40)}”", f"Saved views: {known}.", 2)
    if view.view == OF_NEEDS:
        told = f"Write: helix-tui needs --filter {shlex.quote(view.filter)}"
        raise CliError(f"“{clean_line(name, 40)}” is a view of Needs me", told, 2)
    return view.filter


def chosen(call: Call, queue: Queue) -> list[str]:
    """The ids that pass the filter, in the order asked for."""
    text, order = call.options.filter, call.options.order
    shown: Iterable[str] = queue.beads
    query = parse_query(text)
    if text:
        if query.problem:
            raise CliError(query.problem, "A filter is written like: status:open label:area:ui p<=1", 2)
        shown = matching(query, queue)
    if query.order and order == "pick":
        return sorted(shown, key=ranked(query, queue))
    return order_by_pick(queue, shown) if order == "pick" else in_view(queue, order, text)


def chosen_archived(call: Call, present: Present) -> list[str]:
    """The archived ids that pass the filter, in the archive's order."""
    away = only_archived(read_archive(present.project.archive_file), present.tracker.beads)
    if not away or not call.options.filter:
        return list(away)
    # a separate queue: ddx too looks up dependencies in the active file only
    return matching(parse_query(call.options.filter), classify(away, now=call.now))


def order_by_pick(queue: Queue, shown: Iterable[str]) -> list[str]:
    """What DDx would pick, in its order; then the rest, in the tracker's order."""
    wanted = dict.fromkeys(shown)
    picked = [bead_id for bead_id in queue.ready if bead_id in wanted]
    return picked + [bead_id for bead_id in wanted if bead_id not in queue.position]


def in_view(queue: Queue, order: str, text: str) -> list[str]:
    """Every id that passes the filter, in the order of the tree or graph on screen, with nothing folded."""
    from helix_tui.core.beads.views import FOLD_DONE, FOLD_LOOSE, Folding, build_view

    parents = (f"done:{bead_id}" for bead_id in queue.graph.children)
    everything = Folding(frozenset((FOLD_DONE, FOLD_LOOSE, *parents)))
    view = build_view(queue, "tree" if order == "tree" else "dag", text, everything)
    return list(dict.fromkeys(row.bead_id for row in view.rows if row.kind == "bead" and not row.context))


# --- for machines ----------------------------------------------------------------------------------------


def document(present: Present, shown: Sequence[str], archived: Sequence[str] | None = None) -> dict[str, Any]:
    """The queue as docs/formats/cli.md specifies it; ``archived``: ids of archived beads to list, None for no list."""
    archive = read_archive(present.project.archive_file)
    away = only_archived(archive, present.tracker.beads)
    queue, tracker = present.queue, present.tracker
    counts = count_project(present.project, queue)
    wanted = frozenset(shown)
    return {
        "source": {
            "kind": "jsonl",
            "path": tracker.path,
            "sha256": tracker.digest or None,
            "mtime": format_instant(tracker.mtime_ns),
            "rows": tracker.rows,
            "archived": len(away),
        },
        "archive": {
            "path": archive.path,
            "beads": len(away),
            "closed": counts.archived_closed,
            "problem": archive.problem or None,
            "dropped": [
                {"line": line.line, "reason": line.reason, "excerpt": line.excerpt} for line in archive.dropped
            ],
            "listed": None if archived is None else [_archived_row(away[bead_id]) for bead_id in archived],
        },
        "era": queue.default_era,
        "tracker_era": tracker_era(queue.beads),
        "judged_by": present.judged_by,
        "remarks": present.remarks,
        "as_of": format_instant(queue.as_of),
        "counts": queue.counts(),
        "for_workers": len(counts.for_workers),
        "left_out": counts.left_out or None,
        "refused": present.shut.record() if present.shut is not None else None,
        "ready": [bead_id for bead_id in queue.ready if bead_id in wanted],
        "beads": _rows(queue, shown),
        "running": [as_running(run, present.queue.as_of) for run in present.runs],
        "dropped": [{"line": line.line, "reason": line.reason, "excerpt": line.excerpt} for line in tracker.dropped],
        "folded": [{"id": bead_id, "lines": lines} for bead_id, lines in tracker.folded.items()],
        "unknown_statuses": queue.unknown_statuses(),
        "dangling": [{"bead_id": edge.bead_id, "missing": edge.missing} for edge in queue.graph.dangling],
        "cycles": queue.graph.cycles,
        "critical_path": queue.graph.chains.path,
    }


def _archived_row(bead: Bead) -> dict[str, Any]:
    return {
        "id": bead.id,
        "title": bead.title,
        "status": bead.status,
        "day": describe(bead).day or None,
        "priority": bead.priority,
        "parent": bead.parent or None,
        "depends_on": bead.depends_on,
    }


def _rows(queue: Queue, shown: Iterable[str]) -> list[dict[str, Any]]:
    freed, dependents, running = queue.unblock_counts, queue.graph.dependents, queue.claims.running
    rows = []
    for bead_id in shown:
        bead, standing = queue.beads[bead_id], queue.standing(bead_id)
        rows.append(
            {
                "id": bead_id,
                "title": bead.title,
                "status": bead.status,
                "state": standing.state,
                "reasons": reasons(standing),
                "priority": bead.priority,
                "parent": bead.parent or None,
                "depends_on": bead.depends_on if bead.dependencies else (),
                "dependents": dependents.get(bead_id, ()),
                "unblocks": freed.get(bead_id, 0),
                **weight_document(queue, bead_id),
                "running": bead_id in running,
            }
        )
    return rows


def as_running(run: Run, now: int) -> dict[str, Any]:
    """One run that any file reports, with its age at ``now``."""
    age = run.age_s(now)
    return {
        "bead_id": run.bead_id,
        "attempt_id": run.attempt_id or None,
        "worker_id": run.worker_id or None,
        "source": run.source,
        "age_s": None if age is None else round(age, 3),
        "phase": run.phase or None,
        "live": run.live,
        "verdict": run.verdict,
        "why": run.why,
        "last_tool": run.last_tool or None,
        "harness": run.harness or None,
        "model": run.model or None,
        "pid": run.pid,
        "tokens": run.tokens,
    }


def weight_document(queue: Queue, bead_id: str) -> dict[str, Any]:
    """How many beads wait on it, directly or through others, and its place in its longest chain."""
    chains = queue.graph.chains
    place, length = chains.chain_through(bead_id)
    return {
        "holds_up": chains.holds_up.get(bead_id, 0),
        "chain": {"place": place, "length": length},
        "on_critical_path": chains.on_critical_path(bead_id),
    }


def reasons(standing: Standing) -> list[dict[str, Any]]:
    """Every reason that holds, the deciding one first."""
    return [{"kind": why.kind, "detail": why.detail, "refs": why.refs} for why in standing.reasons]
