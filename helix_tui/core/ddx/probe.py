"""Find the dialect of the installed ddx, once per binary; cached by its content in the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ddx.dialect import APRIL, AUGUST, NO_TRIAL, Dialect
from helix_tui.core.ddx.files import read_bytes, stamp_of
from helix_tui.core.ddx.names import Era
from helix_tui.core.ground.project import find_ddx, user_cache_dirs
from helix_tui.core.ground.recent import Recent

_VERSION = 7
"""Version of the cache file; another version is rewritten."""
_MAX_SCRIPT = 1 << 20
_EMBEDDED = b"helix_ddx"
_LACKS = re.compile(r"unknown (command|flag|shorthand)")
"""A trial that failed with this message always fails with this binary; other failures may be temporary."""


def dialect_of(path: Path, root: Path, *, env: Mapping[str, str] | None = None, fallback: Era = "head") -> Dialect:
    """The dialect of a ddx; the same object as long as its file is unchanged.

    Args:
        path: the executable.
        root: the project it is used on.
        fallback: the family assumed if neither trial nor help shows it.

    Raises:
        DdxError: it cannot be started, or does not print its help in time.
    """
    env = os.environ if env is None else env
    key = _key(path, env, fallback)
    if key in _seen:
        return _seen[key]
    found = _kept(path, env)
    if found is None:
        from helix_tui.core.ddx.trial import examine

        found = examine(path, root, env, fallback)
        book = _book(path, env)
        if (found.proven or _LACKS.search(found.doubt)) and book is not None:
            _write(book, found)
    _seen[key] = found
    return found


def at_hand(explicit: str | None, root: Path, *, env: Mapping[str, str] | None = None) -> Dialect | None:
    """The dialect of this machine's ddx; None if there is none or it does not answer.

    If no trial has ``proven`` its rule, rows are judged by the tracker's own era, as without a ddx (`rule_for`).
    """
    env = os.environ if env is None else env
    path = find_ddx(explicit, env)
    if path is None:
        return None
    found = _seen.get(_key(path, env, "head")) or _kept(path, env)
    if found is None:
        from helix_tui.core.ddx.client import DdxError  # imports the code that starts programs

        try:
            found = dialect_of(path, root, env=env)
        except DdxError:  # a write reports the error
            return None
    return found


_seen: Recent[tuple[object, ...], Dialect] = Recent(16)
"""By binary and its stamp: a console sees the one on its PATH, and its replacement."""


def _key(path: Path, env: Mapping[str, str], fallback: Era) -> tuple[object, ...]:
    return os.fspath(path), stamp_of(path), env.get("HELIX_DDX_ERA", ""), env.get(NO_TRIAL, ""), fallback


def _kept(path: Path, env: Mapping[str, str]) -> Dialect | None:
    """The cached dialect, without starting anything."""
    own = embedded(path, env)
    if own is not None or env.get(NO_TRIAL) == "off":
        return own
    return _read(_book(path, env))


def embedded(path: Path, env: Mapping[str, str]) -> Dialect | None:
    """The dialect of our own embedded tracker; None for any other executable."""
    # a script that sets the era itself is tried like any other ddx
    head = read_bytes(path, 4096) or b""
    if not head.startswith(b"#!") or _EMBEDDED not in head or b"HELIX_DDX_ERA" in head:
        return None
    return APRIL if env.get("HELIX_DDX_ERA") == "april" else AUGUST


# --- the cache ----------------------------------------------------------------------------------------


def _book(path: Path, env: Mapping[str, str]) -> Path | None:
    """The cache file of a binary, named by its content, which is hashed once per stamp."""
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
    # a wrapper stays the same when the program it starts is replaced
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
    """What a script depends on besides its text: the files that it names, and the era that it may simulate."""
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
    _replace(book, {"version": _VERSION, "dialect": found})


def _document(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_bytes(path, 1 << 20) or b"null")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, document: Mapping[str, Any]) -> None:
    """Write a cache file; if that fails, the next process probes again."""
    # two processes may try the same ddx at the same time
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(document))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
