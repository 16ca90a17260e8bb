"""What a result of ddx's loop counts as."""

from __future__ import annotations

from helix_tui.core.supervision.stages.results import LoopResult, ambiguous

REF = "refs/ddx/iterations/hx-a/20260811T100000-00000001-abc"


def test_a_success_that_was_kept_aside_completes_no_cycle_and_asks_a_person() -> None:
    aside = LoopResult("hx-a", "success", preserve_ref=REF)
    assert not aside.success
    assert ambiguous(aside)
    assert aside.attempt.verdict.outcome == "kept_aside"
    landed = LoopResult("hx-a", "success")
    assert landed.success
    assert not ambiguous(landed)
    assert not LoopResult("hx-a", "already_satisfied").success
