"""A console on the Loop screen over a project with attempts in it, fed by hand at a clock of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

from textual.pilot import Pilot
from textual.worker import WorkerFailed

from helix_tui.app import HelixApp, OnChange
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.time import parse_now
from helix_tui.core.snapshot.feed import Gatherer
from helix_tui.core.snapshot.snapshot import Snapshot, compare
from helix_tui.screens.loop.loop_screen import LoopScreen

NOW = parse_now("2026-08-21T22:00:28Z")


class LoopFeed:
    """Reads when a test says so."""

    def __init__(self, root: Path, env: Mapping[str, str], tell: OnChange) -> None:
        self.now = NOW
        self._gatherer = Gatherer(find_project(root, env=env), clock=lambda: self.now, env=env)
        self._tell = tell

    @property
    def snapshot(self) -> Snapshot:
        return self._gatherer.snapshot

    def start(self) -> None:
        self.look()

    def painted(self) -> None:
        return

    def stop(self) -> None:
        return

    def look(self) -> None:
        """Read what lies there now and tell what changed."""
        old = self.snapshot
        new = self._gatherer.gather()
        self._tell(new, compare(old, new))


class LoopConsole(HelixApp):
    """The app, opened on the Loop screen."""

    feed: LoopFeed

    @property
    def loop(self) -> LoopScreen:
        return cast(LoopScreen, self.screen)

    def rows(self) -> list[str]:
        """The lines on screen."""
        return [strip.text.rstrip() for strip in self.screen._compositor.render_strips()]

    def sees(self, text: str) -> bool:
        """Whether a text stands on the screen."""
        return any(text in line for line in self.rows())

    def pane_says(self, text: str) -> bool:
        """Whether a text stands in the open tab, over line ends too."""
        source = self.loop.view.pane.source
        lines = ("".join(part for part, _ in source.paint(n, 400)) for n in range(len(source)))
        return text in " ".join(" ".join(lines).split())

    def shown(self) -> str:
        """The whole screen as one text."""
        return "\n".join(self.rows())


def open_loop(root: Path, env: Mapping[str, str] | None = None, **options: Any) -> LoopConsole:
    """The console on a project's loop."""
    feeds: list[LoopFeed] = []

    def open_feed(tell: OnChange) -> LoopFeed:
        feeds.append(LoopFeed(root, env or {}, tell))
        return feeds[0]

    app = LoopConsole(open_feed, screen="loop", clock=lambda: feeds[0].now, **options)
    app.feed = feeds[0]
    return app


async def settled(pilot: Pilot[int]) -> None:
    """Until the attempt under the cursor is shown and everything asked for has come."""
    await pilot.pause()
    app = cast(LoopConsole, pilot.app)
    if isinstance(app.screen, LoopScreen):
        app.loop.show_detail()
        app.loop.stream.look()
    for _ in range(4):
        with suppress(WorkerFailed):  # one that a test lets fail
            await app.workers.wait_for_complete()
        await pilot.pause()


