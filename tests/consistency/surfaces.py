"""What the surfaces say, as statements that can be held against each other.

A statement is a subject and a value. Two surfaces that speak of one subject must give one value. A record of a JSON
document speaks for itself: each of its fields is a statement about what the record names, on every surface that shows
it. What a surface counts, sums or says in prose is read from its document or its lines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from helix_tui.cli.helix.needs import NeedsReader
from helix_tui.core.ddx.attempts.costs import format_sum, read_sums
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.ddx.names import ATTEMPT_ID
from helix_tui.core.ground.text import capitalized
from helix_tui.core.ground.time import format_day, parse_instant
from helix_tui.core.statements.notifications import NewsWatch
from helix_tui.core.supervision.decide.need_kinds import GROUPS, SILENT
from helix_tui.widgets.rows.attempt_table import day_name
from tests.consistency.scene import Scene

Statement = tuple[str, object]
Document = Mapping[str, Any]
MAX_ASKED = 12
"""Beads that ``why`` is asked about."""

# --- records ------------------------------------------------------------------------------------------------------

_KINDS = {
    "need": ("key kind bead_id", "key"),
    "attempt": ("attempt_id verdict interpretation", "attempt_id"),
    "run": ("bead_id attempt_id live", "bead_id attempt_id"),
    "question": ("id kind text", "id"),
    "bead": ("id title causes", "id"),
    "bead in the queue": ("id title state", "id"),
    "next step": ("next_action decided_by", ""),
    "tracker": ("ready_execution ready_for_workers", ""),
}
"""A kind of record, the keys by which it is known, and those of its name."""

_OTHERWISE = {"schema", "refused", "position", "siblings", "ready", "unread_lines", "without_area", "without_digest"}
"""Keys that the surface gives of itself."""


def _records(value: object) -> Iterator[Document]:
    if isinstance(value, dict):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _records(part)


def fields(document: object) -> Iterator[Statement]:
    """What the records of a document say in their fields."""
    for record in _records(document):
        for kind, (marks, key) in _KINDS.items():
            if record.keys() >= set(marks.split()):
                name = " ".join(str(record[part]) for part in key.split())
                for field in record.keys() - _OTHERWISE:
                    value = record[field]
                    counted = field == "unblocks" and isinstance(value, list)
                    yield f"{field} of the {kind} {name}", len(value) if counted else value


def _cells(document: object) -> Iterator[Statement]:
    """A row of a table is the sum of its parts; an attempt costs what its parts cost."""
    for cell in (record for record in _records(document) if "n" in record and "outcomes" in record):
        name = " ".join(map(str, cell["key"].values()))
        named = ("landed", "preserved", "failed", "no_changes", "other")
        yield from _same(f"attempts in {name}", cell["n"], sum(cell["outcomes"].values()), sum(cell[k] for k in named))
        yield from _same(f"landed in {name}", cell["landed"], cell["outcomes"].get("landed", 0))
        yield from _same(f"cost of {name}", cell["cost_usd"] or 0.0, cell["spent"]["usd"] or 0.0)


def _same(subject: str, *values: object) -> Iterator[Statement]:
    yield from ((subject, value) for value in values)


# --- documents ------------------------------------------------------------------------------------------------------


def queue(document: Document) -> Iterator[Statement]:
    states = Counter(row["state"] for row in document["beads"])
    yield from _same("ready", len(document["ready"]), states["ready"])
    yield from _same("beads", len(document["beads"]))
    yield from ((f"beads that are {state}", number) for state, number in states.items())
    yield from ((f"beads that are {state}", number) for state, number in document["counts"].items())
    yield from _same("can run", document["for_workers"])
    yield from _same("running", states["running"])
    yield from _same("left out", document["left_out"])
    yield from _same("something is left out", bool(document["left_out"]), document["for_workers"] != states["ready"])
    yield from _same("unread lines", len(document["dropped"]))
    yield from _same("next", next(iter(document["ready"]), None))
    yield from ((f"{row['id']} is ready", row["id"] in document["ready"]) for row in document["beads"])
    yield from _faults(document)


def _faults(document: Document) -> Iterator[Statement]:
    yield "dangling", sorted((edge["bead_id"], edge["missing"]) for edge in document["dangling"])
    yield "in a cycle", sorted({name for cycle in document["cycles"] for name in cycle})


def why(scene: Scene) -> Iterator[Statement]:
    """The queue's own words on a bead, asked one by one."""
    for row in scene.ask("queue")["beads"][:MAX_ASKED]:
        document = scene.ask("why", row["id"])
        yield from fields(document)
        yield f"{row['id']} is ready", document["position"] is not None
        if document["position"] == 1:
            yield "next", row["id"]
        if document["done_by"] is not None:
            yield f"outcome of {document['done_by']['attempt_id']}", document["done_by"]["outcome"]


