"""A reader that says something else than the others is found: each mutant makes its surfaces contradict."""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.cli.helix import status
from helix_tui.cli.helix.needs import NeedsReader
from helix_tui.cli.show import attempts as attempts_command
from helix_tui.cli.show import snapshot, why
from helix_tui.core.beads.counts import QueueCounts
from helix_tui.core.beads.readiness import Queue
from helix_tui.core.beads.states import STATES, Parked
from helix_tui.core.ddx.attempts import verdict
from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.costs import Sums
from helix_tui.core.ground.time import NS
from helix_tui.core.insights import cells
from helix_tui.core.insights.cells import Cell
from helix_tui.core.statements import counts, ending, notifications, run, stuck
from helix_tui.core.statements.ending import SinceLanding
from helix_tui.core.supervision.agents import learning
from helix_tui.core.supervision.decide import check, facts, monitor, needs
from helix_tui.core.supervision.decide import verdict as next_verdict
from helix_tui.core.supervision.decide.need_kinds import KINDS
from helix_tui.screens import status_bar_model as line_1
from helix_tui.widgets.rows import attempt_table
from tests.consistency.scene import Scene
from tests.consistency.surfaces import contradictions

Change = Callable[[Any], Any]
"""From what stands in a place to what a mutant puts there."""


def always(value: object) -> Change:
    return lambda _: lambda *given, **more: value


def result(change: Callable[[Any], object]) -> Change:
    """A function whose result is changed."""
    return lambda original: lambda *given, **more: change(original(*given, **more))


def prop(value: Callable[[Any], object]) -> Change:
    return lambda _: property(value)


def prop_result(change: Callable[[Any], object]) -> Change:
    """A property whose value is changed."""
    return lambda original: property(lambda self: change(original.__get__(self, type(self))))


def more_ready(*ids: str) -> Change:
    return result(lambda counted: replace(counted, ready=(*counted.ready, *ids)))


def _ready(change: Callable[[Any], object]) -> Change:
    """The queue that is loaded has another pick order."""

    def changed(present: Any) -> Any:
        present.queue.ready = change(present.queue.ready)
        return present

    return result(changed)


class _Shown:
    """How attempts are shown, for one surface alone."""

    def __init__(self, change: Callable[[Any, Any], Any]) -> None:
        self._change = change

    def __getattr__(self, name: str) -> Any:
        return getattr(attempts_command, name)

    def as_document(self, attempt: Attempt, *rest: Any) -> Any:
        return self._change(attempt, lambda shown: attempts_command.as_document(shown, *rest))


def _refused_after_merging(attempt: Attempt, shown: Callable[[Attempt], Any]) -> Any:
    late = replace(attempt, detail="post-merge review: BLOCK", candidate_ref="")
    return shown(late if attempt.status == "review_block" else attempt)


def _running_unknown(original: Any) -> Any:
    def load(*given: Any, **more: Any) -> Any:
        present, attempts = original(*given, **more)
        present.queue.standing = present.queue._standings.__getitem__
        return present, attempts

    return load


def _mapped(cell: Cell) -> dict[str, int]:
    landed = sum(attempt.status in ("success", "review_block") for attempt in cell.attempts)
    return {"landed": landed, "preserved": 0, "failed": cell.n - landed, "no_changes": 0, "other": 0}


def _shown_no_cycle(made: Any) -> Any:
    return lambda *given, **more: made(*given, **{**more, "cycles": ()})


STUCK_IF_READY = {**STATES, "ready": replace(STATES["ready"], parked=Parked("not-eligible", "decide"))}
LANDED = always({"landed": 99})

