"""``helix-tui journal | undo | redo``: changes made with helix-tui, and how to undo and redo them.

Entries and the conflicts of an undo have a JSON shape here, which the snapshot of the journal's screen prints too.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import add_dry_run, clear_errors, consequence_lines, curator_of, how_far, some
from helix_tui.core.editing.differences import Conflict, Difference
from helix_tui.core.editing.execute.curator import Curator, Result
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.plan import Plan
from helix_tui.core.editing.preview import foresee
from helix_tui.core.editing.undo import EntryChecker, EntryStatus, NotUndoable, UndoStep, Unreadable
from helix_tui.core.editing.values import apart
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import NS, format_age, format_instant, now_ns
from helix_tui.core.supervision.signals.questions import follow_undo
from helix_tui.core.supervision.stages.landing import follow_landing

_NOTHING = {"undo": "nothing to undo", "redo": "nothing to redo"}

_WORDS = {"undone": "undone", "partial": "half-way", "final": "done", "failed": "nothing"}
"""The words for states whose own name is not readable enough."""


def entry_document(entry: JournalEntry, mark: EntryStatus | None = None) -> dict[str, Any]:
    """An entry as JSON."""
    return {
        "journal_id": entry.id,
        "at": format_instant(entry.at),
        "who": {"kind": entry.who.kind, "user": entry.who.user},
        "kind": entry.kind,
        "title": entry.title,
        "commands": list(entry.commands),
        "before": entry.before,
        "after": entry.after,
        "inverse": list(entry.inverse),
        "result": entry.result,
        "state": mark.state if mark else None,
        "changed_since": [difference_document(difference) for difference in mark.differences] if mark else [],
        "undoable": entry.undoable,
        "why_not": entry.why_not,
        "traces": entry.traces,
        "rewrites": entry.rewritten,
        "undone_by": entry.undone_by or None,
        "of": entry.of or None,
        "recovered": entry.recovered,
        "error": entry.error,
    }


def difference_document(difference: Difference) -> Mapping[str, Any]:
    """A conflict as JSON: both versions."""
    return {
        "bead_id": difference.bead_id,
        "field": difference.field,
        "expected": difference.ours,
        "found": difference.theirs,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command that was called."""
    command = parser.prog.split()[-1]
    if command == "journal":
        parser.add_argument("id", nargs="?", metavar="OP", help="one entry in full, as op-12")
        parser.add_argument("-n", "--last", type=int, default=20, metavar="N", help="how many (default: 20; 0: all)")
        return
    parser.add_argument("count", nargs="?", default="1", metavar="N|OP", help="how many (default: 1), or one by its id")
    parser.add_argument("--id", metavar="OP", dest="entry", help="one change by its id, whoever made it")
    if command == "undo":
        parser.add_argument(
            "--to", metavar="OP", help="restore the state right after this change, whoever changed it since"
        )
    add_dry_run(parser)


def run(call: Call) -> int:
    """Show the journal, undo, or redo."""
    if call.command == "journal":
        return _journal(call)
    _read_count(call)
    curator = curator_of(call)
    if call.options.dry_run:
        return _foretell(call, curator)
    with clear_errors():
        # refused before the first of several changes is undone
        curator.gate.check()
    done: list[Result] = []
    stopped: CliError | None = None
    conflict: Conflict | None = None
    try:
        with clear_errors():
            try:
                _go(call, curator, done)
            except Conflict as error:
                # kept for --json, which shows both versions; `told` keeps only the message
                conflict = error
                raise
    except CliError as error:
        stopped = error
    return _print(call, done, stopped, conflict)


def _read_count(call: Call) -> None:
    """Read the argument as a count, or as the id of one entry."""
    options = call.options
    if options.count.startswith("op-"):
        options.entry, options.count = options.entry or options.count, "1"
    if not options.count.isdecimal() or int(options.count) < 1:
        raise CliError("the number of changes must be 1 or more", f"For example: helix-tui {call.command} 2", 2)
    options.count = int(options.count)


def _go(call: Call, curator: Curator, done: list[Result]) -> None:
    """Undo or redo, one after the other, until one fails."""
    turn = curator.redo if call.command == "redo" else curator.undo
    chosen = _chosen(call, curator)
    if chosen is None:
        for _ in range(call.options.count):
            if not _keep(call, curator, turn(), done):
                return
    elif call.options.entry:
        _keep(call, curator, turn(chosen[0]), done)
    else:
        for result in curator.restore(call.options.to):
            _keep(call, curator, result, done)


