"""``demo-workspace`` builds the demo project, ``drain`` works on any project until nothing new is ready."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_ddx.demo.workspace import DemoError, build_demo
from helix_ddx.simulator.script import ScriptError
from helix_ddx.simulator.verb import cancel_on_signals, find_root, make_worker
from helix_ddx.simulator.worker import HUMAN_PACE_S, Orders, SimulatedResult
from helix_ddx.store.git import GitError
from helix_ddx.store.tracker import LockTimeout
from helix_tui.core.ground.text import clean_line

MAX_LOOPS = 100
"""A loop that stops early leaves at least one bead tried: more loops than beads are no drain."""


class DrainSummary(Struct):
    """What came of a drain."""

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


def drain(project: Path, pace: float = 0.0, era: str = "head", quiet: bool = True) -> DrainSummary:
    """Work until nothing is ready that was not tried; a loop that stops for a person is started again."""
    summary = DrainSummary(project)
    begun = time.monotonic()
    tried: set[str] = set()
    for _ in range(MAX_LOOPS):
        worker = make_worker(era, project, Orders(pace=pace), out=io.StringIO() if quiet else sys.stdout)
        # what one loop has tried the next one passes over: each bead is tried once
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
    """What the two verbs understand."""
    era = os.environ.get("HELIX_DDX_ERA") or "head"
    if verb == "demo-workspace":
        parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is absent or empty")
        parser.add_argument("--torn-line", action="store_true", help="with a line that a crash cut off")
    else:
        parser.add_argument("-C", dest="folder", type=Path, default=Path(), metavar="DIR", help="project folder")
        parser.add_argument("--pace", type=float, default=HUMAN_PACE_S, metavar="S", help="seconds a step takes")
        parser.add_argument("--json", action="store_true", help="one JSON object, nothing else")
    parser.add_argument("--era", choices=("april", "head"), default=era)


def run(args: argparse.Namespace) -> int:
    """Build or drain; one JSON object or a few lines for people."""
    try:
        if args.verb == "demo-workspace":
            workspace = build_demo(args.folder, args.era, torn=args.torn_line)
            sys.stdout.write(json.dumps(workspace.to_json(), indent=2) + "\n")
            return 0
        return _drain(args)
    except (DemoError, GitError, ScriptError, LockTimeout) as error:
        sys.stderr.write(f"helix-ddx {args.verb}: {error}\n")
        return 1
    # an OSError, too, but `main` answers it
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"helix-ddx {args.verb}: {error.filename}: {error.strerror}\n")
        return 1


def _drain(args: argparse.Namespace) -> int:
    summary = drain(find_root(args.folder), args.pace, args.era, quiet=args.json)
    if args.json:
        sys.stdout.write(json.dumps(summary.to_json(), indent=2) + "\n")
    else:
        sys.stdout.write(f"\nSIMULATION: {len(summary.results)} attempts in {summary.seconds:.1f} s\n")
        for result in summary.results:
            sys.stdout.write(f"  {_kind(result):<10}  {result.bead}  {clean_line(result.detail, 80)}\n")
    return 130 if summary.cancelled else 0


def _kind(result: SimulatedResult) -> str:
    """One of four: how the result counts in a summary."""
    if result.landed and result.closed:
        return "landed"
    if result.preserved:
        return "preserved"
    if result.status in ("no_changes", "already_satisfied", "no_evidence_produced"):
        return "no_changes"
    return "failed"
