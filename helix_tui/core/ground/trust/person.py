"""This person's state folder, and the ledger in it: what the person allowed of a repository (docs/security.md).

The ledger is ``trust.json``. An entry names one thing of one repository exactly; what has no entry is not allowed. A
ledger that cannot be read allows nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import locked_folder, open_file, put

LEDGER = "trust.json"

Kind = Literal["database", "folder", "run"]
"""A database that is this person's, a folder of ours that git tracks or another user owns, what may be run."""

_MAX_BYTES = 8 << 20
_MAX_ENTRIES = 5_000
"""Older entries are dropped: temporary projects leave one each."""


class Allowed(Struct, frozen=True):
    """One thing of one repository that this person allowed."""

    kind: Kind
    repository: str
    """The repository's real path."""
    subject: str = ""
    """What is allowed, within the repository: a file, a folder, a command; "" for all that is not kept by content."""
    digest: str = ""
    """What identifies the subject: a digest of its content, or a file's number; "" where its name suffices."""


attended = False
"""Whether a person watches this process at a terminal: only then may what looks like theirs be entered as theirs."""

_notes: dict[str, None] = {}
"""The lines for the person so far."""


def note(line: str) -> None:
    """Say a line to the person once, on whatever face this process has: stderr, or the console's notices."""
    _notes.setdefault(line)


def notes() -> tuple[str, ...]:
    """The lines so far, oldest first."""
    return tuple(_notes)


class LedgerUnreadable(HelixError):
    """The ledger cannot be read, so nothing may be added."""

    advice = "Repair the file, or move it away; then allow again what you need."


def state_folder(env: Mapping[str, str] | None = None) -> Path:
    """This product's folder of this person's state, always absolute: a repository must not stand in for it."""
    env = os.environ if env is None else env
    base = env.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        # "/" keeps what the environment gives absolute: a relative one would be looked for in the repository
        base = os.path.join("/", env.get("HOME") or os.path.expanduser("~"), ".local", "state")
    return Path(base, "helix-tui")


def load() -> list[Allowed]:
    """All entries as they are now, oldest first; a ledger that is missing, or that cannot be read, allows nothing."""
    try:
        return _read()
    except LedgerUnreadable as error:
        note(error.message)
        return []


def _read() -> list[Allowed]:
    path = state_folder() / LEDGER
    try:
        with open_file(path) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise ValueError("it is not a file that only you can write")
            return _decoder.decode(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise LedgerUnreadable(f"{path} is not used, so nothing is allowed: {error}") from None


def allows(entry: Allowed) -> bool:
    """Whether exactly this is allowed."""
    if entry in load():
        return True
    # another process may be entering it just now
    with suppress(OSError), locked_folder(state_folder()):
        return entry in load()
    return False


@contextmanager
def changed_ledger() -> Iterator[list[Allowed]]:
    """All entries, to be changed in the block: no other process can ask meanwhile.

    Raises:
        LedgerUnreadable: the ledger exists and cannot be read.
        OSError: it cannot be written.
    """
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked_folder(folder):
        allowed = _read()
        yield allowed
        # the newest entry for a subject takes the place of the older
        entries = {(entry.kind, entry.repository, entry.subject): entry for entry in allowed}
        put(folder / LEDGER, msgspec.json.format(msgspec.json.encode([*entries.values()][-_MAX_ENTRIES:])), 0o600)


def allow(*entries: Allowed) -> None:
    """Allow these; each takes the place of an older entry for the same subject (see `changed_ledger`)."""
    with changed_ledger() as allowed:
        allowed += entries


def revoke(repository: str) -> None:
    """Forget everything that was allowed of a repository (see `changed_ledger`)."""
    with changed_ledger() as allowed:
        allowed[:] = [entry for entry in allowed if entry.repository != repository]


_decoder = msgspec.json.Decoder(list[Allowed])
