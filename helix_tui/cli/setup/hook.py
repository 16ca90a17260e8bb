"""``helix-tui hook EVENT``: a hook of Claude Code. JSON in, JSON out, always exit code 0.

An agent's work must not stop because its memory fails: an error is one line on stderr and an empty
answer. Torch is never loaded here, because the host waits. At the end of a session it waits at most 1.5 seconds,
so that event is answered at once, and the work continues in a separate process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.core.ground import log as logs
from helix_tui.core.ground.text import clean_line

BUSY_SECONDS = 2.0
"""How long recording a claim or an outcome waits for another writer."""

BRIEFLY = 0.3
"""The same while the agent is waiting."""

AFTERWARDS = 20.0
"""The same when nothing waits for the answer."""

MAX_STDIN = 64 << 20
"""Bytes of an event that are read; an edit includes the text it writes. Longer events are not answered."""

WAITED_FOR = {"session-start", "user-prompt-submit", "pre-tool-use", "subagent-start"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command. An unknown event is answered too: exit code 2 would block the host."""
    parser.add_argument(
        "event",
        nargs="?",
        default="",
        help="session-start, user-prompt-submit, pre-tool-use, subagent-start, subagent-stop, stop, …",
    )
    parser.add_argument("--wait", action="store_true", help=argparse.SUPPRESS)


def run(call: Call) -> int:
    """Answer one event."""
    reply: dict[str, Any] = {}
    try:
        raw = b"" if sys.stdin.isatty() else sys.stdin.buffer.read(MAX_STDIN + 1)
        alone = call.options.event == "session-end" and not call.options.wait
        if not alone:
            reply = _reply(call, raw)
        elif os.fork() == 0:
            _leave_host()
            _reply(call, raw, patience=AFTERWARDS)
    except Exception as error:  # noqa: BLE001 - the one promise of a hook: it never fails its host
        text = f"{type(error).__name__}: {clean_line(error, 300)}"
        logs.logger("hook").warning("%s: %s", clean_line(call.options.event, 60), text)
        call.note(f"helix-tui hook: {text}")
    try:
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
    except OSError as error:  # the reader has gone, or its disk is full
        call.note(f"helix-tui hook: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _leave_host() -> None:
    """Continue in a new session without the host's streams, so that the host's exit or timeout does not end this."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)


def _reply(call: Call, raw: bytes, *, patience: float = BUSY_SECONDS) -> dict[str, Any]:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # one short text: on a busy machine, more threads would take ten times as long
    from helix_tui.core.embedding.minilm import load_encoder
    from helix_tui.core.memory.memory_store import look_into, open_memory
    from helix_tui.core.memory.records import DatabaseBusy, DatabaseReadOnly
    from helix_tui.core.memory.store.database import database_path
    from helix_tui.core.supervision.agents.briefing import HOOKS, answer, environment, place_of
    from helix_tui.core.supervision.agents.hooks import plugin_enabled
    from helix_tui.core.supervision.agents.report_parser import read_hook_message

    event = call.options.event
    if event not in HOOKS:
        call.note(f"helix-tui hook: no event “{clean_line(event, 60)}”; events: {', '.join(HOOKS)}")
        return {}
    hook_message = read_hook_message(raw) if 0 < len(raw) <= MAX_STDIN else None
    if hook_message is None:
        call.note("helix-tui hook: stdin holds no JSON object")
        return {}
    place = place_of(hook_message, call.directory.absolute(), os.environ)
    of_plugin = bool(os.environ.get("CLAUDE_PLUGIN_ROOT"))
    known = place.project.helix_dir.is_dir() or place.project.ddx_dir.is_dir()
    if call.read_only or not (known or of_plugin):
        return {}
    if not of_plugin and plugin_enabled(place.project, os.environ):
        return {}  # the plugin's hook answers the same event
    by_path = event == "pre-tool-use"  # memories that name the file are found without an encoder
    choice = "off" if by_path or os.environ.get("HELIX_EMBEDDER") == "off" else "light"
    if event == "session-start":
        environment(place.project, os.environ)
    if not known:
        return {}  # nothing is remembered here; with the variables an agent can store the first memory
    path = database_path(place.project)
    encoder = load_encoder(choice)
    waited_for = event in WAITED_FOR
    try:
        with look_into(path, encoder, busy_seconds=BRIEFLY if waited_for else patience) as memory:
            return answer(event, hook_message, place, memory)
    except (DatabaseBusy, DatabaseReadOnly):
        if not waited_for:
            raise
    # Another process holds the database for long, or the disk is full: the agent gets its answer anyway, only
    # the ledger misses it.
    with open_memory(path, encoder, read_only=True, busy_seconds=BRIEFLY) as memory:
        return answer(event, hook_message, place, memory)
