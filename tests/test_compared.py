"""The table of keys in docs/compared.md: every key is bound, and every count is that of the keys before it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helix_tui.keymap import KEYS, as_typed

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "compared.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.partition("\n## ")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| task")
]
OF_SHEETS = ("1", "2", "3")
"""Keys by which a sheet that is open offers its choices."""


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_key_is_bound_and_counted(row: list[str]) -> None:
    task, here, count, _, theirs = row
    keys = re.findall(r"`([^`]+)`", here)
    bound = {as_typed(name) for key in KEYS for name in key.keys.split(",")}
    assert [key for key in keys if key not in bound and key not in OF_SHEETS] == [], task
    assert len(keys) == int(count), task
    assert theirs == "–" or theirs.isdecimal(), task


def test_the_sum_below_the_table_is_that_of_its_rows() -> None:
    pairs = [(int(row[2]), row[4]) for row in ROWS]
    fewer = sum(theirs == "–" or ours < int(theirs) for ours, theirs in pairs)
    same = sum(theirs != "–" and ours == int(theirs) for ours, theirs in pairs)
    more = len(pairs) - fewer - same
    assert f"in {fewer} of {len(pairs)}; the same in {same}; more in {more}" in " ".join(PAGE.split())
