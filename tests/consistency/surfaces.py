"""Every surface as statements that can be held against each other. A new surface joins by one line.

A statement is a subject and a value: what the surface says of it. Two surfaces that speak of the same subject
must say the same. What a surface says in prose is read from its lines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from helix_tui.core.ddx.names import ATTEMPT_ID
from helix_tui.core.ground.time import parse_instant
from helix_tui.core.supervision.decide.need_kinds import GROUPS
from tests.consistency.scene import Scene, Statement, Surface, facts
from tests.consistency.told import compared, days, documents, listed, notified, served

MOST_ASKED = 12
"""Beads that ``why`` is asked about."""


def _row(line: bytes) -> dict[str, Any] | None:
    row = None
    with suppress(ValueError):
        row = json.loads(line)
    return row if isinstance(row, dict) and isinstance(row.get("id"), str) else None


def _rows(overlay: Scene) -> dict[str, dict[str, Any]]:
    """The rows of the tracker by id, the last of each."""
    lines = (overlay.root / ".ddx" / "beads.jsonl").read_bytes().split(b"\n")
    return {row["id"]: row for row in map(_row, lines) if row is not None}


def _file(overlay: Scene) -> Iterator[Statement]:
    """What the tracker's lines say by themselves, read by nobody else's reader.

    It knows little, and that for certain: what is closed, what waits, what a review before landing refused.
    """
    rows = _rows(overlay)
    lines = [line for line in (overlay.root / ".ddx" / "beads.jsonl").read_bytes().split(b"\n") if line.strip()]
    yield ("count", "beads"), len(rows)
    yield ("count", "unread lines"), sum(_row(line) is None for line in lines)
    yield from _of_edges(rows)
    parents = {row.get("parent") for row in rows.values()}
    for name, row in rows.items():
        status = row.get("status")
        if status in ("closed", "cancelled", "proposed"):
            yield ("state of", name), status
        yield ("waits as a proposal", name), status == "proposed"
        waits = [edge["depends_on_id"] for edge in row.get("dependencies") or () if edge["type"] == "blocks"]
        unmet = [each for each in waits if rows.get(each, {}).get("status") != "closed"]
        if unmet or row.get("execution-eligible") is False or status not in ("open", "in_progress"):
            yield ("has a place", name), False
        cool = [row.get(f"{era}-retry-after") for era in ("execute-loop", "work") if era == "work" or _of_april(row)]
        if any((parse_instant(str(each or "")) or 0) > (parse_instant(overlay.now) or 0) for each in cool):
            yield ("has a place", name), False
        over = row.get("superseded-by")
        if (isinstance(over, str) and over.strip()) or (row.get("issue_type") == "epic" and name in parents):
            yield ("has a place", name), False
        yield from _of_events(row)
        for tree, attempt in _WORKTREE.findall(json.dumps(row.get("events")) + name):
            if tree in rows:
                yield ("is an attempt", attempt), True


def _of_edges(rows: dict[str, dict[str, Any]]) -> Iterator[Statement]:
    """What unfinished beads wait on and the file lacks, and who of them waits on itself, through whomever."""
    waits = {
        name: [edge["depends_on_id"] for edge in row.get("dependencies") or ()]
        for name, row in rows.items()
        if row.get("status") not in ("closed", "cancelled")
    }
    yield ("dangling", ""), sorted((name, on) for name, needed in waits.items() for on in needed if on not in rows)
    dropped = {name for name, row in rows.items() if row.get("status") == "cancelled"}
    yield (
        ("waits on what is cancelled", ""),
        sorted((name, on) for name, needed in waits.items() for on in needed if on in dropped),
    )
    circled = []
    for name in waits:
        ahead, seen = [*waits[name]], set()
        while ahead:
            other = ahead.pop()
            if other in waits and other not in seen:
                seen.add(other)
                ahead += waits[other]
        circled += [name] * (name in seen)
    yield ("in a dependency cycle", ""), sorted(circled)


def _of_april(row: dict[str, Any]) -> bool:
    return "schema_version" not in row and not any(key.startswith(("work-", "queue-")) for key in row)


_WORKTREE = re.compile(r"execute-bead-wt-([\w.-]{1,80}?)-(\d{8}T\d{6}-[0-9a-f]{8})")
"""The folder in which a bead was attempted, as an event names it, or a bead that was filed there."""


def _of_events(row: dict[str, Any]) -> Iterator[Statement]:
    """What a bead's events say of attempts that they name."""
    told = [event for event in row.get("events") or () if isinstance(event, dict)]
    later = {found[0] for event in told if "recover" in str(event.get("kind")) for found in _named(event)}
    for event in told:
        attempt = next(iter(_named(event)), None) if event.get("kind") == "execute-bead" else None
        body = str(event.get("body"))
        if attempt is None or "auto-recovered" in body:
            continue
        yield ("is an attempt", attempt[0]), True
        kept = "preserve_ref=refs/" in body or "pre-land review" in body
        if kept and attempt[0] not in later:
            yield ("landed", attempt[0]), False


