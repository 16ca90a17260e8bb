"""Why a run ends, each reason with its meaning: one table, without anything that takes time to load."""

from __future__ import annotations

REASONS = {
    "next_action:BACKFILL": "documents must be reconstructed first",
    "next_action:WAIT": "what is left is held, cooling down, or blocked from outside",
    "next_action:GUIDANCE": "a person must decide",
    "next_action:STOP": "no bead is ready, and no other step is called for",
    "next_action:DESIGN": "a design pass changed nothing and would be the next step again",
    "next_action:POLISH": "a polish pass changed nothing and would be the next step again",
    "next_action:ALIGN": "alignment is the next step, and is switched off or changed nothing",
    "max_cycles": "it did as many cycles as were asked for",
    "batch_done": "nothing of the batch is left to run",
    "no_selectable": "twice in a row there was work and none of it could be selected",
    "no_progress": "what is left was tried in this run and stays open",
    "planning_without_progress": "planning continues and nothing is built",
    "question": "what comes next waits for an answer",
    "approval": "a person must say yes first",
    "operator_attention": "ddx wants a person to look",
    "physics_level": "two requirements cannot both hold",
    "stop_requested": "somebody asked it to stop",
    "interrupted": "it was interrupted",
    "check_failed": "the agent that was asked what comes next failed",
    "check_unreadable": "the check's answer names no NEXT_ACTION",
    "stage_failed": "a planning stage failed",
    "missing_binary": "there is no ddx",
    "too_old": "this ddx is too old",
    "malformed_output": "ddx answered with something that is not its contract",
    "timeout": "ddx gave no answer in time",
    "ddx_failed": "a ddx command failed",
    "ddx_refuses": "ddx refuses every command on this tracker",
    "curation_failed": "a change to the queue failed",
    "unreadable_tracker": "the queue cannot be read",
    "disk": "its state cannot be written",
    "died": "its process is gone without a word",
}
"""Stop reason -> what it means, for a person."""
