"""What a run is asked for, and why it ended."""

from __future__ import annotations

from msgspec import Struct

from helix_tui.core.supervision.run_state.budget import NO_BUDGET, Budget
from helix_tui.core.supervision.run_state.state import REASONS
from helix_tui.core.supervision.signals.autonomy import Level
from helix_tui.core.supervision.stages.delegate import NOBODY, AgentChoice
from helix_tui.core.supervision.stages.injection import THRESHOLD


class RunOptions(Struct, frozen=True):
    """What a run is asked for."""

    max_cycles: int = 0
    """Completed cycles after which it stops; 0: none."""
    review_every: int = 15
    """Completed cycles after which an alignment bead is injected; 0: never."""
    review_threshold: int = THRESHOLD
    auto_align: bool = True
    auto_review: bool = True
    autonomy: Level = "medium"
    focus: str = ""
    """The epic to begin with."""
    auto_focus: bool = True
    batch: tuple[str, ...] = ()
    """Beads that it is about: it stops once none of them is ready or running; empty: all."""
    wishes: AgentChoice = NOBODY
    context: bool = False
    """Put stance and context before the agent of the bead that ddx picks next, in its description, while it runs."""
    budget: Budget = NO_BUDGET
    """What whoever starts it allows; what that leaves open, the project's file says, then the settings."""
    default_budget: Budget = NO_BUDGET
    """What the settings allow."""


class Stop(Struct, frozen=True):
    """Why a run ended."""

    reason: str
    detail: str = ""
    code: int = 0
    command: str = ""
    """The exact command that would carry on, where there is one."""

    @property
    def meaning(self) -> str:
        """The reason in words."""
        return REASONS.get(self.reason, self.reason)


class Stopped(Exception):
    """Ends a run from inside."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.reason)
        self.stop = stop
