"""Programs that we start: none outlives us, none reads our terminal, each has a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from helix_tui.cli.call import CliError
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.text import clean_block


def last_words(text: str) -> str:
    """What a failing program said at the very end."""
    lines = [line.strip() for line in clean_block(text, 20_000).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it said nothing"


def finish(command: Sequence[str], *, cwd: Path, env: dict[str, str], timeout: float) -> str:
    """Run a program of ours to its end and return what it printed.

    Raises:
        CliError: it failed, or took too long.
    """
    with running(command, cwd=cwd, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise CliError(f"{command[-1]} took more than {timeout:.0f} s", "Try again on a quieter machine.") from None
    if process.returncode:
        raise CliError(
            f"{' '.join(command[1:4])} failed: {last_words(err)}", "Is git on PATH? `git --version` shows it."
        )
    return out


@contextmanager
def running(
    command: Sequence[str], *, cwd: Path, env: dict[str, str], log: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """A program in a process group of its own, which is gone when the block ends however it ends."""
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    begun = time.monotonic()
    try:
        yield process
    finally:
        stop(process)
        logs.program(command, f"rc {process.returncode}", time.monotonic() - begun)


def stop(process: subprocess.Popen[str], patience: float = 3.0) -> None:
    """End a program and everything that it started, first politely."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        except PermissionError:
            break  # the group has ended and its number belongs to somebody else
        try:
            process.wait(patience)
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait(patience)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


@contextmanager
def tidy_when_killed() -> Iterator[None]:
    """Turn a hang-up or a polite kill into an ordinary exit, so that ``finally`` blocks run."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
