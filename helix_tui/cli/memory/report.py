"""What ``helix-tui memory`` prints as text, from the same document that ``--json`` prints.

Also the verbs with which a person corrects (``edit``, ``supersede``, ``remove``; shown first, undone by ``undo``), and
doctor's check of the database and the embedder.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from helix_tui.cli.call import Call, CliError, DoctorCheck, columns
from helix_tui.cli.memory.plans import (
    print_plan,
    print_workspaces,
)
from helix_tui.core.embedding.minilm import Loaded, load_encoder
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, counted, fit
from helix_tui.core.memory.changes import MemoryChange, MemoryChanges
from helix_tui.core.memory.memory_store import MemoryStore, open_memory
from helix_tui.core.memory.records import DatabaseMissing, MemoryEdit, MemoryFault
from helix_tui.core.memory.store.database import database_path, guarded


def edit(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Correct a memory, or restore an older revision of it."""
    options = call.options
    change = MemoryEdit(options.trigger, options.resolution, options.type, options.source, options.revision)
    if change == MemoryEdit():
        raise CliError(
            "nothing to correct was given", "Give --resolution, --trigger, --type, --source or --revision.", 2
        )
    if _looks(call):
        return _document(memory.edit(options.name, change, apply=False).document(), None)
    memory_change, done = MemoryChanges(memory).edit(options.name, change)
    return _document(done.document(), memory_change)


def supersede(call: Call, memory: MemoryStore) -> dict[str, Any]:
    """Replace one memory by another."""
    options = call.options
    if _looks(call):
        return _document(memory.supersede(options.name, options.by, apply=False).document(), None)
    memory_change, done = MemoryChanges(memory).supersede(options.name, options.by)
    return _document(done.document(), memory_change)


def remove(call: Call, memory: MemoryStore) -> dict[str, Any]:
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
    return {"removed": names if applied else [], "candidates": names} | _document({}, memory_change)


def _looks(call: Call) -> bool:
    return bool(call.options.dry_run or call.read_only)


def _document(found: dict[str, Any], memory_change: MemoryChange | None) -> dict[str, Any]:
    return {
        **found,
        "applied": memory_change is not None,
        "done": None if memory_change is None else memory_change.document(),
    }


