"""What the user has set: ``~/.config/helix-tui/settings.toml``: a theme, a threshold, keys of their own.

    theme = "helix-paper"
    model_dir = "~/models/all-MiniLM-L6-v2"
    agent = "claude"           # who does the work, where neither --agent nor HELIX_AGENT says
    model = "sonnet"           # the model behind that agent
    stall_after = 600          # seconds without an event after which a worker is called silent
    autonomy = "medium"        # how far HELIX's loop goes by itself: low, medium, high
    systemic_days = 7          # days within which three occurrences make a failure systemic
    budget_run = "$5"          # what a run may cost: "$5, 2M tokens, 10 attempts"
    budget_day = "$20"         # what a day may cost, whoever spends it
    [keys]
    "move.down" = "n,down"

A file that cannot be read costs its settings and one notice, never the start. Whether a theme or a key exists
is the app's to say.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helix_tui.core.ground.text import clean_line

if TYPE_CHECKING:
    from helix_tui.core.supervision.run_state.budget import Budget

_MAX_FILE = 1 << 16


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings as written, and one sentence for each that could not be read."""

    theme: str = ""
    keymap: Mapping[str, str] = field(default_factory=dict)
    model_dir: str = ""
    """Where the weights for search by meaning lie; what HELIX_MODEL_DIR says comes before it."""
    problems: tuple[str, ...] = ()
    stall_after_s: float | None = None
    """None where nothing is set."""
    agent: str = ""
    """Who does the work; what a command line or HELIX_AGENT says comes before it."""
    model: str = ""
    """The model behind that agent."""
    systemic_days: float | None = None
    """None where nothing is set; what HELIX_SYSTEMIC_DAYS says comes before it."""
    autonomy: str = ""
    """low, medium, high; what a command line or HELIX_AUTONOMY says comes before it."""
    budget_texts: Mapping[str, str] = field(default_factory=dict)
    """What a ``run`` and a ``day`` may cost, as written."""

    @property
    def budget(self) -> Budget:
        """What a run and a day may cost; no limit where nothing is set."""
        from helix_tui.core.supervision.run_state.budget import Budget, parse_limits

        return Budget(*(parse_limits(self.budget_texts.get(span, "")) for span in ("run", "day")))


def settings_file(env: Mapping[str, str] | None = None) -> Path:
    """Where the settings lie, whether or not they are there."""
    env = os.environ if env is None else env
    base = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", ""), ".config")
    return Path(base, "helix-tui", "settings.toml")


def load_settings(path: Path | None = None) -> Settings:
    """The settings of a file; the defaults where there is none."""
    path = settings_file() if path is None else path
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_FILE).decode()
        import tomllib  # here, because most people have no such file

        document = tomllib.loads(text)
    except FileNotFoundError:
        return Settings()
    except (OSError, ValueError) as error:
        return Settings(problems=(f"{path.name} is not read: {clean_line(str(error), 120)}",))
    theme, keys = document.get("theme", ""), document.get("keys", {})
    problems = [] if isinstance(theme, str) else ["theme: write a name as a text"]
    stall = document.get("stall_after")
    if stall is not None and (isinstance(stall, bool) or not isinstance(stall, int | float) or stall <= 0):
        problems.append("stall_after: write a number of seconds")
        stall = None
    days = document.get("systemic_days")
    if days is not None and (isinstance(days, bool) or not isinstance(days, int | float) or not days > 0):
        problems.append("systemic_days: write a number of days")
        days = None
    if not isinstance(keys, dict):
        problems.append("keys: write a table, key id = key")
        keys = {}
    keymap = {key_id: names for key_id, names in keys.items() if isinstance(names, str)}
    problems += [f"{clean_line(key_id, 40)}: write a key as a text" for key_id in keys if key_id not in keymap]
    who = {name: document.get(name, "") for name in ("agent", "model")}
    for name, value in who.items():
        if not isinstance(value, str):
            problems.append(f"{name}: write a name as a text")
            who[name] = ""
    autonomy = document.get("autonomy", "")
    if autonomy not in ("", "low", "medium", "high"):
        problems.append("autonomy: write low, medium or high")
        autonomy = ""
    model_dir = document.get("model_dir", "")
    if not isinstance(model_dir, str):
        problems.append("model_dir: write a folder as a text")
        model_dir = ""
    budget = _budget_texts(document, problems)
    return Settings(
        theme if isinstance(theme, str) else "",
        keymap,
        os.path.expanduser(model_dir),
        tuple(problems),
        stall,
        clean_line(who["agent"], 120),
        clean_line(who["model"], 120),
        days,
        autonomy,
        budget,
    )


