"""Lessons: from attempts that ended, from an approach, and those that wait for a person."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.loading import add_since, read_attempts, since_of
from helix_tui.cli.memory.verb import Document, applies, names, option, verb
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.lessons import Proposals, waiting_lessons
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.provenance import AcceptRule
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.tasks.plans import Plans, propose
from helix_tui.core.supervision.agents.learning import Learner, accept_by_rule
from helix_tui.settings.file import load_settings

MAX_LEARNED = 20
"""Attempts listed as text."""

MAX_CAUSES = 8
"""Causes listed with their number of lessons."""


def _learned(call: Call, document: Document) -> Iterator[str]:
    """``learn`` as text: how many lessons and of what, then the newest attempts."""
    yield from _counted_lessons(call, document)
    for each in document["attempts"][:MAX_LEARNED]:
        verdict = each["verdict"] or "no verdict"
        role = {"passed": "success", "failed": "error"}.get(verdict, "muted")
        yield f"{call.paint(verdict, role)}  {clean_line(each['title'], 80)}  {clean_line(each['why'], 120)}"
        if each["injected"]:
            used = set(each["claimed"])
            names = ", ".join(clean_line(n, 80) + (" (claimed)" if n in used else "") for n in each["injected"])
            yield call.paint(f"    was given {names}", "muted")
        if each["proposal"]:
            lesson = each["proposal"]
            text = f"{lesson['trigger']} -> {lesson['resolution']}"
            yield f"    {lesson['type']}: {clean_line(text, 200)}"
    if (more := len(document["attempts"]) - MAX_LEARNED) > 0:
        yield call.paint(f"… {more:,} more: --json has all; --since 7d or --limit {MAX_LEARNED} takes fewer", "muted")
    for each in document["workspaces"]:
        task = clean_line(f"task {each['title']} (workspace {each['workspace']})", 80)
        yield f"{call.paint('blocked', 'error')}  {task}  {clean_line(each['why'], 120)}"
    if not document["attempts"] and not document["workspaces"]:
        yield "nothing new: every outcome is recorded"
    elif not document["applied"]:
        yield call.paint("nothing was changed; --apply records it", "muted")
    if document["waiting"]:
        waiting = counted(document["waiting"], "lesson")
        yield f"{waiting} wait{'s' * (document['waiting'] == 1)}: `helix-tui memory proposals`"


def _counted_lessons(call: Call, document: Document) -> Iterator[str]:
    """How many lessons there are, and how many of each cause, if not all are listed."""
    taught = [each for each in document["attempts"] if each["proposal"]]
    if len(document["attempts"]) <= MAX_LEARNED or not taught:
        return
    dates = sorted(at[:10] for each in taught if (at := each["proposal"]["at"]))
    span = f", {dates[0]} to {dates[-1]}" if dates else ""
    yield f"{counted(len(taught), 'lesson')} from {counted(len(document['attempts']), 'attempt')}{span}"
    causes = Counter(each["why"] for each in taught)
    frequent = causes.most_common(MAX_CAUSES)
    for why, number in frequent:
        yield f"  {number:>6,}  {clean_line(why, 120)}"
    if (rest := len(taught) - sum(number for _, number in frequent)) > 0:
        yield call.paint(f"  {rest:>6,}  of {counted(len(causes) - MAX_CAUSES, 'other cause')}", "muted")


@verb(
    "learn",
    "lessons from attempts that ended; --apply records them",
    option("--apply", action="store_true", help="settle outcomes and keep lessons; without it, only show"),
    option(
        "--accept",
        choices=get_args(AcceptRule),
        default=None,
        help="with --apply: lessons accepted at once (default: accept_lessons in the settings)",
    ),
    option(
        "--limit", type=int, default=0, metavar="N", help="at most N lessons, of the newest attempts (default: all)"
    ),
    add_since,
    may_write=applies,
    encodes=False,
    looks=True,
    lines=_learned,
)
def _learn(call: Call, memory: MemoryStore) -> Document:
    """Learn from DDx's evidence about ended attempts; without --apply, only show it."""
    options = call.options
    project = locate(call)
    tracker, attempts = read_attempts(project, call.now)
    learner = Learner(project, memory)
    way = learner.learn if options.apply else learner.preview
    learned = way(tracker.beads, attempts, since=since_of(call), most=max(0, options.limit))
    blocked = Plans(memory).unlearned()
    tasks = [{"workspace": each.id, "title": f"{each.seq} {each.slug}", "why": each.delivered} for each in blocked]
    if options.apply:
        for each in blocked:
            propose(memory, each)
    accepted = None
    if options.apply:
        if options.accept:
            memory.require_person("accept")
        new = {each.proposal.id for each in learned if each.proposal is not None}
        rule = options.accept or load_settings().accept_lessons
        # by an agent nothing: what a rule accepts waits for the console, or for a person's command
        accepted = accept_by_rule(memory, rule, attempts, among=new if options.limit else None)
    return {
        "applied": options.apply,
        "attempts": [each.document() for each in learned],
        "workspaces": tasks,
        "waiting": len(waiting_lessons(memory)),
        "accepted": accepted.document() if accepted is not None else None,
    }


