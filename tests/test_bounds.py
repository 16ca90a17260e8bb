"""What is held in memory is held within a bound: each cache is filled past its own."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helix_tui.core.ask import tokens
from helix_tui.core.ask.sessions import history as ask_history
from helix_tui.core.ddx import git_state as ddx_history
from helix_tui.core.ddx import probe
from helix_tui.core.ddx.attempts.sources.from_sessions import SessionIndex
from helix_tui.core.ddx.runs import transcript
from helix_tui.core.editing.execute import gate
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.recent import Recent
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store import index as memory_index
from helix_tui.screens.ask.answers import MAX_LOADED, AnswerView
from helix_tui.screens.queue import bead_screen as bead_details
from tests.conftest import ProjectFactory
from tests.core.memory.conftest import Plane


def test_the_newest_stay() -> None:
    recent: Recent[str, int] = Recent(3)
    for number, key in enumerate("abcad"):
        recent[key] = number
    assert dict(recent) == {"c": 2, "a": 3, "d": 4}


def test_lines_of_a_live_transcript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "MOST_LINES", 20)
    file, tail, told = tmp_path / "agent-claude-1.jsonl", transcript.TranscriptTail([tmp_path]), 0
    for number in range(200):
        name, data = ("tool_call", {"name": "Bash", "call_id": f"c{number}", "input": {"command": "ls"}})
        at = f"2026-08-01T12:{number // 60:02d}:{number % 60:02d}Z"
        with file.open("a") as more:
            more.write(json.dumps({"type": name, "seq": number, "ts": at, "data": data}) + "\n")
        told += len(tail.poll())
    assert told == 200
    assert [len(life) for life in tail._lives.values()] == [20]
    assert [len(tail._shown), len(tail._calls), len(tail._work_at)] == [20, 20, 20]


def test_beads_that_are_missing(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ddx_history, "MOST_KNOWN", 5)
    monkeypatch.setattr(ddx_history.BeadHistory, "_in_git", lambda *_: None)
    history = ddx_history.BeadHistory(find_project(project([]), env={}))
    for number in range(12):
        assert history.last_seen(f"gone-{number}") is None
    assert list(history._known) == [f"gone-{number}" for number in range(7, 12)]


def test_words_about_beads_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bead_details.BeadDetails, "_start", lambda *_: None)
    screen: Any = SimpleNamespace(console=SimpleNamespace(now=lambda: 0, snapshot=SimpleNamespace(project=None)))
    around = bead_details.BeadDetails(screen, lambda _: None)
    for number in range(3 * bead_details._KEPT):
        assert around._last_seen_words(f"gone-{number}") == ""
    assert len(around._last_seen) == bead_details._KEPT


def test_past_questions_and_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_history, "MOST_RUNS", 3)
    history = ask_history.AskHistory(tmp_path)
    for number in range(10):
        history.save({"question": str(number)}, (1_787_313_600 + number) * 10**9)
        assert len(history.list()) == len(history._heads) <= 3
    view = AnswerView()
    for number in range(3 * MAX_LOADED):
        view._take_other(str(number), {"question": str(number)})
    assert len(view.loaded) == MAX_LOADED


@pytest.mark.long
def test_memories_that_came_and_went(tmp_path: Path) -> None:
    """Vectors too: the places of what is gone are given back."""
    most = memory_index._MOST_GONE
    with open_memory(tmp_path / "helix.db", Plane(), teacher="person") as memory:
        kept = memory.store("the disk of the worker was full", "make room before it begins")
        for number in range(2 * most):
            name = memory.store(f"lesson {number} of {number * 7919}", f"way {number * 104729}").name
            memory.remove([name])
            if number % 50 == 0:
                recalled = memory.recall("the disk was full")
                assert kept.name in repr(recalled)
        index = memory._base.index
        assert index.size <= most + 2
        rows = [len(vectors._rows) for vectors in index._vectors.values()]
        assert max(rows) <= 2 * most


def test_vectors_of_live_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond the bound are read from the file and count as before: while they come, go, and after a start."""
    told = [("the disk of the worker was full", "make room first"), ("a lease ran out", "renew it in time")]
    told += [(f"lesson {number} of {number * 7919}", f"way {number * 104729}") for number in range(40)]
    queries = ["the disk was full", "why did the lease run out", "lesson 31 of 245489"]

    def answers(name: str) -> list[object]:
        found: list[object] = []
        for start in range(2):
            with open_memory(tmp_path / name, Plane(), teacher="person") as memory:
                for trigger, resolution in told[start * 30 : start * 30 + 30]:
                    memory.store(trigger, resolution)
                    found.append(len(memory.recall(trigger).found))
                if start:
                    memory.remove([memory.list()[3].name])
                recalled = [memory.recall(query).found for query in queries]
                found += [[(one.memory.trigger, round(one.score, 4)) for one in each] for each in recalled]
                found.append(memory.consolidate(0.9).merged)
                index = memory._base.index
                held = [len(vectors._rows) for vectors in index._vectors.values()]
                assert max(held) <= memory_index.MOST_HELD
                places = np.flatnonzero(index.alive[: index.size])
                found += [vectors.matrix(places).round(4).tolist() for vectors in index._vectors.values()]
        return found

    unbounded = answers("all.db")
    monkeypatch.setattr(memory_index, "MOST_HELD", 7)
    assert answers("few.db") == unbounded


def test_calls_of_agents_hold_figures_and_no_texts(tmp_path: Path) -> None:
    """One for each call on disk, since costs are summed over all; a call keeps nothing that was said."""
    folder = tmp_path / "agent-logs" / "sessions"
    folder.mkdir(parents=True)
    at = "2026-08-01T12:00:00Z"
    row = {
        "id": "s",
        "beadID": "b",
        "startedAt": at,
        "endedAt": at,
        "prompt": "x" * 5_000,
        "detail": "y" * 5_000,
    }
    lines = [json.dumps(row | {"id": f"s-{number}"}) for number in range(50)]
    (folder / "sessions-2026-08.jsonl").write_text("\n".join(lines) + "\n")
    calls = SessionIndex(tmp_path)
    assert len(calls.refresh()) == 50
    assert "xxxx" not in repr(calls.calls)
    assert "yyyy" not in repr(calls.calls)
    (folder / "sessions-2026-08.jsonl").unlink()
    calls.refresh()
    assert not calls.calls
    assert not calls._seen


def test_words_of_what_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_KEEP", 100)
    monkeypatch.setattr(tokens, "_stems", {})
    monkeypatch.setattr(tokens, "_terms", tokens._TermsOfWords())
    for number in range(1_000):
        tokens.terms_of(f"word{'abcdefghij'[number % 10]}_{number}x")
    assert 0 < len(tokens._terms) <= 101
    assert 0 < len(tokens._stems) <= 101


def test_what_the_process_holds_is_bounded() -> None:
    assert isinstance(probe._seen, Recent)
    assert probe._seen.most <= 64


def test_the_gate_remembers_one_lock(tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / name / ".ddx").mkdir(parents=True)
        with gate.WriteGate(find_project(tmp_path / name, env={})).open():
            pass
    assert len(gate._last_held) == 1
