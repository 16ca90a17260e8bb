"""Reading and writing small files of a person's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.ground.text import clean_line

MAX_FILE = 1 << 16
"""Bytes of a file that are read."""


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file says; empty if there is none.

    Raises:
        ValueError: the file cannot be read; says why.
    """
    import tomllib  # imported here, because most people have no such file

    try:
        with path.open("rb") as file:
            return tomllib.loads(file.read(MAX_FILE).decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.name} cannot be read: {clean_line(str(error), 120)}") from None


def read_fields(
    table: Mapping[str, Any], record: type[Struct], checks: Mapping[str, Callable[[Any], Any]] = {}
) -> tuple[dict[str, Any], list[str]]:
    """The fields of a record that a table gives, and one message for each line that cannot be read.

    Args:
        record: each field's type says what may stand there, and its description how to write it.
        checks: by the key of a line, what else makes its value; raises ValueError for one that means nothing.
    """
    known = {field.encode_name: field for field in msgspec.structs.fields(record)}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, written in table.items():
        field = known.get(key)
        if field is None:
            nearest = get_close_matches(key, known, n=1)
            problems.append(
                f"{clean_line(key, 40)}: no such setting{f'; did you mean {nearest[0]}?' if nearest else ''}"
            )
            continue
        try:
            value = msgspec.convert(written, field.type)
            values[field.name] = checks[key](value) if key in checks else value
        except (msgspec.ValidationError, ValueError):
            problems.append(f"{key}: write {described(field)}")
    return values, problems


def described(field: msgspec.structs.FieldInfo) -> str:
    """How to write a field, as its annotation says."""
    return str(field.type.__metadata__[0].description)


def replace_file(path: Path, text: str) -> None:
    """Write a whole file, by rename.

    Raises:
        OSError: the folder cannot be created, or the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # by process: two consoles of one user may write at once, and each replaces the whole file
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)
