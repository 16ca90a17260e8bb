"""What a write of ddx does to rows that no command names: it decodes every row and encodes it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.dialect import AUGUST, Dialect
from helix_tui.core.editing.execute.reconciliation import Rewrites, rewritten

THEN = "2026-04-01T10:00:00.5Z"
NEVER = "0001-01-01T00:00:00Z"
APRIL_FILLS = {"title": "", "status": "open", "priority": 0, "issue_type": "task"}
APRIL_FILLS |= {"created_at": NEVER, "updated_at": NEVER}
MAY_FILLS = APRIL_FILLS | {"schema_version": 1}
ROW = {"id": "a", "title": "A", "status": "open", "priority": 2, "issue_type": "task"}
ROW |= {"created_at": THEN, "updated_at": THEN}


def dialect(fills: dict[str, Any] | None) -> Dialect:
    return msgspec.structs.replace(AUGUST, fills=fills)


@pytest.mark.parametrize(
    ("fields", "becomes"),
    [
        ({}, {"schema_version": 1}),
        ({"schema_version": 0}, {"schema_version": 1}),
        ({"schema_version": 2}, {}),
        ({"schema_version": 1, "priority": "1"}, {"priority": 0}),
        ({"schema_version": 1, "priority": 1.5}, {"priority": 0}),
        ({"schema_version": 1, "owner": "", "labels": [], "dependencies": None}, {}),
        ({"schema_version": 1, "owner": 5, "labels": "a"}, {"owner": None, "labels": None}),
        ({"schema_version": 1, "labels": ["a", None]}, {"labels": ["a", ""]}),
        ({"schema_version": 1, "created_at": "2026-02-30T00:00:00Z"}, {"created_at": NEVER}),
        ({"schema_version": 1, "created_at": "2026-04-01T10:00:00+02:00"}, {}),
        (
            {"schema_version": 1, "dependencies": [{"depends_on_id": "b", "note": "x"}]},
            {"dependencies": [{"issue_id": "", "depends_on_id": "b", "type": ""}]},
        ),
        ({"schema_version": 1, "size": 12345678901234567890}, {"size": 12345678901234567000}),
        ({"schema_version": 1, "size": 1.0, "flag": True, "none": None, "deep": {"a": [1, "x"]}}, {}),
        ({"schema_version": 1, "odd": "\ud800x"}, {"odd": "\ufffdx"}),
    ],
)
def test_a_row_is_decoded_and_encoded_again(fields: dict[str, Any], becomes: dict[str, Any]) -> None:
    """Each as ddx of April, May, July and August made of such a row (tests/real/test_old_rows.py asks them again)."""
    assert rewritten(ROW | fields, MAY_FILLS) == becomes


def test_releases_before_late_may_know_no_schema_version() -> None:
    assert rewritten(ROW, APRIL_FILLS) == {}
    assert rewritten(ROW | {"schema_version": 0}, APRIL_FILLS) == {}


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=4) | st.sampled_from([THEN, NEVER]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_NAMES = (*ROW, "schema_version", "owner", "notes", "labels", "dependencies", "colour", "events", "queue-rank")
_ROWS = st.fixed_dictionaries({"id": st.just("a")}, optional={name: _VALUES for name in _NAMES if name != "id"})


@given(_ROWS | st.builds(lambda more: ROW | more, _ROWS), st.sampled_from([APRIL_FILLS, MAY_FILLS]))
def test_a_second_write_changes_nothing_more(row: dict[str, Any], fills: dict[str, Any]) -> None:
    changed = rewritten(row, fills)
    after = {name: value for name, value in (row | changed).items() if value is not None or name not in changed}
    assert rewritten(after, fills) == {}
    assert set(fills) <= set(after)


@given(row=_ROWS | st.builds(lambda more: ROW | {"schema_version": 1} | more, _ROWS))
def test_a_row_in_ddx_s_own_form_is_known_without_taking_it_apart(
    tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]
) -> None:
    """The quick look and the slow one agree on every row."""
    path = tmp_path_factory.mktemp("tracker", numbered=True) / "beads.jsonl"
    path.write_bytes(msgspec.json.encode(row) + b"\n")
    beads = read_tracker(Path(path)).beads
    found = {each.field: each.after for each in Rewrites().find(beads, dialect(MAY_FILLS))}
    assert found == (rewritten(beads["a"].document(), MAY_FILLS) if beads else {})


def test_a_field_that_a_command_sets_is_the_plan_s_own(tmp_path: Path) -> None:
    path = tmp_path / "beads.jsonl"
    path.write_bytes(msgspec.json.encode(ROW | {"priority": "1"}) + b"\n")
    beads = read_tracker(path).beads
    found = Rewrites().find(beads, dialect(MAY_FILLS), {"a": ("priority",)})
    assert [each.field for each in found] == ["schema_version"]
    assert Rewrites().find(beads, dialect(None)) == ()
