"""Flags as DDx's command line reads them, and the shape of a verb.

Flags may be anywhere among the words, as ``--flag value`` or ``--flag=value``; values have Go's forms. The wording
of complaints is that of DDx's transcripts: a mistake is a `UsageError`, answered with the usage block; `Refused`
says why a command was not done.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["string", "bool", "int", "float", "duration", "strings", "stringArray"]

_TRUE = {"1", "t", "T", "TRUE", "true", "True"}
_FALSE = {"0", "f", "F", "FALSE", "false", "False"}
_INT = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F_]+)|0[bB]([01_]+)|0[oO]?([0-7_]+)|(0|[1-9][0-9_]*))\Z")
_FLOAT = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)\Z", re.ASCII | re.IGNORECASE)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([^\d.]*)", re.ASCII)
MANY = 1 << 30

REFUSED = "program:refuse"
"""The handler of verbs that need ddx itself: they are known, so that they do not get another verb's help."""


class UsageError(Exception):
    """The command line is wrong; the message is DDx's own."""


class Flag(Struct, frozen=True):
    """One flag of a verb."""

    name: str
    kind: Kind = "string"
    about: str = ""
    default: str = ""
    short: str = ""
    required: bool = False
    hidden: bool = False
    """Whether it is accepted but not in the help: our own flag, or one that DDx only tolerates."""


class GivenFlags(Struct):
    """What was given: flag values as texts, and the other words."""

    words: list[str] = []
    values: dict[str, list[str]] = {}

    def has(self, name: str) -> bool:
        """Whether the flag was given at all, even with an empty value."""
        return name in self.values

    def text(self, name: str, default: str = "") -> str:
        """The last value of a flag."""
        return self.values[name][-1] if name in self.values else default

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        return name in self.values and parse_bool(self.values[name][-1])

    def number(self, name: str) -> int:
        """The last value of an int flag."""
        return parse_int(self.values[name][-1])

    def seconds(self, name: str) -> float:
        """The last value of a duration flag; 0 if it was not given."""
        return parse_duration(self.values[name][-1]) if name in self.values else 0.0

    def all(self, name: str) -> list[str]:
        """Every value of a repeatable flag, in order."""
        return list(self.values.get(name, ()))


def parse(flags: Sequence[Flag], argv: Sequence[str]) -> GivenFlags:
    """Separate words from flags.

    Raises:
        UsageError: an unknown flag, a missing or a wrong value.
    """
    by_name = {flag.name: flag for flag in flags}
    by_short = {flag.short: flag for flag in flags if flag.short}
    given = GivenFlags()
    rest = list(argv)
    while rest:
        token = rest.pop(0)
        if token == "--":
            given.words += rest
            break
        if len(token) < 2 or token[0] != "-":
            given.words.append(token)
        elif token.startswith("--"):
            _long(by_name, token, rest, given)
        else:
            _short(by_short, token, rest, given)
    return given


def _long(by_name: dict[str, Flag], token: str, rest: list[str], given: GivenFlags) -> None:
    name, equals, value = token[2:].partition("=")
    if not name or name[0] in "-=":
        raise UsageError(f"bad flag syntax: {token}")
    flag = by_name.get(name)
    if flag is None:
        raise UsageError(f"unknown flag: --{name}")
    if not equals:
        if flag.kind == "bool":
            value = "true"
        elif rest:
            value = rest.pop(0)
        else:
            raise UsageError(f"flag needs an argument: --{name}")
    _take(flag, value, given)


def _short(by_short: dict[str, Flag], token: str, rest: list[str], given: GivenFlags) -> None:
    letters = token[1:]
    while letters:
        flag = by_short.get(letters[0])
        if flag is None:
            raise UsageError(f"unknown shorthand flag: '{letters[0]}' in -{letters}")
        if len(letters) > 2 and letters[1] == "=":
            value, letters = letters[2:], ""
        elif flag.kind == "bool":
            value, letters = "true", letters[1:]
        elif len(letters) > 1:
            value, letters = letters[1:], ""
        elif rest:
            value, letters = rest.pop(0), ""
        else:
            raise UsageError(f"flag needs an argument: '{letters[0]}' in -{letters}")
        _take(flag, value, given)


