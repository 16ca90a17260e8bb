"""What the verbs of ``helix-tui memory`` do: one function each, from options to a document.

`answer` opens the memory as a verb needs it (to write, to read, on a copy, with an encoder or without) and prints the
document. ``inject`` writes the block for an agent into the bead that the agent will be given.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helix_tui.cli.call import Call, CliError, hint_once, locate
from helix_tui.cli.editing.change import clear_errors, curator_of
from helix_tui.cli.loading import find_bead, read_attempts, since_of
from helix_tui.cli.memory import plans, report
from helix_tui.cli.memory.plans import names
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.injection import with_block, without_block
from helix_tui.core.memory.lessons import Proposals, waiting_lessons
from helix_tui.core.memory.memory_store import MemoryStore, look_into, open_memory
from helix_tui.core.memory.plans import Plans, propose
from helix_tui.core.memory.provenance import teacher_here
from helix_tui.core.memory.records import DatabaseMissing, DatabaseReadOnly, Injection, MemoryFault
from helix_tui.core.memory.reports import Proposal
from helix_tui.core.memory.store.database import BUSY_SECONDS, database_path
from helix_tui.core.memory.store.indexing import mentioned
from helix_tui.core.memory.store.schema import TRIGGERS
from helix_tui.core.supervision.agents.learning import Learner, accept_by_rule
from helix_tui.settings import load_settings

if TYPE_CHECKING:
    from helix_tui.cli.memory.verbs import MemoryVerb


def inject(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Choose which memories to show; with --bead write them into the bead, then record them in the ledger."""
    options = call.options
    if not options.bead:
        if not options.objective.strip() and not options.files:
            raise CliError("no objective was given", "Pass --objective TEXT, --files, or --bead ID.", 2)
        record = not (options.dry_run or call.read_only)
        return _choose(call, memory, options.objective, record=record).document()
    with clear_errors():
        curator = curator_of(call)
        queue = curator.look().queue
        bead = queue.beads[find_bead(queue, options.bead)]
        chosen = _choose(call, memory, options.objective or _objective(bead), bead, record=False)
        described = with_block(_field(bead, "description"), chosen.text)
        document = {**chosen.document(), "commands": [], "journal_id": None, "written": False}
        if options.dry_run:
            return document
        document |= _write(call, curator, bead, described)
    # recorded only after the bead was written: a refused write has shown nothing to an agent
    return document | ({"id": memory.enter(chosen).id} if chosen.shown else {})


def _choose(call: Call, memory: MemoryStore, objective: str, bead: Bead | None = None, *, record: bool) -> Injection:
    options = call.options
    files = options.files or (mentioned(_text(bead)) if bead else [])
    return memory.inject(
        objective,
        files=files,
        attempt=options.task,
        bead=bead.id if bead else "",
        agent=options.agent,
        kind=options.kind or (bead.issue_type if bead else ""),
        limit=options.limit,
        ranker=options.ranker,
        record=record,
    )


def _write(call: Call, curator: Curator, bead: Bead, described: str) -> dict[str, Any]:
    if described == _field(bead, "description"):
        return {"written": True}
    curator.gate.check()
    wanted = [operations.SetFields(bead.id, {"description": described})]
    done = curator.run(wanted, title=f"put what was learned into {bead.id}")
    if done.error is not None:
        raise CliError(done.error.message, done.error.advice, done.error.exit_code)
    if done.plan.refusals:
        raise CliError(done.plan.refusals[0].why)
    entry = done.entry
    return {
        "written": True,
        "commands": list(entry.commands) if entry else [],
        "journal_id": entry.id if entry else None,
    }


def _objective(bead: Bead) -> str:
    """What a bead is about: its title, and its text without an injected block."""
    return f"{bead.title}\n{without_block(_field(bead, 'description'))}"


def _text(bead: Bead) -> str:
    return f"{_objective(bead)}\n{_field(bead, 'acceptance')}"


def _field(bead: Bead, name: str) -> str:
    value = bead.document().get(name)
    return value if isinstance(value, str) else ""


_MAX_ENCODED = 256
"""How many texts without a vector, as the plugin stores them, one call encodes: a few seconds, once."""


