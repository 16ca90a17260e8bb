"""FEAT-002's acceptance list, less what the rulings retire; each test quotes the line that it stands for.

Retired by CONTRACT-001 and docs/decisions/0004, 0005, 0006: retries with backoff, blocker store,
unclaiming after a failure, recovery of claims by the loop, multi-bead dispatch. What of them is left as a
view is tested as that. Those about a command's own output stand in ``tests/cli/helix``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.statements.stuck import find_stuck
from helix_tui.core.supervision.decide.facts import gather_facts
from helix_tui.core.supervision.decide.verdict import decide
from helix_tui.core.supervision.run_state.run_control import active_run, request, start_run, stop_run
from helix_tui.core.supervision.signals.escalation import decide_escalation
from helix_tui.core.supervision.stages.delegate import AgentChoice
from helix_tui.core.supervision.stages.injection import injected_type
from tests.core.supervision.conftest import queue_of, row
from tests.core.supervision.loop.conftest import StageFactory

pytestmark = [pytest.mark.realtime, pytest.mark.long]

LATER = {"retry_after": "2099-01-01T00:00:00Z"}


# “Running helix run follows the explicit NEXT_ACTION contract for BUILD, DESIGN, POLISH, ALIGN, BACKFILL,
# WAIT, GUIDANCE, and
# STOP.” BUILD here, the others in test_loop.


def test_build_continues_with_what_became_ready(stage: StageFactory) -> None:
    world = stage([row("a-1", **{"execution-eligible": False})])
    lift = ["bead", "update", "a-1", "--set", "execution-eligible=true"]
    world.answers({"output": "NEXT_ACTION: BUILD", "do": [lift]}, "NEXT_ACTION: STOP")
    outcome = world.run()
    assert world.executed == ["a-1 success"]
    assert outcome.stop.reason == "next_action:STOP"


def test_design_is_run_once_then_the_queue_is_looked_at_again(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    create = ["bead", "create", "Designed", "--priority", "2"]
    world.answers("NEXT_ACTION: DESIGN", {"output": "PLAN_STATUS: CONVERGED", "do": [create]})
    outcome = world.run()
    assert world.asked == ["check", "design", "check"]
    assert len(world.executed) == 1
    assert outcome.state.completed_cycles == 1


def test_run_treats_ddx_managed_execution_as_the_implementation_substrate(stage: StageFactory) -> None:
    """“execute-bead for bounded managed work, and execute-loop as the target queue-drain contract”"""
    world = stage([row("a-1", era="april")], "april")
    world.run()
    assert world.calls[0] == "agent execute-loop --once --json --local"
    assert not any("agent run" in call for call in world.calls[:1])


def test_run_counts_only_completed_build_passes_as_completed_cycles(stage: StageFactory) -> None:
    review = ["helix", "phase:review", "kind:review", "review-finding", "helix-injected:review-finding"]
    world = stage([row("a-1"), row("a-2"), row("r-1", labels=review), row("a-3")])
    world.turns({"results": [{}]}, {"results": [{"status": "execution_failed", "fields": LATER}]})
    state = world.run().state
    assert (state.attempted_cycles, state.completed_cycles, state.supervisory_cycles) == (4, 2, 1)
    assert state.outcomes == {"success": 2, "execution_failed": 1}


def test_max_cycles_counts_completed_ones(stage: StageFactory) -> None:
    world = stage([row(f"a-{n}") for n in range(5)])
    world.turns({"results": [{"status": "execution_failed", "fields": LATER}]})
    outcome = world.run(max_cycles=2)
    assert outcome.stop.reason == "max_cycles"
    assert (outcome.state.attempted_cycles, outcome.state.completed_cycles) == (3, 2)


@pytest.mark.parametrize(
    ("turn", "tokens"),
    [
        ({"results": [{}], "stderr": "blah\ntokens used: 4,321\n"}, 4321),
        ({"results": [{}], "stderr": "tokens used\n1_234\n"}, 1234),
        (
            {"results": [{"fields": {"input_tokens": 100, "output_tokens": 23}}], "stderr": "tokens used: 9"},
            123,
        ),
        ({"results": [{"fields": {"tokens": 77}}]}, 77),
    ],
)
def test_run_captures_codex_token_usage_even_on_stderr(stage: StageFactory, turn: dict, tokens: int) -> None:
    world = stage([row("a-1")])
    world.turns(turn)
    assert world.run(max_cycles=1).state.total_tokens == tokens


def test_a_turn_whose_tokens_nobody_told_says_so(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}]})
    done = world.process("run", "--summary", "--max-cycles", "1", "--no-auto-review")
    assert "cycle 1: a-1 → COMPLETE (1/1 done, tokens n/a)" in done.stderr
    assert "0 tokens" not in done.stderr


def test_tokens_of_checks_and_planning_count_too(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers(
        {"output": "NEXT_ACTION: DESIGN", "input_tokens": 10, "output_tokens": 5},
        {"output": "PLAN_STATUS: CONVERGED", "stderr": "tokens used: 100"},
        "NEXT_ACTION: STOP",
    )
    assert world.run().state.total_tokens == 115


def test_run_refreshes_context_every_five_completed_cycles_with_quick_reference_and_counts(
    stage: StageFactory,
) -> None:
    world = stage([row(f"a-{n}") for n in range(6)])
    (world.root / "AGENTS.md").write_text(
        "# Agents\n\n## Quick Reference\n\nUse:\n\n```bash\nmake build\n```\n\n"
        "### Test\n\n```\n# all\nmake test\n```\n## More\n```\nno\n```\n"
    )
    world.run(max_cycles=4)
    context = (world.root / ".helix" / "context.md").read_text()
    assert "## Build/Test Commands\n\n```bash\nmake build\n# all\nmake test\n```\n\n## Key" in context
    assert "Issue counts: ready=6, open=6, in-progress=0, closed=0" in context
    world.rewrite("a-0", status="open")
    world.run(max_cycles=5)
    assert "closed=" in (world.root / ".helix" / "context.md").read_text()


def test_a_quick_reference_without_a_fence_is_told_as_it_is(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    text = "# Quick Reference\n\n- Build: `make build`\n- Test: `make test`\n\n# Style\n\nno\n"
    (world.root / "AGENTS.md").write_text(text)
    world.run(max_cycles=1)
    context = (world.root / ".helix" / "context.md").read_text()
    assert "## Build/Test Commands\n\n- Build: `make build`\n- Test: `make test`\n\n## Key" in context


def test_context_is_made_anew_on_the_fifth_and_not_before(stage: StageFactory) -> None:
    world = stage([row(f"a-{n}") for n in range(7)])
    world.run(max_cycles=5)
    assert "ready=2, open=2, in-progress=0, closed=5" in (world.root / ".helix" / "context.md").read_text()
    assert sum("context refreshed" in line for line in world.said) == 2


def test_context_is_made_anew_on_an_epic_switch(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic", **{"spec-id": "FEAT-3"}), row("c-1", parent="e-1")])
    world.turns({"results": [{"status": "execution_failed", "fields": LATER}]})
    world.run()
    log = Path(world.state["log"]).read_text()
    assert log.count("context refreshed") >= 3


# “Running helix run surfaces review findings before the loop advances.”: as a bead that comes before the next one.


def test_a_review_is_executed_before_the_next_bead(stage: StageFactory) -> None:
    world = stage(
        [
            row("a-1", priority=0, labels=["helix", "phase:build", "area:ui"], spec__id="SD-1"),
            row("a-2", priority=0),
            row("e-1", issue_type="epic"),
            row("e-2", parent="e-1"),
        ],
    )
    outcome = world.run(auto_review=True, review_threshold=0, auto_align=False)
    reviews = [each for each in world.rows().values() if "helix-injected:review-finding" in each.get("labels", ())]
    reviews.sort(key=lambda each: each["helix-trigger-cycle"])
    assert [review["helix-trigger-bead"] for review in reviews[:2]] == ["a-1", "a-2"]
    first = reviews[0]
    assert {"helix", "phase:review", "kind:review", "review-finding", "area:ui"} <= set(first["labels"])
    assert (first["spec-id"], first["helix-trigger-source"]) == ("SD-1", "post-cycle-review")
    assert first["notes"] == "TRIGGERING_CYCLE=1 TRIGGERING_BEAD=a-1"
    assert first["execution-eligible"] is True
    order = [line.split()[0] for line in world.executed]
    assert order[:5] == ["a-1", first["id"], "a-2", reviews[1]["id"], "e-2"]
    assert outcome.state.completed_cycles == 3
    assert not any("helix-held-for" in each for each in world.rows().values())


def test_injected_acceptance_is_such_as_our_own_rules_take(stage: StageFactory) -> None:
    from helix_tui.core.editing.authoring import deterministic

    world = stage([row("a-1")])
    world.run(auto_review=True, review_threshold=0, review_every=1, max_cycles=1)
    injected = [each for each in world.rows().values() if "helix-trigger-bead" in each]
    assert len(injected) == 2
    assert all(deterministic(each["acceptance"]) for each in injected)


def test_no_auto_review_injects_nothing(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.run(auto_review=False, review_threshold=0, auto_align=False, review_every=1)
    assert list(world.rows()) == ["a-1"]


@pytest.mark.parametrize(("lines", "threshold", "reviewed"), [(5, 100, False), (150, 100, True), (5, None, True)])
def test_every_success_is_reviewed_unless_a_threshold_is_given(
    stage: StageFactory, lines: int, threshold: int | None, reviewed: bool
) -> None:
    world = stage([row("a-1")], git=True)
    world.turns({"results": [{"commit_lines": lines}]})
    if threshold is None:
        world.run(auto_review=True, max_cycles=1)
    else:
        world.run(auto_review=True, max_cycles=1, review_threshold=threshold)
    assert any("no review of a-1: 5 lines in 1 file" in line for line in world.said) is not reviewed
    assert any("helix-trigger-bead" in each for each in world.rows().values()) is reviewed


def test_alignment_is_injected_on_the_step_to_each_nth_cycle_and_once(stage: StageFactory) -> None:
    world = stage([row(f"a-{n}") for n in range(5)])
    fail = {"results": [{"status": "execution_failed", "fields": LATER}]}
    world.turns({"results": [{}]}, {"results": [{}]}, fail, {"results": [{"bead_id": "a-3"}]})
    world.run(review_every=2, max_cycles=3)
    made = [each for each in world.rows().values() if "helix-injected:alignment-review" in each.get("labels", ())]
    assert [each["helix-trigger-cycle"] for each in made] == ["2"]
    assert made[0]["helix-trigger-source"] == "periodic-alignment"
    assert (made[0]["helix-trigger-bead"], made[0]["title"]) == ("a-1", "align: repo after 2 cycles")
    assert not any("queue-empty" in line for line in world.said)


def test_nothing_is_injected_for_a_supervisory_bead(stage: StageFactory) -> None:
    labels = ["helix", "phase:review", "kind:review", "review-finding", "helix-injected:review-finding"]
    world = stage([row("r-1", labels=labels)])
    world.run(auto_review=True, review_threshold=0)
    assert list(world.rows()) == ["r-1"]


def test_run_stays_focused_on_a_chosen_epic_until_an_explicit_blocker_forces_release(stage: StageFactory) -> None:
    world = stage(
        [
            row("e-1", issue_type="epic"),
            row("c-1", parent="e-1", priority=1),
            row("c-2", "c-1", parent="e-1", priority=1),
            row("t-1", priority=0, **{"execution-eligible": True}),
            row("t-2", priority=3, **{"execution-eligible": False}),
        ],
    )
    world.turns({"results": [{"status": "execution_failed", "fields": LATER}]})
    outcome = world.run(focus="e-1")
    assert world.executed == ["c-1 execution_failed", "t-1 success"]
    assert any("none are eligible — releasing focus" in line for line in world.said)
    rows = world.rows()
    assert rows["t-1"]["execution-eligible"] is True
    assert rows["t-2"]["execution-eligible"] is False
    assert outcome.stop.reason == "next_action:WAIT"


def test_a_bead_made_while_the_focus_is_on_is_held_back_too(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1"), row("c-2", parent="e-1", priority=3)])
    late = ["bead", "create", "Late", "--priority", "0"]
    world.turns({"results": [{"do": [late]}]})
    world.run()
    order = [line.split()[0] for line in world.executed]
    assert order[:2] == ["c-1", "c-2"]
    assert len(order) == 3


def test_the_focus_never_holds_back_what_the_epic_waits_for(stage: StageFactory) -> None:
    world = stage(
        [row("e-1", issue_type="epic"), row("c-1", "t-1", parent="e-1"), row("c-0", parent="e-1"), row("t-1")]
    )
    world.run()
    assert all(each["status"] == "closed" for each in world.rows().values())


def test_an_operators_own_focus_stays(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1"), row("t-1")])
    world.process("focus", "e-1")
    assert world.rows()["t-1"]["execution-eligible"] is False
    world.turns({"results": []}, {"results": []})
    assert world.run().stop.reason == "no_selectable"
    assert world.rows()["t-1"]["execution-eligible"] is False


@pytest.mark.parametrize("focus", [True, False], ids=["focused", "unfocused"])
@pytest.mark.parametrize("threshold", [0, 100], ids=["each-reviewed", "none-reviewed"])
def test_a_closed_epic_is_reviewed_as_a_whole(stage: StageFactory, focus: bool, threshold: int) -> None:
    epic = row("e-1", issue_type="epic", **{"spec-id": "FEAT-3"})
    world = stage([epic, row("c-1", parent="e-1"), row("c-2", parent="e-1")])
    outcome = world.run(auto_review=True, auto_align=False, auto_focus=focus, review_threshold=threshold)
    (review,) = [each for each in world.rows().values() if each.get("helix-trigger-source") == "post-epic-close"]
    assert review["description"].startswith("Scope: FEAT-3")
    assert (world.rows()["e-1"]["status"], review["status"]) == ("closed", "closed")
    assert outcome.state.completed_cycles == 2


def test_an_epic_is_left_after_its_review(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1", priority=1), row("t-1", priority=0)])
    world.run(focus="e-1", auto_review=True, review_threshold=1000, auto_align=False)
    order = [line.split()[0] for line in world.executed]
    (review,) = [each for each in world.rows() if each not in ("e-1", "c-1", "t-1")]
    assert order[:3] == ["c-1", review, "t-1"]
    assert world.rows()["e-1"]["status"] == "closed"


def test_an_epic_whose_review_cannot_be_done_now_keeps_nobody(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1", priority=1), row("t-1", priority=4)])
    world.turns({"results": [{}]}, {"results": [{"status": "execution_failed", "fields": LATER}]})
    world.run(focus="e-1", auto_review=True, review_threshold=1000, auto_align=False)
    assert world.executed[0] == "c-1 success"
    assert world.executed[1].endswith("execution_failed")
    assert world.executed[2:] == ["t-1 success"]


def test_the_reviewer_that_was_asked_for_reviews(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2", priority=3)])
    agent_choice = AgentChoice("claude", "opus", reviewer="codex/gpt")
    world.run(auto_review=True, auto_align=False, agent_choice=agent_choice, max_cycles=2)
    turns = [line for line in world.calls if "--once" in line]
    who = [(line.partition(" --harness ")[2].split()[0], line.partition(" --model ")[2].split()[0]) for line in turns]
    assert who == [("claude", "opus"), ("codex", "gpt"), ("claude", "opus")]
    (review, *_) = [each for each in world.rows().values() if each.get("helix-trigger-bead") == "a-1"]
    assert (review["helix-reviewer"], review["status"]) == ("codex/gpt", "closed")


@pytest.mark.parametrize(
    ("named", "who"),
    [("codex/gpt", ("codex", "gpt")), ("", ("codex", "o3")), ("claude", ("claude", "opus"))],
)
def test_a_reviewer_named_now_takes_the_place_of_the_one_asked_for_before(
    stage: StageFactory, named: str, who: tuple[str, str]
) -> None:
    world = stage([row("r-1", labels=["helix", "helix-injected:review-finding"], **{"helix-reviewer": "codex/o3"})])
    world.run(auto_align=False, agent_choice=AgentChoice("claude", "opus", reviewer=named), max_cycles=1)
    (turn, *_) = [line for line in world.calls if "--once" in line]
    assert (turn.partition(" --harness ")[2].split()[0], turn.partition(" --model ")[2].split()[0]) == who


@pytest.mark.processes  # how long a turn took is in tenths of a second
def test_run_emits_blocker_report_and_observability_metadata_for_timing_and_tokens(
    stage: StageFactory,
) -> None:
    world = stage([row("a-1"), row("b-1", "gone-1")])
    world.turns({"results": [{"status": "execution_failed", "fields": LATER}], "stderr": "tokens used: 50"})
    world.answers("NEXT_ACTION: STOP")
    world.run()
    said = "\n".join(world.said)
    assert "BLOCKERS (2 issues):" in said
    assert "a-1 — retry-parked" in said
    assert "b-1 — dep-blocked" in said
    (cycle,) = world.state["cycles"]
    assert (cycle["tokens"], cycle["results"]) == (50, [["a-1", "execution_failed"]])
    assert cycle["seconds"] > 0
    assert {each["bead_id"] for each in world.state["blockers"]} == {"a-1", "b-1"}
    labels = world.rows()["a-1"].get("labels", [])
    assert "blocked" not in labels
    assert "notes" not in world.rows()["a-1"]


def test_run_does_not_discard_unrelated_worktree_changes(stage: StageFactory) -> None:
    world = stage([row("a-1")], git=True)
    (world.root / "mine.txt").write_text("half done\n")
    subprocess.run(["git", "-C", str(world.root), "add", "mine.txt"], check=True, timeout=30)
    world.turns({"results": [{"status": "execution_failed", "fields": LATER}]})
    world.run()
    assert (world.root / "mine.txt").read_text() == "half done\n"


def test_a_failed_attempt_is_neither_unclaimed_nor_retried_by_us(stage: StageFactory) -> None:
    """docs/decisions/0004 in the place of “does not retry … with stale claims”."""
    world = stage([row("a-1"), row("a-2")])
    claim = ["bead", "update", "{id}", "--claim"]
    world.turns({"results": [{"status": "execution_failed", "fields": LATER, "do": [claim]}]})
    world.run(max_cycles=1)
    assert world.rows()["a-1"]["status"] == "in_progress"
    assert world.executed == ["a-1 execution_failed", "a-2 success"]


def test_summary_produces_one_liners_with_log_line_ranges(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{}], "stderr": "tokens used: 1234"})
    done = world.process("run", "--summary", "--max-cycles", "1", "--no-auto-review")
    lines = done.stderr.splitlines()
    line = next(line for line in lines if "complete (rc=0" in line)
    span = line.rpartition(" in ")[0].rpartition("log L")[2].split("–L")
    log = Path(line.rpartition(" in ")[2]).read_text().splitlines()
    block = log[int(span[0]) - 1 : int(span[1])]
    assert block[0].startswith("--- ddx output [")
    assert block[-1] == "--- end ddx output ---"
    assert any("cycle 1: a-1 → COMPLETE (1/1 done, 1,234 tokens)" in line for line in lines)
    assert "ready=" not in done.stderr
    assert any("ready=1, cycle=1" in line for line in log)
    assert "run complete: 1 attempted, 1 completed, 0 skipped, 1,234 tokens" in done.stderr


def test_run_stops_after_two_consecutive_build_cycles_with_no_selectable_issue_and_names_orphans(
    stage: StageFactory,
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    claim = {
        "claimed-pid": str(dead.pid),
        "claimed-at": "2026-01-01T00:00:00Z",
        "claimed-machine": os.uname().nodename,
    }
    world = stage([row("a-1", status="in_progress", owner="x", **claim)])
    world.turns({"results": []}, {"results": []})
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("no_selectable", 0)
    assert "a-1" in outcome.stop.detail
    assert outcome.stop.command == "helix-tui stuck --recover a-1"
    assert world.rows()["a-1"]["status"] == "in_progress"


def test_orphans_are_reclaimed_by_an_explicit_action_when_pid_is_dead_and_the_claim_is_old(
    stage: StageFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/decisions/0005 in the place of “reclaims orphaned issues”."""
    dead = subprocess.Popen([sys.executable, "-c", "pass"])
    dead.wait()
    young = format_instant(now_ns() - 600 * 10**9)
    claim = {"claimed-pid": str(dead.pid), "claimed-at": young, "claimed-machine": os.uname().nodename}
    world = stage([row("a-1", status="in_progress", owner="x", **claim)])
    assert world.process("stuck", "--recover").returncode == 1
    monkeypatch.setenv("HELIX_ORPHAN_THRESHOLD", "300")
    done = world.process("stuck", "--recover")
    assert done.returncode == 0
    assert world.rows()["a-1"]["status"] == "open"
    assert "claimed-pid" not in world.rows()["a-1"]