def _keep(call: Call, curator: Curator, result: Result | None, done: list[Result]) -> bool:
    if result is None:
        return False
    follow_undo(curator, result)
    if merged := follow_landing(curator, result):
        call.note(clean_line(merged, 300))
    done.append(result)
    return result.error is None and not result.problems


def _chosen(call: Call, curator: Curator) -> list[JournalEntry] | None:
    """The entries that were asked for by id; None means the user's latest ones."""
    options = call.options
    wanted = options.entry or getattr(options, "to", None)
    if not wanted:
        return None
    history = curator.history()
    entry = history.get(wanted)
    if entry is None:
        raise CliError(f"the journal has no {clean_line(wanted, 60)}", "`helix-tui journal` lists its entries.")
    return [history.root(entry)] if options.entry else list(history.back_to(entry.id))


def _check_direction(call: Call, chosen: list[JournalEntry]) -> None:
    """Refuse to undo a named change that is already undone, and to redo one that is not."""
    if not call.options.entry:
        return
    (entry,) = chosen
    if call.command == "undo" and not entry.standing:
        raise NotUndoable(entry, f"{entry.id} changed nothing that is still there")
    if call.command == "redo" and not entry.undone_by:
        raise NotUndoable(entry, f"{entry.id} has not been undone")


def _foretell(call: Call, curator: Curator) -> int:
    """Show what would run, entry by entry, each on the result of the one before, and what would follow."""
    with clear_errors():
        chosen = _chosen(call, curator)
        history = curator.history()
        if chosen is None:
            wanted = history.to_undo if call.command == "undo" else history.to_redo
            chosen = list(wanted(curator.me)[: call.options.count])
        _check_direction(call, chosen)
        undo_plan, queue_state = curator.plan_undo(chosen)
        follows = foresee(queue_state.queue, undo_plan.steps)
        notes = curator.foretell(Plan("undo", "", undo_plan.steps), queue_state).notes
    if call.json:
        operations = [_turn_document(turn) for turn in undo_plan.turns]
        call.emit(
            {
                "dry_run": True,
                "operations": operations,
                "newly_ready": follows.newly_ready,
                "newly_blocked": follows.newly_blocked,
                "notes": notes,
            }
        )
        return 0
    for turn in undo_plan.turns:
        word = "undo" if turn.back else "redo"
        call.print(f"{word} {turn.entry.id}  {clean_line(turn.entry.title, 120)}")
        for step in turn.steps:
            call.print("  " + call.paint(clean_block(shlex.join(("ddx", *step.args)), 2_000), "bold"))
        for trace in turn.traces:
            call.print(f"  note: {clean_line(trace, 300)}")
        if turn.problem:
            call.print(f"  cannot be done: {clean_line(turn.problem, 400)}")
        for difference in turn.differences[:5]:
            call.print(f"    {difference}")
    for note in notes:
        call.print(f"note: {note}")
    if undo_plan.steps:
        for line in consequence_lines(call, follows, again=True):
            call.print(line)
    if not undo_plan.turns:
        call.print(_NOTHING[call.command])
    return 0


def _turn_document(turn: UndoStep) -> dict[str, Any]:
    return {
        "journal_id": turn.entry.id,
        "title": turn.entry.title,
        "deed": "undo" if turn.back else "redo",
        "commands": [["ddx", *step.args] for step in turn.steps],
        "conflicts": [difference_document(difference) for difference in turn.differences],
        "why_not": [turn.problem] if turn.problem else [],
        "traces": turn.traces,
    }


def _print(call: Call, done: list[Result], stopped: CliError | None, conflict: Conflict | None) -> int:
    failed = next((result for result in done if result.error is not None or result.problems), None)
    code = stopped.exit_code if stopped is not None else 1 if failed is not None else 0
    if call.json:
        call.emit(
            {
                "operations": [_document(result) for result in done],
                "conflicts": [difference_document(difference) for difference in conflict.differences]
                if conflict
                else [],
                "error": None
                if stopped is None
                else {"message": stopped.message, "fix": stopped.advice, "code": stopped.exit_code},
            }
        )
    else:
        for result in done:
            call.print(clean_line(result.plan.title, 200))
            for line in result.plan.lines:
                call.print("  " + call.paint(clean_block(line, 2_000), "bold"))
            for note in result.plan.notes:
                call.print(f"  note: {clean_line(note, 300)}")
            if result.newly_ready:
                call.print(f"  now ready: {some(result.newly_ready)}")
            if result.newly_blocked:
                call.print(f"  no longer ready: {some(result.newly_blocked)}")
        if not done and stopped is None:
            call.print(_NOTHING[call.command])
    for result in done:
        for problem in result.problems:
            call.note(f"helix-tui: {problem}")
        if result.error is not None:
            call.note(f"helix-tui: {result.error.message}; {how_far(result)}")
            call.note(f"  {clean_line(result.error.advice, 400)}")
    if stopped is not None:
        call.note(f"helix-tui: {stopped.message}")
        if stopped.advice:
            call.note(f"  {stopped.advice}")
    return code


