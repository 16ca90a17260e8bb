"""Find running work in tracker rows, leases, run records and worker sidecars.

Formats: docs/formats/ddx.md §4. No single file is enough: a row stays ``open`` while a worker of the head era runs it,
a run record outlives a killed worker, a stuck worker still sends heartbeats. So every source is read, claims are merged
per piece of work, and each fact keeps its source and age.

DDx writes a claim first, then evidence, then the result, each into a file of its own. Rows read before a claim and
evidence read after it would show an attempt that nobody holds, so `QueueReader` reads again what changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Claims
from helix_tui.core.beads.record import TERMINAL, Bead
from helix_tui.core.beads.tracker import Tracker, TrackerReader
from helix_tui.core.ddx.claims import (
    NO_EDITS,
    Claim,
    ClaimReader,
    Edits,
    Hold,
    Verdict,
    fresh_claims,
    given_out_again,
    judge,
    latest,
    lost,
)
from helix_tui.core.ddx.runs.bundles import Bundle, Bundles
from helix_tui.core.ddx.runs.sessions import WINDOW, Doing, Session, Sessions
from helix_tui.core.ddx.runs.transcript import TranscriptTail, transcript_folders
from helix_tui.core.ground.files import below
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import Project, worktree_roots
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import NS, clock_time, format_day, parse_instant

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.index import AttemptIndex

__all__ = ["Fact", "QueueReader", "QueueReading", "Run", "RunReader", "Verdict", "fresh_claims"]

STALL_AFTER_S = 300.0
"""Default seconds without an event after which a worker with a heartbeat counts as silent."""

AT_ONCE = 2 * NS
"""A heartbeat so soon after the claim was written by the claim itself."""

READS = 3
"""Maximum readings of rows, claims and evidence for one moment while they keep changing."""

_STRENGTH = {"run-state": 0, "lease": 1, "sidecar": 2, "row": 3}


class Fact(Struct, frozen=True):
    """One fact from one file about a run."""

    name: str
    value: str
    source: str
    path: Path | None = None
    at: int | None = None
    """When the source wrote it, nanoseconds since the epoch; None if unknown."""


class LeftClaim(Struct, frozen=True):
    """A claim whose processes are all dead, on this machine."""

    pid: int
    machine: str
    owner: str
    claimed_at: int
    sources: tuple[str, ...]
    """Where the claim is recorded: row, lease."""
    beaten_at: int = 0
    """Its last heartbeat after the claim was made; 0 if there was none."""
    freed_at: int = 0
    """When ddx hands out, or handed out, the bead again by itself; 0 without a heartbeat."""


class Run(Struct, frozen=True):
    """One piece of work that a file reports as running; a worker between beads has ``bead_id`` None."""

    bead_id: str | None
    attempt_id: str | None = None
    worker_id: str | None = None
    source: str = ""
    """Its strongest source: run-state, lease, sidecar or row."""
    phase: str = ""
    message: str = ""
    last_tool: str = ""
    last_event_at: int | None = None
    started_at: int | None = None
    harness: str = ""
    model: str = ""
    pid: int | None = None
    machine: str = ""
    worktree: Path | None = None
    transcript: Path | None = None
    """The file with the most detail on its current activity."""
    tokens: int | None = None
    live: bool = True
    verdict: Verdict = "alive"
    why: str = ""
    """The reason for the verdict, in one sentence."""
    lost: str = ""
    """For a dead run: what is known of its worker, and when ddx hands out the bead again."""
    left: LeftClaim | None = None
    """For a dead run: the claim on its bead, if certainly nobody on this machine is behind it."""
    facts: tuple[Fact, ...] = ()
    folders: tuple[Path, ...] = ()
    """Folders of its transcripts, followed by `transcript.TranscriptTail`."""

    def age_s(self, now: int) -> float | None:
        """Seconds from its start to ``now``; not a field, so that two readings of one run are equal."""
        return None if self.started_at is None else max(0, now - self.started_at) / NS


def holds(runs: Iterable[Run]) -> dict[str, Hold]:
    """Bead to its hold; live holders take precedence."""
    found: dict[str, Hold] = {}
    for run in runs:
        if run.bead_id is not None and (run.live or run.bead_id not in found):
            found[run.bead_id] = Hold(run.started_at, run.lost)
    return found


def _no_edits(_: Tracker) -> Edits:
    return NO_EDITS


def beads_at_work(runs: Iterable[Run]) -> frozenset[str]:
    """The beads with live workers, which every interface counts as running."""
    return frozenset(run.bead_id for run in runs if run.live and run.bead_id is not None)


class _Work(Struct, frozen=True):
    """Claims about the same piece of work, the strongest first."""

    claims: tuple[Claim, ...]

    def first(self, name: str) -> str:
        """The first non-empty value of a text field."""
        return next((value for claim in self.claims if (value := getattr(claim, name))), "")

    @property
    def bead_id(self) -> str:
        return self.first("bead_id")

    @property
    def pids(self) -> list[int]:
        return list(dict.fromkeys(claim.pid for claim in self.claims if claim.pid is not None))

    @property
    def started_at(self) -> int | None:
        """When the claim began: the earliest recorded start for this bead."""
        own = [c.started_at for c in self.claims if c.source != "sidecar" and c.started_at is not None]
        if own:
            return min(own)
        return next((c.started_at for c in self.claims if c.started_at is not None), None)

    @property
    def since(self) -> int | None:
        """When the claim began, or earlier, as far as recorded; else None."""
        known = [c.started_at for c in self.claims if c.start_known and c.started_at is not None]
        own = [
            c.started_at for c in self.claims if c.start_known and c.started_at is not None and c.source != "sidecar"
        ]
        return min(own or known, default=None)

    def claim(self, source: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.source == source), None)


class RunReader:
    """Finds running work; files that did not change are not read again.

    Attributes:
        problems: files that could not be read last time, and why.
    """

    def __init__(self, project: Project, env: Mapping[str, str] | None = None) -> None:
        self._project = project
        self._claims = ClaimReader(project, env)
        self._bundles = Bundles(project.records_dir, self._claims.documents)
        self._doing: dict[tuple[str, str], Doing] = {}
        """The transcripts of running attempts, by bead and attempt, followed from one look to the next."""
        self._sessions = Sessions(project.records_dir)
        self._worktrees = worktree_roots(project, env)

    @property
    def problems(self) -> Mapping[Path, str]:
        """Files that could not be read last time, and why."""
        return self._claims.documents.problems

    def stands(self) -> bool:
        """Whether no claim was made, changed or released since the last reading."""
        return self._claims.stands()

    def fresh_leases(self, now: int) -> dict[str, bool]:
        """Bead with a readable lease to whether DDx considers it fresh, for readiness."""
        return self._claims.fresh_leases(now)

    def find(
        self, beads: Mapping[str, Bead], now: int, *, stall_after_s: float = STALL_AFTER_S, edits: Edits = NO_EDITS
    ) -> tuple[Run, ...]:
        """All work that a file reports as running, live work first, then by start.

        ``edits`` are the console's own writes to beads: they are not signs of life of a worker.
        """
        works = _merge(self._claims.read(beads.values(), edits), self._claims.here, now)
        works = [work for work in works if not (_by_hand(work, self._claims.here, now) or _is_released(work, beads))]
        if works:
            self._sessions.look()
        # only being alive counts here, so any silence is accepted
        living = [work for work in works if self._verdict(work, None, now, 1 << 62)[0] != "dead"]
        runs = [self._run(work, now, int(stall_after_s * NS), alone=len(living) == 1) for work in works]
        left = _left_behind(works, self._claims.here)
        runs = [replace(run, left=left.get(run.bead_id or "")) if not run.live else run for run in runs]
        runs = [run for run in runs if _is_told(run, runs, beads)]
        self._claims.documents.sweep()
        told = {(run.bead_id or "", run.attempt_id or "") for run in runs}
        self._doing = {key: doing for key, doing in self._doing.items() if key in told}
        return tuple(sorted(runs, key=lambda run: (not run.live, run.bead_id is None, run.started_at or 0)))

    def _run(self, work: _Work, now: int, stall: int, *, alone: bool) -> Run:
        bead_id = work.bead_id
        record = work.claim("run-state")
        bundle = None
        # April keeps one run record per project: a second worker is known only from its evidence folder
        if bead_id and record is None:
            bundle = self._bundles.of(bead_id, work.since)
        attempt_id = _attempt_id(work, record, bundle)
        folders = self._folders(bead_id, attempt_id, work)
        doing = self._follow(bead_id, attempt_id, folders) if attempt_id else None
        session = None
        if self._verdict(work, None, now, 1 << 62)[0] != "dead":
            session = self._side_session(work, doing, alone and bundle is not None and bundle.finished)
        open_session = session if session is not None and not session.ended else None
        last_event = latest(
            doing.last_event_at if doing else None, open_session.last_event_at if open_session else None
        )
        verdict, why = self._verdict(work, last_event, now, stall)
        started = _started(work, record, bundle)
        live_path = session.path if session and not session.ended else None
        return Run(
            bead_id=bead_id or None,
            attempt_id=attempt_id or None,
            worker_id=work.first("worker_id") or None,
            source=work.claims[0].source,
            phase=_phase(work, record, bundle, session),
            message=_message(work, doing, session),
            last_tool=doing.last_tool if doing else "",
            last_event_at=last_event,
            started_at=started,
            harness=work.first("harness"),
            model=work.first("model"),
            pid=next(iter(work.pids), None),
            machine=work.first("machine"),
            worktree=next((claim.worktree for claim in work.claims if claim.worktree is not None), None),
            transcript=live_path or (doing.tail.path if doing else None),
            tokens=doing.tokens if doing else None,
            live=verdict != "dead",
            verdict=verdict,
            why=why,
            lost=lost(work.claims, now, here=self._claims.here) if verdict == "dead" else "",
            facts=_facts(work, bundle, now),
            folders=folders,
        )

    def _follow(self, bead_id: str, attempt_id: str, folders: Iterable[Path]) -> Doing:
        """What an attempt does, as of its transcripts now."""
        key = (bead_id, attempt_id)
        doing = self._doing.get(key)
        if doing is None:
            doing = self._doing[key] = Doing(TranscriptTail(folders, window=WINDOW))
        else:
            doing.tail.watch(folders)
        doing.poll()
        return doing

    def _folders(self, bead_id: str, attempt_id: str, work: _Work) -> tuple[Path, ...]:
        if not attempt_id:
            return ()
        worktree = next((claim.worktree for claim in work.claims if claim.worktree is not None), None)
        # if no file names the work tree, wherever a release would put it
        guessed: list[Path] = []
        if worktree is None:
            names = [f".execute-bead-{kind}-{bead_id}-{attempt_id}" for kind in ("clone", "wt")]
            guessed = [below(root, name) for root in self._worktrees for name in names]
        return transcript_folders(self._project.records_dir, attempt_id, worktree, guessed)

    def _side_session(self, work: _Work, doing: Doing | None, alone: bool) -> Session | None:
        """The readiness check, triage or review that is newer than the attempt's own events."""
        since = work.started_at
        sidecar = work.claim("sidecar")
        if not work.bead_id and sidecar is not None and sidecar.at is not None:
            since = sidecar.at
        session = self._sessions.of(work.bead_id or None, since, alone=alone)
        if session is None:
            return None
        at, own = session.last_event_at or session.born, doing.last_event_at if doing else None
        return session if own is None or at >= own else None

    def _verdict(self, work: _Work, last_event: int | None, now: int, stall: int) -> tuple[Verdict, str]:
        return judge(work.claims, last_event, now, stall, here=self._claims.here)


