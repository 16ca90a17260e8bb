"""What would damage a tracker is refused before ddx is asked, with words that say what would happen."""

from __future__ import annotations

import json

import pytest

from tests.real.stranger import Stranger


@pytest.mark.parametrize("label", ["needs_human", "triage:needs-investigation"])
def test_a_label_for_which_ddx_refuses_everything_is_refused_first(stranger: Stranger, label: str) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    twin = stranger.ddx("bead", "update", bead, "--labels", label)
    shuts = stranger.ddx("bead", "ready", "--json").returncode != 0
    stranger.git("checkout", "--", ".ddx/beads.jsonl")
    before = stranger.rows()
    done = stranger.tui("label", bead, "--add", label)
    if not shuts:
        assert (twin.returncode, done.returncode) == (0, 0), done.stderr
        assert stranger.rows()[bead]["labels"] == [label]
        return
    assert done.returncode != 0
    assert "refuses every command" in done.stderr
    assert stranger.rows() == before
    assert stranger.ready() == [bead]


def test_a_label_with_a_comma_is_not_split(stranger: Stranger) -> None:
    bead = stranger.bead("Write one")
    path = stranger.project / ".ddx" / "beads.jsonl"
    path.write_text(json.dumps({**stranger.rows()[bead], "labels": ["area:a,b", "c"]}) + "\n")
    done = stranger.tui("label", bead, "--add", "z")
    assert (done.returncode != 0, "comma" in done.stderr) == (True, True)
    assert stranger.rows()[bead]["labels"] == ["area:a,b", "c"]


def test_commit_closes_nothing_that_nobody_worked_on(stranger: Stranger) -> None:
    first = stranger.bead("Write one")
    bead = stranger.bead("Write two", after=(first,))
    stranger.commit("beads")
    stranger.ddx("bead", "update", bead, "--notes", "looked at", check=True)
    before = stranger.git("rev-parse", "HEAD")
    for words in (("commit", bead), ("commit", first)):
        done = stranger.tui(*words)
        assert (done.returncode, "only ddx's own records" in done.stderr) == (1, True), done.stderr
    (stranger.project / "README.md").write_text("changed\n")
    done = stranger.tui("commit", bead)
    assert f"{bead} waits on {first}" in done.stderr
    assert (stranger.git("rev-parse", "HEAD"), stranger.closed()) == (before, set())
    done = stranger.tui("commit", first)
    assert done.returncode == 0, done.stderr
    files = [stranger.git("show", "--name-only", "--format=", rev) for rev in ("HEAD~1", "HEAD")]
    assert files == ["README.md", ".ddx/beads.jsonl"]
    assert stranger.closed() == {first}
