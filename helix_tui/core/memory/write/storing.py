"""Store a memory: refuse it, merge it into an equivalent one, make it a revision, or add it; and apply a person's
corrections: another wording, another resolution, superseding a memory.

The rules: helix v1's checks and its threshold of 0.85, but comparing trigger with trigger (helix compared a trigger
with trigger and resolution: docs/formats/memory.md §6), and only if the resolutions agree too; the same trigger with
another resolution is a revision (docs/decisions/0016). Reading and writing are one write transaction, so any number of
processes may store the same memory at once.

A correction that only rewords keeps the counts; any other is a revision, whose counts start at 0 while the older one
keeps its own. Each returns its undo data, as plain JSON, for the journal of the memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.time import NS, format_instant
from helix_tui.core.memory.guard import scan as marks
from helix_tui.core.memory.provenance import ACCEPTED_AT_ONCE, teacher_of
from helix_tui.core.memory.records import (
    TYPES,
    Correction,
    CorrectionKind,
    Memory,
    MemoryEdit,
    MemoryFault,
    Stored,
    UnknownMemory,
)
from helix_tui.core.memory.store import indexing, revisions, rows
from helix_tui.core.memory.store.database import Base, Vector, credit
from helix_tui.core.memory.store.index import MemoryIndex
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.words import key, slug
from helix_tui.core.memory.write import alike, upkeep
from helix_tui.core.memory.write import upkeep as recurring
from helix_tui.core.memory.write.same_problem import one_matter, resolve_alike, same_problem

CHUNK_SIMILARITY = 0.85
"""Similarity at which a landed approach strengthens a pattern (docs/formats/memory.md §6)."""

MIN_TRIGGER = 10
MAX_TEXT = 20_000

APPROACH = "Approach that worked: "

_MOST_OLDER = 20


def store(base: Base, draft: Draft) -> Stored:
    """Store one memory."""
    return store_many(base, [draft])[0]


def store_many(base: Base, drafts: Iterable[Draft]) -> list[Stored]:
    """Store several memories in one transaction, each compared with those before it."""
    cleaned = [clean(base, draft) for draft in drafts]
    good = [draft for draft in cleaned if isinstance(draft, Draft)]
    # encoded before the transaction, which keeps other processes from writing
    vectors = indexing.encode(base, good)
    results: list[Stored] = []
    if not good:
        return [draft for draft in cleaned if isinstance(draft, Stored)]
    with base.writing() as index:
        for draft in cleaned:
            if isinstance(draft, Stored):
                results.append(draft)
                continue
            index.refresh(base.database)
            stored = _store(base, index, draft, *vectors.get(draft, (None, None)))
            verdict = marks.verdict(draft.trigger, draft.resolution, draft.source)
            now = rows.fetch(base.database, [stored.id]).get(stored.id) if stored.id is not None else None
            waits = now is not None and not now.accepted
            results.append(replace(stored, waits=waits, marks=tuple(filter(None, verdict.split("; ")))))
    return results


def chunk(base: Base, outcome: str, done: Draft) -> Stored:
    """Store a pattern from a landed task, or strengthen a similar known pattern
    (docs/formats/memory.md §6). The draft's trigger is the task, its resolution the approach.
    """
    if not outcome.strip().lower().startswith("success"):
        return Stored("skipped", reason="only chunk successful outcomes", mode=base.mode)
    task, approach = done.trigger.strip(), done.resolution.strip()
    draft = clean(base, replace(done, trigger=f"Task: {task}", resolution=f"{APPROACH}{approach}", type="pattern"))
    if isinstance(draft, Stored):
        return draft
    if not approach.strip():
        return Stored("rejected", reason="approach empty", mode=base.mode)
    trigger, whole = indexing.encode(base, [draft]).get(draft, (None, None))
    with base.writing() as index:
        known = find_known(base, draft, alike.Kin(base, index, draft, trigger), CHUNK_SIMILARITY)
        if known is None or known.differs:
            return _store(base, index, draft, trigger, whole)
        shown = known.says_so
        credit(base, shown, helped=1, failed=0, used_at=rows.as_text(base.now()))
        return Stored(
            "strengthened",
            known.memory.name,
            "similar pattern exists, reinforced it" if shown == known.memory else _older(known),
            known.memory.id,
            known.memory.type,
            similarity=known.similarity,
            mode=base.mode,
            revision=shown.revision,
        )


def clean(base: Base, draft: Draft) -> Draft | Stored:
    """The draft without surrounding blanks, or why it is refused; the order of checks is helix v1's."""
    trigger, resolution = _text(draft.trigger), _text(draft.resolution)
    reason = ""
    if draft.type not in TYPES:
        reason = f"type must be one of {TYPES}"
    elif len(trigger) < MIN_TRIGGER:
        reason = "trigger too short"
    elif not resolution:
        reason = "resolution empty"
    elif max(len(trigger), len(resolution)) > MAX_TEXT:
        reason = f"longer than {MAX_TEXT:,} characters"
    if reason:
        known = draft.type if draft.type in TYPES else ""
        return Stored("rejected", reason=reason, type=known, mode=base.mode)
    attempt, bead = (_text(name)[:200] for name in (draft.attempt, draft.bead))
    return replace(
        draft,
        trigger=trigger,
        resolution=resolution,
        source=_text(draft.source)[:MAX_TEXT],
        attempt=attempt,
        bead=bead,
    )


