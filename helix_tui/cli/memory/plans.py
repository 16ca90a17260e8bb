"""``memory plan``, ``exploration``, ``workspace``: helix v1's orchestration, and how it reaches the queue.

A plan becomes beads, or tasks of Claude Code; a workspace is a task being carried out, and VERIFY ends it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.editing.change import clear_errors, curator_of
from helix_tui.cli.memory.verb import Document, adds, names, option, verb
from helix_tui.core.editing.preview import foresee
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.plan_records import MemoryPlan, TaskReport, TaskWorkspace
from helix_tui.core.memory.tasks.plans import Plans
from helix_tui.core.memory.tasks.task_check import VERIFY_TIMEOUT_S, TaskCheck
from helix_tui.core.supervision.agents import plan_beads as native_tasks
from helix_tui.core.supervision.agents.plan_beads import bead_operations, beads_of

MAX_DOCUMENT = 4 << 20


def _plan_lines(call: Call, document: Document) -> Iterator[str]:
    """``plan`` as text."""
    for each in document.get("plans", ()):
        yield f"{each['id']:>4}  {counted(len(each['tasks']), 'task'):>9}  {clean_line(each['objective'], 200)}"
    if "plan" in document:
        one = document["plan"]
        yield call.paint(f"plan {one['id']}: {clean_line(one['objective'], 300)}", "bold")
        for task in one["tasks"]:
            waits = "" if task["depends"] == "none" else f"  after {clean_line(task['depends'], 60)}"
            yield f"  {clean_line(task['seq'], 40)} {clean_line(task['objective'], 200)}{waits}"
        for problem in one["problems"]:
            yield call.paint(f"cannot be used: {clean_line(problem, 300)}", "error")
        if "ready" in document:
            yield f"can start: {clean_line(', '.join(document['ready']) or 'none', 300)}"
    for each in document.get("calls", ()):
        yield f"{each['tool']}({clean_line(json.dumps(each['input'], ensure_ascii=False), 1_000)})"
    if "list" in document:
        where = clean_line(str(document["folder"]), 300)
        yield f"{counted(len(document['written']), 'task')} in {where}"
        yield f"CLAUDE_CODE_TASK_LIST_ID={clean_line(document['list'], 80)} claude   # ctrl+t shows them"
    for words in document.get("commands", ()):
        yield call.paint(clean_block(" ".join(words), 400), "muted")
    for why in document.get("refused", ()):
        yield call.paint(f"not done: {clean_line(why, 300)}", "error")
    if document.get("journal_id"):
        yield f"{counted(len(document['created']), 'bead')} · journal {document['journal_id']}{_way_back(document)}"
    elif document.get("dry_run"):
        if not document["undoable"] and document["commands"]:
            yield call.paint(f"cannot be undone: {_why_not(document)}", "waiting")
        yield call.paint("nothing was changed (--dry-run)", "muted")
    if document.get("plans") == []:
        yield "no plan stored yet: `helix-tui memory plan add --file plan.json` adds one"


@verb(
    "plan",
    "plans of tasks: list, show, add, apply (create beads)",
    option("action", nargs="?", choices=("list", "show", "add", "apply", "tasks"), default="list"),
    option("number", nargs="?", type=int, metavar="N", help="the plan"),
    option(
        "--list",
        dest="task_list",
        nargs="?",
        const="",
        metavar="NAME",
        help="with tasks: write them as a task list of Claude Code (CLAUDE_CODE_TASK_LIST_ID=NAME shows it)",
    ),
    option("--file", metavar="FILE", help="with add: the plan as JSON; - reads stdin"),
    option("--parent", default="", metavar="ID", help="with apply: put the beads under this one"),
    option("--no-epic", action="store_true", help="with apply: do not create an epic for the objective"),
    option("--priority", type=int, default=2, metavar="0-4", help="with apply (default 2)"),
    option("--spec-id", default="", metavar="ID", help="with apply: the document that governs them"),
    option("--dry-run", action="store_true", help="with apply: show the commands, change nothing"),
    may_write=adds,
    encodes=False,
    looks=True,
    lines=_plan_lines,
)
def _plan(call: Call, memory: MemoryStore) -> Document:
    """Store, show and list plans; create beads from one."""
    options, plans = call.options, Plans(memory)
    if options.action == "list":
        return {"plans": [plan.document() for plan in plans.plans()]}
    if options.action == "add":
        return {"plan": plans.add_plan(_read(options.file)).document()}
    found = _chosen_plan(plans, options.number)
    if options.action == "show":
        workspaces = [workspace.document() for workspace in plans.workspaces(found.id)]
        return {"plan": found.document(), "workspaces": workspaces, "ready": list(plans.ready(found))}
    if found.problems:
        raise CliError(f"plan {found.id} cannot be used: {found.problems[0]}")
    if options.action == "tasks":
        return _tasks(call, plans, found)
    return _apply(call, found)


def _tasks(call: Call, plans: Plans, found: MemoryPlan) -> Document:
    """The plan as tasks of Claude Code: the calls that create them, or with --list the list itself."""
    document: Document = {"plan": found.document(), "calls": native_tasks.calls(found)}
    if call.options.task_list is None:
        return document
    name = call.options.task_list or native_tasks.list_name(found)
    folder = native_tasks.task_list(os.environ, name)
    document |= {"list": name, "folder": folder, "written": []}
    if call.options.dry_run or call.read_only:
        return document
    try:
        written = native_tasks.register(folder, found, plans.workspaces(found.id))
    except OSError as error:
        raise CliError(f"the task list cannot be written: {error.strerror}", f"Look at {folder}.") from None
    return document | {"written": written}


def _apply(call: Call, found: MemoryPlan) -> Document:
    options = call.options
    with clear_errors():
        curator = curator_of(call)
        queue_state = curator.look()
        wanted = bead_operations(
            found,
            queue_state.queue.beads,
            parent=options.parent,
            epic=not options.no_epic and not options.parent and len(found.tasks) > 1,
            priority=options.priority,
            spec_id=options.spec_id,
        )
        title = f"create beads from plan {found.id}"
        planned = curator.plan(wanted, title=title)
        follows = foresee(queue_state.queue, planned.steps)
        document: Document = {
            "plan": found.document(),
            "dry_run": options.dry_run,
            "commands": list(planned.commands),
            "refused": [refusal.why for refusal in planned.refusals],
            "undoable": planned.undoable,
            "why_not": list(planned.back.lost),
            "newly_ready": list(follows.newly_ready),
            "created": [],
            "journal_id": None,
        }
        if options.dry_run or not planned.steps:
            return document | {"beads": beads_of(found, queue_state.queue.beads)}
        curator.gate.check()
        done = curator.run(wanted, shown=planned, title=title)
        if done.error is not None:
            raise CliError(done.error.message, done.error.advice, done.error.exit_code)
        return document | {
            "created": list(done.created.values()),
            "newly_ready": list(done.newly_ready),
            "journal_id": done.entry.id if done.entry else None,
            "undoable": bool(done.entry and done.entry.undoable),
            "beads": beads_of(found, curator.look().queue.beads),
        }


@verb(
    "exploration",
    "what explorers found: list, add",
    option("action", nargs="?", choices=("list", "add"), default="list"),
    option("--objective", default="", help="with add: what the exploration was for"),
    option("--file", metavar="FILE", help="with add: what was found, as JSON; - reads stdin"),
    may_write=adds,
    encodes=False,
    looks=True,
)
def _exploration(call: Call, memory: MemoryStore) -> Document:
    """Store and list what explorers found."""
    options, plans = call.options, Plans(memory)
    if options.action == "add":
        if not options.objective.strip():
            raise CliError("no objective was given", "Pass --objective TEXT.", 2)
        return {"exploration": plans.add_exploration(options.objective, _read(options.file)).document()}
    return {"explorations": [exploration.document() for exploration in plans.explorations()]}


def _workspace_lines(call: Call, document: Document) -> Iterator[str]:
    """``workspace`` as text."""
    found = document.get("workspaces", [document["workspace"]] if "workspace" in document else [])
    for each in found:
        task = clean_line(f"{each['task_seq']} {each['task_slug']}", 100)
        yield f"{each['id']:>4}  {each['status']:<9}  {task}"
        for name in ("blocked_reason", "tried", "error"):
            if each[name]:
                yield call.paint(f"      {name.replace('_', ' ')}: {clean_line(each[name], 300)}", "muted")
        for name in each["injected"]:
            yield call.paint(f"      was given {clean_line(name, 200)}", "muted")
        for parent in each["parents"]:
            yield call.paint(f"      builds on {clean_line(parent, 200)}", "muted")
    if not found:
        yield "no workspace is open"
    if "verdict" in document:
        yield from _ended(call, document)
    elif "would_run" in document:
        yield f"would run VERIFY: {clean_line(document['would_run'], 300)}"
    elif "workspace" in document and document["workspace"]["status"] == "active":
        yield ""
        yield clean_block(document["workspace"]["brief"])


@verb(
    "workspace",
    "tasks of a plan as they are carried out: list, open, close",
    option("action", nargs="?", choices=("list", "show", "open", "close"), default="list"),
    option("number", nargs="?", type=int, metavar="N", help="the workspace; with open the plan"),
    option("--seq", default="", help="with open: the task of the plan"),
    option("--status", choices=("delivered", "blocked"), default="delivered", help="with close"),
    option("--delivered", default="", metavar="TEXT", help="with close: what is true now"),
    option("--blocked-reason", default="", metavar="TEXT", help="with close: what is needed to continue"),
    option("--tried", default="", metavar="TEXT", help="with close: what was tried"),
    option("--error", default="", metavar="TEXT", help="with close: the error that occurred"),
    option(
        "--violation",
        action="append",
        default=[],
        metavar="TEXT",
        help="with close: a rule of the plan that the change breaks, as a reviewer found; repeatable",
    ),
    option("--verified", choices=("passed", "failed"), help="with close: how VERIFY ended, if it cannot be run here"),
    option(
        "--timeout", type=float, default=VERIFY_TIMEOUT_S, metavar="S", help="with close: seconds that VERIFY may take"
    ),
    option("--utilized", default="[]", metavar="JSON", help="with close: names that were used"),
    may_write=lambda options: options.action in ("open", "close"),
    looks=True,
    lines=_workspace_lines,
)
def _workspace(call: Call, memory: MemoryStore) -> Document:
    """Open and close tasks of a plan, with the memories they were given."""
    options, plans = call.options, Plans(memory)
    if options.action == "list":
        return {"workspaces": [workspace.document() for workspace in plans.workspaces(options.number)]}
    if options.action == "open":
        found = _chosen_plan(plans, options.number)
        task = next((each for each in found.tasks if each.seq == options.seq), None)
        if task is None:
            seqs = ", ".join(each.seq for each in found.tasks)
            raise CliError(f"plan {found.id} has no task “{clean_line(options.seq, 40)}”", f"Its tasks: {seqs}.", 2)
        opened = plans.open_workspace(found, task, root=locate(call).root)
        return {"workspace": opened.document()}
    if options.number is None:
        raise CliError("no workspace was given", "`helix-tui memory workspace` lists them.", 2)
    shown = plans.workspace(options.number)
    if shown is None:
        raise CliError(f"no workspace {options.number}", "`helix-tui memory workspace` lists them.")
    return _close(call, plans, shown) if options.action == "close" else {"workspace": shown.document()}


def _close(call: Call, plans: Plans, workspace: TaskWorkspace) -> Document:
    """Close a task by its VERIFY, which is shown and run here, or was run elsewhere and reported."""
    options = call.options
    report = TaskReport(
        options.status,
        options.delivered,
        tuple(names("--utilized", options.utilized)),
        options.blocked_reason,
        options.tried,
        options.error,
        tuple(clean_line(each, 400) for each in options.violation),
    )
    root = locate(call).root
    if options.on_copy:  # nothing is run, nothing is stored
        return {"workspace": workspace.document(), "would_run": workspace.data.get("verify")}
    verify = clean_line(workspace.data.get("verify") or "", 300)
    if options.verified is None:
        call.note(f"running VERIFY, {options.timeout:g} s at most: {verify}")
    check = plans.check(workspace, root, options.timeout) if options.verified is None else None
    # it was run elsewhere: the record says that the result was reported, not observed
    if options.verified is not None:
        check = TaskCheck(options.verified, f"`{verify}` {options.verified}, as reported")
    closed = plans.close_workspace(workspace.id, report, check)
    assert closed is not None
    ended = closed.workspace
    if ended.status != options.status:
        call.note(f"helix-tui: workspace {ended.id} is {ended.status}, not {options.status} as reported")
        if ended.plan_id is not None:
            again = f"helix-tui memory workspace open {ended.plan_id} --seq {clean_line(ended.seq, 40)}"
            call.note(f"  To try the task again: `{again}`")
    return {
        "workspace": ended.document(),
        "verdict": closed.verdict,
        "feedback": closed.feedback.document() if closed.feedback is not None else None,
        "proposal": closed.proposal.document() if closed.proposal is not None else None,
        "as_reported": ended.status == options.status,
    }


def _chosen_plan(plans: Plans, number: int | None) -> MemoryPlan:
    found = plans.plan(number) if number is not None else next(iter(plans.plans()), None)
    if found is None:
        raise CliError("there is no such plan", "`helix-tui memory plan` lists them.")
    return found


def _read(name: str | None) -> Any:
    """A JSON document from a file or from stdin."""
    if not name:
        raise CliError("no file was given", "Pass --file FILE, or --file - for stdin.", 2)
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_DOCUMENT + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise CliError(f"{clean_line(name, 200)} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_DOCUMENT:
        raise CliError(f"{clean_line(name, 200)} has more than {MAX_DOCUMENT >> 20} MB")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CliError(f"{clean_line(name, 200)} is not JSON: {clean_line(error, 200)}") from None


def _way_back(document: Document) -> str:
    if document["undoable"]:
        return " · `helix-tui undo` undoes it"
    return f" · cannot be undone: {_why_not(document)}"


def _why_not(document: Document) -> str:
    """Why created beads cannot be removed; each reason once."""
    reasons = [why.partition(" was made, and ")[2] or why for why in document["why_not"]]
    return clean_line("; ".join(dict.fromkeys(reasons)), 300)


def _ended(call: Call, document: Document) -> Iterator[str]:
    """The result of closing a task, and what followed from it."""
    ended, counted_as = document["workspace"], document["feedback"]
    checked = ended["verification"]
    if checked is not None:
        role = "success" if checked["result"] == "passed" else "error"
        yield f"VERIFY: {call.paint(clean_line(checked['why'], 300), role)}"
        for each in checked["violations"]:
            yield call.paint(f"breaks its plan: {clean_line(each, 300)}", "error")
    if counted_as is not None:
        yield f"memory: {counted_as['helped']} credited, {counted_as['unhelpful']} blamed ({document['verdict']})"
    if document["proposal"] is not None:
        yield f"proposed: {clean_line(document['proposal']['trigger'], 300)} · `helix-tui memory proposals`"