def print_corrected(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``edit`` and ``supersede`` as text: before, after, and what happens to the counts."""
    before, after = document["before"], document["after"]
    yield call.paint(clean_line(after["name"]), "bold")
    for key in ("type", "trigger", "resolution", "source"):
        if before[key] != after[key]:
            yield call.paint(f"- {key:<11}{clean_line(before[key], 1000)}", "error")
            yield call.paint(f"+ {key:<11}{clean_line(after[key], 1000)}", "success")
    yield document["sentence"]
    yield from _ending(call, document)


def print_removed(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``remove`` as text."""
    word = "removed" if document["applied"] else "would be removed"
    for name in document["candidates"]:
        yield f"{word}  {clean_line(name)}"
    yield counted(len(document["candidates"]), "memory", "memories")
    yield from _ending(call, document)


def _ending(call: Call, document: dict[str, Any]) -> Iterator[str]:
    if document["done"]:
        yield "`helix-tui memory undo` undoes it"
    elif document.get("status") != "unchanged":
        yield call.paint("nothing was changed", "muted")


Document = dict[str, Any]

_ROLES = {"failure": "error", "systemic": "attention", "pattern": "success"}


def lines(call: Call, verb: str, document: Document) -> Iterator[str]:
    """The lines of one answer."""
    yield from _WAYS.get(verb, _plain)(call, document)


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
    yield _mode(call, document)


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
    yield _mode(call, document)


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
    yield _mode(call, document)


def _edges(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for edge in document["edges"]:
        ends = f"{clean_line(edge['from_name'])}  {edge['rel_type']}  {clean_line(edge['to_name'])}"
        yield f"{ends}  {edge['weight']}"
    yield counted(len(document["edges"]), "edge")


def _near(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for each in document.get("similar") or document.get("connected") or ():
        head = f"{each['similarity']:.3f}" if "similarity" in each else f"{each['_hop']} {each['_via']}"
        yield f"{head}  {each['type']}  {clean_line(each['name'])}"
    if not (document.get("similar") or document.get("connected")):
        yield "nothing"


def _missing(call: Call, document: Document) -> Iterator[str]:
    for name in document.get("missing", ()):
        yield call.paint(f"no memory “{clean_line(name, 80)}” · `helix-tui memory list` names them", "waiting")


def _suggested(call: Call, document: Document) -> Iterator[str]:
    yield from _missing(call, document)
    for each in document["suggestions"]:
        yield f"{clean_line(each['from'])}  {each['rel_type']}  {clean_line(each['to'])}  {each['reason']}"
    if not document["suggestions"]:
        yield "nothing to suggest"


def _pruned(call: Call, document: Document) -> Iterator[str]:
    word = "removed" if document["applied"] else "would be removed"
    for name in document["candidates"]:
        yield f"{word}  {clean_line(name)}"
    now = "remain" if document["applied"] else "are there"
    yield f"{len(document['candidates'])} {word}, {document['remaining']} {now}{_way_back(document)}"


def _decayed(call: Call, document: Document) -> Iterator[str]:
    for name in document["candidates_for_decay"]:
        yield clean_line(name)
    done = "faded halfway to neutral" if document["applied"] else "dormant (nothing was changed)"
    yield f"{document['count']} {done}{_way_back(document)}"


def _way_back(document: Document) -> str:
    return " · `helix-tui memory undo` undoes it" if document.get("done") else ""


def _related(call: Call, document: Document) -> Iterator[str]:
    if document["status"] == "rejected":
        yield call.paint(f"rejected: {clean_line(document['reason'])}", "error")
    else:
        ends = f"{clean_line(document['from'])} {document['rel_type']} {clean_line(document['to'])}"
        yield f"{document['status']} {ends} ({document['weight']})"


def _assessed(call: Call, document: Document) -> Iterator[str]:
    yield f"{call.paint(document['recommendation'], 'bold')}: {clean_line(document['reason'], 300)}"
    if document["suggested_pivot"]:
        yield f"instead: {clean_line(document['suggested_pivot'], 300)}"


def _plain(call: Call, document: Document) -> Iterator[str]:
    for key, value in document.items():
        yield f"{key}: {clean_line(value, 300)}"


def _share(document: Document) -> str:
    if not document["tried"]:
        return "unproven"
    low, high = document["interval"]
    n = sum(document["counted"].values())
    note = "" if any(document["verified"].values()) else ", unverified"
    return f"{document['effectiveness']:.0%} ({low:.0%}–{high:.0%}, n {n:g}{note})"


def _signed(counts: Document) -> str:
    return f"+{counts['helped']} −{counts['failed']}"


def _mode(call: Call, document: Document) -> str:
    return call.paint(f"{document['mode']}: {clean_line(document['detail'], 300)}", "muted")


def _learned(call: Call, document: dict[str, Any]) -> Iterator[str]:
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


MAX_LEARNED = 20
"""Attempts listed as text."""


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


MAX_CAUSES = 8
"""Causes listed with their number of lessons."""


def _waiting(call: Call, document: dict[str, Any]) -> Iterator[str]:
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


def _undone(call: Call, document: dict[str, Any]) -> Iterator[str]:
    """``undo`` as text."""
    memory_change = document["undone"]
    yield f"undone: {clean_line(memory_change['title'], 200)}" if memory_change else document["why"]


_WAYS: dict[str, Callable[[Call, Document], Iterator[str]]] = {
    "store": _stored,
    "chunk": _stored,
    "recall": _recalled,
    "edit": print_corrected,
    "supersede": print_corrected,
    "remove": print_removed,
    "list": _listed,
    "get": _got,
    "inject": _injected,
    "feedback": _credited,
    "health": _healthy,
    "learn": _learned,
    "proposals": _waiting,
    "undo": _undone,
    "plan": print_plan,
    "workspace": print_workspaces,
    "edges": _edges,
    "connected": _near,
    "similar-recent": _near,
    "suggest-edges": _suggested,
    "prune": _pruned,
    "decay": _decayed,
    "edge": _related,
    "relate": _related,
    "assess": _assessed,
}


def examine_memory(project: Project) -> Iterator[DoctorCheck]:
    """Check the database and the embedder; nothing is changed or created."""
    loaded = load_encoder()
    yield _database(project, loaded)
    yield _embedder(loaded)


def _database(project: Project, loaded: Loaded) -> DoctorCheck:
    path = database_path(project)
    try:
        with guarded(path), open_memory(path, loaded, read_only=True, busy_seconds=2) as memory:
            health = memory.health()
            # one fault is enough
            damage = memory.read("PRAGMA quick_check(1)")[0][0]
    except DatabaseMissing:
        return DoctorCheck("database", None, f"no {path}; storing the first memory creates it")
    except (MemoryFault, sqlite3.Error) as fault:
        fix = fault.advice if isinstance(fault, MemoryFault) else ""
        return DoctorCheck("database", False, str(fault), fix)
    detail = (
        f"{path}, {counted(health.total, 'memory', 'memories')}, {health.with_feedback} with feedback"
        f" ({health.with_verified_feedback} verified), {counted(health.injections, 'injection')}"
    )
    if damage != "ok":
        return DoctorCheck("database", False, f"{detail}; damaged: {damage}", "Replace it with a backup.")
    if health.without_vector:
        return DoctorCheck(
            "database",
            False,
            f"{detail}; {health.without_vector} without a vector of this model",
            "`helix-tui memory embed` makes them; until then they are found by words.",
        )
    return DoctorCheck("database", True, detail)


def _embedder(loaded: Loaded) -> DoctorCheck:
    have = "installed" if find_spec("sentence_transformers") else "not installed"
    detail = f"{loaded.detail}; sentence-transformers is {have}"
    if loaded.encoder is None:
        return DoctorCheck("embedder", None, f"{detail}; memory and ask search by words", loaded.fix)
    return DoctorCheck("embedder", True, detail)
