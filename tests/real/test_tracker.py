"""``tracker`` hands ddx's bead commands on byte for byte, journalled only where the tracker changed (R25)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.real.states import Queue, masked
from tests.real.stranger import Ran

COMMANDS = (
    "ac-check {plain}",
    "archive --max-size 0 --json",
    "blocked --json",
    "clear-cooldown --all",
    "close {awaited}",
    "close --help",
    "close {waiting}",
    "close nothing-there",
    "cooldown show {plain}",
    "cooldown clear {plain}",
    "create made --type task --acceptance ok",
    "create --help",
    "dep add {plain} {awaited}",
    "dep remove {waiting} {awaited}",
    "dep tree {waiting}",
    "doctor",
    "doctor --fix",
    "evidence add {plain} --kind summary --body seen",
    "evidence list {plain}",
    "export --stdout",
    "human resolve {plain} --reopen",
    "import nothing-there.jsonl",
    "lint {plain}",
    "list",
    "list --status open --json",
    "merge",
    "metrics",
    "migrate --dry-run",
    "migrate --lifecycle --json",
    "needs-human",
    "operator-attention --json",
    "queue top {child}",
    "queue move {child} --after {labelled}",
    "queue clear {child}",
    "ready --execution --json",
    "reap",
    "reap --apply",
    "recheck-blockers --json",
    "reconcile --json",
    "reconcile-attachments",
    "reopen {closed} --reason again",
    "replay nothing-there",
    "review {closed}",
    "routing {plain}",
    "show {custom}",
    "status",
    "update {plain} --title Größer",
    "update {plain} --no-such-flag",
    "update {off} --claim",
    "validate-ready",
    "no-such-verb",
)

LATE = "Cancel received, shutting down gracefully\n"
"""What August's ddx says on some of its ways out, and on others of the same command not."""


def _same_words(done: Ran) -> tuple[int, str, str]:
    """How a command ended, without what no two runs have alike: instants, how long it took, ids it made, who claims."""
    texts = []
    for text in (done.stdout, done.stderr.replace(LATE, "")):
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)", "AN INSTANT", text)
        text = re.sub(r"\d{8}T\d{6}-[0-9a-f]+|\b\d+(\.\d+)?(ms|s)\b|[0-9a-f]{12,40}", "SOME", text)
        text = re.sub(r'"([\w-]*(?:pid|session))": ?("[^"]*"|\d+)', r'"\1":"ONE"', text)
        texts.append(text)
    return done.returncode, texts[0], texts[1]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: each.replace(" ", "-"))
def test_a_command_is_handed_on_as_it_is(
    queue: Queue, command: str, record_property: Callable[[str, object], None]
) -> None:
    place = queue.place
    words = command.format(**queue.ids).split()
    queue.fresh()
    typed = place.ddx("bead", *words)
    twin = masked(place)
    rows, _ = queue.fresh()
    done = place.tui("tracker", *words)
    new = set(twin) - set(rows)
    mine = set(masked(place)) - set(rows)
    told, ours = _same_words(typed), _same_words(done)
    for known, other in zip(sorted(new), sorted(mine), strict=True):
        told = (told[0], told[1].replace(known, other), told[2].replace(known, other))
    assert ours == told
    left = masked(place)
    assert {name: row for name, row in left.items() if name in rows} == {
        name: row for name, row in twin.items() if name in rows
    }
    journal = place.tui("journal", "--json")
    entries = json.loads(journal.stdout)["operations"]
    assert len(entries) == (left != rows), entries
    record_property("outcome", f"{done.returncode}, {'changed' if left != rows else 'unchanged'}")
    if not entries:
        return
    assert entries[0]["kind"] == "tracker"
    assert entries[0]["title"] == " ".join(["bead", *words])
