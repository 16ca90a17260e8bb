"""``helix-tui install-hooks``: what others ask us: ddx about a new bead, Claude Code as it works."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import helix_tui
from helix_tui.cli.call import Call, CliError
from helix_tui.cli.curation.changing import told
from helix_tui.cli.loading import locate
from helix_tui.core.project import Project
from helix_tui.core.supervision.claude import EVENTS, UnreadableSettings, merge, start_words
from helix_tui.core.supervision.curation.gate import Gate
from helix_tui.core.supervision.hooks import (
    MAX_BEAD,
    ForeignHook,
    hook_path,
    hook_text,
    install,
    judge_stdin,
    own_command,
    remove,
)
from helix_tui.core.text import clean_block, clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "--judge",
        action="store_true",
        help="be the hook: judge the bead on stdin; exit 0, 1 or 2 as ddx asks",
    )

    parser.add_argument(
        "--claude",
        action="store_true",
        help="Claude Code's hooks instead, in .claude/settings.json: what is remembered reaches its agents",
    )
    parser.add_argument(
        "--remove", action="store_true", help="take the hook, or with --claude the hooks, out again"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be written")
    parser.add_argument(
        "--plugin-path",
        action="store_true",
        help="print the folder of the Claude Code plugin: hooks, agents and skills together",
    )


def run(call: Call) -> int:
    """Install the hook, or be it."""
    options = call.options
    if options.plugin_path:
        return _plugin(call)
    project = locate(call)
    if options.judge:
        return _judge(call, project)
    if options.claude:
        return _claude(call, project)
    if not project.ddx_dir.is_dir():
        raise CliError(
            f"there is no {clean_line(str(project.ddx_dir))}", "Run `ddx init` in the project first."
        )
    if options.dry_run:
        return _foretell(call, project)
    gate = Gate(project, call.read_only)
    try:
        with told():
            installed = remove(project, gate) if options.remove else install(project, gate, own_command())
    except ForeignHook as error:
        raise CliError(
            clean_line(str(error), 400), f"Look at it: {clean_line(str(hook_path(project)))}"
        ) from None
    except OSError as error:
        raise CliError(f"the hook cannot be written: {error.strerror}") from None
    if call.json:
        call.emit({"path": installed.path, "changed": installed.changed})
    else:
        done, had = ("removed", "no hook of ours") if options.remove else ("installed", "already installed")
        word = done if installed.changed else had
        call.print(f"{word}: {clean_line(str(installed.path))}")
    return 0


def _claude(call: Call, project: Project) -> int:
    """Merge our hooks into Claude Code's settings of this project, or take them out."""
    gate = Gate(project, call.read_only)
    try:
        with told():
            merged = merge(
                project,
                gate,
                start_words(own_command()),
                remove=call.options.remove,
                dry=call.options.dry_run,
            )
    except UnreadableSettings as error:
        raise CliError(
            clean_line(str(error), 400), "It stays as it is. Mend it by hand, then try again."
        ) from None
    except OSError as error:
        raise CliError(f"the settings cannot be written: {error.strerror}") from None
    if call.json:
        call.emit({"path": merged.path, "changed": merged.changed, "events": list(EVENTS)})
        return 0
    if call.options.dry_run:
        call.print(clean_block(merged.text).rstrip())
        return 0
    done = ("removed from", "not in") if call.options.remove else ("installed in", "already installed in")
    call.print(f"{done[0] if merged.changed else done[1]}: {clean_line(str(merged.path))}")
    return 0


def _plugin(call: Call) -> int:
    """Where the plugin lies, for `claude plugin marketplace add`."""
    folder = Path(helix_tui.__file__).with_name("plugin")
    if call.json:
        call.emit({"path": folder})
    else:
        call.print(str(folder))
    return 0


def _foretell(call: Call, project: Project) -> int:
    """What would be written, or taken away."""
    path, text = hook_path(project), "" if call.options.remove else hook_text(own_command())
    if call.json:
        call.emit({"path": path, "dry_run": True, "text": text})
    else:
        call.print(f"would {'remove' if call.options.remove else 'write'} {clean_line(str(path))}")
        call.print(clean_block(text))
    return 0


def _judge(call: Call, project: Project) -> int:
    """Answer as a hook of ddx does: findings on stderr, the verdict as exit code."""
    verdict = judge_stdin(sys.stdin.buffer.read(MAX_BEAD + 1), project, os.environ)
    for finding in verdict.findings:
        call.note(clean_line(str(finding), 400))
    return verdict.exit_code
