"""Corrections by a person: another wording, another resolution, one memory in place of another.

A correction that says the same in other words keeps the counts; one that says something else is a revision,
whose counts begin anew while the older one keeps its own (docs/decisions/0016). Each returns its way back,
as plain JSON, for the journal of the memory.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from helix_tui.core.memory.records import Correction, CorrectionKind, Memory, MemoryEdit, MemoryFault, UnknownMemory
from helix_tui.core.memory.store import indexing, revisions, rows
from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.write import upkeep
from helix_tui.core.memory.write.alike import one_matter, resolve_alike
from helix_tui.core.memory.write.storing import clean


def found(base: Base, name_or_id: str | int) -> Memory:
    """The memory of this name or id.

    Raises:
        UnknownMemory: there is none.
    """
    memory = rows.find(base.database, name_or_id)
    if memory is not None:
        return memory
    by = revisions.successor(base, name_or_id)
    if by is not None:
        raise UnknownMemory(f"{name_or_id} was superseded by {by.name}", f"Name {by.name} instead.")
    raise UnknownMemory(f"no memory “{name_or_id}”", "`helix-tui memory list` names them all.")


def edit(base: Base, name_or_id: str | int, change: MemoryEdit, *, apply: bool) -> Correction:
    """Correct a memory; without ``apply``, say only what that would do.

    Raises:
        UnknownMemory: there is no such memory.
        MemoryFault: the new text is refused, or there is no such revision.
    """
    memory = found(base, name_or_id)
    if change.revision is not None:
        return _return_to(base, memory, change.revision, apply=apply)
    draft = _draft(base, memory, change)
    kind = _kind(base, memory, draft)
    number = memory.revision
    way: dict[str, Any] = {}
    if apply and kind != "unchanged":
        vectors = indexing.encode(base, [draft]).get(draft, (None, None))
        if kind == "revised":
            number = revisions.revise(base, memory, draft, vectors, "edited")
            way = {"revised": {"id": memory.id, "from": memory.revision, "to": number}}
        else:
            way = {"reworded": {"id": memory.id, "before": _texts(memory), "after": _texts(draft)}}
            _write(base, memory.id, draft)
    # only looked at: the number that it would get
    elif kind == "revised":
        number = revisions.next_number(base, memory.id)
    after = replace(
        memory,
        trigger=draft.trigger,
        resolution=draft.resolution,
        type=draft.type,
        source=draft.source,
        revision=number,
    )
    if kind == "revised":
        after = replace(after, helped=0.0, failed=0.0, verified_helped=0.0, verified_failed=0.0, shown=0)
    return Correction(kind, memory, after, way)


def supersede(base: Base, old_name: str | int, new_name: str | int, *, apply: bool) -> Correction:
    """Let one memory stand in place of another, which goes into its history.

    Raises:
        UnknownMemory: one of them is not there.
        MemoryFault: they are one memory.
    """
    old, new = found(base, old_name), found(base, new_name)
    if old.id == new.id:
        raise MemoryFault("a memory does not supersede itself", "Correct it with `helix-tui memory edit` instead.")
    if not apply:
        return Correction("superseded", old, new, {})
    # into the other's history first: it is copied from the row that goes below
    way = revisions.supersede(base, old, new)
    removed = upkeep.take_out(base, [old.name], without=("memory_revision",))
    rows.bump(base.database.conn, [new.id])
    return Correction("superseded", old, new, {"superseded": way | {"removed": removed}})


def take_back(base: Base, way: dict[str, Any]) -> None:
    """Undo a correction.

    Raises:
        MemoryFault: what it changed has been changed since.
    """
    if "reworded" in way:
        _reword_back(base, way["reworded"])
    if "revised" in way:
        unrevise(base, way["revised"])
    if "superseded" in way:
        # its row first: `separate` gives the counts of the history back into it
        if not upkeep.put_back(base, way["superseded"]["removed"]):
            raise MemoryFault("a memory of the same name was stored since", "Rename or remove that one first.")
        revisions.separate(base, way["superseded"])


def unrevise(base: Base, change: dict[str, Any]) -> None:
    """Let the revision before hold again; the later one stays in the history where it has done anything."""
    memory = rows.fetch(base.database, [change["id"]]).get(change["id"])
    if memory is None or memory.revision != change["to"]:
        raise MemoryFault(
            "the memory has been changed since",
            "`helix-tui memory get` shows its history; `memory edit NAME --revision N` brings one back.",
        )
    revisions.bring_back(base, change["id"], change["from"])
    revisions.discard(base, change["id"], change["to"])


def _return_to(base: Base, memory: Memory, number: int, *, apply: bool) -> Correction:
    older = revisions.former(base, memory.id, number)
    if older is None:
        raise MemoryFault(f"{memory.name} has no older revision {number}", "`helix-tui memory get` lists its history.")
    way = {"revised": {"id": memory.id, "from": memory.revision, "to": number}}
    if apply:
        revisions.bring_back(base, memory.id, number)
    after = replace(older.memory, id=memory.id, name=memory.name, seen=memory.seen)
    return Correction("revised", memory, after, way if apply else {})


def _draft(base: Base, memory: Memory, change: MemoryEdit) -> Draft:
    draft = Draft(
        memory.trigger if change.trigger is None else change.trigger,
        memory.resolution if change.resolution is None else change.resolution,
        memory.type if change.type is None else change.type,
        memory.source if change.source is None else change.source,
    )
    made = clean(base, draft)
    if isinstance(made, Draft):
        return made
    raise MemoryFault(f"the correction is refused: {made.reason}", "Nothing was changed.")


def _kind(base: Base, memory: Memory, draft: Draft) -> CorrectionKind:
    if _texts(memory) == _texts(draft):
        return "unchanged"
    if (memory.trigger, memory.resolution) == (draft.trigger, draft.resolution):
        return "relabelled"
    same = one_matter(memory.trigger, draft.trigger)
    return "reworded" if same and resolve_alike(base, memory.resolution, draft.resolution) else "revised"


def _texts(one: Memory | Draft) -> dict[str, str]:
    return {"trigger": one.trigger, "resolution": one.resolution, "type": one.type, "source": one.source}


def _write(base: Base, memory_id: int, draft: Draft) -> None:
    base.database.conn.execute(
        "UPDATE memory SET type = ?, source = ? WHERE id = ?", (draft.type, draft.source, memory_id)
    )
    vectors = indexing.encode(base, [draft]).get(draft, (None, None))
    revisions.reword(base, memory_id, draft, vectors)


def _reword_back(base: Base, change: dict[str, Any]) -> None:
    memory = rows.fetch(base.database, [change["id"]]).get(change["id"])
    if memory is None or _texts(memory) != change["after"]:
        raise MemoryFault("the memory has been changed since", "`helix-tui memory get` shows it.")
    _write(base, memory.id, Draft(**change["before"]))
