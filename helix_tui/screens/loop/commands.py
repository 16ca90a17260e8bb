"""HELIX's commands by name: the palette and ``:`` offer each; one that needs words asks for them first."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from helix_tui.core.ground.opening import read_end
from helix_tui.core.ground.text import clean_block
from helix_tui.core.supervision.stages.commands import ONE_TEXT, ROWS
from helix_tui.screens.editing.choices import LineSheet
from helix_tui.screens.sheet import Sheet
from helix_tui.widgets.forms.page import Page

if TYPE_CHECKING:
    from helix_tui.screens.base import Console

PREFIX = "helix "
MOST_BYTES = 64 << 10
LOOK_EVERY = 0.5


class OutputSheet(Sheet):
    """What a command has printed so far; it goes on without the sheet."""

    FOOTER = ("go.back",)

    def __init__(self, title: str, path: Path) -> None:
        super().__init__(title)
        self._path = path
        self._lines: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Follow the file."""
        self.set_interval(LOOK_EVERY, self._look)
        self._look()

    def _look(self) -> None:
        self.run_worker(self._read, thread=True, group="output", exclusive=True)

    def _read(self) -> None:
        lines = tuple(clean_block(read_end(self._path, MOST_BYTES)).split("\n"))
        if lines != self._lines:
            self.app.call_from_thread(self._take, lines)

    def _take(self, lines: tuple[str, ...]) -> None:
        self._lines = lines
        self.rewrite()

    def write(self, page: Page) -> None:
        """The lines as they are."""
        if not any(self._lines):
            page.paragraph([("it has printed nothing yet", "muted")])
        for line in self._lines if any(self._lines) else ():
            page.paragraph([(line, "text")])


def helix_commands(console: Console) -> Iterable[tuple[str, str, Callable[[], object]]]:
    """Every command that the console has no other place for: name, help, deed."""
    for name, row in ROWS.items():
        if row.asks is not None:
            yield PREFIX + name, row.summary, partial(_begin, console, name)


def _begin(console: Console, name: str) -> None:
    row = ROWS[name]
    if not row.asks:
        _run(console, name, ())
        return
    title = f"helix-tui {name}: {row.summary}"
    console.push_screen(LineSheet(title, row.asks, partial(_run_with, console, name)))


def _run_with(console: Console, name: str, text: str) -> None:
    if ROWS[name].asks in ONE_TEXT:
        words = ["--", text] if text else []
    else:
        try:
            words = shlex.split(text)
        except ValueError as error:
            console.say(f"that is not a command line: {error}", "warning")
            return
    _run(console, name, words)


def _run(console: Console, name: str, words: Iterable[str]) -> None:
    def began(path: Path) -> None:
        console.push_screen(OutputSheet(f"helix-tui {name}", path))

    console.loop_controls.command(name, tuple(words), began)
