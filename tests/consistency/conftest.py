"""Scenes: a project in which everything happens at once, recordings, real trackers and generated ones."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.ground.time import NS, format_instant, now_ns
from tests.consistency.scene import Scene
from tests.core.ddx.replay import Replay

EVERYTHING = Path(__file__).resolve().parents[1] / "data" / "everything"
"""A project in every state at once, with attempts that ended in every way."""

NOW = "2026-08-21T22:00:00Z"
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No ddx, no memory, no leases of this machine's user."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("DDX_BIN", raising=False)


def write_scene(root: Path, rows: Iterable[Row], *, now: str = NOW) -> Scene:
    (root / ".ddx").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / ".ddx" / "beads.jsonl").write_text(text)
    return Scene(root, now)


def lease(root: Path, bead: str, tmp: Path) -> None:
    """A lease of this very process, as head writes it."""
    folder = tmp / "ddx-claim-heartbeats" / hashlib.sha1(str(root).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    document = {"bead_id": bead, "machine": socket.gethostname(), "pid": os.getpid(), "owner": "w"}
    times = {"started_at": "2026-08-21T21:58:00Z", "updated_at": "2026-08-21T21:59:50Z"}
    (folder / f"{bead}.json").write_text(json.dumps(document | times))


@pytest.fixture
def everything(tmp_path: Path) -> Scene:
    """Ready, running, waiting, parked, asked about; landed, refused, kept aside, satisfied, crashed."""
    root = tmp_path / "demo"
    for folder, name in (("ddx", ".ddx"), ("helix", ".helix"), ("docs", "docs")):
        shutil.copytree(EVERYTHING / folder, root / name)
    lease(root, "d-7", tmp_path / "tmp")
    for words in (("init", "-q", "-b", "main"), ("add", "docs"), ("commit", "-qm", "documents")):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, timeout=60)
    with (root / "docs" / "prd.md").open("a") as requirements:
        requirements.write("Times are local.\n")
    return Scene(root, NOW)


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, float], Scene]:
    """A recording of a real ddx, played as far as a part of its steps (1.0: to its end)."""

    def play(timeline: Path, part: float) -> Scene:
        replay = Replay(timeline, tmp_path / f"{timeline.stem}-{part}")
        (replay.project / ".ddx").mkdir()
        monkeypatch.setenv("HOME", replay.env["HOME"])
        monkeypatch.setenv("TMPDIR", replay.env["TMPDIR"])
        wanted = max(1, int(sum(entry["src"] == "file" for entry in replay.entries) * part))
        last = 0.0
        for count, step in enumerate(replay.steps(), 1):
            last = step.t
            if count >= wanted:
                break
        (replay.project / ".ddx" / "beads.jsonl").touch()
        return Scene(replay.project, format_instant(replay.now(last)))

    return play


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], Scene]:
    """The demo, drained by its scripted agent."""

    def drain() -> Scene:
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        nowhere = Scene(Path.cwd(), format_instant(now_ns()))
        document = nowhere.ask("demo", "--headless", "--keep")
        # the next whole second: an instant is written without its fraction, and the last attempt has just ended
        return Scene(Path(document["workspace"]), format_instant(now_ns() + NS))

    return drain


@pytest.fixture
def tracker(tmp_path: Path, shared: Path) -> Callable[[str, str], Scene]:
    """A real tracker of the shared data."""

    def make(name: str, now: str) -> Scene:
        path = shared / "data" / "ddx" / name
        if name.endswith(".tar.xz"):
            with tarfile.open(path) as archive:
                archive.extractall(tmp_path / "tracker", filter="data")
            return Scene(tmp_path / "tracker", now)
        raw = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        ddx = tmp_path / "tracker" / ".ddx"
        (ddx / "metrics").mkdir(parents=True)
        (ddx / "beads.jsonl").write_bytes(raw)
        if "head" in name:
            for folder in ("executions", "runs", "run-state", "attachments"):
                shutil.copytree(shared / "data" / "ddx" / folder, ddx / folder)
            shutil.copy(shared / "data" / "ddx" / "metrics-attempts.jsonl", ddx / "metrics" / "attempts.jsonl")
        return Scene(ddx.parent, now)

    return make
