"""All drills, one after the other: ``make drill`` (an hour)."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.drills.projects import REPOSITORY


def commands(seconds: float, seed: int) -> dict[str, list[str]]:
    """Each drill in a process of its own, for about so long."""
    events = max(5_000, int((seconds - 100) * 300))
    return {
        "monkey": ["tests.drills.monkey", "--seconds", f"{seconds:.0f}", "--seed", str(seed)],
        "soak": ["tests.drills.soak", "--events", str(events), "--seed", str(seed)],
        "stores": ["tests.drills.stores", "--seconds", f"{seconds:.0f}", "--seed", str(seed)],
        "faults": ["pytest", "-q", "-n", "0", "tests/drills/test_faults.py", "tests/drills/test_signals.py"],
    }


def main(words: Sequence[str] | None = None) -> int:
    """Run them; 1 when one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=8.0, help="for all of them together (default 8)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--only", help="one drill, by its name")
    options = parser.parse_args(words)
    failed = []
    print(f"drills: seed {options.seed}", flush=True)
    for name, command in commands(options.minutes * 60 / 4, options.seed).items():
        if options.only not in (None, name):
            continue
        begun = time.monotonic()
        done = subprocess.run([sys.executable, "-m", *command], cwd=REPOSITORY, check=False)
        failed += [name] if done.returncode else []
        print(f"{name}: {'FAILED' if done.returncode else 'ok'}, {time.monotonic() - begun:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
