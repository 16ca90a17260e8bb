"""How channels are joined to one order: ``python -m bench.ask_fusion``, for docs/decisions/0028-fusion.md.

The same questions over the same files in the same run: the weighted sum of scaled scores that Ask has, reciprocal ranks
(k = 60) with the same weights, reciprocal ranks of all channels alike. Options: those of ``bench.ask_quality``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench.ask_quality import _figures, _options, _ours, _Places, _print
from bench.ask_sets import Asked, commits_of, packages_of, rows_of
from helix_tui.core.ask.index import ranking

K = 60


def reciprocal(parts: Mapping[str, np.ndarray], *, weighted: bool) -> np.ndarray:
    """Reciprocal rank fusion of channels: each gives 1 / (K + rank) to the files that it speaks for."""
    total = np.zeros(len(next(iter(parts.values()))))
    for name in sorted(parts):
        scores = parts[name]
        speaking = np.flatnonzero(scores > 0)
        order = speaking[np.lexsort((speaking, -scores[speaking]))]
        weight = float(scores.max()) if weighted and len(speaking) else 1.0  # scaled to its best, then weighted
        total[order] += weight / (K + 1 + np.arange(len(order)))
    return total


def _join(fusion: str) -> None:
    """Let Ask join its channels in one of the ways from now on."""
    usual = ranking.Ranking.__init__

    def begin(self: Any, view: Any, parts: Any, weights: np.ndarray, chunks: np.ndarray) -> None:
        usual(self, view, parts, weights, chunks)
        total = reciprocal(parts, weighted=fusion == "weighted reciprocal ranks") * weights
        self._total = total
        self.order = np.lexsort((np.arange(len(total)), -total))[: int((total > 0).sum())].tolist()

    setattr(ranking.Ranking, "__init__", begin)  # noqa: B010


def main() -> int:
    """Measure and print."""
    options = _options()
    sets: dict[str, list[Asked]] = {}
    if options.questions.is_file():
        sets["questions"] = packages_of(options.questions, options.cache)
    sets |= {path.stem: rows_of(path) for path in options.set}
    sets |= {f"commits of {root.name}": commits_of(root.resolve(), options.most) for root in options.commits}
    places = _Places(options.cache)
    usual = ranking.Ranking.__init__
    for name, asked in sets.items():
        print(f"\n{name}: {len(asked)}")
        print(f"{'':26}recall@10  nDCG@10  hit@1  hit@5  all@5    MRR  @2k tok  @8k tok")
        for turn, fusion in enumerate(("sum of scaled scores", "weighted reciprocal ranks", "reciprocal ranks")):
            setattr(ranking.Ranking, "__init__", usual)  # noqa: B010
            if turn:
                _join(fusion)
            # a blank more each time, for the index keeps the last rankings by their question
            asks = [replace(one, query=one.query + " " * turn) for one in asked]
            rows = [_figures(_ours(places.index(one, with_meaning=True), one.query), one.gold) for one in asks]
            _print(f"{fusion:26}", rows)
    setattr(ranking.Ranking, "__init__", usual)  # noqa: B010
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
