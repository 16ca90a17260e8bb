"""``helix-tui install-plugin``: install the plugin with Claude Code's own commands, or the older links.

Nothing that helix-tui did not make is replaced or removed: links that point elsewhere, other files.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helix_tui.cli.call import Call, CliError, locate
from helix_tui.core.ddx.client import MISSING
from helix_tui.core.ground.files import text_of
from helix_tui.core.ground.process import run as run_program
from helix_tui.core.ground.processes.programs import program, python_argv
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.writes import replace_file
from helix_tui.core.supervision.agents.hooks import PLUGIN, PLUGIN_FOLDER, config_folder

_NAME = PLUGIN.partition("@")[0]
_TIMEOUT_S = 120.0
_MARK = "# made by `helix-tui install-plugin --links`"
_LAUNCHER = f"""#!/bin/sh
{_MARK}
exec {{door}} "$@"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--remove", action="store_true", help="remove everything that was installed")
    parser.add_argument(
        "--links",
        action="store_true",
        help="the older way: links to the skills in ~/.agents/skills and ~/.claude/skills, and ~/.local/bin/helix",
    )
    parser.add_argument(
        "--scope",
        choices=("user", "project", "local"),
        default="user",
        help="for which projects Claude Code enables it (default: user, all of your projects)",
    )
    parser.add_argument("--claude", metavar="PATH", default="", help="the Claude Code executable (default: from PATH)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be run or written; do nothing")


def run(call: Call) -> int:
    """Install the plugin, or remove it."""
    if call.read_only and not call.options.dry_run:
        raise CliError("--read-only: nothing is installed or removed", "Run it without --read-only.", exit_code=1)
    return _links(call) if call.options.links else _plugin(call)


# --- by Claude Code's own commands -----------------------------------------------------------------------


def _plugin(call: Call) -> int:
    options = call.options
    claude = options.claude or program("claude") or ""
    commands = list(_commands(claude or "claude", options.scope, remove=options.remove))
    if options.dry_run or not claude:
        if call.json and claude:
            call.emit({"commands": commands, "done": False})
            return 0
        for words in commands:
            call.print(shlex.join(words))
        if claude:
            return 0
        raise CliError(
            "there is no claude on PATH",
            "Install Claude Code, name it with --claude PATH, or use --links; the commands above do it by hand.",
            exit_code=MISSING,
        )
    said = [_run(call, words, lenient=options.remove) for words in commands]
    left = _sweep(call) if options.remove else _print_python()
    if call.json:
        call.emit({"commands": commands, "done": True, "output": said, "files": [str(path) for path in left]})
    else:
        call.print(f"{'removed' if options.remove else 'installed'}: {PLUGIN} ({options.scope})")
        if not options.remove:
            call.print("New sessions of Claude Code have it: skills helix-…, agents, hooks, and `helix` as a command.")
    return 0


def _commands(claude: str, scope: str, *, remove: bool) -> Iterator[list[str]]:
    if remove:
        yield [claude, "plugin", "uninstall", PLUGIN, "--scope", scope]
        yield [claude, "plugin", "marketplace", "remove", _NAME]
    else:
        yield [claude, "plugin", "validate", "--strict", str(PLUGIN_FOLDER)]
        yield [claude, "plugin", "marketplace", "add", str(PLUGIN_FOLDER), "--scope", scope]
        yield [claude, "plugin", "install", PLUGIN, "--scope", scope]


def _run(call: Call, words: list[str], *, lenient: bool) -> str:
    """Run one command of Claude Code; return its output.

    Raises:
        CliError: it cannot be started, or fails; with ``lenient``, "not installed" is not a failure.
    """
    try:
        done = run_program(words, cwd=locate(call).root, timeout=_TIMEOUT_S)
    except OSError as error:
        raise CliError(f"{words[0]} does not start: {error.strerror}", "Name another with --claude PATH.") from None
    said = clean_line(" ".join((done.out + "\n" + done.err).split()), 1_000)
    if done.timed_out or (done.rc != 0 and not lenient):
        what = f"no answer after {_TIMEOUT_S:g} s" if done.timed_out else said or f"exit code {done.rc}"
        raise CliError(f"`{shlex.join(words)}`: {what}", "Run it by hand to see its whole output.")
    if done.rc != 0:
        call.note(f"helix: {said}")
    return said


