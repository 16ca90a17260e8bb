"""``helix-tui tmux``, with a real tmux where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory

pytestmark = pytest.mark.realtime


def test_outside_tmux_it_says_what_to_do(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("tmux", "-C", project([]))
    assert ran.code == 1
    assert "not inside tmux" in ran.err
    assert "helix-tui --pane" in ran.err


@pytest.mark.parametrize("width", ["12", "900", "wide"])
def test_unusable_width_is_usage(cli: Cli, width: str) -> None:
    assert cli("tmux", "--width", width).code == 2


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A tmux server of our own, 160 columns wide; yields the words that speak to it."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux on this machine")
    # a user whose shell is nologin, as on some machines that build, has tmux end at once
    monkeypatch.setenv("SHELL", "/bin/sh")
    socket = tmp_path / "tmux"
    tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
    subprocess.run([*tmux, "new-session", "-d", "-x", "160", "-y", "40", "cat"], check=True, timeout=10)
    monkeypatch.setenv("TMUX", f"{socket},1,0")
    yield tmux
    subprocess.run([*tmux, "kill-server"], check=False, timeout=10)


def test_side_pane_stands_beside_and_leaves_the_focus(cli: Cli, project: ProjectFactory, session: list[str]) -> None:
    root = project([])
    subprocess.run([*session, "set", "-g", "remain-on-exit", "on"], check=True, timeout=10)
    document = cli("tmux", "--json", "--width", "48", "-C", root).document
    listed = subprocess.run(
        [*session, "list-panes", "-F", "#{pane_id} #{pane_width} #{pane_active} #{pane_start_command}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=10,
    ).stdout.splitlines()
    assert len(listed) == 2
    pane = next(line for line in listed if line.startswith(f"{document['pane']} "))
    assert " 48 0 " in pane
    assert "--pane" in pane
    assert str(root) in pane
