"""Changes that a person makes to the memory, each with its undo data.

Edit, supersede, remove, prune, fade, accept, decline.

Counts from outcomes are not among them: evidence is not undone by hand (docs/formats/memory.md §4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.memory.guard.scan import shown_name
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Correction, Memory, MemoryEdit, MemoryFault, Stored, stamp
from helix_tui.core.memory.reports import Decayed, Proposal, Pruned
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.write import upkeep as recurring

_SELECT = "SELECT id, at, kind, title, undone, way_back FROM memory_deed"


class MemoryChange(Struct, frozen=True):
    """One change, as stored."""

    id: int
    at: int | None
    kind: str
    title: str
    undone: bool
    way_back: dict[str, Any]

    def document(self) -> dict[str, Any]:
        """The JSON shape of a change."""
        found: dict[str, Any] = to_builtins(self)
        del found["way_back"]
        return found | {"at": stamp(self.at)}


class MemoryChanges:
    """Makes and undoes changes of one memory database."""

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory
        self._proposals = Proposals(memory)

    def remove(self, names: Sequence[str], *, kind: str = "remove") -> MemoryChange | None:
        """Remove memories with their edges; None if none of them exists.

        Raises:
            MemoryFault: an agent asks for it.
        """
        if kind == "remove":
            self._memory.require_person("remove")
        with self._memory.write():
            gone = self._memory.remove(names)
            removed = gone.get("memory", ())
            if not removed:
                return None
            # by its name: it may have been given by its number, among others that do not exist
            what = f"“{shown_name(removed[0]['name'])[:60]}”" if len(removed) == 1 else f"{len(removed)} memories"
            return self._note(kind, f"{kind} {what}", {"removed": gone})

    def edit(self, name: str, change: MemoryEdit) -> tuple[MemoryChange | None, Correction]:
        """Correct a memory; return (the change or None, the correction).

        Raises:
            MemoryFault: there is no such memory, or the correction is refused.
        """
        with self._memory.write():
            done = self._memory.edit(name, change)
            if done.kind == "unchanged":
                return None, done
            title = f"edit “{done.after.name[:60]}”"
            return self._note("edit", title, {"corrected": done.way_back}), done

    def supersede(self, name: str, by: str) -> tuple[MemoryChange, Correction]:
        """Supersede one memory by another; return (the change, the correction).

        Raises:
            MemoryFault: one of them does not exist, or they are the same.
        """
        with self._memory.write():
            done = self._memory.supersede(name, by)
            title = f"supersede “{done.before.name[:60]}” by “{done.after.name[:60]}”"
            return self._note("supersede", title, {"corrected": done.way_back}), done

    def prune(self, threshold: float = 0.25, min_uses: float = 3) -> tuple[MemoryChange | None, Pruned]:
        """Remove memories used enough that helped too rarely; return (the change, what was removed)."""
        with self._memory.write():
            # only listed here: pruning itself returns no rows, and undo needs them
            found = self._memory.prune(threshold, min_uses, apply=False)
            change = self.remove([memory.name for memory in found.removed], kind="prune")
            left = found.remaining - len(found.removed)
        return change, replace(found, remaining=left, applied=True)

    def fade(self, days: float = 30, min_uses: float = 2) -> tuple[MemoryChange | None, Decayed]:
        """Fade dormant memories to neutral; return (the change or None, the dormant memories)."""
        with self._memory.write():
            found = self._memory.decay(days, min_uses, apply=True)
            # candidates have their earlier counts; harmful ones do not fade, so not all of them changed
            now = {memory.name: self._memory.get(memory.name) for memory in found.candidates}
            faded = [
                _counts(memory, after)
                for memory in found.candidates
                if (after := now[memory.name]) is not None and _tally(after) != _tally(memory)
            ]
            title = f"fade {len(faded)} dormant {'memory' if len(faded) == 1 else 'memories'}"
            return (self._note("fade", title, {"counts": faded}) if faded else None), found

    def accept(self, proposals: Iterable[Proposal]) -> tuple[MemoryChange | None, list[str]]:
        """Store lessons as memories, and show agents memories that wait; return (the change, why some were refused).

        Raises:
            MemoryFault: an agent asks for it, or there is no such memory.
        """
        self._memory.require_person("accept")
        accepted, refused = [], []
        with self._memory.write():
            # of every memory: only storing a lesson shows which one it merges into
            before = {
                row[0]: row[1:]
                for row in self._memory.read(
                    "SELECT m.id, m.last_used, coalesce(e.seen, 1) FROM memory m"
                    " LEFT JOIN memory_extra e ON e.memory_id = m.id"
                )
            }
            lessons, memories = _lessons_and_memories(proposals)
            for proposal in lessons:
                stored = self._proposals.accept(proposal)
                if stored.status in ("rejected", "skipped"):
                    refused.append(f"{proposal.trigger[:60]}: {stored.reason}")
                    continue
                new = stored.name if stored.status == "added" else ""
                accepted.append({"proposal": proposal.id, "new": new} | self._gain(stored, proposal, before))
            shown = self._memory.set_accepted(memories)
            if not (accepted or shown):
                return None, refused
            way = {"accepted": accepted, "memories": [memory.id for memory in shown]}
            return self._note("accept", _title("accept", len(accepted), shown), way), refused

    def decline(self, proposals: Iterable[Proposal]) -> MemoryChange | None:
        """Decline lessons, and remove memories that wait.

        Raises:
            MemoryFault: an agent asks for it.
        """
        lessons, memories = _lessons_and_memories(proposals)
        if not (lessons or memories):
            return None
        self._memory.require_person("decline")
        with self._memory.write():
            waiting = [memory for name in memories if (memory := self._memory.get(name)) and not memory.accepted]
            self._proposals.decline(lessons)
            gone = self._memory.remove([memory.name for memory in waiting])
            way = {"declined": [lesson.id for lesson in lessons], "removed": gone}
            return self._note("decline", _title("decline", len(lessons), waiting), way)

    def all(self) -> list[MemoryChange]:
        """Every change, newest first."""
        rows = self._memory.read(f"{_SELECT} ORDER BY id DESC LIMIT 200")
        return [_change(row) for row in rows]

    def undo(self) -> MemoryChange | None:
        """Undo the newest change not yet undone; None if there is none.

        Raises:
            MemoryFault: what it changed has been changed since, or an agent asks for it.
        """
        self._memory.require_person("undo changes of")
        with self._memory.write() as db:
            # read in the transaction that marks it: another process may be undoing it too
            rows = self._memory.read(f"{_SELECT} WHERE undone = 0 ORDER BY id DESC LIMIT 1")
            if not rows:
                return None
            change = _change(rows[0])
            self._take_back(change.way_back)
            db.execute("UPDATE memory_deed SET undone = 1 WHERE id = ?", [change.id])
        return change

    def _take_back(self, way: dict[str, Any]) -> None:
        if "removed" in way:
            count = self._memory.put_back(way["removed"])
            # the error rolls the transaction back: all of them are restored or none
            if count < len(way["removed"].get("memory", ())):
                raise MemoryFault("a memory of the same name was stored since", "Rename or remove that one first.")
        if "corrected" in way:
            self._memory.take_back(way["corrected"])
        if "memories" in way:
            self._memory.set_accepted(way["memories"], accepted=False)
        for each in way.get("counts", ()):
            self._recount(each)
        for each in way.get("accepted", ()):
            if each["new"]:
                self._memory.remove([each["new"]])
            if "gain" in each:
                self._unlearn(each["gain"])
        numbers = [each["proposal"] for each in way.get("accepted", ())] + list(way.get("declined", ()))
        self._proposals.reopen(proposal for number in numbers if (proposal := self._proposals.get(number)))

    def _unlearn(self, gain: dict[str, Any]) -> None:
        """Remove what a lesson added to a memory; counts from later outcomes stay."""
        number = gain["id"]
        with self._memory.write() as db:
            # `chunk` adds one helped to the pattern and nothing else
            if gain["strengthened"]:
                self._memory.discredit(number, gain.get("revision", 1), gain["last_used"])
                return
            if "revised" in gain:
                self._memory.take_back({"revised": gain["revised"]})
            elif gain["promoted"]:
                db.execute("UPDATE memory SET type = 'failure' WHERE id = ?", [number])
            db.execute(
                "UPDATE memory_extra SET seen = max(1, seen - ?) WHERE memory_id = ?", [gain.get("seen", 1), number]
            )
            db.execute("DELETE FROM memory_occurrence WHERE memory_id = ? AND mark = ?", [number, gain.get("mark", "")])
            self._memory.forget_variant(number, gain["trigger"], gain["source"])

    def _recount(self, each: dict[str, Any]) -> None:
        memory = self._memory.get(each["name"])
        # a change of an earlier release noted the first two counts
        if memory is None or _tally(memory)[: len(each["after"])] != tuple(each["after"]):
            raise MemoryFault(f"{each['name']} has had outcomes since", "Its counts stay as they are.")
        before, verified = each["before"][:2], each["before"][2:]
        with self._memory.write() as db:
            if verified:
                changes = "UPDATE memory_extra SET verified_helped = ?, verified_failed = ? WHERE memory_id = ?"
                db.execute(changes, [*verified, memory.id])
            db.execute("UPDATE memory SET helped = ?, failed = ? WHERE id = ?", [*before, memory.id])

    def _gain(self, stored: Stored, proposal: Proposal, before: dict[int, tuple[str | None, int]]) -> dict[str, Any]:
        """What a lesson added to an existing memory, for undo; empty for a new memory."""
        if stored.status == "added" or stored.id is None:
            return {}
        last_used, seen = before.get(stored.id, (None, 1))
        now = self._memory.get(stored.id)
        # 0 if this bead or attempt was counted before: its mark must stay too
        seen = now.seen - seen if now is not None else 0
        met = Draft(proposal.trigger, proposal.resolution, attempt=proposal.attempt, bead=proposal.bead)
        gain: dict[str, Any] = {
            "id": stored.id,
            "strengthened": stored.status == "strengthened",
            "promoted": stored.promoted,
            "last_used": last_used,
            "trigger": proposal.trigger.strip(),
            "source": proposal.source,
            "revision": stored.revision,
            "seen": seen,
            "mark": recurring.mark(met) if seen else "",
        }
        if stored.status == "revised":
            gain["revised"] = {"id": stored.id, "from": stored.replaced, "to": stored.revision}
        return {"gain": gain}

    def _note(self, kind: str, title: str, way: dict[str, Any]) -> MemoryChange:
        at = now_ns()
        with self._memory.write() as db:
            made = db.execute(
                "INSERT INTO memory_deed(at, kind, title, way_back, undone) VALUES (?, ?, ?, ?, 0)",
                [format_instant(at), kind, title, json.dumps(way, ensure_ascii=False)],
            )
        return MemoryChange(int(made.lastrowid or 0), at, kind, title, False, way)


def _lessons_and_memories(proposals: Iterable[Proposal]) -> tuple[list[Proposal], list[str]]:
    """The lessons that wait, and the names of the memories that do."""
    found = list(proposals)
    return [each for each in found if each.id], [each.memory for each in found if not each.id]


def _title(verb: str, lessons: int, memories: Sequence[Memory]) -> str:
    count = lessons + len(memories)
    if count == 1:
        return f"{verb} “{memories[0].name[:60]}”" if memories else f"{verb} a lesson"
    return f"{verb} {count} lessons"


def _change(row: Sequence[Any]) -> MemoryChange:
    return MemoryChange(row[0], parse_instant(row[1]), row[2], row[3], bool(row[4]), json.loads(row[5]))


def _tally(memory: Memory) -> tuple[float, ...]:
    return memory.helped, memory.failed, memory.verified_helped, memory.verified_failed


def _counts(before: Memory, after: Memory) -> dict[str, Any]:
    return {"name": before.name, "before": list(_tally(before)), "after": list(_tally(after))}
