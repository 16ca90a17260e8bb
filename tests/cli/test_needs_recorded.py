"""What waits on a person in recorded trackers, held against a count that reads the lines and nothing else."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

TRACKERS = ("beads-2026-04.jsonl", "beads-head.jsonl", "beads-union.jsonl.xz", "beads-max.jsonl.xz")
BROKEN = {"missing_dependency", "cancelled_dependency"}
CLAIMS = {"dead_run", "orphaned_claim"}


def rows_of(raw: bytes) -> dict[str, dict[str, Any]]:
    """The last row of each id."""
    return {row["id"]: row for row in map(json.loads, filter(None, raw.split(b"\n")))}


def by_status(rows: dict[str, dict[str, Any]], *statuses: str) -> set[str]:
    return {name for name, row in rows.items() if row.get("status", "open") in statuses}


def waits_for_ever(rows: dict[str, dict[str, Any]], row: dict[str, Any]) -> bool:
    """A dependency that is not in the file, or was cancelled."""
    targets = [rows.get(edge["depends_on_id"]) for edge in row.get("dependencies") or ()]
    return any(target is None or target.get("status") == "cancelled" for target in targets)


@pytest.mark.parametrize("name", TRACKERS)
def test_nothing_that_waits_in_a_recorded_tracker_is_missing_or_there_twice(
    cli: Cli, shared: Path, tmp_path: Path, name: str
) -> None:
    packed = (shared / "data" / "ddx" / name).read_bytes()
    raw = lzma.decompress(packed) if name.endswith(".xz") else packed
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".ddx" / "beads.jsonl").write_bytes(raw + b'{"id": "torn", "title"\n')
    rows = rows_of(raw)
    found = cli("needs", "-C", tmp_path, "--json").document["needs"]
    keys = [need["key"] for need in found]
    assert len(keys) == len(set(keys))
    about = {kind: {need["bead_id"] for need in found if need["kind"] == kind} for kind in {n["kind"] for n in found}}

    open_ = by_status(rows, "open")
    proposed = by_status(rows, "proposed")
    by_its_change = about.get("refused", set()) & proposed
    assert about.get("proposed", set()) == proposed - by_its_change, "each once, by its refused change if it has one"
    broken = set().union(*(about.get(kind, set()) for kind in BROKEN))
    assert broken == {name for name in open_ if waits_for_ever(rows, rows[name])}
    assert "unread_lines:" in keys

    ready = set(cli("queue", "-C", tmp_path, "--json").document["ready"])
    held = by_status(rows, "in_progress") - ready
    claims = set().union(*(about.get(kind, set()) for kind in CLAIMS))
    assert claims == held, "what ddx gives out again by itself needs nobody; of the rest each waits"
    waits = by_status(rows, "open", "in_progress", "blocked", "proposed")
    assert all(need["bead_id"] in waits for need in found if need["kind"] in {"refused", "kept_aside"})
