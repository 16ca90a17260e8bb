"""The records of a head attempt, without their writing: keys and order as recorded (loops/head-*.jsonl)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from helix_ddx.files import stamp
from helix_ddx.simulator import evidence
from helix_ddx.simulator.script import HARNESS, Act
from helix_ddx.simulator.worker import Json, SimulatedAttempt
from helix_tui.core.ground.time import NS

RUN_TTL = 120 * NS
RATE_LIMIT_BUDGET = 300 * NS

_REUSE = {f"reusable_workspace_{name}": 0 for name in ("slot_hits", "slot_misses", "time_saved_ms", "bytes_saved")}
_INTENT = {
    "routing_intent_source": "readiness",
    "estimated_difficulty": "easy",
    "inferred_min_power": 0,
    "inferred_min_power_present": True,
    "requested_min_power": 0,
    "requested_max_power": 0,
}

_RESULT_ORDER = (
    *("bead_id", "attempt_id", "base_rev", "result_rev", "implementation_rev", "landed_rev", "landed_branch"),
    *("outcome", "status", "detail", "orchestrator_status", "reason", "preserve_ref", "candidate_ref"),
    *("cycle_index", "review_verdict", "review_rationale", "no_changes_rationale", "required_exec_summary"),
    *("cycle_trace", "harness", "model", "session_id", "duration_ms", "tokens", "cost_usd", "cost_source"),
    *("ddx_owner_stage", *_REUSE, "exit_code", "error", "project_root", "failure_mode", "execution_dir"),
    *("prompt_file", "manifest_file", "result_file", "usage_file", "worktree_path", "rate_limit_budget"),
    *("started_at", "finished_at"),
)
_ROW_ORDER = (
    *("bead_id", "attempt_id", "harness", "model", "status", "detail", "error", "rate_limit_budget"),
    *("session_id", "base_rev", "result_rev", "implementation_rev", "landed_rev", "landed_branch"),
    *("project_root", "preserve_ref", "candidate_ref", "retry_after", "no_changes_rationale", "review_verdict"),
    *("review_rationale", "cycle_trace", "cost_usd", *_REUSE, "duration_ms", "ddx_owner_stage", *_INTENT),
    *("escalation_count", "outcome_reason"),
)

_STATE_ORDER = (
    *("bead_id", "attempt_id", "harness", "model", "started_at", "worktree_path", "pid", "session_id"),
    *("refreshed_at", "expires_at", "candidate_cycle_phase", "candidate_ref", "candidate_rev", "cycle_index"),
    *("review_active", "repair_active"),
)


class Cycle(Struct):
    """One candidate and what the reviewer said about it."""

    index: int
    rev: str
    ref: str
    review: str = ""
    """The review's own attempt id."""
    verdict: str = ""


class Course(Struct):
    """What has come of an attempt so far, beyond the agent's own work."""

    cycles: list[Cycle] = []
    state: Json = {}
    """The run-state as it stands."""
    record: Json = {}
    """runs/<attempt>/record.json as it stands."""
    extra: Json = {}
    """Fields of result.json beyond those that every attempt has."""


def ordered(values: Json, order: Iterable[str]) -> Json:
    """The values in DDx's order; what is not listed comes last."""
    known = {key: values[key] for key in order if key in values}
    return known | {key: value for key, value in values.items() if key not in known}


def run_state(attempt: SimulatedAttempt, pid: int, now: int) -> Json:
    """run-state.json as it begins."""
    return {
        "bead_id": attempt.bead,
        "attempt_id": attempt.id,
        "harness": HARNESS,
        "model": attempt.act.model,
        "started_at": stamp(now),
        "worktree_path": str(attempt.copy.path),
        "pid": pid,
        "refreshed_at": stamp(now),
        "expires_at": stamp(now + RUN_TTL),
    }


def state_text(state: Json) -> str:
    """The run-state as it stands in its file."""
    return evidence.document(ordered(state, _STATE_ORDER)) + "\n"


def new_record(attempt: SimulatedAttempt, now: int, bundled: bool) -> Json:
    """runs/<attempt>/record.json while a call is being made."""
    moment = stamp(now)
    record: Json = {"version": 1, "run_id": attempt.id, "bead_id": attempt.bead, "attempt_id": attempt.id}
    record |= {"phase": "dispatching", "created_at": moment, "started_at": moment, "updated_at": moment}
    if bundled:
        folder = evidence.bundle(attempt.id)
        record["evidence"] = [
            {"name": "prompt", "path": f"{folder}/prompt.md", "media_type": "text/markdown"},
            {"name": "bundle", "path": folder},
            {"name": "base_rev", "path": attempt.base},
        ]
    return record