def _budget_texts(document: Mapping[str, object], problems: list[str]) -> dict[str, str]:
    """The budgets that can be understood; a sentence for each that cannot."""
    found: dict[str, str] = {}
    for span in ("run", "day"):
        text = document.get(f"budget_{span}", "")
        if text == "":
            continue
        from helix_tui.core.supervision.run_state.budget import HOW, parse_limits  # most people set none

        try:
            parse_limits(text if isinstance(text, str) else "?")
            found[span] = str(text)
        except ValueError:
            problems.append(f"budget_{span}: {HOW}")
    return found


# --- what the console keeps by itself -----------------------------------------------------------------------


def layout_file(env: Mapping[str, str] | None = None) -> Path:
    """Where the console keeps how its user left it: columns, splits; ``~/.local/state/helix-tui/layout.json``."""
    env = os.environ if env is None else env
    base = env.get("XDG_STATE_HOME") or os.path.join(env.get("HOME", ""), ".local", "state")
    return Path(base, "helix-tui", "layout.json")


class Layout:
    """How the user left the console. Read once at the start; `write` is for a thread.

    Without a file (tests, one printed frame) it is kept for as long as the process runs.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._kept: dict[str, Any] = {}
        self._lock = threading.Lock()
        self.problem = ""
        """Why the file was not read, in one sentence; empty where all is well."""
        if path is not None:
            self._read(path)

    def columns(self, of: str) -> tuple[str, ...] | None:
        """The names of the columns that were chosen for a list, in order; None where nobody chose any."""
        chosen = self._kept.get("columns", {}).get(of)
        return tuple(chosen) if chosen is not None else None

    def choose_columns(self, of: str, names: Sequence[str] | None) -> None:
        """Keep the columns of a list; None leaves the choice to the console again."""
        self._keep("columns", of, None if names is None else list(names))

    def split(self, of: str) -> int | None:
        """How many of a hundred cells the list of a screen takes; None where nobody said."""
        share = self._kept.get("split", {}).get(of)
        return share if share is None else min(90, max(10, int(share)))

    def move_split(self, of: str, share: int) -> None:
        """Keep where the split of a screen is."""
        self._keep("split", of, share)

    def write(self) -> None:
        """Write the file, by rename.

        Raises:
            OSError: the folder cannot be made, or the file cannot be written.
        """
        if self.path is None:
            return
        with self._lock:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
            fresh.write_text(json.dumps({"schema": "layout/1", **self._kept}, indent=1, sort_keys=True) + "\n")
            fresh.replace(self.path)

    def _keep(self, what: str, of: str, value: object) -> None:
        table = {**self._kept.get(what, {})}
        table.pop(of, None)
        if value is not None:
            table[of] = value
        self._kept = {**self._kept, what: table}

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                document = json.loads(file.read(_MAX_FILE))
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            self.problem = f"{path.name} is not read: {clean_line(str(error), 120)}"
            return
        if isinstance(document, dict):
            self._kept = _well_formed(document)


def _well_formed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a layout that are what they should be; a file that somebody edited cannot end the start."""
    kept: dict[str, Any] = {}
    columns, split = document.get("columns"), document.get("split")
    if isinstance(columns, dict):
        kept["columns"] = {
            of: [name for name in names if isinstance(name, str)]
            for of, names in columns.items()
            if isinstance(names, list)
        }
    if isinstance(split, dict):
        kept["split"] = {of: share for of, share in split.items() if type(share) is int}
    return kept
