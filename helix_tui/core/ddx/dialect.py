"""What the ddx at hand does: asked once per binary, kept by its content, and never guessed.

Three things are told apart (rulings.md 39): the era of a record, the era of a tracker, and the release of
the ddx at hand. This is the third: what its help names and what a trial on a throw-away queue proved. Nothing
asks which release it is.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.beads.rule import APRIL as APRIL_RULE
from helix_tui.core.beads.rule import HEAD as HEAD_RULE
from helix_tui.core.beads.rule import Rule
from helix_tui.core.ddx.files import read_bytes, stamp_of
from helix_tui.core.ddx.names import Era
from helix_tui.core.project import find_ddx, user_cache_dirs

NO_TRIAL = "HELIX_DDX_TRIAL"
"""Set to ``off``, nothing is tried: what the help does not say is then taken from the tracker."""

_VERSION = 1
"""Of the kept file; another one is written anew."""

_MAX_SCRIPT = 1 << 20
_EMBEDDED = b"helix_tui.core.tracker"


@dataclass(frozen=True, slots=True)
class Gate:
    """Something in a row for which a ddx refuses every command."""

    kind: str
    """``label`` or ``status``."""
    word: str
    code: str
    """DDx's own name of the refusal."""
    command: str
    """What DDx names as the way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What one ddx does with a queue."""

    rule: Rule
    """Which rows a worker may pick."""
    lifecycle: bool
    """Each change of status is checked; there are blocked, proposed and cancelled."""
    leases: bool
    """A claim writes a lease file beside the repository."""
    claim_in_row: bool
    """A claim writes who and since when into the row."""
    rank_is_number: bool
    """``--set queue-rank=3`` is stored as a number, else as text."""
    gives_out_waiting: bool
    """A bead whose dependencies are open can be claimed."""
    closes_waiting: bool
    """… and closed."""
    waits_on_parents: bool
    """A bead may wait for one above it in the tree."""
    closes_superseded: bool
    """Closing a bead closes those that it replaces."""
    closes_ineligible: bool
    """Closing the last child closes a parent that no worker may pick."""
    closes_epics: bool
    """… and an epic."""
    climbs: bool
    """… and what is above that."""
    cancelled_counts: bool
    """A cancelled child counts as finished there."""
    gates: tuple[Gate, ...] = ()
    drain: tuple[str, ...] = ("work",)
    """How it drains the queue, after ``ddx``."""
    rank: bool = True
    """It orders beads inside a priority (``bead queue``)."""
    depends_on: bool = True
    """``bead create`` takes ``--depends-on``."""
    blocker_reason: bool = True
    """``bead update`` takes ``--external-blocker-reason``."""
    proven: bool = True
    """A trial proved it; else it follows from the help alone."""

    @property
    def family(self) -> Era:
        """The family of words and statuses, for what has to speak them."""
        return self.rule.name

    @property
    def kept_heartbeat(self) -> str:
        """The heartbeat key that letting go of a bead leaves in the row: one of the other family."""
        return "work-heartbeat-at" if not self.rule.new_keys else "execute-loop-heartbeat-at"


APRIL = Dialect(
    rule=APRIL_RULE,
    lifecycle=False,
    leases=False,
    claim_in_row=True,
    rank_is_number=False,
    gives_out_waiting=True,
    closes_waiting=True,
    waits_on_parents=True,
    closes_superseded=False,
    closes_ineligible=False,
    closes_epics=False,
    climbs=False,
    cancelled_counts=False,
    drain=("agent", "execute-loop"),
    rank=False,
    depends_on=False,
    blocker_reason=False,
)
"""The releases of April 2026, and the embedded tracker where it plays them."""

AUGUST = Dialect(
    rule=HEAD_RULE,
    lifecycle=True,
    leases=True,
    claim_in_row=False,
    rank_is_number=True,
    gives_out_waiting=False,
    closes_waiting=False,
    waits_on_parents=False,
    closes_superseded=True,
    closes_ineligible=True,
    closes_epics=True,
    climbs=True,
    cancelled_counts=True,
)
"""The releases of August 2026, and the embedded tracker where it plays them."""

FAMILIES: Mapping[Era, Dialect] = {"april": APRIL, "head": AUGUST}
"""What stands for a family where nothing more is known."""


