"""How much memory a console uses while it is used and while everything changes: ``python -m bench.resident``.

Each scenario is a real console in a pseudo-terminal. Its resident memory (VmRSS, in MB of 10^6 bytes) is
read ten times on the way; the growth between the first tenth and the last shows whether it keeps what it
should drop. Bounds: 100 MB at 3,018 beads, 200 MB at 10,000, 150 MB for a demo used on all screens (220 MB
with the encoder at work), and 10 MB of growth.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import writes
from bench.console import Terminal, console_argv
from bench.trackers import touch_row, write_tracker

GROWTH_MB = 10.0
SCREENS = "234561"
# none with a q, which leaves where no line is open
QUESTIONS = (
    "where is a lease released",
    "how are retries counted",
    "who lands a branch",
    "what reads the queue",
)


class Events:
    """Everything that changes in a project while agents work, one event after the other."""

    def __init__(self, root: Path, ids: list[str], seed: int = 1) -> None:
        self.root = root
        self.ids = ids
        self.rng = random.Random(seed)
        self.count = 0
        self._ddx = root / ".ddx"
        for name in ("executions", "metrics", "agent-logs"):
            (self._ddx / name).mkdir(exist_ok=True)

    def happen(self) -> None:
        """One more event."""
        self.count += 1
        kind = self.rng.choice((self._rewrite, self._rewrite, self._bundle, self._metric, self._transcript))
        kind(self.ids[self.count % min(len(self.ids), 40)])

    def _rewrite(self, bead_id: str) -> None:
        touch_row(self._ddx / "beads.jsonl", bead_id, f"bench 0 rewritten {self.count}")

    def _bundle(self, bead_id: str) -> None:
        """An evidence folder comes, and an old one goes: a hundred are kept."""
        writes.bundle(self._ddx, bead_id, writes.attempt_id(self.count))
        for old in sorted(self._ddx.joinpath("executions").iterdir())[:-100]:
            shutil.rmtree(old)

    def _metric(self, bead_id: str) -> None:
        writes.metric(self._ddx, bead_id, f"a-{self.count % 500}")

    def _transcript(self, bead_id: str) -> None:
        data = {"bead_id": bead_id, "status": "success", "detail": "y" * 900}
        writes.append(self._ddx / "agent-logs" / "loop-bench.jsonl", {"type": "bead.result", "data": data})


@contextmanager
def console(root: Path, home: Path) -> Iterator[Terminal]:
    """A console on a project, painted."""
    with Terminal(console_argv(root), root, home) as terminal:
        terminal.wait_for("bench 0", timeout=60)
        terminal.settle(1.5)
        yield terminal


def visit(terminal: Terminal) -> None:
    """Every screen, and a few steps on each."""
    for key in SCREENS:
        os.write(terminal.fd, key.encode())
        terminal.settle(0.4, 4)
        os.write(terminal.fd, b"jjjk\tjj\t")
        terminal.settle(0.2, 2)


def soak(root: Path, home: Path, ids: list[str], *, events: int, pause_s: float, screens: bool) -> list[float]:
    """Ten samples while so many events happen; with ``screens`` all of them are visited now and then."""
    happening = Events(root, ids)
    samples = []
    with console(root, home) as terminal:
        for _ in range(10):
            if screens:
                visit(terminal)
            for _ in range(events // 10):
                happening.happen()
                terminal.settle(pause_s, pause_s)
            terminal.settle(0.5, 3)
            samples.append(terminal.resident_mb())
    return samples


def unread(root: Path, home: Path, ids: list[str], *, events: int) -> list[float]:
    """The tracker rewritten while nobody reads the terminal."""
    samples = []
    with console(root, home) as terminal:
        for number in range(events):
            touch_row(root / ".ddx" / "beads.jsonl", ids[0], f"bench 0 rewritten {number}")
            time.sleep(0.02)
            if number % max(1, events // 10) == 0:
                samples.append(terminal.resident_mb())
    return samples


def demo(home: Path, *, seconds: float, encoder: bool) -> list[float]:
    """The demo, used on all screens; with the encoder Memory and Ask are searched again and again."""
    samples: list[float] = []
    embedder = f"HELIX_EMBEDDER={'auto' if encoder else 'off'}"
    lasting = ["--seconds", str(seconds * 2 + 60)]
    words = ["env", embedder, sys.executable, "-m", "helix_tui", "demo", *lasting]
    with Terminal(words, Path.cwd(), home) as terminal:
        terminal.settle(3, 30)
        visit(terminal)
        if encoder:
            search(terminal, 0)
        rng, begun, turn = random.Random(1), time.monotonic(), itertools.count(1)
        while len(samples) < 10:
            os.write(terminal.fd, rng.choice([*SCREENS, *"jjkklh[]Gg", "\t", "\r", "\x1b"]).encode())
            terminal.settle(0.15, 0.4)
            if encoder and next(turn) % 8 == 0:
                search(terminal, next(turn))
            if time.monotonic() - begun >= seconds / 10 * (len(samples) + 1):
                samples.append(terminal.resident_mb())
        os.write(terminal.fd, b"\x1b\x1b\x1bq")
        terminal.settle(2, 5)
    return samples


def search(terminal: Terminal, turn: int) -> None:
    """A question to the repository, and the same words among the memories; no two questions are alike."""
    words = f"{QUESTIONS[turn % len(QUESTIONS)]} {turn}"
    for screen, opened in (("4", "i"), ("3", "/")):
        for keys in ("\x1b\x1b", screen, opened, words, "\r"):
            os.write(terminal.fd, keys.encode())
            terminal.settle(0.3, 3)
        os.write(terminal.fd, b"jj\x1b")
        terminal.settle(0.2, 1)


def _project(folder: Path, beads: int) -> tuple[Path, list[str]]:
    root = folder / f"p{beads}"
    shutil.rmtree(root, ignore_errors=True)
    return root, write_tracker(root / ".ddx" / "beads.jsonl", beads)


def main() -> int:
    """Measure and print; 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=600, help="events a scenario (default 600)")
    parser.add_argument("--seconds", type=float, default=120, help="seconds of the demo (default 120)")
    parser.add_argument("--only", help="the scenarios whose name holds this")
    options = parser.parse_args()
    holds = True
    with tempfile.TemporaryDirectory(prefix="helix-resident-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        home = folder / "home"
        home.mkdir()
        for name, limit, run in _scenarios(folder, home, options.events, options.seconds):
            if options.only and options.only not in name:
                continue
            samples = run()
            grown = samples[-1] - samples[0]
            good = grown <= GROWTH_MB and max(samples) <= limit
            holds = holds and good
            shown = " ".join(f"{sample:.0f}" for sample in samples)
            print(
                f"{name}: {shown} MB; grown {grown:+.1f}, bound {limit:.0f}: {'ok' if good else 'NO'}",
                flush=True,
            )
    return 0 if holds else 1


Scenario = tuple[str, float, Callable[[], list[float]]]


def _scenarios(folder: Path, home: Path, events: int, seconds: float) -> Iterator[Scenario]:
    """Name, bound in MB, and what measures it."""

    def on(beads: int, pause_s: float, screens: bool) -> Callable[[], list[float]]:
        def run() -> list[float]:
            root, ids = _project(folder, beads)
            return soak(root, home, ids, events=events, pause_s=pause_s, screens=screens)

        return run

    def nobody_reads() -> list[float]:
        root, ids = _project(folder, 188)
        return unread(root, home, ids, events=events)

    yield "188 beads, events", 100, on(188, 0.02, False)
    yield "188 beads, events, all screens", 100, on(188, 0.02, True)
    yield "188 beads, nobody reads the terminal", 100, nobody_reads
    for screens, shown in ((False, ""), (True, ", all screens")):
        yield f"3,018 beads, events{shown}", 100, on(3_018, 0.05, screens)
        yield f"10,000 beads, events{shown}", 200, on(10_000, 0.1, screens)
    yield "demo, all screens", 150, lambda: demo(home, seconds=seconds, encoder=False)
    yield "demo, all screens, encoder at work", 220, lambda: demo(home, seconds=seconds, encoder=True)


if __name__ == "__main__":
    sys.exit(main())
