"""The files of an evidence folder: a header a file, unfolded when somebody asks; a prompt as it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import unescape

from rich.cells import cell_len, set_cell_size

from helix_tui.core.ddx.attempts.evidence import EvidenceFile
from helix_tui.core.ground.text import clean_block
from helix_tui.widgets.base.line import Span
from helix_tui.widgets.gesture import Gesture
from helix_tui.widgets.text.pane import FoldPane, Para

MOST_LINES = 3_000


class RawPane(FoldPane):
    """Files by name and size. Unfolding one asks for its content."""

    class Wanted(Gesture):
        """The content of a file is asked for."""

        def __init__(self, file: EvidenceFile) -> None:
            super().__init__()
            self.file = file

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.files: tuple[EvidenceFile, ...] = ()
        self._contents: dict[str, Sequence[str]] = {}
        self._note: Sequence[Para] = ()

    def show_files(self, files: Sequence[EvidenceFile], note: Sequence[Para] = (), *, other: bool) -> None:
        """Show a folder, or the words in its place; a file that is new stands folded."""
        known = set() if other else {file.name for file in self.files}
        self.files, self._note = tuple(files), note
        fresh = {file.name for file in files} - known
        if other:
            self._contents = {}
            self.begin(fresh)
        else:
            self._folded |= fresh
            self.rebuild()

    def give(self, name: str, lines: Sequence[str]) -> None:
        """The content of a file, or a sentence that says why there is none."""
        self._contents[name] = lines
        self.rebuild()

    def set_fold(self, key: str, *, on: bool) -> None:
        """Unfolding reads the file anew: it may have grown."""
        super().set_fold(key, on=on)
        file = next((file for file in self.files if file.name == key), None)
        if not on and file is not None:
            self.post_message(self.Wanted(file))

    def build(self, width: int) -> Sequence[Para]:
        """Headers, and below the unfolded ones their lines."""
        if not self.files:
            return self._note
        return list(self._paras_of(width))

    def _paras_of(self, width: int) -> Iterator[Para]:
        for file in self.files:
            folded = self.is_folded(file.name)
            mark: Span = ("▸ " if folded else "▾ ", "running")
            size = size_of(file.size)
            name = short_path(file.name, width - len(size) - 4)
            spans: tuple[Span, ...] = (mark, (name, "text bold"))
            yield Para(file.name, spans, ((size, "muted"),), wrap="no", landmark=True, opens=True)
            if not folded:
                lines = self._contents.get(file.name, ("reading …",))
                yield from content_paras(file.name, lines)


def content_paras(name: str, lines: Sequence[str]) -> Iterator[Para]:
    """The lines of a file, indented below its header."""
    for number, line in enumerate(lines[:MOST_LINES]):
        yield Para(f"{name}\t{number}", (("  ", "text"), (line, "text")), wrap="cells", hang=2)
    if len(lines) > MOST_LINES:
        yield Para(f"{name}\tmore", ((f"  … {len(lines) - MOST_LINES:,} more lines", "attention"),))


def short_path(name: str, width: int) -> str:
    """A path in at most ``width`` cells, cut in the middle: its beginning and its ending tell most."""
    if cell_len(name) <= width:
        return name
    half = max(2, (width - 1) // 2)
    return f"{set_cell_size(name, max(1, width - 1 - half)).rstrip()}…{name[-half:]}"


def size_of(count: int) -> str:
    """A file's size in a word: ``940 B``, ``12 kB``, ``3.4 MB``."""
    if count < 1_000:
        return f"{count} B"
    if count < 999_500:
        return f"{count / 1_000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB"


def prompt_paras(text: str) -> list[Para]:
    """A prompt as its reader takes it: every character, headings and tags stand out a little.

    DDx writes prompts as XML: character references stand for what they name, line breaks above all.
    """
    if text.lstrip().startswith("<") or "&#" in text:
        text = clean_block(_REFERENCE.sub(lambda found: unescape(found.group()), text))
    return [
        Para(f"prompt {number}", ((line, _prompt_ink(line)),), wrap="words", landmark=line.startswith("#"))
        for number, line in enumerate(text.rstrip("\n").split("\n"))
    ]


_REFERENCE = re.compile(r"&(?:#[xX][0-9a-fA-F]{1,6}|#[0-9]{1,7}|lt|gt|amp|quot|apos);")
"""References of XML; those of HTML are text."""


def _prompt_ink(line: str) -> str:
    if line.startswith("#"):
        return "text bold"
    return "edge" if line.startswith("<") and line.rstrip().endswith(">") else "text"
