"""What all commands that change the queue share: the curator, ids, and how a change is shown, run and reported.

`change` plans operations on the queue as it is, prints what would follow (--dry-run) or runs them, and reports the
journal's entry; `told` turns what can go wrong on the way into a message and an exit code.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.loading import NO_TRACKER, UnknownBead, find_bead, known_as
from helix_tui.cli.programs import tidy_when_killed
from helix_tui.cli.trust_question import ask_person
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.dialect import Dialect
from helix_tui.core.editing.differences import Conflict
from helix_tui.core.editing.execute.curator import Curator, QueueState, Result
from helix_tui.core.editing.execute.gate import Executable, find_executable
from helix_tui.core.editing.execute.step_run import with_real_ids
from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.operations import Operation, SetFields
from helix_tui.core.editing.overlay import Overlay
from helix_tui.core.editing.plan import Plan, plan, values_before
from helix_tui.core.editing.preview import MAX_PLACES, Consequences, foresee
from helix_tui.core.editing.steps import CommandStep, PlanBuilder
from helix_tui.core.editing.undo import NotUndoable, Unreadable
from helix_tui.core.editing.values import Edits
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.supervision.agents.hooks import SKIP
from helix_tui.core.supervision.signals.focus import plan_upkeep, read_focus

MAX_NAMED = 12
"""How many beads one line names."""


def add_ids(parser: argparse.ArgumentParser, *, many: bool = True) -> None:
    """Add the beads that a command is about."""
    parser.add_argument(
        "ids",
        metavar="ID",
        nargs="+" if many else None,
        help="a bead id, or the beginning or end of one" + ("; several are one change" if many else ""),
    )


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Add the ``--dry-run`` option."""
    parser.add_argument("--dry-run", action="store_true", help="print the commands and their effect; change nothing")