def ended_record(record: Json, attempt: SimulatedAttempt, log: str, took_ms: int, error: str, now: int) -> Json:
    """The same when the call has been answered."""
    act = attempt.act
    bundled = "evidence" in record
    verdict = "bundle_present" if bundled else "public_final_only"
    outcome = {"status": "failure", "reason": error} if error else {"status": "success", "reason": "public_final_ok"}
    fizeau: Json = {"session_log_path": log, "public_session_ref": record["fizeau"]["public_session_ref"]}
    fizeau |= {"final_status": "failed" if error else "success", "final_exit_code": int(bool(error))}
    fizeau |= {"duration_ms": took_ms} | ({} if act.cost_usd is None else {"cost_usd": act.cost_usd})
    total = act.input_tokens + act.output_tokens
    fizeau |= {"input_tokens": act.input_tokens, "output_tokens": act.output_tokens, "total_tokens": total}
    fizeau |= {"cached_tokens": act.input_tokens // 10}
    done = record | {"phase": "terminal", "updated_at": stamp(now), "finished_at": stamp(now), "fizeau": fizeau}
    done["outcome"] = outcome | {"evidence_verdict": verdict}
    if bundled:
        bundle = {"name": "repository_bundle", "path": evidence.bundle(attempt.id)}
        done["evidence"] = [*record["evidence"], bundle]
    return done


def used(attempt: SimulatedAttempt) -> Json:
    """usage.json, with what the cache gave."""
    act = attempt.act
    row = evidence.usage(attempt.id, HARNESS, act.model, (act.input_tokens, act.output_tokens), act.cost_usd)
    cached = act.input_tokens // 10
    rate = cached / (act.input_tokens + cached) if act.input_tokens else 0
    order = ("attempt_id", "harness", "model", "tokens", "input_tokens", "cached_tokens", "cache_hit_rate")
    return ordered(row | {"cached_tokens": cached, "cache_hit_rate": rate}, order)


def total_cost(attempt: SimulatedAttempt, cycles: int) -> float | None:
    """What the attempt cost with its repairs."""
    return None if attempt.act.cost_usd is None else round(attempt.act.cost_usd * max(1, cycles), 6)


def result(
    attempt: SimulatedAttempt, course: Course, project: str, status: str, outcome: str, detail: str, **more: Any
) -> Json:
    """result.json; ``more`` replaces and adds."""
    usage = used(attempt)
    cost = total_cost(attempt, len(course.cycles))
    if cost is not None:
        usage["cost_usd"] = cost
    row = evidence.result(
        attempt.id, attempt.bead, attempt.base, attempt.rev, status, detail, attempt.session, attempt.span, usage
    )
    row |= {"outcome": outcome, "cost_source": "unknown", "ddx_owner_stage": "verify", "project_root": project}
    row |= {"worktree_path": str(attempt.copy.path), "rate_limit_budget": RATE_LIMIT_BUDGET, **_REUSE}
    row["exit_code"] = int(outcome == "task_failed")
    if course.cycles:
        row |= {"implementation_rev": attempt.rev, "candidate_ref": course.cycles[-1].ref}
        row |= reviewed(attempt.act, course)
        row["cycle_trace"] = trace(attempt, course, status, full=True, route=True)
    if len(course.cycles) > 1:
        row["cycle_index"] = course.cycles[-1].index
    return ordered({key: value for key, value in (row | more).items() if value != ""}, _RESULT_ORDER)


def loop_row(attempt: SimulatedAttempt, course: Course, project: str, status: str, detail: str, **more: Any) -> Json:
    """One entry of the loop's ``results``; what is empty is absent."""
    row: Json = {"bead_id": attempt.bead, "attempt_id": attempt.id, "harness": HARNESS, "model": attempt.act.model}
    row |= {"status": status, "detail": detail, "rate_limit_budget": RATE_LIMIT_BUDGET}
    row |= {"session_id": attempt.session, "base_rev": attempt.base, "result_rev": attempt.rev}
    row |= {"project_root": project, **_REUSE, "duration_ms": attempt.duration_ms, "ddx_owner_stage": "verify"}
    row |= _INTENT
    cost = total_cost(attempt, len(course.cycles))
    if cost is not None:
        row["cost_usd"] = cost
    if course.cycles:
        row |= {"implementation_rev": attempt.rev, "candidate_ref": course.cycles[-1].ref}
        row |= reviewed(attempt.act, course)
        row["cycle_trace"] = trace(attempt, course, status, full=False, route=False)
    return ordered({key: value for key, value in (row | more).items() if value != ""}, _ROW_ORDER)


def reviewed(act: Act, course: Course) -> Json:
    """The last review in two fields."""
    last = course.cycles[-1]
    return {"review_verdict": last.verdict, "review_rationale": words_of(act, last)}


def words_of(act: Act, cycle: Cycle) -> str:
    """What the reviewer says beside its verdict."""
    if act.rationale and cycle.verdict != "APPROVE":
        return act.rationale
    return "The acceptance is met and the tests pass." if cycle.verdict == "APPROVE" else f"simulated {cycle.verdict}"


def trace(attempt: SimulatedAttempt, course: Course, status: str, *, full: bool, route: bool) -> list[Json]:
    """The candidates of an attempt, one after the other."""
    entries = []
    here = {"harness": HARNESS, "model": attempt.act.model}
    for cycle in course.cycles:
        last = cycle is course.cycles[-1]
        good = last and cycle.verdict == "APPROVE"
        decision = "success" if good else status if last else "review_fixable_gap"
        entry: Json = {"cycle_index": cycle.index, "attempt_id": attempt.id}
        entry |= {"base_rev": attempt.base} if full else {}
        entry |= {"result_rev": cycle.rev, "candidate_ref": cycle.ref, "implementer_route": here}
        power = {"inferred_min_power": 0, "requested_min_power": 0, "requested_max_power": 0}
        entry |= {"requested_route": here | power, "actual_route": here, "review_group_id": cycle.review}
        entry |= {"reviewer_indices": [0], "review_verdicts": [cycle.verdict]}
        entry |= {"reviewer_route": here if route else {}, "review_result": review_result(attempt, cycle)}
        entry |= {"final_decision": decision, "failure_class": "none" if good else decision}
        entry |= {"retry_action": "close" if good else "retry", "escalation_count": 0 if good or not last else 1}
        entry |= {"review_status": "completed", "review_skip_reason": ""}
        entry["review_classification"] = "review_completed" if good or not last else "review_fixable_gap"
        entry |= {"land_status": "landed" if good else "not_landed", "reconcile_status": "not_applicable"}
        entries.append(entry)
    return entries


def review_result(attempt: SimulatedAttempt, cycle: Cycle) -> Json:
    """A verdict with its grades and findings."""
    good = cycle.verdict == "APPROVE"
    result: Json = {"verdict": cycle.verdict, "rationale": words_of(attempt.act, cycle)}
    if not good:
        result["classification"] = "review_fixable_gap"
    result["per_ac"] = grades(attempt, good)
    if not good:
        finding = {"severity": "block", "summary": words_of(attempt.act, cycle), "location": place_of(attempt.act)}
        result["findings"] = [finding]
    return result


def grades(attempt: SimulatedAttempt, good: bool) -> list[Json]:
    """One grade for each numbered line of the acceptance; when it is not good, the last one fails."""
    lines = re.findall(r"(?m)^\s*(\d+)[.)]\s+(.+)$", str(attempt.row.get("acceptance", "")))
    items = [(int(number), text.replace("`", "").strip()) for number, text in lines] or [(1, "the bead is done")]
    return [
        {
            "number": number,
            "item": text,
            "grade": "pass" if good or (number, text) != items[-1] else "fail",
            "evidence": place_of(attempt.act),
        }
        for number, text in items
    ]


def place_of(act: Act) -> str:
    """The place in the code that a review points at."""
    return f"{act.edits[0].path}:1" if act.edits else "README.md:1"


def outcome_text(
    attempt: SimulatedAttempt,
    course: Course,
    status: str,
    detail: str,
    *,
    landed: str = "",
    reason: str = "",
    **more: str,
) -> str:
    """The body of the ``execute-bead`` event: prose first, then ``k=v`` lines."""
    good = bool(landed)
    lines = [detail]
    if more.get("rationale"):
        lines.append(f"rationale: {more['rationale']}")
    if course.cycles:
        lines.append(words_of(attempt.act, course.cycles[-1]))
        lines.append(f"cycle_trace={_compact(trace(attempt, course, status, full=True, route=False))}")
    here = {"harness": HARNESS, "model": attempt.act.model}
    audit: Json = {"failure_class": "none" if good else reason or status, "retry_action": "close" if good else "retry"}
    audit |= {"escalation_count": int(more.get("escalations", "0")), "requested_route": here | _INTENT}
    audit |= {"actual_route": here | {"route_reason": "readiness"}}
    if course.cycles:
        classified = "review_completed" if good else "review_fixable_gap"
        audit |= {"review_status": "completed", "review_verdict": course.cycles[-1].verdict}
        audit |= {"review_skip_reason": "", "review_classification": classified}
    else:
        audit |= {"review_status": "skipped", "review_skip_reason": "review_not_configured"}
        audit["review_classification"] = "review_skipped"
    audit |= {"land_status": "landed" if good else "not_landed", "reconcile_status": "not_applicable"}
    lines.append(f"decision_audit={_compact(audit)}")
    if course.cycles:
        lines.append(f"review_group_id={course.cycles[0].review}")
    if more.get("preserve"):
        lines.append(f"preserve_ref={more['preserve']}")
    lines += [f"result_rev={landed or attempt.rev}", f"base_rev={attempt.base}"]
    if reason:
        lines.append(f"outcome_reason={reason}")
    return "\n".join(lines)


def routing_intent(attempt: SimulatedAttempt) -> tuple[str, Json]:
    """Summary and body of the ``execution-routing-intent`` event."""
    model = attempt.act.model
    body: Json = {"actual_harness": HARNESS, "actual_model": model, "actual_power": 0, "actual_provider": ""}
    body |= {"attempt_id": attempt.id, "bead_id": attempt.bead, "estimated_difficulty": "easy"}
    body |= {"inferred_min_power": 0, "rejected_route_pins": None, "requested_max_power": 0}
    body |= {"requested_min_power": 0, "requested_policy": "", "routing_intent_degraded": False}
    body |= {"routing_intent_note": "", "routing_intent_source": "readiness"}
    return f"source=readiness difficulty=easy minPower=0 model={model} harness={HARNESS}", body


def routed(attempt: SimulatedAttempt) -> Json:
    """Body of the last ``routing`` event, written when the work has landed."""
    body: Json = {"escalation_count": 0, "estimated_difficulty": "easy", "fallback_chain": []}
    body |= {"final_power_class": "", "inferred_min_power": 0, "requested_max_power": 0}
    body |= {"requested_min_power": 0, "requested_policy": "", "resolved_model": attempt.act.model}
    body |= {"resolved_power_class": "", "resolved_provider": HARNESS}
    return body | {"routing_intent_note": "", "routing_intent_source": "readiness"}


def preflight(project: str, temp_root: str, roots: list[str], free: tuple[int, int]) -> Json:
    """Data of ``resource.preflight``: room on the disks, and what a cleanup found (nothing)."""
    names = (
        *("scanned_temp_dirs", "scanned_evidence_dirs", "complete_evidence_dirs", "scanned_scratch_dirs"),
        *("removed_unregistered_temp_dirs", "removed_registered_worktrees", "removed_run_state_files"),
        *("removed_scratch_dirs", "preserved_active_scratch_dirs", "pruned_candidate_refs"),
        *("removed_evidence_dirs", "removed_agent_logs", "removed_worker_dirs"),
        *("removed_claim_liveness_tmp_files", "bytes_reclaimed", "inodes_reclaimed", "scratch_bytes_reclaimed"),
        *("scratch_inodes_reclaimed", "claim_liveness_bytes_reclaimed", "claim_liveness_inodes_reclaimed"),
    )
    summary: Json = {"project_root": "", "temp_root": ""} | dict.fromkeys(names, 0)
    counted = (
        *("bytes_reclaimed", "claim_liveness_inodes_reclaimed", "claim_liveness_tmp_files_reclaimed"),
        *("inodes_reclaimed", "preserved_scratch", "registered_trees", "run_state_files", "scratch_dirs"),
        "temp_dirs",
    )
    checks = [
        {"path": root, "writable": True, "bytes_free": free[0], "inodes_free": free[1]} for root in (temp_root, *roots)
    ]
    data: Json = {f"cleanup_{name}": 0 for name in counted}
    data |= {"cleanup_summary": summary, "evidence_roots": roots, "phase": "pre-claim", "project_root": project}
    data |= {"root_checks_after": checks, "root_checks_before": None, "status": "ok", "temp_root": temp_root}
    return data


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
