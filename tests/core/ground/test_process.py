"""Running a program whose output goes to files: it is not ended half-way, and the end of it is kept."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from helix_tui.core.ground.process import run, run_to_files

pytestmark = pytest.mark.realtime

MANY = "import sys; [print('line', n) for n in range(2000)]; print('{}'); sys.stderr.write('e' * 9000)"


@pytest.mark.parametrize(("cap", "out"), [(100, b"line 1999\n{}\n"), (1 << 20, b"line 1999\n{}\n")])
def test_a_flood_is_let_through_and_its_end_is_kept(tmp_path: Path, cap: int, out: bytes) -> None:
    done = run_to_files((sys.executable, "-c", MANY), out=tmp_path / "o", err=tmp_path / "e", timeout=30, cap=cap)
    assert (done.rc, done.truncated, done.timed_out) == (0, False, False)
    assert done.stdout.endswith(out)
    assert done.stdout.startswith(b"line ")
    assert (tmp_path / "o").stat().st_size > 10_000


def test_what_would_fill_the_disk_is_ended(tmp_path: Path) -> None:
    endless = "while True: print('x' * 1000)"
    done = run_to_files(
        (sys.executable, "-c", endless), out=tmp_path / "o", err=tmp_path / "e", timeout=30, most=100_000
    )
    assert done.truncated
    assert done.rc != 0


@pytest.mark.parametrize("flood", [10_000, 300_000])
def test_of_a_flood_the_beginning_and_the_last_words_are_kept(flood: int) -> None:
    code = f"import sys; sys.stderr.write('first' + 'x' * {flood} + '\\nError: last')"
    done = run((sys.executable, "-c", code), cap=4000)
    assert (len(done.stderr), done.truncated) == (4000, True)
    assert done.err.startswith("first")
    assert done.err.endswith("\nError: last")


@pytest.mark.parametrize("leftovers", [True, False])
def test_what_a_program_left_in_its_session_is_ended_where_that_was_asked(tmp_path: Path, leftovers: bool) -> None:
    done = run(["sh", "-c", 'sleep 30 >/dev/null 2>&1 & echo "$!"'], leftovers=leftovers)
    left = int(done.out)
    try:
        command = Path(f"/proc/{left}/cmdline")  # of one that nobody has reaped yet it is empty
        assert (done.rc, command.exists() and bool(command.read_bytes())) == (0, not leftovers)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)
