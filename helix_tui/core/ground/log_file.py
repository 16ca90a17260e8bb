"""The file that the log is written to; loaded when something is first logged."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

from helix_tui.core.ground.helix_folder import make_folder
from helix_tui.core.ground.secret_rules import secrets
from helix_tui.core.ground.text import clean_block

MAX_BYTES = 1 << 20
"""Size at which the file is put aside, in bytes."""

BACKUPS = 4
"""Older files that are kept: helix.log.1 is the youngest. All together take 5 MiB at most."""

MAX_RECORD = 32 << 10
"""Characters of one record, its trace included; the middle of a longer one is left out."""
RETRY_S = 30.0
"""Seconds after which a file that could not be written is tried again."""


def scrubbed(text: str) -> str:
    """A text without secrets and without control characters, as it may be kept and sent to others."""
    parts, at = [], 0
    for rule, start, end in sorted(secrets(text), key=lambda place: place[1:]):
        if start >= at:
            parts += [text[at:start], f"[redacted: {rule}]"]
            at = end
    return clean_block("".join((*parts, text[at:])))


class LogFile(logging.Handler):
    """Appends to one file that other processes append to as well, and puts it aside when it is full."""

    def __init__(self, path: Path, process: str) -> None:
        super().__init__()
        self.path = path
        self.setFormatter(_Format(process))
        self._fd = -1
        self._inode = -1
        self._resting_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, or drop it where that cannot be done."""
        if time.monotonic() < self._resting_until:
            return
        try:
            data = _shortened(scrubbed(self.format(record))).encode("utf-8", "replace") + b"\n"
            self._append(data)
        except Exception:  # noqa: BLE001 - whatever is wrong with a record or a disk, the program goes on
            self._resting_until = time.monotonic() + RETRY_S
            self._let_go()

    def close(self) -> None:
        """Let go of the file."""
        self._let_go()
        super().close()

    def _append(self, data: bytes) -> None:
        if self._size() + len(data) > MAX_BYTES:
            self._put_aside()
        os.write(self._fd, data)

    def _size(self) -> int:
        """The size of the file under our name, opened anew where another process has put it aside."""
        if self._fd < 0 or not self._is_ours():
            self._let_go()
            self._open()
        return os.fstat(self._fd).st_size

    def _open(self) -> None:
        if not self.path.parent.is_dir():
            make_folder(self.path.parent)
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._inode = os.fstat(self._fd).st_ino

    def _let_go(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = self._inode = -1

    def _put_aside(self) -> None:
        with self._locked() as ours:
            if ours and self._is_ours():
                for number in range(BACKUPS, 0, -1):
                    older = self.path.with_name(f"{self.path.name}.{number}")
                    younger = f"{self.path.name}.{number - 1}" if number > 1 else self.path.name
                    with contextlib.suppress(FileNotFoundError):
                        os.replace(self.path.with_name(younger), older)
        self._size()

    def _is_ours(self) -> bool:
        """Whether the file under our name is the open one: another process may have put it aside just now."""
        try:
            return os.stat(self.path).st_ino == self._inode
        except FileNotFoundError:
            return False

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Whether it is ours to put the file aside; whoever does not get the lock writes on."""
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)


class _Format(logging.Formatter):
    """``2026-08-21T22:00:28.123Z INFO console[4711] process: git status, rc 0, 12 ms``"""

    converter = staticmethod(time.gmtime)

    def __init__(self, process: str) -> None:
        super().__init__(
            f"%(asctime)s.%(msecs)03dZ %(levelname)s {process}[%(process)d] %(where)s: %(message)s",
            "%Y-%m-%dT%H:%M:%S",
        )

    def format(self, record: logging.LogRecord) -> str:
        record.where = record.name.removeprefix("helix.")
        return super().format(record).replace("\n", "\n    ")


def _shortened(text: str) -> str:
    if len(text) <= MAX_RECORD:
        return text
    half = MAX_RECORD // 2
    return f"{text[:half]}\n    … {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
