"""The one way to open an SQLite database in core (docs/security.md).

SQLite opens by name, so the database and the files that it opens beside it are proved before, and again afterwards. A
database in a repository's ``.helix`` is used only if it is this person's: they made it here, adopted or trusted it.
Whoever wrote the others chose what a rollback of their journal does.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from helix_tui.core.ground.files import RefusedFileError, text_of
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.own_folders import NotUsed, is_tracked, require_used
from helix_tui.core.ground.trust.person import Allowed
from helix_tui.core.ground.trust.work_tree import common_dir_above
from helix_tui.core.ground.writes import DATABASE, PATTERNS, make_folder, open_own, prove

MAX_VALUE_BYTES = 16 << 20
"""The longest text or blob of a row."""

_STEPS = 1_000_000
"""Steps of SQLite's machine between two looks."""
_MAX_LOOKS = 1_000
"""About ten seconds: the largest statement of ours takes a hundredth of it."""
_UNPACKED_NS = 100_000_000
"""An unpacked file has the time of its archive; one that SQLite wrote here changed when it was written."""


class Connection(sqlite3.Connection):
    """A connection on which no statement goes on without end."""

    looks = 0

    def execute(self, *words: Any) -> sqlite3.Cursor:
        """Run a statement, which has all steps to itself."""
        self.looks = 0
        return super().execute(*words)

    def takes_too_long(self) -> bool:
        """Called by SQLite every so many steps; ends the statement if true."""
        self.looks += 1
        return self.looks > _MAX_LOOKS


def connect(
    path: Path | None,
    *,
    timeout: float,
    how: str = "mode=rwc",
    triggers: Collection[str] = (),
    max_value: int = MAX_VALUE_BYTES,
    first: str = "",
) -> Connection:
    """Open a database; None is one in memory. Transactions are the caller's.

    Args:
        timeout: seconds to wait for another process.
        how: parameters of SQLite's URI; only ``mode=rwc`` creates the file.
        triggers: the statements of the triggers that it may have, as `plain` gives them.
        max_value: the longest value that is read or written.
        first: a statement that must precede the first look into the file.

    Raises:
        NotUsed: it is not this person's, has triggers or views of somebody else's, or is not a plain file.
        sqlite3.Error: it cannot be opened, or is not a database.
    """
    before = None if path is None else _admitted(path, create=how == "mode=rwc")
    target = ":memory:" if path is None else f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(
        target, timeout, isolation_level=None, check_same_thread=False, uri=True, factory=Connection
    )
    try:
        connection.set_progress_handler(connection.takes_too_long, _STEPS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max_value)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute(first)
        listed = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('trigger', 'view')")
        if foreign := [name for name, sql in listed if plain(str(sql)) not in triggers]:
            what = f"a trigger or view in it is somebody else's: {clean_line(str(foreign[0]), 80)}"
            raise _not_used(path, what, "Drop it with `sqlite3`, or move the file away.")
        if path is not None and _proved(path) != before:
            raise _not_used(path, "another file took its place", "Try again.")
    except BaseException:  # ctrl+c too must not leave the file open; it is raised again
        connection.close()
        raise
    return connection


def plain(statement: str) -> str:
    """A statement as it compares: without line breaks, and as SQLite keeps it."""
    return " ".join(statement.replace("IF NOT EXISTS ", "").split()).removesuffix(";")


def record_of(path: Path) -> Allowed | None:
    """The ledger's record of a database as it is now; None for one that a person named outside of any ``.helix``."""
    absolute = path.absolute()
    folder = next((folder for folder in absolute.parents if folder.name == ".helix"), None)
    if folder is None:
        return None
    # not the device: its number changes when disks are mounted anew
    number = str(os.lstat(absolute).st_ino)
    return Allowed("database", os.path.realpath(folder.parent), f"{absolute.relative_to(folder.parent)}", number)


def _admitted(path: Path, *, create: bool) -> tuple[int, int] | None:
    """The file's identity, once it is proved and this person's; None if there is none, and none is created."""
    require_used(path)
    if create:
        make_folder(path.parent)
    # before and after: another process may be making the database, or removing it with the files beside it
    earlier = _beside(path)
    proved = _proved(path)
    beside = _beside(path)
    if proved is None and create:
        if lone := [ending for ending in beside if ending in earlier]:
            raise _not_used(path, f"its {lone[0]} is there without it", f"Remove {path.name}{lone[0]}.")
        # entered before any other process can see it, which may have made it just now
        with suppress(FileExistsError), person.changed_ledger() as allowed:
            os.close(open_own(path, os.O_RDWR | os.O_EXCL))
            allowed += filter(None, [record_of(path)])
        proved = _proved(path)
    record = None if proved is None else record_of(path)
    if record is not None and not person.allows(record):
        _adopt(path, record, has_journal="-journal" in beside)
    return proved


def _beside(path: Path) -> list[str]:
    return [ending for ending in DATABASE[1:] if os.path.lexists(f"{path}{ending}")]


def _adopt(path: Path, record: Allowed, *, has_journal: bool) -> None:
    """Enter a database of an earlier release as this person's, if nobody else can have put it here."""
    git_dir, status = common_dir_above(path.parent), os.lstat(path)
    if not (
        person.attended
        and not has_journal
        and git_dir is not None
        and not is_tracked(Path(record.repository), ".helix", git_dir)
        and PATTERNS[0] in text_of(exclude := git_dir / "info" / "exclude").splitlines()
        and status.st_uid == os.lstat(exclude).st_uid == os.geteuid()
        and abs(status.st_ctime_ns - status.st_mtime_ns) < _UNPACKED_NS
    ):
        raise _not_used(
            path, "nothing shows that it is yours", "`helix-tui trust` adopts it, if you know who wrote it."
        )
    person.allow(record)
    person.note(f"{clean_line(str(path), 300)} is now entered as yours (`helix-tui trust --show`)")


def _proved(path: Path) -> tuple[int, int] | None:
    try:
        prove(path, endings=DATABASE)
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    except RefusedFileError as error:
        raise _not_used(path, f"{os.path.basename(str(error.filename))} is {error.strerror}", "Move it away.") from None
    return status.st_dev, status.st_ino


def _not_used(path: Path | None, why: str, advice: str) -> NotUsed:
    refusal = NotUsed(f"{clean_line(str(path), 300)} is not used: {why}", advice)
    person.note(f"{refusal.message}. {advice}")
    return refusal
