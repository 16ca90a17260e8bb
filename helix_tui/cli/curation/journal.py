"""``helix-tui journal | undo | redo``: what was changed from here, and taking it back."""

from __future__ import annotations

import argparse
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.curation.changing import curator_of, difference_document, some, told
from helix_tui.core.clock import NS, format_age, format_instant, now_ns
from helix_tui.core.journal import Entry
from helix_tui.core.supervision.curation.conflicts import Conflict
from helix_tui.core.supervision.curation.curator import Curator, Done
from helix_tui.core.text import clean_block, clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of whichever of these commands was asked for."""
    command = parser.prog.split()[-1]
    if command == "journal":
        parser.add_argument("id", nargs="?", metavar="OP", help="one entry in full, as op-12")
        parser.add_argument(
            "-n", "--last", type=int, default=20, metavar="N", help="how many (default: 20; 0: all)"
        )
        return
    parser.add_argument(
        "count", nargs="?", type=int, default=1, metavar="N", help="how many changes (default: 1)"
    )
    if command == "undo":
        parser.add_argument("--id", metavar="OP", dest="entry", help="one change by its id, whoever made it")
        parser.add_argument("--to", metavar="OP", help="everything newer than this change, whoever made it")
        parser.add_argument("--dry-run", action="store_true", help="print the commands; change nothing")


def run(call: Call) -> int:
    """Show the journal, take back, or do again."""
    if call.command == "journal":
        return _journal(call)
    if call.options.count < 1:
        raise CliError("how many changes? at least one", code=2)
    curator = curator_of(call)
    if call.command == "undo" and call.options.dry_run:
        return _foretell(call, curator)
    with told():
        curator.gate.check()
    done: list[Done] = []
    stopped: CliError | None = None
    conflict: Conflict | None = None
    try:
        with told():
            try:
                _go(call, curator, done)
            except Conflict as error:
                conflict = error
                raise
    except CliError as error:
        stopped = error
    return _tell(call, done, stopped, conflict)


def _go(call: Call, curator: Curator, done: list[Done]) -> None:
    """Take back or do again, one after the other, until one fails."""
    if call.command == "redo":
        for _ in range(call.options.count):
            if not _keep(curator.redo(), done):
                return
        return
    chosen = _chosen(call, curator)
    if chosen is None:
        for _ in range(call.options.count):
            if not _keep(curator.undo(), done):
                return
        return
    for entry in chosen:
        if not _keep(curator.undo(entry), done):
            return


def _keep(result: Done | None, done: list[Done]) -> bool:
    if result is None:
        return False
    done.append(result)
    return result.error is None and not result.problems


def _chosen(call: Call, curator: Curator) -> list[Entry] | None:
    """The entries that were asked for by id; None: a person's last ones."""
    options = call.options
    if not options.entry and not options.to:
        return None
    history = curator.history()
    wanted = options.entry or options.to
    entry = history.get(wanted)
    if entry is None:
        raise CliError(
            f"the journal has no {clean_line(wanted, 60)}", "`helix-tui journal` lists what it has."
        )
    return [entry] if options.entry else list(history.after(entry.id))


def _foretell(call: Call, curator: Curator) -> int:
    """What would run, entry by entry; each is looked at on the queue as it is now."""
    with told():
        chosen = _chosen(call, curator)
        entries = (
            list(curator.history().to_undo(curator.me)[: call.options.count]) if chosen is None else chosen
        )
    operations = []
    for entry in entries:
        document: dict[str, Any] = {
            "journal_id": entry.id,
            "title": entry.title,
            "commands": [],
            "conflicts": [],
        }
        try:
            with told():
                try:
                    back = curator.way_back(entry)
                    document["commands"] = [["ddx", *step.args] for step in back.steps]
                    document["why_not"] = list(back.lost)
                    document["traces"] = back.traces
                except Conflict as error:
                    document["conflicts"] = [difference_document(each) for each in error.differences]
                    document["why_not"] = [str(error)]
        except CliError as error:
            document["why_not"] = [error.message]
        operations.append(document)
    if call.json:
        call.emit({"dry_run": True, "operations": operations})
        return 0
    for document in operations:
        call.print(f"{document['journal_id']}  {clean_line(document['title'], 120)}")
        for words in document["commands"]:
            call.print("  " + clean_block(" ".join(words), 2_000))
        for why in document["why_not"]:
            call.print(f"  cannot be taken back: {clean_line(why, 400)}")
    if not operations:
        call.print("nothing to take back")
    return 0


