"""How well questions are answered: ``python -m bench.ask_answers --repos DIR``.

Every question of ``bench/ask_facts.jsonl`` was written by hand with the facts that its answer needs, as patterns, and
with the places in which they stand. ``DIR`` holds one clone a repository, by the last part of its name, at the
revision of the set. Printed for the questions by which rules were chosen and for those held out, by kind and by
repository: the share of the facts in the answer, in the answer and the passages that it cites, how many answers cite
a gold place, and what each tier is worth. ``--bm25`` measures five passages of 60 lines by plain BM25 beside it;
``--show`` prints every question, ``--text`` its answer. Questions about what a repository does not have
(``bench/ask_absent.jsonl``) are asked too: how many of them are answered "not found".
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.document import document_of
from helix_tui.core.ask.sessions.history import IndexLibrary
from helix_tui.core.ask.sessions.session import ask

QUESTIONS = Path(__file__).with_name("ask_facts.jsonl")
ABSENT = QUESTIONS.with_name("ask_absent.jsonl")
RIGHT = 0.6
"""Share of the facts from which an answer is right."""
WINDOW = 60
PASSAGES = 5


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of the set."""

    repo: str
    set: str
    kind: str
    question: str
    facts: tuple[str, ...]
    gold: tuple[str, ...]


@dataclass(slots=True)
class Scored:
    """The result of one question."""

    asked: Asked
    answer: float
    passages: float
    place: bool
    tier: str
    ms: float
    chars: int
    missed: tuple[str, ...]
    text: str = ""
    read: str = ""


@dataclass(slots=True)
class Given:
    """What a system gives to a reader."""

    answer: str
    places: list[tuple[str, int, int]] = field(default_factory=list)
    tier: str = ""
    read: str = ""
    """How the question was read."""


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/helix-bench/answers")
    parser.add_argument("--set", default="", help="chosen or held out (default: both)")
    parser.add_argument("--only", default="", help="questions or repositories with this text")
    parser.add_argument("--without-meaning", action="store_true", help="leave the encoder out")
    parser.add_argument("--bm25", action="store_true")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    asked = [one for one in _questions(options.questions) if options.set in one.set and _wanted(one, options.only)]
    indexes: dict[str, RepositoryIndex] = {}
    rows: list[Scored] = []
    plain: list[Scored] = []
    for one in asked:
        index = indexes.get(one.repo)
        if index is None:
            index = indexes[one.repo] = _index(one.repo, options)
        rows.append(_score(one, index, lambda: ours_of(index, one.question)))  # noqa: B023
        if options.bm25:
            plain.append(_score(one, index, lambda: windows_of(index, one.question)))  # noqa: B023
        if options.show or options.text:
            _show(rows[-1], text=options.text)
    _print_tables(rows, plain)
    if options.questions == QUESTIONS and not options.only:
        _print_absent(options)
    return 0


def _print_absent(options: argparse.Namespace) -> None:
    """How questions about absent things are answered, and which of them are not answered "not found"."""
    rows = [json.loads(line) for line in ABSENT.read_text(encoding="utf-8").splitlines()]
    for name in sorted({row["set"] for row in rows if options.set in row["set"]}):
        asked = [row for row in rows if row["set"] == name]
        told = [ours_of(_index(row["repo"], options), row["question"]).tier for row in asked]
        print(f"absent ({name}): {told.count('not found')} of {len(asked)} called not found")
        for row, tier in zip(asked, told, strict=True):
            if tier != "not found":
                print(f"  {tier}: {row['repo']}: {row['question']}")


def _wanted(one: Asked, text: str) -> bool:
    return text.lower() in f"{one.repo} {one.question} {one.kind}".lower()


def _questions(path: Path) -> list[Asked]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        facts, gold = tuple(row["facts"]), tuple(row["gold"])
        found.append(Asked(row["repo"], row["set"], row["kind"], row["question"], facts, gold))
    return found


def _index(repo: str, options: argparse.Namespace) -> RepositoryIndex:
    root = options.repos / repo.rpartition("/")[2]
    cache = options.cache / f"{repo.replace('/', '-')}.sqlite"
    cache.parent.mkdir(parents=True, exist_ok=True)
    index = RepositoryIndex(root, cache, with_meaning=not options.without_meaning)
    index.refresh()
    return index


def ours_of(index: RepositoryIndex, question: str) -> Given:
    """What Ask gives to a reader: its answer and the places that it cites."""
    document = document_of(ask(IndexLibrary(index), question))
    places = [(one["file"], one["start"], one["end"]) for one in document["citations"]]
    spans = {(one["file"], one["hash"]): (one["start"], one["end"]) for one in document["evidence"]}
    wholes = [
        (one["file"], *spans[one["file"], one["hash"]])
        for one in document["citations"]
        if (one["file"], one["hash"]) in spans
    ]
    tier = document.get("tier", document["tier_selected"])
    return Given(document["answer"], [*places, *wholes], tier, _read(document))