def _text(text: str) -> str:
    """A text that SQLite stores unchanged: no NUL, no lone surrogates, no surrounding blanks."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8").strip()


def _store(base: Base, index: MemoryIndex, draft: Draft, trigger: Vector | None, whole: Vector | None) -> Stored:
    kin = alike.Kin(base, index, draft, trigger)
    known = find_known(base, draft, kin)
    if known is not None:
        if known.differs:
            return _revise(base, index, draft, (trigger, whole), known)
        return _merge(base, index, draft, known)
    # compared before it is added, or it would match itself
    near = kin.failures()
    promoted = draft.type == "failure" and recurring.recurs(base, index, draft, near)
    draft = replace(draft, type="systemic" if promoted else draft.type)
    memory_id, name = _add(base, draft, trigger, whole)
    recurring.note(base, memory_id, draft)
    like = rows.fetch(base.database, near)
    _link(base, name, [(like[near_id].name, similarity) for near_id, similarity in near.items()])
    return Stored(
        "added",
        name,
        "",
        memory_id,
        draft.type,
        promoted=promoted,
        similar=tuple(memory.name for memory in like.values()),
        mode=base.mode,
    )


class KnownMemory(Struct, frozen=True):
    """What is already known of a text that is to be stored."""

    memory: Memory
    """The newest revision."""
    similarity: float
    says_so: Memory
    """The revision that agrees: the newest or an older one."""
    differs: bool = False
    """Whether none agrees, so that the text is a newer revision."""


def find_known(base: Base, draft: Draft, kin: alike.Kin, threshold: float = alike.DUPLICATE) -> KnownMemory | None:
    """Find a memory equivalent to a draft, or with the same problem and another resolution.

    A memory entered by a person is merged only with the same text, and never replaced. What waits for acceptance
    and what agents are shown stay apart, with their names and histories; only the same thing said again is counted.
    """
    revised: KnownMemory | None = None
    for memory, similarity in _each(base, kin.candidates(threshold)):
        if not one_matter(memory.trigger, draft.trigger):
            continue
        same = same_problem(memory.trigger, draft.trigger)
        agrees = resolve_alike(base, _bare(memory.resolution), _bare(draft.resolution))
        if draft.accepted != memory.accepted and not (memory.accepted and agrees):
            continue
        # a person's words give way to a person's only
        if memory.taught_by == "person" != draft.taught_by and not agrees:
            continue
        if memory.protected or draft.protected:
            # a person's memory matches only its exact words
            if same and key(memory.resolution) == key(draft.resolution) and memory.protected:
                return KnownMemory(memory, similarity, memory)
            if draft.protected and same and revised is None:
                revised = KnownMemory(memory, similarity, memory, differs=True)
            continue
        if agrees:
            return KnownMemory(memory, similarity, memory)
        if same:
            older = _older_that_agrees(base, memory, draft)
            if older is not None:
                return KnownMemory(memory, similarity, older)
            revised = revised or KnownMemory(memory, similarity, memory, differs=True)
    return revised


def _each(base: Base, lots: Iterable[Sequence[tuple[int, float]]]) -> Iterator[tuple[Memory, float]]:
    for candidates in lots:
        memories = rows.fetch(base.database, [memory_id for memory_id, _ in candidates])
        for memory_id, similarity in candidates:
            yield memories[memory_id], similarity


def _older_that_agrees(base: Base, memory: Memory, draft: Draft) -> Memory | None:
    """The replaced revision that agrees with the text being stored again."""
    for revision in revisions.history(base, memory.id)[:_MOST_OLDER]:
        if resolve_alike(base, _bare(revision.memory.resolution), _bare(draft.resolution)):
            return revision.memory
    return None


def _bare(resolution: str) -> str:
    """A resolution without the prefix added by `chunk`, which would make all of them similar."""
    return resolution.removeprefix(APPROACH)


def _older(known: KnownMemory) -> str:
    return f"revision {known.says_so.revision} says so; revision {known.memory.revision} has replaced it"


def _revise(
    base: Base, index: MemoryIndex, draft: Draft, vectors: tuple[Vector | None, Vector | None], known: KnownMemory
) -> Stored:
    """Give a known memory a new revision."""
    memory = known.memory
    # another resolution makes it no less recurrent
    type_ = "systemic" if "systemic" in (memory.type, draft.type) else draft.type
    number = revisions.revise(base, memory, replace(draft, type=type_), vectors, "revised")
    promoted, near = _counted(base, index, memory, draft)
    return Stored(
        "revised",
        memory.name,
        f"revision {number}: another resolution for a known trigger",
        memory.id,
        "systemic" if promoted else type_,
        promoted=promoted,
        similar=near,
        similarity=known.similarity,
        mode=base.mode,
        revision=number,
        replaced=memory.revision,
    )


def _merge(base: Base, index: MemoryIndex, draft: Draft, known: KnownMemory) -> Stored:
    """Count a duplicate; if its words differ, they are kept as a searchable variant."""
    memory = known.memory
    other = (draft.trigger, draft.resolution) != (memory.trigger, memory.resolution)
    # words that wait for acceptance do not find a memory that agents are shown
    if known.says_so is memory and other and draft.accepted == memory.accepted:
        _keep_variant(base, memory, draft)
    promoted, near = _counted(base, index, memory, draft)
    return Stored(
        "merged",
        memory.name,
        "similar exists" if known.says_so is memory else _older(known),
        memory.id,
        "systemic" if promoted else memory.type,
        promoted=promoted,
        similar=near,
        similarity=known.similarity,
        mode=base.mode,
        revision=known.says_so.revision,
    )


def _keep_variant(base: Base, memory: Memory, draft: Draft) -> None:
    texts = (memory.id, draft.trigger, draft.resolution)
    base.database.conn.execute(
        "INSERT INTO memory_variant (memory_id, at, trigger, resolution, source) SELECT ?1, ?4, ?2, ?3, ?5"
        " WHERE NOT EXISTS (SELECT 1 FROM memory_variant"
        " WHERE memory_id = ?1 AND trigger = ?2 AND resolution = ?3)",
        (*texts, rows.as_text(base.now()), draft.source),
    )
    # nothing else of the memory changed
    indexing.put_words(base, memory.id, Draft(memory.trigger, memory.resolution).whole)


def _counted(base: Base, index: MemoryIndex, memory: Memory, draft: Draft) -> tuple[bool, tuple[str, ...]]:
    """Count one more occurrence; return whether it is now systemic, and similar failures."""
    connection = base.database.conn
    if recurring.note(base, memory.id, draft):
        connection.execute(
            "INSERT INTO memory_extra (memory_id, seen) VALUES (?, 2)"
            " ON CONFLICT(memory_id) DO UPDATE SET seen = seen + 1",
            (memory.id,),
        )
    vector = alike.own_trigger(base, index, memory.id)
    own = Draft(memory.trigger, memory.resolution, memory.type)
    near = alike.Kin(base, index, own, vector).failures(but=memory.id)
    kin = rows.fetch(base.database, near)
    promoted = memory.type == "failure" and (
        draft.type == "systemic" or recurring.recurs(base, index, own, near, own_id=memory.id)
    )
    if promoted:
        connection.execute("UPDATE memory SET type = 'systemic' WHERE id = ?", (memory.id,))
    else:
        rows.bump(connection, [memory.id])
    return promoted, tuple(each.name for each in kin.values())


def _add(base: Base, draft: Draft, trigger: Vector | None, whole: Vector | None) -> tuple[int, str]:
    name = _free_name(base, draft)
    now = rows.as_text(base.now())
    cursor = base.database.conn.execute(
        "INSERT INTO memory (name, type, trigger, resolution, created_at, source) VALUES (?, ?, ?, ?, ?, ?)",
        (name, draft.type, draft.trigger, draft.resolution, now, draft.source),
    )
    memory_id = int(cursor.lastrowid or 0)
    rows.teach(base.database.conn, memory_id, draft.taught_by, accepted=draft.accepted)
    indexing.index_texts(base, memory_id, draft)
    indexing.put_vectors(base, memory_id, trigger, whole)
    return memory_id, name


def _free_name(base: Base, draft: Draft) -> str:
    """An unused name: the slug, or the slug with the first free number."""
    stamp = re.sub(r"\D", "", format_instant(base.now() // NS * NS))
    stem = slug(draft.trigger) or f"{draft.type}-{stamp}"
    if marks.screen(draft.trigger)[0] or marks.screen(stem.replace("-", " "))[0]:
        stem = f"{draft.type}-marked"  # a name would repeat what the text must not show
    if stem.isdigit() and len(stem) < MIN_TRIGGER:
        stem = f"{draft.type}-{stem}"  # a bare number would shadow the memory with that number
    number = 1
    while True:
        name = stem if number == 1 else f"{stem}-{number}"
        if not base.database.execute("SELECT 1 FROM memory WHERE name = ?", [name]).fetchone():
            return name
        number += 1


def _link(base: Base, name: str, near: Iterable[tuple[str, float]]) -> None:
    """Add edges from a new failure to those of its kind, weighted by similarity."""
    base.database.conn.executemany(
        "INSERT OR IGNORE INTO memory_edge (from_name, to_name, rel_type, weight, created_at)"
        " VALUES (?, ?, 'similar', ?, ?)",
        [(name, other, round(alike, 4), rows.as_text(base.now())) for other, alike in list(near)[:5]],
    )


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
    """Correct a memory; without ``apply``, only report the effect.

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
    if apply:
        _require_person(base, memory)
    if apply and kind != "unchanged":
        vectors = indexing.encode(base, [draft]).get(draft, (None, None))
        if kind == "revised":
            number = revisions.revise(base, memory, draft, vectors, "edited")
            way = {"revised": {"id": memory.id, "from": memory.revision, "to": number}}
        else:
            taught = [memory.taught_by, memory.accepted]
            way = {"reworded": {"id": memory.id, "before": _texts(memory), "after": _texts(draft), "taught": taught}}
            _write(base, memory.id, draft)
            if kind == "reworded":
                rows.teach(base.database.conn, memory.id, draft.taught_by, accepted=draft.accepted)
    # not applied: the number that it would get
    elif kind == "revised":
        number = revisions.next_number(base, memory.id)
    after = replace(
        memory,
        trigger=draft.trigger,
        resolution=draft.resolution,
        type=draft.type,
        source=draft.source,
        revision=number,
        taught_by=memory.taught_by if kind == "relabelled" else draft.taught_by,
        accepted=memory.accepted if kind == "relabelled" else draft.accepted,
    )
    if kind == "revised":
        after = replace(after, helped=0.0, failed=0.0, verified_helped=0.0, verified_failed=0.0, shown=0)
    return Correction(kind, memory, after, way)


