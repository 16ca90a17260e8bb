"""What counts as running, and how alive it is, from files put together by hand."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.beads.record import Bead, decode_bead
from helix_tui.core.ddx.claims import Claim, ClaimReader, fresh_claims, judge
from helix_tui.core.ddx.runs.running import RunReader, beads_at_work, holds
from helix_tui.core.editing.journal import JournalEntry, JournalHistory, Who, edits_of
from helix_tui.core.ground.processes.threads import pid_alive
from helix_tui.core.ground.project import find_project, lease_roots
from helix_tui.core.ground.time import NS, format_instant, parse_instant

NOW = parse_instant("2026-08-01T12:00:00Z") or 0
GONE = 1 << 22
HERE = "box"


def ago(seconds: float) -> str:
    return format_instant(NOW - int(seconds * NS))


def bead(bead_id: str, **fields: object) -> Bead:
    row = {"id": bead_id, "title": "t", "status": "open", **fields}
    named = {key if key == "updated_at" else key.replace("_at", "-at"): value for key, value in row.items()}
    return decode_bead(json.dumps(named).encode())


class Place:
    """A project in a folder, and a pen to write what workers write."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ddx = root / "demo" / ".ddx"
        self.ddx.mkdir(parents=True)
        self.env = {"HOME": str(root), "TMPDIR": str(root / "tmp"), "DDX_MACHINE_ID": HERE}
        self.project = find_project(self.ddx.parent, env=self.env)
        self.beads: dict[str, Bead] = {}

    def write(self, name: str, document: Mapping[str, Any] | str) -> Path:
        path = self.ddx / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    def lease(self, bead_id: str, base: Path | None = None, **fields: object) -> Path:
        roots = lease_roots(self.project, self.env)
        root = roots[0] if base is None else base / hashlib.sha1(str(self.ddx.parent).encode()).hexdigest()
        root.mkdir(parents=True, exist_ok=True)
        path = root / f"{bead_id}.json"
        path.write_text(json.dumps({"bead_id": bead_id, "machine": HERE, **fields}))
        return path

    def add(self, bead_id: str, **fields: object) -> None:
        self.beads[bead_id] = bead(bead_id, **fields)

    def find(self, now: int = NOW, **options: Any) -> tuple[Any, ...]:
        return RunReader(self.project, self.env).find(self.beads, now, **options)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(Path(os.path.realpath(tmp_path)))


def run_state(bead_id: str, attempt: str, *, pid: int | None = None, seen: float = 5, **more: object) -> dict[str, Any]:
    state: dict[str, Any] = {
        "bead_id": bead_id,
        "attempt_id": attempt,
        "harness": "claude",
        "model": "sonnet",
        "started_at": ago(60),
        "refreshed_at": ago(seen),
        "expires_at": ago(seen - 120),
        **more,
    }
    return state | ({"pid": pid} if pid is not None else {})


def test_an_empty_project_runs_nothing(place: Place) -> None:
    assert place.find() == ()


@pytest.mark.parametrize("status", ["proposed", "blocked", "open"])
def test_a_lease_that_outlives_its_work_is_no_run_where_the_bead_waits_for_a_person(place: Place, status: str) -> None:
    """July's loop leaves the lease of what it keeps for a person, and goes on with other beads."""
    me = os.getpid()
    place.lease("a-1", pid=me, started_at=ago(9), updated_at=ago(5))
    row = {"id": "a-1", "title": "t", "status": status}
    place.beads["a-1"] = decode_bead(json.dumps({**row, "updated_at": ago(4)}).encode())
    assert [run.bead_id for run in place.find()] == (["a-1"] if status == "open" else [])
    place.beads["a-1"] = decode_bead(json.dumps({**row, "updated_at": ago(6)}).encode())
    assert [run.bead_id for run in place.find()] == ["a-1"], "a heartbeat since: its worker is at it"
    place.beads["a-1"] = decode_bead(json.dumps({**row, "updated_at": ago(4)}).encode())
    place.write("run-state/20260801T115900-aaaaaaaa.json", run_state("a-1", "20260801T115900-aaaaaaaa", pid=me))
    assert [run.bead_id for run in place.find()] == ["a-1"], "its attempt is still on record"


