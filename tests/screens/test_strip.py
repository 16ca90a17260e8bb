"""The strip: what runs and what is next stay in one view, however much lies dead."""

from __future__ import annotations

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.runs.running import Run
from helix_tui.screens.queue.bead_screen import MOST_GONE, strip_rows
from helix_tui.widgets.rows.bead import RowContext, runs_by_bead


def test_live_runs_come_first_and_most_dead_ones_become_a_count() -> None:
    beads = {f"b-{number:08d}": Bead(id=f"b-{number:08d}") for number in range(9)}
    runs = [Run(bead_id=bead_id, live=False, verdict="dead") for bead_id in list(beads)[:7]]
    runs.append(Run(bead_id="b-00000008"))
    rows = strip_rows(RowContext(classify(beads, now=0), runs_by_bead(tuple(runs)), 0), (), 34)
    keys = [rows.key(index) for index in range(len(rows))]
    assert keys[:2] == ["caption:running", "running:b-00000008"]
    assert keys[2 + MOST_GONE : 4 + MOST_GONE] == ["more:running", "caption:next"]
    assert f"{7 - MOST_GONE} more gone" in rows.text(2 + MOST_GONE)