def supersede(base: Base, old_name: str | int, new_name: str | int, *, apply: bool) -> Correction:
    """Supersede one memory by another, which gets it in its history.

    Raises:
        UnknownMemory: one of them does not exist.
        MemoryFault: they are one memory.
    """
    old, new = found(base, old_name), found(base, new_name)
    if old.id == new.id:
        raise MemoryFault("a memory does not supersede itself", "Correct it with `helix-tui memory edit` instead.")
    if not apply:
        return Correction("superseded", old, new, {})
    _require_person(base, old)
    # into the other's history first: it is copied from the row that is removed below
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
        # its row first: `separate` restores the counts of the history into it
        if not upkeep.put_back(base, way["superseded"]["removed"]):
            raise MemoryFault("a memory of the same name was stored since", "Rename or remove that one first.")
        revisions.separate(base, way["superseded"])


def unrevise(base: Base, change: dict[str, Any]) -> None:
    """Restore the previous revision; the later one stays in the history if it was shown or counted."""
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
    if apply:
        _require_person(base, memory)
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
        taught_by=base.teacher,
        accepted=base.teacher in ACCEPTED_AT_ONCE,
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


def _require_person(base: Base, memory: Memory) -> None:
    """Refuse that an agent changes what agents are shown."""
    if base.teacher == "agent" and memory.accepted:
        raise MemoryFault(
            f"{memory.name} is corrected by a person only",
            "Propose it: `helix-tui memory store`, or `helix-tui memory proposals add`.",
        )


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
    taught_by, accepted = change.get("taught", (memory.taught_by, memory.accepted))
    rows.teach(base.database.conn, memory.id, teacher_of(taught_by), accepted=accepted is True)
