"""Speed as ratios, floor and product measured in one run: ``make bench``.

Every row names what was measured, the figure, the floor or bound it is held against, and whether it holds.
Absolute numbers differ between machines; the ratios are comparable.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.console import Terminal, console_argv, empty_argv, list_argv
from bench.trackers import touch_row, write_attempts, write_tracker

SIZES = (100, 3_018, 10_000)
LONGEST_OPEN = 0.1
"""Seconds of computing allowed until a screen is shown."""
QUEUE_TRUTH = """
import resource, sys, time
from pathlib import Path
from helix_tui.core.beads.readiness import classify
from helix_tui.core.beads.tracker import TrackerReader
from bench.trackers import touch_row
path, changed = Path(sys.argv[1]), sys.argv[2]
reader = TrackerReader(path)
def once():
    begun = time.process_time()
    classify(reader.read().beads, now=time.time_ns())
    return time.process_time() - begun
cold = once()
warm = []
for turn in range(7):
    touch_row(path, changed, f"turn {turn}")
    warm.append(once())
print(cold, sorted(warm)[len(warm) // 2])
"""


def main() -> int:
    """Measure everything and print the table; 1 when a bound does not hold."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--keys", type=int, default=300, help="keys per size (default 300)")
    arguments.add_argument("--writes", type=int, default=60, help="file writes timed (default 60)")
    arguments.add_argument("--starts", type=int, default=5, help="program starts timed (default 5)")
    options = arguments.parse_args()
    table = Table()
    with tempfile.TemporaryDirectory(prefix="helix-bench-") as scratch:
        home = Path(scratch, "home")
        home.mkdir()
        projects = {size: Path(scratch, f"p{size}") for size in SIZES}
        ids = {size: write_tracker(project / ".ddx/beads.jsonl", size) for size, project in projects.items()}
        first_paint(table, projects[3_018], home, options.starts)
        key_latency(table, projects, home, options.keys)
        write_latency(table, projects[3_018], ids[3_018], home, options.writes)
        first_opens(table, projects[3_018], ids[3_018], home)
        queue_truth(table, projects[3_018], ids[3_018])
        queue_command(table, projects[3_018], options.starts)
    print(table.render())
    return 0 if table.holds else 1


class Table:
    """Rows of measure, figure, bound, verdict."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = [("measured", "figure", "held against", "")]
        self.holds = True

    def add(self, name: str, figure: str, bound: str, holds: bool | None) -> None:
        """Add a row; a verdict of None is information only."""
        self.rows.append((name, figure, bound, "" if holds is None else "ok" if holds else "NO"))
        self.holds = self.holds and holds is not False
        print(f"  {name}: {figure}", file=sys.stderr)

    def render(self) -> str:
        """The table with aligned columns."""
        widths = [max(len(row[column]) for row in self.rows) for column in range(4)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in self.rows
        )


def ms(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1000:.1f} ms"


def percentile(values: list[float], share: float) -> float:
    """The value that ``share`` of all lie at or below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def first_paint(table: Table, project: Path, home: Path, starts: int) -> None:
    """Start to first painted queue, against a Textual app that paints one word, in turn."""
    ours, floor = [], []
    for _ in range(starts + 1):
        with Terminal(empty_argv(), project, home) as terminal:
            floor.append(terminal.wait_for("painted-marker"))
        with Terminal(console_argv(project), project, home) as terminal:
            ours.append(terminal.wait_for("bench 0"))
    ratio = statistics.median(a / b for a, b in zip(ours[1:], floor[1:], strict=True))
    table.add(
        "first painted queue, 3,018 beads",
        f"{ms(statistics.median(ours[1:]))} = {ratio:.2f} x",
        f"2 x an empty Textual app ({ms(statistics.median(floor[1:]))})",
        ratio <= 2,
    )


def key_latency(table: Table, projects: dict[int, Path], home: Path, keys: int) -> None:
    """Key written to first byte back, moving down and up through the list; and resident memory.

    The keys go to all sizes and to Textual's own list in turn: who else uses the machine is then alike for all.
    """
    with contextlib.ExitStack() as opened:
        floor = opened.enter_context(Terminal(list_argv(), projects[100], home))
        floor.wait_for("row 39")
        consoles = {}
        for size, project in projects.items():
            consoles[size] = opened.enter_context(Terminal(console_argv(project), project, home))
            consoles[size].wait_for("bench 0")
        every = [floor, *consoles.values()]
        for terminal in every:
            terminal.settle(1.5)
        taken: list[list[float]] = [[] for _ in every]
        for turn in range(keys):
            for terminal, own in zip(every, taken, strict=True):
                for each in every:
                    each.settle(0.01)
                own.append(terminal.key("j" if turn % 16 < 8 else "k"))  # up and down, never into an end
                terminal.settle(0.03)
        memory = consoles[3_018].resident_mb()
    listed, *ours = taken
    slowest = {size: percentile(own, 0.99) for size, own in zip(projects, ours, strict=True)}
    for size, own in zip(projects, ours, strict=True):
        table.add(
            f"key to repaint, {size:,} beads",
            f"p50 {ms(percentile(own, 0.5))}  p99 {ms(slowest[size])}",
            "p99 12 ms" if size == 10_000 else "",
            slowest[size] <= 0.012 if size == 10_000 else None,
        )
    floor_ms = f"p50 {ms(percentile(listed, 0.5))}, p99 {ms(percentile(listed, 0.99))}"
    ratio = slowest[10_000] / percentile(listed, 0.99)
    table.add(
        "key p99 at 10,000 beads", f"{ratio:.2f} x", f"1.1 x Textual's list of 40 rows ({floor_ms})", ratio <= 1.1
    )
    ratio = slowest[10_000] / slowest[100]
    table.add("key p99 at 10,000 against 100", f"{ratio:.2f} x", "1.5 x", ratio <= 1.5)
    table.add("resident memory, 3,018 beads", f"{memory:.0f} MB", "150 MB", memory <= 150)


def write_latency(table: Table, project: Path, ids: list[str], home: Path, writes: int) -> None:
    """File renamed into place to first byte of the repaint."""
    path = project / ".ddx/beads.jsonl"
    with Terminal(console_argv(project), project, home) as terminal:
        terminal.wait_for("bench 0")
        terminal.settle(1.5)
        visible = _first_ready(project)
        taken = []
        for turn in range(writes):
            touch_row(path, visible, f"bench 0 rewritten {turn:03d}")
            written = time.perf_counter()
            terminal.started = written
            taken.append(terminal.wait_for(f"rewritten {turn:03d}", timeout=5))
            terminal.settle(0.4)
    p50, p95 = percentile(taken, 0.5), percentile(taken, 0.95)
    table.add(
        "file written to repainted, 3,018 beads",
        f"p50 {ms(p50)}  p95 {ms(p95)}",
        "p50 300 ms, p95 450 ms",
        p50 <= 0.300 and p95 <= 0.450,
    )


def first_opens(table: Table, project: Path, ids: list[str], home: Path, attempts: int = 20_000) -> None:
    """What the event loop computes to show each screen for the first time, and once more; somebody looks at each."""
    write_attempts(project / ".ddx/metrics/attempts.jsonl", ids, attempts)
    with Terminal(console_argv(project), project, home) as terminal:
        terminal.wait_for("bench 0")
        for turn in ("first", "again"):
            taken = []
            for key in "23456!":
                terminal.settle(2.5, 2.5)
                taken.append(terminal.cpu_to_frame(key))
            os.write(terminal.fd, b"\x1b")
            table.add(
                f"a screen shown {turn}, 3,018 beads, {attempts:,} attempts, CPU",
                " ".join(f"{seconds * 1000:.0f}" for seconds in taken) + " ms",
                f"{ms(LONGEST_OPEN)} each (2 to 6, !)",
                max(taken) <= LONGEST_OPEN,
            )


def _first_ready(project: Path) -> str:
    answer = subprocess.run(
        [sys.executable, "-m", "helix_tui", "-C", str(project), "queue", "--json"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    ready: list[str] = json.loads(answer.stdout)["ready"]
    return ready[0]


def queue_truth(table: Table, project: Path, ids: list[str]) -> None:
    """CPU time to read and classify, cold and with one bead changed, against plain ``json.loads``."""
    path = project / ".ddx/beads.jsonl"
    answer = subprocess.run(
        [sys.executable, "-c", QUEUE_TRUTH, str(path), ids[1500]],
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[1],
    )
    cold, warm = map(float, answer.stdout.split())
    begun = time.process_time()
    for line in path.read_bytes().split(b"\n"):
        if line:
            json.loads(line)
    floor = time.process_time() - begun
    table.add("read + classify, cold, CPU", f"{ms(cold)} = {cold / floor:.2f} x json.loads", "150 ms", cold <= 0.15)
    table.add("read + classify, one bead changed, CPU", ms(warm), "30 ms", warm <= 0.03)


def queue_command(table: Table, project: Path, starts: int) -> None:
    """``queue --json`` as a whole cold process, against a bare Python that starts and ends."""
    ours = _whole_process([sys.executable, "-m", "helix_tui", "-C", str(project), "queue", "--json"], starts)
    bare = _whole_process([sys.executable, "-c", "pass"], starts)
    table.add(
        "queue --json, whole process",
        f"{ms(ours)} = {ours / bare:.1f} x bare Python",
        "350 ms",
        ours <= 0.35,
    )
    ddx = os.environ.get("DDX_BIN") or shutil.which("ddx")
    if ddx:
        peer = _whole_process([ddx, "bead", "ready", "--execution", "--json"], starts, cwd=project)
        table.add("ddx bead ready --execution --json", ms(peer), f"ours is {ours / peer:.2f} x", None)


def _whole_process(argv: list[str], starts: int, cwd: Path | None = None) -> float:
    # an installed program finds its bytecode: a shell that forbids writing it would have it compiled each time
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    taken: list[float] = []
    for _ in range(starts + 1):
        begun = time.perf_counter()
        subprocess.run(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=120, cwd=cwd, env=env
        )
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[1:])


if __name__ == "__main__":
    sys.exit(main())
