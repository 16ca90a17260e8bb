"""What leaves helix-ddx: every byte that it puts on disk, and every other program that it starts.

Bytes go through a ``Disk``, whose watchers hear of each write, as JSON in Go's spelling. Programs are git, a project's
hook and another tracker's export.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Watcher = Callable[[str, Path, str], None]
"""Called with the operation (create, append, replace, delete), the path and the text that was written."""


class Disk:
    """Writes files as DDx does, and tells its watchers."""

    def __init__(self, *watchers: Watcher, durable: bool = False) -> None:
        self.watchers = list(watchers)
        self.durable = durable

    def replace(self, path: Path, text: str) -> None:
        """Write the whole file beside its place and rename it there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        # named as DDx names it: whoever breaks a dead owner's lock removes such files by its pid
        beside = path.with_name(f"{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with open(beside, "w", encoding="utf-8", newline="") as out:
                out.write(text)
                if self.durable:
                    out.flush()
                    os.fsync(out.fileno())
            beside.replace(path)
        # ctrl+c too must not leave the file beside; it is raised again
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        self._tell("replace" if existed else "create", path, text)

    def create(self, path: Path, text: str = "") -> None:
        """Write a file in place, as logs begin."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        self._tell("create", path, text)

    def append(self, path: Path, text: str) -> None:
        """Add whole lines to a log with one write; the first one creates it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        existed = path.exists()
        with open(path, "a", encoding="utf-8", newline="") as out:
            out.write(text)
        self._tell("append" if existed else "create", path, text)

    def delete(self, path: Path) -> None:
        """Remove a file; that it is gone already is no error."""
        try:
            path.unlink()
        except FileNotFoundError:
            return
        self._tell("delete", path, "")

    def delete_tree(self, folder: Path) -> None:
        """Remove a folder with all that is in it; the watchers hear of each file."""
        if not folder.exists():
            return
        # listed before it goes, and only for somebody who listens
        gone = sorted(path for path in folder.rglob("*") if not path.is_dir()) if self.watchers else []
        shutil.rmtree(folder)
        for path in gone:
            self._tell("delete", path, "")

    def _tell(self, op: str, path: Path, text: str) -> None:
        for watcher in self.watchers:
            watcher(op, path, text)


_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def go_json(value: Any, *, sort: bool = False, indent: int | None = None) -> str:
    """JSON as Go's encoding/json writes it: compact, ``<>&`` and line separators escaped."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, sort_keys=sort, indent=indent, separators=separators)
    return text.translate(_HTML)


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