def _read(document: dict[str, Any]) -> str:
    slots = [one["label"] for one in document["slots"] if one["required"]]
    subject = document.get("subject", slots)
    return f"{document.get('asks', document['kind'])} {subject}"


def windows_of(index: RepositoryIndex, question: str) -> Given:
    """Five windows of 60 lines by plain BM25, as a reader would get them from a simple tool."""
    from rank_bm25 import BM25Okapi  # type: ignore[import-not-found, unused-ignore]

    windows: list[tuple[str, int, int, list[str]]] = []
    for document in index.documents():
        lines = index.lines(document.file)
        for start in range(0, max(1, len(lines)), WINDOW):
            text = "\n".join(lines[start : start + WINDOW])
            windows.append((document.file, start + 1, start + WINDOW, re.findall(r"\w+", text.lower())))
    scores = BM25Okapi([words or [""] for *_, words in windows]).get_scores(re.findall(r"\w+", question.lower()))
    best = sorted(range(len(windows)), key=lambda at: (-scores[at], at))[:PASSAGES]
    return Given("", [windows[at][:3] for at in best])


def _score(one: Asked, index: RepositoryIndex, answer: Callable[[], Given]) -> Scored:
    begun = time.process_time()
    given = answer()
    ms = (time.process_time() - begun) * 1_000
    passages = "\n".join("\n".join([file, *index.lines(file, start, end)]) for file, start, end in given.places)
    in_answer = [fact for fact in one.facts if _has(given.answer, fact)]
    in_both = [fact for fact in one.facts if _has(f"{given.answer}\n{passages}", fact)]
    return Scored(
        one,
        len(in_answer) / len(one.facts),
        len(in_both) / len(one.facts),
        any(_cites(index, gold, given.places) for gold in one.gold),
        given.tier,
        ms,
        len(given.answer),
        tuple(fact for fact in one.facts if fact not in in_answer),
        given.answer,
        given.read,
    )


def _has(text: str, fact: str) -> bool:
    return re.search(fact, re.sub(r"\s+", " ", text), re.IGNORECASE) is not None


def _cites(index: RepositoryIndex, gold: str, places: Sequence[tuple[str, int, int]]) -> bool:
    """Whether a cited passage of the gold file holds the gold words."""
    path, _, words = gold.partition("::")
    return any(
        words.lower() in line.lower()
        for file, start, end in places
        if file == path
        for line in index.lines(file, start, end)
    )


def _show(row: Scored, *, text: bool) -> None:
    marks = f"{row.answer:4.2f} {row.passages:4.2f} {'place' if row.place else '     '} {row.tier:16}"
    print(f"{marks} {row.ms:5.0f} ms {row.chars:5} {row.asked.repo}: {row.asked.question}")
    print(f"      read as {row.read}; asked {row.asked.kind}; missed {', '.join(row.missed)}")
    if text:
        print("\n".join(f"      | {line}" for line in row.text.splitlines()))


def _print_tables(rows: Sequence[Scored], plain: Sequence[Scored]) -> None:
    print(f"\n{'':22}   n  answer  with passages  place  cpu ms(median/max)  characters")
    for name in sorted({row.asked.set for row in rows}):
        _line(name, [row for row in rows if row.asked.set == name])
        for kind in sorted({row.asked.kind for row in rows}):
            _line(f"  {kind}", [row for row in rows if (row.asked.set, row.asked.kind) == (name, kind)])
        for repo in sorted({row.asked.repo for row in rows if row.asked.set == name}):
            _line(f"  {repo}", [row for row in rows if row.asked.repo == repo])
        _line("  plain BM25", [row for row in plain if row.asked.set == name])
        print(f"\n{'tier (' + name + ')':24}{'said':>5}{'right':>7}{'none':>6}")
        for tier in sorted({row.tier for row in rows}):
            mine = [row for row in rows if (row.tier, row.asked.set) == (tier, name)]
            right = sum(row.answer >= RIGHT for row in mine)
            wide = sum(row.passages >= RIGHT for row in mine)
            print(f"  {tier:22}{len(mine):5}{right:7}{sum(row.answer == 0 for row in mine):6}  (with passages {wide})")
        print()


def _line(name: str, rows: Sequence[Scored]) -> None:
    if not rows:
        return
    facts = sum(len(row.asked.facts) for row in rows)
    answer = sum(row.answer * len(row.asked.facts) for row in rows) / facts
    passages = sum(row.passages * len(row.asked.facts) for row in rows) / facts
    times = [row.ms for row in rows]
    print(
        f"{name:22} {len(rows):3}    {answer:.3f}          {passages:.3f}    {sum(row.place for row in rows):3}"
        f"      {statistics.median(times):4.0f} / {max(times):4.0f}      {statistics.fmean(r.chars for r in rows):6.0f}"
    )


if __name__ == "__main__":
    sys.exit(main())
