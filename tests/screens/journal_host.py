"""A journal with an entry in every state, at fixed instants, and the console on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from helix_tui.core.editing.journal import Journal, Who
from helix_tui.core.ground.time import NS
from tests.screens.conftest import NOW, Console

ME = Who("human", "me", 1)
BOT = Who("agent", "bot", 2)


def row(bead_id: str, **fields: Any) -> dict[str, Any]:
    """A bead of today's release."""
    whole = {
        "id": bead_id,
        "title": f"Title of {bead_id}",
        "status": "open",
        "priority": 2,
        "schema_version": 1,
    }
    whole |= {
        "issue_type": "task",
        "created_at": "2026-08-01T00:00:00Z",
        "updated_at": "2026-08-01T00:00:00Z",
    }
    return whole | {name.replace("__", "-"): value for name, value in fields.items()}


def lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as lines of a tracker."""
    return [json.dumps(dict(sorted(each.items())), separators=(",", ":")) for each in rows]


ROWS = [
    row("demo-1", priority=1),
    row("demo-2", description="one\ntwo and a half\nthree"),
    row("demo-3", labels=["area:x"]),
    row("demo-4", title="Somebody else's title"),
    row("demo-5", status="cancelled"),
    row("demo-6", notes="half of it"),
    row("demo-7"),
]
"""The rows after everything that the journal tells."""


def write_journal(root: Path) -> Journal:
    """A journal of nine entries: done, taken back, changed since, half-way, without a way back, under way."""
    journal = Journal(root / ".helix" / "journal.jsonl")
    clock = iter(range(90, 0, -10))

    def entry(
        title: str,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        commands: Iterable[str],
        *,
        who: Who = ME,
        **more: Any,
    ) -> str:
        at = NOW - next(clock) * 60 * NS
        steps = [{"command": command.split()} for command in commands]
        of, kind = more.pop("of", ""), more.pop("kind", "set")
        entry_id = journal.begin(
            at=at, who=who, kind=kind, title=title, steps=steps, operations=[], before=before, of=of
        )
        if more.pop("pending", False):
            return entry_id
        more.setdefault("inverse", [["ddx", "bead", "update", "demo-1", "--priority", "2"]])
        outcome: dict[str, Any] = {"result": "done", "undoable": True} | more
        journal.finish(entry_id, at=at, before=before, after=after, **outcome)
        return entry_id

    one, two = {"demo-1": {"priority": 2}}, {"demo-1": {"priority": 1}}
    entry("set priority of demo-1", one, two, ["bead update demo-1 --priority 1"])
    old, new = "one\ntwo\nthree", "one\ntwo and a half\nthree"
    entry(
        "set description of demo-2",
        {"demo-2": {"description": old}},
        {"demo-2": {"description": new}},
        ["bead update demo-2 --description …"],
    )
    labelled = {f"demo-{number}": {"labels": ["area:x"]} for number in (3, 7)}
    undone = entry(
        "label 2 beads +area:x",
        {bead_id: {"labels": None} for bead_id in labelled},
        labelled,
        ["bead update demo-3 --labels area:x", "bead update demo-7 --labels area:x"],
        who=BOT,
    )
    entry(f"undo {undone}: label 2 beads +area:x", labelled, {}, ["bead update …"], kind="undo", of=undone)
    entry("label demo-3 +area:x", {"demo-3": {"labels": None}}, {"demo-3": {"labels": ["area:x"]}}, ["bead …"])
    entry(
        "set title of demo-4",
        {"demo-4": {"title": "Old title"}},
        {"demo-4": {"title": "My title"}},
        ["bead update demo-4 --title 'My title'"],
    )
    entry(
        "cancel demo-5",
        {"demo-5": {"status": "open"}},
        {"demo-5": {"status": "cancelled"}},
        ["bead update demo-5 --status cancelled"],
        undoable=False,
        why_not="demo-5 is cancelled, and a cancelled bead stays cancelled",
        inverse=[],
    )
    entry(
        "set notes of 2 beads",
        {"demo-6": {"notes": None}, "demo-7": {"notes": None}},
        {"demo-6": {"notes": "half of it"}},
        ["bead update demo-6 --notes 'half of it'", "bead update demo-7 --notes 'half of it'"],
        result="partial",
        error="no answer after 60 s",
    )
    entry("close demo-7", {"demo-7": {"status": "open"}}, {}, ["bead close demo-7"], pending=True, kind="close")
    return journal


async def at_rest(pilot: Pilot[int]) -> None:
    """Until nothing is under way any more: threads, the change runner, what they told."""
    app = pilot.app
    assert isinstance(app, Console)
    for _ in range(3):
        await app.workers.wait_for_complete()
        await pilot.pause()
        await asyncio.to_thread(app.change_runner.settle, 60)
        await pilot.pause()