class QueueReading(Struct, frozen=True):
    """Rows and what held them when they were read."""

    tracker: Tracker
    runs: tuple[Run, ...] = ()
    """What any file reports as running, dead claims included."""
    claims: Claims = Claims()
    renewed: frozenset[str] = frozenset()
    """Beads whose attempts were merged again."""


class QueueReader:
    """Reads one project's queue; files that did not change are not read again. Not thread-safe."""

    def __init__(
        self,
        project: Project,
        *,
        env: Mapping[str, str] | None = None,
        edits: Callable[[Tracker], Edits] = _no_edits,
        stall_after_s: float = STALL_AFTER_S,
    ) -> None:
        """``edits`` returns helix-tui's own writes to beads, which are not signs of a worker."""
        self._project = project
        self._edits = edits
        self._stall_after_s = stall_after_s
        self._rows = TrackerReader(project.beads_file)
        self._runs = RunReader(project, env)

    def read(
        self,
        now: int,
        *,
        records: AttemptIndex | None = None,
        changed: Iterable[Path] | None = None,
        digest: bool = False,
    ) -> QueueReading:
        """Rows, runs and claims at ``now``, and evidence into ``records`` if given.

        Args:
            changed: the only paths of evidence that may have changed; None checks everything.
            digest: whether to hash the tracker.
        """
        paths = None if changed is None else list(changed)
        renewed: set[str] = set()
        for _ in range(READS):
            reading = self.around(self._rows.read(digest=digest), now)
            if records is not None:
                renewed |= records.refresh(reading.tracker.beads, paths, holds=holds(reading.runs))
            if self._rows.stands() and self._runs.stands():
                break
        return replace(reading, renewed=frozenset(renewed))

    def rows(self) -> Tracker:
        """The current rows alone."""
        return self._rows.read()

    def around(self, tracker: Tracker, now: int) -> QueueReading:
        """What holds these rows at ``now``."""
        runs = self._runs.find(tracker.beads, now, stall_after_s=self._stall_after_s, edits=self._edits(tracker))
        origin = self._project.origin_head() or ""
        leases = self._runs.fresh_leases(now)
        return QueueReading(tracker, runs, Claims(leases=leases, running=beads_at_work(runs), origin_head=origin))

    @property
    def problems(self) -> Mapping[Path, str]:
        """Claim files that could not be read last time, and why."""
        return self._runs.problems

    def rest(self) -> None:
        """Free the memory that only reading needs."""
        self._rows.rest()


