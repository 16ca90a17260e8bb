"""One call of the program: its global options, its project, and the only functions through which a command prints.

Colour and columns for people are made here too, without a library: a queue on stdout must not import one.
"""

from __future__ import annotations

import argparse
import os
import select
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.states import STATES, State
from helix_tui.core.ground.errors import HelixError, ReaderGone
from helix_tui.core.ground.files import add_root
from helix_tui.core.ground.project import Project, find_project, user_cache_dirs
from helix_tui.core.ground.records import encode_json
from helix_tui.core.ground.text import capitalized, cell_width, clean_block, clean_line, clean_output, escape_json, fit
from helix_tui.core.ground.time import now_ns, parse_now

if TYPE_CHECKING:
    from helix_tui.core.embedding.minilm import Loaded

_CODES = {
    "success": "32",
    "running": "1;36",
    "waiting": "33",
    "attention": "35",
    "error": "31",
    "muted": "2",
    "bold": "1",
}

_COMMANDS = frozenset(("helix-tui", "helix-ddx", "ddx", "git"))
_HINT = "weights-hint"


class Paint(Struct, frozen=True):
    """How to write to one stream: in colour or not, and how wide."""

    colour: bool
    width: int

    @classmethod
    def for_stream(cls, stream: TextIO, *, plain: bool) -> Paint:
        """Colour on a terminal only, and not with ``--no-color``, NO_COLOR or a dumb terminal."""
        is_terminal = stream.isatty()
        wanted = not plain and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        width = shutil.get_terminal_size((100, 24)).columns if is_terminal else 100
        return cls(is_terminal and wanted, max(40, width))

    def __call__(self, text: str, role: str) -> str:
        """The text in the colour of a role."""
        code = _CODES.get(role)
        return f"\x1b[{code}m{text}\x1b[0m" if code and self.colour else text

    def state(self, state: State) -> str:
        """A state's word in its colour."""
        return self(STATES[state].sign.word, STATES[state].sign.role)


def columns(rows: Iterable[Sequence[str]], *, gap: str = "  ", right: Iterable[int] = ()) -> list[str]:
    """Cleaned cells as aligned lines; the columns in ``right`` are flush right, the last is not padded."""
    table = [list(row) for row in rows]
    if not table:
        return []
    flush_right = set(right)
    widths = [max(cell_width(row[place]) for row in table) for place in range(len(table[0]))]
    lines = []
    for row in table:
        cells = [
            " " * (width - cell_width(cell)) + cell if place in flush_right else fit(cell, width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(gap.join(cells).rstrip())
    return lines


class CliError(HelixError):
    """A command failed: what happened, what to do about it, and the exit code of docs/cli.md."""


class Call(Struct, frozen=True):
    """What a command gets."""

    command: str
    options: argparse.Namespace
    directory: Path
    """Where to look for the project: the folder that ``-C`` names, else the current one."""
    now: int
    """The instant to judge by: that of ``--now``, else the present."""
    fixed_now: bool
    """``--now`` was given, so the clock does not advance."""
    read_only: bool
    """``--read-only`` or ``--dry-run``: nothing is written, neither to the queue nor to helix-tui's own files."""
    ddx: str | None
    """The executable that ``--ddx`` names."""
    json: bool
    paint: Paint
    aside: bool = False
    """Stdout is reserved for one document, so messages for people go to stderr."""

    @property
    def clock(self) -> Callable[[], int]:
        """Returns the present, or the fixed instant that ``--now`` names."""
        return (lambda: self.now) if self.fixed_now else now_ns

    @classmethod
    def of(cls, command: str, options: argparse.Namespace) -> Call:
        """The call that the parsed options describe; unusable values end the program with exit code 2."""
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
        self.emit_line(encode_json(whole, _plain))

    def emit_line(self, line: bytes) -> None:
        """Write one line for machines, at once."""
        with heard():
            sys.stdout.buffer.write(escape_json(line) + b"\n")
            sys.stdout.buffer.flush()

    def print(self, text: str = "") -> None:
        """Write lines for people; control sequences but our own colours are removed."""
        with heard():
            (sys.stderr if self.aside else sys.stdout).write(clean_output(text) + "\n")

    def note(self, text: str) -> None:
        """Write a message beside the output."""
        with heard():
            print(clean_block(text), file=sys.stderr, flush=True)

    def fail(self, error: HelixError) -> None:
        """Print what went wrong; with ``--json``, also as the one document on stdout."""
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
    return capitalized(text)


@contextmanager
def heard() -> Iterator[None]:
    """Write to stdout or stderr.

    Raises:
        ReaderGone: the reading end is closed.
    """
    try:
        yield
    except BrokenPipeError:
        raise ReaderGone from None


def check_heard() -> None:
    """Check whether stdout is still being read, for commands that may print nothing for a long time.

    Raises:
        ReaderGone: it is a pipe, and its other end is closed.
    """
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # errors are reported even where no output was asked for
    if any(event & select.POLLERR for _, event in poll.poll(0)):
        raise ReaderGone


def _plain(value: object) -> str:
    """Paths in JSON; bytes that are not valid UTF-8 become U+FFFD."""
    if isinstance(value, Path):
        return os.fsencode(value).decode("utf-8", "replace")
    raise NotImplementedError(f"{type(value).__name__} has no JSON output")


def _here() -> Path:
    """The current folder, or its former path if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.environ.get("PWD") or "/")


def locate(call: Call) -> Project:
    """The project of this call: the folder that ``-C`` names if it has a ``.ddx``, else its git root."""
    if not call.directory.is_dir():
        raise CliError(f"{clean_line(str(call.directory))} is not a folder", "Name the project with -C DIR.")
    project = find_project(call.directory)
    named = call.options.directory
    # as ddx does, DDX_BEAD_DIR outranks the folder
    if named is not None and not os.environ.get("DDX_BEAD_DIR"):
        here = Path(os.path.abspath(named))
        if here != project.root and project.attempt is None and (here / ".ddx").is_dir():
            add_root(here)
            project = replace(project, root=here, ddx_dir=here / ".ddx", primary=None, linked_ddx_dir=None)
    if project.notice and project.notice not in _noted:
        _noted.add(project.notice)
        call.note(f"helix: {project.notice}")
    return project


_noted: set[str] = set()
"""Notices of folders that were written: a command may look for its project more than once."""


def hint_once(call: Call, loaded: Loaded | None = None) -> None:
    """Tell the user, once, that search works by words only, and what to do about it."""
    if os.environ.get("HELIX_EMBEDDER") == "off":
        return
    folder = next(iter(user_cache_dirs(os.environ)), None)
    # check the marker first: loading the encoder takes a third of a second
    if folder is None or (folder / "helix-tui" / _HINT).exists():
        return
    from helix_tui.core.embedding.minilm import load_encoder

    if (loaded or load_encoder()).encoder is not None:
        return
    call.note("helix: searching by words only; helix-tui setup fetches the weights for search by meaning")
    mark = folder / "helix-tui" / _HINT
    with suppress(OSError):  # the message appears again the next time
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


class DoctorCheck(Struct, frozen=True):
    """The result of one check; ``ok`` is None if there is nothing to judge."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""
