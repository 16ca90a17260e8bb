"""``memory learn``, ``proposals`` and ``undo``: what attempts have taught, and who takes it in."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.loading import add_since, since_of
from helix_tui.cli.show.attempts import read_attempts
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.runs.running import find_running
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory import MemoryStore
from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.plans import Plans, propose
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.supervision.agents.learning import Learner
from helix_tui.settings import load_settings

_POLICIES = {"none": (), "failures": ("failure",), "patterns": ("pattern",), "all": ("failure", "pattern")}


def learn_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``learn``."""
    parser.add_argument("--apply", action="store_true", help="settle outcomes and keep lessons; without it, only show")
    parser.add_argument(
        "--accept",
        choices=tuple(_POLICIES),
        default=None,
        help="with --apply: lessons accepted at once (default: accept_lessons in the settings, none)",
    )
    add_since(parser)


def proposals_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``proposals``."""
    parser.add_argument("action", nargs="?", choices=("list", "add", "accept", "decline"), default="list")
    parser.add_argument("numbers", nargs="*", metavar="N", help="lessons by number, or all")
    parser.add_argument("--type", choices=("failure", "pattern"), default="failure", help="with add")
    parser.add_argument("--trigger", default="", metavar="TEXT", help="with add: the situation")
    parser.add_argument("--resolution", default="", metavar="TEXT", help="with add: what to do in it")
    parser.add_argument("--attempt", default="", metavar="ID", help="with add: the attempt that it comes from")
    parser.add_argument("--bead", default="", metavar="ID", help="with add: the bead")


def learn(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Take in what DDx's evidence says of attempts that ended; without --apply, show it."""
    options = call.options
    project = locate(call)
    tracker = read_tracker(project.beads_file)
    attempts = read_attempts(project, tracker, find_running(project, tracker.beads, call.now))
    learner = Learner(project, memory)
    way = learner.learn if options.apply else learner.preview
    learned = way(tracker.beads, attempts, since=since_of(call))
    blocked = Plans(memory).unlearned()
    tasks = [{"workspace": each.id, "title": f"{each.seq} {each.slug}", "why": each.delivered} for each in blocked]
    if options.apply:
        for each in blocked:
            propose(memory, each)
    accepted = None
    kinds = _POLICIES[options.accept or load_settings().accept_lessons or "none"]
    if options.apply and kinds:
        chosen = [each for each in learner.proposals.all() if each.type in kinds]
        accepted, _ = MemoryChanges(memory).accept(chosen)
    return {
        "applied": options.apply,
        "attempts": [each.document() for each in learned],
        "workspaces": tasks,
        "waiting": len(learner.proposals.all()),
        "accepted": accepted.document() if accepted is not None else None,
    }


def proposals(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Lessons that wait; accept or decline some of them."""
    options = call.options
    kept = Proposals(memory)
    if options.action == "list":
        return {"proposals": [each.document() for each in kept.all()]}
    if options.action == "add":
        return _add(call, kept)
    chosen = _chosen(options.numbers, kept.all())
    memory_changes = MemoryChanges(memory)
    refused: list[str] = []
    if options.action == "decline":
        memory_change = memory_changes.decline(chosen)
    else:
        memory_change, refused = memory_changes.accept(chosen)
    return {
        "done": memory_change.document() if memory_change is not None else None,
        "refused": refused,
        "proposals": [each.document() for each in kept.all()],
    }


def _add(call: Call, kept: Proposals) -> dict[str, Any]:
    """A lesson that somebody proposes: it waits as those do that are drawn by rule."""
    options = call.options
    said = {name: clean_line(getattr(options, name), 600).strip() for name in ("trigger", "resolution", "attempt")}
    if missing := [f"--{name}" for name, text in said.items() if len(text) < (1 if name == "attempt" else 10)]:
        raise CliError(f"the rest: {', '.join(missing)}", "A situation, what to do in it, and the attempt.", 2)
    reason = f"proposed by {clean_line(os.environ.get('USER') or 'an agent', 60)}"
    lesson = Proposal(0, said["attempt"], options.bead, options.type, said["trigger"], said["resolution"], reason)
    added = kept.add(lesson)
    return {
        "proposal": added.document() if added is not None else None,
        "proposals": [each.document() for each in kept.all()],
    }


def undo(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Take back the last change that a person made to the memory."""
    memory_change = MemoryChanges(memory).undo()
    return {"undone": memory_change.document() if memory_change is not None else None}


def _chosen(words: list[str], waiting: list[Proposal]) -> list[Proposal]:
    if words == ["all"]:
        return waiting
    by_number = {str(each.id): each for each in waiting}
    unknown = [word for word in words if word not in by_number]
    if unknown or not words:
        what = f"no lesson {clean_line(unknown[0], 40)} waits" if unknown else "say which lessons"
        raise CliError(what, "`helix-tui memory proposals` numbers them; `all` names all.", 2)
    return [by_number[word] for word in words]


def print_learned(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``learn`` for people."""
    for each in document["attempts"]:
        verdict = each["verdict"] or "says nothing"
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


def print_proposals(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``proposals`` for people."""
    if document.get("done"):
        yield f"{clean_line(document['done']['title'], 200)} · `helix-tui memory undo` undoes it"
    for why in document.get("refused", ()):
        yield call.paint(f"not taken: {clean_line(why, 200)}", "warning")
    for each in document["proposals"]:
        yield f"{each['id']:>4}  {each['type']:<8}  {clean_line(each['trigger'], 200)}"
        yield call.paint(f"      {clean_line(each['resolution'], 200)}", "muted")
        yield call.paint(f"      {clean_line(each['reason'], 200)}", "muted")
    if not document["proposals"]:
        yield "no lesson waits"


def print_undone(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``undo`` for people."""
    memory_change = document["undone"]
    yield f"undone: {clean_line(memory_change['title'], 200)}" if memory_change else "there is nothing to undo"
