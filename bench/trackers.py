"""Trackers of any size in the shape of real ones: 7 KB a row, nine in ten closed, chains and epics."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.writes import replace

ROW_BYTES = 7_000


def write_tracker(path: Path, rows: int, seed: int = 1) -> list[str]:
    """Write ``rows`` beads and return their ids in file order; the same seed gives the same file."""
    rng = random.Random(seed)
    ids = sorted(f"bn-{rng.getrandbits(32):08x}" for _ in range(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for place, bead_id in enumerate(ids):
            file.write(json.dumps(_row(rng, bead_id, ids, place), sort_keys=True, separators=(",", ":")) + "\n")
    return ids


def _row(rng: random.Random, bead_id: str, ids: list[str], place: int) -> dict[str, object]:
    closed = rng.random() < 0.85
    day = f"2026-0{rng.randint(1, 8)}-{rng.randint(10, 28)}"
    words = ["route", "lease", "queue", "land", "retry", "evidence", "tracker", "worker", "review", "cost"]
    row: dict[str, object] = {
        "id": bead_id,
        "title": f"bench {place:05d} " + " ".join(rng.choices(words, k=7)),
        "status": "closed" if closed else "open",
        "priority": rng.choice([0, 0, 1, 1, 2, 2, 2, 3, 4]),
        "issue_type": "epic" if place % 97 == 0 else "task",
        "schema_version": 1,
        "created_at": f"{day}T0{rng.randint(0, 9)}:00:00.{place:09d}Z",
        "updated_at": "2026-08-20T10:00:00Z",
        "labels": [f"area:{rng.choice(words)}", "phase:build"],
        "description": " ".join(rng.choices(words, k=ROW_BYTES // 14)),
        "acceptance": " ".join(rng.choices(words, k=40)),
        "events": [
            {"kind": "execute-bead", "summary": "success", "body": " ".join(rng.choices(words, k=120))}
            for _ in range(4)
        ],
    }
    if place and rng.random() < 0.35:
        row["dependencies"] = [
            {"issue_id": bead_id, "depends_on_id": ids[rng.randrange(place)], "type": "blocks"}
            for _ in range(rng.choice([1, 1, 2]))
        ]
    if place > 97 and rng.random() < 0.6:
        row["parent"] = ids[place - place % 97]
    return row


def touch_row(path: Path, bead_id: str, title: str) -> None:
    """Give one bead another title, the way DDx writes: whole file, by rename."""
    marker = f'"id":"{bead_id}"'.encode()
    lines = path.read_bytes().split(b"\n")
    for place, line in enumerate(lines):
        if marker in line:
            row = json.loads(line)
            row["title"] = title
            lines[place] = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
    replace(path, b"\n".join(lines))


def write_attempts(path: Path, bead_ids: list[str], rows: int, seed: int = 1) -> None:
    """Write ``rows`` attempts into ddx's file of metrics, one every ten minutes of a few months."""
    rng = random.Random(seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        for place in range(rows):
            began = datetime(2026, 4, 1, tzinfo=UTC) + timedelta(minutes=10 * place)
            took = rng.randint(60, 1_500)
            row = {
                "attempt_id": f"{began:%Y%m%dT%H%M%S}-{place:08x}",
                "bead_id": bead_ids[place % len(bead_ids)],
                "harness": "codex",
                "model": rng.choice(["small", "middle", "large"]),
                "ts_start": f"{began:%Y-%m-%dT%H:%M:%SZ}",
                "ts_end": f"{began + timedelta(seconds=took):%Y-%m-%dT%H:%M:%SZ}",
                "duration_ms": took * 1_000,
                "outcome": rng.choice(["merged", "merged", "preserved", "no_changes", "error"]),
                "total_tokens": rng.randint(10_000, 900_000),
                "cost_usd": rng.choice([None, 0.2, 1.4]),
            }
            file.write(json.dumps(row) + "\n")
