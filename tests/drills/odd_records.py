"""Odd records: real ones with a field missing, null, of a wrong type, huge, far in the future, hostile or nested.

``python -m tests.drills.odd_records --records 5000`` puts them into the files of a project that the demo drained, a
few at once, and runs every command that reads. None may end with exit code 70, and no log may get a trace.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from helix_tui.cli.program import main as helix_tui
from helix_tui.core.ground.errors import DEFECT
from tests.drills.monkey import Traces
from tests.drills.projects import isolate, make_project

ODD_VALUES: Sequence[Callable[[random.Random], Any]] = (
    lambda rng: None,
    lambda rng: rng.choice([True, False]),
    lambda rng: rng.choice([-1, 0, 1 << 40, 10**30, -(1 << 70), 1e308, -0.5]),
    lambda rng: rng.choice(["", " ", "x" * 200_000, "é" + "\u0301" * 81, "\x1b[31mred\x07", "[/]", "\u202e\u0085"]),
    lambda rng: rng.choice(["9999-12-31T23:59:59Z", "3026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "yesterday"]),
    lambda rng: rng.choice([[], [[]], [None], [1, "a", {}], ["x"] * 3_000]),
    lambda rng: rng.choice([{}, {"id": None}, {"": {"": []}}, {"a": 1, "b": [2]}]),
    lambda rng: _nested(rng.choice([3, 60, 400])),
    lambda rng: rng.choice(["../../etc/passwd", "/dev/zero", "-x", "a\u0000b", "\ud800", "NaN"]),
)

HELIX_FILES: Mapping[str, Any] = {
    "run-state.json": {
        "schema": "run-state/1",
        "run_id": "r-1",
        "pid": 1,
        "started_at": "2026-11-27T10:00:00Z",
        "updated_at": "2026-11-27T10:05:00Z",
        "phase": "stopped",
        "stop_reason": "question",
        "autonomy": "medium",
        "cycles": [{"number": 1, "bead": "ferry-e2560e1f", "outcome": "landed", "cost": 0.5, "tokens": 12}],
        "tried": [{"bead_id": "ferry-e2560e1f", "reason": "execution_failed", "at": "2026-11-27T10:02:00Z"}],
        "parked": [{"id": "ferry-e2560e1f", "reason": "operator"}],
        "injected": [{"id": "ferry-1", "type": "review", "triggering_bead": "ferry-e2560e1f"}],
        "next_action": {"next_action": "BUILD", "decided_by": "rules", "reason": "ready", "recommended_bead": "f-1"},
        "pending": {"pid": 1, "born": 2, "out": "/nowhere", "started_at": "2026-11-27T10:02:00Z"},
        "totals": {"cost": 1.5, "tokens": 1000, "attempts": 3},
        "exit_code": 3,
        "focused_epic": "ferry-e2560e1f",
        "problems": ["one"],
    },
    "queue-snapshot.json": {
        "taken_at": "2026-11-27T10:00:00Z",
        "journal_seq": 1,
        "beads": {"ferry-e2560e1f": {"title": "t", "parent": "", "spec_id": "x"}},
    },
    "questions.json": {
        "schema": "questions/1",
        "questions": [
            {"id": "q-1", "kind": "ambiguous", "text": "which?", "key": "k", "bead_id": "ferry-e2560e1f"},
            {"id": "q-2", "kind": "approval", "text": "start?", "key": "k2", "bead_id": None, "about": [["a.md", "x"]]},
        ],
    },
    "snoozed.json": {"schema": "snoozed/1", "snoozed": {"drift:ferry-e2560e1f": "2026-12-01T00:00:00Z"}},
    "budget.json": {"schema": "budget/1", "per_day": 5.0, "per_run": 1.0, "tokens": 100},
    "loop-request.json": {"schema": "loop-request/1", "wish": "pause", "at": "2026-11-27T10:00:00Z", "pid": 1},
}

COMMANDS: Sequence[Sequence[str]] = (
    ("queue",),
    ("queue", "--json"),
    ("next",),
    ("status",),
    ("status", "--json"),
    ("stuck",),
    ("why", "ferry-e2560e1f"),
    ("attempts",),
    ("attempts", "--json"),
    ("needs",),
    ("insights",),
    ("journal",),
    ("undo", "--dry-run"),
    ("input", "--questions"),
    ("doc",),
    ("memory", "list"),
    ("check", "--dry-run"),
    ("close", "ferry-e2560e1f", "--dry-run"),
    ("ask", "what failed last?"),
    *(("snapshot", "--screen", name) for name in ("queue", "loop", "needs", "journal", "insights", "ask", "memory")),
)


def _nested(deep: int) -> Any:
    value: Any = "x"
    for _ in range(deep):
        value = [value]
    return value


def _places(record: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to the fields of a record."""
    if isinstance(record, dict) or (isinstance(record, list) and record):
        entries = record.items() if isinstance(record, dict) else enumerate(record[:3])
        for name, value in entries:
            yield (*at, name)
            yield from _places(value, (*at, name))


