"""Orphaned claims: told by a dead process and an old claim, let go of only after another look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.clock import NS, format_instant, now_ns
from helix_tui.core.project import find_project, lease_roots, machine_name
from helix_tui.core.supervision.curation.gate import WritesForbidden
from helix_tui.core.supervision.orphans import find_orphans, recover
from tests.core.supervision.conftest import World, WorldFactory, row


@pytest.fixture(scope="module")
def dead() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


def ago(seconds: float) -> str:
    return format_instant(now_ns() - int(seconds * NS))


def claimed(pid: int, age: float, **fields: Any) -> dict[str, Any]:
    claim = {
        "claimed-at": ago(age),
        "claimed-machine": machine_name(),
        "claimed-pid": str(pid),
        "execute-loop-heartbeat-at": ago(age),
    }
    return row("a", era="april", **{"status": "in_progress", "owner": "ddx", **claim, **fields})


def orphans(here: World):  # type: ignore[no-untyped-def]
    return find_orphans(here.curator.look(), here.curator.project)


def test_a_dead_and_old_claim_is_an_orphan(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)], "april")
    (orphan,) = orphans(here)
    assert (orphan.bead_id, orphan.pid, orphan.owner, orphan.sources) == ("a", dead, "ddx", ("row",))
    assert "is dead" in str(orphan)


def test_what_may_live_or_is_young_is_none(world: WorldFactory, dead: int) -> None:
    for claim in (
        claimed(dead, 7100),
        claimed(os.getpid(), 9000),
        claimed(dead, 9000, **{"claimed-machine": "elsewhere"}),
        claimed(dead, 9000, **{"execute-loop-heartbeat-at": ago(10)}),
        claimed(dead, 9000, status="closed"),
        row("a", era="april", status="in_progress", owner="me"),
    ):
        here = world([claim], "april")
        assert orphans(here) == ()
        here.tracker.unlink()
        here.tracker.parent.rmdir()
        here.root.rmdir()


def test_the_threshold_is_a_setting(world: WorldFactory, dead: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here = world([claimed(dead, 200)], "april")
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "100")
    assert len(orphans(here)) == 1
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "soon")
    assert orphans(here) == ()


def test_a_lease_without_its_worker_is_an_orphan_though_the_row_is_open(
    world: WorldFactory, dead: int
) -> None:
    here = world([row("a")])
    folder = lease_roots(find_project(here.root))[0]
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(
        f'{{"bead_id":"a","owner":"w","machine":"{machine_name()}","pid":{dead},'
        f'"started_at":"{ago(9000)}","updated_at":"{ago(8000)}"}}'
    )
    (orphan,) = orphans(here)
    assert orphan.sources == ("lease",)


def test_recovery_lets_go_and_can_be_taken_back(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300), row("b", era="april")], "april")
    before = here.settled()
    done = recover(here.curator, orphans(here))
    assert done.error is None
    after = here.rows()["a"]
    assert after["status"] == "open"
    assert not {"owner", "claimed-at", "claimed-pid"} & after.keys()
    assert orphans(here) == ()
    assert here.curator.undo() is not None
    assert here.settled() == before


def test_recovery_looks_again_first(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)], "april")
    seen = orphans(here)
    here.rewrite("a", **{"claimed__pid": str(os.getpid()), "claimed__at": ago(5)})
    before = here.tracker.read_bytes()
    done = recover(here.curator, seen)
    assert "no longer an orphan" in done.plan.notes[0]
    assert done.entry is None
    assert here.tracker.read_bytes() == before


def test_read_only_recovers_nothing(world: WorldFactory, dead: int) -> None:
    here = world([claimed(dead, 7300)], "april", read_only=True)
    with pytest.raises(WritesForbidden):
        recover(here.curator, orphans(here))
    assert Path(here.tracker).exists()
