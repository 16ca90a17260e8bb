"""Events in attachments: read line by line, and only from where attachments lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helix_tui.core.beads.record import decode_bead
from helix_tui.core.ddx.runs.transcript import attached_events


def test_events_come_in_the_order_of_the_file_and_bad_lines_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "attachments" / "b-1"
    folder.mkdir(parents=True)
    (folder / "events.jsonl").write_text('{"kind":"one"}\n{cut\n[1]\n\n{"kind":"two"}\n')
    bead = decode_bead(json.dumps({"id": "b-1", "events_attachment": "b-1/events.jsonl"}).encode())
    assert [event["kind"] for event in attached_events(tmp_path, bead)] == ["one", "two"]


@pytest.mark.parametrize("name", ["", "../secret.jsonl", "b/../../secret.jsonl", "/etc/passwd", "none.jsonl", "a\0b"])
def test_a_name_that_leads_elsewhere_or_nowhere_reads_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "attachments").mkdir()
    (tmp_path / "secret.jsonl").write_text('{"kind":"secret"}\n')
    bead = decode_bead(json.dumps({"id": "b", "events_attachment": name}).encode())
    assert attached_events(tmp_path, bead) == []