def unheard_claim(bead: Bead, run: Run | None) -> str:
    """What to say of a claim that is no run: who has it, and that ddx gives the bead out; else empty."""
    if run is not None or bead.status != "in_progress" or not bead.claimed_at or bead.pid is None:
        return ""
    if bead.loop_heartbeat_at or bead.work_heartbeat_at:
        return ""  # a command claimed it just now, and ddx honours that
    owner = clean_line(bead.owner, 40) or "somebody"
    return f"claimed by {owner}, process {bead.pid}, without a heartbeat: ddx gives it out all the same"


def _by_hand(work: _Work, here: str, now: int) -> bool:
    """Whether somebody on this machine claimed the bead by a command: no work runs, and no worker of it is gone.

    Either only a row says so, without a heartbeat, for a process that is alive: every release gives such a bead out at
    once. Or the command has ended, as it does, and what it wrote holds the bead for a while: nobody renews it. A worker
    that dies before its first heartbeat leaves the same, and is told once ddx gives its bead out again.
    """
    if any(claim.source not in ("row", "lease") or claim.machine not in ("", here) for claim in work.claims):
        return False
    heard = [claim for claim in work.claims if claim.beaten]
    if any(map(pid_alive, work.pids)):
        return not heard and all(claim.source == "row" for claim in work.claims)
    return bool(heard) and all(_is_first_beat(claim) and (claim.expires_at or 0) > now for claim in heard)