def _tell(call: Call, done: list[Done], stopped: CliError | None, conflict: Conflict | None) -> int:
    failed = next((result for result in done if result.error is not None or result.problems), None)
    code = stopped.code if stopped is not None else 1 if failed is not None else 0
    if call.json:
        call.emit(
            {
                "operations": [_document(result) for result in done],
                "conflicts": [difference_document(each) for each in conflict.differences] if conflict else [],
                "error": None
                if stopped is None
                else {"message": stopped.message, "fix": stopped.fix, "code": stopped.code},
            }
        )
    else:
        for result in done:
            call.print(clean_line(result.plan.title, 200))
            for line in result.plan.lines:
                call.print("  " + call.paint(clean_block(line, 2_000), "bold"))
            if result.newly_ready:
                call.print(f"  now ready: {some(result.newly_ready)}")
            if result.newly_blocked:
                call.print(f"  no longer ready: {some(result.newly_blocked)}")
        if not done and stopped is None:
            call.print("nothing to take back" if call.command == "undo" else "nothing to do again")
    for result in done:
        for problem in result.problems:
            call.note(f"helix-tui: {problem}")
        if result.error is not None:
            call.note(f"helix-tui: {result.error.message}")
            call.note(f"  {clean_line(result.error.advice, 400)}")
    if stopped is not None:
        call.note(f"helix-tui: {stopped.message}")
        if stopped.fix:
            call.note(f"  {stopped.fix}")
    return code


def _document(result: Done) -> dict[str, Any]:
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
    with told():
        history = curator_of(call).history()
    options = call.options
    if options.id:
        entry = history.get(options.id)
        if entry is None:
            raise CliError(
                f"the journal has no {clean_line(options.id, 60)}", "`helix-tui journal` lists what it has."
            )
        entries = [entry]
    else:
        entries = list(history.entries[-options.last :] if options.last > 0 else history.entries)[::-1]
    if call.json:
        call.emit({"operations": [entry_document(entry) for entry in entries], "dropped": history.dropped})
        return 0
    for entry in entries:
        call.print(_line(call, entry))
        if options.id:
            _print_entry(call, entry)
    if not entries:
        call.print("nothing has been changed from here yet")
    if history.dropped:
        call.note(f"{history.dropped} lines of the journal cannot be read")
    return 0


def _line(call: Call, entry: Entry) -> str:
    age = format_age((now_ns() - entry.at) / NS)
    state = "taken back" if entry.undone_by else entry.result
    who = clean_line(entry.who.user or entry.who.kind, 20)
    mark = "" if entry.undoable or not entry.standing else "  no way back"
    return f"{entry.id:<8} {age:>4}  {who:<10} {state:<10} {clean_line(entry.title, 160)}{mark}"


def _print_entry(call: Call, entry: Entry) -> None:
    for words in entry.commands:
        call.print("  " + call.paint(clean_block(" ".join(words), 2_000), "bold"))
    for bead_id, fields in entry.after.items():
        before = entry.before.get(bead_id) or {}
        for name, value in (fields or {}).items():
            call.print(
                f"  {clean_line(bead_id, 80)} {clean_line(name, 60)}: "
                f"{clean_line(str(before.get(name)), 120)} → {clean_line(str(value), 120)}"
            )
    if entry.inverse and not entry.undone_by:
        call.print("  taken back by: " + clean_block(" ".join(entry.inverse[0]), 400))
    if entry.why_not:
        call.print(f"  no way back: {clean_line(entry.why_not, 400)}")
    if entry.error:
        call.print(f"  failed: {clean_line(entry.error, 400)}")


def entry_document(entry: Entry) -> dict[str, Any]:
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
        "undoable": entry.undoable,
        "why_not": entry.why_not,
        "traces": entry.traces,
        "undone_by": entry.undone_by or None,
        "of": entry.of or None,
        "recovered": entry.recovered,
        "error": entry.error,
    }
