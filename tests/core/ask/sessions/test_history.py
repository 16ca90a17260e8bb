"""Past runs keep the order in which they were asked."""

from __future__ import annotations

from pathlib import Path

from helix_tui.core.ask.sessions.history import MOST_RUNS, AskHistory

NOON = 1_787_313_600_000_000_000
SECOND = 1_000_000_000


def test_runs_of_one_second_are_listed_newest_first(tmp_path: Path) -> None:
    history = AskHistory(tmp_path)
    saved = [history.save({"question": f"question {number}"}, NOON) for number in range(20)]
    assert [one.id for one in history.list()] == saved[::-1]
    assert sorted(saved) == saved


def test_a_run_kept_by_an_earlier_version_is_listed_and_read(tmp_path: Path) -> None:
    history = AskHistory(tmp_path)
    new = history.save({"question": "new"}, NOON + SECOND)
    (history.folder / "20260821T120000Z-0a1b2c3d.json").write_text('{"question":"old"}')
    assert [one.question for one in history.list()] == ["new", "old"]
    assert history.load("20260821T120000Z-0a1b2c3d") == {"question": "old"}
    assert history.load(new) == {"question": "new", "asked_at_ns": NOON + SECOND}


def test_the_oldest_go_where_there_are_too_many(tmp_path: Path) -> None:
    history = AskHistory(tmp_path)
    saved = [history.save({"question": str(n)}, NOON + n * SECOND) for n in range(MOST_RUNS + 3)]
    assert [one.id for one in history.list()] == saved[:2:-1]
    assert not [name for name in history.folder.iterdir() if name.name.startswith(".")]
