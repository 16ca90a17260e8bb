"""Programs that take over the terminal or take a text: the user's editor, their pager, tmux.

Editor and pager open a file at a line; the console is suspended until they exit. Inside tmux,
which drops programs' clipboard sequences (OSC 52), copied text goes to tmux's buffer.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from textual.app import App, SuspendNotSupported

from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.text import clean_line
from helix_tui.terminal import TerminalDriver

if TYPE_CHECKING:
    from helix_tui.core.ddx.attempts.attempt import Attempt
    from helix_tui.screens.base import HelixScreen

GIT_SECONDS = 8.0
"""How long git may take for a diff: quitting the console waits for it."""

_PLUS_LINE = {"vi", "vim", "nvim", "nano", "emacs", "emacsclient", "micro", "kak", "joe", "ne", "mcedit", "view"}
"""Editors that take ``+12 file``; those below have other forms, and all the rest get only the file."""
_COLON = {"hx", "helix", "subl", "zed"}
_GOTO = {"code", "codium", "cursor", "code-insiders"}

TMUX_SECONDS = 2.0


def editor_command(path: Path, line: int, env: Mapping[str, str] | None = None) -> list[str] | None:
    """The command that opens a file at a line in ``$VISUAL``, ``$EDITOR`` or vi; None if there is none."""
    env = os.environ if env is None else env
    for wanted in (env.get("VISUAL", ""), env.get("EDITOR", ""), "vi"):
        try:
            words = shlex.split(wanted)
        except ValueError:
            continue
        if words and program(words[0], env):
            name = os.path.basename(words[0])
            if name in _PLUS_LINE:
                return [*words, f"+{line}", os.fspath(path)]
            if name in _COLON:
                return [*words, f"{path}:{line}"]
            if name in _GOTO:
                # without --wait they return at once, and the console would draw as if the editor had ended
                return [*words, "--wait", "--goto", f"{path}:{line}"]
            return [*words, os.fspath(path)]
    return None


def pager_command(path: Path, line: int, env: Mapping[str, str] | None = None) -> list[str] | None:
    """The command that shows a file from a line on in ``$PAGER``, or in less; None if there is none."""
    env = os.environ if env is None else env
    for wanted in (env.get("PAGER", ""), "less", "more"):
        try:
            words = shlex.split(wanted)
        except ValueError:
            continue
        if words and program(words[0], env):
            # other pagers might read +12 as a file name
            at = [f"+{line}"] if os.path.basename(words[0]) in ("less", "more", "most") and line > 1 else []
            return [*words, *at, os.fspath(path)]
    return None


def page_at(app: App[object], path: Path, line: int = 1) -> str:
    """Show a file in the pager until it exits; an error message if that fails."""
    if not path.is_file():
        return f"{path.name} no longer exists"
    command = pager_command(path, line)
    return leave_for(app, command) if command is not None else "no pager found; set PAGER"


def page_text(app: App[object], text: str, suffix: str) -> str:
    """Show a text in the pager."""
    with NamedTemporaryFile("w", suffix=suffix, encoding="utf-8") as file:
        file.write(text)
        file.flush()
        return page_at(app, Path(file.name))


def open_at(app: App[object], path: Path, line: int) -> str:
    """Open a file at a line until the editor exits; an error message if that fails."""
    if not path.is_file():
        return f"{path.name} is not in the work tree"
    command = editor_command(path, line)
    return leave_for(app, command) if command is not None else "no editor found; set EDITOR"


def open_first_change(screen: HelixScreen, attempt: Attempt | None) -> None:
    """Open the first line that an attempt changed once git has found it, unless the user has gone elsewhere."""
    from helix_tui.core.ddx.attempts.evidence import read_diff
    from helix_tui.widgets.text.diff_lines import first_change, parse_diff

    if attempt is None:
        screen.console.say("no attempt on this row: nothing to open in the editor", "warning")
        return
    app, root = screen.app, screen.console.snapshot.project.root

    def opened(place: tuple[Path, int] | None, why: str) -> None:
        if not screen.is_current:
            return
        said = open_at(app, *place) if place is not None else f"no diff to open: {why or 'it changed no file'}"
        if said:
            screen.console.say(clean_line(said, 300), "warning")

    def work() -> None:
        diff = read_diff(root, attempt, timeout=GIT_SECONDS)
        files = parse_diff(diff.text)
        first = first_change(files)
        place = (root / files[first[0]].path, first[1]) if first is not None else None
        app.call_from_thread(opened, place, diff.error)

    screen.run_worker(work, thread=True, group="editor", exclusive=True)


_NO_OTHER = "no other program can run in this terminal"


def leave_for(app: App[Any], command: Sequence[str]) -> str:
    """Give the terminal to a program until it exits; an error message if it fails."""
    lender: TerminalDriver | None = getattr(app, "terminal", None)
    if lender is None:
        return _NO_OTHER
    try:
        with app.suspend():
            code = lender.lend(command)
    except SuspendNotSupported:
        return _NO_OTHER
    except OSError as error:
        return f"{command[0]} does not start: {error.strerror}"
    return f"{command[0]} ended with {code}" if code else ""


def into_tmux(text: str, what: str, env: Mapping[str, str]) -> tuple[str, bool]:
    """Pass a text to tmux for its buffer and the clipboard; return a message, and whether it worked.

    This runs tmux: call it from a worker. ``-w``, which passes the text on, came with tmux 3.2.
    """
    said = ""
    try:
        for words in (("load-buffer", "-w", "-"), ("load-buffer", "-")):
            done = run(("tmux", *words), env=env, timeout=TMUX_SECONDS, given=text.encode())
            if done.rc == 0 and not done.timed_out:
                beyond = ", and to the clipboard if the terminal allows it"
                return f"copied {what} to tmux's buffer{beyond if '-w' in words else ' (only)'}", True
            said = _why(done)
    except OSError as error:
        said = error.strerror or str(error)
    return _only_sent(what, said), False


def _why(done: Finished) -> str:
    if done.timed_out:
        return f"no answer in {TMUX_SECONDS:g} s"
    return clean_line(done.err.strip().rpartition("\n")[2], 120) or f"exit {done.rc}"


def _only_sent(what: str, why: str) -> str:
    return f"sent {what}, but tmux may drop it: {why}. To allow it: “set -g set-clipboard on”"
