"""The plugin in a real Claude Code: valid, installed, listed, its doors open in a session, gone when removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.memory.memory_store import open_memory
from helix_tui.core.supervision.agents.hooks import PLUGIN_FOLDER
from helix_tui.core.supervision.stages.commands import ROWS
from tests.real.model import serving
from tests.real.stranger import Stranger

OLD_TEXT = (
    'python3 "$HELIX_PLUGIN_ROOT/lib/memory/core.py" store --type failure '
    '--trigger "Import cycle in src/auth.py" --resolution "Move the types"'
)
"""A command as agents of the older plugin have it in their text."""

SUB_AGENT = 'HELIX="$(cat .helix/plugin_root)"; python3 "$HELIX/lib/memory/core.py" recall "auth" --limit 3'
"""The same for an agent without variables."""


@pytest.fixture
def person(stranger: Stranger, claude: Path) -> Stranger:
    """The stranger with a real Claude Code in the agent's place, and a memory store."""
    link = stranger.base / "bin" / "claude"
    link.unlink()
    link.symlink_to(claude.resolve())
    (stranger.project / ".helix").mkdir()
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}
    return replace(stranger, extra=quiet)


def files(home: Path) -> set[str]:
    """What is in a home but for Claude Code's own state and our log."""
    own = (".claude.json", "backups", "helix-tui", "settings.json", "_plugins.json", "marketplaces.json")
    paths = (str(path.relative_to(home)) for path in home.rglob("*") if path.is_file() or path.is_symlink())
    return {path for path in paths if not any(word in path for word in own)}


def test_it_is_valid_installed_listed_and_leaves_nothing(person: Stranger) -> None:
    strict = person.run("claude", "plugin", "validate", "--strict", str(PLUGIN_FOLDER))
    assert strict.returncode == 0, strict.stdout
    before = files(person.home)
    made = person.tui("install-plugin")
    assert made.returncode == 0, made.stderr
    assert "helix-tui@helix-tui" in person.run("claude", "plugin", "list").stdout
    details = person.run("claude", "plugin", "details", "helix-tui@helix-tui").stdout
    for name in ROWS:
        assert f"helix-{name}" in details
    assert "SessionStart" in details
    gone = person.tui("install-plugin", "--remove")
    assert gone.returncode == 0, gone.stderr
    assert "helix-tui@helix-tui" not in person.run("claude", "plugin", "list").stdout
    assert files(person.home) == before
    assert not list(person.home.rglob("plugins/cache/helix-tui"))


def test_a_session_has_its_doors_and_an_old_agents_text_runs_unchanged(person: Stranger) -> None:
    assert person.tui("install-plugin").returncode == 0
    steps: list[dict[str, Any]] = [
        {"tool": "Bash", "input": {"command": OLD_TEXT, "description": "store"}},
        {"tool": "Bash", "input": {"command": SUB_AGENT, "description": "recall"}},
        {"tool": "Bash", "input": {"command": "helix memory health --json", "description": "health"}},
        {"text": "Done."},
    ]
    with serving({"": steps}) as model:
        more = {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}", "ANTHROPIC_API_KEY": "none"}
        place = replace(person, extra={**person.extra, **more})
        done = place.run("claude", "-p", "Remember it, please", "--allowedTools", "Bash")
        assert done.returncode == 0, (done.stdout, done.stderr)
        said = str(model.asked)
    with open_memory(place.project / ".helix" / "helix.db", teacher="person") as memory:
        (kept,) = memory.list()
    assert kept.trigger == "Import cycle in src/auth.py"
    assert '"name": "import-cycle-in-src-auth-py"' in said
    assert '"schema":"memory/1"' in said, "`helix` is a command in the session"
    assert "helix-check" in said, "the skills are offered"
    assert place.tui("install-plugin", "--remove").returncode == 0
    assert not (place.project / ".helix" / "plugin_root").exists()
