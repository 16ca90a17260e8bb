"""A record that is being changed: every field stays the JSON it was until somebody sets it.

So a number like 1.50 or 1e400, a nested object in its own order, a field nobody here has heard of: all of it
goes back into the file as it came. Fields are written sorted by name, as DDx does (docs/formats/ddx.md §1).
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from helix_ddx.base.files import go_json
from helix_ddx.base.go_format import Number, loads
from helix_tui.core.beads.record import Bead, UnreadableLine, decode_bead

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
"""Fields that are DDx's own; anything else belongs to whoever wrote it. Head has ``schema_version`` too."""

_DECODER = json.JSONDecoder()
_BLANK, _COLON, _COMMA = re.compile(r"\s*"), re.compile(r"\s*:\s*"), re.compile(r"\s*,?\s*")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


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
        """A text field, empty where it is none."""
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
