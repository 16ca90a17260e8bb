"""``helix-tui doctor``."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.setup.doctor import compare
from helix_tui.core.embedding.weights import find_weights
from helix_tui.core.ground.time import NS, format_instant, now_ns
from helix_tui.settings.file import settings_file
from tests.cli.conftest import Cli
from tests.cli.test_queue import ROWS, bead
from tests.conftest import ProjectFactory
from tests.programs import write_program


@pytest.fixture(autouse=True)
def _no_ddx(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ddx this machine has is not the one that these tests speak of."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def by_name(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The checks of a document by their names."""
    return {check["name"]: check for check in document["checks"]}


def test_every_check_has_its_four_parts(cli: Cli, project: ProjectFactory) -> None:
    ran = cli("doctor", "--json", "-C", project(ROWS, git=True))
    assert ran.document["schema"] == "doctor/1"
    assert all(set(check) == {"name", "ok", "detail", "fix"} for check in ran.document["checks"])
    checks = by_name(ran.document)
    assert checks["tracker"]["ok"] is False
    assert "1 line unread" in checks["tracker"]["detail"]
    assert checks["dependencies"]["ok"] is False
    assert checks["cycles"]["ok"] is False
    assert all(check["fix"] for check in checks.values() if check["ok"] is False)
    assert ran.code == 1


def test_what_is_not_there_yet_is_said_and_not_judged(cli: Cli, project: ProjectFactory) -> None:
    checks = by_name(cli("doctor", "--json", "-C", project([bead("demo-a1")])).document)
    assert checks["database"]["ok"] is None
    assert "sentence-transformers" in checks["embedder"]["detail"]


def test_the_settings_may_name_the_folder_of_the_weights(program: Cli, project: ProjectFactory, tmp_path: Path) -> None:
    found = find_weights(env={"HOME": ""}).weights
    if found is None:
        pytest.skip("no package with the weights here")
    folder = tmp_path / "weights"
    folder.symlink_to(found.folder)
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text(f'model_dir = "{folder}"')
    checks = by_name(program("doctor", "--json", "-C", project(ROWS)).document)
    assert f"HELIX_MODEL_DIR {folder}" in checks["embedder"]["detail"]


def test_the_memory_is_looked_at_without_touching_it(cli: Cli, project: ProjectFactory) -> None:
    root = project(ROWS, git=True)
    cli("memory", "store", "-C", root, "--trigger", "a failure to remember", "--resolution", "do not")
    before = (root / ".helix" / "helix.db").read_bytes()
    found = by_name(cli("doctor", "--json", "-C", root).document)["database"]
    assert found["ok"] is True
    assert "1 memory" in found["detail"]
    assert (root / ".helix" / "helix.db").read_bytes() == before
    (root / ".helix" / "helix.db").write_bytes(b"no database")
    found = by_name(cli("doctor", "--json", "-C", root).document)["database"]
    assert found["ok"] is False
    assert found["fix"]


@pytest.mark.parametrize("hours", [1, 9])
def test_a_claim_of_a_dead_worker_on_a_ready_bead_is_a_fault_once_it_is_an_orphan(
    cli: Cli, project: ProjectFactory, hours: int
) -> None:
    at = format_instant(now_ns() - hours * 3_600 * NS)
    claim = {"claimed-pid": "4194304", "claimed-machine": socket.gethostname(), "claimed-at": at, "owner": "sam"}
    here = project([bead("demo-a1", status="in_progress", **claim)], git=True)
    found = by_name(cli("doctor", "--json", "-C", here).document)["workers"]
    said = "1 claim of dead workers" + (", 1 ready again" if hours == 1 else "")
    assert (found["ok"], found["detail"]) == ((True, f"0 at work; {said}") if hours == 1 else (False, said))
    assert f"{said}: demo-a1" in cli("queue", "-C", here).out
    assert len(cli("needs", "--json", "-C", here).document["needs"]) == (hours == 9)


def test_what_would_stop_ddx_is_named(cli: Cli, project: ProjectFactory) -> None:
    here = project([bead("demo-a1")], git=True)
    (here / ".ddx" / "beads.jsonl").write_text("")
    (here / ".ddx" / "workers").mkdir()
    (here / ".ddx" / "workers" / "w.json").write_text("{}")
    assert by_name(cli("doctor", "--json", "-C", here).document)["work tree"]["ok"] is True
    (here / ".ddx" / "hooks").mkdir()
    (here / ".ddx" / "hooks" / "validate-bead-create").write_text("x")
    (here / "two words.txt").write_text("x")
    found = by_name(cli("doctor", "--json", "-C", here).document)["work tree"]
    assert found["ok"] is False
    assert found["detail"] == "2 files not committed: .ddx/hooks/validate-bead-create, two words.txt"


