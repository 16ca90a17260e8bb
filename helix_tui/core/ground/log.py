"""The log: one file for all processes of a project, of bounded size, without secrets.

`begin` only records where and how much to log; the file opens at the first record. It is
``.helix/logs/helix.log`` of the project where ``.helix`` exists already and may be written, else ``logs/helix.log`` in
the user's state folder.

Several processes write at once (console, loop, hooks, command line). One file keeps their records in order of time:
each record is one ``write`` on a descriptor opened with O_APPEND, which the kernel does not interleave. A process that
finds the file full renames it under a lock (flock); the others notice the new inode and reopen the file. What cannot be
written, on a full or read-only disk, is dropped: logging never breaks the program.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from helix_tui.core.ground.files import status_of
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.text import clean_block, counted
from helix_tui.core.ground.trust.person import state_folder
from helix_tui.core.ground.writes import open_own, rename

NAME = "helix.log"
LEVELS = ("debug", "info", "warning", "error", "off")
"""Values of HELIX_LOG; anything else means ``info``."""

_where: dict[str, Any] = {}
"""The arguments of `begin`; empty before it is called, and then nothing is written."""
_file: Any = None
"""The handler, once something has been logged."""

_TEXT_FLAG = re.compile(
    r"^--?(?:m|message|title|description|acceptance|notes?|set|unset|reason|body|comment|content|labels?"
    r"|append-system-prompt|system-prompt|prompt|p|text|summary|where|q|query|c)$"
)
"""Options whose value may be free text."""

_SAFE_WORD = re.compile(r"^(?:-{1,2}[\w-]+|[a-z][a-z-]{0,24}|[\w.@^~:/+-]*[0-9/][\w.@^~:/+-]*)$")
"""Matches a flag, a verb, an id, a revision or a path."""

_FREE_TEXT_AFTER = {"create", "ask", "note", "comment"}
"""Verbs whose arguments are free text."""

MAX_BYTES = 1 << 20
"""Size at which the file is rotated, in bytes."""

BACKUPS = 4
"""Rotated files that are kept; helix.log.1 is the newest. All files together take at most 5 MiB."""

MAX_RECORD = 32 << 10
"""Characters of one record, its trace included; the middle of a longer record is left out."""

RETRY_S = 30.0
"""Seconds until an unwritable file is tried again."""


def begin(directory: Path, *, process: str, read_only: bool = False, debug: bool = False) -> None:
    """Configure the log of this process. Touches no file before the first record.

    Args:
        directory: where the search for the project starts, upwards.
        process: what this process is, e.g. ``console`` or ``queue``.
        read_only: never write under the project.
        debug: log everything, whatever HELIX_LOG says.
    """
    end()
    level = "debug" if debug else os.environ.get("HELIX_LOG", "").strip().lower()
    _where.update(directory=directory, process=process, read_only=read_only, level=level if level in LEVELS else "info")


def end() -> None:
    """Close the file and log nothing until `begin` is called again."""
    global _file
    if _file is not None:
        logging.getLogger("helix").removeHandler(_file)
        _file.close()
        _file = None
    _where.clear()


def logger(name: str) -> logging.Logger:
    """The logger ``helix.<name>``. Without `begin`, or with HELIX_LOG=off, it writes nowhere."""
    if _file is None:
        _open(logging.getLogger("helix"))
    return logging.getLogger(f"helix.{name}")


def _open(root: logging.Logger) -> None:
    global _file
    # otherwise logging prints failed records to stderr, over the console
    logging.raiseExceptions = False
    root.propagate = False
    if not _where or _where["level"] == "off":
        if not root.handlers:
            root.addHandler(logging.NullHandler())
        root.setLevel(logging.CRITICAL + 1)
        return

    _file = LogFile(log_file(), _where["process"])
    root.addHandler(_file)
    root.setLevel(getattr(logging, _where["level"].upper()))


def log_file() -> Path:
    """Where this process logs, whether or not the file exists yet."""
    directory = _where.get("directory")
    if directory is not None and not _where.get("read_only"):
        helix = find_project(directory).helix_dir
        if os.path.isdir(helix) and os.access(helix, os.W_OK):
            return helix / "logs" / NAME
    return state_folder() / "logs" / NAME


def shown_file() -> str:
    """The log file for a message: relative to the project or the home folder where it is inside one."""
    path = log_file()
    directory = _where.get("directory")
    above = [directory, *directory.parents] if directory is not None else []
    for folder in above:
        if path.parent.parent == folder / ".helix":
            return str(path.relative_to(folder))
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def program(argv: Sequence[str], how: str, seconds: float, room: str = "process") -> None:
    """Log a program that was run: its command line without texts, how it ended and how long it took."""
    logger(room).info("%s: %s in %.0f ms", masked(argv), how, seconds * 1000)


# --- command lines ----------------------------------------------------------------------------------------


def masked(argv: Sequence[str]) -> str:
    """A command line for the log: free text is replaced by its length."""
    shown = [os.path.basename(argv[0])] if argv else []
    text_next = free = False
    for word in argv[1:]:
        flag, equals, value = word.partition("=")
        if text_next or not _SAFE_WORD.match(flag if equals else word) or (free and not word.startswith("-")):
            shown.append(f"<{len(word)} chars>")
            text_next = False
        elif equals:
            shown.append(f"{flag}=<{len(value)} chars>")
        else:
            shown.append(word)
            text_next = bool(_TEXT_FLAG.match(word))
            free = free or word in _FREE_TEXT_AFTER
    return " ".join(shown)


def scrubbed(text: str) -> str:
    """A text without secrets and control characters, fit to be stored and shared."""
    # their fifty expressions take 20 ms to compile, and most commands log nothing
    from helix_tui.core.ground.secret_rules import secrets

    parts, at = [], 0
    for rule, start, end in sorted(secrets(text), key=lambda place: place[1:]):
        if start >= at:
            parts += [text[at:start], f"[redacted: {rule}]"]
            at = end
    return clean_block("".join((*parts, text[at:])))


class LogFile(logging.Handler):
    """A handler that appends to a file shared with other processes and rotates it when it is full."""

    def __init__(self, path: Path, process: str) -> None:
        super().__init__()
        self.path = path
        self.setFormatter(_Format(process))
        self._fd = -1
        self._inode = -1
        self._resting_until = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, or drop it if that fails."""
        if time.monotonic() < self._resting_until:
            return
        try:
            data = _shortened(scrubbed(self.format(record))).encode("utf-8", "replace") + b"\n"
            self._append(data)
        except Exception:  # noqa: BLE001 - whatever is wrong with a record or a disk, the program goes on
            self._resting_until = time.monotonic() + RETRY_S
            self._let_go()

    def close(self) -> None:
        """Close the file."""
        self._let_go()
        super().close()

    def _append(self, data: bytes) -> None:
        if self._size() + len(data) > MAX_BYTES:
            self._put_aside()
        os.write(self._fd, data)

    def _size(self) -> int:
        """The size of the log file, reopened if another process has rotated it."""
        if self._fd < 0 or not self._is_ours():
            self._let_go()
            self._open()
        return os.fstat(self._fd).st_size

    def _open(self) -> None:
        self._fd = open_own(self.path, os.O_WRONLY | os.O_APPEND)
        self._inode = os.fstat(self._fd).st_ino

    def _let_go(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                os.close(self._fd)
        self._fd = self._inode = -1

    def _put_aside(self) -> None:
        with self._locked() as ours:
            # another process may have rotated it before we got the lock
            if ours and self._is_ours():
                # the oldest first, as each takes the name of the one before
                for number in range(BACKUPS, 0, -1):
                    older = f"{self.path.name}.{number}"
                    younger = f"{self.path.name}.{number - 1}" if number > 1 else self.path.name
                    with contextlib.suppress(FileNotFoundError):
                        rename(self.path.with_name(younger), older)
        self._size()

    def _is_ours(self) -> bool:
        """Whether the log file is still the open one: another process may have rotated it."""
        status = status_of(self.path)
        return status is not None and status.st_ino == self._inode

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Take the lock for rotating, if it is free; a process that does not get it goes on writing."""
        lock = open_own(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR)
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
            f"%(asctime)s.%(msecs)03dZ %(levelname)s {process}[%(process)d] %(where)s: %(message)s", "%Y-%m-%dT%H:%M:%S"
        )

    def format(self, record: logging.LogRecord) -> str:
        record.where = record.name.removeprefix("helix.")
        return super().format(record).replace("\n", "\n    ")


def _shortened(text: str) -> str:
    if len(text) <= MAX_RECORD:
        return text
    half = MAX_RECORD // 2
    return f"{text[:half]}\n    … {counted(len(text) - 2 * half, 'character')} left out …\n{text[-half:]}"
