"""The archive: counted, and asked for single beads; a dependency on one of them is explained."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import decode_bead
from helix_tui.core.beads.tracker import Tracker, find_archived, only_archived, read_archive, read_tracker
from helix_tui.core.editing.execute.curator import QueueState
from helix_tui.core.statements.stuck import find_stuck
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.needs import needs_of
from helix_tui.core.supervision.decide.verdict import decide

OLD = {"id": "b-0", "title": "Old", "status": "closed", "archived_at": "2026-05-07T05:50:17Z"}


def write(path: Path, *rows: object) -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row, separators=(",", ":")) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_only_what_is_asked_for_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {**OLD, "title": "first"}, '{"id":"b-0",', OLD, {**OLD, "id": "b-00"})
    archive = read_archive(path)
    assert (len(archive.beads), archive.rows, len(archive.dropped)) == (2, 4, 1)
    assert list(only_archived(archive, {"b-0"})) == ["b-00"]  # the tracker's row wins
    assert read_archive(path) is archive
    archived = find_archived(path, ["b-0", "nobody"])
    assert set(archived) == {"b-0"}
    assert (archived["b-0"].title, archived["b-0"].words) == ("Old", "closed on 2026-05-07 and archived")
    assert find_archived(path, []) == {}
    assert find_archived(tmp_path / "none", ["b-0"]) == {}
    assert read_archive(tmp_path / "none").missing


def test_a_dependency_on_an_archived_bead_says_what_to_do(tmp_path: Path) -> None:
    archived = find_archived(write(tmp_path / "a.jsonl", OLD), ["b-0"])
    row = {"id": "b-1", "title": "New", "status": "open", "dependencies": [{"depends_on_id": "b-0"}]}
    queue = classify({"b-1": decode_bead(json.dumps(row).encode())}, now=0)
    (need,) = needs_of(queue, (), Tracker(tmp_path / "t"), archived=archived)
    assert need.kind == "archived_dependency"
    assert "b-0 (Old), closed on 2026-05-07 and archived; ddx does not look there" in need.reason
    (stuck,) = find_stuck(queue, archive=tmp_path / "a.jsonl")
    assert "closed on 2026-05-07 and archived" in stuck.detail
    assert "helix-tui dep remove b-1 b-0" in stuck.detail
    verdict = decide(gather_facts(QueueState(Tracker(tmp_path / "t"), queue), archive=tmp_path / "a.jsonl"))
    assert "helix-tui dep remove b-1 b-0" in verdict.reasons[0].detail
    (need,) = needs_of(queue, (), Tracker(tmp_path / "t"))
    assert need.kind == "missing_dependency"


def test_the_archive_of_a_real_project(shared: Path, tmp_path: Path) -> None:
    with tarfile.open(shared / "data" / "ddx" / "projects" / "fizeau.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    path = tmp_path / ".ddx" / "beads-archive.jsonl"
    tracker = read_tracker(tmp_path / ".ddx" / "beads.jsonl").beads
    away = only_archived(read_archive(path), tracker)
    closed = [bead for bead in (*tracker.values(), *away.values()) if bead.status == "closed"]
    assert (len(tracker) + len(away), len(closed)) == (1046, 1031)  # as `ddx bead list` counts
    first = json.loads(path.read_bytes().split(b"\n")[0])["id"]
    assert find_archived(path, [first])[first].status == "closed"
