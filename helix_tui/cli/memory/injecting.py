"""What an agent is shown: the block of memories, written into the bead that the agent will be given."""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.editing.change import clear_errors, curator_of
from helix_tui.cli.loading import find_bead
from helix_tui.cli.memory.verb import FILES, RANKER, Document, at_most, mode_line, option, unless_dry_run, verb
from helix_tui.core.beads.record import Bead
from helix_tui.core.editing import operations
from helix_tui.core.editing.execute.curator import Curator
from helix_tui.core.ground.text import clean_block, clean_line, fit
from helix_tui.core.memory.injection import with_block, without_block
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import Injection
from helix_tui.core.memory.store.indexing import mentioned


def _injected(call: Call, document: Document) -> Iterator[str]:
    if document["text"]:
        yield clean_block(document["text"])
    else:
        prior = document["signal"] == "NO_PRIOR_MEMORY"
        yield "no memories yet" if prior else "no memory matches"
    for name, reason in document["withheld"].items():
        yield call.paint(f"withheld {clean_line(name)}: {clean_line(reason)}", "waiting")
    for command in document.get("commands", ()):
        yield call.paint(fit(clean_line(" ".join(map(str, command))), call.paint.width).rstrip(), "muted")
    if document.get("journal_id"):
        yield call.paint(f"journal {document['journal_id']} · undo with `helix-tui undo`", "muted")
    yield mode_line(call, document)


@verb(
    "inject",
    "print what an agent should know, and record it in the ledger",
    option("--bead", default="", metavar="ID", help="write the block into this bead"),
    option("--objective", default="", help="what to do (default: the bead's own text)"),
    option("--task", default="", metavar="ID", help="the attempt that will see it"),
    option("--agent", default="", help="who will see it"),
    option("--kind", default="", help="kind of task (default: the bead's type)"),
    at_most(8),
    FILES,
    RANKER,
    option("--dry-run", action="store_true", help="show the block; change and record nothing"),
    may_write=unless_dry_run,
    compares=True,
    looks=True,
    lines=_injected,
)
def _inject(call: Call, memory: MemoryStore) -> Document:
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


def _write(call: Call, curator: Curator, bead: Bead, described: str) -> Document:
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
