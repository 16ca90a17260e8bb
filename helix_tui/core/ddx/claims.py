"""Read the files in which DDx records who holds a bead, each as one kind of claim, and judge whether it is alive.

Formats: docs/formats/ddx.md §1 (lease, row), §4.1 (run record), §4.2 (worker sidecar, server worker record).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.dialect import FRESH, HELD
from helix_tui.core.ddx.files import JsonCache, instant
from helix_tui.core.ground.files import Folder
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import Project, lease_roots, machine_name
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NEVER, NS, clock_time, format_age

Verdict = Literal["alive", "silent", "dead"]
Source = Literal["run-state", "lease", "sidecar", "row"]

Edits = Mapping[str, Sequence[tuple[int, int]]]
"""Bead to the start and end of each of the console's own writes to it."""

NO_EDITS: Edits = {}

PARKED = ("proposed", "blocked")
"""Statuses in which a bead waits for a person."""

_ENDED = frozenset({"exited", "failed", "stopped", "reaped"})
"""States of a server's worker record that mean it has ended."""


class Claim(Struct, frozen=True):
    """One file's record of one holder of a bead (or of a worker that holds none)."""

    source: Source
    path: Path | None
    bead_id: str = ""
    attempt_id: str = ""
    worker_id: str = ""
    pid: int | None = None
    machine: str = ""
    owner: str = ""
    started_at: int | None = None
    start_known: bool = True
    """Whether the file states ``started_at``; else it is the oldest time in the file."""
    at: int | None = None
    """The last sign of life in the file."""
    expires_at: int | None = None
    """When the claim expires by the file's own rule; None if it has none."""
    harness: str = ""
    model: str = ""
    phase: str = ""
    message: str = ""
    worktree: Path | None = None
    left: str = ""
    """DDx's status of an attempt whose worker kept the claim after its end; else empty."""
    beaten: bool = True
    """Whether it holds a heartbeat; a row's claim without one holds nothing to ddx, whatever its age."""


class Hold(Struct, frozen=True):
    """A hold on a bead."""

    since: int | None = None
    """When it began; earlier attempts belong to another holder. None if unknown."""
    gone: str = ""
    """What is known of a holder that is gone, without ages; empty while it is alive."""

    def covers(self, started_at: int | None) -> bool:
        """Whether an attempt that began at an instant belongs to this holder."""
        return self.since is None or started_at is None or started_at >= self.since - NS


