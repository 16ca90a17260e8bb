"""Entries of the journal and conflicts of an undo as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from helix_tui.core.editing.journal import JournalEntry
from helix_tui.core.editing.undo.conflicts import Difference
from helix_tui.core.editing.undo.undo_plan import Mark
from helix_tui.core.ground.time import format_instant


def entry_document(entry: JournalEntry, mark: Mark | None = None) -> dict[str, Any]:
    """An entry as JSON."""
    return {
        "journal_id": entry.id,
        "at": format_instant(entry.at),
        "who": {"kind": entry.who.kind, "user": entry.who.user},
        "kind": entry.kind,
        "title": entry.title,
        "commands": list(entry.commands),
        "before": entry.before,
        "after": entry.after,
        "inverse": list(entry.inverse),
        "result": entry.result,
        "state": mark.state if mark else None,
        "changed_since": [difference_document(each) for each in mark.differences] if mark else [],
        "undoable": entry.undoable,
        "why_not": entry.why_not,
        "traces": entry.traces,
        "undone_by": entry.undone_by or None,
        "of": entry.of or None,
        "recovered": entry.recovered,
        "error": entry.error,
    }


def difference_document(difference: Difference) -> Mapping[str, Any]:
    """A conflict as JSON: both versions."""
    return {
        "bead_id": difference.bead_id,
        "field": difference.field,
        "expected": difference.ours,
        "found": difference.theirs,
    }
