"""Forms: a new bead, judged while it is written; title and texts of one that is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.editing import operations
from helix_tui.core.editing.authoring import PHASES, REQUIRED_LABEL, AuthoringFinding, Level, judge, judge_text
from helix_tui.core.editing.steps import edge
from helix_tui.core.ground.text import clean_line
from helix_tui.keymap import bindings
from helix_tui.screens.editing.change_runner import Trouble
from helix_tui.screens.editing.links import beads_like, labels_in_use, whom
from helix_tui.screens.editing.preview_text import texts_of
from helix_tui.screens.editing.requests import ChangeRequest, EditConflict, request_for, text_edit
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.form import Form, FormField

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.screens.editing.keys import TargetScreen

_TYPES = ("task", "bug", "epic", "chore", "feature", "spike")
_PRIORITIES = (
    ("0", "before everything else"),
    ("1", "soon"),
    ("2", "as usual"),
    ("3", "later"),
    ("4", "some day"),
)
_SIGNS: Mapping[Level, Span] = {"error": ("✗ ", "error bold"), "warning": ("◆ ", "attention")}
_TO_DO: Span = ("○ ", "muted")
"""The sign of what is missing in a field that nobody has written in yet."""

_FIELD_OF = {
    "label": "labels",
    "phase": "labels",
    "kind": "labels",
    "spec": "spec-id",
    "vague": "acceptance",
    "dependency": "dependencies",
}
"""Code of a finding -> the field that it is about, where they are not called the same."""

Findings = Callable[[Mapping[str, str]], Sequence[AuthoringFinding]]


class FormSheet(Sheet):
    """A form on a sheet. It stays until what it asks for has been done, so that no text is lost."""

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
        failed: Callable[[Trouble], None] | None = None,
    ) -> None:
        """Make a sheet.

        Args:
            title: what is filled in.
            screen: the screen underneath, which shows what it would do.
            fields: of the form.
            judged: what is wrong with texts.
            request: what texts ask for; None where they ask for nothing.
            failed: told why it was not done.
        """
        super().__init__(clean_line(title, 200))
        self.form = Form(fields)
        self._below = screen
        self._judged, self._request, self._failed = judged, request, failed
        self._warned: Mapping[str, str] | None = None
        """The texts that were to be taken with their errors, when that was asked for first."""
        self._leaving: Mapping[str, str] | None = None
        """The texts that were to be left, when that was asked for first."""

    def compose_body(self) -> ComposeResult:
        """The form."""
        yield self.form

    def rewrite(self) -> None:
        """What is wrong is broken into lines anew."""
        self.call_after_refresh(self.judge)

    def focus_first(self) -> None:
        """The first field."""
        self.form.focus_first()

    @on(Form.Changed)
    def judge(self) -> None:
        """Say what is wrong with what was written, and what is still to be written."""
        self.form.say([(self._sign(finding), finding.message) for finding in self._judged(self.form.texts)])

    def _sign(self, finding: AuthoringFinding) -> Span:
        field = _FIELD_OF.get(finding.code, finding.code)
        judged = self._warned is not None or self.form.written(field)
        return _SIGNS[finding.level] if judged else _TO_DO

    def action_next_pane(self) -> None:
        """The next field."""
        self.focus_next()

    def action_previous_pane(self) -> None:
        """The field before."""
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
        """Show what it would do; with errors only when it is asked for twice."""
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

    def _ended(self, error: Trouble | None) -> None:
        if error is None:
            self.dismiss()
        elif self._failed is not None:
            self._failed(error)


# --- a new bead -------------------------------------------------------------------------------------------


def create(screen: TargetScreen) -> None:
    """A form for a new bead."""
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
    # vague acceptance is said item by item, which names the item; of the whole only where no item says why
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


def draft_operation(texts: Mapping[str, str], queue: Queue) -> operations.Operation:
    """The creation that a draft asks for."""
    level = texts["priority"].strip().lstrip("Pp")
    return operations.create(
        " ".join(texts["title"].split()),
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
    """The bead id that a text stands for: itself, or the only one that ends or begins so."""
    if not text or text in queue.beads:
        return text
    found = [bead_id for bead_id in queue.beads if bead_id.endswith(text) or bead_id.startswith(text)]
    return found[0] if len(found) == 1 else text


def _parted(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _words(text: str) -> list[str]:
    """Labels: no label holds a space, so a space separates them as a comma does."""
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
    """A form for title and texts of one bead."""
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

    def failed(error: Trouble) -> None:
        # both versions were shown: going on once more is a choice
        if isinstance(error, EditConflict):
            base.update({each.field: str(each.theirs or "") for each in error.differences})

    screen.console.push_screen(FormSheet(f"edit {whom(beads)}", screen, fields, judged, request, failed))
