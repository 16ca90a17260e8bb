"""Claude Code's settings: our hooks come and go, and nothing else in the file does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import helix_tui
from helix_tui.core.editing.execute.gate import WriteGate, WritesForbidden
from helix_tui.core.ground.project import Project, find_project
from helix_tui.core.supervision.agents.hooks import (
    EVENTS,
    UnreadableSettings,
    hooks_of,
    merge,
    settings_path,
)

pytestmark = pytest.mark.long

COMMAND = ["helix-tui"]
PLUGIN = Path(helix_tui.__file__).with_name("plugin")


def _project(folder: Path, text: str | bytes | None = None) -> Project:
    project = find_project(folder, env={})
    if text is not None:
        path = folder / ".claude" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return project


def _install(project: Project, *, remove: bool = False) -> dict[str, Any]:
    merge(project, WriteGate(project), COMMAND, remove=remove)
    path = settings_path(project)
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


THEIRS = {
    "model": "opus",
    "permissions": {"allow": ["Bash(ls:*)"], "deny": []},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}],
        "Notification": [{"hooks": [{"type": "command", "command": "say done"}]}],
    },
    "ümlaut": "€",
}


def test_hooks_are_added_where_there_is_nothing(tmp_path: Path) -> None:
    found = _install(_project(tmp_path))
    assert set(found["hooks"]) == set(EVENTS)
    assert found["hooks"]["PreToolUse"][0]["matcher"].startswith("Edit|Write")
    assert found["hooks"]["SessionStart"][0]["hooks"][0]["command"] == "helix-tui hook session-start"


def test_everything_else_stays(tmp_path: Path) -> None:
    found = _install(_project(tmp_path, json.dumps(THEIRS)))
    assert {key: value for key, value in found.items() if key != "hooks"} == {
        key: value for key, value in THEIRS.items() if key != "hooks"
    }
    assert found["hooks"]["PreToolUse"][0] == THEIRS["hooks"]["PreToolUse"][0]  # type: ignore[index]
    assert found["hooks"]["Notification"] == THEIRS["hooks"]["Notification"]  # type: ignore[index]


def test_a_second_time_changes_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path, json.dumps(THEIRS, indent=4))
    _install(project)
    before = settings_path(project).read_bytes()
    assert not merge(project, WriteGate(project), COMMAND).changed
    assert settings_path(project).read_bytes() == before
    assert b'\n    "model"' in before


def test_a_moved_program_replaces_its_old_hooks(tmp_path: Path) -> None:
    project = _project(tmp_path)
    merge(project, WriteGate(project), ["/old/bin/helix-tui"])
    merge(project, WriteGate(project), ["/new/python", "-m", "helix_tui"])
    text = settings_path(project).read_text()
    assert "/old/" not in text
    assert text.count(" hook ") == len(EVENTS)


def test_removing_leaves_what_was_there(tmp_path: Path) -> None:
    project = _project(tmp_path, json.dumps(THEIRS))
    _install(project)
    assert _install(project, remove=True) == THEIRS


def test_removing_from_a_file_of_ours_removes_it(tmp_path: Path) -> None:
    project = _project(tmp_path)
    _install(project)
    _install(project, remove=True)
    assert not settings_path(project).exists()


def test_removing_what_is_not_there_changes_nothing(tmp_path: Path) -> None:
    assert not merge(_project(tmp_path), WriteGate(_project(tmp_path)), COMMAND, remove=True).changed


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b'"x"',
        b"{} trailing",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"hooks": []}',
        b'{"hooks": {"PreToolUse": {}}}',
        b"// comment\n{}",
        b"\xff\xfe{}",
        b"\0" * 100,
        b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_in_full_stays_as_it_is(tmp_path: Path, raw: bytes) -> None:
    project = _project(tmp_path, raw)
    for remove in (False, True):
        with pytest.raises(UnreadableSettings):
            merge(project, WriteGate(project), COMMAND, remove=remove)
    assert settings_path(project).read_bytes() == raw


@pytest.mark.parametrize("groups", [[None], [1], ["x"], [{}], [{"hooks": None}], [{"hooks": [1, {}]}]])
def test_strange_groups_are_kept(tmp_path: Path, groups: list[Any]) -> None:
    project = _project(tmp_path, json.dumps({"hooks": {"Stop": groups}}))
    assert _install(project)["hooks"]["Stop"][: len(groups)] == groups
    assert _install(project, remove=True) == {"hooks": {"Stop": groups}}


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").symlink_to(elsewhere)
    with pytest.raises(UnreadableSettings, match="a link"):
        _install(_project(tmp_path))
    assert elsewhere.read_text() == "{}"


def test_read_only_writes_nothing(tmp_path: Path) -> None:
    project = _project(tmp_path)
    with pytest.raises(WritesForbidden):
        merge(project, WriteGate(project, read_only=True), COMMAND)
    assert not settings_path(project).exists()


def test_dry_only_tells(tmp_path: Path) -> None:
    project = _project(tmp_path)
    told = merge(project, WriteGate(project, read_only=True), COMMAND, dry=True)
    assert told.changed
    assert "session-start" in told.text
    assert not settings_path(project).exists()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text().filter(lambda key: key != "hooks"), _JSON, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_installing_and_removing_is_the_way_back(tmp_path: Path, document: dict[str, Any]) -> None:
    project = _project(tmp_path, json.dumps(document))
    installed = _install(project)
    assert {key: value for key, value in installed.items() if key != "hooks"} == document
    assert _install(project, remove=True) == document


def test_the_plugin_has_the_same_hooks() -> None:
    text = (PLUGIN / "hooks" / "hooks.json").read_text()
    own = '\\"${CLAUDE_PLUGIN_ROOT}/bin/helix\\" hook'
    assert text.count(own) == len(EVENTS)
    assert json.loads(text.replace(own, "helix-tui hook")) == {"hooks": hooks_of(COMMAND)}


@pytest.mark.parametrize("name", ["plugin.json", "marketplace.json"])
def test_the_plugin_says_what_it_is(name: str) -> None:
    assert json.loads((PLUGIN / ".claude-plugin" / name).read_text())["name"] == "helix-tui"


def test_a_clone_is_the_same_marketplace() -> None:
    root = Path(__file__).parents[3]
    cloned = json.loads((root / ".claude-plugin" / "marketplace.json").read_text())
    own = json.loads((PLUGIN / ".claude-plugin" / "marketplace.json").read_text())
    assert (root / cloned["plugins"][0].pop("source")).resolve() == PLUGIN.resolve()
    own["plugins"][0].pop("source")
    assert cloned == own


@pytest.mark.parametrize(
    "path",
    [
        *(f"agents/{name}.md" for name in ("explorer", "planner", "builder", "observer")),
        *(f"skills/{name}/SKILL.md" for name in ("helix", "helix-query", "helix-stats")),
    ],
)
def test_agents_and_skills_have_a_head(path: str) -> None:
    text = (PLUGIN / path).read_text()
    _, head, body = text.split("---\n", 2)
    assert "\ndescription: " in head
    assert head.startswith("name: ")
    assert len(body) > 300
