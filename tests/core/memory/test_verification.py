"""What checks that ran say of a session: only what is certain settles anything."""

from __future__ import annotations

import pytest

from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.session_check import SessionCheck, checking, judge_session, settle_session
from tests.core.memory.conftest import name_of

TRIGGER = "Celery worker loses tasks on restart"


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("pytest -q", "pytest -q"),
        ("cd src && uv run pytest tests/test_a.py", "uv run pytest tests/test_a.py"),
        ("PYTHONPATH=. timeout 60 python3 -m pytest", "PYTHONPATH=. timeout 60 python3 -m pytest"),
        (".venv/bin/pytest", ".venv/bin/pytest"),
        ("npm test", "npm test"),
        ("npm run lint", "npm run lint"),
        ("cargo test --all", "cargo test --all"),
        ("go test ./...", "go test ./..."),
        ("make -j4 check", "make -j4 check"),
        ("ruff check . && mypy && pytest", "pytest"),
        ("set -euo pipefail; pytest | tail -3", "pytest"),
        ("pytest | tail -3", ""),
        ("pytest || true", ""),
        ("pytest; echo done", ""),
        ("pytest &", ""),
        ("pytest --collect-only", ""),
        ("pytest --help", ""),
        ("echo pytest", ""),
        ("git commit -m 'make test pass'", ""),
        ("cat tests/test_a.py", ""),
        ("pip install pytest", ""),
        ("ls", ""),
        ("", ""),
    ],
)
def test_which_commands_check_anything(command: str, check: str) -> None:
    assert checking(command) == check


@pytest.mark.parametrize(
    ("checks", "change", "verdict"),
    [
        ([], None, None),
        ([SessionCheck("ls", 0, 1), SessionCheck("git status", 1, 2)], None, None),
        ([SessionCheck("pytest", 0, 1)], None, "passed"),
        ([SessionCheck("pytest", 1, 1), SessionCheck("pytest", 0, 5)], 3, "passed"),
        ([SessionCheck("pytest", 0, 1), SessionCheck("pytest", 1, 5)], 3, "failed"),
        ([SessionCheck("pytest", 0, 1)], 3, None),
        ([SessionCheck("pytest", 0, 4), SessionCheck("mypy", 1, 5)], 3, "failed"),
        ([SessionCheck("pytest", 0, 4), SessionCheck("mypy", 1, 1)], 3, "passed"),
        ([SessionCheck("pytest", None, 4)], 3, None),
        ([SessionCheck("pytest", 5, 4)], 3, None),
        ([SessionCheck("pytest || true", 0, 4)], 3, None),
    ],
)
def test_a_session_is_judged_by_the_last_run_of_each_check(
    checks: list[SessionCheck], change: int | None, verdict: str | None
) -> None:
    judged = judge_session(checks, change)
    assert judged.verdict == verdict
    assert judged.why


def test_a_session_settles_by_its_checks_and_otherwise_not_at_all(words_only: MemoryStore) -> None:
    memory = words_only
    name = name_of(memory, TRIGGER, "set acks_late")
    memory.inject(TRIGGER, attempt="s")
    memory.claim("s", [name])
    judged, report = settle_session(memory, "s", [SessionCheck("ls", 0)])
    assert (judged.verdict, report, memory.settled()) == (None, None, {})
    _, report = settle_session(memory, "s", [SessionCheck("pytest -q", 1)])
    assert report is not None
    assert report.unhelpful == (name,)
    _, report = settle_session(memory, "s", [SessionCheck("pytest -q", 1, 1), SessionCheck("pytest -q", 0, 2)])
    assert report is not None
    assert (report.helped, report.replaced) == ((name,), True)
    assert settle_session(memory, "nobody", [SessionCheck("pytest -q", 0)])[1] is None


def test_a_session_that_goes_on_is_counted_with_what_it_was_shown_since(
    words_only: MemoryStore,
) -> None:
    memory = words_only
    first = memory.store("Circular import in src/auth.py", "Move the types").name
    memory.inject("Circular import in src/auth.py", attempt="s")
    memory.claim("s", [first])
    assert settle_session(memory, "s", [SessionCheck("pytest -q 2>&1", 0, 1)])[1] is not None
    second = memory.store("Timetable of ferries sorts by text", "Sort by the clock").name
    told = memory.inject("Timetable of ferries sorts by text", attempt="s")
    assert second in {each.name for each in told.shown}
    memory.claim("s", [second])
    for _ in range(2):
        settle_session(memory, "s", [SessionCheck("pytest -q", 0, 2)])
        assert {each.name: each.helped for each in memory.list()} == {first: 1, second: 1}
