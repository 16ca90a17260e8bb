"""The loop of a head worker: its log, locks, lease, sidecar and journal, and what it prints at the end."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from helix_ddx.files import attempt_id, go_json, second, stamp
from helix_ddx.simulator import head_records as records
from helix_ddx.simulator.script import HARNESS
from helix_ddx.simulator.worker import ClaimRaceError, Json, SimulatedAttempt, Worker, why_nothing
from helix_ddx.store import places
from helix_ddx.store.git import GitError, commit, git
from helix_ddx.store.tracker import Row, event
from helix_tui.core.beads.states import State
from helix_tui.core.ground.time import NS

REFRESH = 10 * NS
BEAT = 30 * NS

_STOPS = {"once_complete": "Once", "operator_attention": "OperatorAttention", "drained": "Drained"}
_LEFT = {
    "drained": "drained current execution-ready queue",
    "once_complete": "completed one attempt",
    "operator_attention": "operator attention required",
    "sigint": "stopped by signal",
    "sigterm": "stopped by signal",
}
_SNAPSHOT: Mapping[str, State] = {
    "execution_ready_count": "ready",
    "blocked_count": "blocked_external",
    "dependency_waiting_count": "waiting_dependencies",
    "external_blocked_count": "blocked_external",
    "proposed_operator_attention_count": "proposed",
    "human_review_blocker_count": "preserved_review_blocked",
    "human_review_blocked_total": "preserved_review_blocked",
    "retry_cooldown_count": "retry_cooldown",
    "execution_ineligible_count": "not_eligible",
    "superseded_count": "superseded",
    "skipped_epics_count": "epic_container",
}


_PASSED = {
    "waiting_dependencies": "dependency_waiting",
    "proposed": "proposed_operator_attention",
    "retry_cooldown": "retry_cooldown",
    "blocked_external": "external_blocked",
    "not_eligible": "not_eligible",
    "superseded": "superseded",
    "epic_container": "epics",
}


class HeadLoop(Worker):
    """What surrounds the attempts of one ``ddx work``."""

    SOURCE = "ddx work"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.opened = False
        self.idled = False
        self.running: SimulatedAttempt | None = None
        self.course = records.Course()
        self.refreshed = self.beaten = self.started
        self.beat_id = ""
        self.attention: Json = {}
        self.journal = self.ddx / "coordination" / "offline-journal.jsonl"
        self.lease_folder = places.lease_folder(self.project, self.env)

    # --- beginning and end ------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open the log, unless the queue is empty, which leaves no trace."""
        if self.orders.watch or self.queue().ready:
            self._open()

    def pick(self) -> Row | None:
        """The next bead, after a look at the disks."""
        if not self.opened:
            return None
        self._preflight()
        row = super().pick()
        if row is not None and self.passed_over:
            self._say_passed_over(row)
        if row is not None and self.idled:
            self.idled = False
            self.say(f"\n{self.hour()} taking next ready bead from queue: {row['id']} — {row.get('title', '')}")
        return row

    def _say_passed_over(self, row: Row) -> None:
        skipped = [
            {"bead_id": bead.id, "priority": bead.priority, "queue_rank": bead.queue_rank, "reason": "in_attempted"}
            for bead in self.passed_over
        ]
        chosen, priority = row["id"], row.get("priority", 0)
        self.log("picker.priority_skip", chosen_bead_id=chosen, chosen_priority=priority, skipped=skipped)

    def idle(self) -> None:
        """Nothing to do for now."""
        self.idled = True
        interval = f"{self.orders.idle_s:g}s"
        self.log("loop.idle", reason="no_ready_work", idle_interval=interval)
        self.say(f"{self.hour()} idle: no execution-ready beads; sleeping {interval}")

    def finish(self, reason: str) -> None:
        """The result object or the summary, and the log's last line."""
        if self.orders.as_json:
            self.out.write(json.dumps(self._result_object(reason), indent=2) + "\n")
            self.out.flush()
        elif not self.orders.only:
            self._summarise(reason)
        if self.opened:
            self.log("loop.end", **self.counts(), exit_reason=reason, last_failure_status=self.last_failure())

    def _open(self) -> None:
        self.opened = True
        self.disk.create(self.log_path)
        if not self.journal.exists():
            self.disk.create(self.journal)
        self.log(
            "loop.start",
            assignee=self.owner,
            harness=HARNESS,
            mode=self.orders.mode,
            model=self.model,
            once=self.orders.once,
            project_root=str(self.project),
            session_id=self.loop_id,
            worker_id=self.owner,
        )

    def _preflight(self) -> None:
        """What DDx looks at before each claim; candidates that have landed lose their refs."""
        with self.lock_folder(".cleanup.lock"):
            self._prune_candidates()
            roots = [str(self.ddx / "executions"), str(self.ddx / "runs"), str(self.lease_folder)]
            copies = str(places.copies_folder(self.project, self.env))
            about = os.statvfs(self.project)
            free = (about.f_bavail * about.f_frsize, about.f_favail)
            self.log("resource.preflight", **records.preflight(str(self.project), copies, roots, free))

    def _prune_candidates(self) -> None:
        merged = git(self.project, "for-each-ref", "--merged=HEAD", "--format=%(refname)", "refs/ddx/iterations/")
        for ref in merged.splitlines():
            # a candidate's ref ends in its cycle; kept work, beside them, has a name that is no number
            if ref.count("/") == 4 and ref.rpartition("/")[2].isdecimal():
                git(self.project, "update-ref", "-d", ref)

    def _result_object(self, reason: str) -> Json:
        document: Json = {"project_root": str(self.project), **self.counts()}
        document |= {"stop_condition": _STOPS.get(reason, "Signal"), "exit_reason": reason}
        if self.attention:
            document["operator_attention"] = self.attention
        if not self.results:
            states = self.queue().counts()
            snapshot = {name: states.get(state, 0) for name, state in _SNAPSHOT.items()}
            document |= {"no_ready_work": True, "no_ready_work_detail": why_nothing(self.queue(), _PASSED)}
            document["queue_snapshot"] = snapshot | {"epic_closure_candidates_count": 0}
        else:
            document["no_ready_work_detail"] = {}
        document["last_success_at"] = self.last_success
        if self.last_failure():
            document["last_failure_status"] = self.last_failure()
        if self.results:
            document["results"] = [result.row for result in self.results]
        return document

    def _summarise(self, reason: str) -> None:
        closed = sum(result.closed for result in self.results)
        satisfied = sum(result.status == "already_satisfied" for result in self.results)
        preserved = sum(bool(result.preserved) and not result.closed for result in self.results)
        failed = [result for result in self.results if not result.closed and not result.preserved]
        self.say(f"\nproject: {self.project}\nworker exited: {_LEFT.get(reason, reason)}")
        self.say(
            f"attempts: {len(self.results)}  |  closed: {closed}  |  changed: {closed - satisfied}  |  "
            f"already-satisfied: {satisfied}  |  preserved: {preserved}  |  failures: {len(failed)}"
        )
        if failed:
            self.say("\nfailed:")
            for result in failed:
                self.say(f"  - {result.bead}: {result.detail}")
        if reason in ("drained", "sigint", "sigterm") and set(self.queue().ready) <= self.attempted:
            self.say("\nNo execution-ready beads.\n  queue drained: no open work remains in lifecycle queues.")

    # --- one attempt's surroundings ---------------------------------------------------------------------

    def claim(self, bead: str) -> Row:
        """Row, lease and journal say that the bead is taken."""
        with self.lock_folder("offline-coordination.lock"):
            now = self.clock()
            if self.leases().get(bead):
                raise ClaimRaceError(bead)
            row = self.change(bead, self._take)
            self._write_lease(bead, now, now)
            payload = {"assignee": self.owner, "bead_id": bead, "session": self.loop_id, "worktree": ""}
            self.add_to_journal("claim", f"claim:{bead}:{self.owner}:{now}", payload)
        self.log("bead.claimed", assignee=self.owner, bead_id=bead, title=row.get("title", ""))
        return row

    def _take(self, row: Row) -> None:
        if row["status"] not in ("open", "in_progress"):
            raise ClaimRaceError(row["id"])
        row.update({"status": "in_progress", "owner": self.owner})

    def lost_race(self, row: Row) -> None:
        """The log knows who was not the first."""
        rank, priority = row.get("queue-rank"), row.get("priority", 0)
        self.log("picker.claim_race", bead_id=row["id"], priority=priority, queue_rank=rank, reason="fresh lease")

    def show_sidecar(self, bead: str) -> None:
        """The worker's own file names the bead from here on."""
        self.beat_id = attempt_id(self.clock(), f"{self.chance.getrandbits(32):08x}")
        self._beat(bead)

    def hide_sidecar(self) -> None:
        """The worker's file names nothing any more."""
        self.beat_id = ""
        self._beat("")

    def _beat(self, bead: str) -> None:
        now = self.beaten = self.clock()
        harness, model = (HARNESS, self.model) if bead else ("", "")
        self.log(
            "worker.heartbeat",
            attempt_id=self.beat_id,
            bead_id=bead,
            harness=harness,
            last_activity_at=stamp(now),
            message="",
            model=model,
            phase="running" if bead else "",
            profile="",
            route="",
            worker_id=self.loop_id,
        )
        status: Json = {"worker_id": self.loop_id, "project_root": str(self.project)}
        if bead:
            status |= {"current_bead": bead, "attempt_id": self.beat_id, "phase": "running"}
            status |= {"harness": harness, "model": model}
        status |= {"pid": self.pid, "started_at": stamp(self.started), "last_activity_at": stamp(now)}
        path = self.ddx / "workers" / self.loop_id / "status.json"
        self.disk.replace(path, json.dumps(status, indent=2) + "\n")

    def heartbeat(self) -> None:
        """Run-state every 10 s, lease and sidecar every 30 s (docs/formats/ddx.md §4)."""
        attempt, now = self.running, self.clock()
        if attempt is None:
            return
        if self.course.state and now - self.refreshed >= REFRESH:
            self.write_state(refreshed_at=stamp(now), expires_at=stamp(now + records.RUN_TTL))
        if now - self.beaten >= BEAT:
            self._write_lease(attempt.bead, attempt.claimed, now)
            self._beat(attempt.bead)

    def write_state(self, **changes: Any) -> None:
        """Both run-state files, with some fields changed."""
        assert self.running is not None
        self.refreshed = self.clock()
        self.course.state |= changes
        text = records.state_text(self.course.state)
        self.disk.replace(self.ddx / "run-state.json", text)
        self.disk.replace(self.ddx / "run-state" / f"{self.running.id}.json", text)

    def drop_state(self, attempt: SimulatedAttempt) -> None:
        """Both run-state files go."""
        self.course.state = {}
        self.disk.delete(self.ddx / "run-state.json")
        self.disk.delete(self.ddx / "run-state" / f"{attempt.id}.json")

    def drop_lease(self, bead: str) -> None:
        """Remove the lease of the bead."""
        self.disk.delete(self.lease_folder / f"{bead}.json")

    def _write_lease(self, bead: str, since: int, now: int) -> None:
        lease = {"bead_id": bead, "owner": self.owner, "machine": self.machine}
        lease |= {"started_at": stamp(since), "updated_at": stamp(now)}
        self.disk.replace(self.lease_folder / f"{bead}.json", go_json(lease | {"pid": self.pid}) + "\n")

    def add_to_journal(self, operation: str, key: str, payload: Json) -> None:
        """One line of the coordination journal."""
        try:
            sequence = self.journal.read_bytes().count(b"\n") + 1
        except FileNotFoundError:
            sequence = 1
        digest = hashlib.sha256(go_json(payload).encode()).hexdigest()
        row: Json = {"sequence": sequence, "operation": operation, "idempotency_key": key, "payload_hash": digest}
        row |= {"payload": payload, "outcome": "applied", "recorded_at": stamp(self.clock())}
        self.disk.append(self.journal, go_json(row) + "\n")

    def add_transition(self, bead: str, status: str, reason: str, *, operator: bool = False) -> None:
        """The journal's word about a new status."""
        payload = {
            "actor": "" if operator else self.owner,
            "bead_id": bead,
            "external_blocker_reason": "",
            "manual_close": False,
            "manual_reopen": False,
            "operator_required": operator,
            "reason": reason,
            "source": self.SOURCE,
            "to_status": status,
        }
        self.add_to_journal("tracker_transition", f"transition:{bead}:{status}:{self.clock()}", payload)

    def write_record(self, attempt: SimulatedAttempt, record: Json) -> None:
        """runs/<attempt>/record.json."""
        self.course.record = record
        self.disk.replace(self.ddx / "runs" / attempt.id / "record.json", go_json(record))

    # --- locks and words --------------------------------------------------------------------------------

    @contextmanager
    def lock_folder(self, name: str, *, token: bool = False) -> Iterator[None]:
        """Hold one of head's lock folders; a second worker waits for it."""
        folder = self.ddx / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + 10
        while True:
            try:
                folder.mkdir()
                break
            except FileExistsError:
                if time.monotonic() > deadline:
                    raise GitError(f"{folder} is held by another process; remove it if that process is gone") from None
                time.sleep(0.02)
        try:
            self.disk.create(folder / "pid", str(self.pid))
            self.disk.create(folder / "acquired_at", second(self.clock()))
            if token:
                self.disk.create(folder / "owner_token", os.urandom(32).hex())
            yield
        finally:
            self.disk.delete_tree(folder)

    @contextmanager
    def git_section(self, section: str) -> Iterator[None]:
        """A piece of work on the repository, alone, with its time in the log."""
        begun = self.clock()
        try:
            with self.lock_folder(".git-tracker.lock", token=True):
                yield
        finally:
            held = (self.clock() - begun) // 1_000_000
            self.log("loop.tracker_lock", hold_ms=held, retries=0, section=section, wait_ms=0)
            self.say(f"tracker_lock section={section} wait=0s hold={held}ms retries=0")

    def commit_tracker(self, section: str, name: str) -> None:
        """Commit the tracker."""
        with self.git_section(section):
            paths = [
                path for path in (".ddx/beads.jsonl", ".ddx/metrics/attempts.jsonl") if (self.project / path).exists()
            ]
            commit(self.project, f"chore: update tracker (execute-bead {name})", *paths, at=self.clock())

    def make_event(self, kind: str, summary: str, body: Json | str, **who: str) -> dict[str, str]:
        """An entry of a bead's history, now."""
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        actor, source = who.get("actor", self.owner), who.get("source", self.SOURCE)
        return event(kind, summary, text, self.clock(), actor=actor, source=source)

    def say(self, text: str) -> None:
        """One line of the loop's own words; ``--json`` silences them."""
        if not self.orders.as_json:
            super().say(text)

    def tell(self, text: str) -> None:
        """One line about the attempt's progress; nothing silences it."""
        super().say(f"{self.hour()} {text}")

    def hour(self) -> str:
        """The time of day, as in the text stream."""
        return time.strftime("%H:%M:%S")

    def embedded(self, attempt: SimulatedAttempt) -> Path:
        """The folder of the attempt's transcripts while it runs."""
        return attempt.copy.path / ".ddx" / "executions" / attempt.id / "embedded"
