"""Find memories near a text.

Only like is compared with like: triggers with triggers, vectors of one model, failures with failures and systemic ones;
without an encoder words are compared (docs/formats/memory.md §6).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.ground.time import NS
from helix_tui.core.memory import recall as keywords
from helix_tui.core.memory.reports import Similar
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base, Vector
from helix_tui.core.memory.store.index import TRIGGER, MemoryIndex
from helix_tui.core.memory.store.indexing import Draft
from helix_tui.core.memory.words import key, likeness, telling

DUPLICATE = 0.85
"""Cosine at which two triggers are one memory (docs/formats/memory.md §6)."""

SIMILAR = 0.65
"""Cosine at which two failures are of a kind; helix v2's own pair of similar failures scores 0.68."""

ALIKE = 0.6
"""The same without an encoder: share of common words (Dice)."""

Similarities = NDArray[np.float32]
"""Similarity of the trigger at every place of the index."""

INDISTINCT = 0.9999
"""Cosine at which texts are identical to the model. It does not know every script (a Thai text or a row of emoji is one
unknown word to it) and reads 256 tokens, so then the words must agree too.
"""

_MOST_CANDIDATES = 32
_FAMILY = {"failure": ("failure", "systemic"), "systemic": ("failure", "systemic")}


class Kin:
    """The equivalents of one text and the failures of its kind, compared once on first use."""

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

    def candidates(self, threshold: float = DUPLICATE) -> Iterator[list[tuple[int, float]]]:
        """(id, similarity) of possible equivalents, most similar first: those by words, then those by trigger.

        The second lot is compared only when it is asked for.
        """
        marks = ", ".join("?" * len(self._family))
        same = self._base.database.execute(
            "SELECT m.id FROM memory_key k JOIN memory m ON m.id = k.memory_id WHERE"
            f" k.key = ? AND k.key <> '' AND m.type IN ({marks}) ORDER BY m.id LIMIT {_MOST_CANDIDATES}",
            [key(self._draft.trigger), *self._family],
        ).fetchall()
        # the same words come first, whatever their similarity to a model
        worded = {row[0]: 1.0 for row in same}
        yield list(worded.items())
        alike = self._alike
        if alike is not None and alike.size:
            places = np.flatnonzero(alike >= threshold)
            order = places[np.argsort(-alike[places], kind="stable")][:_MOST_CANDIDATES]
            near = {int(self._index.ids[place]): float(alike[place]) for place in order}
            yield [pair for pair in near.items() if pair[0] not in worded]

    def failures(self, but: int | None = None) -> dict[int, float]:
        """Failures of the same kind as this one, most similar first."""
        if self._draft.type not in _FAMILY:
            return {}
        near = _near(self._base, self._index, self._draft.trigger, self._alike, None, self._family)
        return {memory_id: alike for memory_id, alike in near.items() if memory_id != but}


def worded_alike(one: str, other: str) -> bool:
    """Whether two texts that the model cannot distinguish are worded alike."""
    return one == other or (key(one) == key(other) != "") or likeness(one, other) >= ALIKE


def similar_recent(
    base: Base, trigger: str, threshold: float | None = None, days: float = 7, type: str | None = None
) -> list[Similar]:
    """Memories of the last days whose triggers resemble a text, most similar first (helix v2's code)."""
    vectors = base.encode([trigger])
    family = (type,) if type else ()
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
    """Memory id -> similarity of its trigger to a text, at least the threshold, most similar first."""
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
    """Cosine with the trigger at every place, -1 if not comparable; None without vectors."""
    vectors = index.vectors(base.database, TRIGGER)
    if vector is None or vectors is None:
        return None
    alike = vectors.similarities(vector, index.size)
    fits = index.alive[: index.size] & vectors.present[: index.size]
    if family:
        fits &= index.of_type(*family)
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
