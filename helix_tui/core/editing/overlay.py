"""A queue with planned changes on top; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.record import Bead

if TYPE_CHECKING:
    pass
from helix_tui.core.editing.values import Edits, amend, canonical_absent, replacements, targets

_NAMES_REPLACEMENT = frozenset({"superseded-by", "labels"})


class Overlay:
    """The beads of a queue after planned changes.

    Attributes:
        queue: the underlying queue, which is not changed.
        edits: what was changed so far, by bead.
        leases: claims taken or released so far.
        added: ids of beads that do not exist yet.
    """

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.edits: dict[str, dict[str, Any]] = {}
        self.leases: dict[str, bool] = {}
        self.added: list[str] = []
        self._documents: dict[str, dict[str, Any]] = {}
        self._replaced: dict[str, list[str]] | None = None

    def __contains__(self, bead_id: object) -> bool:
        return bead_id in self.queue.beads or bead_id in self.edits

    def __iter__(self) -> Iterator[str]:
        yield from self.queue.beads
        yield from self.added

    def value(self, bead_id: str, field: str) -> Any:
        """A field after the changes; None if absent."""
        changed = self.edits.get(bead_id)
        if changed is not None and field in changed:
            return changed[field]
        if field == "queue-rank" and bead_id in self.queue.beads:
            return self.queue.beads[bead_id].raw_rank  # read for a whole priority: no need to decode its rows
        return canonical_absent(field, self._document(bead_id).get(field))

    def values(self, bead_id: str, fields: Iterable[str]) -> dict[str, Any]:
        """Several fields of a bead."""
        return {field: self.value(bead_id, field) for field in fields}

    def row(self, bead_id: str) -> dict[str, Any]:
        """Every field of the row after the changes."""
        whole = {**self._document(bead_id), **self.edits.get(bead_id, {})}
        return {field: value for field, value in whole.items() if value is not None}

    def status(self, bead_id: str) -> str:
        """The status after the changes; empty for a missing bead."""
        changed = self.edits.get(bead_id)
        if changed is not None and "status" in changed:
            return str(changed["status"])
        bead = self.queue.beads.get(bead_id)
        return bead.status if bead is not None else ""

    def depends_on(self, bead_id: str) -> tuple[str, ...]:
        """Ids it waits for after the changes."""
        changed = self.edits.get(bead_id)
        if changed is not None and "dependencies" in changed:
            return targets(changed["dependencies"])
        bead = self.queue.beads.get(bead_id)
        return bead.depends_on if bead is not None else ()

    def parent(self, bead_id: str) -> str:
        """The parent after the changes."""
        changed = self.edits.get(bead_id)
        if changed is not None and "parent" in changed:
            return str(changed["parent"] or "")
        bead = self.queue.beads.get(bead_id)
        return bead.parent if bead is not None else ""

    def children(self, bead_id: str) -> list[str]:
        """Ids whose parent it is after the changes."""
        stayed = [child for child in self.queue.graph.children.get(bead_id, ()) if self.parent(child) == bead_id]
        known = set(stayed)
        came = [other for other in self.edits if self.edits[other].get("parent") == bead_id and other not in known]
        return stayed + came

    def replaced_by(self, bead_id: str) -> list[str]:
        """Ids of beads that may be superseded by this one, before the changes or after."""
        # one scan of all beads serves every bead that a plan closes
        if self._replaced is None:
            self._replaced = {}
            for other, bead in self.queue.beads.items():
                for by in replacements(bead):
                    self._replaced.setdefault(by, []).append(other)
        changed = (
            other
            for other, fields in self.edits.items()
            if not _NAMES_REPLACEMENT.isdisjoint(fields) and bead_id in replacements(self.bead(other))
        )
        return list(dict.fromkeys((*self._replaced.get(bead_id, ()), *changed)))

    def bead(self, bead_id: str) -> Bead:
        """The record after the changes.

        Raises:
            KeyError: there is no such bead.
        """
        base = self.queue.beads.get(bead_id)
        if base is None:
            if bead_id not in self.edits:
                raise KeyError(bead_id)
            base = Bead(id=bead_id)
        return amend(base, self.edits.get(bead_id, {}))

    def apply(self, edits: Edits, leases: Mapping[str, bool] | None = None) -> None:
        """Apply further changes."""
        for bead_id, fields in edits.items():
            if bead_id not in self:
                self.added.append(bead_id)
            self.edits.setdefault(bead_id, {}).update(fields)
        self.leases.update(leases or {})

    def _document(self, bead_id: str) -> dict[str, Any]:
        known = self._documents.get(bead_id)
        if known is None:
            bead = self.queue.beads.get(bead_id)
            known = self._documents[bead_id] = bead.document() if bead is not None else {}
        return known