def test_one_run_of_four_sources_is_one_run(place: Place) -> None:
    me = os.getpid()
    place.add("a-1", status="in_progress")
    place.write("run-state.json", run_state("a-1", "20260801T115900-aaaaaaaa", pid=me))
    place.write("run-state/20260801T115900-aaaaaaaa.json", run_state("a-1", "20260801T115900-aaaaaaaa", pid=me))
    place.lease("a-1", pid=me, started_at=ago(70), updated_at=ago(3), owner="tester")
    sidecar = {"worker_id": "agent-loop-1", "current_bead": "a-1", "attempt_id": "other", "phase": "running"}
    sidecar |= {"message": "at it", "last_activity_at": ago(3)}
    place.write("workers/agent-loop-1/status.json", sidecar | {"pid": me})
    (run,) = place.find()
    assert (run.bead_id, run.attempt_id, run.worker_id) == ("a-1", "20260801T115900-aaaaaaaa", "agent-loop-1")
    assert (run.source, run.pid, run.machine) == ("run-state", me, HERE)
    assert (run.harness, run.model, run.phase, run.message) == ("claude", "sonnet", "running", "at it")
    assert (run.live, run.verdict, run.age_s(NOW)) == (True, "alive", 70), "since its worker took the bead"
    assert {fact.source for fact in run.facts} == {"run-state", "lease", "sidecar", "row"}
    assert {fact.name for fact in run.facts} >= {"attempt", "process", "owner", "valid until", "worker"}


@pytest.fixture
def others() -> Iterator[list[int]]:
    """Two other processes that live as long as the test."""
    children = [subprocess.Popen(["cat"], stdin=subprocess.PIPE) for _ in range(2)]
    yield [child.pid for child in children]
    for child in children:
        child.communicate(timeout=30)


def test_two_workers_are_two_runs_and_a_third_between_beads_has_no_bead(place: Place, others: list[int]) -> None:
    for number, pid in (("1", os.getpid()), ("2", others[0])):
        place.write(f"run-state/a{number}.json", run_state(f"b-{number}", f"a{number}", pid=pid))
        worker = {"worker_id": f"w{number}", "current_bead": f"b-{number}", "pid": pid}
        place.write(f"workers/w{number}/status.json", worker | {"last_activity_at": ago(3)})
    idle = {"worker_id": "w3", "pid": others[1], "last_activity_at": ago(3)}
    place.write("workers/w3/status.json", idle)
    runs = place.find()
    assert [(run.bead_id, run.worker_id) for run in runs] == [("b-1", "w1"), ("b-2", "w2"), (None, "w3")]
    assert all(run.live for run in runs)
    assert runs[-1].phase == "between beads"


@pytest.mark.parametrize(("at", "left"), [(20, True), (60, False)])
def test_a_claim_that_a_loop_kept_after_its_attempt_is_not_at_work(place: Place, at: float, left: bool) -> None:
    me = str(os.getpid())
    claim = {"claimed-at": ago(50), "claimed-pid": me, "claimed-machine": HERE, "status": "in_progress"}
    event = {"kind": "execute-bead", "summary": "review_malfunction", "created_at": ago(at)}
    place.beads["b-1"] = bead("b-1", **claim, **{"execute-loop-heartbeat-at": ago(30)}, events=[event])
    (run,) = place.find()
    assert (run.live, "review_malfunction" in run.why) == (not left, left)
    assert beads_at_work([run]) == (frozenset() if left else {"b-1"})


def test_a_worker_that_ended_between_beads_is_not_told(place: Place) -> None:
    place.write("workers/w/status.json", {"worker_id": "w", "pid": GONE, "last_activity_at": ago(3)})
    assert place.find() == ()


@pytest.mark.parametrize("state", ["exited", "failed", "stopped", "reaped"])
def test_the_servers_record_of_a_worker_counts_until_it_ended(place: Place, state: str) -> None:
    record = {
        "id": "worker-20260801T1150-ab12", "kind": "work", "state": "running", "pid": os.getpid(),
        "current_attempt": {"attempt_id": "a9", "bead_id": "c-1", "phase": "running", "harness": "codex",
                            "model": "gpt", "started_at": ago(30)},
    }  # fmt: skip
    path = "workers/worker-20260801T1150-ab12/status.json"
    place.write(path, record)
    (run,) = place.find()
    assert (run.bead_id, run.attempt_id, run.worker_id) == ("c-1", "a9", "worker-20260801T1150-ab12")
    assert (run.harness, run.model, run.phase, run.live) == ("codex", "gpt", "running", True)
    place.write(path, record | {"state": state})
    assert place.find() == ()


