"""``helix-tui snapshot``, and what the program prints where there is no terminal."""

from __future__ import annotations

import asyncio
from pathlib import Path
from xml.etree import ElementTree

import pytest
from textual.app import App

from helix_tui.cli.show.snapshot import workers_done
from tests.cli.conftest import Cli
from tests.cli.test_attempts import FIRST, leave_bundle
from tests.cli.test_queue import NOW, ROWS, bead
from tests.conftest import ProjectFactory


@pytest.mark.parametrize("size", [(32, 12), (48, 20), (120, 30)])
def test_text_is_a_frame_of_that_size(cli: Cli, project: ProjectFactory, size: tuple[int, int]) -> None:
    columns, rows = size
    ran = cli("snapshot", "--size", f"{columns}x{rows}", "-C", project(ROWS), "--now", NOW)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert len(lines) == rows
    assert all(len(line) <= columns for line in lines)
    assert "Title of" in ran.out
    assert "\x1b" not in ran.out


def test_svg_is_a_picture(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("snapshot", "--format", "svg", "--size", "80x24", "-C", project(ROWS), "--now", NOW)
    assert ElementTree.fromstring(ran.out).tag.endswith("svg")


def test_json_has_the_lines_and_the_data(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    document = cli("snapshot", "--json", "--size", "80x24", "-C", root, "--now", NOW).document
    assert document["schema"] == "snapshot/1"
    assert (document["screen"], document["width"], len(document["lines"])) == ("queue", 80, 24)
    assert document["data"]["ready"] == ["demo-a1"]


def test_loop_screen_has_the_attempts(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1")])
    leave_bundle(root, FIRST, bead_id="demo-a1", started_at="2026-08-01T10:00:00Z")
    ran = cli("snapshot", "--screen", "loop", "--json", "--size", "100x24", "-C", root, "--now", NOW)
    document = ran.document
    assert [attempt["attempt_id"] for attempt in document["data"]["attempts"]] == [FIRST]
    assert any("Title of demo-a1" in line for line in document["lines"])


def test_hostile_title_does_no_harm(cli: Cli, project: ProjectFactory) -> None:
    title = "[/bold] [@click=app.quit]x[/] \x1b[2J\u202e " + "w" * 10_000
    ran = cli("snapshot", "--size", "60x12", "-C", project([bead("demo-a1", title=title)]), "--now", NOW)
    assert ran.code == 0
    assert "[/bold] [@click=app.quit]x[/]" in ran.out
    assert "\x1b" not in ran.out
    assert all(len(line) <= 60 for line in ran.out.splitlines())


def test_unusable_words_are_usage(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    assert cli("snapshot", "--size", "wide", "-C", root).code == 2
    unknown = cli("snapshot", "--screen", "kitchen", "-C", root)
    assert unknown.code == 2
    assert "queue" in unknown.err


def test_home_the_default_of_the_help_can_be_named(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS)
    named, default = (cli("snapshot", *more, "-C", root, "--now", NOW) for more in (("--screen", "home"), ()))
    assert named.code == 0
    assert named.out == default.out


@pytest.mark.long
def test_no_command_and_no_terminal_prints_a_frame(program: Cli, project: ProjectFactory) -> None:
    ran = program("-C", project(ROWS), "--now", NOW)
    assert (ran.code, ran.err) == (0, "")
    assert "Title of demo-a1" in ran.out


def test_a_folder_without_records_is_a_designed_screen(cli: Cli, tmp_path: Path) -> None:
    ran = cli("snapshot", "--size", "80x24", "-C", tmp_path)
    assert ran.code == 0
    assert "demo" in ran.out


async def test_a_worker_that_another_replaces_is_waited_for_as_done() -> None:
    app: App[None] = App()
    async with app.run_test():
        replaced = app.run_worker(asyncio.Event().wait(), exclusive=True)
        waiting = asyncio.create_task(workers_done(app))
        await asyncio.sleep(0)
        app.run_worker(asyncio.Event().wait(), exclusive=True)
        await waiting
        assert replaced.is_cancelled
