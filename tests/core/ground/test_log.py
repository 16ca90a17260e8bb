"""The log: where it is written, what it leaves out, and that nothing of it breaks the program."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helix_tui.core.ground import log as logfile
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.log import LogFile
from helix_tui.core.ground.process import run


@pytest.fixture(autouse=True)
def _own_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield
    logs.end()


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def begin(directory: Path, **options: bool) -> Path:
    logs.begin(directory, process="test", **options)
    return logs.log_file()


def test_nothing_is_touched_before_something_is_logged(tmp_path: Path) -> None:
    (tmp_path / ".helix").mkdir()
    path = begin(tmp_path)
    assert path == tmp_path / ".helix" / "logs" / "helix.log"
    assert not path.parent.exists()
    logs.logger("x").info("one")
    assert "test[" in text_of(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_project_without_our_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".ddx").mkdir()
    path = begin(tmp_path)
    logs.logger("x").info("one")
    assert sorted(each.name for each in tmp_path.iterdir()) == [".ddx"]
    assert path.is_relative_to(os.environ["XDG_STATE_HOME"])
    assert text_of(path).endswith(f"INFO test[{os.getpid()}] x: one\n")


def test_read_only_writes_nothing_under_the_project(tmp_path: Path) -> None:
    (tmp_path / ".helix").mkdir()
    path = begin(tmp_path, read_only=True)
    logs.logger("x").info("one")
    assert not list((tmp_path / ".helix").iterdir())
    assert "one" in text_of(path)


def test_another_project_above_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / ".helix").mkdir()
    inner = tmp_path / "inner"
    (inner / ".git").mkdir(parents=True)
    assert not begin(inner).is_relative_to(tmp_path / ".helix")


def test_git_sees_nothing_of_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=30)
    (tmp_path / ".helix").mkdir()
    begin(tmp_path)
    logs.logger("x").info("one")
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert status.stdout == ""


@pytest.mark.parametrize(
    ("level", "debug", "kept"),
    [
        ("", False, ["info", "warning"]),
        ("warning", False, ["warning"]),
        ("off", False, []),
        ("debug", False, ["debug", "info", "warning"]),
        ("warning", True, ["debug", "info", "warning"]),
        ("loud", False, ["info", "warning"]),
    ],
)
def test_levels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: str, debug: bool, kept: list[str]) -> None:
    monkeypatch.setenv("HELIX_LOG", level)
    path = begin(tmp_path, debug=debug)
    for name in ("debug", "info", "warning"):
        logs.logger("x").log(getattr(logging, name.upper()), name)
    assert [line.split()[-1] for line in text_of(path).splitlines()] == kept


def test_secrets_and_control_characters_stay_out(tmp_path: Path) -> None:
    path = begin(tmp_path)
    token = "ghp_" + "a1B2c3D4e5" * 4
    try:
        raise ValueError(f"refused {token}")
    except ValueError:
        logs.logger("x").exception("asked with token=%s and \x1b[31mred\x07", token)
    text = text_of(path)
    assert token not in text
    assert "\x1b" not in text
    assert "Traceback" in text
    assert text.count("[redacted: github token]") >= 2


def test_a_full_file_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "MAX_BYTES", 2_000)
    path = begin(tmp_path)
    for number in range(400):
        logs.logger("x").info("record %d %s", number, "x" * 40)
    files = sorted(each.name for each in path.parent.iterdir() if not each.name.endswith(".lock"))
    assert files == ["helix.log", *(f"helix.log.{number}" for number in range(1, logfile.BACKUPS + 1))]
    assert all((path.parent / name).stat().st_size <= 2_000 for name in files)
    assert "record 399 " in text_of(path)


_WRITER = """
import sys
from pathlib import Path
from helix_tui.core.ground import log as logs
from helix_tui.core.ground import log as logfile
logfile.MAX_BYTES = 20_000
logfile.BACKUPS = 40
logs.begin(Path(sys.argv[1]), process=sys.argv[2])
for number in range(300):
    logs.logger("x").info("%s/%d %s", sys.argv[2], number, "y" * (number % 90))
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    running = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), name], stderr=subprocess.PIPE) for name in names
    ]
    for process in running:
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
    path = begin(tmp_path)
    lines = [
        line
        for each in path.parent.iterdir()
        if each.name.startswith("helix.log") and not each.name.endswith(".lock")
        for line in each.read_text().splitlines()
    ]
    assert len(lines) == 300 * len(names)
    assert {line.split(" x: ")[1].split()[0] for line in lines} == {
        f"{name}/{number}" for name in names for number in range(300)
    }


def test_a_file_that_another_process_has_just_put_aside_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "MAX_BYTES", 200)
    path = begin(tmp_path)
    logs.logger("x").info("first %s", "x" * 80)

    @contextmanager
    def while_it_is_gone(self: logfile.LogFile) -> Iterator[bool]:
        path.rename(path.with_name("helix.log.1"))
        yield True

    monkeypatch.setattr(logfile.LogFile, "_locked", while_it_is_gone)
    logs.logger("x").info("second %s", "x" * 80)
    assert "second" in text_of(path)


def test_what_cannot_be_written_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    begin(tmp_path)
    logs.logger("x").error("nobody reads this")
    logs.logger("x").error("nor %s %d", "this")  # a record that cannot be formatted


def test_a_full_disk_is_survived() -> None:
    handler = LogFile(Path("/dev/full"), "test")
    record = logging.LogRecord("helix.x", logging.INFO, "", 0, "text", (), None)
    handler.emit(record)
    handler.emit(record)
    handler.close()


def test_it_goes_on_when_its_file_is_removed(tmp_path: Path) -> None:
    path = begin(tmp_path)
    logs.logger("x").info("one")
    path.unlink()
    logs.logger("x").info("two")
    assert "two" in text_of(path)


def test_commands_are_logged_without_their_texts(tmp_path: Path) -> None:
    path = begin(tmp_path)
    run(["true", "bead", "update", "demo-00000001", "--title", "Secret plans", "--priority", "1"])
    run(["false", "bead", "create", "tidy"])
    text = text_of(path)
    assert "true bead update demo-00000001 --title <12 chars> --priority 1: rc 0 in " in text
    assert "false bead create <4 chars>: rc 1 in " in text
    assert "plans" not in text


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["/usr/bin/git", "log", "-n", "1", "HEAD~2"], "git log -n 1 HEAD~2"),
        (["git", "commit", "-m", "Words of a person"], "git commit -m <17 chars>"),
        (["git", "--format=%H %s", "log"], "git --format=<5 chars> log"),
        (
            ["ddx", "bead", "update", "x-1", "--set", "notes=all of it"],
            "ddx bead update x-1 --set <15 chars>",
        ),
        (["ddx", "bead", "close", "x-1", "It is done"], "ddx bead close x-1 <10 chars>"),
    ],
)
def test_masked(argv: list[str], shown: str) -> None:
    assert logs.masked(argv) == shown
