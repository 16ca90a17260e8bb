"""Titles that are cut still differ where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from rich.cells import cell_len

from helix_tui.widgets.base.line import Titles, cut

ALIKE = [f"attempt-backend: verify combined reusable workspace telemetry: part {n}" for n in (1, 2, 3)]


def test_what_differs_at_the_end_is_kept_and_the_shared_middle_goes() -> None:
    titles = Titles(ALIKE)
    shown = [titles.shortened(title, 34) for title in ALIKE]
    assert len(set(shown)) == 3
    assert all(cell_len(text) <= 34 for text in shown)
    assert shown[1].startswith("attempt-backend:")
    assert shown[1].endswith("part 2")


def test_a_title_with_room_stays_whole() -> None:
    assert Titles(ALIKE).shortened(ALIKE[0], 80) == ALIKE[0]


def test_a_title_without_relatives_is_cut_at_its_end() -> None:
    alone = "Record every refused route in the run record of the worker"
    assert Titles([alone, *ALIKE]).shortened(alone, 20) == cut(alone, 20)


def test_titles_that_differ_in_the_middle_keep_the_middle() -> None:
    pair = [
        f"Keep the very long beginning that both share {word} and the end that both share" for word in ("warm", "cold")
    ]
    shown = [Titles(pair).shortened(title, 30) for title in pair]
    assert "warm" in shown[0]
    assert "cold" in shown[1]


def test_a_title_that_another_one_goes_on_from_is_told_from_it() -> None:
    pair = ["Add the ledger of contradictions", "Add the ledger of contradictions to docs"]
    shown = [Titles(pair).shortened(title, 26) for title in pair]
    assert shown[0] != shown[1]
    assert shown[1].endswith("docs")


def test_wide_characters_fit_too() -> None:
    pair = [f"検索の索引を作り直す 検索の索引を作り直す {n}" for n in ("一", "二")]
    titles = Titles(pair)
    for width in range(1, 60):
        assert all(cell_len(titles.shortened(title, width)) <= width for title in pair)
    assert titles.shortened(pair[0], 24) != titles.shortened(pair[1], 24)


def test_open_beads_of_a_real_queue_look_different_from_each_other(shared: Path) -> None:
    """At 48 cells a plain cut makes 70 of 576 look like another one (figures of the recorded union)."""
    rows = [json.loads(line) for line in (shared / "data/ddx/beads-head.jsonl").read_text("utf-8").splitlines()]
    names = {row["title"] for row in rows if row["status"] != "closed"}
    titles = Titles(names)
    assert len({titles.shortened(name, 48) for name in names}) == len(names)
    assert len({cut(name, 48) for name in names}) < len(names)


def test_titles_are_read_when_the_first_is_too_long() -> None:
    read: list[str] = []

    def each() -> Iterator[str]:
        for title in ALIKE:
            read.append(title)
            yield title

    titles = Titles(each())
    assert titles.shortened("short", 20) == "short"
    assert read == []
    assert titles.shortened(ALIKE[0], 20) == Titles(ALIKE).shortened(ALIKE[0], 20)
    assert read == list(ALIKE)
