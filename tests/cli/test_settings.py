"""``helix-tui settings``."""

from __future__ import annotations

import json

from helix_tui.settings.file import settings_file
from tests.cli.conftest import Cli


def test_what_is_set_is_said_and_what_is_not_read_fails(cli: Cli) -> None:
    before = cli("settings")
    assert before.code == 0
    assert "no such file" in before.out
    assert "stall_after      not set: a number of seconds" in before.out
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text('theme = "helix-paper"\nstall_aftr = 3\n')
    after = cli("settings")
    assert after.code == 1
    assert 'theme            "helix-paper"' in after.out
    assert "stall_aftr: no such setting; did you mean stall_after?" in after.err
    document = cli("settings", "--json").document
    assert (document["settings"]["theme"], document["settings"]["stall_after"]) == ("helix-paper", None)
    assert document["problems"] == ["stall_aftr: no such setting; did you mean stall_after?"]


def test_the_schema_is_printed_alone(cli: Cli) -> None:
    schema = json.loads(cli("settings", "--schema").out)
    assert "view" in schema["$defs"]["SettingsFile"]["properties"]
