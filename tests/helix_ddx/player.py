"""The player: writes a recorded run into a folder, so that a reader sees what a real ``ddx`` did there.

What would betray the recording is replaced: paths, the worker's pid and host (a recorded pid is dead here,
and a dead pid is a dead worker), the name of the leases' folder, and on request every time.

Recorded timelines: what one real ``ddx`` did, one JSON object a line (docs/formats/ddx.md §4).

As a process (``python -m tests.helix_ddx.player``), so that the recorded worker has a living pid.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helix_ddx.files import Disk, go_json
from helix_ddx.store import places
from helix_tui.core.ground.time import NS, format_instant, now_ns, parse_instant

MAX_BYTES = 256 * 1024 * 1024
"""A larger file is no recorded run."""

OPS = frozenset({"create", "append", "write", "replace", "delete"})


class TimelineError(ValueError):
    """A timeline that cannot be played; the message names the line."""


@dataclass(frozen=True)
class TimelineStep:
    """One line of a timeline: a file that changed, a line of output, or the worker's start and end."""

    line: int
    t: float
    src: str
    op: str = ""
    path: str = ""
    text: str = ""
    rc: int | None = None
    argv: tuple[str, ...] = ()
    stdout: str = ""

    @property
    def is_file(self) -> bool:
        """Whether a file changed in this step."""
        return self.src == "file"


@dataclass(frozen=True)
class Timeline:
    """A whole recorded run."""

    steps: tuple[TimelineStep, ...]
    after: tuple[TimelineStep, ...]
    """What reading commands said when the run was over."""

    @property
    def rc(self) -> int | None:
        """The recorded worker's exit code; a negative one is the signal that killed it."""
        return next((step.rc for step in reversed(self.steps) if step.src == "cmd" and step.rc is not None), None)

    @property
    def seconds(self) -> float:
        """How long the run took."""
        return self.steps[-1].t if self.steps else 0.0


def read_timeline(path: Path) -> Timeline:
    """Read a timeline and check every line of it before anything is played.

    Raises:
        TimelineError: the file cannot be read, or a line is no step; says which line and why.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TimelineError(f"{path}: larger than {MAX_BYTES // 1024**2} MiB, no recorded run")
        raw = path.read_bytes()
    except OSError as error:
        raise TimelineError(f"{path}: {error.strerror or error}") from None
    steps: list[TimelineStep] = []
    after: list[TimelineStep] = []
    last = 0.0
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        step = _step(number, line, last, path)
        if step.src in ("cmd", "file", "stdout", "stderr"):
            last = step.t
            steps.append(step)
        else:
            after.append(step)
    if not steps:
        raise TimelineError(f"{path}: no steps in it")
    return Timeline(tuple(steps), tuple(after))


def _step(number: int, line: bytes, last: float, path: Path) -> TimelineStep:
    def refuse(why: str) -> TimelineError:
        return TimelineError(f"{path}: line {number}: {why}")

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise refuse(f"no JSON ({error}); the file may be cut off there") from None
    if not isinstance(row, dict) or not isinstance(row.get("src"), str):
        raise refuse('not a step: an object with "src" is expected')
    moment = row.get("t")
    if moment is None:
        moment = last
    if isinstance(moment, bool) or not isinstance(moment, int | float) or not 0 <= moment < 1e9:
        raise refuse('"t" is not a number of seconds')
    rc = row.get("rc")
    if rc is not None and (isinstance(rc, bool) or not isinstance(rc, int)):
        raise refuse('"rc" is not an exit code')
    argv = row.get("argv") or []
    step = TimelineStep(
        line=number,
        t=max(float(moment), last),
        src=row["src"],
        op=_text(row, "op", refuse),
        path=_text(row, "path", refuse),
        text=_text(row, "text", refuse),
        rc=rc,
        argv=tuple(str(word) for word in argv) if isinstance(argv, list) else (),
        stdout=_text(row, "stdout", refuse),
    )
    if step.is_file and step.op not in OPS:
        raise refuse(f"unknown operation {step.op!r}; known are {', '.join(sorted(OPS))}")
    if step.is_file and not step.path.startswith(("$P/", "$H/", "$T/")):
        raise refuse(f"the path {step.path!r} does not begin with $P/, $H/ or $T/")
    if step.is_file and ".." in step.path.split("/"):
        raise refuse(f"the path {step.path!r} leads out of the folder")
    return step


def _text(row: dict[str, Any], key: str, refuse: Any) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise refuse(f'"{key}" is not a text')
    return value.encode("utf-8", "replace").decode("utf-8")


_PLACEHOLDER = re.compile(r"\$([PHT])(?![A-Za-z_])")
_LEASE_PATH = re.compile(rf"\$[PHT]/(?:[\w.-]+/)*{places.LEASES}/[0-9a-f]{{40}}")
"""Each release has its own place for them: the temporary folder, one in it, or the user's cache."""
_LEASE_HASH = re.compile(rf"(?<={places.LEASES}/)[0-9a-f]{{40}}")
_STAMP = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?(?:Z|[+-]\d\d:\d\d))")
_NS_STAMP = re.compile(r"(?<!\d)1[4-9]\d{17}(?!\d)")
_LOG_TIME = re.compile(r'"(?:ts|time)":\s*"([^"]+)"')
_PID_KEY = re.compile(r'("[\w-]*pid\\?"\s*:\s*\\?"?)(\d+)')
_WORKER_PID = re.compile(r'"(?:pid|holder_pid|claimed-pid)\\?"\s*:\s*\\?"?(\d+)')
_MACHINE = re.compile(r'("(?:claimed-)?machine\\?"\s*:\s*\\?")([^"\\]+)')
_LOCK_PID = re.compile(r"\.lock/pid\Z")
_TRACKER = "$P/.ddx/beads.jsonl"