def _named(event: dict[str, Any]) -> list[re.Match[str]]:
    """The attempt that an event gives as its own: other ids in it are of reviews and folders."""
    body = str(event.get("body"))
    at = next((body.find(mark) for mark in _NAMING if mark in body), len(body))
    return [found for found in [ATTEMPT_ID.search(body, at, at + 300)] if found]


_NAMING = ("attempt_id=", '"attempt_id":"', "preserve_ref=")


def _queue(overlay: Scene) -> Iterator[Statement]:
    yield from _of_queue(overlay.ask("queue"))


def _of_queue(document: dict[str, Any]) -> Iterator[Statement]:
    states = [row["state"] for row in document["beads"]]
    for row in document["beads"]:
        yield ("state of", row["id"]), row["state"]
        yield ("is running", row["id"]), row["running"]
        yield ("has a place", row["id"]), row["id"] in document["ready"]
        yield from _of_bead(row, row["unblocks"])
    yield from facts("queue", "", document, "era", "tracker_era", "judged_by", "critical_path", "as_of")
    counts = document["counts"]
    for state in set(states) | counts.keys():
        yield ("count in state", state), counts.get(state, 0)
        yield ("count in state", state), states.count(state)
    yield ("count", "ready"), len(document["ready"])
    yield ("count", "ready"), states.count("ready")
    yield ("count", "unread lines"), len(document["dropped"])
    yield from _of_faults(document)
    yield ("count", "for workers"), document["for_workers"]
    yield ("count", "running"), states.count("running")
    yield ("count", "beads"), len(states)
    yield ("left out", ""), document["left_out"]
    # what is ready and not for workers has a reason that is named
    yield ("something is left out", ""), bool(document["left_out"])
    yield ("something is left out", ""), document["for_workers"] != len(document["ready"])
    yield ("next", ""), next(iter(document["ready"]), None)
    for run in document["running"]:
        yield from _of_run(run)
        if run["live"] and run["bead_id"]:
            yield ("is running", run["bead_id"]), True
    yield ("runs", ""), _runs(document["running"])


def _of_faults(document: dict[str, Any]) -> Iterator[Statement]:
    yield ("dangling", ""), sorted((each["bead_id"], each["missing"]) for each in document["dangling"])
    yield ("in a dependency cycle", ""), sorted({name for cycle in document["cycles"] for name in cycle})


def _of_bead(row: dict[str, Any], unblocks: int) -> Iterator[Statement]:
    """What a list or a sheet says of one bead."""
    yield from facts("bead", row["id"], row, "title", "status", "priority", "holds_up", "chain", "on_critical_path")
    yield from facts("bead", row["id"], row, "dependents")
    yield ("unblocks of the bead", row["id"]), unblocks
    yield ("reasons of the bead", row["id"]), [(reason["kind"], reason["detail"]) for reason in row["reasons"]]


def _of_run(run: dict[str, Any]) -> Iterator[Statement]:
    name = f"{run['bead_id']} {run['attempt_id']}"  # several attempts of one bead may be called running
    yield from facts("run", name, run, "source", "phase", "live", "why", "pid", "age_s")


