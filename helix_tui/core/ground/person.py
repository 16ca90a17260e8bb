"""This person's state folder, and the ledger in it: what the person allowed of a repository (docs/security.md).

The ledger is ``trust.json``. An entry names one thing of one repository exactly; what has no entry is not allowed. A
ledger that cannot be read allows nothing.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import FOLDER_FLAGS, open_file

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


class Ledger(Struct, frozen=True):
    """All entries, oldest first, and why the file could not be read, if it could not."""

    allowed: tuple[Allowed, ...] = ()
    problem: str = ""


attended = False
"""Whether a person watches this process at a terminal: only then may what looks like theirs be entered as theirs."""

_notes: dict[str, None] = {}


def note(line: str) -> None:
    """Say a line to the person once, on whatever face this process has: stderr, or the console's notices."""
    _notes.setdefault(line)


def notes() -> tuple[str, ...]:
    """The lines so far, oldest first."""
    return tuple(_notes)


def forget_notes() -> None:
    """Begin anew, as in another process."""
    _notes.clear()


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


def load() -> Ledger:
    """The ledger as it is now; one that is missing, or that cannot be read, allows nothing."""
    path = state_folder() / LEDGER
    try:
        with open_file(path) as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise ValueError("it is not a file that only you can write")
            allowed = _decoder.decode(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return Ledger()
    except (OSError, ValueError) as error:
        problem = f"{path} is not used, so nothing is allowed: {error}"
        note(problem)
        return Ledger(problem=problem)
    return Ledger(allowed)


def allows(entry: Allowed) -> bool:
    """Whether exactly this is allowed."""
    if entry in load().allowed:
        return True
    # another process may be entering it just now
    with suppress(OSError), _locked(state_folder()):
        return entry in load().allowed
    return False


def allow(*entries: Allowed) -> None:
    """Allow these; each takes the place of an older entry for the same subject.

    Raises:
        LedgerUnreadable: the ledger exists and cannot be read.
        OSError: it cannot be written.
    """
    _change(lambda entry: True, lambda: entries)


def allow_new(make: Callable[[], Allowed | None]) -> None:
    """Make something, and allow it before any other process can ask.

    Raises:
        LedgerUnreadable: the ledger exists and cannot be read.
        OSError: it cannot be made, or the ledger cannot be written.
    """
    _change(lambda entry: True, lambda: filter(None, [make()]))


def revoke(repository: str, *kinds: Kind) -> None:
    """Forget what was allowed of a repository: these kinds, or everything.

    Raises:
        LedgerUnreadable: the ledger exists and cannot be read.
        OSError: it cannot be written.
    """
    _change(lambda entry: entry.repository != repository or bool(kinds and entry.kind not in kinds), tuple)


def _change(stays: Callable[[Allowed], bool], make: Callable[[], Iterable[Allowed]]) -> None:
    folder = state_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(folder):
        ledger = load()
        if ledger.problem:
            raise LedgerUnreadable(ledger.problem)
        # the newest entry for a subject takes the place of the older
        entries = {(entry.kind, entry.repository, entry.subject): entry for entry in filter(stays, ledger.allowed)}
        entries |= {(entry.kind, entry.repository, entry.subject): entry for entry in make()}
        fresh = folder / f".{LEDGER}"
        # under the lock only one process has this name; what a killed one left is written over
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode([*entries.values()][-_MAX_ENTRIES:])))
            file.flush()
            os.fsync(descriptor)
        os.replace(fresh, folder / LEDGER)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, FOLDER_FLAGS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


_decoder = msgspec.json.Decoder(tuple[Allowed, ...])
