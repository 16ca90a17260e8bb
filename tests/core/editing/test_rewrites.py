"""What a write of ddx does to rows that no command names: it decodes every row and encodes it again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.dialect import AUGUST
from helix_tui.core.editing.execute.reconciliation import expected_rewrites, observed_rewrites

THEN = "2026-04-01T10:00:00.5Z"
NEVER = "0001-01-01T00:00:00Z"
FILLS = {"title": "", "status": "open", "priority": 0, "issue_type": "task", "schema_version": 1}
FILLS |= {"created_at": NEVER, "updated_at": NEVER}
ROW = {"title": "A", "status": "open", "priority": 2, "issue_type": "task", "schema_version": 1}
ROW |= {"created_at": THEN, "updated_at": THEN}


def beads_of(folder: Path, **rows: Mapping[str, Any]) -> Mapping[str, Bead]:
    path = folder / "beads.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode({"id": bead_id, **row}) + b"\n" for bead_id, row in rows.items()))
    return read_tracker(path).beads


def test_the_fields_that_a_write_adds_are_expected(tmp_path: Path) -> None:
    without = {name: value for name, value in ROW.items() if name not in ("schema_version", "priority")}
    beads = beads_of(tmp_path, a=ROW, b=without, c=without)
    dialect = msgspec.structs.replace(AUGUST, fills=FILLS)
    found = {
        rewrite.field: (rewrite.before, rewrite.after, rewrite.beads)
        for rewrite in expected_rewrites(beads, dialect, {})
    }
    assert found == {"priority": (None, 0, ("b", "c")), "schema_version": (None, 1, ("b", "c"))}
    named = expected_rewrites(beads, dialect, {"b": ("priority",)})
    assert {each.field: each.beads for each in named} == {"priority": ("c",), "schema_version": ("b", "c")}
    assert expected_rewrites(beads, msgspec.structs.replace(AUGUST, fills=None), {}) == ()


@pytest.mark.parametrize(
    ("was", "now", "change"),
    [
        ({"priority": "1"}, {"priority": 0}, ("priority", "1", 0)),
        ({"owner": 5}, {}, ("owner", 5, None)),
        ({"labels": ["a", None]}, {"labels": ["a", ""]}, ("labels", ["a", None], ["a", ""])),
        ({"size": 2**53 + 1}, {"size": 2**53}, ("size", 2**53 + 1, 2**53)),
        ({"deep": {"a": [1, 2]}}, {"deep": {"a": [1, 3]}}, ("deep", {"a": [1, 2]}, {"a": [1, 3]})),
        ({"owner": ""}, {}, None),
        ({"size": 1}, {"size": 1}, None),
        ({"priority": 1}, {"priority": 0, "updated_at": NEVER}, None),
    ],
)
def test_what_a_write_changed_in_another_row_is_read_from_the_rows(
    tmp_path: Path, was: dict[str, Any], now: dict[str, Any], change: tuple[str, Any, Any] | None
) -> None:
    """A row with a new time was changed by somebody else, who says so."""
    before, after = beads_of(tmp_path, a=ROW, b=ROW | was), beads_of(tmp_path, a=ROW, b=ROW | now)
    found = observed_rewrites(before, after, {"a": ("priority",)}, ())
    assert [(each.field, each.before, each.after, each.beads) for each in found] == (
        [(*change, ("b",))] if change is not None else []
    )
    assert observed_rewrites(before, after, {"b": ()}, ()) == ()


def test_what_was_expected_is_not_recorded_twice(tmp_path: Path) -> None:
    before, after = beads_of(tmp_path, a={}), beads_of(tmp_path, a=FILLS)
    expected = expected_rewrites(before, msgspec.structs.replace(AUGUST, fills=FILLS), {})
    assert {each.field for each in expected} == set(FILLS)
    assert observed_rewrites(before, after, {}, expected) == ()
    assert "status" in {rewrite.field for rewrite in observed_rewrites(before, after, {}, ())}
