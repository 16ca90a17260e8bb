"""What the machine may do to a console and to the command line: nothing ends, nothing is half written."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.console import Terminal, console_argv
from tests.drills.clock import Clock
from tests.drills.projects import EVERY_STATE

pytestmark = [pytest.mark.realtime, pytest.mark.long]

LIMIT_S = 60.0
"""Seconds that a console may take for anything, on a busy machine."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=30, check=False)
    except OSError as error:
        pytest.skip(f"no mount here: {error}")
    if done.returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], capture_output=True, timeout=30, check=False)


def _mount_again(disk: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True, timeout=30)


def _fill(disk: Path) -> None:
    """Leave no byte."""
    with contextlib.suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while file.write(b"x" * 4_096):
            pass


def _project(root: Path) -> Path:
    (root / ".ddx").mkdir(parents=True)
    shutil.copyfile(EVERY_STATE, root / ".ddx" / "beads.jsonl")
    return root


def _run(root: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "helix_tui", "-C", str(root), *words]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=root)


def _store(root: Path, trigger: str) -> subprocess.CompletedProcess[str]:
    resolution = "make room before the worker begins"
    return _run(root, "memory", "store", "--trigger", trigger, "--resolution", resolution)


@pytest.mark.parametrize("held", [False, True], ids=["alone", "with a log that nobody ended"])
def test_on_a_full_disk_what_can_be_read_is_read(small_disk: Path, held: bool) -> None:
    root = _project(small_disk / "p")
    assert _store(root, "the disk of the worker was full").returncode == 0
    if held:
        _leave_a_log(root)
    _fill(small_disk)
    queue = _run(root, "queue", "--json")
    assert queue.returncode == 0, queue.stderr
    assert json.loads(queue.stdout)["ready"]
    recalled = _run(root, "memory", "recall", "--json", "the disk was full")
    assert recalled.returncode == 0, recalled.stderr
    assert "make room before" in recalled.stdout
    names = [one["name"] for one in json.loads(_run(root, "memory", "list", "--json").stdout)["memories"]]
    assert len(names) == 1 + held

    refused = _store(root, "another lesson that has no room at all")
    assert refused.returncode == 1
    assert "Free disk space" in refused.stderr

    (small_disk / "fill").unlink()
    assert _store(root, "there is room again for the lesson").returncode == 0
    after = json.loads(_run(root, "memory", "list", "--json").stdout)
    assert len(after["memories"]) == len(names) + 1