def curator_of(call: Call, *, who: str = "cli") -> Curator:
    """The curator of this call's project, with the ddx that ``--ddx`` names; ``who`` makes its changes."""
    project = locate(call)

    def find() -> Executable:
        # a command that creates a bead has judged it or was told not to: the hook would only repeat that
        judged = hasattr(call.options, "no_triage")
        return find_executable(project, call.ddx, env=os.environ | {SKIP: "1"} if judged else None)

    def waits(holder: str) -> None:
        call.note(f"helix-tui: waiting for {holder}, which is changing the queue; ctrl+c stops waiting")

    curator = Curator(project, find, who=who, read_only=call.read_only, as_of=call.clock, waits=waits)
    if not call.json and sys.stdin.isatty() and sys.stderr.isatty():
        curator.asks = lambda refused: ask_person(call, refused.waiting)
    return curator


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what can go wrong during a change, SIGTERM included, into a message and an exit code."""
    try:
        with tidy_when_killed():
            yield
    except Unreadable as error:
        raise CliError(str(error), NO_TRACKER) from None
    except NotUndoable as error:
        raise CliError(f"{error.entry.id} cannot be undone: {error}") from None
    except Conflict as error:
        raise CliError(f"changed since, so nothing was overwritten: {error}", _conflict_fix(error)) from None
    except HelixError:
        raise  # has its own message; the journal's error is an OSError too
    except OSError as error:
        where = f" {clean_line(str(error.filename), 200)}" if error.filename else ""
        raise CliError(
            f"cannot write{where}: {error.strerror or error}",
            "Free space or repair the folder, then retry; what was written before is kept.",
        ) from None


def _conflict_fix(error: Conflict) -> str:
    if error.entry is None:
        return "Look at the bead, then run the command again."
    shows = f"`helix-tui journal {error.entry.id}` shows what was changed"
    return f"{shows}; set the fields by hand if you still want it."


def resolve(queue: Queue, texts: str | Sequence[str]) -> list[str]:
    """The ids that the texts mean, each once; one text may name several, separated by commas."""
    words = [texts] if isinstance(texts, str) else texts
    # an id may hold a comma itself
    parts = [part for word in words for part in (word.split(",") if word not in queue.beads else [word])]
    named = [part.strip() for part in parts if part.strip()]
    if words and not named:
        raise CliError("no bead was given", "`helix-tui queue` lists the ids.", 2)
    return list(dict.fromkeys(find_bead(queue, part) for part in named))


def change(
    call: Call,
    make: Callable[[Queue], Iterable[Operation]],
    *,
    title: str = "",
    telling: Callable[[Call, Result, Curator], int] | None = None,
) -> int:
    """Plan operations, show or run them, and report the result, through ``telling`` if it is given."""
    with clear_errors():
        curator = curator_of(call)
        queue_state = curator.look()
        try:
            wanted = list(make(queue_state.queue))
        except UnknownBead as error:
            raise known_as(error, locate(call), queue_state.queue.beads) from None
        dialect = curator.dialect()
        planned = plan(wanted, queue_state.queue, dialect, busy=queue_state.busy, title=title)
        landing = _landing(curator, queue_state.queue, dialect, wanted)
        planned = replace(planned, notes=(*planned.notes, *landing))
        # before the gate: a dry run is allowed where writing is not
        if call.options.dry_run:
            return print_dry_run(call, _warned(planned, queue_state, curator), queue_state)
        curator.gate.check()
        for line in landing:
            call.note(f"helix: {line}")
        done = curator.run(wanted, title=title)
    return (telling or tell)(call, done, curator)


def _landing(curator: Curator, queue: Queue, dialect: Dialect, wanted: Iterable[Operation]) -> tuple[str, ...]:
    """Warnings about parked beads whose kept change a worker would land without an agent once they are opened."""
    opened = [each.bead_id for each in wanted if isinstance(each, SetFields) and each.fields.get("status") == "open"]
    if not (opened and dialect.lands_kept):
        return ()
    from helix_tui.core.supervision.signals.kept_changes import landed_by_opening

    return landed_by_opening(curator.project, queue, dialect, opened)


def change_steps(
    call: Call, curator: Curator, kind: str, title: str, make: Callable[[PlanBuilder, QueueState], None]
) -> int:
    """The same for steps that are planned on the queue as it is then."""
    with clear_errors():
        queue_state = curator.look()
        if call.options.dry_run:
            planned = curator.plan_steps(kind, title, make)
            return print_dry_run(call, _warned(planned, queue_state, curator), queue_state)
        curator.gate.check()
        done = curator.run_steps(kind, title, make)
    return tell(call, done, curator)


def _warned(planned: Plan, queue_state: QueueState, curator: Curator) -> Plan:
    """The plan with added notes: what the write does to other rows; another release wrote them."""
    if not planned.steps:
        return planned
    made = curator.foretell(planned, queue_state)
    other = (str(queue_state.difference),) if queue_state.difference is not None else ()
    return replace(made, notes=(*made.notes, *other))


def print_dry_run(call: Call, planned: Plan, queue_state: QueueState) -> int:
    """Print what would run and what would follow from it."""
    follows = foresee(queue_state.queue, planned.steps)
    if call.json:
        call.emit(
            {
                **_planned(planned),
                "dry_run": True,
                "before": values_before(planned.steps, queue_state.queue),
                "after": edits_of(planned.steps),
                "newly_ready": follows.newly_ready,
                "newly_blocked": follows.newly_blocked,
                "next": follows.next_after,
                "places": [
                    {"bead_id": place.bead_id, "was": place.was, "will": place.will, "state": place.state}
                    for place in follows.places
                ],
                "others_keep_order": follows.others_keep_order,
                "cycles": follows.cycles,
                "orphaned": [
                    {"bead_id": orphan.bead_id, "waits_on": orphan.waits_on, "why": orphan.why}
                    for orphan in follows.orphaned
                ],
                "falls": follows.falls,
                "journal_id": None,
            }
        )
    else:
        _print_commands(call, planned)
        for line in consequence_lines(call, follows) if planned.steps else ():
            call.print(line)
        if planned.steps:
            _print_way_back(call, planned)
            call.print(call.paint("nothing was changed (--dry-run)", "muted"))
        elif not planned.refusals:
            call.print("nothing to do")
    return _refused(call, planned)


def tell(call: Call, done: Result, curator: Curator) -> int:
    """Print what was done."""
    entry = done.entry
    if call.json:
        call.emit(
            {
                **_planned(done.plan),
                "commands": list(entry.commands) if entry else [],
                "dry_run": False,
                **_recorded(entry),
                "newly_ready": done.newly_ready,
                "newly_blocked": done.newly_blocked,
                "created": list(done.created.values()),
                "ran": done.ran,
                "problems": done.problems,
                "warnings": done.warnings,
                "error": None
                if done.error is None
                else {"message": done.error.message, "fix": done.error.advice, "code": done.error.exit_code},
            }
        )
    else:
        _print_commands(call, done.plan, done)
        for bead_id in done.created.values():
            call.print(bead_id)
        _print_shift(call, done.newly_ready, done.newly_blocked, "now")
        if entry is None and not done.plan.refusals:
            call.print("nothing to do")
        elif entry is not None:
            call.print(call.paint(_journal_line(entry), "muted"))
            _print_focus(call, curator)
    code = _refused(call, done.plan)
    for warning in done.warnings:
        call.note(f"helix-tui: {warning}")
    for problem in done.problems:
        call.note(f"helix-tui: {problem}")
    if done.error is not None:
        call.note(f"helix-tui: {done.error.message}; {how_far(done)}")
        # advice to try again would be wrong if the change was made anyway
        if not done.made_anyway:
            call.note(f"  {clean_line(done.error.advice, 400)}")
        return done.error.exit_code
    return 1 if done.problems else code


def how_far(done: Result) -> str:
    """What was changed before a command failed."""
    if done.entry is None or not done.entry.after:
        return "nothing was changed"
    if done.made_anyway:
        return "but the change was made, so do not repeat it"
    ran = f"{done.ran} of {counted(len(done.plan.steps), 'command')} succeeded"
    return f"{ran}; already changed, not undone: {some(list(done.entry.after))}"


def _planned(planned: Plan) -> dict[str, Any]:
    return {
        "title": planned.title,
        "commands": list(planned.commands),
        "refused": [
            {"id": refusal.operation.bead_id, "kind": refusal.operation.kind, "why": refusal.why}
            for refusal in planned.refusals
        ],
        "notes": planned.notes,
        "undoable": planned.undoable,
        "inverse": [["ddx", *step.args] for step in planned.back.steps],
        "why_not": list(planned.back.lost),
        "traces": planned.back.traces,
        "rewrites": planned.rewrites,
    }


def _recorded(entry: JournalEntry | None) -> dict[str, Any]:
    if entry is None:
        return {"before": {}, "after": {}, "journal_id": None, "result": "nothing"}
    return {
        "before": entry.before,
        "after": entry.after,
        "journal_id": entry.id,
        "result": entry.result,
        "undoable": entry.undoable,
        "inverse": list(entry.inverse),
        "why_not": [entry.why_not] if entry.why_not else [],
        "traces": entry.traces,
        "rewrites": entry.rewritten,
    }


def edits_of(steps: Iterable[CommandStep]) -> Edits:
    """What the steps together lead to, as far as it can be predicted."""
    merged: dict[str, dict[str, Any]] = {}
    for step in steps:
        for edits in (step.edits, step.ripple):
            for bead_id, fields in edits.items():
                merged.setdefault(bead_id, {}).update(fields)
    return merged


def consequence_lines(call: Call, follows: Consequences, *, again: bool = False) -> Iterator[str]:
    """What would follow, in lines for people, the changed beads first."""
    if len(follows.places) > 1:
        yield call.paint(follows.totals(again=again), "bold")
    for place in follows.places[:MAX_PLACES]:
        yield call.paint(f"{clean_line(place.bead_id, 80)}: {place}", "bold")
    if len(follows.places) > MAX_PLACES:
        yield f"and {counted(len(follows.places) - MAX_PLACES, 'more bead')}"
    for word, ids, role in (
        ("would become ready", follows.newly_ready, "success"),
        ("would no longer be ready", follows.newly_blocked, "waiting"),
    ):
        if ids:
            yield call.paint(f"{word}: {some(ids)}", role)
    for bead_id, status in follows.falls.items():
        yield f"ddx would set {clean_line(bead_id)} to {status} by itself"
    for cycle in follows.cycles:
        yield call.paint(f"would form a dependency cycle: {' → '.join(map(clean_line, (*cycle, cycle[0])))}", "error")
    for orphan in follows.orphaned:
        yield call.paint(
            f"{clean_line(orphan.bead_id)} would wait on {clean_line(orphan.waits_on)}, which {orphan.why}", "attention"
        )
    if follows.next_after != follows.next_before:
        yield f"next in the queue: {some(follows.next_after)}"
    elif len(follows.next_before) < follows.ready[0]:
        yield f"the first {len(follows.next_before)} in the queue stay the same"
    if follows.order:
        yield follows.order


def _print_commands(call: Call, planned: Plan, done: Result | None = None) -> None:
    """Print the commands; for a change that was not completed, each with its result."""
    made = done.created if done is not None else {}
    lines = [shlex.join(("ddx", *step.args)) for step in with_real_ids(planned.steps, made)]
    for number, line in enumerate(lines if made else planned.lines):
        words = call.paint(clean_block(line, 2_000), "bold")
        if done is not None and done.error is not None:
            fate = "ran" if number < done.ran else "failed" if number == done.ran else "not run"
            words = f"{fate:<8}{words}"
        call.print(words)
    for note in planned.notes:
        call.print(f"note: {clean_line(note, 600)}")


def _print_shift(call: Call, ready: Sequence[str], blocked: Sequence[str], when: str) -> None:
    if ready:
        call.print(call.paint(f"{when} ready: {some(ready)}", "success"))
    if blocked:
        call.print(call.paint(f"no longer ready: {some(blocked)}", "waiting"))


def _print_focus(call: Call, curator: Curator) -> None:
    """Warn if the change left the focus out of date."""
    # read again: ddx has written since
    queue_state = curator.look()
    if not read_focus(Overlay(queue_state.queue)).epic:
        return
    upkeep = curator.plan_steps("focus", "repair the focus", lambda writing, _: plan_upkeep(writing))
    if upkeep.steps:
        beads = counted(len(upkeep.steps), "bead")
        call.print(f"note: the focus is out of date on {beads}: `helix-tui focus --reconcile`")


def _refused(call: Call, planned: Plan) -> int:
    for refusal in planned.refusals:
        call.note(f"helix-tui: not done: {clean_line(refusal.why, 600)}")
    return 1 if planned.refusals else 0


def _journal_line(entry: JournalEntry) -> str:
    head = f"journal {entry.id}"
    if entry.result not in ("done", "partial"):
        return f"{head}: nothing was changed"
    if entry.result == "partial":
        head += " (partly)"
    if entry.undoable:
        trace = "".join(f"; {each}" for each in entry.traces)
        return f"{head} · undo with `helix-tui undo`{clean_line(trace, 1_000)}"
    return f"{head} · cannot be undone: {clean_line(entry.why_not, 300)}"


def _print_way_back(call: Call, planned: Plan) -> None:
    """Print whether it could be undone, by which commands, and what would remain."""
    if not planned.undoable:
        call.print(f"cannot be undone: {clean_line('; '.join(planned.back.lost), 300)}")
        return
    call.print("undo would run:")
    for line in planned.way_back:
        call.print("  " + clean_block(line, 2_000))
    for trace in planned.back.traces:
        call.print(f"  {clean_line(trace, 300)}")


def some(ids: Sequence[str], most: int = MAX_NAMED) -> str:
    """Some ids for a line."""
    more = len(ids) - most
    return ", ".join(clean_line(bead_id, 80) for bead_id in ids[:most]) + (f" and {more} more" if more > 0 else "")
