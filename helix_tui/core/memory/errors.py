"""What can be wrong with a memory, in words and with what to do about it."""

from __future__ import annotations

from helix_tui.core.ground.errors import HelixError


class MemoryFault(HelixError):
    """The memory cannot do what was asked; nothing was lost."""


class DatabaseMissing(MemoryFault):
    """There is no database, and it was opened for reading only."""


class DatabaseBusy(MemoryFault):
    """Another process held the database for longer than we waited."""


class DatabaseCorrupt(MemoryFault):
    """The file is no SQLite database, or a damaged one."""


class DatabaseForeign(MemoryFault):
    """The file is a database of some other program."""


class DatabaseNewer(MemoryFault):
    """A later release of helix-tui has written it."""


class DatabaseReadOnly(MemoryFault):
    """It was opened for reading, or the disk does not let us write."""


class DatabaseFull(DatabaseReadOnly):
    """The disk has no room left: what is there can be read."""


class UnknownMemory(MemoryFault):
    """No memory has this name or id."""