def spoil(record: Any, rng: random.Random) -> tuple[str, Any]:
    """A record with one field that is odd, and which; or one that is odd as a whole."""
    record = json.loads(json.dumps(record))
    places = list(_places(record))
    if not places or rng.random() < 0.03:
        odd = rng.choice(ODD_VALUES)(rng)
        return "the whole record", odd
    way = rng.choice(places)
    holder = record
    for name in way[:-1]:
        holder = holder[name]
    if rng.random() < 0.15:
        del holder[way[-1]]
        return f"no {way}", record
    holder[way[-1]] = rng.choice(ODD_VALUES)(rng)
    return f"{way}: {repr(holder[way[-1]])[:60]}", record


def spoil_file(path: Path, rng: random.Random) -> str:
    """Replace one record of a file by an odd one."""
    text = path.read_text("utf-8", "replace")
    if rng.random() < 0.01:
        path.write_bytes(b"[" * 5_000)
        return f"{path.name}: 5,000 open brackets"
    if path.suffix == ".json":
        what, record = spoil(json.loads(text), rng)
        path.write_text(json.dumps(record))
        return f"{path.name}: {what}"
    lines = text.splitlines()
    number = rng.randrange(len(lines))
    what, record = spoil(json.loads(lines[number]), rng)
    if "events" in str(what) or rng.random() < 0.8:
        lines[number] = json.dumps(record)
    else:
        lines.append(json.dumps(record))
    path.write_text("\n".join(lines) + "\n")
    return f"{path.name}, line {number + 1}: {what}"


def prepare(root: Path) -> Sequence[Sequence[Path]]:
    """Add what the demo does not write; the files with records, by kind."""
    for name, document in HELIX_FILES.items():
        (root / ".helix" / name).write_text(json.dumps(document))
    ddx, helix = root / ".ddx", root / ".helix"
    kinds = [
        [ddx / "beads.jsonl"],
        [ddx / "beads-archive.jsonl"],
        [helix / "journal.jsonl"],
        *([helix / name] for name in HELIX_FILES),
        sorted(ddx.glob("executions/*/result.json")),
        sorted(ddx.glob("executions/*/usage.json")),
        sorted(ddx.glob("executions/*/manifest.json")),
        sorted(ddx.glob("executions/*/embedded/*.jsonl")),
        sorted(ddx.glob("metrics/*.jsonl")),
        sorted(ddx.glob("agent-logs/*.jsonl")),
        sorted(ddx.glob("agent-logs/sessions/*.jsonl")),
        sorted(ddx.glob("workers/*/*.json")),
        sorted(ddx.glob("attachments/*/*.jsonl")),
        sorted(helix.glob("ask/history/*.json")),
    ]
    present = [[path for path in paths if path.is_file() and path.stat().st_size] for paths in kinds]
    return [paths for paths in present if paths]


def run_command(words: Sequence[str], root: Path) -> str:
    """Why a command failed; empty where it did not."""
    traces = Traces()
    logging.getLogger("helix").addHandler(traces)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = helix_tui(["-C", str(root), *words])
    except Exception as error:  # noqa: BLE001 - whatever ends a command is what this looks for
        return "".join(traceback.format_exception(error)[-4:])
    finally:
        logging.getLogger("helix").removeHandler(traces)
    if traces.first:
        return traces.first
    return f"exit code {code}" if code == DEFECT else ""


def drill(root: Path, records: int, seed: int, at_once: int = 8, commands: Sequence[Sequence[str]] = COMMANDS) -> int:
    """Spoil so many records; the number of distinct failures, each printed with its records."""
    rng = random.Random(seed)
    kinds = prepare(root)
    failures: dict[str, int] = {}
    done = runs = 0
    while done < records:
        before: dict[Path, bytes] = {}
        odd = []
        for _ in range(at_once):
            path = rng.choice(rng.choice(kinds))
            if path not in before:
                before[path] = path.read_bytes()
                odd.append(spoil_file(path, rng))
        done += len(odd)
        if done // 100 > (done - len(odd)) // 100:
            print(f"odd records: {done:,} so far, {runs:,} commands", flush=True)
        for words in commands:
            if words[0] in ("ask", "snapshot") and rng.random() < 0.8:  # these take longest
                continue
            runs += 1
            failure = run_command(words, root)
            last = "\n".join(failure.splitlines()[-3:])
            if failure and last not in failures:
                print(f"FAILED {' '.join(words)} beside {odd}\n{failure[-2500:]}\n", flush=True)
            if failure:
                failures[last] = failures.get(last, 0) + 1
        for path, content in before.items():
            path.write_bytes(content)
    print(f"odd records: {done:,} records, {runs:,} commands, {sum(failures.values())} failed in {len(failures)} ways")
    return len(failures)


def main(words: Sequence[str] | None = None) -> int:
    """Make so many odd records of a seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=8, help="odd records before each round of commands")
    parser.add_argument("--project", type=Path, help="a project that the demo drained; else one is made")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="helix-odd-", ignore_cleanup_errors=True) as holder:
        isolate(Path(holder) / "home")
        root = Path(holder) / "p"
        if options.project is not None:
            shutil.copytree(options.project, root, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))
        else:
            make_project("used", root)
        return 1 if drill(root, options.records, options.seed, options.at_once) else 0


if __name__ == "__main__":
    sys.exit(main())
