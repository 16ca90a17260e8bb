"""``bead metrics``: attempts, tokens, cost and time a bead, from ``.ddx/executions/*/result.json``.

``bead evidence``: events that a person or a tool leaves on a bead.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_ddx.base.go_format import Ordered, second_text
from helix_ddx.store import events as history
from helix_ddx.store.call import VerbCall
from helix_ddx.verbs.close import note
from helix_ddx.verbs.lists import say_ordered

MAX_RESULT = 8 << 20


class Attempts(Struct):
    """What is known of the attempts on one bead."""

    count: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0

    def totals(self) -> dict[str, Any]:
        """The four figures as DDx prints them; a whole number has no point."""
        average = self.duration_ms / self.count if self.count else 0.0
        return Ordered(
            attempt_count=self.count,
            total_tokens=self.tokens,
            total_cost_usd=_bare(self.cost_usd),
            avg_duration_ms=_bare(average),
        )


NO_ATTEMPT = Attempts()


class _Result(Struct):
    bead_id: str = ""
    tokens: int = 0
    cost_usd: float = 0.0
    duration_ms: float = 0.0


_decode = msgspec.json.Decoder(_Result).decode


def attempts_by_bead(ddx: Path) -> dict[str, Attempts]:
    """Every attempt that left a readable result."""
    found: dict[str, Attempts] = {}
    try:
        names = sorted(os.listdir(ddx / "executions"))
    except OSError:
        return found
    for name in names:
        try:
            with open(ddx / "executions" / name / "result.json", "rb") as file:
                result = _decode(file.read(MAX_RESULT))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if result.bead_id:
            attempts = found.setdefault(result.bead_id, Attempts())
            attempts.count += 1
            attempts.tokens += result.tokens
            attempts.cost_usd += result.cost_usd
            attempts.duration_ms += result.duration_ms
    return found


def metrics(call: VerbCall) -> None:
    """``bead metrics``: one row a bead that was attempted."""
    found = attempts_by_bead(call.workspace.ddx)
    beads = call.store.read().beads
    titles = {bead_id: beads[bead_id].title if bead_id in beads else "" for bead_id in sorted(found)}
    if call.given.on("json"):
        rows = []
        for bead_id, title in titles.items():
            named = {"bead_id": bead_id} | ({"title": title} if title else {})
            rows.append(named | found[bead_id].totals())
        say_ordered(call, rows)
        return
    call.say(_row("BEAD_ID", "ATTEMPTS", "TOTAL_TOKENS", "TOTAL_COST_USD", "AVG_DURATION_MS", "TITLE"))
    for bead_id, title in titles.items():
        one = found[bead_id]
        average = f"{one.duration_ms / one.count:.1f}"
        call.say(_row(bead_id, str(one.count), str(one.tokens), f"{one.cost_usd:.4f}", average, title))


def _row(bead_id: str, count: str, tokens: str, cost: str, average: str, title: str) -> str:
    return f"{bead_id:<20}  {count:>8}  {tokens:>12}  {cost:>12}  {average:>14}  {title}"


def _bare(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def add(call: VerbCall) -> None:
    """``bead evidence add``."""
    given = call.given
    event = history.new_event(
        given.text("kind") or "summary",
        call.clock(),
        summary=given.text("summary"),
        body=given.text("body"),
        actor=given.text("actor") or call.assignee(),
        source=given.text("source") or "ddx bead evidence add",
    )
    with call.store.change() as beads:
        note(call, beads, call.id, event)


def list_events(call: VerbCall) -> None:
    """``bead evidence list``: oldest first."""
    row = call.store.read().shown(call.id)
    events = history.events_of(row, call.workspace.ddx)
    if call.given.on("json"):
        say_ordered(call, [history.shown(event) for event in events])
        return
    for event in events:
        call.say(f"{second_text(event.get('created_at'))}  {event.get('kind', '')}  {event.get('summary', '')}")
