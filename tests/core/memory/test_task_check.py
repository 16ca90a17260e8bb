"""VERIFY is run as a program, bounded; what a task changed is held against its files and idioms."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.memory.tasks.task_check import changed_since, run_verify, state_of_tree, violations_in, words_of

PYTHON = shlex.quote(sys.executable)


def git(root: Path, *words: str) -> None:
    person = ("-c", "user.name=T", "-c", "user.email=t@example.com")
    subprocess.run(["git", "-C", str(root), *person, *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for name in ("a.py", "b.py"):
        (tmp_path / "src" / name).write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


@pytest.mark.parametrize(("code", "result"), [("print(1)", "passed"), ("import sys; sys.exit(3)", "failed")])
def test_the_exit_code_decides(tmp_path: Path, code: str, result: str) -> None:
    found = run_verify(f'{PYTHON} -c "{code}"', tmp_path)
    assert found.result == result
    assert ("ended with 3" in found.why) is (result == "failed")


def test_what_it_prints_last_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "noisy.py"
    script.write_text("for n in range(100): print('line', n)\nraise SystemExit(1)\n")
    assert run_verify(f"{PYTHON} noisy.py", tmp_path).output.splitlines()[-1] == "line 99"


def test_it_is_ended_after_its_time(tmp_path: Path) -> None:
    found = run_verify(f'{PYTHON} -c "import time; time.sleep(60)"', tmp_path, 0.5)
    assert (found.result, "longer than 0.5 s" in found.why) == ("failed", True)


@pytest.mark.parametrize(
    "command", ["make test | tail", "pytest; true", "echo $HOME", "cat <x", "a || b", "", "X=1 make"]
)
def test_no_shell_is_ever_asked(tmp_path: Path, command: str) -> None:
    assert run_verify(command, tmp_path).result == "not run"


def test_several_programs_are_run_in_order(tmp_path: Path) -> None:
    assert words_of("cd src && pytest -k 'a or b'") == [["cd", "src"], ["pytest", "-k", "a or b"]]
    found = run_verify(f"{PYTHON} -c \"raise SystemExit(2)\" && {PYTHON} -c \"open('made', 'w')\"", tmp_path)
    assert (found.result, (tmp_path / "made").exists()) == ("failed", False)


def test_a_folder_of_the_project_may_be_entered_first(tree: Path) -> None:
    assert run_verify(f"cd src && {PYTHON} -c \"open('a.py')\"", tree).result == "passed"
    assert run_verify(f"{PYTHON} -c \"open('a.py')\"", tree).result == "failed"


def test_a_program_that_is_not_there_proves_nothing(tmp_path: Path) -> None:
    assert run_verify("no-such-program --check", tmp_path).result == "not run"


def test_only_what_changed_since_is_held_against_the_task(tree: Path) -> None:
    (tree / "src" / "b.py").write_text("dirty before\n")
    (tree / "old.txt").write_text("here before\n")
    before = state_of_tree(tree)
    assert changed_since(tree, before) == ()
    (tree / "src" / "a.py").write_text("x = 2\n")
    (tree / "new.txt").write_text("n\n")
    assert changed_since(tree, before) == ("new.txt", "src/a.py")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "second")
    assert changed_since(tree, before) == ("new.txt", "src/a.py")
    assert changed_since(tree, {}) is None
    assert changed_since(tree, before | {"rev": "0" * 40}) is None


def test_a_rule_is_looked_for_at_the_beginning_of_a_change_too_large_to_read(tree: Path) -> None:
    before = state_of_tree(tree)
    (tree / "src" / "a.py").write_text("print(x)\n" + "y = 1\n" * 800_000)
    (broken,) = violations_in(
        tree, before["rev"], ("src/a.py",), delta=("src/",), required=(), forbidden=("No `print(` in library code",)
    )
    assert "the change adds `print(`" in broken


def test_rules_of_the_plan_are_looked_for_in_the_change(tree: Path) -> None:
    before = state_of_tree(tree)
    (tree / "src" / "a.py").write_text("x = 1\nprint(x)\n")
    (tree / "src" / "b.py").write_text("y = 1\n")
    changed = changed_since(tree, before)
    assert changed is not None

    def found(**rules: Any) -> tuple[str, ...]:
        whole = {"delta": ("src/a.py",), "required": (), "forbidden": (), "others": ("src/b.py",)}
        return violations_in(tree, before["rev"], changed, **{**whole, **rules})

    assert found() == ()
    assert found(others=()) == ("src/b.py is outside DELTA",)
    assert found(delta=("src/",), others=()) == ()
    assert found(delta=()) == ("src/a.py is changed, and DELTA names no file",)
    (broken,) = found(forbidden=("No `print(` in library code",))
    assert "the change adds `print(`" in broken
    assert found(forbidden=("`x = 1` at the top", "write good code")) == ()
    (missing,) = found(required=("Use `Depends(` for auth",))
    assert "no changed file has" in missing
    (missing,) = found(required=("Use Depends() for auth",), task="impl-auth")
    assert "no changed file has `Depends()`" in missing
    assert found(required=("Use Depends() for auth",), task="spec-models") == ()
    (broken,) = found(required=("Use logging.info(), no print()",), task="x")[:1]
    assert broken == "required: Use logging.info(), no print() (the change adds `print()`)"
    assert found(forbidden=("pprint(x)", "rint()")) == ()