class Player:
    """Plays one timeline into one folder, a step at a time.

    Args:
        source: the recorded timeline, or the file that holds it.
        target: the project folder to write into; it may be absent.
        home: stands for the worker's home folder (default ``TARGET/.home``).
        scratch: stands for the recorded scratch folder (default ``TARGET/.tmp``).
        leases: the folder for this project's leases (default: where DDx, and so any reader, looks).
        pid, host: written in place of the recorded worker's.
        shift: nanoseconds added to every time, see ``shift_to_now``.
        disk: the writer to use.
    """

    def __init__(
        self,
        source: Timeline | Path,
        target: Path,
        *,
        home: Path | None = None,
        scratch: Path | None = None,
        leases: Path | None = None,
        pid: int | None = None,
        host: str | None = None,
        shift: int = 0,
        disk: Disk | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.timeline = read_timeline(source) if isinstance(source, Path) else source
        self.target = Path(os.path.abspath(target))
        self.home = home or self.target / ".home"
        self.scratch = scratch or self.target / ".tmp"
        self.leases = leases or places.lease_folder(self.target, env)
        self.pid = str(pid if pid is not None else os.getpid())
        self.host = host if host is not None else socket.gethostname()
        self.shift = shift // NS * NS
        self.disk = disk or Disk()
        self._roots = {"P": self.target, "H": self.home, "T": self.scratch}
        self._recorded_pids = frozenset(self._worker_pids())

    def prepare(self) -> None:
        """Make the folder and a git repository in it, and the tracker when the timeline never writes it."""
        self.target.mkdir(parents=True, exist_ok=True)
        if not (self.target / ".git").exists():
            _make_repository(self.target)
        if not any(step.path == _TRACKER for step in self.timeline.steps):
            rows = self._final_rows()
            if rows and not (self.target / ".ddx" / "beads.jsonl").exists():
                text = "".join(go_json(row, sort=True) + "\n" for row in rows)
                self.disk.replace(self.target / ".ddx" / "beads.jsonl", self.translate(text))

    def steps(self) -> tuple[TimelineStep, ...]:
        """The steps to apply, in order; what was asked after the run is none of them."""
        return self.timeline.steps

    def apply(self, step: TimelineStep) -> Path | None:
        """Do what one step did; the file that it changed, or None for a line of output."""
        if not step.is_file:
            return None
        path = self.locate(step)
        text = self._own_pid(step, self.translate(step.text))
        if step.op == "delete":
            self.disk.delete(path)
            self._prune(path)
        elif step.op == "append":
            self.disk.append(path, text)
        elif _is_log(path):
            self._write_log(path, text)
        else:
            self.disk.replace(path, text)
        return path

    def play_all(self) -> None:
        """Apply every step at once."""
        self.prepare()
        for step in self.steps():
            self.apply(step)

    def locate(self, step: TimelineStep) -> Path:
        """Where a step's file lies here.

        Raises:
            TimelineError: a link on the way leads out of the folders that the player may write to.
        """
        if match := _LEASE_PATH.match(step.path):
            path = self.leases / self._renamed(step.path[match.end() :]).lstrip("/")
        else:
            path = self._roots[step.path[1]] / self._renamed(step.path[3:])
        real = Path(os.path.realpath(path.parent))
        allowed = [Path(os.path.realpath(root)) for root in (*self._roots.values(), self.leases)]
        if not any(real.is_relative_to(root) for root in allowed):
            raise TimelineError(f"line {step.line}: {step.path} leads out of the folder through a link")
        return path

    def translate(self, text: str) -> str:
        """A recorded text with this machine's paths, pid, host and, when asked for, times."""
        if "$" in text:
            text = _LEASE_PATH.sub(lambda _: _in_json(self.leases), text)
            text = _PLACEHOLDER.sub(lambda found: _in_json(self._roots[found[1]]), text)
        if places.LEASES in text:
            text = _LEASE_HASH.sub(places.project_hash(self.target), text)
        if "pid" in text:
            text = _PID_KEY.sub(
                lambda found: found[1] + (self.pid if found[2] in self._recorded_pids else found[2]), text
            )
        if "machine" in text:
            text = _MACHINE.sub(lambda found: found[1] + json.dumps(self.host)[1:-1], text)
        return self._moved(text)

    def recorded_start(self) -> int | None:
        """The instant of the timeline's second zero, by the stamps in its logs."""
        starts = [
            stamp - round(step.t * NS)
            for step in self.timeline.steps
            if step.is_file and step.path.endswith(".jsonl") and step.path != _TRACKER
            for text in _LOG_TIME.findall(step.text)
            if (stamp := parse_instant(text)) is not None
        ]
        # a line is seen a little after it was written, never before: the latest estimate is the closest
        return max(starts, default=None)

    def shift_to_now(self, speed: float = 1.0, now: int | None = None) -> None:
        """Move all times so that none lies in the future when it is written at this speed (0: at once)."""
        start = self.recorded_start()
        if start is None:
            return
        length = self.timeline.seconds
        ahead = max(0.0, length - (length / speed if speed > 0 else 0.0))
        self.shift = ((now if now is not None else now_ns()) - start - round(ahead * NS)) // NS * NS

    def _moved(self, text: str) -> str:
        if not self.shift:
            return text
        text = _STAMP.sub(self._moved_stamp, text)
        return self._renamed(text)

    def _moved_stamp(self, found: re.Match[str]) -> str:
        instant = parse_instant(found[1] + "Z")
        if instant is None or instant < 0:
            return found[0]
        return format_instant(instant + self.shift)[:-1] + found[2]

    def _renamed(self, text: str) -> str:
        """Nanosecond stamps in names move with the times, so that a log is still called after its start."""
        return _NS_STAMP.sub(lambda found: str(int(found[0]) + self.shift), text) if self.shift else text

    def _own_pid(self, step: TimelineStep, text: str) -> str:
        return text.replace(text.strip(), self.pid) if _LOCK_PID.search(step.path) and text.strip() else text

    def _worker_pids(self) -> set[str]:
        pids: set[str] = set()
        for step in self.timeline.steps:
            if step.is_file:
                pids.update(_WORKER_PID.findall(step.text))
        return pids

    def _write_log(self, path: Path, text: str) -> None:
        """A log whose whole text was recorded anew has only grown: what is there already stays."""
        try:
            there = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            there = None
        if there is None:
            self.disk.create(path, text)
        elif text.startswith(there):
            self.disk.append(path, text[len(there) :])
        else:
            self.disk.replace(path, text)

    def _prune(self, path: Path) -> None:
        """Lock directories and the workers' copies go with their last file, as they do under DDx."""
        folder = path.parent
        inside_copy = any(folder.is_relative_to(root) for root in (self.home, self.scratch))
        while inside_copy or folder.name.endswith(".lock"):
            if folder in (self.home, self.scratch):
                return
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _final_rows(self) -> list[object]:
        for step in self.timeline.after:
            if step.argv[1:4] == ("bead", "list", "--json"):
                try:
                    rows = json.loads(step.stdout)
                except ValueError:
                    return []
                return rows if isinstance(rows, list) else []
        return []


def _is_log(path: Path) -> bool:
    return path.suffix == ".jsonl" and path.name != "beads.jsonl"


def _in_json(path: Path) -> str:
    return json.dumps(str(path), ensure_ascii=False)[1:-1]


def _make_repository(folder: Path) -> None:
    """A repository with one commit, blind to the folders that stand for home and scratch.

    Raises:
        TimelineError: git is missing or refused.
    """
    name = ["-c", "user.name=helix-ddx", "-c", "user.email=helix-ddx@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], [*name, "commit", "-q", "--allow-empty", "-m", "base"]):
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=30, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TimelineError(f"git is needed to make a repository in {folder}: {error}") from None
        if done.returncode:
            raise TimelineError(f"git {' '.join(words)} in {folder}: {done.stderr.strip()}")
    exclude = folder / ".git" / "info" / "exclude"
    exclude.parent.mkdir(parents=True, exist_ok=True)
    with open(exclude, "a", encoding="utf-8") as out:
        out.write("/.home/\n/.tmp/\n")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Write a recorded run into a folder.")
    parser.add_argument("file", type=Path, help="a recorded timeline, <era>-<scenario>.jsonl")
    parser.add_argument("-C", dest="folder", type=Path, required=True, metavar="DIR", help="folder to write into")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--speed", type=_speed, default=1.0, metavar="X", help="times as fast; 0 is at once")
    pace.add_argument("--step", action="store_true", help="one step for each line on stdin")
    parser.add_argument("--shift", action="store_true", help="move all recorded times to now")
    parser.add_argument("--home", type=Path, help="stands for the worker's home (default DIR/.home)")
    return parser.parse_args()


def run(args: argparse.Namespace) -> int:
    """Play the file and end as the recorded worker did."""
    try:
        player = Player(args.file, args.folder, home=args.home)
        if args.shift:
            player.shift_to_now(0.0 if args.step else args.speed)
        player.prepare()
        complete = _step_by_step(player) if args.step else _at_speed(player, args.speed)
    except TimelineError as error:
        sys.stderr.write(f"player: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"player: cannot write {error.filename}: {error.strerror}\n")
        return 1
    if not complete:
        return 1
    rc = player.timeline.rc
    if rc is None:
        sys.stderr.write("player: the recording ends without an exit code\n")
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
            sys.stderr.write(f"player: stdin ended after {number - 1} of {len(steps)} steps\n")
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


if __name__ == "__main__":
    sys.exit(run(_parsed()))
