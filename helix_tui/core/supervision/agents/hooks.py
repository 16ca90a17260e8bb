"""Install and remove HELIX's hooks in other programs, leaving everything else unchanged.

`install` is for the hook that ddx runs before it accepts a new bead (answered by `judge_stdin`), `merge` for those in
Claude Code's settings.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.ddx.names import ATTEMPT_ID
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import RefusedFileError, names_in, open_file, status_of
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.writes import prove, replace_file
from helix_tui.core.ground.writes import remove as remove_file

if TYPE_CHECKING:
    from helix_tui.core.editing.authoring import AuthoringVerdict
    from helix_tui.core.editing.execute.gate import WriteGate

NAME = "validate-bead-create"

MARK = "# made by helix-tui install-hooks"
"""The line that marks our own hook."""

SKIP = "HELIX_SKIP_TRIAGE"
"""If set to 1 in the environment, every bead passes."""

MAX_BEAD = 4 << 20

BY_NAME = ("helix-tui",)
"""How a committed file calls this program, without a machine's path."""

MAX_HOOK = 1 << 20
"""Bytes of a hook searched for our mark."""

EDITS = "Edit|Write|MultiEdit|NotebookEdit"
"""Tools that change a file: memories about the file are shown before each."""

EVENTS: dict[str, tuple[str, str | None, int]] = {
    "SessionStart": ("session-start", None, 20),
    "UserPromptSubmit": ("user-prompt-submit", None, 10),
    "PreToolUse": ("pre-tool-use", EDITS, 10),
    "SubagentStart": ("subagent-start", None, 15),
    "SubagentStop": ("subagent-stop", None, 15),
    "Stop": ("stop", None, 15),
    "SessionEnd": ("session-end", None, 30),
}
"""Claude Code's event -> our event, the tools it is for, and its timeout in seconds."""

MAX_SETTINGS = 4 << 20

MAX_SESSIONS = 50
"""Maximum session records read per attempt."""

_OURS = re.compile(r"\bhelix[-_]tui\S*\s+hook\s+(?:" + "|".join(event for event, *_ in EVENTS.values()) + r")\b")

PLUGIN = "helix-tui@helix-tui"
"""Our plugin's name in Claude Code's settings: plugin@marketplace."""


class ForeignHook(HelixError):
    """Another hook exists, which is left unchanged."""


class Installed(Struct, frozen=True):
    """The result of an installation."""

    path: Path
    changed: bool


def hook_path(project: Project) -> Path:
    """The path at which ddx looks for the hook."""
    return project.ddx_dir / "hooks" / NAME


def hook_text(command: Collection[str] = BY_NAME) -> str:
    """The hook: runs this program if it is installed, else lets the bead pass."""
    words = shlex.join(command)
    first = shlex.quote(next(iter(command)))
    return f"""#!/bin/sh
{MARK}
# ddx gives the bead as JSON on stdin. 0: taken, 1: refused, 2: taken with a warning.
[ "${{{SKIP}:-}}" = 1 ] && exit 0
command -v {first} >/dev/null 2>&1 || exit 0
exec {words} install-hooks --judge -C "$(dirname "$0")/../.."
"""


def install(project: Project, gate: WriteGate, command: Collection[str] = BY_NAME) -> Installed:
    """Install our hook.

    Raises:
        ForeignHook: another hook is there.
        WritesForbidden: --read-only.
    """
    gate.check()
    path = hook_path(project)
    text = hook_text(command)
    have = _ours(path)
    if have == text and _runs(path):
        return Installed(path, False)
    with gate.open():
        replace_file(path, text.encode(), 0o755)
    if command != BY_NAME:  # by name it is known by its digest
        from helix_tui.core.editing.execute.trust import allow_written  # Claude Code's hooks start without it

        allow_written(project, path)
    return Installed(path, True)


def remove(project: Project, gate: WriteGate) -> Installed:
    """Remove our hook.

    Raises:
        ForeignHook: another hook is there.
        WritesForbidden: --read-only.
    """
    gate.check()
    path = hook_path(project)
    if _ours(path) is None:
        return Installed(path, False)
    with gate.open():
        remove_file(path)
    return Installed(path, True)