def attempts(document: Document) -> Iterator[Statement]:
    counted = Counter(row["verdict"]["outcome"] for row in document["attempts"])
    yield from _same("attempts", len(document["attempts"]))
    yield from ((f"attempts that {outcome}", counted[outcome]) for outcome in OUTCOME_WORDS)
    for row in document["attempts"]:
        name, outcome, spent = row["attempt_id"], row["verdict"]["outcome"], row["spent"]
        yield from _same(f"outcome of {name}", outcome)
        yield from _same(f"{name} landed", row["landed"], outcome == "landed")
        yield from _same(f"{name} is kept", row["preserved"], outcome in ("kept_aside", "refused"))
        parts = spent["parts"].values()
        apart = abs((spent["usd"] or 0.0) - sum(part["usd"] or 0.0 for part in parts))  # rounded to the millionth
        yield from _same(f"{name} costs what its parts cost", True, apart < 0.000_01)
        work = spent["parts"].get("work")
        if work and work["usd"] and not work["without_usd"]:
            yield from _same(f"cost of the work of {name}", row["cost_usd"], work["usd"])
        if row["follow_up"].startswith("nothing to do"):
            yield f"{row['bead_id']} is ready", False
        if row["review"] and not row["review"].startswith("APPROVE"):
            yield f"{name} is faulted", True


def attempt_sums(document: Document) -> Iterator[Statement]:
    """The counts above the attempts."""
    counts, outcomes, last = document["counts"], document["outcomes"], document["since_landing"]
    yield from _same("attempts", sum(counts.values()))
    yield from ((f"attempts that {outcome}", number) for outcome, number in outcomes.items())
    yield from ((f"attempts that {outcome}", counts[outcome]) for outcome in ("landed", "failed"))
    yield from _same("kept attempts", counts["preserved"], sum(row["preserved"] for row in document["attempts"]))
    calls = sum(row["spent"]["calls"] for row in document["attempts"])  # a question's call is of no attempt
    yield from _same("the sum holds the calls of its attempts", True, document["spent"]["calls"] >= calls)
    yield from _same("attempts since a landing", last["attempts"], sum(last["outcomes"].values()))


def insights(scene: Scene) -> Iterator[Statement]:
    by_status, by_day = scene.ask("insights", "--by", "status"), scene.ask("insights", "--by", "day")
    yield from _cells(by_status)
    rows = _ended(scene)
    for table, cells in (("", by_status["rows"]), ("day", by_day["rows"])):
        for cell in cells:
            for outcome in cell["outcomes"].keys() - {"interrupted"}:  # they left no result, and are in no table
                if table:
                    of_day = [row for row in rows if _day(row) == cell["key"]["day"]]
                    counted = sum(row["verdict"]["outcome"] == outcome for row in of_day)
                    yield from _same(f"{outcome} on {cell['key']['day']}", cell["outcomes"][outcome], counted)
        sums = sum((Counter(cell["outcomes"]) for cell in cells), Counter[str]())
        yield from ((f"attempts that {outcome}", sums[outcome]) for outcome in sums if outcome != "interrupted")
    today = format_day(parse_instant(scene.now))
    spent = [cell["spent"] for cell in by_day["burn"]["days"] if cell["key"]["day"] == today]
    yield from (("spent", format_sum(read_sums(sums))) for sums in spent)
    yield from _same("left to do", by_status["forecast"]["left"], by_status["burn"]["open_beads"])
    path = scene.ask("queue")["critical_path"]
    yield from _same("longest chain", *([by_status["forecast"]["longest_chain"], len(path)] if path else []))


def _ended(scene: Scene) -> list[dict[str, Any]]:
    return [row for row in scene.ask("attempts")["attempts"] if row["verdict"]["outcome"] != "unfinished"]


def _day(row: Document) -> str:
    return format_day(parse_instant(row["finished_at"] or row["started_at"] or "")) or "unknown"


