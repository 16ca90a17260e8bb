"""Ask before beads are executed whose kept change ddx may land as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.supervision.signals.kept_changes import landable
from helix_tui.screens.editing.choices import Choice, ChoiceSheet, whom

if TYPE_CHECKING:
    from helix_tui.screens.base import Console


def kept_changes(console: Console, bead_ids: Sequence[str]) -> list[Attempt]:
    """The attempts on these beads whose kept change ddx may land as it is; none if this ddx always executes afresh."""
    snapshot = console.snapshot
    return landable(snapshot.queue, console.loop_controls.dialect, snapshot.attempts, bead_ids)


def carry_through(console: Console, bead_ids: Sequence[str], do: Callable[[Sequence[Attempt]], object]) -> None:
    """Have beads executed; if that would land a kept change, only after confirmation.

    Args:
        do: executes them, given the attempts whose refused change the person lets land.
    """
    kept = kept_changes(console, bead_ids)
    if not kept:
        do(())
        return
    refused = [attempt for attempt in kept if attempt.verdict.outcome == "refused"]
    why = "a review refused it" if refused else "it was kept aside"
    revs = ", ".join(attempt.result_rev[:12] for attempt in (refused or kept)[:3])
    said = f"{revs} may land on {console.snapshot.branch} as it is, without running an agent; {why}"
    title = f"attempt {whom([console.snapshot.queue.beads[attempt.bead_id] for attempt in kept])} again?"
    choices = [Choice("y", "y", "attempt", said, partial(do, refused))]
    dialect = console.loop_controls.dialect
    if dialect is not None and dialect.lands_kept:
        choices.append(Choice("", "", "attempt afresh", "", str, "drop the kept change first: D in Needs me"))
    console.push_screen(ChoiceSheet(title, choices))
