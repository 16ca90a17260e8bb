"""``helix-tui install-hooks``: let ddx ask our authoring rules before it takes a new bead."""

from __future__ import annotations

import argparse
import os
import sys

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.curation.changing import told
from helix_tui.cli.loading import locate
from helix_tui.core.project import Project
from helix_tui.core.supervision.curation.gate import Gate
from helix_tui.core.supervision.hooks import (
    MAX_BEAD,
    ForeignHook,
    hook_path,
    install,
    judge_stdin,
    own_command,
)
from helix_tui.core.text import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument(
        "--judge",
        action="store_true",
        help="be the hook: judge the bead on stdin; exit 0, 1 or 2 as ddx asks",
    )


def run(call: Call) -> int:
    """Install the hook, or be it."""
    project = locate(call)
    if call.options.judge:
        return _judge(call, project)
    if not project.ddx_dir.is_dir():
        raise CliError(
            f"there is no {clean_line(str(project.ddx_dir))}", "Run `ddx init` in the project first."
        )
    try:
        with told():
            installed = install(project, Gate(project, call.read_only), own_command())
    except ForeignHook as error:
        raise CliError(
            clean_line(str(error), 400), f"Look at it: {clean_line(str(hook_path(project)))}"
        ) from None
    except OSError as error:
        raise CliError(f"the hook cannot be written: {error.strerror}") from None
    if call.json:
        call.emit({"path": installed.path, "changed": installed.changed})
    else:
        word = "installed" if installed.changed else "already installed"
        call.print(f"{word}: {clean_line(str(installed.path))}")
    return 0


def _judge(call: Call, project: Project) -> int:
    """Answer as a hook of ddx does: findings on stderr, the verdict as exit code."""
    verdict = judge_stdin(sys.stdin.buffer.read(MAX_BEAD + 1), project, os.environ)
    for finding in verdict.findings:
        call.note(clean_line(str(finding), 400))
    return verdict.exit_code
