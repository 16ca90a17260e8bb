"""The player: writes a recorded run into a folder, so that a reader sees what a real ``ddx`` did there.

What would betray the recording is replaced: paths, the worker's pid and host (a recorded pid is dead here,
and a dead pid is a dead worker), the name of the leases' folder, and on request every time.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from helix_ddx.base.files import Disk, go_json
from helix_ddx.replay.timeline import Timeline, TimelineError, TimelineStep, read_timeline
from helix_ddx.store import places
from helix_tui.core.ground.time import NS, format_instant, now_ns, parse_instant

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
        if found := _LEASE_PATH.match(step.path):
            path = self.leases / self._renamed(step.path[found.end() :]).lstrip("/")
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
