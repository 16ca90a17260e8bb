"""The one door to other programs: `start`.

A program is named by an absolute path, or by a name that `programs.program` finds on the person's PATH; there is no
shell. A Python program of ours is named by `programs.python_argv`.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from helix_tui.core.ground.processes.programs import program

Process = subprocess.Popen[bytes]
DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
TimeoutExpired = subprocess.TimeoutExpired
Words = Sequence[str | os.PathLike[str]]
Stream = int | IO[bytes] | None


def start(
    argv: Words,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    own_session: bool = True,
    keep: Sequence[int] = (),
) -> Process:
    """Start a program and return at once.

    Args:
        cwd: its folder; `programs.NEUTRAL` unless it is meant to work in the current one.
        own_session: whether ``ctrl+c`` in this terminal and its closing do not reach it; an editor needs the terminal.
        keep: file descriptors that it inherits.

    Raises:
        OSError: there is no such program, or it does not start.
    """
    words = tuple(os.fspath(word) for word in argv)
    path = program(words[0], env)
    if path is None:
        raise FileNotFoundError(errno.ENOENT, "no such program in an absolute folder of PATH", words[0])
    return subprocess.Popen(
        words,
        executable=path,
        cwd=cwd,
        env=None if env is None else dict(env),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=own_session,
        pass_fds=tuple(keep),
    )
