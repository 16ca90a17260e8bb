"""Where DDx keeps what is not in the project, and one record of the tracker, field by field.

Places (docs/formats/ddx.md §4.3): the exec root is ``$DDX_EXEC_WT_DIR``, else ``executions.temp_worktree_root`` of the
project's config or of ``~/.ddx/config.yaml``; without one, leases are below the system's temporary folder and the
copies in ``~/.cache/ddx/exec-wt``.

A record keeps every field as its original JSON until it is set: a number like 1.50 or 1e400,
a nested object in its own order, an unknown field. Fields are written sorted by name, as DDx does (§1).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from helix_ddx.files import Number, go_json, loads
from helix_tui.core.beads.record import Bead, UnreadableLine, decode_bead

LEASES = "ddx-claim-heartbeats"

_WORKTREE_ROOT = re.compile(r"(?m)^[ \t]+temp_worktree_root:[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s#][^\n#]*))")

KNOWN = frozenset(
    {
        "id",
        "title",
        "status",
        "priority",
        "issue_type",
        "owner",
        "created_at",
        "created_by",
        "updated_at",
        "labels",
        "parent",
        "description",
        "acceptance",
        "notes",
        "dependencies",
    }
)
"""Fields that are DDx's own; all others belong to their writers. Head has ``schema_version`` too."""

_DECODER = json.JSONDecoder()
_BLANK, _COLON, _COMMA = re.compile(r"\s*"), re.compile(r"\s*:\s*"), re.compile(r"\s*,?\s*")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def exec_root(project: Path, env: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that was set for leases and working copies, or None when DDx would use its defaults."""
    if chosen := env.get("DDX_EXEC_WT_DIR"):
        return Path(chosen)
    for config in (project / ".ddx" / "config.yaml", home(env) / ".ddx" / "config.yaml"):
        try:
            match = _WORKTREE_ROOT.search(config.read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue
        if match:
            chosen = next(group for group in match.groups() if group).strip()
            # an absolute path stays what it is
            return project / Path(chosen).expanduser()
    return None


def home(env: Mapping[str, str] = os.environ) -> Path:
    """The home folder that DDx would see."""
    return Path(env["HOME"]) if env.get("HOME") else Path.home()


def temp_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The temporary folder as Go finds it: ``$TMPDIR``, else the system's."""
    return Path(env["TMPDIR"]) if env.get("TMPDIR") else Path(tempfile.gettempdir())


def lease_folder(project: Path, env: Mapping[str, str] = os.environ) -> Path:
    """The folder of this project's leases; its name is the SHA-1 of the project's real path."""
    return (exec_root(project, env) or temp_folder(env)) / LEASES / project_hash(project)


def project_hash(project: Path) -> str:
    """What the leases' folder is called for this project."""
    # DDx's own name for it; without the flag a Python built for FIPS refuses SHA-1
    return hashlib.sha1(os.path.realpath(project).encode(), usedforsecurity=False).hexdigest()


def copies_folder(project: Path, env: Mapping[str, str] = os.environ) -> Path:
    """Where an attempt's own clone of the code goes."""
    return exec_root(project, env) or home(env) / ".cache" / "ddx" / "exec-wt"


class TrackerRow:
    """One record, field by field."""

    __slots__ = ("fields",)

    def __init__(self, fields: dict[str, bytes]) -> None:
        self.fields = fields

    @classmethod
    def of(cls, line: bytes) -> TrackerRow:
        """The record of a line.

        Raises:
            UnreadableLine: its fields cannot be separated.
        """
        try:
            return cls({name: bytes(raw) for name, raw in _FIELDS.decode(line.strip()).items()})
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return cls(_taken_apart(line))

    @classmethod
    def to_read(cls, bead: Bead) -> TrackerRow:
        """A bead's record, not to be written back: what is not text in it became U+FFFD."""
        try:
            return cls.of(bead.raw)
        except UnreadableLine:
            return cls({name: go_json(value).encode() for name, value in bead.document().items()})

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def value(self, name: str) -> Any:
        """A field decoded, None where it is missing or unreadable."""
        raw = self.fields.get(name)
        if raw is None:
            return None
        try:
            return loads(raw)
        except (ValueError, RecursionError):
            return None

    def text(self, name: str) -> str:
        """A text field; empty if it is not a text."""
        value = self.value(name)
        return value if isinstance(value, str) and not isinstance(value, Number) else ""

    def put(self, name: str, value: Any) -> None:
        """Set a field."""
        self.fields[name] = go_json(value).encode("utf-8", "replace")

    def put_text(self, name: str, text: str) -> None:
        """Set a text field; an empty one is left out, as DDx does."""
        if text:
            self.put(name, text)
        else:
            self.drop(name)

    def put_list(self, name: str, items: list[bytes]) -> None:
        """Set a list of ready-made JSON values; an empty one is left out."""
        if items:
            self.fields[name] = b"[" + b",".join(items) + b"]"
        else:
            self.drop(name)

    def items(self, name: str) -> list[bytes]:
        """The elements of a list field, each as its JSON stands.

        Raises:
            UnreadableLine: the field is something else, which a change would destroy.
        """
        raw = self.fields.get(name)
        if raw is None or raw == b"null":
            return []
        try:
            return [bytes(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UnreadableLine(f"{name} is not a list") from None

    def drop(self, *names: str) -> None:
        """Remove fields."""
        for name in names:
            self.fields.pop(name, None)

    def line(self) -> bytes:
        """The record as it is to stand in the file."""
        names = sorted(self.fields)
        return b"{" + b",".join(go_json(name).encode() + b":" + self.fields[name] for name in names) + b"}"

    def bead(self) -> Bead:
        """The record as readiness sees it."""
        return decode_bead(self.line())


def _taken_apart(line: bytes) -> dict[str, bytes]:
    """The fields of a line with bytes that are no text: slower, and every byte is kept.

    Raises:
        UnreadableLine: it is no object, or the name of a field is no text.
    """
    text = line.decode("utf-8", "surrogateescape").strip()
    fields: dict[str, bytes] = {}
    try:
        place = _BLANK.match(text, 1).end()  # type: ignore[union-attr]
        while text[0] == "{" and text[place] != "}":
            name, colon = _DECODER.raw_decode(text, place)
            start = _COLON.match(text, colon).end()  # type: ignore[union-attr]
            end = _DECODER.raw_decode(text, start)[1]
            name.encode()
            fields[name] = text[start:end].encode("utf-8", "surrogateescape")
            place = _COMMA.match(text, end).end()  # type: ignore[union-attr]
    except (ValueError, IndexError, AttributeError, RecursionError):
        raise UnreadableLine("its fields cannot be separated") from None
    return fields
