"""What memories did, and the state of the store: outcomes, fading, pruning, merging, vectors."""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.cli.call import Call
from helix_tui.cli.memory.verb import Document, applies, mode_line, names, option, unless_dry_run, verb
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.memory_store import MemoryStore


def _credited(call: Call, document: Document) -> Iterator[str]:
    if document["duplicate"]:
        yield "already counted: nothing was changed"
        return
    kind = f"verified: {document['verdict']}" if document["verified"] else "unverified, kept apart"
    yield f"helped {document['helped']}, did not {document['unhelpful']} ({kind})"
    for key, said in (
        ("unchanged", "says nothing about"),
        ("ignored", "claimed but never shown, ignored"),
        ("outside_ledger", "not in the ledger of this task, ignored"),
        ("missing", "no such memory"),
    ):
        if document[key]:
            yield f"{said}: {', '.join(map(clean_line, document[key]))}"


@verb(
    "feedback",
    "record an outcome for the memories that were shown",
    option("--injected", metavar="JSON", default="[]", help='names that were shown: \'["a", "b"]\''),
    option("--utilized", metavar="JSON", default="[]", help="names that the agent says it used"),
    option(
        "--verified",
        choices=("passed", "failed", "partial"),
        help="what verification said; without it the counts are kept as unverified",
    ),
    option("--task", default="", metavar="ID", help="the attempt or bead, counted once"),
    option("--kind", default="", help="kind of task, for the base rate"),
    option("--revise", action="store_true", help="replace an earlier verified outcome"),
    writes=True,
    encodes=False,
    lines=_credited,
)
def _feedback(call: Call, memory: MemoryStore) -> Document:
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


def _decayed(call: Call, document: Document) -> Iterator[str]:
    for name in document["candidates_for_decay"]:
        yield clean_line(name)
    done = "faded halfway to neutral" if document["applied"] else "dormant (nothing was changed)"
    yield f"{document['count']} {done}{_way_back(document)}"


@verb(
    "decay",
    "list what is dormant",
    option("--days", type=float, default=30, help="unused for this many days (default 30)"),
    option("--min-uses", type=float, default=2, help="with fewer uses than that (default 2)"),
    option("--apply", action="store_true", help="let the effect of past success fade halfway to neutral"),
    may_write=applies,
    encodes=False,
    looks=True,
    lines=_decayed,
)
def _decay(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    if not options.apply:
        return memory.decay(options.days, options.min_uses).document()
    change, found = MemoryChanges(memory).fade(options.days, options.min_uses)
    return found.document() | _change(change)


def _pruned(call: Call, document: Document) -> Iterator[str]:
    word = "removed" if document["applied"] else "would be removed"
    for name in document["candidates"]:
        yield f"{word}  {clean_line(name)}"
    now = "remain" if document["applied"] else "are there"
    yield f"{len(document['candidates'])} {word}, {document['remaining']} {now}{_way_back(document)}"


@verb(
    "prune",
    "remove memories that do not help",
    option("--threshold", type=float, default=0.25, help="effectiveness below (default 0.25)"),
    option("--min-uses", type=float, default=3, help="with at least this many uses (default 3)"),
    option("--dry-run", action="store_true", help="show what would be removed; remove nothing"),
    may_write=unless_dry_run,
    encodes=False,
    lines=_pruned,
)
def _prune(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    if options.dry_run or call.read_only:
        return memory.prune(options.threshold, options.min_uses, apply=False).document()
    change, found = MemoryChanges(memory).prune(options.threshold, options.min_uses)
    return found.document() | _change(change)


def _way_back(document: Document) -> str:
    return " · `helix-tui memory undo` undoes it" if document.get("done") else ""


def _change(change: MemoryChange | None) -> Document:
    """The entry that `memory undo` reverts; None if nothing was changed."""
    return {"done": None if change is None else change.document()}


@verb(
    "consolidate",
    "merge memories that say nearly the same",
    option("--threshold", type=float, default=0.9, help="cosine similarity at which two memories are merged"),
    writes=True,
)
def _consolidate(call: Call, memory: MemoryStore) -> Document:
    return memory.consolidate(call.options.threshold).document()


def _healthy(call: Call, document: Document) -> Iterator[str]:
    role = "success" if document["status"] == "HEALTHY" else "waiting"
    yield call.paint(document["status"], role)
    parts = [f"{each['count']} {clean_line(name)}" for name, each in document["by_type"].items()]
    yield f"{counted(document['total'], 'memory', 'memories')}" + (f": {', '.join(parts)}" if parts else "")
    yield (
        f"{document['with_feedback']} with feedback ({document['with_verified_feedback']} verified), "
        f"effectiveness {document['effectiveness']:.0%}, {counted(document['relationships'], 'edge')}, "
        f"{counted(document['injections'], 'injection')}"
    )
    for name in document["systemic"]:
        yield call.paint(f"systemic: {clean_line(name)}", "attention")
    for issue in document["issues"]:
        yield call.paint(clean_line(issue, 300), "waiting")
    yield mode_line(call, document)


@verb(
    "health",
    "show the state of the memory store",
    looks=True,
    lines=_healthy,
)
def _health(call: Call, memory: MemoryStore) -> Document:
    return {**memory.health().document(), "path": str(memory.path)}


@verb(
    "embed",
    "give vectors to memories that lack them",
    option("--limit", type=int, default=0, help="at most N (default: all)"),
    writes=True,
)
def _embed(call: Call, memory: MemoryStore) -> Document:
    done = memory.embed(call.options.limit or None)
    return {"embedded": done, "mode": memory.mode, "detail": memory.detail}
