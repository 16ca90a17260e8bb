"""The hook that ddx asks before it takes a new bead, and how it gets into a project.

Protocol: the bead as JSON on stdin; exit 0 takes it, 1 refuses it, 2 warns and takes it (docs/formats/ddx.md
§2). The hook itself is a few lines that call this program by its name; where that is not on PATH they let
every bead pass, for a project must not stop because a tool is gone. It belongs to the project and is to be
committed: ddx since May starts no attempt beside a file that nobody committed.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from msgspec import Struct

from helix_tui.core.beads.tracker import read_tracker
from helix_tui.core.editing.authoring import AuthoringFinding, AuthoringVerdict, judge
from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import replace_file
from helix_tui.core.ground.git import open_nonblocking
from helix_tui.core.ground.project import Project

NAME = "validate-bead-create"

MARK = "# made by helix-tui install-hooks"
"""The line by which our own hook is known."""

SKIP = "HELIX_SKIP_TRIAGE"
"""Set to 1 in the environment, it lets every bead pass."""

MAX_BEAD = 4 << 20

BY_NAME = ("helix-tui",)
"""How a file that is committed calls this program: no path of one machine is in it."""

MAX_HOOK = 1 << 20
"""Bytes of a hook that are looked through for our mark."""


class ForeignHook(HelixError):
    """There is a hook that is not ours; it is left as it is."""


class Installed(Struct, frozen=True):
    """What came of an installation."""

    path: Path
    changed: bool


def hook_path(project: Project) -> Path:
    """Where ddx looks for the hook."""
    return project.ddx_dir / "hooks" / NAME


def hook_text(command: Collection[str] = BY_NAME) -> str:
    """The hook: it runs this program where it is found, and lets the bead pass where it is not."""
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
    """Put our hook in its place.

    Raises:
        ForeignHook: one that is not ours stands there.
        WritesForbidden: --read-only.
    """
    gate.check()
    path = hook_path(project)
    text = hook_text(command)
    have = _ours(path)
    if have == text and os.stat(path).st_mode & stat.S_IXUSR:
        return Installed(path, False)
    with gate.open():
        replace_file(path, text.encode(), 0o755)
    return Installed(path, True)


def remove(project: Project, gate: WriteGate) -> Installed:
    """Take our hook away.

    Raises:
        ForeignHook: one that is not ours stands there.
        WritesForbidden: --read-only.
    """
    gate.check()
    path = hook_path(project)
    if _ours(path) is None:
        return Installed(path, False)
    with gate.open():
        path.unlink(missing_ok=True)
    return Installed(path, True)


def would_change(project: Project, *, remove: bool, command: Collection[str] = BY_NAME) -> bool:
    """Whether `install`, or `remove`, would change anything.

    Raises:
        ForeignHook: one that is not ours stands there.
    """
    path = hook_path(project)
    have = _ours(path)
    if remove or have is None:
        return (have is not None) == remove
    return have != hook_text(command) or not os.stat(path).st_mode & stat.S_IXUSR


def _ours(path: Path) -> str | None:
    """The hook that stands there, if it is ours; None where there is none.

    Raises:
        ForeignHook: there is another one, be it a link that leads nowhere.
    """
    try:
        with open(path, "rb", opener=open_nonblocking) as file:
            have = file.read(MAX_HOOK).decode("utf-8", "replace")
    except FileNotFoundError:
        if not os.path.lexists(path):
            return None
        have = ""
    except IsADirectoryError:
        have = ""
    if path.is_symlink() or MARK not in have.splitlines():
        raise ForeignHook(f"{path} is not ours and stays as it is; move it away, or call `helix-tui` from it")
    return have


def judge_stdin(raw: bytes, project: Project, env: Mapping[str, str]) -> AuthoringVerdict:
    """What the hook says of the bead that ddx hands it."""
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