class ClaimReader:
    """Reads every claim of a project; files that did not change are not decoded again.

    Attributes:
        documents: the cache behind it; its ``problems`` name the files that could not be read.
    """

    def __init__(self, project: Project, env: Mapping[str, str] | None = None) -> None:
        self.documents = JsonCache(limit=4 << 20)
        self._env = os.environ if env is None else env
        self._project = project
        self._run_states = Folder(project.records_dir / "run-state")
        self._workers = Folder(project.records_dir / "workers")
        self._leases: dict[Path, Folder] = {}
        self._sidecars: dict[str, tuple[dict[str, Any], Claim | None]] = {}
        self._claimed: dict[str, tuple[str, int | None]] = {}
        self.here = machine_name(self._env)

    def read(self, beads: Iterable[Bead], edits: Edits = NO_EDITS) -> list[Claim]:
        """All current claims: run records, leases, sidecars, rows in progress.

        ``edits`` are the console's own writes to beads, which are not claims.
        """
        held, parked = [], {}
        for bead in beads:
            if bead.status == "in_progress":
                held.append(bead)
            elif bead.status in PARKED:
                parked[bead.id] = bead
        leases = (lease for lease in self.leases() if not _let_go(lease, parked.get(lease.bead_id)))
        claims = [*self.run_states(), *leases, *self.sidecars()]
        seen = {bead.id: self._since(bead, edits.get(bead.id, ())) for bead in held}
        self._claimed = {bead.id: (bead.owner, seen[bead.id]) for bead in held}
        return claims + [row_claim(bead, seen[bead.id]) for bead in held]

    def _since(self, bead: Bead, edits: Sequence[tuple[int, int]]) -> int | None:
        """When a row went in progress, as far as known: at first sight, its last write not made by the console; the
        value is kept as long as the owner stays the same.
        """
        owner, since = self._claimed.get(bead.id, (None, None))
        if owner == bead.owner:
            return since
        at = instant(bead.updated_at)
        # the console's own write does not show when the bead was claimed
        if at is not None and any(begun - NS <= at <= ended + NS for begun, ended in edits):
            return None
        return at

    def run_states(self) -> list[Claim]:
        """Run records: one per project (April), one per attempt (since May)."""
        # since May an attempt is in both places
        by_attempt: dict[tuple[str, str], Claim] = {}
        for path in run_state_files(self._project.records_dir, self._run_states):
            document = self.documents.load(path)
            claim = run_state_claim(path, document) if document is not None else None
            if claim is not None:
                known = by_attempt.get((claim.bead_id, claim.attempt_id))
                if known is None or (claim.at or NEVER) > (known.at or NEVER):
                    by_attempt[claim.bead_id, claim.attempt_id] = claim
        return list(by_attempt.values())

    def leases(self) -> list[Claim]:
        """Leases from all places where a release keeps them; the fresher of two on one bead."""
        by_bead: dict[str, Claim] = {}
        for root in lease_roots(self._project, self._env):
            folder = self._leases.setdefault(root, Folder(root))
            for name in folder.names():
                if not name.endswith(".json"):
                    continue
                document = self.documents.load(root / name)
                if document is None:
                    continue
                claim = lease_claim(root / name, document)
                known = by_bead.get(claim.bead_id)
                if known is None or (claim.at or NEVER) > (known.at or NEVER):
                    by_bead[claim.bead_id] = claim
        return list(by_bead.values())

    def sidecars(self) -> list[Claim]:
        """Workers' own status files, in both forms."""
        claims = []
        base = str(self._workers.path)
        for name in self._workers.names():
            path = f"{base}/{name}/status.json"
            document = self.documents.load(path)
            if document is None:
                continue
            known = self._sidecars.get(name)
            # the cache gives the same object as long as the file stays the same
            if known is None or known[0] is not document:
                known = self._sidecars[name] = (document, sidecar_claim(Path(path), name, document))
            if known[1] is not None:
                claims.append(known[1])
        return claims

    def stands(self) -> bool:
        """Whether no claim was made, changed or released since the last read."""
        folders = (self._run_states, self._workers, *self._leases.values())
        return all(folder.stands() for folder in folders) and self.documents.stands()

    def fresh_leases(self, now: int) -> dict[str, bool]:
        """Bead with a readable lease to whether DDx considers it fresh at ``now``."""
        return {claim.bead_id: lease_is_fresh(claim, now, self.here) for claim in self.leases()}


def fresh_claims(
    project: Project, now: int, *, env: Mapping[str, str] | None = None, reader: ClaimReader | None = None
) -> dict[str, tuple[bool, bool]]:
    """Bead with a readable lease to (found, fresh) by DDx's rule; an unreadable lease counts as absent."""
    reader = ClaimReader(project, env) if reader is None else reader
    return {bead_id: (True, fresh) for bead_id, fresh in reader.fresh_leases(now).items()}


def lease_is_fresh(claim: Claim, now: int, here: str) -> bool:
    """Whether a lease is fresh by DDx's rule: touched within 90 s, or within 2 h if its process runs here."""
    # Go writes its zero time for an absent one
    if claim.at is None or claim.at <= NEVER:
        return False
    age = now - claim.at
    if age <= FRESH:
        return True
    same = claim.machine != "" and claim.machine == here
    return same and age <= HELD and claim.pid is not None and pid_alive(claim.pid)


def given_out_again(claims: Iterable[Claim], now: int) -> int:
    """When ddx hands out a bead again whose worker is gone: once its heartbeat is 90 s old.

    0 if that instant has passed or is unknown.
    """
    beats = [claim for claim in claims if claim.source in ("row", "lease") and claim.beaten]
    again = max((claim.at for claim in beats if claim.at is not None), default=0) + FRESH
    return again if again > now else 0


def run_state_files(ddx_dir: Path, folder: Folder) -> list[Path]:
    """The files of run records: one per attempt in ``run-state/``, and one for the project."""
    paths = [folder.path / name for name in folder.names() if name.endswith(".json")]
    return [*paths, ddx_dir / "run-state.json"]


def run_state_claim(path: Path, document: dict[str, Any]) -> Claim | None:
    """The claim of a run record; None if it names no bead."""
    bead_id = _word(document, "bead_id")
    if not bead_id:
        return None
    worktree = document.get("worktree_path")
    started = instant(document.get("started_at"))
    return Claim(
        "run-state",
        path,
        bead_id=bead_id,
        attempt_id=_word(document, "attempt_id"),
        worker_id=_word(document, "worker_id"),
        pid=_pid(document.get("pid")),
        machine=_word(document, "machine"),
        started_at=started,
        at=instant(document.get("refreshed_at")) or started,
        expires_at=instant(document.get("expires_at")),
        harness=_word(document, "harness"),
        model=_word(document, "model"),
        phase=_word(document, "candidate_cycle_phase") or _word(document, "phase"),
        message=_word(document, "message"),
        worktree=Path(worktree) if isinstance(worktree, str) and worktree else None,
    )


