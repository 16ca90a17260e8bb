"""Which memories say what a text says: by the nearness of triggers, or by their words.

Like is held against like: a trigger against triggers, vectors of one model against vectors of that model, a
failure against failures and systemic ones (docs/formats/memory.md §6).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.ground.time import NS
from helix_tui.core.memory.recall import keywords
from helix_tui.core.memory.reports import Similar
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.base import Base, Vector
from helix_tui.core.memory.store.index import TRIGGER, MemoryIndex
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.words import key, likeness, telling

DUPLICATE = 0.85
"""Cosine of two triggers from which on they are one memory (docs/formats/memory.md §6)."""

SIMILAR = 0.65
"""Cosine from which on two failures are of a kind; helix v2's own pair of like failures scores 0.68."""

ALIKE = 0.6
"""The same without an encoder: share of common words (Dice)."""

Similarities = NDArray[np.float32]
"""Of the trigger at every place of the index."""

INDISTINCT = 0.9999
"""Cosine from which on the model saw one and the same text. It does not know every script (a Thai text or a
row of emoji is one unknown word to it) and reads 256 tokens: there the words have to agree as well."""

_MOST_CANDIDATES = 32

_FAMILY = {"failure": ("failure", "systemic"), "systemic": ("failure", "systemic")}


class Kin:
    """What says the same as one text, and what is of its kind: compared once, when first asked for."""

    def __init__(self, base: Base, index: MemoryIndex, draft: Draft, vector: Vector | None) -> None:
        """Nothing is compared yet; ``vector`` is that of the draft's trigger."""
        self._base, self._index, self._draft, self._vector = base, index, draft, vector
        self._family = _FAMILY.get(draft.type, (draft.type,))

    @cached_property
    def _alike(self) -> Similarities | None:
        alike = _similarities(self._base, self._index, self._vector, self._family)
        if alike is None:
            return None
        same = np.flatnonzero(alike >= INDISTINCT)
        known = rows.fetch(self._base.database, (int(each) for each in self._index.ids[same]))
        for place in same:
            memory = known.get(int(self._index.ids[place]))
            if memory is not None and not worded_alike(self._draft.trigger, memory.trigger):
                alike[place] = -1.0
        return alike

    def candidates(self, threshold: float = DUPLICATE) -> list[tuple[int, float]]:
        """(id, similarity) of what may say the same, most alike first: by its words, then by its trigger."""
        marks = ", ".join("?" * len(self._family))
        same = self._base.database.execute(
            "SELECT m.id FROM memory_key k JOIN memory m ON m.id = k.memory_id WHERE"
            f" k.key = ? AND k.key <> '' AND m.type IN ({marks}) ORDER BY m.id LIMIT {_MOST_CANDIDATES}",
            [key(self._draft.trigger), *self._family],
        ).fetchall()
        found = {row[0]: 1.0 for row in same}
        alike = self._alike
        if alike is not None and alike.size:
            places = np.flatnonzero(alike >= threshold)
            order = places[np.argsort(-alike[places], kind="stable")][:_MOST_CANDIDATES]
            for place in order:
                found.setdefault(int(self._index.ids[place]), float(alike[place]))
        return list(found.items())

    def failures(self, but: int | None = None) -> dict[int, float]:
        """Failures of the same kind as this one, most alike first."""
        if self._draft.type not in _FAMILY:
            return {}
        near = _near(self._base, self._index, self._draft.trigger, self._alike, None, self._family)
        return {memory_id: alike for memory_id, alike in near.items() if memory_id != but}


def worded_alike(one: str, other: str) -> bool:
    """Whether two texts that the model cannot tell apart say the same by their words."""
    return one == other or (key(one) == key(other) != "") or likeness(one, other) >= ALIKE


def similar_recent(base: Base, trigger: str, threshold: float | None, days: float, type_: str | None) -> list[Similar]:
    """Memories of the last days whose triggers resemble a text, most alike first (helix v2's code)."""
    vectors = base.encode([trigger])
    family = (type_,) if type_ else ()
    with base.reading() as index:
        alike = _similarities(base, index, vectors[0] if vectors else None, family)
        near = _near(base, index, trigger, alike, threshold, family)
        since = base.now_seconds() - days * 86_400
        chosen = {memory_id: value for memory_id, value in near.items() if _created(base, memory_id) >= since}
        found = rows.fetch(base.database, chosen)
    return [Similar(found[memory_id], value) for memory_id, value in chosen.items()]


def _near(
    base: Base,
    index: MemoryIndex,
    text: str,
    alike: Similarities | None,
    threshold: float | None,
    family: Sequence[str],
) -> dict[int, float]:
    """Memory id -> similarity of its trigger to a text, from the threshold on, most alike first."""
    if alike is None:
        return _near_by_words(base, index, text, ALIKE if threshold is None else threshold, family)
    places = np.flatnonzero(alike >= (SIMILAR if threshold is None else threshold))
    order = places[np.argsort(-alike[places], kind="stable")]
    return {int(index.ids[place]): float(alike[place]) for place in order}


def _near_by_words(
    base: Base, index: MemoryIndex, text: str, threshold: float, family: Sequence[str]
) -> dict[int, float]:
    candidates = keywords.coverage(base.database, telling(text), int(index.alive[: index.size].sum()))
    known = rows.fetch(base.database, candidates)
    alike = {
        memory_id: likeness(text, memory.trigger)
        for memory_id, memory in known.items()
        if not family or memory.type in family
    }
    return {
        memory_id: value
        for memory_id, value in sorted(alike.items(), key=lambda pair: (-pair[1], pair[0]))
        if value >= threshold
    }


def _similarities(base: Base, index: MemoryIndex, vector: Vector | None, family: Sequence[str]) -> Similarities | None:
    """Cosine with the trigger at every place, -1 where it is out of the question; None without vectors."""
    vectors = index.vectors(base.database, TRIGGER)
    if vector is None or vectors is None:
        return None
    alike = vectors.similarities(vector, index.size)
    fits = index.alive[: index.size] & vectors.present[: index.size]
    if family:
        types = index.types[: index.size]
        of_type = types == family[0]
        for name in family[1:]:
            of_type |= types == name
        fits &= of_type
    alike[~fits] = -1.0
    return alike


def own_trigger(base: Base, index: MemoryIndex, memory_id: int) -> Vector | None:
    vectors = index.vectors(base.database, TRIGGER)
    place = index.place.get(memory_id)
    if vectors is None or place is None or not vectors.present[place]:
        return None
    return vectors.row(place)


def _created(base: Base, memory_id: int) -> float:
    row = base.database.execute("SELECT created_at FROM memory WHERE id = ?", [memory_id]).fetchone()
    instant = rows.as_instant(row[0]) if row else None
    return float("-inf") if instant is None else instant / NS
