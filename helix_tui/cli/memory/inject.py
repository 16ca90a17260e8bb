"""``memory inject``: the block for an agent, written into the bead that the agent will be given.

DDx makes an agent's prompt from a bead's description (docs/formats/ddx.md), so that is where the block goes,
between two marks of its own; a second call replaces it. The change is one of curation: journalled, and undo
takes it back.
"""

from __future__ import annotations

from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import curator_of, told
from helix_tui.cli.loading import find_bead
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.memory import Injection, MemoryStore
from helix_tui.core.memory.recall.injection import with_block, without_block
from helix_tui.core.memory.store.paths import mentioned


def inject(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Choose what to show; with --bead write it there, then enter it into the ledger."""
    options = call.options
    if not options.bead:
        if not options.objective.strip() and not options.files:
            raise CliError("say what to do", "`helix-tui memory inject --objective TEXT`, or --bead ID", 2)
        record = not (options.dry_run or call.read_only)
        return _choose(call, memory, options.objective, record=record).document()
    with told():
        curator = curator_of(call)
        queue = curator.look().queue
        bead = queue.beads[find_bead(queue, options.bead)]
        chosen = _choose(call, memory, options.objective or _objective(bead), bead, record=False)
        described = with_block(_field(bead, "description"), chosen.text)
        document = {**chosen.document(), "commands": [], "journal_id": None, "written": False}
        if options.dry_run:
            return document
        document |= _write(call, curator, bead, described)
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
    wanted = [operations.assign(bead.id, {"description": described})]
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
    """What a bead is about: its title, and its text without a block of ours."""
    return f"{bead.title}\n{without_block(_field(bead, 'description'))}"


def _text(bead: Bead) -> str:
    return f"{_objective(bead)}\n{_field(bead, 'acceptance')}"


def _field(bead: Bead, name: str) -> str:
    value = bead.document().get(name)
    return value if isinstance(value, str) else ""
