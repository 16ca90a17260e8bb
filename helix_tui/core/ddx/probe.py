"""Find the dialect of the installed ddx, once per executable, and what it refuses in a project because of its files.

Both are kept in one file per executable in the user's cache, with the stamps of what they were found from.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from helix_tui.core.ddx.dialect import AUGUST, NO_TRIAL, Dialect, FileGate
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import Stamp, read_bytes, stamp_of
from helix_tui.core.ground.project import find_ddx, user_cache_dirs
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.writes import replace_file

_VERSION = 12
"""Version of the cache file; another version is rewritten."""
_MOST_PROJECTS = 64
_EMBEDDED = b"helix_ddx"
_MARKER = "lifecycle-schema.json"
_FILES = ("config.yaml", "versions.yaml", _MARKER)
"""The files in ``.ddx`` that a ddx checks before it starts work."""
_MIGRATE = "ddx bead migrate --lifecycle --apply"
_LACKS = re.compile(r"unknown (command|flag|shorthand)")
"""A trial that failed with this message always fails with this executable; other failures may be temporary."""


class _InProject(Struct):
    """What an executable refuses in one project because of its files."""

    stamps: tuple[Stamp | None, ...]
    gate: FileGate | None


class _Known(Struct):
    """What was found out about one executable."""

    version: int
    stamp: Stamp | None
    release: str
    """What a script answers to ``version``, for the program that it starts has no stamp here; empty for a binary."""
    dialect: Dialect
    projects: dict[str, _InProject] = field(default_factory=dict)
    """By the `_place` of the project."""


def dialect_of(path: Path, root: Path, *, env: Mapping[str, str] | None = None) -> Dialect:
    """The dialect of a ddx in a project; it is tried out if it is not known.

    Args:
        path: the executable.
        root: the project it is used on.

    Raises:
        DdxError: it cannot be started, or does not answer in time.
    """
    env = os.environ if env is None else env
    if is_embedded(path):
        return AUGUST
    known = _known(path, root, env)
    stamps = tuple(stamp_of(root / ".ddx" / name) for name in _FILES)
    if env.get(NO_TRIAL) == "off" or not any(stamps):
        return known.dialect
    place = _place(root)
    here = known.projects.get(place)
    if here is None or here.stamps != stamps:
        from helix_tui.core.ddx.client import Ddx, NoAnswer  # imports the code that starts programs

        ddx, beside = Ddx(path, root, env).alone, verb_beside(known.dialect)
        try:
            gate = _marker_gate(known.dialect, root) or ddx.settings_gate(beside, changes=known.dialect.needs_settings)
        except NoAnswer:
            return known.dialect
        here = _InProject(stamps, gate)
        known.projects = dict([*known.projects.items()][1 - _MOST_PROJECTS :]) | {place: here}
        _keep(known, path, env)
    return known.dialect if here.gate is None else replace(known.dialect, here=here.gate)


def at_hand(explicit: str | None, root: Path, *, env: Mapping[str, str] | None = None) -> Dialect | None:
    """The dialect of this machine's ddx; None if there is none or it does not answer.

    If no trial has ``proven`` its rule, rows are judged by the tracker's own era, as without a ddx (`rule_for`).
    """
    path = find_ddx(explicit, os.environ if env is None else env)
    if path is None:
        return None
    try:
        return dialect_of(path, root, env=env)
    except HelixError:  # a write reports the error
        return None


def is_embedded(path: Path) -> bool:
    """Whether an executable is our own embedded tracker, which needs no trial."""
    head = read_bytes(path, 4096) or b""
    return path.name == "helix-ddx" and head.startswith(b"#!") and _EMBEDDED in head


_seen: Recent[tuple[str, str], _Known] = Recent(16)
"""What this process has read or found, by executable and whether it is tried."""


def _known(path: Path, root: Path, env: Mapping[str, str]) -> _Known:
    key = os.fspath(path), env.get(NO_TRIAL, "")
    stamp, seen = stamp_of(path), _seen.get(key)
    if seen is not None and seen.stamp == stamp:
        return seen
    release = _release(path, root, env) if read_bytes(path, 2) == b"#!" else ""
    known = _kept(path, env)
    if known is None or (known.stamp, known.release) != (stamp, release):
        from helix_tui.core.ddx.trial import examine  # imports the code that starts programs

        known = _Known(_VERSION, stamp, release, examine(path, root, env))
        _keep(known, path, env)
    _seen[key] = known
    return known


def _release(script: Path, root: Path, env: Mapping[str, str]) -> str:
    from helix_tui.core.ddx.client import Ddx

    return clean_line(Ddx(script, root, env).alone.attempt("version", timeout=20, cap=1 << 16, reads=True).out, 200)


# --- one project ---------------------------------------------------------------------------------------


class _Marker(Struct):
    """The file that says which form of lifecycle a tracker was migrated to."""

    version: int = 0


def _marker_gate(found: Dialect, root: Path) -> FileGate | None:
    """The gate of a tracker that was migrated to an earlier form than this ddx takes, as the trial found it."""
    if not found.schema:
        return None
    raw = read_bytes(root / ".ddx" / _MARKER, 1 << 16)
    if raw is None:
        return None
    again = f"remove .ddx/{_MARKER} and run it again"
    try:
        marker = msgspec.json.decode(raw, type=_Marker | None)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        reason, fix = f".ddx/{_MARKER} is not what ddx writes", f"correct it, or remove it and run `{_MIGRATE}`"
        return FileGate("lifecycle_gate_marker", _MIGRATE, reason, fix, "every command")
    version = marker.version if marker is not None else 0
    if version >= found.schema:
        return None
    reason = f"version {version} in .ddx/{_MARKER} is older than {found.schema}"
    fix = f"run `{_MIGRATE}`; if that leaves the version, {again}"
    return FileGate("lifecycle_migration_required", _MIGRATE, reason, fix, "every command")


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


def _place(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:16]


def _file(path: Path, env: Mapping[str, str]) -> Path | None:
    name = f"{_place(path)}.json"
    return next((folder / "helix-tui" / "ddx" / name for folder in user_cache_dirs(env)), None)


def _kept(path: Path, env: Mapping[str, str]) -> _Known | None:
    file = _file(path, env)
    if file is None or env.get(NO_TRIAL) == "off":
        return None
    try:
        known = msgspec.json.decode(read_bytes(file, 1 << 20) or b"", type=_Known)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return known if known.version == _VERSION else None


def _keep(known: _Known, path: Path, env: Mapping[str, str]) -> None:
    """Write the cache file, unless what was found may be temporary; if that fails, the next process tries again."""
    file = _file(path, env)
    if file is not None and (known.dialect.proven or _LACKS.search(known.dialect.doubt)):
        # two processes may try the same ddx at the same time
        with contextlib.suppress(OSError):
            replace_file(file, msgspec.json.encode(known))