def would_change(project: Project, *, remove: bool, command: Collection[str] = BY_NAME) -> bool:
    """Whether `install`, or `remove`, would change anything.

    Raises:
        ForeignHook: another hook is there.
    """
    path = hook_path(project)
    have = _ours(path)
    if remove or have is None:
        return (have is not None) == remove
    return have != hook_text(command) or not _runs(path)


def _runs(path: Path) -> bool:
    status = status_of(path)
    return status is not None and bool(status.st_mode & stat.S_IXUSR)


def _ours(path: Path) -> str | None:
    """Our installed hook; None if there is no hook.

    Raises:
        ForeignHook: another hook is there, even a broken link.
    """
    try:
        # a link is another hook, wherever it leads
        prove(path)
        with open_file(path) as file:
            have = file.read(MAX_HOOK).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except RefusedFileError:
        have = ""
    if MARK not in have.splitlines():
        raise ForeignHook(f"{path} is not ours and stays as it is; move it away, or call `helix-tui` from it")
    return have


def judge_stdin(raw: bytes, project: Project, env: Mapping[str, str]) -> AuthoringVerdict:
    """Judge the bead that ddx passes to the hook."""
    # imported here: the hooks of a session need the rest of this module and wait for no planner
    from helix_tui.core.editing.authoring import AuthoringFinding, AuthoringVerdict, judge

    if env.get(SKIP) == "1":
        return AuthoringVerdict()
    if len(raw) > MAX_BEAD:
        return AuthoringVerdict((AuthoringFinding("error", "size", f"the bead has more than {MAX_BEAD >> 20} MB"),))
    try:
        bead = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        bead = None
    if not isinstance(bead, dict):
        return AuthoringVerdict((AuthoringFinding("error", "json", "ddx handed over something that is not a bead"),))
    tracker = read_tracker(project.beads_file)
    known = None if tracker.missing or tracker.problem else tracker.beads
    return judge(bead, known)


class UnreadableSettings(HelixError, ValueError):
    """The settings exist, but cannot be merged into without loss."""


class MergedSettings(Struct, frozen=True):
    """The result of a merge."""

    path: Path
    text: str
    """The settings as they are now, or would be; empty if the file is removed."""
    changed: bool


PLUGIN_FOLDER = Path(__file__).resolve().parents[3] / "plugin"
"""The plugin's folder in the package."""


