"""The lock that every writer of a tracker holds: who owns it, when it is stale, and what it says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from helix_ddx.store.lock import FolderLock, LockTimeout, lock_timeout, process_lives

pytestmark = pytest.mark.realtime


def _dead_pid() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait(timeout=30)
    return ended.pid


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 10), ("2", 2), ("0.5", 0.5), ("2s", 2), ("1m30s", 90), ("250ms", 0.25), ("soon", 10), ("nan", 10)],
)
def test_the_timeout_is_a_number_or_a_duration(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDX_BEAD_LOCK_TIMEOUT", text)
    assert lock_timeout() == seconds


def test_a_dead_owner_loses_its_lock_and_its_half_written_file(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "beads.lock", guard=True)
    dead = _dead_pid()
    lock.folder.mkdir()
    (lock.folder / "pid").write_text(str(dead))
    half, other = tmp_path / f"beads.jsonl.tmp-{dead}-0123abcd", tmp_path / "beads.jsonl.tmp-1-0123abcd"
    half.write_text("half")
    other.write_text("somebody else's")
    with lock.held():
        assert (lock.folder / "pid").read_text() == str(os.getpid())
    left = {other.name} | ({"beads.lock.stale-break.lock"})
    assert {path.name for path in tmp_path.iterdir()} == left


def test_a_folder_that_was_never_signed_is_waited_for_and_then_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDX_BEAD_LOCK_TIMEOUT", "0")
    lock = FolderLock(tmp_path / "beads.lock")
    lock.folder.mkdir()
    with pytest.raises(LockTimeout, match="owner pid: unknown"), lock.held():
        pass
    os.utime(lock.folder, (1, 1))
    with lock.held():
        assert lock.folder.is_dir()
    assert not lock.folder.exists()


def test_the_token_is_for_its_owner_alone(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "beads.lock")
    with lock.held():
        token = lock.folder / "owner_token"
        assert len(token.read_text()) == 64
        assert token.stat().st_mode & 0o777 == 0o600


def test_a_lock_that_was_taken_over_is_not_taken_back(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "beads.lock")
    with lock.held():
        (lock.folder / "pid").write_text("1")
    assert (lock.folder / "pid").read_text() == "1"


def test_of_many_breakers_one_holds_it_at_a_time(tmp_path: Path) -> None:
    folder = tmp_path / "beads.lock"
    folder.mkdir()
    (folder / "pid").write_text(str(_dead_pid()))
    inside, worst, done = 0, 0, 0

    def work() -> None:
        nonlocal inside, worst, done
        for _ in range(10):
            with FolderLock(folder).held():
                inside += 1
                worst = max(worst, inside)
                done += 1
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert (worst, done, folder.exists()) == (1, 60, False)


def test_who_lives() -> None:
    assert process_lives(os.getpid())
    assert not process_lives(_dead_pid())
    assert process_lives(1)
    with subprocess.Popen(["true"]) as ended:  # ended, and nobody has asked how
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert not process_lives(ended.pid)