def check(document: Document) -> Iterator[Statement]:
    health = document["queue_health"]
    yield from _tracker(health)
    yield from _faults(document)
    yield "beads that are waiting_dependencies", health["waiting"]
    yield from ((f"beads that are {state}", number) for state, number in health["states"].items())
    yield "open questions", sorted(question["id"] for question in document["questions"])
    yield from (("next worth building", each["refs"][0]) for each in document["reasons"] if each["code"] == "ready")
    yield "changed documents", [each["refs"] for each in document["reasons"] if each["code"] == "document_changed"]


def _tracker(counts: Document) -> Iterator[Statement]:
    for subject, key in {
        "ready": "ready_execution",
        "can run": "ready_for_workers",
        "running": "running",
        "beads": "total",
        "left out": "left_out",
    }.items():
        yield subject, counts[key]


def status(document: Document) -> Iterator[Statement]:
    yield from _tracker(document["tracker"])
    yield "unread lines", document["tracker"]["unread_lines"]
    yield "open questions", sorted(question["id"] for question in document["questions"])
    yield from ((f"{question['bead_id']} is asked about", True) for question in document["questions"])


def stuck(scene: Scene) -> Iterator[Statement]:
    document = scene.ask("stuck")
    named = {row["bead_id"] for row in document["stuck"]}
    states = ("waiting_dependencies", "retry_cooldown", "proposed", "blocked_external", "not_eligible")
    for row in scene.ask("queue")["beads"]:
        if row["state"] in states and not row["title"].startswith("align"):
            yield from _same(f"{row['id']} is stuck", True, row["id"] in named)
    for row in document["stuck"]:
        if row["reason"] in ("dep-blocked", "retry-parked", "operator-attention", "not-eligible"):
            yield f"{row['bead_id']} is ready", False


def needs(scene: Scene) -> Iterator[Statement]:
    """What waits for a person: every proposal and whatever waits on the world outside are among it."""
    document, states = scene.ask("needs"), {row["id"]: row["state"] for row in scene.ask("queue")["beads"]}
    yield from (*fields(document), *of_needs(document))
    yield "stale claims", document["groups"].get("stale claims", 0)
    yield from _same("needs", document["count"], sum(document["groups"].values()))
    yield from ((f"needs under {name}", number) for name, number in document["groups"].items())
    listed = {need["bead_id"] for need in document["needs"]}
    of_kind: dict[str, set[str]] = {}
    for need in document["needs"]:
        of_kind.setdefault(need["kind"], set()).add(need["bead_id"])
    parked = {name for name, state in states.items() if state == "proposed"} - of_kind.get("refused", set())
    yield from _same("proposals", sorted(of_kind.get("proposed", ())), sorted(parked))
    outside = {name for name, state in states.items() if state == "blocked_external"}
    yield from _same("blocked outside and not listed", sorted(outside - listed), [])


def of_needs(document: Document) -> Iterator[Statement]:
    """A list of needs, of the command or the screen."""
    listed = [need["key"] for need in document["needs"]]
    yield from _same("what needs a person", sorted(listed), sorted(set(listed)))
    yield "needs", len(listed)
    yield "open questions", sorted(need["question_id"] for need in document["needs"] if need["question_id"])
    for need in document["needs"]:
        attempt = ATTEMPT_ID.search(need["reason"])
        if need["kind"] in ("refused", "kept_aside", "merge_conflict", "failing_check") and attempt:
            yield f"outcome of {attempt[0]}", "refused" if need["kind"] == "refused" else "kept_aside"
        if (need["also"] or need["kind"]) in ("proposed", "preserved_review_blocked", "unknown_status"):
            yield f"state of the bead in the queue {need['bead_id']}", need["also"] or need["kind"]
        if need["kind"] in ("dead_run", "silent_run", "orphaned_claim"):
            yield f"running of the bead in the queue {need['bead_id']}", need["kind"] == "silent_run"


def lessons(document: Document) -> Iterator[Statement]:
    """A pattern comes from what landed, a failure from what neither landed nor was done already."""
    for row in document["attempts"]:
        if row["proposal"] and row["proposal"]["type"] == "pattern":
            yield f"{row['attempt']} landed", True
        if row["proposal"] and row["proposal"]["type"] == "failure":
            yield f"{row['attempt']} teaches a failure", True


def changed(document: Document) -> Iterator[Statement]:
    yield "changed documents", [[row["id"], *row["beads"]] for row in document["answer"]]


# --- lines for people -----------------------------------------------------------------------------------------------

