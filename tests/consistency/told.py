"""What is told beside lists and sheets: notifications, sums of days, costs, comparisons, documents, agents' answers."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.cli.helix.needs import NeedsReader
from helix_tui.cli.show.ask import _work, brief_document
from helix_tui.core.ddx.attempts.attempt import format_sum, read_sums
from helix_tui.core.ddx.attempts.evidence import compare
from helix_tui.core.ddx.attempts.verdict import OUTCOME_WORDS
from helix_tui.core.evidence.session import AskSession
from helix_tui.core.ground.time import format_day, parse_instant
from helix_tui.core.statements.notifications import SILENT, NewsWatch
from helix_tui.widgets.figures import LOOKS
from helix_tui.widgets.rows.attempt_table import day_name
from helix_tui.widgets.text.attempt_evidence import ComparisonFacts, _beside
from helix_tui.widgets.text.diff import DiffFacts
from tests.consistency.scene import Scene, Statement, facts

MOST_COMPARED = 4
"""Beads of which the last two attempts are compared."""


def _call(scene: Scene) -> Call:
    given = {"directory": scene.root, "now": scene.now, "json": True, "read_only": True, "no_color": True, "ddx": None}
    return Call.of("needs", argparse.Namespace(**given))


def _ended(row: dict[str, Any]) -> bool:
    return bool(row["verdict"]["outcome"] != "unfinished")


def notified(scene: Scene) -> Iterator[Statement]:
    """What the user's command and the terminal are told when everything is new, and when the run has ended."""
    call = _call(scene)
    reader = NeedsReader(call)
    split = reader.look()
    watch = NewsWatch(frozenset(), _working_since=1)
    silent = [need.key for need in split.active if need.kind in SILENT]
    for note in watch.see(split.active, (), reader.attempts, now=call.now):
        told = json.loads(note.document(reader.curator.project, call.now))
        yield ("count", "needs"), told["waiting"]
        if told["event"] == "needs":
            yield ("count", "needs"), int(told["title"].split()[0].replace(",", ""))
            yield from _news(told, silent)
        else:
            yield ("what the end of a run tells", ""), told["body"]
    rows = sorted(scene.ask("attempts")["attempts"], key=lambda row: row["finished_at"] or "")
    ended = [row["verdict"]["outcome"] for row in rows if row["finished_at"] and _ended(row)]
    counted = Counter(ended)
    body = ", ".join(f"{counted[outcome]:,} {word}" for outcome, word in OUTCOME_WORDS.items() if counted[outcome])
    if len(rows) <= 500:
        yield ("what the end of a run tells", ""), body or "no attempt ended in it"


def _news(told: dict[str, Any], silent: list[str]) -> Iterator[Statement]:
    if told["body"].startswith("new: "):
        for number, name in re.findall(r"([\d,]+) ([a-z ]+)", told["body"].removeprefix("new: ")):
            yield ("count of group", name), int(number.replace(",", ""))
    if told["waiting"] <= 50:
        yield ("what needs a person", ""), sorted([*(need["key"] for need in told["needs"]), *silent])


def compared(scene: Scene) -> Iterator[Statement]:
    """The two sides of a comparison have the outcomes that the attempts have."""
    call = _call(scene)
    reader = NeedsReader(call)
    reader.look()
    beads = dict.fromkeys(attempt.bead_id for attempt in reader.attempts)
    several = [found for bead_id in beads if len(found := reader.attempts.of_bead(bead_id)) > 1]
    for later, earlier in [next(pairwise(found)) for found in several][:MOST_COMPARED]:
        facts = ComparisonFacts(compare(scene.root, earlier, later), (), (), DiffFacts(), call.now)
        row = next(para for para in _beside(facts, 120) if para.key == "beside outcome")
        said = re.split(r"\s{2,}", "".join(text for text, _ in row.spans[1:]).strip())
        for text, attempt in zip(said, (earlier, later), strict=True):
            yield ("looks like", attempt.attempt_id), text
    for row in scene.ask("attempts")["attempts"]:
        look = LOOKS[row["verdict"]["outcome"]]
        if row["verdict"]["outcome"] not in ("unknown", "unfinished"):
            yield ("looks like", row["attempt_id"]), f"{look.glyph} {look.word}"


def documents(scene: Scene) -> Iterator[Statement]:
    """The documents that changed, by ``doc`` and among the reasons of the next action."""
    changed = scene.ask("doc", "changed", "--own")["answer"]
    yield ("documents that changed", ""), sorted(each["id"] for each in changed)
    check = scene.ask("check", "--no-model")
    told = [each for each in check["reasons"] if each["code"] == "document_changed"]
    yield ("documents that changed", ""), sorted(each["refs"][0] for each in told)
    for each, reason in zip(changed, told, strict=False):
        yield ("beads under the document", each["id"]), each["beads"]
        yield ("beads under the document", reason["refs"][0]), reason["refs"][1:]
    for drift in check["drift"]:
        yield ("is drifted", drift["bead_id"]), True
    for need in scene.ask("needs")["needs"]:
        if need["kind"] == "drift":
            yield ("is drifted", need["bead_id"]), need["bead_id"] in {each["bead_id"] for each in check["drift"]}


