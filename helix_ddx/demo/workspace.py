"""The demo: a throw-away git project whose queue shows every state, ready to be drained.

``queue.toml`` has the beads with their past attempts, ``code.toml`` the commits of people and questions that the code
answers. All of it is dated back from one instant, so that the same instant makes the same project. The verb
``demo-workspace`` builds it; ``drain`` works on it until nothing new is ready.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import sys
import time
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_ddx.files import Disk, attempt_id, go_json, second, stamp
from helix_ddx.simulator import evidence
from helix_ddx.simulator.head import HeadWorker
from helix_ddx.simulator.script import HARNESS, ScriptError
from helix_ddx.simulator.verb import DEMO_MARKER, NotADemo, cancel_on_signals, demo_root
from helix_ddx.simulator.worker import HUMAN_PACE_S, Orders, SimulatedResult
from helix_ddx.store.git import GitError, commit, git, head, init
from helix_ddx.store.tracker import LockTimeout, Row, Store, event
from helix_tui.core.ground.text import clean_line, counted
from helix_tui.core.ground.time import NS, now_ns

MEDIUM = "simulation-medium"
"""The default model of an attempt."""

PREFIX = "ferry"
DAY = 86_400 * NS
HOUR = 3_600 * NS

_IGNORED = (
    "agent-logs/ attachments/ workers/ coordination/ executions/ runs/ metrics/locks.jsonl "
    "metrics/locks.jsonl.lock *.lock *.tmp* run-state.json run-state/ dirty-root-guard.json"
)
"""What DDx keeps out of git, under ``.ddx/``."""

MAX_LOOPS = 100
"""A loop that stops early has tried at least one bead, so more loops than beads mean no progress."""


class PastAttempt(Struct, frozen=True):
    """An attempt of the past: how it ended, how many hours ago, how long, with what, for how much."""

    status: str
    hours_ago: float
    minutes: float
    model: str = MEDIUM
    tokens: int = 38_000
    cost: float | None = None
    """Dollars; None if unknown."""


class DemoBead(Struct, frozen=True):
    """One bead of the demo, with a key from which its id is derived."""

    key: str
    title: str
    priority: int
    area: str
    description: str = ""
    acceptance: tuple[str, ...] = ()
    waits_on: tuple[str, ...] = ()
    status: str = "open"
    issue_type: str = "task"
    parent: str = ""
    labels: tuple[str, ...] = ()
    days_ago: float = 6.0
    fields: dict[str, Any] = {}
    act: dict[str, Any] | str | None = None
    """What the simulated agent does with it (`simulator.script`)."""
    past: tuple[PastAttempt, ...] = ()


class DemoQueue(Struct, frozen=True):
    """All beads, the one in the archive, and a line that a crash cut off."""

    malformed: str
    archived: DemoBead
    queue: tuple[DemoBead, ...]


class DemoCommit(Struct, frozen=True):
    """One commit: its message, its author, its age in days, and the files it writes."""

    message: str
    days_ago: float
    files: dict[str, str] = {}
    author: str = "maren"


class DemoCode(Struct, frozen=True):
    """The commits of people, oldest first, and questions that the code answers."""

    questions: tuple[str, ...]
    commits: tuple[DemoCommit, ...]


@cache
def demo_queue() -> DemoQueue:
    """The queue of the demo."""
    document = _read("queue.toml")
    for bead in document["queue"]:
        act = bead.get("act")
        if isinstance(act, dict) and act.get("cost_usd") == "none":
            act["cost_usd"] = None  # TOML has no null
    return msgspec.convert(document, DemoQueue)


@cache
def demo_code() -> DemoCode:
    """The code base of the demo."""
    return msgspec.convert(_read("code.toml"), DemoCode)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("helix_ddx.demo").joinpath(name).read_text(encoding="utf-8"))


class DemoError(RuntimeError):
    """The demo cannot be built in that folder; the message says why."""


class DemoWorkspace(Struct, frozen=True):
    """The demo project."""

    project: Path
    beads: int

    def to_json(self) -> dict[str, Any]:
        """What ``demo-workspace`` prints."""
        return {"schema": "demo-workspace/1", "workspace": str(self.project), "era": "head", "beads": self.beads}


def build_demo(folder: Path, now: int | None = None, *, torn: bool = False) -> DemoWorkspace:
    """Create the demo project in a new or empty folder; the same ``now`` gives the same project.

    ``torn`` leaves a truncated line in the tracker, as after a crash, so that nothing may be written.

    Raises:
        DemoError: the folder is not empty.
        GitError: git is missing or refused.
    """
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise DemoError(f"{folder} is not empty: name a folder that does not exist yet")
    return _Builder(folder, now_ns() if now is None else now).build((demo_queue().malformed,) if torn else ())


class _Builder:
    def __init__(self, project: Path, now: int) -> None:
        self.project = project
        # whole seconds, as git dates commits
        self.now = now // NS * NS
        self.disk = Disk()
        self.store = Store(project / ".ddx", self.disk)
        self.commits: dict[str, str] = {}

    def build(self, strangers: tuple[str, ...]) -> DemoWorkspace:
        init(self.project)
        # a machine without a git identity can land in the demo too
        for name, value in (("user.name", "demo"), ("user.email", "demo@localhost")):
            git(self.project, "config", name, value)
        self.disk.replace(self.project / ".git" / DEMO_MARKER, "made by helix-ddx demo-workspace\n")
        self._write_settings()
        self._commit_past()
        rows = [self._row(seed) for seed in demo_queue().queue]
        self._write_metrics()
        self._write_archive()
        self.store.write_new(rows, strangers)
        commit(self.project, "beads: the queue", ".ddx", ".gitignore", at=self.now - HOUR)
        return DemoWorkspace(self.project, len(rows))

    def _write_settings(self) -> None:
        ignored = "".join(f".ddx/{name}\n" for name in _IGNORED.split())
        self.disk.replace(self.project / ".gitignore", f"/.exec/\n/.helix/\n__pycache__/\n{ignored}")
        self.disk.replace(
            self.project / ".ddx" / "config.yaml",
            f'version: "1.0"\nbead:\n    id_prefix: {PREFIX}\ngit:\n    auto_commit: never\n'
            "executions:\n    temp_worktree_root: .exec\n",
        )
        ready = "".join(f"{question}\n" for question in demo_code().questions)
        self.disk.replace(self.project / ".helix" / "ask" / "questions.txt", ready)

    def _commit_past(self) -> None:
        """People's commits and, between them, the commits that past attempts landed."""
        past: list[tuple[float, str, dict[str, str], str, str]] = [
            (made.days_ago, made.message, made.files, made.author, "") for made in demo_code().commits
        ]
        landed = [
            (run.hours_ago / 24, seed) for seed in demo_queue().queue for run in seed.past if run.status == "success"
        ]
        past += [(days, f"feat: {seed.title[0].lower()}{seed.title[1:]}", {}, "", seed.key) for days, seed in landed]
        changes = "# Changes\n\n"
        for days, message, written, author, key in sorted(past, key=lambda item: -item[0]):
            if key:
                changes += f"- {message.removeprefix('feat: ')} ({bead_id(key)})\n"
                written = {"CHANGES.md": changes}
            for path, text in written.items():
                self.disk.replace(self.project / path, text)
            at = self.now - round(days * DAY)
            rev = commit(self.project, message, *written, at=at, **({"author": author} if author else {}))
            self.commits[key] = rev

    def _row(self, seed: DemoBead) -> Row:
        fields = dict(seed.fields)
        row: Row = {
            "id": bead_id(seed.key),
            "title": seed.title,
            "status": seed.status,
            "priority": seed.priority,
            "issue_type": seed.issue_type,
            "created_at": stamp(self._made(seed)),
            "updated_at": stamp(self._made(seed) + HOUR),
            "labels": [f"area:{seed.area}", *seed.labels],
            "schema_version": 1,
        }
        if seed.description:
            row["description"] = seed.description
        if seed.acceptance:
            row["acceptance"] = "\n".join(f"{n}. {line}" for n, line in enumerate(seed.acceptance, 1))
        if seed.parent:
            row["parent"] = bead_id(seed.parent)
        if seed.waits_on:
            row["dependencies"] = [
                {
                    "issue_id": row["id"],
                    "depends_on_id": bead_id(key),
                    "type": "blocks",
                    "created_at": second(self._made(seed)),
                }
                for key in seed.waits_on
            ]
        if seed.act is not None:
            row["simulate"] = seed.act
        self._set_memory(row, fields)
        if "superseded-by" in fields:
            fields["superseded-by"] = bead_id(fields["superseded-by"])
        row |= fields
        self._set_past(seed, row)
        return row

    def _set_memory(self, row: Row, fields: dict[str, Any]) -> None:
        """The worker's record of its last attempt."""
        hours = fields.pop("cooldown_hours", None)
        if hours is not None:
            row["work-retry-after"] = second(self.now + round(hours * HOUR))
        for name in ("last_status", "last_detail"):
            if name in fields:
                row[f"work-{name.replace('_', '-')}"] = fields.pop(name)

    def _set_past(self, seed: DemoBead, row: Row) -> None:
        events = [entry for run in seed.past for entry in self._leave_attempt(seed, row, run)]
        if not events:
            return
        row["updated_at"] = events[-1]["created_at"]
        if seed.status == "closed":
            row["closing_commit_sha"] = self.commits.get(seed.key) or head(self.project)
            row["session_id"] = _session(seed, seed.past[-1])
        if seed.status == "closed":
            row["events_attachment"] = f"{row['id']}/events.jsonl"
            text = "".join(go_json(entry) + "\n" for entry in events)
            self.disk.create(self.project / ".ddx" / "attachments" / row["events_attachment"], text)
        else:
            row["events"] = events

    def _leave_attempt(self, seed: DemoBead, row: Row, run: PastAttempt) -> list[dict[str, str]]:
        """The bundle of one past attempt; its events."""
        begun, ended = self._span(run)
        attempt = _attempt(seed, run, begun)
        tokens = (run.tokens * 19 // 20, run.tokens - run.tokens * 19 // 20)
        used = evidence.usage(attempt, HARNESS, run.model, tokens, run.cost)
        base = git(self.project, "rev-list", "-1", f"--before={ended // NS}", "HEAD") or head(self.project)
        landed = self.commits.get(seed.key) if run.status == "success" else None
        more: dict[str, Any] = {}
        if run.status == "land_conflict":
            more["preserve_ref"] = f"refs/ddx/iterations/{row['id']}/{attempt}-{base[:12]}"
            git(self.project, "update-ref", more["preserve_ref"], base)
        detail = "success" if landed else run.status
        result = evidence.result(
            attempt,
            row["id"],
            base,
            landed or base,
            run.status,
            detail,
            _session(seed, run),
            (begun, ended),
            used,
            **more,
        )
        manifest = evidence.manifest(attempt, row, base, begun, HARNESS, run.model, f".exec/{attempt}")
        folder = self.project / evidence.bundle(attempt)
        self.disk.replace(folder / "manifest.json", evidence.document(manifest))
        self.disk.replace(folder / "prompt.md", evidence.prompt(row))
        self.disk.replace(folder / "usage.json", evidence.document(used))
        self.disk.replace(folder / "result.json", evidence.document(result))
        source = "ddx work"
        body = f"{detail}\nresult_rev={result['result_rev']}\nbase_rev={base}"
        if more:
            body += f"\npreserve_ref={more['preserve_ref']}"
        return [
            evidence.cost_event(
                attempt, HARNESS, run.model, tokens, run.cost, (ended - begun) // 1_000_000, ended, source
            ),
            event("execute-bead", run.status, body, ended + NS // 3, actor="simulation", source=source),
        ]

    def _write_metrics(self) -> None:
        rows = []
        for seed in demo_queue().queue:
            for run in seed.past:
                begun, ended = self._span(run)
                rows.append(
                    evidence.attempt_metric(
                        _attempt(seed, run, begun),
                        bead_id(seed.key),
                        _session(seed, run),
                        (begun, ended),
                        run.model,
                        HARNESS,
                        run.status,
                        run.cost,
                    )
                )
        rows.sort(key=lambda row: str(row["ts_end"]))
        text = "".join(go_json(row) + "\n" for row in rows)
        self.disk.create(self.project / ".ddx" / "metrics" / "attempts.jsonl", text)

    def _write_archive(self) -> None:
        """The archive, with a bead that others still wait on."""
        old = self._row(demo_queue().archived)
        self.disk.replace(self.project / ".ddx" / "beads-archive.jsonl", go_json(dict(sorted(old.items()))) + "\n")

    def _made(self, seed: DemoBead) -> int:
        return self.now - round(seed.days_ago * DAY) + int(_digest(seed.key)[:6], 16) * 59

    def _span(self, run: PastAttempt) -> tuple[int, int]:
        begun = self.now - round(run.hours_ago * HOUR)
        return begun, begun + round(run.minutes * 60 * NS)


def bead_id(key: str) -> str:
    """The id of a demo bead; always the same."""
    return f"{PREFIX}-{_digest(key)[:8]}"


def _digest(text: str) -> str:
    return hashlib.sha256(f"{PREFIX}:{text}".encode()).hexdigest()


def _attempt(seed: DemoBead, run: PastAttempt, begun: int) -> str:
    return attempt_id(begun, _digest(f"{seed.key}@{run.hours_ago}"))


def _session(seed: DemoBead, run: PastAttempt) -> str:
    return f"eb-{_digest(f'session {seed.key}@{run.hours_ago}')[:8]}"


class DrainSummary(Struct):
    """The result of a drain."""

    workspace: Path
    results: list[SimulatedResult] = []
    seconds: float = 0.0
    cancelled: bool = False

    def to_json(self) -> dict[str, Any]:
        """What ``drain --json`` prints."""
        counts = dict.fromkeys(("landed", "preserved", "failed", "no_changes"), 0)
        for result in self.results:
            counts[_kind(result)] += 1
        return {
            "schema": "drain/1",
            "workspace": str(self.workspace),
            "simulation": True,
            "attempts": [result.to_json() for result in self.results],
            "counts": counts,
            "memories": {},
            "seconds": round(self.seconds, 3),
        }


def drain(project: Path, pace: float = 0.0, quiet: bool = True) -> DrainSummary:
    """Work until every ready bead has been tried; a loop that stops for a person is started again."""
    summary = DrainSummary(project)
    begun = time.monotonic()
    tried: set[str] = set()
    for _ in range(MAX_LOOPS):
        worker = HeadWorker(project, Orders(pace=pace), out=io.StringIO() if quiet else sys.stdout)
        # the next loop skips what an earlier one tried: each bead is tried once
        worker.attempted = tried
        if not quiet:
            cancel_on_signals(worker)
        worker.run()
        summary.results += worker.results
        summary.cancelled = bool(worker.cancelled)
        if worker.cancelled or not any(result.stops for result in worker.results):
            break
    summary.seconds = time.monotonic() - begun
    return summary


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """The options of the two verbs."""
    if verb == "demo-workspace":
        parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is absent or empty")
        parser.add_argument("--torn-line", action="store_true", help="with a line that a crash cut off")
    else:
        parser.add_argument("-C", dest="folder", type=Path, default=Path(), metavar="DIR", help="project folder")
        parser.add_argument("--pace", type=float, default=HUMAN_PACE_S, metavar="S", help="seconds a step takes")
        parser.add_argument("--json", action="store_true", help="one JSON object, nothing else")


def run(args: argparse.Namespace) -> int:
    """Build or drain; one JSON object or a few lines for people."""
    try:
        if args.verb == "demo-workspace":
            workspace = build_demo(args.folder, torn=args.torn_line)
            sys.stdout.write(json.dumps(workspace.to_json(), indent=2) + "\n")
            return 0
        return _drain(args)
    except (DemoError, NotADemo, GitError, ScriptError, LockTimeout) as error:
        sys.stderr.write(f"helix-ddx {args.verb}: {error}\n")
        return 1
    # an OSError, too, but `main` answers it
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"helix-ddx {args.verb}: {error.filename}: {error.strerror}\n")
        return 1


def _drain(args: argparse.Namespace) -> int:
    summary = drain(demo_root(args.folder), args.pace, quiet=args.json)
    if args.json:
        sys.stdout.write(json.dumps(summary.to_json(), indent=2) + "\n")
    else:
        sys.stdout.write(f"\nSIMULATION: {counted(len(summary.results), 'attempt')} in {summary.seconds:.1f} s\n")
        for result in summary.results:
            sys.stdout.write(f"  {_kind(result):<10}  {result.bead}  {clean_line(result.detail, 80)}\n")
    return 130 if summary.cancelled else 0


def _kind(result: SimulatedResult) -> str:
    """Which of the four summary categories a result counts in."""
    if result.landed and result.closed:
        return "landed"
    if result.preserved:
        return "preserved"
    if result.status in ("no_changes", "already_satisfied", "no_evidence_produced"):
        return "no_changes"
    return "failed"
