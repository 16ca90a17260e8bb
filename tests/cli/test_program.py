"""The program around the commands: options, exit codes, streams."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest

from helix_tui import __version__
from helix_tui.cli import programs
from helix_tui.cli.call import sentence
from helix_tui.cli.commands import COMMANDS
from helix_tui.cli.program import load
from helix_tui.core.ground.processes.family import family
from tests.cli.conftest import Cli
from tests.cli.test_queue import NOW, ROWS
from tests.conftest import ProjectFactory

VERBS: list[tuple[str, ...]] = [
    (name, verb)
    for name in ("doc", "memory")
    for action in load(name)[1]._actions
    if isinstance(action, argparse._SubParsersAction)
    for verb in action.choices
]


def test_version(cli: Cli) -> None:
    assert cli("--version").out.strip() == f"helix-tui {__version__}"


def test_help_lists_every_command(cli: Cli) -> None:
    ran = cli("--help")
    assert ran.code == 0
    assert all(name in ran.out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(cli: Cli, name: str) -> None:
    ran = cli(name, "--help")
    assert ran.code == 0
    assert "--json" in ran.out


@pytest.mark.parametrize("words", [*((name,) for name in COMMANDS if name != "memory"), *VERBS])
def test_every_command_and_verb_takes_dry_run(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli(*words, "--help")
    assert (ran.code, "--dry-run" in ran.out) == (0, True)


def test_unknown_command_is_usage_with_a_suggestion(cli: Cli) -> None:
    ran = cli("queu")
    assert (ran.code, ran.out) == (2, "")
    assert "“queue”" in ran.err


def test_unusable_values_are_usage(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    assert cli("queue", "--now", "yesterday", "-C", root).code == 2
    assert cli("queue", "--nonsense", "-C", root).code == 2
    assert cli("queue", "-C", root / "nowhere").code == 1


def test_global_options_stand_on_either_side(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    before = cli("-C", root, "--now", NOW, "--json", "queue").document
    after = cli("queue", "-C", root, "--now", NOW, "--json").document
    assert before == after


def test_a_reader_that_leaves_is_no_error(project: ProjectFactory) -> None:
    root = project(ROWS * 400)
    with subprocess.Popen(
        [sys.executable, "-m", "helix_tui", "queue", "--json", "-C", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (141, b""), "as a program that SIGPIPE ended"


def test_interrupt_is_130(cli: Cli, project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("helix_tui.cli.show.queue.load", interrupt)
    assert cli("queue", "-C", project(ROWS)).code == 130


def test_what_the_system_refuses_is_one_line(cli: Cli) -> None:
    ran = cli("queue", "-C", "x" * 5_000)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("advice", "told"),
    [
        ("start the server", "Start the server"),
        ('helix-tui evolve "what to change"', 'helix-tui evolve "what to change"'),
        ("ddx init makes one", "ddx init makes one"),
        ("`git status` shows it", "`git status` shows it"),
        ("gitignore it", "Gitignore it"),
        ("", ""),
    ],
)
def test_advice_begins_with_a_capital_but_a_command_is_told_as_it_is_typed(advice: str, told: str) -> None:
    assert sentence(advice) == told


def test_what_a_program_started_ends_with_it_though_it_does_not_listen() -> None:
    script = """if True:
        import os, signal, time
        ours = os.fork()
        if not ours:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print(os.getpid(), flush=True)
        time.sleep(60)
    """
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    programs.stop(process, patience=0.2)
    assert process.returncode is not None
    assert family(child) == ()