def _cached() -> Path:
    """Where Claude Code keeps its copy of the plugin."""
    return config_folder(os.environ) / "plugins" / "cache" / _NAME


def _print_python() -> list[Path]:
    """Record beside the copy which Python has helix-tui, for shells where it is not on PATH."""
    reported: list[Path] = []
    for door in _cached().glob("*/*/bin/helix"):
        path = door.parents[1] / ".python"
        replace_file(path, f"{sys.executable}\n".encode())
        reported.append(path)
    return reported


def _sweep(call: Call) -> list[Path]:
    """Remove what Claude Code leaves behind: its orphaned copy, and our note in this project."""
    gone: list[Path] = []
    if _cached().is_dir():
        shutil.rmtree(_cached(), ignore_errors=True)
        gone.append(_cached())
    note = locate(call).helix_dir / "plugin_root"
    if text_of(note).strip().startswith((str(_cached()), str(PLUGIN_FOLDER))):
        note.unlink(missing_ok=True)
        gone.append(note)
    return gone


# --- the older links -------------------------------------------------------------------------------------


def _links(call: Call) -> int:
    options = call.options
    wanted = dict(_wanted_links())
    launcher = Path.home() / ".local" / "bin" / "helix"
    done: list[Path] = []
    foreign: list[Path] = []
    for path, target in wanted.items():
        if _ours(path):
            if options.remove:
                done.append(path)
        elif os.path.lexists(path):
            foreign.append(path)
        elif not options.remove:
            done.append(path)
        if path in done and not options.dry_run:
            _unlink(path) if options.remove else _link(path, target)
    ours = _MARK in text_of(launcher)
    if os.path.lexists(launcher) and not ours:
        foreign.append(launcher)
    elif ours or not options.remove:
        done.append(launcher)
        if not options.dry_run:
            _unlink(launcher) if options.remove else _write_launcher(launcher)
    return _print_links(call, done, foreign)


def _print_links(call: Call, done: list[Path], foreign: list[Path]) -> int:
    options = call.options
    document: dict[str, Any] = {"changed": done, "foreign": foreign, "done": not options.dry_run}
    if call.json:
        call.emit(document)
    else:
        verb = ("would remove" if options.remove else "would make") if options.dry_run else ""
        word = verb or ("removed" if options.remove else "made")
        call.print(f"{word} {len(done)} link{'' if len(done) == 1 else 's'} and launchers")
    for path in foreign:
        call.note(f"helix: left as is, not made by helix-tui: {clean_line(str(path))}")
    if not options.remove:
        call.note("helix: the plugin is the better way, with hooks and agents: helix-tui install-plugin")
    return 0


def _wanted_links() -> Iterator[tuple[Path, Path]]:
    """Each link and its target: skills in ~/.agents, mirrored in ~/.claude."""
    for skill in sorted((PLUGIN_FOLDER / "skills").iterdir()):
        if (skill / "SKILL.md").is_file():
            yield Path.home() / ".agents" / "skills" / skill.name, skill
            yield config_folder(os.environ) / "skills" / skill.name, skill


def _ours(path: Path) -> bool:
    """Whether a link points into our plugin, of this installation or of a removed one."""
    if not path.is_symlink():
        return False
    target = Path(os.path.realpath(path))
    return target.is_relative_to(PLUGIN_FOLDER) or target.parts[-4:-1] == ("helix_tui", "plugin", "skills")


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def _unlink(path: Path) -> None:
    """Remove a link or launcher, and the folders made for it that are now empty."""
    path.unlink()
    for folder in (path.parent, path.parent.parent):
        if folder == Path.home() or not folder.is_dir() or any(folder.iterdir()):
            return
        folder.rmdir()


def _write_launcher(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    door = shlex.join(python_argv("helix_tui"))
    replace_file(path, _LAUNCHER.format(door=door).encode())
    path.chmod(0o755)