# checked as it is read: of several wrong flags, the first is reported
def _take(flag: Flag, value: str, given: GivenFlags) -> None:
    try:
        if flag.kind == "bool":
            parse_bool(value)
        elif flag.kind == "int":
            parse_int(value)
        elif flag.kind == "float":
            parse_float(value)
        elif flag.kind == "duration":
            parse_duration(value)
    except ValueError as error:
        dashed = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
        quoted = json.dumps(value, ensure_ascii=False)
        raise UsageError(f'invalid argument {quoted} for "{dashed}" flag: {error}') from None
    values = given.values.setdefault(flag.name, [])
    # a list is parsed as CSV, so that a quoted part may contain a comma
    values += next(csv.reader([value]), []) if flag.kind == "strings" else [value]


def parse_bool(text: str) -> bool:
    """A truth value in Go's notation.

    Raises:
        ValueError: in Go's words.
    """
    if text not in _TRUE | _FALSE:
        raise ValueError(f"strconv.ParseBool: parsing {json.dumps(text, ensure_ascii=False)}: invalid syntax")
    return text in _TRUE


def parse_int(text: str) -> int:
    """A 64-bit number in Go's spellings (0x1f, 0b1, 017, 1_000).

    Raises:
        ValueError: in Go's words.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    match = _INT.match(text)
    if match is None or "__" in text or text.endswith("_"):
        raise ValueError(f"strconv.ParseInt: parsing {quoted}: invalid syntax")
    sign, *digits = match.groups()
    number = next(
        int(group.replace("_", ""), base)
        for group, base in zip(digits, (16, 2, 8, 10), strict=True)
        if group is not None
    )
    number = -number if sign == "-" else number
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"strconv.ParseInt: parsing {quoted}: value out of range")
    return number


def parse_float(text: str) -> float:
    """A number with a fraction, in Go's notation.

    Raises:
        ValueError: in Go's words.
    """
    if not _FLOAT.match(text):
        quoted = json.dumps(text, ensure_ascii=False)
        raise ValueError(f"strconv.ParseFloat: parsing {quoted}: invalid syntax")
    return float(text)


def parse_duration(text: str) -> float:
    """A duration in Go's notation (``30s``, ``1m30s``, ``250ms``, ``0``), in seconds.

    Raises:
        ValueError: in Go's words.
    """
    quoted = json.dumps(text, ensure_ascii=False)
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return 0.0
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise ValueError(f"time: invalid duration {quoted}")
    total = 0.0
    for number, unit in parts:
        if not unit:
            raise ValueError(f"time: missing unit in duration {quoted}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {json.dumps(unit, ensure_ascii=False)} in duration {quoted}")
        total += float(number) * _UNITS[unit]
    return -total if sign == "-" else total


class Verb(Struct, frozen=True):
    """One verb. Without ``run`` it only groups others, and answers with its help."""

    path: tuple[str, ...]
    about: str
    run: str = ""
    """Module of this package and function, ``writing:create``; elsewhere with the module's whole name."""
    use: str = ""
    """The part after the name in the usage line: ``<title>``."""
    least: int = 0
    most: int = 0
    flags: tuple[Flag, ...] = ()
    aliases: tuple[str, ...] = ()
    quiet: bool = False
    """Whether errors are printed once, without the usage block."""

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path[-1]


def refused(*path: str) -> Verb:
    """A verb of DDx that is known, so that it does not get another one's help, but not offered."""
    return Verb(path, "Needs ddx itself", REFUSED, most=MANY)


class Refused(Exception):
    """The command cannot be done; the message is DDx's own if DDx has one."""
