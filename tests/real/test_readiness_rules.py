"""Generated trackers: what is ready and blocked by our rule for this release, and what its binary lists.

``REAL_TRACKERS`` says how many are made; the first that differ are named.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

from helix_tui.core.beads.counts import count_queue
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.trial import examine
from helix_tui.core.ground.time import format_instant, now_ns
from tests.real.stranger import Release, Stranger

TRACKERS = int(os.environ.get("REAL_TRACKERS") or 100)
DAY = 86_400_000_000_000
MINUTE = 60_000_000_000


def _rows(chance: random.Random, statuses: tuple[str, ...]) -> list[dict[str, Any]]:
    """Some rows of both eras, each holding others in some way."""
    now = now_ns()
    ids = [f"g-{number:02}" for number in range(chance.randint(2, 14))]
    rows = []
    for place, bead_id in enumerate(ids):
        row: dict[str, Any] = {"id": bead_id, "title": bead_id, "status": chance.choice(statuses)}
        row |= {"priority": chance.randint(0, 3), "issue_type": chance.choice(("task", "task", "bug", "epic"))}
        at = format_instant(now - place * DAY)
        row |= {"created_at": at, "updated_at": at, "schema_version": 1, "acceptance": "it is there"}
        earlier = [*ids[:place], "g-missing"]
        needs = chance.sample(earlier, chance.choice((0, 0, 0, 1, min(2, len(earlier)))))
        if needs:
            row["dependencies"] = [{"issue_id": bead_id, "depends_on_id": need, "type": "blocks"} for need in needs]
        more: dict[str, Any] = {
            "execution-eligible": chance.choice((True, False)),
            "superseded-by": chance.choice(ids),
            "parent": chance.choice(ids[:place] or [""]),
            "queue-rank": chance.randint(1, 3),
            "execute-loop-retry-after": format_instant(now + chance.choice((-DAY, DAY))),
            "work-retry-after": format_instant(now + chance.choice((-DAY, DAY))),
            "execute-loop-heartbeat-at": format_instant(now - chance.choice((0, 30)) * MINUTE),
            "work-heartbeat-at": format_instant(now - chance.choice((0, 30)) * MINUTE),
            "claimed-at": at,
            "owner": "somebody",
        }
        row |= {name: more[name] for name in more if chance.random() < 0.15}
        rows.append(row)
    return rows


def test_generated_trackers_are_judged_as_this_release_judges_them(stranger: Stranger, release: Release) -> None:
    dialect = examine(release.path, stranger.project, stranger.env)
    statuses: tuple[str, ...] = ("open", "open", "open", "in_progress", "closed")
    statuses += ("blocked", "proposed", "cancelled") if dialect.lifecycle else ()
    path = stranger.project / ".ddx" / "beads.jsonl"
    takes = stranger.ddx("bead", "ready", "--help").stdout
    differing = []
    for number in range(TRACKERS):
        path.write_text("".join(json.dumps(row) + "\n" for row in _rows(random.Random(number), statuses)))
        queue = classify(read_tracker(path).beads, now=now_ns(), era=dialect.rule)
        counts = count_queue(queue)
        status = json.loads(stranger.ddx("bead", "status", "--json", check=True).stdout)
        theirs: dict[str, object] = {
            # since May it counts as blocked what waits for other beads, too
            "blocked": len(stranger.answer("bead", "blocked")) if "dependency_waiting" in status else status["blocked"],
            "listed": len(stranger.answer("bead", "ready")),
        }
        ours: dict[str, object] = {"blocked": counts.blocked, "listed": counts.listed}
        if "--execution" in takes:
            theirs |= {"ready": stranger.ready()}
            ours |= {"ready": list(queue.picked_by_ddx)}
        if theirs != ours:
            differing.append((number, theirs, ours))
    assert not differing, f"{len(differing)} of {TRACKERS} differ: {differing[:3]}"
