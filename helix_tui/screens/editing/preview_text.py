"""A change in words, before and after it runs: its commands, what follows, the way back, what came of it.

What went well is told in one notice; what did not has a sheet with the exact state. Title and texts of a bead can be
changed in the user's own editor: they are one file, read back when the editor ends.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from textual.app import SuspendNotSupported
from textual.binding import BindingType

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.editing.execute.curator import Result
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.editing.execute.reconciliation import unread_warning
from helix_tui.core.editing.plan.planner import Plan
from helix_tui.core.editing.preview import Consequences
from helix_tui.core.editing.steps import shown
from helix_tui.core.editing.undo import Conflict, Difference, NotUndoable, PlanChanged
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_block, clean_line, counted, short_id
from helix_tui.keymap import bindings
from helix_tui.screens.editing.change_runner import Preview, Trouble
from helix_tui.screens.editing.requests import ChangeRequest, EditConflict, text_edit
from helix_tui.screens.external_editor import run_editor
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Line, Span
from helix_tui.widgets.form import Page

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.screens.base import Console

WHOLE = 6
"""Commands that are written out; of more only this many stand above what follows from them."""

MOST = 12
"""Beads of one kind that are named one by one."""


ROOMY = 58
"""Cells from which a line has room for an id beside a title."""


def render_outlook(page: Page, outlook: Preview, already: str = "") -> None:
    """Everything about a change that has not run; of none, ``already``: how things are."""
    plan = outlook.plan
    if not plan.steps and not plan.refusals:
        said = already or f"already so: {clean_line(plan.title, 300)}"
        page.paragraph([("Nothing to do: ", "muted"), (said, "text")])
        return
    for refusal in plan.refusals[:MOST]:
        page.paragraph([("✗ ", "error bold"), (clean_line(refusal.why, 600), "error")], 2)
    if len(plan.refusals) > MOST:
        page.paragraph([(f"✗ and {len(plan.refusals) - MOST:,} more", "error")])
    if not plan.steps:
        return
    # the changed beads first, then what runs, what follows from it, and the way back
    _places(page, outlook.follows, outlook.queue_state.queue)
    render_commands(page, plan)
    for note in plan.notes:
        page.paragraph([("◆ ", "attention"), (clean_line(note, 600), "text")], 2)
    for warning in unread_warning(outlook.queue_state.tracker, outlook.embedded):
        page.paragraph([("◆ ", "attention"), (warning, "attention")], 2)
    render_follows(page, outlook.follows, outlook.queue_state.queue)
    render_way_back(page, plan)
    if len(plan.lines) > WHOLE:
        page.caption("all commands", f"{len(plan.lines):,}")
        for line in plan.lines:
            page.line([(clean_line(line, 1_000), "text")])


def render_commands(page: Page, plan: Plan) -> None:
    """The commands as one would type them."""
    if len(plan.lines) > WHOLE:
        for line in plan.lines[: WHOLE // 2]:
            page.line([("$ ", "running"), (clean_line(line, 1_000), "text bold")])
        page.line([(f"  and {len(plan.lines) - WHOLE // 2:,} more, all of them below", "muted")])
        return
    for line in plan.lines:
        for number, part in enumerate(clean_block(line, 4_000).split("\n")):
            page.paragraph([("  " if number else "$ ", "running"), (part, "text bold")], 2)


def render_follows(page: Page, follows: Consequences, queue: Queue) -> None:
    """What would become of the queue."""
    before, after = follows.ready
    page.caption("what follows", f"{before:,} ready, then {after:,}" if before != after else f"{before:,} ready")
    if follows.order:
        page.paragraph([(follows.order, "muted")])
    if not follows:
        return
    _beads(page, "+ ready", "success", follows.newly_ready, queue)
    _beads(page, "− ready", "waiting", follows.newly_blocked, queue)
    for bead_id, status in follows.falls.items():
        fallen = f"✓ {clean_line(status, 20)} by ddx itself  "
        page.line([(fallen, "muted"), _title(bead_id, queue)], _ident(page, bead_id))
    for cycle in follows.cycles:
        ring = " → ".join(clean_line(bead_id, 60) for bead_id in (*cycle, cycle[0]))
        page.paragraph([("↻ would form a dependency cycle: ", "error bold"), (ring, "error")], 2)
    for orphan in follows.orphaned[:MOST]:
        who = f"{short_id(clean_line(orphan.bead_id, 60))} "
        why = f" would wait on {short_id(clean_line(orphan.waits_on, 60))}, which {orphan.why}"
        named: Line = [(who, "muted"), _title(orphan.bead_id, queue), (why, "attention")]
        page.paragraph([("◆ ", "attention bold"), *named], 2)
    if len(follows.orphaned) > MOST:
        page.line([(f"◆ and {len(follows.orphaned) - MOST:,} more that would wait forever", "attention")])
    if follows.next_before != follows.next_after:
        _next(page, follows, queue)


def _places(page: Page, follows: Consequences, queue: Queue) -> None:
    """First the changed beads themselves: where each is picked now, and then."""
    alone = len(follows.places) == 1
    for place in follows.places[:MOST]:
        title = _title(place.bead_id, queue)
        lead: Span = ("this bead  " if alone else "", "muted")
        page.line([lead, title], _ident(page, place.bead_id))
        page.paragraph([("  ", "muted"), (str(place), "text bold")], 2)
    if len(follows.places) > MOST:
        page.line([(f"and {len(follows.places) - MOST:,} more beads", "muted")])


def _beads(page: Page, word: str, ink: str, ids: Sequence[str], queue: Queue) -> None:
    for bead_id in ids[:MOST]:
        page.line([(f"{word}  ", ink), _title(bead_id, queue)], _ident(page, bead_id))
    if len(ids) > MOST:
        page.line([(f"{word}  ", ink), (f"and {len(ids) - MOST:,} more", "muted")])


def _title(bead_id: str, queue: Queue) -> Span:
    bead = queue.beads.get(bead_id)
    return clean_line(bead.title, 200) if bead is not None else "the new bead", "text"


def _ident(page: Page, bead_id: str, note: str = "") -> Line:
    """At the right: a note, and the id where there is room for it."""
    ident = f"  {short_id(clean_line(bead_id, 60)):>12}" if page.width >= ROOMY else ""
    return [(note, "muted"), (ident, "muted")]


def _next(page: Page, follows: Consequences, queue: Queue) -> None:
    """The next ten as they would be, each with the place that it has now."""
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
    """Whether it could be taken back, and what would stay."""
    if plan.kind in ("undo", "redo"):
        return
    if not plan.undoable:
        lost = clean_line("; ".join(plan.back.lost), 400)
        page.paragraph([("Cannot be undone: ", "attention bold"), (lost, "attention")], 2)
    else:
        page.paragraph([(f"Undo with u{rendered_way_back(plan)}", "muted")], 2)
        for trace in plan.back.traces[:MOST]:
            page.paragraph([(f"  {clean_line(trace, 300)}", "muted")], 2)


def rendered_way_back(plan: Plan) -> str:
    """By which commands it would be undone, to end a sentence."""
    lines = plan.way_back
    if len(lines) == 1:
        return f": {clean_line(lines[0], 600)}"
    return f": {len(lines):,} commands, first {clean_line(lines[0], 600)}" if lines else ""


def render_differences(page: Page, found: Iterable[Difference], mine: str = "expected") -> None:
    """Both versions of everything that somebody changed, one above the other."""
    by_bead: dict[str, list[Difference]] = {}
    for each in found:
        by_bead.setdefault(each.bead_id, []).append(each)
    for bead_id, differing in by_bead.items():
        page.caption(clean_line(bead_id, 80))
        for each in differing:
            page.paragraph([(clean_line(each.field, 60), "text bold")])
            _version(page, mine, "muted", each.field, each.ours)
            _version(page, "now", "attention", each.field, each.theirs)


def _version(page: Page, word: str, ink: str, field: str, value: Any) -> None:
    text = clean_block(value, 4_000) if isinstance(value, str) else shown(field, value, 4_000)
    for number, line in enumerate(text.split("\n")):
        page.paragraph([(f"  {'' if number else word:<10}", ink), (line, "text")], 12)


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
        render_done(console, request, result, take_back)

    def failed(error: Trouble) -> None:
        if isinstance(error, PlanChanged) and again is not None:
            again(error)
            return
        render_trouble(console, request, error)
        if ended is not None:
            ended(error)

    console.change_runner.run(request, shown, done, failed)


def render_done(console: Console, request: ChangeRequest, done: Result | None, take_back: Callable[[], object]) -> None:
    """A word, or a sheet where something is not as it was wanted."""
    if done is None or (done.entry is None and not done.plan.refusals):
        console.say("nothing to do")
        return
    console.changed(request.beads, tuple(done.created.values()))
    if done.error is not None or done.problems or done.warnings:
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


def render_trouble(console: Console, request: ChangeRequest, error: Trouble) -> None:
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
            render_differences(page, error.differences, mine)
            if not error.differences:
                page.paragraph([("The queue changed, so other commands would run.", "text")])
            page.blank()
            if error.ran:
                done = f"{error.ran:,} of {error.of:,} commands ran before and stay; u undoes them"
                page.paragraph([("◆ ", "attention bold"), (done, "text bold")], 2)
            page.paragraph([("Look at the bead and repeat it if you still want it.", "muted")])
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
            render_ddx_error(page, error)
            page.paragraph([("Nothing was changed.", "text")])
        else:
            page.paragraph([("✗ ", "error bold"), (clean_line(str(error), 800), "error")], 2)
            if isinstance(error, HelixError) and error.advice:
                page.paragraph([("→ ", "attention"), (clean_line(error.advice, 600), "text")], 2)


def render_ddx_error(page: Page, error: DdxError, *, advise: bool = True) -> None:
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
            render_ddx_error(page, done.error, advise=not done.made_anyway)
        for problem in (*done.problems, *done.warnings):
            page.paragraph([("◆ ", "attention bold"), (clean_line(problem, 600), "text")], 2)
        page.paragraph([(self._state(), "text bold")])
        page.caption("command by command", f"{done.ran:,} of {len(steps):,} ran")
        for number, line in enumerate(done.plan.lines):
            if number < done.ran:
                sign, word, ink = "✓", "ran", "success"
            # a change that was stopped on request has no command that failed
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
            return "The change was made anyway; u undoes it."
        back = "u undoes what was done." if entry.undoable else clean_line(entry.why_not, 300)
        changed = len(entry.after)
        return f"{counted(changed, 'bead')} changed and stay{'s' * (changed == 1)} so; {back}"

    def action_undo(self) -> None:
        """Take back what was done, seen before."""
        self.dismiss()
        self._take_back()


_STOPPED = "stopped on request"


TEXTS = ("title", "acceptance", "description", "notes")
"""What can be edited, in the order of the file."""

MAX_FILE = 4 << 20
"""Bytes of an edited file that are read back."""


class NoEditor(HelixError):
    """There is nothing to edit with; the message says what to do."""


def editor_words(env: Mapping[str, str]) -> list[str]:
    """The command that $VISUAL or $EDITOR names.

    Raises:
        NoEditor: neither names a program that is there.
    """
    name = next((name for name in ("VISUAL", "EDITOR") if env.get(name, "").strip()), "")
    instead = "or edit it here: a, then “edit in a form”"
    if not name:
        raise NoEditor(f"no editor: set EDITOR, for example EDITOR=nano; {instead}")
    try:
        words = shlex.split(env[name])
    except ValueError as error:
        raise NoEditor(f"{name} cannot be read as a command: {error}; {instead}") from None
    if not words or shutil.which(words[0], path=env.get("PATH")) is None:
        raise NoEditor(f"{name} names {clean_line(env[name], 100)}, which does not exist; {instead}")
    return words


def texts_of(bead: Bead) -> dict[str, str]:
    """The texts of a bead, empty where it has none."""
    row = bead.document()
    return {name: str(row.get(name) or "") for name in TEXTS}


def as_file(bead_id: str, texts: Mapping[str, str]) -> str:
    """The texts as one file to edit, each under a line of its own."""
    mark = _mark(texts.values())
    parts = [f"{mark} {name} · {clean_line(bead_id, 60)} {mark}\n{text}\n" for name, text in texts.items()]
    return "".join(parts)


def from_file(edited: str, base: Mapping[str, str]) -> dict[str, str]:
    """The texts that differ from those the file was made of; a text whose line is gone stays as it was."""
    mark = re.escape(_mark(base.values()))
    # what stands before the first of these lines belongs to no text, and is left out
    pieces = re.split(rf"^{mark} (\w+) · .*{mark}[ \t]*\n?", edited, flags=re.MULTILINE)
    changed = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if name in base and text.rstrip("\n") != base[name].rstrip("\n"):
            changed[name] = _framed(text, base[name]) if name != "title" else " ".join(text.split())
    return changed


def _mark(texts: object) -> str:
    """A line of dashes that stands in none of the texts."""
    mark = "────"
    while any(mark in text for text in texts):  # type: ignore[attr-defined]
        mark += "──"
    return mark


class ChangingScreen(Protocol):
    """What a screen has from which the texts of a bead are edited."""

    @property
    def app(self) -> Any: ...

    @property
    def console(self) -> Console: ...

    def look_ahead(self, request: ChangeRequest, ended: Ended | None = None) -> None: ...


def edit(screen: ChangingScreen, beads: Sequence[Bead]) -> None:
    """Let the editor have the screen, then show what its changes would do."""
    if not beads:
        return
    say = screen.console.say
    if len(beads) > 1:
        say("only one bead can be edited at a time; unmark the others", "warning")
        return
    bead = beads[0]
    try:
        words = editor_words(os.environ)
    except NoEditor as error:
        say(str(error), "warning")
        return
    base = texts_of(bead)
    folder = Path(tempfile.mkdtemp(prefix="helix-edit-"))
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', bead.id)[:80]}.md"
    try:
        # bytes that are no UTF-8 come back from the editor as they were
        path.write_text(as_file(bead.id, base), encoding="utf-8", errors="surrogateescape")
        with screen.app.suspend():
            code = run_editor([*words, os.fspath(path)])
        changed = _read_back(path, base) if code == 0 else {}
    except SuspendNotSupported:
        shutil.rmtree(folder, ignore_errors=True)
        say("this terminal cannot be given to an editor; use a, then “edit in a form”", "warning")
        return
    except (OSError, ValueError) as error:
        say(f"not edited: {clean_line(str(error), 200)}; the file is {path}", "error")
        return
    if not changed:
        shutil.rmtree(folder, ignore_errors=True)
        say(f"the editor ended with {code}, so nothing is changed" if code else "nothing was edited")
        return

    def ended(error: Trouble | None) -> None:
        if error is None:
            # only now: until the change is made the file is all that there is of what was typed
            shutil.rmtree(folder, ignore_errors=True)

    screen.look_ahead(text_edit(bead.id, base, changed, os.fspath(path)), ended=ended)


def _read_back(path: Path, base: Mapping[str, str]) -> dict[str, str]:
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ValueError(f"the edited text is larger than {MAX_FILE >> 20} MiB")
    return from_file(data.decode("utf-8", "surrogateescape"), base)


def _framed(text: str, base: str) -> str:
    """An edited text between the empty lines that the old one began and ended with."""
    inner = text.strip("\n")
    bare = base.strip("\n")
    if not inner or not bare:
        return inner
    start = base.index(bare)
    return base[:start] + inner + base[start + len(bare) :]
