"""Asking a model through ddx: this release's command, the prompt in a file (docs/formats/ddx.md §6)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from helix_tui.core.ddx.probe import dialect_of


def model_command(
    ddx: Path, root: Path, *, prompt: str, seconds: int, who: Mapping[str, str] | None = None
) -> tuple[str, ...] | None:
    """The command that asks a model once; None where this ddx cannot.

    Args:
        ddx: the executable.
        root: the project that it is run in.
        prompt: what stands where the prompt's path goes.
        seconds: how long ddx may wait for its harness.
        who: who is to answer, by flag: ``--harness``, ``--model``, ``--effort``.

    Raises:
        DdxError: it cannot be started, or does not answer.
    """
    verb = dialect_of(ddx, root).verbs.get("ask_model")
    if verb is None:
        return None
    wanted: dict[str, tuple[str, ...]] = {
        "--json": (),
        "--permissions": ("safe",),
        "--timeout": (f"{seconds}s",),
    }
    wanted |= {flag: (value,) for flag, value in (who or {}).items() if value}
    flags = [word for flag, value in wanted.items() if verb.knows(flag) for word in (flag, *value)]
    return (os.fspath(ddx), *verb.words, *flags, "--prompt", prompt)