def _runs(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((row["bead_id"] or "", row["attempt_id"] or "", row["verdict"]) for row in rows)


def _why(overlay: Scene) -> Iterator[Statement]:
    for row in overlay.ask("queue")["beads"][:MOST_ASKED]:
        said = overlay.ask("why", row["id"])
        yield ("state of", row["id"]), said["state"]
        yield ("is running", row["id"]), said["running"]
        if said["position"] == 1:
            yield ("next", ""), row["id"]
        yield ("has a place", row["id"]), said["position"] is not None
        yield from _of_bead(said, len(said["unblocks"]))
        yield from facts("bead", row["id"], said, "causes")
        if said["done_by"] is not None:
            yield ("outcome of", said["done_by"]["attempt_id"]), said["done_by"]["outcome"]
            yield from facts("attempt", said["done_by"]["attempt_id"], said["done_by"], "follow_up")
        if said["position"] is not None:
            yield ("place of the bead", row["id"]), said["position"]
            yield ("place of the bead", row["id"]), overlay.ask("queue")["ready"].index(row["id"]) + 1
        yield ("has a place", row["id"]), said["state"] == "ready"


def _attempts(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("attempts")
    yield from _of_attempts(document["attempts"])
    for outcome, number in document["outcomes"].items():
        yield ("count of outcome", outcome), number
    yield ("count", "attempts"), len(document["attempts"])
    yield ("count", "landed"), document["counts"]["landed"]
    yield ("count", "attempts"), sum(document["counts"].values())
    yield ("count of outcome", "failed"), document["counts"]["failed"]
    yield ("count of outcome", "failed"), document["outcomes"].get("failed", 0)
    yield ("count", "preserved"), document["counts"]["preserved"]
    yield ("count", "preserved"), sum(row["preserved"] for row in document["attempts"])
    yield ("calls of agents", ""), document["spent"]["calls"]
    of_attempts = sum(row["spent"]["calls"] for row in document["attempts"])  # a question's call is of no attempt
    yield ("the sum holds the calls of its attempts", ""), True
    yield ("the sum holds the calls of its attempts", ""), document["spent"]["calls"] >= of_attempts
    last = document["since_landing"]
    if last["landed_attempt"]:
        yield ("landed", last["landed_attempt"]), True
        yield ("newest landing", ""), last["landed_attempt"]
        landed = [row for row in document["attempts"] if row["landed"]]
        yield ("newest landing", ""), max(landed, key=lambda row: row["landed_at"] or "")["attempt_id"]
    yield ("attempts since a landing", ""), last["attempts"]
    yield ("attempts since a landing", ""), sum(last["outcomes"].values())
    yield ("attempts since a landing", ""), sum(last["statuses"].values())


def _of_attempts(rows: list[dict[str, Any]]) -> Iterator[Statement]:
    outcomes = [row["verdict"]["outcome"] for row in rows]
    for row, outcome in zip(rows, outcomes, strict=True):
        name = row["attempt_id"]
        yield ("outcome of", name), outcome
        yield ("is known", name), True
        yield from facts("attempt", name, row, "bead_id", "status", "started_at", "finished_at", "cost_usd", "spent")
        yield from facts("attempt", name, row, "interpretation", "follow_up", "context", "memories", "sources")
        yield from facts("attempt", name, row["verdict"], "proof", "why")
        yield from facts("attempt", name, row, "outcome", "detail", "candidate_ref")
        yield from _of_cost(name, row["cost_usd"], row["spent"])
        yield ("landed", name), row["landed"]
        yield ("landed", name), outcome == "landed"
        yield ("kept beside the branch", name), row["preserved"]
        yield ("kept beside the branch", name), outcome in ("kept_aside", "refused")
        if row["review"] and not row["review"].startswith("APPROVE"):
            yield ("faulted by a review", name), True
        if "nothing to do: it landed" in row["follow_up"]:
            yield ("landed", name), True
        if row["follow_up"].startswith("nothing to do"):
            yield ("has a place", row["bead_id"]), False
    for outcome in set(outcomes):
        yield ("count of outcome", outcome), outcomes.count(outcome)
    yield ("count", "landed"), outcomes.count("landed")


def _of_cost(name: str, cost: float | None, spent: dict[str, Any]) -> Iterator[Statement]:
    """What an attempt cost is the sum of its parts; its own cost is that of its work, where all of that is known."""
    parts = spent["parts"].values()
    for field in ("tokens", "calls"):
        yield (f"{field} of all parts", name), spent[field] or 0
        yield (f"{field} of all parts", name), sum(part[field] for part in parts)
    # each part is rounded to the millionth by itself
    apart = abs((spent["usd"] or 0.0) - sum(part["usd"] or 0.0 for part in parts))
    yield ("the cost is that of its parts", name), True
    yield ("the cost is that of its parts", name), apart < 0.000_01
    work = spent["parts"].get("work")
    if work and work["usd"] and not work["without_usd"]:
        yield ("cost of the work", name), cost
        yield ("cost of the work", name), work["usd"]


def _insights(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("insights", "--by", "status")
    sums: dict[str, int] = {}
    for cell in document["rows"]:
        yield ("count landed in status", cell["key"]["status"]), cell["landed"]
        yield from _of_cell(cell)
        for outcome, number in cell["outcomes"].items():
            sums[outcome] = sums.get(outcome, 0) + number
    yield ("count", "landed"), sums.get("landed", 0)
    for row in document["failing"]:
        yield ("status of the attempt", row["last_attempt_id"]), row["last_status"]
        yield ("bead_id of the attempt", row["last_attempt_id"]), row["bead_id"]
        yield ("title of the bead", row["bead_id"]), row["title"]
    for cell in (*document["burn"]["days"], document["burn"]["last_24h"], document["burn"]["recent"]):
        yield from _of_cell(cell)
    for outcome, number in sums.items():
        if outcome != "interrupted":  # those that left no result are in no table of ended attempts
            yield ("count of outcome", outcome), number
    yield (
        ("count landed of day", "all"),
        sum(cell["landed"] for cell in overlay.ask("insights", "--by", "day")["rows"]),
    )
    yield ("count landed of day", "all"), sums.get("landed", 0)


def _of_cell(cell: dict[str, Any]) -> Iterator[Statement]:
    """A row of a table is the sum of its parts."""
    name = " ".join(map(str, cell["key"].values()))
    known = ("landed", "preserved", "failed", "no_changes", "other")
    yield ("attempts in the cell", name), cell["n"]
    yield ("attempts in the cell", name), sum(cell["outcomes"].values())
    yield ("attempts in the cell", name), sum(cell[each] for each in known)
    yield ("landed in the cell", name), cell["landed"]
    yield ("landed in the cell", name), cell["outcomes"].get("landed", 0)
    yield ("share of the cell", name), round(cell["rate"] or 0.0, 6)
    yield ("share of the cell", name), round(cell["landed"] / cell["n"], 6) if cell["n"] else 0.0
    yield ("cost of the cell", name), cell["cost_usd"] or 0.0
    yield ("cost of the cell", name), cell["spent"]["usd"] or 0.0


_HEALTH = ("open", "in_progress", "closed", "archived", "closed_in_all", "blocked", "waiting", "cooling", "states")


def _of_next(document: dict[str, Any]) -> Iterator[Statement]:
    """What the sheet and the command say of the next action."""
    yield from facts("next step", "", document, "decided_by", "reasons", "recommended_command", "would_change_if")


def _check(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("check", "--no-model")
    health = document["queue_health"]
    yield ("count", "ready"), health["ready_execution"]
    yield ("count", "for workers"), health["ready_for_workers"]
    yield ("count", "running"), health["running"]
    yield ("count", "beads"), health["total"]
    yield ("count", "ddx's ready"), health["ready"]
    yield from _of_faults(document)
    waits = sorted((each["bead_id"], each["cancelled"]) for each in document["waits_on_cancelled"])
    yield ("waits on what is cancelled", ""), waits
    yield ("count in state", "waiting_dependencies"), health["waiting"]
    yield ("something is unread", ""), bool(document["unread_lines"])
    yield ("left out", ""), health["left_out"]
    yield from facts("tracker", "", health, *_HEALTH)
    for state, number in health["states"].items():
        yield ("count in state", state), number
    yield from _of_next(document)
    yield ("open questions", ""), sorted(question["id"] for question in document["questions"])
    for question in document["questions"]:
        yield from facts("question", question["id"], question, "kind", "text", "bead_id")
    yield ("next action", ""), document["next_action"]
    for reason in document["reasons"]:
        if reason["code"] in ("finished_epic", "dangling_dependency", "cancelled_dependency"):
            named = reason["refs"] if reason["code"] == "finished_epic" else reason["refs"][:1]
            yield from ((("is named as stuck", bead_id), True) for bead_id in named)
    if document["next_action"] == "STOP":
        yield ("count", "ready"), 0
        yield ("count", "running"), 0
    yield from _why_next(document["reasons"])


def _status(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("status")
    tracker = document["tracker"]
    yield ("count", "ready"), tracker["ready_execution"]
    yield ("count", "for workers"), tracker["ready_for_workers"]
    yield ("count", "running"), tracker["running"]
    yield ("count", "beads"), tracker["total"]
    yield ("count", "ddx's ready"), tracker["ready"]
    yield ("left out", ""), tracker["left_out"]
    yield from facts("tracker", "", tracker, *_HEALTH)
    yield ("count", "unread lines"), tracker["unread_lines"]
    yield ("something is unread", ""), tracker["unread_lines"] > 0
    yield ("open questions", ""), sorted(question["id"] for question in document["questions"])
    for question in document["questions"]:
        yield ("asked about", repr(question["bead_id"])), True
        yield from facts("question", question["id"], question, "kind", "text", "bead_id")
    if document["running_bead"]:
        yield ("is running", document["running_bead"]["id"]), True


_STUCK = ("waiting_dependencies", "retry_cooldown", "proposed", "blocked_external", "not_eligible")
"""States of which the blocker report names every bead."""


def _stuck(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("stuck")
    yield ("count", "unread lines"), document["unread_lines"]
    named = {row["bead_id"] for row in document["stuck"]}
    for row in overlay.ask("queue")["beads"]:
        if row["state"] in _STUCK and not row["title"].startswith("align"):
            yield ("is named as stuck", row["id"]), True
        if row["state"] in (*_STUCK, "epic_container") and not row["title"].startswith("align"):
            yield ("is named as stuck", row["id"]), row["id"] in named
    for row in document["stuck"]:
        yield from facts("bead", row["bead_id"], row, "title")
        if row["reason"] in ("dep-blocked", "retry-parked", "operator-attention", "not-eligible"):
            yield ("has a place", row["bead_id"]), False


def _next(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("next")
    yield ("next", ""), document["id"]
    if document["id"]:
        yield from facts("bead", document["id"], document, "title", "causes")
    yield ("count", "ready"), document["ready"]
    yield ("count", "unread lines"), document["unread_lines"]


def _proposals(overlay: Scene) -> Iterator[Statement]:
    """Lessons: a pattern comes from what landed, a failure from what neither landed nor was done already."""
    for each in overlay.ask("memory", "learn")["attempts"]:
        lesson = each["proposal"]
        if lesson and lesson["type"] == "pattern":
            yield ("landed", each["attempt"]), True
        if lesson and lesson["type"] == "failure":
            yield ("teaches a failure", each["attempt"]), True


def _asked(overlay: Scene) -> Iterator[Statement]:
    """What Ask answers about states: counts are those of the queue and of the attempts, or no count is said."""
    for question, subject in (
        ("which beads are ready?", ("count", "ready")),
        ("how many attempts landed?", ("count", "landed")),
        ("which attempts were refused?", ("count of outcome", "refused")),
        ("which attempts failed?", ("count of outcome", "failed")),
        ("which beads are proposed?", ("count in state", "proposed")),
    ):
        code, out = overlay.run("ask", question)
        told = re.search(r"^([\d,]+) (?:bead|attempt)s? (?:ready|landed|refused|failed|proposed)$", out, re.M)
        if code == 0 and told:
            yield subject, int(told[1].replace(",", ""))
            listed = re.findall(r"^- `([^`]+)`", out, re.M)
            if "ready" in question:
                yield ("next", ""), listed[0]


def _forecast(overlay: Scene) -> Iterator[Statement]:
    """What is left, and its longest chain: the queue's, for as much as it holds."""
    document, queue = overlay.ask("insights"), overlay.ask("queue")
    path = queue["critical_path"]
    chain = document["forecast"]["longest_chain"]
    if path:
        yield ("longest chain", ""), chain
        yield ("longest chain", ""), len(path)
        yield ("critical path", ""), path
        rows = {row["id"]: row for row in queue["beads"]}
        for place, name in ((place, name) for place, name in enumerate(path, 1) if name in rows):  # others are missing
            yield ("place on the critical path", name), place
            yield ("place on the critical path", name), rows[name]["chain"]["place"]
            yield ("is on the critical path", name), True
            yield ("is on the critical path", name), rows[name]["on_critical_path"]
            yield ("is done", name), rows[name]["state"] in ("closed", "cancelled")
            yield ("is done", name), False
    yield ("count", "left to do"), document["forecast"]["left"]
    yield (
        ("count", "left to do"),
        document["burn"]["open_beads"],
    )


_SAYS_READY = re.compile(r"(?<![\w-])([\d,]+) ready\b")
_SAYS_WORKERS = re.compile(r"([\d,]+) can run\b")


def _in_words(lines: Iterable[str]) -> Iterator[Statement]:
    """The counts that lines for people hold."""
    for line in lines:
        for found in _SAYS_READY.findall(line):
            yield ("count", "ready"), int(found.replace(",", ""))
        for found in _SAYS_WORKERS.findall(line):
            yield ("count", "for workers"), int(found.replace(",", ""))


def _words_of(*words: str) -> Surface:
    return lambda overlay: _in_words(_headers(overlay.lines(*words)))


def _headers(lines: list[str]) -> list[str]:
    """The lines that sum up: titles of beads may say anything, and stand in rows."""
    return [line for line in lines if line.startswith(("queue:", "Tracker:")) or " · " in line[:80]]


def _nothing(overlay: Scene) -> Iterator[Statement]:
    """No "nothing" beside a "something"."""
    if "nothing is stuck" in overlay.lines("stuck"):
        yield ("count", "stuck"), 0
    yield ("count", "stuck"), len(overlay.ask("stuck")["stuck"])
    if "no ready issues" in overlay.lines("next"):
        yield ("count", "ready"), 0
    if "nothing to do: the queue is empty" in overlay.lines("queue", "--order", "pick"):
        yield from ((("count", what), 0) for what in ("beads", "unread lines"))


_PULSE = {
    "ready": re.compile(r"○ ?([\d,]+)(?: ready)?"),
    "running": re.compile(r"◉ ?([\d,]+)(?: running)?"),
    "needs me": re.compile(r"◆ ?([\d,]+)"),
    "stale claims": re.compile(r"! ?([\d,]+)(?: stale)?"),
}


_ACTION = re.compile(r"  (BUILD|DESIGN|ALIGN|BACKFILL|POLISH|WAIT|GUIDANCE|STOP)(?: ▸ .*)?$")


def _screen(name: str) -> Surface:
    """The pulse and the data of one screen."""

    def said(overlay: Scene) -> Iterator[Statement]:
        document = overlay.ask("snapshot", "--screen", name, "--format", "json", "--size", "200x30")
        top = document["lines"][0]
        found = _PULSE["ready"].search(top)
        if found:
            yield ("count", "ready"), int(found[1].replace(",", ""))
        for part in ("running", "needs me", "stale claims"):
            number = _PULSE[part].search(top)
            yield ("count", part.replace("needs me", "needs")), int(number[1].replace(",", "")) if number else 0
        yield from ((("times ready stands in the pulse", name), n) for n in (top.count(" ready"), 1) if found)
        workers = _SAYS_WORKERS.search(top)
        if workers:
            yield ("count", "for workers"), int(workers[1].replace(",", ""))
        action = _ACTION.search(top)
        if action:
            yield ("next action", ""), action[1]
        if action and action[1] == "BUILD":
            yield ("something is left out", ""), workers is not None
        if "STOP" in top:
            yield ("count", "ready"), 0
        data = document["data"]
        if "attempts" in data:
            yield from _of_attempts(data["attempts"])
            yield ("count", "attempts"), len(data["attempts"])
            yield ("runs", ""), _runs(data["running"])
            for run in data["running"]:
                yield from _of_run(run)
            yield from _rows_of(document["lines"], data["attempts"])
        elif "beads" in data:
            yield from _of_queue(data)
        elif "needs" in data:
            yield from _of_screen(data["needs"], document["lines"])
        elif "next_action" in data:
            yield ("next action", ""), data["next_action"]
            yield from _of_next(data)
            yield from _why_next(data["reasons"])

    return said


_OVER = ("closed", "cancelled", "running", "claimed", "superseded")
"""States in which nobody need decide on what an attempt left beside the branch."""


def _undecided(overlay: Scene) -> set[str]:
    """Beads whose latest attempt that made anything left it beside the branch."""
    latest: dict[str, dict[str, Any]] = {}
    for row in overlay.ask("attempts")["attempts"]:  # newest first
        if row["verdict"]["outcome"] not in ("failed", "interrupted"):
            latest.setdefault(row["bead_id"], row)
    states = {row["id"]: row["state"] for row in overlay.ask("queue")["beads"]}
    kept = (name for name, row in latest.items() if row["preserved"] and row["status"] != "land_retry")
    given = dict(_given_back(_rows(overlay)))
    ended = {name: parse_instant(row["finished_at"] or row["started_at"] or "") or 0 for name, row in latest.items()}
    return {name for name in kept if states.get(name, "closed") not in _OVER and given.get(name, 0) <= ended[name]}


def _given_back(rows: dict[str, dict[str, Any]]) -> Iterator[tuple[str, int]]:
    """Beads that a person took back from waiting and gave to workers again, with the last time of it."""
    for name, row in rows.items():
        events = [event for event in row.get("events") or () if isinstance(event, dict)]
        times = [
            parse_instant(event.get("created_at") or "") or 0
            for event in events
            if event.get("kind") in ("triaged", "needs_human_resolved") and event.get("summary") != "action=defer"
        ]
        if times:
            yield name, max(times)


def _needs(overlay: Scene) -> Iterator[Statement]:
    document = overlay.ask("needs")
    waiting = {need["bead_id"] for need in document["needs"]}
    undecided = _undecided(overlay)
    for bead_id in undecided:
        yield ("waits for a decision", bead_id), True
        yield ("waits for a decision", bead_id), bead_id in waiting
    for need in document["needs"]:
        if need["kind"] in ("kept_aside", "refused", "merge_conflict", "failing_check"):
            yield ("left beside the branch, undecided", need["bead_id"]), True
            yield ("left beside the branch, undecided", need["bead_id"]), need["bead_id"] in undecided
    yield ("count", "needs"), document["count"]
    yield ("count", "needs"), sum(document["groups"].values())
    yield ("count", "stale claims"), document["groups"].get("stale claims", 0)
    yield ("what needs a person", ""), sorted(need["key"] for need in document["needs"])
    about = {kind: {n["bead_id"] for n in document["needs"] if n["kind"] == kind} for kind in ("proposed", "refused")}
    for row in overlay.ask("queue")["beads"]:
        # one that ddx parked for its refused change is listed by that change
        by_its_change = row["state"] == "proposed" and row["id"] in about["refused"]
        yield ("waits as a proposal", row["id"]), row["id"] in about["proposed"] or by_its_change
        if row["state"] == "blocked_external":
            yield ("waits for a decision", row["id"]), True
            yield ("waits for a decision", row["id"]), row["id"] in waiting
    for name, number in document["groups"].items():
        yield ("count of group", name), number
    yield from _of_needs(document["needs"])


_GROUP = re.compile(r" ?[─▸ ]{2,5}([a-z ]+?)  ([\d,]+)\b")
"""A heading of Needs me, with how many stand below it."""


def _of_screen(needs: list[dict[str, Any]], lines: list[str]) -> Iterator[Statement]:
    for line in lines[1:]:
        group = _GROUP.match(line)
        if group and group[1] in GROUPS:
            yield ("count of group", group[1]), int(group[2].replace(",", ""))
    yield ("what needs a person", ""), sorted(need["key"] for need in needs)
    yield from _of_needs(needs)


def _of_needs(needs: list[dict[str, Any]]) -> Iterator[Statement]:
    """What waits on a person: the state of its bead, the outcome of its attempt, the question it asks."""
    yield ("count", "needs"), len(needs)
    yield ("open questions", ""), sorted(need["question_id"] for need in needs if need["question_id"])
    listed = Counter(need["key"] for need in needs)
    yield from ((("times listed under needs", key), times) for key in listed for times in (1, listed[key]))
    for need in needs:
        kind, bead = need["kind"], need["bead_id"]
        yield from facts(
            "need", need["key"], need, "kind", "bead_id", "reason", "waiting", "since", "attempt_id", "usd"
        )
        waits = need["also"] or kind
        if waits in ("proposed", "preserved_review_blocked", "unknown_status"):
            yield ("state of", bead), waits
        if kind in ("dead_run", "silent_run", "orphaned_claim"):
            yield ("is running", bead), kind == "silent_run"
        attempt = ATTEMPT_ID.search(need["reason"])
        if kind in ("refused", "kept_aside", "merge_conflict", "failing_check") and attempt:
            yield ("outcome of", attempt[0]), "refused" if kind == "refused" else "kept_aside"


def _why_next(reasons: list[dict[str, Any]]) -> Iterator[Statement]:
    """The numbers and the first bead of NEXT_ACTION's reasons."""
    yield ("reasons of the next action", ""), sorted(reason["code"] for reason in reasons)
    for reason in reasons:
        if reason["code"] == "ready":
            yield ("next worth building", ""), reason["refs"][0]


_WORDS = {
    "landed": "landed",
    "kept aside": "kept_aside",
    "refused": "refused",
    "no change": "no_change",
    "satisfied": "satisfied",
    "failed": "failed",
    "interrupted": "interrupted",
}


def _rows_of(lines: list[str], rows: list[dict[str, Any]]) -> Iterator[Statement]:
    """The words of the rows that the Loop screen shows hold an outcome that is in the data."""
    known = {row["verdict"]["outcome"] for row in rows}
    for line in lines[2:]:
        found = re.match(r"[▌ ]?[✓◆○✗] ([a-z ]{6,11}?)  ", line)
        if found and found[1].strip() in _WORDS:
            yield ("outcome is in the data", found[1].strip()), _WORDS[found[1].strip()] in known
            yield ("outcome is in the data", found[1].strip()), True


SURFACES: dict[str, Surface] = {
    "file": _file,
    "queue": _queue,
    "why": _why,
    "attempts": _attempts,
    "insights": _insights,
    "check": _check,
    "status": _status,
    "stuck": _stuck,
    "next": _next,
    "needs": _needs,
    "ask": _asked,
    "forecast": _forecast,
    "memory learn": _proposals,
    "queue in words": _words_of("queue"),
    "check in words": _words_of("check", "--no-model"),
    "status in words": _words_of("status"),
    "nothing": _nothing,
    "notifications": notified,
    "comparison": compared,
    "documents": documents,
    "days": days,
    "served": served,
    "screen days and cost": listed,
    "screen queue": _screen("queue"),
    "screen loop": _screen("loop"),
    "screen insights": _screen("insights"),
    **{f"screen {name}": _screen(name) for name in ("memory", "ask", "journal", "needs", "next")},
}
"""Every surface by name."""

FAST = tuple(name for name in SURFACES if not name.startswith("screen"))
"""Surfaces that need no screen."""


def contradictions(overlay: Scene, names: Iterable[str] = SURFACES, *, first: bool = False) -> list[str]:
    """What the surfaces say against each other, one line each; empty where they agree.

    Args:
        first: whether to stop at the first surface that contradicts those before it.
    """
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for name in names:
        for subject, value in SURFACES[name](overlay):
            said.setdefault(subject, {}).setdefault(repr(value), []).append(name)
        if first and any(len(values) > 1 for values in said.values()):
            break
    found = [
        f"{' '.join(subject)}: " + ", ".join(f"{value} ({' '.join(dict.fromkeys(by))})" for value, by in values.items())
        for subject, values in said.items()
        if len(values) > 1
    ]
    return found + list(_rules(said))


def _rules(said: dict[tuple[str, str], dict[str, list[str]]]) -> Iterator[str]:
    """What must hold between statements about different subjects."""

    def only(kind: str, name: str = "") -> str:
        return next(iter(said.get((kind, name), {"None": []})))

    ready, action = only("count", "ready"), only("next action")
    if action == "'STOP'" and ready not in ("0", "None"):
        yield f"STOP is said while {ready} are ready"
    if action == "'BUILD'" and ready == "0" and only("next worth building") != "None":
        yield "BUILD names a bead while none is ready"
    if action == "'GUIDANCE'" and only("count", "needs") == "0":
        yield "GUIDANCE is said while nothing waits for a person"
    worth, first = only("next worth building"), only("next")
    if worth not in ("None", first) and ("asked about", first) not in said:
        yield f"the next bead is {first}, and BUILD begins with {worth}"
    for (kind, name), values in said.items():
        faulted = ("faulted by a review", name) in said
        good = only("outcome of", name) == "'satisfied'" or (only("outcome of", name) == "'landed'" and not faulted)
        if kind == "is an attempt" and ("is known", name) not in said and ("count", "attempts") in said:
            yield f"{name} is named by an event, and no surface knows it"
        if kind == "teaches a failure" and good:
            yield f"{name} teaches a failure and {only('outcome of', name)} ({values})"