def dialect_of(
    path: Path, root: Path, *, env: Mapping[str, str] | None = None, fallback: Era = "head"
) -> Dialect:
    """What a ddx does; the same object as long as its file is the same.

    Args:
        path: the executable.
        root: the project that it is used on.
        fallback: the family that is assumed where neither trial nor help tell.

    Raises:
        DdxError: it cannot be started, or does not give its help within a time.
    """
    env = os.environ if env is None else env
    key = _key(path, env, fallback)
    found = _seen.get(key) or _kept(path, env)
    if found is None:
        from helix_tui.core.ddx.trial import examine

        found = examine(path, root, env, fallback)
        book = _book(path, env)
        if found.proven and book is not None:
            _write(book, found)
    _seen[key] = found
    return found


def at_hand(explicit: str | None, root: Path, *, env: Mapping[str, str] | None = None) -> Dialect | None:
    """What the ddx of this machine is proven to do; None where there is none, or nothing is proven.

    Then the tracker's own era decides how its rows are judged.
    """
    env = os.environ if env is None else env
    path = find_ddx(explicit, env)
    if path is None:
        return None
    found = _seen.get(_key(path, env, "head")) or _kept(path, env)
    if found is None:
        from helix_tui.core.ddx.client import DdxError  # loads what starts programs

        try:
            found = dialect_of(path, root, env=env)
        except DdxError:  # whoever writes is told
            return None
    return found if found.proven else None


_seen: dict[tuple[object, ...], Dialect] = {}


def _key(path: Path, env: Mapping[str, str], fallback: Era) -> tuple[object, ...]:
    return os.fspath(path), stamp_of(path), env.get("HELIX_DDX_ERA", ""), env.get(NO_TRIAL, ""), fallback


def _kept(path: Path, env: Mapping[str, str]) -> Dialect | None:
    """What is known without starting anything."""
    own = embedded(path, env)
    if own is not None or env.get(NO_TRIAL) == "off":
        return own
    return _read(_book(path, env))


def embedded(path: Path, env: Mapping[str, str]) -> Dialect | None:
    """What an executable does that is our own embedded tracker; None for any other."""
    head = read_bytes(path, 4096) or b""
    if not head.startswith(b"#!") or _EMBEDDED not in head or b"HELIX_DDX_ERA" in head:
        return None
    return APRIL if env.get("HELIX_DDX_ERA") == "april" else AUGUST


# --- what is kept ----------------------------------------------------------------------------------------


def _book(path: Path, env: Mapping[str, str]) -> Path | None:
    """The file that keeps what is known of a binary: named by its content, which is hashed once a stamp."""
    cache = next((folder / "helix-tui" / "ddx" for folder in user_cache_dirs(env)), None)
    stamp = stamp_of(path)
    if cache is None or stamp is None:
        return None
    place = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]
    pointer = cache / f"at-{place}.json"
    known = _document(pointer)
    if known.get("stamp") == list(stamp) and isinstance(known.get("content"), str):
        content = str(known["content"])
    else:
        content = _digest(path)
        if not content:
            return None
        _replace(pointer, {"stamp": list(stamp), "content": content})
    behind = _behind(path, env)
    if behind:
        content = hashlib.sha256(f"{content}|{behind}".encode()).hexdigest()
    return cache / f"{content[:32]}.json"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _behind(path: Path, env: Mapping[str, str]) -> str:
    """What a script rests on beside its text: the files that it names, and the era that it may play."""
    raw = read_bytes(path, _MAX_SCRIPT) or b"" if (read_bytes(path, 2) or b"") == b"#!" else b""
    if not raw:
        return ""
    named = sorted(set(re.findall(rb"/[\w./@+-]+", raw)))[:64]
    stamps = [f"{os.fsdecode(name)}={stamp_of(os.fsdecode(name))}" for name in named]
    return "|".join((*stamps, env.get("HELIX_DDX_ERA", "")))


def _read(book: Path | None) -> Dialect | None:
    document = _document(book) if book is not None else {}
    if document.get("version") != _VERSION:
        return None
    try:
        return msgspec.convert(document.get("dialect"), Dialect)
    except msgspec.ValidationError:
        return None


def _write(book: Path, found: Dialect) -> None:
    told = {field.name: getattr(found, field.name) for field in fields(found)}
    _replace(book, {"version": _VERSION, "dialect": told})


def _document(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_bytes(path, 1 << 20) or b"null")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, document: Mapping[str, Any]) -> None:
    """Keep a document; where the cache cannot be written, the next process asks again."""
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(document))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
