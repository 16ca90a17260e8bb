"""Call a model once: a program that gets the prompt in a file or on standard input, and prints an answer.

The caller chooses the program: `core.ask` knows neither DDx nor any model. ``ddx run
--json`` and ``ddx agent run --json`` print one JSON object with ``output``, tokens and cost
(docs/formats/ddx.md §6); any other program may print the same, or plain text.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.errors import with_who
from helix_tui.core.ground.process import run
from helix_tui.core.ground.text import clean_block, clean_line

PROMPT_FILE = "{prompt_file}"
"""Placeholder in the command for the path of the prompt; without it the prompt is on standard input."""

TIMEOUT_S = 120.0
OUTPUT_CAP = 1 << 20
MOST_CHARS = 20_000


class ModelCommand(Struct, frozen=True):
    """A program that calls a model."""

    argv: tuple[str, ...]
    name: str = ""
    """Its display name, if any."""
    timeout_s: float = TIMEOUT_S

    @property
    def label(self) -> str:
        """Its display name, or else the program's name."""
        return self.name or os.path.basename(self.argv[0])


class ModelReply(Struct, frozen=True):
    """A model's answer or error, and its cost; None if unknown."""

    text: str = ""
    error: str = ""
    command: str = ""
    harness: str = ""
    model: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float = 0.0


def ask_model(command: ModelCommand, prompt: str, cwd: Path) -> ModelReply:
    """Ask once, without retries. Any failure is returned as the reply's error."""
    with tempfile.TemporaryDirectory(prefix="helix-ask-") as folder:
        file = Path(folder, "prompt.md")
        file.write_text(prompt, encoding="utf-8", errors="replace")
        argv = [word.replace(PROMPT_FILE, str(file)) for word in command.argv]
        takes_file = any(PROMPT_FILE in word for word in command.argv)
        try:
            done = run(
                argv,
                cwd=cwd,
                timeout=command.timeout_s,
                cap=OUTPUT_CAP,
                stop_at_cap=True,
                leftovers=True,  # ddx of August stops at its own timeout and leaves its agent running
                given=b"" if takes_file else file.read_bytes(),
            )
        except OSError as error:
            return ModelReply(
                error=f"{clean_line(argv[0], 200)} does not start: {error.strerror}", command=command.label
            )
    # read the output before checking the result: a failed call reports its cost too
    reply = _read(done.out, command.label, done.seconds)
    if done.timed_out:
        return _failed(reply, f"no answer within {command.timeout_s:g} s")
    if done.truncated:
        return _failed(reply, f"more than {OUTPUT_CAP >> 20} MB of output")
    if done.rc != 0:
        said = [line for line in done.err.splitlines() if line.strip()]
        why = reply.error or clean_line(said[-1] if said else f"ended with {done.rc}", 300)
        return _failed(reply, with_who(why, done.err))
    if not reply.text and not reply.error:
        return _failed(reply, "an empty answer")
    return reply


def _failed(reply: ModelReply, error: str) -> ModelReply:
    """The reply without its partial text, but with its cost."""
    return replace(reply, text="", error=error)


def _read(out: str, label: str, seconds: float) -> ModelReply:
    """Parse a JSON object with an ``output``, else plain text."""
    try:
        document = msgspec.json.decode(out.strip() or "null")
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, Mapping) or "output" not in document:
        return ModelReply(text=clean_block(out, MOST_CHARS).strip(), command=label, seconds=seconds)
    # releases differ: some exit with 0 although `exit_code` shows that the harness failed
    failed = document.get("error") or (document.get("exit_code") and f"exit code {document['exit_code']}")
    return ModelReply(
        text=clean_block(document["output"], MOST_CHARS).strip(),
        error=clean_line(failed, 300) if failed else "",
        command=label,
        harness=clean_line(document.get("harness"), 80),
        model=clean_line(document.get("model"), 80),
        input_tokens=_count(document.get("input_tokens")),
        output_tokens=_count(document.get("output_tokens")),
        cost_usd=_cost(document.get("cost_usd")),
        seconds=seconds,
    )


def _count(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _cost(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
