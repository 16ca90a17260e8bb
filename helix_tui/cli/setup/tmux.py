"""``helix-tui tmux``: the side pane beside the current tmux pane."""

from __future__ import annotations

import argparse
import os
import shlex

from helix_tui.cli import programs
from helix_tui.cli.call import Call, CliError, locate
from helix_tui.core.ground import process
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.text import clean_block, clean_line

NARROWEST, WIDEST = 32, 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--width", type=_width, default=48, metavar="N", help="columns of the pane (48)")


def _width(text: str) -> int:
    width = int(text)
    if not NARROWEST <= width <= WIDEST:
        raise argparse.ArgumentTypeError(f"{width} columns; it works with {NARROWEST} to {WIDEST}")
    return width


def run(call: Call) -> int:
    """Split the pane that this runs in."""
    if not os.environ.get("TMUX"):
        raise CliError(
            "not inside tmux, so there is no pane to open beside",
            "Start `tmux` and run this in it, or run `helix-tui --pane` in a narrow terminal.",
        )
    tmux = program("tmux")
    if tmux is None:
        raise CliError("TMUX is set, but there is no tmux on PATH", "Put tmux on PATH and run this again.")
    command = split_command(call, tmux)
    if call.options.dry_run:
        if call.json:
            call.emit({"dry_run": True, "pane": None, "width": call.options.width, "command": command})
        else:
            call.print(clean_line(shlex.join(command), 2_000))
        return 0
    try:
        done = process.run(command, timeout=10)
    except OSError as error:
        raise CliError(f"tmux does not start: {error}", "Try `tmux list-panes` by hand.") from None
    if done.timed_out:
        raise CliError("tmux did not answer", "Try `tmux list-panes` by hand.")
    if done.rc:
        said = clean_block(done.err, 400).strip() or f"exit code {done.rc}"
        raise CliError(f"tmux would not split: {said}", "Make the window wider, or give a smaller --width.")
    pane = done.out.strip()
    if call.json:
        call.emit({"pane": pane, "width": call.options.width, "command": command})
    else:
        call.print(f"side pane {pane}, {call.options.width} columns: `q` in it closes it")
    return 0


def split_command(call: Call, tmux: str) -> list[str]:
    """The tmux command; focus stays where it is, because an agent may be typing there."""
    root = str(locate(call).root.absolute())
    shown = [*programs.helix_tui(), "--pane", "-C", root]
    if call.fixed_now:
        shown += ["--now", call.options.now]
    if call.read_only:
        shown.append("--read-only")
    if call.ddx:
        shown += ["--ddx", call.ddx]
    beside = ["-t", os.environ["TMUX_PANE"]] if os.environ.get("TMUX_PANE") else []
    split = [tmux, "split-window", "-h", "-d", "-l", str(call.options.width), *beside]
    return [*split, "-c", root, "-P", "-F", "#{pane_id}", "--", *shown]
