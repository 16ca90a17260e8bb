"""The strip: what runs and what is next stay in one view, however much is dead; alike titles stay apart."""

from __future__ import annotations

from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.screens.queue.queue_screen import strip_rows
from helix_tui.widgets.rows.bead import RowContext, runs_by_bead


def test_only_what_is_alive_is_called_running() -> None:
    beads = {f"b-{number:08d}": Bead(id=f"b-{number:08d}") for number in range(9)}
    runs = [Run(bead_id=bead_id, live=False, verdict="dead") for bead_id in list(beads)[:7]]
    runs.append(Run(bead_id="b-00000008"))
    rows = strip_rows(RowContext(classify(beads, now=0), runs_by_bead(tuple(runs)), 0), (), 34)
    keys = [rows.key(index) for index in range(len(rows))]
    assert keys[:3] == ["caption:running", "running:b-00000008", "caption:next"]


def test_the_rows_of_what_needs_me_add_up_to_their_caption_and_have_keys_of_their_own() -> None:
    beads = {f"b-{place}": Bead(id=f"b-{place}", title=f"Bead {place}") for place in range(2)}
    needs = [Need(kind, "b-0", "why", 0) for kind in ("guidance", "drift")] + [Need("drift", "b-1", "why", 0)]
    rows = strip_rows(RowContext(classify(beads, now=0), {}, 0), needs, 30)
    keys = [rows.key(index) for index in range(len(rows))]
    assert len(keys) == len(set(keys))
    shown = [rows.text(index).split() for index in range(len(rows)) if rows.key(index).startswith("need:")]
    assert [line[1:] for line in shown] == [["Bead", "0", "2×"], ["Bead", "1"]]
    assert rows.text(keys.index("caption:needs")).split()[-1] == "3"