def _is_released(work: _Work, beads: Mapping[str, Bead]) -> bool:
    """Whether only a run record without process or expiry is left of a worker, as April's is after its claim is
    released: with nothing to prove it, such a record says nothing of a bead that was opened after it was written.
    """
    bead = beads.get(work.bead_id)
    proven = any(claim.source != "run-state" or claim.pid or claim.expires_at for claim in work.claims)
    if proven or bead is None or bead.status != "open":
        return False
    return (parse_instant(bead.updated_at) or 0) > max(claim.at or claim.started_at or 0 for claim in work.claims)


def _is_first_beat(claim: Claim) -> bool:
    """Whether the claim has not been renewed since it was made."""
    return claim.at is not None and claim.started_at is not None and claim.at - claim.started_at <= AT_ONCE


def _merge(claims: list[Claim], here: str, now: int) -> list[_Work]:
    """Merge claims about the same work.

    Run records separate attempts; every other claim joins the work of its bead that shares its process, else the
    newest of that bead. A sidecar's attempt id is not the run record's (both are seen for one attempt), so it
    does not part.
    """
    groups: list[list[Claim]] = []
    for claim in sorted(claims, key=lambda one: (_STRENGTH[one.source], -(one.started_at or 0))):
        if claim.source == "run-state":
            groups.append([claim])
            continue
        home = _home(claim, groups)
        if home is None:
            groups.append([claim])
        else:
            home.append(claim)
    works = [_Work(tuple(group)) for group in groups]
    return [work for work in works if work.bead_id or _is_present(work, now, here)]


