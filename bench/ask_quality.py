"""How well questions find their files: ``python -m bench.ask_quality``.

Every ranker answers the same questions over the same files in the same run: ours, ours without the encoder,
plain BM25 over whole files, and distinct keywords. ``--commits DIR`` adds the commits of a repository
(message -> files, at the parent), ``--set FILE`` any JSONL of {root, query, relevant, secondary?,
revision?}; ``--ablation`` drops each channel in turn.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.ask_sets import Asked, commits_of, packages_of, rows_of
from helix_tui.core.ask.index import ranking
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.index.question import IndexQuery

QUESTIONS = Path(__file__).resolve().parents[2] / "shared/data/ask/semble_subset.jsonl"
BUDGETS = (2_000, 8_000)
CHARS_A_TOKEN = 4
_WORD = re.compile(r"\w+")
_COLD = """
import sys
from pathlib import Path
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.index.question import IndexQuery
index = RepositoryIndex(Path(sys.argv[1]), Path(sys.argv[2]))
index.refresh()
index.rank_files(sys.argv[3])
"""

_Weigh = Callable[[IndexQuery], Mapping[str, float]]
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
        "without the encoder": lambda one: _ours(places.index(one, with_meaning=False), one.query),
        "ours": lambda one: _ours(places.index(one, with_meaning=True), one.query),
    }
    for system, answer in systems.items():
        rows = [_figures(answer(one), one.gold) for one in asked]
        _print(system, rows)
    for category in sorted({one.category for one in asked}):
        chosen = [one for one in asked if one.category == category]
        rows = [_figures(systems["ours"](one), one.gold) for one in chosen]
        _print(f"  {category} ({len(chosen)})", rows)
    if ablation:
        _ablate(asked, systems["ours"])
    _print_times(asked, places)


def _ours(index: RepositoryIndex, query: str) -> Answer:
    files = [one.file for one in index.rank_files(query)]
    return files, [(span.file, len(span.text)) for span in index.search(query, 40)]


def _ablate(asked: Sequence[Asked], answer: Callable[[Asked], Answer]) -> None:
    """Print what each channel is worth: ours without it."""
    usual: _Weigh = ranking.weights_for
    for turn, channel in enumerate(sorted(ranking.WEIGHTS), 1):
        setattr(ranking, "weights_for", _without(channel, usual))  # noqa: B010
        # a blank more each time, for the index keeps the last rankings by their question
        rows = [_figures(answer(replace(one, query=one.query + " " * turn)), one.gold) for one in asked]
        _print(f"  without {channel}", rows)
    setattr(ranking, "weights_for", usual)  # noqa: B010


def _without(channel: str, usual: _Weigh) -> _Weigh:
    return lambda question: {**usual(question), channel: 0.0}


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


def _print_times(asked: Sequence[Asked], places: _Places) -> None:
    warm = []
    for one in asked[:40]:
        index = places.index(one, with_meaning=True)
        begun = time.perf_counter()
        index.rank_files(f"{one.query} ")
        warm.append(time.perf_counter() - begun)
    one = asked[0]
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", _COLD, str(one.root), str(places.path(one)), one.query],
        check=True,
        timeout=120,
    )
    cold = time.perf_counter() - begun
    print(
        f"index {places.seconds:.1f} s for {places.files} files ({places.parsed} read now)"
        f" · warm {statistics.median(warm) * 1000:.0f} ms · cold process {cold:.2f} s"
    )


class _Places:
    """The indexes and the plain texts of the trees asked of."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._indexes: dict[tuple[Path, str | None, bool], RepositoryIndex] = {}
        self._plain: dict[tuple[Path, str | None], _Plain] = {}
        self.seconds = 0.0
        self.files = 0
        self.parsed = 0

    def path(self, one: Asked) -> Path:
        """The path of the index of a tree."""
        return self._cache / "indexes" / one.root.name / "index.db"

    def index(self, one: Asked, *, with_meaning: bool) -> RepositoryIndex:
        """The index of a tree, up to date."""
        key = (one.root, one.revision, with_meaning)
        if key not in self._indexes:
            index = RepositoryIndex(one.root, self.path(one), one.revision, with_meaning=with_meaning)
            done = index.refresh()
            self.seconds += done.seconds
            self.files += done.files
            self.parsed += done.parsed
            self._indexes[key] = index
        return self._indexes[key]

    def plain(self, one: Asked) -> _Plain:
        """The same files as plain words."""
        key = (one.root, one.revision)
        if key not in self._plain:
            self._plain[key] = _Plain(self.index(one, with_meaning=False))
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
