"""A change before and after it runs: a sheet with its commands, what follows and how to undo it; then the result.

Enter on the sheet runs exactly the commands that it lists. Success is one notice; a failure gets a
sheet with the exact state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events, on
from textual.binding import BindingType

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.differences import Conflict, Difference, PlanChanged
from helix_tui.core.editing.execute.curator import Result
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.execute.trust import NotAllowed
from helix_tui.core.editing.plan import Plan
from helix_tui.core.editing.preview import MAX_PLACES, Consequences
from helix_tui.core.editing.undo import NotUndoable
from helix_tui.core.editing.values import shown
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_block, clean_line, counted, short_id
from helix_tui.core.supervision.requests import ChangeRequest, EditConflict, UndoRequest, turn_named
from helix_tui.keymap import bindings, id_of
from helix_tui.screens.editing.change_runner import Preview
from helix_tui.screens.sheet import Sheet, ask_to_allow
from helix_tui.widgets.base.line import Line, Span
from helix_tui.widgets.base.row_list import RowList
from helix_tui.widgets.text.page import Page

if TYPE_CHECKING:
    from helix_tui.screens.base import Console

WHOLE = 6
"""How many commands are listed above the consequences."""

MAX_NAMED = 12
"""How many beads of one kind are named."""

ROOMY = 58
"""The width from which a line has room for an id beside a title."""

_STOPPED = "stopped on request"


def render_outlook(page: Page, outlook: Preview, already: str = "") -> None:
    """Everything about a change that has not run; if it does nothing, ``already`` says why."""
    plan = outlook.plan
    if not plan.steps and not plan.refusals:
        said = already or f"already done: {clean_line(plan.title, 300)}"
        page.paragraph([("Nothing to do: ", "muted"), (said, "text")])
        return
    for refusal in plan.refusals[:MAX_NAMED]:
        why = with_titles(refusal.why, outlook.queue_state.queue.beads)
        page.paragraph([("✗ ", "error bold"), (clean_line(why, 600), "error")], 2)
    if len(plan.refusals) > MAX_NAMED:
        page.paragraph([(f"✗ and {len(plan.refusals) - MAX_NAMED:,} more", "error")])
    if not plan.steps:
        return
    # the changed beads first, then the commands, what follows, and how to undo it
    _places(page, outlook.follows, outlook.queue_state.queue, again=plan.kind in ("undo", "redo"))
    render_commands(page, plan)
    for note in plan.notes:
        page.paragraph([("◆ ", "attention"), (clean_line(note, 600), "text")], 2)
    render_follows(page, outlook.follows, outlook.queue_state.queue)
    render_way_back(page, plan)
    if len(plan.lines) > WHOLE:
        page.caption("all commands", f"{len(plan.lines):,}")
        for line in plan.lines:
            page.line([(clean_line(line, 1_000), "text")])


def render_commands(page: Page, plan: Plan) -> None:
    """Write the commands as one would type them in a shell."""
    if len(plan.lines) > WHOLE:
        for line in plan.lines[: WHOLE // 2]:
            page.line([("$ ", "running"), (clean_line(line, 1_000), "text bold")])
        page.line([(f"  and {len(plan.lines) - WHOLE // 2:,} more, all of them below", "muted")])
        return
    for line in plan.lines:
        for number, part in enumerate(clean_block(line, 4_000).split("\n")):
            page.paragraph([("  " if number else "$ ", "running"), (part, "text bold")], 2)


def render_follows(page: Page, follows: Consequences, queue: Queue) -> None:
    """Write how the queue would change."""
    before, after = follows.ready
    page.caption("what follows", f"{before:,} ready, then {after:,}" if before != after else f"{before:,} ready")
    if follows.order:
        page.paragraph([(follows.order, "muted")])
    if not follows:
        return
    _beads(page, "+ ready", "success", follows.newly_ready, queue)
    _beads(page, "− ready", "waiting", follows.newly_blocked, queue)
    for bead_id, status in follows.falls.items():
        fallen = f"✓ ddx sets {clean_line(status, 20)}  "
        page.line([(fallen, "muted"), _title(bead_id, queue)], _ident(page, bead_id))
    for cycle in follows.cycles:
        ring = " → ".join(clean_line(bead_id, 60) for bead_id in (*cycle, cycle[0]))
        page.paragraph([("↻ would form a dependency cycle: ", "error bold"), (ring, "error")], 2)
    for orphan in follows.orphaned[:MAX_NAMED]:
        who = f"{short_id(clean_line(orphan.bead_id, 60))} "
        why = f" would wait on {short_id(clean_line(orphan.waits_on, 60))}, which {orphan.why}"
        named: Line = [(who, "muted"), _title(orphan.bead_id, queue), (why, "attention")]
        page.paragraph([("◆ ", "attention bold"), *named], 2)
    if len(follows.orphaned) > MAX_NAMED:
        page.line([(f"◆ and {len(follows.orphaned) - MAX_NAMED:,} more that would never become ready", "attention")])
    if follows.next_before != follows.next_after:
        _next(page, follows, queue)


def _places(page: Page, follows: Consequences, queue: Queue, *, again: bool) -> None:
    """Write the totals, then the place of the changed beads in the pick order, now and afterwards."""
    alone = len(follows.places) == 1
    if not alone:
        page.paragraph([(follows.totals(again=again), "text bold")])
    for place in follows.places[:MAX_PLACES]:
        title = _title(place.bead_id, queue)
        lead: Span = ("this bead  " if alone else "", "muted")
        page.line([lead, title], _ident(page, place.bead_id))
        page.paragraph([("  ", "muted"), (str(place), "text bold" if alone else "muted")], 2)
    if len(follows.places) > MAX_PLACES:
        page.line([(f"and {counted(len(follows.places) - MAX_PLACES, 'more bead')}", "muted")])


def _beads(page: Page, word: str, ink: str, ids: Sequence[str], queue: Queue) -> None:
    for bead_id in ids[:MAX_NAMED]:
        page.line([(f"{word}  ", ink), _title(bead_id, queue)], _ident(page, bead_id))
    if len(ids) > MAX_NAMED:
        page.line([(f"{word}  ", ink), (f"and {len(ids) - MAX_NAMED:,} more", "muted")])


def _title(bead_id: str, queue: Queue) -> Span:
    bead = queue.beads.get(bead_id)
    return clean_line(bead.title, 200) if bead is not None else "the new bead", "text"


def _ident(page: Page, bead_id: str, note: str = "") -> Line:
    """At the right: a note, and the id if there is room."""
    ident = f"  {short_id(clean_line(bead_id, 60)):>12}" if page.width >= ROOMY else ""
    return [(note, "muted"), (ident, "muted")]


def _next(page: Page, follows: Consequences, queue: Queue) -> None:
    """Write the next ten beads as they would be, each with its present place."""
    was = {bead_id: place for place, bead_id in enumerate(queue.ready, 1)}
    page.caption("next, in this order")
    for place, bead_id in enumerate(follows.next_after, 1):
        before = was.get(bead_id)
        moved: Span = ("  ", "text")
        if before is None:
            moved = ("+ ", "success bold")
        elif before != place:
            moved = ("↑ ", "success") if before > place else ("↓ ", "waiting")
        note = f"was {before}" if before is not None and before != place else ""
        page.line([(f"{place:>2} ", "muted"), moved, _title(bead_id, queue)], _ident(page, bead_id, note))


def render_way_back(page: Page, plan: Plan) -> None:
    """Write whether it could be undone, and what would remain."""
    if plan.kind in ("undo", "redo"):
        return
    if not plan.undoable:
        lost = clean_line("; ".join(plan.back.lost), 400)
        page.paragraph([("Cannot be undone: ", "attention bold"), (lost, "attention")], 2)
    else:
        lines = plan.way_back
        if len(lines) > WHOLE // 2:
            lines = (*lines[:2], f"… {counted(len(lines) - WHOLE // 2, 'more command')}", lines[-1])
        page.paragraph([(": ".join(("Undo with u", *lines[:1])), "muted")], 2)
        for line in lines[1:]:
            page.paragraph([(f"             {clean_line(line, 600)}", "muted")], 13)
        for trace in plan.back.traces[:MAX_NAMED]:
            page.paragraph([(f"  {clean_line(trace, 300)}", "muted")], 2)


def render_differences(page: Page, found: Iterable[Difference], mine: str = "expected") -> None:
    """Both versions of everything that someone else changed, one above the other."""
    by_bead: dict[str, list[Difference]] = {}
    for each in found:
        by_bead.setdefault(each.bead_id, []).append(each)
    for bead_id, differing in by_bead.items():
        page.caption(f"bead {clean_line(bead_id, 80)}")
        for each in differing:
            page.paragraph([(clean_line(each.field, 60), "text bold")])
            _version(page, mine, "muted", each.field, each.ours)
            _version(page, "now", "attention", each.field, each.theirs)


def _version(page: Page, word: str, ink: str, field: str, value: Any) -> None:
    text = clean_block(value, 4_000) if isinstance(value, str) else shown(field, value, 4_000)
    for number, line in enumerate(text.split("\n")):
        page.paragraph([(f"  {'' if number else word:<10}", ink), (line, "text")], 12)


Ended = Callable[[Exception | None], None]
"""Called when a change ended: with None if it was made, else with the reason."""


def run_request(
    console: Console,
    request: ChangeRequest,
    shown: Plan,
    take_back: Callable[[], object],
    ended: Ended | None = None,
    *,
    again: Callable[[PlanChanged], object] | None = None,
) -> None:
    """Run what was shown, and report the result.

    Args:
        take_back: previews undoing what was done.
        again: shows the new plan if it has changed meanwhile; then nothing ran.
    """

    def done(result: Result | None) -> None:
        if ended is not None:
            ended(result.error if result is not None else None)
        render_done(console, request, result, take_back)

    def failed(error: Exception) -> None:
        if isinstance(error, PlanChanged) and again is not None:
            again(error)
            return
        if isinstance(error, NotAllowed):
            again_allowed = partial(console.change_runner.run, request, shown, done, failed)
            ask_to_allow(console, error, again_allowed)
            return
        render_trouble(console, request, error)
        if ended is not None:
            ended(error)

    console.change_runner.run(request, shown, done, failed)


def render_done(console: Console, request: ChangeRequest, done: Result | None, take_back: Callable[[], object]) -> None:
    """Report the result: a notice, or a sheet if something went wrong."""
    if done is None or (done.entry is None and not done.plan.refusals):
        console.say("nothing to do")
        return
    console.changed(request.beads, tuple(done.created.values()))
    if done.error is not None or done.problems or done.warnings:
        console.push_screen(HalfWaySheet(request, done, take_back))
        return
    console.say(_all_well(done))


def _all_well(done: Result) -> str:
    # a title says what to do: it has been done
    parts = [f"done: {clean_line(done.plan.title, 160)}"]
    if done.created:
        parts.append(", ".join(clean_line(bead_id, 60) for bead_id in done.created.values()))
    for word, ids in (("now ready", done.newly_ready), ("no longer ready", done.newly_blocked)):
        if ids:
            some = ", ".join(short_id(clean_line(bead_id, 60)) for bead_id in ids[:3])
            parts.append(f"{word}: {some}{f' and {len(ids) - 3:,} more' if len(ids) > 3 else ''}")
    if done.plan.refusals:
        made = len({bead_id for step in done.plan.steps for bead_id in step.edits})
        parts.append(f"{made:,} of {made + len(done.plan.refusals):,} done")
    entry = done.entry
    if entry is not None and entry.plain:
        parts.append("u undoes it" if entry.undoable else "cannot be undone")
    return " · ".join(parts)


def render_trouble(console: Console, request: ChangeRequest, error: Exception) -> None:
    """Why nothing was done: both versions of a conflict, or a message with advice."""
    if isinstance(error, WritesForbidden):
        console.say(str(error), "warning")
    else:
        console.push_screen(TroubleSheet(request, error))


class TroubleSheet(Sheet):
    """Why a change was not made, or not all of it."""

    FOOTER = ("go.back", "move.down", "move.up")

    def __init__(self, request: ChangeRequest, error: Exception) -> None:
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
            render_differences(page, error.differences, mine)
            if not error.differences:
                page.paragraph([("The queue changed, so the commands would differ.", "text")])
            page.blank()
            if error.ran:
                done = f"{error.ran:,} of {counted(error.of, 'command')} had already run; u undoes them"
                page.paragraph([("◆ ", "attention bold"), (done, "text bold")], 2)
            page.paragraph([("Look at the bead and repeat it if you still want it.", "muted")])
        elif isinstance(error, NotUndoable):
            page.paragraph(
                [("✗ ", "error bold"), (f"{clean_line(error.entry.title, 200)} cannot be undone", "error bold")], 2
            )
            page.paragraph([(clean_line(str(error), 600), "text")])
        elif isinstance(error, DdxError):
            render_ddx_error(page, error)
            page.paragraph([("Nothing was changed.", "text")])
        else:
            page.paragraph([("✗ ", "error bold"), (clean_line(str(error), 800), "error")], 2)
            if isinstance(error, HelixError) and error.advice:
                page.paragraph([("→ ", "attention"), (clean_line(error.advice, 600), "text")], 2)


def render_ddx_error(page: Page, error: DdxError, *, advise: bool = True) -> None:
    """Write ddx's own error, and what to do about it."""
    page.paragraph([("✗ ", "error bold"), (clean_line(error.message, 1_000), "error")], 2)
    page.paragraph([("$ ", "muted"), (clean_line(" ".join(error.argv), 1_000), "muted")], 2)
    if advise:
        page.paragraph([("→ ", "attention"), (clean_line(error.advice, 600), "text")], 2)


