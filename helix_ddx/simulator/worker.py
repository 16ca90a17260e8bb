"""What every worker does: picking, waiting at a human pace, logs, and what is printed.

A worker is a scripted stand-in for ``ddx work``: which bead does what is an ``Act`` (see ``script``), what an
attempt writes, and in which order, is in ``head``.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from msgspec import Struct

from helix_ddx.files import Disk, attempt_id, go_json, second, stamp
from helix_ddx.simulator.script import HARNESS, Act, act_for
from helix_ddx.simulator.streams import Copy, apply_edit
from helix_ddx.store import places
from helix_ddx.store.git import commit
from helix_ddx.store.tracker import Row, Store, process_lives
from helix_tui.core.beads.readiness import Claims, Queue, classify
from helix_tui.core.beads.record import Bead
from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ground.project import machine_name
from helix_tui.core.ground.text import clean_block
from helix_tui.core.ground.time import NS, now_ns, parse_instant

Json = dict[str, Any]

NEVER = "0001-01-01T00:00:00Z"
HUMAN_PACE_S = 0.8
LEASE_TTL = 90 * NS
LEASE_LIMIT = 2 * 3600 * NS


class Cancelled(Exception):
    """The worker was told to stop while an attempt ran."""


class ClaimRaceError(RuntimeError):
    """Another worker took the bead between the look and the claim."""


class Orders(Struct, frozen=True):
    """What the command line asks of a worker."""

    once: bool = False
    watch: bool = False
    idle_s: float = 30.0
    as_json: bool = False
    only: str = ""
    """One bead, by ``try``."""
    label: str = ""
    no_review: bool = False
    pace: float = HUMAN_PACE_S

    @property
    def mode(self) -> str:
        """How head calls it in its log."""
        return "watch" if self.watch else "once" if self.once else "drain"


class SimulatedAttempt(Struct):
    """One attempt while it runs."""

    row: Row
    act: Act
    id: str
    session: str
    base: str
    begun: int
    copy: Copy
    claimed: int = 0
    ended: int = 0
    rev: str = ""
    """The commit that the agent made; the base when it made none."""

    @property
    def bead(self) -> str:
        """The bead's id."""
        return str(self.row["id"])

    @property
    def span(self) -> tuple[int, int]:
        """When the agent began and ended."""
        return self.begun, self.ended

    @property
    def duration_ms(self) -> int:
        """How long the agent worked."""
        return (self.ended - self.begun) // 1_000_000


class SimulatedResult(Struct):
    """How an attempt ended, as the loop reports it."""

    bead: str
    attempt: str
    status: str
    detail: str
    row: Json
    landed: str = ""
    preserved: str = ""
    closed: bool = False
    stops: str = ""
    """Why the loop ends after this one."""

    def to_json(self) -> Json:
        """One entry of a drain's summary."""
        known = {"bead_id": self.bead, "attempt_id": self.attempt, "status": self.status, "detail": self.detail}
        return known | {"landed_rev": self.landed or None, "preserve_ref": self.preserved or None}


