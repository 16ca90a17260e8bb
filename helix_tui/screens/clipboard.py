"""Copying where the terminal alone is not enough: inside tmux, which drops what programs send (OSC 52)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.text import clean_line

TMUX_SECONDS = 2.0


def into_tmux(text: str, what: str, env: Mapping[str, str]) -> tuple[str, bool]:
    """Give a text to tmux for its buffer and the clipboard behind it: what came of it, and if that is well.

    This runs tmux: call it from a worker. ``-w``, which hands the text on, came with tmux 3.2.
    """
    said = ""
    try:
        with NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            for words in (("load-buffer", "-w", "-"), ("load-buffer", "-")):
                done = run(("tmux", *words), env=env, timeout=TMUX_SECONDS, stdin=Path(file.name))
                if done.rc == 0 and not done.timed_out:
                    beyond = ", and to the clipboard where the terminal lets tmux"
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
    return f"sent {what}, but tmux may drop it: {why}. It lets it through with “set -g set-clipboard on”"
