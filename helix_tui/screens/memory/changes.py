"""The actions of the Memory screen, including corrections of a memory.

Each change is shown in words on a sheet first, done in a thread, and undone by ``u``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from msgspec import Struct

from helix_tui.core.editing.authoring import AuthoringFinding
from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.lessons import waiting_lessons
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Correction, Memory, MemoryEdit
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.words import likeness
from helix_tui.core.memory.write.storing import MIN_TRIGGER
from helix_tui.screens.base import Console
from helix_tui.screens.editing.choices import Choice, ChoiceSheet
from helix_tui.screens.editing.forms import FormSheet
from helix_tui.screens.memory.view_state import MemorySession, MemoryViewState, prune_lines
from helix_tui.screens.sheet import LinesSheet
from helix_tui.widgets.base.line import Line
from helix_tui.widgets.form import FormField

Work = Callable[[MemoryStore], str]
"""Does it and returns the result in words; runs in a thread."""

UNDOABLE = "u undoes it."

MAX_OFFERED = 200
"""How many memories are offered as a replacement."""

_TYPES = (
    ("failure", "what went wrong, and what to do instead"),
    ("pattern", "what worked"),
    ("systemic", "a failure that keeps coming back"),
)


class Foreseen(Struct, frozen=True):
    """What a choice would do."""

    title: str
    lines: Sequence[Line]
    work: Work
    note: str = UNDOABLE


def choices(memory_view: MemoryViewState, key: str, act: Callable[[str], object]) -> list[Choice]:
    """The actions on the row under the cursor, and on the memory; ``act`` gets the name of the chosen one."""
    found: list[Choice] = []

    def add(name: str, label: str, off: str = "") -> None:
        found.append(Choice("", "", label, "", partial(act, name), off))

    kind = key.partition(" ")[0]
    waiting = len(memory_view.proposals)
    if kind == "plan":
        add("beads", "create beads from this plan …")
    elif kind == "proposal":
        add("accept", "accept this lesson")
        add("decline", "decline this lesson")
    elif key in memory_view.names:
        if not memory_view.names[key].accepted:
            add("accept-memory", "accept this memory")
        add("edit", "edit this memory …")
        add("supersede", "replace by another memory …")
        add("remove", "remove this memory …")
    # a single waiting lesson under the cursor has its own two choices
    if waiting > 1 or (waiting and kind != "proposal"):
        which = f"all {waiting:,} waiting lessons" if waiting > 1 else "the waiting lesson"
        add("accept-all", f"accept {which} …")
        add("decline-all", f"decline {which} …")
    add("prune", f"prune {len(memory_view.harmful)} harmful …", "" if memory_view.harmful else "no memory is harmful")
    add("fade", f"fade {len(memory_view.dormant)} dormant …", "" if memory_view.dormant else "no memory is dormant")
    return found


def foresee(memory_view: MemoryViewState, key: str, choice: str) -> Foreseen | None:
    """What a choice would do; None if there is nothing left to do."""
    if choice in ("accept", "decline", "accept-all", "decline-all"):
        return _lessons(memory_view, key, choice)
    if choice == "remove" and key in memory_view.names:
        memory = memory_view.names[key]
        lines = prune_lines([memory])
        return Foreseen(f"remove {clean_line(key, 80)}", lines, lambda store: _said(MemoryChanges(store).remove([key])))
    if choice == "accept-memory" and key in memory_view.names:
        lines = prune_lines([memory_view.names[key]])
        title = f"accept {clean_line(key, 80)}: agents are shown it"
        return Foreseen(title, lines, lambda store: _said(_accept_memory(store, key)))
    if choice == "prune":
        gone = [memory_view.names[name] for name in sorted(memory_view.harmful) if name in memory_view.names]
        title = f"prune {len(gone)} harmful: used 3 times or more, helped in under 25 %"
        return Foreseen(title, prune_lines(gone), lambda store: _said(MemoryChanges(store).prune()[0]))
    if choice == "fade":
        idle = [memory_view.names[name] for name in sorted(memory_view.dormant) if name in memory_view.names]
        title = f"fade {len(idle)} dormant: unused for 30 days, fewer than 2 uses"
        note = f"Past success fades halfway to neutral; nothing is removed. {UNDOABLE}"
        return Foreseen(title, prune_lines(idle), lambda store: _said(MemoryChanges(store).fade()[0]), note)
    return None


def _lessons(memory_view: MemoryViewState, key: str, choice: str) -> Foreseen | None:
    chosen: list[Proposal] = list(memory_view.proposals)
    if not choice.endswith("-all"):
        chosen = [each for each in chosen if f"proposal {each.id}" == key]
    if not chosen:
        return None
    word = choice.removesuffix("-all")
    lines: list[Line] = [
        [
            (f" {each.type:<8}", "waiting" if each.type == "failure" else "success"),
            (clean_line(each.trigger, 300), "text"),
            (f"  {clean_line(each.resolution, 300)}", "muted"),
        ]
        for each in chosen
    ]
    title = f"{word} a lesson" if len(chosen) == 1 else f"{word} {len(chosen)} lessons"

    def work(store: MemoryStore) -> str:
        memory_changes = MemoryChanges(store)
        if word == "decline":
            return _said(memory_changes.decline(chosen))
        memory_change, refused = memory_changes.accept(chosen)
        return "; ".join([_said(memory_change), *(clean_line(why, 200) for why in refused)])

    return Foreseen(title, lines, work)


def _accept_memory(store: MemoryStore, name: str) -> MemoryChange | None:
    return MemoryChanges(store).accept(lesson for lesson in waiting_lessons(store) if lesson.memory == name)[0]


def undo(memory_session: MemorySession) -> MemoryChange | None:
    """Undo the newest change that has not been undone."""
    return MemoryChanges(memory_session.store()).undo()


def _said(memory_change: MemoryChange | None) -> str:
    return (
        f"done: {clean_line(memory_change.title, 200)} · u undoes it"
        if memory_change is not None
        else "nothing was changed"
    )


class CorrectableScreen(Protocol):
    """What a screen needs so that memories can be corrected from it."""

    memory_view: MemoryViewState

    @property
    def app(self) -> Any: ...

    @property
    def console(self) -> Console: ...

    def change(self, work: Callable[[MemoryStore], str], done: Callable[[], object]) -> None: ...

    def foresee(self, plan: Callable[[MemoryStore], Correction], show: Callable[[Correction], None]) -> None: ...


class CorrectionForm(FormSheet):
    """The form for a memory's texts; it stays open until the correction is made or cancelled."""

    def __init__(self, screen: CorrectableScreen, memory: Memory, look: Callable[[MemoryEdit], None]) -> None:
        shown = {"trigger": memory.trigger, "resolution": memory.resolution}
        fields = (
            # a text that gives orders has to be rewritten, not edited; an empty field keeps the stored text
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
        """Preview the correction; untouched fields stay as stored."""
        first = {field.name: field.text for field in self.form.fields}
        changed = {name: text for name, text in self.form.texts.items() if text.strip() != first[name].strip()}
        if not changed:
            self.console.say("nothing was changed")
            self.dismiss()
            return
        self._look(MemoryEdit(changed.get("trigger"), changed.get("resolution"), changed.get("type")))


def edit(screen: CorrectableScreen, memory: Memory) -> None:
    """Open the form for a memory."""

    def look(change: MemoryEdit) -> None:
        foresee_correction(
            screen,
            lambda store: store.edit(memory.id, change, apply=False),
            lambda store: MemoryChanges(store).edit(str(memory.id), change)[1],
            form.dismiss,
        )

    form = CorrectionForm(screen, memory, look)
    screen.console.push_screen(form)


def supersede(screen: CorrectableScreen, memory: Memory) -> None:
    """Ask which memory replaces it, the most similar first."""
    others = [each for each in screen.memory_view.memories if each.id != memory.id]
    # the replacement is most likely about the same situation, and newer
    others.sort(key=lambda each: (-likeness(memory.trigger, each.trigger), -each.id))

    def by(other: Memory) -> None:
        foresee_correction(
            screen,
            lambda store: store.supersede(memory.id, str(other.id), apply=False),
            lambda store: MemoryChanges(store).supersede(str(memory.id), str(other.id))[1],
            lambda: None,
        )

    offered = [Choice("", "", clean_line(each.trigger, 300), "", partial(by, each)) for each in others[:MAX_OFFERED]]
    if not offered:
        screen.console.say("there is no other memory", "warning")
        return
    screen.app.push_screen(ChoiceSheet(f"instead of {clean_line(memory.name, 80)}", offered))


def foresee_correction(
    screen: CorrectableScreen,
    plan: Callable[[MemoryStore], Correction],
    work: Callable[[MemoryStore], Correction],
    done: Callable[[], object],
) -> None:
    """Preview a correction, and make it on confirmation."""

    def said(correction: Correction) -> str:
        done_ = clean_line(correction.sentence, 200)
        return f"{clean_line(correction.after.name, 80)}: {done_} · u undoes it"

    def show(correction: Correction) -> None:
        if correction.kind == "unchanged":
            screen.console.say("nothing was changed")
            done()
            return
        title = f"{correction.kind}: {clean_line(correction.before.name, 80)}"
        screen.app.push_screen(LinesSheet(title, lines(correction), UNDOABLE, start))

    def start() -> None:
        screen.change(lambda store: said(work(store)), done)

    screen.foresee(partial(plan), show)


def lines(correction: Correction) -> list[Line]:
    """Before and after, field by field, then what happens to the counts."""
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
