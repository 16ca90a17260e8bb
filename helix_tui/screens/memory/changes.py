"""What can be done on the Memory screen: foreseen in words, done in a thread, taken back by ``u``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory import MemoryStore
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.reports import Proposal
from helix_tui.screens.memory.memory_session import MemorySession, MemoryViewState
from helix_tui.screens.memory.sheets import MemoryAction
from helix_tui.screens.memory.view_state import prune_lines
from helix_tui.widgets.base.line import Line

Work = Callable[[MemoryStore], str]
"""Does it and says what came of it; runs in a thread."""

UNDOABLE = "u undoes it."


class Foreseen(Struct, frozen=True):
    """What a choice would do."""

    title: str
    lines: Sequence[Line]
    work: Work
    note: str = UNDOABLE


def choices(memory_view: MemoryViewState, key: str) -> list[MemoryAction]:
    """What can be done with the row under the cursor, and with the memory as a whole."""
    found = []
    kind = key.partition(" ")[0]
    waiting = len(memory_view.proposals)
    if kind == "plan":
        found.append(MemoryAction("beads", "create beads from this plan …"))
    elif kind == "proposal":
        found.append(MemoryAction("accept", "accept this lesson"))
        found.append(MemoryAction("decline", "decline this lesson"))
    elif key in memory_view.names:
        found.append(MemoryAction("edit", "edit this memory …"))
        found.append(MemoryAction("supersede", "replace by another memory …"))
        found.append(MemoryAction("remove", "remove this memory …"))
    if waiting > 1 or (waiting and kind != "proposal"):
        found.append(MemoryAction("accept-all", f"accept all {waiting} lessons that wait …"))
        found.append(MemoryAction("decline-all", f"decline all {waiting} lessons that wait …"))
    found.append(
        MemoryAction(
            "prune", f"prune {len(memory_view.harmful)} harmful …", "" if memory_view.harmful else "nothing is harmful"
        )
    )
    found.append(
        MemoryAction(
            "fade", f"fade {len(memory_view.dormant)} dormant …", "" if memory_view.dormant else "nothing is dormant"
        )
    )
    return found


def foresee(memory_view: MemoryViewState, key: str, choice: str) -> Foreseen | None:
    """What a choice would do; None where there is nothing to do any more."""
    if choice in ("accept", "decline", "accept-all", "decline-all"):
        return _lessons(memory_view, key, choice)
    if choice == "remove" and key in memory_view.names:
        memory = memory_view.names[key]
        lines = prune_lines([memory])
        return Foreseen(f"remove {clean_line(key, 80)}", lines, lambda store: _said(MemoryChanges(store).remove([key])))
    if choice == "prune":
        gone = [memory_view.names[name] for name in sorted(memory_view.harmful) if name in memory_view.names]
        title = f"prune {len(gone)} harmful: used 3 times or more, helped in under 25 %"
        return Foreseen(title, prune_lines(gone), lambda store: _said(MemoryChanges(store).prune()[0]))
    if choice == "fade":
        idle = [memory_view.names[name] for name in sorted(memory_view.dormant) if name in memory_view.names]
        title = f"fade {len(idle)} dormant: unused for 30 days, fewer than 2 uses"
        note = f"What helped moves halfway to neutral; nothing is removed. {UNDOABLE}"
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
        deeds = MemoryChanges(store)
        if word == "decline":
            return _said(deeds.decline(chosen))
        deed, refused = deeds.accept(chosen)
        return "; ".join([_said(deed), *(clean_line(why, 200) for why in refused)])

    return Foreseen(title, lines, work)


def undo(memory_session: MemorySession) -> MemoryChange | None:
    """Take back the newest change that stands."""
    return MemoryChanges(memory_session.store()).undo()


def _said(deed: MemoryChange | None) -> str:
    return f"{clean_line(deed.title, 200)} · u undoes it" if deed is not None else "nothing was changed"
