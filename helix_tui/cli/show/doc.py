"""``helix-tui doc``: the document graph: dependencies, stale, invalid and changed documents, and search.

ddx answers if it is installed; else ids, titles and links are read from the files, and the answer says so.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from typing import Any

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.program import add_shared
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.client import Ddx
from helix_tui.core.ddx.documents.graph import BUCKETS, GraphDocument, stale_json
from helix_tui.core.ddx.documents.source import DocumentChange, DocumentMatch, Documents, read_documents
from helix_tui.core.ground.project import Project, ddx_environment, find_ddx
from helix_tui.core.ground.text import capitalized, clean_line
from helix_tui.core.ground.time import NS, format_age, format_instant

_VERBS = {
    "graph": "every document, and what each depends on",
    "show": "one document",
    "deps": "what a document depends on",
    "dependents": "what depends on a document, directly; with --all through others too",
    "stale": "documents whose dependencies changed since they were reviewed, or were never reviewed",
    "audit": "what is wrong with the graph; exits with 1 if anything is",
    "changed": "documents that changed since beads under them were written, with dependents and beads",
    "search": "find documents by id, path, file name, title or link",
}
_WITH_NAME = ("show", "deps", "dependents", "search")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, summary in _VERBS.items():
        below = verbs.add_parser(verb, help=summary, description=f"{capitalized(summary)}.")
        if verb in _WITH_NAME:
            below.add_argument("name", metavar="TEXT" if verb == "search" else "ID", help="a document")
        if verb == "dependents":
            below.add_argument("--all", action="store_true", help="what depends on those, too")
        below.add_argument("--own", action="store_true", help="read the files without asking ddx")
        add_shared(below, below=True)


def run(call: Call) -> int:
    """Answer one question about the documents."""
    project = locate(call)
    path = None if call.options.own else find_ddx(call.ddx)
    ddx = Ddx(path, project.root, ddx_environment(project, os.environ)) if path is not None else None
    documents = read_documents(project, ddx)
    verb = call.options.verb
    answer, lines = _ANSWERS[verb](call, project, documents)
    if call.json:
        call.emit({"verb": verb, "source": documents.source, "note": documents.note, "answer": answer})
    else:
        if documents.source != "ddx" and not call.options.own:
            call.note(f"helix: {clean_line(documents.note, 300)}")
        for line in lines:
            call.print(line)
    return 1 if verb == "audit" and documents.graph.issues else 0


_Answer = tuple[Any, Iterable[str]]


def _graph(_call: Call, _project: Project, documents: Documents) -> _Answer:
    lines = [_line(each) + _edges(each) for each in documents.all.values()]
    return documents.graph.graph_json(), lines or ["No document declares an id in its frontmatter."]


def _edges(document: GraphDocument) -> str:
    return f"  → {clean_line(', '.join(document.depends_on), 400)}" if document.depends_on else ""


def _line(document: GraphDocument) -> str:
    title = f"  {clean_line(document.title, 100)}" if document.title else ""
    return f"{clean_line(document.id, 80)}  {clean_line(document.path, 200)}{title}"


def _named(call: Call, documents: Documents) -> DocumentMatch:
    """The document that a text names; if no document declares that id, stderr says how it was found.

    Raises:
        CliError: no document matches.
    """
    match = documents.find(call.options.name)
    name = clean_line(call.options.name, 80)
    if match is None:
        raise CliError(f"no document is called {name}", f'`helix-tui doc search "{name}"` looks in titles and links.')
    if match.how != "id":
        call.note(f"helix: no document declares the id {name}; found {match.words}: {clean_line(match.document.path)}")
    return match


def _show(call: Call, project: Project, documents: Documents) -> _Answer:
    document = _named(call, documents).document
    beads = read_tracker(project.beads_file).beads.values()
    declared = document.id in documents.all
    answer = documents.graph.show_json(document.id) if declared else {"id": document.id, "path": document.path}
    return answer, [
        *([clean_line(document.title, 200)] if document.title else []),
        *documents.brief(document.id, beads),
    ]


def _deps(call: Call, _project: Project, documents: Documents) -> _Answer:
    document = _named(call, documents).document
    return list(document.depends_on), _ids(documents, document.depends_on) or ["No dependencies."]


def _dependents(call: Call, _project: Project, documents: Documents) -> _Answer:
    document = _named(call, documents).document
    found = documents.downstream(document.id) if call.options.all else document.dependents
    return list(found), _ids(documents, found) or ["No dependents."]


def _ids(documents: Documents, ids: Iterable[str]) -> list[str]:
    found = ((name, documents.all.get(name)) for name in ids)
    return [_line(each) if each is not None else f"{clean_line(name, 80)}  (no document)" for name, each in found]


def _stale(call: Call, _project: Project, documents: Documents) -> _Answer:
    lines: list[str] = []
    for name in BUCKETS:
        found = [each for each in documents.stale if each.bucket == name]
        if found:
            lines.append(call.paint(f"{name.replace('_', ' ')} ({len(found)})", "bold"))
            lines += [f"  {clean_line(each.id, 80)}  {clean_line('; '.join(each.reasons), 400)}" for each in found]
    none = "Every document is up to date." if documents.source == "ddx" else "Only ddx knows what is stale."
    return stale_json(documents.stale), lines or [none]


def _audit(_call: Call, _project: Project, documents: Documents) -> _Answer:
    issues = documents.graph.issues
    lines = [f"{issue.kind.replace('_', ' ')}: {clean_line(issue.message, 600)}" for issue in issues]
    return documents.graph.audit_json(), lines or ["The document graph is clean."]


def _changed(call: Call, project: Project, documents: Documents) -> _Answer:
    beads = read_tracker(project.beads_file).beads
    found = documents.changes(project, beads)
    lines = [line for change in found for line in _change(call, documents, change)]
    return [_record(change) for change in found], lines or [
        "No document changed since the beads under it were written or others were reviewed against it."
    ]


def _change(call: Call, documents: Documents, change: DocumentChange) -> list[str]:
    age = "since a review" if change.when is None else f"{format_age((call.now - change.when) / NS)} ago"
    lines = [f"{_line(change.document)}  ({'not committed' if change.uncommitted else age})"]
    rows: dict[str, tuple[str, ...]] = {
        "depend on it": change.dependents,
        "reviewed against its older text": change.reviewed,
        "beads written before": change.beads,
    }
    return [*lines, *(f"  {what}: {clean_line(', '.join(ids), 600)}" for what, ids in rows.items() if ids)]


def _record(change: DocumentChange) -> dict[str, Any]:
    return {
        "id": change.document.id,
        "path": change.document.path,
        "uncommitted": change.uncommitted,
        "changed_at": None if change.when is None else format_instant(change.when),
        "dependents": change.dependents,
        "reviewed": change.reviewed,
        "beads": change.beads,
    }


def _search(call: Call, _project: Project, documents: Documents) -> _Answer:
    found = documents.search(call.options.name)
    answer = [{"id": m.document.id, "path": m.document.path, "title": m.document.title, "how": m.how} for m in found]
    return answer, [f"{_line(each.document)}  ({each.words})" for each in found] or ["No document matches."]


_ANSWERS = {
    "graph": _graph,
    "show": _show,
    "deps": _deps,
    "dependents": _dependents,
    "stale": _stale,
    "audit": _audit,
    "changed": _changed,
    "search": _search,
}
