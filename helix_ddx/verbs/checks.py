"""``bead doctor`` and ``bead lint``: find what DDx or a reviewer would object to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from helix_ddx.flags import Refused
from helix_ddx.store import events as history
from helix_ddx.store.places import TrackerRow
from helix_ddx.store.workspace import VerbCall
from helix_ddx.verbs.edges import parent_chain
from helix_ddx.verbs.lists import say_ordered
from helix_tui.core.beads.record import Bead

THRESHOLD = 0.5
"""Share of checkable lines from which an acceptance passes (``intake.ac_quality.min_score``)."""


def doctor(call: VerbCall) -> None:
    """``bead doctor``: fields that are too long; at head also edges that can never be satisfied."""
    if call.given.on("fix"):
        raise Refused("bead doctor: --fix needs ddx itself; the embedded tracker only looks")
    beads, path = call.store.read(), call.store.path
    findings = [finding for bead in beads.beads.values() for finding in _oversized(bead)]
    if call.head:
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
        found = _ITEM.fullmatch(line)
        if found:
            items.append(found[1].strip())
        elif items and line.strip():
            items[-1] += f" {line.strip()}"
    return items


def _kind(text: str) -> str:
    kind = next((name for name, sign in _KINDS if sign.search(text)), "prose")
    if _NEGATIVE.search(text) and kind in ("symbol", "prose", "mechanical", "command"):
        return "negative"
    return kind