def test_a_database_that_git_tracks_is_named(cli: Cli, project: ProjectFactory) -> None:
    here = project([bead("demo-a1")])
    (here / ".helix" / "prompts").mkdir(parents=True)
    (here / ".helix" / "helix.db").write_text("x")
    (here / ".helix" / "prompts" / "check.md").write_text("x")
    for words in (("init", "-q"), ("add", "-Af"), ("commit", "-q", "-m", "start")):
        subprocess.run(["git", "-C", str(here), *words], check=True, timeout=30)
    found = by_name(cli("doctor", "--json", "-C", here).document)["helix-tui's files"]
    assert (found["ok"], found["fix"].split("`")[1]) == (False, "git rm -r --cached .helix")
    assert "1 file that helix-tui changes: .helix/helix.db" in found["detail"]


def test_without_ddx_it_says_how_to_name_one(cli: Cli, project: ProjectFactory) -> None:
    root = project([bead("demo-a1")])
    check = by_name(cli("doctor", "--json", "-C", root).document)["ddx"]
    assert check["ok"] is False
    assert "--ddx" in check["fix"]
    check = by_name(cli("doctor", "--json", "-C", root, "--ddx", "/nowhere/ddx").document)["ddx"]
    assert "/nowhere/ddx" in check["detail"]


def test_a_folder_without_records_is_the_first_thing_to_mend(cli: Cli, tmp_path: Path) -> None:
    ran = cli("doctor", "-C", tmp_path)
    assert ran.code == 1
    assert "helix-tui demo" in ran.out


FAKE = """
import json, sys
words = sys.argv[1:]
if "--help" in words:
    verb = " ".join(words[:-1])
    print("Usage:\\n  ddx " + verb + " [flags]\\n  --watch")
elif words[:2] == ["bead", "ready"]:
    print({answer!r})
"""


@pytest.fixture
def fake_ddx(tmp_path: Path) -> Any:
    """Make an executable that answers like a ddx."""

    def make(answer: str) -> Path:
        path = tmp_path / "ddx"
        write_program(path, FAKE.format(answer=answer))
        return path

    return make


def test_a_configuration_on_which_ddx_starts_no_work_is_named(cli: Cli, project: ProjectFactory, fake_ddx: Any) -> None:
    ddx = fake_ddx("[]")
    refuses = "if sys.argv[1] == 'config': sys.exit('Error: configuration validation failed: [SYNTAX] line 3')"
    ddx.write_text(f"{ddx.read_text()}\n{refuses}\n")
    checks = by_name(cli("doctor", "--json", "--ddx", ddx, "-C", project([bead("demo-a1")], git=True)).document)
    assert checks["configuration"]["ok"] is False
    assert "[SYNTAX] line 3" in checks["configuration"]["detail"]
    assert ".ddx/config.yaml" in checks["configuration"]["fix"]


def test_ddx_that_agrees(cli: Cli, project: ProjectFactory, fake_ddx: Any) -> None:
    ddx = fake_ddx('[{"id": "demo-a1"}, {"id": "demo-b2"}]')
    ran = cli("doctor", "--json", "--ddx", ddx, "-C", project([bead("demo-a1"), bead("demo-b2")], git=True))
    checks = by_name(ran.document)
    assert checks["ddx"]["detail"] == str(ddx)
    assert checks["verbs"]["ok"] is True
    assert checks["readiness"]["ok"] is True
    assert "same 2" in checks["readiness"]["detail"]
    assert ran.code == 0


def test_ddx_that_differs_is_shown_with_the_ids(cli: Cli, project: ProjectFactory, fake_ddx: Any) -> None:
    ddx = fake_ddx('[{"id": "demo-b2"}, {"id": "demo-z9"}]')
    ran = cli("doctor", "--json", "--ddx", ddx, "-C", project([bead("demo-a1"), bead("demo-b2")], git=True))
    check = by_name(ran.document)["readiness"]
    assert check["ok"] is False
    assert "only helix-tui says ready: demo-a1" in check["detail"]
    assert "only ddx says ready: demo-z9" in check["detail"]


def test_ddx_that_talks_nonsense_has_its_answer_kept(cli: Cli, project: ProjectFactory, fake_ddx: Any) -> None:
    ran = cli("doctor", "--json", "--ddx", fake_ddx("panic: nil"), "-C", project([bead("demo-a1")], git=True))
    check = by_name(ran.document)["readiness"]
    assert check["ok"] is False
    path = Path(check["fix"].rpartition(" ")[2])
    assert path.read_text().strip() == "panic: nil"


def test_another_order_is_told_by_its_first_place() -> None:
    assert "place 2 is b here, c there" in compare(["a", "b", "c"], ["a", "c", "b"]).detail