def _leave_a_log(root: Path) -> None:
    """What a process that was killed leaves: a memory in the write-ahead log, and its index gone."""
    program = (
        "import os, sys; from pathlib import Path; from helix_tui.core.memory.memory_store import open_memory\n"
        "memory = open_memory(Path(sys.argv[1]))\n"
        "memory.store('a killed writer left this', 'read the log as well')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    path = root / ".helix" / "helix.db"
    subprocess.run([sys.executable, "-c", program, str(path)], timeout=LIMIT_S, check=False)
    assert path.with_name("helix.db-wal").stat().st_size
    path.with_name("helix.db-shm").unlink()


def test_hooks_answer_on_a_full_disk(small_disk: Path) -> None:
    root = _project(small_disk / "p")
    assert _store(root, "the disk of the worker was full").returncode == 0
    _fill(small_disk)
    given = json.dumps({"session_id": "s", "hook_event_name": "SessionStart", "cwd": str(root)})
    done = _run(root, "hook", "session-start", given=given)
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


@contextlib.contextmanager
def _console(root: Path, home: Path, *words: str) -> Iterator[Terminal]:
    with Terminal([*console_argv(root), *words], root, home) as terminal:
        terminal.wait_for("demo-", "Ready", "READY", timeout=LIMIT_S)
        _write(terminal, "1")  # it opens on what waits for somebody, where something does
        yield terminal


def _write(terminal: Terminal, keys: str) -> None:
    os.write(terminal.fd, keys.encode())
    terminal.settle(0.3, 5)


def _alive(terminal: Terminal) -> bool:
    state = Path(f"/proc/{terminal.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def _rewrite(root: Path, title: str) -> None:
    path = root / ".ddx" / "beads.jsonl"
    row = {"id": "demo-new00001", "title": title, "status": "open", "priority": 0}
    draft = path.with_name("draft")
    draft.write_bytes(path.read_bytes().rstrip(b"\n") + b"\n" + json.dumps(row).encode() + b"\n")
    draft.rename(path)


def test_the_console_lives_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    root = _project(small_disk / "p")
    assert _store(root, "the disk of the worker was full").returncode == 0
    _fill(small_disk)
    with _console(root, tmp_path) as terminal:
        _write(terminal, "23456131")
        tracker = (root / ".ddx" / "beads.jsonl").read_bytes()
        os.write(terminal.fd, b"-")  # the priority: no editor is asked
        terminal.wait_for("--priority", timeout=LIMIT_S)
        os.write(terminal.fd, b"\r")
        terminal.wait_for("No space", timeout=LIMIT_S)
        assert _alive(terminal)
        assert (root / ".ddx" / "beads.jsonl").read_bytes() == tracker


def test_on_a_read_only_disk_what_can_be_read_is_read(small_disk: Path, tmp_path: Path) -> None:
    root = _project(small_disk / "p")
    assert _store(root, "the disk of the worker was full").returncode == 0
    _mount_again(small_disk, "ro")
    queue = _run(root, "queue", "--json")
    assert queue.returncode == 0, queue.stderr
    recalled = _run(root, "memory", "recall", "--json", "the disk was full")
    assert "make room before" in recalled.stdout, recalled.stderr
    given = json.dumps({"session_id": "s", "hook_event_name": "SessionStart", "cwd": str(root)})
    hooked = _run(root, "hook", "session-start", given=given)
    assert hooked.returncode == 0, hooked.stderr
    refused = _store(root, "a lesson that cannot be written down")
    assert refused.returncode == 1
    assert "its disk is read-only" in refused.stderr
    with _console(root, tmp_path) as terminal:
        for key in "2361":
            _write(terminal, key)
        assert _alive(terminal)
        _mount_again(small_disk, "rw")
        _rewrite(root, "written again")
        terminal.wait_for("written again", timeout=LIMIT_S)
    assert _store(root, "the disk can be written again").returncode == 0


def test_a_checkout_under_way_ends_nothing_and_the_last_state_is_shown(tmp_path: Path) -> None:
    """Files vanish and come back, git's lock lies there, HEAD points elsewhere."""
    root = _project(tmp_path / "p")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "one"], ["branch", "other"]):
        who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *who, *words], cwd=root, check=True, timeout=LIMIT_S)
    tracker, lock = root / ".ddx" / "beads.jsonl", root / ".git" / "index.lock"
    whole = tracker.read_bytes()
    with _console(root, tmp_path) as terminal:
        for number in range(40):
            lock.touch()
            tracker.unlink()
            if number % 4 == 0:
                tracker.parent.rmdir()
                terminal.settle(0.02, 0.2)
                tracker.parent.mkdir()
            tracker.write_bytes(whole[: len(whole) * number // 40])  # git writes in place
            (root / ".git" / "HEAD").write_text(f"ref: refs/heads/{'other' if number % 2 else 'gone'}\n")
            if number % 10 == 0:
                asked = _run(root, "queue", "--json")
                assert asked.returncode in (0, 1), asked.stderr
                assert "Traceback" not in asked.stderr
            terminal.settle(0.02, 0.2)
            tracker.write_bytes(whole)
            lock.unlink()
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        _rewrite(root, "checked out")
        terminal.wait_for("checked out", timeout=LIMIT_S)
        assert _alive(terminal)
    assert len(json.loads(_run(root, "queue", "--json").stdout)["ready"]) > 1


def test_where_no_watches_are_left_the_console_looks_once_a_second_and_says_so(tmp_path: Path) -> None:
    root = _project(tmp_path / "p")
    limit = "/proc/sys/user/max_inotify_watches"
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", f'echo 0 > {limit} && exec "$@"', "sh"]
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, timeout=LIMIT_S, check=False)
    except OSError as error:
        pytest.skip(f"no unshare here: {error}")
    if tried.returncode:
        pytest.skip("no user namespace can be made here")
    with Terminal([*command, *console_argv(root)], root, tmp_path) as terminal:
        terminal.wait_for("not watched", timeout=LIMIT_S)
        _write(terminal, "1")
        _rewrite(root, "seen all the same")
        terminal.wait_for("seen all the same", timeout=LIMIT_S)
        bundle = root / ".ddx" / "executions" / "20260820T101010-0000000a"
        bundle.mkdir(parents=True)
        result = {"bead_id": "demo-new00001", "attempt_id": bundle.name, "status": "execution_failed"}
        (bundle / "result.json").write_text(json.dumps(result))
        os.write(terminal.fd, b"2")
        terminal.wait_for("demo-new00001", timeout=LIMIT_S)


@pytest.mark.nightly
def test_twenty_thousand_bundles_leave_the_console_usable(tmp_path: Path) -> None:
    root = _project(tmp_path / "p")
    for number in range(20_000):
        bundle = root / ".ddx" / "executions" / f"202608{number // 1_000 + 1:02d}T{number:06d}-{number:08x}"
        bundle.mkdir(parents=True)
        manifest = {"attempt_id": bundle.name, "bead_id": "demo-0001", "base_rev": f"{number:040x}"}
        (bundle / "manifest.json").write_text(json.dumps(manifest))
    with _console(root, tmp_path) as terminal:
        _rewrite(root, "one of many")
        terminal.wait_for("one of many", timeout=LIMIT_S)
        _write(terminal, "2jj51")
        assert _alive(terminal)
        assert terminal.resident_mb() < 250
    asked = _run(root, "attempts", "--json")
    assert asked.returncode == 0, asked.stderr


@pytest.mark.parametrize("words", [("--pane",), ("--ascii",), ("--read-only",)])
def test_the_tracker_may_go_and_come_back(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = _project(tmp_path / "p")
    with _console(root, tmp_path, *words) as terminal:
        (root / ".ddx").rename(root / "away")
        terminal.started = time.perf_counter()
        terminal.wait_for("tracker is gone", "no .ddx", timeout=LIMIT_S)
        (root / "away").rename(root / ".ddx")
        _rewrite(root, "back again")
        terminal.wait_for("back again", timeout=LIMIT_S)


@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C", "LANG": "C"}, {"TERM": "dumb"}, {"TERM": ""}],
    ids=["C", "dumb", "no TERM"],
)
def test_a_poor_terminal_is_enough(tmp_path: Path, environment: dict[str, str]) -> None:
    root = _project(tmp_path / "p")
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), *console_argv(root)]
    with Terminal(words, root, tmp_path) as terminal:
        terminal.wait_for("demo-", "READY", "Ready", timeout=LIMIT_S)
        _write(terminal, "2345j6k1")
        assert _alive(terminal)