def _home(claim: Claim, groups: list[list[Claim]]) -> list[Claim] | None:
    if not claim.bead_id:
        with_pid = [g for g in groups if claim.pid is not None and any(one.pid == claim.pid for one in g)]
        return with_pid[0] if with_pid else None
    same = [group for group in groups if group[0].bead_id == claim.bead_id]
    for group in same:
        if claim.pid is not None and any(one.pid == claim.pid for one in group):
            return group
        if claim.attempt_id and any(one.attempt_id == claim.attempt_id for one in group):
            return group
    open_groups = [g for g in same if claim.pid is None or all(one.pid is None for one in g)]
    if open_groups:
        return open_groups[0]
    # Another process on the same bead: the lease and the row belong to the current holder.
    return None if not same or claim.source == "sidecar" else same[0] if _is_younger(same[0], claim) else None


def _is_younger(group: list[Claim], claim: Claim) -> bool:
    return max((one.started_at or 0 for one in group), default=0) >= (claim.started_at or 0)


def _is_present(work: _Work, now: int, here: str) -> bool:
    """Whether a worker without a bead is running; leftovers of ended workers are not shown."""
    verdict, _ = judge(work.claims, None, now, 1 << 62, here=here)
    return verdict != "dead"


def _left_behind(works: Iterable[_Work], here: str) -> dict[str, LeftClaim]:
    """Bead to the claim that dead processes left on it."""
    by_bead: dict[str, list[Claim]] = {}
    for work in works:
        if work.bead_id:
            by_bead.setdefault(work.bead_id, []).extend(claim for claim in work.claims if claim.source != "sidecar")
    found = {bead_id: _left_claim(claims, here) for bead_id, claims in by_bead.items()}
    return {bead_id: claim for bead_id, claim in found.items() if claim is not None}


def _left_claim(claims: list[Claim], here: str) -> LeftClaim | None:
    """The claim, if every process behind it is certainly dead; else None."""
    held = [claim for claim in claims if claim.source in ("row", "lease")]
    started = [instant for claim in held if (instant := claim.started_at or claim.at) is not None]
    # a claim without a time has no age, and may be a minute old
    if not held or len(started) < len(held):
        return None
    pids = [claim.pid for claim in (*held, *claims) if claim.pid is not None]
    # whether a process of another machine is running is unknown from here
    if not pids or any(claim.machine not in ("", here) for claim in claims) or any(map(pid_alive, pids)):
        return None
    claimed_at = min(started)
    beats = [claim.at for claim in claims if claim.at is not None and claim.at - claimed_at > AT_ONCE]
    return LeftClaim(
        pids[0],
        next((claim.machine for claim in held if claim.machine), here),
        next((claim.owner for claim in held if claim.owner), ""),
        claimed_at,
        tuple(dict.fromkeys(claim.source for claim in held)),
        max(beats, default=0),
        given_out_again(held, 0),
    )