def answer(call: Call, verb: MemoryVerb) -> int:
    """Open the memory, run the verb, print the result.

    Raises:
        CliError: the verb cannot run; says why and what to do.
    """
    name = call.options.verb
    if verb.writes and call.read_only:
        raise CliError(f"memory {name} would change the memory, and --read-only is set", "Run it without --read-only.")
    try:
        with _database(call) as path, _open(call, verb, path) as memory:
            if verb.compares and not memory.read_only and memory.path.exists():
                with suppress(
                    DatabaseReadOnly
                ):  # if vectors cannot be stored, only memories that have one are compared
                    memory.embed(_MAX_ENCODED)
            document = _OPERATIONS[name](call, memory) | ({"dry_run": True} if _on_copy(call) else {})
    except MemoryFault as fault:
        raise CliError(clean_line(fault.message, 600), fault.advice) from None
    if call.json:
        call.emit({"verb": name, **document})
    else:
        for line in report.lines(call, name, document):
            call.print(line)
        if _on_copy(call):
            call.print(call.paint("nothing was changed (--dry-run)", "muted"))
    # what was asked for was not done: nothing stored, or a task that is blocked and not delivered
    return 1 if document.get("status") == "rejected" or not document.get("as_reported", True) else 0


def _on_copy(call: Call) -> bool:
    """Whether this is a dry run on a copy that is then discarded."""
    return bool(getattr(call.options, "on_copy", False))


@contextmanager
def _database(call: Call) -> Iterator[Path]:
    """The project's memory, or with --dry-run a temporary copy."""
    path = database_path(locate(call))
    if not _on_copy(call):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="helix-memory-") as folder:
        copy = Path(folder, path.name)
        if path.exists():
            # If no process has it open, SQLite would leave two files beside it, even after reading only.
            how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
            ours = connect(path, timeout=BUSY_SECONDS, how=how, triggers=TRIGGERS)
            with closing(ours), closing(connect(copy, timeout=BUSY_SECONDS)) as made:
                ours.backup(made)
        yield copy


def _open(call: Call, verb: MemoryVerb, path: Path) -> MemoryStore:
    loaded = load_encoder() if verb.encodes else None
    if loaded is not None:
        hint_once(call, loaded)

    changes = verb.writes or verb.may_write(call.options)
    # reading must work even if the file or its folder cannot be written
    if path.exists() and not (changes or call.read_only):
        return look_into(path, loaded, clock=call.clock, teacher=teacher_here())
    # only a verb that writes creates a database
    if path.exists() or (changes and not call.read_only):
        return open_memory(path, loaded, read_only=call.read_only, clock=call.clock, teacher=teacher_here())
    if verb.looks or changes:
        return open_memory(path, loaded, empty=True, clock=call.clock)
    raise DatabaseMissing(f"no memory here: there is no {path}", "`helix-tui memory store` creates one.")


