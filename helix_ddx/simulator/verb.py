"""The verbs that run beads: ``work``, ``try``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType

from helix_ddx.flags import parse_float
from helix_ddx.simulator.head import HeadWorker
from helix_ddx.simulator.script import ScriptError, read_plan
from helix_ddx.simulator.worker import HUMAN_PACE_S, Orders, Worker
from helix_ddx.store.git import GitError
from helix_ddx.store.tracker import LockTimeout
from helix_ddx.store.workspace import VerbCall
from helix_tui.core.ground.process import run as run_program

DEMO_MARKER = "helix-ddx-demo"
"""The file in the git folder of a demo, where no clone brings it."""

DEFAULT_IDLE_S = 30.0
"""Seconds between two looks of a waiting loop."""


class NotADemo(RuntimeError):
    """The project is not one that ``demo-workspace`` made."""


def run(call: VerbCall) -> int:
    """Work on the queue; DDx's exit code."""
    given = call.given
    named = given.text("project") or given.text("folder") or call.env.get("DDX_PROJECT_ROOT")
    one = call.id if given.words else ""
    orders = Orders(
        once=bool(one) or given.on("once"),
        watch=given.on("watch"),
        idle_s=given.seconds("idle-interval") or DEFAULT_IDLE_S,
        as_json=given.on("json"),
        only=one,
        label=given.text("label-filter"),
        no_review=given.on("no-review"),
        pace=_pace(call),
    )
    plan = given.text("plan") or call.env.get("HELIX_DDX_PLAN")
    try:
        acts = read_plan(Path(plan)) if plan else {}
        worker = HeadWorker(demo_root(Path(named or ".")), orders, plan=acts)
        cancel_on_signals(worker)
        return worker.execute_one(one) if one else worker.run()
    except (ScriptError, GitError, LockTimeout, NotADemo) as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        sys.stderr.write(f"Error: {error.filename}: {error.strerror}\n")
        return 1


def demo_root(start: Path) -> Path:
    """The git root above a folder, as DDx looks for its project; only of a project that ``demo-workspace`` made.

    Raises:
        NotADemo: it is another project, in which the simulation would commit made-up work.
        GitError: git is missing or hangs.
    """
    command = ["git", "-C", str(start), "rev-parse", "--show-toplevel", "--git-common-dir"]
    try:
        done = run_program(command, timeout=30)
    except OSError as error:
        raise GitError(f"git in {start}: {error}") from None
    root, _, common = done.out.strip().partition("\n")
    if done.rc or not (start / common / DEMO_MARKER).is_file():
        raise NotADemo(
            f"{start.resolve()} is not a demo, and this simulation would commit made-up work to it. "
            "`helix-ddx demo-workspace DIR` makes a project to try it in; real work needs ddx."
        )
    return Path(root)


def cancel_on_signals(worker: Worker) -> None:
    """The first signal asks the worker to stop, the second one kills."""

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        worker.cancelled = signal.Signals(number).name.lower()
        sys.stderr.write("Cancel received, shutting down gracefully\n")

    signal.signal(signal.SIGINT, ask)
    signal.signal(signal.SIGTERM, ask)


def _pace(call: VerbCall) -> float:
    if call.given.has("pace"):
        return parse_float(call.given.text("pace"))
    try:
        return float(call.env.get("HELIX_DDX_PACE", HUMAN_PACE_S))
    except ValueError:
        return HUMAN_PACE_S
