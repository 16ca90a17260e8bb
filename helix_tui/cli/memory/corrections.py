"""``memory edit``, ``remove`` and ``supersede``: what a person corrects, shown first, undone by ``undo``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory import MemoryEdit, MemoryStore
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges


def edit(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Correct a memory, or bring an older revision of it back."""
    options = call.options
    change = MemoryEdit(options.trigger, options.resolution, options.type, options.source, options.revision)
    if change == MemoryEdit():
        raise CliError("say what to correct", "Give --resolution, --trigger, --type, --source or --revision.", 2)
    if _looks(call):
        return _document(memory.edit(options.name, change, apply=False).document(), None)
    deed, done = MemoryChanges(memory).edit(options.name, change)
    return _document(done.document(), deed)


def supersede(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Let one memory stand in place of another."""
    options = call.options
    if _looks(call):
        return _document(memory.supersede(options.name, options.by, apply=False).document(), None)
    deed, done = MemoryChanges(memory).supersede(options.name, options.by)
    return _document(done.document(), deed)


def remove(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Take memories out, with their history."""
    wanted = list(dict.fromkeys(call.options.names))
    known = {name: memory.get(name) for name in wanted}
    missing = [name for name, found in known.items() if found is None]
    if missing:
        raise CliError(
            f"no memory “{clean_line(missing[0], 80)}”; nothing was removed",
            "`helix-tui memory list` names them all.",
        )
    names = [found.name for found in known.values() if found is not None]
    deed = None if _looks(call) else MemoryChanges(memory).remove([str(name) for name in wanted])
    applied = deed is not None
    return {"removed": names if applied else [], "candidates": names} | _document({}, deed)


def _looks(call: Call) -> bool:
    return bool(call.options.dry_run or call.read_only)


def _document(found: dict[str, Any], deed: MemoryChange | None) -> dict[str, Any]:
    return {**found, "applied": deed is not None, "done": None if deed is None else deed.document()}


def tell_corrected(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``edit`` and ``supersede`` for people: before, after, and what becomes of the counts."""
    before, after = document["before"], document["after"]
    yield call.paint(clean_line(after["name"]), "bold")
    for key in ("type", "trigger", "resolution", "source"):
        if before[key] != after[key]:
            yield call.paint(f"- {key:<11}{clean_line(before[key], 1000)}", "error")
            yield call.paint(f"+ {key:<11}{clean_line(after[key], 1000)}", "success")
    yield document["sentence"]
    yield from _ending(call, document)


def tell_removed(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``remove`` for people."""
    word = "removed" if document["applied"] else "would go"
    for name in document["candidates"]:
        yield f"{word}  {clean_line(name)}"
    yield counted(len(document["candidates"]), "memory", "memories")
    yield from _ending(call, document)


def _ending(call: Call, document: dict[str, Any]) -> Iterator[str]:
    if document["done"]:
        yield "`helix-tui memory undo` undoes it"
    elif document.get("status") != "unchanged":
        yield call.paint("nothing was changed", "muted")
