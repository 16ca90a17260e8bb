"""The verbs that carry beads through: ``work``, ``try``; in April ``agent execute-loop|execute-bead``."""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from helix_tui.core.tracker.git import GitError
from helix_tui.core.tracker.rehearsal.script import ScriptError, read_plan
from helix_tui.core.tracker.rehearsal.worker import HUMAN_PACE_S, Orders, Worker
from helix_tui.core.tracker.store import LockTimeout

_VALUED = (
    *("--harness", "--model", "--profile", "--provider", "--model-ref", "--effort", "--from", "--reason"),
    *("--review-harness", "--review-model", "--review-tier", "--min-tier", "--max-tier", "--min-power"),
    *("--max-power", "--max-cost", "--max-bead-cost", "--max-recovery-cost", "--attempt-backend"),
    *("--preclaim-timeout", "--route-resolution-timeout", "--attempt-wall-clock", "--request-timeout"),
    *("--rate-limit-max-wait", "--adaptive-min-tier-window"),
)
_PLAIN = (
    *("--local", "--ignore-cooldown", "--no-adaptive-min-tier", "--allow-non-default-branch", "--no-merge"),
    *("--self-refresh", "--no-self-refresh", "--tracker-sync", "--no-tracker-sync", "--no-update-check"),
    "--no-review-i-know-what-im-doing",
)
"""Words of DDx that a rehearsal has no use for; they are understood and passed over."""


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """The words that DDx knows for this verb, and our own ``--pace`` and ``--plan``."""
    if verb == "agent":
        verbs = parser.add_subparsers(dest="agent_verb", metavar="VERB", required=True)
        _add_words(verbs.add_parser("execute-loop", help="drain the queue"), "")
        _add_words(verbs.add_parser("execute-bead", help="carry one bead through"), "execute-bead")
    else:
        _add_words(parser, verb)


def run(args: argparse.Namespace) -> int:
    """Work on the queue; DDx's exit code."""
    project = find_root(args.project or args.folder or Path(os.environ.get("DDX_PROJECT_ROOT") or "."))
    one = getattr(args, "bead", "")
    orders = Orders(
        once=bool(one) or args.once,
        watch=args.watch or args.poll_interval > 0,
        idle_s=args.poll_interval or args.idle_interval,
        as_json=args.json,
        only=one,
        label=args.label_filter,
        no_review=args.no_review,
        pace=args.pace,
    )
    try:
        plan = read_plan(args.plan) if args.plan else {}
        worker = make_worker(os.environ.get("HELIX_DDX_ERA", "head"), project, orders, plan=plan)
        return _run(worker, one)
    except (ScriptError, GitError, LockTimeout) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"Error: {error.filename}: {error.strerror}\n")
        return 1


def make_worker(era: str, project: Path, orders: Orders, **about: Any) -> Worker:
    """The rehearsal of an era; ``about`` are other fields of ``Worker``."""
    if era == "april":
        from helix_tui.core.tracker.rehearsal.april import AprilWorker

        return AprilWorker(project, orders, **about)
    from helix_tui.core.tracker.rehearsal.head import HeadWorker

    return HeadWorker(project, orders, **about)


def find_root(start: Path) -> Path:
    """The git root above a folder, as DDx looks for its project."""
    command = ["git", "-C", str(start), "rev-parse", "--show-toplevel"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git in {start}: {error}") from None
    return Path(done.stdout.strip()) if done.returncode == 0 else start


def _run(worker: Worker, one: str) -> int:
    if worker.era == "april":
        # DDx of April has no handler: an interrupt ends it where it stands
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    else:
        cancel_on_signals(worker)
    if one:
        return worker.execute_one(one)
    return worker.run()


def cancel_on_signals(worker: Worker) -> None:
    """The first signal asks the worker to stop, the second one kills."""

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        worker.cancelled = signal.Signals(number).name.lower()
        sys.stderr.write("Cancel received, shutting down gracefully\n")

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


def _add_words(parser: argparse.ArgumentParser, verb: str) -> None:
    if verb in ("try", "execute-bead"):
        parser.add_argument("bead", metavar="ID")
    parser.add_argument("-C", dest="folder", type=Path, metavar="DIR", help="project folder")
    parser.add_argument("--project", type=Path, help="the same, in DDx's words")
    parser.add_argument("--once", action="store_true", help="one bead, then stop")
    parser.add_argument("--watch", action="store_true", help="wait for more when nothing is ready")
    parser.add_argument("--idle-interval", type=seconds, default=30.0, metavar="30s")
    parser.add_argument("--poll-interval", type=seconds, default=0.0, metavar="30s")
    parser.add_argument("--label-filter", default="", metavar="LABEL")
    parser.add_argument("--no-review", action="store_true")
    parser.add_argument("--json", action="store_true", help="the result object on stdout")
    parser.add_argument(
        "--pace", type=float, default=_pace(), metavar="S", help="seconds a step takes; 0 is at once"
    )
    parser.add_argument("--plan", type=Path, default=_plan(), metavar="FILE", help="acts by bead id, as JSON")
    for word in _VALUED:
        parser.add_argument(word, help=argparse.SUPPRESS)
    for word in _PLAIN:
        parser.add_argument(word, action="store_true", help=argparse.SUPPRESS)


def seconds(text: str) -> float:
    """A Go duration (``30s``, ``1m30s``, ``250ms``) in seconds."""
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if text == "0":
        return 0.0
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f"time: invalid duration {text!r}")
    return sum(float(number) * units[unit] for number, unit in parts)


def _pace() -> float:
    try:
        return float(os.environ.get("HELIX_DDX_PACE", HUMAN_PACE_S))
    except ValueError:
        return HUMAN_PACE_S


def _plan() -> Path | None:
    return Path(os.environ["HELIX_DDX_PLAN"]) if os.environ.get("HELIX_DDX_PLAN") else None
