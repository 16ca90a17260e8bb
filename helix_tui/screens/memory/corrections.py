"""Correcting a memory from the screen: what it says, what stands in its place; shown first, then done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from helix_tui.core.editing.authoring import AuthoringFinding
from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory import Correction, Memory, MemoryEdit, MemoryStore
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.ranking import likeness
from helix_tui.core.memory.write.storing import MIN_TRIGGER
from helix_tui.screens.base import Console
from helix_tui.screens.editing.forms import FormSheet
from helix_tui.screens.memory.changes import UNDOABLE
from helix_tui.screens.memory.memory_session import MemoryViewState
from helix_tui.screens.memory.sheets import MemoryAction, MemoryActionSheet, MemoryPreviewSheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.form import FormField

MOST_OFFERED = 200
"""Memories that are offered to stand in place of another."""


class CorrectableScreen(Protocol):
    """What a screen has from which memories are corrected."""

    memory_view: MemoryViewState

    @property
    def app(self) -> Any: ...

    @property
    def console(self) -> Console: ...

    def change(self, work: Callable[[MemoryStore], str], done: Callable[[], object]) -> None: ...

    def foresee(self, plan: Callable[[MemoryStore], Correction], show: Callable[[Correction], None]) -> None: ...


class CorrectionForm(FormSheet):
    """What a memory says, to be written anew; it stays until the correction is done or left."""

    def __init__(self, screen: CorrectableScreen, memory: Memory, look: Callable[[MemoryEdit], None]) -> None:
        shown = {"trigger": memory.trigger, "resolution": memory.resolution}
        fields = (
            FormField("resolution", "resolution", "" if memory.withheld else shown["resolution"], lines=5),
            FormField("trigger", "trigger", "" if memory.withheld else shown["trigger"], lines=3),
            FormField("type", "type", memory.type, ways=lambda text: () if text else _TYPES),
        )
        super().__init__(f"edit {memory.name}", screen, fields, self._problems, lambda texts: None)  # type: ignore[arg-type]
        self._memory, self._look = memory, look

    def _problems(self, texts: Mapping[str, str]) -> Sequence[AuthoringFinding]:
        found = []
        if len(texts["trigger"].strip()) < MIN_TRIGGER and not self._memory.withheld:
            found.append(AuthoringFinding("error", "trigger", f"the trigger needs {MIN_TRIGGER} characters"))
        if not texts["resolution"].strip() and not self._memory.withheld:
            found.append(AuthoringFinding("error", "resolution", "the resolution is empty"))
        return found

    def action_go_on(self) -> None:
        """Show what it would do; what was not touched stays as it is stored."""
        first = {field.name: field.text for field in self.form.fields}
        changed = {name: text for name, text in self.form.texts.items() if text.strip() != first[name].strip()}
        if not changed:
            self.console.say("nothing was changed")
            self.dismiss()
            return
        self._look(MemoryEdit(changed.get("trigger"), changed.get("resolution"), changed.get("type")))


_TYPES = (
    ("failure", "what went wrong, and what to do instead"),
    ("pattern", "what worked"),
    ("systemic", "a failure that keeps coming back"),
)


def edit(screen: CorrectableScreen, memory: Memory) -> None:
    """Open the form for a memory."""

    def look(change: MemoryEdit) -> None:
        foresee(
            screen,
            lambda store: store.edit(memory.id, change, apply=False),
            lambda store: MemoryChanges(store).edit(str(memory.id), change)[1],
            form.dismiss,
        )

    form = CorrectionForm(screen, memory, look)
    screen.console.push_screen(form)


def supersede(screen: CorrectableScreen, memory: Memory) -> None:
    """Ask which memory holds instead, those that are most alike first."""
    others = [each for each in screen.memory_view.memories if each.id != memory.id]
    others.sort(key=lambda each: (-likeness(memory.trigger, each.trigger), -each.id))
    choices = [MemoryAction(str(each.id), clean_line(each.trigger, 300)) for each in others[:MOST_OFFERED]]
    if not choices:
        screen.console.say("there is no other memory", "warning")
        return

    def chosen(by: Any) -> None:
        if isinstance(by, str):
            foresee(
                screen,
                lambda store: store.supersede(memory.id, by, apply=False),
                lambda store: MemoryChanges(store).supersede(str(memory.id), by)[1],
                lambda: None,
            )

    screen.app.push_screen(MemoryActionSheet(f"instead of {clean_line(memory.name, 80)}", choices), chosen)


def foresee(
    screen: CorrectableScreen,
    plan: Callable[[MemoryStore], Correction],
    work: Callable[[MemoryStore], Correction],
    done: Callable[[], object],
) -> None:
    """Show what a correction does; do it where that is wanted."""

    def said(correction: Correction) -> str:
        done_ = clean_line(correction.sentence, 200)
        return f"{clean_line(correction.after.name, 80)}: {done_} · u undoes it"

    def show(correction: Correction) -> None:
        if correction.kind == "unchanged":
            screen.console.say("nothing was changed")
            done()
            return
        sheet = MemoryPreviewSheet(
            f"{correction.kind}: {clean_line(correction.before.name, 80)}", lines(correction), UNDOABLE
        )
        screen.app.push_screen(sheet, lambda yes: start() if yes else None)

    def start() -> None:
        screen.change(lambda store: said(work(store)), done)

    screen.foresee(partial(plan), show)


def lines(correction: Correction) -> list[Line]:
    """Before and after, field by field, then what becomes of the counts."""
    before, after = correction.before, correction.after
    found: list[Line] = []
    for label in ("type", "trigger", "resolution"):
        old, new = getattr(before, label), getattr(after, label)
        if old != new:
            found += [
                [(f" − {label:<11}", "error"), (clean_line(old, 1000), "muted")],
                [(f" + {label:<11}", "success"), (clean_line(new, 1000), "text")],
            ]
    found.append([(f" {clean_line(correction.sentence, 300)}", "text")])
    return found