def config_folder(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps a person's settings and the record of each session."""
    home = env.get("HOME") or os.path.expanduser("~")
    return Path(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"))


def session_records(attempt_id: str, env: Mapping[str, str]) -> list[Path]:
    """Claude Code's own records of the sessions in an attempt's folder, which is named by the attempt.

    They remain when the folder and its files are deleted.
    """
    if not ATTEMPT_ID.fullmatch(attempt_id):
        return []
    projects = config_folder(env) / "projects"
    folders = [projects / name for name in names_in(projects) if name.endswith(f"-{attempt_id}")]
    records = [folder / name for folder in folders for name in names_in(folder) if name.endswith(".jsonl")]
    return records[:MAX_SESSIONS]


def plugin_enabled(project: Project, env: Mapping[str, str]) -> bool:
    """Whether Claude Code runs the hooks of our plugin here, enabled by the person or the project."""
    home = config_folder(env)
    folder = project.root / ".claude"
    enabled = False
    # later ones take precedence: the person's, the project's, the person's for this project
    for path in (home / "settings.json", folder / "settings.json", folder / "settings.local.json"):
        try:
            switches = _parse(_read(path), path).get("enabledPlugins")
        except UnreadableSettings:
            continue
        if isinstance(switches, dict) and isinstance(switches.get(PLUGIN), bool):
            enabled = switches[PLUGIN]
    return enabled


def settings_path(project: Project) -> Path:
    """The project's settings."""
    return project.root / ".claude" / "settings.json"


def merge(
    project: Project, gate: WriteGate, command: Sequence[str], *, remove: bool = False, dry: bool = False
) -> MergedSettings:
    """Write our hooks into the project's settings, or remove them.

    Args:
        command: the command line of this program.
        remove: remove our hooks instead.
        dry: only return the new content.

    Raises:
        UnreadableSettings: the file is not a JSON object, or not in the documented form; it is left unchanged.
        WritesForbidden: --read-only.
    """
    path = settings_path(project)
    _check_written(path)
    raw = _read(path)
    before = _parse(raw, path)
    after = _without_ours(before, path)
    if not remove:
        after = _with_ours(after, command, path)
    if after == before and (raw is not None or not after):
        return MergedSettings(path, (raw or b"").decode("utf-8"), False)
    text = _written(after, raw) if after or not remove else ""
    if dry:
        return MergedSettings(path, text, True)
    gate.check()
    with gate.open():
        if _read(path) != raw:
            raise UnreadableSettings(f"{path} was changed meanwhile; nothing was written, try again")
        if text:
            replace_file(path, text.encode(), _mode(path))
        else:
            remove_file(path)
    return MergedSettings(path, text, True)


def _check_written(path: Path) -> None:
    try:
        prove(path)
    except RefusedFileError as error:
        raise UnreadableSettings(f"{path} is not changed: {error.strerror}") from None
    except FileNotFoundError:
        return


def hooks_of(command: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Our hooks in Claude Code's form."""
    return {
        name: [
            ({"matcher": matcher} if matcher else {})
            | {"hooks": [{"type": "command", "command": f"{shlex.join(command)} hook {event}", "timeout": timeout}]}
        ]
        for name, (event, matcher, timeout) in EVENTS.items()
    }


def _read(path: Path) -> bytes | None:
    """The file's bytes; None if it is missing.

    Raises:
        UnreadableSettings: it is not a file, or far too large.
    """
    try:
        with open_file(path) as file:
            # one byte beyond the limit shows that there is more
            raw = file.read(MAX_SETTINGS + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnreadableSettings(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > MAX_SETTINGS:
        raise UnreadableSettings(f"{path} has more than {MAX_SETTINGS >> 20} MB; that is not a settings file")
    return raw


def _parse(raw: bytes | None, path: Path) -> dict[str, Any]:
    if raw is None or not raw.strip():
        return {}

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        # Python keeps the last of two equal keys: writing that back would lose the first
        if len(found) != len(items):
            raise ValueError("a key appears twice")
        return found

    def constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        document = json.loads(raw.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
        json.dumps(document, allow_nan=False)  # a number that overflows is read, but cannot be written
    except (ValueError, RecursionError) as error:
        raise UnreadableSettings(f"{path} is not JSON that can be merged into: {error}") from None
    if not isinstance(document, dict):
        raise UnreadableSettings(f"{path} holds no JSON object")
    return document


def _groups(document: dict[str, Any], path: Path) -> dict[str, list[Any]]:
    """The hooks by event, checked against the documented form."""
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise UnreadableSettings(f"“hooks” in {path} is not a table of lists; correct it first")
    return hooks


def _without_ours(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The settings without our hooks and without parts that become empty."""
    hooks = _groups(document, path)
    left: dict[str, list[Any]] = {}
    for event, groups in hooks.items():
        kept = [mine for group in groups for mine in _group_without_ours(group)]
        if kept or not groups:
            left[event] = kept
    if left == hooks:
        return document
    rest = {key: value for key, value in document.items() if key != "hooks"}
    return {key: (left if key == "hooks" else document[key]) for key in document} if left else rest


def _group_without_ours(group: Any) -> list[Any]:
    """A list with the group without our hooks; empty if nothing else was in the group."""
    entries = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(entries, list):
        return [group]
    kept = [entry for entry in entries if not _is_ours(entry)]
    if len(kept) == len(entries):
        return [group]
    return [group | {"hooks": kept}] if kept else []


def _is_ours(entry: Any) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _with_ours(document: dict[str, Any], command: Sequence[str], path: Path) -> dict[str, Any]:
    hooks = dict(_groups(document, path))
    for event, groups in hooks_of(command).items():
        hooks[event] = [*hooks.get(event, []), *groups]
    return document | {"hooks": hooks}


def _written(document: dict[str, Any], raw: bytes | None) -> str:
    """The settings as text, indented as they were."""
    indent: str | int = 2
    if raw is not None and (match := re.search(rb"\n([ \t]+)\"", raw)):
        indent = match.group(1).decode()
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def _mode(path: Path) -> int:
    status = status_of(path)
    return 0o644 if status is None else stat.S_IMODE(status.st_mode)
