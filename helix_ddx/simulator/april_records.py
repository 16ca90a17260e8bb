"""The records of an April attempt, without their writing: keys as recorded (loops/april-*.jsonl)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from helix_ddx.files import stamp
from helix_ddx.simulator import evidence
from helix_ddx.simulator.script import HARNESS
from helix_ddx.simulator.worker import Json, SimulatedAttempt


class AttemptEnding(Struct, frozen=True):
    """How an attempt that lands nothing ends."""

    status: str
    detail: str
    cools: bool = False
    """Whether the bead has a cooldown before it is tried again."""
    failure: str = ""
    error: bool = False


def ending_of(attempt: SimulatedAttempt) -> AttemptEnding | None:
    """What the act says about an attempt without a commit; None when it makes one."""
    act = attempt.act
    known = {
        "no_changes": AttemptEnding("no_changes", "no_changes", cools=True, failure="no_changes"),
        "already_satisfied": AttemptEnding("no_changes", "no_changes", cools=True, failure="no_changes"),
        "execution_failed": AttemptEnding(
            "execution_failed", act.detail or "exit status 1", cools=True, failure="unknown", error=True
        ),
        "stall": AttemptEnding(
            "execution_failed", act.detail or "turn timeout exceeded", cools=True, failure="timeout", error=True
        ),
        "structural_validation_failed": AttemptEnding(
            "structural_validation_failed", act.detail or "the bead is not well formed", failure="unknown", error=True
        ),
    }
    return known.get(act.outcome)


def run_state(attempt: SimulatedAttempt, now: int) -> str:
    """run-state.json: one for the project, no pid and no end in it."""
    state = {
        "bead_id": attempt.bead,
        "attempt_id": attempt.id,
        "harness": HARNESS,
        "model": attempt.act.model,
        "started_at": stamp(now),
        "worktree_path": str(attempt.copy.path),
    }
    return evidence.document(state) + "\n"


def metadata(attempt: SimulatedAttempt) -> Json:
    """The fields that every line of the transcript repeats."""
    folder = evidence.bundle(attempt.id)
    return {
        "attempt_id": attempt.id,
        "base_rev": attempt.base,
        "bead_id": attempt.bead,
        "bundle_path": folder,
        "prompt_file": f"{folder}/prompt.md",
        "session_id": attempt.session,
        "worker_id": "",
    }


def used(attempt: SimulatedAttempt) -> Json:
    """usage.json."""
    act = attempt.act
    return evidence.usage(attempt.id, HARNESS, act.model, (act.input_tokens, act.output_tokens), act.cost_usd)


def session(attempt: SimulatedAttempt, project_id: str, ending: AttemptEnding | None) -> Json:
    """The agent's line in the session index."""
    model, usage = attempt.act.model, used(attempt)
    row = evidence.session_row(
        attempt.session, project_id, attempt.bead, HARNESS, model, attempt.span, usage, "subscription"
    )
    failed = ending is not None and ending.error
    row |= {"outcome": "failure" if failed else "success", "exitCode": int(failed)}
    row |= {"bundlePath": evidence.bundle(attempt.id)}
    if ending is not None and ending.error:
        row["detail"] = ending.detail
    return row | {"baseRev": attempt.base}


def rationale(attempt: SimulatedAttempt) -> str:
    """What the agent leaves in no_changes_rationale.txt: why it changed nothing; "" if it changed something."""
    act = attempt.act
    if act.outcome == "already_satisfied":
        return evidence.rationale(attempt.row, act).strip()
    # April's prompt asks for a text, not for lines that say status and reason
    return act.rationale.strip() if act.outcome == "no_changes" else ""


def result(attempt: SimulatedAttempt, ending: AttemptEnding | None) -> Json:
    """result.json, written before anything lands: a success may still become a conflict."""
    status, detail = (ending.status, ending.detail) if ending else ("success", "success")
    more, tail = {}, {}
    if said := rationale(attempt):
        more["no_changes_rationale"] = said
    if ending is not None and ending.error:
        tail["error"] = ending.detail
    if ending is not None:
        tail["failure_mode"] = ending.failure
    return evidence.result(
        attempt.id,
        attempt.bead,
        attempt.base,
        attempt.rev,
        status,
        detail,
        attempt.session,
        attempt.span,
        used(attempt),
        tail=tail,
        **more,
    )


def failed_checks(attempt: SimulatedAttempt, now: int) -> Json:
    """checks.json of a gate that failed."""
    check = {"definition_id": "simulation-check", "required": True, "exit_code": 1, "status": "fail"}
    results = [check | {"stdout": attempt.act.rationale}]
    return {"attempt_id": attempt.id, "evaluated_at": stamp(now), "summary": "fail", "results": results}


def review_manifest(attempt: SimulatedAttempt, review: str, model: str, landed: str, verdict: str) -> Json:
    """The manifest.json of a review, which has a folder of its own."""
    return {
        "harness": HARNESS,
        "model": model,
        "base_rev": attempt.rev,
        "result_rev": landed,
        "verdict": verdict,
        "bead_id": attempt.bead,
        "execution_dir": evidence.bundle(review),
    }


def routed(attempt: SimulatedAttempt) -> Json:
    """Body of the loop's ``routing`` event, written when the work has landed."""
    return {
        "escalation_count": 0,
        "fallback_chain": [],
        "final_tier": "",
        "requested_profile": "",
        "requested_tier": "",
        "resolved_model": attempt.act.model,
        "resolved_provider": HARNESS,
        "resolved_tier": "",
    }


def outcome_text(attempt: SimulatedAttempt, detail: str, rev: str, preserve: str, retry: str, rationale: str) -> str:
    """The body of the ``execute-bead`` event: prose first, then ``k=v`` lines."""
    lines = [detail]
    if rationale:
        lines.append(f"rationale: {rationale}")
    if preserve:
        lines.append(f"preserve_ref={preserve}")
    lines += [f"result_rev={rev}", f"base_rev={attempt.base}"]
    if retry:
        lines.append(f"retry_after={retry}")
    return "\n".join(lines)


def loop_row(attempt: SimulatedAttempt, status: str, detail: str, **more: Any) -> Json:
    """One entry of the loop's ``results``; empty fields are left out."""
    row: Json = {
        "bead_id": attempt.bead,
        "attempt_id": attempt.id,
        "harness": HARNESS,
        "model": attempt.act.model,
        "status": status,
        "detail": detail,
        "session_id": attempt.session,
        "base_rev": attempt.base,
    }
    row |= {key: value for key, value in more.items() if value}
    if attempt.act.cost_usd is not None:
        row["cost_usd"] = attempt.act.cost_usd
    return row | {"duration_ms": attempt.duration_ms}
