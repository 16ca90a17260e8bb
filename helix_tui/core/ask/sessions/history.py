"""Past runs, one JSON file each in ``.helix/ask/history``: listed newest first, read one by one."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from helix_tui.core.ground.helix_folder import make_folder
from helix_tui.core.ground.opening import open_nonblocking
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant

MOST_RUNS = 200
MAX_FILE = 8 << 20

_NAME = re.compile(r"\d{8}T\d{6}Z(?:-\d{3,})?-[0-9a-f]{8}(?:-\d+)?\.json")
"""Second, number within the second, hash; runs kept by earlier versions have no number there."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A past run in a line."""

    id: str
    """The file's name without its ending; newer ids sort later."""
    asked_at: int
    """Instant, nanoseconds; 0 where it is not told."""
    question: str
    tier: str
    stop: str
    seconds: float


class _Head(msgspec.Struct):
    """What the list needs of a file; the rest is passed over while it is decoded."""

    question: str = ""
    tier_selected: str = ""
    retrieval_stop_reason: str = ""
    asked_at_ns: int = 0
    timings_ms: dict[str, float] = {}


class AskHistory:
    """The past runs of one project."""

    def __init__(self, helix_dir: Path) -> None:
        self.folder = helix_dir / "ask" / "history"
        self._heads: dict[str, RunSummary] = {}
        """By id, of the runs that lie there: `MOST_RUNS` and what others have put there."""

    def save(self, document: Mapping[str, Any], asked_at: int) -> str:
        """Keep a run and return its id; the oldest go where there are too many.

        Raises:
            OSError: the folder cannot be written.
        """
        make_folder(self.folder)
        data = msgspec.json.encode({**document, "asked_at_ns": asked_at}, enc_hook=str)
        stamp = re.sub(r"[-:]|\.\d+", "", format_instant(asked_at))
        number = sum(name.startswith(stamp) for name in self._names()) + 1
        ident = f"{stamp}-{number:03}-{hashlib.sha256(data).hexdigest()[:8]}"
        scratch = self.folder / f".{ident}.{os.getpid()}"
        scratch.write_bytes(data)
        scratch.replace(self.folder / f"{ident}.json")
        for name in self._names()[MOST_RUNS:]:
            (self.folder / name).unlink(missing_ok=True)
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
        """A whole run; None where there is none of that id, or it cannot be read."""
        name = f"{ident}.json"
        data = self._read(name) if _NAME.fullmatch(name) else b""
        try:
            document = msgspec.json.decode(data) if data else None
        except (msgspec.DecodeError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def _names(self) -> Sequence[str]:
        try:
            return sorted(filter(_NAME.fullmatch, os.listdir(self.folder)), reverse=True)
        except OSError:
            return []

    def _head(self, name: str) -> RunSummary | None:
        try:
            head = msgspec.json.decode(self._read(name), type=_Head)
        except (msgspec.DecodeError, RecursionError):
            return None
        return RunSummary(
            name.removesuffix(".json"),
            head.asked_at_ns,
            clean_line(head.question, 400),
            clean_line(head.tier_selected, 40),
            clean_line(head.retrieval_stop_reason, 40),
            head.timings_ms.get("total", 0.0) / 1_000,
        )

    def _read(self, name: str) -> bytes:
        try:
            with open(self.folder / name, "rb", opener=open_nonblocking) as file:
                return file.read(MAX_FILE) or b""
        except OSError:
            return b""
