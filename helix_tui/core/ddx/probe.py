"""Which dialect the installed ddx speaks: asked once of each binary, and kept by its content in the user's cache."""

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
"""Of the kept file; another one is written anew."""
_MAX_SCRIPT = 1 << 20
_EMBEDDED = b"helix_ddx"
_LACKS = re.compile(r"unknown (command|flag|shorthand)")
"""A trial that ended so ends so as long as the binary is the same; another failure may pass."""


def dialect_of(path: Path, root: Path, *, env: Mapping[str, str] | None = None, fallback: Era = "head") -> Dialect:
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
    """What the ddx of this machine does; None where there is none, or it does not answer.

    Where no trial has ``proven`` its rule, the tracker's own era decides, as where there is none, how its rows are
    judged (`rule_for`).
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
    return found


_seen: Recent[tuple[object, ...], Dialect] = Recent(16)
"""By binary and its stamp: a console sees the one on its PATH, and what replaces it."""


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
    # a script that sets the era for itself is tried like any other ddx
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
    # a wrapper stays the same while the program that it starts is replaced
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
    _replace(book, {"version": _VERSION, "dialect": found})


def _document(path: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(read_bytes(path, 1 << 20) or b"null")
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, document: Mapping[str, Any]) -> None:
    """Keep a document; where the cache cannot be written, the next process asks again."""
    # two processes may try the same ddx at once
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(document))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
