"""What helix-tui writes stops no ddx and is committed by none (R0, R0b)."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger


def store(stranger: Stranger) -> None:
    words = ("--trigger", "out.txt needs a newline at its end", "--resolution", "print it with a newline")
    assert stranger.tui("memory", "store", *words).returncode == 0


@pytest.mark.usefixtures("lands")
def test_a_memory_stored_first_stops_no_drain(stranger: Stranger) -> None:
    ids = {stranger.bead("Write one"), stranger.bead("Write two")}
    stranger.commit("beads")
    store(stranger)
    assert stranger.git("status", "--porcelain") == ""
    stranger.drained()
    assert stranger.closed() == ids
    assert ".helix" not in stranger.git("log", "--name-only", "--format=")


@pytest.mark.usefixtures("lands")
def test_a_run_leaves_the_work_tree_clean_and_nothing_alive(stranger: Stranger) -> None:
    ids = {stranger.bead("Write one"), stranger.bead("Write two")}
    stranger.commit("beads")
    done = stranger.supervised()
    assert done.returncode == 0, done.stderr
    assert stranger.closed() >= ids
    assert stranger.git("status", "--porcelain", "--", ".ddx/beads.jsonl") == ""
    assert ".helix" not in stranger.git("status", "--porcelain", "--untracked-files=all")
    assert not stranger.processes()


@pytest.mark.usefixtures("lands")
def test_hooks_that_were_committed_leave_a_loop_that_works(stranger: Stranger) -> None:
    first = stranger.bead("Write the first")
    stranger.commit("beads")
    for words in ((), ("--claude",)):
        assert stranger.tui("install-hooks", *words, "--commit").returncode == 0
    assert stranger.git("status", "--porcelain") == ""
    assert str(stranger.base) not in stranger.git("show", "HEAD~1", "HEAD")
    made = stranger.tui("create", "Write one", "--acceptance", "`cat out.txt` prints hello")
    assert (made.returncode, "missing required label" in made.stderr) == (1, True), made.stderr
    bead = stranger.bead("Write one", labels="helix,activity:build", set="spec-id=README.md")
    stranger.commit("beads")
    stranger.drained()
    assert stranger.closed() == {first, bead}


def test_doctor_names_what_would_stop_ddx(stranger: Stranger) -> None:
    stranger.bead("Write one")
    stranger.commit("beads")
    stranger.tui("install-hooks")
    found = {check["name"]: check for check in stranger.tui_json("doctor")["checks"]}["work tree"]
    assert found["ok"] is False
    assert ".ddx/hooks/validate-bead-create" in found["detail"]
    stranger.drained()
    april = stranger.ddx("agent", "execute-loop", "--help").returncode == 0
    assert bool(stranger.closed()) == april, "April commits the file, later releases stop at it"
