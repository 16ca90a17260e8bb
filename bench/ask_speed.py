"""How fast Ask's index is: ``python -m bench.ask_speed [--files 18000] [--repository DIR]``.

A repository is made of the Python files that this interpreter has installed, each copy with a name of its
own, and indexed with an empty ``.helix``. Printed beside the wall clock is the computing time, for a
machine is seldom idle.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from helix_tui.core.ask.answer import passages
from helix_tui.core.ask.answer.passages import passages_for
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.question import read_question
from helix_tui.core.ask.sessions.session import ask

ASKED = (
    "how are requests routed to a handler",
    "where is the configuration file read and validated",
    "TimeoutError is raised when a connection is closed while the response is being read",
    "parse_header",
    "Fixed a crash when an empty template is rendered with a custom encoding",
)
BOUNDS = {
    "index": 90.0, "nothing changed": 1.0, "one file changed": 0.5, "warm search": 0.050, "warm question": 0.5,
    "with the encoder": 0.6, "cold process": 1.0,
}  # fmt: skip
"""Seconds; of the encoder CPU, for texts that it has not met."""
_COLD = """
import sys
from pathlib import Path
from helix_tui.core.ask.answer import passages
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.sessions.session import ask
passages.encoder = lambda: None
index = RepositoryIndex(Path(sys.argv[1]), Path(sys.argv[2]))
index.refresh()
assert ask(index, sys.argv[3]).passages
"""


def main() -> int:
    """Measure and print; 1 when a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=18_000)
    parser.add_argument("--repository", type=Path, help="a clone to measure instead, left as it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="helix-ask-") as scratch:
        root, path = Path(scratch, "repository"), Path(scratch, "index.db")
        if options.repository is None:
            size = make_repository(root, options.files)
            print(f"{options.files:,} files, {size / 1e6:.0f} MB")
        else:
            root = options.repository.resolve()
        index = RepositoryIndex(root, path)
        held = [_timed("index", index.refresh), _timed("nothing changed", index.refresh)]
        if options.repository is None:
            changed = next(root.rglob("*.py"))
            changed.write_text(changed.read_text("utf-8", "replace") + "\n\ndef brand_new():\n    pass\n", "utf-8")
            held.append(_timed("one file changed", index.refresh))
        held.append(_warm(index))
        held.append(_encoded(index))
        argv = (sys.executable, "-c", _COLD, str(root), str(path), ASKED[0])
        # an installed program has its modules compiled; the first run does that
        compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(argv, check=True, timeout=300, env=compiled)
        held.append(_timed("cold process", lambda: subprocess.run(argv, check=True, timeout=300, env=compiled)))
    return 0 if all(held) else 1


def make_repository(root: Path, files: int) -> int:
    """A git repository of so many files; returns its bytes."""
    places = [Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib")]
    sources = [path for place in places for path in sorted(place.rglob("*.py")) if 500 < path.stat().st_size < 16_000]
    total = 0
    for number, source in zip(range(files), itertools.cycle(sources), strict=False):
        target = root / f"part{number % 50}" / f"{source.stem}_{number}.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        data = source.read_bytes() + f"\n# {number}\n".encode()
        target.write_bytes(data)
        total += len(data)
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", "-C", str(root), *words], check=True, timeout=300)
    return total


def _warm(index: RepositoryIndex) -> bool:
    usual = passages.encoder
    passages.encoder = lambda: None
    try:
        index.search("a first question")
        searched = _each("warm search", lambda question: index.search(question))
        return _each("warm question", lambda question: ask(index, f"{question} now")) and searched
    finally:
        passages.encoder = usual


def _each(name: str, work: Callable[[str], object]) -> bool:
    walls, computed = [], []
    for question in ASKED:
        begun, used = time.perf_counter(), time.process_time()
        work(question)
        walls.append(time.perf_counter() - begun)
        computed.append(time.process_time() - used)
    return _print(name, statistics.median(walls), statistics.median(computed))


def _encoded(index: RepositoryIndex) -> bool:
    """What the encoder adds to a question whose passages are new to it; its weights are in memory."""
    encoder = passages.encoder()
    if encoder is None:
        print("with the encoder   no weights here")
        return True
    encoder.encode(["a first text"])
    used = time.process_time()
    index.search(f"{ASKED[0]} once")
    passages_for(index, read_question(f"{ASKED[0]} once"))
    both = time.process_time() - used
    used = time.process_time()
    passages_for(index, read_question(f"{ASKED[0]} once"))
    return _print("with the encoder", both - (time.process_time() - used), both)


def _timed(name: str, work: Callable[[], object]) -> bool:
    begun, used = time.perf_counter(), _computed()
    work()
    return _print(name, time.perf_counter() - begun, _computed() - used)


def _computed() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _print(name: str, wall: float, computed: float) -> bool:
    holds = wall <= BOUNDS[name]
    verdict = "holds" if holds else "DOES NOT HOLD"
    line = f"{name:18}{wall:8.3f} s  (computing {computed:.3f} s)  bound {BOUNDS[name]:g} s  {verdict}"
    print(line, flush=True)
    return holds


if __name__ == "__main__":
    raise SystemExit(main())
