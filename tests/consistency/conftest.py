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


def event(kind: str, summary: str, body: str, at: str) -> Row:
    return {"kind": kind, "summary": summary, "body": body, "created_at": at}


def write_scene(root: Path, rows: Iterable[Row], *, now: str = NOW) -> Scene:
    (root / ".ddx").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (root / ".ddx" / "beads.jsonl").write_text(text)
    return Scene(root, now)


def bundle(root: Path, attempt: str, bead: str, **result: object) -> None:
    folder = root / ".ddx" / "executions" / attempt
    folder.mkdir(parents=True)
    given = {"attempt_id": attempt, "bead_id": bead}
    (folder / "manifest.json").write_text(json.dumps(given))
    if result:
        (folder / "result.json").write_text(json.dumps({**given, **result}))
    (folder / "decisions.md").write_text(f"The way of {bead}: begin at the end.\n")


def lease(root: Path, bead: str, tmp: Path) -> None:
    """A lease of this very process, as head writes it."""
    folder = tmp / "ddx-claim-heartbeats" / hashlib.sha1(str(root).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    document = {"bead_id": bead, "machine": socket.gethostname(), "pid": os.getpid(), "owner": "w"}
    times = {"started_at": "2026-08-21T21:58:00Z", "updated_at": "2026-08-21T21:59:50Z"}
    (folder / f"{bead}.json").write_text(json.dumps(document | times))


def write_documents(root: Path) -> None:
    """A feature that was reviewed against another text of its requirements."""
    reviewed = "  review:\n    self_hash: x\n    deps:\n      PRD: y\n"
    (root / "docs").mkdir()
    (root / "docs" / "prd.md").write_text("---\nddx:\n  id: PRD\n---\n# Requirements\n")
    (root / "docs" / "feat.md").write_text(f"---\nddx:\n  id: F-1\n  depends_on: [PRD]\n{reviewed}---\n# Feature\n")


def _edge(bead: str, on: str) -> Row:
    return {"issue_id": bead, "depends_on_id": on, "type": "blocks"}


def every_row() -> list[Row]:
    """Beads in every state, with attempts that ended in every way."""
    plain: list[Row] = [
        {"id": f"d-{number}", "title": f"Bead {number}", "status": "open", "priority": 1, "schema_version": 1,
         "created_at": f"2026-08-{number:02}T00:00:00Z", "updated_at": f"2026-08-{number:02}T00:00:00Z",
         "acceptance": f"`make check-{number}` passes"}
        for number in range(1, 16)
    ]  # fmt: skip
    plain[13]["spec-id"] = "PRD"
    plain[0]["events"] = [
        event("execute-bead", "review_block",
              "pre-land review: BLOCK\nattempt_id=20260811T100000-00000001", "2026-08-11T10:10:00Z")
    ]  # fmt: skip
    plain[1]["events"] = [
        event("execute-bead", "success",
              "success\npreserve_ref=refs/ddx/iterations/d-2/20260812T100000-00000002-abcdefabcdef",
              "2026-08-12T10:10:00Z")
    ]  # fmt: skip
    plain[2] |= {"status": "closed", "events": [
        event("execute-bead", "success", "success\nattempt_id=20260813T100000-00000003",
              "2026-08-13T10:10:00Z")
    ]}  # fmt: skip
    plain[3]["dependencies"] = [{"issue_id": "d-4", "depends_on_id": "d-1", "type": "blocks"}]
    plain[4]["execution-eligible"] = False
    plain[5]["status"] = "proposed"
    plain[6]["status"] = "in_progress"
    plain[6]["owner"] = "w"
    plain[8]["work-retry-after"] = "2026-08-22T04:00:00Z"
    plain[9]["superseded-by"] = "d-1"
    plain[10] |= {"issue_type": "epic", "title": "Epic: both"}
    plain[11] |= {"parent": "d-11", "dependencies": [_edge("d-12", "d-13")]}
    plain[12]["dependencies"] = [_edge("d-13", "d-12")]
    plain[13]["dependencies"] = [_edge("d-14", "gone-1"), _edge("d-14", "d-3"), _edge("d-14", "d-15")]
    plain[14]["status"] = "cancelled"
    return plain


@pytest.fixture
def everything(tmp_path: Path) -> Scene:
    """Ready, running, waiting, parked, asked about; landed, refused, kept aside, satisfied, crashed."""
    root = tmp_path / "demo"
    overlay = write_scene(root, every_row())
    bundle(root, "20260811T100000-00000001", "d-1", status="success", outcome="task_succeeded",
           candidate_ref="refs/ddx/iterations/20260811T100000-00000001/0")  # fmt: skip
    bundle(root, "20260812T100000-00000002", "d-2", status="success", outcome="task_succeeded")
    bundle(root, "20260813T100000-00000003", "d-3", status="success", outcome="merged")
    bundle(root, "20260814T100000-00000004", "d-8", status="already_satisfied", outcome="task_no_changes",
           no_changes_rationale="status: already_satisfied")  # fmt: skip
    bundle(root, "20260815T100000-00000005", "d-8", status="execution_failed", error="exit 1: make failed")
    bundle(root, "20260816T100000-00000006", "d-8")
    bundle(root, "20260821T100000-00000007", "d-8", status="execution_failed", error="exit 1", cost_usd=1.5)
    lease(root, "d-7", tmp_path / "tmp")
    write_documents(root)
    for words in (("init", "-q", "-b", "main"), ("add", "docs"), ("commit", "-qm", "documents")):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, timeout=60)
    with (root / "docs" / "prd.md").open("a") as requirements:
        requirements.write("Times are local.\n")
    (root / ".helix").mkdir()
    (root / ".helix" / "budget.json").write_text('{"schema": "budget/1", "day": {"usd": 50}}')
    asked = {"id": "q-1", "kind": "ambiguous", "text": "which?", "key": "k", "bead_id": "d-8"}
    document = {"schema": "questions/1", "questions": [asked]}
    (root / ".helix" / "questions.json").write_text(json.dumps(document))
    return overlay


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
