"""The player writes what was recorded, with this machine's paths, pid, host and times."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_ddx.store import places
from helix_tui.core.ground.time import NS, parse_instant
from tests.helix_ddx.player import Player, TimelineError, read_timeline

pytestmark = [pytest.mark.realtime, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[2]
LOOPS = Path(__file__).resolve().parents[1] / "data" / "loops"
RECORDED = sorted(LOOPS.glob("*.jsonl"))
GIVEN = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "ddx" / "loops"
COMMAND = [sys.executable, "-m", "tests.helix_ddx.player"]


def player(source: Path, folder: Path, **options: object) -> Player:
    return Player(source, folder / "project", leases=folder / "leases", **options)  # type: ignore[arg-type]


def left_by(source: Path) -> dict[str, str]:
    """What the recording leaves behind: recorded path -> recorded text."""
    files: dict[str, str] = {}
    for step in read_timeline(source).steps:
        if step.op == "append":
            files[step.path] = files.get(step.path, "") + step.text
        elif step.op == "delete":
            files.pop(step.path, None)
        elif step.is_file:
            files[step.path] = step.text
    return files


def tree(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts}


@pytest.mark.parametrize("source", RECORDED, ids=lambda path: path.stem)
def test_leaves_what_the_recording_leaves(source: Path, tmp_path: Path) -> None:
    played = player(source, tmp_path)
    played.play_all()
    expected = {}
    for step in read_timeline(source).steps:
        if step.is_file and step.path in left_by(source):
            expected[played.locate(step)] = left_by(source)[step.path]
    there = tree(tmp_path)
    seeded = tmp_path / "project" / ".ddx" / "beads.jsonl"
    assert there - {seeded} == set(expected) - {seeded}
    for path, text in expected.items():
        if not path.match("*.lock/pid"):
            assert path.read_text() == played.translate(text)
    assert not [path for path in tmp_path.rglob("*.lock") if path.is_dir()]


@pytest.mark.parametrize("source", sorted(GIVEN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_plays_every_given_recording(source: Path, tmp_path: Path) -> None:
    player(source, tmp_path).play_all()
    for path in tree(tmp_path / "project" / ".ddx", tmp_path / "leases"):
        text = path.read_text()
        assert "$P" not in text
        assert "$H/" not in text
        assert "$T/" not in text


def test_pid_and_host_are_this_process(tmp_path: Path) -> None:
    played = player(LOOPS / "head-killed.jsonl", tmp_path)
    played.play_all()
    state = json.loads((tmp_path / "project/.ddx/run-state.json").read_text())
    (lease,) = (tmp_path / "leases").glob("*.json")
    claim = json.loads(lease.read_text())
    (sidecar,) = (tmp_path / "project/.ddx/workers").glob("*/status.json")
    assert state["pid"] == claim["pid"] == json.loads(sidecar.read_text())["pid"] == os.getpid()
    assert claim["machine"] == socket.gethostname()
    april = player(LOOPS / "april-killed.jsonl", tmp_path / "april", host="box", pid=77)
    april.play_all()
    rows = [json.loads(line) for line in (tmp_path / "april/project/.ddx/beads.jsonl").read_text().splitlines()]
    assert {(row["claimed-pid"], row["claimed-machine"]) for row in rows if "claimed-pid" in row} == {("77", "box")}


@pytest.mark.parametrize("place", ["$T/tmp", "$T/tmp/ddx", "$H/.cache/ddx", "$T/my-tmp/a.b"])
def test_leases_of_any_release_lie_where_a_reader_looks(place: str, tmp_path: Path) -> None:
    path = f"{place}/ddx-claim-heartbeats/{'0a' * 20}/demo-1.json"
    steps = [{"t": 0, "src": "file", "op": "create", "path": path, "text": json.dumps({"file": path})}]
    source = tmp_path / "run.jsonl"
    source.write_text("".join(json.dumps(step) + "\n" for step in steps))
    player(source, tmp_path).play_all()
    (lease,) = (tmp_path / "leases").glob("*.json")
    assert json.loads(lease.read_text()) == {"file": str(lease)}


def test_leases_lie_where_a_reader_looks(tmp_path: Path) -> None:
    env = {"TMPDIR": str(tmp_path / "tmp"), "HOME": str(tmp_path)}
    Player(LOOPS / "head-killed.jsonl", tmp_path / "p", env=env).play_all()
    assert len(list(places.lease_folder(tmp_path / "p", env).glob("demo-*.json"))) == 1
    assert places.lease_folder(tmp_path / "p", env).is_relative_to(tmp_path / "tmp")


def test_times_move_to_now_and_names_with_them(tmp_path: Path) -> None:
    now = 1_900_000_000 * NS
    played = player(LOOPS / "april-success.jsonl", tmp_path)
    played.shift_to_now(1.0, now)
    played.play_all()
    (log,) = (tmp_path / "project/.ddx/agent-logs").glob("agent-loop-*.jsonl")
    first, *_, last = [json.loads(line) for line in log.read_text().splitlines()]
    begun, ended = parse_instant(first["ts"]), parse_instant(last["ts"])
    assert begun is not None
    assert ended is not None
    assert now - NS <= begun < ended <= now + round(played.timeline.seconds * NS)
    assert first["session_id"] == log.stem
    assert abs(int(log.stem.rpartition("-")[2]) - begun) < NS
    attempts = {path.name for path in (tmp_path / "project/.ddx/executions").iterdir()}
    assert any(name.startswith("20261121T080426-") for name in attempts)


def test_nothing_lies_in_the_future_when_played_at_once(tmp_path: Path) -> None:
    now = 1_900_000_000 * NS
    played = player(LOOPS / "head-success.jsonl", tmp_path)
    played.shift_to_now(0.0, now)
    played.play_all()
    (log,) = (tmp_path / "project/.ddx/agent-logs").glob("agent-loop-*.jsonl")
    assert all((parse_instant(json.loads(line)["ts"]) or 0) <= now for line in log.read_text().splitlines())


def test_the_tracker_is_replaced_by_rename(tmp_path: Path) -> None:
    played = player(LOOPS / "april-success.jsonl", tmp_path)
    played.prepare()
    tracker = tmp_path / "project/.ddx/beads.jsonl"
    open_before = None
    for step in played.steps():
        if step.path.endswith("/beads.jsonl"):
            if tracker.exists():
                open_before = open_before or tracker.open()
            played.apply(step)
    assert open_before is not None
    with open_before as old:
        assert os.fstat(old.fileno()).st_nlink == 0


def run(*words: str, env: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(env)},
    )


def test_ends_as_the_recorded_worker_did(tmp_path: Path) -> None:
    killed = run(str(LOOPS / "head-killed.jsonl"), "-C", str(tmp_path / "k"), "--speed", "0", env=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "k/.ddx/run-state.json").exists()
    refused = run(str(LOOPS / "head-one-blocked.jsonl"), "-C", str(tmp_path / "b"), "--speed", "0", env=tmp_path)
    assert refused.returncode == 2
    assert "unmet dependencies" in refused.stderr


def test_steps_wait_for_a_line_each(tmp_path: Path) -> None:
    source = LOOPS / "april-success.jsonl"
    done = run(str(source), "-C", str(tmp_path / "p"), "--step", "--shift", env=tmp_path, stdin="\n" * 6)
    assert done.returncode == 1
    assert "after 6 of" in done.stderr
    assert len(done.stdout.splitlines()) == 6
    assert "create" in done.stdout.splitlines()[1]
    assert (tmp_path / "p/.ddx/beads.jsonl").exists()
    assert not (tmp_path / "p/.ddx/run-state.json").exists()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "no JSON"),
        ("[]", "not a step"),
        ('{"t":1,"src":"file","op":"melt","path":"$P/a"}', "unknown operation"),
        ('{"t":1,"src":"file","op":"create","path":"/etc/x"}', "does not begin with"),
        ('{"t":1,"src":"file","op":"create","path":"$P/../x"}', "leads out"),
        ('{"t":"soon","src":"stdout"}', "number of seconds"),
        ('{"t":1,"src":"file","op":"create","path":"$P/a","text":3}', "not a text"),
        ('{"t":1,"src":"cmd","rc":"x"}', "exit code"),
    ],
)
def test_a_bad_line_is_named(line: str, why: str, tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_text('{"t":0,"src":"cmd","argv":["ddx"]}\n' + line + "\n")
    done = run(str(source), "-C", str(tmp_path / "p"), "--speed", "0", env=tmp_path)
    assert done.returncode == 1
    assert "line 2" in done.stderr
    assert why in done.stderr
    assert not (tmp_path / "p").exists()


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project" / ".ddx").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TimelineError, match="through a link"):
        player(LOOPS / "april-success.jsonl", tmp_path).play_all()
    assert not list((tmp_path / "elsewhere").iterdir())


@given(st.integers(min_value=0, max_value=20_000))
def test_a_cut_off_timeline_plays_or_is_refused_by_line(cut: int) -> None:
    whole = (LOOPS / "april-success.jsonl").read_bytes()
    source = Path(os.environ.get("TMPDIR", "/tmp")) / f"helix-cut-{os.getpid()}.jsonl"
    source.write_bytes(whole[:cut])
    try:
        last = read_timeline(source).steps[-1].line
    except TimelineError as error:
        last = 0 if "no steps" in str(error) else int(str(error).split("line ")[1].split(":")[0])
    finally:
        source.unlink()
    assert last <= whole[:cut].count(b"\n") + 1


def test_a_tracker_that_was_never_written_is_there_nevertheless(tmp_path: Path) -> None:
    player(LOOPS / "head-empty.jsonl", tmp_path).play_all()
    rows = [json.loads(line) for line in (tmp_path / "project/.ddx/beads.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"closed"}
