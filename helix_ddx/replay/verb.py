"""``helix-ddx play``: the player as a process, so that the recorded worker has a living pid."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from helix_ddx.replay.player import Player
from helix_ddx.replay.timeline import TimelineError, TimelineStep


def add_arguments(parser: argparse.ArgumentParser, verb: str) -> None:
    """What ``play`` understands."""
    parser.add_argument("file", type=Path, help="a recorded timeline, <era>-<scenario>.jsonl")
    parser.add_argument("-C", dest="folder", type=Path, required=True, metavar="DIR", help="folder to write into")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=_speed, default=1.0, metavar="X", help="times as fast; 0 is at once")
    pace.add_argument("--step", action="store_true", help="one step for each line on stdin")
    parser.add_argument("--shift", action="store_true", help="move all recorded times to now")
    parser.add_argument("--home", type=Path, help="stands for the worker's home (default DIR/.home)")


def run(args: argparse.Namespace) -> int:
    """Play the file and end as the recorded worker did."""
    try:
        player = Player(args.file, args.folder, home=args.home)
        if args.shift:
            player.shift_to_now(0.0 if args.step else args.speed)
        player.prepare()
        complete = _step_by_step(player) if args.step else _at_speed(player, args.speed)
    except TimelineError as error:
        sys.stderr.write(f"helix-ddx play: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"helix-ddx play: cannot write {error.filename}: {error.strerror}\n")
        return 1
    if not complete:
        return 1
    rc = player.timeline.rc
    if rc is None:
        sys.stderr.write("helix-ddx play: the recording ends without an exit code\n")
        return 0
    if rc < 0:
        sys.stdout.flush()
        os.kill(os.getpid(), signal.Signals(-rc))
        signal.pause()
    return rc


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed < float("inf"):
        raise argparse.ArgumentTypeError("a speed is 0 or more")
    return speed


def _at_speed(player: Player, speed: float) -> bool:
    begun = time.monotonic()
    for step in player.steps():
        if speed:
            time.sleep(max(0.0, begun + step.t / speed - time.monotonic()))
        player.apply(step)
        _echo(player, step)
    return True


def _step_by_step(player: Player) -> bool:
    steps = player.steps()
    for number, step in enumerate(steps, 1):
        if not sys.stdin.readline():
            sys.stderr.write(f"helix-ddx play: stdin ended after {number - 1} of {len(steps)} steps\n")
            return False
        path = player.apply(step)
        what = f"{step.op} {path}" if path else f"{step.src} {player.translate(step.text)}".rstrip()
        sys.stdout.write(f"{number}/{len(steps)} {step.t:.3f} {what}\n")
        sys.stdout.flush()
    return True


def _echo(player: Player, step: TimelineStep) -> None:
    stream = {"stdout": sys.stdout, "stderr": sys.stderr}.get(step.src)
    if stream is not None:
        stream.write(player.translate(step.text) + "\n")
        stream.flush()
