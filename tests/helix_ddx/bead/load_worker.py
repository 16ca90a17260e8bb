"""One of several that change a tracker at once; it tells on stdout what it has been promised.

``load_worker.py PROJECT NAME SEED COUNT ERA [exec]``: COUNT mixed commands on shared and own beads; a line is
printed, and flushed, once a command has ended well. With ``exec`` each command is a process of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from helix_ddx.program import main as track


class Worker:
    """Gives commands and remembers what they promised."""

    def __init__(self, project: Path, name: str, seed: int, separately: bool) -> None:
        self.project, self.name, self.separately = project, name, separately
        self.random = random.Random(seed)
        self.own: list[str] = []
        self.shared = [f"demo-{number:08x}" for number in range(6)]

    def give(self, *words: str) -> tuple[int, str]:
        """One command; its exit code and output."""
        if self.separately:
            argv = [sys.executable, "-m", "helix_ddx", "bead", *words]
            done = subprocess.run(argv, cwd=self.project, capture_output=True, text=True, check=False)
            return done.returncode, done.stdout
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            code = track(["bead", *words])
        out.flush()
        return code, out.buffer.getvalue().decode()

    def one(self, number: int) -> None:
        """One command of a kind that chance picks."""
        key, bead = f"{self.name}-{number}", self.random.choice(self.shared)
        kind = self.random.choice(["create", "set", "set", "note", "note", "dep", "close", "claim", "read"])
        if kind == "create":
            code, out = self.give("create", f"made by {key}", "--priority", "2", "--labels", "own")
            if not code:
                self.own.append(out.strip())
                self.promise("bead", out.strip(), f"made by {key}")
        elif kind == "set":
            if not self.give("update", bead, "--set", f"{key}=value {key}")[0]:
                self.promise("field", bead, key)
        elif kind == "note":
            if not self.give("evidence", "add", bead, "--kind", "load", "--summary", key)[0]:
                self.promise("event", bead, key)
        elif kind == "dep" and len(self.own) > 1:
            waits, target = self.own[-1], self.own[0]
            if not self.give("dep", "add", waits, target)[0]:
                self.promise("edge", waits, target)
        elif kind == "close" and self.own:
            if not self.give("close", self.own[0])[0]:
                self.promise("status", self.own[0], "closed")
        elif kind == "claim" and len(self.own) > 2:
            self.give("update", self.own[1], "--claim", "--assignee", self.name)
            if not self.give("update", self.own[1], "--unclaim")[0]:
                self.promise("owner", self.own[1], "")
        else:
            code, out = self.give("list", "--json")
            if not code:
                self.promise("rows", str(len(json.loads(out))), "")

    def promise(self, *words: str) -> None:
        """Say that something is in the tracker now, for good."""
        os.write(1, (json.dumps(words) + "\n").encode())


def main() -> None:
    """Work until the count is reached or somebody kills us."""
    project, name, seed, count, *more = sys.argv[1:]
    os.chdir(project)
    worker = Worker(Path(project), name, int(seed), more == ["exec"])
    for number in range(int(count)):
        worker.one(number)
    os.write(1, b'["done"]\n')


if __name__ == "__main__":
    main()