def _by_day(scene: Scene) -> dict[str, Counter[str]]:
    """Outcomes of ended attempts by day, from the attempts one by one."""
    found: dict[str, Counter[str]] = {}
    for row in scene.ask("attempts")["attempts"]:
        if _ended(row):
            day = format_day(parse_instant(row["finished_at"] or row["started_at"] or "")) or "unknown"
            found.setdefault(day, Counter())[row["verdict"]["outcome"]] += 1
    return found


def days(scene: Scene) -> Iterator[Statement]:
    """Attempts by day: the rows of Insights, its days, and the attempts one by one."""
    counted = _by_day(scene)
    document = scene.ask("insights", "--by", "day")
    for cell in document["rows"]:  # burn leaves out what ended after the instant that is asked of
        of_day = counted.get(cell["key"]["day"], Counter())
        for outcome, number in cell["outcomes"].items():
            if outcome != "interrupted":
                yield ("outcomes of day", f"{cell['key']['day']} {outcome}"), number
                yield ("outcomes of day", f"{cell['key']['day']} {outcome}"), of_day[outcome]
    today = format_day(parse_instant(scene.now))
    for cell in document["burn"]["days"]:
        if cell["key"]["day"] == today:
            yield ("spent today", ""), format_sum(read_sums(cell["spent"]))


_CAPTION = re.compile(r" ?── ([A-Za-z0-9 ]+?)  ((?:[\d,]+ [a-z ]+? · )*[\d,]+ [a-z ]+?) ─")
_SPENT = re.compile(r"(≥?\$[\d,.]+)(?: of \$[\d,.]+)?(?: · [\d.]+[kM]? tok)? today")


def listed(scene: Scene) -> Iterator[Statement]:
    """The sums over the days of the Loop screen, what line 1 says of today's cost, and the budget of ``L``."""
    lines = scene.ask("snapshot", "--screen", "loop", "--format", "json", "--size", "260x60")["lines"]
    running = {row["attempt_id"] for row in scene.ask("queue")["running"]}
    rows = scene.ask("attempts")["attempts"]
    now = parse_instant(scene.now) or 0
    counted: dict[str, Counter[str]] = {}
    for row in rows:
        if row["attempt_id"] not in running:
            day = day_name(parse_instant(row["finished_at"] or row["started_at"] or ""), now)
            counted.setdefault(day, Counter())[OUTCOME_WORDS[row["verdict"]["outcome"]]] += 1
    among_runs = {
        day_name(parse_instant(row["finished_at"] or row["started_at"] or ""), now)
        for row in rows
        if row["attempt_id"] in running
    }
    for line in lines[2:]:
        found = _CAPTION.match(line)
        if found and found[1] in counted and found[1] not in among_runs:
            for number, word in re.findall(r"([\d,]+) ([a-z ]+)", found[2]):
                yield ("outcomes under", f"{found[1]} {word}"), int(number.replace(",", ""))
                yield ("outcomes under", f"{found[1]} {word}"), counted[found[1]][word.strip()]
    count = re.search(r"  ([\d,]+)$", lines[1].rstrip())
    if count:
        yield ("count", "attempts"), int(count[1].replace(",", ""))
    sheet = scene.ask("snapshot", "--screen", "controls", "--format", "json", "--size", "200x40")["lines"]
    step = scene.ask("snapshot", "--screen", "controls", "--format", "json", "--size", "200x40")["data"]
    yield from facts("next step", "", step, "decided_by", "reasons", "recommended_command", "would_change_if")
    yield ("next action", ""), step["next_action"]
    budget = [line for line in sheet[1:] if "budget" in line]
    for line in (lines[0], *budget):
        told = _SPENT.search(line)
        if told:
            yield ("spent today", ""), told[1]


ASKED = ("which beads are ready?", "which attempts were refused?")


def served(scene: Scene) -> Iterator[Statement]:
    """Agents that ask get what ``ask`` prints, and the counts that the queue and the attempts have."""
    project = NeedsReader(_call(scene)).curator.project
    session = AskSession(project, present=_work(_call(scene), project), ddx=None, keep=False)
    session.start()
    try:
        for question in ASKED:
            given = brief_document(*session.ask(question))
            printed = scene.ask("ask", question)
            yield ("answer to", question), given["answer"]
            yield ("answer to", question), printed["answer"]
            yield ("sources of", question), [one["id"] for one in given["sources"]]
            yield ("sources of", question), [one["item"] for one in printed["citations"]]
            number = re.search(r"^([\d,]+) (?:bead|attempt)s? (ready|refused)$", given["answer"], re.M)
            if number:
                subject = ("count", "ready") if number[2] == "ready" else ("count of outcome", "refused")
                yield subject, int(number[1].replace(",", ""))
    finally:
        session.stop()