def test_a_lease_of_another_machine_is_judged_by_its_age_alone(place: Place) -> None:
    place.lease("d-1", machine="far", pid=GONE, started_at=ago(600), updated_at=ago(30))
    (run,) = place.find(stall_after_s=3600)
    assert (run.live, run.verdict, run.machine) == (True, "alive", "far")
    (run,) = place.find(NOW + 120 * NS)
    assert (run.live, run.verdict) == (False, "dead")


def test_a_lease_is_found_in_every_place(place: Place) -> None:
    roots = [root for root in lease_roots(place.project, place.env) if root.is_relative_to(place.root)]
    assert len(roots) >= 5
    for root in roots:
        path = place.lease("e-1", base=root.parent, pid=os.getpid(), started_at=ago(9), updated_at=ago(3))
        assert [(run.bead_id, run.live) for run in place.find()] == [("e-1", True)]
        assert fresh_claims(place.project, NOW, env=place.env) == {"e-1": (True, True)}
        path.unlink()


@pytest.mark.parametrize(
    ("age", "machine", "pid", "fresh"),
    [
        (0, HERE, GONE, True),
        (90, "far", None, True),
        (91, HERE, None, False),
        (91, HERE, GONE, False),
        (91, HERE, "me", True),
        (91, "far", "me", False),
        (91, "", "me", False),
        (7200, HERE, "me", True),
        (7201, HERE, "me", False),
        (None, HERE, "me", False),
    ],
)
def test_a_lease_is_fresh_by_ddx_own_rule(
    place: Place, age: int | None, machine: str, pid: object, fresh: bool
) -> None:
    updated = "0001-01-01T00:00:00Z" if age is None else ago(age)
    place.lease("f-1", machine=machine, pid=os.getpid() if pid == "me" else pid, updated_at=updated)
    assert fresh_claims(place.project, NOW, env=place.env) == {"f-1": (True, fresh)}
    assert ClaimReader(place.project, place.env).fresh_leases(NOW) == {"f-1": fresh}


