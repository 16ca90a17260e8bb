"""How memories are related: edges, what they lead to, and what resembles a text."""

from __future__ import annotations

from collections.abc import Iterator

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.memory.verb import NAME, Document, at_most, option, verb
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.memory.memory_store import MemoryStore


def _related(call: Call, document: Document) -> Iterator[str]:
    if document["status"] == "rejected":
        yield call.paint(f"rejected: {clean_line(document['reason'])}", "error")
    else:
        ends = f"{clean_line(document['from'])} {document['rel_type']} {clean_line(document['to'])}"
        yield f"{document['status']} {ends} ({document['weight']})"


@verb(
    "edge relate",
    "relate two memories",
    option("--from", dest="from_name", required=True, metavar="NAME|ID"),
    option("--to", dest="to_name", required=True, metavar="NAME|ID"),
    option(
        "--type",
        dest="rel_type",
        required=True,
        help="co_occurs, causes, solves or similar; led_to and supersedes are accepted too",
    ),
    option("--weight", type=float, default=1.0),
    writes=True,
    encodes=False,
    lines=_related,
)
def _edge(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    return memory.relate(options.from_name, options.to_name, options.rel_type, options.weight).document()


def _edge_lines(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for edge in document["edges"]:
        ends = f"{clean_line(edge['from_name'])}  {edge['rel_type']}  {clean_line(edge['to_name'])}"
        yield f"{ends}  {edge['weight']}"
    yield counted(len(document["edges"]), "edge")


@verb(
    "edges",
    "relations of a memory, or all",
    option("name", metavar="NAME|ID", nargs="?", default=""),
    option("--type", dest="rel_type", default=""),
    encodes=False,
    looks=True,
    lines=_edge_lines,
)
def _edges(call: Call, memory: MemoryStore) -> Document:
    found = memory.edges(call.options.name, call.options.rel_type)
    return {"edges": [edge.document() for edge in found], "missing": _unknown(memory, call.options.name)}


def _near(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for each in document.get("similar") or document.get("connected") or ():
        head = f"{each['similarity']:.3f}" if "similarity" in each else f"{each['_hop']} {each['_via']}"
        yield f"{head}  {each['type']}  {clean_line(each['name'])}"
    if not (document.get("similar") or document.get("connected")):
        yield "nothing"


@verb(
    "connected",
    "memories reached through relations",
    NAME,
    option("--max-hops", type=int, default=2),
    encodes=False,
    lines=_near,
)
def _connected(call: Call, memory: MemoryStore) -> Document:
    found = memory.connected(call.options.name, call.options.max_hops)
    name = call.options.name
    return {"name": name, "connected": [each.document() for each in found], "missing": _unknown(memory, name)}


@verb(
    "similar-recent",
    "memories of the last days that resemble a text",
    option("trigger", metavar="TEXT", nargs="?", default=""),
    option("--trigger", dest="named_trigger", default="", help="the same as TEXT"),
    option("--threshold", type=float, default=None, help="minimum similarity (default 0.65)"),
    option("--days", type=float, default=7),
    option("--type", default=None),
    compares=True,
    looks=True,
    lines=_near,
)
def _similar(call: Call, memory: MemoryStore) -> Document:
    options = call.options
    text = options.trigger or options.named_trigger
    if not text.strip():
        raise CliError("no text to compare with", "For example: helix-tui memory similar-recent TEXT", 2)
    found = memory.similar_recent(text, options.threshold, options.days, options.type)
    return {"mode": memory.mode, "detail": memory.detail, "similar": [each.document() for each in found]}


def _suggested(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for each in document["suggestions"]:
        yield f"{clean_line(each['from'])}  {each['rel_type']}  {clean_line(each['to'])}  {each['reason']}"
    if not document["suggestions"]:
        yield "nothing to suggest"


@verb(
    "suggest-edges",
    "relations that may be worth adding",
    NAME,
    at_most(5),
    compares=True,
    lines=_suggested,
)
def _suggest(call: Call, memory: MemoryStore) -> Document:
    found = memory.suggest_edges(call.options.name, call.options.limit)
    return {
        "mode": memory.mode,
        "detail": memory.detail,
        "suggestions": [each.document() for each in found],
        "missing": _unknown(memory, call.options.name),
    }


def _unknown(memory: MemoryStore, name: str) -> list[str]:
    """The name if no memory has it: an empty answer alone would not say so."""
    return [name] if name and memory.get(name) is None else []


def _missing(call: Call, document: Document) -> Iterator[str]:
    for name in document.get("missing", ()):
        yield call.paint(f"no memory “{clean_line(name, 80)}” · `helix-tui memory list` names them", "waiting")
