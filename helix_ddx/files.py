"""helix-ddx's output: everything it writes to disk, and every program it starts.

Writes go through a ``Disk``, which notifies its watchers, as JSON in Go's format; values, times and ids have the
forms in which Go prints them, as DDx does. Programs are git, a project's hook and another tracker's
export.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from helix_tui.core.ground.time import NEVER, NS, format_instant, parse_instant
from helix_tui.core.ground.writes import make_folder

Watcher = Callable[[str, Path, str], None]
"""Called with the operation (create, append, replace, delete), the path and the text that was written."""

_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
ZERO_TIME = "0001-01-01T00:00:00Z"
_CANONICAL = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{0,8}[1-9])?Z\Z")


class Disk:
    """Writes files as DDx does, and notifies its watchers."""

    def __init__(self, *watchers: Watcher, durable: bool = False) -> None:
        self.watchers = list(watchers)
        self.durable = durable

    def replace(self, path: Path, text: str) -> None:
        """Write the whole file to a temporary name and rename it."""
        make_folder(path.parent)
        existed = path.exists()
        # named as in DDx: a process that breaks a dead owner's lock removes such files by the pid
        beside = path.with_name(f"{path.name}.tmp-{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with open(beside, "w", encoding="utf-8", newline="") as out:
                out.write(text)
                if self.durable:
                    out.flush()
                    os.fsync(out.fileno())
            beside.replace(path)
        # even ctrl+c must not leave the temporary file; it is raised again
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        self._tell("replace" if existed else "create", path, text)

    def create(self, path: Path, text: str = "") -> None:
        """Write a file in place, as logs begin."""
        make_folder(path.parent)
        with open(path, "w", encoding="utf-8", newline="") as out:
            out.write(text)
        self._tell("create", path, text)

    def append(self, path: Path, text: str) -> None:
        """Add whole lines to a log with one write; the first one creates it."""
        make_folder(path.parent)
        existed = path.exists()
        with open(path, "a", encoding="utf-8", newline="") as out:
            out.write(text)
        self._tell("append" if existed else "create", path, text)

    def delete(self, path: Path) -> None:
        """Remove a file; a missing file is not an error."""
        try:
            path.unlink()
        except FileNotFoundError:
            return
        self._tell("delete", path, "")

    def delete_tree(self, folder: Path) -> None:
        """Remove a folder with its contents; the watchers are notified of each file."""
        if not folder.exists():
            return
        # listed before removal, and only if there are watchers
        gone = sorted(path for path in folder.rglob("*") if not path.is_dir()) if self.watchers else []
        shutil.rmtree(folder)
        for path in gone:
            self._tell("delete", path, "")

    def _tell(self, op: str, path: Path, text: str) -> None:
        for watcher in self.watchers:
            watcher(op, path, text)


def go_json(value: Any, *, sort: bool = False, indent: int | None = None) -> str:
    """JSON as Go's encoding/json writes it: compact, ``<>&`` and line separators escaped."""
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(value, ensure_ascii=False, sort_keys=sort, indent=indent, separators=separators)
    return text.translate(_HTML)


class OtherError(Exception):
    """A program could not be started, did not answer in time, or failed."""


def ask(argv: Sequence[str], folder: Path, *, given: bytes = b"", timeout: float) -> tuple[int, bytes, str]:
    """Run a program; returns its exit code, stdout and stderr.

    Raises:
        OtherError: it cannot be started or takes too long.
    """
    from helix_tui.core.ground.process import run  # only where a program is started

    try:
        done = run(argv, cwd=folder, given=given, timeout=timeout)
    except OSError as error:
        raise OtherError(error.strerror or str(error)) from None
    if done.timed_out:
        raise OtherError(f"no answer after {timeout:g} s")
    return done.rc, done.stdout, done.err.strip()


def git(folder: Path, *words: str, timeout: float = 30) -> str:
    """Run a git command that must succeed; returns its output.

    Raises:
        OtherError: it failed; the message is worded as in DDx.
    """
    try:
        code, out, said = ask(["git", *words], folder, timeout=timeout)
    except OtherError as problem:
        raise OtherError(f"git {words[0]} failed: {problem}") from None
    if code:
        said = said or out.decode("utf-8", "replace").strip()
        raise OtherError(f"git {words[0]} failed: exit status {code}\n{said}")
    return out.decode("utf-8", "replace").strip()


