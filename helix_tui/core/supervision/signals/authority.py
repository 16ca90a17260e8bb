"""Which governing documents a repository has: whether a bead's ``spec-id`` names one of them.

A document is named by ``ddx: {id: …}`` or ``id: …`` in its frontmatter, by the beginning of its file name,
or by its path. Where the repository has no document with an id at all, nothing can be said to be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from helix_tui.core.ddx.files import read_bytes

_HEAD = 4096
_MOST = 4000
_ID = re.compile(rb"(?m)^\s*id:\s*[\"']?([\w.-]+)")
_PASSED_OVER = frozenset({".git", ".ddx", ".helix", ".helix-logs", "node_modules", ".venv", "venv", "target", "dist"})


class Authority:
    """The documents of one repository, found when somebody first asks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ids: set[str] | None = None
        self._names: set[str] = set()

    def lacks(self, spec_id: str) -> bool:
        """Whether a bead names a document that is not there."""
        if not spec_id or self._has_path(spec_id):
            return False
        if self._ids is None:
            self._look()
        if not self._ids or spec_id in self._ids:
            return False
        return not any(name == spec_id or name.startswith((f"{spec_id}-", f"{spec_id}.")) for name in self._names)

    def _has_path(self, spec_id: str) -> bool:
        path = spec_id.partition("#")[0].partition(":")[0]
        return bool(path) and not path.startswith(("/", "..")) and (self.root / path).exists()

    def _look(self) -> None:
        self._ids = set()
        for path in documents(self.root):
            self._names.add(path.name)
            raw = read_bytes(path, _HEAD) or b""
            if raw.startswith(b"---"):
                front = raw[3:].partition(b"\n---")[0]
                self._ids.update(found.decode("utf-8", "replace") for found in _ID.findall(front))


def documents(root: Path) -> Iterator[Path]:
    """The Markdown files under ``docs``, in order, as many as can be looked at."""
    seen = 0
    for folder, folders, names in os.walk(root / "docs"):
        folders[:] = sorted(name for name in folders if name not in _PASSED_OVER)
        for name in sorted(names):
            if name.endswith(".md"):
                seen += 1
                if seen > _MOST:
                    return
                yield Path(folder, name)
