"""Undo under a ddx that refuses: what was not undone is said, and the journal tells the truth."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.real.stranger import Stranger


@pytest.fixture
def changed(stranger: Stranger) -> tuple[Stranger, str]:
    """A bead whose title was changed from here, and another bead that an undo of it does not touch."""
    bead, _ = stranger.bead("First"), stranger.bead("Other")
    stranger.commit("beads")
    assert stranger.tui("set", bead, "title=Changed").returncode == 0
    return stranger, bead


def tracker(stranger: Stranger) -> Path:
    return stranger.project / ".ddx" / "beads.jsonl"


def journal(stranger: Stranger) -> dict[str, str]:
    """What the journal says of each change: title -> state."""
    return {each["title"]: each["state"] for each in stranger.tui_json("journal")["operations"]}


def title(stranger: Stranger, bead: str) -> str:
    return str(stranger.rows()[bead]["title"])


def test_a_tracker_that_is_locked_keeps_the_change_and_undo_works_once_it_is_free(
    changed: tuple[Stranger, str],
) -> None:
    stranger, bead = changed
    lock = tracker(stranger).with_name("beads.lock")
    lock.mkdir()
    (lock / "pid").write_text(str(os.getpid()))
    done = stranger.tui("undo")
    assert done.returncode != 0
    assert "lock" in done.stderr
    assert "nothing was changed" in done.stderr
    assert title(stranger, bead) == "Changed"
    stood = journal(stranger)
    assert stood.pop(f"undo op-1: set title of {bead}") == "failed"
    assert stood == {f"set title of {bead}": "done"}
    shutil.rmtree(lock)
    assert stranger.tui("undo").returncode == 0
    assert title(stranger, bead) == "First"
    assert journal(stranger)[f"set title of {bead}"] == "undone"


def test_where_ddx_refuses_every_command_undo_says_so_before_it_runs(changed: tuple[Stranger, str]) -> None:
    stranger, bead = changed
    rows = stranger.rows()
    for row in rows.values():
        row["labels"] = [] if row["id"] == bead else ["needs_human"]
    tracker(stranger).write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    shuts = stranger.ddx("bead", "ready", "--json").returncode != 0
    before = tracker(stranger).read_bytes()
    foretold = stranger.tui_json("undo", "--dry-run")
    done = stranger.tui("undo")
    if not shuts:
        assert (foretold["operations"][0]["why_not"], done.returncode) == ([], 0)
        assert title(stranger, bead) == "First"
        return
    (why,) = foretold["operations"][0]["why_not"]
    assert why in done.stderr
    assert "ddx bead migrate --lifecycle --apply" in why
    assert done.returncode != 0
    assert tracker(stranger).read_bytes() == before
    assert journal(stranger) == {f"set title of {bead}": "done"}


def test_a_line_that_undo_makes_ddx_drop_is_named_before_and_after(changed: tuple[Stranger, str]) -> None:
    stranger, bead = changed
    broken = '{"id": "torn'
    with open(tracker(stranger), "a") as file:
        file.write(broken + "\n")
    (note,) = stranger.tui_json("undo", "--dry-run")["notes"]
    assert "ddx drops it at this write" in note
    assert broken in tracker(stranger).read_text()
    done = stranger.tui("undo")
    assert done.returncode == 0, done.stderr
    assert note in done.stdout
    assert title(stranger, bead) == "First"
    newest = stranger.tui_json("journal")["operations"][0]
    gone = broken not in tracker(stranger).read_text()
    assert gone == any(broken in trace for trace in newest["traces"])