def hook(path: Path, record: bytes, *, timeout: float) -> tuple[int, str]:
    """Pass a record to a hook; returns its exit code and output.

    Raises:
        OtherError: it cannot be started or takes too long.
    """
    code, _, said = ask([os.fspath(path)], Path.cwd(), given=record, timeout=timeout)
    return code, said


class Number(str):
    """A number as it was written, so that 1.50 stays 1.50 and 1e400 stays 1e400."""


class Ordered(dict[str, Any]):
    """An object whose fields keep their order: a struct in DDx, not a map."""


def loads(data: bytes | str) -> Any:
    """Decode JSON; numbers keep their written form.

    Raises:
        ValueError: it is not JSON.
    """
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    # Python takes NaN and Infinity for numbers, Go does not
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def pretty(value: Any) -> str:
    """JSON as Go's encoder prints it with an indent of two; fields of a map sorted."""
    return "".join(_pretty(value, "\n")) + "\n"


def _pretty(value: Any, newline: str) -> Iterator[str]:
    deeper = newline + "  "
    if isinstance(value, Number):
        yield value
    elif isinstance(value, dict) and value:
        mark = "{"
        for key in value if isinstance(value, Ordered) else sorted(value):
            yield f"{mark}{deeper}{go_json(key)}: "
            yield from _pretty(value[key], deeper)
            mark = ","
        yield newline + "}"
    elif isinstance(value, list) and value:
        mark = "["
        for item in value:
            yield mark + deeper
            yield from _pretty(item, deeper)
            mark = ","
        yield newline + "]"
    else:
        yield go_json(value)


def compact(value: Any, *, html: bool = True) -> str:
    """JSON on one line, fields sorted; without ``html`` the characters ``<>&`` stay as they are."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_word(key, html)}:{compact(value[key], html=html)}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(compact(item, html=html) for item in value) + "]"
    return _word(value, html)


def _word(value: Any, html: bool) -> str:
    if html:
        return go_json(value)
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def plain(value: Any) -> str:
    """A decoded value as ``%v`` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(plain(item) for item in value) + "]"
    if isinstance(value, Number):
        return _float(value)
    return str(value)


def _float(number: Number) -> str:
    """A 64-bit float as ``%v`` prints it: the shortest form, with an exponent from 1e21 on."""
    value = float(number)
    if value == 0 or 1e-4 <= abs(value) < 1e21:
        text = f"{value:.0f}" if value.is_integer() else repr(value)
        return text if "e" not in text else f"{value:f}"
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:
        return repr(value)
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:]:0>2}"


def time_text(text: object) -> str:
    """A time as Go writes it after reading it: without trailing zeros; its zero time if the text has none."""
    if isinstance(text, str) and _CANONICAL.match(text):
        return text
    instant = parse_instant(text)
    if instant is None:
        return ZERO_TIME
    zone = str(text)[-6:] if str(text)[-1] != "Z" else "Z"
    whole, _, fraction = str(text).removesuffix(zone).replace(",", ".").partition(".")
    fraction = fraction[:9].rstrip("0")
    return f"{whole}.{fraction}{zone}" if fraction else whole + zone


def clock_text(text: object) -> str:
    """A time for people: date and time of day."""
    return time_text(text)[:19].replace("T", " ")


def second_text(text: object) -> str:
    """A time in RFC 3339 without its fraction."""
    return re.sub(r"\.\d+", "", time_text(text))


def instant_of(text: object) -> int:
    """An instant; Go's zero time if the text is not a time."""
    instant = parse_instant(text)
    return NEVER if instant is None else instant


def stamp(at: int) -> str:
    """RFC 3339 with up to nine digits, trailing zeros cut, as Go's RFC3339Nano."""
    fraction = f"{at % NS:09d}".rstrip("0")
    whole = format_instant(at)
    return f"{whole[:-1]}.{fraction}Z" if fraction else whole


def second(at: int) -> str:
    """RFC 3339 in whole seconds."""
    return format_instant(at)


def attempt_id(at: int, tail: str) -> str:
    """``YYYYMMDDTHHMMSS-<8 hex>``: sorts by time."""
    return f"{datetime.fromtimestamp(at // NS, UTC):%Y%m%dT%H%M%S}-{tail[:8]}"
