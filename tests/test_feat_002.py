"""Where each line of FEAT-002's acceptance list is tested, and which of them a ruling retired.

Retired in their first wording, each with what is left of it and the test of that:

- retry with stale claims or leftovers: docs/decisions/0004, no retry and no unclaiming; a failed attempt
  is left to ddx.
- orphan recovery by the loop before it stops, and reclaiming by `run`: docs/decisions/0005, orphans are
  named and recovered by an explicit action that looks again first.
- the parent epic blocked with its intractable child: docs/decisions/0004, a view without a store: it is
  stuck.
- batches of sibling work: docs/decisions/0004, one bead a turn and no selector; siblings are told by `next`.
- review findings surfaced by a hook before the next cycle: docs/decisions/0007, a review is a bead that
  comes first.
- ``bash tests/helix-cli.sh``: docs/decisions/0012, the commands are ours and this suite verifies them.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RUN, CLI = "core/supervision/loop/", "cli/helix/"

ACCEPTANCE: dict[str, tuple[str, ...]] = {
    "Running helix help shows the command surface and key options.": (
        CLI + "test_commands.py::test_help_shows_the_command_surface_and_key_options",
        CLI + "test_commands.py::test_every_command_has_a_help_of_its_own",
    ),
    "Running helix status reports a structured lifecycle snapshot": (
        CLI + "test_commands.py::test_status_reports_a_structured_snapshot_from_persisted_state",
    ),
    "Running ddx bead subcommands supports create/show/update/close/list": (
        CLI + "test_contracts.py::test_tracker_has_every_verb_of_ddx_bead",
        CLI + "test_commands.py::test_tracker_hands_words_on_and_journals_changes",
    ),
    "Running helix triage produces tracker-valid issues": (
        CLI + "test_commands.py::test_triage_makes_only_valid_beads",
        CLI + "test_contracts.py::test_triage_prints_the_id_alone",
    ),
    "Running helix align first acquires a governing": (
        CLI + "test_commands.py::test_align_first_acquires_a_governing_bead",
        CLI + "test_commands.py::test_align_refuses_a_second_one_while_it_is_worked_on",
    ),
    "Running helix run follows the explicit NEXT_ACTION contract": (
        RUN + "test_feat_002.py::test_build_continues_with_what_became_ready",
        RUN + "test_feat_002.py::test_design_is_run_once_then_the_queue_is_looked_at_again",
        RUN + "test_loop.py::test_a_planning_pass_is_made_once_and_not_again_on_an_unchanged_queue",
        RUN + "test_loop.py::test_run_does_not_attempt_implementation_after",
    ),
    "Running helix run treats DDx-managed execution as the implementation substrate": (
        RUN + "test_feat_002.py::test_run_treats_ddx_managed_execution_as_the_implementation_substrate",
        RUN + "test_loop.py::test_no_selector_is_ever_given_to_the_loop",
        CLI + "test_commands.py::test_build_executes_one_chosen_bead",
    ),
    "Running helix run and related docs make clear that HELIX CLI execution surfaces": (
        CLI + "test_commands.py::test_help_prefers_input_and_ddx_own_loop",
    ),
    "Governing docs explicitly classify execution-oriented HELIX surfaces": (
        CLI + "test_commands.py::test_execution_surfaces_are_classified",
    ),
    "Plugin-mode usage, skill naming, and demo guidance all prefer helix input": (
        CLI + "test_commands.py::test_help_prefers_input_and_ddx_own_loop",
    ),
    "Running helix run does not attempt implementation after WAIT.": (
        RUN + "test_loop.py::test_run_does_not_attempt_implementation_after",
    ),
    "Running helix run stops and surfaces the exact backfill command after BACKFILL.": (
        RUN + "test_loop.py::test_backfill_stops_and_names_the_exact_command",
    ),
    "Running helix run counts only completed build passes": (
        RUN + "test_feat_002.py::test_run_counts_only_completed_build_passes_as_completed_cycles",
        RUN + "test_loop.py::test_only_success_counts_a_cycle_and_an_unknown_status_is_kept_verbatim",
    ),
    "Running helix run captures Codex token usage": (
        RUN + "test_feat_002.py::test_run_captures_codex_token_usage_even_on_stderr",
        RUN + "test_feat_002.py::test_tokens_of_checks_and_planning_count_too",
    ),
    "Running helix run refreshes .helix/context.md every 5 completed cycles": (
        RUN + "test_feat_002.py::"
        "test_run_refreshes_context_every_five_completed_cycles_with_quick_reference_and_counts",
        RUN + "test_feat_002.py::test_context_is_made_anew_on_the_fifth_and_not_before",
    ),
    "Running helix run surfaces review findings before the loop advances.": (
        RUN + "test_feat_002.py::test_a_review_is_executed_before_the_next_bead",
    ),
    "Running helix run stays focused on a chosen epic": (
        RUN + "test_feat_002.py::test_run_stays_focused_on_a_chosen_epic_until_an_explicit_blocker_forces_release",
        RUN + "test_loop.py::test_focus_stays_on_an_epic_until_it_is_done_and_gives_everything_back",
    ),
    "Running helix run emits blocker-report output and observability metadata": (
        RUN + "test_feat_002.py::test_run_emits_blocker_report_and_observability_metadata_for_timing_and_tokens",
    ),
    "Running helix run batches sibling work by shared area:* labels": (
        "core/supervision/test_siblings.py::test_area_labels_count_only_where_parent_and_specification_find_nothing",
    ),
    "Running helix run does not discard unrelated worktree changes": (
        RUN + "test_feat_002.py::test_run_does_not_discard_unrelated_worktree_changes",
    ),
    "Running helix run does not retry a failed or timed-out implementation attempt": (
        RUN + "test_feat_002.py::test_a_failed_attempt_is_neither_unclaimed_nor_retried_by_us",
        RUN + "test_faults.py::test_a_hang_is_ended_and_named",
    ),
    "Running helix run --summary produces concise one-liner output": (
        RUN + "test_feat_002.py::test_summary_produces_one_liners_with_log_line_ranges",
    ),
    "Running helix run stops after 2 consecutive BUILD cycles": (
        RUN + "test_feat_002.py::"
        "test_run_stops_after_two_consecutive_build_cycles_with_no_selectable_issue_and_names_orphans",
    ),
    "Running helix run reclaims orphaned issues when PID is dead": (
        RUN + "test_feat_002.py::"
        "test_orphans_are_reclaimed_by_an_explicit_action_when_pid_is_dead_and_the_claim_is_old",
    ),
    "Running helix run blocks the parent epic when a child is intractable.": (
        RUN + "test_feat_002.py::test_a_parent_epic_counts_as_stuck_when_nothing_under_it_can_move",
    ),
    "Running ddx bead update <id> --claim records claimed-at": (
        RUN + "test_feat_002.py::test_claim_records_when_and_who_and_unclaim_clears_it",
    ),
    "Running ddx bead update <id> --unclaim restores open status": (
        RUN + "test_feat_002.py::test_claim_records_when_and_who_and_unclaim_clears_it",
    ),
    "Running helix backfill <scope> enforces the required trailers": (
        CLI + "test_commands.py::test_backfill_enforces_trailers_and_report",
        CLI + "test_commands.py::test_a_report_outside_the_repository_does_not_count",
    ),
    "Running bash tests/helix-cli.sh remains the required deterministic verification path": (
        "test_feat_002.py::test_each_line_has_a_test_that_is_there",
    ),
}
"""How a line begins -> the tests that stand for it, below ``tests/``."""


@pytest.mark.parametrize("line", ACCEPTANCE)
def test_each_line_has_a_test_that_is_there(line: str) -> None:
    for name in ACCEPTANCE[line]:
        file, _, function = name.partition("::")
        tree = ast.parse((HERE / file).read_text("utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


def test_no_line_of_the_list_is_left_out(shared: Path) -> None:
    seed = next((shared / "seeds").glob("001*")).read_text("utf-8")
    section = seed.partition("\nAcceptance Criteria\n")[2].partition("\nEvidence\n")[0]
    lines = [line.strip(" •") for line in section.split("\n") if line.strip().startswith("•")]
    assert len(lines) == len(ACCEPTANCE)
    assert [line for line in lines if not line.startswith(tuple(ACCEPTANCE))] == []
