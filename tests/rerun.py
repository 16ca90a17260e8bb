"""Tests that live on real clocks may fail once, and on a busy machine only: hooks for the suite's conftest.

A test marked ``realtime`` waits on other processes, threads or terminals for so long and no longer. Those of
them that fail are run once more when everything else is over, alone, in a process of their own. If all pass,
and nothing else failed, the suite passes and says their names. More than `MOST` of them are no accident: the
suite fails. No other test runs twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator

import pytest

MARK = "realtime"

MOST = 3
"""Tests that may run twice in one suite."""

LIMIT_S = 600.0
"""Seconds that the second runs may take altogether."""

_AGAIN = "HELIX_TESTS_AGAIN"

_failed: dict[str, bool] = {}
"""Node id -> whether it is marked, of everything that failed; one process runs one suite."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark."""
    config.addinivalue_line("markers", f"{MARK}: waits on real clocks; may run twice on a busy machine")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what failed, here or in a worker of xdist."""
    if report.failed:
        _failed[report.nodeid] = MARK in report.keywords and _failed.get(report.nodeid, True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Run the marked ones again, alone, and let that count."""
    yield
    failed = dict(_failed)
    _failed.clear()
    if hasattr(session.config, "workerinput") or _AGAIN in os.environ or not failed:
        return
    marked = [nodeid for nodeid, is_marked in failed.items() if is_marked]
    others = len(failed) - len(marked)
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not marked:
        return
    if len(marked) > MOST:
        _say(session, f"{len(marked)} realtime tests failed, more than the {MOST} that may run twice:", marked)
        return
    passed = _run_again(session, marked)
    _say(session, f"{len(marked)} realtime run again alone: {'passed' if passed else 'FAILED'}", marked)
    if passed and not others:
        session.exitstatus = pytest.ExitCode.OK


def _run_again(session: pytest.Session, nodeids: list[str]) -> bool:
    root = session.config.rootpath
    arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", str(root)]
    if session.config.pluginmanager.hasplugin("xdist"):
        arguments += ["-n", "0"]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, *nodeids],
            cwd=root,
            env={**os.environ, _AGAIN: "1"},
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _say(session: pytest.Session, said: str, nodeids: list[str]) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.ensure_newline()
        reporter.section(said, sep="=")
        for nodeid in nodeids:
            reporter.line(f"run twice: {nodeid}" if len(nodeids) <= MOST else nodeid)
