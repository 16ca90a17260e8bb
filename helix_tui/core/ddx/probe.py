"""Find the dialect of the installed ddx, once per binary; cached by its content in the user's cache.

What it refuses in one project because of that project's files is found once per state of these files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import AUGUST, NO_TRIAL, Dialect, FileGate
from helix_tui.core.ddx.names import Era
from helix_tui.core.ground.files import open_file, read_bytes, stamp_of
from helix_tui.core.ground.project import find_ddx, user_cache_dirs
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.writes import replace_file

_VERSION = 11
"""Version of the cache file; another version is rewritten."""
_MAX_SCRIPT = 1 << 20
_EMBEDDED = b"helix_ddx"
_SETTINGS = ("config.yaml", "versions.yaml")
"""The files in ``.ddx`` that every ddx checks before it starts work."""
_SCHEMA = "lifecycle-schema.json"
_MIGRATE = "ddx bead migrate --lifecycle --apply"
_LACKS = re.compile(r"unknown (command|flag|shorthand)")
"""A trial that failed with this message always fails with this binary; other failures may be temporary."""


def dialect_of(path: Path, root: Path, *, env: Mapping[str, str] | None = None, fallback: Era = "head") -> Dialect:
    """The dialect of a ddx; the same object as long as its file and the project's settings are unchanged.

    Args:
        path: the executable.
        root: the project it is used on.
        fallback: the family assumed if neither trial nor help shows it.

    Raises:
        DdxError: it cannot be started, or does not print its help in time.
    """
    env = os.environ if env is None else env
    key = _key(path, env, fallback)
    found = _known(key, path, env)
    if found is None:
        from helix_tui.core.ddx.trial import examine

        found = _seen[key] = examine(path, root, env, fallback)
        book = _book(path, env)
        if (found.proven or _LACKS.search(found.doubt)) and book is not None:
            _write(book, found)
    return _in_project(found, path, root, env)


def at_hand(explicit: str | None, root: Path, *, env: Mapping[str, str] | None = None) -> Dialect | None:
    """The dialect of this machine's ddx; None if there is none or it does not answer.

    If no trial has ``proven`` its rule, rows are judged by the tracker's own era, as without a ddx (`rule_for`).
    """
    env = os.environ if env is None else env
    path = find_ddx(explicit, env)
    if path is None:
        return None
    found = _known(_key(path, env, "head"), path, env)
    if found is None:
        from helix_tui.core.ddx.client import DdxError  # imports the code that starts programs

        try:
            return dialect_of(path, root, env=env)
        except DdxError:  # a write reports the error
            return None
    return _in_project(found, path, root, env)


_seen: Recent[tuple[object, ...], Dialect] = Recent(16)
"""By binary and its stamp: a console sees the one on its PATH, and its replacement."""


def _key(path: Path, env: Mapping[str, str], fallback: Era) -> tuple[object, ...]:
    return os.fspath(path), stamp_of(path), env.get(NO_TRIAL, ""), fallback


def _known(key: tuple[object, ...], path: Path, env: Mapping[str, str]) -> Dialect | None:
    """The dialect as it was found before, by this process or another one; None if it must be examined."""
    if key not in _seen and (kept := _kept(path, env)) is not None:
        _seen[key] = kept
    return _seen.get(key)


def _kept(path: Path, env: Mapping[str, str]) -> Dialect | None:
    """The cached dialect, without starting anything."""
    own = embedded(path)
    if own is not None or env.get(NO_TRIAL) == "off":
        return own
    return _read(_book(path, env))


def embedded(path: Path) -> Dialect | None:
    """The dialect of our own embedded tracker; None for any other executable."""
    head = read_bytes(path, 4096) or b""
    return AUGUST if path.name == "helix-ddx" and head.startswith(b"#!") and _EMBEDDED in head else None


# --- one project ---------------------------------------------------------------------------------------


class _Marker(Struct):
    """The file that says which form of lifecycle a tracker was migrated to."""

    version: int = 0


def _in_project(found: Dialect, path: Path, root: Path, env: Mapping[str, str]) -> Dialect:
    """The dialect with what this ddx refuses in a project because of its files."""
    if env.get(NO_TRIAL) == "off":
        return found
    stamps = tuple(stamp_of(root / ".ddx" / name) for name in (*_SETTINGS, _SCHEMA))
    if not any(stamps):
        return found
    key = os.fspath(path), os.fspath(root), stamps
    known = _projects.get(key)
    if known is not None and known[0] is found:
        return known[1]
    gate = _schema_gate(found, root) or _settings_gate(found, path, root, env)
    here = replace(found, here=gate) if gate is not None else found
    _projects[key] = found, here
    return here


_projects: Recent[tuple[object, ...], tuple[Dialect, Dialect]] = Recent(16)
"""By project and the stamps of its files: the dialect without the project, and in it."""


def _schema_gate(found: Dialect, root: Path) -> FileGate | None:
    """The gate of a tracker that was migrated to an earlier form than this ddx takes, as the trial found it."""
    if not found.schema:
        return None
    raw = read_bytes(root / ".ddx" / _SCHEMA, 1 << 16)
    if raw is None:
        return None
    again = f"remove .ddx/{_SCHEMA} and run it again"
    try:
        marker = msgspec.json.decode(raw, type=_Marker | None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reason, fix = f".ddx/{_SCHEMA} is not what ddx writes", f"correct it, or remove it and run `{_MIGRATE}`"
        return FileGate("lifecycle_gate_marker", _MIGRATE, reason, fix, "every command")
    version = marker.version if marker is not None else 0
    if version >= found.schema:
        return None
    reason = f"version {version} in .ddx/{_SCHEMA} is older than {found.schema}"
    fix = f"run `{_MIGRATE}`; if that leaves the version, {again}"
    return FileGate("lifecycle_migration_required", _MIGRATE, reason, fix, "every command")


def _settings_gate(found: Dialect, path: Path, root: Path, env: Mapping[str, str]) -> FileGate | None:
    """The gate of a project whose settings this ddx refuses, by ddx's own check of them."""
    if embedded(path) is not None:
        return None
    stamps = [stamp_of(root / ".ddx" / name) for name in _SETTINGS]
    place = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:16]
    binary = _book(path, env)
    book = binary.with_name(f"in-{place}.json") if binary is not None else None
    state = msgspec.to_builtins([_VERSION, binary.name if binary is not None else "", stamps])
    known = _document(book) if book is not None else {}
    if known.get("state") != state:
        from helix_tui.core.ddx.client import Ddx  # imports the code that starts programs

        known = {
            "state": state,
            "gate": Ddx(path, root, env).settings_gate(verb_beside(found), changes=found.needs_settings),
        }
        if book is not None:
            _replace(book, known)
    gate = known["gate"]
    return gate if gate is None or isinstance(gate, FileGate) else msgspec.convert(gate, FileGate)


def verb_beside(found: Dialect) -> tuple[str, ...]:
    """A verb that only reads, and checks the project as the one that drains does; empty if none is known."""
    drain = found.drain
    for action in ("workers", "plan"):
        verb = found.verbs.get(action)
        if verb is not None and len(verb.words) > 1 and verb.words[:1] == drain[:1]:
            return (*verb.words, "--json")
    # one of the top level is checked like any other there
    return ("config", "--validate", "--offline") if len(drain) == 1 else ()


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
        with open_file(path) as file:
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
    return "|".join(stamps)


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
    found = decode_json(read_bytes(path, 1 << 20))
    return found if isinstance(found, dict) else {}


def _replace(path: Path, document: Mapping[str, Any]) -> None:
    """Write a cache file; if that fails, the next process probes again."""
    # two processes may try the same ddx at the same time
    with contextlib.suppress(OSError):
        replace_file(path, msgspec.json.encode(document))
