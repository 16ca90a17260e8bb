"""What a repository brings runs only once it was allowed; a run is asked when it starts, never in its middle."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.real.stranger import Stranger
from tests.real.test_ticks import CHECKED

NOT_ALLOWED = 77


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def git_hook(stranger: Stranger) -> str:
    executable(stranger.project / ".git" / "hooks" / "pre-commit", "#!/bin/sh\ntouch $HOME/ran-hook\n")
    return ".git/hooks/pre-commit"


def ddx_hook(stranger: Stranger) -> str:
    executable(stranger.project / ".ddx" / "hooks" / "validate-bead-create", "#!/bin/sh\ntouch $HOME/ran-ddx-hook\n")
    return ".ddx/hooks/validate-bead-create"


def lefthook(stranger: Stranger) -> str:
    (stranger.project / "lefthook.yml").write_text("pre-commit:\n  commands: {}\n")
    executable(stranger.base / "bin" / "lefthook", "#!/bin/sh\ntouch $HOME/ran-lefthook\n")
    return "lefthook.yml"


def cargo(stranger: Stranger) -> str:
    (stranger.project / "Cargo.toml").write_text("[workspace]\n")
    executable(stranger.base / "bin" / "cargo", "#!/bin/sh\ntouch $HOME/ran-cargo\n")
    return "cargo check"


def npm(stranger: Stranger) -> str:
    (stranger.project / "package.json").write_text("{}\n")
    executable(stranger.base / "bin" / "npm", "#!/bin/sh\ntouch $HOME/ran-npm\n")
    return "npm test"


@pytest.mark.parametrize("bring", [git_hook, ddx_hook, lefthook, cargo, npm])
def test_nobody_there_means_refused_until_it_is_allowed(stranger: Stranger, bring: Callable[[Stranger], str]) -> None:
    first, second, third = (stranger.bead(f"Write {number}", acceptance=CHECKED) for number in range(3))
    subject = bring(stranger)
    stranger.run("git", "add", "-A")
    stranger.run("git", "commit", "-q", "--no-verify", "-m", "what it brings")
    for path in stranger.home.glob("ran-*"):
        path.unlink()
    rows, head = stranger.rows(), stranger.git("rev-parse", "HEAD")
    (stranger.project / "README.md").write_text("changed\n")
    gate = bring in (cargo, npm)
    refused: list[tuple[str, ...]] = [("commit", first)]
    refused += [] if gate else [("run", *stranger.agent_words), ("build", second, *stranger.agent_words)]
    for words in refused:
        done = stranger.tui(*words)
        assert (done.returncode, subject in done.stderr) == (NOT_ALLOWED, True), (words, done.stderr)
        assert "helix-tui trust" in done.stderr
    assert (stranger.calls(), stranger.rows(), stranger.git("rev-parse", "HEAD")) == ([], rows, head)
    assert not list(stranger.home.glob("ran-*"))
    assert stranger.tui("trust", "--yes").returncode == 0
    done = stranger.tui("commit", first)
    assert done.returncode == 0, done.stderr
    assert stranger.closed() == {first}
    if bring is not ddx_hook:
        assert list(stranger.home.glob("ran-*"))
    built = stranger.tui("build", second, *stranger.agent_words)
    assert built.returncode in (0, 1), built.stderr
    ran = stranger.supervised("--no-auto-review")
    assert ran.returncode == 0, ran.stderr
    assert {call["bead"] for call in stranger.calls("work")} >= {second, third}


def test_a_night_over_beads_that_change_lefthook_is_refused_only_at_its_next_start(stranger: Stranger) -> None:
    subject = lefthook(stranger)
    beads = [stranger.bead(f"Write {n} [{'lefthook' if n % 2 else 'ok'}]", acceptance=CHECKED) for n in range(6)]
    stranger.commit("beads")
    before = (stranger.project / subject).read_text()
    assert stranger.tui("trust", "--yes").returncode == 0
    night = stranger.supervised("--no-auto-review", "--autonomy", "high")
    assert night.returncode == 0, night.stderr
    assert {call["bead"] for call in stranger.calls("work")} >= set(beads), "it went on after the first change"
    after = (stranger.project / subject).read_text()
    if not stranger.release.reviews:
        pytest.skip("this release lands nothing with the scripted agent")
    assert (after.count("#"), before.count("#")) == (3, 0)
    assert stranger.closed() >= set(beads)
    stranger.bead("Write one more", acceptance=CHECKED)
    again = stranger.supervised("--no-auto-review")
    assert (again.returncode, subject in again.stderr) == (NOT_ALLOWED, True), again.stderr
    assert f"{subject} changed during this run and waits for your permission" in night.stderr
