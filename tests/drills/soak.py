"""A console beside agents that never stop: after a million events it holds what it held after the first.

``python -m tests.drills.soak --events 1000000 --beads 188``. Everything that ddx, its workers and HELIX write
changes at full speed: the tracker (by rename, as DDx does), bundles, metrics, loop logs, transcripts,
memories. Somebody goes through all screens now and then. After each tenth resident memory, threads,
descriptors, widgets and memories are counted; the last may lie 10 MB above the first.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import writes
from bench.console import Terminal
from bench.resident import GROWTH_MB
from bench.trackers import write_tracker
from helix_tui.core.memory.memory_store import open_memory
from tests.drills.projects import REPOSITORY

KEPT = 100
"""Of bundles, transcripts and memories so many are kept: what grows without end on disk may grow here too."""

ATTEMPTS = 480
"""Attempts that loops, metrics and events tell of, again and again; each is of one of 60 beads."""

WARM = 6_000
"""Events after which bundles, loops and transcripts have come and gone, whatever the length of a soak."""

VISIT_EVERY_S = 20.0

PROBE = """
import collections, gc, json, os, signal, sys, threading, weakref
from textual.widget import Widget
alive, make = weakref.WeakSet(), Widget.__init__
def made(self, *words, **options):
    alive.add(self)
    make(self, *words, **options)
Widget.__init__ = made
def count(*_):
    names = collections.Counter(type(one).__name__ for one in gc.get_objects())
    told = {"widgets": len(alive), "most": names.most_common(25)}
    with open(sys.argv[1] + ".tmp", "w") as file:
        json.dump(told, file)
    os.replace(sys.argv[1] + ".tmp", sys.argv[1])
signal.signal(signal.SIGUSR1, count)
from helix_tui.cli.program import main
sys.exit(main(sys.argv[2:]))
"""
"""The console, which also says how many widgets it has when it gets SIGUSR1."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a console holds at one time."""

    events: int
    seconds: float
    resident_mb: float
    threads: int
    descriptors: int
    widgets: int
    memories: int


