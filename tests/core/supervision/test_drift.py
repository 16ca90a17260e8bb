"""Drift: what others changed, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from helix_tui.core.editing import operations as op
from helix_tui.core.editing.execute.gate import WritesForbidden
from helix_tui.core.supervision.signals.drift import Drift, DriftWatch
from tests.core.supervision.conftest import World, WorldFactory, row


def watch(here: World) -> DriftWatch:
    return DriftWatch(here.curator.project, here.curator.gate)


def settle(here: World) -> tuple[Drift, ...]:
    return watch(here).settle(here.curator.look().queue.beads, here.curator.history())


def check(here: World) -> tuple[Drift, ...]:
    return watch(here).check(here.curator.look().queue.beads, here.curator.history())


@pytest.fixture
def here(world: WorldFactory) -> World:
    made = world([row("a", parent="e"), row("b", "a"), row("e"), row("done", status="closed")])
    assert settle(made) == ()
    return made


@pytest.mark.parametrize(
    ("bead_id", "fields", "expected"),
    [
        ("a", {"spec__id": "S-1"}, ("spec-id", None, "S-1")),
        ("a", {"parent": "b"}, ("parent", "e", "b")),
        ("a", {"parent": None}, ("parent", "e", None)),
        ("a", {"superseded__by": "b"}, ("superseded-by", None, "b")),
        ("a", {"replaces": "old"}, ("replaces", None, "old")),
        ("a", {"execution__eligible": False}, ("execution-eligible", None, False)),
        ("b", {"dependencies": None}, ("dependencies", ["a"], None)),
    ],
)
def test_each_field_that_counts_is_seen(
    here: World, bead_id: str, fields: dict[str, Any], expected: tuple[str, Any, Any]
) -> None:
    here.rewrite(bead_id, **fields)
    (drift,) = check(here)
    assert (drift.field, drift.was, drift.now) == expected
    assert drift.meaning
    assert bead_id in str(drift)
    assert settle(here) == (drift,)
    untouched = watch(here).path.stat().st_mtime_ns
    assert settle(here) == (drift,), "it stays until somebody acknowledges it"
    assert watch(here).path.stat().st_mtime_ns == untouched, "what is the same is not written anew"


@pytest.mark.parametrize(
    ("bead_id", "fields"),
    [
        ("a", {"title": "x", "labels": ["x"], "priority": 0, "notes": "x", "status": "in_progress"}),
        ("a", {"execution__eligible": True}),
        ("a", {"work__retry__after": "2027-01-01T00:00:00Z"}),
        ("done", {"parent": "a"}),
        ("a", {"status": "closed", "parent": "b"}),
    ],
)
def test_what_does_not_count_is_no_drift(here: World, bead_id: str, fields: dict[str, Any]) -> None:
    here.rewrite(bead_id, **fields)
    assert check(here) == ()


def test_the_first_sight_of_a_bead_is_its_baseline(here: World) -> None:
    here.write([*here.rows().values(), row("new", parent="a", **{"superseded-by": "b"})])
    assert settle(here) == ()
    here.rewrite("new", parent="b")
    assert [drift.bead_id for drift in check(here)] == ["new"]


def test_our_own_changes_are_no_drift_and_changes_on_top_of_them_are(here: World) -> None:
    here.curator.run([op.SetParent("a", "b"), op.SetEligible("b", False), op.AddDependency("e", "b")])
    assert check(here) == ()
    here.rewrite("a", parent="e")
    (drift,) = check(here)
    assert (drift.was, drift.now) == ("b", "e")
    assert settle(here) == (drift,)
    here.rewrite("a", parent="b")
    assert check(here) == ()


def test_what_is_acknowledged_is_the_new_baseline(here: World) -> None:
    here.rewrite("a", parent="b")
    here.rewrite("b", dependencies=None)
    beads, history = here.curator.look().queue.beads, here.curator.history()
    (drift,) = watch(here).acknowledge(beads, history, ["a"])
    assert drift.field == "parent"
    assert [left.bead_id for left in check(here)] == ["b"]
    watch(here).acknowledge(beads, history)
    assert check(here) == ()


def test_a_bead_that_vanished_is_told_unless_it_was_archived(here: World) -> None:
    rows = here.rows()
    here.write([each for bead_id, each in rows.items() if bead_id != "b"])
    (drift,) = check(here)
    assert (drift.bead_id, drift.field) == ("b", "")
    assert "gone" in str(drift)
    (here.root / ".ddx" / "beads-archive.jsonl").write_text('{"id":"b","status":"closed"}\n')
    assert check(here) == ()
    assert settle(here) == ()


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b'{"beads": 5}', b"\xff", b'{"beads":{"a":[]},"taken_at":1}'])
def test_a_broken_snapshot_is_taken_anew(here: World, garbage: bytes) -> None:
    watch(here).path.write_bytes(garbage)
    assert watch(here).read().problem
    assert settle(here) == ()
    assert not watch(here).read().problem


def test_read_only_finds_and_writes_nothing(here: World) -> None:
    here.rewrite("a", parent="b")
    before = watch(here).path.read_bytes()
    shut = here.again(read_only=True)
    guard = DriftWatch(shut.project, shut.gate)
    beads, history = here.curator.look().queue.beads, here.curator.history()
    assert len(guard.check(beads, history)) == 1
    with pytest.raises(WritesForbidden):
        guard.settle(beads, history)
    with pytest.raises(WritesForbidden):
        guard.acknowledge(beads, history)
    assert watch(here).path.read_bytes() == before