def test_a_parent_epic_counts_as_stuck_when_nothing_under_it_can_move() -> None:
    """Derived, in the place of “blocks the parent epic when a child is intractable”."""
    queue = queue_of(
        [
            row("e-1", issue_type="epic"),
            row("c-1", parent="e-1", **{"work-retry-after": "2099-01-01T00:00:00Z"}),
            row("c-2", "c-1", parent="e-1"),
        ]
    )
    stuck = {each.bead_id: each for each in find_stuck(queue, epic="e-1")}
    assert list(stuck) == ["c-1", "c-2"], "one row a cause: the epic is named in the rows of its beads"
    assert all("; nothing under e-1 “" in each.detail for each in stuck.values())
    assert all(each.detail.endswith(", in focus, can be picked") for each in stuck.values())


def test_claim_records_when_and_who_and_unclaim_clears_it(stage: StageFactory) -> None:
    """“update <id> --claim records claimed-at and claimed-pid metadata”, “--unclaim restores open status”"""
    world = stage([row("a-1")])
    assert world.process("tracker", "update", "a-1", "--claim").returncode == 0
    claimed = json.loads(world.process("tracker", "show", "a-1", "--json").stdout)
    assert claimed["status"] == "in_progress"
    assert parse_instant(claimed["claimed-at"]) is not None
    assert int(claimed["claimed-pid"]) > 0
    assert world.process("tracker", "update", "a-1", "--unclaim").returncode == 0
    free = world.rows()["a-1"]
    assert free["status"] == "open"
    assert not {"claimed-at", "claimed-pid"} & free.keys()


