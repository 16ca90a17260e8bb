"""``bead close``, ``reopen``, ``reap``, ``doctor`` and ``lint``: how a bead ends, and what DDx would object to.

Rules: docs/formats/ddx.md §1 (Lifecycle H, auto-close cascade) and §2 (close).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from helix_ddx.files import instant_of, second
from helix_ddx.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.git import resolve_commit, writing
from helix_ddx.store.holders import FRESH, change_row, read_lease, remove_lease
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.tracker import Beads, StatusChange, transition
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.create_update import clear_claim, open_dependencies, parent_chain, reject_open_dependencies
from helix_ddx.verbs.lists import say_ordered
from helix_tui.core.beads.graph import Graph
from helix_tui.core.beads.readiness import looks_like_epic
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.ground.writes import remove

HOLDS = frozenset({"manual-hold", "no-auto-close", "container"})
"""Labels that keep a superseded bead from being closed along."""

THRESHOLD = 0.5
"""Share of checkable lines from which an acceptance passes (``intake.ac_quality.min_score``)."""

_ITEM = re.compile(r"\s*(?:\d+\.|\([a-z]\))\s+(.*)")

_KINDS = (
    ("file-path", re.compile(r"\b[\w./-]+\.\w{1,6}:\d+\b")),
    ("symbol", re.compile(r"`[A-Za-z_][\w.]*(?:\(\))?`")),
    ("test-name", re.compile(r"\bTest[A-Z]\w*")),
    ("build-gate", re.compile(r"(?i)\b(?:tests? pass|test.* green|all pass|go (?:test|build|run)|pre-commit)\b")),
    ("mechanical", re.compile(r"(?i)\b(?:renamed?|relocated?|moved? to|file exists|documentation|docs)\b")),
    (
        "command",
        re.compile(r"\s*(?:['\"`][^'\"`]+['\"`]|[a-z][\w./-]*(?: \S+)+) (?:returns|exits|passes|fails|outputs)\b"),
    ),
)
"""Signs of a line that a machine can check, the surest first; a line without any is prose."""

_NEGATIVE = re.compile(r"(?i)\b(?:no longer|does not|do not|never|removed?|cannot|must not|absence of|without)\b")


def close(call: VerbCall) -> None:
    """``bead close``: by hand, or with the session or the commit that did the work."""
    session, name = call.given.text("session"), call.given.text("commit")
    commit = resolve_commit(call, name) if name else ""
    with writing(call, f"close {call.id}") as beads:
        beads.bead(call.id)
        reject_open_dependencies(beads, call.id)
        if session or commit:
            _close_with_evidence(call, beads, session, commit)
        else:
            close_by_hand(call, beads, call.id)


def close_by_hand(call: VerbCall, beads: Beads, bead_id: str) -> None:
    """Close a bead without asking for evidence."""
    verdict = history.last_verdict(history.events_of(beads.row(bead_id), call.workspace.ddx))
    _end(call, beads, bead_id, "closed")
    if verdict == "BLOCK":
        body = "verdict_was=BLOCK\noperator_action=close\nreason=manual close"
        summary = "BLOCK verdict contradicted by operator close"
        source = "Store.Close"
        _note(call, beads, bead_id, "review-accuracy-override", summary=summary, body=body, source=source)
    _cascade(call, beads, bead_id)


def _end(call: VerbCall, beads: Beads, bead_id: str, status: str) -> None:
    """Give a bead its last status, move its events out, and remove its lease."""
    change_row(call, beads, bead_id, lambda row: transition(row, status, StatusChange(manual_close=True)))
    _move_events_out(call, beads, bead_id)
    beads.after.append(lambda: remove_lease(call, bead_id))


def _move_events_out(call: VerbCall, beads: Beads, bead_id: str) -> None:
    row = beads.row(bead_id)
    history.move_out(row, call.workspace.ddx)
    beads.put(row)


def _close_with_evidence(call: VerbCall, beads: Beads, session: str, commit: str) -> None:
    """Close if the record carries evidence; else only note in it why not, which is no error."""

    def change(row: TrackerRow) -> None:
        row.put_text("session_id", session or row.text("session_id"))
        row.put_text("closing_commit_sha", commit or row.text("closing_commit_sha"))
        objection = _gate(row)
        if objection:
            note = f"[{second(call.clock())}] closure rejected: closure gate: insufficient evidence: {objection}"
            row.put_text("notes", "\n".join(text for text in (row.text("notes"), note) if text))
        else:
            transition(row, "closed", StatusChange(manual_close=True))

    bead = change_row(call, beads, call.id, change)
    if bead.status == "closed":
        _move_events_out(call, beads, call.id)
        _cascade(call, beads, call.id)
    beads.after.append(lambda: remove_lease(call, call.id))


def _gate(row: TrackerRow) -> str:
    """The objection to closing with evidence: there is none, or an approval without a reason."""
    found = row.value("events")
    inline = [event for event in found if isinstance(event, dict)] if isinstance(found, list) else []
    if not inline and not history.is_attached(row) and not row.text("closing_commit_sha").strip():
        return "no execution evidence (empty events and no closing_commit_sha)"
    for event in inline:
        approved = str(event.get("summary", "")).strip().upper() == "APPROVE"
        if event.get("kind") == "review" and approved and not str(event.get("body", "")).strip():
            return "review APPROVE with empty rationale (malformed reviewer verdict)"
    return ""


def note(call: VerbCall, beads: Beads, bead_id: str, event: history.Event) -> None:
    """Add an event to a bead, wherever its events lie."""

    def change(row: TrackerRow) -> None:
        if history.is_attached(row):
            beads.after.append(lambda: history.add_attached(call.workspace.ddx, bead_id, event))
        else:
            history.add_inline(row, event)

    change_row(call, beads, bead_id, change)


def _note(call: VerbCall, beads: Beads, bead_id: str, kind: str, *, summary: str, body: str, source: str) -> None:
    event = history.new_event(kind, call.clock(), summary=summary, body=body, source=source)
    note(call, beads, bead_id, event)


# --- what ends along with it ----------------------------------------------------------------------------


def _cascade(call: VerbCall, beads: Beads, closed: str) -> None:
    """Close what the bead superseded, then its parent if that was the last part of it."""
    # all are judged as they stood before the first of them ended
    before = dict(beads.beads)
    for bead_id in before:
        if bead_id != closed and _goes_along(call, beads, before, bead_id, closed):
            source = "Store.Close.cascadeCloseSuperseeded"
            summary = f"closed as superseded via {closed}"
            body = f"closed_by_cascade_of: {closed}\nreason: closed_as_superseded_via:{closed}"
            _try_to_end(call, beads, bead_id, "closed", "superseded_close", summary, body, source)
    parent = beads.beads[closed].parent
    visited = {closed}
    # parents may form a cycle
    while parent and parent not in visited:
        visited.add(parent)
        if not _close_parent(call, beads, parent):
            break
        parent = beads.beads[parent].parent


def _try_to_end(
    call: VerbCall, beads: Beads, bead_id: str, status: str, kind: str, summary: str, body: str, source: str
) -> None:
    """Close a bead along with another; if a hook or the lifecycle objects, it is unchanged."""
    try:
        _end(call, beads, bead_id, status)
        _note(call, beads, bead_id, kind, summary=summary, body=body, source=source)
    except Refused as problem:
        call.warn(f"bead: {bead_id} stays open: {problem}")


def _goes_along(call: VerbCall, beads: Beads, before: Mapping[str, Bead], bead_id: str, closed: str) -> bool:
    """Whether an open bead may be closed because the one that supersedes it was."""
    bead = before[bead_id]
    if bead.status != "open":
        return False
    if bead.superseded_by.strip() != closed and f"superseded-by:{closed}" not in bead.labels:
        return False
    if any(other.status == "open" and bead_id in other.depends_on for other in before.values() if other.id != bead_id):
        return False
    for target in open_dependencies(before, bead):
        if target in before and before[target].status != "cancelled":
            return False
    row = beads.row(bead_id)
    # a bead that was started, annotated, held back or claimed is not closed along
    kinds = [str(event.get("kind", "")) for event in history.events_of(row, call.workspace.ddx)]
    if any(word in kind for kind in kinds for word in ("execution", "dispatch", "work", "execute-bead")):
        return False
    if row.text("notes").strip() or HOLDS & set(bead.labels):
        return False
    lease = read_lease(call, bead_id)
    return lease is None or call.clock() - instant_of(lease.get("updated_at")) > FRESH


def _close_parent(call: VerbCall, beads: Beads, parent_id: str) -> bool:
    """Close an epic, or a parent that was never to be executed, once all its parts have ended."""
    parent = beads.beads.get(parent_id)
    children = [bead for bead in beads.beads.values() if bead.parent == parent_id]
    if parent is None or not children or any(child.status not in TERMINAL for child in children):
        return False
    never_executed = parent.execution_eligible is False
    if not never_executed and not looks_like_epic(parent):
        return False
    status, kind, total = "closed", "epic_auto_close", f"total_children: {len(children)}"
    if never_executed:
        kind = "dead_intermediate_close"
        summary = "closed as dead-intermediate bead (all children closed, execution-eligible=false)"
        body = f"closed_because: all_children_closed\nexecution_eligible: false\n{total}"
    elif not any(child.status == "closed" for child in children):
        status = "cancelled"
        summary = "auto-cancelled: all children cancelled, no work completed"
        body = f"closed_because: all_children_cancelled\n{total}"
    else:
        summary = "auto-closed: all children reached terminal state"
        body = f"closed_because: all_children_terminal\n{total}"
    if parent.status not in TERMINAL:
        source = "Store.Close.walkUpClosureCandidate"
        _try_to_end(call, beads, parent_id, status, kind, summary, body, source)
    return beads.beads[parent_id].status in TERMINAL


# --- and back -------------------------------------------------------------------------------------------


def reopen(call: VerbCall) -> None:
    """``bead reopen``: open again, unclaimed, with an event that says why."""
    reason, notes = call.given.text("reason"), call.given.text("append-notes")
    now, ddx = call.clock(), call.workspace.ddx

    def change(row: TrackerRow) -> None:
        transition(row, "open", StatusChange(manual_reopen=True))
        row.drop("owner")
        clear_claim(row)
        if notes:
            row.put_text("notes", "\n\n".join(text for text in (row.text("notes"), notes) if text))
        if history.is_attached(row):
            history.move_in(row, ddx)
            beads.after.append(lambda: remove(history.attachment(ddx, call.id)))
        approved = history.last_verdict(history.events_of(row, ddx)) == "APPROVE"
        history.add_inline(row, history.new_event("reopen", now, summary=reason))
        if approved:
            because = f"\nreason={reason}" if reason else ""
            body = f"verdict_was=APPROVE\noperator_action=reopen{because}"
            summary = "APPROVE verdict contradicted by operator reopen"
            kind = "review-accuracy-override"
            contradicted = history.new_event(kind, now, summary=summary, body=body, source="Store.Reopen")
            history.add_inline(row, contradicted)

    with writing(call, f"reopen {call.id}") as beads:
        change_row(call, beads, call.id, change)
        beads.after.append(lambda: remove_lease(call, call.id))


def reap(call: VerbCall) -> None:
    """``bead reap``: epics whose parts have all ended."""
    if not call.given.on("apply"):
        found = _finished_epics(call.store.read().beads)
        if not found:
            call.say("no epics with all-terminal children found")
            return
        call.say(f"{len(found)} epic(s) with all-terminal children:")
        for bead in found:
            call.say(f"  {bead.id}  {bead.title}")
        call.say("\nRun with --apply to close them.")
        return
    with writing(call, "reap epics") as beads:
        found = _finished_epics(beads.beads)
        if not found:
            call.say("no epics with all-terminal children found")
        for bead in found:
            try:
                reject_open_dependencies(beads, bead.id)
                close_by_hand(call, beads, bead.id)
            except Refused as problem:
                call.warn(f"warning: failed to close {bead.id}: {problem}")
            else:
                call.say(f"closed {bead.id}  {bead.title}")


def _finished_epics(beads: Mapping[str, Bead]) -> list[Bead]:
    children = Graph(beads).children
    return [
        bead
        for bead in beads.values()
        if bead.status not in TERMINAL
        and looks_like_epic(bead)
        and children.get(bead.id)
        and all(beads[child].status in TERMINAL for child in children[bead.id])
    ]


def doctor(call: VerbCall) -> None:
    """``bead doctor``: fields that are too long; at head also edges that can never be satisfied."""
    if call.given.on("fix"):
        raise Refused("bead doctor: --fix needs ddx itself; the embedded tracker only looks")
    beads, path = call.store.read(), call.store.path
    findings = [finding for bead in beads.beads.values() for finding in _oversized(bead)]
    known = {**call.store.archived(), **beads.beads}
    findings += [finding for bead in beads.beads.values() for finding in _bad_edges(bead, known)]
    findings += [
        {
            "kind": "unparseable_line",
            "bead_id": f"line {dropped.line} (unparseable)",
            "field_path": "line",
            "sample_head": dropped.excerpt[:80],
        }
        for dropped in beads.tracker.dropped
    ]
    findings.sort(key=lambda finding: finding["bead_id"])
    if call.given.on("json"):
        report = {"path": str(path), "fixed": False, "clean": not findings, "findings": findings or None}
        say_ordered(call, report)
        return
    if not findings:
        call.say(f"bead doctor: {path} — clean (no fields exceed {history.MAX_FIELD} bytes)")
        return
    call.say(f"bead doctor: {path} — {len(findings)} finding(s):")
    for finding in findings:
        size = f"  {finding['size_bytes']} bytes" if "size_bytes" in finding else ""
        target = f"  {finding['target_id']}" if "target_id" in finding else ""
        call.say(f"  {finding['bead_id']}  {finding.get('kind', '')}  {finding['field_path']}{size}{target}")
    raise Refused(f"bead doctor: {len(findings)} finding(s) — run `ddx bead doctor --fix` to repair")


def _oversized(bead: Bead) -> list[dict[str, Any]]:
    # no field is longer than its record
    if len(bead.raw) <= history.MAX_FIELD:
        return []
    row = TrackerRow.to_read(bead)
    texts = {name: row.text(name) for name in ("description", "acceptance", "notes")}
    found = row.value("events")
    for place, event in enumerate(found if isinstance(found, list) else []):
        for name in ("body", "summary"):
            text = event.get(name) if isinstance(event, dict) else None
            texts[f"events[{place}].{name}"] = text if isinstance(text, str) else ""
    return [
        {
            "kind": "oversized_field",
            "bead_id": bead.id,
            "field_path": name,
            "size_bytes": len(text.encode("utf-8", "replace")),
            "sample_head": text[:80],
        }
        for name, text in texts.items()
        if len(text.encode("utf-8", "replace")) > history.MAX_FIELD
    ]


def _bad_edges(bead: Bead, known: Mapping[str, Bead]) -> list[dict[str, Any]]:
    """Dependencies on what the bead is a part of, and on beads that do not exist."""
    chain, _ = parent_chain(known, bead.parent) if bead.dependencies else ([], False)
    findings = []
    for place, target in enumerate(bead.depends_on):
        kind = "parent_ancestor_in_deps" if target in chain else "" if target in known else "dangling_dep"
        if kind:
            findings.append(
                {
                    "kind": kind,
                    "bead_id": bead.id,
                    "field_path": f"dependencies[{place}].depends_on_id",
                    "target_id": target,
                    "dependency_id": target,
                }
            )
    return findings


# --- lint -----------------------------------------------------------------------------------------------


def lint(call: VerbCall) -> None:
    """``bead lint``: which lines of the acceptance name something to check."""
    try:
        acceptance = call.store.read().shown(call.id).text("acceptance")
    except Refused as problem:
        raise Refused(f"bead {call.id}: {problem}") from None
    items = [(number, text, _kind(text)) for number, text in enumerate(_items(acceptance), 1)]
    checkable = sum(kind != "prose" for _, _, kind in items)
    score = checkable / len(items) if items else 0.0
    passes = not items or score >= THRESHOLD
    if call.given.on("json"):
        say_ordered(
            call,
            {
                "score": score if score % 1 else int(score),
                "verifiable_count": checkable,
                "prose_count": len(items) - checkable,
                "total": len(items),
                "items": [
                    {"ac": number, "text": text, "kind": kind, "verifiable": kind != "prose"}
                    for number, text, kind in items
                ],
                "passes_threshold": passes,
                "threshold": THRESHOLD,
            },
        )
        return
    verdict = "PASSES" if passes else "FAILS"
    call.say(f"bead lint for {call.id}")
    call.say(f"score: {score:.2f} ({checkable}/{len(items)} verifiable)  {verdict} threshold {THRESHOLD:.2f}\n")
    for number, text, kind in items:
        word = "prose" if kind == "prose" else "verifiable"
        shown = text if len(text) <= 80 else text[:79] + "…"
        call.say(f"AC #{number}  [{kind:<13}]  {word:<10}  {shown}")


def _items(acceptance: str) -> list[str]:
    """The numbered points of an acceptance; lines between them belong to the point before."""
    items: list[str] = []
    for line in acceptance.split("\n"):
        match = _ITEM.fullmatch(line)
        if match:
            items.append(match[1].strip())
        elif items and line.strip():
            items[-1] += f" {line.strip()}"
    return items


def _kind(text: str) -> str:
    kind = next((name for name, sign in _KINDS if sign.search(text)), "prose")
    if _NEGATIVE.search(text) and kind in ("symbol", "prose", "mechanical", "command"):
        return "negative"
    return kind
