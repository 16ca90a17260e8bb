"""How far HELIX goes by itself: low, medium, high.

Rules: docs/decisions/0011, docs/formats/helix.md §4. Low asks before every dispatch, injection and curation
write; medium goes on until something is ambiguous or in conflict, then asks; high goes on past what can be
resolved and files an escalation. GUIDANCE and physics-level conflicts stop at every level.

Which governing documents a repository has: whether a bead's ``spec-id`` names one of them.

A document is named by ``ddx: {id: …}`` or ``id: …`` in its frontmatter, by the beginning of its file name,
or by its path. Where the repository has no document with an id at all, nothing can be said to be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from helix_tui.core.ddx.files import read_bytes
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.supervision.signals.questions import OpenQuestions

Level = Literal["low", "medium", "high"]

LEVELS: tuple[Level, ...] = ("low", "medium", "high")

Deed = Literal["dispatch", "injection", "curation", "stage"]
"""What low asks about before each one."""


class ApprovalNeeded(HelixError):
    """Somebody must say yes first; the question stands in *Needs me*."""

    def __init__(self, question_id: str, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.question_id = question_id
        self.refused = refused


@dataclass(slots=True)
class Autonomy:
    """What one run may do by itself.

    Attributes:
        confirm: asks whoever sits at the terminal; None where nobody does, and the question is written down.
    """

    level: Level
    questions: OpenQuestions
    run_id: str = ""
    confirm: Callable[[str], bool] | None = None

    @property
    def escalates(self) -> bool:
        """Whether a resolvable conflict is passed with an escalation bead instead of a question."""
        return self.level == "high"

    def permit(self, deed: Deed, about: str, text: str, *, lasting: bool = False) -> None:
        """Go on, or ask first.

        Args:
            about: tells one deed from the next: an answer given for one is not one for another.
            lasting: one yes is enough for every time that the same deed comes up again.

        Raises:
            ApprovalNeeded: nobody has said yes, or somebody said no.
        """
        if self.level != "low":
            return
        if self.confirm is not None:
            if self.confirm(text):
                return
            raise ApprovalNeeded("", text, refused=True)
        key = f"approval:{deed}:{about}"
        given = self.questions.take_approval(key)
        if given is None and lasting:
            given = self.questions.approved_before(key) or None
        if given:
            return
        if given is False:
            raise ApprovalNeeded("", text, refused=True)
        question = self.questions.ask("approval", text, key=key, options=("yes", "no"), run_id=self.run_id)
        raise ApprovalNeeded(question.id, text)


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
