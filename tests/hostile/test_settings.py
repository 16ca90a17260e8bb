"""Addresses, databases, models and programs come from the person's own settings, never from a repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ddx.client import Ddx
from helix_tui.core.evidence.session import ModelSettings, find_model
from helix_tui.core.ground.project import ddx_environment, find_ddx, find_project
from helix_tui.core.memory.store.database import database_path
from helix_tui.settings.file import Settings, load_settings
from tests.hostile.kinds import KINDS
from tests.hostile.kinds.registry import victim
from tests.programs import write_program

BROUGHT = (
    "an_environment_file",
    "settings_of_ours",
    "addresses_in_ddx_s_configuration",
    "commands_in_ddx_s_configuration",
    "settings_of_claude_code",
    "settings_of_codex",
    "servers_for_agents",
    "a_request_to_the_loop",
)
"""Kinds that name addresses, databases and programs in every file in which some tool has such settings."""


@pytest.mark.parametrize("name", BROUGHT)
def test_a_repository_names_no_address_and_no_database(
    name: str, clone: Path, secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KINDS[name](clone, secret)
    monkeypatch.chdir(clone)
    project, before = find_project(clone), dict(os.environ)
    assert load_settings() == Settings()
    assert find_ddx(None) is None
    assert find_model(project, None, ModelSettings()) is None
    assert database_path(project) == clone / ".helix" / "helix.db"
    assert project.ddx_dir == clone / ".ddx"
    write_program(tmp_path / "ddx", "import json, os\nprint(json.dumps(dict(os.environ)))\n")
    done = Ddx(tmp_path / "ddx", clone, ddx_environment(project, os.environ)).run("bead", "list")
    given = json.loads(done.stdout)
    assert not [value for value in given.values() if str(secret.parent) in value or "127.0.0.1:9" in value]
    assert main(["memory", "store", "--trigger", "a build fails", "--resolution", "read it", "-C", str(clone)]) == 0
    assert (clone / ".helix" / "helix.db").is_file()
    assert not list(victim(secret).rglob("*.db"))
    assert dict(os.environ) == before
