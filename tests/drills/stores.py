"""Processes that write to one project's stores, each killed at random: ``python -m tests.drills.stores``.

Three writers and a console share ``.helix/helix.db``, the index of ask and the journal. A writer says what it
has written once the store has acknowledged it. After every kill the databases must be whole, and everything
acknowledged must be there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.console import Terminal, console_argv
from helix_tui.core.ask.index.database import FILE, Database
from helix_tui.core.editing.journal import Journal
from helix_tui.core.ground.project import find_project
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path
from tests.drills.projects import REPOSITORY, isolate, make_project

WRITER = """
import sys, uuid
from pathlib import Path
from helix_tui.core.ask.index.database import FILE, Database
from helix_tui.core.editing.journal import Journal, Who
from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.memory.store.database import database_path
from helix_tui.core.ground.project import find_project
project = find_project(Path(sys.argv[1]))
word = lambda: f"w{uuid.uuid4().hex}"  # one in 30,000 begins like a token (EAAA), whose number is shown instead
words = lambda: " ".join(word() for _ in range(6))
print("ready", flush=True)
while True:
    with open_memory(database_path(project), busy_seconds=60.0, teacher="person") as memory:
        for _ in range(3):
            print("memory", memory.store(words(), words()).name, flush=True)
    index = Database(project.helix_dir / "ask" / FILE)
    for _ in range(3):
        key = word()
        index.add_past([(key, "subject", b"", b"")])
        print("index", key, flush=True)
    index.close()
    journal = Journal.of(project)
    what = {"kind": "eligible", "title": word(), "steps": [], "operations": [], "before": {}}
    begun = journal.begin(at=10**18, who=Who("human", "me", 1), **what)
    print("journal", begun, flush=True)
"""


class Writer:
    """One process that writes, and what it has said so far."""

    def __init__(self, root: Path, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), name],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )

    def kill(self) -> list[tuple[str, str]]:
        """End it where it stands; (store, key) of everything that was acknowledged.

        Raises:
            RuntimeError: it had ended by itself.
        """
        ended = self.process.poll()
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        out, err = self.process.communicate(timeout=30)
        if ended is not None:
            raise RuntimeError(f"a writer ended by itself: {err.strip()[-600:]}")
        lines = (line.split() for line in out.splitlines(keepends=True) if line.endswith("\n"))
        return [(words[0], words[1]) for words in lines if len(words) == 2]


def check(root: Path, written: Sequence[tuple[str, str]]) -> str:
    """What is wrong with the stores; empty where nothing is."""
    project = find_project(root)
    memory, index = database_path(project), project.helix_dir / "ask" / FILE
    for path in (memory, index):
        if path.exists():
            with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
                found = connection.execute("PRAGMA integrity_check").fetchall()
            if found != [("ok",)]:
                return f"{path.name}: {found[:3]}"
    there: dict[str, set[str]] = {"memory": set(), "index": set()}
    if memory.exists():
        with open_memory(memory, teacher="person") as store:
            there["memory"] = {one.name for one in store.list()}
    if index.exists():
        database = Database(index)
        there["index"] = database.past_shas()
        database.close()
    there["journal"] = {entry.id for entry in Journal.of(project).read().entries}
    lost = [f"{key} of {store}" for store, key in written if key not in there[store]]
    return f"{len(lost)} acknowledged writes are lost: {', '.join(lost[:5])}" if lost else ""


def drill(kills: int, seed: int, seconds: float) -> int:
    """Kill writers and the console so many times, or for so long; 1 at the first loss."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="helix-stores-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch, "home")
        isolate(home)
        root = make_project("head", Path(scratch, "project"))
        written: list[tuple[str, str]] = []
        writers = [Writer(root, f"w{number}") for number in range(3)]
        terminal = Terminal(console_argv(root), root, home)
        until, done = time.monotonic() + seconds, 0
        try:
            while done < kills and time.monotonic() < until:
                time.sleep(rng.uniform(0.2, 1.2))
                done += 1
                if rng.random() < 0.2:
                    terminal.close()
                    terminal = Terminal(console_argv(root), root, home)
                    os.write(terminal.fd, b"3")
                else:
                    place = rng.randrange(len(writers))
                    written += writers[place].kill()
                    writers[place] = Writer(root, f"k{done}")
                if failure := check(root, written):
                    print(f"stores: seed {seed}, kill {done}: {failure}")
                    return 1
        finally:
            terminal.close()
            for writer in writers:
                with contextlib.suppress(RuntimeError):
                    written += writer.kill()
        if failure := check(root, written):
            print(f"stores: seed {seed}, at the end: {failure}")
            return 1
    print(f"stores: {done:,} kills, {len(written):,} acknowledged writes, all there")
    return 0


def main(words: Sequence[str] | None = None) -> int:
    """For so many kills or so long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(words)
    return drill(options.kills, options.seed, options.seconds)


if __name__ == "__main__":
    sys.exit(main())
