"""Being told: what is new, once per thing, in words that terminals and commands take."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import datetime
from pathlib import Path

import pytest

from helix_tui.core.ddx.attempts.attempt import Attempt
from helix_tui.core.ddx.attempts.book import AttemptBook
from helix_tui.core.ddx.runs.running import Run
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.ground.time import NS, parse_now
from helix_tui.core.statements.notifications import (
    NewsWatch,
    Notification,
    claimed,
    forget,
    run_command,
    sequences,
    terminal_ways,
)
from helix_tui.core.supervision.decide.needs import Need
from helix_tui.settings.file import load_settings
from helix_tui.settings.quiet_hours import parse_quiet
from tests.programs import parse_rows

NOW = parse_now("2026-08-21T22:00:28Z")
OLD = Need("proposed", "a", "accept or reject", 0)
NEW = Need("merge_conflict", "b", "kept at refs/x", 2)
NOBODY = AttemptBook()
NOTE = Notification("needs", "2 need you", "merge conflicts: kept; at refs/x", (NEW.key,), (NEW,), 2)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".helix").mkdir()
    return find_project(tmp_path)


def test_what_is_there_at_the_first_look_is_no_news() -> None:
    watch = NewsWatch()
    assert watch.see([OLD], (), NOBODY, now=NOW) == []
    (note,) = watch.see([OLD, NEW], (), NOBODY, now=NOW)
    assert (note.event, note.title, note.keys, note.waiting) == ("needs", "2 need you", (NEW.key,), 2)
    assert note.body == "merge conflict: kept at refs/x"
    assert watch.see([OLD, NEW], (), NOBODY, now=NOW) == [], "once"
    assert watch.gone() == frozenset()
    assert watch.see([OLD], (), NOBODY, now=NOW) == []
    assert watch.gone() == {NEW.key}
    assert watch.see([OLD, NEW], (), NOBODY, now=NOW), "news again, once it has come back"


def test_a_note_says_its_kind_once() -> None:
    watch = NewsWatch()
    watch.see([], (), NOBODY, now=NOW)
    spent = Need("budget", "", "budget reached: $5.29 of $5.00 today", 0, ref="day-usd")
    (note,) = watch.see([spent], (), NOBODY, now=NOW)
    assert note.body == "budget reached: $5.29 of $5.00 today"


def test_a_note_names_the_bead_it_is_about() -> None:
    watch = NewsWatch()
    beads = parse_rows(b'{"id":"p-1","title":"Split the importer \\u001b]9;x"}').beads
    watch.see([], (), NOBODY, now=NOW)
    (note,) = watch.see([Need("proposed", "p-1", "accept or reject", 0)], (), NOBODY, now=NOW, beads=beads)
    assert note.title == "1 needs you"
    assert note.body == "proposal: “Split the importer”: accept or reject", "a title ends no sequence"


def test_many_at_once_are_one_note() -> None:
    watch = NewsWatch()
    watch.see([], (), NOBODY, now=NOW)
    (note,) = watch.see([*(Need("proposed", f"p-{n}", "", 0) for n in range(9)), NEW], (), NOBODY, now=NOW)
    assert note.body == "new: 9 proposals, 1 merge conflict"
    assert len(note.keys) == 10
    lesson = Need("lesson", "", "failure: x → y", 0, ref="7")
    assert watch.see([lesson], (), NOBODY, now=NOW) == [], "nobody is called for a lesson"


def test_the_end_of_a_run_names_its_outcomes() -> None:
    watch = NewsWatch()
    watch.see([OLD], (Run("a", live=True),), NOBODY, now=NOW)
    ended = [
        Attempt("20260821T230500-0000000b", "b", status="execution_failed", finished_at=NOW + 9 * NS),
        Attempt("20260821T230100-0000000a", "a", status="success", landed_rev="a" * 40, finished_at=NOW + 5 * NS),
        Attempt("20260821T200000-0000000c", "c", status="success", landed_rev="b" * 40, finished_at=NOW - 5 * NS),
    ]
    assert watch.see([OLD], (Run(None, live=True),), AttemptBook(ended), now=NOW) == [], "a worker between two beads"
    assert watch.see([OLD], (), AttemptBook(ended), now=NOW, loop=True) == [], "HELIX's loop between two beads"
    (note,) = watch.see([OLD], (), AttemptBook(ended), now=NOW + 10 * NS)
    assert (note.event, note.title, note.body) == ("run_ended", "the run has ended", "1 landed, 1 failed")
    assert watch.see([OLD], (), AttemptBook(ended), now=NOW + 20 * NS) == []


def test_of_several_consoles_one_tells(project: Project) -> None:
    assert claimed(project, [NEW.key, OLD.key]) == {NEW.key, OLD.key}
    assert claimed(project, [NEW.key, OLD.key]) == frozenset()
    forget(project, [NEW.key, "never:there"])
    assert claimed(project, [NEW.key, OLD.key]) == {NEW.key}


@pytest.mark.parametrize(
    ("env", "ways"),
    [
        ({"TERM": "xterm-256color"}, ("bell",)),
        ({"TERM": "xterm-kitty"}, ("bell", "osc99")),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, ("bell", "osc99")),
        ({"TERM_PROGRAM": "iTerm.app"}, ("bell", "osc9")),
        ({"TERM_PROGRAM": "tmux", "LC_TERMINAL": "iTerm2"}, ("bell", "osc9")),
        ({"TERM": "foot"}, ("bell", "osc777")),
        ({"TERM": "linux"}, ("bell",)),
    ],
)
def test_a_terminal_is_told_in_its_own_way(env: dict[str, str], ways: tuple[str, ...]) -> None:
    assert terminal_ways(env) == ways


def test_sequences_are_whole_and_go_through_tmux() -> None:
    assert sequences(("bell", "osc9"), NOTE, tmux=False) == (
        "\a\x1b]9;2 need you: merge conflicts: kept, at refs/x\x1b\\"
    )
    assert sequences(("osc777",), NOTE, tmux=False) == (
        "\x1b]777;notify;2 need you;merge conflicts: kept, at refs/x\x1b\\"
    )
    assert sequences(("osc99",), NOTE, tmux=False).count("\x1b\\") == 2
    wrapped = sequences(("bell", "osc9"), NOTE, tmux=True)
    assert wrapped.startswith("\a\x1bPtmux;\x1b\x1b]9;")
    assert wrapped.endswith("\x1b\x1b\\\x1b\\")


def test_what_an_agent_wrote_ends_no_sequence() -> None:
    evil = Notification("needs", "x\x1b\\\a;y", "z\x1b]52;c;aaaa\x07\u009c", ("k",))
    (said,) = (sequences(("osc777",), evil, tmux=False),)
    assert said.count("\x1b") == 2
    assert "\a" not in said
    assert "\u009c" not in said
    assert said.count(";") == 3


def test_a_command_gets_json_on_its_input_and_no_shell(project: Project, tmp_path: Path) -> None:
    out = tmp_path / "told.json"
    script = f"import sys,pathlib;pathlib.Path({os.fspath(out)!r}).write_text(sys.stdin.read()+'|'+sys.argv[1])"
    document = NOTE.document(project, NOW)
    assert run_command(f"{shlex.quote(sys.executable)} -c {json.dumps(script)} '$HOME;x'", document, tmp_path) == ""
    told, _, word = out.read_text().rpartition("|")
    found = json.loads(told)
    assert (found["schema"], found["event"], found["waiting"]) == ("notification/1", "needs", 2)
    assert [(need["key"], need["group"]) for need in found["needs"]] == [(NEW.key, "merge conflicts")]
    assert word == "$HOME;x"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("no-such-program-here", "does not start"),
        ("false", "ended with 1"),
        ("'", "cannot be read"),
        ("  ", "no command"),
    ],
)
def test_a_command_that_fails_says_why(command: str, said: str, tmp_path: Path) -> None:
    assert said in run_command(command, b"{}", tmp_path)


@pytest.mark.parametrize(
    ("text", "at", "quiet"),
    [
        ("22:00-07:00", "23:15", True),
        ("22:00-07:00", "06:59", True),
        ("22:00-07:00", "07:00", False),
        ("09:00 - 10:30", "10:29", True),
        ("09:00-10:30", "11:00", False),
        ("", "03:00", False),
    ],
)
def test_quiet_hours_are_those_of_the_local_day(text: str, at: str, quiet: bool) -> None:
    hour, minute = map(int, at.split(":"))
    instant = int(datetime(2026, 8, 21, hour, minute).timestamp()) * NS
    assert parse_quiet(text).hold(instant) is quiet


def test_settings_say_how_to_tell_and_what_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('notify = "tell me"\nnotify_terminal = ["bell", "osc9"]\nquiet = "22:00-07:00"\n')
    settings = load_settings(file)
    assert (settings.notify, settings.notify_terminal, settings.quiet_hours.start) == (
        "tell me",
        ("bell", "osc9"),
        22 * 60,
    )
    assert settings.problems == ()
    file.write_text('notify = 3\nnotify_terminal = "bell"\nquiet = "late"\n')
    settings = load_settings(file)
    assert (settings.notify, settings.notify_terminal) == ("", None)
    assert [problem.partition(":")[0] for problem in settings.problems] == ["notify", "notify_terminal", "quiet"]
