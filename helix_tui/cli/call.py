"""One call of the program: its global options, and the only ways by which a command writes anything."""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.cli.paint import Paint
from helix_tui.core.ground.errors import HelixError, ReaderGone
from helix_tui.core.ground.text import clean_block, clean_line
from helix_tui.core.ground.time import now_ns, parse_now

_COMMANDS = frozenset(("helix-tui", "helix-ddx", "ddx", "git"))


class CliError(HelixError):
    """A command failed: what happened, what to do about it, and the exit code of docs/cli.md."""


class Call(Struct, frozen=True):
    """What a command gets."""

    command: str
    options: argparse.Namespace
    directory: Path
    """Where to look for the project: what ``-C`` says, else the current folder."""
    now: int
    """The instant to judge by: what ``--now`` says, else the present."""
    fixed_now: bool
    """``--now`` was given: time stands still."""
    read_only: bool
    """``--read-only`` or ``--dry-run``: nothing is written, neither in the queue nor in a file of ours."""
    ddx: str | None
    """The executable that ``--ddx`` names."""
    json: bool
    paint: Paint
    aside: bool = False
    """Stdout has one thing to hold, so that what is told for people goes to stderr."""

    @classmethod
    def of(cls, command: str, options: argparse.Namespace) -> Call:
        """The call that parsed options stand for; unusable values end the program with 2."""
        try:
            now = parse_now(options.now) if options.now else now_ns()
        except ValueError as error:
            print(f"helix-tui {command}: {error}", file=sys.stderr)
            raise SystemExit(2) from None
        return cls(
            command=command,
            options=options,
            directory=options.directory or _here(),
            now=now,
            fixed_now=bool(options.now),
            read_only=options.read_only or getattr(options, "dry_run", False),
            ddx=options.ddx,
            json=options.json,
            paint=Paint.for_stream(sys.stdout, plain=options.no_color),
        )

    def emit(self, document: dict[str, Any]) -> None:
        """Write the one JSON document of this call."""
        whole = {"schema": f"{self.command}/1", **document}
        self.emit_line(msgspec.json.encode(whole, enc_hook=_plain))

    def emit_line(self, line: bytes) -> None:
        """Write one line for machines, at once."""
        with heard():
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def print(self, text: str = "") -> None:
        """Write a line for people; its parts from outside have been cleaned already."""
        with heard():
            (sys.stderr if self.aside else sys.stdout).write(text + "\n")

    def note(self, text: str) -> None:
        """Write a message beside the output."""
        with heard():
            print(clean_block(text), file=sys.stderr, flush=True)

    def fail(self, error: HelixError) -> None:
        """Say what went wrong; a machine gets it as its one document too."""
        message = clean_line(error.message, 1_000)
        advice = sentence(error.advice)
        self.note(f"helix-tui: {message}")
        if advice:
            self.note(f"  {advice}")
        if self.json:
            self.emit({"error": {"message": message, "fix": advice, "code": error.exit_code}})


def sentence(text: str) -> str:
    """A text with its first letter in capitals; a command that it begins with is written as it is typed."""
    if text.replace(",", " ").split(" ", 1)[0] in _COMMANDS:
        return text
    return f"{text[:1].upper()}{text[1:]}"


@contextmanager
def heard() -> Iterator[None]:
    """Write to stdout or stderr.

    Raises:
        ReaderGone: nobody reads them any more.
    """
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None


def check_heard() -> None:
    """See whether anybody still reads stdout, where nothing may be written for long.

    Raises:
        ReaderGone: it is a pipe, and its other end is closed.
    """
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # what has gone wrong is told without being asked for
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise ReaderGone


def _plain(value: object) -> str:
    """Paths in JSON; bytes of a name that are no UTF-8 become U+FFFD."""
    if isinstance(value, Path):
        return os.fsencode(value).decode("utf-8", "replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON output")


def _here() -> Path:
    """The current folder, or the name of the one that was removed under us."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or "/")
