"""A file at a line in the user's own editor, with the console out of the way meanwhile."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic

from textual.app import App, SuspendNotSupported

from helix_tui.core.ground import log as logs

_PLUS_LINE = {
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "emacsclient",
    "micro",
    "kak",
    "joe",
    "ne",
    "mcedit",
    "view",
}
"""Editors that take ``+12 file``; the others here write it otherwise, the rest get the file alone."""
_COLON = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "codium", "cursor", "code-insiders"}


def editor_command(path: Path, line: int, env: Mapping[str, str] | None = None) -> list[str] | None:
    """The command that opens a file at a line in ``$VISUAL``, ``$EDITOR`` or vi; None where there is none."""
    env = os.environ if env is None else env
    for wanted in (env.get("VISUAL", ""), env.get("EDITOR", ""), "vi"):
        try:
            words = shlex.split(wanted)
        except ValueError:
            continue
        if words and shutil.which(words[0], path=env.get("PATH")):
            name = os.path.basename(words[0])
            if name in _PLUS_LINE:
                return [*words, f"+{line}", os.fspath(path)]
            if name in _COLON:
                return [*words, f"{path}:{line}"]
            if name in _GOTO:
                return [*words, "--wait", "--goto", f"{path}:{line}"]
            return [*words, os.fspath(path)]
    return None


def run_editor(command: Sequence[str]) -> int:
    """Run an editor in this terminal to its end; its exit code.

    Raises:
        OSError: it does not start.
    """
    begun = monotonic()
    code = subprocess.run(command, check=False).returncode
    logs.program(command, f"rc {code}", monotonic() - begun, "editor")
    return code


def open_at(app: App[object], path: Path, line: int) -> str:
    """Open a file at a line and come back when the editor has ended; a sentence where that cannot be."""
    if not path.is_file():
        return f"{path.name} is not in the work tree"
    command = editor_command(path, line)
    if command is None:
        return "no editor is found; set EDITOR"
    try:
        with app.suspend():
            run_editor(command)
    except SuspendNotSupported:
        return "this terminal cannot be left for an editor"
    except OSError as error:
        return f"{command[0]} does not start: {error.strerror}"
    return ""