def _document(result: Result) -> dict[str, Any]:
    entry = result.entry
    return {
        "title": result.plan.title,
        "of": entry.of if entry else None,
        "journal_id": entry.id if entry else None,
        "commands": list(result.plan.commands),
        "before": entry.before if entry else {},
        "after": entry.after if entry else {},
        "newly_ready": result.newly_ready,
        "newly_blocked": result.newly_blocked,
        "problems": result.problems,
        "error": result.error.message if result.error else None,
    }


def _journal(call: Call) -> int:
    with clear_errors():
        curator = curator_of(call)
        history = curator.history()
        marks = _marks(curator)
    options = call.options
    if options.id:
        entry = history.get(options.id)
        if entry is None:
            raise CliError(f"the journal has no {clean_line(options.id, 60)}", "`helix-tui journal` lists its entries.")
        entries = [entry]
    else:
        entries = list(history.entries[-options.last :] if options.last > 0 else history.entries)[::-1]
    if call.json:
        call.emit(
            {
                "operations": [entry_document(entry, marks.get(entry.id)) for entry in entries],
                "dropped": history.dropped,
                "torn": history.torn,
                "left_out": history.left_out,
            }
        )
        return 0
    for entry in entries:
        mark = marks.get(entry.id, EntryStatus("done"))
        call.print(_line(entry, mark))
        if options.id:
            _print_entry(call, entry, mark)
    if not entries:
        call.print("no changes made with helix-tui yet")
    if history.left_out:
        call.note(f"{counted(history.left_out, 'older change')}: in {curator.journal.path} only")
    if history.dropped:
        call.note(f"{counted(history.dropped, 'line')} of the journal cannot be read")
    return 0


def _marks(curator: Curator) -> Mapping[str, EntryStatus]:
    """The status of each entry; none if the tracker cannot be read."""
    try:
        beads = curator.look().queue.beads
    # the journal can be listed anyway
    except Unreadable:
        return {}
    return EntryChecker().marks(curator.history(), beads)


def _line(entry: JournalEntry, mark: EntryStatus) -> str:
    age = format_age((now_ns() - entry.at) / NS)
    who = clean_line(entry.who.name, 20)
    tail = {"final": "  cannot be undone", "conflicted": "  changed since"}.get(mark.state, "")
    word = _WORDS.get(mark.state, mark.state)
    return f"{entry.id:<8} {age:>4}  {who:<10} {word:<10} {clean_line(entry.title, 160)}{tail}"


def _print_entry(call: Call, entry: JournalEntry, mark: EntryStatus) -> None:
    for words in entry.commands:
        call.print("  " + call.paint(clean_block(shlex.join(words), 2_000), "bold"))
    for bead_id, fields in entry.after.items():
        before = entry.before.get(bead_id) or {}
        for name, value in (fields or {}).items():
            was, now = apart(name, before.get(name), value, 120)
            call.print(f"  {clean_line(bead_id, 80)} {clean_line(name, 60)}: {was} → {now}")
    if entry.inverse and not entry.undone_by:
        call.print("  undone by:")
        for words in entry.inverse:
            call.print("    " + clean_block(shlex.join(words), 2_000))
    for trace in entry.traces:
        call.print(f"  remains: {clean_line(trace, 300)}")
    for difference in mark.differences:
        call.print(f"  changed since: {difference}")
    if mark.covered_by:
        call.print(f"  {mark.covered_by} changed the same field later; undo that one first")
    if entry.why_not:
        call.print(f"  cannot be undone: {clean_line(entry.why_not, 400)}")
    if entry.error:
        call.print(f"  failed: {clean_line(entry.error, 400)}")
