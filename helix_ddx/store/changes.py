"""A change of one record: the time, the checks and the hook that go with every change."""

from __future__ import annotations

from collections.abc import Callable

from helix_ddx.base.refusal import Refused
from helix_ddx.base.stamps import stamp
from helix_ddx.store.call import VerbCall
from helix_ddx.store.hooks import run_hook
from helix_ddx.store.lifecycle import check_row
from helix_ddx.store.rows import TrackerRow
from helix_ddx.store.tracker import Beads
from helix_tui.core.beads.record import Bead, UnreadableLine


def change_row(call: VerbCall, beads: Beads, bead_id: str, change: Callable[[TrackerRow], None]) -> Bead:
    """Change one record, with the time, the checks and the hook that go with every change.

    Raises:
        Refused: there is no such bead, or something objects.
    """
    row = beads.row(bead_id)
    try:
        change(row)
    except UnreadableLine as problem:
        raise Refused(f"bead: {bead_id}: {problem}; nothing was written") from None
    row.put("updated_at", stamp(call.clock()))
    check_row(row, call.era)
    run_hook(call, "validate-bead-update", row.line())
    return beads.put(row)
