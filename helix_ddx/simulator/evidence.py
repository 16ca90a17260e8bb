"""Attempt evidence as DDx leaves it: bundles, metrics rows, and a bead's events (docs/formats/ddx.md §5)."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from helix_ddx.files import second, stamp
from helix_ddx.simulator.script import Act
from helix_ddx.store.tracker import event

Json = dict[str, Any]

OUTCOME = {
    "success": "task_succeeded",
    "already_satisfied": "task_no_changes",
    "no_changes": "task_no_changes",
    "no_evidence_produced": "task_no_evidence",
    "land_conflict": "preserved",
    "post_run_check_failed": "preserved",
    "preserved_needs_review": "preserved",
}
"""What result.json calls the end of an attempt, by its status; everything else is ``task_failed``."""

_STRUCT_FIELDS = frozenset(
    {
        *("status", "priority", "issue_type", "schema_version", "owner"),
        *("created_at", "created_by", "updated_at", "notes", "dependencies"),
    }
)
"""Fields of a bead that Go holds in its struct: a manifest's metadata has only the others."""


def document(value: Json) -> str:
    """A bundle's JSON document: indented by two, no final newline."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def usage(attempt: str, harness: str, model: str, tokens: tuple[int, int], cost: float | None) -> Json:
    """usage.json; an unknown cost is left out."""
    row: Json = {
        "attempt_id": attempt,
        "harness": harness,
        "model": model,
        "tokens": sum(tokens),
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
    }
    if cost is not None:
        row["cost_usd"] = cost
    return row


def attempt_metric(
    attempt: str,
    bead: str,
    session: str,
    span: tuple[int, int],
    model: str,
    harness: str,
    outcome: str,
    cost: float | None,
) -> Json:
    """One row of metrics/attempts.jsonl (head)."""
    row: Json = {
        "schema_version": 1,
        "attempt_id": attempt,
        "bead_id": bead,
        "session_id": session,
        "ts_start": second(span[0]),
        "ts_end": second(span[1]),
        "model": model,
        "harness": harness,
        "outcome": outcome,
        "exit_code": 0,
    }
    if cost is not None:
        row["cost_usd"] = cost
    return row | {"duration_ms": (span[1] - span[0]) // 1_000_000}


def cost_event(
    attempt: str,
    harness: str,
    model: str,
    tokens: tuple[int, int],
    cost: float | None,
    duration_ms: int,
    at: int,
    source: str,
    exit_code: int = 0,
    **more: str,
) -> Json:
    """The event with an attempt's usage."""
    body: Json = {
        "attempt_id": attempt,
        "harness": harness,
        "model": model,
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "total_tokens": sum(tokens),
        "cost_usd": cost,
        "duration_ms": duration_ms,
        "exit_code": exit_code,
    }
    body |= more
    summary = f"tokens={sum(tokens)}"
    if cost is None:
        del body["cost_usd"]
    else:
        summary += f" cost_usd={cost:.4f}"
    text = json.dumps(body, separators=(",", ":"))
    return event("cost", f"{summary} model={model}", text, at, actor="ddx", source=source)


def session_row(
    session: str,
    project: str,
    bead: str,
    harness: str,
    model: str,
    span: tuple[int, int],
    usage_row: Json,
    billing: str,
) -> Json:
    """The fields of a row of agent-logs/sessions/sessions-YYYY-MM.jsonl that every call has."""
    row: Json = {"id": session, "projectID": project}
    if bead:
        row["beadID"] = bead
    row |= {
        "harness": harness,
        "billingMode": billing,
        "model": model,
        "startedAt": stamp(span[0]),
        "endedAt": stamp(span[1]),
        "durationMs": (span[1] - span[0]) // 1_000_000,
        "tokens": usage_row["tokens"],
        "inputTokens": usage_row["input_tokens"],
        "outputTokens": usage_row["output_tokens"],
    }
    if "cost_usd" in usage_row:
        row |= {"cost": usage_row["cost_usd"], "costPresent": True}
    return row | {"outcome": "success", "exitCode": 0}


def bundle(attempt: str) -> str:
    """The folder of an attempt's evidence, relative to the project."""
    return f".ddx/executions/{attempt}"


