"""What parsing one file yields: plain values that travel between processes and into the index."""

from __future__ import annotations

from msgspec import Struct

from helix_tui.core.ask.records import Kind


class Chunk(Struct, frozen=True, array_like=True):
    """A run of lines, both ends counted from 1 and inside; the chunks of a file cover it without overlap."""

    start: int
    end: int
    kind: Kind
    header: str


class Defined(Struct, frozen=True, array_like=True):
    """A definition: its name, what it is, its lines, and its name with what encloses it."""

    name: str
    kind: str
    start: int
    end: int
    header: str


class Title(Struct, frozen=True, array_like=True):
    """A heading, its level from 1, and the last line of its section."""

    level: int
    text: str
    start: int
    end: int


class Pieces(Struct, frozen=True, array_like=True):
    """Everything that one file consists of."""

    language: str
    lines: int
    size: int
    chunks: list[Chunk]
    definitions: list[Defined]
    titles: list[Title]
    imports: list[str]
    """Modules or paths that it imports, as written."""
    summary: str = ""
    """Its opening comment or docstring, without marks, in one line."""
