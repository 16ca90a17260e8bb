"""The history of runs, one JSON file each in ``.helix/ask/history``, listed newest first and read one by one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.ask.sessions.envelope import result_of
from helix_tui.core.ground.files import names_in, read_bytes
from helix_tui.core.ground.records import decode_json, encode_json
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant
from helix_tui.core.ground.writes import remove, replace_file

MOST_RUNS = 200
MAX_FILE = 8 << 20

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d{3,})?-[0-9a-f]{8}(?:-\d+)?\.json")
"""Second, number within the second, hash; runs stored by earlier versions have no number."""


class RunSummary(Struct, frozen=True):
    """A past run in one line."""

    id: str
    """The file's name without its ending; newer ids sort later."""
    asked_at: int
    """Instant in nanoseconds; 0 if not recorded."""
    question: str
    result: str
    """The result, in words."""
    seconds: float


class _Head(Struct):
    """The fields of a file that the list needs; others are skipped."""

    question: str = ""
    tier: str = ""
    tier_selected: str = ""
    clarify: dict[str, Any] = {}
    asked_at_ns: int = 0
    timings_ms: dict[str, float] = {}


class AskHistory:
    """The past runs of one project."""

    def __init__(self, helix_dir: Path) -> None:
        self.folder = helix_dir / "ask" / "history"
        self._heads: dict[str, RunSummary] = {}
        """By id, for the stored runs: at most `MOST_RUNS`, and those added by others."""

    def save(self, document: Mapping[str, Any], asked_at: int) -> str:
        """Save a run and return its id; the oldest are removed if there are too many.

        Raises:
            OSError: the folder cannot be written.
        """
        data = encode_json({**document, "asked_at_ns": asked_at})
        stamp = re.sub(r"[-:]|\.\d+", "", format_instant(asked_at))
        # with only the hash, two runs of one second would be listed in any order
        number = sum(name.startswith(stamp) for name in self._names()) + 1
        ident = f"{stamp}-{number:03}-{hashlib.sha256(data).hexdigest()[:8]}"
        # atomically, as another session may list the folder meanwhile
        replace_file(self.folder / f"{ident}.json", data)
        for name in self._names()[MOST_RUNS:]:
            remove(self.folder / name)
        return ident

    def list(self) -> Sequence[RunSummary]:
        """Every run that can be read, newest first."""
        found, names = [], self._names()
        for gone in self._heads.keys() - {name.removesuffix(".json") for name in names}:
            del self._heads[gone]
        for name in names:
            ident = name.removesuffix(".json")
            if ident not in self._heads:
                head = self._head(name)
                if head is None:
                    continue
                self._heads[ident] = head
            found.append(self._heads[ident])
        return found

    def load(self, ident: str) -> dict[str, Any] | None:
        """A whole run; None if there is none with that id, or it cannot be read."""
        name = f"{ident}.json"
        # an id comes from a command line or an agent: it must not lead out of the folder
        document = decode_json(self._read(name)) if _NAME.fullmatch(name) else None
        return document if isinstance(document, dict) else None

    def _names(self) -> Sequence[str]:
        return sorted(filter(_NAME.fullmatch, names_in(self.folder)), reverse=True)

    def _head(self, name: str) -> RunSummary | None:
        try:
            head = msgspec.json.decode(self._read(name), type=_Head)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return RunSummary(
            name.removesuffix(".json"),
            head.asked_at_ns,
            clean_line(head.question, 400),
            result_of({"tier": head.tier, "tier_selected": head.tier_selected, "clarify": head.clarify}),
            head.timings_ms.get("total", 0.0) / 1_000,
        )

    def _read(self, name: str) -> bytes:
        return read_bytes(self.folder / name, MAX_FILE) or b""
