"""A stranger's machine for one test: a home, a PATH one real ddx and a scripted agent on PATH, a project.

Nothing of whoever runs the tests is seen or touched, and nothing is reached but the loopback.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

AGENT = Path(__file__).with_name("agent.py")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
DONE = ("closed", "cancelled")

PATIENCE = 1200.0
"""Seconds that a program may take on a machine that has much else to do; what hangs is ended then."""

Ran = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Release:
    """One real ddx: where it is, and how its help says that its queue is drained."""

    path: Path
    drain: tuple[str, ...]
    """The verb that drains, as this release has it, with what keeps it off a server."""
    workers: tuple[str, ...] = ("work", "status")
    """The verb that tells which bead a worker is on; none before the end of April."""
    is_april: bool = False
    """Whether it is of the releases before leases: claims stand in the rows, what waits is blocked."""
    reviews: bool = True
    """Whether it gets to a reviewer; July's router finds none where there is one client only."""
    known: Path | None = None
    """A cache in which helix-tui keeps what this binary does, so that not every stranger tries it anew."""
    waits_under_load: bool = False
    """Whether it begins no bead on a machine that has much else to do, unless its configuration says so."""

    @property
    def name(self) -> str:
        """The folder that the binary is in: what the tests are called by."""
        return self.path.parent.name

    @classmethod
    def of(cls, path: Path) -> Release:
        """Ask a binary for its verbs.

        Raises:
            OSError: it cannot be started.
        """
        drain: tuple[str, ...] = ("work",)
        done = subprocess.run([path, *drain, "--help"], capture_output=True, text=True, timeout=60, env=_BARE)
        if done.returncode:  # before the end of April
            drain = ("agent", "execute-loop")
            done = subprocess.run([path, *drain, "--help"], capture_output=True, text=True, timeout=60, env=_BARE)
        inline = ("--local",) if "--local" in done.stdout else ()
        words = ("agent", "workers")
        old = subprocess.run([path, *words, "--help"], capture_output=True, text=True, timeout=60, env=_BARE)
        loop = subprocess.run([path, "agent", "execute-loop", "--help"], capture_output=True, timeout=60, env=_BARE)
        is_april = loop.returncode == 0
        workers = ("work", "status") if not is_april else words if " ".join(words) in old.stdout else ()
        waits = b"load_pressure_threshold" in path.read_bytes()
        return cls(path, (*drain, *inline), workers, is_april, waits_under_load=waits)


_BARE = {"PATH": SYSTEM_PATH, "HOME": "/nonexistent", "DDX_DISABLE_UPDATE_CHECK": "1"}