@dataclass
class Worker(ABC):
    """One worker process on one project."""

    project: Path
    orders: Orders = field(default_factory=Orders)
    plan: Mapping[str, Any] = field(default_factory=dict)
    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    disk: Disk = field(default_factory=Disk)
    clock: Callable[[], int] = now_ns
    # SIGKILL: not even a `finally` runs, so that all is left as by a worker that was killed
    die: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)
    """What happens in an act that is killed."""

    def __post_init__(self) -> None:
        self.project = Path(os.path.realpath(self.project))
        self.ddx = self.project / ".ddx"
        self.store = Store(self.ddx, self.disk, self.clock)
        self.owner = self.env.get("DDX_AGENT_NAME") or HARNESS
        self.machine = machine_name(self.env)
        self.pid = os.getpid()
        self.started = self.clock()
        self.loop_id = f"agent-loop-{self.started}"
        self.log_path = self.ddx / "agent-logs" / f"{self.loop_id}.jsonl"
        self.model = "simulation-medium"
        self.attempted: set[str] = set()
        self.passed_over: list[Bead] = []
        self.results: list[SimulatedResult] = []
        self.cancelled = ""
        self.last_success = NEVER
        # the pid, too: two workers that begin in one instant must not draw the same ids
        self.chance = random.Random(f"{self.project}:{self.pid}:{self.started}")
        digest = hashlib.sha256(str(self.project).encode()).hexdigest()
        self.project_id = f"proj-{digest[:8]}"

    # --- the loop ---------------------------------------------------------------------------------------

    @abstractmethod
    def begin(self) -> None:
        """What is written before the first bead."""

    @abstractmethod
    def attempt(self, row: Row) -> SimulatedResult:
        """Run one bead, from the claim to its last record."""

    @abstractmethod
    def lost_race(self, row: Row) -> None:
        """Say that somebody else has the bead."""

    @abstractmethod
    def finish(self, reason: str) -> None:
        """What is written and printed after the last bead."""

    @abstractmethod
    def idle(self) -> None:
        """Say that there is nothing to do for now (only while watching)."""

    @abstractmethod
    def execute_one(self, bead: str) -> int:
        """Run one named bead; returns the exit code."""

    @abstractmethod
    def heartbeat(self) -> None:
        """Renew the heartbeat when it is due."""

    def run(self) -> int:
        """Work until there is nothing left to do; the exit code."""
        reason = "drained"
        self.begin()
        try:
            while not self.cancelled:
                row = self.pick()
                if row is None:
                    if not self.orders.watch:
                        break
                    self.idle()
                    self.wait_seconds(self.orders.idle_s)
                    continue
                try:
                    result = self.attempt(row)
                except ClaimRaceError:
                    self.lost_race(row)
                    continue
                self.results.append(result)
                if self.orders.once or result.stops:
                    reason = result.stops or "once_complete"
                    break
        except Cancelled:
            pass
        if self.cancelled:
            reason = self.cancelled
        elif self.orders.once and not self.results:
            reason = "once_complete"
        self.finish(reason)
        return 130 if self.cancelled else 0

    def queue(self) -> Queue:
        """The queue as DDx sees it now."""
        beads = read_tracker(self.store.path).beads
        claims = Claims(leases=self.leases())
        return classify(beads, now=self.clock(), era="head", claims=claims)

    def pick(self) -> Row | None:
        """The first ready bead that was not tried yet, as the file has it."""
        queue = self.queue()
        for bead in queue.ready:
            if bead not in self.attempted and (not self.orders.label or self.orders.label in queue.beads[bead].labels):
                self.passed_over = [
                    other
                    for other in map(queue.beads.__getitem__, queue.ready)
                    if other.id in self.attempted and other.priority < queue.beads[bead].priority
                ]
                self.attempted.add(bead)
                return self.store.read().get(bead)
        return None

    def leases(self) -> dict[str, bool]:
        """Per bead with a lease: whether it is fresh (docs/formats/ddx.md §2)."""
        fresh: dict[str, bool] = {}
        for path in places.lease_folder(self.project, self.env).glob("*.json"):
            try:
                lease = json.loads(path.read_text(encoding="utf-8"))
                age = self.clock() - (parse_instant(lease["updated_at"]) or 0)
                here = lease.get("machine") == self.machine and process_lives(int(lease["pid"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue
            fresh[path.stem] = age <= LEASE_TTL or (here and age < LEASE_LIMIT)
        return fresh

    # --- time -------------------------------------------------------------------------------------------

    def wait(self, beats: float) -> None:
        """Let time pass at the simulation's pace.

        Raises:
            Cancelled: the worker was asked to stop.
        """
        self.wait_seconds(beats * self.orders.pace)

    def wait_seconds(self, seconds: float) -> None:
        """Let seconds pass, with heartbeats.

        Raises:
            Cancelled: the worker was asked to stop.
        """
        end = time.monotonic() + seconds
        while True:
            if self.cancelled:
                raise Cancelled
            self.heartbeat()
            left = end - time.monotonic()
            if left <= 0:
                return
            # in short naps, so that a heartbeat is in time and a stop is soon noticed
            time.sleep(min(left, 0.1))

    # --- records -----------------------------------------------------------------------------------------

    def log(self, kind: str, **data: Any) -> None:
        """One line of the loop's log; its keys are sorted."""
        row = {"data": dict(sorted(data.items())), "session_id": self.loop_id, "ts": stamp(self.clock()), "type": kind}
        self.disk.append(self.log_path, go_json(row) + "\n")

    def add_session(self, row: Json) -> None:
        """One line of the session index of this month."""
        month = stamp(self.clock())[:7]
        self.disk.append(self.ddx / "agent-logs" / "sessions" / f"sessions-{month}.jsonl", go_json(row) + "\n")

    def add_event(self, bead: str, entry: dict[str, str]) -> None:
        """Add one entry to a bead's history."""

        def add(row: Row) -> None:
            row.setdefault("events", []).append(entry)

        self.change(bead, add)

    def change(self, bead: str, edit: Callable[[Row], None]) -> Row:
        """Rewrite one record under the lock; the record as it is now. A bead that is gone stays gone."""
        with self.store.change() as rows:
            row = rows.get(bead)
            if row is None:
                return {"id": bead}
            edit(row)
            row["updated_at"] = stamp(self.clock())
            return row

    def say(self, text: str) -> None:
        """One line of the text stream; what comes from a bead is cleaned, for this may be a terminal."""
        self.out.write(clean_block(text) + "\n")
        self.out.flush()

    # --- one attempt ------------------------------------------------------------------------------------

    def new_attempt(self, row: Row, base: str, kind: str) -> SimulatedAttempt:
        """A new attempt on a bead with its own folder to work in."""
        act = act_for(row, self.plan)
        now = self.clock()
        name = attempt_id(now, f"{self.chance.getrandbits(32):08x}")
        folder = places.copies_folder(self.project, self.env)
        copy = Copy(self.project, folder / f".execute-bead-{kind}-{row['id']}-{name}", base)
        return SimulatedAttempt(row, act, name, self.new_id("eb"), base, now, copy, rev=base)

    def new_id(self, prefix: str) -> str:
        """A session id: ``eb-`` for an agent at work on a bead, ``as-`` for any other call."""
        return f"{prefix}-{self.chance.getrandbits(32):08x}"

    def person_commits(self, act: Act) -> None:
        """Make another person's commit on the branch while the agent works."""
        if act.person is not None:
            apply_edit(self.project, act.person)
            commit(self.project, f"docs: change {act.person.path}", act.person.path, at=self.clock(), author="person")

    def remove_copy(self, attempt: SimulatedAttempt) -> None:
        """The attempt's folder goes, and with it what lay in it of the evidence."""
        self.disk.delete_tree(attempt.copy.path / ".ddx" / "executions" / attempt.id)
        attempt.copy.remove()

    def counts(self) -> Json:
        """How many attempts there were, and how many succeeded."""
        good = sum(result.closed for result in self.results)
        return {"attempts": len(self.results), "successes": good, "failures": len(self.results) - good}

    def last_failure(self) -> str:
        """The status of the last attempt that did not succeed."""
        return next((result.status for result in reversed(self.results) if not result.closed), "")


def why_nothing(queue: Queue, names: Mapping[str, str]) -> Json:
    """``no_ready_work_detail``: which beads were passed over, by reason; empty lists are absent."""
    detail: Json = {}
    ends = []
    for bead in queue.beads:
        standing = queue.standing(bead)
        if standing.state in names:
            detail.setdefault(names[standing.state], []).append(bead)
        if standing.state == "retry_cooldown" and standing.until is not None:
            ends.append(standing.until)
    if ends:
        detail["next_retry_after"] = second(min(ends))
    return detail