_IN_WORDS = {"ready": re.compile(r"(?<![\w-])([\d,]+) ready\b"), "can run": re.compile(r"([\d,]+) can run\b")}
_ON_LINE_1 = {
    "ready": re.compile(r"○ ?([\d,]+)"),
    "running": re.compile(r"◉ ?([\d,]+)"),
    "needs": re.compile(r"◆ ?([\d,]+)"),
    "stale claims": re.compile(r"! ?([\d,]+)"),
}
_ACTION = re.compile(r"  (BUILD|DESIGN|ALIGN|BACKFILL|POLISH|WAIT|GUIDANCE|STOP)(?: ▸ .*)?$")
_SPENT = re.compile(r"(≥?\$[\d,.]+)(?: of \$[\d,.]+)?(?: · [\d.]+[kM]? tok)? today")
_GROUP = re.compile(r" (?:▸ )?([A-Z][a-z ]+?)  ([\d,]+)\b")
_DAY = re.compile(r" ([A-Z][A-Za-z0-9 ]+?)  ((?:[\d,]+ [a-z ]+? · )*[\d,]+ [a-z ]+?)(?:  |$)")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def words(scene: Scene) -> Iterator[Statement]:
    """The lines that sum up: titles of beads may say anything, and stand in rows."""
    for command in (("queue",), ("check", "--no-model"), ("status",)):
        for line in scene.lines(*command):
            if line.startswith(("queue:", "Tracker:")) or " · " in line[:80]:
                yield from ((what, _number(n)) for what, form in _IN_WORDS.items() for n in form.findall(line))
    if "nothing is stuck" in scene.lines("stuck"):
        yield from _same("stuck", 0, len(scene.ask("stuck")["stuck"]))
    if "no ready issues" in scene.lines("next"):
        yield "ready", 0


def screen(name: str) -> Surface:
    """Line 1 of a screen, its data, and the sums among its rows."""

    def statements(scene: Scene) -> Iterator[Statement]:
        document = scene.ask("snapshot", "--screen", name, "--format", "json", "--size", "200x60")
        first, data = document["lines"][0], document["data"]
        for what, form in _ON_LINE_1.items():
            shown = form.search(first)
            if shown or what != "ready":
                yield what, _number(shown[1]) if shown else 0
        can_run, action, spent = _IN_WORDS["can run"].search(first), _ACTION.search(first), _SPENT.search(first)
        if can_run:
            yield "can run", _number(can_run[1])
        # recordings, of which the Loop alone is asked, hold calls that ended after the instant: Insights has not
        if spent and name != "loop":
            yield "spent", spent[1]
        if action:
            yield "next_action of the next step ", action[1]
        if action and action[1] == "BUILD":
            yield "something is left out", can_run is not None
        yield from fields(data)
        if "attempts" in data:
            yield from attempts(data)
            yield from _days(scene, document["lines"])
        elif "beads" in data:
            yield from queue(data)
        elif "needs" in data:
            yield from of_needs(data)
            found = filter(None, map(_GROUP.match, document["lines"][1:]))
            groups = {match[1].lower(): _number(match[2]) for match in found if match[1].lower() in GROUPS}
            yield from ((f"needs under {name}", number) for name, number in groups.items())

    return statements


def _days(scene: Scene, lines: list[str]) -> Iterator[Statement]:
    """The sums over the days of the Loop screen, but for days on which something runs."""
    running = {run["attempt_id"] for run in scene.ask("queue")["running"]}
    counted: dict[str, Counter[str]] = {}
    rows = scene.ask("attempts")["attempts"]
    for row in rows:
        at = parse_instant(row["finished_at"] or row["started_at"] or "")
        word = "" if row["attempt_id"] in running else OUTCOME_WORDS[row["verdict"]["outcome"]]
        day = capitalized(day_name(at, parse_instant(scene.now) or 0))
        counted.setdefault(day, Counter())[word] += 1
    for caption in filter(None, map(_DAY.match, lines[2:])):
        if caption[1] in counted and "" not in counted[caption[1]]:
            for number, word in re.findall(r"([\d,]+) ([a-z ]+)", caption[2]):
                yield from _same(f"{word} {caption[1]}", _number(number), counted[caption[1]][word.strip()])


