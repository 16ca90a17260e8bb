"""A change that is kept aside, and that ddx's verb for one bead may land as it is: that wants a yes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ground.text import clean_line
from helix_tui.core.supervision.stages.build import may_land
from helix_tui.screens.editing.choices import Choice, ChoiceSheet

if TYPE_CHECKING:
    from helix_tui.screens.base import Console


def kept_changes(console: Console, bead_ids: Sequence[str]) -> list[Attempt]:
    """The attempts whose change ddx may land as it is, of these beads; none where this ddx executes beads anew."""
    dialect, beads = console.loop_controls.dialect, console.snapshot.queue.beads
    made = (console.snapshot.attempts.deciding(bead_id) for bead_id in bead_ids)
    return [
        attempt for attempt in made if attempt is not None and may_land(dialect, attempt, beads.get(attempt.bead_id))
    ]


def carry_through(console: Console, bead_ids: Sequence[str], do: Callable[[], object]) -> None:
    """Have beads executed; where that would land what is kept of one, only after a yes."""
    kept = kept_changes(console, bead_ids)
    if not kept:
        do()
        return
    refused = [attempt for attempt in kept if attempt.verdict.outcome == "refused"]
    why = "a review refused it" if refused else "it was kept aside"
    revs = ", ".join(attempt.result_rev[:12] for attempt in (refused or kept)[:3])
    said = f"{revs} may land on the branch as it is, without running an agent; {why}"
    title = f"land the kept change of {clean_line(', '.join(attempt.bead_id for attempt in kept[:3]), 80)}?"
    choices = [Choice("y", "y", "land it", said, do)]
    dialect = console.loop_controls.dialect
    if dialect is not None and dialect.lands_kept:
        choices.append(Choice("", "", "attempt afresh", "", str, "drop the kept change first: D in Needs me"))
    console.push_screen(ChoiceSheet(title, choices))
