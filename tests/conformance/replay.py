"""Recorded ``ddx`` commands, run again: each in the state in which it was recorded, on any ddx executable.

A case is one command. Its project is put up as the recorder had it (the tracker's text with its times moved
to now, hooks, locks, a spoiled last line), so that no case depends on the one before; only a lease, which
lies outside the project, is made by running the recorded claim first.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol

DATA = Path(__file__).resolve().parents[1] / "data" / "transcripts"
ERAS = ("april", "head")
TRACKER = ".ddx/beads.jsonl"
TIMEOUT_S = 60

_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\b)")
_ID = re.compile(r"\bdemo-[0-9a-f]{8}\b")
_SHAPES = (
    (re.compile(r'("claimed-pid": ?"?)\d+'), r"\1<pid>"),
    (re.compile(r"(owner pid: )\d+"), r"\1<pid>"),
)
_QUIET = {
    "DDX_DISABLE_UPDATE_CHECK": "1",
    "DDX_SERVER_URL": "http://127.0.0.1:9",
    "DDX_BEAD_BACKEND": "jsonl",
}
_WHO = {"DDX_AGENT_NAME": "tester", "USER": "tester", "DDX_MACHINE_ID": "vm"}
_GIT = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "tester"), ("EMAIL", "tester@example.com"))
}
_FOREIGN = ("DDX_", "GIT_", "HELIX_", "XDG_")
"""Beginnings of variables that a caller may have set and no case knows of."""


@dataclass(frozen=True)
class Case:
    """One recorded command."""

    era: str
    number: int
    argv: list[str]
    rc: int
    before: dict[str, str]
    after: dict[str, str]
    stdout: str | None = None
    stderr: str = ""
    error: str = ""
    note: str = ""
    help: dict[str, list[str]] | None = None
    claim: int | None = None

    @property
    def name(self) -> str:
        """How a test report names it."""
        words = " ".join(word if len(word) < 24 else word[:21] + "..." for word in self.argv)
        return f"{self.era}-{self.number:03d} {words}{f' ({self.note})' if self.note else ''}"


@dataclass
class Outcome:
    """What a command did."""

    rc: int
    stdout: str
    stderr: str
    files: dict[str, str]
    root: Path


@cache
def cases(era: str) -> tuple[Case, ...]:
    """Every recorded command of an era, each with the files as they were before and after it."""
    files: dict[str, str] = {}
    found = []
    for number, line in enumerate((DATA / f"{era}.jsonl").read_text(encoding="utf-8").splitlines()):
        case: dict[str, Any] = json.loads(line)
        before = files = _changed(files, case.pop("before", {}))
        files = _changed(files, case.pop("after", {}))
        case.pop("stdin", None)
        found.append(Case(era=era, number=number, before=before, after=files, **case))
    return tuple(found)


def _changed(files: dict[str, str], delta: dict[str, Any]) -> dict[str, str]:
    files = dict(files)
    for path, change in delta.items():
        if change is None:
            del files[path]
            continue
        lines = files.get(path, "").split("\n")
        lines = [line for place, line in enumerate(lines) if place not in change["went"]]
        for place, line in change["came"].items():
            lines.insert(int(place), line)
        files[path] = "\n".join(lines)
    return files


# --- running --------------------------------------------------------------------------------------------


def run(case: Case, ddx: Ddx, root: Path, env: dict[str, str]) -> Outcome:
    """Put up the project of a case, run its command, and look at what it did."""
    _make_repository(root)
    env = {name: value for name, value in env.items() if not name.startswith(_FOREIGN)}
    home = root.parent / "home"
    home.mkdir()
    env |= {"HOME": str(home), "XDG_DATA_HOME": str(home / "data")}
    env |= {**_QUIET, **_WHO, **_GIT}
    if case.claim is not None:
        claim = cases(case.era)[case.claim]
        _put_up(root, claim.before)
        ddx.run(claim.argv, root, env)
    _put_up(root, case.before)
    env |= _arrange(case, root)
    return Outcome(*ddx.run(case.argv, root, env), _files(root), root)


def _make_repository(root: Path) -> None:
    """The least that git calls a repository: making one by git itself would cost more than the command."""
    for folder in ("objects", "refs/heads"):
        (root / ".git" / folder).mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")


def _put_up(root: Path, files: dict[str, str]) -> None:
    """Write the files as recorded, with their times moved so that the latest is now."""
    stamps = [found[0] for text in files.values() for found in _TIME.finditer(text) if "T" in found[0]]
    shift = int(datetime.now(UTC).timestamp()) - _seconds(max(stamps)) if stamps else 0
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(_TIME.sub(lambda found: _moved(found, shift), text), encoding="utf-8")


def _seconds(stamp: str) -> int:
    return int(datetime.fromisoformat(stamp[:19] + "+00:00").timestamp())


def _moved(found: re.Match[str], shift: int) -> str:
    moment = datetime.fromtimestamp(_seconds(found[0]) + shift, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}{found[1] or ''}{found[2]}"


def _arrange(case: Case, root: Path) -> dict[str, str]:
    """What the recorder had prepared for a command, as its note says."""
    if case.note.startswith("hook exit"):
        hook = root / ".ddx" / "hooks" / "validate-bead-create"
        hook.parent.mkdir(parents=True)
        hook.write_text(f"#!/bin/sh\necho said by the hook >&2\nexit {case.note.rsplit(' ', 1)[1]}\n")
        hook.chmod(0o755)
    if "lock" in case.note:
        lock = root / ".ddx" / "beads.lock"
        lock.mkdir()
        stale = case.note == "stale lock"
        (lock / "pid").write_text("999999999" if stale else str(os.getpid()))
        (lock / "acquired_at").write_text(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}")
        return {} if stale else {"DDX_BEAD_LOCK_TIMEOUT": "0.1"}
    return {}


class Executable:
    """Any ddx: a path to call, once for each command."""

    def __init__(self, *argv: str) -> None:
        self.argv = argv

    def run(self, argv: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
        """One command; its exit code, its output and what it said beside it."""
        done = subprocess.run(
            [*self.argv, *argv],
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


class Ddx(Protocol):
    """Whatever can be given commands."""

    def run(self, argv: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
        """One command; its exit code, its output and what it said beside it."""


def _files(root: Path) -> dict[str, str]:
    """The files that a case compares, as they stand now."""
    ddx = root / ".ddx"
    paths = [ddx / "beads.jsonl", ddx / "beads.jsonl.bak", ddx / "lifecycle-schema.json", ddx / "config.yaml"]
    paths += sorted((ddx / "attachments").rglob("*.jsonl"))
    return {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in paths if path.exists()}


def era_of(ddx: Ddx) -> str:
    """Which vocabulary an executable speaks: only head orders beads within a priority."""
    _, out, _ = ddx.run(["bead", "--help"], Path.cwd(), {**os.environ, **_QUIET})
    return "head" if re.search(r"(?m)^  queue\s", out) else "april"


# --- comparing ------------------------------------------------------------------------------------------


def differences(case: Case, outcome: Outcome) -> list[str]:
    """What is not as it was recorded; ids, times and the usage block aside."""
    recorded = _Shaper(case)
    ours = _Shaper(case, outcome.root)
    found = []
    if outcome.rc != case.rc:
        found.append(f"exit code {outcome.rc}, recorded {case.rc}; stderr:\n{outcome.stderr}")
    if case.help is not None:
        found += _compare("help", str(case.help), str(help_facts(outcome.stdout)))
    elif case.stdout is not None:
        found += _compare("stdout", recorded.shape(case.stdout), ours.shape(outcome.stdout))
    error = last_error(outcome.stderr)
    found += _compare("error line", recorded.shape(case.error), ours.shape(error))
    if case.stderr and not case.error:
        found += _compare("stderr", recorded.shape(case.stderr), ours.shape(outcome.stderr))
    for path in sorted({*case.after, *outcome.files}):
        then, now = case.after.get(path), outcome.files.get(path)
        if then is None or now is None:
            found.append(f"{path}: {'is there, and was not' if then is None else 'is not there'}")
            continue
        found += _compare(path, _sorted(recorded.shape(then)), _sorted(ours.shape(now)))
        if path == TRACKER:
            ids = [json.loads(line)["id"] for line in now.splitlines() if line.endswith("}")]
            found += [] if ids == sorted(ids) else [f"{path}: not sorted by id: {ids}"]
    return found


class _Shaper:
    """Texts without what differs from run to run: new ids by order of appearance, times and pids by shape."""

    def __init__(self, case: Case, root: Path | None = None) -> None:
        self.known = set(_ID.findall(json.dumps([case.before, case.argv])))
        self.new: dict[str, str] = {}
        self.root = root

    def shape(self, text: str) -> str:
        """One text; ids that are new keep their place across all texts of a case."""
        if self.root is not None:
            text = text.replace(str(self.root), "$P")
        text = _ID.sub(self._id, _TIME.sub(_time_shape, text))
        for pattern, shape in _SHAPES:
            text = pattern.sub(shape, text)
        return text

    def _id(self, found: re.Match[str]) -> str:
        if found[0] in self.known:
            return found[0]
        return self.new.setdefault(found[0], f"<new-{len(self.new) + 1}>")


def _time_shape(found: re.Match[str]) -> str:
    return f"<time{found[0][10]}{'.n' if found[1] else ''}{found[2]}>"


def _sorted(text: str) -> str:
    """Lines in an order of their own: where a new id stands among the others is chance."""
    return "\n".join(sorted(text.split("\n")))


def _compare(what: str, recorded: str, now: str) -> list[str]:
    return [] if recorded == now else [f"{what}:\n  recorded {recorded!r}\n  now      {now!r}"]


def last_error(stderr: str) -> str:
    """The line that a caller would show."""
    return next((line for line in reversed(stderr.split("\n")) if line.startswith("Error: ")), "")


def help_facts(text: str) -> dict[str, list[str]]:
    """The usage lines, the commands and the flags with their kinds, without a word of prose."""
    facts: dict[str, list[str]] = {"usage": [], "commands": [], "flags": [], "global": []}
    heads = {
        "Usage:": "usage",
        "Available Commands:": "commands",
        "Flags:": "flags",
        "Global Flags:": "global",
    }
    part = ""
    for line in (text.partition("Usage:")[1] + text.partition("Usage:")[2]).split("\n"):
        if line and not line.startswith(" "):
            part = heads.get(line, "")
        elif line and part:
            words = line.strip() if part == "usage" else re.split(r"\s{2,}", line.strip())[0]
            facts[part].append(words.split()[0] if part == "commands" else words)
    return facts
