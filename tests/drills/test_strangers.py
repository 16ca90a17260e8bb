"""The drill under strace: nothing that docs/security.md does not name, and it sees what would be wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.drills.strangers import drill, read_trace, traced, unnamed

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("strace") is None
        or subprocess.run(["strace", "-o", os.devnull, "true"], check=False).returncode != 0,
        reason="no strace here, or it may not trace",
    ),
]

COMMANDS = (
    ("check",),
    ("ask", "hunter2 of the person"),
    ("doctor",),
    ("set", "de-1", "priority=1"),
    ("commit", "de-1"),
)


@pytest.mark.nightly
def test_a_session_does_only_what_the_page_names(tmp_path: Path) -> None:
    acts, wrong = drill(tmp_path, 3.0, COMMANDS)
    assert {act.call for act in acts} >= {"execve", "write"}
    assert not wrong
    assert not (tmp_path / "home" / "ran").exists()


def test_what_is_wrong_is_seen(tmp_path: Path) -> None:
    outside, root, home = tmp_path / "outside", tmp_path / "demo", tmp_path / "person"
    for folder in (outside, root):
        folder.mkdir()
    code = (
        "import os, socket, subprocess\n"
        f"open({str(outside / 'new')!r}, 'w')\nos.rename({str(outside / 'new')!r}, {str(outside / 'old')!r})\n"
        "subprocess.run(['/bin/sh', '-c', ':'])\nos.kill(os.getpid(), 18)\n"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))\n"
    )
    words = traced(tmp_path / "trace", home)
    subprocess.run([*words[: words.index("-m")], "-c", code], check=True, timeout=60)
    assert [act.call for act in unnamed(read_trace(tmp_path / "trace"), root, home)] == [
        *("write", "rename", "rename", "kill", "connect", "execve"),
    ]
