"""The cause that a person can act on, and titles beside ids."""

from __future__ import annotations

import pytest

from helix_tui.core.beads.graph import with_titles
from helix_tui.core.beads.record import decode_bead
from helix_tui.core.ground.text import split_block
from helix_tui.core.statements.stuck import find_stuck
from helix_tui.core.statements.why import held_by
from helix_tui.core.supervision.signals.questions import OpenQuestion
from helix_tui.core.supervision.signals.tried import UNDECIDED
from tests.core.supervision.conftest import queue_of, row

ASKED = OpenQuestion("q-1", "conflict", "rebase or drop?", "conflict:a-1", "a-1")


def test_a_bead_that_waits_for_an_answer_says_for_which() -> None:
    queue = queue_of(
        [
            row("a-1", **{"execution-eligible": False, UNDECIDED: "a decision"}),
            row("a-2", **{"execution-eligible": False, "helix-focus-suppressed": "e-1"}),
            row("a-3", status="closed"),
            row("a-4"),
        ]
    )
    assert held_by(queue.beads["a-1"], [ASKED]) == ("waits for your answer to q-1: rebase or drop?",)
    assert held_by(queue.beads["a-1"]) == ("waits for your decision on its last attempt",)
    assert held_by(queue.beads["a-2"]) == ("held back by the focus on e-1",)
    assert held_by(queue.beads["a-3"], [ASKED]) == held_by(queue.beads["a-4"]) == ()
    (stuck,) = [each for each in find_stuck(queue, questions=[ASKED]) if each.bead_id == "a-1"]
    assert "waits for your answer to q-1" in stuck.detail


def test_ids_in_a_sentence_have_their_titles_once() -> None:
    beads = queue_of([row("ab-1", title="First thing"), row("ab-2", title="x" * 60)]).beads
    assert with_titles("waits on ab-1, ab-2, and ab-1; not ab-9", beads) == (
        f"waits on ab-1 “First thing”, ab-2 “{'x' * 39}…”, and ab-1; not ab-9"
    )
    assert with_titles("close ab-1: First thing", beads) == "close ab-1: First thing"
    ref = "rebase refs/ddx/iterations/ab-1/2026 or docs/ab-2"
    assert with_titles(ref, beads) == ref, "in the name of a ref or a file nothing is put"
    assert with_titles(f"{ref}: ab-1", beads).endswith(": ab-1 “First thing”")


def test_memories_in_a_description_stand_apart() -> None:
    text = "Do it.\n\n<helix-memory>\nPATTERNS TO APPLY:\n- this</helix-memory>"
    assert split_block(text) == ("Do it.", "PATTERNS TO APPLY:\n- this")
    assert split_block("plain") == ("plain", "")


@pytest.mark.parametrize("row", ['{"id":"a",%s}', '{ "id" : "a", %s }'])
def test_what_holds_a_bead_is_read_whoever_wrote_the_row(row: str) -> None:
    tried = decode_bead((row % '"execution-eligible": false, "helix-held-for" : "tried: no_changes"').encode())
    judged = decode_bead((row % '"execution-eligible": false, "helix-held-for" : "failed"').encode())
    assert held_by(tried) == ("tried in this run and skipped until its record changes or the run ends",)
    assert held_by(judged) == ("waits for your decision on its last attempt",)
