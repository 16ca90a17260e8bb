"""``helix-tui install-hooks``: the hook with which ddx checks a new bead, and the hooks of Claude Code.

With ``--judge`` this is the hook itself: a bead on stdin, the verdict as exit code.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path

import helix_tui
from helix_tui.cli.call import Call, CliError, locate
from helix_tui.cli.editing.change import clear_errors
from helix_tui.core.ddx.git_state import uncommitted
from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.supervision.agents.hooks import (
    BY_NAME,
    EVENTS,
    MAX_BEAD,
    ForeignHook,
    UnreadableSettings,
    hook_path,
    hook_text,
    install,
    judge_stdin,
    merge,
    remove,
    would_change,
)
from helix_tui.core.supervision.stages.commit import CommitError, commit_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "--judge", action="store_true", help="act as the hook: judge the bead on stdin; exit 0, 1 or 2 as ddx asks"
    )

    parser.add_argument(
        "--claude",
        action="store_true",
        help="install Claude Code's hooks instead, in .claude/settings.json: its agents get memories",
    )
    parser.add_argument("--remove", action="store_true", help="remove the hook, or with --claude the hooks")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written")
    parser.add_argument(
        "--commit", action="store_true", help="commit this file only: ddx starts no attempt while it is uncommitted"
    )
    parser.add_argument(
        "--plugin-path",
        action="store_true",
        help="print the folder of the Claude Code plugin: hooks, agents and skills together",
    )


def run(call: Call) -> int:
    """Install the hook, or act as the hook."""
    options = call.options
    if options.plugin_path:
        return _plugin(call)
    project = locate(call)
    if options.judge:
        return _judge(call, project)
    if options.claude:
        return _claude(call, project)
    if not project.ddx_dir.is_dir():
        raise CliError(f"there is no {clean_line(str(project.ddx_dir))}", "Run `ddx init` in the project first.")
    if options.dry_run:
        return _foretell(call, project)
    gate = WriteGate(project, call.read_only)
    try:
        with clear_errors():
            installed = remove(project, gate) if options.remove else install(project, gate)
    except ForeignHook as error:
        raise CliError(clean_line(str(error), 400), f"Check the file: {clean_line(str(hook_path(project)))}") from None
    except OSError as error:
        raise CliError(f"the hook cannot be written: {error.strerror}") from None
    done, had = ("removed", "no helix-tui hook") if options.remove else ("installed", "already installed")
    return _conclude(call, project, installed.path, installed.changed, done if installed.changed else had)


def _claude(call: Call, project: Project) -> int:
    """Merge helix-tui's hooks into this project's Claude Code settings, or remove them."""
    gate = WriteGate(project, call.read_only)
    try:
        with clear_errors():
            merged = merge(project, gate, BY_NAME, remove=call.options.remove, dry=call.options.dry_run)
    except UnreadableSettings as error:
        raise CliError(
            clean_line(str(error), 400), "The file was not changed. Correct it by hand, then try again."
        ) from None
    except OSError as error:
        raise CliError(f"the settings cannot be written: {error.strerror}") from None
    if call.options.dry_run and call.json:
        call.emit({"path": merged.path, "changed": merged.changed, "events": list(EVENTS)})
        return 0
    if call.options.dry_run:
        call.print(clean_block(merged.text).rstrip())
        return 0
    done = ("removed from", "not in") if call.options.remove else ("installed in", "already installed in")
    word = done[0] if merged.changed else done[1]
    return _conclude(call, project, merged.path, merged.changed, word, events=list(EVENTS))


def _conclude(call: Call, project: Project, path: Path, changed: bool, word: str, **more: object) -> int:
    """Report what was done, and commit the file or say that it has to be committed."""
    # DDX_BEAD_DIR may point outside the repository
    inside = path.is_relative_to(project.root)
    file = path.relative_to(project.root).as_posix() if inside else str(path)
    left = inside and bool(uncommitted(project.root, [file]))
    subject = f"{'Remove' if call.options.remove else 'Add'} helix-tui's hooks: {file}"
    sha = _commit(project, file, subject, word) if left and call.options.commit else ""
    if call.json:
        whether = {"uncommitted": left and not sha, "commit": sha or None}
        call.emit({"path": path, "changed": changed, **more, **whether})
    else:
        call.print(f"{word}: {clean_line(str(path))}")
    if sha:
        call.note(f"committed as {sha[:12]}: {clean_line(subject)}")
    elif left:
        add, commit = ["git", "add", "-A", "--", file], ["git", "commit", "-m", subject, "--", file]
        words = clean_line(f"{shlex.join(add)} && {shlex.join(commit)}", 400)
        call.note(f"commit it: ddx starts no attempt while it is uncommitted: {words}")
    if not call.options.remove and program("helix-tui") is None:
        call.note("helix-tui is not on PATH here: until it is, the hook does nothing")
    return 0


def _commit(project: Project, file: str, subject: str, word: str) -> str:
    try:
        return commit_files(project.root, [file], subject)
    except CommitError as error:
        raise CliError(f"{word}: {clean_line(file)}, but not committed: {error}", error.advice) from None


def _plugin(call: Call) -> int:
    """The plugin's folder, for `claude plugin marketplace add`."""
    folder = Path(helix_tui.__file__).with_name("plugin")
    if call.json:
        call.emit({"path": folder})
    else:
        call.print(str(folder))
    return 0


def _foretell(call: Call, project: Project) -> int:
    """What would be written or removed."""
    path, text = hook_path(project), "" if call.options.remove else hook_text()
    try:
        changes = would_change(project, remove=call.options.remove)
    except ForeignHook as error:
        raise CliError(clean_line(str(error), 400), f"Check the file: {clean_line(str(path))}") from None
    if call.json:
        call.emit({"path": path, "dry_run": True, "changed": changes, "text": text})
    elif changes:
        call.print(f"would {'remove' if call.options.remove else 'write'} {clean_line(str(path))}")
        call.print(clean_block(text))
    else:
        had = "no helix-tui hook at" if call.options.remove else "already installed:"
        call.print(f"nothing would change: {had} {clean_line(str(path))}")
    return 0


def _judge(call: Call, project: Project) -> int:
    """Answer as a hook of ddx does: findings on stderr, the verdict as exit code."""
    # one byte more than allowed, to notice that it is too long
    verdict = judge_stdin(sys.stdin.buffer.read(MAX_BEAD + 1), project, os.environ)
    for finding in verdict.findings:
        call.note(clean_line(str(finding), 400))
    return verdict.exit_code
