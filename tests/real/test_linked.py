"""A linked work tree: tracker and memory are the primary tree's, what lands and what a worker records is its own."""

from __future__ import annotations

import pytest

from tests.real.answers import Ticks
from tests.real.stranger import Release, Stranger
from tests.real.test_sums import agrees
from tests.real.test_ticks import CHECKED, drain

AGENT_WORDS = ("--agent", "claude", "--model", "sonnet")


def works_from_linked(stranger: Stranger) -> bool:
    """Whether this release's workers take beads from the primary tracker (since 13 June, as its loop knows ranks)."""
    return stranger.tui("run", "--dry-run", *AGENT_WORDS).returncode == 0


def subjects(stranger: Stranger, branch: str) -> set[str]:
    return set(stranger.git("log", "--format=%s", branch).split("\n"))


def test_a_drain_in_a_linked_tree_is_told_as_ddx_tells_it(stranger: Stranger) -> None:
    for number, word in enumerate(("ok", "block", "fail", "ok")):
        stranger.bead(f"Write {number} [{word}]", priority=number, acceptance=CHECKED)
    stranger.commit("beads")
    stranger.link("topic")
    if not works_from_linked(stranger):
        pytest.skip("a worker of this release uses the tracker's copy in a linked tree")
    (stranger.home / "pace").write_text("2")
    ticks = Ticks(stranger)
    drain(stranger, ticks, stranger.begin("ddx", *stranger.release.drain, *stranger.pins))
    ticks.look()
    # what ddx parked it lists by the tracker; its focus reads the copy in this tree
    assert not [line for line in ticks.differing if ": needs " not in line]
    assert not ticks.changed_their_minds()
    agrees(stranger, stranger.tui_json("attempts")["spent"])


def test_a_run_and_a_build_name_the_branch_and_book_what_they_cost(stranger: Stranger) -> None:
    first, *_ = (stranger.bead(f"Write {number}", priority=number, acceptance=CHECKED) for number in range(3))
    stranger.commit("beads")
    before, rows = stranger.git("rev-parse", "main"), stranger.rows()
    tree = stranger.link("topic")
    foretold = stranger.tui("build", first, "--dry-run", *AGENT_WORDS)
    if not works_from_linked(stranger):
        for words in (("run",), ("start",), ("build", first), ("build", first, "--dry-run")):
            done = stranger.tui(*words, *AGENT_WORDS)
            assert done.returncode, words
            assert f"tart it in {stranger.project}" in done.stderr, (words, done.stderr)
        assert (stranger.calls(), stranger.rows()) == ([], rows)
        return
    assert "what ddx lands goes to topic" in foretold.stderr
    built = stranger.tui("build", first, *AGENT_WORDS)
    assert built.returncode == 0, built.stderr
    if stranger.release.reviews:
        assert "landed on: topic" in built.stdout
    ran = stranger.supervised("--no-auto-review", "--budget", "$5")
    assert ran.returncode == 0, ran.stderr
    assert stranger.git("rev-parse", "main") == before
    landed = [name for name in stranger.git("ls-tree", "--name-only", "topic").split("\n") if name.startswith("out-")]
    assert len(landed) == len(stranger.closed())
    if stranger.release.reviews:
        assert len(landed) == 3
        assert "success, landed on topic" in ran.stderr
    status = stranger.tui_json("status")
    agrees(stranger, stranger.tui_json("attempts")["spent"])
    assert status["running_bead"] is None
    stranger.tui("memory", "store", "failure", "wool shrinks", "wash it cold")
    assert not (tree / ".helix").exists()
    assert stranger.tui("label", first, "--add", "mine").returncode == 0
    assert "mine" in stranger.rows()[first]["labels"]
    stranger.linked = None
    assert "mine" in stranger.tui("journal").stdout


def test_a_detached_head_and_a_tree_that_is_not_named_back_start_nothing(stranger: Stranger, release: Release) -> None:
    del release
    bead = stranger.bead("Write one", acceptance=CHECKED)
    stranger.commit("beads")
    tree = stranger.link("topic")
    stranger.git("switch", "-q", "--detach")
    rows = stranger.rows()
    (tree / "README.md").write_text("changed\n")
    for words in (("run", *AGENT_WORDS), ("build", bead, *AGENT_WORDS), ("commit", bead)):
        done = stranger.tui(*words)
        assert done.returncode, words
        assert "HEAD is detached" in done.stderr, (words, done.stderr)
    stranger.git("switch", "-q", "topic")
    named_back = stranger.project / ".git" / "worktrees" / "topic" / "gitdir"
    named_back.write_text(str(stranger.base / "elsewhere" / ".git"))
    for words in (("run", *AGENT_WORDS), ("build", bead, *AGENT_WORDS), ("commit", bead)):
        done = stranger.tui(*words)
        assert done.returncode, words
        assert "does not name this folder" in done.stderr, (words, done.stderr)
    assert "does not name this folder" in stranger.tui("queue").stderr
    stranger.tui("set", bead, "--priority", "0")
    assert (stranger.calls(), stranger.rows()) == ([], rows), "the primary tree's tracker is another's"
