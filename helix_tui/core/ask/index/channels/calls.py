"""The layer below: files that define what the definitions named or found first call, extend or override.

A report names an interface; what has to change is often one or two calls further down, and says none of its words.
From each seed (a definition that the question names, or the best passage of a file that ranks first) the names that
it calls or builds on are looked up in the symbol index; a name that many files define says little, one that the
seed's file imports says more. The definitions so found are seeds of a second, weaker step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from helix_tui.core.ask.index.store.view import IndexView
from helix_tui.core.ask.parse.pieces import Pieces

MOST_NAMES = 40
"""Names that are followed from one seed, those that it says first."""
MOST_FILES = 6
"""A name that more files define leads nowhere in particular."""
SECOND_SEEDS = 10
"""Definitions of the first step that are followed further."""
IMPORTED = 2.0
"""What a definition counts for more where the seed's file imports its module: names are shared by chance, imports
are not."""
MOST_LINES = 120
_CALLED = re.compile(r"([A-Za-z_]\w{2,})\s*(?:!|::<[^<>\n]{0,60}>|<[^<>\n]{0,60}>)?\(")
_BUILT_ON = re.compile(r"\b([A-Z]\w{2,})\b")
_RARITY = -0.7
_LONG_LINE = 400


class CallSeed(Struct, frozen=True):
    """Lines of a file from which calls are followed."""

    at: int
    """The file's position."""
    start: int
    end: int
    weight: float


class Reader(Protocol):
    """What is read of files beside their words."""

    def lines(self, file: str, start: int = 1, end: int | None = None) -> list[str]: ...

    def pieces(self, file: str) -> Pieces: ...


def score(seeds: Sequence[CallSeed], view: IndexView, reader: Reader) -> tuple[np.ndarray, np.ndarray]:
    """What one and what two steps along the calls of some seeds lead to, each float64 (files,)."""
    first, found = _step(seeds, view, reader)
    second, _ = _step(_further(found, view, reader), view, reader)
    return first, second


def _step(
    seeds: Sequence[CallSeed], view: IndexView, reader: Reader
) -> tuple[np.ndarray, dict[tuple[int, str], float]]:
    """What each file defines of the names that the seeds call; and (file, name) -> what that is worth."""
    scores, found = np.zeros(len(view)), dict[tuple[int, str], float]()
    called = [(seed, _names_of(seed, view, reader)) for seed in seeds]
    defining = view.files_defining_each({name for _, names in called for name in names})
    for seed, names in called:
        imported = _steps_of(reader.pieces(view.paths[seed.at]).imports)
        for name in names:
            files = defining.get(name, ())
            if len(files) > MOST_FILES:
                continue
            for at in files:
                near = IMPORTED if not imported.isdisjoint(_names_of_module(view.paths[at])) else 1.0
                share = seed.weight * near * len(files) ** _RARITY
                if at != seed.at:
                    scores[at] += share
                found[at, name] = found.get((at, name), 0.0) + share
    return scores, found


def _further(found: Mapping[tuple[int, str], float], view: IndexView, reader: Reader) -> list[CallSeed]:
    """The definitions that most leads to, as seeds."""
    best = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:SECOND_SEEDS]
    seeds = []
    for (at, name), weight in best:
        for one in reader.pieces(view.paths[at]).definitions:
            if one.name == name and one.kind not in ("field", "constant"):
                seeds.append(CallSeed(at, one.start, one.end, weight))
                break
    return seeds


def _names_of(seed: CallSeed, view: IndexView, reader: Reader) -> list[str]:
    """The names that a seed calls or builds on and does not define itself, first mention first."""
    path = view.paths[seed.at]
    text = "\n".join(
        line[:_LONG_LINE] for line in reader.lines(path, seed.start, min(seed.end, seed.start + MOST_LINES - 1))
    )
    own = {one.name for one in reader.pieces(path).definitions if seed.start <= one.start <= seed.end}
    names = dict.fromkeys([*_CALLED.findall(text), *_BUILT_ON.findall(text)])
    return [name for name in names if name not in own][:MOST_NAMES]


def _steps_of(imports: Iterable[str]) -> frozenset[str]:
    """The last two steps of each module that is imported."""
    return frozenset(step.lower() for one in imports for step in re.split(r"[./:\\]+", one)[-2:] if step)


def _names_of_module(path: str) -> tuple[str, ...]:
    """What an import would end in: a file's name without ending, and its folder's."""
    *folders, name = path.lower().split("/")
    return (name.partition(".")[0], *folders[-1:])
