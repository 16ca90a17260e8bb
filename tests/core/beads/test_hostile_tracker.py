"""A tracker that is no file, or that nobody should have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import decode_bead
from helix_tui.core.beads.tracker import TrackerReader
from helix_tui.core.ddx.attempts.sources.from_events import was_rejected
from helix_tui.core.ddx.claims import row_claim
from tests.programs import parse_rows


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop"])
def test_what_is_no_file_keeps_nobody_waiting_and_is_told(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "beads.jsonl"
    path.write_text('{"id":"a","title":"t"}\n')
    reader = TrackerReader(path)
    assert set(reader.read().beads) == {"a"}
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path)
    tracker = reader.read()
    assert set(tracker.beads) == {"a"}, "those of the last good read"
    assert tracker.problem.startswith("cannot read beads.jsonl: ")


@pytest.mark.parametrize("deep", [b'{"id":"a","x":' + b"[" * 60_000, b"[" * 60_000, b'{"a":' * 60_000])
def test_a_line_nested_without_end_is_dropped_and_told(deep: bytes) -> None:
    tracker = parse_rows(b'{"id":"b","title":"t"}\n' + deep + b"\n")
    assert set(tracker.beads) == {"b"}
    assert [dropped.line for dropped in tracker.dropped] == [2]


@pytest.mark.parametrize("depth", [500, 900, 990, 1_000, 1_100, 5_000, 200_000])
def test_a_record_nested_deeply_is_read_or_dropped_but_never_raises(depth: int) -> None:
    line = b'{"id":"a","title":"t","x":' + b"[" * depth + b"]" * depth + b"}"
    tracker = parse_rows(line)
    assert len(tracker.beads) + len(tracker.dropped) == 1
    for bead in tracker.beads.values():
        assert bead.document().get("id", "a") == "a"
    assert decode_bead(b'{"id":"a"}').document() == {"id": "a"}


def test_a_number_without_end_orders_and_claims_nothing() -> None:
    long = "9" * 5_000
    row = f'{{"id":"a","title":"t","queue-rank":"{long}","queue_rank":"4","claimed-pid":"{long}","claimed-at":"x"}}'
    bead = decode_bead(row.encode())
    assert (bead.queue_rank, bead.pid) == (4, None)
    assert classify(parse_rows(row.encode()).beads, now=0).ready == ("a",)
    assert row_claim(bead).pid is None


def test_a_rejected_result_is_found_beside_an_event_of_another_shape() -> None:
    row = '{"id":"a","events":[{"kind":7,"body":[]},{"kind":"preserved-result-rejected","body":"result_rev=abc"}]}'
    assert was_rejected(decode_bead(row.encode()), "abc")
    assert not was_rejected(decode_bead(row.encode()), "abd")
