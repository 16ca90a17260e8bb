"""How well questions find their files: ``python -m bench.ask_quality``.

Every ranker answers the same questions over the same files in the same run: ours, plain BM25 over whole files, and
distinct keywords. ``--commits DIR`` adds the commits of a repository (message -> files, at the parent), ``--set FILE``
any JSONL of {root, query, relevant, secondary?, revision?}; ``--ablation`` drops each channel in turn.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.ask_sets import Asked, commits_of, packages_of, rows_of
from helix_tui.core.ask.index import channels
from helix_tui.core.ask.index.index import RepositoryIndex

QUESTIONS = Path(__file__).resolve().parents[2] / "shared/data/ask/semble_subset.jsonl"
BUDGETS = (2_000, 8_000)
CHARS_A_TOKEN = 4
_WORD = re.compile(r"\w+")
CHANNELS = ("passage", "whole", "names", "place", "symbol", "fuzzy", "mention", "commits", "title")

Answer = tuple[list[str], list[tuple[str, int]]]
"""Files best first; and (file, characters) of what a reader is given, in that order."""


def main() -> int:
    """Measure and print the tables."""
    options = _options()
    sets: dict[str, list[Asked]] = {}
    if options.questions.is_file():
        sets["questions"] = packages_of(options.questions, options.cache)
    for path in options.set:
        sets[path.stem] = rows_of(path)
    for root in options.commits:
        sets[f"commits of {root.resolve().name}"] = commits_of(root.resolve(), options.most)
    for name, asked in sets.items():
        _measure(name, asked, options.cache, options.ablation)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/helix-bench")
    parser.add_argument("--set", type=Path, action="append", default=[])
    parser.add_argument("--commits", type=Path, action="append", default=[])
    parser.add_argument("--most", type=int, default=60, help="commits of each repository (default 60)")
    parser.add_argument("--ablation", action="store_true")
    return parser.parse_args()


def _measure(name: str, asked: Sequence[Asked], cache: Path, ablation: bool) -> None:
    places = _Places(cache)
    print(f"\n{name}: {len(asked)} questions over {len({(one.root, one.revision) for one in asked})} trees")
    print(f"{'':22}recall@10  nDCG@10  hit@1  hit@5  all@5    MRR  @2k tok  @8k tok")
    systems: dict[str, Callable[[Asked], Answer]] = {
        "keywords": lambda one: places.plain(one).keywords(one.query),
        "BM25, whole files": lambda one: places.plain(one).bm25(one.query),
        "ours": lambda one: _ours(places.index(one), one.query),
    }
    for system, answer in systems.items():
        rows = [_figures(answer(one), one.gold) for one in asked]
        _print(system, rows)
    for channel in CHANNELS if ablation else ():
        _ablate(channel, asked, systems["ours"])


def _ours(index: RepositoryIndex, query: str) -> Answer:
    found = index.search(query, spans=40)
    return [file.file for file in found.files], [(span.file, len(span.text)) for span in found.spans]


def _ablate(channel: str, asked: Sequence[Asked], answer: Callable[[Asked], Answer]) -> None:
    """Print what a channel is worth: ours without it."""
    usual = channels.orders_of

    def without(*given: object) -> Mapping[str, object]:
        found = usual(*given)  # type: ignore[arg-type]
        return {name: order for name, order in found.items() if channel not in name.split()}

    setattr(channels, "orders_of", without)  # noqa: B010
    try:
        # a blank more, for the index keeps the last searches by their question
        rows = [
            _figures(answer(Asked(one.root, one.revision, "", one.query + " ", one.gold)), one.gold) for one in asked
        ]
        _print(f"  without {channel}", rows)
    finally:
        setattr(channels, "orders_of", usual)  # noqa: B010


def _figures(answer: Answer, gold: frozenset[str]) -> dict[str, float]:
    files, given = answer
    top = files[:10]
    gain = sum(1 / math.log2(at + 2) for at, file in enumerate(top) if file in gold)
    ideal = sum(1 / math.log2(at + 2) for at in range(min(10, len(gold))))
    first = next((at for at, file in enumerate(files) if file in gold), None)
    figures = {
        "recall": len(gold & set(top)) / len(gold),
        "ndcg": gain / ideal,
        "hit1": float(first == 0),
        "hit5": float(first is not None and first < 5),
        "all5": float(gold <= set(files[:5])),
        "mrr": 0.0 if first is None else 1 / (first + 1),
    }
    for budget in BUDGETS:
        figures[f"at{budget}"] = len(gold & _within(given, budget * CHARS_A_TOKEN)) / len(gold)
    return figures


def _within(given: Sequence[tuple[str, int]], room: int) -> set[str]:
    """The files of which something is given before the room is used up."""
    seen: set[str] = set()
    for file, size in given:
        if room <= 0:
            break
        seen.add(file)
        room -= size
    return seen


def _print(system: str, rows: Sequence[Mapping[str, float]]) -> None:
    mean = {name: statistics.fmean(row[name] for row in rows) for name in rows[0]}
    print(
        f"{system:22}{mean['recall']:9.3f}  {mean['ndcg']:7.3f}  {mean['hit1']:5.2f}  {mean['hit5']:5.2f}  "
        f"{mean['all5']:5.2f}  {mean['mrr']:5.3f}  {mean['at2000']:7.3f}  {mean['at8000']:7.3f}",
        flush=True,
    )


class _Places:
    """The indexes and the plain texts of the trees asked of."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._indexes: dict[tuple[Path, str | None], RepositoryIndex] = {}
        self._plain: dict[tuple[Path, str | None], _Plain] = {}

    def index(self, one: Asked) -> RepositoryIndex:
        """The index of a tree, up to date."""
        key = (one.root, one.revision)
        if key not in self._indexes:
            name = f"{one.root.name}-{(one.revision or 'tree').rstrip('^')[:12]}"
            index = RepositoryIndex(one.root, self._cache / "indexes" / name / "index.db", one.revision)
            index.refresh()
            self._indexes[key] = index
        return self._indexes[key]

    def plain(self, one: Asked) -> _Plain:
        """The same files as plain words."""
        key = (one.root, one.revision)
        if key not in self._plain:
            self._plain[key] = _Plain(self.index(one))
        return self._plain[key]


