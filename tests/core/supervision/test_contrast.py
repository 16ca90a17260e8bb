"""Two versions of a value in a sentence: one sees where they differ, however long they are."""

from __future__ import annotations

from typing import Any

import pytest

from helix_tui.core.editing.values import apart

LONG = [f"area:number-{n}" for n in range(9)]


@pytest.mark.parametrize(
    ("field", "one", "other", "expected"),
    [
        ("priority", 1, None, ("1", "absent")),
        ("title", "a", "b", ("“a”", "“b”")),
        ("labels", ["a", "b"], None, ("a, b", "none")),
        ("labels", [*LONG, "mine"], [*LONG, "its"], ("with mine, without its", "with its, without mine")),
        ("labels", LONG, LONG[::-1], ("in another order", "in another order")),
        ("dependencies", [{"depends_on_id": "x-1"}], ["x-2"], ("x-1", "x-2")),
        ("foo", [{"deep": 1}], "\x1b[31mred", ("[{'deep': 1}]", "“red”")),
    ],
)  # fmt: skip
def test_both_versions_in_a_sentence(field: str, one: Any, other: Any, expected: tuple[str, str]) -> None:
    assert apart(field, one, other) == expected


def test_long_texts_are_cut_where_they_differ() -> None:
    one, other = apart("description", "x" * 500 + "mine" + "z" * 200, "x" * 500 + "theirs")
    assert one.startswith("“…xxx")
    assert "mine" in one
    assert one.endswith("…”")
    assert other.endswith("theirs”")
    assert len(one) < 70
