"""Single memories: store, find, show, correct and remove them."""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.cli.call import Call, CliError, columns
from helix_tui.cli.memory.verb import (
    FILES,
    NAME,
    PREVIEW,
    RANKER,
    Document,
    at_most,
    mode_line,
    option,
    unless_dry_run,
    verb,
)
from helix_tui.core.ground.text import clean_line, counted, fit
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import MemoryEdit

_ROLES = {"failure": "error", "systemic": "attention", "pattern": "success"}


def _stored(call: Call, document: Document) -> Iterator[str]:
    status, name = document["status"], clean_line(document["name"])
    role = {"rejected": "error", "skipped": "waiting"}.get(status, "success")
    yield f"{call.paint(status, role)} {name}" + (f" ({document['reason']})" if document["reason"] else "")
    if document.get("waits"):
        yield call.paint("waits until a person accepts it: `helix-tui memory proposals`", "waiting")
    if document.get("promoted"):
        yield call.paint("systemic now: This has occurred 3+ times. Consider architectural changes.", "attention")
    if document.get("similar"):
        yield f"like it: {', '.join(map(clean_line, document['similar']))}"


@verb(
    "store",
    "remember a failure or a pattern",
    option("--trigger", required=True, help="the situation, 10 characters or more"),
    option("--resolution", required=True, help="what to do in it"),
    option("--type", default="failure", help="failure, pattern or systemic (default: failure)"),
    option("--source", default="", help="where it comes from; user-provided is never merged away or pruned"),
    option("--task", default="", metavar="ID", help="the bead or attempt that ran into it, counted once"),
    writes=True,
    compares=True,
    lines=_stored,
)
def _store(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    stored = memory.store(options.trigger, options.resolution, options.type, options.source, attempt=options.task)
    return stored.document()


@verb(
    "chunk",
    "remember how a task succeeded",
    option("--task", required=True, help="the objective"),
    option("--outcome", required=True, help="only text that begins with “success” is remembered"),
    option("--approach", required=True, help="what worked"),
    option("--source", default="chunked"),
    writes=True,
    compares=True,
    lines=_stored,
)
def _chunk(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    return memory.chunk(options.task, options.outcome, options.approach, options.source).document()


def _recalled(call: Call, document: Document) -> Iterator[str]:
    for hit in document["memories"]:
        terms = f"relevance {hit['relevance']:.2f} · effectiveness {_share(hit)} · recency {hit['recency']:.2f}"
        if hit["bonus"]:
            terms += f" · edges +{hit['bonus']:.2f}"
        if hit["files"]:
            terms += f" · {', '.join(map(clean_line, hit['files']))}"
        yield (
            f"{hit['score']:.3f}  {call.paint(hit['type'], _ROLES.get(hit['type'], 'muted'))}"
            f"  {call.paint(clean_line(hit['name']), 'bold')}"
        )
        yield f"       {clean_line(hit['trigger'], 300)} -> {clean_line(hit['resolution'], 400)}"
        if hit["provenance"]:
            yield f"       {call.paint(hit['provenance'], 'muted' if hit['accepted'] else 'waiting')}"
        if hit.get("note"):
            yield f"       {call.paint(hit['note'], 'attention')}"
        yield f"       {call.paint(terms, 'muted')}"
    if not document["memories"]:
        yield "no memories yet" if document["signal"] == "NO_PRIOR_MEMORY" else "nothing matches"
    yield mode_line(call, document)


@verb(
    "recall",
    "find memories by meaning, by names in code and by file names",
    option("query", metavar="QUERY", help="what you are about to do, or names of code"),
    option("--type", help="only failure, pattern or systemic"),
    at_most(5),
    option("--min-effectiveness", type=float, default=0.0, metavar="0-1"),
    FILES,
    option("--expand", action="store_true", help="follow edges to neighbours"),
    option("--gate", type=float, default=0.0, metavar="0-1", help="minimum relevance (default: none)"),
    option("--all", action="store_true", help="for agents: what waits for acceptance, too"),
    RANKER,
    compares=True,
    looks=True,
    lines=_recalled,
)
def _recall(call: Call, memory: MemoryStore) -> Document:
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


def _got(call: Call, document: Document) -> Iterator[str]:
    label = 12
    yield call.paint(clean_line(document["name"]), "bold")
    yield f"{'type':<{label}}{document['type']} · id {document['id']} · revision {document['revision']}"
    if document["provenance"]:
        fix = "" if document["accepted"] else ": `helix-tui memory proposals`"
        yield f"{'provenance':<{label}}{document['provenance']}{fix}"
    if document["supersedes"]:
        yield f"{'supersedes':<{label}}{clean_line(document['supersedes'])}"
    yield f"{'trigger':<{label}}{clean_line(document['trigger'], 1000)}"
    yield f"{'resolution':<{label}}{clean_line(document['resolution'], 1000)}"
    both = " · ".join(f"{kind} {_signed(document[kind])}" for kind in ("verified", "unverified"))
    yield f"{'effect':<{label}}{_share(document)} · {both}"
    if document.get("note"):
        yield f"{'note':<{label}}{call.paint(document['note'], 'attention')}"
    yield f"{'seen':<{label}}{counted(document['seen'], 'time')}, shown {counted(document['shown'], 'time')}"
    made = document["created_at"] or "at an unknown time"
    yield f"{'used':<{label}}{document['last_used'] or 'never'} · made {made}"
    for older in document["revisions"]:
        effect = _signed(older["counted"])
        yield (
            f"{'before':<{label}}revision {older['revision']}, {older['reason']} {older['replaced_at']}"
            f" ({effect}): {clean_line(older['resolution'], 400)}"
        )
    for edge in document["edges"]:
        ends = f"{clean_line(edge['from_name'])} {edge['rel_type']} {clean_line(edge['to_name'])}"
        yield f"{'edge':<{label}}{ends} ({edge['weight']})"
    for outcome in document["outcomes"][:10]:
        said = outcome["verdict"] or "unverified"
        claimed = "claimed" if outcome["claimed"] else "not claimed"
        yield (
            f"{'outcome':<{label}}{outcome['at']} {said}, {claimed}:"
            f" +{outcome['helped']} −{outcome['failed']} {clean_line(outcome['attempt'], 60)}"
        )


@verb(
    "get",
    "one memory with its history",
    option("name", metavar="NAME|ID"),
    encodes=False,
    lines=_got,
)
def _get(call: Call, memory: MemoryStore) -> Document:
    asked = call.options.name
    found = memory.get(asked) or memory.successor(asked)
    if found is None:
        raise CliError(f"no memory “{clean_line(call.options.name, 80)}”", "`helix-tui memory list` names them all.")
    return {
        **found.document(),
        "supersedes": "" if memory.get(asked) else asked,
        "revisions": [revision.document() for revision in memory.revisions(found.name)],
        "variants": [
            {"trigger": trigger, "resolution": resolution, "source": source}
            for trigger, resolution, source in memory.variants(found.name)
        ],
        "edges": [edge.document() for edge in memory.edges(found.name)],
        "outcomes": [outcome.document() for outcome in memory.outcomes(found.name)],
        "injections": [
            {
                key: value
                for key, value in injection.document().items()
                if key in ("id", "at", "attempt", "bead", "agent", "objective", "mode", "ranker")
            }
            for injection in memory.injections(found.name)
        ],
    }


def _listed(call: Call, document: Document) -> Iterator[str]:
    rows = [
        (
            *(str(each["id"]), each["type"], _share(each), _signed(each["counted"]), clean_line(each["name"])),
            "" if each["accepted"] else each["provenance"],
        )
        for each in document["memories"]
    ]
    for line in columns(rows, right=(0, 2)):
        yield fit(line, call.paint.width).rstrip()
    yield counted(document["total"], "memory", "memories")


@verb(
    "list",
    "all memories, newest first",
    option("--type", default=None),
    option("--limit", type=int, default=0, help="only the newest N (default: all)"),
    encodes=False,
    looks=True,
    lines=_listed,
)
def _list(call: Call, memory: MemoryStore) -> Document:
    every = memory.list(call.options.type)
    limit = call.options.limit
    shown = every[:limit] if limit > 0 else every
    return {"total": len(every), "memories": [each.document() for each in shown]}


def _share(document: Document) -> str:
    if not document["tried"]:
        return "unproven"
    low, high = document["interval"]
    n = sum(document["counted"].values())
    note = "" if any(document["verified"].values()) else ", unverified"
    return f"{document['effectiveness']:.0%} ({low:.0%}–{high:.0%}, n {n:g}{note})"


def _signed(counts: Document) -> str:
    return f"+{counts['helped']} −{counts['failed']}"


def _corrected(call: Call, document: Document) -> Iterator[str]:
    """``edit`` and ``supersede`` as text: before, after, and what happens to the counts."""
    before, after = document["before"], document["after"]
    yield call.paint(clean_line(after["name"]), "bold")
    for key in ("type", "trigger", "resolution", "source"):
        if before[key] != after[key]:
            yield call.paint(f"- {key:<11}{clean_line(before[key], 1000)}", "error")
            yield call.paint(f"+ {key:<11}{clean_line(after[key], 1000)}", "success")
    yield document["sentence"]
    yield from _ending(call, document)


@verb(
    "edit",
    "correct a memory; what it said before stays in its history",
    NAME,
    option("--trigger", help="the situation, in other words"),
    option("--resolution", help="what to do in it instead"),
    option("--type", help="failure, pattern or systemic"),
    option("--source", help="where it comes from; user-provided protects it"),
    option("--revision", type=int, metavar="N", help="restore this older revision"),
    PREVIEW,
    may_write=unless_dry_run,
    lines=_corrected,
)
def _edit(call: Call, memory: MemoryStore) -> Document:
    """Correct a memory, or restore an older revision of it."""
    options = call.options
    change = MemoryEdit(options.trigger, options.resolution, options.type, options.source, options.revision)
    if change == MemoryEdit():
        raise CliError(
            "nothing to correct was given", "Give --resolution, --trigger, --type, --source or --revision.", 2
        )
    if _looks(call):
        return _with_change(memory.edit(options.name, change, apply=False).document(), None)
    memory_change, done = MemoryChanges(memory).edit(options.name, change)
    return _with_change(done.document(), memory_change)


@verb(
    "supersede",
    "replace one memory by another",
    NAME,
    option("--by", required=True, metavar="NAME|ID", help="the memory that replaces it"),
    PREVIEW,
    may_write=unless_dry_run,
    encodes=False,
    lines=_corrected,
)
def _supersede(call: Call, memory: MemoryStore) -> Document:
    """Replace one memory by another."""
    options = call.options
    if _looks(call):
        return _with_change(memory.supersede(options.name, options.by, apply=False).document(), None)
    memory_change, done = MemoryChanges(memory).supersede(options.name, options.by)
    return _with_change(done.document(), memory_change)


def _removed(call: Call, document: Document) -> Iterator[str]:
    """``remove`` as text."""
    word = "removed" if document["applied"] else "would be removed"
    for name in document["candidates"]:
        yield f"{word}  {clean_line(name)}"
    yield counted(len(document["candidates"]), "memory", "memories")
    yield from _ending(call, document)


@verb(
    "remove",
    "remove memories",
    option("names", metavar="NAME|ID", nargs="+"),
    PREVIEW,
    may_write=unless_dry_run,
    encodes=False,
    lines=_removed,
)
def _remove(call: Call, memory: MemoryStore) -> Document:
    """Remove memories with their history."""
    wanted = list(dict.fromkeys(call.options.names))
    known = {name: memory.get(name) for name in wanted}
    missing = [name for name, found in known.items() if found is None]
    if missing:
        raise CliError(
            f"no memory “{clean_line(missing[0], 80)}”; nothing was removed", "`helix-tui memory list` names them all."
        )
    names = [found.name for found in known.values() if found is not None]
    memory_change = None if _looks(call) else MemoryChanges(memory).remove([str(name) for name in wanted])
    applied = memory_change is not None
    return {"removed": names if applied else [], "candidates": names} | _with_change({}, memory_change)


def _looks(call: Call) -> bool:
    return bool(call.options.dry_run or call.read_only)


def _with_change(found: Document, memory_change: MemoryChange | None) -> Document:
    return {
        **found,
        "applied": memory_change is not None,
        "done": None if memory_change is None else memory_change.document(),
    }


def _ending(call: Call, document: Document) -> Iterator[str]:
    if document["done"]:
        yield "`helix-tui memory undo` undoes it"
    elif document.get("status") != "unchanged":
        yield call.paint("nothing was changed", "muted")