def test_a_closed_stdin_gets_a_frame_or_a_reason(tmp_path: Path) -> None:
    root = _project(tmp_path / "p")
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *console_argv(root)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=root)
    assert "Traceback" not in done.stderr
    assert done.returncode != 70, done.stderr
    assert done.stdout or done.stderr


def test_a_clock_that_is_set_back_and_forth_changes_no_answer_but_ages(tmp_path: Path) -> None:
    root = _project(tmp_path / "p")
    ready = []
    for now in (
        "2026-08-21T22:00:28Z",
        "1999-01-01T00:00:00Z",
        "2099-01-01T00:00:00Z",
        "2026-08-21T22:00:28Z",
    ):
        done = _run(root, "queue", "--json", "--now", now)
        assert done.returncode == 0, done.stderr
        ready.append(json.loads(done.stdout)["ready"])
    assert ready[0] == ready[3]


@pytest.mark.parametrize("seconds", [1, 365 * 86_400], ids=["a second", "a year"])
def test_a_clock_that_is_set_back_and_forth_stops_nothing_in_a_running_console(tmp_path: Path, seconds: int) -> None:
    """Keys lead where they lead, news is read and painted, ages follow the clock, nothing is logged."""
    try:
        clock = Clock(tmp_path)
    except OSError as error:
        pytest.skip(str(error))
    root = _project(tmp_path / "p")
    with Terminal([*clock.words, *console_argv(root)], root, tmp_path) as terminal:
        terminal.wait_for("demo-", "Ready", "READY", timeout=LIMIT_S)
        for number, ahead in enumerate((seconds, 0, -seconds, 0, seconds, -seconds)):
            clock.set(ahead)
            if ahead > 86_400:
                terminal.wait_for("52w", timeout=LIMIT_S)
            os.write(terminal.fd, b"2351")
            _rewrite(root, f"title-{number}-of-now")
            at = time.time() + ahead
            os.utime(root / ".ddx" / "beads.jsonl", (at, at))
            terminal.wait_for(f"title-{number}-of-now", timeout=LIMIT_S)
        assert _alive(terminal)
    log = "".join(path.read_text() for path in root.glob(".helix/logs/helix.log*"))
    assert "ERROR" not in log
    assert "Traceback" not in log


def test_that_clock_is_the_one_which_programs_read(tmp_path: Path) -> None:
    try:
        clock = Clock(tmp_path)
    except OSError as error:
        pytest.skip(str(error))
    clock.set(10_000_000)
    show = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
    command = [*clock.words, sys.executable, "-c", show]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=True)
    wall, date, steady = map(float, done.stdout.split())
    assert 9_999_000 < wall - time.time() < 10_001_000
    assert abs(wall - date) < 100
    assert abs(steady - time.monotonic()) < 100