MUTANTS: dict[str, tuple[str, *tuple[tuple[Any, str, Change], ...]]] = {
    "a refused attempt counts as landed in one property": (
        "attempts", (Attempt, "landed", prop(lambda self: self.status == "review_block" or self.verdict.landed))),
    "insights maps the status by itself": ("insights", (Cell, "counts", prop(_mapped))),
    "insights leaves an outcome out": (
        "insights", (Cell, "outcomes", prop(lambda cell: {} if cell.n == 1 else {"landed": cell.n}))),
    "status counts beads that ddx would list": ("queue, status", (status, "count_project", more_ready("d-5"))),
    "check forgets the questions": ("queue, check", (facts, "beads_in_question", always({}))),
    "line 1 counts what is worked on": ("queue, screen queue", (line_1, "count_queue", more_ready("d-7"))),
    "next begins at the other end": ("queue, next", (status, "load", _ready(lambda ids: ids[::-1]))),
    "why does not know what runs": ("queue, why", (why, "load_with_attempts", _running_unknown)),
    "check says STOP while beads are ready": (
        "queue, check", (check, "decide", result(lambda made: replace(made, next_action="STOP")))),
    "BUILD begins with another bead": (
        "queue, check",
        (QueueCounts, "for_workers", prop(lambda self: self.ready[::-1][: len(self.ready) - len(self.asked)]))),
    "lessons take every end for a landing": (
        "attempts, memory learn",
        (learning, "judge", always(learning.Judged("passed", ""))), (Attempt, "landed", prop(lambda self: True))),
    "work that was done already teaches a failure": (
        "attempts, memory learn", (learning, "judge", always(learning.Judged("failed", "")))),
    "the Loop screen has another verdict": (
        "attempts, screen loop", (snapshot, "evidence", lambda _: _Shown(_refused_after_merging))),
    "stuck names a bead that is ready": ("queue, stuck", (stuck, "STATES", lambda _: STUCK_IF_READY)),
    "landed and preserved are swapped": ("attempts", (Attempt, "preserved", prop(lambda self: self.verdict.landed))),
    "check sees no cycle": ("queue, check", (facts, "Facts", _shown_no_cycle)),
    "the blocker report forgets one": ("stuck", (stuck, "find_stuck", result(lambda rows: rows[:-1]))),
    "status passes over an unreadable line": (
        "queue, status", (run, "_tracker", lambda made: lambda counted, dropped: made(counted, 0))),
    "one that waits is not counted": (
        "queue, check", (facts, "count_queue", result(lambda counted: replace(counted, waiting=counted.waiting - 1)))),
    "what has no result failed": (
        "attempts, attempt sums", (verdict, "OUTCOME_ROWS", lambda rows: {**rows, "interrupted": rows["failed"]})),
    "Needs me gives a need another bead": (
        "needs, screen needs", (NeedsReader, "document", result(lambda need: {**need, "bead_id": "d-3"}))),
    "what is claimed is ready by the counts": ("queue, words", (counts, "count_queue", more_ready("d-7"))),
    "next forgets the last ready bead": ("queue, next", (status, "load", _ready(lambda ids: ids[:-1]))),
    "Needs me does not know the questions": ("check, needs", (monitor, "read_questions", always(()))),
    "Needs me calls what was refused kept": (
        "attempts, needs",
        (needs, "_unlanded", result(lambda rows: [("kept_aside", bead, reason) for _, bead, reason in rows]))),
    "the sheet of the next action decides by itself": (
        "screen next, queue, check", (check, "decide", lambda made: _once(made))),
    "a closed bead is open to the queue": (
        "queue", (Queue, "state", result(lambda state: "ready" if state == "closed" else state))),
    "status leaves the waiting beads out": (
        "queue, status",
        (status, "count_project", result(lambda counted: replace(counted, total=counted.total - counted.waiting)))),
    "line 1 counts every need as a stale claim": ("needs, screen queue", (line_1, "STALE_CLAIMS", lambda _: KINDS)),
    "line 1 counts what was spent on other days": ("insights, screen queue", (check, "midnight", always(0))),
    "a notification says how many are new": (
        "needs, notifications",
        (notifications, "_of_needs", lambda made: lambda fresh, n, beads: made(fresh, n - 1, beads))),
    "the end of a run takes every end for a landing": ("notifications", (ending, "count_outcomes", LANDED)),
    "the sum of a day takes every end for a landing": ("screen loop", (attempt_table, "count_outcomes", LANDED)),
    "insights counts on the day before": (
        "insights", (cells, "format_day", lambda made: lambda at: made((at or 0) - 86_400 * NS))),
    "check passes over a changed document": (
        "documents, check", (next_verdict, "_changed_documents", always(()))),
    "why gives no reasons": ("queue, why", (why, "reasons", always([]))),
    "why counts otherwise what a bead holds up": (
        "queue, why", (why, "weight_document", result(lambda weight: {**weight, "holds_up": 99}))),
    "the Loop screen gives other advice": (
        "attempts, screen loop",
        (snapshot, "evidence", lambda _: _Shown(lambda one, shown: {**shown(one), "follow_up": "try again"}))),
    "what is kept is in no column of the table": (
        "insights", (Cell, "counts", prop_result(lambda counted: {**counted, "preserved": 0}))),
    "one attempt since the landing is left out": (
        "attempt sums", (SinceLanding, "record", result(lambda row: {**row, "attempts": row["attempts"] - 1}))),
    "a need waits since another day by command": (
        "needs, screen needs", (NeedsReader, "document", result(lambda need: {**need, "since": "2020"}))),
    "the sum of the attempts leaves a call out": (
        "attempt sums",
        (attempts_command, "sum_calls", lambda made: lambda calls, *rest: made([*calls][1:], *rest))),
    "line 1 does not count what waits for an answer": (
        "queue, screen queue", (line_1, "beads_in_question", always({}))),
    "an attempt costs more than its parts": ("attempts", (Sums, "usd", prop_result(lambda usd: (usd or 0.0) + 1.0))),
    "the work of an attempt costs twice what it says": (
        "attempts",
        (Attempt, "spent", prop_result(lambda calls: tuple(replace(c, usd=c.usd and 2 * c.usd) for c in calls)))),
    "nobody says what is left out": ("queue", (QueueCounts, "left_out", prop(lambda self: ""))),
}  # fmt: skip
"""A mutant: the surfaces that must contradict, and what it changes."""


def _once(decide: Any) -> Any:
    """The first decision is another: that of the sheet, which is asked first."""
    made: list[object] = []

    def decided(found: Any) -> Any:
        made.append(found)
        return replace(decide(found), next_action="WAIT") if len(made) == 1 else decide(found)

    return decided


def tear(scene: Scene) -> None:
    """Leave a line at the end of the tracker that a crash cut off."""
    with (scene.root / ".ddx" / "beads.jsonl").open("a") as file:
        file.write('{"id": "d-16", "title": "cut o')


@pytest.mark.long
def test_the_scene_agrees_before_anything_is_mutated(everything: Scene) -> None:
    assert contradictions(everything) == []
    tear(everything)
    assert contradictions(Scene(everything.root, everything.now)) == []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_contradicts(name: str, everything: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    if "unreadable" in name:
        tear(everything)
    names, *changes = MUTANTS[name]
    for place, attribute, change in changes:
        original = getattr_static(place, attribute)
        monkeypatch.setattr(place, attribute, change(original))
    assert contradictions(everything, names.split(", ")), name
