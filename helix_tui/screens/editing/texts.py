"""Title and texts of a bead in the user's own editor: as one file, read back when the editor ends."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.text import clean_line
from helix_tui.screens.editing.change_runner import Trouble
from helix_tui.screens.editing.requests import text_edit
from helix_tui.screens.external_editor import run_editor

if TYPE_CHECKING:
    from helix_tui.core.beads.record import Bead
    from helix_tui.screens.editing.target import TargetScreen

TEXTS = ("title", "acceptance", "description", "notes")
"""What can be edited, in the order of the file."""

MAX_FILE = 4 << 20
"""Bytes of an edited file that are read back."""


class NoEditor(HelixError):
    """There is nothing to edit with; the message says what to do."""


def editor_words(env: Mapping[str, str]) -> list[str]:
    """The command that $VISUAL or $EDITOR names.

    Raises:
        NoEditor: neither names a program that is there.
    """
    name = next((name for name in ("VISUAL", "EDITOR") if env.get(name, "").strip()), "")
    instead = "or edit it here: a, then “edit in a form”"
    if not name:
        raise NoEditor(f"no editor: set EDITOR to one, as EDITOR=nano; {instead}")
    try:
        words = shlex.split(env[name])
    except ValueError as error:
        raise NoEditor(f"{name} cannot be read as a command: {error}; {instead}") from None
    if not words or shutil.which(words[0], path=env.get("PATH")) is None:
        raise NoEditor(f"{name} names {clean_line(env[name], 100)}, which is not there; {instead}")
    return words


def texts_of(bead: Bead) -> dict[str, str]:
    """The texts of a bead, empty where it has none."""
    row = bead.document()
    return {name: str(row.get(name) or "") for name in TEXTS}


def as_file(bead_id: str, texts: Mapping[str, str]) -> str:
    """The texts as one file to edit, each under a line of its own."""
    mark = _mark(texts.values())
    parts = [f"{mark} {name} · {clean_line(bead_id, 60)} {mark}\n{text}\n" for name, text in texts.items()]
    return "".join(parts)


def from_file(edited: str, base: Mapping[str, str]) -> dict[str, str]:
    """The texts that differ from those the file was made of; a text whose line is gone stays as it was."""
    mark = re.escape(_mark(base.values()))
    pieces = re.split(rf"^{mark} (\w+) · .*{mark}[ \t]*\n?", edited, flags=re.MULTILINE)
    changed = {}
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if name in base and text.rstrip("\n") != base[name].rstrip("\n"):
            changed[name] = _framed(text, base[name]) if name != "title" else " ".join(text.split())
    return changed


def _mark(texts: object) -> str:
    """A line of dashes that stands in none of the texts."""
    mark = "────"
    while any(mark in text for text in texts):  # type: ignore[attr-defined]
        mark += "──"
    return mark


def edit(screen: TargetScreen, beads: Sequence[Bead]) -> None:
    """Let the editor have the screen, then show what its changes would do."""
    if not beads:
        return
    say = screen.console.say
    if len(beads) > 1:
        say("one bead at a time is edited; unmark the others", "warning")
        return
    bead = beads[0]
    try:
        words = editor_words(os.environ)
    except NoEditor as error:
        say(str(error), "warning")
        return
    base = texts_of(bead)
    folder = Path(tempfile.mkdtemp(prefix="helix-edit-"))
    path = folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', bead.id)[:80]}.md"
    try:
        path.write_text(as_file(bead.id, base), encoding="utf-8", errors="surrogateescape")
        with screen.app.suspend():
            code = run_editor([*words, os.fspath(path)])
        changed = _read_back(path, base) if code == 0 else {}
    except SuspendNotSupported:
        say("this terminal cannot be given to an editor; use a, then “edit in a form”", "warning")
        code, changed = 0, {}
    except (OSError, ValueError) as error:
        say(f"not edited: {clean_line(str(error), 200)}; the file is {path}", "error")
        return
    if not changed:
        shutil.rmtree(folder, ignore_errors=True)
        say(f"the editor ended with {code}, so nothing is changed" if code else "nothing was edited")
        return

    def ended(error: Trouble | None) -> None:
        if error is None:
            shutil.rmtree(folder, ignore_errors=True)

    screen.look_ahead(text_edit(bead.id, base, changed, os.fspath(path)), ended=ended)


def _read_back(path: Path, base: Mapping[str, str]) -> dict[str, str]:
    with path.open("rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise ValueError(f"the edited text has more than {MAX_FILE >> 20} MiB")
    return from_file(data.decode("utf-8", "surrogateescape"), base)


def _framed(text: str, base: str) -> str:
    """An edited text between the empty lines that the old one began and ended with."""
    inner = text.strip("\n")
    bare = base.strip("\n")
    if not inner or not bare:
        return inner
    start = base.index(bare)
    return base[:start] + inner + base[start + len(bare) :]