def _store(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    stored = memory.store(options.trigger, options.resolution, options.type, options.source, attempt=options.task)
    return stored.document()


def _recall(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    found = memory.recall(
        options.query,
        options.type,
        options.limit,
        options.min_effectiveness,
        files=options.files,
        expand=options.expand,
        gate=options.gate,
        ranker=options.ranker,
        waiting=options.all or memory.teacher == "person",
    )
    return {"query": options.query, **found.document()}


def _get(call: Call, memory: MemoryStore) -> dict[str, Any]:
    asked = call.options.name
    found = memory.get(asked) or memory.successor(asked)
    if found is None:
        raise CliError(f"no memory “{clean_line(call.options.name, 80)}”", "`helix-tui memory list` names them all.")
    return {
        **found.document(),
        "supersedes": "" if memory.get(asked) else asked,
        "revisions": [each.document() for each in memory.revisions(found.name)],
        "variants": [
            {"trigger": trigger, "resolution": resolution, "source": source}
            for trigger, resolution, source in memory.variants(found.name)
        ],
        "edges": [edge.document() for edge in memory.edges(found.name)],
        "outcomes": [outcome.document() for outcome in memory.outcomes(found.name)],
        "injections": [
            {
                key: value
                for key, value in each.document().items()
                if key in ("id", "at", "attempt", "bead", "agent", "objective", "mode", "ranker")
            }
            for each in memory.injections(found.name)
        ],
    }


def _list(call: Call, memory: MemoryStore) -> dict[str, Any]:
    every = memory.list(call.options.type)
    limit = call.options.limit
    shown = every[:limit] if limit > 0 else every
    return {"total": len(every), "memories": [each.document() for each in shown]}


def _feedback(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    report = memory.feedback(
        names("--injected", options.injected),
        names("--utilized", options.utilized),
        options.verified,
        attempt=options.task,
        kind=options.kind,
        revise=options.revise,
    )
    return report.document()


def _edge(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    return memory.relate(options.from_name, options.to_name, options.rel_type, options.weight).document()


def _edges(call: Call, memory: MemoryStore) -> dict[str, Any]:
    found = memory.edges(call.options.name, call.options.rel_type)
    return {"edges": [edge.document() for edge in found], "missing": _unknown(memory, call.options.name)}


def _connected(call: Call, memory: MemoryStore) -> dict[str, Any]:
    found = memory.connected(call.options.name, call.options.max_hops)
    name = call.options.name
    return {"name": name, "connected": [each.document() for each in found], "missing": _unknown(memory, name)}


def _unknown(memory: MemoryStore, name: str) -> list[str]:
    """The name if no memory has it: an empty answer alone would not say so."""
    return [name] if name and memory.get(name) is None else []


def _suggest(call: Call, memory: MemoryStore) -> dict[str, Any]:
    found = memory.suggest_edges(call.options.name, call.options.limit)
    return {
        "mode": memory.mode,
        "detail": memory.detail,
        "suggestions": [each.document() for each in found],
        "missing": _unknown(memory, call.options.name),
    }


def _similar(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    text = options.trigger or options.named_trigger
    if not text.strip():
        raise CliError("no text to compare with", "For example: helix-tui memory similar-recent TEXT", 2)
    found = memory.similar_recent(text, options.threshold, options.days, options.type)
    return {"mode": memory.mode, "detail": memory.detail, "similar": [each.document() for each in found]}


def _chunk(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    return memory.chunk(options.task, options.outcome, options.approach, options.source).document()


def _assess(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    history = None if options.history is None else names("--history", options.history)
    found = memory.assess(options.task, options.approach, history).document()
    return {**found, "mode": memory.mode, "detail": memory.detail}


def _decay(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    if not options.apply:
        return memory.decay(options.days, options.min_uses).document()
    change, found = MemoryChanges(memory).fade(options.days, options.min_uses)
    return found.document() | _change(change)


def _prune(call: Call, memory: MemoryStore) -> dict[str, Any]:
    options = call.options
    if options.dry_run or call.read_only:
        return memory.prune(options.threshold, options.min_uses, apply=False).document()
    change, found = MemoryChanges(memory).prune(options.threshold, options.min_uses)
    return found.document() | _change(change)


def _change(change: MemoryChange | None) -> dict[str, Any]:
    """The entry that `memory undo` reverts; None if nothing was changed."""
    return {"done": None if change is None else change.document()}


def _consolidate(call: Call, memory: MemoryStore) -> dict[str, Any]:
    return memory.consolidate(call.options.threshold).document()


def _health(call: Call, memory: MemoryStore) -> dict[str, Any]:
    return {**memory.health().document(), "path": str(memory.path)}


def _embed(call: Call, memory: MemoryStore) -> dict[str, Any]:
    done = memory.embed(call.options.limit or None)
    return {"embedded": done, "mode": memory.mode, "detail": memory.detail}


def _learn(call: Call, memory: MemoryStore) -> dict[str, Any]:
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


def _proposals(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """List the waiting lessons, and the memories of agents that wait; accept or decline some."""
    options = call.options
    if options.action == "list":
        return {"proposals": [each.document() for each in waiting_lessons(memory)]}
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
        "proposals": [each.document() for each in waiting_lessons(memory)],
    }


def _propose_by_hand(call: Call, memory: MemoryStore) -> dict[str, Any]:
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


def _undo(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Undo the last change that a person made to the memory."""
    memory_change = MemoryChanges(memory).undo()
    if memory_change is None:
        return {"undone": None, "why": "nothing to undo in the memory"}
    return {"undone": memory_change.document()}


def _chosen_lessons(words: list[str], waiting: list[Proposal]) -> list[Proposal]:
    if words == ["all"]:
        return waiting
    by_number = {each.ref: each for each in waiting}
    unknown = [word for word in words if word not in by_number]
    if unknown or not words:
        what = f"no lesson {clean_line(unknown[0], 40)} waits" if unknown else "no lesson was given"
        raise CliError(what, "`helix-tui memory proposals` numbers them; `all` names all.", 2)
    return [by_number[word] for word in words]


_OPERATIONS: dict[str, Callable[[Call, MemoryStore], dict[str, Any]]] = {
    "store": _store,
    "recall": _recall,
    "get": _get,
    "edit": report.edit,
    "remove": report.remove,
    "supersede": report.supersede,
    "list": _list,
    "inject": inject,
    "feedback": _feedback,
    "edge": _edge,
    "relate": _edge,
    "edges": _edges,
    "connected": _connected,
    "suggest-edges": _suggest,
    "similar-recent": _similar,
    "chunk": _chunk,
    "assess": _assess,
    "decay": _decay,
    "prune": _prune,
    "consolidate": _consolidate,
    "learn": _learn,
    "proposals": _proposals,
    "undo": _undo,
    "plan": plans.plan,
    "exploration": plans.exploration,
    "workspace": plans.workspace,
    "health": _health,
    "embed": _embed,
}