def lease_claim(path: Path, document: dict[str, Any]) -> Claim:
    """The claim of a lease file; the file name stands for a missing bead id."""
    at = instant(document.get("updated_at"))
    return Claim(
        "lease",
        path,
        bead_id=_word(document, "bead_id") or path.name.removesuffix(".json"),
        pid=_pid(document.get("pid")),
        machine=_word(document, "machine"),
        owner=_word(document, "owner"),
        started_at=instant(document.get("started_at")),
        at=at,
        # a lease without a time counts as expired long ago
        expires_at=(at if at is not None else NEVER) + FRESH,
    )


def sidecar_claim(path: Path, name: str, document: dict[str, Any]) -> Claim | None:
    """The claim of a worker's status file, in the worker's or the server's format."""
    ended = _word(document, "state") in _ENDED or instant(document.get("finished_at")) is not None
    if ended and "worker_id" not in document:
        return None
    attempt = document.get("current_attempt")
    attempt = attempt if isinstance(attempt, dict) else {}
    at = instant(document.get("last_activity_at"))
    phase = _word(document, "phase") or _word(attempt, "phase") or _word(document, "substate")
    message = _word(document, "message") or _word(attempt, "message") or _word(document, "route")
    return Claim(
        "sidecar",
        path,
        # in that phase the worker has released its bead, even if the file still names one
        bead_id="" if phase == "terminal" else _word(document, "current_bead") or _word(attempt, "bead_id"),
        attempt_id=_word(document, "attempt_id") or _word(attempt, "attempt_id"),
        worker_id=_word(document, "worker_id") or _word(document, "id") or name,
        pid=_pid(document.get("pid")),
        machine=_word(document, "machine"),
        started_at=instant(attempt.get("started_at")) or instant(document.get("started_at")),
        at=at,
        expires_at=at + FRESH if at is not None else None,
        harness=_word(attempt, "harness") or _word(document, "harness"),
        model=_word(attempt, "model") or _word(document, "model"),
        phase=phase,
        message=message,
    )


def _let_go(lease: Claim, parked: Bead | None) -> bool:
    """Whether a lease outlives its work: its worker passed the bead to a person after its last heartbeat.

    July's loop keeps the lease of a change that a person must land, and continues with other beads.
    """
    return parked is not None and (instant(parked.updated_at) or NEVER) >= (lease.at or NEVER)


def row_claim(bead: Bead, since: int | None = None) -> Claim:
    """The claim of a tracker row in progress: April's worker, or a person of either era.

    Only the worker's heartbeat and its claim are signs of life: any edit changes ``updated_at``. Only a heartbeat
    expires; a claim made by hand has none. ``since`` is when the row went in progress, for a head row with neither.
    """
    at = instant(bead.loop_heartbeat_at) or instant(bead.work_heartbeat_at)
    claimed = instant(bead.claimed_at)
    seen = at or claimed or since
    return Claim(
        "row",
        None,
        bead_id=bead.id,
        pid=bead.pid,
        machine=bead.claimed_machine,
        owner=bead.owner,
        started_at=claimed or seen,
        start_known=claimed is not None,
        at=seen,
        # a claim made by hand has a process and no heartbeat: it never counted, so it does not run out
        expires_at=seen + FRESH if seen is not None and (at is not None or bead.pid is None) else None,
        left=_left(bead, max(at or 0, claimed)) if claimed is not None else "",
        beaten=at is not None,
    )