@dataclass
class Stranger:
    """One machine and one project on it."""

    base: Path
    release: Release
    agent: Path = AGENT
    """What stands on PATH as ``claude``."""
    pins: tuple[str, ...] = ("--harness", "claude", "--model", "sonnet")
    """Who is to do the work, in words that every release takes."""
    extra: Mapping[str, str] = field(default_factory=dict)
    linked: Path | None = None
    """The linked work tree in which programs are run from now on, if one was made."""

    @property
    def home(self) -> Path:
        return self.base / "home"

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def here(self) -> Path:
        """Where programs are run, and where workers leave their records."""
        return self.linked or self.project

    @property
    def env(self) -> dict[str, str]:
        person = {"NAME": "Stranger", "EMAIL": "stranger@example.com"}
        git = {f"GIT_{role}_{key}": text for role in ("AUTHOR", "COMMITTER") for key, text in person.items()}
        places = {f"XDG_{kind}_HOME": str(self.home / kind.lower()) for kind in ("DATA", "CACHE", "CONFIG", "STATE")}
        return {
            "PATH": f"{self.base / 'bin'}:{SYSTEM_PATH}",
            "HOME": str(self.home),
            "TMPDIR": str(self.base / "tmp"),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "HELIX_EMBEDDER": "off",
            "DDX_DISABLE_UPDATE_CHECK": "1",
            "DDX_SERVER_URL": "http://127.0.0.1:9",
            "GIT_CONFIG_NOSYSTEM": "1",
            **places,
            **git,
            **self.extra,
        }

    # --- making ----------------------------------------------------------------------------------------

    def make(self) -> Stranger:
        """The folders, the programs on PATH, and a project by this release's own ``init``."""
        for folder in (self.home, self.base / "bin", self.base / "tmp", self.project):
            folder.mkdir(parents=True)
        if self.release.known is not None:
            shutil.copytree(self.release.known, self.home / "cache")
        (self.base / "bin" / "ddx").symlink_to(self.release.path)
        own = self.base / "bin" / "helix-tui"
        own.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m helix_tui "$@"\n')
        own.chmod(0o755)
        claude = self.base / "bin" / "claude"
        shutil.copy(self.agent, claude)
        claude.chmod(0o755)
        (self.home / "project").write_text(str(self.project))
        self.mode("ok")
        self.verdict("APPROVE")
        self.git("init", "-q", "-b", "main")
        (self.project / "README.md").write_text("hello\n")
        self.commit("start")
        self.ddx("init", check=True)
        if self.release.waits_under_load:
            with open(self.project / ".ddx" / "config.yaml", "a") as config:
                config.write("\nworkers:\n    load_pressure_threshold: 1000\n")
        self.commit("ddx")
        return self

    def bead(self, title: str, *, priority: int = 2, after: tuple[str, ...] = (), **flags: str) -> str:
        """A bead by this release's own ``bead create``; its id."""
        words = ["bead", "create", title, "--type", "task", "--priority", str(priority)]
        words += ["--acceptance", "the file out-<id>.txt holds hello", "--description", "Write one file."]
        words += [word for flag, value in flags.items() for word in (f"--{flag}", value)]
        made = self.ddx(*words, check=True).stdout.split()[-1]
        for other in after:
            self.ddx("bead", "dep", "add", made, other, check=True)
        return made

    def link(self, branch: str) -> Path:
        """Make a linked work tree on a new branch; programs are run in it from now on."""
        self.git("worktree", "add", "-q", "-b", branch, str(self.base / branch))
        self.linked = self.base / branch
        return self.linked

    def commit(self, subject: str) -> None:
        """Commit whatever is in the work tree, if anything is."""
        self.git("add", "-A")
        if self.git("status", "--porcelain"):
            self.git("commit", "-q", "-m", subject)

    def mode(self, word: str) -> None:
        """What the scripted agent does from now on."""
        (self.home / "mode").write_text(word)

    def verdict(self, word: str) -> None:
        """What its reviews say from now on."""
        (self.home / "verdict").write_text(word)

    # --- running ---------------------------------------------------------------------------------------

    def run(self, *words: str, timeout: float = PATIENCE, cwd: Path | None = None, **env: str) -> Ran:
        """Run a program as the stranger and wait for it."""
        return subprocess.run(
            words,
            cwd=cwd or self.here,
            env={**self.env, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def ddx(self, *words: str, check: bool = False, timeout: float = PATIENCE) -> Ran:
        """This release's ddx."""
        done = self.run("ddx", *words, timeout=timeout)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def tui(self, *words: str, timeout: float = PATIENCE, cwd: Path | None = None) -> Ran:
        """helix-tui as it is here."""
        return self.run("helix-tui", *words, timeout=timeout, cwd=cwd)

    def tui_json(self, *words: str) -> dict[str, Any]:
        """What a command of helix-tui says in JSON."""
        done = self.tui(*words, "--json")
        assert done.stdout.startswith("{"), (words, done.returncode, done.stdout, done.stderr)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start a program as the stranger, in a session of its own; its output goes to ``base/begun.out``."""
        with open(self.base / "begun.out", "ab") as out:
            return subprocess.Popen(
                words,
                cwd=self.here,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def drained(self, *more: str) -> Ran:
        """Drain with ddx alone, in one session."""
        return self.ddx(*self.release.drain, *self.pins, *more)

    def supervised(self, *more: str, timeout: float = PATIENCE) -> Ran:
        """Drain with ``helix-tui run``."""
        return self.tui("run", *self.agent_words, *more, timeout=timeout)

    @property
    def agent_words(self) -> tuple[str, ...]:
        """The same agent in our words."""
        return ("--agent", self.pins[1], "--model", self.pins[3])

    def git(self, *words: str) -> str:
        """git in the project; what it printed."""
        done = self.run("git", *words, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    # --- looking ---------------------------------------------------------------------------------------

    def calls(self, kind: str = "") -> list[dict[str, Any]]:
        """What the scripted agent was called for, in order."""
        path = self.home / "calls.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [row for row in rows if not kind or row["kind"] == kind]

    def rows(self) -> dict[str, dict[str, Any]]:
        """The tracker's rows as they stand in the file."""
        text = (self.project / ".ddx" / "beads.jsonl").read_text()
        return {row["id"]: row for row in map(json.loads, text.splitlines())}

    def claims_and_rows(self) -> tuple[object, ...]:
        """What tells of beads and who holds them: the rows, and which leases and run records there are."""
        walked = (
            found for root in (self.base / "tmp", self.home) for found in os.walk(root)
        )  # what goes is passed over
        named = (Path(folder, name) for folder, _, names in walked for name in names)
        leases = (path for path in named if path.match("project-*.json"))
        records = (self.here / ".ddx").glob("run-state*/*.json")
        return (self.project / ".ddx" / "beads.jsonl").read_bytes(), sorted(leases), sorted(records)

    def answer(self, *words: str) -> list[dict[str, Any]]:
        """A list that ddx prints; an empty one where it prints nothing."""
        done = self.ddx(*words, "--json", check=True)
        found = json.loads(done.stdout or "null")
        return list(found or [])

    def asks_for_a_person(self) -> bool:
        """Whether ddx's last loop ended because a person should look, and not because all is done."""
        logs = sorted((self.project / ".ddx" / "agent-logs").glob("agent-loop-*.jsonl"))
        return bool(logs) and '"exit_reason":"operator_attention"' in logs[-1].read_text()

    def ready(self) -> list[str]:
        """The ids that ddx would give to a worker, in its order."""
        return [row["id"] for row in self.answer("bead", "ready", "--execution")]

    def closed(self) -> set[str]:
        """The ids that ddx lists as closed."""
        return {row["id"] for row in self.answer("bead", "list") if row["status"] == "closed"}

    def processes(self) -> dict[int, str]:
        """Processes alive that belong to this stranger, by the home in their environment: pid -> command."""
        found: dict[int, str] = {}
        mark = f"HOME={self.home}".encode()
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if state != "Z":
                        found[int(folder.name)] = command
        return found

    def clean_up(self) -> None:
        """End whatever of this stranger still runs."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