class HalfWaySheet(Sheet):
    """The state after a change that was not completed, command by command."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("half-way")]
    FOOTER = ("change.undo", "go.back", "move.down", "move.up")

    def __init__(self, request: ChangeRequest, done: Result, take_back: Callable[[], object]) -> None:
        lead = "done, but"
        if done.error is not None:
            lead = "partly done" if done.entry is not None and done.entry.after else "not done"
        super().__init__(f"{lead}: {clean_line(request.title, 160)}")
        self.done = done
        self._take_back = take_back

    def write(self, page: Page) -> None:
        """The error, then each command with its result."""
        done = self.done
        if done.error is not None:
            render_ddx_error(page, done.error, advise=not done.made_anyway)
        for problem in (*done.problems, *done.warnings):
            page.paragraph([("◆ ", "attention bold"), (clean_line(problem, 600), "text")], 2)
        page.paragraph([(self._state(), "text bold")])
        ran = done.ran + len(done.plan.first)
        page.caption("command by command", f"{ran:,} of {len(done.plan.lines):,} ran")
        for number, line in enumerate(done.plan.lines):
            if number < ran:
                sign, word, ink = "✓", "ran", "success"
            # a change stopped on request has no failed command
            elif number == ran and done.error is not None and done.error.message != _STOPPED:
                sign, word, ink = "✗", "failed", "error"
            else:
                sign, word, ink = "○", "not run", "muted"
            page.line([(f"{sign} {word:<8}", ink), (clean_line(line, 1_000), "text")])

    def _state(self) -> str:
        entry = self.done.entry
        if entry is None or not entry.after:
            return "Nothing was changed."
        if self.done.made_anyway:
            return "The change was made anyway; u undoes it."
        back = "u undoes the finished part." if entry.undoable else clean_line(entry.why_not, 300)
        changed = len(entry.after)
        return f"{counted(changed, 'bead')} changed; {back}"

    def action_undo(self) -> None:
        """Undo what was done, with a preview."""
        self.dismiss()
        self._take_back()


class PreviewSheet(Sheet):
    """Shown before every change. Enter runs exactly the commands listed here."""

    FOOTER = ("go.open=run", "copy.id=copy commands", "go.back=cancel")

    def __init__(
        self, request: ChangeRequest, ended: Ended | None = None, *, changed: PlanChanged | None = None
    ) -> None:
        """Make a sheet.

        Args:
            request: the change.
            ended: called when it was done or failed; not called if the sheet was left.
            changed: the plan was shown before, and the queue has changed since, so that the commands differ.
        """
        super().__init__(clean_line(request.title, 200))
        self.request = request
        self.outlook: Preview | None = None
        self._ended = ended
        self._changed = changed

    def on_mount(self) -> None:
        """Start planning the preview."""
        super().on_mount()
        self._look(self.request)

    def _look(self, request: ChangeRequest) -> None:
        self.request, self.outlook = request, None
        self.caption.show(clean_line(request.title, 200))

        def arrived(outlook: Preview) -> None:
            # a key may have changed the request meanwhile
            if self.request is request and not self.has_left:
                self.outlook = outlook
                self.caption.show(clean_line(with_titles(outlook.plan.title, outlook.queue_state.queue.beads), 200))
                self.footer.key_ids = tuple(self.FOOTER) if outlook.plan.steps else ("go.back",)
                self.rewrite()

        def failed(error: Exception) -> None:
            if self.request is request and not self.has_left:
                self.dismiss()
                render_trouble(self.console, request, error)
                if self._ended is not None:
                    self._ended(error)

        self.console.change_runner.foresee(request, arrived, failed)

    def write(self, page: Page) -> None:
        """The preview, once it is ready."""
        if self.outlook is None:
            page.line([("… working out the effect", "waiting")])
            return
        if self._changed is not None:
            why = "The queue changed since this was shown. Nothing was run. The new plan:"
            page.paragraph([("◆ ", "attention bold"), (why, "attention")], 2)
            render_differences(page, self._changed.differences)
            page.blank()
        render_outlook(page, self.outlook, self.request.already)

    def on_key(self, event: events.Key) -> None:
        """Change the request with one of its own keys."""
        key_id = id_of(event.key, "beads", self.console.keymap)
        turn = turn_named((key_id or "").removeprefix("change."))
        other = self.request.turned(turn) if turn is not None else None
        if other is not None:
            event.stop()
            self._look(other)

    @on(RowList.Opened)
    def run_it(self, event: RowList.Opened) -> None:
        """Run what is shown."""
        event.stop()
        if self.outlook is None:
            return
        self.dismiss()
        if self.outlook.plan.steps:
            run_request(
                self.console, self.request, self.outlook.plan, self._take_back, self._ended, again=self._show_again
            )

    def _show_again(self, error: PlanChanged) -> None:
        """Nothing was run: the queue has changed, and so has the plan."""
        self.console.push_screen(PreviewSheet(self.request, self._ended, changed=error))

    def _take_back(self) -> None:
        self.console.push_screen(PreviewSheet(UndoRequest("undo")))

    async def action_back(self) -> None:
        """Leave; a text that was typed for it is kept."""
        await super().action_back()
        if self.request.draft_file:
            kept = clean_line(self.request.draft_file, 400)
            self.console.say(f"nothing was changed; your text is kept in {kept}")

    def action_copy_id(self) -> None:
        """Copy the commands."""
        if self.outlook is not None and self.outlook.plan.lines:
            lines = self.outlook.plan.lines
            what = "the command" if len(lines) == 1 else f"{len(lines):,} commands"
            self.console.copy("\n".join(clean_block(line) for line in lines), what)