def test_an_unreadable_lease_is_absent_and_told_as_a_problem(place: Place) -> None:
    place.lease("g-1", updated_at=ago(1)).write_text('{"bead_id": "g-1", "upda')
    reader = ClaimReader(place.project, place.env)
    assert reader.fresh_leases(NOW) == {}
    assert [path.name for path in reader.documents.problems] == ["g-1.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"bead_id": 7}', "\0\xff", '{"bead_id":"x","pid":"many"}'])
def test_a_half_written_record_hides_nothing_else(place: Place, text: str) -> None:
    place.write("run-state/bad.json", text)
    place.write("workers/w/status.json", text)
    place.write("run-state/good.json", run_state("h-1", "a1", pid=os.getpid()))
    reader = RunReader(place.project, place.env)
    assert "h-1" in {run.bead_id for run in reader.find({}, NOW)}
    bad = {path.name for path in reader.problems}
    assert bad <= {"bad.json", "status.json"}
    place.write("run-state/bad.json", run_state("h-2", "a2", pid=os.getpid()))
    assert {run.bead_id for run in reader.find({}, NOW)} >= {"h-1", "h-2"}
    assert "bad.json" not in {path.name for path in reader.problems}
    place.write("run-state/bad.json", "{")
    reader.find({}, NOW)
    (place.ddx / "run-state" / "bad.json").unlink()
    reader.find({}, NOW)
    assert "bad.json" not in {path.name for path in reader.problems}


def test_aprils_row_vouches_for_aprils_run_record(place: Place) -> None:
    place.add(
        "i-1", status="in_progress", **{"claimed-pid": str(os.getpid()), "claimed-machine": HERE},
        claimed_at=ago(200), **{"execute-loop-heartbeat-at": ago(20)},
    )  # fmt: skip
    state = {"bead_id": "i-1", "attempt_id": "x", "started_at": ago(190), "worktree_path": "/gone"}
    place.write("run-state.json", state)
    (run,) = place.find()
    assert (run.source, run.attempt_id, run.pid, run.verdict) == ("run-state", "x", os.getpid(), "alive")
    (run,) = place.find(NOW + 100 * NS)
    assert (run.verdict, run.live) == ("dead", False)
    assert "though process" in run.why


def test_a_record_that_nobody_vouches_for_is_judged_by_what_was_last_heard(place: Place) -> None:
    place.write("run-state.json", {"bead_id": "j-1", "attempt_id": "x", "started_at": ago(60)})
    assert [run.verdict for run in place.find()] == ["alive"]
    assert [run.verdict for run in place.find(NOW + 600 * NS)] == ["silent"]
    assert [run.verdict for run in place.find(NOW + 3 * 3600 * NS)] == ["dead"]


def test_a_record_without_proof_ends_with_the_claim_on_its_bead(place: Place) -> None:
    place.add("j-1", status="in_progress", **{"claimed-machine": HERE})
    place.write("run-state.json", {"bead_id": "j-1", "attempt_id": "x", "started_at": ago(60)})
    assert [run.verdict for run in place.find()] == ["alive"]
    place.add("j-1", status="open", updated_at=ago(10))
    assert place.find() == (), "April leaves its record when a dead worker's claim is released"


def test_what_a_dead_worker_left_on_a_done_bead_is_not_told(place: Place) -> None:
    place.write("run-state/x.json", run_state("k-1", "x", pid=GONE))
    place.add("k-1", status="closed")
    assert place.find() == ()
    place.add("k-1", status="open")
    assert [run.verdict for run in place.find()] == ["dead"]


def test_a_live_run_hides_the_leftover_of_a_killed_one(place: Place) -> None:
    place.write("run-state/old.json", run_state("l-1", "old", pid=GONE, seen=4000))
    place.write("run-state/new.json", run_state("l-1", "new", pid=os.getpid()))
    place.lease("l-1", pid=os.getpid(), started_at=ago(61), updated_at=ago(2))
    assert [(run.attempt_id, run.live) for run in place.find()] == [("new", True)]


def test_of_several_dead_workers_of_a_bead_one_is_told(place: Place) -> None:
    place.write("run-state/old.json", run_state("l-1", "old", pid=GONE, seen=4000))
    place.write("run-state/new.json", run_state("l-1", "new", pid=GONE - 1, seen=3000))
    place.beads["l-1"] = held("l-1", ago(9000), **{"claimed-pid": str(GONE - 2), "claimed-machine": HERE})
    assert [run.bead_id for run in place.find()] == ["l-1"]


def test_a_transcript_with_news_ends_the_silence(place: Place) -> None:
    attempt = "20260801T115000-aaaaaaaa"
    state = run_state("m-1", attempt, pid=os.getpid(), started_at=ago(1000))
    place.write("run-state.json", state)
    reader = RunReader(place.project, place.env)
    (run,) = reader.find({}, NOW)
    assert run.verdict == "alive", "a release that writes no event while an agent works is not silent"
    assert "no event yet" in run.why
    transcript = f"executions/{attempt}/embedded/agent-claude-1.jsonl"
    old, line = ({"type": "tool_call", "sequence": number, "time": ago(seconds),
                  "data": {"id": "t", "name": "Bash", "input": {"command": "go test ./..."}}}
                 for number, seconds in ((1, 900), (2, 10)))  # fmt: skip
    place.write(transcript, json.dumps(old) + "\n")
    assert [run.verdict for run in reader.find({}, NOW)] == ["silent"], "an event, then none"
    place.write(transcript, json.dumps(old) + "\n" + json.dumps(line) + "\n")
    (run,) = reader.find({}, NOW)
    assert (run.verdict, run.last_tool, run.message) == ("alive", "Bash go test ./...", "Bash go test ./...")
    assert run.last_event_at == NOW - 10 * NS
    assert run.transcript is not None


def test_what_a_check_told_before_the_attempt_began_is_no_event_of_the_attempt(place: Place) -> None:
    """May: its readiness check writes events, and nothing does while the agent works."""
    began = NOW - 600 * NS
    lease = Claim("lease", None, "a-1", pid=os.getpid(), started_at=began - 8 * NS, at=NOW, machine="here")
    state = Claim("run-state", None, "a-1", pid=os.getpid(), started_at=began, expires_at=NOW + NS)
    verdict, why = judge([lease, state], began - 2 * NS, NOW, 300 * NS, here="here")
    assert verdict == "alive"
    assert "no event yet" in why
    assert judge([lease, state], began + NS, NOW, 300 * NS, here="here")[0] == "silent"


def test_hostile_text_is_cleaned(place: Place) -> None:
    place.write("run-state.json", run_state("n-1", "x", pid=os.getpid(), harness="\x1b[31mred\x1b[0m\nnext"))
    (run,) = place.find()
    assert run.harness == "red next"


def test_a_process_that_ended_unreaped_is_not_alive() -> None:
    assert pid_alive(os.getpid())
    assert not pid_alive(GONE)
    assert not pid_alive(0)
    assert not pid_alive(1 << 40)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        if Path("/proc/self/stat").exists():
            assert not pid_alive(child)
    finally:
        os.waitpid(child, 0)


claims = st.builds(
    Claim,
    source=st.sampled_from(["run-state", "lease", "sidecar", "row"]),
    path=st.none(),
    bead_id=st.just("b"),
    pid=st.one_of(st.none(), st.just(os.getpid()), st.just(GONE)),
    machine=st.sampled_from(["", HERE, "far"]),
    started_at=st.one_of(st.none(), st.integers(NOW - 10**13, NOW)),
    at=st.one_of(st.none(), st.integers(NOW - 10**13, NOW)),
    expires_at=st.one_of(st.none(), st.integers(NOW - 10**13, NOW + 10**11)),
)


@given(st.lists(claims, min_size=1, max_size=4), st.one_of(st.none(), st.integers(NOW - 10**13, NOW)))
def test_every_verdict_has_a_reason_and_time_brings_nothing_back_to_life(
    found: list[Claim], last_event: int | None
) -> None:
    verdicts = [judge(found, last_event, NOW + later, 300 * NS, here=HERE) for later in (0, 10**12, 10**15)]
    assert all(why for _, why in verdicts)
    dead = [verdict == "dead" for verdict, _ in verdicts]
    assert dead == sorted(dead)
    asked = any(claim.pid == os.getpid() for claim in found)
    if not asked or any(claim.expires_at is not None for claim in found):
        assert dead[-1], "only a process that lives and that no expiry speaks of stays"


def held(bead_id: str, updated: str, **fields: object) -> Bead:
    """A row in progress as head writes it: no heartbeat, no time of its claim."""
    row = {
        "id": bead_id,
        "title": "t",
        "status": "in_progress",
        "owner": "w",
        "updated_at": updated,
        **fields,
    }
    return decode_bead(json.dumps(row).encode())


def test_a_write_that_is_no_claim_brings_no_dead_worker_back_to_life(place: Place) -> None:
    reader = RunReader(place.project, place.env)
    place.beads["b-1"] = held("b-1", ago(9000))
    (run,) = reader.find(place.beads, NOW)
    assert (run.verdict, run.live) == ("dead", False)
    place.beads["b-1"] = held("b-1", ago(1))
    (run,) = reader.find(place.beads, NOW)
    assert (run.verdict, run.live) == ("dead", False), "the same owner held it before the write"
    place.beads["b-1"] = held("b-1", ago(1), owner="another")
    (run,) = reader.find(place.beads, NOW)
    assert run.live, "somebody else has claimed it"


def test_our_own_write_is_no_sign_of_life_at_the_first_look_either(place: Place) -> None:
    place.beads["b-1"] = held("b-1", ago(1))
    (run,) = RunReader(place.project, place.env).find(place.beads, NOW)
    assert run.live
    ours = {"b-1": [(NOW - 3 * NS, NOW)]}
    (run,) = RunReader(place.project, place.env).find(place.beads, NOW, edits=ours)
    assert (run.verdict, run.live) == ("dead", False)


@pytest.mark.parametrize("age", [1, 60, 50_000])
def test_a_claim_by_hand_without_a_heartbeat_is_no_run(place: Place, age: int) -> None:
    """Every release gives such a bead out at once, though its process is alive, and nothing of it is gone."""
    claimed = {"claimed-at": ago(age), "claimed-pid": str(os.getpid()), "claimed-machine": HERE}
    place.beads["b-1"] = held("b-1", ago(age), **claimed)
    assert place.find() == ()
    place.beads["b-1"] = held("b-1", ago(age), **claimed, **{"execute-loop-heartbeat-at": ago(50)})
    assert [run.verdict for run in place.find()] == ["alive"]
    place.beads["b-1"] = held("b-1", ago(age), **claimed | {"claimed-pid": str(GONE)})
    assert [run.verdict for run in place.find()] == ["dead"]


@pytest.mark.parametrize(
    ("claimed", "renewed", "told"), [(5, 5, False), (80, 80, False), (40, 5, True), (100, 100, True)]
)
def test_a_claim_by_a_command_that_has_ended_is_no_dead_worker_while_ddx_honours_it(
    place: Place, claimed: int, renewed: int, told: bool
) -> None:
    place.beads["b-1"] = held("b-1", ago(claimed))
    place.lease("b-1", pid=GONE, started_at=ago(claimed), updated_at=ago(renewed))
    assert [run.verdict for run in place.find()] == ["dead"] * told
    times = {"claimed-at": ago(claimed), "execute-loop-heartbeat-at": ago(renewed)}
    place.beads["b-2"] = held("b-2", ago(claimed), **times, **{"claimed-pid": str(GONE), "claimed-machine": HERE})
    assert [run.verdict for run in place.find()] == ["dead", "dead"] * told


def test_a_claim_by_hand_vouches_for_no_dead_worker_beside_it(place: Place) -> None:
    claimed = {"claimed-at": ago(5000), "claimed-pid": str(os.getpid()), "claimed-machine": HERE}
    place.beads["b-1"] = held("b-1", ago(5000), **claimed)
    place.lease("b-1", pid=GONE, started_at=ago(100), updated_at=ago(80))
    (run,) = place.find()
    assert (run.verdict, run.left) == ("dead", None), "somebody alive claimed it too, so nothing was left behind"
    place.lease("b-1", pid=os.getpid(), started_at=ago(100), updated_at=ago(80))
    assert [run.verdict for run in place.find()] == ["alive"]


@pytest.mark.parametrize("age", [1, 60, 5000])
def test_a_claim_by_hand_on_another_machine_is_no_work(place: Place, age: int) -> None:
    """Every release gives such a bead out: there is no heartbeat, and no process that could be asked."""
    claimed = {"claimed-at": ago(age), "claimed-pid": str(os.getpid()), "claimed-machine": "far"}
    place.beads["b-1"] = held("b-1", ago(age), **claimed)
    (run,) = place.find()
    assert (run.verdict, run.live) == ("dead", False)
    assert "far" in run.why
    assert "again at" not in run.lost, "ddx does not wait for 90 s to pass"
    del claimed["claimed-pid"]
    place.lease("b-1", machine="far", updated_at=ago(9000))
    place.beads["b-1"] = held("b-1", ago(age), **claimed)
    assert [run.verdict for run in place.find()] == ["dead"], "it does not lengthen a lease either"
    place.beads["b-1"] = held("b-1", ago(age), **claimed, **{"execute-loop-heartbeat-at": ago(50)})
    (run,) = place.find()
    assert run.verdict == "alive"


def test_the_journal_tells_which_writes_were_ours_and_no_claim() -> None:
    entries = tuple(
        JournalEntry(kind, number, NOW + number * NS, Who("user"), kind, "t", before={kind: {}}, ended_at=NOW + 9 * NS)
        for number, kind in enumerate(("set", "claim"))
    )
    assert edits_of(JournalHistory(entries)) == {"set": [(NOW, NOW + 9 * NS)]}


def test_a_check_that_is_over_makes_no_worker_silent(place: Place) -> None:
    """May, the last second of an attempt: its run record is gone, its evidence is not there yet."""
    place.add("a-1")
    place.lease("a-1", pid=os.getpid(), started_at=ago(700), updated_at=ago(3))
    told = [("session.start", "MODE: intake a-1"), ("llm.response", "a-1 is ready")]
    told += [("session.end", "")]
    lines = [
        json.dumps({"type": kind, "ts": ago(690 - number), "session_id": "s", "data": {"prompt": text}})
        for number, (kind, text) in enumerate(told)
    ]
    log = place.write(f"agent-logs/svc-{NOW - 690 * NS}.jsonl", "\n".join(lines[:2]) + "\n")
    reader = RunReader(place.project, place.env)
    (run,) = reader.find(place.beads, NOW)
    assert run.verdict == "silent", "a check that is not over, and has told nothing for long"
    with log.open("a") as more:
        more.write(lines[2] + "\n")
    (run,) = reader.find(place.beads, NOW)
    assert run.verdict == "alive", run.why


def test_who_holds_a_bead_and_what_is_known_of_one_that_is_gone(place: Place) -> None:
    for name in ("a-1", "b-2", "c-3"):
        place.add(name)
    place.lease("a-1", pid=os.getpid(), started_at=ago(70), updated_at=ago(3))
    place.lease("b-2", pid=GONE, started_at=ago(70), updated_at=ago(30))
    place.lease("c-3", machine="other", started_at=ago(700), updated_at=ago(600))
    found = holds(place.find())
    assert (found["a-1"].gone, found["a-1"].since) == ("", NOW - 70 * NS)
    assert found["b-2"].gone == (f"its worker is dead (process {GONE}); ddx gives the bead out again at 12:01:00")
    assert found["c-3"].gone == "no sign of its worker since 11:50:00"
    assert holds(place.find(NOW + 5 * NS))["c-3"] == found["c-3"], "time alone is no news"
