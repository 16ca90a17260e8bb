"""Writes a recorded timeline (docs/formats/ddx.md §4.6) into a folder, step by step.

What is of the recording's machine is put in place: the project, home and scratch folders, process ids, the
host, the folder of leases. Times stay; `now` says what time it is at a step.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helix_tui.core.ground.time import NS, parse_instant

_TIME = re.compile(r'"(?:ts|time)":\s?"([^"]+)"')
_PID = re.compile(r'("(?:pid|claimed-pid)":\s?"?)\d+')
_MACHINE = re.compile(r'("(?:claimed-)?machine":\s?)"[^"]*"')
_LEASES = re.compile(r"ddx-claim-heartbeats/[0-9a-f]{40}")


Entry = dict[str, Any]
"""One line of a recording."""


@dataclass(frozen=True)
class Step:
    """One recorded change of one file, already written when it is yielded."""

    index: int
    """Its line in the recording."""
    t: float
    op: str
    path: Path
    text: str


class Replay:
    """A timeline and the folders it is written to.

    ``retell`` turns each recorded change of a file into what another release would have written in its place.
    """

    def __init__(
        self,
        timeline: Path,
        root: Path,
        *,
        pid: int | None = None,
        retell: Callable[[Entry], Iterable[Entry]] | None = None,
    ) -> None:
        self.entries: list[Entry] = [json.loads(line) for line in timeline.read_text("utf-8").split("\n") if line]
        self._retell = retell
        root = Path(os.path.realpath(root))
        self.project = root / "project"
        self.home = root / "home"
        self.scratch = root / "scratch"
        for folder in (self.project, self.home, self.scratch / "tmp"):
            folder.mkdir(parents=True, exist_ok=True)
        self.env = {"HOME": str(self.home), "TMPDIR": str(self.scratch / "tmp"), "PATH": os.environ["PATH"]}
        self._pid = os.getpid() if pid is None else pid
        digest = hashlib.sha1(str(self.project).encode()).hexdigest()
        self._leases = f"ddx-claim-heartbeats/{digest}"
        self._base = max(self._bases(), default=0)

    def _bases(self) -> Iterator[int]:
        for entry in self.entries:
            if entry["src"] == "file" and entry.get("t") is not None:
                for text in _TIME.findall(entry.get("text") or ""):
                    instant = parse_instant(text)
                    if instant is not None:
                        yield instant - int(entry["t"] * NS)

    def now(self, t: float) -> int:
        """The instant of a step."""
        return self._base + int(t * NS) + 20_000_000

    def local(self, text: str) -> str:
        """Recorded text as this machine would have written it."""
        text = text.replace("$P", str(self.project)).replace("$H", str(self.home))
        text = text.replace("$T", str(self.scratch))
        text = _PID.sub(rf"\g<1>{self._pid}", text)
        text = _MACHINE.sub(rf'\g<1>"{socket.gethostname()}"', text)
        return _LEASES.sub(self._leases, text)

    def steps(self) -> Iterator[Step]:
        """Apply one file change after another."""
        for index, recorded in enumerate(self.entries):
            if recorded["src"] != "file":
                continue
            for entry in (recorded,) if self._retell is None else self._retell(recorded):
                path = Path(self.local(entry["path"]))
                text = self.local(entry.get("text") or "")
                _apply(entry["op"], path, text.encode())
                yield Step(index, entry["t"], entry["op"], path, text)

    def run(self) -> float:
        """Apply everything; the time of the last change."""
        last = 0.0
        for step in self.steps():
            last = step.t
        return last


def _apply(op: str, path: Path, data: bytes) -> None:
    if op == "delete":
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if op == "append":
        with path.open("ab") as file:
            file.write(data)
    elif op == "replace":
        temporary = path.with_name(f"{path.name}.tmp-test")
        temporary.write_bytes(data)
        temporary.replace(path)
    else:
        path.write_bytes(data)