class Events:
    """Everything that changes in a project while agents work, one event after the other."""

    def __init__(self, root: Path, beads: int, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.by_kind: dict[str, int] = {}
        self.ids = write_tracker(root / ".ddx" / "beads.jsonl", beads)
        self._ddx = root / ".ddx"
        self._lines = (self._ddx / "beads.jsonl").read_bytes().splitlines()
        self._lately: dict[str, deque[Path]] = {}
        self._memory = open_memory(root / ".helix" / "helix.db", teacher="person")
        for name in ("executions", "metrics", "agent-logs", "workers"):
            (self._ddx / name).mkdir(exist_ok=True)
        weigh = 40 * 188 / beads  # a large tracker is rewritten less often: its 21 MB are the disk's to take
        self._kinds: dict[Callable[[str], None], float] = {
            self._rewrite: weigh * 0.8,
            self._bead_event: weigh * 0.2,
            self._bundle: 40,
            self._metric: 300,
            self._loop_result: 300,
            self._transcript: 317,
            self._memory_stored: 3,
        }

    def happen(self) -> None:
        """One more event."""
        self.count += 1
        (kind,) = self.rng.choices([*self._kinds], [*self._kinds.values()])
        self.by_kind[kind.__name__[1:]] = self.by_kind.get(kind.__name__[1:], 0) + 1
        kind(self.ids[self.count % ATTEMPTS % 60])

    @property
    def memories(self) -> int:
        """How many memories there are now."""
        return len(self._memory.list())

    def close(self) -> None:
        """Let go of the database."""
        self._memory.close()

    def _rewrite(self, bead_id: str, event: str = "") -> None:
        place = self.ids.index(bead_id)
        row = json.loads(self._lines[place])
        row["title"] = f"bench 0 rewritten {self.count}"
        if event:
            row["events"] = [
                *row["events"][-20:],
                {"kind": "cost", "summary": "", "body": json.dumps({"attempt_id": event, "cost_usd": 0.5})},
            ]
        self._lines[place] = json.dumps(row, sort_keys=True, separators=(",", ":")).encode()
        writes.replace(self._ddx / "beads.jsonl", b"\n".join(self._lines) + b"\n")

    def _bead_event(self, bead_id: str) -> None:
        self._rewrite(bead_id, event=self._attempt())

    def _attempt(self) -> str:
        return writes.attempt_id(self.count % ATTEMPTS)

    def _bundle(self, bead_id: str) -> None:
        """An evidence folder comes, and an old one goes."""
        self._keep("bundles", writes.bundle(self._ddx, bead_id, writes.attempt_id(self.count)))

    def _keep(self, kind: str, path: Path) -> None:
        lately = self._lately.setdefault(kind, deque())
        if lately and lately[-1] == path:
            return  # it goes on
        lately.append(path)
        if len(lately) > KEPT:
            old = lately.popleft()
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink(missing_ok=True)

    def _metric(self, bead_id: str) -> None:
        writes.metric(self._ddx, bead_id, self._attempt())

    def _loop_result(self, bead_id: str) -> None:
        """A loop tells of an attempt; a loop of 200 results ends, and its log goes as old ones do."""
        number = self.by_kind["loop_result"] // 200
        self._keep("loops", writes.loop_result(self._ddx, number, bead_id, self._attempt()))

    def _transcript(self, _: str) -> None:
        """A model call goes on; after 100 lines another begins."""
        self._keep("transcripts", writes.model_call(self._ddx, self.by_kind["transcript"] // 100))

    def _memory_stored(self, bead_id: str) -> None:
        words = " ".join(f"{self.rng.getrandbits(24):06x}" for _ in range(8))
        stored = self._memory.store(f"the worker of {bead_id} met {words}", f"look at {words} first")
        lately = self._lately.setdefault("memories", deque())
        lately.append(Path(stored.name))
        if len(lately) > KEPT:
            self._memory.remove([str(lately.popleft())])


@contextmanager
def probed(root: Path, home: Path, told: Path) -> Iterator[Terminal]:
    """A console on a project, painted, whose terminal is read all the time."""
    words = [sys.executable, "-c", PROBE, str(told), "-C", str(root)]
    with Terminal(words, REPOSITORY, home) as terminal:
        terminal.wait_for("bench 0", timeout=120)
        terminal.settle(1.5)
        ended = threading.Event()

        def drain() -> None:
            while not ended.is_set():
                terminal.settle(0.5, 5)

        reader = threading.Thread(target=drain, daemon=True)
        reader.start()
        try:
            yield terminal
        finally:
            ended.set()
            reader.join(10)


def sample(terminal: Terminal, told: Path, happening: Events, begun: float) -> tuple[Sample, list[object]]:
    """Count what the console holds now."""
    told.unlink(missing_ok=True)
    os.kill(terminal.pid, signal.SIGUSR1)
    until = time.monotonic() + 60
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.1)
    document = json.loads(told.read_text())
    here = Path(f"/proc/{terminal.pid}")
    return Sample(
        events=happening.count,
        seconds=round(time.monotonic() - begun, 1),
        resident_mb=round(terminal.resident_mb(), 1),
        threads=len(list((here / "task").iterdir())),
        descriptors=len(list((here / "fd").iterdir())),
        widgets=document["widgets"],
        memories=happening.memories,
    ), document["most"]


def soak(root: Path, home: Path, *, beads: int, events: int, a_second: float, seed: int) -> list[Sample]:
    """Eleven samples while so many events happen, the first before any of them."""
    happening = Events(root, beads, seed)
    told = home / "told.json"
    samples: list[Sample] = []
    begun = time.monotonic()
    try:
        with probed(root, home, told) as terminal:
            visited = 0.0
            for tenth in range(11):
                for _ in range(_share(tenth, events)):
                    happening.happen()
                    ahead = happening.count / a_second - (time.monotonic() - begun) if a_second else 0.0
                    if ahead > 0:
                        time.sleep(min(ahead, 1.0))
                    if time.monotonic() - visited > VISIT_EVERY_S:
                        visited = time.monotonic()
                        _press(terminal)
                _press(terminal)
                time.sleep(3)
                one, most = sample(terminal, told, happening, begun)
                samples.append(one)
                print(json.dumps(asdict(one)), flush=True)
                if tenth in (1, 10):
                    print(json.dumps(most), flush=True)
    finally:
        print(json.dumps(happening.by_kind), flush=True)
        happening.close()
    return samples


def _share(tenth: int, events: int) -> int:
    """How many events happen before a sample; a short soak begins with enough to fill every cache."""
    return (0, max(events // 10, WARM))[tenth] if tenth < 2 else events // 10


def _press(terminal: Terminal) -> None:
    """All screens, a few steps and a look inside on each, and back to the queue."""
    for screen, keys in itertools.product("2345671", ("", "jjk", "\r", "jj", "\x1b", "\t", "j")):
        with contextlib.suppress(OSError):
            os.write(terminal.fd, (keys or screen).encode())
        time.sleep(0.08)
    with contextlib.suppress(OSError):
        os.write(terminal.fd, b"\x1b\x1b1")


def main(words: Sequence[str] | None = None) -> int:
    """Soak and print; 1 where more is held at the end than after the first tenth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--beads", type=int, default=188)
    parser.add_argument("--a-second", type=float, default=0.0, help="no more than so many (default: no limit)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="helix-soak-", ignore_cleanup_errors=True) as scratch:
        root, home = Path(scratch) / "p", Path(scratch) / "home"
        (root / ".ddx").mkdir(parents=True)
        home.mkdir()
        # the console's person makes the memory: another's brings a notice, and tab and enter then open what it shows
        os.environ |= {"HOME": str(home), "XDG_STATE_HOME": str(home / ".local" / "state")}
        subprocess.run(["git", "init", "-q", str(root)], check=True, timeout=60)
        samples = soak(
            root,
            home,
            beads=options.beads,
            events=options.events,
            a_second=options.a_second,
            seed=options.seed,
        )
    grown = samples[-1].resident_mb - samples[1].resident_mb
    good = grown <= GROWTH_MB
    print(f"{options.beads} beads, {options.events:,} events: grown {grown:+.1f} MB: {'ok' if good else 'NO'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
