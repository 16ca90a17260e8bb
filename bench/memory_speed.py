"""Speed of the memory at size: ``python -m bench.memory_speed [--memories 50000]``.

One thread, CPU time, in a process of its own, with synthetic clustered unit vectors in place of an encoder:
what is measured is the store. Recall and store with dedup at 50,000 memories have 15 ms, the first recall of
a process 400. The published plugin needs 471 and 301 ms, its older versions about 2,800 and 1,600
(docs/formats/memory.md §8).
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from helix_tui.core.embedding.minilm import MODEL_ID, Encoder
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.store.database import Base
from helix_tui.core.memory.store.indexing import Draft, index_texts
from helix_tui.core.memory.store.rows import as_text

BOUNDS = {
    "recall": 15.0,
    "recall, files": 15.0,
    "store new": 15.0,
    "store duplicate": 15.0,
    "first recall": 400.0,
}
"""Milliseconds of CPU at 50,000 memories."""

TOPICS = 200
T = TypeVar("T")
_VOCABULARY = """
import circular timeout parser lock cache retry token schema migration thread socket render layout
encoder vector queue worker branch merge rebase flaky fixture snapshot clock zone locale unicode
path symlink permission signal process pipe buffer stream index cursor page session cookie header
proxy
"""
_WORDS = _VOCABULARY.split()


class Look(Encoder):
    """An encoder that looks a text's vector up: clustered by topic, no model."""

    model_id = MODEL_ID

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self._centres = rng.standard_normal((TOPICS, 384)).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, shape (n, 384)."""
        rows = []
        for text in texts:
            seed = zlib.crc32(text.encode())
            own = np.random.default_rng(seed).standard_normal(384).astype(np.float32)
            rows.append(self._centres[seed % TOPICS] + 0.9 * own)
        found = np.stack(rows)
        unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return unit


def texts(count: int) -> list[Draft]:
    """Memories as an agent would word them, no two alike."""
    rng = random.Random(11)
    found = []
    for number in range(count):
        words = " ".join(rng.choices(_WORDS, k=7))
        file = f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}_{number % 997}.py"
        draft = Draft(f"{words} in {file} case {number}", f"Use {rng.choice(_WORDS)} number {number} instead")
        found.append(draft)
    return found


def fill(path: Path, count: int) -> None:
    """A database with ``count`` memories, written past the dedup."""
    encoder, drafts = Look(), texts(count)
    with open_memory(path, encoder, teacher="person") as memory:
        base: Base = memory._base
        now = as_text(base.now())
        with memory.write() as database:
            for start in range(0, count, 1000):
                some = drafts[start : start + 1000]
                wholes = encoder.encode([draft.whole for draft in some])
                triggers = encoder.encode([draft.trigger for draft in some])
                for place, draft in enumerate(some):
                    number = start + place + 1
                    database.conn.execute(
                        "INSERT INTO memory (id, name, type, trigger, resolution, created_at, helped, failed,"
                        " embedding) VALUES (?, ?, 'failure', ?, ?, ?, ?, ?, ?)",
                        (
                            number,
                            f"m-{number}",
                            draft.trigger,
                            draft.resolution,
                            now,
                            number % 5,
                            number % 3,
                            wholes[place].tobytes(),
                        ),
                    )
                    index_texts(base, number, draft)
                    for table, vector in (("memory_vector", wholes), ("memory_trigger_vector", triggers)):
                        database.conn.execute(
                            f"INSERT INTO {table} VALUES (?, ?, ?)",
                            (number, encoder.model_id, vector[place].tobytes()),
                        )


def measure(path: Path, count: int, turns: int) -> dict[str, float]:
    """Median CPU milliseconds of each operation."""
    encoder, drafts = Look(), texts(count)
    queries = [f"{draft.trigger} again" for draft in drafts[:turns]]
    fresh = [f"entirely other matter {number} of the {word}" for number, word in enumerate(_WORDS * 9)][:turns]
    encoder.encode(queries)
    figures = {}
    with open_memory(path, encoder, teacher="person") as memory:
        prepare(memory, queries, fresh, drafts[:turns])
        figures["first recall"] = _cpu(lambda: memory.recall(queries[0]))
        figures["recall"] = _median(memory.recall, queries)
        aside = partial(memory.recall, files=["src/cache/lock_17.py"], expand=True)
        figures["recall, files"] = _median(aside, queries)
        figures["first store"] = _cpu(lambda: memory.store("the very first of its kind here", "do it"))
        figures["store new"] = _median(lambda text: memory.store(text, "do it in another way"), fresh)
        figures["store duplicate"] = _median(
            lambda draft: memory.store(draft.trigger + ".", draft.resolution), drafts[:turns]
        )
        figures["feedback of 3"] = _median(partial(_credit, memory), list(range(1, turns)))
        figures["health"] = _cpu(memory.health)
    with open_memory(path, teacher="person") as memory:
        figures["first recall, keywords"] = _cpu(lambda: memory.recall(queries[0]))
        figures["recall, keywords"] = _median(memory.recall, queries)
    return figures


def prepare(memory: MemoryStore, queries: list[str], fresh: list[str], drafts: list[Draft]) -> None:
    """Look the vectors up beforehand: an encoder's own time is not the store's."""
    wholes = [f"{text} do it in another way" for text in fresh]
    dots = [draft.trigger + "." for draft in drafts]
    again = [f"{draft.trigger}. {draft.resolution}" for draft in drafts]
    memory._base._encoded |= {
        text: memory._base.encoder.encode([text])[0]
        for text in [*queries, *fresh, *wholes, *dots, *again]
        if memory._base.encoder is not None
    }


def _cpu(deed: Callable[[], object]) -> float:
    begun = time.process_time()
    deed()
    return (time.process_time() - begun) * 1000


def _credit(memory: MemoryStore, number: int) -> None:
    memory.feedback([f"m-{number + place}" for place in range(3)], [f"m-{number}"], "passed")


def _median(deed: Callable[[T], object], arguments: Sequence[T]) -> float:
    deed(arguments[0])
    return statistics.median(_cpu(partial(deed, argument)) for argument in arguments)


def main() -> int:
    """Measure in a process with one thread and print the table; 1 when a bound does not hold."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--memories", type=int, default=50_000)
    arguments.add_argument("--turns", type=int, default=40)
    arguments.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = arguments.parse_args()
    if options.inside is None:
        with tempfile.TemporaryDirectory(prefix="helix-memory-") as scratch:
            path = Path(scratch, "helix.db")
            fill(path, options.memories)
            words = [
                "--inside",
                str(path),
                "--memories",
                str(options.memories),
                "--turns",
                str(options.turns),
            ]
            one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            return subprocess.run(
                [sys.executable, "-m", "bench.memory_speed", *words], env=os.environ | one, check=False
            ).returncode
    figures = measure(options.inside, options.memories, options.turns)
    broken = False
    for name, value in figures.items():
        bound = BOUNDS.get(name)
        holds = bound is None or value <= bound
        broken |= not holds
        verdict = "" if bound is None else f"   bound {bound:g} ms: {'holds' if holds else 'BROKEN'}"
        print(f"{name:<24} {value:8.2f} ms{verdict}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
