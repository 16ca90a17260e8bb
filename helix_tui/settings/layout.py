"""How the console was left: columns, orders and splits, in ``~/.local/state/helix-tui/layout.json``."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.trust.person import state_folder
from helix_tui.settings.toml import MAX_FILE, replace_file


def layout_file(env: Mapping[str, str] | None = None) -> Path:
    """The file of the saved layout: columns, splits; ``~/.local/state/helix-tui/layout.json``."""
    return state_folder(env) / "layout.json"


class Layout:
    """The saved layout. Read once at the start; call `write` in a thread.

    Without a file (tests, one printed frame) it lasts as long as the process.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.problem = ""
        """Why the file was not read, in one sentence; empty if it was."""
        if path is not None:
            self._read(path)

    @property
    def first_start(self) -> bool:
        """Whether nothing was ever saved: this is the first start."""
        # an unreadable file exists, so this is not the first start
        return self.path is not None and not self._kept and not self.problem

    def note_start(self) -> None:
        """Record that the first start is over."""
        self._kept = {**self._kept, "seen": True}

    def columns(self, of: str) -> tuple[str, ...] | None:
        """The chosen columns of a list, in order; None if none were chosen."""
        chosen = self._kept.get("columns", {}).get(of)
        return tuple(chosen) if chosen is not None else None

    def choose_columns(self, of: str, names: Sequence[str] | None) -> None:
        """Save the columns of a list; None lets the width decide again."""
        self._keep("columns", of, None if names is None else list(names))

    def order(self, of: str) -> tuple[str, bool]:
        """The last order of a list, and whether it was reversed; empty if none was chosen."""
        kept = self._kept.get("order", {}).get(of, "")
        return kept.removeprefix("-"), kept.startswith("-")

    def choose_order(self, of: str, name: str, *, turned: bool) -> None:
        """Save the order of a list."""
        self._keep("order", of, f"{'-' * turned}{name}")

    def split(self, of: str) -> int | None:
        """The share of the list of a screen in percent; None if not set."""
        share = self._kept.get("split", {}).get(of)
        # a file edited by hand must not hide a pane
        return share if share is None else min(90, max(10, int(share)))

    def move_split(self, of: str, share: int) -> None:
        """Save the split of a screen."""
        self._keep("split", of, share)

    def write(self) -> None:
        """Write the file, by rename.

        Raises:
            OSError: the folder cannot be created, or the file cannot be written.
        """
        if self.path is not None:
            with self._lock:
                document = {"schema": "layout/1", **self._kept}
                replace_file(self.path, json.dumps(document, indent=1, sort_keys=True) + "\n")

    def _keep(self, what: str, of: str, value: object) -> None:
        # a new table each time: a thread may be writing the old one
        table = {**self._kept.get(what, {})}
        table.pop(of, None)
        if value is not None:
            table[of] = value
        self._kept = {**self._kept, what: table}

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                document = json.loads(file.read(MAX_FILE))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.problem = f"{path.name} cannot be read: {clean_line(str(error), 120)}"
            return
        if isinstance(document, dict):
            self._kept = _well_formed(document)


def _well_formed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The valid parts of a layout; an edited file must not prevent the start."""
    # the file exists, so this is not the first start, whatever is in it
    kept: dict[str, Any] = {"seen": True}
    columns, order, split = (document.get(name) for name in ("columns", "order", "split"))
    if isinstance(columns, dict):
        kept["columns"] = {
            of: [name for name in names if isinstance(name, str)]
            for of, names in columns.items()
            if isinstance(names, list)
        }
    if isinstance(order, dict):
        kept["order"] = {of: name for of, name in order.items() if isinstance(name, str)}
    if isinstance(split, dict):
        # `type is`, since a bool is an int to isinstance
        kept["split"] = {of: share for of, share in split.items() if type(share) is int}
    return kept
