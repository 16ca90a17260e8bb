"""A console on the Loop screen over a project with attempts in it, fed by hand at a clock of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from textual.pilot import Pilot

from helix_tui.app import HelixApp, OnChange
from helix_tui.core.clock import parse_now
from helix_tui.core.live.feed import Gatherer
from helix_tui.core.live.snapshot import Snapshot, compare
from helix_tui.core.project import find_project
from helix_tui.screens.loop import LoopScreen

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
        app.loop._show_attempt()
    for _ in range(4):
        await app.workers.wait_for_complete()
        await pilot.pause()


class Attempts:
    """Writes a project with attempts as DDx leaves them (reference/ddx.md §5)."""

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
        manifest = {"attempt_id": attempt_id, "bead_id": bead_id, "created_at": "2026-08-21T20:00:00Z"}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        (folder / "prompt.md").write_text(f"# Work on {bead_id}\n\nDo it well.\n")
        if result is not None:
            document = {
                "bead_id": bead_id,
                "attempt_id": attempt_id,
                "harness": "claude",
                "model": "sonnet",
                "duration_ms": 252_000,
                "started_at": "2026-08-21T20:00:00Z",
                "finished_at": "2026-08-21T20:04:12Z",
            }
            (folder / "result.json").write_text(json.dumps(document | dict(result)))
        return folder

    def transcript(
        self, folder: Path, count: int = 3, name: str = "agent-claude-1755806400000000000"
    ) -> Path:
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

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True, timeout=30)
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