def judge(claims: Sequence[Claim], last_event: int | None, now: int, stall: int, *, here: str) -> tuple[Verdict, str]:
    """Judge a run as alive, silent or dead, with one sentence that says why (docs/formats/ddx.md §4).

    Ages have a single unit, so that the sentence rarely changes.

    Dead: its process is gone from this host, its loop has ended the attempt, or every expiry time in its files is in
    the past. A process of another host cannot be checked. Silent: an event, then none for ``stall``, however fresh the
    heartbeat; never for a run without any event. Events before the start of the attempt belong to the check before it.
    A claim made by hand on this machine is not judged here: `runs.running` knows those.
    """
    machine = next((claim.machine for claim in claims if claim.machine), "")
    # a row without a heartbeat holds nothing, so its process vouches for no other claim
    heard = [claim for claim in claims if claim.beaten and claim.pid is not None] or claims
    pids = list(dict.fromkeys(claim.pid for claim in heard if claim.pid is not None))
    # a process id of another machine means nothing here
    asked = pids if machine in ("", here) else []
    living = [pid for pid in asked if pid_alive(pid)]
    if asked and not living:
        return "dead", f"worker dead: process {asked[0]} is not on this machine"
    if all(_unheard(claim, here) for claim in claims):
        return "dead", f"claimed on {machine} without a heartbeat: ddx gives such a bead out again"
    left = [claim.left for claim in claims if claim.source != "sidecar"]
    if left and all(left):
        return ("dead", f"its worker ended the attempt ({left[0]}) and kept the claim, which expires by itself")
    expiries = [_vouched_until(claim, now, here) for claim in claims]
    known = [expiry for expiry in expiries if expiry is not None]
    if known and max(known) < now:
        ago = format_age((now - max(known)) / NS)
        return "dead", f"no heartbeat: the lease ran out {ago} ago" + (
            f", though process {living[0]} exists" if living else ""
        )
    began = [claim.started_at for claim in claims if claim.started_at is not None]
    began = began or [claim.at for claim in claims if claim.at is not None]
    starts = [claim.started_at for claim in claims if claim.started_at is not None and claim.start_known]
    # May's check before an attempt writes events, and the attempt writes none
    if last_event is not None and starts and last_event < max(starts):
        last_event = None
    seen = latest(last_event, max(began, default=None))
    if seen is None:
        return "dead", "no record of a heartbeat"
    if seen - now > HELD:
        return "alive", "its records are of the future: one of the two clocks is wrong"
    if not known and not living and now - seen > HELD:
        return "dead", f"no heartbeat for {format_age((now - seen) / NS)}"
    # May writes no event while an agent works: with a heartbeat or a process, a run without events is not silent
    vouched = bool(known or living)
    if now - seen > stall and not (vouched and last_event is None):
        beat = "heartbeat just now, but " if known else ""
        return "silent", f"{beat}nothing done for {format_age((now - seen) / NS)}"
    if last_event is None:  # some releases write none while an agent works
        what = f"process {living[0]} runs" if living else "heartbeat just now"
        return "alive", f"{what}, no event yet; started {format_age((now - seen) / NS)} ago"
    if living:
        return "alive", f"worker alive (pid {living[0]}), last event {format_age((now - seen) / NS)} ago"
    return "alive", f"last event {format_age((now - seen) / NS)} ago" + (f" on {machine}" if machine else "")


def lost(claims: Sequence[Claim], now: int, *, here: str) -> str:
    """What is known of a dead worker, and when ddx hands out its bead again, without ages."""
    pids = [claim.pid for claim in claims if claim.pid is not None and claim.machine in ("", here)]
    seen = latest(*(claim.at for claim in claims))
    if pids and not any(pid_alive(pid) for pid in pids):
        what = f"its worker is dead (process {pids[0]})"
    elif seen is not None:
        what = f"no sign of its worker since {clock_time(seen)}"
    else:
        what = "no sign of its worker"
    again = given_out_again(claims, now)
    return f"{what}; ddx gives the bead out again at {clock_time(again)}" if again else what


def _unheard(claim: Claim, here: str) -> bool:
    """Whether a claim shows no sign of life here: no heartbeat, and a process on another machine."""
    return not claim.beaten and claim.machine not in ("", here)


def _vouched_until(claim: Claim, now: int, here: str) -> int | None:
    if _unheard(claim, here):
        return None
    # a lease counts for up to 2 h while its process runs, though its 90 s are over
    if claim.source == "lease" and claim.at is not None and lease_is_fresh(claim, now, here):
        return max(now, claim.at + FRESH)
    return claim.expires_at


def latest(*instants: int | None) -> int | None:
    """The latest of the known instants; None if none is known."""
    return max((instant for instant in instants if instant is not None), default=None)


def _left(bead: Bead, since: int) -> str:
    """How the attempt ended after the claim and its last heartbeat; empty if no loop event says so.

    April's loop keeps the claim on a bead whose review gave no readable verdict, and continues.
    """
    # search the bytes first: decoding a full row is expensive, and few claimed beads have such an event
    events = bead.document().get("events") if b'"execute-bead"' in bead.raw else None
    last = events[-1] if isinstance(events, list) and events else None
    if not isinstance(last, dict) or last.get("kind") != "execute-bead":
        return ""
    at = instant(last.get("created_at"))
    return (_word(last, "summary") or "ended") if at is not None and at >= since else ""


def _word(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key)
    return clean_line(value, 400) if isinstance(value, str) else ""


def _pid(value: object) -> int | None:
    # April writes the process id of a row as text
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