class Attempts:
    """Writes a project with attempts as DDx leaves them (docs/formats/ddx.md §5)."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ddx = root / ".ddx"
        (self.ddx / "executions").mkdir(parents=True)
        self.beads: list[dict[str, Any]] = []

    def bead(self, bead_id: str, title: str, **fields: Any) -> None:
        """A row of the tracker."""
        row = {"id": bead_id, "title": title, "status": "open", "priority": 1, "issue_type": "task"}
        self.beads.append(row | fields)
        lines = (json.dumps(bead, sort_keys=True) for bead in self.beads)
        (self.ddx / "beads.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def attempt(self, attempt_id: str, bead_id: str, *, result: Mapping[str, Any] | None = None) -> Path:
        """An evidence folder; without a result it is what a crash leaves."""
        folder = self.ddx / "executions" / attempt_id
        folder.mkdir()
        began = datetime.strptime(attempt_id.partition("-")[0] + "Z", "%Y%m%dT%H%M%S%z")
        ended = began + timedelta(milliseconds=252_000)
        manifest = {"attempt_id": attempt_id, "bead_id": bead_id, "created_at": f"{began:%Y-%m-%dT%H:%M:%SZ}"}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "prompt.md").write_text(f"# Work on {bead_id}\n\nDo it well.\n")
        if result is not None:
            document = {
                "bead_id": bead_id,
                "attempt_id": attempt_id,
                "harness": "claude",
                "model": "sonnet",
                "duration_ms": 252_000,
                "started_at": f"{began:%Y-%m-%dT%H:%M:%SZ}",
                "finished_at": f"{ended:%Y-%m-%dT%H:%M:%SZ}",
            }
            (folder / "result.json").write_text(json.dumps(document | dict(result)))
        return folder

    def transcript(self, folder: Path, count: int = 3, name: str = "agent-claude-1755806400000000000") -> Path:
        """A transcript of ``count`` lines."""
        file = folder / "embedded" / f"{name}.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(self.line(number) for number in range(count)))
        return file

    @staticmethod
    def line(number: int) -> str:
        """One line of a transcript."""
        event = {"type": "text_delta", "sequence": number, "data": {"text": f"line {number} of it"}}
        return json.dumps(event | {"time": f"2026-08-21T20:00:{number:02}Z"}) + "\n"


def commits(root: Path) -> tuple[str, str]:
    """A repository with two commits; their hashes."""

    when = {f"GIT_{who}_DATE": "2026-08-21T20:00:00Z" for who in ("AUTHOR", "COMMITTER")}

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        done = subprocess.run(command, check=True, capture_output=True, timeout=30, env={**os.environ, **when})
        return done.stdout.decode().strip()

    if not (root / ".git").exists():
        git("init", "-q", "-b", "main")
    (root / "watchdog.py").write_text("one\ntwo\n")
    git("add", "watchdog.py")
    git("commit", "-qm", "base")
    base = git("rev-parse", "HEAD")
    (root / "watchdog.py").write_text("one\n\x1b[31mtwo [/and] a half\nthree\n")
    git("commit", "-qam", "result")
    return base, git("rev-parse", "HEAD")


GONE_PID = 4_194_303
"""The highest process id there can be: nobody has it."""


class Busy(Attempts):
    """A project in which one agent works, one says nothing, one is gone, and every kind of end is listed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        base, result = commits(root)
        self.bead("ddx-1", "Scrub worktree leftovers before the next attempt begins")
        self.bead("ddx-2", "Land gate rejects [/stale] refs that nobody has fetched since")
        self.bead("ddx-3", "Guard host-global scratch")
        self.bead("ddx-4", "Keep attempt metrics apart from evidence", status="in_progress")
        self.bead("ddx-5", "Persist worker lifecycle apart from the queue", status="in_progress")
        self.bead("ddx-6", "Retry the land after a push race", status="in_progress")
        commits_of = {"base_rev": base, "result_rev": result}
        landed = {"status": "success", "outcome": "merged", "cost_usd": 1.1, "tokens": 38_000} | commits_of
        folder = self.attempt("20260821T200000-aaaa0001", "ddx-1", result=landed)
        self.transcript(folder, 5)
        (folder / "checks").mkdir()
        said = "deadcode reported 1 unreachable symbol in changed lines"
        (folder / "checks" / "reach.json").write_text(json.dumps({"status": "block", "message": said}))
        (folder / "checks" / "build.json").write_text('{"status":"pass","message":"ok work 2.91s"}')
        kept = {"status": "land_conflict", "outcome": "preserved", "cost_usd": 0.8, "base_rev": base}
        kept |= {"result_rev": "f" * 40, "preserve_ref": "refs/ddx/iterations/ddx-2/20260821T190000-ffff"}
        self.attempt("20260821T190000-aaaa0002", "ddx-2", result=kept)
        self.attempt("20260821T180000-aaaa0003", "ddx-3")
        failed = {"status": "execution_failed", "failure_mode": "timeout", "error": "deadline exceeded"}
        self.attempt("20260821T170000-aaaa0004", "ddx-3", result=failed | {"model": "haiku"})
        nothing = {
            "status": "no_changes",
            "no_changes_rationale": "They are scrubbed already.\nNothing to do.",
        }
        self.attempt("20260820T170000-aaaa0005", "ddx-1", result=nothing | {"cost_usd": 0.02})
        strange = {"status": "quantum_superposed", "model": "gpt-5.4-mini", "cost_usd": 12.34}
        self.attempt("20260820T160000-aaaa0006", "ddx-1", result=strange)
        self._work(self.run("ddx-4", "20260821T215620-bbbb0001", "2026-08-21T21:56:20Z"))
        self.transcript(self.run("ddx-5", "20260821T205000-bbbb0002", "2026-08-21T20:50:00Z"), 9)
        gone = {"pid": GONE_PID, "expires_at": "2026-08-21T20:50:00Z"}
        self.run("ddx-6", "20260821T204000-bbbb0003", "2026-08-21T20:40:00Z", **gone)

    def run(self, bead_id: str, attempt_id: str, started_at: str, **fields: Any) -> Path:
        """An attempt with a run record; its process is this one."""
        folder = self.attempt(attempt_id, bead_id)
        record = {
            "bead_id": bead_id,
            "attempt_id": attempt_id,
            "harness": "claude",
            "model": "sonnet",
            "started_at": started_at,
            "refreshed_at": "2026-08-21T22:00:20Z",
            "expires_at": "2026-08-21T22:02:20Z",
            "worktree_path": "/nowhere",
            "pid": os.getpid(),
        }
        (self.ddx / "run-state").mkdir(exist_ok=True)
        (self.ddx / "run-state" / f"{attempt_id}.json").write_text(json.dumps(record | fields))
        return folder

    def _work(self, folder: Path) -> None:
        """A transcript with every kind of event."""
        failure = "--- FAIL: TestWatchdog\n    watchdog_test.go:49: got 3 rows, want 2\nFAIL"
        events: list[tuple[str, dict[str, Any]]] = [
            ("routing_decision", {"harness": "claude", "model": "sonnet", "reason": "explicit"}),
            ("text_delta", {"text": "I look at how the metrics are written."}),
            ("tool_call", {"id": "1", "name": "Read", "input": {"file_path": "work/metrics.go"}}),
            ("tool_result", {"id": "1", "output": "package work\n\nfunc write()", "duration_ms": 40}),
            ("tool_call", {"id": "2", "name": "Edit", "input": {"file_path": "work/watchdog.go"}}),
            ("tool_result", {"id": "2", "output": "ok", "duration_ms": 12}),
            ("tool_call", {"id": "3", "name": "Bash", "input": {"command": "go test ./work/..."}}),
            ("tool_result", {"id": "3", "output": failure, "error": True, "duration_ms": 3_210}),
            ("tool_call", {"id": "4", "name": "Bash", "input": {"command": "grep -rn 'rows' work/"}}),
        ]
        lines = (
            json.dumps({"type": kind, "time": f"2026-08-21T21:{56 + n // 3}:{20 + n * 3}Z", "data": data})
            for n, (kind, data) in enumerate(events)
        )
        file = folder / "embedded" / "agent-claude-1755806400000000000.jsonl"
        file.parent.mkdir()
        file.write_text("".join(f"{line}\n" for line in lines))
