"""How well questions are answered without a model: ``python -m bench.ask_answers --repos DIR``.

Every question of ``bench/ask_facts.jsonl`` was written by hand with the facts that its answer needs, as patterns, and
with the places in which they stand. ``DIR`` holds one clone a repository, by the last part of its name, at the revision
of the set. Printed: the share of the facts in the first 30 lines, and with all passages and evidence; how often a gold
place is quoted in them. ``--without-meaning`` leaves the encoder out. Questions about what a repository does not have
(``bench/ask_absent.jsonl``) are asked too: how many of them find nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from pathlib import Path
from typing import Any

from helix_tui.core.ask.answer import passages
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.session import AskRun, ask

QUESTIONS = Path(__file__).with_name("ask_facts.jsonl")
ABSENT = QUESTIONS.with_name("ask_absent.jsonl")
READ = 30
"""Lines of an answer that are read."""


def main() -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/helix-bench/answers")
    parser.add_argument("--without-meaning", action="store_true", help="leave the encoder out")
    parser.add_argument("--show", action="store_true", help="print every question with what it missed")
    options = parser.parse_args()
    if options.without_meaning:
        passages.encoder = lambda: None
    indexes: dict[str, RepositoryIndex] = {}

    def index_of(repo: str) -> RepositoryIndex:
        if repo not in indexes:
            cache = options.cache / f"{repo.replace('/', '-')}.db"
            indexes[repo] = RepositoryIndex(options.repos / repo.rpartition("/")[2], cache)
            indexes[repo].refresh()
        return indexes[repo]

    rows = []
    for row in _rows(options.questions):
        begun = time.process_time()
        run = ask(index_of(row["repo"]), row["question"])
        rows.append(_figures(row, run) | {"repo": row["repo"], "kind": row["kind"], "ms": time.process_time() - begun})
        if options.show:
            print(f"{rows[-1]['read']:.2f} {rows[-1]['all']:.2f} {row['repo']}: {row['question']}")
    for name in ("all questions", *sorted({row["repo"] for row in rows}), *sorted({row["kind"] for row in rows})):
        mine = [row for row in rows if name in ("all questions", row["repo"], row["kind"])]
        means = {key: statistics.fmean(row[key] for row in mine) for key in ("read", "all", "lines", "ms")}
        places = f"{sum(row['quoted'] for row in mine)} and {sum(row['there'] for row in mine)}"
        print(
            f"{name:28}{len(mine):4}  first {READ} lines {means['read']:.3f}  all {means['all']:.3f}"
            f"  gold place {places}  {means['lines']:.0f} lines  {means['ms'] * 1000:.0f} ms CPU"
        )
    absent = [row for row in _rows(ABSENT) if (options.repos / row["repo"].rpartition("/")[2]).is_dir()]
    told = [ask(index_of(row["repo"]), row["question"]).result for row in absent]
    print(f"absent: nothing found in {told.count('nothing found')} of {len(absent)}")
    return 0


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _figures(row: dict[str, Any], run: AskRun) -> dict[str, Any]:
    read = "\n".join(run.answer.splitlines()[:READ])
    everything = "\n".join(
        [
            run.answer,
            *(passage.span.text for passage in run.passages),
            *(one.entry.span.text for one in run.compaction.kept),
        ]
    )
    gold = [place.partition("::")[2] for place in row["gold"]]
    return {
        "read": statistics.fmean(_has(read, fact) for fact in row["facts"]),
        "all": statistics.fmean(_has(everything, fact) for fact in row["facts"]),
        "quoted": any(_has(read, re.escape(text)) for text in gold),
        "there": any(_has(everything, re.escape(text)) for text in gold),
        "lines": len(run.answer.splitlines()),
    }


def _has(text: str, fact: str) -> bool:
    return re.search(fact, re.sub(r"\s+", " ", text), re.IGNORECASE) is not None


if __name__ == "__main__":
    raise SystemExit(main())
