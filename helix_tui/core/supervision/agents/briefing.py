"""Answer Claude Code's hooks: brief agents from memory, and record their claims.

Protocol: docs/formats/memory.md §7. Additions are stated as facts, in helix v2's form; the ledger records what was
shown to whom. An agent's claims are kept as claims: only a verified outcome settles them (docs/decisions/0014).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.names import MADE_PROMPT
from helix_tui.core.ground.files import is_folder, text_of
from helix_tui.core.ground.project import AttemptFolder, Project, find_project
from helix_tui.core.ground.text import clean_block, clean_line, counted
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.core.ground.writes import append_file, replace_file
from helix_tui.core.memory.injection import line, without_block
from helix_tui.core.memory.lessons import Proposals
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Injection
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.store.indexing import mentioned
from helix_tui.core.supervision.agents.hooks import PLUGIN_FOLDER
from helix_tui.core.supervision.agents.report_parser import (
    EDITING,
    AgentTask,
    HookMessage,
    claim_of,
    commands_run,
    open_tasks,
    own_task,
    spawned,
)

_SYSTEMIC_SHOWN = 3
_ASKED = 12
"""Minimum characters of a person's question, as opposed to a "yes"."""
_DAY = 86_400 * NS


class AgentPlace(Struct, frozen=True):
    """Where an agent works: whose memory it reads, and for which attempt."""

    project: Project
    """The main work tree's project: an attempt's own work tree is deleted."""
    here: Path
    bead: str = ""
    attempt: str = ""


def place_of(hook_message: HookMessage, directory: Path, env: Mapping[str, str]) -> AgentPlace:
    """Where an agent works, by the hook's message, else by the current folder."""
    folder = Path(hook_message.cwd) if hook_message.cwd else directory
    start = folder if folder.is_absolute() and is_folder(folder) else directory
    project = find_project(start, env=env)
    # from the agent's folder: the project becomes the main work tree's below
    attempt = project.attempt
    main = Path(env.get("DDX_PROJECT_ROOT") or project.main_root)
    if main != project.root and is_folder(main):
        project = replace(find_project(main, env=env), root=main)
    if attempt is None:
        return AgentPlace(project, start)
    return AgentPlace(project, start, *_whose(attempt, project, env))


def _whose(folder: AttemptFolder, project: Project, env: Mapping[str, str]) -> tuple[str, str]:
    """Bead and attempt of a folder: by its name or, for a reused folder, by ddx's environment or the run record that
    names the folder.
    """
    if folder.attempt:
        return folder.bead, folder.attempt
    named = env.get("DDX_BEAD_ID", ""), env.get("DDX_ATTEMPT_ID", "")
    if all(named):
        return named
    from helix_tui.core.ddx.claims import ClaimReader  # few hooks are run in such a folder

    here = os.path.realpath(folder.root)
    records = [
        claim
        for claim in ClaimReader(project, env).run_states()
        if claim.worktree is not None and os.path.realpath(claim.worktree) == here
    ]
    newest = max(records, key=lambda claim: claim.at or 0, default=None)
    return (newest.bead_id, newest.attempt_id) if newest is not None else ("", "")


