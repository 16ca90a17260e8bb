"""Other programs that the tracker starts: git, a project's hook, another tracker's export.

In a module of its own, because most commands start none and the machinery takes its time to load.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path


class OtherError(Exception):
    """A program could not be started, did not answer in time, or refused."""


def ask(argv: Sequence[str], folder: Path, *, given: bytes = b"", timeout: float) -> tuple[int, bytes, str]:
    """Run a program; its exit code, its output, and what it said beside it.

    Raises:
        OtherError: it cannot be started or takes too long.
    """
    try:
        done = subprocess.run(list(argv), cwd=folder, input=given, capture_output=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise OtherError(f"no answer after {timeout:g} s") from None
    except OSError as error:
        raise OtherError(error.strerror or str(error)) from None
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()


def git(folder: Path, *words: str, timeout: float = 30) -> str:
    """Run a git command that must succeed; its output.

    Raises:
        OtherError: it did not; the message is as DDx puts it.
    """
    try:
        code, out, said = ask(["git", *words], folder, timeout=timeout)
    except OtherError as problem:
        raise OtherError(f"git {words[0]} failed: {problem}") from None
    if code:
        said = said or out.decode("utf-8", "replace").strip()
        raise OtherError(f"git {words[0]} failed: exit status {code}\n{said}")
    return out.decode("utf-8", "replace").strip()


def hook(path: Path, record: bytes, *, timeout: float) -> tuple[int, str]:
    """Give a record to a hook; its exit code and what it said.

    Raises:
        OtherError: it cannot be started or takes too long.
    """
    code, _, said = ask([os.fspath(path)], Path.cwd(), given=record, timeout=timeout)
    return code, said
