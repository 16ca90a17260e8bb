"""Run the commands of a plan in order, with the ids of new beads in place of their placeholders."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from helix_tui.core.beads.tracker import Tracker
from helix_tui.core.ddx.client import DdxError, last_error
from helix_tui.core.editing.differences import Difference, differences
from helix_tui.core.editing.execute.gate import Executable
from helix_tui.core.editing.steps import CommandStep
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.text import clean_line

Progress = Callable[[int, int], bool | None]
"""Called before each command with (commands run, total); if it returns False, no further command runs."""

_WARNING = re.compile(r"bead: hook \S+ warning: |\[triage\] warn")

_NOT_A_HOOKS = re.compile(r"bead: |Error:|Usage:|Flags:")
"""Prefixes of ddx's own lines."""


class StepsRun(Struct):
    """How far some steps got."""

    ran: int = 0
    """Commands that succeeded."""
    ids: dict[str, str] = {}
    """Placeholder -> id of each bead created."""
    error: DdxError | None = None
    moved: Sequence[Difference] = ()
    """What others changed meanwhile, so that the next command was not run."""
    remarks: list[str] = []
    """Errors that ddx printed although it exited with 0."""
    warnings: list[str] = []
    """Warnings of the project's hooks."""


def run_steps(
    steps: Sequence[CommandStep],
    executable: Executable,
    *,
    rows: Callable[[], Tracker],
    lock: int,
    progress: Progress | None = None,
) -> StepsRun:
    """Run the commands in order until one fails, the user stops it, or a row has changed.

    Args:
        rows: reads the tracker.
        lock: the write lock, which each command inherits.
    """
    done, known = StepsRun(), set(rows().beads)
    for number, step in enumerate(steps):
        shown = ("ddx", *step.args)
        if progress is not None and progress(number, len(steps)) is False:
            done.error = DdxError(shown, "stopped on request", "undo reverts what was done")
            return done
        (current,) = with_real_ids([step], done.ids)
        # a bead being created has no row yet
        before = {bead_id: fields for bead_id, fields in current.before.items() if bead_id != step.creates}
        # read again before each command: a worker may have written since the last one
        done.moved = differences(before, rows().beads)
        if done.moved:
            return done
        try:
            finished = executable.run(current.args, keep=(lock,))
        except DdxError as error:
            done.error = error
            return done
        # caught to settle and record what ran before the program ends
        except (KeyboardInterrupt, SystemExit) as stop:
            done.error = _interrupted(current, stop)
            return done
        done.warnings += hook_warnings(finished)
        if "Error:" in finished.err:
            done.remarks.append(f"ddx exited with 0 and said: {last_error(finished)}")
        if step.creates:
            created = _created_bead(finished.out, rows(), known)
            if created is None:
                problem = "ddx reported no error, but there is no new bead in the tracker"
                done.error = DdxError(("ddx", *current.args), problem, "look at the tracker, then try again")
                return done
            done.ids[step.creates] = created
            known.add(created)
        done.ran = number + 1
    return done


def with_real_ids(steps: Iterable[CommandStep], ids: Mapping[str, str]) -> tuple[CommandStep, ...]:
    """Steps with the placeholders of new beads replaced by their ids."""
    if not ids:
        return tuple(steps)
    return tuple(
        CommandStep(
            tuple(_named(word, ids) for word in step.args),
            _renamed_edits(step.edits, ids),
            _renamed_edits(step.before, ids),
            tuple((ids.get(bead_id, bead_id), name) for bead_id, name in step.watched),
            _renamed_edits(step.ripple, ids),
            {ids.get(bead_id, bead_id): held for bead_id, held in step.leases.items()},
            step.creates,
        )
        for step in steps
    )


def _renamed_edits(edits: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, Any]:
    return {ids.get(bead_id, bead_id): _named(fields, ids) for bead_id, fields in edits.items()}


def _named(value: Any, ids: Mapping[str, str]) -> Any:
    """A value with placeholders replaced wherever a bead is named: alone, between commas, inside an edge."""
    if isinstance(value, str):
        return ",".join(ids.get(part, part) for part in value.split(",")) if "(new" in value else value
    if isinstance(value, list):
        return [_named(part, ids) for part in value]
    if isinstance(value, dict):
        return {key: _named(part, ids) for key, part in value.items()}
    return value


def _created_bead(out: str, tracker: Tracker, known: set[str]) -> str | None:
    """The id of the bead just created: the one ddx printed, if it is new in the tracker."""
    # ddx prints the id last, after any messages of a hook or a newer release
    for line in reversed(out.split("\n")):
        if line.strip() in tracker.beads and line.strip() not in known:
            return line.strip()
    return None


def _interrupted(step: CommandStep, stop: BaseException) -> DdxError:
    """The error for a command ended by a person or a signal, with the shell's exit code for it."""
    code = stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
    return DdxError(("ddx", *step.args), "interrupted", "look at the bead, and repeat it if you still want it", code)


def hook_warnings(finished: Finished) -> tuple[str, ...]:
    """The warnings of a hook of a successful command, each with all its lines."""
    found: list[str] = []
    for line in (line.strip() for line in finished.err.split("\n")):
        if _WARNING.match(line):
            found.append(line.removeprefix("bead: "))
        elif found and line and not _NOT_A_HOOKS.match(line):
            found[-1] += f"; {line}"
    return tuple(clean_line(each, 1_000) for each in found)
