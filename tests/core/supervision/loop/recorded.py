"""A ddx that does once what a real one was recorded doing: its files, its words, its exit code.

``python -m tests.core.supervision.loop.recorded TIMELINE ERA words…``; after that turn it
finds nothing to do.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from tests.core.supervision.loop.double import HELPS

IDLE = {"attempts": 0, "successes": 0, "failures": 0, "no_ready_work": True, "no_ready_work_detail": {}}


def main(timeline: Path, era: str, words: list[str]) -> int:
    """Answer one call."""
    verb = next((verb for verb in HELPS[era] if tuple(words[: len(verb)]) == verb), None)
    if verb is None:
        sys.stderr.write(f'Error: unknown command "{" ".join(words)}" for "ddx"\n')
        return 1
    if "--help" in words:
        flags = "\n".join(f"  {flag}" for flag in HELPS[era][verb].split())
        sys.stdout.write(f"Usage:\n  ddx {' '.join(verb)} [flags]\n\nFlags:\n{flags}\n")
        return 0
    if verb[-1] == "run":
        sys.stdout.write(json.dumps({"exit_code": 0, "output": "NEXT_ACTION: STOP\nnothing is left"}))
        return 0
    return _turn(timeline)


def _turn(timeline: Path) -> int:
    from tests.helix_ddx.player import Player

    done = Path("..", "done")
    if done.exists():
        sys.stdout.write(json.dumps(IDLE | {"project_root": os.getcwd()}, indent=2))
        return 0
    done.touch()
    player = Player(timeline, Path.cwd())
    player.shift_to_now(0)
    for step in player.steps():
        player.apply(step)
        if step.src == "stdout":
            sys.stdout.write(player.translate(step.text) + "\n")
        elif step.src == "stderr":
            sys.stderr.write(player.translate(step.text) + "\n")
    sys.stdout.flush()
    if (player.timeline.rc or 0) < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return player.timeline.rc or 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
