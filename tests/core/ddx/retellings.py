"""Recordings as other releases of DDx would have written them, built from those of two.

Each retelling changes one thing that differs between DDx's versions of April to August 2026 (read in its
sources: where a lease lies, what a claim writes into the row, which run records and sidecars there are, how
an attempt's work tree is called) and nothing of what happened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tests.core.ddx.replay import Entry

Retelling = Callable[[Entry], Iterable[Entry]]

_WORKTREE = re.compile(r"\$(?:H/\.cache/ddx/exec-wt|T/tmp/ddx-exec-wt)/\.execute-bead-(?:clone|wt)-[^/\"\\]+")
_LEASE = re.compile(r"\$T/tmp/ddx-claim-heartbeats/")


def _without(*parts: str) -> Retelling:
    def retell(entry: Entry) -> Iterator[Entry]:
        if not any(part in entry["path"] for part in parts):
            yield entry

    return retell


def _replacing(pattern: re.Pattern[str], by: str) -> Retelling:
    """Other names in paths and in every text."""

    def retell(entry: Entry) -> Iterator[Entry]:
        text = entry.get("text")
        changed = {"path": pattern.sub(by, entry["path"])}
        yield entry | changed | ({"text": pattern.sub(by, text)} if text else {})

    return retell


def _documents(part: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Retelling:
    """Each JSON object in the files with ``part`` in their path, changed; they hold one or one a line."""

    def retell(entry: Entry) -> Iterator[Entry]:
        text = entry.get("text")
        if part not in entry["path"] or not text:
            yield entry
            return
        if text.startswith("{\n"):
            yield entry | {"text": json.dumps(change(json.loads(text)), indent=2) + "\n"}
            return
        lines = [json.dumps(change(json.loads(line))) if line else "" for line in text.split("\n")]
        yield entry | {"text": "\n".join(lines)}

    return retell


def _all(*retellings: Retelling) -> Retelling:
    def retell(entry: Entry) -> Iterator[Entry]:
        entries = [entry]
        for retelling in retellings:
            entries = [told for before in entries for told in retelling(before)]
        yield from entries

    return retell


def _claim_in_row(row: dict[str, Any]) -> dict[str, Any]:
    """A claim as the middle of May 2026 wrote it: in the row, with the heartbeat of its beginning."""
    if row.get("status") != "in_progress":
        return row
    began = min((event["created_at"] for event in row.get("events") or ()), default=row["updated_at"])
    claimed = {"claimed-at": f"{began[:19]}Z", "claimed-pid": "1", "claimed-machine": "vm"}
    return claimed | {"work-heartbeat-at": row["updated_at"]} | row


def _never_claimed(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the releases from the middle of May on left it while a worker held the bead's lease."""
    if row.get("status") != "in_progress":
        return row
    return {key: value for key, value in row.items() if key != "owner"} | {"status": "open"}


def _old_keys(row: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"^work-", "execute-loop-", key): value for key, value in row.items()}


def _new_keys(row: dict[str, Any]) -> dict[str, Any]:
    renamed = {re.sub(r"^execute-loop-", "work-", key): value for key, value in row.items()}
    return renamed | {"schema_version": 1}


def _no_schema(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "schema_version"}


def _bare(lease: dict[str, Any]) -> dict[str, Any]:
    """A lease as its first release wrote it."""
    return {key: lease[key] for key in ("bead_id", "started_at", "updated_at", "pid")}


def _servers(record: dict[str, Any]) -> dict[str, Any]:
    """What a worker says of itself, as the server's record of it."""
    told = {"id": record["worker_id"], "kind": "work", "state": "running", "pid": record.get("pid")}
    told |= {key: record[key] for key in ("project_root", "started_at", "last_activity_at")}
    if record.get("current_bead"):
        attempt = {"attempt_id": record["attempt_id"], "bead_id": record["current_bead"]}
        attempt |= {"phase": record.get("phase", ""), "started_at": record["last_activity_at"]}
        told["current_attempt"] = attempt
    return told


def _pid_as_text(document: dict[str, Any]) -> dict[str, Any]:
    return document | ({"pid": str(document["pid"])} if "pid" in document else {})


def _into_tree(entry: Entry) -> Iterator[Entry]:
    """The attempt works in the project itself: its evidence is written where it stays."""
    inside = _WORKTREE.match(entry["path"])
    if inside is None:
        copied = "/executions/" in entry["path"] and entry["op"] == "create" and "embedded" in entry["path"]
        if not copied or "/.ddx/executions/" not in entry["path"]:
            yield from _replacing(_WORKTREE, "$P")(entry)
        return
    if entry["op"] != "delete":
        yield from _replacing(_WORKTREE, "$P")(entry)


LEASES: dict[str, Retelling] = {
    "leases in the user's cache": _replacing(_LEASE, "$H/.cache/ddx/ddx-claim-heartbeats/"),
    "leases in the temporary folder's ddx": _replacing(_LEASE, "$T/tmp/ddx/ddx-claim-heartbeats/"),
    "leases without machine and owner": _documents("ddx-claim-heartbeats", _bare),
    "claims in the row, and leases": _all(
        _documents("/.ddx/beads.jsonl", _claim_in_row), _documents("ddx-claim-heartbeats", _bare)
    ),
    "claims in the row, no leases": _all(
        _documents("/.ddx/beads.jsonl", _claim_in_row), _without("ddx-claim-heartbeats")
    ),
    "no leases": _without("ddx-claim-heartbeats"),
}

RECORDS: dict[str, Retelling] = {
    "one run record for all": _without("/.ddx/run-state/"),
    "run records of attempts only": _without("/.ddx/run-state.json"),
    "no records of runs": _without("/.ddx/runs/"),
    "no sidecars": _without("/.ddx/workers/"),
    "the server's record of a worker": _documents("/status.json", _servers),
    "process ids as texts": _all(
        _documents("/run-state", _pid_as_text), _documents("/status.json", _pid_as_text),
        _documents("ddx-claim-heartbeats", _pid_as_text),
    ),
    "no metrics": _without("/.ddx/metrics/"),
    "no session index": _without("/sessions/"),
}  # fmt: skip

WORKTREES: dict[str, Retelling] = {
    "git work trees": _replacing(_WORKTREE, "$T/tmp/ddx-exec-wt/.execute-bead-wt-demo"),
    "pooled work trees": _replacing(_WORKTREE, "$H/.cache/ddx/exec-wt/.execute-bead-slot-0a1b2c3d/slot-0"),
    "single-use work trees": _replacing(_WORKTREE, "$H/.cache/ddx/exec-wt/.execute-bead-ephemeral-0a1b-7"),
    "in the project itself": _into_tree,
}

ROWS: dict[str, Retelling] = {
    "old keys": _documents("/.ddx/beads.jsonl", _old_keys),
    "new keys": _documents("/.ddx/beads.jsonl", _new_keys),
    "old keys, no schema": _all(
        _documents("/.ddx/beads.jsonl", _old_keys), _documents("/.ddx/beads.jsonl", _no_schema)
    ),
}

ROWS_STAY_OPEN = _documents("/.ddx/beads.jsonl", _never_claimed)

RETELLINGS = LEASES | RECORDS | WORKTREES | ROWS
