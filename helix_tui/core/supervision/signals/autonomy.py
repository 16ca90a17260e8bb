"""How far HELIX goes by itself: low, medium, high.

Rules: docs/decisions/0011, docs/formats/helix.md §4. Low asks before every dispatch, injection and curation
write; medium goes on until something is ambiguous or in conflict, then asks; high goes on past what can be
resolved and files an escalation. GUIDANCE and physics-level conflicts stop at every level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
