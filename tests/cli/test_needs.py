"""``helix-tui needs``: once, as JSON, as it changes, and what is put off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.cli.conftest import Cli

pytestmark = pytest.mark.long

NOW = "2026-08-21T22:00:28Z"
ROWS = (
    '{"id":"x-1","title":"Split the search","status":"proposed","updated_at":"2026-08-21T20:00:00Z"}',
    '{"id":"x-2","title":"Wait forever","dependencies":[{"depends_on_id":"gone"}]}',
    '{"id":"x-3","title":"Ready"}',
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".ddx").mkdir()
    (tmp_path / ".helix").mkdir()
    (tmp_path / ".ddx/beads.jsonl").write_text("\n".join(ROWS) + "\n")
    return tmp_path


def test_needs_are_listed_with_what_can_be_done(cli: Cli, project: Path) -> None:
    done = cli("needs", "-C", project, "--now", NOW, "--json")
    assert (done.code, done.document["schema"], done.document["count"]) == (0, "needs/1", 2)
    first, second = done.document["needs"]
    assert (first["kind"], first["group"], first["title"], first["key"]) == (
        "proposed",
        "proposals",
        "Split the search",
        "proposed:x-1",
    )
    assert first["since"] == "2026-08-21T20:00:00Z"
    assert [each["command"] for each in first["actions"]] == ["helix-tui set x-1 status=open", "helix-tui cancel x-1"]
    assert second["kind"] == "missing_dependency"
    assert done.document["groups"] == {"proposals": 1, "broken dependencies": 1}


def test_people_read_groups_and_the_command_that_deals_with_them(cli: Cli, project: Path) -> None:
    done = cli("needs", "-C", project, "--now", NOW)
    assert done.out.startswith("proposals  1\n  x-1  Split the search")
    assert "2h" in done.out
    assert "→ helix-tui set x-1 status=open\n" in done.out, "one bead: its command can be copied"
    assert cli("needs", "-C", project, "--filter", "kind:lessons").out == "none of 2 matches\n"


def test_a_heading_over_several_beads_names_none_of_them_in_its_command(cli: Cli, project: Path) -> None:
    with (project / ".ddx/beads.jsonl").open("a") as tracker:
        tracker.write(ROWS[0].replace("x-1", "x-4") + "\n")
    done = cli("needs", "-C", project, "--now", NOW)
    assert done.out.startswith("proposals  2\n")
    assert "→ helix-tui set ID status=open\n" in done.out


def test_a_filter_narrows_and_a_strange_one_is_refused(cli: Cli, project: Path) -> None:
    found = cli("needs", "-C", project, "--filter", "split", "--json").document
    assert ([need["bead_id"] for need in found["needs"]], found["count"]) == (["x-1"], 2)
    refused = cli("needs", "-C", project, "--filter", "colour:red")
    assert refused.code == 2
    assert "no field" in refused.err


def test_what_is_put_off_is_listed_apart_until_it_comes_back(cli: Cli, project: Path) -> None:
    done = cli("needs", "-C", project, "--now", NOW, "--snooze", "proposed:x-1", "--for", "2h", "--json")
    assert (done.document["count"], [need["key"] for need in done.document["snoozed"]]) == (1, ["proposed:x-1"])
    assert done.document["snoozed"][0]["until"] == "2026-08-22T00:00:28Z"
    assert cli("needs", "-C", project, "--now", NOW).out.endswith("1 snoozed, the first until 2026-08-22T00:00:28Z\n")
    later = cli("needs", "-C", project, "--now", "2026-08-22T00:00:28Z", "--json")
    assert later.document["count"] == 2, "two hours are over"
    back = cli("needs", "-C", project, "--now", NOW, "--wake", "proposed:x-1", "--json")
    assert (back.document["count"], back.document["snoozed"]) == (2, [])


def test_a_dry_run_says_what_would_be_snoozed_and_writes_nothing(cli: Cli, project: Path) -> None:
    words = ("needs", "-C", project, "--now", NOW, "--snooze", "proposed:x-1", "--for", "2h", "--dry-run")
    told = cli(*words)
    assert told.code == 0
    assert told.out.startswith("would snooze proposed:x-1 until 2026-08-22T00:00:28Z\n")
    assert cli(*words, "--json").document["snooze"] == ["proposed:x-1"]
    assert not (project / ".helix/snoozed.json").exists()
    assert "nothing waiting has the key" in cli(*words[:-1], "--wake", "proposed:nobody", "--dry-run").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--snooze", "proposed:nobody"), "nothing waiting has the key"),
        (("--snooze", "proposed:x-1", "--for", "soon"), "is not a duration"),
        (("--read-only", "--snooze", "proposed:x-1"), "read-only"),
    ],
)
def test_what_cannot_be_put_off_says_why(cli: Cli, project: Path, words: tuple[str, ...], said: str) -> None:
    done = cli("needs", "-C", project, *words)
    assert done.code != 0
    assert said in done.err
    assert not (project / ".helix/snoozed.json").exists()


def test_watching_tells_what_comes_and_what_goes(project: Path) -> None:
    argv = [sys.executable, "-m", "helix_tui", "needs", "-C", str(project), "--watch", "--json", "--every", "0.2"]
    tracker = project / ".ddx/beads.jsonl"
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert {_event(process.stdout), _event(process.stdout)} == {
                ("new", "proposed:x-1"),
                ("new", "missing_dependency:x-2"),
            }
            _replace(tracker, (ROWS[0].replace("proposed", "open"), *ROWS[1:]))
            assert _event(process.stdout) == ("gone", "proposed:x-1")
            _replace(tracker, (*ROWS[:2], ROWS[2].replace('"title"', '"status":"proposed","title"')))
            assert {_event(process.stdout), _event(process.stdout)} == {
                ("new", "proposed:x-1"),
                ("new", "proposed:x-3"),
            }
        finally:
            process.terminate()


def _event(stream: IO[bytes]) -> tuple[str, str]:
    found = json.loads(stream.readline())
    return found["event"], found["need"]["key"]


def _replace(path: Path, rows: tuple[str, ...]) -> None:
    spare = path.with_suffix(".new")
    spare.write_text("\n".join(rows) + "\n")
    spare.replace(path)