def manifest(
    attempt: str, row: Json, base: str, at: int, harness: str, model: str, worktree: str, worker: str = ""
) -> Json:
    """manifest.json: what the attempt was asked, with the bead as it was then."""
    known = ("id", "title", "description", "acceptance", "parent", "labels")
    extra = {
        key: value
        for key, value in sorted(row.items())
        if key not in (*known, *_STRUCT_FIELDS) and value not in ("", None)
    }
    bead = {key: row[key] for key in known if row.get(key)}
    if extra:
        bead["metadata"] = extra
    folder = bundle(attempt)
    head: Json = {"attempt_id": attempt}
    if worker:
        head["worker_id"] = worker
    return head | {
        "bead_id": row["id"],
        "base_rev": base,
        "created_at": stamp(at),
        "requested": {"harness": harness, "model": model, "prompt": "synthesized"},
        "bead": bead,
        "paths": {
            "dir": folder,
            "prompt": f"{folder}/prompt.md",
            "manifest": f"{folder}/manifest.json",
            "result": f"{folder}/result.json",
            "checks": f"{folder}/checks.json",
            "usage": f"{folder}/usage.json",
            "worktree": worktree,
        },
    }


def result(
    attempt: str,
    bead: str,
    base: str,
    rev: str,
    status: str,
    detail: str,
    session: str,
    span: tuple[int, int],
    used: Json,
    *,
    tail: Json | None = None,
    **more: Any,
) -> Json:
    """result.json; fields that only some endings have are keywords."""
    folder = bundle(attempt)
    row: Json = {
        "bead_id": bead,
        "attempt_id": attempt,
        "base_rev": base,
        "result_rev": rev,
        "outcome": OUTCOME.get(status, "task_failed"),
        "status": status,
        "detail": detail,
        **more,
        "harness": used["harness"],
        "model": used["model"],
        "session_id": session,
        "duration_ms": (span[1] - span[0]) // 1_000_000,
        "tokens": used["tokens"],
    }
    if "cost_usd" in used:
        row["cost_usd"] = used["cost_usd"]
    return row | {
        "exit_code": 1 if row["outcome"] == "task_failed" else 0,
        **(tail or {}),
        "execution_dir": folder,
        "prompt_file": f"{folder}/prompt.md",
        "manifest_file": f"{folder}/manifest.json",
        "result_file": f"{folder}/result.json",
        "usage_file": f"{folder}/usage.json",
        "started_at": stamp(span[0]),
        "finished_at": stamp(span[1]),
    }


def prompt(row: Json) -> str:
    """prompt.md: the bead as the agent is given it."""
    title = f"    <title>{_xml(row.get('title', ''))}</title>\n"
    parts = [f"<execute-bead>\n  <bead id={json.dumps(row['id'])}>\n", title]
    parts += [
        f"    <{name}>\n{_xml(row[name])}\n    </{name}>\n" for name in ("description", "acceptance") if row.get(name)
    ]
    labels = ", ".join(row.get("labels") or ())
    parts.append(f"    <labels>{_xml(labels)}</labels>\n  </bead>\n")
    parts.append("  <note>This is a simulation: no agent reads this prompt.</note>\n</execute-bead>\n")
    return "".join(parts)


def _xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def sha(text: str) -> str:
    """The digest that ties a transcript to its prompt."""
    return hashlib.sha256(text.encode()).hexdigest()


def rationale(row: Json, act: Act) -> str:
    """no_changes_rationale.txt: why an agent changed nothing, and how to check that or what to do."""
    if act.outcome == "no_changes":
        return f"status: open\nreason: {act.rationale}\n"
    reason = act.rationale or f"{row.get('title', row['id'])}: nothing is left to do"
    match = re.search(r"`([^`\n]+)` passes", str(row.get("acceptance", "")))
    proof = match[1] if match else "git diff --exit-code"
    return f"status: already_satisfied\nreason: {reason}\nverification_command: {proof}\n"


def review_prompt(row: Json, rev: str) -> str:
    """The prompt.md of a review."""
    bead = _xml(str(row.get("title", row["id"])))
    return (
        f"<bead-review>\n  <bead id={json.dumps(row['id'])} iter=1>\n    <title>{bead}</title>\n  </bead>\n"
        f"  <diff rev={json.dumps(rev)}/>\n  <note>This is a simulation: no reviewer reads this.</note>\n"
        "</bead-review>\n"
    )


def verdict_of(act: Act, cycle: int) -> str:
    """What the reviewer says about a candidate."""
    if act.verdicts:
        return act.verdicts[min(cycle, len(act.verdicts) - 1)]
    if act.outcome == "review_request_changes":
        return "APPROVE" if cycle else "REQUEST_CHANGES"
    return "BLOCK" if act.outcome == "review_block" else "APPROVE"
