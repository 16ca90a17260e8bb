"""What came of a change: a word when all went well, a sheet with the exact state when it did not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.execute.curator import Result
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.plan.planner import Plan
from helix_tui.core.editing.undo.conflicts import Conflict, NotUndoable, PlanChanged
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line, short_id
from helix_tui.keymap import bindings
from helix_tui.screens.editing.change_runner import Trouble
from helix_tui.screens.editing.preview_text import tell_differences
from helix_tui.screens.editing.requests import ChangeRequest, EditConflict
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.forms.page import Page

if TYPE_CHECKING:
    from helix_tui.screens.base import Console


Ended = Callable[[Trouble | None], None]
"""Told how a change ended: None when it was made, else why not."""


def run_request(
    console: Console,
    request: ChangeRequest,
    shown: Plan,
    take_back: Callable[[], object],
    ended: Ended | None = None,
    *,
    again: Callable[[PlanChanged], object] | None = None,
) -> None:
    """Run what was shown, and tell what came of it.

    Args:
        take_back: looks ahead at undoing what was done.
        again: shows the plan once more, where it is another one by now; nothing ran then.
    """

    def done(result: Result | None) -> None:
        if ended is not None:
            ended(result.error if result is not None else None)
        tell_done(console, request, result, take_back)

    def failed(error: Trouble) -> None:
        if isinstance(error, PlanChanged) and again is not None:
            again(error)
            return
        tell_trouble(console, request, error)
        if ended is not None:
            ended(error)

    console.change_runner.run(request, shown, done, failed)


def tell_done(console: Console, request: ChangeRequest, done: Result | None, take_back: Callable[[], object]) -> None:
    """A word, or a sheet where something is not as it was wanted."""
    if done is None or (done.entry is None and not done.plan.refusals):
        console.say("nothing to do")
        return
    console.changed(request.beads, tuple(done.created.values()))
    if done.error is not None or done.problems:
        console.push_screen(HalfWaySheet(request, done, take_back))
        return
    console.say(_all_well(done))


def _all_well(done: Result) -> str:
    parts = [clean_line(done.plan.title, 160)]
    if done.created:
        parts.append(", ".join(clean_line(bead_id, 60) for bead_id in done.created.values()))
    for word, ids in (("now ready", done.newly_ready), ("no longer ready", done.newly_blocked)):
        if ids:
            some = ", ".join(short_id(clean_line(bead_id, 60)) for bead_id in ids[:3])
            parts.append(f"{word}: {some}{f' and {len(ids) - 3:,} more' if len(ids) > 3 else ''}")
    if done.plan.refusals:
        parts.append(f"{len(done.plan.refusals):,} left out")
    entry = done.entry
    if entry is not None and entry.plain:
        parts.append("u undoes it" if entry.undoable else "cannot be undone")
    return " · ".join(parts)


def tell_trouble(console: Console, request: ChangeRequest, error: Trouble) -> None:
    """Why nothing was done: both versions of a conflict, or a sentence and what to do."""
    if isinstance(error, WritesForbidden):
        console.say(str(error), "warning")
    else:
        console.push_screen(TroubleSheet(request, error))


class TroubleSheet(Sheet):
    """Why a change was not made, or not all of it."""

    FOOTER = ("go.back", "move.down", "move.up")

    def __init__(self, request: ChangeRequest, error: Trouble) -> None:
        super().__init__(f"not done: {clean_line(request.title, 160)}")
        self.error = error
        self._kept = request.draft_file

    def write(self, page: Page) -> None:
        """What happened, and what to do."""
        self._write_error(page)
        if self._kept:
            page.paragraph([("Your text is kept in ", "text"), (clean_line(self._kept, 400), "text bold")])

    def _write_error(self, page: Page) -> None:
        error = self.error
        if isinstance(error, Conflict):
            page.paragraph([("✗ ", "error bold"), ("Changed by someone else since", "error bold")])
            page.paragraph([("Nothing was overwritten. Both versions:", "text")])
            mine = "yours" if isinstance(error, EditConflict) else "expected"
            tell_differences(page, error.differences, mine)
            if not error.differences:
                page.paragraph([("The queue changed, so other commands would run.", "text")])
            page.blank()
            if error.ran:
                done = f"{error.ran:,} of {error.of:,} commands ran before and stay; u undoes them"
                page.paragraph([("◆ ", "attention bold"), (done, "text bold")], 2)
            page.paragraph([("Look at the bead and do it again if you still want it.", "muted")])
        elif isinstance(error, NotUndoable):
            page.paragraph(
                [
                    ("✗ ", "error bold"),
                    (f"{clean_line(error.entry.title, 200)} cannot be undone", "error bold"),
                ],
                2,
            )
            page.paragraph([(clean_line(str(error), 600), "text")])
        elif isinstance(error, DdxError):
            tell_ddx_error(page, error)
            page.paragraph([("Nothing was changed.", "text")])
        else:
            page.paragraph([("✗ ", "error bold"), (clean_line(str(error), 800), "error")], 2)
            if isinstance(error, HelixError) and error.advice:
                page.paragraph([("→ ", "attention"), (clean_line(error.advice, 600), "text")], 2)


def tell_ddx_error(page: Page, error: DdxError, *, advise: bool = True) -> None:
    """ddx's own error, and what to do about it."""
    page.paragraph([("✗ ", "error bold"), (clean_line(error.message, 1_000), "error")], 2)
    page.paragraph([("$ ", "muted"), (clean_line(" ".join(error.argv), 1_000), "muted")], 2)
    if advise:
        page.paragraph([("→ ", "attention"), (clean_line(error.advice, 600), "text")], 2)


class HalfWaySheet(Sheet):
    """What stands after a change that did not come to its end, command by command."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("half-way")]
    FOOTER = ("change.undo", "go.back", "move.down", "move.up")

    def __init__(self, request: ChangeRequest, done: Result, take_back: Callable[[], object]) -> None:
        lead = "done, but"
        if done.error is not None:
            lead = "not all done" if done.entry is not None and done.entry.after else "not done"
        super().__init__(f"{lead}: {clean_line(request.title, 160)}")
        self.done = done
        self._take_back = take_back

    def write(self, page: Page) -> None:
        """The error, then each command with what became of it."""
        done, steps = self.done, self.done.plan.steps
        if done.error is not None:
            tell_ddx_error(page, done.error, advise=not done.made_anyway)
        for problem in done.problems:
            page.paragraph([("◆ ", "attention bold"), (clean_line(problem, 600), "text")], 2)
        page.paragraph([(self._state(), "text bold")])
        page.caption("command by command", f"{done.ran:,} of {len(steps):,} ran")
        for number, line in enumerate(done.plan.lines):
            if number < done.ran:
                sign, word, ink = "✓", "ran", "success"
            elif number == done.ran and done.error is not None and done.error.message != _STOPPED:
                sign, word, ink = "✗", "failed", "error"
            else:
                sign, word, ink = "○", "not run", "muted"
            page.line([(f"{sign} {word:<8}", ink), (clean_line(line, 1_000), "text")])

    def _state(self) -> str:
        entry = self.done.entry
        if entry is None or not entry.after:
            return "Nothing was changed."
        if self.done.made_anyway:
            return "The change was made all the same; u undoes it."
        back = "u undoes what was done." if entry.undoable else clean_line(entry.why_not, 300)
        changed = len(entry.after)
        return f"{changed:,} bead{'s' * (changed != 1)} changed and stay{'s' * (changed == 1)} so; {back}"

    def action_undo(self) -> None:
        """Take back what was done, seen before."""
        self.dismiss()
        self._take_back()


_STOPPED = "stopped on request"
