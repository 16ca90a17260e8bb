"""What others do to a project while somebody works in its console: agents, ddx, git, people with an editor.

A change follows from its number and from what lies on the disk, so that a sequence of keys and changes can be
shortened. Nothing is locked and little is whole: rows go away under the cursor, files are cut in the middle.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import writes
from helix_tui.core.ground import log as logs

AWAY = ".away"
"""Put behind the name of what was taken away, and may be put back."""

SPARED = (".lock", ".db", ".db-wal", ".db-shm", ".sock")
"""Ends of names of files that only their owner writes; the drill of the stores is about these."""

GARBAGE = (b"", b"\xff\xfe\x00", b"[]", b"{}\n{", b'{"schema": 99}', b"null\n" * 400, b"\n\n\n", b'{"id": []}\n')

FIELDS: Mapping[str, Sequence[object]] = {
    "title": ("", "another", "字" * 300, "\x1b[31mred[/]", None, 7),
    "status": ("open", "closed", "in_progress", "blocked", "proposed", "cancelled", "odd", None),
    "priority": (0, 1, 4, 9, -1, "high", None),
    "labels": ([], ["area:queue"], ["triage:needs-investigation"], "none", [[]]),
    "owner": ("worker-1", "", None),
    "parent": ("", "bn-gone", None),
    "dependencies": ([], [{"depends_on_id": "bn-gone", "type": "blocks"}], "none"),
    "issue_type": ("task", "epic", "bug", ""),
    "description": ("", "x" * 60_000, "line\n" * 2_000),
}
"""Fields that others write, with what they may write."""

Change = Callable[[random.Random, Path], None]


def change(root: Path, number: int) -> None:
    """Let something happen in the project at ``root``."""
    rng = random.Random(number)
    names = [*CHANGES]
    (name,) = rng.choices(names, [CHANGES[name][0] for name in names])
    with contextlib.suppress(OSError):  # the console writes there too: what it has just moved is not changed
        CHANGES[name][1](rng, root)


def _rows(root: Path) -> list[bytes]:
    path = root / ".ddx" / "beads.jsonl"
    return path.read_bytes().splitlines() if path.is_file() else []


def _write(root: Path, rows: Sequence[bytes]) -> None:
    if (root / ".ddx").is_dir():
        writes.replace(root / ".ddx" / "beads.jsonl", b"".join(row + b"\n" for row in rows))


def _field(rng: random.Random, root: Path) -> None:
    """A few beads get another value, as ddx or an agent gives it."""
    rows = _rows(root)
    for place in rng.sample(range(len(rows)), min(len(rows), rng.choice([1, 1, 1, 5]))):
        try:
            row = json.loads(rows[place])
        except ValueError:
            continue
        if isinstance(row, dict):
            name = rng.choice([*FIELDS])
            rows[place] = json.dumps(row | {name: rng.choice(FIELDS[name])}).encode()
    _write(root, rows)


def _rows_go(rng: random.Random, root: Path) -> None:
    """Beads go away: one, a run of them, most, all."""
    rows = _rows(root)
    begin = rng.randint(0, len(rows))
    del rows[begin : begin + rng.choice([1, 1, 1, 3, 20, len(rows)])]
    _write(root, rows)


def _rows_come(rng: random.Random, root: Path) -> None:
    """Beads come, hung below ones that are there or after them; some twice."""
    rows = _rows(root)
    for _ in range(rng.choice([1, 1, 4, 30])):
        bead_id = f"bn-{rng.getrandbits(32):08x}"
        row: dict[str, object] = {"id": bead_id, "title": "found while at work", "status": "open"}
        with contextlib.suppress(ValueError, IndexError, TypeError, KeyError):
            other = json.loads(rng.choice(rows))["id"]
            row |= rng.choice([{"parent": other}, {"dependencies": [{"depends_on_id": other}]}, {"id": other}])
        rows.insert(rng.randint(0, len(rows)), json.dumps(row).encode())
    _write(root, rows)


def _rows_move(rng: random.Random, root: Path) -> None:
    rows = _rows(root)
    rng.shuffle(rows)
    _write(root, rows)


def _attempt(rng: random.Random, root: Path) -> None:
    """An attempt is told of, in some of the places where ddx tells of it."""
    ddx, attempt = root / ".ddx", writes.attempt_id(rng.getrandbits(20))
    bead_id = "bn-gone"
    with contextlib.suppress(ValueError, IndexError, TypeError, KeyError):
        bead_id = str(json.loads(rng.choice(_rows(root)))["id"])
    if not ddx.is_dir():
        return
    for write in rng.sample((writes.metric, writes.bundle), rng.randint(0, 2)):
        write(ddx, bead_id, attempt)
    for _ in range(rng.choice([0, 1, 5])):
        writes.loop_result(ddx, rng.randint(0, 3), bead_id, attempt)
        writes.model_call(ddx, rng.randint(0, 3))


def _files(root: Path) -> list[Path]:
    """Files of ddx and of the console, but for those that only their owner writes, and the log, which is read later."""
    found = [
        Path(folder, name)
        for kept in (".ddx", ".helix")
        for folder, _, names in os.walk(root / kept)
        for name in names
        if not name.endswith(SPARED) and not name.startswith(logs.NAME)
    ]
    return sorted(found)


def _file_cut(rng: random.Random, root: Path) -> None:
    """A file is found half written, or with something else in it."""
    path = rng.choice(_files(root) or [root / ".ddx" / "beads.jsonl"])
    if rng.random() < 0.5:
        path.write_bytes(rng.choice(GARBAGE))
    else:
        os.truncate(path, rng.randint(0, path.stat().st_size))


def _file_goes(rng: random.Random, root: Path) -> None:
    files = _files(root)
    if files:
        rng.choice(files).unlink()


def _folder_goes(rng: random.Random, root: Path) -> None:
    """A folder is moved away, ``.ddx`` itself too."""
    every = (root / ".ddx", *root.glob(".ddx/*"), *root.glob(".ddx/executions/*"))
    folders = sorted(path for path in every if path.is_dir() and path.suffix != AWAY)
    if folders:
        path = rng.choice(folders)
        shutil.rmtree(f"{path}{AWAY}", ignore_errors=True)
        path.rename(f"{path}{AWAY}")


def put_back(root: Path) -> None:
    """What was moved away comes back, whatever has been made in its place."""
    away = sorted({*root.glob(f".ddx/**/*{AWAY}"), *root.glob(f"*{AWAY}")})
    for path in away:
        place = path.with_name(path.name.removesuffix(AWAY))
        shutil.rmtree(place, ignore_errors=True)
        path.rename(place)


def _whole_again(_: random.Random, root: Path) -> None:
    """The tracker is what it was at first, or becomes so later: somebody checks out what was committed."""
    put_back(root)
    first = root.parent / "beads.first"
    if first.is_file():
        _write(root, first.read_bytes().splitlines())


CHANGES: Mapping[str, tuple[float, Change]] = {
    "field": (30, _field),
    "rows go": (12, _rows_go),
    "rows come": (10, _rows_come),
    "rows move": (2, _rows_move),
    "attempt": (16, _attempt),
    "file cut": (6, _file_cut),
    "file goes": (4, _file_goes),
    "folder goes": (4, _folder_goes),
    "put back": (6, lambda _, root: put_back(root)),
    "whole again": (10, _whole_again),
}
"""How often each happens beside the others, and what it is."""


def begin(root: Path) -> None:
    """Keep what the tracker is at first, for those who put it back."""
    with contextlib.suppress(OSError):
        shutil.copyfile(root / ".ddx" / "beads.jsonl", root.parent / "beads.first")
