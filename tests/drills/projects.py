"""Projects that the drills work on, made anew for every run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from bench.trackers import write_tracker

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared" / "data" / "ddx"
EVERY_STATE = REPOSITORY / "tests" / "data" / "screens" / "every-state.jsonl"

BROKEN = (
    b'{"id": "bx-1", "title": "cut o',
    b"\xff\xfe not text \x00",
    b"[1, 2, 3]",
    b'{"id": 7, "title": ["no", "text"], "dependencies": {"a": 1}, "priority": "high"}',
    b'{"id": "bx-2", "title": "\\u001b[31mred\\u0007", "status": "odd", "labels": [[], 5, "ok"]}',
    b'{"id": "bx-3", "title": "circle", "dependencies": [{"depends_on_id": "bx-3"}]}',
    b'{"id": "bx-3", "title": "circle again", "parent": "bx-3"}',
    b'{"id": "bx-4", "title": "' + b"wide \xe5\xad\x97" * 400 + b'", "events": "none"}',
)


def _demo(root: Path) -> None:
    """The demo's own project, before anything has worked on it."""
    command = [sys.executable, "-m", "helix_ddx", "demo-workspace", str(root)]
    subprocess.run(command, check=True, capture_output=True, timeout=120, cwd=REPOSITORY)


def _used(root: Path) -> None:
    """The demo after its simulation has drained it, with a question open: attempts, evidence, much that waits."""
    _copy(_drained(), root)
    asked = {"id": "q-1", "kind": "ambiguous", "text": "which harbour?", "key": "k", "bead_id": "ferry-e2560e1f"}
    approval = {"id": "q-2", "kind": "approval", "text": "start?", "key": "k2", "bead_id": None}
    document = {"schema": "questions/1", "questions": [asked, approval]}
    (root / ".helix" / "questions.json").write_text(json.dumps(document))


def _copy(made: Path, root: Path) -> None:
    shutil.copytree(made, root, symlinks=True, ignore=shutil.ignore_patterns("*.sock"))


@cache
def _drained() -> Path:
    """Drained once for all runs of this process; removed with the home that `isolate` gave."""
    command = [sys.executable, "-m", "helix_tui", "demo", "--headless", "--keep", "--json", "--seconds", "1700"]
    done = subprocess.run(command, check=True, capture_output=True, timeout=1_800, cwd=REPOSITORY)
    return Path(json.loads(done.stdout)["workspace"])


def _head(root: Path) -> None:
    """A real tracker where it is at hand; else every state that a bead can be in."""
    (root / ".ddx").mkdir(parents=True)
    real = SHARED / "beads-head.jsonl"
    shutil.copyfile(real if real.is_file() else EVERY_STATE, root / ".ddx" / "beads.jsonl")


def _union(root: Path) -> None:
    """Three thousand beads, 21 MB."""
    write_tracker(root / ".ddx" / "beads.jsonl", 3_018)


def _empty(root: Path) -> None:
    (root / ".ddx").mkdir(parents=True)


def _broken(root: Path) -> None:
    (root / ".ddx").mkdir(parents=True)
    (root / ".ddx" / "beads.jsonl").write_bytes(b"\n".join(BROKEN))
    bundle = root / ".ddx" / "executions" / "20260820T101010-deadbeef"
    bundle.mkdir(parents=True)
    (bundle / "result.json").write_text("{half")
    (root / ".helix").mkdir()
    (root / ".helix" / "journal.jsonl").write_bytes(b'{"seq": 1}\n{cut')
    (root / ".helix" / "helix.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 600)
    (root / ".helix" / "run-state.json").write_text(json.dumps([1, {"phase": 5}]))
    for name in ("snoozed", "budget", "questions"):
        (root / ".helix" / f"{name}.json").write_text('{"schema": 7, "questions": [[], {"id": 5}], "snoozed": "no"')


PROJECTS: Mapping[str, Callable[[Path], None]] = {
    "demo": _demo,
    "used": _used,
    "head": _head,
    "union": _union,
    "empty": _empty,
    "broken": _broken,
}


def make_project(name: str, root: Path) -> Path:
    """One of the projects, in a folder that is not there yet."""
    PROJECTS[name](root)
    return root


def isolate(folder: Path) -> None:
    """Let this process and those that it starts see nothing of whoever runs it."""
    places = {"HOME": folder, "TMPDIR": folder / "tmp"}
    places |= {f"XDG_{kind}_HOME": folder / kind.lower() for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    for name, place in places.items():
        place.mkdir(parents=True, exist_ok=True)
        os.environ[name] = str(place)
    for name in list(os.environ):
        if name.startswith(("DDX_", "HELIX_", "GIT_", "TEXTUAL")) or name in {"NO_COLOR", "TMUX"}:
            del os.environ[name]
    os.environ |= {
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TEXTUAL_ANIMATIONS": "none",
        "EDITOR": "true",
        "VISUAL": "true",
        "PAGER": "true",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": "tester@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