def notified(scene: Scene) -> Iterator[Statement]:
    """What the user's command is told when everything is new, and when the run has ended."""
    call = scene.call("needs")
    reader = NeedsReader(call)
    split = reader.look()
    rows = _ended(scene)
    for note in NewsWatch(frozenset(), _working_since=1).see(split.active, (), reader.attempts, now=call.now):
        told = json.loads(note.document(reader.curator.project, call.now))
        yield "needs", told["waiting"]
        if told["event"] == "needs":
            yield "needs", _number(told["title"].split()[0])
            news = re.findall(r"([\d,]+) ([a-z ]+)", told["body"].removeprefix("new: "))
            yield from ((f"needs under {group}", _number(n)) for n, group in news if told["body"].startswith("new: "))
            silent = [need.key for need in split.active if need.kind in SILENT]
            if told["waiting"] <= 50:
                yield "what needs a person", sorted([*(need["key"] for need in told["needs"]), *silent])
        elif len(rows) <= 500:
            ended = [row["verdict"]["outcome"] for row in rows if row["finished_at"]]
            counts = [f"{ended.count(each):,} {word}" for each, word in OUTCOME_WORDS.items() if each in ended]
            yield from _same("the end of a run", told["body"], ", ".join(counts) or "no attempt ended in it")


# --- all of them ----------------------------------------------------------------------------------------------------

Surface = Callable[[Scene], Iterable[Statement]]


def document(*command: str, reader: Callable[[Document], Iterable[Statement]]) -> Surface:
    """A surface that is the JSON document of a command."""

    def statements(scene: Scene) -> Iterator[Statement]:
        answer = scene.ask(*command)
        yield from fields(answer)
        yield from reader(answer)

    return statements


SURFACES: dict[str, Surface] = {
    "queue": document("queue", reader=queue),
    "why": why,
    "attempts": document("attempts", reader=attempts),
    "attempt sums": document("attempts", reader=attempt_sums),
    "insights": insights,
    "check": document("check", "--no-model", reader=check),
    "status": document("status", reader=status),
    "stuck": stuck,
    "next": document("next", reader=lambda answer: (("next", answer["id"]), ("ready", answer["ready"]))),
    "needs": needs,
    "memory learn": document("memory", "learn", reader=lessons),
    "documents": document("doc", "changed", "--own", reader=changed),
    "words": words,
    "notifications": notified,
    **{f"screen {name}": screen(name) for name in ("queue", "loop", "insights", "memory", "needs", "next")},
}
"""Every surface by name; a new one joins by one line."""

FAST = tuple(name for name in SURFACES if not name.startswith("screen"))
"""Surfaces that need no screen."""


def contradictions(scene: Scene, names: Iterable[str] = SURFACES, *, first: bool = False) -> list[str]:
    """What the surfaces say against each other, one line each; empty where they agree.

    Args:
        first: whether to stop at the first surface that contradicts those before it.
    """
    said: dict[str, dict[str, list[str]]] = {}
    for name in names:
        for subject, value in SURFACES[name](scene):
            said.setdefault(subject, {}).setdefault(repr(value), []).append(name)
        if first and any(len(values) > 1 for values in said.values()):
            break
    against = [
        f"{subject}: " + ", ".join(f"{value} ({' '.join(dict.fromkeys(by))})" for value, by in values.items())
        for subject, values in said.items()
        if len(values) > 1
    ]
    return against + list(_rules({subject: next(iter(values)) for subject, values in said.items()}))


def _rules(said: Mapping[str, str]) -> Iterator[str]:
    """What must hold between statements about different subjects."""
    action, ready = said.get("next_action of the next step "), said.get("ready", "0")
    worth, first = said.get("next worth building"), said.get("next")
    if action == "'STOP'" and ready != "0":
        yield f"STOP is said while {ready} are ready"
    if action == "'BUILD'" and ready == "0" and worth:
        yield "BUILD names a bead while none is ready"
    if action == "'GUIDANCE'" and said.get("needs") == "0":
        yield "GUIDANCE is said while nothing waits for a person"
    if worth and first and worth != first and f"{str(first).strip(chr(39))} is asked about" not in said:
        yield f"the next bead is {first}, and BUILD begins with {worth}"
    for subject in said:
        name, _, rest = subject.partition(" ")
        outcome, faulted = said.get(f"outcome of {name}"), f"{name} is faulted" in said
        if rest == "teaches a failure" and (outcome == "'satisfied'" or (outcome == "'landed'" and not faulted)):
            yield f"{name} teaches a failure and {outcome}"
