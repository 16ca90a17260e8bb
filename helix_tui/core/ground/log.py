"""The log: one file for all processes of a project, of bounded size, without secrets.

`begin` only notes where and how much; the standard library's ``logging`` is loaded, and a file opened, when
something is first logged. The file is ``.helix/logs/helix.log`` of the project where ``.helix`` exists
already and may be written, else ``logs/helix.log`` in the user's state folder.

Several processes write at once (console, loop, hooks, command line). One file keeps their records in order
of time: each record is one ``write`` on a descriptor opened with O_APPEND, which the kernel does not
interleave. Whoever finds the file full renames it under a lock (flock); the others see another inode under
its name and open that. What cannot be written, on a full or read-only disk, is dropped: the log never breaks
what it tells of.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logging import Logger

NAME = "helix.log"
LEVELS = ("debug", "info", "warning", "error", "off")
"""What HELIX_LOG may say; anything else is taken for ``info``."""

_where: dict[str, Any] = {}
"""What `begin` was told; empty before that, and then nothing is written."""
_file: Any = None
"""The handler, once something was logged."""


def begin(directory: Path, *, process: str, read_only: bool = False, debug: bool = False) -> None:
    """Say whose log this is. Costs nothing: no file is touched before something is logged.

    Args:
        directory: where the project is looked for, upwards.
        process: what this process is, e.g. ``console`` or ``queue``.
        read_only: never write under the project.
        debug: log everything, whatever HELIX_LOG says.
    """
    end()
    level = "debug" if debug else os.environ.get("HELIX_LOG", "").strip().lower()
    _where.update(
        directory=directory,
        process=process,
        read_only=read_only,
        level=level if level in LEVELS else "info",
    )


def end() -> None:
    """Let go of the file and write nowhere until `begin`."""
    global _file
    if _file is not None:
        import logging

        logging.getLogger("helix").removeHandler(_file)
        _file.close()
        _file = None
    _where.clear()


def logger(name: str) -> Logger:
    """The logger ``helix.<name>``. Without `begin`, or with HELIX_LOG=off, it writes nowhere."""
    import logging

    if _file is None:
        _open(logging.getLogger("helix"))
    return logging.getLogger(f"helix.{name}")


def _open(root: Logger) -> None:
    import logging

    global _file
    logging.raiseExceptions = False
    root.propagate = False
    if not _where or _where["level"] == "off":
        if not root.handlers:
            root.addHandler(logging.NullHandler())
        root.setLevel(logging.CRITICAL + 1)
        return
    from helix_tui.core.ground.log_file import LogFile

    _file = LogFile(log_file(), _where["process"])
    root.addHandler(_file)
    root.setLevel(getattr(logging, _where["level"].upper()))


def log_file() -> Path:
    """Where this process logs, whether or not anything was logged yet."""
    folder = None if _where.get("read_only") else _project_folder(_where.get("directory"))
    return (folder or state_folder()) / "logs" / NAME


def shown_file() -> str:
    """The same for a sentence: from the project's folder or the home on, where the file lies under it."""
    path = log_file()
    directory = _where.get("directory")
    above = [directory, *directory.parents] if directory is not None else []
    for folder in above:
        if path.parent.parent == folder / ".helix":
            return str(path.relative_to(folder))
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def state_folder() -> Path:
    """The user's state folder of this product."""
    from platformdirs import user_state_path

    return user_state_path("helix-tui", appauthor=False)


def _project_folder(directory: Path | None) -> Path | None:
    """``.helix`` of the project that a folder belongs to, where it stands and may be written."""
    if directory is None:
        return None
    for folder in (directory, *directory.parents):
        helix = folder / ".helix"
        if helix.is_dir():
            return helix if os.access(helix, os.W_OK) else None
        if (folder / ".git").exists() or (folder / ".ddx").exists():
            return None
    return None


def program(argv: Sequence[str], how: str, seconds: float, room: str = "process") -> None:
    """Log a program that was run: what it was asked, how it ended, how long it took; no texts."""
    logger(room).info("%s: %s in %.0f ms", masked(argv), how, seconds * 1000)


# --- command lines ----------------------------------------------------------------------------------------

_TEXT_FLAG = re.compile(
    r"^--?(?:m|message|title|description|acceptance|notes?|set|unset|reason|body|comment|content|labels?"
    r"|append-system-prompt|system-prompt|prompt|p|text|summary|where|q|query|c)$"
)
"""Options whose value may be a text that somebody wrote."""
_SAFE_WORD = re.compile(r"^(?:-{1,2}[\w-]+|[a-z][a-z-]{0,24}|[\w.@^~:/+-]*[0-9/][\w.@^~:/+-]*)$")
"""A flag, a verb, an id, a revision or a path."""
_FREE_TEXT_AFTER = {"create", "ask", "note", "comment"}
"""Verbs whose next words are a text."""


def masked(argv: Sequence[str]) -> str:
    """A command line for the log: program, verbs, flags, ids and paths stay, texts become their length."""
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
