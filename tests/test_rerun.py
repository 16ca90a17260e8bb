"""Only what is marked runs twice, and not many of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]

HOOKS = """
from tests.rerun import pytest_configure, pytest_runtest_logreport, pytest_sessionfinish
__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_sessionfinish"]
"""

FLAKY = """
import pathlib
import pytest

def again(name):
    note = pathlib.Path(__file__).with_name(name)
    note.write_text(note.read_text() + "x" if note.exists() else "x")
    return len(note.read_text()) > 1
"""


def _suite(folder: Path, body: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(HOOKS)
    (folder / "test_it.py").write_text(FLAKY + body)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in list(environment):
        if name.startswith("PYTEST_"):
            del environment[name]
    if not words:
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.nightly), "2"])
def test_a_marked_test_that_passes_alone_does_not_fail_the_suite(tmp_path: Path, workers: str) -> None:
    body = "@pytest.mark.realtime\ndef test_slow(): assert again('slow')\ndef test_good(): pass\n"
    done = _suite(tmp_path, body, "-n", workers)
    assert done.returncode == 0, done.stdout
    assert "run twice: test_it.py::test_slow" in done.stdout
    assert (tmp_path / "slow").read_text() == "xx"


def test_an_unmarked_test_fails_at_once(tmp_path: Path) -> None:
    done = _suite(tmp_path, "def test_slow(): assert again('slow')\n")
    assert done.returncode == 1
    assert (tmp_path / "slow").read_text() == "x"


def test_an_unmarked_failure_beside_a_marked_one_counts(tmp_path: Path) -> None:
    body = "@pytest.mark.realtime\ndef test_slow(): assert again('slow')\ndef test_bad(): assert 0\n"
    done = _suite(tmp_path, body)
    assert done.returncode == 1
    assert (tmp_path / "slow").read_text() == "xx"


def test_a_marked_test_that_fails_twice_fails_the_suite(tmp_path: Path) -> None:
    done = _suite(tmp_path, "@pytest.mark.realtime\ndef test_slow(): assert 0\n")
    assert done.returncode == 1
    assert "FAILED" in done.stdout


def test_more_than_three_are_no_accident(tmp_path: Path) -> None:
    body = "@pytest.mark.realtime\n@pytest.mark.parametrize('n', range(4))\n"
    body += "def test_slow(n): assert again(str(n))\n"
    done = _suite(tmp_path, body)
    assert done.returncode == 1
    assert "4 realtime tests failed, more than the 3 that may run twice" in done.stdout
    assert all(f"test_it.py::test_slow[{number}]" in done.stdout for number in range(4))
    assert (tmp_path / "0").read_text() == "x"