def _waiting(call: Call, document: Document) -> Iterator[str]:
    """``proposals`` as text."""
    if document.get("done"):
        yield f"{clean_line(document['done']['title'], 200)} · `helix-tui memory undo` undoes it"
    for why in document.get("refused", ()):
        yield call.paint(f"not accepted: {clean_line(why, 200)}", "waiting")
    for each in document["proposals"]:
        yield f"{each['memory'] or each['id']:>4}  {each['type']:<8}  {clean_line(each['trigger'], 200)}"
        yield call.paint(f"      {clean_line(each['resolution'], 200)}", "muted")
        yield call.paint(f"      {clean_line(each['reason'], 200)}", "muted")
    if not document["proposals"]:
        yield "no lesson to review"


@verb(
    "proposals",
    "lessons that wait: list, accept, decline",
    option("action", nargs="?", choices=("list", "add", "accept", "decline"), default="list"),
    option("numbers", nargs="*", metavar="N", help="lessons by number, or all"),
    option("--type", choices=("failure", "pattern"), default="failure", help="with add"),
    option("--trigger", default="", metavar="TEXT", help="with add: the situation"),
    option("--resolution", default="", metavar="TEXT", help="with add: what to do in it"),
    option("--attempt", default="", metavar="ID", help="with add: the attempt that it comes from"),
    option("--bead", default="", metavar="ID", help="with add: the bead"),
    may_write=lambda options: options.action != "list",
    looks=True,
    lines=_waiting,
)
def _proposals(call: Call, memory: MemoryStore) -> Document:
    """List the waiting lessons, and the memories of agents that wait; accept or decline some."""
    options = call.options
    if options.action == "list":
        return {"proposals": [lesson.document() for lesson in waiting_lessons(memory)]}
    if options.action == "add":
        return _propose_by_hand(call, memory)
    chosen = _chosen_lessons(options.numbers, waiting_lessons(memory))
    refused: list[str] = []
    if options.action == "decline":
        memory_change = MemoryChanges(memory).decline(chosen)
    else:
        memory_change, refused = MemoryChanges(memory).accept(chosen)
    return {
        "done": memory_change.document() if memory_change is not None else None,
        "refused": refused,
        "proposals": [lesson.document() for lesson in waiting_lessons(memory)],
    }


def _propose_by_hand(call: Call, memory: MemoryStore) -> Document:
    """Propose a lesson by hand; it waits for acceptance like those proposed by rule."""
    options = call.options
    said = {name: clean_line(getattr(options, name), 600).strip() for name in ("trigger", "resolution", "attempt")}
    if missing := [f"--{name}" for name, text in said.items() if len(text) < (1 if name == "attempt" else 10)]:
        raise CliError(
            f"missing or too short: {', '.join(missing)}",
            "Give the situation and what to do in it, 10 characters or more each, and the attempt.",
            2,
        )
    reason = f"proposed by {clean_line(os.environ.get('USER') or 'an agent', 60)}"
    lesson = Proposal(
        0,
        *(said["attempt"], options.bead, options.type, said["trigger"], said["resolution"], reason),
        taught_by=memory.teacher,
    )
    added = Proposals(memory).add(lesson)
    return {
        "proposal": added.document() if added is not None else None,
        "proposals": [each.document() for each in waiting_lessons(memory)],
    }


def _chosen_lessons(words: list[str], waiting: list[Proposal]) -> list[Proposal]:
    if words == ["all"]:
        return waiting
    by_number = {each.ref: each for each in waiting}
    unknown = [word for word in words if word not in by_number]
    if unknown or not words:
        what = f"no lesson {clean_line(unknown[0], 40)} waits" if unknown else "no lesson was given"
        raise CliError(what, "`helix-tui memory proposals` numbers them; `all` names all.", 2)
    return [by_number[word] for word in words]


def _undone(call: Call, document: Document) -> Iterator[str]:
    """``undo`` as text."""
    memory_change = document["undone"]
    yield f"undone: {clean_line(memory_change['title'], 200)}" if memory_change else document["why"]


@verb(
    "undo",
    "undo the last change: correction, removal, lesson, pruning, fading",
    writes=True,
    lines=_undone,
)
def _undo(call: Call, memory: MemoryStore) -> Document:
    """Undo the last change that a person made to the memory."""
    memory_change = MemoryChanges(memory).undo()
    if memory_change is None:
        return {"undone": None, "why": "nothing to undo in the memory"}
    return {"undone": memory_change.document()}


def _assessed(call: Call, document: Document) -> Iterator[str]:
    yield f"{call.paint(document['recommendation'], 'bold')}: {clean_line(document['reason'], 300)}"
    if document["suggested_pivot"]:
        yield f"instead: {clean_line(document['suggested_pivot'], 300)}"


@verb(
    "assess",
    "advise whether to continue an approach, change it, or ask",
    option("--task", required=True, help="the objective"),
    option("--approach", required=True, help="what to try next"),
    option("--history", metavar="JSON", help="what was tried; default: what was assessed before"),
    may_write=lambda options: True,
    compares=True,
    lines=_assessed,
)
def _assess(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    history = None if options.history is None else names("--history", options.history)
    found = memory.assess(options.task, options.approach, history).document()
    return {**found, "mode": memory.mode, "detail": memory.detail}
