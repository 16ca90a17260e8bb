"""Programs that helix-tui starts: its own executables, however it was installed, and the limits on each.

None outlives the caller, none reads the terminal, each has a time limit.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from helix_tui.cli.call import CliError
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.processes.programs import program, python_argv
from helix_tui.core.ground.processes.start import PIPE, Process, TimeoutExpired, start
from helix_tui.core.ground.text import clean_block


def helix_tui() -> list[str]:
    """The words that start this program once more, from any folder."""
    return [*python_argv("helix_tui")]


def helix_ddx() -> list[str]:
    """The words that start the simulation and the embedded tracker."""
    return [*python_argv("helix_ddx")]


def helix_ddx_file() -> str | None:
    """The same as one executable, if it is installed beside this Python."""
    return program(os.path.abspath(Path(sys.executable).with_name("helix-ddx")))


def quiet_environment() -> dict[str, str]:
    """The environment without variables that would point a child program at another project's records."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DDX_", "GIT_"))}


def last_words(output: bytes) -> str:
    """The last words that a failing program printed."""
    text = clean_block(output.decode("utf-8", "replace"), 20_000)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it printed nothing"


def finish(command: Sequence[str], *, cwd: Path, env: dict[str, str], timeout: float) -> str:
    """Run one of these programs to its end and return what it printed.

    Raises:
        CliError: it failed, or took too long.
    """
    with running(command, cwd=cwd, env=env) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except TimeoutExpired:
            raise CliError(
                f"{command[-1]} took more than {timeout:.0f} s", "Try again when the machine is less busy."
            ) from None
    if process.returncode:
        raise CliError(
            f"{' '.join(command[4:6])} failed: {last_words(err)}",
            "Is git on PATH? `git --version` shows it.",
        )
    return out.decode("utf-8", "replace")


@contextmanager
def running(command: Sequence[str], *, cwd: Path, env: dict[str, str], log: int = PIPE) -> Iterator[Process]:
    """A program in its own process group, which is ended when the block exits, however it exits."""
    process = start(command, cwd=cwd, env=env, stdout=log, stderr=log)
    begun = time.monotonic()
    try:
        yield process
    finally:
        stop(process)
        logs.program(command, f"rc {process.returncode}", time.monotonic() - begun)


def stop(process: Process, patience: float = 3.0) -> None:
    """End a program and everything that it started, first with SIGTERM."""
    from helix_tui.core.ground.processes.family import end, family  # most end by themselves

    for _ in range(2):  # again, for processes started in the meantime
        members = family(process.pid)
        # already reaped, and the pid now belongs to another process: nothing of its session is left
        if process.returncode is not None and any(member.pid == process.pid for member in members):
            break
        end(members, signs=((signal.SIGTERM, patience),))
    process.wait(patience)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()


@contextmanager
def tidy_when_killed() -> Iterator[None]:
    """Turn SIGHUP or SIGTERM into an ordinary exit, so that ``finally`` blocks run."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