def _is_told(run: Run, runs: list[Run], beads: Mapping[str, Bead]) -> bool:
    """Whether a dead run is worth showing: its bead is unfinished, and no other worker has it, or had it last."""
    if run.live or run.bead_id is None:
        return True
    bead = beads.get(run.bead_id)
    if bead is not None and bead.status in TERMINAL:
        return False
    rivals = [one for one in runs if one.bead_id == run.bead_id]
    # a killed worker's records remain, and ddx has handed the bead to another since
    if any(rival.live for rival in rivals):
        return False
    # a bead has one worker at a time: of several dead ones, the one with the strongest claim is told
    return run is next((rival for rival in rivals if rival.source != "sidecar"), rivals[0])


def _attempt_id(work: _Work, record: Claim | None, bundle: Bundle | None) -> str:
    if record is not None and record.attempt_id:
        return record.attempt_id
    return bundle.attempt_id if bundle is not None else work.first("attempt_id")


def _started(work: _Work, record: Claim | None, bundle: Bundle | None) -> int | None:
    """When its worker claimed the bead, so that the time covers the check, the attempt and landing."""
    if record is not None and record.started_at is not None:
        own = [
            claim.started_at
            for claim in work.claims
            if claim.started_at is not None and claim.start_known and claim.source != "sidecar"
            if record.pid is not None and claim.pid == record.pid
        ]
        return min(own, default=record.started_at)
    return work.started_at if work.started_at is not None or bundle is None else bundle.started_at


def _phase(work: _Work, record: Claim | None, bundle: Bundle | None, session: Session | None) -> str:
    """The phase in DDx's own word, else inferred from the files that exist."""
    sidecar = work.claim("sidecar")
    recorded = sidecar.phase if sidecar is not None else ""
    if record is not None:
        return record.phase or recorded or "running"
    open_session = session.phase if session is not None and not session.ended else ""
    if not work.bead_id:
        return open_session or recorded or "between beads"
    if bundle is not None and bundle.finished:
        reviewed = session is not None and session.phase == "review" and session.ended
        return "review" if open_session == "review" or (bundle.reviewing and not reviewed) else "landing"
    if bundle is not None:
        return recorded or "running"
    checked = session.phase if session is not None and session.phase == "readiness" else ""
    return recorded or open_session or checked or "claimed"


def _message(work: _Work, doing: Doing | None, session: Session | None) -> str:
    if session is not None and session.message and not session.ended:
        return session.message
    return (doing.message if doing is not None else "") or work.first("message")


def _facts(work: _Work, bundle: Bundle | None, now: int) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    for claim in work.claims:
        said = [
            ("bead", claim.bead_id),
            ("attempt", claim.attempt_id),
            ("worker", claim.worker_id),
            ("owner", claim.owner),
            ("process", _process(claim)),
            ("phase", claim.phase),
            ("route", "/".join(part for part in (claim.harness, claim.model) if part)),
            ("message", claim.message),
            ("work tree", str(claim.worktree) if claim.worktree else ""),
        ]
        facts += [Fact(n, value, claim.source, claim.path, claim.at) for n, value in said if value]
        if claim.expires_at is not None and claim.expires_at > 0:
            late = " (past)" if claim.expires_at < now else ""
            until = f"{format_day(claim.expires_at)} {clock_time(claim.expires_at)}{late}"
            facts.append(Fact("valid until", until, claim.source, claim.path, claim.at))
    if bundle is not None:
        value = f"{bundle.attempt_id}{', result written' if bundle.finished else ''}"
        facts.append(Fact("evidence", value, "bundle", bundle.folder, bundle.started_at))
    return tuple(facts)


def _process(claim: Claim) -> str:
    if claim.pid is None:
        return ""
    return f"{claim.pid} on {claim.machine}" if claim.machine else str(claim.pid)
