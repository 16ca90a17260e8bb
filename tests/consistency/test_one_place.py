"""Nobody but the boundary with DDx says what a status means or counts attempts by what came of them."""

from __future__ import annotations

import ast
from pathlib import Path

from helix_tui.core.ddx.names import STATUSES
from tests.sources import dotted, nodes_of

HOUSE = Path(__file__).resolve().parents[2] / "helix_tui"
ELSEWHERE = {
    "core/supervision/agents/learning.py": "failure modes, of which one is called as a status is",
    "core/supervision/signals/stoppage.py": "failure modes",
    "core/supervision/signals/responses.py": "the one table of what HELIX does with a status",
    "widgets/rows/attempt_table.py": "ddx's word in a column's width",
}
"""Files beside `core/ddx` that hold words of DDx's for an ending, and what they hold them for."""


def _words(path: Path) -> set[str]:
    """Statuses that a file holds; ``success`` is an ink and an answer of agents too, and counts when compared."""
    texts = {node.value for node in nodes_of(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    compared: set[object] = {
        side.value
        for node in nodes_of(path)
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        if isinstance(side, ast.Constant)
    }
    return (texts & STATUSES.keys() - {"success", "no_changes"}) | {word for word in STATUSES if word in compared}


def test_no_other_place_maps_a_status_to_an_outcome() -> None:
    files = {path.relative_to(HOUSE).as_posix(): path for path in HOUSE.rglob("*.py")}
    holding = {name for name, path in files.items() if not name.startswith("core/ddx/") and _words(path)}
    assert holding == ELSEWHERE.keys()
    assert len(_words(files["core/supervision/signals/responses.py"])) == 2, "the reader of files sees both kinds"


def test_attempts_are_counted_by_outcome_in_one_place() -> None:
    counting = {
        path.relative_to(HOUSE).as_posix()
        for path in HOUSE.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and dotted(node.func) == "Counter" and "outcome" in ast.unparse(node)
    }
    assert counting == {"core/ddx/attempts/attempt.py"}
