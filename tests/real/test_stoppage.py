"""A worker that stops for uncommitted files: every face says so in ddx's words until they are committed."""

from __future__ import annotations

import pytest

from tests.real.stranger import Stranger


def test_what_stopped_the_worker_is_on_every_face(stranger: Stranger) -> None:
    stranger.bead("Write it", acceptance="1. `test -f README.md` passes")
    stranger.commit("beads")
    (stranger.project / "stray.txt").write_text("x\n")
    stranger.drained()
    if stranger.calls("work"):
        pytest.skip("this ddx works beside uncommitted files")
    told = stranger.tui_json("status")["last_worker"]
    assert (told["reason"], told["dirty_paths"], told["cause_present"]) == (
        "checkpoint_dirty",
        ["stray.txt"],
        True,
    )
    assert "stray.txt" in told["message"]
    check = stranger.tui_json("check")
    assert check["next_action"] == "GUIDANCE"
    assert check["reasons"][0]["code"] == "worker_stopped"
    assert [each["reason"] for each in stranger.tui_json("stuck")["stuck"]] == ["worker-stopped"]
    assert "last worker" in stranger.tui("doctor").stdout
    assert stranger.tui_json("attempts")["attempts"] == [], "no agent was started"
    calls = len(stranger.calls())
    for words in (("run",), ("run", "--dry-run"), ("start",)):
        refused = stranger.tui(*words, *stranger.agent_words)
        assert (refused.returncode, "stray.txt" in refused.stderr) == (1, True), (words, refused.stderr)
    assert len(stranger.calls()) == calls, "no readiness check is paid again"
    stranger.commit("stray")
    assert stranger.tui_json("status")["last_worker"]["cause_present"] is False
    assert stranger.tui_json("check")["next_action"] == "BUILD"
    assert stranger.tui_json("stuck")["stuck"] == []


def test_without_a_branch_nothing_is_started_and_nothing_paid(stranger: Stranger) -> None:
    bead = stranger.bead("Write one")
    stranger.commit("beads")
    stranger.git("checkout", "-q", "--detach")
    head = stranger.git("rev-parse", "HEAD")
    for words in (("run", *stranger.agent_words), ("start", *stranger.agent_words), ("build", bead)):
        done = stranger.tui(*words)
        assert (done.returncode, "HEAD is detached" in done.stderr) == (1, True), (words, done.stderr)
    assert stranger.calls() == []
    assert stranger.git("rev-parse", "HEAD") == head
    assert [need["kind"] for need in stranger.tui_json("needs")["needs"]] == ["worker_stopped"]
    stranger.drained("--once")
    if stranger.closed():  # early April lands there
        assert not stranger.git("for-each-ref", "--contains", "HEAD", "refs/heads"), "what landed is on no branch"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("config.yaml", "nonsense_key: 3\n"),
        ("config.yaml", "  : [unclosed\n"),
        ("versions.yaml", 'ddx_version: "v99.0.0"\n'),
    ],
    ids=["key", "syntax", "version"],
)
def test_a_configuration_on_which_ddx_starts_no_work_is_foretold(stranger: Stranger, file: str, text: str) -> None:
    bead = stranger.bead("Write one")
    path = stranger.project / ".ddx" / file
    path.write_text(path.read_text() + text if file == "config.yaml" else text)
    stranger.commit("settings")
    rows = stranger.rows()
    foretold = stranger.tui_json("check", "--no-model")
    changed = stranger.tui("label", bead, "--add", "colour")
    if stranger.drained("--once").returncode == 0 and bead in stranger.closed():
        pytest.skip("this build asks for no release")
    if foretold["next_action"] != "GUIDANCE" and stranger.supervised("--no-auto-align").returncode == 0:
        pytest.skip("the loop that we start asks for no release: April's `agent execute-loop`")
    assert foretold["next_action"] == "GUIDANCE"
    assert "ddx refuses" in str(foretold["reasons"][0])
    if changed.returncode:
        assert "not done: ddx refuses every change" in changed.stderr
        assert stranger.rows() == rows
    found = {check["name"]: check for check in stranger.tui_json("doctor")["checks"]}["configuration"]
    assert found["ok"] is False
    assert stranger.supervised("--no-auto-align").returncode == 1
    assert [need["kind"] for need in stranger.tui_json("needs")["needs"]] == ["ddx_refuses"]
    assert not stranger.calls("work")
    assert "helix-context" not in str(stranger.rows())
