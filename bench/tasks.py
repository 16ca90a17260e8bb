"""A supervisor's tasks, timed in a terminal, here and in the tools beside which docs/compared.md counts their keys.

Each task is typed into tmux, each key as soon as the answer to the one before stands on the screen. What is told
are its keys and the seconds that the *program* took, no person's: the median of ``--turns``. Moving to a row is
done before the clock starts, as it is not counted there. Peers are taken from ``--peers DIR`` (``perles`` and its
``bd``, ``bv``, ``lazygit``); what is not there is left out. All see the same beads: ``--tracker FILE``, else 3,018
that are made here; lazygit sees a repository with a commit for each of the first 300.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.trackers import write_tracker

ROWS, COLUMNS = 40, 120
OURS = "helix-tui"
POLL = 0.004
COUNTER = itertools.count()


@dataclass(frozen=True)
class Step:
    """Keys in tmux's names, and what the screen shows once they are answered: a pattern that it did not show before.

    A pattern after ``!`` is one that the screen showed before and shows no more.
    """

    keys: str
    shows: str


@dataclass(frozen=True)
class Task:
    """One task in one program."""

    name: str
    program: str
    steps: Sequence[Step]
    start: str
    """What the screen shows when the program can be used."""
    opens: str = ""
    """Keys before the clock starts: to the screen where the task begins."""
    opened: str = ""
    """What the screen shows after them, if that is not there as soon as it rests."""

    @property
    def keys(self) -> int:
        """Keys as docs/compared.md counts them: letters of a search are none."""
        return sum(len(step.keys.replace("{word}", "").split()) for step in self.steps)


HERE = r"need you"
BV, PERLES, LAZYGIT = r"of \d+\)", r"Ready \([1-9]", r"Commits"
TASKS = (
    Task("what is ready, from the start", OURS, (), HERE),
    Task("what is ready, from the start", "bv", (Step("r", r"READY +○"),), BV),
    Task("what is ready, from the start", "perles", (), PERLES),
    Task("why has nothing landed", OURS, (Step(">", r"next action"),), HERE),
    Task("which model lands bugs cheapest", OURS, (Step("5", r"kinds  failing"), Step("]", r"landed  +n ")), HERE),
    Task("what is held up longest", OURS, (Step("V", r"held up longest"), Step("3", r"list by -age")), HERE, "1"),
    Task("go to a bead by its title", OURS, (Step(": {word}", r": {word}"), Step("Enter", r"!: {word}")), HERE, "1"),
    Task("go to a bead by its title", "bv", (Step("/ {word}", r"Filter: {word}"), Step("Enter", r"!Filter:")), BV),
    Task("change a priority", OURS, (Step("-", r"enter run"), Step("Enter", r"u undoes it")), HERE, "1"),
    Task("change a priority", "perles", (Step("C-e", r"Edit Issue"), Step("j Space C-s", "!Edit Issue")), PERLES),
    Task(
        "undo the last change",
        OURS,
        (Step("u", r"enter run"), Step("Enter", r"▌ undo op-")),
        HERE,
        "1 - Enter",
        r"u undoes it",
    ),
    Task("undo the last change", "lazygit", (Step("z", r"Are you sure"), Step("Enter", r"!Are you sure")), LAZYGIT),
    Task(
        "release all stale claims",
        OURS,
        (Step("K", r"▌── stale claims"), Step("c", r"enter run"), Step("Enter", r"undoes")),
        HERE,
    ),
)


class Screen:
    """A program in a tmux of its own, typed to and read as a person would."""

    def __init__(self, argv: Sequence[str], cwd: Path, environment: dict[str, str]) -> None:
        words = [f"{name}={value}" for name, value in environment.items()]
        self.server = f"helix-bench-{os.getpid()}-{next(COUNTER)}"
        self.begun = time.perf_counter()
        self._tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-c", str(cwd), "env", *words, *argv)

    def _tmux(self, *words: str) -> str:
        argv = ["tmux", "-f", os.devnull, "-L", self.server, *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout

    def text(self) -> str:
        return self._tmux("capture-pane", "-p")

    def type(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def until(self, pattern: str, timeout: float = 60.0) -> float:
        """The instant at which the screen shows the pattern.

        Raises:
            TimeoutError: it does not.
        """
        deadline = time.perf_counter() + timeout
        while time.perf_counter() < deadline:
            shown = self.text()
            if holds(pattern, shown):
                return time.perf_counter()
            time.sleep(POLL)
        raise TimeoutError(f"the screen does not show {pattern!r}:\n{shown}")

    def settled(self) -> str:
        """The screen, once it has been the same for a third of a second."""
        before, since = self.text(), time.perf_counter()
        while time.perf_counter() - since < 0.35:
            time.sleep(0.03)
            now = self.text()
            if now != before:
                before, since = now, time.perf_counter()
        return before

    def close(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")


def holds(pattern: str, shown: str) -> bool:
    """Whether the screen shows the pattern, or no more shows one that begins with ``!``."""
    return not re.search(pattern[1:], shown) if pattern.startswith("!") else bool(re.search(pattern, shown))


def timed(task: Task, screen: Screen, word: str) -> float:
    """Seconds from the first key to the last answer; from the start of the program where the name says so."""
    shown = screen.until(task.start)
    screen.settled()
    for key in task.opens.split():
        screen.type(key)
        screen.settled()
    screen.until(task.opened)
    starting = shown - screen.begun if task.name.endswith("from the start") else 0.0
    begun = ended = time.perf_counter()
    for step in task.steps:
        pattern = step.shows.format(word=word)
        if holds(pattern, screen.text()):
            raise ValueError(f"{task.name}: {pattern!r} proves nothing, {task.program} shows it before {step.keys!r}")
        for key in step.keys.format(word=word).split():
            screen.type(*(key if key == word else [key]))
        ended = screen.until(pattern)
    return starting + ended - begun


class Places:
    """The same beads as each program wants them, below one folder."""

    def __init__(self, scratch: Path, options: argparse.Namespace) -> None:
        tracker, peers = options.tracker, options.peers
        self.home = scratch / "home"
        self.home.mkdir()
        self.bin = scratch / "bin"
        self.bin.mkdir()
        ours = Path(sys.executable).parent
        for name, target in {OURS: ours / OURS, "ddx": ours / "helix-ddx"}.items():
            (self.bin / name).symlink_to(target)
        for name in ("bd", "perles", "bv", "lazygit"):
            if peers is not None and (peers / name).exists():
                (self.bin / name).symlink_to((peers / name).resolve())
        self.environment = {
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "PATH": f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "GIT_AUTHOR_NAME": "bench",
            "GIT_AUTHOR_EMAIL": "bench@example.invalid",
            "GIT_COMMITTER_NAME": "bench",
            "GIT_COMMITTER_EMAIL": "bench@example.invalid",
            "LANG": "C.UTF-8",
            "BD_NO_DAEMON": "1",
        }
        self.folders = {OURS: self._folder(scratch / "ours", tracker)}
        self.tracker = shutil.copy(self.folders[OURS] / ".ddx/beads.jsonl", scratch / "beads.jsonl")
        self.rows = [json.loads(line) for line in (self.folders[OURS] / ".ddx/beads.jsonl").open(encoding="utf-8")]
        if self.has("bv"):
            place = self.folders["bv"] = scratch / "bv"
            (place / ".beads").mkdir(parents=True)
            shutil.copy(self.folders[OURS] / ".ddx/beads.jsonl", place / ".beads/beads.jsonl")
        if self.has("perles") and self.has("bd"):
            self.folders["perles"] = self._imported(scratch / "perles")
        if self.has("lazygit"):
            self.folders["lazygit"] = self._commits(scratch / "lazygit")

    def put_back(self) -> None:
        """Our tracker and journal as they were before the first task: a claim is released once."""
        shutil.rmtree(self.folders[OURS] / ".helix", ignore_errors=True)
        shutil.copy(self.tracker, self.folders[OURS] / ".ddx/beads.jsonl")

    def has(self, name: str) -> bool:
        return (self.bin / name).exists()

    def run(self, cwd: Path, *argv: str) -> None:
        subprocess.run(argv, cwd=cwd, env=self.environment, check=True, capture_output=True, timeout=300)

    def _folder(self, root: Path, tracker: Path | None) -> Path:
        path = root / ".ddx/beads.jsonl"
        if tracker is None:
            write_tracker(path, 3_018)
        else:
            path.parent.mkdir(parents=True)
            shutil.copy(tracker, path)
        self.run(root, "git", "init", "--quiet", ".")
        self.run(root, "git", "add", "--all")
        self.run(root, "git", "commit", "--quiet", "--message", "beads")
        return root

    def _commits(self, root: Path) -> Path:
        root.mkdir()
        state = self.home / ".local/state/lazygit/state.yml"
        state.parent.mkdir(parents=True)
        state.write_text("startuppopupversion: 99\n")  # no greeting
        self.run(root, "git", "init", "--quiet", ".")
        for number, row in enumerate(self.rows[:300]):
            (root / f"file{number % 20}.txt").write_text(f"{row.get('description', '')}\n")
            self.run(root, "git", "add", "--all")
            self.run(root, "git", "commit", "--quiet", "--allow-empty", "--message", str(row["title"]))
        return root

    def _imported(self, root: Path) -> Path:
        """A project of perles: its database made by ``bd`` from what of each bead it knows."""
        root.mkdir()
        prefixes = (str(row["id"]).rsplit("-", 1)[0] for row in self.rows)
        prefix = collections.Counter(prefixes).most_common(1)[0][0]
        known = {str(row["id"]) for row in self.rows}
        with open(root / "beads.jsonl", "w", encoding="utf-8") as file:
            for row in self.rows:
                if str(row["id"]).startswith(f"{prefix}-"):
                    file.write(json.dumps(_for_bd(row, known)) + "\n")
        self.run(root, "git", "init", "--quiet", ".")
        self.run(root, "bd", "init", "--prefix", prefix, "--quiet", "--skip-hooks")
        self.run(root, "bd", "--no-daemon", "import", "-i", "beads.jsonl")
        return root


def _for_bd(row: dict[str, object], known: set[str]) -> dict[str, object]:
    status = row.get("status")
    made: dict[str, object] = {
        "id": row["id"],
        "title": str(row["title"])[:400],
        "description": row.get("description") or "",
        "status": status if status in ("open", "in_progress", "closed", "blocked") else "open",
        "priority": row.get("priority", 2),
        "issue_type": row.get("issue_type") if row.get("issue_type") in ("bug", "epic", "feature") else "task",
        "labels": row.get("labels") or [],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
    }
    if status == "closed":
        made["closed_at"] = row["updated_at"]
    edges = row.get("dependencies")
    for edge in edges if isinstance(edges, list) else []:
        if edge.get("depends_on_id") in known:
            waits = {"issue_id": row["id"], "depends_on_id": edge["depends_on_id"], "type": "blocks"}
            made.setdefault("dependencies", []).append({**waits, "created_at": row["created_at"]})  # type: ignore[attr-defined]
    return made


def rare_word(rows: Sequence[dict[str, object]]) -> str:
    """A word that stands in one title only, that of an open bead: letters of a search lead to one row."""
    titles = [str(row["title"]).lower() for row in rows]
    for title, row in zip(titles, rows, strict=True):
        words: list[str] = re.findall(r"[a-z]{8,14}", title) if row.get("status") == "open" else []
        for word in words:
            if sum(word in other for other in titles) == 1:
                return word
    raise ValueError("no open bead has a word of its own in its title")


def main() -> int:
    """Time every task in every program that is there, and print a line each."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tracker", type=Path, help="the beads to show (default: 3,018 made here)")
    arguments.add_argument("--peers", type=Path, help="a folder with the programs to compare with")
    arguments.add_argument("--turns", type=int, default=3, help="times that each task is done (default 3)")
    options = arguments.parse_args()
    # a console that was ended may still write while the folder is removed
    with tempfile.TemporaryDirectory(prefix="helix-bench-", ignore_cleanup_errors=True) as scratch:
        places = Places(Path(scratch), options)
        word = rare_word(places.rows)
        for task in TASKS:
            if task.program not in places.folders:
                continue
            taken: list[float] = []
            missing = ""
            for _ in range(options.turns):
                places.put_back()
                screen = Screen([task.program], places.folders[task.program], places.environment)
                try:
                    taken.append(timed(task, screen, word))
                except (TimeoutError, ValueError) as error:
                    missing = str(error)
                    break
                finally:
                    screen.close()
            figure = f"{statistics.median(taken):6.2f} s" if not missing else f"  not here: {missing.splitlines()[0]}"
            print(f"{task.name:34} {task.program:10} {task.keys:2} keys {figure}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
