"""How much of what people answered is in our answers: ``python -m bench.ask_human NAME=ROOT:FILE …``.

``FILE`` is JSONL of question and answer, as people gave it, about the repository in ``ROOT``. What is counted are the
identifiers of the human answer that the repository has: the share of them in our answer, and in it with the passages
that it cites; once all of them, once those only that the question does not name itself. Five passages of 60 lines by
plain BM25 are measured beside it where ``--bm25`` is given. A missing file is skipped with a message.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench.ask_answers import Given, ours_of, windows_of
from helix_tui.core.ask.index.index import RepositoryIndex

_QUOTED = re.compile(r"`([^`\n]{1,80})`")
_NAME = re.compile(r"[A-Za-z_]\w{2,}")
_COMPOUND = re.compile(r"\b(?:\w*[a-z]+[A-Z]\w*|[A-Z]{2,}[a-z]\w+|_*[A-Za-z]\w*_\w+|__\w+__|[A-Z][a-z]+[A-Z]\w*)\b")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
LEAST_NAMES = 2
"""Identifiers that an answer must have to be counted."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The result of one question."""

    repo: str
    question: str
    tier: str
    chars: int
    shares: tuple[float, float, float, float]
    """Of all identifiers in the answer, with its passages; of those that the question lacks, the same."""
    missed: tuple[str, ...]


def identifiers_of(text: str) -> list[str]:
    """The names of code that an answer has in its prose, each once."""
    prose = _FENCED.sub(" ", text)
    quoted = [name for phrase in _QUOTED.findall(prose) for name in _NAME.findall(phrase)]
    return list(dict.fromkeys(quoted + _COMPOUND.findall(prose)))


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", metavar="NAME=ROOT:FILE")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/helix-bench/human")
    parser.add_argument("--every", type=int, default=1, help="ask every so many-th question")
    parser.add_argument("--bm25", action="store_true")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    for one in options.sets:
        name, _, places = one.partition("=")
        root, _, file = places.rpartition(":")
        if not Path(file).is_file() or not Path(root).is_dir():
            print(f"{name}: not measured, {file} or {root} is not there")
            continue
        _measure(name, Path(root), Path(file), options)
    return 0


def _measure(name: str, root: Path, file: Path, options: argparse.Namespace) -> None:
    index = RepositoryIndex(root, options.cache / f"{name}.sqlite")
    index.refresh()
    known = {
        word for document in index.documents() for line in index.lines(document.file) for word in _NAME.findall(line)
    }
    rows, plain = [], []
    for line in file.read_text("utf-8").splitlines()[:: options.every]:
        row = json.loads(line)
        names = [one for one in identifiers_of(row["answer"]) if one in known]
        if len(names) < LEAST_NAMES:
            continue
        rows.append(_recalled(name, row["question"], names, index, ours_of(index, row["question"])))
        if options.bm25:
            plain.append(_recalled(name, row["question"], names, index, windows_of(index, row["question"])))
        if options.show:
            shares = " ".join(f"{share:.2f}" for share in rows[-1].shares)
            print(f"{shares} {rows[-1].tier:14} {row['question']}\n     missed {', '.join(rows[-1].missed[:14])}")
    _print(name, rows)
    _print(f"{name}, plain BM25", plain)


def _recalled(repo: str, question: str, names: list[str], index: RepositoryIndex, given: Given) -> Recalled:
    said = set(_NAME.findall(given.answer))
    cited = said | {
        word
        for file, start, end in given.places
        for line in index.lines(file, start, end)
        for word in _NAME.findall(line)
    }
    asked = set(_NAME.findall(question))
    new = [one for one in names if one not in asked] or names
    shares = tuple(sum(one in held for one in among) / len(among) for among in (names, new) for held in (said, cited))
    missed = tuple(one for one in names if one not in cited)
    return Recalled(repo, question, given.tier, len(given.answer), shares, missed)  # type: ignore[arg-type]


def _print(name: str, rows: list[Recalled]) -> None:
    if not rows:
        return
    means = [statistics.fmean(row.shares[at] for row in rows) for at in range(4)]
    tiers = ", ".join(
        f"{tier or 'no tier'} {count}" for tier, count in sorted(Counter(row.tier for row in rows).items())
    )
    print(
        f"{name:28} {len(rows):3} questions: answer {means[0]:.3f}, with passages {means[1]:.3f};"
        f" not in the question {means[2]:.3f}, {means[3]:.3f}; {statistics.fmean(row.chars for row in rows):.0f}"
        f" characters; {tiers}"
    )


if __name__ == "__main__":
    sys.exit(main())
