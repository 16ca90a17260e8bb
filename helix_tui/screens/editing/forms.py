"""Writing a bead: a form for a new one, checked while it is typed; title and texts of an existing one, in a form
or in the user's own editor.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing import operations
from helix_tui.core.editing.authoring import PHASES, REQUIRED_LABEL, AuthoringFinding, Level, judge, judge_text
from helix_tui.core.editing.values import edge
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.requests import ChangeRequest, EditConflict, request_for, text_edit
from helix_tui.keymap import bindings
from helix_tui.screens.editing.choices import whom
from helix_tui.screens.editing.links import beads_like, labels_in_use
from helix_tui.screens.external_editor import leave_for
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.form import Form, FormField

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.screens.editing.keys import TargetScreen

_TYPES = ("task", "bug", "epic", "chore", "feature", "spike")
_PRIORITIES = (("0", "before everything else"), ("1", "soon"), ("2", "as usual"), ("3", "later"), ("4", "some day"))
_SIGNS: Mapping[Level, Span] = {"error": ("✗ ", "error bold"), "warning": ("◆ ", "attention")}
_TO_DO: Span = ("○ ", "muted")
"""The sign of a required field that is still empty."""

_FIELD_OF = {
    "label": "labels",
    "phase": "labels",
    "kind": "labels",
    "spec": "spec-id",
    "vague": "acceptance",
    "dependency": "dependencies",
}
"""Code of a finding -> its field, where the names differ."""

Findings = Callable[[Mapping[str, str]], Sequence[AuthoringFinding]]

TEXTS = ("title", "acceptance", "description", "notes")
"""What can be edited, in the order of the file."""

MAX_FILE = 4 << 20
"""Bytes of an edited file that are read back."""


class FormSheet(Sheet):
    """A form on a sheet. It stays open until its change has been made, so that no text is lost."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings("form")]
    FOOTER = ("change.go-on=preview", "go.pane=next field", "go.back=cancel")
    AUTO_FOCUS = "Entry"

    def __init__(
        self,
        title: str,
        screen: TargetScreen,
        fields: Sequence[FormField],
        judged: Findings,
        request: Callable[[Mapping[str, str]], ChangeRequest | None],
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            title: of the form.
            screen: the screen underneath, which previews the change.
            fields: of the form.
            judged: returns what is wrong with the texts.
            request: returns the change that the texts describe; None if there is none.
            failed: called with the reason if the change failed.
        """
        super().__init__(clean_line(title, 200))
        self.form = Form(fields)
        self._below = screen
        self._judged, self._request, self._failed = judged, request, failed
        self._warned: Mapping[str, str] | None = None
        """The texts at the first attempt to continue with errors."""
        self._leaving: Mapping[str, str] | None = None
        """The texts at the first press of esc."""

    def compose_body(self) -> ComposeResult:
        """The form."""
        yield self.form

    def rewrite(self) -> None:
        """Wrap the findings for the new width."""
        self.call_after_refresh(self.judge)

    def focus_first(self) -> None:
        """Focus the first field."""
        self.form.focus_first()

    @on(Form.Changed)
    def judge(self) -> None:
        """Show what is wrong with the texts, and what is still missing."""
        self.form.say([(self._sign(finding), finding.message) for finding in self._judged(self.form.texts)])

    def _sign(self, finding: AuthoringFinding) -> Span:
        field = _FIELD_OF.get(finding.code, finding.code)
        judged = self._warned is not None or self.form.written(field)
        return _SIGNS[finding.level] if judged else _TO_DO

    def action_next_pane(self) -> None:
        """Go to the next field."""
        self.focus_next()

    def action_previous_pane(self) -> None:
        """Go to the previous field."""
        self.focus_previous()

    async def action_back(self) -> None:
        """Leave; what was typed asks once more."""
        texts = dict(self.form.texts)
        if self.form.touched and self._leaving != texts:
            self._leaving = texts
            self.console.say("Press esc again to discard what you typed", "warning")
        else:
            self.dismiss()

    def action_go_on(self) -> None:
        """Preview the change; with errors, only on the second press."""
        texts = dict(self.form.texts)
        errors = [finding for finding in self._judged(texts) if finding.level == "error"]
        if errors and self._warned != texts:
            self._warned = texts
            self.judge()
            self.console.say(f"{errors[0].message}. Press ctrl+o again to continue anyway", "warning")
            return
        request = self._request(texts)
        if request is None:
            self.console.say("nothing was changed")
            self.dismiss()
            return
        self._below.look_ahead(request, ended=self._ended)

    def _ended(self, error: Exception | None) -> None:
        if error is None:
            self.dismiss()
        elif self._failed is not None:
            self._failed(error)


# --- a new bead -------------------------------------------------------------------------------------------


def create(screen: TargetScreen) -> None:
    """Open a form for a new bead."""
    queue = screen.console.snapshot.queue
    near = [queue.beads[bead_id] for bead_id in screen.bead_ids() if bead_id in queue.beads][:1]
    labels = labels_in_use(queue)
    fields = (
        FormField("title", "title", hint="what to do"),
        FormField("type", "type", "task", ways=_starting(_types_in_use(queue))),
        FormField("priority", "priority", "2", ways=lambda text: _PRIORITIES if not text else ()),
        FormField("parent", "parent", near[0].parent if near else "", ways=_beads(queue)),
        FormField(
            "dependencies",
            "waits on",
            ways=_beads(queue),
            several=True,
            hint="ids or words of titles, separated by commas",
        ),
        FormField(
            "labels",
            "labels",
            REQUIRED_LABEL if REQUIRED_LABEL in labels else "",
            ways=_containing(labels),
            several=True,
            hint="separated by commas or spaces",
        ),
        FormField("spec-id", "spec-id", hint="the document that governs it"),
        FormField("acceptance", "acceptance", lines=4, hint="checks that a machine can run, item by item"),
        FormField("description", "description", lines=5),
    )

    def judged(texts: Mapping[str, str]) -> Sequence[AuthoringFinding]:
        return judge_draft(texts, queue)

    def request(texts: Mapping[str, str]) -> ChangeRequest:
        return request_for([draft_operation(texts, queue)])

    screen.console.push_screen(FormSheet("new bead", screen, fields, judged, request))


def judge_draft(texts: Mapping[str, str], queue: Queue) -> Sequence[AuthoringFinding]:
    """What the authoring rules find in a draft; acceptance item by item."""
    row: dict[str, Any] = {
        "title": texts["title"],
        "issue_type": texts["type"].strip() or "task",
        "labels": _words(texts["labels"]),
        "acceptance": texts["acceptance"],
        "spec-id": texts["spec-id"].strip(),
        "dependencies": [edge("", meant(word, queue)) for word in _parted(texts["dependencies"])],
    }
    found = [finding for finding in judge(row, queue.beads, strict=True).findings if finding.code != "vague"]
    # vague acceptance is reported item by item; as a whole only if no single item is vague
    vague = [finding for finding in judge(row, queue.beads, strict=True).errors if finding.code == "vague"]
    items = judge_text(texts["acceptance"]).findings if texts["acceptance"].strip() else ()
    if vague:
        found += [AuthoringFinding("error", "vague", item.message) for item in items] or vague
    else:
        found += items
    parent = texts["parent"].strip()
    if parent and meant(parent, queue) not in queue.beads:
        found.append(AuthoringFinding("error", "parent", f"parent {clean_line(parent, 60)} does not exist"))
    if texts["priority"].strip().lstrip("Pp") not in {"0", "1", "2", "3", "4"}:
        found.append(AuthoringFinding("error", "priority", "a priority is 0 (first) to 4 (last)"))
    # "error" comes before "warning" by the alphabet too
    return sorted(found, key=lambda finding: finding.level)


def draft_operation(texts: Mapping[str, str], queue: Queue) -> operations.CreateBead:
    """The operation that creates the drafted bead."""
    level = texts["priority"].strip().lstrip("Pp")
    return operations.CreateBead(
        title=" ".join(texts["title"].split()),
        issue_type=texts["type"].strip() or "task",
        priority=int(level) if level.isdecimal() else 2,
        labels=_words(texts["labels"]),
        parent=meant(texts["parent"].strip(), queue),
        depends_on=[meant(word, queue) for word in _parted(texts["dependencies"])],
        spec_id=texts["spec-id"].strip(),
        acceptance=texts["acceptance"].strip("\n"),
        description=texts["description"].strip("\n"),
    )


def meant(text: str, queue: Queue) -> str:
    """The bead id that a text means: itself, or the only one that begins or ends with it."""
    if not text or text in queue.beads:
        return text
    found = [bead_id for bead_id in queue.beads if bead_id.endswith(text) or bead_id.startswith(text)]
    return found[0] if len(found) == 1 else text


def _parted(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words(text: str) -> list[str]:
    """Labels: no label contains a space, so spaces separate them as commas do."""
    return text.replace(",", " ").split()


def _types_in_use(queue: Queue) -> list[str]:
    used = dict.fromkeys(bead.issue_type for bead in queue.beads.values() if bead.issue_type)
    return list(dict.fromkeys((*_TYPES[:4], *used, *_TYPES[4:])))


def _starting(words: Sequence[str]) -> Callable[[str], Sequence[tuple[str, str]]]:
    return lambda text: [(word, "") for word in words if word.startswith(text)]


def _containing(words: Sequence[str]) -> Callable[[str], Sequence[tuple[str, str]]]:
    phases = [f"phase:{phase}" for phase in PHASES]
    every = list(dict.fromkeys((*words, REQUIRED_LABEL, *phases)))
    return lambda text: [(word, "") for word in every if text.lower() in word.lower()]


def _beads(queue: Queue) -> Callable[[str], Sequence[tuple[str, str]]]:
    def ways(text: str) -> Sequence[tuple[str, str]]:
        if not text or text in queue.beads:
            return ()
        found = beads_like(text, queue)
        return [(bead.id, bead.title) for bead, _ in zip(found, range(8), strict=False)]

    return ways


# --- texts of a bead --------------------------------------------------------------------------------------


def edit(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Open a form for title and texts of one bead."""
    if not beads:
        return
    if len(beads) > 1:
        screen.console.say("Only one bead can be edited at a time: unmark the others", "warning")
        return
    bead = beads[0]
    base = texts_of(bead)
    queue = screen.console.snapshot.queue
    fields = (
        FormField("title", "title", base["title"]),
        FormField("acceptance", "acceptance", base["acceptance"], lines=5),
        FormField("description", "description", base["description"], lines=8),
        FormField("notes", "notes", base["notes"], lines=4),
    )

    def judged(texts: Mapping[str, str]) -> Sequence[AuthoringFinding]:
        if not texts["title"].strip():
            return [AuthoringFinding("error", "title", "title required")]
        row = bead.document() | {"acceptance": texts["acceptance"]}
        return [finding for finding in judge(row, queue.beads).findings if finding.code == "vague"]

    def request(texts: Mapping[str, str]) -> ChangeRequest | None:
        changed = {name: text for name, text in texts.items() if text != base[name]}
        if "title" in changed:
            changed["title"] = " ".join(changed["title"].split())
        return text_edit(bead.id, base, changed) if changed else None

    def failed(error: Exception) -> None:
        # both versions were shown: continuing again is a deliberate choice
        if isinstance(error, EditConflict):
            base.update({difference.field: str(difference.theirs or "") for difference in error.differences})

    screen.console.push_screen(FormSheet(f"edit {whom(beads)}", screen, fields, judged, request, failed))


class NoEditor(HelixError):
    """There is no usable editor; the message says what to do."""


def editor_words(env: Mapping[str, str]) -> list[str]:
    """The command that $VISUAL or $EDITOR names.

    Raises:
        NoEditor: neither names an existing program.
    """
    name = next((name for name in ("VISUAL", "EDITOR") if env.get(name, "").strip()), "")
    instead = "or edit it here: a, then “edit in a form”"
    if not name:
        raise NoEditor(f"no editor: set EDITOR, for example EDITOR=nano; {instead}")
    try:
        words = shlex.split(env[name])
    except ValueError as error:
        raise NoEditor(f"{name} cannot be read as a command: {error}; {instead}") from None
    if not words or program(words[0], env) is None:
        raise NoEditor(f"{name} names {clean_line(env[name], 100)}, which does not exist; {instead}")
    return words


def texts_of(bead: Bead) -> dict[str, str]:
    """The texts of a bead; empty if it has none."""
    row = bead.document()
    return {name: str(row.get(name) or "") for name in TEXTS}


def as_file(bead_id: str, texts: Mapping[str, str]) -> str:
    """The texts as one file to edit, each under its own heading line."""
    mark = _mark(texts.values())
    parts = [f"{mark} {name} · {clean_line(bead_id, 60)} {mark}\n{text}\n" for name, text in texts.items()]
    return "".join(parts)


def from_file(edited: str, base: Mapping[str, str]) -> dict[str, str]:
    """The texts that differ from the original ones; a text whose heading line is gone is unchanged."""
    mark = re.escape(_mark(base.values()))
    # anything before the first heading line belongs to no text, and is left out
    pieces = re.split(rf"^{mark} (\w+) · .*{mark}[ \t]*\n?", edited, flags=re.MULTILINE)
    changed = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if name in base and text.rstrip("\n") != base[name].rstrip("\n"):
            changed[name] = _framed(text, base[name]) if name != "title" else " ".join(text.split())
    return changed


def _mark(texts: object) -> str:
    """A line of dashes that occurs in none of the texts."""
    mark = "────"
    while any(mark in text for text in texts):  # type: ignore[attr-defined]
        mark += "──"
    return mark


def edit_in_editor(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Open the editor in this terminal, then preview the changes."""
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
        # bytes that are not UTF-8 come back from the editor unchanged
        path.write_text(as_file(bead.id, base), encoding="utf-8", errors="surrogateescape")
        problem = leave_for(screen.app, [*words, os.fspath(path)])
        changed = {} if problem else _read_back(path, base)
    except (OSError, ValueError) as error:
        say(f"not edited: {clean_line(str(error), 200)}; the file is {path}", "error")
        return
    if not changed:
        shutil.rmtree(folder, ignore_errors=True)
        say(f"{problem}: nothing was changed" if problem else "nothing was edited")
        return

    def ended(error: Exception | None) -> None:
        if error is None:
            # only now: until the change is made, the file is the only copy of what was typed
            shutil.rmtree(folder, ignore_errors=True)

    screen.look_ahead(text_edit(bead.id, base, changed, os.fspath(path)), ended=ended)


def _read_back(path: Path, base: Mapping[str, str]) -> dict[str, str]:
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ValueError(f"the edited text is larger than {MAX_FILE >> 20} MiB")
    return from_file(data.decode("utf-8", "surrogateescape"), base)


def _framed(text: str, base: str) -> str:
    """An edited text with the leading and trailing blank lines of the old one."""
    inner = text.strip("\n")
    bare = base.strip("\n")
    if not inner or not bare:
        return inner
    start = base.index(bare)
    return base[:start] + inner + base[start + len(bare) :]