# --- start, stop, pause ------------------------------------------------------------------------------------


def test_start_runs_in_the_background_and_stop_ends_it(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"sleep": 60})
    curator = world.curator()
    start_run(curator.project, world.words("run", "--summary"))
    holder = active_run(curator.project)
    assert holder is not None
    again = world.process("start")
    assert again.returncode == 1
    assert f"run already active (pid={holder.pid})" in again.stderr
    assert stop_run(curator.project).how == "stopped"
    assert active_run(curator.project) is None
    none = world.process("stop")
    assert none.returncode == 1
    assert "no active run" in none.stderr


def test_a_wish_to_stop_waits_for_the_bead_in_hand(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    world.turns({"results": [{}], "sleep": 0.5})
    process = subprocess.Popen(world.words("run", "--no-auto-review"), stderr=subprocess.PIPE, text=True)
    from tests.core.supervision.loop.test_faults import wait_for

    wait_for(lambda: (world.folder / "pids.log").exists())
    assert stop_run(world.curator().project, now=False).how == "asked"
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert world.executed == ["a-1 success"]
    assert "stop_requested" in err


def test_a_paused_run_goes_on_where_the_wish_is_taken_back(stage: StageFactory) -> None:
    from helix_tui.core.supervision.run_state.run_control import Control

    world = stage([row("a-1")])
    project = world.curator().project

    class Pausing(Control):
        looks: int = 0

        def requested(self) -> str:  # type: ignore[override]
            self.looks += 1
            return "pause" if self.looks < 4 else ""

        def rest(self) -> None:
            """No waiting in a test."""

    request(project, "pause")
    outcome = world.run(control=Pausing(project))
    assert world.executed == ["a-1 success"]
    assert any(line.endswith("resumed") for line in world.said)
    assert outcome.stop.code == 0


# --- autonomy and conflicts --------------------------------------------------------------------------------


def test_low_confirms_each_dispatch(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    outcome = world.run(autonomy="low")
    assert (outcome.stop.reason, outcome.stop.code) == ("approval", 0)
    assert not world.executed
    (question,) = world.questions
    world.store.answer(question.id, "yes")
    assert world.run(autonomy="low").stop.reason == "approval"
    assert world.executed == ["a-1 success"]


def test_low_confirms_each_curation_write(stage: StageFactory) -> None:
    world = stage([row("e-1", issue_type="epic"), row("c-1", parent="e-1"), row("t-1")])
    world.run(autonomy="low")
    assert world.questions[0].text.startswith("focus on e-1")
    assert "execution-eligible" not in world.rows()["t-1"]


def test_medium_asks_about_a_conflict_and_does_not_go_on_with_what_it_touches(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns({"results": [{"status": "land_conflict", "fields": {"preserve_ref": "refs/ddx/iterations/a-1/x"}}]})
    outcome = world.run(autonomy="medium")
    assert (outcome.stop.reason, outcome.stop.code) == ("question", 0)
    (question,) = world.questions
    assert (question.kind, question.bead_id, question.stops) == ("conflict", "a-1", False)
    assert world.executed == ["a-1 land_conflict"]


def test_high_files_an_escalation_for_a_resolvable_conflict_and_goes_on(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    fields = {"preserve_ref": "refs/ddx/iterations/a-1/x", **LATER}
    world.turns({"results": [{"status": "land_conflict", "fields": fields}]})
    world.run(autonomy="high")
    assert world.executed == ["a-1 land_conflict", "a-2 success"]
    assert not world.questions
    (escalation,) = [each for each in world.rows().values() if "kind:escalation" in each.get("labels", ())]
    assert (escalation["execution-eligible"], escalation["helix-trigger-bead"]) == (False, "a-1")


@pytest.mark.parametrize("level", ["medium", "high"])
def test_physics_level_stops_at_every_level(stage: StageFactory, level: str) -> None:
    world = stage([row("a-1"), row("a-2")])
    rationale = "The two requirements contradict each other: it must be real-time and it must be batch only."
    world.turns({"results": [{"status": "no_changes", "fields": {"no_changes_rationale": rationale, **LATER}}]})
    assert world.run(autonomy=level).stop.reason == "physics_level"
    assert world.executed == ["a-1 no_changes"]
    again = world.run(autonomy=level)
    assert again.stop.reason == "next_action:GUIDANCE"
    assert len(world.executed) == 1
    (question,) = world.questions
    world.store.answer(question.id, "batch")
    world.run(autonomy=level)
    assert world.executed[-1] == "a-2 success"


def test_a_preserved_attempt_is_never_physics_level(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    fields = {"preserve_ref": "refs/x/y", "no_changes_rationale": "they contradict each other", **LATER}
    world.turns({"results": [{"status": "post_run_check_failed", "fields": fields}]})
    world.run()
    assert [question.kind for question in world.questions] == ["conflict"]


# --- the rest of the contract ------------------------------------------------------------------------------


def test_a_bead_that_grew_children_is_promoted_to_an_epic(stage: StageFactory) -> None:
    world = stage([row("a-1", labels=["helix", "area:x"])])
    children = [["bead", "create", f"Child {n}", "--priority", "2", "--parent", "{id}"] for n in (1, 2)]
    world.turns({"results": [{"close": False, "fields": {}, "do": children}]})
    world.run(max_cycles=1)
    promoted = world.rows()["a-1"]
    assert (promoted["issue_type"], promoted["labels"]) == ("epic", ["helix", "area:x"])


def test_a_failing_acceptance_script_is_filed_once(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("a-2")])
    script = world.root / "scripts" / "check-acceptance-coverage.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho no coverage for AC-1\nexit 3\n")
    script.chmod(0o755)
    world.run()
    filed = [each for each in world.rows().values() if "acceptance-failure" in each.get("labels", ())]
    assert len(filed) == 1
    assert [question.key for question in world.questions] == ["acceptance:scripts/check-acceptance-coverage.sh"]
    assert filed[0]["title"] == "Acceptance failure: scripts/check-acceptance-coverage.sh after a-1"
    assert "no coverage for AC-1" in filed[0]["description"]
    assert filed[0]["execution-eligible"] is True


def test_drift_leads_to_one_polish_pass_and_is_acknowledged(stage: StageFactory) -> None:
    world = stage([row("a-1", **{"spec-id": "SD-1"}), row("a-2")])
    world.process("check")
    world.rewrite("a-1", **{"spec-id": "SD-2"})
    world.answers("POLISH_STATUS: CONVERGED")
    world.run()
    assert world.asked == ["polish", "check"]
    assert "a-1: spec-id was" in world.prompt("polish")
    assert world.executed == ["a-1 success", "a-2 success"]
    assert not [name for name in world.rows()["a-1"] if name.startswith("helix-drift")]


def test_a_run_keeps_drifted_beads_from_workers_and_does_the_others(stage: StageFactory) -> None:
    world = stage([row("a-1", **{"spec-id": "SD-1"}), row("a-2")])
    world.process("check")
    world.rewrite("a-1", **{"spec-id": "SD-2"})
    world.answers("done", "done")
    world.run()
    assert world.executed == ["a-2 success"]
    assert world.rows()["a-1"]["execution-eligible"] is False, "nobody has said that it is polished"
    world.process("check", "--acknowledge", "--no-model")
    assert "execution-eligible" not in world.rows()["a-1"]
    assert not [name for name in world.rows()["a-1"] if name.startswith("helix-drift")]


def test_the_last_line_tells_supervisory_beads_apart(stage: StageFactory) -> None:
    world = stage([row("r-1", labels=["helix", "kind:review", "review-finding"]), row("a-1")])
    world.rewrite("r-1", **{"helix-trigger-source": "post-cycle-review", "helix-trigger-bead": "a-9"})
    outcome = world.run()
    assert len(world.executed) == 2
    assert outcome.state.supervisory_cycles == 1
    assert any("2 attempted, 1 completed, 1 supervisory, 0 skipped" in line for line in world.said)


def test_our_own_writes_are_no_drift(stage: StageFactory) -> None:
    world = stage([row("a-1"), row("e-1", issue_type="epic"), row("c-1", parent="e-1")])
    world.process("check")
    world.process("set", "a-1", "spec-id=SD-9")
    assert json.loads(world.process("check", "--json").stdout)["drift"] == []


def test_the_same_bead_failing_on_an_unchanged_queue_does_not_spin(stage: StageFactory) -> None:
    world = stage([row("a-1")])
    world.turns(*({"results": [{"status": "execution_failed"}]} for _ in range(20)))
    outcome = world.run()
    assert outcome.stop.reason == "no_progress"
    assert len(world.executed) == 1


def test_planning_that_never_leads_to_a_build_ends(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    create = ["bead", "create", "Not now", "--priority", "2", "--set", "execution-eligible=false"]
    answers: list[object] = []
    for _ in range(10):
        answers += ["NEXT_ACTION: POLISH", {"output": "POLISH_STATUS: COMPLETE", "do": [create]}]
    world.answers(*answers)  # type: ignore[arg-type]
    assert world.run().stop.reason == "planning_without_progress"


def test_a_failing_check_stops_with_its_own_reason(stage: StageFactory) -> None:
    world = stage([row("a-1", status="closed")])
    world.answers({"output": "", "rc": 1, "error": "no provider"})
    outcome = world.run()
    assert (outcome.stop.reason, outcome.stop.code) == ("check_failed", 1)
    assert "check failed after queue drain" in outcome.stop.detail


def test_a_finding_of_a_reviewer_is_no_injected_bead() -> None:
    queue = queue_of(
        [
            row("f-1", labels=["helix", "phase:build", "review-finding", "area:x"]),
            row("r-1", labels=["helix", "review-finding"], notes="TRIGGERING_CYCLE=3 TRIGGERING_BEAD=a-1"),
        ]
    )
    assert [injected_type(queue.beads[each]) for each in ("f-1", "r-1")] == ["", "review-finding"]


def test_superseded_beads_left_open_are_told(stage: StageFactory) -> None:
    world = stage([row("a-1", **{"superseded-by": "a-2"}), row("a-2")])
    facts = gather_facts(world.curator().look())
    assert facts.superseded == ("a-1",)
    assert "superseded_open" in {note.code for note in decide(facts).notes}


# --- documents that disagree -------------------------------------------------------------------------------


def _documents(root: Path, **replaces: str) -> None:
    (root / "docs").mkdir()
    for name, other in replaces.items():
        document = f"---\nddx:\n  id: {name}\n  supersedes: {other}\n---\n# Design\n"
        (root / "docs" / f"{name}.md").write_text(document)


@pytest.mark.parametrize("level", ["low", "medium", "high"])
def test_documents_that_supersede_each_other_stop_before_anything_is_dispatched(
    stage: StageFactory, level: str
) -> None:
    world = stage([row("a-1")])
    _documents(world.root, SD1="SD2", SD2="SD1")
    assert world.run(autonomy=level).stop.reason == "physics_level"
    assert not world.calls
    (question,) = world.questions
    world.store.answer(question.id, "SD2")
    assert world.run(autonomy=level).stop.reason != "physics_level"
    assert world.executed == ([] if level == "low" else ["a-1 success"]), "low asks before it dispatches"


def test_a_superseded_document_is_escalated_at_high_and_asked_about_at_medium(stage: StageFactory) -> None:
    world = stage([row("a-1", spec__id="SD1"), row("a-2", spec__id="SD1")])
    _documents(world.root, SD1="", SD2="SD1")
    world.run(autonomy="medium", max_cycles=1)
    assert [question.kind for question in world.questions] == ["conflict"]
    world.run(autonomy="high")
    world.run(autonomy="high")
    filed = [each for each in world.rows().values() if "kind:escalation" in each.get("labels", ())]
    assert len(filed) == 1
    assert filed[0]["execution-eligible"] is False
    assert len(world.executed) == 2
    assert "Assumed meanwhile: SD2 holds." in filed[0]["description"]
    decide_escalation(world.curator(), filed[0]["id"], "SD2")
    world.run(autonomy="high")
    filed = [each for each in world.rows().values() if "kind:escalation" in each.get("labels", ())]
    assert [each["status"] for each in filed] == ["closed"], "what was decided is not raised again"