def answer(event: str, hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """What a hook prints; an empty object if there is nothing to say."""
    return _ANSWERS[event](hook_message, place, memory)


def _session_start(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """The state of the memory, recurring problems, and memories for the bead of this attempt."""
    health = memory.health()
    mode = "searched by meaning" if health.mode == "semantic" else "searched by keywords only"
    kinds = ", ".join(f"{each.count} {kind}" for kind, each in health.by_type.items() if each.count)
    lines = [
        f"helix memory of {place.project.name}: {counted(health.total, 'memory', 'memories')}"
        + (f" ({kinds}), {health.with_verified_feedback} with verified outcomes, {mode}." if health.total else ".")
    ]
    recurring = [line(each) for each in memory.list(type="systemic") if not each.withheld][:_SYSTEMIC_SHOWN]
    if recurring:
        lines += ["Recurring problems:", *recurring]
    by_block = bool(place.bead) and _has_block(place, memory)
    if by_block and place.attempt and not memory.read_only:
        _enter_attempt(place, memory)
    if place.bead and not by_block and (objective := _objective_of(place)):
        injection = memory.inject(
            objective,
            files=mentioned(objective),
            attempt=place.attempt,
            bead=place.bead,
            agent=hook_message.agent_type,
            record=False,
        )
        # recorded only if it shows this attempt anything new
        if {each.name for each in injection.shown} - _known(place.attempt, place, memory) and not memory.read_only:
            memory.enter(injection)  # a repair or a review of the same attempt is another session in its folder
        lines += _memory_lines(injection)
    return _context("SessionStart", "\n".join(lines))


def _enter_attempt(place: AgentPlace, memory: MemoryStore) -> None:
    """Record once that this attempt saw its bead's block, however often a session begins."""
    lines = [injection for injection in memory.injections(bead=place.bead) if injection.in_bead]
    # the block shows what was last written into the bead
    newest = max(lines, key=lambda each: (each.at or 0, each.attempt == place.attempt), default=None)
    if newest is not None and newest.attempt != place.attempt:
        memory.enter_attempt(newest.id, place.attempt)


def _known(who: str, place: AgentPlace, memory: MemoryStore) -> set[str]:
    """Names of memories already shown to an agent, by a hook or by its bead's block."""
    ledger = [*(memory.injections(attempt=who) if who else ())]
    if place.bead and _has_block(place, memory):
        ledger += [each for each in memory.injections(bead=place.bead) if each.in_bead]
    return {each.name for injection in ledger for each in injection.shown}


def _has_block(place: AgentPlace, memory: MemoryStore) -> bool:
    """Whether the bead's own block puts memories into the prompt; the ledger has them under the bead."""
    bead = read_tracker(place.project.beads_file).beads.get(place.bead)
    description = str(bead.document().get("description") or "") if bead is not None else ""
    return without_block(description) != description and bool(memory.injections(bead=place.bead))


def _user_prompt_submit(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """Memories for a person's prompt, without those already shown in the session.

    Reviews and checks that ddx runs in the project itself are not a person's prompts.
    """
    asked = hook_message.prompt.strip()
    # an attempt's prompt is ddx's; "/", "!" and "#" begin a command, a shell line and a note of Claude Code
    if place.attempt or len(asked) < _ASKED or asked.startswith(("/", "!", "#")) or MADE_PROMPT.match(asked):
        return {}
    session = hook_message.session
    injection = memory.inject(asked[:1000], files=mentioned(asked[:4000]), attempt=session, limit=3, record=False)
    if not {each.name for each in injection.shown} - _known(session, place, memory):
        return {}
    if not memory.read_only:
        injection = memory.enter(injection)
    return _context("UserPromptSubmit", "\n".join(_memory_lines(injection)))


def _pre_tool_use(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """Memories about a file before it is changed, once per file and agent."""
    if hook_message.tool not in EDITING or not hook_message.file:
        return {}
    path = Path(hook_message.file)
    if path.is_absolute() and path.is_relative_to(place.here):
        path = path.relative_to(place.here)
    name = path.as_posix()
    attempt = _who(hook_message, place)
    # in the ledger the file's name is the objective of what was shown before its first change
    if attempt and any(injection.objective == name for injection in memory.injections(attempt=attempt)):
        return {}
    injection = memory.inject(
        name,
        files=(name,),
        attempt=attempt,
        bead=place.bead,
        agent=hook_message.agent_type,
        limit=3,
        scope="path",
        record=False,
    )
    if not {each.name for each in injection.shown} - _known(attempt, place, memory):
        return {}
    if not memory.read_only:
        injection = memory.enter(injection)
    return _context("PreToolUse", "\n".join([f"Memories for {clean_line(path.name, 120)}:", *_memory_lines(injection)]))


def _subagent_start(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """Memories for the task just given to a sub-agent."""
    task = own_task(hook_message) or _task_of(hook_message, memory)
    if task is None or task.briefed:
        return {}
    injection = memory.inject(
        task.objective,
        files=task.files or mentioned(task.objective),
        attempt=_who(hook_message, place),
        bead=place.bead,
        agent=hook_message.agent_type,
        kind=hook_message.agent_type.rpartition(":")[2],
    )
    if not injection.shown:
        return (
            _context("SubagentStart", f"helix memory: {injection.signal or 'nothing matches'}")
            if injection.signal
            else {}
        )
    return _context("SubagentStart", "\n".join(_memory_lines(injection)))


def _task_of(hook_message: HookMessage, memory: MemoryStore) -> AgentTask | None:
    """The task of this agent among those its session handed out, one agent per task."""
    tasks = open_tasks(spawned(hook_message.transcript), hook_message.agent_type)
    if len(tasks) < 2 or not hook_message.agent_id:
        return tasks[-1].task if tasks else None
    calls = [task.call for task in tasks]
    mine = calls[0] if memory.read_only else memory.take_task(hook_message.session, calls, hook_message.agent_id)
    return next((task.task for task in tasks if task.call == mine), None)


def _stop(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """Keep what the agent reports as used until its work is verified; a blocker becomes a lesson."""
    claim = claim_of(hook_message)
    attempt = _who(hook_message, place)
    shown = memory.injections(attempt=attempt) if attempt else ()
    if shown and claim.utilized:
        memory.claim(attempt, claim.utilized)
    task = own_task(hook_message) if hook_message.agent_id else None
    # at its start its transcript may have been missing, and it may have been shown a sibling's task
    if task is not None and shown:
        memory.rebook(attempt, task.objective)
    if task is None and hook_message.agent_id:
        task = _task_of(hook_message, memory)
    objective = task.objective if task is not None else shown[0].objective if shown else ""
    if attempt and claim.report == "blocked" and claim.summary and objective:
        at = format_instant(now_ns())
        reason = f"an agent reported BLOCKED: {attempt}"
        said = (attempt, place.bead, "failure", objective[:300], claim.summary, reason)
        lesson = Proposal(0, *said, at=at, taught_by="agent")
        Proposals(memory).add(lesson)
    # a sub-agent stops once, a session at each answer
    _settle(hook_message, place, memory, ended=bool(hook_message.agent_id))
    return {}


def _settle(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore, *, ended: bool) -> None:
    """Settle what the agent was shown by the checks that it ran; DDx judges its own attempts."""
    who = _who(hook_message, place)
    if place.attempt or not who or not memory.injections(attempt=who):
        return
    from helix_tui.core.memory.session_check import settle_session

    ran = commands_run(hook_message)
    kind = hook_message.agent_type.rpartition(":")[2]
    unfinished = claim_of(hook_message).report in ("blocked", "partial")
    settle_session(memory, who, ran.checks, last_change=ran.last_change, kind=kind, unfinished=unfinished, ended=ended)


def _session_end(hook_message: HookMessage, place: AgentPlace, memory: MemoryStore) -> dict[str, Any]:
    """Settle the session by its checks, and ended attempts by DDx's evidence."""
    _settle(hook_message, place, memory, ended=True)
    # imported here: only the end of a session reads attempts, and each edit waits for its hook
    from helix_tui.core.ddx.attempts.index import AttemptIndex
    from helix_tui.core.ddx.runs.running import QueueReader
    from helix_tui.core.supervision.agents.learning import Learner

    index = AttemptIndex.of(place.project)
    tracker = QueueReader(place.project).read(now_ns(), records=index).tracker
    if not tracker.missing and not tracker.problem:
        Learner(place.project, memory).learn(tracker.beads, index.attempts, since=now_ns() - _DAY)
    return {}


_ANSWERS: dict[str, Callable[[HookMessage, AgentPlace, MemoryStore], dict[str, Any]]] = {
    "session-start": _session_start,
    "user-prompt-submit": _user_prompt_submit,
    "pre-tool-use": _pre_tool_use,
    "subagent-start": _subagent_start,
    "subagent-stop": _stop,
    "stop": _stop,
    "session-end": _session_end,
}

HOOKS = tuple(_ANSWERS)
"""The events that are answered."""


def _who(hook_message: HookMessage, place: AgentPlace) -> str:
    """The ledger's name for this agent: the attempt, the sub-agent or the session."""
    return place.attempt or hook_message.agent_id or hook_message.session


def _memory_lines(injection: Injection) -> list[str]:
    names = json.dumps([shown.name for shown in injection.shown], ensure_ascii=False)
    if not injection.shown:
        return []
    return [
        clean_block(injection.text),
        "",
        f"Shown from memory: {names}",
        "A report ends with UTILIZED: [names that changed what was done]",
    ]


def _objective_of(place: AgentPlace) -> str:
    tracker = read_tracker(place.project.beads_file)
    bead = tracker.beads.get(place.bead)
    if bead is None:
        return ""
    return f"{bead.title}\n{without_block(str(bead.document().get('description') or ''))}"[:2000].strip()


def _context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def environment(project: Project, env: Mapping[str, str]) -> None:
    """Export the paths of the memory and the plugin to the session's shell, in Claude Code's environment file.

    Agents of older plugins find the plugin by ``HELIX_PLUGIN_ROOT`` or, if a sub-agent has no variables, by
    ``.helix/plugin_root``.
    """
    from shlex import quote

    root = env.get("CLAUDE_PLUGIN_ROOT") or str(PLUGIN_FOLDER)
    known = project.helix_dir / "plugin_root"
    if is_folder(project.helix_dir) and text_of(known).strip() != root:
        with suppress(OSError):  # a full disk must not keep an agent from its memories
            replace_file(known, f"{root}\n".encode())
    name = env.get("CLAUDE_ENV_FILE", "")
    if not name:
        return
    variables = {"HELIX_PLUGIN_ROOT": root}
    if not env.get("HELIX_DB_PATH"):
        variables["HELIX_DB_PATH"] = str(project.helix_dir / "helix.db")
    append_file(name, "".join(f"export {key}={quote(value)}\n" for key, value in variables.items()).encode())