class _Plain:
    """The baseline of today's tools: whole files, plain words."""

    def __init__(self, index: RepositoryIndex) -> None:
        self._words: dict[str, Counter[str]] = {}
        self._sizes: dict[str, int] = {}
        for document in index.documents():
            text = "\n".join(index.lines(document.file))
            self._words[document.file] = Counter(word.lower() for word in _WORD.findall(text))
            self._sizes[document.file] = len(text)
        self._lengths = {file: words.total() for file, words in self._words.items()}
        self._average = statistics.fmean(self._lengths.values()) if self._lengths else 1.0
        self._frequency = Counter(word for words in self._words.values() for word in words)

    def bm25(self, query: str, k1: float = 1.2, b: float = 0.75) -> Answer:
        """Okapi BM25."""
        scores = {}
        asked = [word.lower() for word in _WORD.findall(query)]
        for file, words in self._words.items():
            norm = k1 * (1 - b + b * self._lengths[file] / self._average)
            score = sum(self._idf(word) * words[word] * (k1 + 1) / (words[word] + norm) for word in asked)
            if score > 0:
                scores[file] = score
        return self._answer(sorted(scores, key=lambda file: (-scores[file], file)))

    def keywords(self, query: str) -> Answer:
        """How many of the question's words a file holds, then how often: grep, sorted."""
        asked = {word.lower() for word in _WORD.findall(query) if len(word) > 2}
        scores = {}
        for file, words in self._words.items():
            distinct = sum(word in words for word in asked)
            if distinct:
                scores[file] = (-distinct, -sum(words[word] for word in asked), file)
        return self._answer(sorted(scores, key=scores.__getitem__))

    def _idf(self, word: str) -> float:
        count = self._frequency[word]
        return math.log(1 + (len(self._words) - count + 0.5) / (count + 0.5))

    def _answer(self, files: list[str]) -> Answer:
        return files, [(file, self._sizes[file]) for file in files]


if __name__ == "__main__":
    raise SystemExit(main())
